"""A PowerSensor3 on a pseudo terminal. It is our own: its authors publish no emulator.

It is written from the firmware's protocol (release 1.6.1) as `eeio_power.meters.powersensor3`
describes it: commands R, S, T, X, I, V, and a stream of nine packets per sample set.

    with FakePowerSensor3(lambda time_s: (3.3, 12.0)) as board:
        open_meters([f"powersensor3:{board.path}"])

`stream(...)` gives the bytes of sample sets without a terminal.
"""

import os
import struct
import threading
import time
import tty
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

SET_US = 50
PATTERN_SETS = 512
"""Stamps of 50 µs repeat after so many sets."""
_TICK_S = 0.002
_MOST_BACKLOG = 1 << 17


@dataclass(frozen=True)
class FakePair:
    """A pair of sensors with an MLX10 and a divider."""

    name: str
    volts: float
    kind: str = "MLX10"
    vref_v: float = 1.65
    sensitivity: float = 0.12
    gain: float = 0.0877
    in_use: bool = True

    def records(self) -> bytes:
        current = (self.kind.encode(), self.name.encode(), self.vref_v, self.sensitivity)
        voltage = (b"VOLT", self.name.encode(), 0.0, self.gain)
        return b"".join(struct.pack("<16s16sffB", *s, self.in_use) for s in (current, voltage))

    def levels(self, watts: float) -> tuple[float, float]:
        """Levels of the current and the voltage sensor, with fractions."""
        voltage = self.volts * self.gain * 1023 / 3.3
        # The voltage has whole levels, and the current makes up for them.
        volts = 3.3 * round(voltage) / 1023 / self.gain
        amperes = watts / volts if volts else 0.0
        return (self.vref_v + amperes * self.sensitivity) * 1023 / 3.3, round(voltage)


UNUSED = FakePair("", 0.0, "", 0.0, 1.0, 1.0, in_use=False)
NVME = (FakePair("NVMe", 3.3), FakePair("12V", 12.0), UNUSED, UNUSED)


def sample_set(stamp_us: int, levels: Sequence[int], marker: bool = False) -> bytes:
    """The 18 bytes of one sample set."""
    packets = [(7, True, stamp_us % 1024)]
    packets += [(sensor, marker and sensor == 0, level) for sensor, level in enumerate(levels)]
    return b"".join(
        bytes((0x80 | sensor << 4 | value >> 6, m << 6 | value & 0x3F))
        for sensor, m, value in packets
    )


class Patterns:
    """Blocks of sample sets of constant power; the levels vary so that their mean is exact."""

    def __init__(self, pairs: Sequence[FakePair], set_us: int = SET_US) -> None:
        self._pairs = pairs
        self._set_us = set_us
        self._known: dict[tuple[float, ...], bytes] = {}

    def block(self, watts: tuple[float, ...]) -> bytes:
        if watts not in self._known:
            levels = [
                x for p, w in zip(self._pairs, self._all(watts), strict=True) for x in p.levels(w)
            ]
            self._known[watts] = b"".join(
                sample_set(
                    k * self._set_us,
                    [int(level * (k + 1) + 0.5) - int(level * k + 0.5) for level in levels],
                )
                for k in range(PATTERN_SETS)
            )
        return self._known[watts]

    def _all(self, watts: tuple[float, ...]) -> tuple[float, ...]:
        return (*watts, *[0.0] * (len(self._pairs) - len(watts)))

    def sets(self, first: int, last: int, watts: tuple[float, ...]) -> bytes:
        """The sets from `first` up to `last`, of constant power."""
        block, begin = self.block(watts), first % PATTERN_SETS
        length = last - first
        repeats = (begin + length) // PATTERN_SETS + 1
        return (block * repeats)[18 * begin : 18 * (begin + length)]


class FakePowerSensor3:
    """The board. `power_w` gives the watts of each pair in use at a time since S."""

    def __init__(
        self,
        power_w: Callable[[float], tuple[float, ...]] = lambda _: (2.5, 6.0),
        *,
        pairs: Sequence[FakePair] = NVME,
        version: bytes = b"F411-1.6.1\r\n",
        records: bytes | None = None,
        streams: bool = False,
        link: Path | None = None,
    ) -> None:
        self._power_w = power_w
        self._patterns = Patterns(pairs)
        self._version = version
        self._records = b"".join(p.records() for p in pairs) if records is None else records
        self._link = link
        self._streams = streams
        self._reading = 0
        self._sent = 0
        self.begun_s = time.monotonic()
        """When the stream began."""
        self.heard = b""
        self.overruns = 0
        """Bytes that nobody fetched in time."""
        self._backlog = b""
        self.lose = 0
        """Bytes of the stream to lose now."""
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._master = self._slave = -1
        self.path = ""

    def __enter__(self) -> Self:
        self.plug_in()
        return self

    def __exit__(self, *_: object) -> None:
        self.unplug()

    def plug_in(self) -> None:
        """Appear (again)."""
        self._master, self._slave = os.openpty()
        tty.setraw(self._master)
        tty.setraw(self._slave)
        os.set_blocking(self._master, False)
        self.path = os.ttyname(self._slave)
        if self._link is not None:
            self._link.unlink(missing_ok=True)
            self._link.symlink_to(self.path)
            self.path = str(self._link)
        self._backlog = b""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="fake-powersensor3", daemon=True)
        self._thread.start()

    def unplug(self) -> None:
        """Vanish: reads of the line fail."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
            self._streams = False
            if self._link is not None:
                self._link.unlink(missing_ok=True)
            os.close(self._slave)
            os.close(self._master)

    def reset(self) -> None:
        """As by its button: the stream ends."""
        self._streams = False

    def inject(self, data: bytes) -> None:
        """Other bytes on the line."""
        self._send(data)

    def _send(self, data: bytes) -> None:
        """A simulator that was not scheduled in time has more to send than a terminal takes at
        once, which a board has not: it is sent later."""
        self._backlog += data
        with suppress(BlockingIOError):
            while self._backlog:
                sent = os.write(self._master, self._backlog[:4096])
                self._backlog = self._backlog[sent:]
        if len(self._backlog) > _MOST_BACKLOG:
            self.overruns += len(self._backlog)
            self._backlog = b""

    def _run(self) -> None:
        while not self._stop.wait(_TICK_S):
            with suppress(OSError):  # none, or the line is not open
                for command in os.read(self._master, 4096):
                    self._answer(bytes((command,)))
            if self._streams:
                self._stream()
            elif self._backlog:
                self._send(b"")

    def _answer(self, command: bytes) -> None:
        self.heard += command
        if self._reading:
            # Any byte is the request for the next record.
            self._reading += 1
            self._send(self._record(self._reading - 1) if self._reading <= 8 else b"D")
            self._reading %= 9
        elif command == b"R":
            self._reading = 1
            self._send(self._record(0))
        elif command == b"S":
            self.begun_s, self._sent, self._streams = time.monotonic(), 0, True
        elif command in b"TX":
            self._streams, self._backlog = False, b""
            self._send(b"\xff\x3f\xff\x3f" if command == b"X" else b"")
        elif command == b"V":
            self._send(self._version)
        elif command == b"I" and not self._streams:
            self._send(self._patterns.sets(0, 1, self._power_w(0.0)))

    def _record(self, number: int) -> bytes:
        return self._records[41 * number : 41 * (number + 1)]

    def _stream(self) -> None:
        until = int((time.monotonic() - self.begun_s) * 1e6 / SET_US)
        data = b""
        while self._sent < until:
            # Power may change each millisecond.
            end = min(until, (self._sent // 20 + 1) * 20)
            watts = self._power_w(self._sent * SET_US / 1e6)
            data += self._patterns.sets(self._sent, end, watts)
            self._sent = end
        lose, self.lose = self.lose, 0
        self._send(data[lose:])
