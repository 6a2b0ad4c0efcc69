"""What meters, logs and samples may say, and what they may not."""

import gzip
from pathlib import Path

import pytest

from eeio_power import csv_log, http_json, samples
from eeio_power import helper_process as reader
from eeio_power.energy import channel_energy
from eeio_power.errors import PowerError
from eeio_power.meters import Channel, csv, hwmon, iio, ipmi, modelled, parse_spec, perf, wattsup
from eeio_power.samples import MeterInfo, header_line, load
from eeio_power.window_readings import Stretches, lost_readings

CHANNEL = Channel("wall", "system", "power_w")
INFO = MeterInfo("wall", "wall", "measured", 1.0, 1.0, (CHANNEL,))


def write(path: Path, body: str, info: MeterInfo = INFO) -> Path:
    text = header_line([info], 7.0, "2024-01-01T00:00:00+00:00") + body
    path.write_bytes(gzip.compress(text.encode()))
    return path


@pytest.mark.parametrize(
    "line",
    ["8.0,0,inf", "8.0,0,nan", "8.0,0,1e999", "8.0,0,1e12", "nan,0,5", "inf,0,5", "1e300,0,5",
     "6.0,0,5", "8.0,1,5", "8.0,0,5,5", "8.0,0," + "9" * 400],
)  # fmt: skip
def test_a_sample_that_cannot_be_is_rejected_with_its_line(tmp_path: Path, line: str) -> None:
    with pytest.raises(PowerError, match=r"s\.gz: line 3"):
        load(write(tmp_path / "s.gz", f"7.5,0,5\n{line}\n"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"period_s": 1.0', '"period_s": 0'),
        ('"period_s": 1.0', '"period_s": NaN'),
        ('"period_s": 1.0', '"period_s": "x"'),
        ('"domain": "system"', '"domain": "kitchen"'),
        ('"name": "wall"', '"name": 5'),
        ('"channels": [', '"channels": ' + "[" * 10_000),
    ],
)
def test_a_header_that_cannot_be(tmp_path: Path, old: str, new: str) -> None:
    text = header_line([INFO], 7.0, "2024") + "8.0,0,5\n"
    assert old in text
    (tmp_path / "s.gz").write_bytes(gzip.compress(text.replace(old, new, 1).encode()))
    with pytest.raises(PowerError, match=r"s\.gz: the (first line|header)"):
        load(tmp_path / "s.gz")


def test_samples_packed_a_thousandfold_are_rejected_at_once(tmp_path: Path) -> None:
    path = write(tmp_path / "s.gz", "0" * 50_000_000)
    with pytest.raises(PowerError, match="line 2 is too long"):
        load(path)


def test_a_sample_in_68_years_takes_no_time(tmp_path: Path) -> None:
    """The readings that were lost until then were counted one by one: 2e10 of them."""
    info = MeterInfo("rapl", "rapl", "measured", 0.001, 0.1, (Channel("c", "package", "energy_j"),))
    found = load(write(tmp_path / "s.gz", "7.0,0,1\n8.0,0,2\n2147483648,0,3\n", info))
    (reading,) = found.energy(7.0, 2e7)
    assert not reading.valid
    assert reading.lost == pytest.approx(2e7 / 0.1, rel=0.01)


@pytest.mark.parametrize("period_s", [0.1, 0.3, 1.0, 7.0])
@pytest.mark.parametrize("window", [(2.0, 9.0), (0.0, 20.0), (4.05, 4.15), (3.0, 17.3)])
def test_lost_readings_are_those_that_were_counted_one_by_one(
    period_s: float, window: tuple[float, float]
) -> None:
    stretches = Stretches([1.0, 3.0], [3.0, 17.3], [5.0, 5.0], [5.0, 5.0], False, False)
    for k in range(2):
        begin_s, length_s = stretches.starts_s[k], stretches.length_s(k)
        steps = round(length_s / period_s)
        times_s = [begin_s + length_s * j / steps for j in range(1, steps)]
        counted = sum(window[0] < time_s <= window[1] for time_s in times_s)
        assert lost_readings(stretches, k, period_s, *window) == counted


def test_a_window_has_an_end() -> None:
    found = channel_energy(CHANNEL, [1.0, 2.0], [5.0, 5.0], 1.0, 1.0, 0.0, 1e9)
    assert found.energy_j is None and "366 days" in found.reasons[0]


def test_a_window_of_which_little_was_observed_is_reported(tmp_path: Path) -> None:
    slow = MeterInfo("wall", "wall", "measured", 1.0, 1.0, (CHANNEL,))
    body = "".join(f"{time_s},0,5.0\n" for time_s in (10.0, 13.9, 17.8))
    (reading,) = load(write(tmp_path / "s.gz", body, slow)).energy(10.5, 17.5)
    assert reading.valid and reading.coverage < 0.5
    assert "readings cover " in reading.reasons[0]


@pytest.mark.parametrize(
    "body", ["[" * 50_000, '{"a":' * 50_000, '{"x": NaN}', '{"x": ' + "9" * 5000 + "}", "\xff", ""]
)
def test_an_answer_that_no_meter_gives(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.simulators.http import FakeHttp

    with FakeHttp({}) as fake:
        client = http_json.JsonClient(fake.address)
    monkeypatch.setattr(client, "_connected", lambda: _answering(body.encode("latin-1")))
    with pytest.raises(PowerError, match="the answer is"):
        client.get("/x")


def _answering(body: bytes) -> object:
    import http.client
    import io

    class Sock:
        def makefile(self, *_: object) -> io.BytesIO:
            head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
            return io.BytesIO(head + body)

        def sendall(self, data: bytes) -> None:
            """Nobody listens."""

        def close(self) -> None:
            """Nothing is open."""

    connection = http.client.HTTPConnection("x")
    connection.sock = Sock()  # type: ignore[assignment]
    return connection


@pytest.mark.parametrize("text", ["1" * 400, "1" * 5000])
def test_a_record_of_more_digits_than_power_has(text: str) -> None:
    assert wattsup.record_power_w(wattsup.Packet("d", "-", (text,)), 1) is None
    assert wattsup.parse_packet(f"d,-,{text},1") is None


def test_a_sensor_that_reports_nan_is_none() -> None:
    assert ipmi.watt_sensors(["a,nan,Watts,ok", "b,1e999,Watts,ok", "c,5,Watts,ok"]) == {"c": 5.0}


def test_a_helper_out_of_step_is_no_endless_loop() -> None:
    class Peer:
        def descriptors(self) -> tuple[int, int, float | None]:
            return 0, 1, None

        def close(self) -> None:
            """Nothing is open."""

    helper = reader.QuestionReader(Path("x"), Peer(), "q", lambda lines: 1.0, 1.0, 1.0)
    for length in (-24, 1 << 40):
        helper._rest = reader._HEAD.pack(1, 2, length) + b"x"
        with pytest.raises(PowerError, match="out of step"):
            helper._batch()


@pytest.mark.parametrize("scale", ["nan", "-1", "0", "1e999", "x"])
def test_a_scale_that_is_none(tmp_path: Path, scale: str) -> None:
    device = tmp_path / "iio:device0"
    device.mkdir()
    (device / "name").write_text("ina226")
    (device / "in_power2_raw").write_text("5")
    (device / "in_power2_scale").write_text(scale)
    with pytest.raises(PowerError, match="damaged"):
        iio.open_meter("iio", {"root": str(tmp_path)}, Path("/"))


def test_an_interval_of_years_is_not_believed(tmp_path: Path) -> None:
    chip = tmp_path / "hwmon0"
    chip.mkdir()
    for name, text in (("name", "power_meter"), ("power1_average", "5000000"),
                       ("power1_average_interval", "9" * 30)):  # fmt: skip
        (chip / name).write_text(text)
    meter = hwmon.open_meter("hwmon", {"root": str(tmp_path)}, Path("/"))
    assert meter.native_period_s == 1.0


def test_cpus_without_end() -> None:
    with pytest.raises(ValueError, match="CPUs"):
        perf._cpu_list("0-99999999999")
    with pytest.raises(ValueError, match="ticks"):
        modelled.parse_stat(f"cpu 1 2 3 {'9' * 400} 5 6\n")


def log(text: str | bytes, **options: str) -> csv_log.Log:
    layout = csv._layout({"map": "time:Time+power_w:W", "tz": "utc", **options})
    data = text if isinstance(text, bytes) else text.encode()
    return csv_log.parse_log(data, layout)


GOOD = "Time;W\n2017-11-13 12:00:00;20\n2017-11-13 12:00:01;21\n"


@pytest.mark.parametrize("encoding", ["no-such", "idna", "punycode", "utf-7", "rot13", "undefined"])
def test_a_log_in_an_encoding_that_none_is_in(encoding: str) -> None:
    with pytest.raises(PowerError, match=encoding):
        log(GOOD, encoding=encoding)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD.replace("2017-11-13 12:00:01", "0001-01-01 00:00:00"), "line 3: .*is not a time"),
        (GOOD.replace("2017-11-13 12:00:01", "2001-99-99"), "line 3: .*is not a time"),
        (GOOD + "2017-11-13 12:00:02;" + "9" * 140_000 + "\n", "line 4 is longer"),
    ],
)
def test_a_log_with_a_line_that_cannot_be(text: str, message: str) -> None:
    with pytest.raises(PowerError, match=message):
        log(text)


def test_a_power_that_cannot_be_is_missing_and_counted() -> None:
    rows = "".join(f"2017-11-13 12:01:{k:02};5\n" for k in range(60))
    found = log(GOOD + rows + "2017-11-13 12:02:00;1e20\n")
    assert found.damaged == 1 and found.values[-1] != found.values[-1]


def test_specs_have_numbers_that_can_be() -> None:
    _, options = parse_spec("ipmi:lanplus,period_s=1e300")
    with pytest.raises(PowerError, match="period_s"):
        from eeio_power.meters import number_option

        number_option("ipmi", options, "period_s")


def test_an_infinite_sample_is_not_written() -> None:
    assert samples.sample_lines(1.0, 0, [float("nan")]) == "1.0,0,\n"


def test_long_digits_in_a_log_take_no_time() -> None:
    """Quadratic: 20 KB took seconds."""
    with pytest.raises(PowerError, match="line 4"):
        log(GOOD + "2" * 60_000 + ";20\n")


def test_white_space_of_other_scripts_in_ipmitools_answer() -> None:
    with pytest.raises(PowerError, match="makes no sense"):
        ipmi.parse_dcmi([" dc 57\x85 00 02 00"])


def test_a_long_list_of_cpus_is_rejected_in_a_short_message() -> None:
    from eeio_power.meters import perf

    with pytest.raises(ValueError, match=r"^CPUs ") as caught:
        perf._cpu_list("0" + " " * 5000 + "-99999999")
    assert len(str(caught.value)) < 100
