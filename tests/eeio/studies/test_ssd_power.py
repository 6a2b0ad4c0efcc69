"""eeio-ssd-power and the study of PowerSensor3's SSD measurements."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from tests.plugin import InProcess
from tests.simulators import curve_fio
from tests.simulators.powersensor3 import FakePowerSensor3

from eeio.machine import counters
from eeio.studies.powersensor3 import published
from eeio.studies.powersensor3.over_time import Interval, change_of

MIB = 1 << 20
ROOT = Path(__file__).parents[3]
RUN_S = 2
WRITES_S = curve_fio.WRITES_TIMES * RUN_S


def intervals(*parts: tuple[int, float, float], length_s: float = 1.0) -> list[Interval]:
    """Parts of so many intervals with a power in W and a bandwidth in MiB/s."""
    made: list[Interval] = []
    for count, power_w, mib_per_s in parts:
        for _ in range(count):
            begin_s = len(made) * length_s
            made.append(Interval(begin_s, begin_s + length_s, power_w, mib_per_s * MIB))
    return made


def test_the_published_run_changes_after_4_7_minutes_by_a_factor_of_4() -> None:
    seconds = [(second + 0.5) / 60 for second in range(1200)]
    points = [curve_fio.of_minute(minute) for minute in seconds]
    run = [
        Interval(float(n), n + 1.0, point.power_w, point.mib_per_s * MIB)
        for n, point in enumerate(points)
    ]
    change = change_of(run)
    assert change is not None
    assert change.at_s == pytest.approx(published.CHANGE_S, rel=0.02)
    assert change.before_w == pytest.approx(published.BEFORE_W, rel=0.02)
    assert change.after_w == pytest.approx(published.AFTER_W, rel=0.02)
    assert change.factor == pytest.approx(published.FACTOR_OVER_TIME, rel=0.02)


def test_a_steady_drive_has_no_change() -> None:
    assert change_of(intervals((100, 5.0, 300.0))) is None


def test_a_few_slow_intervals_are_no_change() -> None:
    run = intervals((50, 3.0, 300.0), (2, 5.0, 50.0), (248, 3.0, 300.0))
    assert change_of(run) is None


def test_a_drive_that_was_never_fast_has_no_change() -> None:
    """Nothing is known of the time before the run."""
    assert change_of(intervals((1000, 5.0, 100.0))) is None


def test_the_change_is_where_all_further_intervals_begin_to_be_slow() -> None:
    change = change_of(intervals((100, 3.0, 300.0), (100, 6.0, 100.0), (100, 6.0, 250.0)))
    assert change is not None and change.at_s == 100.0
    assert change.factor == pytest.approx((300 / 3) / (100 / 6))


@pytest.mark.slow
@pytest.mark.tools
def test_a_simulated_drive_gives_the_published_figures(
    home: Path, in_process: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("fio") is None:
        pytest.skip("needs fio")
    state, programs, directory = home / "state.json", home / "programs", home / "disk"
    state.write_text(json.dumps({"w": curve_fio.IDLE_W}), encoding="ascii")
    programs.mkdir()
    directory.mkdir()
    fio = programs / "fio"
    fio.write_text(
        f'#!/bin/sh\nexec {sys.executable} -m tests.simulators.curve_fio {state} {RUN_S} "$@"\n',
        encoding="ascii",
    )
    fio.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    # The real drive below the directory moves none of these bytes.
    monkeypatch.setattr(counters, "disagreements", lambda *_, **__: {})
    with FakePowerSensor3(lambda _: (curve_fio.power_w(state), 0.0)) as board:
        in_process(
            "run", "eeio-ssd-power", "--preset", "quick", "--directory", str(directory),
            "--meter", f"powersensor3:{board.path},pairs=NVMe", "--name", "simulated",
            "--idle", "1",
        )  # fmt: skip
    said = in_process("study", "replicate", "powersensor3", "simulated", "--format", "json").out
    figures = {each["figure"]: each for each in json.loads(said)["beside_papers"]}
    sizes = [
        f"reads of {size}" for size in ("1 KiB", "16 KiB", "64 KiB", "256 KiB", "1 MiB", "4 MiB")
    ]
    of_reads = [each for each in json.loads(said)["beside_papers"] if each["figure"] in sizes]
    assert len(of_reads) == 3 * len(sizes)
    for each in of_reads:
        assert each["ratio"] == pytest.approx(1.0, rel=0.02), each
    assert figures["reads: factor between the sizes"]["campaign_value"] == pytest.approx(
        curve_fio.of_size(4096).mib_per_j / curve_fio.of_size(1).mib_per_j, rel=0.02
    )
    assert figures["writes: before the change"]["ratio"] == pytest.approx(1.0, rel=0.02)
    assert figures["writes: after the change"]["ratio"] == pytest.approx(1.0, rel=0.02)
    first, worst = curve_fio.of_minute(1), curve_fio.of_minute(5)
    assert figures["writes: after the change over before it"]["campaign_value"] == pytest.approx(
        first.mib_per_s / first.power_w / (150.875 / worst.power_w), rel=0.02
    )
    # 20 minutes pass in WRITES_S, and fio's log has an entry each half second.
    change_s = figures["writes: time until the change"]["campaign_value"]
    due_s = published.CHANGE_S / 60 / curve_fio.MINUTES * WRITES_S
    assert due_s - 0.5 <= change_s <= due_s + 1.0
