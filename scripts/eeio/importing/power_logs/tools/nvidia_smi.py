"""`nvidia-smi --query-gpu`."""

import math
import re

from eeio.importing.power_logs.cells import table, watts_of
from eeio.importing.power_logs.format import LogFormat
from eeio.importing.power_logs.series import ReadLog, series_of
from eeio.importing.power_logs.times import time_of
from eeio_power.delay import NVIDIA
from eeio_power.errors import PowerError


def _nvidia(text: str) -> ReadLog:
    """`nvidia-smi --query-gpu=timestamp,index,power.draw`: local times, a row for each GPU."""
    found = ReadLog()
    rounds: list[dict[str, float]] = []
    times: list[float] = []
    for row in table(text):
        draw = next((k for k in row if k.startswith("power.draw")), None)
        if draw is None or "timestamp" not in row:
            raise PowerError("give nvidia-smi --query-gpu=timestamp,index,power.draw")
        unit = re.search(r"\[(\w{1,4})\]$", draw)
        if (unit[1] if unit else row[draw].rpartition(" ")[2]) != "W":
            raise PowerError(f"{draw}: neither the column nor its cells have the unit W")
        gpu = next((row[k] for k in ("index", "uuid", "pci.bus_id") if k in row), None)
        time_s, found.clock = time_of(row["timestamp"])
        if gpu is None and times and time_s - times[-1] < 0.02:
            raise PowerError("several GPUs: name them by --query-gpu=timestamp,index,power.draw")
        if not rounds or (gpu or "") in rounds[-1]:
            rounds.append({})
            times.append(time_s)
        rounds[-1][gpu or ""] = watts_of(row[draw])
        times[-1] = time_s
    count = max(map(len, rounds), default=0)
    rows = [
        (time_s, sum(of.values()) if len(of) == count else math.nan)
        for time_s, of in zip(times, rounds, strict=True)
    ]
    found.series.append(
        series_of("nvidia-smi", "accelerator", "device-reported", "sample", rows, NVIDIA)
    )
    return found


LOGS = (LogFormat("nvidia-smi", re.compile(r"\A[^\n]{0,999}\bpower\.draw", re.M), _nvidia),)
