"""`eeio.energy`: the energy of a block of a Python program.

    with eeio.energy() as reading:
        work()
    print(reading.energy_j, reading.uncertainty_j, reading.reasons)

The window, its uncertainty and its doubts are those of `eeio record power`. All blocks of a process
that name the same meters share one sampler, in threads of its own: opening a meter takes longer
than many blocks. It reads until the process ends.
"""

import atexit
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from types import TracebackType
from typing import Self

from eeio.analysis.selection import is_powered, main_source, repetitions_by_source
from eeio.errors import RejectedError
from eeio.record.energy_reading import DOMAINS, EnergyReading
from eeio.record.reasons import unknown_delays
from eeio.record.windows import known
from eeio_power.errors import PowerError
from eeio_power.meters import Meter, close_meters
from eeio_power.monitor import COUNTER_RATE_HZ, SAMPLE_RATE_HZ, open_source
from eeio_power.sampler import NOWHERE, Sampler
from eeio_power.samples import MeterInfo, of_unknown_delay

KEPT_S = 86_400.0
"""Samples stay in memory so long. A block that lasts longer has a gap at its start."""


def energy(meter: str | Sequence[str] = "auto") -> "BlockEnergy":
    """A context manager that measures the energy of its block.

    `meter` is one SPEC of `eeio record power --meter`, or several. Blocks may be nested, and run in
    several threads; a block that raises has its energy, too. Entering raises RejectedError for a
    named meter that cannot be read. Without any meter the energy is missing, with the reason.
    """
    if isinstance(meter, str):
        return BlockEnergy((meter,))
    return BlockEnergy(tuple(meter))


class BlockEnergy:
    """The energy of one block, known after its end.

    The first use of a reading waits for meters whose readings are late. `readings` has one reading
    for each meter and domain. The other figures are those of the main source: the widest domain
    that was measured. They are None, with the reasons in `reasons`, if it is missing.
    """

    def __init__(self, specs: tuple[str, ...]) -> None:
        self._specs = specs
        self._shared: _SharedSampler | None = None
        self.start_s: float | None = None
        """CLOCK_MONOTONIC, s."""
        self.end_s: float | None = None

    def __enter__(self) -> Self:
        if self.start_s is not None:
            raise RejectedError("eeio.energy: a block was measured with it before; call it again")
        self._shared = _shared_sampler(self._specs)
        self.start_s = self._shared.begin()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._shared is not None
        self.end_s = self._shared.end()

    @property
    def seconds(self) -> float | None:
        """The duration of the block, s."""
        if self.start_s is None or self.end_s is None:
            return None
        return self.end_s - self.start_s

    @property
    def readings(self) -> tuple[EnergyReading, ...]:
        """One for each meter and domain; none before the end of the block."""
        if self.end_s is None:
            return ()
        return self._readings

    @cached_property
    def _readings(self) -> tuple[EnergyReading, ...]:
        assert self._shared is not None and self.start_s is not None and self.end_s is not None
        return self._shared.energy(self.start_s, self.end_s)

    @property
    def main(self) -> EnergyReading | None:
        """The reading of the main source; an estimate never is."""
        repetitions = repetitions_by_source([self.readings], is_powered)
        source = main_source(repetitions, DOMAINS)
        for reading in self.readings:
            if reading.key == source:
                return reading
        return None

    @property
    def energy_j(self) -> float | None:
        """J."""
        if self.main is None:
            return None
        return self.main.energy_j

    @property
    def uncertainty_j(self) -> float | None:
        """Of `energy_j`, J (docs/explanation/energy-and-uncertainty.md)."""
        if self.main is None:
            return None
        return self.main.uncertainty_j

    @property
    def power_w(self) -> float | None:
        """Mean power of the block, W."""
        if self.main is None:
            return None
        return self.main.power_w

    @property
    def reasons(self) -> tuple[str, ...]:
        """Remarks on the energy, or why it is missing."""
        if self.main is not None:
            assert self._shared is not None
            return (*self.main.reasons, *self._shared.remarks(self.main.meter))
        if self.start_s is None:
            return ("the block has not begun",)
        if self.end_s is None:
            return ("the block has not ended",)
        assert self._shared is not None
        if self._shared.missing is not None:
            return (self._shared.missing,)
        every = [reason for reading in self.readings for reason in reading.reasons]
        return tuple(dict.fromkeys(every)) or ("no meter has a measured power",)


@dataclass
class _SharedSampler:
    """The sampler of all blocks that name the same meters; `missing` is why there is none."""

    meters: tuple[Meter, ...]
    sampler: Sampler | None
    missing: str | None
    lock: threading.Lock
    running: int = 0
    """Blocks that have begun and not ended."""

    def begin(self) -> float:
        """Reads all meters, and counters often until the end; returns the start of the block."""
        if self.sampler is None:
            return time.monotonic()
        with self.lock:
            self.running += 1
            if self.running == 1:
                self.sampler.read_counters(COUNTER_RATE_HZ)
        self.sampler.sample(time.monotonic())
        return time.monotonic()

    def end(self) -> float:
        """The end of a block."""
        end_s = time.monotonic()
        if self.sampler is None:
            return end_s
        self.sampler.sample(end_s)
        with self.lock:
            self.running -= 1
            if self.running == 0:
                self.sampler.read_counters(None)
        return end_s

    def energy(self, start_s: float, end_s: float) -> tuple[EnergyReading, ...]:
        if self.sampler is None:
            return ()
        readings = self.sampler.energy(start_s, end_s)
        return tuple(map(known, readings))

    def remarks(self, meter: str) -> list[str]:
        """What is unknown of a meter."""
        infos: Sequence[MeterInfo] = ()
        if self.sampler is not None:
            infos = self.sampler.infos
        return unknown_delays([name for name in of_unknown_delay(infos) if name == meter])

    def close(self) -> None:
        if self.sampler is not None:
            self.sampler.stop()
        close_meters(self.meters)


_samplers: dict[tuple[str, ...], _SharedSampler] = {}
_opening = threading.Lock()


def _shared_sampler(specs: tuple[str, ...]) -> _SharedSampler:
    """Opens the meters at the first use in this process. Raises RejectedError."""
    with _opening:
        if specs not in _samplers:
            _samplers[specs] = _opened(specs)
        return _samplers[specs]


def _opened(specs: tuple[str, ...]) -> _SharedSampler:
    try:
        source = open_source(specs, estimates_allowed=False)
    except PowerError as error:
        raise RejectedError(str(error)) from error
    if not source.meters:
        return _SharedSampler((), None, source.reason, threading.Lock())
    sampler = Sampler(source.meters, NOWHERE, SAMPLE_RATE_HZ, keep_s=KEPT_S)
    try:
        sampler.start()
    except PowerError as error:
        close_meters(source.meters)
        raise RejectedError(str(error)) from error
    return _SharedSampler(source.meters, sampler, None, threading.Lock())


def _close_all() -> None:
    for shared in _samplers.values():
        shared.close()
    _samplers.clear()


def _forget_parents() -> None:
    """A forked process has no thread that reads: it opens the meters again."""
    global _opening
    _samplers.clear()
    _opening = threading.Lock()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_forget_parents)
