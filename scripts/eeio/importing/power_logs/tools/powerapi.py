"""Power reports of PowerAPI."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from eeio.importing.power_logs.cells import json_values, table
from eeio.importing.power_logs.format import LogFormat
from eeio.importing.power_logs.series import PUNCTUAL, ReadLog, series_of
from eeio.importing.power_logs.times import time_of
from eeio_power.errors import PowerError
from eeio_power.reading import Kind


def _powerapi_csv(text: str) -> ReadLog:
    return _powerapi(list(table(text)))


def _powerapi_json(text: str) -> ReadLog:
    return _powerapi(list(json_values(text)))


def _powerapi(rows: Sequence[Mapping[str, Any]]) -> ReadLog:
    """Power reports: RAPL's own where there are some, else the sum of all programs (`global`)."""
    found = ReadLog()
    targets = {str(row["target"]) for row in rows}
    target = next((one for one in ("rapl", "global") if one in targets), None)
    if target is None:
        raise PowerError("neither of the targets rapl and global: they are power of programs")
    if len({str(row.get("sensor")) for row in rows}) > 1:
        raise PowerError("several machines (`sensor`): export one at a time")
    of_domain: dict[str, dict[float, float]] = {}
    for row in (row for row in rows if row["target"] == target):
        metadata = row.get("metadata") or row
        scope = metadata.get("scope")
        domain = {"cpu": "package", "dram": "dram"}.get(str(scope))
        if domain is None:
            raise PowerError("the power domain is unknown: it is in the column or key `scope`")
        time_s, found.clock = time_of(str(row["timestamp"]))
        of = of_domain.setdefault(domain, {})
        of[time_s] = of.get(time_s, 0.0) + float(row["power"])  # of all sockets
    kind: Kind = "measured" if target == "rapl" else "modelled"
    for domain, of in of_domain.items():
        rows_of_domain = sorted(of.items())
        found.series.append(series_of("powerapi", domain, kind, "mean", rows_of_domain, PUNCTUAL))
    return found


LOGS = (
    LogFormat(
        "powerapi",
        re.compile(r'\A[\s\[]*\{[^\0]{0,2000}"target"[^\0]{0,2000}"power"', re.M),
        _powerapi_json,
    ),
    LogFormat(
        "powerapi",
        re.compile(r"\A(?=[^\n]{0,500}\btarget\b)(?=[^\n]{0,500}\bpower\b)timestamp,", re.M),
        _powerapi_csv,
    ),
)
