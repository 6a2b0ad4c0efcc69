"""PTDaemon's log of SPECpower."""

import re

from eeio.importing.power_logs.cells import watts_of
from eeio.importing.power_logs.format import LogFormat
from eeio.importing.power_logs.series import ANALYSER, ReadLog, series_of
from eeio.importing.power_logs.times import time_of
from eeio_power.reading import WALL


def _ptd(text: str) -> ReadLog:
    """PTDaemon's log of SPECpower: `Time,11-24-2026 12:00:00.123,Watts,120.3,...`."""
    found = ReadLog(same_machine=False)
    rows = []
    for line in text.splitlines():
        cells = line.split(",")
        if cells[0] == "Time" and len(cells) > 3 and cells[2] == "Watts":
            time_s, found.clock = time_of(cells[1])
            rows.append((time_s, watts_of(cells[3])))
    # The analyzer's mean since the reading before.
    found.series.append(
        series_of("ptdaemon", "system", "measured", "mean", rows, ANALYSER, 0.01, WALL)
    )
    return found


LOGS = (LogFormat("ptdaemon", re.compile(r"^Time,[\d-]{10} [\d:.]{8,15},Watts,", re.M), _ptd),)
