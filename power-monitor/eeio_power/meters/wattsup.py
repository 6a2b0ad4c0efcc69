"""Watts Up? PRO and .net: a plug-in meter for the complete system, on a USB serial line.

`wattsup:PORT` with PORT such as /dev/ttyUSB0, better its name under /dev/serial/by-id, which
survives a change of socket; or a URL such as `socket://host:7777` or `rfc2217://host:7777` for a
serial line on another machine, which needs pyserial.

115200 baud, 8N1, no flow control. A packet is `#command,sub,n,argument*n;`. The meter reports its
version (`#V,R,0;`) and the fields it can log (`#H,R,0;`), and then sends a record every second
(`#L,W,3,E,,1;`), of which the first field, W in 0.1 W, is read. It is the mean of its second. The
meter sets the pace: `read` waits for the next record, so that none is repeated or missed.

The line may carry a partial or old record at the start, NULs and noise, and records may be missing.
A packet counts only if it is complete, and a record only if it has the number of fields that the
meter reported.

The commands above are the only thing this package writes to the line. None of them changes what the
meter has stored.

Accuracy: 1.5 % of the reading and 3 counts of 0.1 W, the maker's figure for loads above 60 W.
"""

import importlib
import os
import select
import termios
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from eeio_power.delay import Delay
from eeio_power.errors import PowerError
from eeio_power.meters import Channel, Detected, Measured, Reads, Verified, number_option
from eeio_power.reading import WALL, Kind

OPTIONS = {
    "port": "the serial line, such as /dev/ttyUSB0 or socket://host:7777",
    "max_w": "highest power that can be true, W (default 2000)",
}
ARGUMENT = "port"

KIND: Kind = "measured"
VERIFIED_ON: Verified = "simulator"
MEASURES: Measured = "this machine"
READS = Reads(nodes=("dev/ttyUSB*", "dev/serial/by-id/*FTDI*"))
NATIVE_PERIOD_S = 1.0
DELAY = Delay(0.5, 1.0, 0.5, 0.0, "a record each second is the mean of that second")
START_LOG = b"#L,W,3,E,,1;"
# A record is late after this; the sampler tries again.
PATIENCE_S = 2.2
# Timeout of each answer when the meter is opened, and the number of attempts: a meter in the middle
# of a record may miss the first request.
ANSWER_S = 1.5
ATTEMPTS = 3
MAX_POWER_W = 2000.0
COUNT_W = 0.1
CHANNEL = Channel(
    name="wattsup:system",
    domain="system",
    quantity="power_w",
    accuracy_relative=0.015,
    # Three counts either way: the quantum is double that.
    resolution=6 * COUNT_W,
    max_power_w=MAX_POWER_W,
    contents=WALL,
)
# More than this without an end is noise.
LONGEST_PACKET = 512


class Line(Protocol):
    """A serial line. Both raise OSError when it is gone."""

    def read(self, timeout_s: float) -> bytes:
        """Received bytes, waiting up to `timeout_s` for the first; b"" if none came."""

    def write(self, data: bytes) -> None: ...

    def close(self) -> None: ...


class TerminalLine:
    """A serial device of this machine, raw at 115200 8N1. Raises OSError if it cannot be had."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        try:
            control = termios.CS8 | termios.CREAD | termios.CLOCAL
            speed = termios.B115200
            no_chars = termios.tcgetattr(self._fd)[6]
            settings = [termios.IGNPAR, 0, control, 0, speed, speed, no_chars]
            termios.tcsetattr(self._fd, termios.TCSANOW, settings)
            termios.tcflush(self._fd, termios.TCIOFLUSH)
        except termios.error as error:
            os.close(self._fd)
            raise OSError(error.args[0], f"{path} is not a serial line") from error

    def read(self, timeout_s: float) -> bytes:
        if not select.select([self._fd], [], [], timeout_s)[0]:
            return b""
        data = os.read(self._fd, 4096)
        if not data:
            raise OSError(5, "the serial line was unplugged")
        return data

    def write(self, data: bytes) -> None:
        while data:
            if not select.select([], [self._fd], [], ANSWER_S)[1]:
                raise OSError(5, "the serial line accepts no data")
            data = data[os.write(self._fd, data) :]

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class UrlLine:
    """A serial line that pyserial reaches by URL."""

    def __init__(self, url: str) -> None:
        try:
            serial = importlib.import_module("serial")
        except ImportError as error:
            raise PowerError(
                f"{url} needs pyserial; install it (python3-serial), or use a device"
            ) from error
        self._port = serial.serial_for_url(url, baudrate=115200, timeout=0)

    def read(self, timeout_s: float) -> bytes:
        self._port.timeout = timeout_s
        first = bytes(self._port.read(1))
        if not first:
            return b""
        self._port.timeout = 0
        return first + bytes(self._port.read(4096))

    def write(self, data: bytes) -> None:
        self._port.write(data)

    def close(self) -> None:
        self._port.close()


@dataclass(frozen=True)
class Packet:
    """`#command,sub,n,arguments;` with n arguments."""

    command: str
    sub: str
    arguments: tuple[str, ...]


class PacketReader:
    """Cuts packets out of a stream of bytes, and skips other bytes between them."""

    def __init__(self) -> None:
        self._buffer = b""
        self.damaged = 0
        """Truncated packets, or packets with a wrong number of arguments."""

    def feed(self, data: bytes) -> list[Packet]:
        """The packets that are complete now."""
        self._buffer += data.replace(b"\0", b"")
        packets = []
        while b";" in self._buffer:
            text, _, self._buffer = self._buffer.partition(b";")
            # A packet that was cut is followed by the next one's '#': the last one counts.
            before, start, body = text.rpartition(b"#")
            self.damaged += before.count(b"#")
            packet = None
            if start:
                packet = parse_packet(body.decode("ascii", errors="replace"))
            if packet is None:
                self.damaged += 1
            else:
                packets.append(packet)
        self._buffer = self._buffer[-LONGEST_PACKET:]
        return packets


def parse_packet(body: str) -> Packet | None:
    """`d,-,18,1203,...` -> Packet; None if it is incomplete."""
    fields = [field.strip() for field in body.split(",")]
    if len(fields) < 3 or not fields[2].isdecimal() or len(fields[2]) > 9:
        return None
    # `#L,W,3,E,,1` has empty arguments; `#V,R,0` may have one too many, which is empty.
    arguments = []
    if fields[3:] != [""]:
        arguments = fields[3:]
    if len(arguments) != int(fields[2]):
        return None
    return Packet(fields[0], fields[1], tuple(arguments))


def record_power_w(packet: Packet, fields: int) -> float | None:
    """The power of a `#d` record, W; None if the meter did not supply it or it is damaged."""
    if packet.command != "d" or len(packet.arguments) != fields:
        return None
    text = packet.arguments[0]
    # 0.1 W; a sign or a letter is a damaged byte.
    is_number = text.isascii() and text.isdecimal() and len(text) <= 9
    if is_number:
        return int(text) / 10.0
    return None


class WattsUpMeter:
    """One meter on one line; reopened by the next read after a failure."""

    kind: Kind = KIND
    native_period_s = NATIVE_PERIOD_S
    paces_itself = True

    def __init__(self, spec: str, name: str, port: str, max_power_w: float) -> None:
        self.spec = spec
        self.name = name
        self.port = port
        self.model: str | None = None
        self.fields = 0
        self.channels: Sequence[Channel] = (replace(CHANNEL, max_power_w=max_power_w),)
        self._line: Line | None = None
        self._packets = PacketReader()
        self._connect()

    @property
    def damaged(self) -> int:
        """Damaged packets since the line was opened."""
        return self._packets.damaged

    def read(self) -> Sequence[float | None]:
        """W of the next record.

        Raises PowerError if none comes in time, OSError if the line is gone; the next read opens it
        again, once the meter is plugged in.
        """
        if self._line is None:
            self._connect()
        try:
            return [self._next_record()]
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        """Release the line. The meter continues unchanged, without a command."""
        if self._line is not None:
            self._line.close()
            self._line = None

    def _next_record(self) -> float:
        deadline_s = time.monotonic() + PATIENCE_S
        newest: float | None = None
        while newest is None and (left_s := deadline_s - time.monotonic()) > 0.0:
            for packet in self._receive(left_s):
                power_w = record_power_w(packet, self.fields)
                if power_w is not None:
                    newest = power_w
        if newest is None:
            # After a loss of mains power the meter no longer logs.
            if self._line is not None:
                self._line.write(START_LOG)
            raise PowerError(f"{self.port}: no complete record in {PATIENCE_S:g} s")
        return newest

    def _receive(self, timeout_s: float) -> list[Packet]:
        if self._line is None:
            raise OSError(5, f"{self.port} is not open")
        return self._packets.feed(self._line.read(timeout_s))

    def _connect(self) -> None:
        self._line = UrlLine(self.port) if "://" in self.port else TerminalLine(self.port)
        self._packets = PacketReader()
        try:
            # A meter that is logging talks in between, which `_query` passes over.
            self._line.write(b"#L,R,0;")
            version = self._query(b"#V,R,0;", "v")
            self.model = None
            if version.arguments:
                self.model = _MODELS.get(version.arguments[0], "unknown")
            self.fields = len(self._query(b"#H,R,0;", "h").arguments)
            self._line.write(START_LOG)
        except (OSError, PowerError):
            self.close()
            raise

    def _query(self, question: bytes, answer: str) -> Packet:
        for _ in range(ATTEMPTS):
            if self._line is not None:
                self._line.write(question)
            deadline_s = time.monotonic() + ANSWER_S
            while (left_s := deadline_s - time.monotonic()) > 0.0:
                for packet in self._receive(left_s):
                    if packet.command == answer:
                        return packet
        raise PowerError(
            f"{self.port}: no Watts Up? answers; check that it is this line, that the meter is "
            "on, and that no other program reads it"
        )


_MODELS = {"0": "Standard", "1": "PRO", "2": "ES", "3": ".NET"}


def open_meter(spec: str, options: Mapping[str, str], root: Path) -> WattsUpMeter:
    """Open the line and start the log. Raises PowerError if no Watts Up? answers there."""
    port = options.get("port")
    if port is None:
        raise PowerError(f"meter '{spec}': which line? Such as wattsup:/dev/ttyUSB0")
    max_w = number_option(spec, options, "max_w", above_zero=True) or MAX_POWER_W
    try:
        return WattsUpMeter(spec, options.get("name", "wattsup"), port, max_w)
    except OSError as error:
        raise PowerError(
            f"meter '{spec}': {port}: {error.strerror or error}; plug in the meter, or join the "
            "line's group (dialout)"
        ) from error
    except PowerError as error:
        raise PowerError(f"meter '{spec}': {error}") from error


def find(root: Path) -> Detected:
    """Serial lines a meter may be on. No data is written to them: another device may be there."""
    lines = [f"/{line.relative_to(root)}" for line in _usb_lines(root)]
    if not lines:
        return Detected(
            "wattsup",
            KIND,
            ("system",),
            False,
            "no USB serial line (/dev/ttyUSB*)",
            "plug a Watts Up? PRO or .net in; its driver is ftdi_sio",
        )
    return Detected(
        "wattsup",
        KIND,
        ("system",),
        False,
        f"USB serial lines found ({', '.join(lines)}); the connected devices are unknown",
        f"if it is the meter, name it: --meter wattsup:{lines[0]}",
    )


def _usb_lines(root: Path) -> list[Path]:
    by_id = sorted((root / "dev/serial/by-id").glob("*FTDI*"))
    return by_id or sorted((root / "dev").glob("ttyUSB*"))
