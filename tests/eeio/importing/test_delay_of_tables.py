"""The delay of tables with a map (`csv:FILE,map=...`), and of logs whose clock the load shows."""

import itertools
import json
import random
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.eeio.importing.test_power_logs import HIGH_W, LOW_W, RUNS, START_S, joules

from eeio.exchange.importing import power_logs
from eeio.exchange.importing.idle_of_logs import idle_readings
from eeio.exchange.importing.power_of_results import (
    Alignment,
    UsedLog,
    Window,
    aligned,
    energy_of,
)
from eeio.record.energy_reading import EnergyReading
from eeio_power.delay import BMC, COUNTER, Delay

PERIOD_S = 1.0
LAST_S = 420.0
WINDOWS = [Window(START_S + begin_s, START_S + end_s, 0.0, False) for begin_s, end_s in RUNS]
TRUE_J = [joules(window.start_s, window.end_s) for window in WINDOWS]
LATE = Delay(4.0, 1.0)


def reported_w(time_s: float, real: Delay) -> float:
    """What a meter with that delay shows."""
    end_s = time_s - real.lag_s
    return joules(end_s - real.averages_s, end_s) / real.averages_s


def table(path: Path, real: Delay, ahead_s: float = 0.0, options: str = "") -> Path:
    """The spec of a table of power, by a clock that is ahead."""
    noise = random.Random(3)
    rows = ["time,watts"]
    for k in range(1, int(LAST_S / PERIOD_S)):
        time_s = START_S + k * PERIOD_S
        rows.append(f"{time_s + ahead_s:.3f},{reported_w(time_s, real) + noise.gauss(0, 0.2):.2f}")
    path.write_text("\n".join(rows) + "\n")
    return Path(f"csv:{path},map=time:time+power_w:watts,tz=utc,accuracy=0.01{options}")


def dcmi(path: Path, real: Delay, ahead_s: float = 0.0, options: str = "") -> Path:
    """A loop of ipmitool."""
    rows = []
    for k in range(1, int(LAST_S / PERIOD_S)):
        time_s = START_S + k * PERIOD_S
        stamp = datetime.fromtimestamp(time_s + ahead_s, UTC).isoformat(timespec="seconds")
        rows.append(
            f"{stamp}\n    Instantaneous power reading: {reported_w(time_s, real):8.0f} Watts"
        )
    path.write_text("\n".join(rows) + "\n")
    return Path(f"{path}{options}")


def energies(log: Path, ahead_s: float | None = None) -> tuple[Alignment, list[EnergyReading]]:
    """Those of the results. Without `ahead_s` the steps of load show the clock of the log."""
    found = power_logs.read(log)
    assert found.rejected is None
    alignment = aligned(found, WINDOWS, found.offset_s if ahead_s is None else ahead_s)
    return alignment, [energy_of(window, [(found, alignment)])[0] for window in WINDOWS]


def check_right(readings: Sequence[EnergyReading], within: float) -> None:
    for reading, true_j in zip(readings, TRUE_J, strict=True):
        assert reading.energy_j is not None and reading.uncertainty_j is not None
        assert abs(reading.energy_j - true_j) <= reading.uncertainty_j
        assert reading.energy_j == pytest.approx(true_j, rel=within)


@pytest.mark.parametrize("made", [table, dcmi])
@pytest.mark.parametrize("stated", ["", ",lag_s=10,averages_s=1"])
def test_the_steps_of_load_contain_the_delay_of_the_readings(
    tmp_path: Path, made: object, stated: str
) -> None:
    """A log of any kind that is 10 s late, and whose clock is ahead by 3 s."""
    assert callable(made)
    alignment, readings = energies(made(tmp_path / "log", Delay(10.0, 1.0), 3.0, stated))
    check_right(readings, 0.015)
    assert alignment.unsure_s >= 0.5
    if stated:
        assert alignment.ahead_s == pytest.approx(3.0, abs=0.6)


@pytest.mark.parametrize("real", [Delay(4.0, 3.0), Delay(0.0, 0.5), Delay(5.0, 5.0)])
@pytest.mark.parametrize("stated", ["", ",averages_s=", ",lag_s="])
def test_a_table_without_a_stated_delay_is_as_uncertain_as_a_bmc(
    tmp_path: Path, real: Delay, stated: str
) -> None:
    """The offset of its clock is given."""
    if stated:
        stated += str(real.averages_s if "averages" in stated else real.lag_s)
    log = table(tmp_path / "log", real, options=stated)
    (series,) = power_logs.read(log).series
    assert series.delay is not None and series.recorded is not None
    assert series.recorded.info.channels[0].delay == series.delay
    lag_unknown, mean_unknown = "lag_s" not in stated, "averages_s" not in stated
    assert series.delay.lag_within_s == lag_unknown * BMC.lag_within_s
    assert series.delay.averages_within_s == mean_unknown * BMC.averages_within_s
    _, readings = energies(log, 0.0)
    check_right(readings, 0.1)
    assert not any(reading.doubtful for reading in readings)


def test_a_table_with_a_stated_delay_has_no_other(tmp_path: Path) -> None:
    log = table(tmp_path / "log", LATE, options=",lag_s=4,averages_s=1")
    (series,) = power_logs.read(log).series
    assert series.delay == Delay(4.0, 1.0, source="stated by the user")


def test_a_table_of_a_counter_is_as_late_as_its_updates(tmp_path: Path) -> None:
    """As of a plug that counts each 30 s, read each second."""
    rows = ["time,energy"]
    for k in range(1, int(LAST_S)):
        rows.append(f"{START_S + k:.3f},{joules(START_S, START_S + k - k % 30):.1f}")
    (tmp_path / "log").write_text("\n".join(rows) + "\n")
    spec = f"csv:{tmp_path / 'log'},map=time:time+energy_j:energy,tz=utc,resolution=1"
    (series,) = power_logs.read(Path(spec)).series
    assert series.delay is not None and series.delay.longest_s == COUNTER.longest_s + 30.0


def test_a_stated_mean_of_a_counter_does_not_move_it(tmp_path: Path) -> None:
    """The clock of a counter, by the steps of load that it shows."""
    rows = ["time,energy"]
    for k in range(1, int(LAST_S)):
        rows.append(f"{START_S + k + 3.0:.3f},{joules(START_S, START_S + k - 2.0):.1f}")
    (tmp_path / "log").write_text("\n".join(rows) + "\n")
    _, readings = energies(
        Path(
            f"csv:{tmp_path / 'log'},map=time:time+energy_j:energy,tz=utc,accuracy=0.01,"
            "resolution=1,lag_s=0,averages_s=8"
        )
    )
    check_right(readings, 0.01)
    assert max(reading.power_w or 0.0 for reading in readings) == pytest.approx(HIGH_W, rel=0.01)


@pytest.mark.parametrize(
    ("made", "options"),
    [(dcmi, ""), (table, ""), (table, ",lag_s=4,averages_s=1"), (dcmi, ",lag_s=4,averages_s=1")],
)
@pytest.mark.parametrize("ahead_s", [None, 0.0])
def test_a_late_log_gives_the_idle_power(
    tmp_path: Path, made: object, options: str, ahead_s: float | None
) -> None:
    """The log has no readings of its last seconds."""
    assert callable(made)
    found = power_logs.read(made(tmp_path / "log", LATE, options=options))
    alignment = aligned(found, WINDOWS, ahead_s)
    idle = idle_readings([UsedLog(found, alignment)], WINDOWS)
    assert idle.reason is None
    (reading,) = idle.readings
    assert reading.power_w == pytest.approx(LOW_W, rel=0.01)


def held(path: Path, each_s: int, options: str, noise_w: float = 0.2) -> Path:
    """A line each second, while the values change each `each_s` only."""
    noise = random.Random(4)
    rows, watts = ["time,watts"], 0.0
    for k in range(1, int(LAST_S)):
        if k % each_s == 1:
            watts = reported_w(START_S + k, Delay(0.0, 1.0)) + noise.gauss(0, noise_w)
        rows.append(f"{START_S + k:.3f},{watts:.2f}")
    path.write_text("\n".join(rows) + "\n")
    return Path(f"csv:{path},map=time:time+power_w:watts,tz=utc,accuracy=0.01{options}")


@pytest.mark.parametrize(("each_s", "noise_w"), [(3, 0.2), (8, 0.2), (8, 0.0), (15, 0.0)])
@pytest.mark.parametrize("options", [",lag_s=0,averages_s=1", ",lag_s=0.5,averages_s=0"])
def test_lines_that_repeat_a_reading_longer_than_the_stated_delay_are_not_readings(
    tmp_path: Path, each_s: int, noise_w: float, options: str
) -> None:
    """The data sheet is that of the meter, but its logger is slow."""
    log = held(tmp_path / "watts.csv", each_s, options, noise_w)
    (note,) = power_logs.read(log).notes
    assert f"change each {each_s} s only" in note
    _, readings = energies(log, 0.0)
    for reading, true_j in zip(readings, TRUE_J, strict=True):
        if reading.energy_j is None:
            assert reading.reasons
        else:
            assert reading.uncertainty_j is not None
            assert abs(reading.energy_j - true_j) <= reading.uncertainty_j


def test_a_query_that_repeats_each_scrape_counts_it_once(tmp_path: Path) -> None:
    """A range query each second of a sensor that was scraped each 15 s: the power between two
    scrapes is not known, whatever the step is."""
    noise = random.Random(6)
    values, watts = [], 0.0
    for k in range(1, int(LAST_S)):
        if k % 15 == 4:
            watts = reported_w(START_S + k, Delay(2.0, 1.0)) + noise.gauss(0, 1.0)
        values.append([START_S + k, f"{watts:.0f}"])
    metric = {"__name__": "ipmi_dcmi_power_consumption_watts", "instance": "n1"}
    result = [{"metric": metric, "values": values}]
    data = {"resultType": "matrix", "result": result}
    (tmp_path / "power.json").write_text(json.dumps({"status": "success", "data": data}))
    log = power_logs.read(tmp_path / "power.json")
    assert log.rejected is None and any("change each 15 s only" in note for note in log.notes)
    assert log.series[0].period_s == pytest.approx(15.0)


def test_values_that_repeat_as_the_load_is_constant_are_believed(tmp_path: Path) -> None:
    """Of a meter that resolves 1 W, so that its values are equal during each load and pause."""
    lengths = random.Random(5)
    steps_s = [lengths.uniform(20.0, 60.0) for _ in range(40)]
    ends_s = list(itertools.accumulate(steps_s))
    rows = ["time,watts"]
    for k in range(1, 900):
        busy_s = 0.0
        for begin_s, end_s in zip(ends_s[::2], ends_s[1::2], strict=True):
            busy_s += max(0.0, min(k, end_s) - max(k - 1, begin_s))
        rows.append(f"{START_S + k:.3f},{30 + 60 * busy_s:.0f}")
    (tmp_path / "watts.csv").write_text("\n".join(rows) + "\n")
    spec = f"csv:{tmp_path}/watts.csv,map=time:time+power_w:watts,tz=utc,lag_s=0,averages_s=1"
    log = power_logs.read(Path(spec))
    assert log.rejected is None and not log.notes
    assert log.series[0].known_delay == Delay(0.0, 1.0, source="stated by the user")
