"""Dumps of PowerSensor3, made in the number format of its library (six significant digits)."""

import math
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from tests.eeio.importing.importer import Importer
from tests.eeio.importing.test_power_logs import write_results

from eeio.exchange.importing import power_logs
from eeio.exchange.importing.power_logs import PowerLog
from eeio_power.reading import UNKNOWN, only

START_S = 1764000000.0
SET_S = 50e-6
Load = Callable[[float], float]


def burst(time_s: float) -> float:
    """8 W for a second, else 1 W."""
    return 8.0 if 1.0 <= time_s < 2.0 else 1.0


def lines(
    load: Load, seconds: float, lost: Sequence[tuple[float, float]] = (), absolute: bool = False,
    begun_s: float = 0.0, pairs: str = "01", marker_at: int = -1,
) -> Iterator[str]:  # fmt: skip
    """`lost`: times without lines. The host takes 1 to 60 sets at once, as they are in its
    buffer."""
    noise = random.Random(1)
    columns = " ".join(f"current{n} voltage{n} power{n}" for n in pairs)
    yield f"marker time dt_micro device_timestamp {columns} power_total\n"
    host_us, due = 0, 0
    for k in range(round(seconds / SET_S)):
        time_s = (k + 1) * SET_S
        if any(begin <= time_s < end for begin, end in lost):
            continue
        if k >= due:
            # The next read of the host gets all sets up to then.
            due = k + noise.randint(1, 60)
        arrived_us = round(due * SET_S * 1e6) + 120
        dt_us = max(0, arrived_us - host_us) + (round(begun_s * 1e6) if host_us == 0 else 0)
        host_us = max(host_us, arrived_us)
        watts = [load(time_s - SET_S / 2) + noise.gauss(0, 0.3), *[2.0] * (len(pairs) - 1)]
        cells = [x for w in watts for x in (w / 3.3, 3.3, w)]
        shown_s = begun_s + host_us / 1e6
        marker = "A" if k == marker_at else "S"
        if absolute:
            body = " ".join(f"{x:.6f}" for x in (*cells, math.fsum(watts)))
            yield f"{marker} {START_S + shown_s:.6f} {dt_us} {round(time_s * 1e6) % 1024} {body}\n"
        else:
            body = " ".join(f"{x:.6g}" for x in (*cells, math.fsum(watts)))
            yield f"{marker} {shown_s:.6g} {dt_us} {round(time_s * 1e6) % 1024} {body}\n"


def read(folder: Path, *texts: str, options: str = "") -> PowerLog:
    file = folder / "dump.txt"
    file.write_text("".join(texts))
    return power_logs.read(Path(f"{file}{options}"))


def energy_j(log: PowerLog, begin_s: float, end_s: float) -> float:
    (series,) = log.series
    (reading,) = series.samples(0.0).energy(begin_s, end_s)
    assert reading.energy_j is not None, reading.reasons
    return reading.energy_j


def test_a_dump_with_absolute_times(tmp_path: Path) -> None:
    log = read(tmp_path, *lines(burst, 2.5, absolute=True))
    assert (log.tool, log.rejected, log.clock) == ("psrun", None, "utc")
    (series,) = log.series
    assert (series.domain, series.kind, series.form) == ("device", "measured", "mean")
    assert series.contents == only("drives")
    assert series.recorded is not None
    names = [channel.name for channel in series.recorded.info.channels]
    assert names == ["psrun:pair0", "psrun:pair1"]
    assert series.period_s == pytest.approx(0.001, rel=0.01)
    assert energy_j(log, START_S + 1.0, START_S + 2.0) == pytest.approx(10.0, rel=0.01)
    assert energy_j(log, START_S + 0.3, START_S + 2.3) == pytest.approx(13.0, rel=0.005)


@pytest.mark.parametrize("begun_s", [0.0, 150.0, 1500.0])
def test_a_dump_that_counts_from_its_start(tmp_path: Path, begun_s: float) -> None:
    """Its times have 10 µs to 10 ms, so that up to 200 lines have the same one."""
    log = read(tmp_path, *lines(burst, 2.5, begun_s=begun_s))
    assert (log.rejected, log.clock) == (None, "start")
    assert any("taken for a drive" in note for note in log.notes)
    # The first time is cut to six digits.
    edge_s = 10 ** (math.floor(math.log10(begun_s)) - 5) if begun_s else 1e-5
    assert log.unsure_s <= edge_s
    at_s = begun_s + 1.0
    assert energy_j(log, at_s, at_s + 1.0) == pytest.approx(10.0, rel=0.01)
    assert energy_j(log, at_s - 0.5, at_s + 1.4) == pytest.approx(8.9 + 3.8, rel=0.005)


def test_its_start_is_given_by_the_user(tmp_path: Path, imported: Importer) -> None:
    """As that of other logs without a date: minus the Unix time of the start."""
    start_s = START_S + 99.0
    results = write_results(tmp_path, [(100.0, 101.0)])
    file = tmp_path / "dump.txt"
    file.write_text("".join(lines(lambda t: 8.0 if 1.0 <= t < 2.0 else 1.0, 2.5)))
    body = imported(*results, "--dry-run", "--power", f"{file},offset_s={-start_s}")
    (phase,) = body["files"][0]["reports"][0]["phases"]
    (reading,) = phase["energy"]
    assert (reading["domain"], reading["meter"]) == ("device", "psrun")
    assert reading["energy_j"] == pytest.approx(10.0, rel=0.01), reading["reasons"]
    body = imported(*results, "--dry-run", "--power", str(file), code=3)
    (phase,) = body["files"][0]["reports"][0]["phases"]
    assert phase["energy"][0]["energy_j"] is None


@pytest.mark.parametrize(
    ("lost", "count"),
    [
        ((0.5, 0.5003), 1),  # the stamps show it
        ((0.5, 0.6024), 1),  # 100 repeats of the stamps: only dt_micro shows it
        ((0.5, 0.5515), 2),  # both
    ],
)
def test_gaps(tmp_path: Path, lost: tuple[float, float], count: int) -> None:
    log = read(tmp_path, *lines(burst, 3.0, [lost], absolute=True))
    assert any(note.startswith(f"lines are missing in {count} places") for note in log.notes)
    (series,) = log.series
    # The burst is in its place behind the gap.
    assert energy_j(log, START_S + 1.0, START_S + 2.0) == pytest.approx(10.0, rel=0.02)
    assert series.times_s[-1] == pytest.approx(START_S + 3.0, abs=0.003)
    inside = [
        value
        for time_s, value in zip(series.times_s, series.values, strict=True)
        if lost[0] + 0.0012 < time_s - START_S < lost[1] - 0.0012
    ]
    assert all(map(math.isnan, inside))


@pytest.mark.parametrize("absolute", [False, True])
def test_a_dump_from_which_lines_were_removed_is_rejected(tmp_path: Path, absolute: bool) -> None:
    """The times behind them are known by `time` only, and the board's stamps repeat each ms."""
    every = list(lines(burst, 2.5, absolute=absolute))
    log = read(tmp_path, *every[:10_000], *every[30_480:])
    assert log.rejected is not None
    assert "line 10001: " in log.rejected and "lines were removed" in log.rejected


def test_a_second_dump_behind_the_first_without_its_header_is_rejected(tmp_path: Path) -> None:
    later = list(lines(burst, 1.0, begun_s=60.0))[1:]
    log = read(tmp_path, *lines(burst, 1.0), *later[1:])
    assert log.rejected is not None and "lines were removed" in log.rejected


def test_pairs_and_domain(tmp_path: Path) -> None:
    texts = [*lines(burst, 2.5, absolute=True, pairs="02")]
    log = read(tmp_path, *texts, options=",pairs=2,domain=accelerator")
    (series,) = log.series
    assert (series.domain, series.contents) == ("accelerator", UNKNOWN)
    assert energy_j(log, START_S + 1.0, START_S + 2.0) == pytest.approx(2.0, rel=0.001)
    assert "its pairs are 0, 2" in (read(tmp_path, *texts, options=",pairs=1").rejected or "")
    assert "not one of" in (read(tmp_path, *texts, options=",domain=disk").rejected or "")


def test_domain_and_pairs_are_not_for_other_logs(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_text("".join(f"{START_S + k} #d,-,18,1200{',_' * 17};\n" for k in range(20)))
    found = power_logs.read(Path(f"{file},domain=device"))
    assert "only for dumps of PowerSensor3" in (found.rejected or "")


def test_markers_are_in_the_notes(tmp_path: Path) -> None:
    log = read(tmp_path, *lines(burst, 0.5, marker_at=5000))
    assert "1 markers: A in line 5002" in log.notes


def test_a_cut_dump_and_values_that_are_no_numbers(tmp_path: Path) -> None:
    texts = [*lines(burst, 1.0)]
    texts[500] = " ".join([*texts[500].split()[:6], "nan", *texts[500].split()[7:]]) + "\n"
    log = read(tmp_path, *texts, "S 1.0 50 3")
    assert log.rejected is None
    assert any("may be cut off" in note for note in log.notes)
    assert sum(map(math.isnan, log.series[0].values)) == 1


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("S 0.5 50 1024 1 3.3 3.3 1 2 2 5.3\n", "not understood"),
        ("S 0.5 -50 10 1 3.3 3.3 1 2 2 5.3\n", "not understood"),
        ("S 0.5 50 10 1 3.3 3.3\n", "not understood"),
        ("S 0.5 50 10 1 3.3 x 1 2 2 5.3\n", "not understood"),
        ("hello\n", "not understood"),
        ("S 0.000001 50 10 1 3.3 3.3 1 2 2 5.3\n", "the time runs backwards"),
    ],
)
def test_lines_that_are_not_of_a_dump(tmp_path: Path, line: str, reason: str) -> None:
    log = read(tmp_path, *lines(burst, 0.2), line)
    assert reason in (log.rejected or "") and "line 4002" in (log.rejected or "")


def test_headers(tmp_path: Path) -> None:
    texts = [*lines(burst, 0.2)]
    assert "not those of pairs" in (read(tmp_path, *texts).rejected or "not those of pairs")
    other = texts[0].replace("voltage1", "voltage2")
    assert "not those of pairs" in (read(tmp_path, other, *texts[1:]).rejected or "")
    older = texts[0].replace(" device_timestamp", "")
    assert "no known power log" in (read(tmp_path, older, *texts[1:]).rejected or "")
    assert "does not rise" in (read(tmp_path, texts[0]).rejected or "")
