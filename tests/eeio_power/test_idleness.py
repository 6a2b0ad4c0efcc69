"""An idle baseline of a machine that other work uses."""

import os
from collections.abc import Collection
from pathlib import Path

import pytest

from eeio_power import idleness
from eeio_power.idleness import LEAST_S, Activity, activity, wait, why_not_idle
from eeio_power.reading import EnergyReading

MOST_BYTES_PER_S, MOST_PROCESSORS = 1e6, 0.5


@pytest.fixture(autouse=True)
def limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests are no other work (tests/shared_disk.py), except here."""
    monkeypatch.setattr(idleness, "MOST_BYTES_PER_S", MOST_BYTES_PER_S)
    monkeypatch.setattr(idleness, "MOST_PROCESSORS", MOST_PROCESSORS)


IDLE = Activity(100.0, {"sda": 10**9, "loop3": 0}, 50.0)


def after(seconds: float, sda: float = 0.0, loop: float = 0.0, processors: float = 0.0) -> Activity:
    """`sda` and `loop` in bytes/s."""
    moved = {"sda": int(10**9 + sda * seconds), "loop3": int(loop * seconds)}
    return Activity(100.0 + seconds, moved, 50.0 + processors * seconds)


@pytest.mark.parametrize(
    ("now", "reason"),
    [
        (after(60.0), None),
        (after(60.0, sda=0.9e6, loop=0.9e6, processors=0.45), None),
        (after(60.0, sda=100e6), "the machine was not idle: sda moved 100.0 MB/s"),
        (after(60.0, loop=2e6), "the machine was not idle: loop3 moved 2.0 MB/s"),
        (after(60.0, processors=1.0), "the machine was not idle: 1.0 processors were in use"),
        (
            after(5.0, sda=5e6, processors=0.7),
            "the machine was not idle: sda moved 5.0 MB/s, 0.7 processors were in use",
        ),
        # One commit of a journal in a short baseline.
        (after(0.2, sda=0.9 * MOST_BYTES_PER_S * LEAST_S / 0.2), None),
    ],
)
def test_other_work_is_named(now: Activity, reason: str | None) -> None:
    assert why_not_idle(IDLE, now) == reason


def test_all_drives_of_the_machine_count_and_the_named_devices(tmp_path: Path) -> None:
    for name, sectors, is_drive in (("sda", 200, True), ("loop3", 4, False), ("dm-0", 9, False)):
        folder = tmp_path / "sys/block" / name
        folder.mkdir(parents=True)
        (folder / "stat").write_text(f"1 0 {sectors} 0 1 0 {sectors // 2} 0 0 0 0\n")
        if is_drive:
            (folder / "device").mkdir()
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/stat").write_text("cpu  1000000 0 500 900 70 0 0 0 0 0\ncpu0 1 2 3\n")
    counted = activity(["loop3", "gone"], tmp_path)
    assert counted.moved_bytes == {"loop3": 6 * 512, "sda": 300 * 512}
    # Less the time of this process.
    assert 0 < counted.used_s <= 1000500 / os.sysconf("SC_CLK_TCK")


def reading(kind: str) -> EnergyReading:
    return EnergyReading(
        domain="system", meter="m", kind=kind, power_w=10.0, energy_j=50.0, uncertainty_j=1.0,
        coverage=1.0, largest_gap_s=None, samples=50, lost=0, valid=True, reasons=(),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("counts", "waits", "is_valid"),
    [
        ([IDLE, after(5.0)], 1, True),
        ([IDLE, after(5.0, sda=9e6), IDLE, after(5.0)], 2, True),
        ([IDLE, after(5.0, sda=9e6), IDLE, after(5.0, sda=8e6)], 2, False),
    ],
)
def test_a_baseline_is_repeated_once_and_then_missing(
    monkeypatch: pytest.MonkeyPatch, counts: list[Activity], waits: int, is_valid: bool
) -> None:
    said: list[str] = []
    waited: list[float] = []
    counted = iter(counts)

    def count(drives: Collection[str]) -> Activity:
        return next(counted)

    monkeypatch.setattr(idleness, "activity", count)
    monkeypatch.setattr(idleness.time, "sleep", waited.append)
    baseline = wait(5.0, (), said.append)
    assert waited == [5.0] * waits
    assert len(said) == waits - 1 and all("sda moved 9.0 MB/s" in text for text in said)
    measured, demo = baseline.readings([reading("measured"), reading("demo")])
    assert (measured.valid, measured.power_w) == (is_valid, 10.0 if is_valid else None)
    assert is_valid or "sda moved 8.0 MB/s" in measured.reasons[0]
    assert demo.valid, "fictitious power does not depend on the machine"
