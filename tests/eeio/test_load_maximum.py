"""The bandwidth at full speed of which an offered load is a share."""

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.kill.harness import drop_last_runs
from tests.plugin import InProcess
from tests.suites import written
from tests.throttled import throttled_directory

from eeio.errors import EeioError
from eeio.machine import other_io
from eeio.measure.campaign.load_maximum import TITLE, Maxima, Maximum
from eeio.record.design import PlannedExperiment
from eeio.record.run import CacheLayers, Experiment
from eeio.record.store import load

EXPERIMENT = Experiment(
    level="filesystem", tool="fio", operation="read", spatiality="random", request_size_bytes=65536,
    cache=CacheLayers("off", None),
)  # fmt: skip
STEP = PlannedExperiment(EXPERIMENT, "local/eeio-fio-1.0.0", {"request_size": "64k", "load": "50"})


def test_each_setting_of_the_machine_has_a_maximum(tmp_path: Path) -> None:
    Maxima(tmp_path).add(STEP, Maximum(100, ("at a limit",)))
    maxima = Maxima(tmp_path)
    known = maxima.of(STEP)
    assert known is not None and known.bytes_per_s == 100
    assert known.notes == (f"{TITLE}: at a limit",)
    for load_factors in ({"load": "80"}, {"load": "50", "arrivals": "poisson"}):
        assert maxima.of(replace(STEP, factors={**STEP.factors, **load_factors})) == known
    others: list[dict[str, Any]] = [
        {"frequency_hz": 10**9}, {"volume": "xfs"}, {"smt": "off"}, {"turbo": "off"},
        {"factors": {**STEP.factors, "request_size": "4k"}}, {"profile": "local/other-1.0.0"},
        {"experiment": replace(EXPERIMENT, cache=CacheLayers("off", "on"))},
    ]  # fmt: skip
    for number, other in enumerate(others):
        assert maxima.of(replace(STEP, **other)) is None
        maxima.add(replace(STEP, **other), Maximum(200 + number))
    assert [maxima.of(replace(STEP, **other)) for other in others] == [
        Maximum(200 + number) for number in range(len(others))
    ]
    assert maxima.of(STEP) == known


def test_a_damaged_file_offers_no_load(tmp_path: Path) -> None:
    (tmp_path / "load.json").write_text('{"maxima": [{"of": {}, "bytes_per_s": -1}]}')
    with pytest.raises(EeioError, match=r"load\.json: .*Start another campaign"):
        Maxima(tmp_path).of(STEP)


# --- campaigns ------------------------------------------------------------------------------------

Verdicts = Callable[[list[other_io.OtherIo | None]], None]
MUCH = other_io.OtherIo("other I/O on the drive: it read 300.0 MB, the tool 100.0 MB", True)
SOME = other_io.OtherIo("other I/O on the drive: it read 120.0 MB, the tool 100.0 MB", False)


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    with throttled_directory(tmp_path, 100_000_000) as mount:
        yield mount


@pytest.fixture
def verdicts(monkeypatch: pytest.MonkeyPatch) -> Verdicts:
    """Sets what other I/O each run of the tool has; after the last there is none."""

    def of_runs(listed: list[other_io.OtherIo | None]) -> None:
        left = iter(listed)
        monkeypatch.setattr(other_io, "other_io", lambda *arguments: next(left, None))

    return of_runs


@pytest.fixture
def run(
    home: Path, directory: Path, in_process: InProcess, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., None]:
    monkeypatch.delenv("EEIO_TEST_PROFILES")
    monkeypatch.delenv("EEIO_SUITES")

    def started(name: str, code: int) -> None:
        in_process(
            "run", "eeio-load", "--preset", "quick", "--sweep", "load=50,100", "--sweep",
            "runtime_s=1", "--repetitions", "1", "--idle", "0", "--settle", "0", "--meter", "none",
            "--directory", str(directory), "--name", name, code=code,
        )  # fmt: skip

    return started


def maximum_of(home: Path, name: str) -> int:
    body = json.loads((home / f"data/eeio/results/{name}/load.json").read_text())
    (maximum,) = body["maxima"]
    return int(maximum["bytes_per_s"])


def offered(home: Path, name: str) -> list[float | None]:
    """Shares of the maximum."""
    maximum = maximum_of(home, name)
    return sorted(
        phase.metrics["offered_bytes_per_s"] / maximum
        for run in load(home / f"data/eeio/results/{name}").runs
        for phase in run.phases
    )


@pytest.mark.root
@pytest.mark.tools
@pytest.mark.other_io
def test_a_run_at_full_speed_with_other_io_defines_no_load(
    home: Path, run: Callable[..., None], verdicts: Verdicts
) -> None:
    verdicts([MUCH])
    run("c", 3)
    first, second = load(home / "data/eeio/results/c").runs
    assert first.validity == (f"{TITLE}: {MUCH.text}",) and not first.phases
    assert second.valid, second.validity
    assert maximum_of(home, "c") > 0


@pytest.mark.root
@pytest.mark.tools
@pytest.mark.other_io
def test_a_maximum_belongs_to_its_campaign(
    home: Path, run: Callable[..., None], verdicts: Verdicts, in_process: InProcess
) -> None:
    verdicts([SOME])
    run("a", 0)
    first, second = load(home / "data/eeio/results/a").runs
    for one in (first, second):
        assert f"{TITLE}: {SOME.text}" in one.notes
    assert offered(home, "a") == pytest.approx([0.5, 1.0], rel=0.001)
    # Resumed, after a reboot or not, it is the same.
    path = home / "data/eeio/results/a/load.json"
    path.write_text(path.read_text().replace(str(maximum_of(home, "a")), "40000000"))
    drop_last_runs(home, 1, "a")
    in_process("resume", "a")
    assert 40000000 * 0.5 in [
        pytest.approx(phase.metrics["offered_bytes_per_s"] * share, rel=0.001)
        for one in load(home / "data/eeio/results/a").runs
        for phase in one.phases
        for share in (0.5, 1.0)
    ]
    assert json.loads(path.read_text())["maxima"][0]["bytes_per_s"] == 40000000
    # Another campaign measures its own.
    run("b", 0)
    assert maximum_of(home, "b") != 40000000
    assert offered(home, "b") == pytest.approx([0.5, 1.0], rel=0.001)
    assert not list(home.rglob("load.max"))


@pytest.mark.slow
@pytest.mark.root
@pytest.mark.tools
def test_data_servers_have_a_maximum_too(
    home: Path, directory: Path, in_process: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("mpicc") is None:
        pytest.skip("no mpicc here")
    factors = "operation=read request_size=64k file_size=16m runtime_s=1 processes=2 load="
    suite = written(
        home / "suites/servers",
        [("dataserver", f"{factors}{load}", load) for load in ("50", "100")],
        "presets:\n  quick: {repetitions: 1, settle_s: 0, idle_s: 0, is_measurement: false}\n",
    )
    monkeypatch.delenv("EEIO_TEST_PROFILES")
    in_process(
        "run", str(suite), "--preset", "quick", "--directory", str(directory), "--meter", "none",
        "--name", "s",
    )  # fmt: skip
    assert offered(home, "s") == pytest.approx([0.5, 1.0], rel=0.001)
