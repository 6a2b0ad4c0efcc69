"""Shares, times and rated writes as options write them."""

import argparse
import re

from eeio.errors import LimitError
from eeio.units import quantities as q
from eeio.units.sizes import bytes_of

_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


def share(text: str) -> float:
    """`10%` or `0.1`, from 0 to 1. Raises argparse.ArgumentTypeError."""
    written = text.strip()
    try:
        if written.endswith("%"):
            return q.SHARE.checked(q.FIGURE.of_text(written[:-1].strip()) / 100)
        return q.SHARE.of_text(written)
    except LimitError as error:
        raise argparse.ArgumentTypeError(f"{error}; write it as 10% or 0.1") from error


def duty(text: str) -> float:
    """A share of the time in use, above 0. Raises argparse.ArgumentTypeError."""
    found = share(text)
    if found == 0:
        raise argparse.ArgumentTypeError("0: a system that is never in use moves no bytes")
    return found


def seconds(text: str) -> float:
    """`5ms`, `250us` or `0.1s`, above 0. Raises argparse.ArgumentTypeError."""
    written = text.strip()
    unit = next((unit for unit in _SECONDS if written.endswith(unit)), None)
    if unit is None:
        raise argparse.ArgumentTypeError(f"{q.shortened(text)}: write it as 250us, 5ms or 0.1s")
    try:
        found = q.DURATION.of_text(written.removesuffix(unit).strip()) * _SECONDS[unit]
    except LimitError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    if found == 0:
        raise argparse.ArgumentTypeError(f"{q.shortened(text)}: no request takes no time")
    return found


def decimal_bytes(text: str) -> float:
    """Bytes: `150T`, `1.2P`, `600GB`; powers of ten, as data sheets mean them. Raises
    argparse.ArgumentTypeError."""
    found = bytes_of(text, kilo=1000)
    if found is None or not re.search(r"[gtp]b?\s*$", text, re.IGNORECASE):
        raise argparse.ArgumentTypeError(f"{q.shortened(text)}: write it as 150T, 600G or 1.2P")
    if found <= 0:
        raise argparse.ArgumentTypeError(f"{q.shortened(text)}: it must be above 0")
    return float(found)
