"""PTDaemon's log of SPECpower."""

import re

from eeio.importing.power_logs.cells import watts_of
from eeio.importing.power_logs.format import LogFormat
from eeio.importing.power_logs.lines import explain
from eeio.importing.power_logs.series import ANALYSER, ReadLog, series_of
from eeio.importing.power_logs.times import time_of
from eeio_power.reading import WALL


def _read(text: str) -> ReadLog:
    """`Time,11-24-2026 12:00:00.123,Watts,120.3,...`: pairs of names and values."""
    log = ReadLog(same_machine=False)
    rows = []

    def record(line: str) -> bool:
        cells = [cell.strip() for cell in line.split(",")]
        values = dict(zip(cells[::2], cells[1::2], strict=False))
        if cells[0] != "Time" or "Watts" not in values:
            return False
        time_s, log.clock = time_of(values["Time"])
        rows.append((time_s, watts_of(values["Watts"])))
        return True

    explain(text, record)
    # The analyzer's mean since the reading before.
    log.series.append(
        series_of("ptdaemon", "system", "measured", "mean", rows, ANALYSER, 0.01, WALL)
    )
    return log


LOGS = (
    LogFormat(
        "ptdaemon", re.compile(r"^Time,[\d-]{10} [\d:.]{8,15},(?:[^\n]{1,99},)?Watts,", re.M), _read
    ),
)
