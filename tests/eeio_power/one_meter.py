"""Meters that a test opens; conftest.py closes them after it."""

from pathlib import Path

from eeio_power.meters import Meter, open_meters

_opened: list[Meter] = []


def one_meter(spec: str, root: Path = Path("/")) -> Meter:
    (meter,) = open_meters([spec], root)
    _opened.append(meter)
    return meter


def close_all() -> None:
    while _opened:
        _opened.pop().close()
