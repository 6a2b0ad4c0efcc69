"""Records of a Watts Up."""

import math
import re
from dataclasses import replace

from eeio.exchange.importing.power_logs.format import LogFormat
from eeio.exchange.importing.power_logs.log_lines import explain, matching
from eeio.exchange.importing.power_logs.one_meter import check_one_meter
from eeio.exchange.importing.power_logs.series import ANALYSER, ReadLog, series_of
from eeio.exchange.importing.power_logs.times import STAMP, LogTimes
from eeio_power.errors import PowerError
from eeio_power.reading import WALL

_RECORD = re.compile(r"#d,-,(?P<fields>\d{1,3}),(?P<rest>(?P<power>-?\d{1,9}|_),[^;\n]{0,200});")
"""It states the number of its fields, of which the first is the power in 0.1 W."""
_ANOTHER_RECORD = r"[^#]{0,80}#[a-ce-z],[-\w]?,\d{1,3}[,;]"
"""Headers, settings and limits of the meter."""

_LONGEST_MEAN_S = 1.5
"""The meter has a mean of each second. A logger that asks it less often sees some of them."""
_SECOND = replace(
    ANALYSER, averages_s=1.0, source="the mean of a second: up to 1 s late, and a part of the time"
)


def _read(text: str) -> ReadLog:
    """Records with a time in front of each, or the table of its logger."""
    log = ReadLog(same_machine=False)
    rows: list[tuple[float, float]] = []
    times = LogTimes()

    def record(line: str) -> bool:
        power = _RECORD.search(line)
        if power is None or len(power["rest"].split(",")) != int(power["fields"]):
            return False
        stamp = STAMP.search(line[: power.start()])
        if stamp is None:
            raise PowerError("records without a time: log them with one in front of each")
        time_s = times.read(stamp[1])
        rows.append((time_s, math.nan if power["power"] == "_" else int(power["power"]) / 10))
        return True

    explain(text, record, matching(_ANOTHER_RECORD))
    check_one_meter("wattsup", rows)
    log.clock = times.clock
    series = series_of("wattsup", "system", "measured", "mean", rows, ANALYSER, 0.015, WALL)
    if series.period_s > _LONGEST_MEAN_S:
        series = series_of("wattsup", "system", "measured", "sample", rows, _SECOND, 0.015, WALL)
    log.series.append(series)
    return log


LOGS = (LogFormat("wattsup", _RECORD, _read),)
