"""`collectl -P`."""

import re

from eeio.importing.power_logs.format import LogFormat
from eeio.importing.power_logs.sensors import of_sensors
from eeio.importing.power_logs.series import ReadLog
from eeio.importing.power_logs.times import time_of
from eeio_parsers.found import number
from eeio_power.errors import PowerError

_COLLECTL = re.compile(r"^#Date Time ", re.M)


def _collectl(text: str) -> ReadLog:
    """`collectl -P`: local times, and power of the environmental data."""
    found = ReadLog(clock="local")
    lines = text[_COLLECTL.search(text).start() :].splitlines()  # type: ignore[union-attr]
    header = lines[0].lstrip("#").split()
    places = {
        name.partition("]")[2]: k for k, name in enumerate(header)
        if re.search(r"pow|watt|pwr", name, re.I)
    }  # fmt: skip
    if not places:
        raise PowerError("no column of power: collectl records it with -sE --envopts p")
    rounds = []
    for cells in (line.split() for line in lines[1:] if not line.startswith("#")):
        if len(cells) < len(header):
            continue
        date = cells[0] if "-" in cells[0] else f"{cells[0][:4]}-{cells[0][4:6]}-{cells[0][6:]}"
        time_s, found.clock = time_of(f"{date} {cells[1]}")
        rounds.append((time_s, {name: number(cells[k]) for name, k in places.items()}))
    found.series.append(of_sensors("collectl", rounds))
    return found


LOGS = (LogFormat("collectl", _COLLECTL, _collectl),)
