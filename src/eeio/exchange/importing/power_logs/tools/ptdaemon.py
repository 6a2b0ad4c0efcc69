"""PTDaemon's log of SPECpower."""

import re

from eeio.exchange.importing.power_logs.format import LogFormat
from eeio.exchange.importing.power_logs.log_lines import explain
from eeio.exchange.importing.power_logs.one_meter import check_one_meter
from eeio.exchange.importing.power_logs.series import ANALYSER, ReadLog, series_of
from eeio.exchange.importing.power_logs.table_cells import watts_of
from eeio.exchange.importing.power_logs.times import LogTimes
from eeio_power.errors import PowerError
from eeio_power.reading import WALL


def _read(text: str) -> ReadLog:
    """`Time,11-24-2026 12:00:00.123,Watts,120.3,...`: pairs of names and values."""
    log = ReadLog(same_machine=False)
    rows: list[tuple[float, float]] = []
    times = LogTimes()

    def record(line: str) -> bool:
        cells = [cell.strip() for cell in line.split(",")]
        names = cells[::2]
        values = dict(zip(names, cells[1::2], strict=False))
        if cells[0] != "Time" or "Watts" not in values:
            return False
        doubled = next((name for name in values if names.count(name) > 1), None)
        if doubled is not None:
            raise PowerError(
                f"{doubled} {names.count(doubled)} times: the line does not show which meter each "
                "is of: log each meter to a separate file"
            )
        time_s = times.read(values["Time"])
        rows.append((time_s, watts_of(values["Watts"])))
        return True

    explain(text, record)
    check_one_meter("ptdaemon", rows)
    log.clock = times.clock
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
