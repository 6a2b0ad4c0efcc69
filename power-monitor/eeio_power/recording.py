"""The energy of one command: implementation and output of `eeio record power`."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from eeio_power import idleness
from eeio_power.errors import PowerError
from eeio_power.meters import Meter
from eeio_power.reading import EnergyReading
from eeio_power.sampler import MeterRates, Sampler
from eeio_power.samples import MeterInfo, of_unknown_delay
from eeio_power.suspension import STOPPED, Stops, invalid

SCHEMA_VERSION = 1

# As a shell has it: a command that signal N ended.
SIGNAL_BASE = 128

# How long a command that ran out of time has to end by itself.
_POLL_S = 0.05
GRACE_S = 5.0


@dataclass(frozen=True)
class Recording:
    """One command with its time and energy."""

    duration_s: float
    exit_code: int
    """The command's; 128 + N if signal N ended it."""
    timed_out: bool
    interrupted: bool
    readings: tuple[EnergyReading, ...]
    idle: tuple[EnergyReading, ...]
    """The time before the command; empty if none was requested."""
    idle_s: float
    infos: tuple[MeterInfo, ...]
    rates: tuple[MeterRates, ...]
    write_error: str | None


def record(
    command: Sequence[str],
    meters: Sequence[Meter],
    samples: Path,
    *,
    rate_hz: float = 10.0,
    idle_s: float = 0.0,
    timeout_s: float | None = None,
    stdout: IO[Any] | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Recording:
    """Run the command without a shell, and integrate from its start to its end. `say` receives a
    message if the idle time is measured again.

    Raises PowerError if it cannot be started; whatever it does afterwards is a result.
    """
    with Stops() as stops, Sampler(meters, samples, rate_hz) as sampler:
        baseline = None
        if idle_s > 0.0:
            baseline = idleness.wait(idle_s, say=say)
        start_s = time.monotonic()
        try:
            process = subprocess.Popen(list(command), stdout=stdout)
        except OSError as error:
            raise PowerError(f"{command[0]}: {error.strerror}; no measurement was made") from error
        try:
            timed_out, interrupted = _wait(process, timeout_s)
        except BaseException:
            # It is no longer measured, and must not run during the next measurement.
            _end(process)
            raise
        end_s = time.monotonic()
        readings = sampler.energy(start_s, end_s)
        if stops.count:
            readings = invalid(readings, STOPPED)
        idle: tuple[EnergyReading, ...] = ()
        if baseline is not None:
            idle = baseline.readings(sampler.energy(baseline.start_s, baseline.end_s))
        infos = tuple(part.info for part in sampler.samples().meters)
        rates = tuple(sampler.rates())
    code = process.returncode
    exit_code = SIGNAL_BASE - code
    if code >= 0:
        exit_code = code
    return Recording(
        duration_s=end_s - start_s,
        exit_code=exit_code,
        timed_out=timed_out,
        interrupted=interrupted,
        readings=tuple(readings),
        idle=idle,
        idle_s=idle_s,
        infos=infos,
        rates=rates,
        write_error=sampler.write_error,
    )


def to_json(recording: Recording) -> dict[str, Any]:
    """The contract; a field is only ever added, with a new `schema_version` if one changes."""
    return {
        "schema_version": SCHEMA_VERSION,
        "duration_s": recording.duration_s,
        "exit_code": recording.exit_code,
        "readings": list(map(reading_json, recording.readings)),
        "unknown_delays": list(of_unknown_delay(recording.infos)),
    }


def reading_json(reading: EnergyReading) -> dict[str, Any]:
    """The fields of the contract, in its order."""
    fields = reading.to_json()
    return {key: fields[key] for key in READING_FIELDS}


READING_FIELDS = (
    "meter",
    "domain",
    "kind",
    "power_w",
    "energy_j",
    "uncertainty_j",
    "coverage",
    "largest_gap_s",
    "samples",
    "lost",
    "valid",
    "reasons",
    "includes",
    "leaves_out",
    "doubtful",
    "rule",
)
# Fields that recordings of the first versions lack.
LATER_FIELDS = ("includes", "leaves_out", "doubtful", "rule")


def _wait(process: "subprocess.Popen[Any]", timeout_s: float | None) -> tuple[bool, bool]:
    """(ran out of time, was interrupted from the keyboard)."""
    interrupted = False
    deadline_s = None
    if timeout_s is not None:
        deadline_s = time.monotonic() + timeout_s
    while True:
        try:
            if not _has_ended(process.pid, deadline_s):
                break
            process.wait()
            return False, interrupted
        except KeyboardInterrupt:
            # The terminal signals the command too: its end is the end of the measurement.
            interrupted = True
    _end(process)
    return True, interrupted


def _end(process: "subprocess.Popen[Any]") -> None:
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(GRACE_S)
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
        process.wait()


def _has_ended(pid: int, deadline_s: float | None) -> bool:
    """Waits until a child has ended or the time is out, and leaves its exit code to be fetched: a
    Ctrl-C between the kernel's answer and Popen's note of it would lose the code, and Popen says 0
    then."""
    flags = os.WEXITED | os.WNOWAIT
    if deadline_s is None:
        os.waitid(os.P_PID, pid, flags)
        return True
    while os.waitid(os.P_PID, pid, flags | os.WNOHANG) is None:
        left_s = deadline_s - time.monotonic()
        if left_s <= 0:
            return False
        time.sleep(min(left_s, _POLL_S))
    return True
