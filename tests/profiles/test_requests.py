"""How eeio-fio makes requests: engines, a skewed distribution, a latency bound."""

import json
import shutil
from pathlib import Path

import pytest

from eeio.errors import ToolOutputError
from eeio.record import tools
from eeio.record.tools.capture import PhaseResult
from tests.profiles.harness import Installed

pytestmark = pytest.mark.tools

FACTORS = [
    "operation=read", "spatiality=random", "request_size=4k", "file_size=16m", "runtime_s=1",
    "iodepth=4", "engine=libaio",
]  # fmt: skip


def ran(fio: Installed, folder: Path, *arguments: str) -> tuple[PhaseResult, dict[str, str]]:
    """The phase of a run, and the options that fio reports."""
    factors = dict(word.split("=") for word in (*FACTORS, *arguments))
    fio.script("pre.sh", *FACTORS, *arguments)
    capture = fio.capture(folder / "out", factors)
    assert capture.exit_code == 0, capture.text("stderr.txt")
    (phase,) = tools.parse("fio", capture).phases
    body = json.loads((folder / "out/fio.json").read_text())
    return phase, {**body.get("global options", {}), **body["jobs"][0]["job options"]}


@pytest.mark.parametrize(
    ("engine", "option"),
    [
        ("libaio", None),
        ("io_uring", None),
        ("io_uring_fixed", "fixedbufs"),
        ("io_uring_sqpoll", "sqthread_poll"),
    ],
)
def test_an_engine_is_fios_engine_with_its_option(
    fio: Installed, tmp_path: Path, engine: str, option: str | None
) -> None:
    phase, options = ran(fio, tmp_path, f"engine={engine}")
    assert options["ioengine"] == ("libaio" if engine == "libaio" else "io_uring")
    given = {"fixedbufs", "sqthread_poll", "hipri"} & options.keys()
    assert given == ({option} if option else set())
    assert phase.metrics["iops"] > 0 and "operations_per_s" not in phase.metrics


def test_polled_completions_work_or_fail_with_the_kernels_reason(fio: Installed) -> None:
    arguments = [*FACTORS, "engine=io_uring_polled"]
    fio.script("pre.sh", *arguments)
    done = fio.run(*arguments, code=None)
    if done.returncode != 0:
        assert "not supported" in done.stderr + done.stdout
        return
    (job,) = json.loads((fio.home / "output/fio.json").read_text())["jobs"]
    assert job["error"] == 0 and job["job options"]["hipri"] == "1"


def test_requests_of_a_workload_are_operations_in_a_skewed_order(
    fio: Installed, tmp_path: Path
) -> None:
    phase, options = ran(fio, tmp_path, "distribution=zipf", "workload=vector_index")
    assert options["random_distribution"] == "zipf:1.1"
    assert phase.metrics["operations_per_s"] == phase.metrics["iops"] > 0


def test_a_latency_bound_has_the_depth_that_meets_it(fio: Installed, tmp_path: Path) -> None:
    phase, options = ran(fio, tmp_path, "latency_ms=50", "workload=kv_cache")
    assert options["latency_target"] == "50ms"
    assert 1 <= phase.metrics["depth_within_bound"] <= 4
    # Output of a fio that reports no depth is rejected.
    out = tmp_path / "old"
    shutil.copytree(tmp_path / "out", out)
    body = json.loads((out / "fio.json").read_text())
    del body["jobs"][0]["latency_depth"]
    (out / "fio.json").write_text(json.dumps(body))
    capture = fio.capture(
        tmp_path / "again", dict(w.split("=") for w in (*FACTORS, "latency_ms=50"))
    )
    shutil.copy(out / "fio.json", tmp_path / "again/fio.json")
    with pytest.raises(ToolOutputError, match="no queue depth of the latency bound"):
        tools.parse("fio", capture)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ("engine=uring", "engine=uring: give one of: psync"),
        ("engine=io_uring_polled buffer=on", "requires direct I/O; give buffer=off"),
        ("engine=io_uring_cmd", "give level=device operation=read"),
        ("engine=io_uring_cmd level=device", "no device is named"),
        ("distribution=pareto", "distribution=pareto: give one of: uniform zipf"),
        ("distribution=zipf spatiality=sequential", "only for spatiality=random"),
        ("latency_ms=0", "latency_ms=0: give a whole number from 1 to 10000"),
        ("latency_ms=5 operation=write", "latency_ms=5: only for operation=read without load"),
        ("latency_ms=5 load=50", "latency_ms=5: only for operation=read without load"),
        ("workload=unet3d", "workload=unet3d: give one of: vector_index kv_cache"),
    ],
)
def test_what_cannot_be_is_rejected(fio: Installed, arguments: str, why: str) -> None:
    done = fio.run(*FACTORS, *arguments.split(), code=2)
    assert why in done.stderr and done.stderr.count("\n") == 1


def test_processors_and_small_requests_are_options_of_fio(fio: Installed, tmp_path: Path) -> None:
    _, options = ran(fio, tmp_path, "cpus=1", "request_size=1k")
    assert options["cpus_allowed"] == "0-0" and options["bs"] == "1024"


def test_counters_are_asked_of_perf(fio: Installed, tmp_path: Path) -> None:
    if shutil.which("perf") is None:
        pytest.skip("needs perf")
    ran(fio, tmp_path, "counters=perf")
    text = (tmp_path / "out/perf.csv").read_text()
    assert ",instructions" in text and ",cycles" in text


def test_all_options_of_io_uring_together(fio: Installed) -> None:
    """A file system without poll queues refuses the run: only the options are looked at."""
    fio.rejects(
        "operation=read engine=io_uring_combined buffer=on",
        "buffer=on: engine=io_uring_combined requires direct I/O",
    )
    text = (fio.profile / "requests.sh").read_text()
    assert "'--fixedbufs=1 --registerfiles=1 --hipri=1 --sqthread_poll=1'" in text


def test_a_file_is_filled_again_before_each_run(fio: Installed) -> None:
    factors = [*FACTORS, "operation=write", "flush=end"]
    for fill, changes in (("once", False), ("each", True)):
        fio.script("pre.sh", *factors, f"fill={fill}")
        (file,) = fio.directory.rglob("eeio-fio.0.0")
        before = file.stat().st_mtime_ns
        fio.script("pre.sh", *factors, f"fill={fill}")
        assert (file.stat().st_mtime_ns != before) is changes
