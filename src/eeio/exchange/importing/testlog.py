"""Logs that a measuring script keeps: a run's name, `start`, a date, `end`, a date.

The dates are those of date(1) in the language of the machine. The zone's abbreviation decides
the offset; one that is not in the list is rejected, because a wrong hour would fit no sample.
"""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

from eeio.errors import EeioError, LimitError
from eeio.files import inputs
from eeio.units.quantities import TIMESTAMP, shortened

# The first three letters of a month in English, Portuguese, Spanish, French, German and Italian;
# French June and July share theirs, and are rejected.
_MONTHS = (
    ("jan", "ene", "gen"),
    ("feb", "fev", "fév"),
    ("mar", "mär"),
    ("apr", "abr", "avr"),
    ("may", "mai", "mag"),
    ("jun", "giu"),
    ("jul", "lug"),
    ("aug", "ago", "aoû"),
    ("sep", "set"),
    ("oct", "out", "okt", "ott"),
    ("nov",),
    ("dec", "dez", "dic", "déc"),
)
_OFFSETS_H = {
    "UTC": 0,
    "GMT": 0,
    "WET": 0,
    "WEST": 1,
    "CET": 1,
    "CEST": 2,
    "EET": 2,
    "EEST": 3,
    "BST": 1,
    "BRT": -3,
    "BRST": -2,
    "ART": -3,
    "EST": -5,
    "EDT": -4,
    "CDT": -5,
    "MST": -7,
    "MDT": -6,
    "PST": -8,
    "PDT": -7,
    "JST": 9,
    "KST": 9,
}
_DATE_S = 1.0
"""The resolution of date(1)."""
_DATE = re.compile(
    r"\S{1,20} +(?P<month>[^\W\d]{3})[^\W\d]*\.? +(?P<day>\d{1,2}) +"
    r"(?P<time>\d\d:\d\d:\d\d) +(?P<zone>\S+) +(?P<year>\d{4})"
)


@dataclass(frozen=True)
class Span:
    """When a run began and ended, Unix seconds."""

    name: str
    start_s: float
    end_s: float
    within_s: float = 0.0
    """The times may be too early by this: date(1) omits parts of a second."""


def parse_date(text: str) -> float:
    """Unix seconds of a line of date(1). Raises ValueError."""
    match = _DATE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{shortened(text.strip())} is not a date as date(1) prints it")
    month = _month(match["month"])
    clock = datetime.strptime(match["time"], "%H:%M:%S")
    try:
        moment = datetime(
            int(match["year"]),
            month,
            int(match["day"]),
            clock.hour,
            clock.minute,
            clock.second,
            tzinfo=_zone(match["zone"]),
        )
        return TIMESTAMP.checked(moment.timestamp(), f"the date {text.strip()!r}")
    except OverflowError as error:
        raise ValueError(f"{text.strip()!r} is not a date: {error}") from error


def _month(word: str) -> int:
    for number, names in enumerate(_MONTHS, 1):
        if word.casefold() in names:
            return number
    raise ValueError(f"{word!r} is not a month in a language that is known here")


def _zone(word: str) -> timezone:
    if re.fullmatch(r"[+-]\d\d(\d\d)?", word):
        minutes = int(word[1:3]) * 60 + int(word[3:] or 0)
        return timezone(timedelta(minutes=-minutes if word[0] == "-" else minutes))
    if word not in _OFFSETS_H:
        raise ValueError(f"the zone {word!r} is not known; write the log with `date -R` offsets")
    return timezone(timedelta(hours=_OFFSETS_H[word]))


def read(path: Path) -> list[Span]:
    """The spans of a log, in its order. Raises EeioError that names the line of a fault."""
    try:
        lines = inputs.read_text(path, inputs.TABLE_BYTES).splitlines()
    except OSError as error:
        raise EeioError(f"{path}: {error.strerror}") from error
    except LimitError as error:
        raise EeioError(f"{path}: {error}") from error
    spans: list[Span] = []
    found = [(number, line.strip()) for number, line in enumerate(lines, 1) if line.strip()]
    if not found:
        raise EeioError(f"{path}: empty")
    for place in range(0, len(found), 5):
        piece = found[place : place + 5]
        number = piece[0][0]
        texts = [text for _, text in piece]
        if len(texts) < 5:
            raise EeioError(f"{path}:{number}: {texts[0]:.100} has no end: the log is cut off")
        if texts[1] != "start" or texts[3] != "end":
            raise EeioError(f"{path}:{number}: not NAME, start, date, end, date: {texts!s:.200}")
        try:
            start_s, end_s = parse_date(texts[2]), parse_date(texts[4])
        except ValueError as error:
            raise EeioError(f"{path}:{number}: {error}") from error
        if end_s <= start_s:
            raise EeioError(f"{path}:{number}: {texts[0]:.100} ends before it starts")
        spans.append(Span(texts[0], start_s, end_s, _DATE_S))
    return spans
