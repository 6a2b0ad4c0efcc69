"""Prometheus and Network UPS Tools: the programs themselves where Debian's are installed."""

import json
import random
import shutil
import socketserver
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import pytest
from tests.eeio_power.line_server import serving
from tests.eeio_power.one_meter import one_meter
from tests.simulators.exporter import exporting
from tests.simulators.http import FakeHttp
from tests.waiting import free_port

from eeio.units.quantities import MOST_UNCERTAIN
from eeio_power.errors import PowerError
from eeio_power.meters import open_meters
from eeio_power.samples import MeterSamples, meter_info

SELECTOR = "/api/v1/query?query=host_power_watts%5B2500ms%5D"


def matrix(*series: list[list[object]]) -> dict[str, object]:
    result = [{"metric": {"instance": str(k)}, "values": one} for k, one in enumerate(series)]
    return {"status": "success", "data": {"resultType": "matrix", "result": result}}


def read(address: str, options: str) -> object:
    meter = one_meter(f"prometheus:{address},period_s=1,{options}")
    return meter.read()[0]


def test_a_gauge_and_a_counter() -> None:
    joules = SELECTOR.replace("host_power_watts", "cpu_joules_total")
    micro = SELECTOR.replace("host_power_watts", "scaph_host_power_microwatts")
    with FakeHttp(
        {
            SELECTOR: matrix([[10.0, "80"], [11.0, "87.5"]]),
            joules: matrix([[10.0, "100"], [12.0, "160"]]),
            micro: matrix([[10.0, "42000000"]]),
        }
    ) as fake:
        assert read(fake.address, "metric=host_power_watts,domain=system") == 87.5
        assert read(fake.address, "metric=cpu_joules_total,domain=package") == 30.0
        assert read(fake.address, "metric=scaph_host_power_microwatts,domain=system") == 42.0
        # A counter that was reset, or has one sample, is missing and not 0.
        fake.answers[joules] = matrix([[10.0, "100"], [12.0, "5"]])
        assert read(fake.address, "metric=cpu_joules_total,domain=package") is None
        fake.answers[joules] = matrix([[10.0, "100"]])
        assert read(fake.address, "metric=cpu_joules_total,domain=package") is None


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (matrix(), "no sample in the last 2.5 s"),
        (matrix([[1.0, "1"]], [[1.0, "2"]]), "2 series"),
        (matrix([[1.0, "NaN"]]), "is not a number"),
        ({"status": "error", "error": "parse error"}, "parse error"),
        ({"status": "success"}, "not an answer of Prometheus"),
        ([1], "not an answer of Prometheus"),
    ],
)
def test_answers_that_are_no_power(answer: object, why: str) -> None:
    with FakeHttp({SELECTOR: answer}) as fake, pytest.raises(PowerError, match=why):
        read(fake.address, "metric=host_power_watts,domain=system")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("metric=host_power_watts", "give address, metric and domain"),
        ("metric=a b,domain=system", "is not the name of a metric"),
        ("metric=host_power,domain=system", "the unit is unknown"),
        ("metric=host_power_watts,domain=rack", "domain=rack"),
        ("metric=host_power_watts,domain=system,labels=a=b", "write KEY:VALUE"),
        ('metric=host_power_watts,domain=system,labels=a:"', "write KEY:VALUE"),
    ],
)
def test_specs_that_cannot_be(options: str, why: str) -> None:
    with pytest.raises(PowerError, match=why):
        open_meters([f"prometheus:127.0.0.1:1,{options}"])


def exporter(watts: float) -> AbstractContextManager[int]:
    return exporting(
        lambda: (
            f'# TYPE node_watts gauge\nnode_watts{{chip="a,b"}} {watts}\n'
            f'node_watts{{chip="other"}} 7\n# TYPE cpu_joules_total counter\n'
            f"cpu_joules_total {watts * time.time():.6f}\n"
        )
    )


def test_with_prometheus_itself(tmp_path: Path) -> None:
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("prometheus is not installed")
    port = free_port()
    with exporter(55.5) as target:
        config = {
            "global": {"scrape_interval": "1s"},
            "scrape_configs": [
                {"job_name": "x", "static_configs": [{"targets": [f"127.0.0.1:{target}"]}]}
            ],
        }
        (tmp_path / "p.yml").write_text(json.dumps(config))
        server = subprocess.Popen(
            [program, f"--config.file={tmp_path}/p.yml", f"--storage.tsdb.path={tmp_path}/data",
             f"--web.listen-address=127.0.0.1:{port}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            counter = "metric=cpu_joules_total,domain=package,period_s=60"
            end = time.monotonic() + 60
            while True:
                try:
                    meter = one_meter(f"prometheus:127.0.0.1:{port},{counter}")
                    if meter.read()[0] is not None:
                        break
                    meter.close()
                except PowerError:
                    assert time.monotonic() < end
                time.sleep(0.5)
            gauge = "metric=node_watts,domain=system,period_s=60"
            with pytest.raises(PowerError, match="2 series"):
                open_meters([f"prometheus:127.0.0.1:{port},{gauge}"])
            other = one_meter(f"prometheus:127.0.0.1:{port},{gauge},labels=chip:other")
            assert other.read() == [7.0]
            other.close()
            # The mean between the last two scrapes, by the times that Prometheus stored.
            url = f"http://127.0.0.1:{port}/api/v1/query?query=cpu_joules_total%5B150s%5D"
            power_w: object = None
            while power_w != meter.read()[0]:  # else a scrape came in between
                with urllib.request.urlopen(url) as answer:
                    values = json.load(answer)["data"]["result"][0]["values"]
                (before_s, before), (after_s, after) = values[-2:]
                power_w = (float(after) - float(before)) / (after_s - before_s)
                assert time.monotonic() < end + 60
            meter.close()
        finally:
            server.terminate()
            server.wait(30)


@contextmanager
def upsd(answers: dict[str, str]) -> Iterator[str]:
    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            while line := self.rfile.readline():
                answer = answers.get(line.decode().strip(), "ERR INVALID-ARGUMENT")
                self.wfile.write(f"{answer}\n".encode())

    with serving(Handler) as address:
        yield address


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        ('VAR rack1 ups.realpower "213"', 213.0),
        ('VAR rack1 ups.realpower ""', "not W"),
        ('VAR rack1 ups.realpower "-3"', "not W"),
        ('VAR rack1 ups.realpower "nan"', "not W"),
        ('VAR other ups.realpower "213"', "not an answer of upsd"),
        ("ERR VAR-NOT-SUPPORTED", "does not report watts there"),
        ("ERR DATA-STALE", "its data is stale"),
        ("ERR UNKNOWN-UPS", "upsc -l HOST"),
        ("x" * 2000, "too long"),
    ],
)
def test_answers_of_upsd(answer: str, wanted: object) -> None:
    with upsd({"GET VAR rack1 ups.realpower": answer}) as address:
        if isinstance(wanted, float):
            meter = one_meter(f"nut:rack1@{address}")
            assert meter.read() == [wanted] and meter.channels[0].domain == "system"
        else:
            with pytest.raises(PowerError, match=str(wanted)):
                open_meters([f"nut:rack1@{address}"])


def test_an_answer_of_upsd_that_drips_in_is_late() -> None:
    """Each part comes in time, and the answer has no end."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.rfile.readline()
            with suppress(OSError):
                while True:
                    self.wfile.write(b"V")
                    time.sleep(0.1)

    with serving(Handler) as address, pytest.raises(PowerError, match="no complete answer in 1 s"):
        open_meters([f"nut:rack1@{address},timeout_s=1"])


POLLFREQ = "GET VAR rack1 driver.parameter.pollfreq"


@pytest.mark.parametrize(
    ("answers", "options", "period_s"),
    [
        ({POLLFREQ: 'VAR rack1 driver.parameter.pollfreq "12"'}, "", 12.0),
        ({POLLFREQ: 'VAR rack1 driver.parameter.pollfreq "12"'}, ",period_s=4", 4.0),
        # snmp-ups reports its pollinterval only, and renews values each 30 s.
        ({"GET VAR rack1 driver.parameter.pollinterval":
            'VAR rack1 driver.parameter.pollinterval "2"'}, "", 30.0),
        ({POLLFREQ: "ERR VAR-NOT-SUPPORTED"}, "", 30.0),
        ({POLLFREQ: 'VAR rack1 driver.parameter.pollfreq "0"'}, "", 30.0),
        ({POLLFREQ: 'VAR rack1 driver.parameter.pollfreq "often"'}, "", 30.0),
    ],
)  # fmt: skip
def test_values_of_upsd_are_as_late_as_its_driver_may_be(
    answers: dict[str, str], options: str, period_s: float
) -> None:
    with upsd({"GET VAR rack1 ups.realpower": 'VAR rack1 ups.realpower "213"', **answers}) as at:
        meter = one_meter(f"nut:rack1@{at}{options}")
        assert meter.native_period_s == period_s
        delay = meter.channels[0].delay
        assert delay is not None and delay.lag_s + delay.lag_within_s == period_s + 5.0
        assert f"a new value each {period_s:g} s" in delay.text


def test_a_driver_that_is_too_slow_is_rejected() -> None:
    answers = {
        "GET VAR rack1 ups.realpower": 'VAR rack1 ups.realpower "213"',
        POLLFREQ: 'VAR rack1 driver.parameter.pollfreq "600"',
    }
    with upsd(answers) as address, pytest.raises(PowerError, match="each 600 s: set pollfreq"):
        open_meters([f"nut:rack1@{address}"])


@pytest.mark.parametrize("renewed_s", [12.0, 30.0])
@pytest.mark.parametrize("window_s", [30.0, 120.0, 600.0])
def test_energies_of_a_driver_that_repeats_its_values(renewed_s: float, window_s: float) -> None:
    answers = {
        "GET VAR rack1 ups.realpower": 'VAR rack1 ups.realpower "213"',
        POLLFREQ: f'VAR rack1 driver.parameter.pollfreq "{renewed_s:g}"',
    }
    with upsd(answers) as address:
        info = meter_info(one_meter(f"nut:rack1@{address}"), 10.0)
    draw = random.Random(3)
    known = 0
    for _ in range(100):
        start_s, end_s = 300.0, 300.0 + window_s
        poll_s, read_s = draw.uniform(0.0, renewed_s), draw.uniform(0.0, info.period_s)
        times_s = [read_s + k * info.period_s for k in range(int(1200 / info.period_s))]
        polls_s = [t - (t - poll_s) % renewed_s for t in times_s]
        watts = [150.0 if start_s < at_s <= end_s else 100.0 for at_s in polls_s]
        (found,) = MeterSamples(info, times_s, (watts,)).energy(start_s, end_s)
        if found.energy_j is None or found.uncertainty_j is None:
            continue
        if found.doubtful or found.uncertainty_j > MOST_UNCERTAIN * found.energy_j:
            continue
        known += 1
        assert abs(found.energy_j - 150.0 * window_s) <= found.uncertainty_j
    assert known == 0 or window_s >= 120.0
    assert known == 100 or window_s < 600.0


def test_specs_of_nut() -> None:
    for spec in ("nut", "nut:rack1", "nut:rack1@h:99999", "nut:a b@h", "nut:a@h,outlet=x"):
        with pytest.raises(PowerError):
            open_meters([spec])


def test_with_upsd_and_its_dummy_driver(tmp_path: Path) -> None:
    driver, server = Path("/lib/nut/dummy-ups"), Path("/lib/nut/upsd")
    if not driver.is_file() or not server.is_file():
        pytest.skip("nut-server is not installed")
    port = free_port()
    (tmp_path / "rack1.dev").write_text(
        "ups.realpower: 187\noutlet.2.realpower: 41\nups.status: OL\n"
    )
    (tmp_path / "ups.conf").write_text(
        f"[rack1]\n driver = dummy-ups\n port = {tmp_path}/rack1.dev\n"
    )
    (tmp_path / "upsd.conf").write_text(f"LISTEN 127.0.0.1 {port}\nSTATEPATH {tmp_path}\n")
    (tmp_path / "upsd.users").write_text("")
    environment = {"NUT_CONFPATH": str(tmp_path), "NUT_STATEPATH": str(tmp_path)}
    user = ["-u", "root"]
    running = [
        subprocess.Popen(
            [str(driver), "-D", "-a", "rack1", *user], env=environment,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        ),
        subprocess.Popen(
            [str(server), "-D", *user], env=environment, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ),
    ]  # fmt: skip
    try:
        end = time.monotonic() + 60
        while True:
            try:
                meter = one_meter(f"nut:rack1@127.0.0.1:{port}")
                break
            except PowerError as error:
                assert time.monotonic() < end, error
                time.sleep(0.5)
        assert meter.read() == [187.0]
        meter.close()
        meter = one_meter(f"nut:rack1@127.0.0.1:{port},outlet=2")
        assert meter.read() == [41.0]
        meter.close()
        with pytest.raises(PowerError, match="does not report watts there"):
            open_meters([f"nut:rack1@127.0.0.1:{port},outlet=7"])
    finally:
        for process in reversed(running):
            process.terminate()
            process.wait(30)
