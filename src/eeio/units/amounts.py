"""Amounts as options write them: shares, times, bytes, numbers.

Each raises LimitError, or ValueError for what is no number at all.
"""

import re

from eeio.errors import LimitError
from eeio.units import quantities as q
from eeio.units.sizes import bytes_of, parse_size

_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


def share(text: str) -> float:
    """`10%` or `0.1`, from 0 to 1. Raises LimitError."""
    written = text.strip()
    try:
        if written.endswith("%"):
            return q.SHARE.checked(q.FIGURE.of_text(written[:-1].strip()) / 100)
        return q.SHARE.of_text(written)
    except LimitError as error:
        raise LimitError(f"{error}; write it as 10% or 0.1") from error


def duty(text: str) -> float:
    """A share of the time in use, above 0. Raises LimitError."""
    value = share(text)
    if value == 0:
        raise LimitError("0: a system that is never in use moves no bytes")
    return value


def seconds(text: str) -> float:
    """`5ms`, `250us` or `0.1s`, above 0. Raises LimitError."""
    written = text.strip()
    unit = next((unit for unit in _SECONDS if written.endswith(unit)), None)
    if unit is None:
        raise LimitError(f"{q.shortened(text)}: write it as 250us, 5ms or 0.1s")
    try:
        value = q.DURATION.of_text(written.removesuffix(unit).strip()) * _SECONDS[unit]
    except LimitError as error:
        raise LimitError(str(error)) from error
    if value == 0:
        raise LimitError(f"{q.shortened(text)}: no request takes no time")
    return value


def decimal_bytes(text: str) -> float:
    """Bytes: `150T`, `1.2P`, `600GB`; powers of ten, as data sheets mean them. Raises
    argparse.ArgumentTypeError."""
    size = bytes_of(text, kilo=1000)
    if size is None or not re.search(r"[gtp]b?\s*$", text, re.IGNORECASE):
        raise LimitError(f"{q.shortened(text)}: write it as 150T, 600G or 1.2P")
    if size <= 0:
        raise LimitError(f"{q.shortened(text)}: it must be above 0")
    return float(size)


def decimal_bytes_whole(text: str) -> int:
    """As `decimal_bytes`, without the part of a byte."""
    return int(decimal_bytes(text))


def gigabytes(size_bytes: int) -> str:
    """As `decimal_bytes_whole` reads it."""
    return f"{size_bytes / 1e9:.12g}G"


def words(text: str) -> tuple[str, ...]:
    """`on,off`."""
    return tuple(word for word in text.split(",") if word)


def repetitions(text: str) -> int:
    """A number of repetitions."""
    return _whole_number(q.REPETITIONS, text)


def seed(text: str) -> int:
    """The seed of an order, in the range of campaign.json: -5 would draw the order of 5."""
    return _whole_number(q.COUNT, text)


def _whole_number(quantity: q.Quantity, text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise LimitError(f"{text!r} is not a whole number") from None
    return quantity.whole_number(number)


def reading_rate(text: str) -> float:
    """Readings of a meter per second."""
    rate_hz = float(text)
    if not 0.1 <= rate_hz <= 1000:
        raise LimitError(f"{text}: readings a second, from 0.1 to 1000")
    return rate_hz


def work(text: str) -> int:
    """The bytes that each run moves, such as `1g`; suffixes are binary."""
    size_bytes = parse_size(text)
    if size_bytes == 0:
        raise LimitError(f"{text}: no work; give the bytes per run, such as 1g")
    return size_bytes


def precondition(text: str) -> int:
    """Writes before the measurement, in percent of the target: `200%`."""
    percent = int(text.removesuffix("%"))
    if not 100 <= percent <= 1000:
        raise LimitError(f"{text}: from 100% (the measured area is written once) to 1000%")
    return percent


def share_below_one(text: str) -> float:
    """`3%` or `0.03`."""
    value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    if not 0 <= value < 1:
        raise LimitError(f"{text}: a share below 1, such as 0.03 or 3%")
    return value


def pause(text: str) -> float:
    """Seconds, up to a day."""
    pause_s = float(text)
    if not 0 <= pause_s < 86_400:
        raise LimitError(f"{text}: seconds, from 0 to a day")
    return pause_s
