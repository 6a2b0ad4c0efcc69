"""A Watts Up? on a pseudo terminal: answers, logs, loses records, sends NULs and old records.

    with FakeWattsUp(power_w=lambda t_s: 120.0) as meter:
        open_meters([f"wattsup:{meter.path}"])

`beat()` sends the next record, so that a test needs no waiting; `period_s` makes it send by itself.
"""

import os
import threading
import time
import tty
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Self

FIELDS = (
    "watts", "volts", "amps", "watt hrs", "cost", "mo. kWh", "mo. cost", "max watts", "max volts",
    "max amps", "min watts", "min volts", "min amps", "power factor", "duty cycle", "power cycle",
    "line freq", "volt-amps",
)  # fmt: skip

VERSION = b"#v,-,8,3,1,2004,10,29,55,2,23;\r\n"
STALE = b"77,2301,523,0,0,0;\r\n#d,-,18,9999,2301,"


def record(power_w: float) -> bytes:
    """A data record; two of the fields are not supplied."""
    tenths = round(power_w * 10)
    fields = [str(tenths), "2301", str(round(tenths / 2.3)), "12", "_", "_", *["0"] * 12]
    return f"#d,-,18,{','.join(fields)};\r\n".encode("ascii")


class FakeWattsUp:
    """The meter. `lost` are the numbers of records that never come (0 is the first one)."""

    def __init__(
        self,
        power_w: Callable[[float], float] = lambda _: 120.0,
        *,
        lost: Iterable[int] = (),
        stale: bytes = STALE,
        noise: bytes = b"\0\0",
        deaf_to: int = 0,
        link: Path | None = None,
        period_s: float | None = None,
    ) -> None:
        self._power_w = power_w
        self._lost = frozenset(lost)
        self._stale = stale
        self._noise = noise
        self._deaf_to = deaf_to
        self._link = link
        self._period_s = period_s
        self._beats = 0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._write_lock = threading.Lock()
        self.heard: list[str] = []
        """Commands, as they came."""
        self.logging = threading.Event()
        """Set while the meter sends records."""
        self._master = self._slave = -1
        self.path = ""

    def __enter__(self) -> Self:
        self.plug_in()
        return self

    def __exit__(self, *_: object) -> None:
        self.unplug()

    def plug_in(self) -> None:
        """Appear (again), with what a meter sends before anyone asks."""
        self._master, self._slave = os.openpty()
        tty.setraw(self._master)
        tty.setraw(self._slave)
        self.path = os.ttyname(self._slave)
        if self._link is not None:
            self._link.unlink(missing_ok=True)
            self._link.symlink_to(self.path)
            self.path = str(self._link)
        self.logging.clear()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="fake-wattsup", daemon=True)
        self._thread.start()

    def unplug(self) -> None:
        """Vanish: reads of the line fail."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
            if self._link is not None:
                self._link.unlink(missing_ok=True)
            os.close(self._slave)
            os.close(self._master)

    def beat(self) -> None:
        """Send the next record (or lose it)."""
        number, self._beats = self._beats, self._beats + 1
        if number not in self._lost:
            self.send(self._noise + record(self._power_w(float(number))))

    def send(self, data: bytes) -> None:
        """Put bytes on the line as they are."""
        with self._write_lock:
            os.write(self._master, data)

    def _run(self) -> None:
        buffer = b""
        os.set_blocking(self._master, False)
        due_s = time.monotonic()
        while not self._stop.wait(0.002):
            # Nothing there, or nobody has the line open.
            with suppress(OSError):
                buffer += os.read(self._master, 4096)
            while b";" in buffer:
                command, _, buffer = buffer.partition(b";")
                self._answer(command.decode("ascii"))
            if self._period_s and self.logging.is_set() and time.monotonic() >= due_s:
                due_s = max(due_s + self._period_s, time.monotonic())
                self.beat()

    def _answer(self, command: str) -> None:
        self.heard.append(command)
        if command == "#V,R,0":
            if self._deaf_to > 0:
                self._deaf_to -= 1
                return
            self.send(self._stale + VERSION)
        elif command == "#H,R,0":
            self.send(f"#h,-,{len(FIELDS)},{','.join(FIELDS)};\r\n".encode("ascii"))
        elif command == "#L,W,3,E,,1":
            self.logging.set()
