"""Records of a Watts Up."""

import math
import re

from eeio.importing.power_logs.format import LogFormat
from eeio.importing.power_logs.series import ANALYSER, ReadLog, series_of
from eeio.importing.power_logs.times import STAMP, time_of
from eeio_power.errors import PowerError
from eeio_power.reading import WALL

_WATTSUP = re.compile(r"#d,-,\d{1,3},(-?\d{1,9}|_),")


def _wattsup(text: str) -> ReadLog:
    """Records of a Watts Up with a time in front of each, or the table of its logger."""
    found = ReadLog(same_machine=False)
    rows = []
    for line in text.splitlines():
        if record := _WATTSUP.search(line):
            stamp = STAMP.search(line[: record.start()])
            if stamp is None:
                raise PowerError("records without a time: log them with one in front of each")
            time_s, found.clock = time_of(stamp[1])
            rows.append((time_s, math.nan if record[1] == "_" else int(record[1]) / 10))
    found.series.append(
        series_of("wattsup", "system", "measured", "mean", rows, ANALYSER, 0.015, WALL)
    )
    return found


LOGS = (LogFormat("wattsup", _WATTSUP, _wattsup),)
