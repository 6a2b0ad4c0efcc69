"""Clocks of power logs that drift, that are set, or that change to summer time."""

import math
import random
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from eeio.exchange.importing import power_logs
from eeio.exchange.importing.load_steps import LoadSteps
from eeio.exchange.importing.power_logs import PowerLog
from eeio.exchange.importing.power_of_results import Window, aligned, energy_of
from eeio_power.reading import EnergyReading

START_S = 1764000000.0
IDLE_W, BUSY_W = 60.0, 180.0
DAY_S = 86400.0
Runs = Sequence[tuple[float, float]]


def campaign(
    hours: float, lasts_s: tuple[int, int], pauses_s: tuple[int, int], seed: int = 3
) -> Runs:
    draw = random.Random(seed)
    runs, begin_s = [], 100.0
    while begin_s < hours * 3600:
        end_s = begin_s + draw.randint(*lasts_s)
        runs.append((begin_s, end_s))
        begin_s = end_s + draw.randint(*pauses_s)
    return runs


def wattsup(
    path: Path, runs: Runs, times_s: Sequence[float], shift: Callable[[float], float], *,
    local: bool = False, busy_w: float = BUSY_W,
) -> PowerLog:  # fmt: skip
    """Of a meter whose means are as old as a Watts Up's. `shift` is how far its clock is ahead."""
    noise = random.Random(4)
    begins_s = [begin_s for begin_s, _ in runs]
    lines = []
    for time_s in times_s:
        middle_s = time_s - 1.0
        place = bisect_right(begins_s, middle_s) - 1
        power_w = busy_w if place >= 0 and middle_s < runs[place][1] else IDLE_W
        stamp_s = START_S + time_s + shift(time_s)
        stamp = f"{stamp_s:.1f}"
        if local:
            stamp = f"{datetime.fromtimestamp(stamp_s, UTC):%Y-%m-%d %H:%M:%S}"
        lines.append(
            f"{stamp} #d,-,18,{10 * (power_w + noise.gauss(0, 0.4)):.0f},1201{',_' * 16};\n"
        )
    path.write_text("".join(lines))
    log = power_logs.read(path)
    assert log.rejected is None
    return log


def windows(runs: Runs, local: bool = False) -> list[Window]:
    return [Window(START_S + begin_s, START_S + end_s, 0.1, local) for begin_s, end_s in runs]


def energies(log: PowerLog, runs: Runs, offset_s: float | None) -> list[EnergyReading]:
    of_runs = windows(runs)
    alignment = aligned(log, of_runs, offset_s)
    return [energy_of(window, [(log, alignment)])[0] for window in of_runs]


DRIFTS = [
    # s per hour, h, seconds of the results, seconds of the pauses
    (0.36, 24, (60, 200), (60, 600)),
    pytest.param(0.18, 72, (60, 180), (100, 600), marks=pytest.mark.slow),
    pytest.param(1.0, 24, (60, 120), (20, 60), marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("drift", "hours", "lasts_s", "pauses_s"), DRIFTS)
def test_energies_of_a_clock_that_drifts_are_within_their_uncertainty(
    tmp_path: Path, drift: float, hours: int, lasts_s: tuple[int, int], pauses_s: tuple[int, int]
) -> None:
    runs = campaign(hours, lasts_s, pauses_s)
    times_s = [float(second) for second in range(hours * 3600 + 900)]
    log = wattsup(tmp_path / "power.log", runs, times_s, lambda time_s: drift * time_s / 3600)
    alignment = aligned(log, windows(runs), None)
    assert alignment.ahead_s == pytest.approx(drift * hours / 2, abs=1.5 + 0.1 * drift * hours)
    assert alignment.unsure_s > drift * hours / 2
    for reading, (begin_s, end_s) in zip(energies(log, runs, None), runs, strict=True):
        if reading.energy_j is None:
            assert "clock drifts by" in reading.reasons[-1] and "import" in reading.reasons[-1]
            continue
        assert reading.uncertainty_j is not None
        assert abs(reading.energy_j - BUSY_W * (end_s - begin_s)) <= reading.uncertainty_j


@pytest.mark.parametrize(("drift", "hours", "lasts_s", "pauses_s"), DRIFTS)
def test_a_given_offset_of_a_clock_that_drifts_is_doubtful(
    tmp_path: Path, drift: float, hours: int, lasts_s: tuple[int, int], pauses_s: tuple[int, int]
) -> None:
    runs = campaign(hours, lasts_s, pauses_s)
    times_s = [float(second) for second in range(hours * 3600 + 900)]
    # Right in the middle, so that the best offset of all results is the given one.
    log = wattsup(
        tmp_path / "power.log", runs, times_s, lambda time_s: drift * (time_s / 3600 - hours / 2)
    )
    (doubt,) = aligned(log, windows(runs), 0.0).doubts
    assert "drifts by" in doubt.text
    assert all(reading.doubtful for reading in energies(log, runs, 0.0))


@pytest.mark.parametrize("offset_s", [0.0, None])
@pytest.mark.parametrize("seed", range(6))
def test_a_clock_without_a_drift_is_not_doubtful(
    tmp_path: Path, seed: int, offset_s: float | None
) -> None:
    runs = campaign(2 + seed, (30, 200), (30, 200), seed)
    times_s = [float(second) for second in range((2 + seed) * 3600 + 900)]
    log = wattsup(tmp_path / "power.log", runs, times_s, lambda time_s: 0.0)
    alignment = aligned(log, windows(runs), offset_s)
    assert alignment.doubts == () and alignment.unsure_s < 4.0
    for reading, (begin_s, end_s) in zip(energies(log, runs, offset_s), runs, strict=True):
        assert reading.energy_j == pytest.approx(BUSY_W * (end_s - begin_s), rel=0.05)


def test_power_that_falls_when_the_results_begin_shows_no_other_zone(tmp_path: Path) -> None:
    """No offset follows the results: that ended in a traceback."""
    runs = campaign(1, (60, 120), (60, 200))
    log = wattsup(
        tmp_path / "power.log", runs, [float(n) for n in range(4500)], lambda _: 0.0,
        busy_w=IDLE_W / 2,
    )  # fmt: skip
    spans = [window.pulse for window in windows(runs)]
    assert LoadSteps(log.series[0]).better_zone_s(spans, 0.0, []) is None


def every(interval_s: float, count: int) -> Runs:
    return [(100.0 + k * interval_s, 160.0 + k * interval_s) for k in range(count)]


@pytest.mark.parametrize(("interval_s", "count"), [(900.0, 45), (3600.0, 10)])
@pytest.mark.parametrize("ahead_s", [0.0, 3600.0])
def test_results_at_equal_times_do_not_hide_a_clock_that_is_an_hour_ahead(
    tmp_path: Path, interval_s: float, count: int, ahead_s: float
) -> None:
    """Nine of ten results lie on results an hour later, so both places look alike."""
    runs = every(interval_s, count)
    times_s = [float(n) for n in range(-4000, int(interval_s * count) + 4000, 3)]
    log = wattsup(tmp_path / "power.log", runs, times_s, lambda _: ahead_s)
    estimated = aligned(log, windows(runs), None)
    right = aligned(log, windows(runs), ahead_s)
    assert right.doubts == () and right.ahead_s == ahead_s
    if ahead_s:
        assert estimated.ahead_s is None and "several offsets fit" in estimated.source
        (doubt,) = aligned(log, windows(runs), 0.0).doubts
        assert "+3600 s" in doubt.text
    else:
        assert estimated.ahead_s == pytest.approx(0.0, abs=2.0)


def test_other_load_that_makes_two_zones_fit_leaves_the_offset_open(tmp_path: Path) -> None:
    runs = every(3600.0, 10)
    times_s = [float(n) for n in range(-4000, 40_000, 3)]
    log = wattsup(tmp_path / "power.log", every(3600.0, 11), times_s, lambda _: 0.0)
    estimated = aligned(log, windows(runs), None)
    assert estimated.ahead_s is None and "several offsets fit" in estimated.source


OF_A_DAY = [(100.0 + k * 410 + 17 * k * k, 300.0 + k * 410 + 17 * k * k) for k in range(5)]
LONG_OF_A_DAY = [(600.0 + k * 7200 + 90 * k * k, 4200.0 + k * 7200 + 250 * k) for k in range(4)]


@pytest.mark.parametrize("of_a_day", [OF_A_DAY, LONG_OF_A_DAY])
@pytest.mark.parametrize("files", [1, 2])
def test_summer_time_that_began_while_the_logger_was_off_is_doubtful(
    tmp_path: Path, of_a_day: Runs, files: int
) -> None:
    """Of a log with two days, and of a log of each day."""
    last_s = of_a_day[-1][1]
    second_day = [(DAY_S + begin_s, DAY_S + end_s) for begin_s, end_s in of_a_day]
    runs = [*of_a_day, *second_day]
    days = (
        [float(second) for second in range(int(last_s) + 1000)],
        [DAY_S + second for second in range(-4500, int(last_s) + 4500)],
    )
    logs = []
    for number, times_s in enumerate(days if files == 2 else [(*days[0], *days[1])]):
        path = tmp_path / f"{number}.log"
        logs.append(
            wattsup(path, runs, times_s, lambda time_s: 3600.0 * (time_s > 50_000), local=True)
        )
    pairs = [(log, aligned(log, windows(runs), 0.0)) for log in logs]
    for window, (begin_s, _) in zip(windows(runs), runs, strict=True):
        every = [energy_of(window, [pair])[0] for pair in pairs]
        known = [one for one in every if one.energy_j is not None]
        assert known and all(one.doubtful == (begin_s > 50_000) for one in known)
    texts = [doubt.text for _, alignment in pairs for doubt in alignment.doubts]
    assert len(texts) == 1 and "+3600 s fits" in texts[0]


def test_a_clock_that_was_set_between_two_days_has_no_estimate(tmp_path: Path) -> None:
    first = campaign(6, (60, 120), (60, 200))
    second = [(DAY_S + begin_s, DAY_S + end_s) for begin_s, end_s in first[: len(first) // 12]]
    runs = [*first, *second]
    times_s = [*map(float, range(24_000)), *(DAY_S + k for k in range(-3000, 9000))]
    log = wattsup(tmp_path / "power.log", runs, times_s, lambda time_s: 900.0 * (time_s > 50_000))
    alignment = aligned(log, windows(runs), None)
    assert alignment.ahead_s is None and "may have been set" in alignment.source


@pytest.mark.parametrize("period_s", [60, 300])
def test_slow_logs_show_summer_time_too(tmp_path: Path, period_s: int) -> None:
    lines = []
    for k in range(80):
        time_s = START_S + k * period_s + 3600 * (k > 40)
        lines.append(
            f"{datetime.fromtimestamp(time_s, UTC):%Y-%m-%d %H:%M:%S}\n"
            "    Instantaneous power reading:   120 Watts\n"
        )
    path = tmp_path / "power.log"
    path.write_text("".join(lines))
    rejected = power_logs.read(path).rejected
    assert rejected and "step ahead by" in rejected


def perf(path: Path, start_s: float, runs: Runs, last_s: int) -> PowerLog:
    """Of a log with elapsed times, and the runs of elapsed times, too."""
    lines = [f"# started on {datetime.fromtimestamp(start_s, UTC):%a %b %d %H:%M:%S %Y}\n\n"]
    for second in range(1, last_s):
        busy = any(begin_s <= second - 0.5 < end_s for begin_s, end_s in runs)
        joules = BUSY_W if busy else IDLE_W
        lines.append(f"     {second}.000000001,{joules},Joules,power/energy-pkg/,1000,100.00,,\n")
    path.write_text("".join(lines))
    return power_logs.read(path)


PERF_RUNS = [(7000.0, 7060.0), (7130.0, 7200.0), (7290.0, 7350.0)]


def test_local_results_that_changed_since_the_start_of_perf_are_doubtful(tmp_path: Path) -> None:
    log = perf(tmp_path / "perf.log", START_S, PERF_RUNS, 12_000)
    later = [(begin_s + 3600.0, end_s + 3600.0) for begin_s, end_s in PERF_RUNS]
    assert aligned(log, windows(PERF_RUNS, local=True), None).doubts == ()
    (doubt,) = aligned(log, windows(later, local=True), None).doubts
    assert "-3600 s fits" in doubt.text


@pytest.mark.parametrize(
    ("start", "doubtful"),
    [
        ("2026-03-29T00:50:00+00:00", True),
        ("2026-03-28T00:50:00+00:00", False),
        ("2026-07-05T00:50:00+00:00", False),
    ],
)
def test_the_night_in_which_summer_time_may_begin_is_doubtful(
    tmp_path: Path, start: str, doubtful: bool
) -> None:
    begin_s = datetime.fromisoformat(start).timestamp()
    log = perf(tmp_path / "perf.log", begin_s, [], 12_000)
    of_runs = [
        Window(begin_s + start_s, begin_s + end_s, 1.0, True) for start_s, end_s in PERF_RUNS
    ]
    texts = [doubt.text for doubt in aligned(log, of_runs, None).doubts]
    assert any("summer time may have begun" in text for text in texts) == doubtful
    assert math.isclose(log.series[0].times_s[0], begin_s + 1.5, abs_tol=0.1)


def _at_equal_times(lasts_s: float, pause_s: float, count: int) -> Runs:
    cycle_s = lasts_s + pause_s
    return [(100.0 + k * cycle_s, 100.0 + k * cycle_s + lasts_s) for k in range(count)]


_OPEN = {
    "equal times": _at_equal_times(30, 30, 8),
    "cycle longer than the search": _at_equal_times(30, 37, 8),
    "short pauses": _at_equal_times(60, 5, 6),
    "two results": _at_equal_times(60, 30, 2),
    "one result": _at_equal_times(60, 30, 1),
}
"""Results that show no unique offset."""


@pytest.mark.parametrize("ahead_s", [-7.0, 7.0, 20.0])
@pytest.mark.parametrize("runs", _OPEN.values(), ids=_OPEN)
def test_a_wrong_given_offset_is_doubtful_where_several_fit(
    tmp_path: Path, runs: Runs, ahead_s: float
) -> None:
    """2698 J were reported as 1498 +- 129 J, and ranked."""
    times_s = [float(second) for second in range(int(runs[-1][1]) + 100)]
    log = wattsup(tmp_path / "power.log", runs, times_s, lambda _: ahead_s)
    (doubt,) = aligned(log, windows(runs), 0.0).doubts
    assert "do not fit the given offset of +0 s" in doubt.text
    fitting_s = map(float, re.findall(r"([+-]\d+) s", doubt.text.partition("they fit about")[2]))
    assert any(abs(fitting - ahead_s) <= 1.5 for fitting in fitting_s), doubt.text
    assert all(reading.doubtful for reading in energies(log, runs, 0.0))


@pytest.mark.parametrize("runs", _OPEN.values(), ids=_OPEN)
def test_a_right_given_offset_is_not_doubtful_where_several_fit(tmp_path: Path, runs: Runs) -> None:
    times_s = [float(second) for second in range(int(runs[-1][1]) + 100)]
    log = wattsup(tmp_path / "power.log", runs, times_s, lambda _: 20.0)
    alignment = aligned(log, windows(runs), 20.0)
    assert (alignment.doubts, alignment.notes) == ((), ())
    for reading, (begin_s, end_s) in zip(energies(log, runs, 20.0), runs, strict=True):
        assert reading.energy_j is not None and reading.uncertainty_j is not None
        assert abs(reading.energy_j - BUSY_W * (end_s - begin_s)) <= reading.uncertainty_j


def test_a_given_offset_that_the_load_cannot_show_is_said_to_be_unchecked(tmp_path: Path) -> None:
    runs = _at_equal_times(30, 30, 8)
    times_s = [float(second) for second in range(700)]
    log = wattsup(tmp_path / "power.log", runs, times_s, lambda _: 20.0, busy_w=IDLE_W)
    alignment = aligned(log, windows(runs), 0.0)
    assert alignment.doubts == ()
    (note,) = alignment.notes
    assert note.startswith("the given offset of +0 s was not checked against the load: ")


def test_a_given_offset_of_results_shorter_than_the_readings_is_said_to_be_unchecked(
    tmp_path: Path,
) -> None:
    runs = [(100.0, 100.0), (200.0, 201.0)]
    log = wattsup(
        tmp_path / "power.log", runs, [float(second) for second in range(400)], lambda _: 0
    )
    (note,) = aligned(log, windows(runs), 0.0).notes
    assert "a result lasts less than 3 readings" in note
