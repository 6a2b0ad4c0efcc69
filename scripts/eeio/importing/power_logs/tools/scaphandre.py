"""`scaphandre json`."""

import re

from eeio.importing.power_logs.cells import json_values
from eeio.importing.power_logs.format import LogFormat
from eeio.importing.power_logs.series import PUNCTUAL, ReadLog, series_of
from eeio.importing.power_logs.times import time_of


def _scaphandre(text: str) -> ReadLog:
    """`scaphandre json`: microwatts, means since the record before. The host's value is a sum of
    RAPL domains, so only sockets and memory are used."""
    found = ReadLog()
    rows: dict[str, list[tuple[float, float]]] = {"package": [], "dram": []}
    for body in json_values(text):
        time_s, _ = time_of(str(body["host"]["timestamp"]))
        sockets = body.get("sockets") or []
        if sockets:
            rows["package"].append((time_s, sum(float(s["consumption"]) for s in sockets) / 1e6))
        memory = [
            float(domain["consumption"]) for socket in sockets
            for domain in socket.get("domains") or [] if domain.get("name") == "dram"
        ]  # fmt: skip
        if memory:
            rows["dram"].append((time_s, sum(memory) / 1e6))
    found.series = [
        series_of("scaphandre", d, "measured", "mean", r, PUNCTUAL) for d, r in rows.items() if r
    ]
    return found


LOGS = (
    LogFormat(
        "scaphandre",
        re.compile(r'\A[\s\[]*\{\s*"host"\s*:\s*\{[^{]{0,2000}"consumption"', re.M),
        _scaphandre,
    ),
)
