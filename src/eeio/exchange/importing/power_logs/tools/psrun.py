"""Dumps of PowerSensor3: `psrun -f FILE`, or `dump()` of its library and Python module.

One line for each of 20,000 sample sets a second (release 1.6.1):

    marker time dt_micro device_timestamp current0 voltage0 power0 [current1 ...] power_total

`time` counts from the start of the program, with six significant digits, or is Unix time with six
decimals. Lines share a time soon, so times are added up from `device_timestamp` (µs modulo 1024).
It cannot show gaps of more than 1 ms: `dt_micro`, the host's clock, shows those. The lines of each
millisecond are averaged.
"""

import math
import re
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, pairwise
from operator import add
from typing import NamedTuple

from eeio.exchange.importing.power_logs.format import LogFormat
from eeio.exchange.importing.power_logs.log_lines import unexplained
from eeio.exchange.importing.power_logs.series import ReadLog, Series
from eeio.units.quantities import POWER_SAMPLE
from eeio_power.errors import PowerError
from eeio_power.meters import Channel, domain_option, powersensor3
from eeio_power.meters.powersensor3 import ACCURACY, STAMPS, ArrivalClock
from eeio_power.reading import UNKNOWN, only
from eeio_power.samples import MeterInfo, MeterSamples

_HEADER = re.compile(
    r"^marker time dt_micro device_timestamp"
    r"((?: current\d voltage\d power\d){1,4}) power_total\r?$",
    re.MULTILINE,
)
_LINE = re.compile(r"([^\n]*)\n")
_FIXED = 4
"""Columns in front of the pairs."""
_PERIOD_S = 1e-3
_LEAST_UNIX_S = 1e8
_STEPS = 1000
"""The usual time between two sets is the median of so many."""
_MARKERS = 20
"""So many are in the note."""
_MLX10_A = 0.0269
"""One level of the most common current sensor: the dump does not name the sensors."""
_METER = "psrun"
_LONGEST_US = 10**15


class _Times:
    """Times of lines by the board's time stamps, on the clock of `time`."""

    def __init__(self, set_us: float, begun_s: float) -> None:
        self._set_us = set_us
        self._clock = ArrivalClock()
        self.host_s = begun_s
        self._board_us = 0
        self._stamp: int | None = None

    def step(self, dt_us: int, stamp: int) -> bool:
        """The next line; whether lines are missing before it."""
        before, self._stamp = self._stamp, stamp
        if before is None:
            return False
        step_us = (stamp - before) % STAMPS
        self.host_s += dt_us / 1e6
        self._board_us += step_us
        return not 0.5 * self._set_us < step_us < 1.5 * self._set_us

    @property
    def is_late(self) -> bool:
        """Whether lines may be missing before the last one."""
        return self._clock.is_late

    @property
    def gap_until_s(self) -> float:
        """The host's time behind the last gap, s."""
        return self._clock.gap_until_s

    def arrived(self) -> float:
        """The time that the stamps do not show, s; else 0."""
        missing_s = self._clock.arrived(self.host_s, self._board_us / 1e6)
        self._board_us += round(missing_s * 1e6)
        return missing_s

    @property
    def time_s(self) -> float:
        """Of the last line."""
        return self._board_us / 1e6 + self._clock.offset_s


class _Means:
    """Means of the power of each pair over a millisecond."""

    def __init__(self, pairs: int, set_us: float, begun_s: float) -> None:
        self.times_s: list[float] = []
        self.columns: list[list[float]] = [[] for _ in range(pairs)]
        self.gaps = 0
        self._times = _Times(set_us, begun_s)
        self._count = max(1, int(_PERIOD_S * 1e6 / set_us + 1e-6))
        self._sums = [0.0] * pairs
        self._taken = 0
        self._late: list[tuple[int, float]] = []
        """Rows that may be behind a gap, and the host's time."""

    def line(self, dt_us: int, stamp: int, watts: Sequence[float]) -> None:
        """The power of each pair in the next line."""
        if self._times.step(dt_us, stamp):
            self._note_arrival()
            self.gaps += 1
            self._add([math.nan] * len(self.columns))
        self._sums = list(map(add, self._sums, watts))
        self._taken += 1
        if self._taken < self._count:
            return
        self._note_arrival()
        self._add([total / self._taken for total in self._sums])

    def _note_arrival(self) -> None:
        """Moves the rows behind a gap that the stamps do not show."""
        missing_s = self._times.arrived()
        if missing_s:
            late = (row for row, host_s in self._late if host_s >= self._times.gap_until_s)
            for row in range(next(late, len(self.times_s)), len(self.times_s)):
                self.times_s[row] += missing_s
            self.gaps += 1
        if self._times.is_late:
            self._late.append((len(self.times_s), self._times.host_s))
        else:
            self._late = []

    def _add(self, watts: Sequence[float]) -> None:
        newest_s = self.times_s[-1] if self.times_s else -math.inf
        self.times_s.append(max(self._times.time_s, newest_s + 1e-6))
        for column, power_w in zip(self.columns, watts, strict=True):
            column.append(power_w if POWER_SAMPLE.contains(power_w) else math.nan)
        self._sums = [0.0] * len(self.columns)
        self._taken = 0


class _Line(NamedTuple):
    marker: str
    time_s: float
    dt_us: int
    stamp: int
    cells: Sequence[float]
    """Current, voltage and power of each pair, and the total."""


def _parsed(text: str, cells: int) -> _Line | None:
    """None for a line that is not one of the dump."""
    fields = text[2:].split()
    if text[1:2] != " " or len(fields) != _FIXED - 1 + cells:
        return None
    try:
        time_s, dt_us, stamp = float(fields[0]), int(fields[1]), int(fields[2])
        line = _Line(text[0], time_s, dt_us, stamp, [*map(float, fields[3:])])
    except ValueError:
        return None
    is_possible = 0 <= stamp < STAMPS and 0 <= dt_us < _LONGEST_US and math.isfinite(time_s)
    if is_possible:
        return line
    return None


def _lines(text: str, begin: int, cells: int) -> Iterator[tuple[int, _Line]]:
    """The lines with a line end and their numbers. Raises PowerError for another one, and where
    lines were removed or another dump begins."""
    last: _Line | None = None
    first_number = text.count("\n", 0, begin) + 1
    for number, match in enumerate(_LINE.finditer(text, begin), start=first_number):
        line = _parsed(match[1], cells)
        if line is None:
            raise unexplained(number, match[1])
        if last is not None:
            _check_follows(number, line, line.time_s - last.time_s)
        last = line
        yield number, line


def _check_follows(number: int, line: _Line, passed_s: float) -> None:
    """Raises PowerError unless `time` and `dt_micro` of a line say the same about the time that has
    passed since the line before."""
    if passed_s < 0.0:
        raise PowerError(f"line {number}: the time runs backwards: cut the dump there")
    of_host_s = line.dt_us / 1e6
    if abs(passed_s - of_host_s) > _within_s(line.time_s):
        raise PowerError(
            f"line {number}: its time is {passed_s:.6g} s after that of the line before, and its "
            f"dt_micro {of_host_s:.6g} s: lines were removed; cut the dump there into two files"
        )


def _within_s(time_s: float) -> float:
    """By how much the difference of two printed times may be off, s: six decimals of Unix time, or
    six significant digits, and the two µs of `dt_micro`."""
    if time_s > _LEAST_UNIX_S:
        return 4e-6
    digit_s = 10.0 ** (math.floor(math.log10(time_s)) - 5) if time_s > 0.0 else 1e-6
    return 1.1 * max(digit_s, 1e-6) + 2e-6


def _usual_step_us(lines: Iterable[_Line]) -> float:
    """The median time between two lines, µs. Raises PowerError."""
    stamps = [line.stamp for line in lines]
    steps = [(after - before) % STAMPS for before, after in pairwise(stamps)]
    usual_us = statistics.median(steps) if steps else 0
    if usual_us == 0:
        raise PowerError("its device_timestamp does not rise")
    return usual_us


def _volts(values: Sequence[float]) -> float:
    """The median voltage, on which the step of the power depends; between 1 and 100 V."""
    known = [abs(value) for value in values if math.isfinite(value)]
    if known:
        return min(max(statistics.median(known), 1.0), 100.0)
    return 12.0


def _read(text: str) -> ReadLog:
    """The means of each pair."""
    header = _HEADER.search(text)
    if header is None:
        raise PowerError("no header of a dump")
    names = header[1].split()
    numbers = [name.removeprefix("power") for name in names[2::3]]
    expected = []
    for n in numbers:
        for kind in ("current", "voltage", "power"):
            expected.append(f"{kind}{n}")
    if names != expected or len(set(numbers)) < len(numbers):
        raise PowerError(f"its columns are not those of pairs of sensors: {header[1].strip()}")
    begin, cells = header.end() + 1, len(names) + 1
    head = [line for _, line in islice(_lines(text, begin, cells), _STEPS)]
    set_us = _usual_step_us(head)
    means = _Means(len(numbers), set_us, head[0].time_s)
    markers = []
    for number, line in _lines(text, begin, cells):
        if line.marker != "S":
            markers.append(f"{line.marker} in line {number}")
        means.line(line.dt_us, line.stamp, line.cells[2::3])
    volts = [_volts([line.cells[3 * k + 1] for line in head]) for k in range(len(numbers))]
    found = _log(means, numbers, volts, head[0].time_s)
    if means.gaps:
        found.notes.append(f"lines are missing in {means.gaps} places: those times have no reading")
    if markers:
        found.notes.append(f"{len(markers)} markers: {', '.join(markers[:_MARKERS])}")
    return found


def _log(means: _Means, numbers: Sequence[str], volts: Sequence[float], begun_s: float) -> ReadLog:
    is_unix = begun_s > _LEAST_UNIX_S
    period_s = _PERIOD_S
    if len(means.times_s) > 1:
        period_s = statistics.median(b - a for a, b in pairwise(means.times_s))
    channels = tuple(
        Channel(
            name=f"{_METER}:pair{number}",
            domain="device",
            quantity="power_w",
            accuracy_relative=ACCURACY,
            resolution=2.0 * _MLX10_A * volt,
            contents=only("drives"),
            remark=f"pair {number}, {volt:.2f} V",
            delay=replace(powersensor3.DELAY, averages_s=period_s),
        )
        for number, volt in zip(numbers, volts, strict=True)
    )
    info = MeterInfo(_METER, _METER, "measured", period_s, period_s, channels)
    recorded = MeterSamples(info, means.times_s, tuple(means.columns))
    found = ReadLog([_series(recorded)], "utc" if is_unix else "start", same_machine=False)
    if not is_unix and begun_s > 0.0:
        # Of six significant digits.
        found.unsure_s = 10.0 ** (math.floor(math.log10(begun_s)) - 5) / 2.0
    found.notes.append(
        "its pairs are taken for a drive; otherwise LOG,domain=DOMAIN, and LOG,pairs=N+N for some"
    )
    found.select = lambda options: [_series(_selected(recorded, options))]
    return found


def _selected(recorded: MeterSamples, options: Mapping[str, str]) -> MeterSamples:
    """The pairs of `pairs=` (default: all), in the domain of `domain=` (default: device). Raises
    PowerError."""
    info, domain = recorded.info, domain_option(_METER, {"domain": "device", **options})
    wanted = [f"{_METER}:pair{n.strip()}" for n in options.get("pairs", "").split("+") if n.strip()]
    names = [channel.name for channel in info.channels]
    if not set(wanted) <= set(names):
        known = ", ".join(name.removeprefix(f"{_METER}:pair") for name in names)
        raise PowerError(f"pairs={options['pairs']}: its pairs are {known}")
    places = [k for k, name in enumerate(names) if not wanted or name in wanted]
    contents = only("drives") if domain == "device" else UNKNOWN
    channels = tuple(replace(info.channels[k], domain=domain, contents=contents) for k in places)
    columns = tuple(recorded.values[k] for k in places)
    return MeterSamples(replace(info, channels=channels), recorded.times_s, columns)


def _series(recorded: MeterSamples) -> Series:
    """All channels of the meter, which are of one domain."""
    info = recorded.info
    total_w = [math.fsum(row) for row in zip(*recorded.values, strict=True)]
    return Series(
        meter=info.name,
        domain=info.channels[0].domain,
        kind=info.kind,
        form="mean",
        times_s=recorded.times_s,
        values=total_w,
        accuracy=ACCURACY,
        contents=info.channels[0].contents,
        delay=info.channels[0].delay,
        recorded=recorded,
    )


LOGS = (LogFormat("psrun", _HEADER, _read),)
