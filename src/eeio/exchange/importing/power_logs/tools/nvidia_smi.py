"""`nvidia-smi --query-gpu`."""

import re

from eeio.exchange.importing.power_logs.format import LogFormat
from eeio.exchange.importing.power_logs.log_lines import lines_of, matching, table
from eeio.exchange.importing.power_logs.readings import Value, summed
from eeio.exchange.importing.power_logs.series import ReadLog, series_of
from eeio.exchange.importing.power_logs.table_cells import watts_of
from eeio.exchange.importing.power_logs.times import LogTimes
from eeio_power.delay import NVIDIA
from eeio_power.errors import PowerError

_COMMAND = "--query-gpu=timestamp,index,power.draw"
_NAMES = ("index", "uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id", "serial", "gpu_serial")
"""Columns that name a GPU."""
_IS_FAILURE = matching(r"(?:Failed to |Unable to |Unknown Error|No devices were found|GPU is lost)")


def _columns(text: str) -> tuple[str, str]:
    """The column that names a GPU, and that of the power. Raises PowerError without them."""
    header = next((line for _, line in lines_of(text)), "")
    columns = [cell.strip() for cell in header.split(",")]
    powers = sorted(name for name in columns if re.match(r"power\.draw\b", name))
    if not powers or "timestamp" not in columns:
        raise PowerError(f"give nvidia-smi {_COMMAND}")
    name = next((column for column in _NAMES if column in columns), None)
    if name is None:
        raise PowerError(
            f"no column shows which GPU a row is of (there may be several GPUs): {_COMMAND}"
        )
    # The mean of a second, and not `power.draw.instant`.
    return name, powers[0]


def _check_unit(column: str, cell: str) -> None:
    """Raises PowerError for another unit than W, or none."""
    unit = re.search(r"\[(\w{1,4})\]$", column)
    has_number = re.match(r"[\d.]", cell) is not None
    if (unit and unit[1] != "W") or (not unit and has_number and cell.rpartition(" ")[2] != "W"):
        raise PowerError(f"{column}: neither the column nor its cells have the unit W")


def _read(text: str) -> ReadLog:
    """Local times, a row for each GPU. Raises PowerError."""
    log = ReadLog()
    name, draw = _columns(text)
    values: list[Value] = []
    times = LogTimes()
    for row in table(text, ("timestamp", name, draw), _IS_FAILURE):
        _check_unit(draw, row[draw])
        time_s = times.read(row["timestamp"])
        values.append((time_s, f"{name} {row[name]}", watts_of(row[draw])))
    log.clock = times.clock
    rows = summed("nvidia-smi", values)
    log.series.append(
        series_of("nvidia-smi", "accelerator", "device-reported", "sample", rows, NVIDIA)
    )
    return log


LOGS = (LogFormat("nvidia-smi", re.compile(r"\A[^\n]{0,999}\bpower\.draw", re.M), _read),)
