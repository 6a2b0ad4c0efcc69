"""Power reports of PowerAPI."""

import math
import re
from collections.abc import Container, Mapping, Sequence
from typing import Any

from eeio.exchange.importing.power_logs.format import LogFormat
from eeio.exchange.importing.power_logs.log_lines import table
from eeio.exchange.importing.power_logs.processes import check_sum
from eeio.exchange.importing.power_logs.readings import Value, summed
from eeio.exchange.importing.power_logs.series import PUNCTUAL, ReadLog, series_of
from eeio.exchange.importing.power_logs.table_cells import json_values
from eeio.exchange.importing.power_logs.times import LogTimes
from eeio_power.errors import PowerError
from eeio_power.reading import Kind

_COLUMNS = ("timestamp", "sensor", "target", "power")
_DOMAINS = {"cpu": "package", "dram": "dram"}


def _read_csv(text: str) -> ReadLog:
    return _read(list(table(text, _COLUMNS)))


def _read_json(text: str) -> ReadLog:
    return _read(list(json_values(text)))


def _read(rows: Sequence[Mapping[str, Any]]) -> ReadLog:
    """RAPL's own reports where there are some, else the sum of all programs (`global`)."""
    log = ReadLog()
    targets = {str(row["target"]) for row in rows}
    target = next((name for name in ("rapl", "global") if name in targets), None)
    if target is None:
        raise PowerError("neither of the targets rapl and global: they are power of programs")
    if len({str(row.get("sensor")) for row in rows}) > 1:
        raise PowerError("several machines (`sensor`): export one at a time")
    of_domain: dict[str, list[Value]] = {}
    times = LogTimes()
    for row in (row for row in rows if row["target"] == target):
        metadata = row.get("metadata") or row
        domain = _DOMAINS.get(str(metadata.get("scope")))
        if domain is None:
            raise PowerError("the power domain is unknown: it is in the column or key `scope`")
        time_s = times.read_json(row["timestamp"])
        socket = str(metadata.get("socket", ""))
        of_domain.setdefault(domain, []).append(
            (time_s, socket and f"socket {socket}", float(row["power"]))
        )
    log.clock = times.clock
    kind: Kind = "measured" if target == "rapl" else "modelled"
    for domain, values in of_domain.items():
        # An export need not be in the order of its times.
        rows_of_domain = summed("powerapi", sorted(values, key=lambda value: value[0]))
        log.series.append(series_of("powerapi", domain, kind, "mean", rows_of_domain, PUNCTUAL))
    _check_processes(log, rows, target)
    return log


def _check_processes(log: ReadLog, rows: Sequence[Mapping[str, Any]], total: str) -> None:
    targets = {str(row["target"]) for row in rows} - {"rapl", "global"}
    if targets:
        check_sum(log, _sum(rows, targets), _sum(rows, {total}))


def _sum(rows: Sequence[Mapping[str, Any]], targets: Container[str]) -> float:
    return math.fsum(float(row["power"]) for row in rows if row["target"] in targets)


_KEYS = "".join(rf'(?=[^\0]{{0,2000}}"{name}"\s*:)' for name in _COLUMNS)
_HEADER = "".join(rf"(?=[^\n]{{0,500}}(?<!\w){name}(?!\w))" for name in _COLUMNS)
LOGS = (
    LogFormat("powerapi", re.compile(rf"\A[\s\[]*\{{{_KEYS}"), _read_json),
    LogFormat("powerapi", re.compile(rf"\A{_HEADER}\w"), _read_csv),
)
