"""Logs that somebody else wrote: what instruments and people really export."""

import math
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.eeio_power.one_meter import one_meter

from eeio_power.csv_log import Layout, parse_log, parse_map
from eeio_power.errors import PowerError
from eeio_power.meters import csv, open_meters
from eeio_power.meters.csv import CsvMeter
from eeio_power.sampler import Sampler
from eeio_power.samples import load

NOON = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC).timestamp()


def layout(columns: str = "time:Time+power_w:Watts", **options: str) -> Layout:
    return csv._layout({"map": columns, **options})


def test_plain() -> None:
    log = parse_log(
        b"Time,Volts,Watts\n2026-01-31T12:00:00Z,230,100\n2026-01-31T12:00:01Z,230,300.5\n",
        layout(),
    )
    assert log.times_s == [NOON, NOON + 1]
    assert log.values == [100.0, 300.5]


BENCHVUE = (
    "BenchVue Export;;\r\nInstrument: 34465A;;\r\n\r\n"
    "Nr;Zeit;Leistung (W)\r\n"
    '1;31.01.2026 13:00:00,000;"120,5"\r\n'
    "2;31.01.2026 13:00:00,500;9,91E+37\r\n"
    "3;31.01.2026 13:00:01,000;OL\r\n"
    "4;31.01.2026 13:00:01,500;1,2E+2\r\n"
)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252"])
def test_preamble_semicolons_decimal_commas_sentinels_in_any_encoding(encoding: str) -> None:
    log = parse_log(
        BENCHVUE.replace("Instrument", "Meßgerät").encode(encoding),
        layout("time:Zeit+power_w:Leistung (W)", tz="Europe/Madrid", format="%d.%m.%Y %H:%M:%S,%f"),
    )
    assert log.times_s == [NOON, NOON + 0.5, NOON + 1.0, NOON + 1.5]
    assert log.values[0] == 120.5 and log.values[3] == 120.0
    assert math.isnan(log.values[1]) and math.isnan(log.values[2]), "a sentinel is no reading"
    assert log.damaged == 0


def test_oscilloscope_voltage_times_current_in_seconds_since_the_trigger() -> None:
    log = parse_log(
        b"Model,DSO\nsecond,Volt,Ampere\n-1.0,5.0,0.5\n0.0,5.0,1.0\n+1.0E+00,5.0,2000.0E-03\n",
        layout("seconds:second+voltage_v:Volt+current_a:Ampere", start="2026-01-31T12:00:00+00:00"),
    )
    assert log.times_s == [NOON - 1, NOON, NOON + 1]
    assert log.values == [2.5, 5.0, 10.0]


def test_a_meter_read_by_hand() -> None:
    log = parse_log(
        b"Date\tTime\tkWh\n2026-01-31\t12:00\t1.20\n2026-01-31\t12:10\t1.22\n",
        layout("date:Date+time:Time+energy_kwh:kWh", tz="utc"),
    )
    assert log.times_s == [NOON, NOON + 600]
    assert log.values[1] - log.values[0] == pytest.approx(72_000.0)


def test_columns_by_number_and_two_supplies_added_up() -> None:
    log = parse_log(
        b"1769860800;100;50,5\n1769860801;110;60,5\n", layout("time:#1+power_w:#2+power_w:#3")
    )
    assert log.times_s == [NOON, NOON + 1]
    assert log.values == [150.5, 170.5]


def test_the_hour_that_comes_twice() -> None:
    rows = "".join(
        f"2026-10-25 {clock},100\n" for clock in ("02:30:00", "02:59:59", "02:00:00", "02:30:00")
    )
    log = parse_log(f"Time,Watts\n{rows}".encode(), layout(tz="Europe/Madrid"))
    first = datetime(2026, 10, 25, 0, 30, tzinfo=UTC).timestamp()
    assert [t - first for t in log.times_s] == [0.0, 1799.0, 1800.0, 3600.0]


@pytest.mark.parametrize(
    ("clocks", "minutes"),
    [
        # The readings before continue to it, or it continues to those after.
        (("01:58", "01:59", "02:00", "02:01"), [-2, -1, 0, 1]),
        (("02:58", "02:59", "03:00", "03:01"), [118, 119, 120, 121]),
        (("01:59", "02:00", "02:59", "02:00", "03:00"), [-1, 0, 59, 60, 120]),
    ],
)
def test_a_part_of_the_hour_that_comes_twice(clocks: list[str], minutes: list[int]) -> None:
    rows = "".join(f"2026-10-25 {clock}:00,100\n" for clock in clocks)
    log = parse_log(f"Time,Watts\n{rows}".encode(), layout(tz="Europe/Madrid"))
    first = datetime(2026, 10, 25, 0, 0, tzinfo=UTC).timestamp()
    assert [round((t - first) / 60) for t in log.times_s] == minutes


@pytest.mark.parametrize(
    "clocks",
    [
        ("02:10", "02:11", "02:12"),  # nothing before or after it
        ("01:10", "01:11", "02:10", "02:11"),  # the logger was off, for one hour or two
    ],
)
def test_which_of_two_hours_it_is_must_be_shown(clocks: list[str]) -> None:
    rows = "".join(f"2026-10-25 {clock}:00,100\n" for clock in clocks)
    with pytest.raises(PowerError, match="which of the two"):
        parse_log(f"Time,Watts\n{rows}".encode(), layout(tz="Europe/Madrid"))


def test_a_coarse_clock_gives_the_mean_of_each_second() -> None:
    log = parse_log(
        b"Time,Watts\n1769860800,100\n1769860800,200\n1769860800,300\n1769860801,100\n", layout()
    )
    assert log.values == [200.0, 100.0]
    log = parse_log(
        b"Time,Watts\n1769860800,OL\n1769860800,10\n1769860800,20\n1769860801,5\n", layout()
    )
    assert log.values == [15.0, 5.0], "a missing value weighs nothing"


def test_a_last_line_that_is_being_written_is_left_out() -> None:
    log = parse_log(b"Time,Watts\n1769860800,100\n1769860801,1", layout())
    assert log.values == [100.0]


@pytest.mark.parametrize("column", ["Phase A", "power_w", "P (W)", "Line_A", "Watts", "show"])
def test_the_end_of_a_name_need_not_be_a_unit(column: str) -> None:
    data = f"Time,{column}\n1769860800,100\n1769860801,100\n".encode()
    assert parse_log(data, layout(map=f"time:Time+power_w:{column}")).values == [100.0, 100.0]


@pytest.mark.parametrize(
    "column",
    ["Power (dW)", "Power_kW_x", "Apparent power", "Power (VA)", "Q (var)", "Power (BTU/h)",
     "Power factor", "degC", "Temperature", "T (°C)", "fan rpm", "clock_MHz", "percent"],
)  # fmt: skip
def test_another_unit_or_quantity_in_the_header_is_rejected(column: str) -> None:
    data = f"Time,{column}\n1769860800,100\n1769860801,100\n".encode()
    with pytest.raises(PowerError, match=r"check map="):
        parse_log(data, layout(map=f"time:Time+power_w:{column}"))


def test_numbers_that_may_have_separators_of_thousands_are_rejected() -> None:
    data = b"Time;Watts\n1769860800;3,101\n1769860801;1,250\n"
    with pytest.raises(PowerError, match=r"3,101 may be 3101 or 3\.101: .* decimal=comma"):
        parse_log(data, layout())
    assert parse_log(data, layout(decimal="comma")).values == [3.101, 1.25]
    assert parse_log(data.replace(b"3,101", b"3,10"), layout()).values == [3.1, 1.25]
    with pytest.raises(PowerError, match=r"1,003 may be 1003 or 1\.003"):
        parse_log(b"Time;Watts\n1769860800;998\n1769860801;1,003\n", layout())


def test_a_mark_with_points_does_not_decide_the_decimal_sign() -> None:
    log = parse_log(b"Time;Watts\n1769860800;12,5\n1769860801;o.l.\n", layout())
    assert log.values[0] == 12.5 and math.isnan(log.values[1])


def test_a_repeated_column_name_is_rejected() -> None:
    """Two supplies, of which the first one was taken for both."""
    data = b"time,Power (W),Power (W)\n1769860800,50.10,50.02\n1769860801,49.93,50.11\n"
    message = r"has the column 'Power \(W\)' 2 times: .* such as #2 or #3"
    with pytest.raises(PowerError, match=message):
        parse_log(data, layout("time:time+power_w:Power (W)"))
    both = parse_log(data, layout("time:time+power_w:#2+power_w:#3"))
    assert both.values == pytest.approx([100.12, 100.04])


@pytest.mark.parametrize("key", ["power_mw", "power_w"])
def test_a_unit_at_the_end_of_a_name_must_be_that_of_the_map(key: str) -> None:
    data = b"Time,power_mW\n1769860800,100000\n1769860801,100000\n"
    options = layout(map=f"time:Time+{key}:power_mW")
    if key == "power_w":
        with pytest.raises(PowerError, match="is in mW"):
            parse_log(data, options)
    else:
        assert parse_log(data, options).values == [100.0, 100.0]


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (b"Time;Watts\n1769860800;100\n", {"delimiter": "comma"}, "no line has the columns Time"),
        (b"Zeit,Watts\n1769860800,100\n", {}, "the widest of the first lines has: Zeit, Watts"),
        (b"Time,Power (kW)\n1769860800,1\n", {"map": "time:Time+power_w:Power (kW)"},
         r"is in kW and is mapped as power_w"),
        (b"Time,power_mW\n1769860800,1\n", {"map": "time:Time+power_w:power_mW"},
         r"is in mW and is mapped as power_w"),
        (b"Time,P_kW\n1769860800,1\n", {"map": "time:Time+power_w:P_kW"}, r"is in kW and"),
        (b"Time,Leistung kW\n1769860800,1\n", {"map": "time:Time+power_w:Leistung kW"},
         r"is in kW and"),
        (b"Time,mW\n1769860800,1\n", {"map": "time:Time+power_w:mW"}, r"is in mW and"),
        (b"Time,Watts\n1769860800,1.000.5\n", {}, r"cells are no numbers, such as '1.000.5' in li"),
        (b"Time;Watts\n1769860800;1,5\n", {"decimal": "point"}, "no numbers, such as '1,5'"),
        (b"Time,Watts\n2026-01-31 12:00:00,1\n", {}, "it has no time zone: give tz="),
        (b"Time,Watts\n31/01/2026 12:00:00,1\n", {"tz": "utc"}, "line 2: '31/01/2026 12:00:00' is"),
        (b"Time,Watts\n12.5,1\n", {}, "map it as seconds:, with start="),
        (b"Time,Watts\n1769860801,1\n1769860800,1\n", {}, "line 3: the log's clock runs backwards"),
        (b"Time,Watts\n1769860800,120,5\n", {}, "line 2: 3 cells under a header of 2"),
        (b"t,Watts\nnan,1\n", {"map": "seconds:t+power_w:Watts", "start": "2026-01-31T12:00:00Z"},
         "line 2: 'nan' is not a time"),
        (b"Time,Watts\n\xe9\n", {"encoding": "utf-8"}, "is not in utf-8"),
        (b"", {}, "no line has the columns"),
        (b"Time,Watts\n", {}, "no readings yet"),
    ],
)  # fmt: skip
def test_logs_that_do_not_fit_say_what_and_where(
    data: bytes, options: dict[str, str], message: str
) -> None:
    with pytest.raises(PowerError, match=message):
        parse_log(data, csv._layout({"map": "time:Time+power_w:Watts", **options}))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("csv:x.csv", "name the log and its columns"),
        ("csv:x.csv,map=time", "'time' is not KEY:COLUMN"),
        ("csv:x.csv,map=time:T+watts:W", "there is no key 'watts'"),
        ("csv:x.csv,map=power_w:W", "name one time column"),
        ("csv:x.csv,map=time:T", "name power, or voltage and current"),
        ("csv:x.csv,map=time:T+voltage_v:V", "name power, or voltage and current"),
        ("csv:x.csv,map=time:T+energy_j:A+energy_j:B", "key is repeated"),
        ("csv:x.csv,map=time:T+power_w:W+power_w:w", "a column is repeated"),
        ("csv:x.csv,map=time:T+energy_kwh:E", "give the counter's step, J, as resolution="),
        ("csv:x.csv,map=seconds:T+power_w:W", "give the time of second 0"),
        ("csv:x.csv,map=time:T+power_w:W,tz=Mars/Olympus", "no such zone"),
        ("csv:x.csv,map=time:T+power_w:W,tz=+41:00", "no offset of a day or more"),
        ("csv:x.csv,map=time:T+power_w:W,delimiter=slash", "it is one of semicolon"),
        ("csv:x.csv,map=time:T+power_w:W,decimal=dot", "it is point or comma"),
        ("csv:x.csv,map=time:T+power_w:W,domain=room", "it is one of system"),
        ("csv:x.csv,map=time:T+power_w:W,offset_s=soon", "is not a number"),
        ("csv:x.csv,map=time:T+power_w:W,offset_s=nan", "is not a number"),
    ],
)
def test_options_that_do_not_fit(spec: str, message: str) -> None:
    with pytest.raises(PowerError, match=message):
        open_meters([spec])


def test_maps_are_parsed() -> None:
    assert parse_map("time:Time+power_w:Power (W)") == (("time", "Time"), ("power_w", "Power (W)"))


@given(st.lists(st.tuples(st.floats(0.01, 100), st.floats(0, 1e5)), min_size=1, max_size=30))
def test_what_is_written_is_read(rows: list[tuple[float, float]]) -> None:
    times_s, now_s = [], NOON
    for step_s, _ in rows:
        now_s = round(now_s + step_s, 6)
        times_s.append(now_s)
    text = "Time;Watts\n" + "".join(
        f"{t!r};{value!r}\n".replace(".", ",") for t, (_, value) in zip(times_s, rows, strict=True)
    )
    log = parse_log(text.encode(), layout(delimiter="semicolon", decimal="comma"))
    assert log.times_s == times_s
    assert log.values == [value for _, value in rows]


@given(st.binary(max_size=200))
def test_any_bytes_are_a_log_or_an_error(data: bytes) -> None:
    try:
        log = parse_log(b"Time,Watts\n" + data, layout(tz="utc"))
    except PowerError:
        return
    assert all(a < b for a, b in zip(log.times_s, log.times_s[1:], strict=False))


# --- in a sampler ------------------------------------------------------------------------------


def write_log(path: Path, begin_s: float, seconds: int, power_w: float, shift_s: float = 0) -> None:
    """A reading a second from `begin_s` (this machine's Unix time) on; the log's clock is ahead."""
    rows = "".join(
        f"{datetime.fromtimestamp(begin_s + k + shift_s, UTC).isoformat()},{power_w}\n"
        for k in range(seconds)
    )
    path.write_text(f"Time,Watts\n{rows}")


def test_a_log_is_aligned_and_kept_with_the_samples(tmp_path: Path) -> None:
    path, now_s = tmp_path / "log.csv", time.time()
    write_log(path, now_s - 5, 60, 42.0, shift_s=7.25)
    meter = one_meter(f"csv:{path},map=time:Time+power_w:Watts,offset_s=7.25")
    assert meter.native_period_s == pytest.approx(1.0)
    clock = Clock()
    with Sampler([meter], tmp_path / "s.gz", clock=clock) as sampler:
        start_s = time.monotonic() + 0.5
        clock.later_s = 60.0
        (reading,) = sampler.energy(start_s, start_s + 20.0)
    assert reading.valid and not reading.doubtful
    assert reading.power_w == pytest.approx(42.0)
    assert reading.samples == 20
    assert load(sampler.path).energy(start_s, start_s + 20.0) == [reading]


class Clock:
    """The monotonic clock, and later."""

    later_s = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.later_s


def test_a_log_with_readings_in_the_future_is_doubtful(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    write_log(path, time.time() - 20, 24, 42.0)
    meter = one_meter(f"csv:{path},map=time:Time+power_w:Watts")
    with Sampler([meter], tmp_path / "s.gz") as sampler:
        start_s = time.monotonic()
        (reading,) = sampler.energy(start_s, start_s + 2.0)
    assert reading.valid and reading.doubtful
    assert "in the future, so its clock is ahead" in reading.reasons[-1]


@pytest.mark.parametrize(("stated", "doubtful"), [("", True), (",lag_s=5,averages_s=15", False)])
def test_a_log_that_repeats_the_readings_of_a_slow_meter_is_doubtful(
    tmp_path: Path, stated: str, doubtful: bool
) -> None:
    """A line each second, of a meter with a reading each 15 s."""
    path, begin_s = tmp_path / "log.csv", time.time() - 1
    rows = "".join(
        f"{datetime.fromtimestamp(begin_s + k, UTC).isoformat()},{40.0 + k // 15 * 7 % 19}\n"
        for k in range(600)
    )
    path.write_text(f"Time,Watts\n{rows}")
    meter = one_meter(f"csv:{path},map=time:Time+power_w:Watts{stated}")
    clock = Clock()
    with Sampler([meter], tmp_path / "s.gz", clock=clock) as sampler:
        start_s = time.monotonic() + 40.0
        clock.later_s = 700.0
        (reading,) = sampler.energy(start_s, start_s + 400.0)
    assert reading.valid and reading.doubtful == doubtful
    assert any("values change each 15 s only" in reason for reason in reading.reasons) == doubtful


def test_a_log_that_comes_later_is_read_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    meter = one_meter(f"csv:{path},map=time:Time+power_w:Watts")
    with Sampler([meter], tmp_path / "s.gz") as sampler:
        start_s = time.monotonic()
        (before,) = sampler.energy(start_s, start_s + 5.0)
        write_log(path, time.time() - 5, 30, 42.0)
        (after,) = sampler.energy(start_s, start_s + 5.0)
    assert not before.valid
    assert any("No such file" in reason for reason in before.reasons)
    assert after.power_w == pytest.approx(42.0)


@pytest.mark.parametrize("begun", ["", "Time,Watts\n", "Model,DSO\nTime,Watts\n"])
def test_a_log_that_has_only_begun_may_be_opened(tmp_path: Path, begun: str) -> None:
    path = tmp_path / "log.csv"
    path.write_text(begun)
    meter = one_meter(f"csv:{path},map=time:Time+power_w:Watts")
    assert meter.native_period_s == 1.0
    with Sampler([meter], tmp_path / "s.gz") as sampler:
        start_s = time.monotonic()
        write_log(path, time.time() - 5, 30, 42.0)
        (reading,) = sampler.energy(start_s, start_s + 5.0)
    assert reading.power_w == pytest.approx(42.0)


def test_a_wrong_zone_shows_in_the_reading(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    write_log(path, time.time() - 5, 60, 42.0, shift_s=3600.0)
    meter = one_meter(f"csv:{path},map=time:Time+power_w:Watts")
    with Sampler([meter], tmp_path / "s.gz") as sampler:
        start_s = time.monotonic()
        (reading,) = sampler.energy(start_s, start_s + 5.0)
    assert not reading.valid and reading.energy_j is None
    assert any("begins after now" in r and "(1.00 h): check tz=" in r for r in reading.reasons)


def test_a_step_of_this_machines_clock_rejects_the_log(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    write_log(path, time.time() - 5, 60, 42.0)
    offset_s = [time.monotonic() - time.time()]
    options = {"file": str(path), "map": "time:Time+power_w:Watts"}
    meter = csv.open_meter("csv", options, Path("/"), lambda: offset_s[0])
    assert isinstance(meter, CsvMeter)
    with Sampler([meter], tmp_path / "s.gz") as sampler:
        start_s = time.monotonic()
        assert sampler.energy(start_s, start_s + 5.0)[0].valid
        offset_s[0] -= 1.5
        assert "clock was set by +1.500 s" in (
            (sampler.energy(start_s, start_s + 5.0) and sampler.rates()[0].last_error) or ""
        )


def test_absurd_values_of_a_log_are_left_out(tmp_path: Path) -> None:
    path, now_s = tmp_path / "log.csv", time.time()
    rows = [(now_s - 5 + k, -500.0 if k == 8 else 42.0) for k in range(30)]
    path.write_text("Time,Watts\n" + "".join(f"{t},{w}\n" for t, w in rows))
    meter = one_meter(f"csv:{path},map=time:Time+power_w:Watts")
    with Sampler([meter], tmp_path / "s.gz") as sampler:
        start_s = time.monotonic()
        (reading,) = sampler.energy(start_s, start_s + 10.0)
        assert "-500 W is negative" in (sampler.rates()[0].last_error or "")
    assert reading.power_w == pytest.approx(42.0)
    assert reading.lost == 1


def test_a_log_faster_than_the_sampler_is_judged_by_its_own_period(tmp_path: Path) -> None:
    path, now_s = tmp_path / "log.csv", time.time()
    # 100 readings a second; 14 are missing.
    rows = [(now_s + k / 100, 42.0) for k in range(1000) if not 500 < k <= 514]
    path.write_text("Time,Watts\n" + "".join(f"{t:.6f},{w}\n" for t, w in rows))
    meter = one_meter(f"csv:{path},map=time:Time+power_w:Watts")
    with Sampler([meter], tmp_path / "s.gz", rate_hz=10.0) as sampler:
        start_s = time.monotonic() + 1.0
        (reading,) = sampler.energy(start_s, start_s + 8.0)
        assert sampler.rates()[0].requested_hz == pytest.approx(100.0, rel=1e-3)
    assert reading.valid
    assert reading.lost == 14
    assert reading.coverage == pytest.approx(1 - 0.14 / 8.0, abs=1e-3)


def test_the_step_of_a_counter_read_by_hand_is_in_the_limit_of_error(tmp_path: Path) -> None:
    path, now_s = tmp_path / "log.csv", time.time()
    # 100 W on a display of 0.01 kWh, read once a minute.
    rows = [(now_s + 60 * (k - 1), 500.5 + 60 * k * 100 / 36e3) for k in range(60)]
    path.write_text("Time,kWh\n" + "".join(f"{t},{int(e) / 100}\n" for t, e in rows))
    spec = f"csv:{path},map=time:Time+energy_kwh:kWh"
    meter = one_meter(f"{spec},resolution=36000")
    with Sampler([meter], tmp_path / "s.gz") as sampler:
        start_s = time.monotonic()
        for begin_s in (0, 300, 600, 900):
            (reading,) = sampler.energy(start_s + begin_s, start_s + begin_s + 1200)
            assert reading.energy_j is not None and reading.uncertainty_j is not None
            assert abs(reading.energy_j - 120e3) <= reading.uncertainty_j


def test_what_a_logged_power_contains_is_stated_by_who_logged_it(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    spec = f"csv:{log},map=time:Time+power_w:W,tz=utc,period_s=1"
    (channel,) = one_meter(f"{spec},includes=drives+processor,leaves_out=supply").channels
    assert channel.contents.includes == ("processor", "drives")
    assert channel.contents.leaves_out == ("supply",)
    meter = one_meter(f"{spec},domain=module")
    assert (meter.channels[0].domain, meter.channels[0].contents.text()) == ("module", "")
    with pytest.raises(PowerError, match="includes=disk: it is some of processor, memory"):
        open_meters([f"{spec},includes=disk"])
    with pytest.raises(PowerError, match="fans cannot be both"):
        open_meters([f"{spec},includes=fans,leaves_out=fans"])


@pytest.mark.parametrize(
    ("columns", "keys", "rows", "resolution"),
    [
        ("Watts", "power_w:Watts", ["5", "6", "5"], 2.0),
        ("Watts", "power_w:Watts", ["5.00", "5.00", "5.00"], 0.02),
        ("a,b", "power_w:a+power_w:b", ["5,0.1", "6,0.3", "5,0.2"], 2.2),
        ("V,A", "voltage_v:V+current_a:A", ["230,0.2", "230,0.3", "230,0.2"], 46.0),
        ("Wh", "energy_wh:Wh,resolution=36", ["5", "6", "7"], 36.0),
    ],
)
def test_the_resolution_of_a_power_is_that_of_its_columns(
    tmp_path: Path, columns: str, keys: str, rows: list[str], resolution: float
) -> None:
    path, begin_s = tmp_path / "log.csv", time.time() - 10
    lines = [
        f"{datetime.fromtimestamp(begin_s + k, UTC).isoformat()},{row}"
        for k, row in enumerate(rows)
    ]
    path.write_text("\n".join([f"Time,{columns}", *lines, ""]))
    meter = one_meter(f"csv:{path},map=time:Time+{keys}")
    assert meter.channels[0].resolution == pytest.approx(resolution)


@pytest.mark.parametrize(("stated", "power_w"), [("", 10.0), (",resolution=1", 0.5)])
def test_a_log_shows_its_step_later(tmp_path: Path, stated: str, power_w: float) -> None:
    """Opened with one value: 10 W steps show only as it goes on."""
    path, begin_s = tmp_path / "log.csv", time.time() - 3

    def write(values: list[int]) -> None:
        rows = (f"{datetime.fromtimestamp(begin_s + k, UTC).isoformat()},{value}\n"
                for k, value in enumerate(values))  # fmt: skip
        path.write_text("Time,Watts\n" + "".join(rows))

    write([150] * 4)
    meter = one_meter(f"csv:{path},map=time:Time+power_w:Watts,lag_s=0,averages_s=1{stated}")
    clock = Clock()
    with Sampler([meter], tmp_path / "s.gz", clock=clock) as sampler:
        start_s = time.monotonic()
        write([150] * 4 + [160, 170, 150, 150] * 30)
        clock.later_s = 200.0
        (reading,) = sampler.energy(start_s + 1.0, start_s + 101.0)
        (samples,) = sampler.samples().meters
    assert reading.valid
    assert samples.info.channels[0].resolution / 2.0 == pytest.approx(power_w)
