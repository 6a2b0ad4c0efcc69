"""Campaigns that share their machine (`--share-machine`), and overlaps of their runs in time.

Each campaign has a file in the folders of locks, locked while it lives, with the times at which it
began and ended (CLOCK_MONOTONIC, one clock for the machine). Energies of a run that overlapped
another campaign are not its own, and so are missing, except those of a drive's own meter.
"""

import fcntl
import os
import re
import stat
import time
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from eeio.machine.lock import lock_folders
from eeio.machine.owner import NAME, this_process
from eeio.record.run import EnergyReading, Phase, Run

_PREFIX = "eeio-sharing-"
_CONTENT = re.compile(rb"([0-9]{1,12}\.[0-9]{6}) ([0-9]{1,12}\.[0-9]{6}|-)\n")
# Longer than any run.
_FORGET_S = 7 * 86400.0


@dataclass(frozen=True)
class _Other:
    """Another campaign that shares the machine; `end_s` is None while it lives."""

    process: str
    start_s: float
    end_s: float | None


class Sharing:
    """One campaign's presence, and those of others."""

    def __init__(self) -> None:
        self._name = this_process(os.getpid()).name
        self._files: list[tuple[Path, int]] = []
        self._start_s = time.monotonic()
        self._dead: dict[str, float] = {}

    def __enter__(self) -> "Sharing":
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        for folder in lock_folders():
            path = folder / f"{_PREFIX}{self._name}"
            with suppress(FileNotFoundError):
                path.unlink()
            descriptor = os.open(path, flags, 0o644)
            os.fchmod(descriptor, 0o644)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._files.append((path, descriptor))
        self._write("-")
        return self

    def __exit__(self, *error: object) -> None:
        # The files stay: others have runs that began before this end.
        self._write(f"{time.monotonic():.6f}")
        for _, descriptor in self._files:
            os.close(descriptor)

    def begin(self) -> None:
        """Before a run: notes which campaigns were killed, and removes old files."""
        now_s = time.monotonic()
        self._dead = {
            other.process: self._dead.get(other.process, now_s)
            for other in self._others()
            if other.end_s is None and not self._is_alive(other.process)
        }

    def overlapping(self, start_s: float, end_s: float) -> list[str]:
        """Processes of campaigns that ran between two monotonic times."""
        return sorted(
            {
                other.process.partition("-")[0]
                for other in self._others()
                if other.start_s < end_s
                and (other.end_s or self._dead.get(other.process, end_s)) > start_s
            }
        )

    def _write(self, end: str) -> None:
        for _, descriptor in self._files:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{self._start_s:.6f} {end}\n".encode(), 0)

    def _paths(self) -> Iterable[tuple[Path, str]]:
        for folder in lock_folders():
            for path in folder.glob(f"{_PREFIX}*"):
                name = path.name.removeprefix(_PREFIX)
                if NAME.fullmatch(name) and name != self._name:
                    yield path, name

    def _others(self) -> Iterable[_Other]:
        boot = self._name.split("-")[2]
        for path, name in self._paths():
            content = _read(path)
            # Times of another boot cannot be compared.
            if content is None or name.split("-")[2] != boot:
                continue
            start_s, end = float(content[0]), content[1]
            end_s = None
            if end != "-":
                end_s = float(end)
            if end_s is not None and time.monotonic() - end_s > _FORGET_S:
                with suppress(OSError):
                    path.unlink()
                continue
            yield _Other(name, start_s, end_s)

    def _is_alive(self, process: str) -> bool:
        for path, name in self._paths():
            if name != process:
                continue
            with ExitStack() as stack, suppress(OSError):
                descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
                stack.callback(os.close, descriptor)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    return True
        return False


def _read(path: Path) -> tuple[str, str] | None:
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return None
            match = _CONTENT.fullmatch(os.read(descriptor, 100))
        finally:
            os.close(descriptor)
        if match is not None:
            return match[1].decode(), match[2].decode()
    return None


def why_shared(processes: Iterable[str]) -> str:
    return (
        f"another campaign (process {', '.join(processes)}) ran on this machine at the same time "
        "(--share-machine)"
    )


def without_energy(run: Run, why: str) -> Run:
    """The run without energies of parts that other campaigns used as well."""
    return replace(run, phases=tuple(_without_energy(phase, why) for phase in run.phases))


def _without_energy(phase: Phase, why: str) -> Phase:
    durable = phase.until_durable
    if durable is not None:
        durable = replace(durable, energy=missing(durable.energy, why))
    return replace(phase, energy=missing(phase.energy, why), until_durable=durable)


def missing(readings: Iterable[EnergyReading], why: str) -> tuple[EnergyReading, ...]:
    """The readings with this reason for not having a value; a drive's own meter keeps its value."""
    return tuple(
        reading
        if reading.domain == "device"
        else replace(
            reading,
            power_w=None,
            energy_j=None,
            uncertainty_j=None,
            valid=False,
            reasons=(*reading.reasons, why),
        )
        for reading in readings
    )
