"""The helper that asks ipmitool for the sampler, compiled with sanitizers."""

import math
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.eeio_power.bmc import machine_with_bmc
from tests.eeio_power.compiled import SANITIZERS, compiled, needs_compiler
from tests.eeio_power.one_meter import one_meter
from tests.executables import executable
from tests.simulators import FakeRapl
from tests.waiting import PATIENCE_S, until

from eeio_power import helper_process as reader_module
from eeio_power.errors import PowerError
from eeio_power.helper_process import QuestionReader
from eeio_power.meters import Meter, ipmi, open_meters
from eeio_power.sampler import Sampler
from eeio_power.sampling_loops import BatchLoop, MeterLoop

pytestmark = needs_compiler


@pytest.fixture(scope="module")
def helper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled("eeio-ipmi-reader", tmp_path_factory.mktemp("helper"), *SANITIZERS)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return machine_with_bmc(tmp_path, monkeypatch)


def opened(machine: Path, helper: Path | str, more: str = "") -> Meter:
    return one_meter(f"ipmi,period_s=0.02,reader={helper}{more}", machine)


def newest(sampler: Sampler) -> float:
    return sampler.samples().meters[0].values[0][-1]


def test_the_sampler_gets_the_energy_of_a_window(machine: Path, helper: Path) -> None:
    sampler = Sampler([opened(machine, helper)], machine / "s.gz", rate_hz=50.0)
    assert isinstance(sampler._loops[0], BatchLoop)
    with sampler:
        start_s = time.monotonic()
        assert not threading.Event().wait(0.5), "time must go by"
        end_s = time.monotonic()
        (reading,) = sampler.energy(start_s, end_s)
        times_s = sampler.samples().meters[0].times_s
    assert times_s[-1] >= end_s, "the window is clipped by a reading at its end"
    assert reading.valid and reading.power_w == pytest.approx(301.0)
    assert 10.0 < (sampler.rates()[0].achieved_hz or 0.0) < 60.0
    assert sampler.errors == {"ipmi": 0}


def test_the_sensors_of_a_bmc_without_dcmi_are_read(machine: Path, helper: Path) -> None:
    (machine / "watts").write_text("no")
    meter = opened(machine, helper, ",sensor=CPU1 Power")
    with Sampler([meter], machine / "s.gz", rate_hz=50.0) as sampler:
        until(lambda: len(sampler.samples().meters[0].times_s) > 2)
        assert newest(sampler) == 40.0


def test_one_ipmitool_serves_open_runs_and_reads(machine: Path, helper: Path) -> None:
    meter = opened(machine, helper)
    process = meter._shell._process  # type: ignore[attr-defined]
    for run in range(2):
        with Sampler([meter], machine / f"{run}.gz", rate_hz=50.0) as sampler:
            until(lambda sampler=sampler: len(sampler.samples().meters[0].times_s) > 2)  # type: ignore[misc]
        assert sampler.errors == {"ipmi": 0}
        assert meter.read() == [301.0]
    assert meter._shell._process is process  # type: ignore[attr-defined]
    meter.close()
    assert process.returncode is not None


@pytest.mark.parametrize(
    ("answer", "message"), [("garbage rubbish", "makes no sense: 'rubbish'"), ("off 3", "off")]
)
def test_what_makes_no_sense_is_missing(
    machine: Path, helper: Path, answer: str, message: str
) -> None:
    meter = opened(machine, helper)
    with Sampler([meter], machine / "s.gz", rate_hz=50.0) as sampler:
        (machine / "watts").write_text(answer)
        until(lambda: sampler.rates()[0].failed_reads > 1)
        assert message in (sampler.rates()[0].last_error or "")
        assert math.isnan(newest(sampler))
        (machine / "watts").write_text("87")
        until(lambda: newest(sampler) == 87.0)


@pytest.mark.parametrize(
    ("answer", "message"),
    [("hang", "did not answer in 2 s"), ("die", "ipmitool ended: Get Device ID")],
)
def test_a_bmc_that_hangs_or_dies_is_queried_again(
    machine: Path, helper: Path, answer: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader_module, "RESTART_PAUSE_S", 0.1)
    # The double of ipmitool needs a second to start on a busy machine.
    monkeypatch.setattr(ipmi, "ANSWER_S", 2.0)
    meter = opened(machine, helper)
    first = meter._shell._process  # type: ignore[attr-defined]
    with Sampler([meter], machine / "s.gz", rate_hz=50.0) as sampler:
        (machine / "watts").write_text(answer)
        until(lambda: message in (sampler.rates()[0].last_error or ""))
        (machine / "watts").write_text("303")
        assert first.poll() is not None, "it is out of step and must not be asked again"
        monkeypatch.setattr(ipmi, "ANSWER_S", PATIENCE_S)
        until(lambda: newest(sampler) == 303.0)


def test_a_helper_that_is_killed_takes_ipmitool_with_it(
    machine: Path, helper: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer may be half read: nobody may take the rest of it for another one's."""
    monkeypatch.setattr(reader_module, "RESTART_PAUSE_S", 0.1)
    meter = opened(machine, helper)
    with Sampler([meter], machine / "s.gz", rate_hz=50.0) as sampler:
        loop = sampler._loops[0]
        assert isinstance(loop, BatchLoop) and isinstance(loop._batches, QuestionReader)
        batches = loop._batches
        assert batches._process is not None
        os.kill(batches._process.pid, signal.SIGKILL)
        first = meter._shell._process  # type: ignore[attr-defined]
        until(lambda: "ended" in (sampler.rates()[0].last_error or ""))
        assert first.poll() is not None
        until(lambda: newest(sampler) == 301.0)


ABANDONED = """
import sys, time
from pathlib import Path
from eeio_power.meters import open_meters
from eeio_power.sampler import Sampler
(meter,) = open_meters([sys.argv[2]], Path(sys.argv[1]))
sampler = Sampler([meter], Path(sys.argv[1]) / "s.gz", rate_hz=50.0)
sampler.start()
print(meter._shell._process.pid, sampler._loops[0]._batches._process.pid, flush=True)
time.sleep(60)
"""


def test_nothing_is_left_when_eeio_is_killed(machine: Path, helper: Path) -> None:
    arguments = [str(machine), f"ipmi,period_s=0.02,reader={helper}"]
    environment = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-c", ABANDONED, *arguments], stdout=subprocess.PIPE, env=environment
    )
    assert process.stdout is not None
    others = [int(word) for word in process.stdout.readline().split()]
    process.kill()
    process.wait(PATIENCE_S)
    process.stdout.close()
    assert len(others) == 2
    until(lambda: not any(alive(pid) for pid in others))


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.root
@pytest.mark.parametrize("kind", ["ipmi", "rapl"])
def test_root_runs_no_helper_of_another_user(
    machine: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SUDO_UID", raising=False)
    FakeRapl(machine / "sys/class/powercap")
    ran = machine / "ran"
    helper = machine / "helper"
    executable(helper, f"#!/bin/sh\ntouch {ran}\n")
    os.chown(helper, 1000, 1000)
    with pytest.raises(PowerError, match=r"is not run as root: .* owned by user 1000"):
        open_meters([f"{kind},reader={helper}"], machine)
    assert not ran.exists()


def test_without_a_helper_the_meter_queries_by_itself(machine: Path) -> None:
    meter = one_meter("ipmi,reader=no", machine)
    assert isinstance(Sampler([meter], machine / "s.gz")._loops[0], MeterLoop)
    with pytest.raises(PowerError, match="cannot be run"):
        open_meters(["ipmi,reader=/nowhere/reader"], machine)
    # One that was found and does not work is left aside, though it was not asked for.
    broken = machine / "usr/local/libexec/eeio-ipmi-reader"
    executable(broken, "#!/bin/sh\nexit 1\n")
    assert isinstance(Sampler([one_meter("ipmi", machine)], machine / "t.gz")._loops[0], MeterLoop)


# --- the program -------------------------------------------------------------------------------


def exchanged(
    helper: Path, answer: bytes, question: str = "how much?"
) -> tuple[bytes, bytes, bytes]:
    """What it asks a peer that says `answer`, with %TOKEN for the token; its output, its words."""
    ask_read, ask_write = os.pipe()
    hear_read, hear_write = os.pipe()
    process = subprocess.Popen(
        [str(helper), "1000000", "2000", "2000", str(ask_write), str(hear_read), question],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        pass_fds=(ask_write, hear_read),
    )  # fmt: skip
    os.close(ask_write)
    os.close(hear_read)
    requested = os.read(ask_read, 4096)
    token = requested.split(b"raw ")[-1].split()[0] if requested else b""
    os.write(hear_write, answer.replace(b"%TOKEN", token))
    os.close(hear_write)
    out, stderr = process.communicate(timeout=PATIENCE_S)
    os.close(ask_read)
    return requested, out, stderr


def test_a_record_contains_both_times_and_the_output(helper: Path) -> None:
    before_ns = time.monotonic_ns()
    requested, out, stderr = exchanged(helper, b'301 W\nGiven netfn "%TOKEN" is invalid.\n')
    assert requested.startswith(b"how much?\nraw eeio-") and requested.endswith(b" 0\n")
    begun_ns, done_ns, length = struct.unpack_from("=qqq", out)
    assert before_ns <= begun_ns <= done_ns <= time.monotonic_ns()
    assert out[24:] == b'301 W\nGiven netfn "' and len(out) == 24 + length
    assert b"ipmitool" in stderr, "its second question finds nobody"


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [(b"", "ipmitool ended"), (b"x" * 5000, "exceeds the limit"), (b"301 W\n", "ended: 301 W")],
)
def test_an_answer_without_an_end_is_none(helper: Path, answer: bytes, complaint: str) -> None:
    _, out, stderr = exchanged(helper, answer)
    assert out == b"" and complaint in stderr.decode()


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("999", "1", "1", "3", "4", "q"),
        ("1000", "x", "1", "3", "4", "q"),
        ("1000", "1", "1", "3", "4", "a\nb"),
        ("1000", "1", "1", "3", "4", "q" * 300),
    ],
)
def test_arguments_that_do_not_fit(helper: Path, arguments: tuple[str, ...]) -> None:
    done = subprocess.run(
        [str(helper), *arguments], stdin=subprocess.DEVNULL, capture_output=True,
        timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, b"") and done.stderr
