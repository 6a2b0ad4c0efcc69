"""Logs whose readings may be of several meters, machines or power supplies."""

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from eeio.exchange.importing import power_logs
from eeio.exchange.importing.power_logs.csv_table import read_table
from eeio.exchange.importing.power_logs.one_meter import check_equal_times, check_one_meter
from eeio.exchange.importing.power_of_results import Alignment, Window, energy_of
from eeio_power.errors import PowerError

START_S = 1764000000
BUSY_S = [(100, 160), (230, 300), (390, 450), (530, 610), (700, 760)]
Times = Iterator[tuple[float, float]]


def watts(time_s: float, noise: random.Random) -> float:
    busy = any(begin <= time_s < end for begin, end in BUSY_S)
    return (180.0 if busy else 120.0) + noise.gauss(0, 0.4)


def wattsup(apart_s: float, share: float) -> str:
    """Of two power supplies, of which the first has that share of the power."""
    noise = random.Random(1)
    return "".join(
        f"{START_S + second + k * apart_s:.1f} #d,-,18,"
        f"{10 * of * watts(second, noise):.0f},1201{',_' * 16};\n"
        for second in range(900)
        for k, of in enumerate((share, 1 - share))
    )


def dcmi(apart_s: int, every_s: int) -> str:
    """Of two machines, the second of which has a steady power."""
    noise = random.Random(2)
    return "".join(
        f"{START_S + time_s:.0f}\n    Instantaneous power reading:  {power_w:.0f} Watts\n"
        "    Power reading state is:                   activated\n"
        for second in range(0, 900, every_s)
        for time_s, power_w in (
            (second, watts(second, noise)),
            (second + apart_s, 240.0 + noise.gauss(0, 1)),
        )
    )


def sdr() -> str:
    noise = random.Random(3)
    return "".join(
        f"{START_S + second}\nPwr Consumption | {power_w:.0f} Watts | ok\n"
        for second in range(900)
        for power_w in (watts(second, noise), 250.0 + noise.gauss(0, 1))
    )


def ptdaemon(repeats: int) -> str:
    noise = random.Random(4)
    lines = []
    for second in range(900):
        power_w = watts(second, noise) / 2
        clock = f"12:{second // 60:02}:{second % 60:02}"
        lines += [f"Time,11-24-2025 {clock}.000,Watts,{power_w:.3f},Volts,230.1\n"] * repeats
    return "".join(lines)


def ptdaemon_of_two_channels() -> str:
    return ptdaemon(1).replace(",Volts,", ",Watts,61.5,Volts,")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (wattsup(0.0, 0.5), "2 readings at 1764000000.000 s"),
        (wattsup(0.4, 0.5), "the times repeat every 2 readings"),
        (wattsup(0.4, 0.3), "the powers repeat every 2 readings"),
        (wattsup(0.5, 0.3), "the powers repeat every 2 readings"),
        (dcmi(0, 1), "the powers repeat every 2 readings"),
        (dcmi(1, 5), "the powers repeat every 2 readings"),
        (dcmi(0, 10), "the powers repeat every 2 readings"),
        (sdr(), "the powers repeat every 2 readings"),
        (ptdaemon(2), "2 readings at"),
        (ptdaemon_of_two_channels(), "line 1: Watts 2 times"),
    ],
)
def test_the_readings_of_two_meters_are_not_those_of_one(
    tmp_path: Path, text: str, reason: str
) -> None:
    log = tmp_path / "power.log"
    log.write_text(text)
    rejected = power_logs.read(log).rejected
    assert rejected and reason in rejected
    assert "to a separate file" in rejected


def even(period_s: float, jitter_s: float = 0.0) -> Times:
    """Times of one meter with whole seconds, and its powers."""
    noise = random.Random(5)
    for k in range(1200):
        time_s = k * period_s + noise.uniform(0, jitter_s)
        yield START_S + math.floor(time_s), watts(time_s, noise)


def pairs(period_s: float, apart_s: float) -> Times:
    """Times of two meters with whole seconds, one after the other, and equal powers."""
    noise = random.Random(6)
    for k in range(600):
        for time_s in (k * period_s, k * period_s + apart_s):
            yield START_S + math.floor(time_s), watts(k * period_s, noise)


@pytest.mark.parametrize(
    "times", [even(0.3), even(0.42, 0.03), even(0.65), even(0.9), even(0.98, 0.1)]
)
def test_several_readings_in_a_second_may_be_of_one_meter(times: Times) -> None:
    rows = list(times)
    check_equal_times("meter", [time_s for time_s, _ in rows])
    check_one_meter("meter", rows)
    assert len({time_s for time_s, _ in rows}) < len(rows)


@pytest.mark.parametrize(
    "times",
    [pairs(1, 0.1), pairs(1.1, 0.05), pairs(1.3, 0.3), pairs(5, 0.2), pairs(60, 0.2), even(0.5)],
)
def test_an_equal_number_of_readings_at_each_time_may_be_of_two_meters(times: Times) -> None:
    with pytest.raises(PowerError, match="2 readings at"):
        check_equal_times("meter", [time_s for time_s, _ in times])


@pytest.mark.parametrize("lost", [0.0, 0.1, 0.5])
def test_lost_lines_and_pauses_are_no_second_meter(lost: float) -> None:
    noise = random.Random(7)
    rows = [
        (START_S + second, watts(second, noise))
        for second in (*range(2000), *range(80_000, 82_000))
        if noise.random() >= lost
    ]
    check_equal_times("meter", [time_s for time_s, _ in rows])
    check_one_meter("meter", rows)
    assert len(rows) > 1000


@pytest.mark.parametrize(
    "rows", [[], [(1.0, 2.0)], [(1.0, math.nan)] * 3], ids=["empty", "one", "missing"]
)
def test_logs_of_few_readings_show_no_second_meter(rows: list[tuple[float, float]]) -> None:
    check_one_meter("meter", rows)
    assert not rows or rows[0][0] == 1.0


def read(path: Path, text: str) -> str:
    path.write_text(text)
    return power_logs.read(path).rejected or ""


def of_clock(stamp: Callable[[int], str]) -> str:
    return "".join(
        f"{stamp(second)}\n    Instantaneous power reading:  120 Watts\n" for second in range(20)
    )


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("Mon Nov 24 {} CET 2025", "Tue Nov 25 {} CEST 2025"),
        ("Mon Nov 24 {} UTC 2025", "Tue Nov 25 {} CEST 2025"),
        ("2025-11-24 {}Z", "2025-11-25 {}"),
        ("2025-11-24 {}", "2025-11-25 {}Z"),
    ],
)
def test_a_log_has_one_clock(tmp_path: Path, first: str, then: str) -> None:
    def stamp(second: int) -> str:
        return (first if second < 10 else then).format(f"12:00:{second:02}")

    rejected = read(tmp_path / "power.log", of_clock(stamp))
    assert "line 21: the clock changes from" in rejected and "cut the log there" in rejected


def test_offsets_from_utc_may_change(tmp_path: Path) -> None:
    def stamp(second: int) -> str:
        zone, hour = ("+01:00", 12) if second < 10 else ("+02:00", 13)
        return f"2025-11-24T{hour}:00:{second:02}{zone}"

    assert read(tmp_path / "power.log", of_clock(stamp)) == ""
    assert power_logs.read(tmp_path / "power.log").clock == "utc"


@pytest.mark.parametrize(
    ("shares", "doubtful"), [((0.5, 0.5), True), ((0.45, 0.55), True), ((1.0, 0.2), False)]
)
def test_logs_of_two_supplies_are_doubtful(
    tmp_path: Path, shares: tuple[float, float], doubtful: bool
) -> None:
    """Of two Watts Ups, of which none has the power of the machine; a fifth is that of a drive."""
    noise = random.Random(8)
    logs = []
    for number, share in enumerate(shares):
        path = tmp_path / f"supply{number}.log"
        path.write_text(
            "".join(
                f"{START_S + second:.1f} #d,-,18,{10 * share * watts(second - 0.5, noise):.0f},"
                f"1201{',_' * 16};\n"
                for second in range(900)
            )
        )
        log = power_logs.read(path)
        logs.append(replace(log, series=tuple(s.renamed(path.name) for s in log.series)))
    window = Window(START_S + 230.0, START_S + 300.0, 0.1, False)
    readings = energy_of(window, [(log, Alignment(0.0)) for log in logs])
    assert len(readings) == 2
    for reading in readings:
        assert reading.doubtful or not doubtful
        assert ("their sum" in " ".join(reading.reasons)) == doubtful
    (alone,) = energy_of(window, [(logs[0], Alignment(0.0))])
    assert not alone.doubtful


def test_a_table_of_two_meters_in_turn_is_rejected(tmp_path: Path) -> None:
    noise = random.Random(3)
    both = [
        (START_S + second + half, watts(second, noise) if half else 8.0)
        for second in range(300)
        for half in (0.0, 0.5)
    ]
    for name, rows in (("one", both[1::2]), ("two", both)):
        lines = "".join(f"{time_s:.1f},{power_w:.1f}\n" for time_s, power_w in rows)
        (tmp_path / f"{name}.csv").write_text("time,watts\n" + lines)
    spec = "csv:{},map=time:time+power_w:watts,accuracy=0.01,resolution=0.1"
    log = read_table(spec.format(tmp_path / "one.csv"))
    assert len(log.series[0].times_s) == 300
    with pytest.raises(PowerError, match="the powers repeat every 2 readings"):
        read_table(spec.format(tmp_path / "two.csv"))
