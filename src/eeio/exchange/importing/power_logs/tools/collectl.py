"""`collectl -P`."""

import re

from eeio.exchange.importing.power_logs.format import LogFormat
from eeio.exchange.importing.power_logs.log_lines import lines_of, unexplained
from eeio.exchange.importing.power_logs.sensors import of_sensors
from eeio.exchange.importing.power_logs.series import ReadLog
from eeio.exchange.importing.power_logs.times import LogTimes
from eeio_parsers.found import number
from eeio_power.errors import PowerError

_HEADER = re.compile(r"^#Date Time ", re.M)


def _read(text: str) -> ReadLog:
    """Local times, and power of the environmental data. Lines with # are comments, and the header
    may be repeated."""
    log = ReadLog()
    times = LogTimes()
    header: list[str] = []
    rounds: list[tuple[float, dict[str, float | None]]] = []
    for number_of_line, line in lines_of(text):
        if _HEADER.match(line):
            header = line.lstrip("#").split()
        elif not line.startswith("#"):
            cells = line.split()
            if len(cells) != len(header):
                hint = f"{len(header)} columns are expected"
                raise unexplained(number_of_line, line, hint)
            row = dict(zip(header, cells, strict=True))
            date = row["Date"]
            date = date if "-" in date else f"{date[:4]}-{date[4:6]}-{date[6:]}"
            time_s = times.read(f"{date} {row['Time']}")
            powers = {}
            for name, cell in row.items():
                if re.search(r"pow|watt|pwr", name, re.I):
                    powers[name.partition("]")[2]] = number(cell)
            rounds.append((time_s, powers))
    if not any(powers for _, powers in rounds):
        raise PowerError("no column of power: collectl records it with -sE --envopts p")
    log.clock = times.clock
    log.series.append(of_sensors("collectl", rounds))
    return log


LOGS = (LogFormat("collectl", _HEADER, _read),)
