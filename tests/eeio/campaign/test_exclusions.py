"""Experiments that a drive cannot take are left out, with the reason."""

from pathlib import Path

import pytest

from eeio.machine.filesystem import BlockDevice
from eeio.measure.campaign import exclusions, plan
from eeio.measure.profiles import suite as suites
from eeio.measure.profiles.suite import SuiteEntry
from eeio.record.design import Options
from eeio.record.run import CacheLayers, Experiment


def experiment(engine: str, request_bytes: int) -> Experiment:
    return Experiment(
        level="device", tool="fio", operation="read", spatiality="random",
        request_size_bytes=request_bytes, cache=CacheLayers("off"),
        arguments=(("engine", engine),),
    )  # fmt: skip


def why_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, engine: str, request_bytes: int
) -> str | None:
    """With a drive of blocks of 4 KiB and without poll queues below the directory."""
    queue = tmp_path / "sys/class/block/nvme0n1/queue"
    queue.mkdir(parents=True)
    (queue / "logical_block_size").write_text("4096\n")
    (queue / "io_poll").write_text("0\n")
    drive = BlockDevice("nvme0n1", 259, 0, root=tmp_path)
    monkeypatch.setattr(exclusions, "backing_device", lambda *_: (drive, None))
    entry = SuiteEntry("eeio-fio-1.0.0", {}, "")
    options = Options(suite="eeio-ssd-power", directory=str(tmp_path))
    return exclusions.why_not(options, (), entry, experiment(engine, request_bytes), Path("/"))


@pytest.mark.parametrize(
    ("engine", "request_bytes", "reason"),
    [
        ("io_uring", 4096, None),
        ("io_uring", 1024, "/dev/nvme0n1 has blocks of 4096 bytes, and a direct request is a "
         "multiple of them"),
        ("io_uring_polled", 4096, "/dev/nvme0n1 has no poll queues, which engine=io_uring_polled "
         "requires (NVMe drives: nvme.poll_queues=4 on the kernel's command line)"),
        ("io_uring_combined", 4096, "/dev/nvme0n1 has no poll queues, which "
         "engine=io_uring_combined requires (NVMe drives: nvme.poll_queues=4 on the kernel's "
         "command line)"),
    ],
)  # fmt: skip
def test_requests_and_engines_that_the_drive_lacks(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    engine: str,
    request_bytes: int,
    reason: str | None,
) -> None:
    assert why_not(monkeypatch, tmp_path, engine, request_bytes) == reason


@pytest.mark.root
def test_a_device_smaller_than_the_presets_file_is_measured_completely(loop: str) -> None:
    options = Options(suite="eeio-drive-review", preset="quick", device=loop, seed=1)
    made = plan.make(options, suites.find("eeio-drive-review"))
    assert {planned.file_bytes for planned in made.experiments} == {4 << 20}


@pytest.mark.root
def test_standard_measures_the_complete_device(loop: str) -> None:
    options = Options(suite="eeio-ssd-power", preset="standard", device=loop, seed=1)
    made = plan.make(options, suites.find("eeio-ssd-power"))
    assert {planned.file_bytes for planned in made.experiments} == {4 << 20}


@pytest.mark.root
def test_each_refill_is_in_the_bytes_of_the_plan(loop: str) -> None:
    options = Options(suite="eeio-ssd-power", preset="quick", device=loop, erase=loop, seed=1,
                      lose=("data",))  # fmt: skip
    made = plan.make(options, suites.find("eeio-ssd-power"))
    # The first fill, the refill before the writes, and the writes.
    assert made.most_bytes_written == 3 * (4 << 20)
