"""turbostat."""

import re

from eeio.importing.power_logs.cells import watts_of
from eeio.importing.power_logs.format import LogFormat
from eeio.importing.power_logs.series import PUNCTUAL, ReadLog, series_of
from eeio.importing.power_logs.times import time_of
from eeio_power.errors import PowerError


def _turbostat(text: str) -> ReadLog:
    """The lines of all processors together: means since the line before."""
    found = ReadLog()
    rows: dict[str, list[tuple[float, float]]] = {"package": [], "dram": []}
    header: list[str] = []
    for line in text.splitlines():
        cells = line.split()
        if "PkgWatt" in cells:
            header = cells
            if "Time_Of_Day_Seconds" not in header:
                raise PowerError("no column Time_Of_Day_Seconds: --enable Time_Of_Day_Seconds")
        elif header and len(cells) == len(header):
            values = dict(zip(header, cells, strict=True))
            if any(values.get(name, "-") != "-" for name in ("Package", "Die", "Node", "CPU")):
                continue
            if values.get("Core", "-") == "-":
                time_s, _ = time_of(values["Time_Of_Day_Seconds"])
                rows["package"].append((time_s, watts_of(values["PkgWatt"])))
                if "RAMWatt" in values:
                    rows["dram"].append((time_s, watts_of(values["RAMWatt"])))
    found.series = [
        series_of("turbostat", domain, "measured", "mean", of, PUNCTUAL)
        for domain, of in rows.items()
        if any(value > 0 for _, value in of)
    ]
    return found


LOGS = (
    LogFormat("turbostat", re.compile(r"^(?:\S{1,40}\s{1,20}){0,99}PkgWatt\b", re.M), _turbostat),
)
