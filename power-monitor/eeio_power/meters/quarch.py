"""The rails of a drive in a Quarch power module, through Quarch's server QIS (TCP port 9722).

`quarch:HOST[:PORT][,module=USB::QTL1999-01-001]` streams the module's power of each rail: the watts
of all rails are the drive (domain `device`). The protocol is that of QIS as quarchpy, the maker's
Python package, uses it: a line with module and command, and an answer that ends with `>`.

- `stream mode header v3`, `stream mode power enable`, `record:trigger:mode manual` and
  `record:averaging 16k` (16,384 samples of 4 us) select the stream; `rec stream` starts it.
- `stream text header`: XML with the period, and name, group and units of each channel.
- `stream text all`: the rows since the last request, `time,value,...`. Without more it ends with
  `eof`; `stream?` then tells whether the stream runs, or stopped as its buffer overran.

Rows that are missing in between, by their times, make the reading missing. eeio's authors had no
data sheet at hand: 5 % and 10 mW are used; set `accuracy=` by the module's.
"""

import math
import re
import socket
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from eeio_limits.inputs import ANSWER_BYTES
from eeio_limits.quantities import FIGURE
from eeio_power.errors import PowerError
from eeio_power.meters import Channel, Detected, first_reading, host_and_port, number_option
from eeio_power.reading import Kind, only

OPTIONS = {
    "host": "address of QIS, HOST or HOST:PORT",
    "module": "the power module, as QIS lists it (default: the only one)",
    "accuracy": "uncertainty as a share (default 0.05)",
    "timeout_s": "longest wait for an answer, s (default 5)",
}
ARGUMENT = "host"

KIND: Kind = "measured"
_PORT, _TIMEOUT_S, _ACCURACY, _LIMIT_W, _MOST_W = 9722, 5.0, 0.05, 0.01, 500.0
_SETTINGS = (
    "stream mode header v3", "stream mode power enable", "record:trigger:mode manual",
    "record:averaging 16k",
)  # fmt: skip
_HEADER_PAUSE_S = 0.1
# The next row comes within so many periods.
_PERIODS = 3
# Older rows are of the time before the first reading.
_NEWEST_S = 1.0
_MODULE = re.compile(r"[\w:.-]{3,80}")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_WATTS = {"nW": 1e-9, "uW": 1e-6, "mW": 1e-3, "W": 1.0}


@dataclass
class Qis:
    """A connection to QIS."""

    address: tuple[str, int]
    timeout_s: float
    _connection: socket.socket | None = field(default=None, repr=False)

    def ask(self, command: str) -> str:
        """The answer without its mark. Raises PowerError without one."""
        try:
            if self._connection is None:
                self._connection = socket.create_connection(self.address, self.timeout_s)
                self._answer()  # its greeting
            self._connection.sendall(f"{command}\r\n".encode())
            return self._answer()
        except OSError as error:
            self.close()
            where = f"{self.address[0]}:{self.address[1]}"
            raise PowerError(f"QIS at {where}: {error or 'no answer'}; is QIS running?") from error

    def _answer(self) -> str:
        assert self._connection is not None
        answer = b""
        while not answer.endswith((b"\r\n>", b"\n>")):
            part = self._connection.recv(1 << 16)
            if not part:
                raise ConnectionResetError("the connection was closed")
            answer += part
            if len(answer) > ANSWER_BYTES:
                raise ConnectionResetError("an answer without end")
        return answer[:-1].decode("utf-8", errors="replace").strip()

    def close(self) -> None:
        """Drop the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


@dataclass(frozen=True)
class Stream:
    """What a header tells of the rows."""

    period_s: float
    columns: tuple[int, ...]
    """The column of each rail's power."""
    factors: tuple[float, ...]
    """W of one count."""
    names: tuple[str, ...]


def parsed_header(text: str) -> Stream:
    """Raises PowerError if it has no power of rails, or cannot be read."""
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise PowerError("the stream's header has declarations, which QIS does not send")
    try:
        root = ElementTree.fromstring(text)  # noqa: S314 - no declarations, and bounded
    except ElementTree.ParseError as error:
        raise PowerError(f"the stream's header is no XML: {error}") from error
    periods = (root.findtext(f".//{tag}") for tag in ("devicePeriod", "devicePerioduS"))
    period = re.fullmatch(r"(\d{1,12})\s*([num]?s)?", next(filter(None, periods), ""), re.I)
    channels = [c for c in root.iter("channel") if c.findtext("name")]
    rails = [
        (k, _WATTS[units], c.findtext("name") or "")
        for k, c in enumerate(channels, start=1)  # the first column is the time
        if (units := c.findtext("units") or "") in _WATTS
        and not (c.findtext("name") or "").lower().startswith("tot")
    ]
    if period is None or int(period[1]) == 0 or not rails:
        raise PowerError("the stream's header has no power of a rail, or no period")
    columns, factors, names = zip(*rails, strict=True)
    period_s = int(period[1]) * _SECONDS[(period[2] or "us").lower()]
    return Stream(period_s, columns, factors, names)


@dataclass
class QuarchMeter:
    """The rails of one module."""

    spec: str
    name: str
    qis: Qis
    module: str
    stream: Stream
    channels: Sequence[Channel]
    kind: Kind = KIND
    _last: float | None = None
    """The time of the last row, in the stream's unit."""
    _step: float = math.inf
    """Between rows."""

    @property
    def native_period_s(self) -> float:
        return self.stream.period_s

    def read(self) -> Sequence[float | None]:
        """Mean W of each rail since the last reading. Raises PowerError if rows are missing."""
        rows = self._rows(self.qis.ask(f"{self.module} stream text all"))
        for _ in range(_PERIODS):
            if rows:
                break
            time.sleep(self.stream.period_s)
            rows = self._rows(self.qis.ask(f"{self.module} stream text all"))
        if not rows:
            state = self.qis.ask(f"{self.module} stream?").splitlines() or ["no answer"]
            if "running" not in state[0].lower():
                self._last, self._step = None, math.inf
                self.qis.ask(f"{self.module} rec stream")
                raise PowerError(
                    f"{self.module}: the stream ended ({state[0][:60]}); started again"
                )
            raise PowerError(f"{self.module}: no new data in the stream")
        times = [row[0] for row in rows]
        known = times if self._last is None else [self._last, *times]
        steps = [after - before for before, after in pairwise(known)]
        self._last, self._step = times[-1], min([self._step, *(s for s in steps if s > 0)])
        if any(not 0 < step < 1.5 * self._step for step in steps):
            raise PowerError(f"{self.module}: rows of the stream are missing; read it more often")
        newest = rows[-max(1, round(_NEWEST_S / self.stream.period_s)) :]
        return [
            math.fsum(row[column] for row in newest) / len(newest) * factor
            for column, factor in zip(self.stream.columns, self.stream.factors, strict=True)
        ]

    def _rows(self, text: str) -> list[list[float]]:
        rows = []
        for line in text.splitlines():
            if line.strip() in ("", "eof"):
                continue
            try:
                row = [float(word) for word in line.replace(",", " ").split()]
            except ValueError as error:
                raise PowerError(f"{self.module}: not a row of a stream: {line[:60]!r}") from error
            if len(row) <= max(self.stream.columns) or not all(map(FIGURE.holds, row)):
                raise PowerError(f"{self.module}: a row of {len(row)} columns: {line[:60]!r}")
            rows.append(row)
        return rows

    def close(self) -> None:
        """End the stream."""
        with suppress(PowerError):
            self.qis.ask(f"{self.module} rec stop")
        self.qis.close()


def open_meter(spec: str, options: Mapping[str, str], root: Path) -> QuarchMeter:
    """Start the stream and take a first reading. Raises PowerError if there is none."""
    module = options.get("module")
    if module and not _MODULE.fullmatch(module):
        raise PowerError(f"meter '{spec}': module={module:.80} is not a module's name in QIS")
    accuracy = number_option(spec, options, "accuracy")
    timeout_s = number_option(spec, options, "timeout_s", above_zero=True) or _TIMEOUT_S
    qis = Qis(host_and_port(spec, options.get("host", ""), _PORT), timeout_s)
    name = options.get("name", "quarch")
    try:
        module = module or _only_module(qis)
        for command in (*_SETTINGS, "rec stream"):
            answer = qis.ask(f"{module} {command}")
            if not answer.lower().startswith("ok"):
                raise PowerError(f"{module}: '{command}': {answer[:80]!r}; is another program's "
                                 "stream running?")  # fmt: skip
        stream = _header(qis, module)
    except PowerError as error:
        qis.close()
        raise PowerError(f"meter '{spec}': {error}") from error
    channels = [
        Channel(
            name=f"{name}:{rail}",
            domain="device",
            quantity="power_w",
            accuracy_relative=_ACCURACY if accuracy is None else accuracy,
            resolution=2 * _LIMIT_W,
            max_power_w=_MOST_W,
            contents=only("drives"),
            remark=f"rails {', '.join(stream.names)} of {module}",
        )
        for rail in stream.names
    ]
    return first_reading(QuarchMeter(spec, name, qis, module, stream, channels))


def _only_module(qis: Qis) -> str:
    listed = [line.rpartition(" ")[2] for line in qis.ask("$list").splitlines() if line.strip()]
    found = [word for word in listed if "::" in word]
    if len(found) != 1:
        raise PowerError(f"QIS has {len(found)} modules; name one, module={' or '.join(found)}")
    return found[0]


def _header(qis: Qis, module: str) -> Stream:
    """The header comes with the first rows: ask again, and wait for data meanwhile."""
    for _ in range(20):
        text = qis.ask(f"{module} stream text header")
        if text.startswith("<"):
            return parsed_header(text)
        time.sleep(_HEADER_PAUSE_S)
    raise PowerError(f"{module}: no header of the stream: {text[:60]!r}")


def find(root: Path) -> Detected:
    """Which drive is in the module is unknown."""
    return Detected(
        "quarch", KIND, ("device",), False, "eeio does not search for QIS",
        "name it: --meter quarch:HOST, with the drive in its power module",
    )  # fmt: skip
