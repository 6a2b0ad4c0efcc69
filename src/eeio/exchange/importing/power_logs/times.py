"""Times as programs print them."""

import re
from datetime import UTC, datetime
from typing import Any

from eeio.exchange.importing.power_logs.series import Clock
from eeio_power.errors import PowerError

_CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?: ?[AaPp][Mm]\b)?"
_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6},? "
_ZONE = r"(?: (?:[A-Z]{3,5}|[+-]\d\d(?:\d\d)?)\b)?"
_DATES = (
    rf"{_DAY}[A-Z][a-z]{{2}} {{1,2}}\d{{1,2}} {_CLOCK}{_ZONE} \d{{4}}",
    rf"{_DAY}\d{{1,2}} [A-Z][a-z]{{2}} {_CLOCK}{_ZONE} \d{{4}}",
    rf"{_DAY}\d{{1,2}} [A-Z][a-z]{{2}} \d{{4}} {_CLOCK}{_ZONE}",
)
"""As date(1) prints them: in the locales C and en_US, en_GB, and en_US of older systems."""
STAMP = re.compile(
    rf"\[?(\d{{4}}[-/]\d\d[-/]\d\d[ T]{_CLOCK}(?: ?(?:Z|[+-]\d\d:?\d\d)\b)?"
    rf"|{'|'.join(_DATES)}|1\d{{9}}(?:\.\d{{1,9}})?|1\d{{12}}|1\d{{18}})(?!\w)"
)
"""A time at the beginning of a line, or in front of a record."""
_PARTS_OF_DATE = re.compile(
    rf"{_DAY}(?:(?P<month>[A-Z][a-z]{{2}}) {{1,2}}(?P<day>\d{{1,2}})|(?P<day_first>\d{{1,2}}) "
    rf"(?P<month_second>[A-Z][a-z]{{2}}))(?: (?P<year_early>\d{{4}}))? (?P<clock>{_CLOCK})"
    rf"(?P<zone>{_ZONE})(?: (?P<year>\d{{4}}))?"
)


def time_of(text: str) -> tuple[float, Clock]:
    """Unix s of a time, and whether it has a zone. Raises PowerError."""
    text = text.strip().rstrip(",;:|")
    if re.fullmatch(r"\d{1,19}(?:\.\d{1,12})?", text):
        seconds = float(text)  # s, ms, us, ns since 1970; or since a start
        while seconds > 1e11:
            seconds /= 1000
        return seconds, "utc" if seconds > 1e8 else "start"
    try:
        moment = datetime.fromisoformat(_iso(text))
    except ValueError:
        raise PowerError(f"{text[:40]!r} is not a time") from None
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC).timestamp(), "local"
    return moment.timestamp(), "utc"


class LogTimes:
    """The times of one log, all of the same clock."""

    def __init__(self) -> None:
        self._first: tuple[Clock, str] | None = None

    @property
    def clock(self) -> Clock:
        if self._first is None:
            return "utc"
        return self._first[0]

    def read(self, text: str) -> float:
        """Unix s of a time. Raises PowerError for one with another clock, or with another zone
        whose difference to UTC is not known."""
        return self._checked(*time_of(text), _zone_name(text))

    def read_json(self, value: Any) -> float:
        """The same of a value of JSON. Raises PowerError."""
        return self._checked(*time_of_json(value), "")

    def _checked(self, time_s: float, clock: Clock, zone: str) -> float:
        if clock == "utc":
            zone = ""
        self._first = self._first or (clock, zone)
        if self._first != (clock, zone):
            first, now = _named(*self._first), _named(clock, zone)
            raise PowerError(
                f"the clock changes from {first} to {now}: cut the log there, and import the parts "
                "with separate offsets"
            )
        return time_s


_CLOCKS: dict[Clock, str] = {
    "utc": "UTC",
    "local": "local time",
    "start": "the time since a start",
}


def _named(clock: Clock, zone: str) -> str:
    return f"{_CLOCKS[clock]} {zone}".rstrip()


def _zone_name(text: str) -> str:
    """The abbreviation of a time zone, such as CET; empty without one."""
    date = _PARTS_OF_DATE.fullmatch(text.strip().rstrip(",;:|"))
    if date is None:
        return ""
    return date["zone"].strip()


def _iso(text: str) -> str:
    """The ISO form of a time. Raises ValueError."""
    if date := _PARTS_OF_DATE.fullmatch(text):
        day = date["day"] or date["day_first"]
        month = date["month"] or date["month_second"]
        year = date["year"] or date["year_early"]
        moment = datetime.strptime(f"{day} {month} {year}", "%d %b %Y")
        text = f"{moment:%Y-%m-%d} {_of_24_hours(date['clock'])}{_zone(date['zone'].strip())}"
    else:
        text = re.sub(r"([+-]\d\d)(\d\d)$", r"\1:\2", text.replace("/", "-"))
        text = re.sub(_CLOCK, lambda clock: _of_24_hours(clock[0]), text, count=1)
    if date := re.fullmatch(r"(\d\d)-(\d\d)-(\d{4})([ T].*)", text):
        text = f"{date[3]}-{date[1]}-{date[2]}{date[4]}"
    return re.sub(r"([.,]\d{6})\d+", r"\1", text)


def _of_24_hours(clock: str) -> str:
    """`04:00:01 PM` is `16:00:01`. Raises ValueError."""
    half = re.search(r" ?([AaPp])[Mm]$", clock)
    if half is None:
        return clock
    hours = int(clock[:2])
    if not 1 <= hours <= 12:
        raise ValueError(clock)
    hours = hours % 12 + (12 if half[1] in "Pp" else 0)
    return f"{hours:02}{clock[2 : half.start()]}"


def _zone(name: str) -> str:
    """Of an abbreviation only UTC is known: the others have several meanings."""
    if name in ("UTC", "GMT"):
        return "+00:00"
    if name.startswith(("+", "-")):
        return f"{name[:3]}:{name[3:] or '00'}"
    return ""


def time_of_json(value: Any) -> tuple[float, Clock]:
    """The same of a value of JSON, also of MongoDB's: `{"$date": ...}`. Raises PowerError."""
    while isinstance(value, dict):
        keys = [key for key in ("$date", "$numberLong") if key in value]
        if len(keys) != len(value) or not keys:
            raise PowerError(f"{str(value)[:40]!r} is not a time")
        value = value[keys[0]]
    return time_of(str(value))
