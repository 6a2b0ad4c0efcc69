"""Watts Up? against a simulator on a pseudo terminal, bytes and all."""

import os
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.eeio_power.one_meter import one_meter
from tests.simulators.wattsup import FakeWattsUp, record

from eeio_power.errors import PowerError
from eeio_power.meters import Meter, discover, open_meters, wattsup
from eeio_power.meters.wattsup import PacketReader, WattsUpMeter, parse_packet, record_power_w
from eeio_power.sampler import Sampler


def opened(fake: FakeWattsUp) -> Meter:
    return one_meter(f"wattsup:{fake.path}")


def test_opening_queries_and_starts_the_log_and_writes_nothing_else() -> None:
    with FakeWattsUp() as fake:
        meter = opened(fake)
        assert fake.logging.wait(5.0)
    assert fake.heard == ["#L,R,0", "#V,R,0", "#H,R,0", "#L,W,3,E,,1"]
    assert isinstance(meter, WattsUpMeter)
    assert (meter.model, meter.fields) == (".NET", 18)


def test_records_are_read_past_nuls_and_a_stale_start() -> None:
    with FakeWattsUp(lambda beat: 120.0 + beat) as fake:
        meter = opened(fake)
        values = []
        for _ in range(3):
            fake.beat()
            values += meter.read()
    assert values == [120.0, 121.0, 122.0], "the stale record of 999.9 W must not come through"


@pytest.mark.parametrize(
    ("noise", "damaged"),
    [
        (b"\xff\xfe~garbage", 0),
        (b"#d,-,18,9999,230", 1),
        (b"#d,-,18,9999;", 1),
        (b"#d,-,3,9999,1,2;", 0),
        (record(999.9).replace(b"9999", b"99x9"), 0),
        (record(999.9).replace(b"9999", b"_"), 0),
    ],
)
def test_noise_between_records_is_passed_over(noise: bytes, damaged: int) -> None:
    with FakeWattsUp(stale=b"") as fake:
        meter = opened(fake)
        before = meter.damaged  # type: ignore[attr-defined]
        fake.send(noise)
        fake.beat()
        assert meter.read() == [120.0]
        assert meter.damaged - before == damaged  # type: ignore[attr-defined]


def test_a_meter_that_misses_the_first_question_is_queried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wattsup, "ANSWER_S", 0.05)
    with FakeWattsUp(deaf_to=1) as fake:
        opened(fake).close()
    assert fake.heard.count("#V,R,0") >= 2


def test_a_silent_line_is_rejected_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wattsup, "ANSWER_S", 0.01)
    with (
        FakeWattsUp(deaf_to=99) as fake,
        pytest.raises(PowerError, match="no Watts Up\\? answers"),
    ):
        opened(fake)


def test_no_record_in_time_is_a_failed_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wattsup, "PATIENCE_S", 0.05)
    with FakeWattsUp() as fake:
        meter = opened(fake)
        with pytest.raises(PowerError, match="no complete record"):
            meter.read()
        fake.beat()
        assert meter.read() == [120.0]


def test_unplugged_and_plugged_in_again(tmp_path: Path) -> None:
    link = tmp_path / "ttyUSB0"
    with FakeWattsUp(link=link) as fake:
        meter = opened(fake)
        fake.beat()
        assert meter.read() == [120.0]
        fake.unplug()
        with pytest.raises(OSError):
            meter.read()
        with pytest.raises(OSError):
            meter.read()
        fake.plug_in()
        # The log has to be started again: the meter's memory of it is gone.
        values: list[float | None] = []
        reader = threading.Thread(target=lambda: values.extend(meter.read()))
        reader.start()
        assert fake.logging.wait(5.0)
        fake.beat()
        reader.join(5.0)
        assert values == [120.0]


def test_lost_records_are_counted_and_cost_no_energy(tmp_path: Path) -> None:
    with FakeWattsUp(lambda _: 150.0, lost=[6, 7], period_s=0.05) as fake:
        meter = opened(fake)
        # A meter of 20 records a second; the real one has one.
        meter.native_period_s = 0.05  # type: ignore[misc]
        meter.spec += ",lag_s=0,averages_s=0.05"
        with Sampler([meter], tmp_path / "s.gz", rate_hz=20.0) as sampler:
            start_s = time.monotonic()
            deadline_s = start_s + 20.0
            while sampler.rates()[0].reads < 24 and time.monotonic() < deadline_s:
                threading.Event().wait(0.01)
            (reading,) = sampler.energy(start_s, time.monotonic())
    assert reading.valid, reading.reasons
    assert reading.power_w == pytest.approx(150.0)
    assert reading.lost >= 2
    assert reading.coverage < 1.0
    assert reading.largest_gap_s is not None and reading.largest_gap_s > 0.1


def test_the_meter_paces_itself_whatever_rate_is_wanted(tmp_path: Path) -> None:
    with FakeWattsUp() as fake:
        sampler = Sampler([opened(fake)], tmp_path / "s.gz", rate_hz=0.1)
    (rates,) = sampler.rates()
    assert rates.requested_hz == 1.0, "a record a second comes, and one that does not is lost"


def test_a_meter_that_lost_its_mains_starts_to_log_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wattsup, "PATIENCE_S", 0.05)
    with FakeWattsUp() as fake:
        meter = opened(fake)
        assert fake.logging.wait(5.0)
        # The line's chip lives on USB's power, so nobody sees the line go.
        fake.logging.clear()
        with pytest.raises(PowerError, match="no complete record"):
            meter.read()
        assert fake.logging.wait(5.0)
        fake.beat()
        assert meter.read() == [120.0]


def test_a_line_on_another_machine_by_url() -> None:
    pytest.importorskip("serial", reason="pyserial is not installed")
    with FakeWattsUp(stale=b"") as fake, socket.create_server(("127.0.0.1", 0)) as server:
        fd = os.open(fake.path, os.O_RDWR | os.O_NOCTTY)

        def bridge() -> None:
            connection, _ = server.accept()
            threading.Thread(target=pump_back, args=(connection,), daemon=True).start()
            # The meter's last command may arrive after the end of the test, when `fd` is closed.
            with connection, suppress(OSError):
                while data := connection.recv(4096):
                    os.write(fd, data)

        def pump_back(connection: socket.socket) -> None:
            try:
                while data := os.read(fd, 4096):
                    connection.sendall(data)
            except OSError:
                return

        threading.Thread(target=bridge, daemon=True).start()
        port = server.getsockname()[1]
        meter = one_meter(f"wattsup:socket://127.0.0.1:{port}")
        fake.beat()
        assert meter.read() == [120.0]
    os.close(fd)


def test_finding_writes_to_no_line(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    (finding,) = [f for f in discover(tmp_path) if f.spec == "wattsup"]
    assert not finding.available and "no USB serial line" in (finding.reason or "")
    (tmp_path / "dev/ttyUSB0").write_text("")
    (finding,) = [f for f in discover(tmp_path) if f.spec == "wattsup"]
    assert "--meter wattsup:/dev/ttyUSB0" in (finding.remedy or "")
    assert (tmp_path / "dev/ttyUSB0").read_text() == ""


def test_what_is_no_line_is_reported(tmp_path: Path) -> None:
    with pytest.raises(PowerError, match=r"No such file.*dialout"):
        open_meters([f"wattsup:{tmp_path}/ttyUSB9"])
    (tmp_path / "file").write_text("")
    with pytest.raises(PowerError, match="not a serial line"):
        open_meters([f"wattsup:{tmp_path}/file"])
    with pytest.raises(PowerError, match="which line"):
        open_meters(["wattsup"])


@given(st.lists(st.integers(0, 30000), min_size=1, max_size=5), st.integers(1, 7))
def test_packets_survive_any_cut_of_the_stream(tenths: list[int], bite: int) -> None:
    data = b"".join(record(t / 10) for t in tenths)
    reader = PacketReader()
    packets = [p for k in range(0, len(data), bite) for p in reader.feed(data[k : k + bite])]
    assert [record_power_w(p, 18) for p in packets] == [t / 10 for t in tenths]
    assert reader.damaged == 0


@given(st.binary(max_size=300))
def test_any_noise_gives_complete_packets_or_none(noise: bytes) -> None:
    for packet in PacketReader().feed(noise + b";"):
        assert parse_packet(",".join((packet.command, packet.sub, str(len(packet.arguments))))) or (
            packet.arguments
        )
