"""codecarbon's `emissions.csv`."""

import re
from collections.abc import Sequence

from eeio.exchange.importing.power_logs.format import LogFormat
from eeio.exchange.importing.power_logs.log_lines import table
from eeio.exchange.importing.power_logs.series import PUNCTUAL, ReadLog, series_of
from eeio.exchange.importing.power_logs.times import LogTimes, time_of

_DOMAINS = {"cpu_energy": "package", "ram_energy": "dram", "gpu_energy": "accelerator"}
_COLUMNS = ("timestamp", "run_id", "duration", *_DOMAINS)
_J_PER_KWH = 3.6e6


def _counter(rows: Sequence[dict[str, str]], column: str) -> list[tuple[float, float]]:
    """The energy since the start of a run, J."""
    counter: list[tuple[float, float]] = []
    for row in rows:
        if not row[column]:
            continue  # The next row has the energy of this interval too.
        time_s, _ = time_of(row["timestamp"])
        begin = (time_s - float(row["duration"]), 0.0)
        before_s, before_j = counter[-1] if counter else begin
        now_j = float(row[column]) * _J_PER_KWH
        # The mean power of the interval, with a reading in the middle of it, so that a phase that
        # fills most of the interval has its energy.
        middle = ((before_s + time_s) / 2, (before_j + now_j) / 2)
        counter += [] if counter else [begin]
        counter += [middle, (time_s, now_j)]
    return counter


def _read(text: str) -> ReadLog:
    """Rows with the energy, kWh, since the start of a run, at their local times."""
    log = ReadLog()
    times = LogTimes()
    runs: dict[str, list[dict[str, str]]] = {}
    for row in table(text, _COLUMNS):
        runs.setdefault(row["run_id"], []).append(row)
        times.read(row["timestamp"])
    log.clock = times.clock
    for rows in runs.values():
        for column, domain in _DOMAINS.items():
            counter = _counter(rows, column)
            if counter and counter[-1][1] > 0:
                # Each row ends with a read of the counters, at the time of the row.
                log.series.append(
                    series_of("codecarbon", domain, "modelled", "counter", counter, PUNCTUAL)
                )
    return log


_HEADER = "".join(rf"(?=[^\n]{{0,2000}}\b{name}\b)" for name in _COLUMNS)
LOGS = (LogFormat("codecarbon", re.compile(rf"\A{_HEADER}[\w, ]"), _read),)
