"""MQTT: Debian's mosquitto with messages as devices publish them."""

import json
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.eeio_power.one_meter import one_meter
from tests.waiting import free_port

from eeio_power.errors import PowerError
from eeio_power.meters import Meter, open_meters
from eeio_power.sampler import Sampler

publish = pytest.importorskip("paho.mqtt.publish", reason="paho-mqtt is not installed")
AUTH = {"username": "eeio", "password": "open sesame"}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, int, Path]]:
    """Ports with a password, and with TLS; and a folder with the certificate."""
    program = shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin:/usr/bin")
    if program is None or shutil.which("openssl") is None:
        pytest.skip("mosquitto or openssl is not installed")
    folder = tmp_path_factory.mktemp("mosquitto")
    folder.chmod(0o755)
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1",
         "-keyout", f"{folder}/key.pem", "-out", f"{folder}/cert.pem"],
        check=True, capture_output=True, timeout=300,
    )  # fmt: skip
    subprocess.run(
        ["mosquitto_passwd", "-b", "-c", f"{folder}/users", AUTH["username"], AUTH["password"]],
        check=True, capture_output=True, timeout=300,
    )  # fmt: skip
    plain, tls = free_port(), free_port()
    (folder / "m.conf").write_text(
        f"user root\npassword_file {folder}/users\nallow_anonymous false\n"
        f"listener {plain} 127.0.0.1\nlistener {tls} 127.0.0.1\n"
        f"certfile {folder}/cert.pem\nkeyfile {folder}/key.pem\n"
    )
    (folder / "word").write_text(AUTH["password"] + "\n")
    (folder / "wrong").write_text("guess\n")
    process = subprocess.Popen(
        [program, "-c", f"{folder}/m.conf"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        end = time.monotonic() + 30
        while socket.socket().connect_ex(("127.0.0.1", tls)):
            assert process.poll() is None and time.monotonic() < end
            time.sleep(0.1)
        yield plain, tls, folder
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def publishing(port: int, topic: str, payload: Callable[[int], object]) -> Iterator[None]:
    """A message each fifth of a second."""
    done = threading.Event()

    def go() -> None:
        count = 0
        while not done.wait(0.2):
            publish.single(topic, payload(count), port=port, hostname="127.0.0.1", auth=AUTH)
            count += 1

    thread = threading.Thread(target=go)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def opened(broker: tuple[int, int, Path], options: str, port: int | None = None) -> Meter:
    plain, _, folder = broker
    secret = "" if "user=" in options else f",user=eeio,password_file={folder}/word"
    return one_meter(f"mqtt:127.0.0.1:{port or plain},{options}{secret}")


@pytest.mark.parametrize(
    ("payload", "options", "power_w"),
    [
        ({"linkquality": 120, "power": 41.5, "state": "ON"}, "key=power", 41.5),  # Zigbee2MQTT
        ({"Time": "2026-01-01T00:00:00", "ENERGY": {"Power": 87, "ApparentPower": 91}},
         "key=ENERGY.Power", 87.0),  # Tasmota
        ({"id": 0, "output": True, "apower": 12.25, "aenergy": {"total": 3.5}}, "key=apower",
         12.25),  # Shelly
        ("63.7", "accuracy=0.02", 63.7),  # Home Assistant, Shelly's first generation
        ("0.25", "unit=kW,domain=device", 250.0),
    ],
)  # fmt: skip
def test_messages_of_devices(
    broker: tuple[int, int, Path], payload: object, options: str, power_w: float
) -> None:
    text = payload if isinstance(payload, str) else json.dumps(payload)
    with publishing(broker[0], "home/plug", lambda _: text):
        meter = opened(broker, f"topic=home/plug,period_s=1,{options}")
        assert meter.read() == [power_w]
    assert meter.channels[0].domain == ("device" if "device" in options else "system")


@pytest.mark.parametrize(
    ("payload", "options", "why"),
    [
        ("unavailable", "", "no number is b'unavailable'"),
        ('{"power": "12"}', "key=power", "no number at power in"),
        ('{"power": 12}', "", "name it with key="),
        ("NaN", "", "no number"),
    ],
)
def test_messages_that_are_no_power(
    broker: tuple[int, int, Path], payload: str, options: str, why: str
) -> None:
    with (
        publishing(broker[0], "home/text", lambda _: payload),
        pytest.raises(PowerError, match=why),
    ):
        opened(broker, f"topic=home/text,period_s=1{options and ','}{options}")


def test_a_retained_message_is_no_reading(broker: tuple[int, int, Path]) -> None:
    publish.single("home/old", "500", retain=True, port=broker[0], hostname="127.0.0.1", auth=AUTH)
    with pytest.raises(PowerError, match=r"no new message in 1 s; a retained message is no"):
        opened(broker, "topic=home/old,period_s=0.4")
    with publishing(broker[0], "home/old", lambda _: "7"):
        meter = opened(broker, "topic=home/old,period_s=0.4")
        assert meter.read() == [7.0]
    # What waited since, as between two recordings, is not of now.
    time.sleep(1.0)
    with pytest.raises(PowerError, match="no new message"):
        meter.read()


def test_a_window_of_messages(broker: tuple[int, int, Path], tmp_path: Path) -> None:
    with publishing(broker[0], "home/plug", lambda count: str(90 + 20 * (count % 2))):
        meter = opened(broker, "topic=home/plug,period_s=0.2")
        with Sampler([meter], tmp_path / "s.csv.gz", 10.0) as sampler:
            start_s = time.monotonic()
            time.sleep(4.0)
            (reading,) = sampler.energy(start_s, time.monotonic())
    assert reading.valid and reading.power_w == pytest.approx(100.0, abs=5.0), reading
    assert reading.samples > 10


def test_tls_and_credentials(broker: tuple[int, int, Path]) -> None:
    plain, tls, folder = broker
    topic = "topic=home/plug,period_s=1,timeout_s=3"
    with publishing(plain, "home/plug", lambda _: "5"):
        assert opened(broker, f"{topic},tls=yes,cafile={folder}/cert.pem", tls).read() == [5.0]
        with pytest.raises(PowerError, match=r"certificate verify failed.*; check"):
            opened(broker, f"{topic},tls=yes", tls)
        for who in ("eeio", "nobody"):
            with pytest.raises(PowerError, match=r"[Nn]ot authorized|[Bb]ad user") as caught:
                opened(broker, f"{topic},user={who},password_file={folder}/wrong")
            assert "guess" not in str(caught.value)
        with pytest.raises(PowerError, match="check user= and the password, or tls="):
            opened(broker, topic, tls)
    with pytest.raises(PowerError, match="check address, port"):
        opened(broker, topic, free_port())


def test_a_broker_that_goes_away_is_reported(tmp_path: Path) -> None:
    program = shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin:/usr/bin")
    if program is None:
        pytest.skip("mosquitto is not installed")
    port = free_port()
    (tmp_path / "m.conf").write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\n")
    process = subprocess.Popen([program, "-c", f"{tmp_path}/m.conf"], stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 30
        while socket.socket().connect_ex(("127.0.0.1", port)):
            assert time.monotonic() < end
            time.sleep(0.1)
        with publishing(port, "home/plug", lambda _: "5"):
            meter = one_meter(f"mqtt:127.0.0.1:{port},topic=home/plug,period_s=0.4")
    finally:
        process.terminate()
        process.wait(30)
    time.sleep(0.7)
    with pytest.raises(PowerError, match="connection was lost"):
        meter.read()


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ("mqtt", "is not HOST or HOST:PORT"),
        ("mqtt:127.0.0.1", "give the topic"),
        ("mqtt:127.0.0.1,topic=home/#", "give the topic"),
        ("mqtt:127.0.0.1:99999,topic=a", "is not HOST or HOST:PORT"),
        ("mqtt:127.0.0.1,topic=a,unit=VA", "unit=W"),
        ("mqtt:127.0.0.1,topic=a,domain=rack", "domain=rack is not one of"),
        ("mqtt:127.0.0.1,topic=a,user=b,password_file=none", "No such file"),
    ],
)
def test_specs_that_cannot_be(spec: str, why: str) -> None:
    with pytest.raises(PowerError, match=why):
        open_meters([spec])
