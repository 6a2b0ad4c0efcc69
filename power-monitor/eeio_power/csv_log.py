"""A log of power or of a counter in columns, read as instruments and people write them.

The encoding, the delimiter and the decimal sign are found out where `Layout` does not name them;
an instrument's mark for no value is a missing reading.
"""

import codecs
import csv
import math
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from itertools import pairwise
from operator import mul
from pathlib import Path
from zoneinfo import ZoneInfo

from eeio.errors import LimitError
from eeio.files import inputs
from eeio.units.quantities import COUNTER_SAMPLE, MOST_DIGITS, POWER_SAMPLE, TIMESTAMP
from eeio_power.errors import PowerError
from eeio_power.meters import Quantity
from eeio_power.resolution import CUT_OFF_STEPS, MOST_READINGS, product_step_w, written_step_w

# SCPI instruments write 9.9E37 for overload and 9.91E37 for no number.
SENTINEL = 9.8e37
SENTINELS = frozenset(
    (
        "",
        "-",
        "--",
        "---",
        "ol",
        "o.l.",
        "ovld",
        "overload",
        "nan",
        "n/a",
        "na",
        "null",
        "inf",
        "****",
    )
)
# A log with more cells than this that are no numbers is read wrongly.
MOST_DAMAGED = 0.05
DELIMITERS = {"semicolon": ";", "tab": "\t", "comma": ",", "bar": "|", "space": " "}
UNITS: Mapping[str, float] = {
    "power_w": 1.0,
    "power_mw": 1e-3,
    "power_kw": 1e3,
    "energy_j": 1.0,
    "energy_wh": 3600.0,
    "energy_kwh": 3.6e6,
    "voltage_v": 1.0,
    "voltage_mv": 1e-3,
    "current_a": 1.0,
    "current_ma": 1e-3,
}
TIME_KEYS = ("time", "date", "seconds")
DECIDING_ROWS = 200
"""The first rows of a log or table, which show its decimal sign."""
# Of Python's encodings those that are none of files; they take quadratic time, too.
_NO_ENCODINGS = frozenset(
    ("idna", "punycode", "undefined", "unicode_escape", "raw-unicode-escape", "utf-7", "mbcs")
)
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_COMMA_NUMBER = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")
_POINT_NUMBER = re.compile(r"[+-]?(?=[\d.,]*\d)[\d,]*\.\d*([eE][+-]?\d+)?")
_HEADER_UNIT = re.compile(
    r"(?:[(\[/]\s*([mk]?(?:wh|w|v|a|j))\s*[)\]]?|(?:^|\w[_ ])([mk](?:wh|w|v|a|j)|wh))\s*$", re.I
)
"""In brackets or behind a slash, or at the end of the name, where one letter may be a part of it
(`Phase A`)."""
_HEADER_WORD = re.compile(r"[a-zµμ]+|°", re.I)
_OTHER_UNITS = frozenset(
    (
        "kw",
        "mw",
        "dw",
        "cw",
        "uw",
        "µw",
        "μw",
        "gw",
        "wh",
        "kwh",
        "mwh",
        "kj",
        "mj",
        "va",
        "kva",
        "mva",
        "var",
        "kvar",
        "mvar",
        "btu",
        "ma",
        "ka",
        "mv",
        "kv",
        "dbm",
    )
)
_OTHER_QUANTITIES = frozenset(
    (
        "apparent",
        "reactive",
        "factor",
        "temperature",
        "temp",
        "degc",
        "celsius",
        "fahrenheit",
        "rpm",
        "frequency",
        "hz",
        "khz",
        "mhz",
        "ghz",
        "percent",
        "°",
    )
)
"""None of them is real power."""
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")


class NoReadingError(PowerError):
    """The log has been started and contains no readings yet."""


@dataclass(frozen=True)
class Layout:
    """How to read a log; None where it is found out from the log itself."""

    columns: tuple[tuple[str, str], ...]
    """(key, column)."""
    zone: tzinfo | None = None
    time_format: str | None = None
    start: float | None = None
    """Unix s of second 0."""
    delimiter: str | None = None
    decimal_comma: bool | None = None
    encoding: str | None = None


@dataclass(frozen=True)
class Log:
    """A log as it was read: Unix seconds, rising, and W or J, NaN where a value is missing."""

    times_s: list[float]
    values: list[float]
    damaged: int
    """Cells that were no numbers."""
    resolution_w: float = 0.0
    """Of powers: the resolution of their values, W (`eeio_power.resolution`)."""


def parse_map(text: str) -> tuple[tuple[str, str], ...]:
    """`time:Time+power_w:Watts` -> (("time", "Time"), ("power_w", "Watts")). Raises PowerError."""
    columns = []
    for word in text.split("+"):
        key, colon, column = word.partition(":")
        key = key.strip()
        if not colon or not column.strip():
            raise PowerError(f"map: '{word}' is not KEY:COLUMN")
        if key not in UNITS and key not in TIME_KEYS:
            raise PowerError(
                f"map: there is no key '{key}'; there are: {', '.join([*TIME_KEYS, *UNITS])}"
            )
        columns.append((key, column.strip()))
    keys = [key for key, _ in columns]
    if len({(key, column.casefold()) for key, column in columns}) != len(columns):
        raise PowerError("map: a column is repeated; if the header has two of one name, use #1, #2")
    if ("time" in keys) == ("seconds" in keys):
        raise PowerError("map: name one time column, as time:NAME or seconds:NAME")
    kinds = {key.partition("_")[0] for key in keys if key in UNITS}
    if kinds not in ({"power"}, {"energy"}, {"voltage", "current"}):
        raise PowerError("map: name power, or voltage and current, or an energy counter")
    if len(keys) != len(set(keys)) and kinds != {"power"}:
        raise PowerError("map: a key is repeated; only power columns are added up")
    return tuple(columns)


def quantity_of(columns: Sequence[tuple[str, str]]) -> Quantity:
    """Whether the mapped columns give power or a counter."""
    if any(key.startswith("energy") for key, _ in columns):
        return "energy_j"
    return "power_w"


def decode(data: bytes, encoding: str | None) -> str:
    """The log's text. Raises PowerError if it is not in the named encoding."""
    if encoding is None:
        if data.startswith((b"\xff\xfe", b"\xfe\xff")):
            encoding = "utf-16"
        elif b"\0" in data[1:200:2] and b"\0" not in data[0:200:2]:
            encoding = "utf-16-le"
        else:
            try:
                return data.decode("utf-8-sig")
            except UnicodeDecodeError:
                encoding = "cp1252"
    try:
        if codecs.lookup(encoding).name in _NO_ENCODINGS:
            raise LookupError("no log is written so")
        return data.decode(encoding, errors="strict").removeprefix("\ufeff")
    except (LookupError, ValueError) as error:
        raise PowerError(f"the log is not in {encoding} ({error}); give encoding=") from error


def read_bytes(file: Path) -> bytes:
    """A log. Raises OSError, and PowerError for one that is longer than any is."""
    try:
        return inputs.read_bytes(file, inputs.TABLE_BYTES)
    except LimitError as error:
        raise PowerError(str(error)) from error


def parse_log(data: bytes, layout: Layout) -> Log:
    """Read a log. Raises PowerError, with the line, if it does not fit the layout.

    A last line without an end is being written, and is left out.
    """
    text = decode(data, layout.encoding)
    try:
        inputs.check_lines(text, inputs.CELL_CHARACTERS)
    except LimitError as error:
        raise PowerError(str(error)) from error
    lines = text.splitlines()
    if text and not text.endswith(("\n", "\r")):
        lines.pop()
    delimiter, header, places = _find_columns(lines, layout)
    rows = [
        (number, _split(line, delimiter))
        for number, line in enumerate(lines[header:], start=header + 1)
        if line.strip()
    ]
    if not rows:
        raise NoReadingError("the log contains no readings yet")
    if any(not column.startswith("#") for _, column in layout.columns):
        _check_width(_split(lines[header - 1], delimiter), rows)
    decimal_comma = layout.decimal_comma
    if decimal_comma is None:
        decimal_comma = delimiter != "," and _has_decimal_comma(rows, places)
    reader = _RowReader(layout, places, decimal_comma)
    for number, cells in rows:
        reader.take(number, cells)
    if reader.damaged > MOST_DAMAGED * reader.cells:
        raise PowerError(
            f"{reader.damaged} of {reader.cells} cells are no numbers, such as "
            f"{reader.damaged_example}; check map=, delimiter= and decimal="
        )
    _settle_repeated_hour(reader)
    return Log(reader.times_s, reader.values, reader.damaged, reader.resolution_w)


_MOST_STEPS_OF_PAUSE = 5.0
"""Usual times between readings: a longer one is a pause of the logger."""


def _settle_repeated_hour(reader: "_RowReader") -> None:
    """Times of the hour that occurs twice in autumn are of the first one if the readings before
    continue to them, and of the second one if they continue to the readings after. Raises
    PowerError if the log shows neither."""
    times_s, shifts_s = reader.times_s, reader.shifts_s
    steps_s = [after_s - before_s for before_s, after_s in pairwise(times_s)]
    if not shifts_s:
        return
    most_s = _MOST_STEPS_OF_PAUSE * statistics.median(steps_s or [1.0])
    for first, last in _stretches(sorted(shifts_s)):
        if last + 1 in reader.second_places:
            continue
        shift_s = shifts_s[last]
        begins_there = first > 0 and times_s[first] - times_s[first - 1] <= most_s
        ends_there = (
            last + 1 < len(times_s) and times_s[last + 1] - times_s[last] - shift_s <= most_s
        )
        if begins_there == ends_there:
            raise PowerError(
                "the hour that occurs twice as summer time ends: the log does not show which of "
                f"the two its times from {datetime.fromtimestamp(times_s[first], UTC):%H:%M} UTC "
                "on are of; log UTC, or cut it there and give each part its tz=+HH:MM"
            )
        if ends_there:
            for place in range(first, last + 1):
                times_s[place] += shift_s


def _stretches(places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The first and the last of each row of successive numbers."""
    first = places[0]
    for place, following in pairwise([*places, places[-1] + 2]):
        if following != place + 1:
            yield first, place
            first = following


class _RowReader:
    """Collects rows; a class because each row is judged by the one before."""

    def __init__(
        self, layout: Layout, places: Sequence[tuple[str, int]], decimal_comma: bool
    ) -> None:
        self._layout = layout
        self._column_indices = places
        self._decimal_comma = decimal_comma
        self._counter = quantity_of([(key, "") for key, _ in places]) == "energy_j"
        self._same = 0
        """Values in the last reading."""
        self._shift_s = 0.0
        self._is_second = False
        self.times_s: list[float] = []
        self.values: list[float] = []
        self.shifts_s: dict[int, float] = {}
        """The readings whose time may also be that of the repeated hour, so much later."""
        self.second_places: set[int] = set()
        """The readings whose time is of the repeated hour, as the clock stepped back."""
        self._parts: dict[int, list[float]] = {}
        """The values of each column of a power, as they are written."""
        self._digits: dict[int, float] = {}
        """The place of the last digit that is written in each of them."""
        self.cells = self.damaged = 0
        self.damaged_example = ""

    def take(self, number: int, cells: Sequence[str]) -> None:
        """Add a row. Raises PowerError if its time is not one, or runs backwards."""
        row = {key: cells[k].strip() if k < len(cells) else "" for key, k in self._column_indices}
        time_text = " ".join(row[key] for key in ("date", "time", "seconds") if key in row)
        before_s = -math.inf
        if self.times_s:
            before_s = self.times_s[-1]
        try:
            time_s = self._time(time_text, before_s)
            TIMESTAMP.checked(time_s, "it")
        except (ValueError, OverflowError) as error:
            raise PowerError(f"line {number}: '{time_text:.60}' is not a time ({error})") from error
        if time_s < before_s:
            raise PowerError(
                f"line {number}: the log's clock runs backwards by {before_s - time_s:.3f} s: it "
                "was set while logging; cut the log there"
            )
        value = self._value(number, cells)
        if time_s > before_s:
            self._same = 0 if math.isnan(value) else 1
            if self._is_second:
                self.second_places.add(len(self.times_s))
            elif self._shift_s > 0.0:
                self.shifts_s[len(self.times_s)] = self._shift_s
            self.times_s.append(time_s)
            self.values.append(value)
        elif not math.isnan(value):
            # A clock that shows whole seconds: the mean of the rows of one second.
            self._same += 1
            mean = self.values[-1] + (value - self.values[-1]) / self._same
            self.values[-1] = value if self._counter or self._same == 1 else mean

    @property
    def resolution_w(self) -> float:
        """The resolution of the powers; 0 of a counter."""
        if self._counter:
            return 0.0
        columns = [values[-MOST_READINGS:] for values in self._parts.values()]
        digits = [self._digits.get(k) for k in self._parts]
        units = [UNITS[key] for key, _ in self._column_indices if key in UNITS]
        if any(key.startswith("voltage") for key, _ in self._column_indices):
            return CUT_OFF_STEPS * math.prod(units) * product_step_w(columns, digits)
        steps = map(written_step_w, columns, digits)
        return float(CUT_OFF_STEPS * sum(map(mul, units, steps)))

    def _value(self, number: int, cells: Sequence[str]) -> float:
        """W or J of a row, NaN if a cell of it is missing."""
        total, product = 0.0, 1.0
        is_product = False
        for key, k in self._column_indices:
            if key not in UNITS:
                continue
            text = cells[k].strip() if k < len(cells) else ""
            written = self._number(number, text)
            part = written * UNITS[key]
            self._parts.setdefault(k, []).append(written)
            if written == written:
                self._digits[k] = min(last_digit(text), self._digits.get(k, math.inf))
            if key.startswith(("voltage", "current")):
                is_product = True
                product *= part
            else:
                total += part
        value = total
        if is_product:
            value = product
        possible = POWER_SAMPLE
        if self._counter:
            possible = COUNTER_SAMPLE
        if math.isnan(value) or possible.contains(value):
            return value
        self.damaged += 1
        self.damaged_example = self.damaged_example or f"{value:g} in line {number}"
        return math.nan

    def _number(self, number: int, text: str) -> float:
        self.cells += 1
        if text.lower() in SENTINELS:
            return math.nan
        plain = text
        if self._decimal_comma:
            plain = text.replace(",", ".")
        if len(plain) > MOST_DIGITS or not _NUMBER.fullmatch(plain):
            self.damaged += 1
            self.damaged_example = self.damaged_example or f"'{text:.60}' in line {number}"
            return math.nan
        value = float(plain)
        if abs(value) >= SENTINEL:
            return math.nan
        return value

    def _time(self, text: str, before_s: float) -> float:
        """Unix s. Raises ValueError."""
        plain = text
        if self._decimal_comma:
            plain = text.replace(",", ".")
        if any(key == "seconds" for key, _ in self._column_indices):
            if not math.isfinite(float(plain)):
                raise ValueError("not a number of seconds")
            return (self._layout.start or 0.0) + float(plain)
        if self._layout.time_format is None and _NUMBER.fullmatch(plain):
            seconds = float(plain)
            if seconds < 1e9:
                raise ValueError("a small number: map it as seconds:, with start=")
            if seconds > 1e11:
                return seconds / 1e3
            return seconds
        if self._layout.time_format is None:
            moment = datetime.fromisoformat(plain.replace("/", "-"))
        else:
            moment = datetime.strptime(text, self._layout.time_format)
        if moment.tzinfo is not None:
            return moment.timestamp()
        if self._layout.zone is None:
            raise ValueError("it has no time zone: give tz=")
        first_s = moment.replace(tzinfo=self._layout.zone).timestamp()
        # The repeated hour in autumn: its second occurrence.
        second_s = moment.replace(tzinfo=self._layout.zone, fold=1).timestamp()
        self._shift_s = second_s - first_s
        self._is_second = first_s < before_s <= second_s
        if self._is_second:
            return second_s
        return first_s


def last_digit(text: str) -> float:
    """The place of the last digit of a number: 0.01 of `50.00`, 1 of `50`."""
    mantissa, _, exponent = text.lower().partition("e")
    _, _, behind_point = mantissa.replace(",", ".").rpartition(".")
    decimals = 0
    if behind_point != mantissa:
        decimals = len(behind_point)
    return float(f"1e{int(exponent or 0) - decimals}")


def zone_of(text: str) -> tzinfo:
    """A time zone by its name or offset. Raises PowerError."""
    if text.lower() in ("utc", "z"):
        return UTC
    match = re.fullmatch(r"([+-])(\d\d):?(\d\d)", text)
    if match:
        minutes = int(match[2]) * 60 + int(match[3])
        if minutes >= 24 * 60:
            raise PowerError(f"tz={text}: no offset of a day or more; such as +01:00")
        return timezone(timedelta(minutes=minutes if match[1] == "+" else -minutes))
    try:
        return ZoneInfo(text)
    except (OSError, ValueError, KeyError) as error:
        raise PowerError(f"tz={text}: no such zone; such as Europe/Madrid, utc, +01:00") from error


def _split(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])
    except csv.Error as error:
        raise PowerError(f"{line[:60]!r} is not a log line: {error}") from error


def _find_columns(lines: Sequence[str], layout: Layout) -> tuple[str, int, list[tuple[str, int]]]:
    """(delimiter, number of the first data line, place of each key). Raises PowerError.

    Instruments write a preamble; the header is the first line that has all columns.
    """
    delimiters = list(DELIMITERS.values())
    if layout.delimiter:
        delimiters = [layout.delimiter]
    for delimiter in delimiters:
        for number, line in enumerate(lines):
            cells = [cell.strip() for cell in _split(line, delimiter)]
            places = _column_indices(cells, layout.columns)
            if places is None:
                continue
            named = any(not column.startswith("#") for _, column in layout.columns)
            if named:
                _check_units(cells, places)
                return delimiter, number + 1, places
            if _looks_like_data(cells, places):
                return delimiter, number, places
    names = ", ".join(column for _, column in layout.columns)
    widest = max((_split(line, d) for line in lines[:50] for d in delimiters), key=len, default=[])
    there = ", ".join(cell.strip() for cell in widest)[:200] or "nothing"
    raise PowerError(
        f"no line has the columns {names}; the widest of the first lines has: {there}; check map= "
        "and delimiter="
    )


def _column_indices(
    cells: Sequence[str], columns: Sequence[tuple[str, str]]
) -> list[tuple[str, int]] | None:
    """The place of each key; None for a line that lacks a column. Raises PowerError for a name
    that the line repeats."""
    names = [cell.casefold() for cell in cells]
    places = []
    for key, column in columns:
        if re.fullmatch(r"#\d+", column):
            place = int(column[1:]) - 1
            if not 0 <= place < len(cells):
                return None
        elif column.casefold() in names:
            place = names.index(column.casefold())
        else:
            return None
        places.append((key, place))
    for _, column in columns:
        if (times := names.count(column.casefold())) > 1:
            numbers = [k for k, name in enumerate(names, start=1) if name == column.casefold()]
            raise PowerError(
                f"the header has the column '{column}' {times} times: name it by its number in "
                f"map=, such as {' or '.join(f'#{number}' for number in numbers[:4])}"
            )
    return places


def _looks_like_data(cells: Sequence[str], places: Sequence[tuple[str, int]]) -> bool:
    return all(
        _NUMBER.fullmatch(cells[k].replace(",", ".")) or cells[k].lower() in SENTINELS
        for key, k in places
        if key in UNITS
    ) and all(any(c.isdigit() for c in cells[k]) for key, k in places if key in TIME_KEYS)


def _check_units(cells: Sequence[str], places: Sequence[tuple[str, int]]) -> None:
    for key, k in places:
        match = _HEADER_UNIT.search(cells[k])
        unit = (match[1] or match[2]) if match else _other_unit(cells[k])
        if key in UNITS and unit and unit.lower() != key.partition("_")[2]:
            raise PowerError(f"column '{cells[k]}' is in {unit} and is mapped as {key}; check map=")
        if key.startswith("power") and (other := _other_quantity(cells[k])):
            raise PowerError(f"column '{cells[k]}' is no power in W ({other}); check map=")


def _other_unit(header: str) -> str | None:
    """A unit among the words of a header: `Power_kW_x`."""
    words: list[str] = _HEADER_WORD.findall(header)
    for word in words:
        if word.lower() in _OTHER_UNITS:
            return word
    return None


def _other_quantity(header: str) -> str | None:
    """A word of a header for another quantity than real power."""
    words: list[str] = _HEADER_WORD.findall(header)
    for word in words:
        if word.lower() in _OTHER_QUANTITIES:
            return word
    return None


def _check_width(header: Sequence[str], rows: Sequence[tuple[int, Sequence[str]]]) -> None:
    """A number cut in two, such as 120,5 between commas, gives a row more cells than the header."""
    width = max(k for k, cell in enumerate(header, start=1) if cell.strip())
    for number, cells in rows:
        more = [cell.strip() for cell in cells[width:]]
        if any(map(_NUMBER.fullmatch, more)):
            raise PowerError(
                f"line {number}: {len(cells)} cells under a header of {width}; if numbers have a "
                "decimal comma, log them between semicolons; if not, name the columns by #1, #2"
            )


def _has_decimal_comma(
    rows: Sequence[tuple[int, Sequence[str]]], places: Sequence[tuple[str, int]]
) -> bool:
    cells = []
    for _, row in rows[:DECIDING_ROWS]:
        for key, k in places:
            if key in UNITS and k < len(row):
                cells.append(row[k].strip())
    try:
        return has_decimal_comma(cells)
    except PowerError as error:
        raise PowerError(
            f"{error}: if the comma is decimal, give decimal=comma; else log numbers without it"
        ) from error


def has_decimal_comma(cells: Sequence[str]) -> bool:
    """Whether a comma in these cells is that of decimals. Raises PowerError if it may as well
    separate thousands: then nothing but whole numbers is next to `1,226`."""
    with_comma = list(filter(_COMMA_NUMBER.fullmatch, cells))
    if not with_comma or any(map(_POINT_NUMBER.fullmatch, cells)):
        return False
    if all(map(_THOUSANDS.fullmatch, with_comma)):
        example = with_comma[0]
        raise PowerError(
            f"{example} may be {example.replace(',', '')} or {example.replace(',', '.')}"
        )
    return True
