"""The rails of a drive in a Quarch power module, through Quarch's server QIS (TCP port 9722).

`quarch:HOST[:PORT][,module=USB::QTL1999-01-001][,average=256]` streams the power of each rail: the
watts of all rails are the drive (domain `device`). The protocol is that of QIS as quarchpy, the
maker's Python package, uses it: a line with module and command, and an answer that ends with `>`.

- `stream mode header v3`, `stream mode power enable`, `record:trigger:mode manual` and
  `record:averaging 16k` (16,384 samples of 4 us; `average=`) select the stream; `rec stream`
  starts it.
- `stream text header`: XML with the period, and name, group and units of each channel.
- `stream text all`: the rows since the last request, `time,value,...`. Without more it ends with
  `eof`; `stream?` then tells whether the stream runs, or stopped as its buffer overran.

Under a sampler the rows are fetched together and averaged over its period (`StreamBatches`). Rows
that are missing in between, by their times, make the reading missing. A stream that ended is set up
and started again. Its times are its own, and another header is rejected. Rows of less than 10 ms
are fetched each 0.1 s by a thread, for QIS buffers a limited number. eeio's authors had no data
sheet at hand: 5 % and 10 mW are used; set `accuracy=` by the module's.

`quarch:tcp://HOST[:PORT]` reads a module on the network without QIS (port 9760). A request is its
length with CR LF, a byte of 0, the line and CR LF; answers have two bytes of length, too, and end
with CR LF and `>` (as Alumet's plugin quarch, EUPL, uses it). `measure:outputs?` gives lines that
end with `= NUMBER mV` and `= NUMBER uA`. No source shows their names: a voltage and a current
belong together if their names are equal but for the quantity. Other answers are rejected.
"""

import math
import re
import socket
import threading
import time
import xml.etree.ElementTree as ElementTree
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from eeio.files.inputs import ANSWER_BYTES
from eeio.units.quantities import FIGURE
from eeio_power.delay import Delay
from eeio_power.errors import PowerError
from eeio_power.meters import (
    Batch,
    Channel,
    Detected,
    Verified,
    choice_option,
    first_reading,
    host_and_port,
    number_option,
)
from eeio_power.meters._deadline import Exchange
from eeio_power.meters._stream import StreamThread
from eeio_power.reading import Kind, only

OPTIONS = {
    "host": "address of QIS, HOST or HOST:PORT; or tcp://HOST of a module",
    "module": "the power module, as QIS lists it (default: the only one)",
    "average": "samples of 4 us in a value: 32, 64, ... 512, 1k, 2k, ... 32k (default 16k)",
    "accuracy": "uncertainty as a share (default 0.05)",
    "timeout_s": "how long a complete answer may take, s (default 5)",
}
ARGUMENT = "host"

KIND: Kind = "measured"
VERIFIED_ON: Verified = "simulator"
_PORT, _TIMEOUT_S, _ACCURACY, _LIMIT_W, _MOST_W = 9722, 5.0, 0.05, 0.01, 500.0
_MODULE_PORT = 9760
_SETTINGS = ("stream mode header v3", "stream mode power enable", "record:trigger:mode manual")
AVERAGES = {
    **{str(1 << k): 1 << k for k in range(5, 10)},
    **{f"{1 << k}k": 1024 << k for k in range(6)},
}
"""Values of `average=`, and their numbers of samples."""
_AVERAGE = "16k"
_SAMPLE_S = 4e-6
_FINE_S = 0.01
"""Rows of less time are fetched each `_FETCH_S`."""
_FETCH_S = 0.1
_ARRIVAL_S = 0.02
"""Assumed: how long a row is on its way at most, in addition to its own time."""
_HEADER_PAUSE_S = 0.1
# The next row comes within so many periods.
_PERIODS = 3
# Older rows are of the time before the first reading.
_NEWEST_S = 1.0
_MISSING = "rows of the stream are missing"
_GAP = f"{_MISSING}; read it more often"
_OTHER_TIMES = f"{_MISSING}: its times began again"
# The offset of the module's clock is taken from so many answers: some minutes, for it drifts.
_CLOCK_FETCHES = 60
Row = tuple[float, ...]
"""Its time in the stream's unit, and the watts of each rail."""
_OUTPUT = re.compile(r"(.{1,80}?)\s*=\s*(-?\d{1,12}(?:\.\d{1,9})?)\s*(mV|uA)\s*", re.I)
_QUANTITY = re.compile(r"\b(?:voltage|current|volts?|amps?|mv|ua|[vi])\b", re.I)
_MODULE = re.compile(r"[\w:.-]{3,80}")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_WATTS = {"nW": 1e-9, "uW": 1e-6, "mW": 1e-3, "W": 1.0}


@dataclass
class Qis:
    """A connection to QIS."""

    address: tuple[str, int]
    timeout_s: float
    _connection: socket.socket | None = field(default=None, repr=False)

    def query(self, command: str) -> str:
        """The answer without its mark. Raises PowerError without one."""
        try:
            if self._connection is None:
                self._connection = socket.create_connection(self.address, self.timeout_s)
                _qis_answer(Exchange(self._connection, self.timeout_s))  # its greeting
            exchange = Exchange(self._connection, self.timeout_s)
            exchange.send(f"{command}\r\n".encode())
            return _qis_answer(exchange)
        except OSError as error:
            self.close()
            where = f"{self.address[0]}:{self.address[1]}"
            raise PowerError(f"QIS at {where}: {error or 'no answer'}; is QIS running?") from error

    def close(self) -> None:
        """Drop the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _qis_answer(exchange: Exchange) -> str:
    """Raises OSError."""
    answer = bytearray()
    while not answer.endswith((b"\r\n>", b"\n>")):
        answer += exchange.part(1 << 16)
        if len(answer) > ANSWER_BYTES:
            raise ConnectionResetError("an answer without end")
    return answer[:-1].decode("utf-8", errors="replace").strip()


@dataclass
class ModuleLine:
    """A connection to a module on the network, without QIS."""

    address: tuple[str, int]
    timeout_s: float
    _connection: socket.socket | None = field(default=None, repr=False)

    def query(self, command: str) -> str:
        """The answer without its mark. Raises PowerError without one."""
        line = f"{command}\r\n".encode()
        try:
            if self._connection is None:
                self._connection = socket.create_connection(self.address, self.timeout_s)
            exchange = Exchange(self._connection, self.timeout_s)
            exchange.send(bytes((len(line), 0)) + line)
            return _module_answer(exchange)
        except OSError as error:
            self.close()
            where = f"{self.address[0]}:{self.address[1]}"
            raise PowerError(
                f"module at {where}: {error or 'no answer'}; check that it is on, and that no "
                "other program uses it"
            ) from error

    def close(self) -> None:
        """Drop the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _module_answer(exchange: Exchange) -> str:
    """Raises OSError."""
    answer = bytearray()
    while not answer.endswith(b"\r\n>"):
        count = int.from_bytes(exchange.exactly(2), "little")
        if count == 0:
            raise ConnectionResetError("a part of an answer without bytes")
        answer += exchange.exactly(count)
        if len(answer) > ANSWER_BYTES:
            raise ConnectionResetError("an answer without end")
    return answer[:-1].decode("utf-8", errors="replace").strip()


def parsed_outputs(answer: str) -> dict[str, float]:
    """W of each rail in the answer to `measure:outputs?`: its voltage x its current. Raises
    PowerError for an answer that is not understood."""
    parts: dict[str, dict[str, float]] = {}
    for line in answer.splitlines():
        if not re.search(r"\d\s*(?:mV|uA)\b", line, re.I):
            continue  # signals of the fixture
        match = _OUTPUT.fullmatch(line)
        if match is None:
            raise PowerError(f"measure:outputs?: not understood: {line[:80]!r}")
        rail = " ".join(_QUANTITY.sub(" ", match[1]).replace(":", " ").split()) or "drive"
        values = parts.setdefault(rail, {})
        if match[3].lower() in values:
            raise PowerError(f"measure:outputs?: {rail} has two values in {match[3]}")
        values[match[3].lower()] = float(match[2])
    if not parts or any(len(values) != 2 for values in parts.values()):
        raise PowerError(
            "measure:outputs?: no voltage and current of each rail: "
            f"{answer[:80]!r}; use QIS, --meter quarch:HOST"
        )
    return {rail: values["mv"] * values["ua"] * 1e-9 for rail, values in parts.items()}


@dataclass
class ModuleMeter:
    """The rails of a module that is read without QIS."""

    spec: str
    name: str
    line: ModuleLine
    average: str
    rails: tuple[str, ...] = ()
    channels: Sequence[Channel] = ()
    kind: Kind = KIND

    @property
    def native_period_s(self) -> float:
        return AVERAGES[self.average] * _SAMPLE_S

    def read(self) -> Sequence[float | None]:
        """W of each rail, the product of its mean voltage and current. Raises PowerError."""
        watts = self.measured()
        if set(watts) != set(self.rails):
            raise PowerError(f"its rails were {', '.join(self.rails)}, now {', '.join(watts)}")
        return [watts[rail] for rail in self.rails]

    def measured(self) -> dict[str, float]:
        """W of each rail now. A module that was connected again is set up again."""
        if self.line._connection is None:
            for command in ("record:trigger:mode manual", f"record:averaging {self.average}"):
                answer = self.line.query(command)
                if not answer.lower().startswith("ok"):
                    self.line.close()
                    raise PowerError(f"'{command}': {answer[:80]!r}")
        watts = parsed_outputs(self.line.query("measure:outputs?"))
        if not all(map(FIGURE.contains, watts.values())):
            raise PowerError("measure:outputs?: a value out of range")
        return watts

    def close(self) -> None:
        """Drop the connection."""
        self.line.close()


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
    period_s = _header_period_s(root)
    channels = [channel for channel in root.iter("channel") if channel.findtext("name")]
    columns, factors, names = [], [], []
    for column, channel in enumerate(channels, start=1):  # the first column is the time
        name, units = channel.findtext("name") or "", channel.findtext("units") or ""
        if units in _WATTS and not name.lower().startswith("tot"):
            columns.append(column)
            factors.append(_WATTS[units])
            names.append(name)
    if period_s is None or not columns:
        raise PowerError("the stream's header has no power of a rail, or no period")
    return Stream(period_s, tuple(columns), tuple(factors), tuple(names))


def _header_period_s(root: ElementTree.Element) -> float | None:
    texts = (root.findtext(f".//{tag}") for tag in ("devicePeriod", "devicePerioduS"))
    period = re.fullmatch(r"(\d{1,12})\s*([num]?s)?", next(filter(None, texts), ""), re.I)
    if period is None or int(period[1]) == 0:
        return None
    return int(period[1]) * _SECONDS[(period[2] or "us").lower()]


@dataclass
class QuarchMeter:
    """The rails of one module."""

    spec: str
    name: str
    qis: Qis
    module: str
    average: str
    stream: Stream
    channels: Sequence[Channel]
    kind: Kind = KIND
    starts: int = 0
    """How often the rows began again, perhaps with other times."""
    _is_known: bool = True
    """Whether the stream is the one of the last rows."""
    _last: float | None = None
    """The time of the last row, in the stream's unit."""
    _step: float = math.inf
    """Between rows."""

    @property
    def native_period_s(self) -> float:
        return self.stream.period_s

    def read(self) -> Sequence[float | None]:
        """Mean W of each rail since the last reading. Raises PowerError if rows are missing."""
        rows = self._fetched()
        for _ in range(_PERIODS):
            if rows:
                break
            time.sleep(self.stream.period_s)
            rows = self._fetched()
        if not rows:
            self._check_running()
            raise PowerError(f"{self.module}: no new data in the stream")
        if self._gaps(rows):
            raise PowerError(f"{self.module}: {_GAP}")
        newest = rows[-max(1, round(_NEWEST_S / self.stream.period_s)) :]
        return _means(newest)

    def batches(self, period_s: float) -> "StreamBatches":
        """The rows as means of that period, without a thread and a request for each."""
        return StreamBatches(self, period_s)

    def averages_s(self, period_s: float) -> float:
        """The time that a reading is the mean of, if a sampler reads it with a period."""
        return max(1, int(period_s / self.stream.period_s + 1e-6)) * self.stream.period_s

    def new_rows(self) -> list[Row]:
        """The rows since the last call. Raises PowerError if the stream ended, and starts it again,
        or if it became another one."""
        rows = self._fetched()
        if not rows:
            self._check_running()
        return rows

    def _fetched(self) -> list[Row]:
        # After a connection that was lost, QIS may have restarted too.
        if not self._is_known or self.qis._connection is None:
            self._is_known = False
            self._check_running()
            self._check_header()
        try:
            rows = self._rows(self.qis.query(f"{self.module} stream text all"))
        except PowerError:
            # QIS may have lost the module, which comes back with other settings.
            self._is_known = False
            raise
        times = [row[0] for row in rows]
        before = times[:1]
        if self._last is not None:
            before = [self._last]
        if any(after < earlier for earlier, after in pairwise([*before, *times])):
            self._is_known = False
            raise PowerError(f"{self.module}: {_OTHER_TIMES}")
        return rows

    def _check_running(self) -> None:
        state = self.qis.query(f"{self.module} stream?").splitlines() or ["no answer"]
        if "running" in state[0].lower():
            return
        self._is_known = False
        ended = f"the stream ended ({state[0][:60]})"
        try:
            _start(self.qis, self.module, self.average)
            self._check_header()
        except PowerError as error:
            raise PowerError(f"{ended}; {error}") from error
        raise PowerError(f"{self.module}: {ended}; started again")

    def _check_header(self) -> None:
        """The stream is new, and may have other times. Raises PowerError if it has other rows: the
        description of the meter would no longer be right."""
        now = _header(self.qis, self.module)
        if now != self.stream:
            raise PowerError(
                f"{self.module}: its stream has {_text(now)} now, no longer {_text(self.stream)}; "
                "end the other program that changed it, or open the meter again"
            )
        self._is_known, self.starts = True, self.starts + 1
        self._last, self._step = None, math.inf

    def _gaps(self, rows: Sequence[Row]) -> list[int]:
        """The rows before which others are missing."""
        times = [row[0] for row in rows]
        first = self._last
        if first is None:
            first = times[0]
        steps = [after - before for before, after in pairwise([first, *times])]
        own = steps
        if self._last is None:
            own = steps[1:]
        self._last, self._step = times[-1], min([self._step, *(s for s in own if s > 0)])
        begin = len(steps) - len(own)
        return [k for k, s in enumerate(own, start=begin) if not 0 < s < 1.5 * self._step]

    def seconds(self, time: float) -> float:
        """A row's time, which is in the stream's unit."""
        return time / self._step * self.stream.period_s

    def _rows(self, text: str) -> list[Row]:
        rows: list[Row] = []
        columns, factors = self.stream.columns, self.stream.factors
        most = max(columns)
        for line in text.splitlines():
            fields = line.replace(",", " ").split()
            if not fields or fields == ["eof"]:
                continue
            if len(fields) <= most:
                raise PowerError(f"{self.module}: a row of {len(fields)} columns: {line[:60]!r}")
            try:
                row = (
                    float(fields[0]),
                    *(float(fields[k]) * f for k, f in zip(columns, factors, strict=True)),
                )
            except ValueError as error:
                raise PowerError(f"{self.module}: not a row of a stream: {line[:60]!r}") from error
            if not FIGURE.contains(sum(row)):
                raise PowerError(f"{self.module}: a row of {len(fields)} columns: {line[:60]!r}")
            rows.append(row)
        return rows

    def close(self) -> None:
        """End the stream."""
        with suppress(PowerError):
            self.qis.query(f"{self.module} rec stop")
        self.qis.close()


def _text(stream: Stream) -> str:
    return f"rows of {stream.period_s * 1e3:g} ms of {', '.join(stream.names)}"[:200]


def _means(rows: Sequence[Row]) -> tuple[float, ...]:
    """Of each rail, W."""
    return tuple(math.fsum(column) / len(rows) for column in zip(*rows, strict=True))[1:]


@dataclass
class StreamBatches(StreamThread):
    """The rows of a stream, fetched together and averaged over a period of the sampler."""

    meter: QuarchMeter
    period_s: float
    _rest: list[Row] = field(default_factory=list)
    _delays_s: deque[float] = field(default_factory=lambda: deque(maxlen=_CLOCK_FETCHES))
    _starts: int = 0
    _last_s: float = -math.inf
    _times_s: list[float] = field(default_factory=list)
    _values: list[tuple[float, ...]] = field(default_factory=list)
    _problems: dict[int, str] = field(default_factory=dict)
    _error: str | None = None
    _using: threading.Lock = field(default_factory=threading.Lock)

    def start(self) -> None:
        """Drop the rows from before."""
        with suppress(PowerError):
            rows = self.meter.new_rows()
            if rows:
                self.meter._gaps(rows)
        self._starts = self.meter.starts
        if self.meter.stream.period_s < _FINE_S:
            self.begin(self.meter.name, self._run)

    def fetch(self) -> Batch:
        """The means since the last call; NaN where rows are missing. Raises PowerError if there are
        none and QIS does not answer."""
        self.ended = self._finishes
        with self._using:
            self._collect()
            times_s, values, problems = self._times_s, self._values, self._problems
            self._times_s, self._values, self._problems = [], [], {}
            error, self._error = self._error, None
        if error is not None and not times_s:
            raise PowerError(error)
        columns = tuple([row[k] for row in values] for k in range(len(self.meter.channels)))
        return Batch(times_s, times_s, columns, problems)

    def _run(self) -> None:
        while not self._stop.wait(_FETCH_S):
            with self._using:
                self._collect()

    def _collect(self) -> None:
        """Averages the rows since the last call; `_error` is why there are none."""
        try:
            rows = self.meter.new_rows()
            if rows:
                self._add(rows)
        except PowerError as error:
            self._error = str(error)

    def _add(self, rows: Sequence[Row]) -> None:
        times_s, values, problems = self._times_s, self._values, self._problems
        gaps = dict.fromkeys(self.meter._gaps(rows), _GAP)
        if self._starts != self.meter.starts:
            self._starts = self.meter.starts
            self._delays_s.clear()
            gaps[0] = _OTHER_TIMES
        newest_s = self.meter.seconds(rows[-1][0])
        self._delays_s.append(time.monotonic() - newest_s)
        # The clock of the module by the fastest of the last answers.
        offset_s = min(self._delays_s)
        count = max(1, int(self.period_s / self.meter.stream.period_s + 1e-6))
        for k, row in enumerate(rows):
            if k in gaps:
                problems[len(times_s)] = f"{self.meter.module}: {gaps[k]}"
                self._rest = [(row[0], *(math.nan for _ in row[1:]))]
            self._rest.append(row)
            if len(self._rest) >= count or k in gaps:
                # An answer that is faster than all before moves the times back a little.
                self._last_s = max(self.meter.seconds(row[0]) + offset_s, self._last_s + 1e-6)
                times_s.append(self._last_s)
                values.append(_means(self._rest))
                self._rest = []

    def wait(self, limit_s: float) -> None:
        """Until the next mean."""
        time.sleep(min(limit_s, self.period_s))


def open_meter(spec: str, options: Mapping[str, str], root: Path) -> QuarchMeter | ModuleMeter:
    """Start the stream and take a first reading. Raises PowerError if there is none."""
    average = choice_option(spec, options, "average", AVERAGES, _AVERAGE)
    if options.get("host", "").startswith("tcp://"):
        return _open_module(spec, options, average)
    module = options.get("module")
    if module and not _MODULE.fullmatch(module):
        raise PowerError(f"meter '{spec}': module={module:.80} is not a module's name in QIS")
    accuracy = number_option(spec, options, "accuracy")
    timeout_s = number_option(spec, options, "timeout_s", above_zero=True) or _TIMEOUT_S
    qis = Qis(host_and_port(spec, options.get("host", ""), _PORT), timeout_s)
    name = options.get("name", "quarch")
    try:
        module = module or _only_module(qis)
        _start(qis, module, average)
        stream = _header(qis, module)
    except PowerError as error:
        qis.close()
        raise PowerError(f"meter '{spec}': {error}") from error
    channels = _channels(name, stream.names, accuracy, module, _delay(stream.period_s))
    return first_reading(QuarchMeter(spec, name, qis, module, average, stream, channels))


def _open_module(spec: str, options: Mapping[str, str], average: str) -> ModuleMeter:
    if "module" in options:
        raise PowerError(f"meter '{spec}': module= is a module of QIS; leave it out")
    accuracy = number_option(spec, options, "accuracy")
    timeout_s = number_option(spec, options, "timeout_s", above_zero=True) or _TIMEOUT_S
    address = host_and_port(spec, options["host"].removeprefix("tcp://"), _MODULE_PORT)
    meter = ModuleMeter(
        spec, options.get("name", "quarch"), ModuleLine(address, timeout_s), average
    )
    try:
        meter.rails = tuple(meter.measured())
    except PowerError as error:
        meter.close()
        raise PowerError(f"meter '{spec}': {error}") from error
    meter.channels = _channels(meter.name, meter.rails, accuracy, "the module", None)
    return meter


def _channels(
    name: str, rails: Sequence[str], accuracy: float | None, module: str, delay: Delay | None
) -> list[Channel]:
    channels = []
    if accuracy is None:
        accuracy = _ACCURACY
    for rail in rails:
        channels.append(
            Channel(
                name=f"{name}:{rail}",
                domain="device",
                quantity="power_w",
                accuracy_relative=accuracy,
                resolution=2 * _LIMIT_W,
                max_power_w=_MOST_W,
                contents=only("drives"),
                remark=f"rails {', '.join(rails)} of {module}",
                delay=delay,
            )
        )
    return channels


def _delay(period_s: float) -> Delay:
    """A row is the mean of its time, and comes up to one more later."""
    lag_s = period_s + _ARRIVAL_S
    return Delay(
        lag_s / 2.0, period_s, lag_s / 2.0, 0.0, "means of the stream; assumed: up to one row late"
    )


def _only_module(qis: Qis) -> str:
    listed = []
    for line in qis.query("$list").splitlines():
        if line.strip():
            listed.append(line.rpartition(" ")[2])
    modules = [word for word in listed if "::" in word]
    if len(modules) != 1:
        raise PowerError(f"QIS has {len(modules)} modules; name one, module={' or '.join(modules)}")
    return modules[0]


def _start(qis: Qis, module: str, average: str) -> None:
    """Set the stream up and start it. Raises PowerError."""
    for command in (*_SETTINGS, f"record:averaging {average}", "rec stream"):
        answer = qis.query(f"{module} {command}")
        if not answer.lower().startswith("ok"):
            raise PowerError(
                f"{module}: '{command}': {answer[:80]!r}; is another program's stream running?"
            )


def _header(qis: Qis, module: str) -> Stream:
    """The header comes with the first rows: ask again, and wait for data meanwhile."""
    for _ in range(20):
        text = qis.query(f"{module} stream text header")
        if text.startswith("<"):
            return parsed_header(text)
        time.sleep(_HEADER_PAUSE_S)
    raise PowerError(f"{module}: no header of the stream: {text[:60]!r}")


def find(root: Path) -> Detected:
    """Which drive is in the module is unknown."""
    return Detected(
        "quarch",
        KIND,
        ("device",),
        False,
        "eeio does not search for QIS",
        "name it: --meter quarch:HOST, with the drive in its power module",
    )
