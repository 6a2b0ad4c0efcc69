"""`eeio meter`, as a user types it, and the parts under it."""

import json
import math
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.plugin import Eeio
from tests.simulators import FakeRapl, ScriptedMeter
from tests.simulators.hwmon import FakeHwmon

from eeio.commands.record.power import _print_breakdown
from eeio_power.alignment import Pulse, find_offset, make_pulses, pulse_lengths_s
from eeio_power.errors import PowerError
from eeio_power.meters import Channel, meter_names
from eeio_power.prometheus_exporter import GIVE_UP_S, Totals, server
from eeio_power.reading import EnergyReading
from eeio_power.recording import READING_FIELDS, Recording, record
from eeio_power.sampler import Sampler
from eeio_power.samples import load
from eeio_power.suspension import STOPPED

PATIENCE_S = 20.0
COUNTER = Channel("test:counter", "package", "energy_j")


# --- record ------------------------------------------------------------------------------------


def test_the_json_is_a_contract(eeio: Any, rapl: str, tmp_path: Path) -> None:
    samples = tmp_path / "kept.csv.gz"
    script = "import time; print('said'); time.sleep(0.6)"
    done = eeio(
        "record", "power", "--meter", rapl, "--format", "json", "--samples", str(samples), "--",
        sys.executable, "-c", script,
    )  # fmt: skip
    body = json.loads(done.stdout)
    assert list(body) == [
        "schema_version", "duration_s", "exit_code", "readings", "unknown_delays",
    ]  # fmt: skip
    assert body["schema_version"] == 1
    assert body["exit_code"] == 0
    assert body["duration_s"] > 0.6
    assert "said" in done.stderr, "stdout is JSON alone"
    assert [r["domain"] for r in body["readings"]] == ["package", "dram"]
    for reading in body["readings"]:
        assert tuple(reading) == READING_FIELDS
        # On a busy machine the counter is read late, which the reading says.
        assert reading["valid"] and (reading["reasons"] == [] or reading["largest_gap_s"] > 0.15)
    total_w = sum(r["power_w"] for r in body["readings"])
    assert total_w == pytest.approx(150.0, rel=0.3)
    assert len(load(samples).meters[0].times_s) >= 5


@pytest.mark.parametrize(
    ("command", "exit_code", "code"),
    [("exit 3", 3, 1), ("kill -TERM $$", 143, 1), ("exit 0", 0, 0)],
)
def test_the_commands_exit_code_is_kept(
    eeio: Any, rapl: str, command: str, exit_code: int, code: int
) -> None:
    done = eeio(
        "record", "power", "--meter", rapl, "--format", "json", "--", "sh", "-c",
        f"sleep 0.3; {command}", code=code,
    )  # fmt: skip
    assert json.loads(done.stdout)["exit_code"] == exit_code


def test_a_command_out_of_time_is_ended_and_measured(eeio: Any, rapl: str) -> None:
    done = eeio("record", "power", "--meter", rapl, "--timeout", "0.5", "--", "sleep", "60", code=1)
    assert "ran out of time" in done.stdout
    assert "rapl        package" in done.stdout


def test_a_command_out_of_time_has_failed_whatever_it_ends_with(eeio: Any, rapl: str) -> None:
    done = eeio(
        "record", "power", "--meter", rapl, "--timeout", "0.5", "--format", "json", "--",
        sys.executable, "-c",
        "import signal, sys, time; signal.signal(15, lambda *_: sys.exit(0)); time.sleep(60)",
        code=1,
    )  # fmt: skip
    assert json.loads(done.stdout)["exit_code"] in (0, 143), "143 if it was ended before its trap"
    assert "ran out of time" in done.stderr, "the JSON has no field for it"


def test_samples_that_were_not_kept_are_reported_with_json_too(eeio: Any, rapl: str) -> None:
    done = eeio(
        "record", "power", "--meter", rapl, "--format", "json", "--samples", "/dev/full", "--",
        "sleep", "0.3",
    )  # fmt: skip
    assert json.loads(done.stdout)["readings"][0]["valid"]
    assert "/dev/full: samples are not written: No space left" in done.stderr


def test_an_invalid_reading_is_null_with_the_reason_and_exit_code_3(
    eeio: Any, tmp_path: Path
) -> None:
    fake = FakeRapl(tmp_path / "powercap", power_w=lambda _: 150.0)  # stands still
    done = eeio(
        "record", "power", "--meter", f"rapl,root={fake.root}", "--format", "json", "--", "true",
        code=(0, 3),
    )  # fmt: skip
    done = eeio(
        "record", "power", "--meter", f"rapl,root={fake.root}", "--format", "json", "--", "sleep",
        "0.5", code=3,
    )  # fmt: skip
    body = json.loads(done.stdout)
    for reading in body["readings"]:
        assert reading["energy_j"] is None and reading["power_w"] is None
        assert any("does not change" in reason for reason in reading["reasons"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--meter", "rapl,root=/nowhere", "--", "true"], "no RAPL package"),
        (["--meter", "nosuch", "--", "true"], "there is no meter 'nosuch'"),
        (["--meter", "none", "--", "true"], "--meter none was given"),
        (["--meter", "modelled"], "which command?"),
        (["--meter", "modelled", "--", "no-such-command"], "no-such-command: No such file"),
        (["--rate", "0", "--", "true"], "readings a second above 0"),
    ],
)
def test_rejected_input_has_exit_code_2(eeio: Any, arguments: list[str], message: str) -> None:
    done = eeio("record", "power", *arguments, code=2)
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_idle_against_busy_and_a_profile(eeio: Any, rapl: str) -> None:
    done = eeio(
        "record", "power", "--meter", rapl, "--idle", "0.4", "--profile", "lab", "--", "sleep",
        "0.4",
    )  # fmt: skip
    assert "above idle" in done.stdout
    assert "WARN lab: rapl package" in done.stdout
    assert re.search(r"a window of [0-9.]+ s; lab: 6 s", done.stdout)


def test_what_is_missing_above_idle_has_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    busy = EnergyReading(
        "system", "plug", "measured", 100.0, 1000.0, 10.0, 1.0, 1.0, 10, 0, True, ()
    )
    idle = replace(
        busy, power_w=None, energy_j=None, uncertainty_j=None, valid=False, reasons=("asleep",)
    )
    _print_breakdown(Recording(10.0, 0, False, False, (busy,), (idle,), 10.0, (), (), None))
    lines = capsys.readouterr().out.splitlines()
    row = next(k for k, line in enumerate(lines) if line.startswith("system"))
    assert lines[row].split() == ["system", "-", "100.00", "±", "1.00", "-"]
    assert lines[row + 1].split() == ["idle:", "asleep"]


def test_ctrl_c_ends_the_command_and_keeps_the_measurement(rapl: str) -> None:
    child = subprocess.Popen(
        [sys.executable, "-m", "eeio", "record", "power", "--meter", rapl, "--format", "json", "--",
         sys.executable, "-c", "import time; print('up', flush=True); time.sleep(60)"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        assert child.stderr is not None
        assert child.stderr.readline() == "up\n"
        threading.Event().wait(0.3)
        os.killpg(child.pid, signal.SIGINT)
        output, _ = child.communicate(timeout=PATIENCE_S)
    finally:
        child.kill()
    assert child.returncode == 130
    assert json.loads(output)["exit_code"] != 0
    assert json.loads(output)["readings"][0]["valid"]


def test_sigterm_ends_the_command_too(rapl: str, tmp_path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-m", "eeio", "record", "power", "--meter", rapl, "--",
         sys.executable, "-c", "import os, time; print(os.getpid(), flush=True); time.sleep(60)"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    try:
        assert child.stdout is not None
        command = Path("/proc") / child.stdout.readline().strip()
        assert alive(command)
        child.terminate()
        # Not until its output ends: the command may hold that.
        child.wait(PATIENCE_S)
    finally:
        child.kill()
    left = alive(command)
    if left:
        os.kill(int(command.name), signal.SIGKILL)
    assert not left, "nobody measures it any more"
    assert child.returncode == 143
    assert not list(tmp_path.glob("eeio-*"))


def test_recording_needs_no_shell(tmp_path: Path) -> None:
    meter = ScriptedMeter([COUNTER], lambda: [100.0 * time.monotonic()])
    marker = tmp_path / "made"
    found = record(["sleep", "0.2", ";", "touch", str(marker)], [meter], tmp_path / "s.gz")
    assert found.exit_code == 1, "sleep takes no such word"
    assert not marker.exists()
    found = record(["sleep", "0.2"], [meter], tmp_path / "s1.gz")
    assert found.exit_code == 0
    # A busy machine may delay the time stamp of a reading by some milliseconds of 0.2 s.
    assert found.readings[0].power_w == pytest.approx(100.0, rel=0.3)
    with pytest.raises(PowerError, match="no measurement was made"):
        record([str(tmp_path / "none")], [meter], tmp_path / "s2.gz")


# --- list, watch -------------------------------------------------------------------------------


def test_list(eeio: Any) -> None:
    body = eeio.json("meter", "list")
    assert body["schema_version"] == 2
    assert {m["spec"].partition(":")[0] for m in body["meters"]} == set(meter_names())
    for meter in body["meters"]:
        assert meter["available"] or (meter["reason"] and meter["remedy"])
    (model,) = (meter for meter in body["meters"] if meter["spec"] == "modelled")
    assert model["contents"]["system"]["leaves_out"] == ["drives"]
    done = eeio("meter", "list")
    assert all(name in done.stdout for name in meter_names())
    assert "system: processor, memory, gpu, board, network, fans, supply; without drives" in (
        done.stdout
    )


def test_watch_shows_power(eeio: Any, rapl: str) -> None:
    done = eeio("meter", "watch", "--meter", rapl, "--interval", "0.3", "--count", "2")
    lines = done.stdout.splitlines()
    assert len(lines) == 4
    assert all(" W" in line and "rapl" in line for line in lines)


# --- calibrate ---------------------------------------------------------------------------------


def pulses_from(start_s: float) -> list[Pulse]:
    pulses, now_s = [], start_s
    for loaded_s, idle_s in pulse_lengths_s(10):
        now_s += idle_s
        pulses.append(Pulse(now_s, now_s + loaded_s))
        now_s += loaded_s
    return pulses


def log_of(
    pulses: Sequence[Pulse], period_s: float, ahead_s: float
) -> tuple[list[float], list[float]]:
    """What an averaging meter whose clock is ahead logs around the pulses."""

    def loaded_s(start_s: float, end_s: float) -> float:
        return sum(max(0.0, min(p.end_s, end_s) - max(p.start_s, start_s)) for p in pulses)

    first_s = pulses[0].start_s - 100.0
    count = int((pulses[-1].end_s + 100.0 - first_s) / period_s)
    ends = [first_s + k * period_s for k in range(1, count)]
    power_w = [60.0 + 40.0 * loaded_s(t - period_s, t) / period_s for t in ends]
    return [t + ahead_s for t in ends], power_w


@pytest.mark.parametrize("period_s", [0.1, 1.0, 2.0])
@pytest.mark.parametrize("ahead_s", [-41.3, 0.0, 7.77, 55.5])
def test_the_offset_of_a_log_is_found_within_what_is_stated(
    period_s: float, ahead_s: float
) -> None:
    pulses = pulses_from(1000.0)
    times_s, power_w = log_of(pulses, period_s, ahead_s)
    found = find_offset(times_s, power_w, pulses)
    assert abs(found.offset_s - ahead_s) <= found.uncertainty_s + 1e-9
    assert 20.0 < found.contrast_w <= 40.0 + 1e-6, "a slow meter smears the pulses"


def test_pulses_that_are_not_in_the_log_are_reported() -> None:
    pulses = pulses_from(1000.0)
    times_s, power_w = log_of(pulses, 1.0, 3600.0)
    with pytest.raises(PowerError, match="does not show the load pulses within 60 s"):
        find_offset(times_s, power_w, pulses)
    with pytest.raises(PowerError, match="three readings"):
        find_offset([1.0], [1.0], pulses)


@pytest.mark.parametrize("share", [0.1, 0.2, 0.4, 0.8])
@pytest.mark.parametrize("from_the_end", [False, True])
@pytest.mark.parametrize("ahead_s", [-20.0, 0.0, 13.7])
def test_a_log_of_some_of_the_pulses_gives_no_offset(
    share: float, from_the_end: bool, ahead_s: float
) -> None:
    pulses = pulses_from(1000.0)
    times_s, values = log_of(pulses, 1.0, ahead_s)
    length_s = pulses[-1].end_s - pulses[0].start_s
    if from_the_end:
        first = bisect_left(times_s, pulses[-1].end_s + ahead_s - share * length_s)
        times_s, values = times_s[first:], values[first:]
    else:
        last = bisect_left(times_s, pulses[0].start_s + ahead_s + share * length_s)
        times_s, values = times_s[:last], values[:last]
    with pytest.raises(PowerError, match="does it cover"):
        find_offset(times_s, values, pulses)


def test_pulses_load_the_machine_and_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eeio_power.alignment.pulse_lengths_s", lambda count: [(0.2, 0.1)] * count)
    monkeypatch.setattr("eeio_power.alignment.SHORTEST_S", 0.01)
    before = os.times()
    pulses = make_pulses(2, time.monotonic, workers=1)
    after = os.times()
    assert [round(p.end_s - p.start_s, 1) >= 0.2 for p in pulses] == [True, True]
    assert pulses[1].start_s > pulses[0].end_s
    assert after.children_user > before.children_user, "the workers worked, and were waited for"


def test_no_energy_of_a_command_whose_end_eeio_did_not_see(tmp_path: Path) -> None:
    """Stopped from 2 s to 8 s: 7.8 s and 1183 J of a command of 6 s, at a stated 5 %."""
    # What continues a stopped process; a stop would stop the test.
    continued = ["sh", "-c", "kill -CONT $PPID"]
    power = Channel("power", "system", "power_w")
    meter = ScriptedMeter([power], lambda: [100.0], native_period_s=0.01)
    recording = record(continued, [meter], tmp_path / "a.csv.gz")
    (reading,) = recording.readings
    assert not reading.valid and reading.energy_j is None
    assert STOPPED in reading.reasons
    (reading,) = record(["true"], [meter], tmp_path / "b.csv.gz").readings
    assert STOPPED not in reading.reasons


def test_the_load_ends_with_a_calibration_that_is_killed() -> None:
    code = (
        "import os, threading\n"
        "from eeio_power import alignment\n"
        "with alignment.loading(2) as processes:\n"
        "    print(*(p.pid for p in processes), flush=True)\n"
        "    threading.Event().wait()\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        workers = [Path(f"/proc/{pid}") for pid in child.stdout.readline().split()]
        assert len(workers) == 2 and all(worker.exists() for worker in workers)
    finally:
        child.kill()
        child.wait()
    deadline_s = time.monotonic() + PATIENCE_S
    while any(map(alive, workers)) and time.monotonic() < deadline_s:
        threading.Event().wait(0.01)
    left = [worker for worker in workers if alive(worker)]
    for worker in left:
        os.kill(int(worker.name), signal.SIGKILL)
    assert left == []


def alive(process: Path) -> bool:
    try:
        # Where nobody reaps orphans a dead one stays as a zombie.
        return (process / "stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def test_calibrate_from_saved_pulses(eeio: Any, tmp_path: Path) -> None:
    pulses = pulses_from(time.time() - 200.0)
    (tmp_path / "pulses.json").write_text(
        json.dumps({"schema_version": 1, "pulses_unix_s": [[p.start_s, p.end_s] for p in pulses]})
    )
    times_s, power_w = log_of(pulses, 0.5, 12.34)
    rows = "".join(
        f"{datetime.fromtimestamp(t, UTC).isoformat()};{w:.2f}\n".replace(".", ",")
        for t, w in zip(times_s, power_w, strict=True)
    )
    (tmp_path / "log.csv").write_text(f"Zeit;Leistung\n{rows}")
    done = eeio(
        "meter", "calibrate", "--pulses", str(tmp_path / "pulses.json"), "--meter",
        f"csv:{tmp_path / 'log.csv'},map=time:Zeit+power_w:Leistung",
    )  # fmt: skip
    found = float(done.stdout.splitlines()[-1].removeprefix("offset_s="))
    assert found == pytest.approx(12.34, abs=0.25)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name a live meter"),
        (["--meter", "modelled"], "has no delay to measure"),
        (["--save", "/nowhere/pulses.json"], "--save /nowhere/pulses.json: No such file"),
        (["--pulses", "/nowhere", "--meter", "csv:x,map=time:T+power_w:W"], "no pulses"),
    ],
)
def test_calibrate_rejects(eeio: Any, arguments: list[str], message: str) -> None:
    assert message in eeio("meter", "calibrate", *arguments, code=2).stderr


# --- serve -------------------------------------------------------------------------------------


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_energy_adds_up_over_pages_and_what_was_not_observed_is_reported(tmp_path: Path) -> None:
    clock = Clock()
    answers = [True]

    def answer() -> list[float | None]:
        return [50.0 * clock.now_s] if answers[0] else [None]

    meter = ScriptedMeter([COUNTER], answer, native_period_s=0.001)
    with Sampler([meter], tmp_path / "s.gz", rate_hz=1e-3, clock=clock) as sampler:
        totals = Totals(sampler, clock)
        for _ in range(3):
            clock.now_s += 2.0
            page = totals.collect()
        labels = '{meter="scripted",domain="package",kind="measured"}'
        assert f"eeio_power_watts{labels} 50.0" in page
        assert energy_of(page) == pytest.approx(300.0)
        answers[0] = False
        clock.now_s += 2.0
        page = totals.collect()
        assert energy_of(page) == pytest.approx(300.0)
        assert f"eeio_power_watts{labels}" not in page, "the power since the page before is unknown"
        clock.now_s += GIVE_UP_S
        page = totals.collect()
    assert f"eeio_power_watts{labels}" not in page, "no value is not a value"
    assert f"eeio_unseen_seconds_total{labels} {GIVE_UP_S + 2.0}" in page
    assert 'eeio_meter_failed_reads_total{meter="scripted"} 2.0' in page


def energy_of(page: str) -> float:
    (line,) = [line for line in page.splitlines() if line.startswith("eeio_energy_joules_total{")]
    return float(line.rpartition(" ")[2])


def test_the_page_is_served_on_loopback_alone(tmp_path: Path) -> None:
    meter = ScriptedMeter([COUNTER], lambda: [100.0 * time.monotonic()])
    with Sampler([meter], tmp_path / "s.gz") as sampler:
        totals = Totals(sampler)
        for address in ("0.0.0.0", "192.0.2.1", "localhost", "::", ""):
            with pytest.raises(PowerError, match="loopback only"):
                server(totals, address, 0)
        with server(totals, port=0) as http:
            threading.Thread(target=http.serve_forever, daemon=True).start()
            url = f"http://127.0.0.1:{http.server_address[1]}"
            with urllib.request.urlopen(f"{url}/metrics", timeout=PATIENCE_S) as page:
                text = page.read().decode()
                assert page.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            assert "# TYPE eeio_energy_joules_total counter" in text
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(f"{url}/", timeout=PATIENCE_S)
            with pytest.raises(PowerError, match="choose another --port"):
                server(totals, port=http.server_address[1])
            http.shutdown()


def test_slow_and_broken_connections_end_without_a_word(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    meter = ScriptedMeter([COUNTER], lambda: [100.0 * time.monotonic()])
    with (
        Sampler([meter], tmp_path / "s.gz") as sampler,
        server(Totals(sampler), port=0, connection_s=0.3) as http,
    ):
        threading.Thread(target=http.serve_forever, daemon=True).start()
        address = ("127.0.0.1", int(http.server_address[1]))
        with socket.create_connection(address, timeout=PATIENCE_S) as broken:
            broken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            broken.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        with socket.create_connection(address, timeout=PATIENCE_S) as slow:
            # A byte now and then earns no new patience: the server hangs up.
            slow.settimeout(0.02)
            ended = False
            for byte in b"GET /" + b"x" * 10_000:
                try:
                    slow.sendall(bytes([byte]))
                    ended = slow.recv(1) == b""
                except TimeoutError:
                    continue
                except OSError:
                    ended = True
                if ended:
                    break
            assert ended
        http.shutdown()
    assert "Traceback" not in capfd.readouterr().err


def test_a_port_that_is_none_is_rejected(eeio: Any, rapl: str) -> None:
    done = eeio("meter", "serve", "--meter", rapl, "--port", "99999", code=2)
    assert "port 99999: a port is a number from 0 to 65535" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_sampler_that_never_ends_keeps_a_bounded_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eeio_power.sampler.FLUSH_PERIOD_S", 0.005)
    clock = Clock()
    meter = ScriptedMeter([COUNTER], lambda: [50.0 * clock.now_s], native_period_s=0.001)
    with Sampler([meter], tmp_path / "s.gz", rate_hz=1e-3, clock=clock, keep_s=10.0) as sampler:
        deadline_s = time.monotonic() + PATIENCE_S
        kept = steps = 0
        # The stream takes what is new in its own time; only what it has taken is forgotten.
        while (steps < 100 or kept > 14) and time.monotonic() < deadline_s:
            steps += 1
            clock.now_s += 1.0
            (reading,) = sampler.energy(clock.now_s - 5.0, clock.now_s)
            kept = len(sampler.samples().meters[0].times_s)
            threading.Event().wait(0.002)
        assert reading.power_w == pytest.approx(50.0)
        assert kept <= 14
    times_s = load(tmp_path / "s.gz").meters[0].times_s
    assert len(times_s) >= steps, "the file has everything"
    assert all(math.isfinite(t) for t in times_s)


def test_a_meter_is_opened_and_its_choice_is_shown(home: Path, eeio: Eeio) -> None:
    """A part beside its sum would count twice: which of them are added is what one must see."""
    hwmon = FakeHwmon(home / "hwmon")
    for pin_w in (60, 90):
        hwmon.add_chip(
            "cffps1",
            {"in1_label": "vin", "in1_input": 230_000, "power1_label": "pin",
             "power1_input": pin_w * 1_000_000, "power2_label": "pout1",
             "power2_input": (pin_w - 5) * 1_000_000},
        )  # fmt: skip
    spec = f"hwmon,root={hwmon.root}"
    (probed,) = eeio.json("meter", "list", "--meter", spec)["probed"]
    added = [(c["value"], c["added"]) for c in probed["channels"]]
    assert sorted(added) == [(55.0, False), (60.0, True), (85.0, False), (90.0, True)]
    output = eeio("meter", "list", "--meter", spec).stdout
    assert "system, 60 W, added" in output and "not added" in output
    rejected = eeio("meter", "list", "--meter", f"hwmon,root={home / 'nowhere'}", code=2)
    assert "nowhere" in rejected.stderr
