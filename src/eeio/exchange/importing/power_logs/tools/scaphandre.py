"""`scaphandre json`."""

import math
import re
from collections.abc import Iterable
from typing import Any

from eeio.exchange.importing.power_logs.format import LogFormat
from eeio.exchange.importing.power_logs.processes import check_sum
from eeio.exchange.importing.power_logs.readings import Value, summed
from eeio.exchange.importing.power_logs.series import PUNCTUAL, ReadLog, series_of
from eeio.exchange.importing.power_logs.table_cells import json_values
from eeio.exchange.importing.power_logs.times import LogTimes

_W = 1e-6
"""Its powers are in microwatts."""


def _read(text: str) -> ReadLog:
    """Means since the record before. The host's value is a sum of RAPL domains, so only sockets and
    memory are used."""
    log = ReadLog()
    times = LogTimes()
    powers: dict[str, list[Value]] = {"package": [], "dram": []}
    bodies = list(json_values(text))
    for body in bodies:
        time_s = times.read_json(body["host"]["timestamp"])
        for place, socket in enumerate(body.get("sockets") or []):
            part = f"socket {socket.get('id', place)}"
            powers["package"].append((time_s, part, float(socket["consumption"]) * _W))
            for domain in socket.get("domains") or []:
                if domain.get("name") == "dram":
                    powers["dram"].append((time_s, part, float(domain["consumption"]) * _W))
    log.clock = times.clock
    log.series = [
        series_of("scaphandre", domain, "measured", "mean", summed("scaphandre", values), PUNCTUAL)
        for domain, values in powers.items()
        if values
    ]
    _check_processes(log, bodies)
    return log


def _check_processes(log: ReadLog, bodies: Iterable[Any]) -> None:
    """Of the records that list some."""
    processes = total = 0.0
    for body in bodies:
        consumers = body.get("consumers")
        if consumers:
            processes += math.fsum(float(consumer["consumption"]) for consumer in consumers)
            total += float(body["host"]["consumption"])
    check_sum(log, processes, total)


LOGS = (
    LogFormat(
        "scaphandre",
        re.compile(
            r'\A[\s\[]*\{(?=[^\0]*"host"\s*:\s*\{)(?=[^\0]*"consumers")[^\0]*"consumption"\s*:'
        ),
        _read,
    ),
)
