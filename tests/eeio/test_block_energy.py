"""`eeio.energy`: the energy of a block of a program."""

import json
import os
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import eeio
from eeio.errors import RejectedError
from eeio.measure.block_energy import BlockEnergy
from eeio_power.meters import open_meters
from eeio_power.recording import record

GUIDE = Path(__file__).parents[2] / "docs/how-to/measure-a-block.md"


def example(name: str, folder: Path) -> Path:
    """The example of the guide in that file, with the demo meter."""
    found = re.search(rf"in `{name}`:\n\n```python\n(.*?)^```$", GUIDE.read_text(), re.M | re.S)
    assert found is not None
    path = folder / name
    path.write_text(found[1].replace("eeio.energy()", 'eeio.energy("demo")'))
    return path


def python(*words: str, folder: Path) -> str:
    # A worker of pytest-xdist disables pytest-benchmark.
    environment = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def joules(block: BlockEnergy) -> float:
    assert block.energy_j is not None, block.reasons
    return block.energy_j


def test_it_agrees_with_record_power(tmp_path: Path) -> None:
    """Of the same second: the demo meter's power changes with time."""
    with energy_of_demo() as block:
        recording = record(["sleep", "1"], open_meters(["demo"]), tmp_path / "power.csv.gz")
    (other,) = (reading for reading in recording.readings if reading.domain == "system")
    assert block.main is not None and block.seconds is not None
    assert (block.main.meter, block.main.domain, block.main.kind) == ("demo", "system", "demo")
    assert other.energy_j is not None and other.uncertainty_j is not None
    assert block.uncertainty_j is not None and block.power_w is not None
    # The block begins before the command, and ends after it.
    longer_j = (block.seconds - recording.duration_s) * 1.5 * block.power_w
    limit_j = block.uncertainty_j + other.uncertainty_j + longer_j
    assert abs(joules(block) - other.energy_j) <= limit_j


def energy_of_demo() -> BlockEnergy:
    return eeio.energy("demo")


def test_blocks_are_nested_and_fail() -> None:
    inner = energy_of_demo()
    with pytest.raises(ZeroDivisionError), energy_of_demo() as outer:
        with inner:
            time.sleep(0.5)
        time.sleep(0.5)
        _ = 1 / 0
    assert outer.seconds is not None and inner.seconds is not None
    assert outer.seconds > inner.seconds >= 0.5
    assert joules(outer) > joules(inner) > 0
    assert outer.power_w == pytest.approx(joules(outer) / outer.seconds)
    assert [reading.domain for reading in outer.readings] == ["system", "package", "device"]


def test_threads_have_blocks_of_their_own() -> None:
    together = threading.Barrier(4)

    def measured(pause_s: float) -> BlockEnergy:
        together.wait()
        with energy_of_demo() as block:
            time.sleep(pause_s)
        return block

    pauses_s = (0.4, 0.6, 0.8, 1.0)
    with ThreadPoolExecutor(4) as pool:
        blocks = list(pool.map(measured, pauses_s))
    for block, pause_s in zip(blocks, pauses_s, strict=True):
        assert block.seconds is not None and block.seconds >= pause_s
        assert joules(block) == pytest.approx((block.power_w or 0.0) * block.seconds)


def test_a_missing_energy_has_its_reason() -> None:
    block = energy_of_demo()
    assert (block.energy_j, block.reasons) == (None, ("the block has not begun",))
    with block:
        assert (block.energy_j, block.reasons) == (None, ("the block has not ended",))
        assert (block.seconds, block.readings) == (None, ())
    # Between two readings.
    assert (block.energy_j, block.power_w, block.uncertainty_j) == (None, None, None)
    assert "window" in block.reasons[0]
    with eeio.energy("none") as without:
        pass
    assert (without.energy_j, without.main) == (None, None)
    assert without.reasons == ("--meter none was given",)


def test_a_named_meter_that_cannot_be_read_and_a_second_use_are_rejected() -> None:
    with pytest.raises(RejectedError, match="/dev/nothing"), eeio.energy("wattsup:/dev/nothing"):
        pass
    with energy_of_demo() as block:
        pass
    with pytest.raises(RejectedError, match="call it again"), block:
        pass


def test_a_forked_process_reads_for_itself(tmp_path: Path) -> None:
    program = """
import os, time, eeio
with eeio.energy("demo"):
    pass
child = os.fork()
with eeio.energy("demo") as block:
    time.sleep(0.6)
assert block.energy_j > 0, block.reasons
if child:
    assert os.waitpid(child, 0)[1] == 0
else:
    os._exit(0)
print("both")
"""
    assert python("-c", program, folder=tmp_path) == "both\n"


def test_importing_eeio_does_not_import_meters(tmp_path: Path) -> None:
    program = "import eeio, sys; print(sorted(n for n in sys.modules if n.startswith('eeio')))"
    assert python("-c", program, folder=tmp_path) == "['eeio']\n"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        eeio.nothing  # noqa: B018


def test_the_example_with_pytest_benchmark(tmp_path: Path) -> None:
    pytest.importorskip("pytest_benchmark", reason="pytest-benchmark is not installed")
    example("test_copy.py", tmp_path)
    python(
        "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", "-c", os.devnull,
        f"--rootdir={tmp_path}", "--benchmark-json=result.json", "test_copy.py", folder=tmp_path,
    )  # fmt: skip
    (result,) = json.loads((tmp_path / "result.json").read_text())["benchmarks"]
    assert result["extra_info"]["energy_j"] > 0


def test_the_example_with_asv(tmp_path: Path) -> None:
    runner = pytest.importorskip("asv_runner.discovery", reason="asv_runner is not installed")
    example("benchmarks.py", tmp_path)
    program = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
from {runner.__name__} import get_benchmark_from_name
benchmark = get_benchmark_from_name({str(tmp_path)!r}, "benchmarks.Copy.track_energy")
benchmark.do_setup()
print(benchmark.do_run(), benchmark.unit)
benchmark.do_teardown()
"""
    value, unit = python("-c", program, folder=tmp_path).split()
    assert float(value) > 0 and unit == "J"


def test_the_example_with_google_benchmark(tmp_path: Path) -> None:
    pytest.importorskip("google_benchmark", reason="google-benchmark is not installed")
    path = example("copy_benchmark.py", tmp_path)
    shown = python(path.name, "--benchmark_format=json", folder=tmp_path)
    (result,) = json.loads(shown)["benchmarks"]
    assert result["J"] > 0
