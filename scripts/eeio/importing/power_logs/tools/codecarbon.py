"""codecarbon's `emissions.csv`."""

import re

from eeio.importing.power_logs.cells import table
from eeio.importing.power_logs.format import LogFormat
from eeio.importing.power_logs.series import PUNCTUAL, ReadLog, series_of
from eeio.importing.power_logs.times import time_of


def _codecarbon(text: str) -> ReadLog:
    """Rows with the energy, kWh, since the start of a run, at their local times."""
    found = ReadLog(clock="local")
    runs: dict[str, list[dict[str, str]]] = {}
    for row in table(text):
        runs.setdefault(row["run_id"], []).append(row)
    for rows in runs.values():
        for column, domain in (
            ("cpu_energy", "package"), ("ram_energy", "dram"), ("gpu_energy", "accelerator"),
        ):  # fmt: skip
            counter: list[tuple[float, float]] = []
            for row in rows:
                time_s, found.clock = time_of(row["timestamp"])
                if not row[column].strip():
                    continue  # The next row has the energy of this interval too.
                before_s, before_j = (
                    counter[-1] if counter else (time_s - float(row["duration"]), 0.0)
                )
                now_j = float(row[column]) * 3.6e6
                # The mean power of the interval, with a reading in the middle of it, so that a
                # phase that fills most of the interval has its energy.
                middle = ((before_s + time_s) / 2, (before_j + now_j) / 2)
                counter += [] if counter else [(before_s, before_j)]
                counter += [middle, (time_s, now_j)]
            if counter and counter[-1][1] > 0:
                # Each row ends with a read of the counters, at the time of the row.
                found.series.append(
                    series_of("codecarbon", domain, "modelled", "counter", counter, PUNCTUAL)
                )
    return found


LOGS = (
    LogFormat("codecarbon", re.compile(r"\Atimestamp,project_name,run_id,", re.M), _codecarbon),
)
