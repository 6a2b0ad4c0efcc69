"""turbostat."""

import math
import re

from eeio.exchange.importing.power_logs.format import LogFormat
from eeio.exchange.importing.power_logs.log_lines import lines_of, unexplained
from eeio.exchange.importing.power_logs.readings import totals
from eeio.exchange.importing.power_logs.series import PUNCTUAL, ReadLog, series_of
from eeio.exchange.importing.power_logs.table_cells import watts_of
from eeio.exchange.importing.power_logs.times import time_of
from eeio_power.errors import PowerError

_TOPOLOGY = ("Package", "Die", "Node", "Core", "CPU", "APIC", "X2APIC")
"""Columns that are `-` in the row of all processors together."""
_TIME = "Time_Of_Day_Seconds"
_LASTED = re.compile(r"\d{1,9}\.\d{6} sec$")
"""The last line, if turbostat started a program."""


def _is_of_one_processor(cells: list[str], header: list[str]) -> bool:
    is_short = len(cells) < len(header) and not set(header).isdisjoint(_TOPOLOGY)
    return is_short and all(re.fullmatch(r"-?[\d.]{1,20}", cell) for cell in cells)


def _rows(text: str) -> list[dict[str, str]]:
    """The rows by their columns: turbostat ends a row behind the last value that it has, so that
    those of single processors may be short. Lines before the first header describe the machine.
    Raises PowerError."""
    rows: list[dict[str, str]] = []
    header: list[str] = []
    for number, line in lines_of(text):
        cells = line.split()
        if "PkgWatt" in cells:
            header = cells
            if _TIME not in header:
                raise PowerError(f"no column {_TIME}: --enable {_TIME}")
        elif header and not (_LASTED.match(line.strip()) or _is_of_one_processor(cells, header)):
            row = dict(zip(header, cells, strict=False))
            is_of_all = any(row.get(name) == "-" for name in _TOPOLOGY)
            is_cut = is_of_all and len(cells) < len(header)
            has_time = re.fullmatch(r"1\d{9}\.\d{6}", row.get(_TIME, ""))
            if is_cut or len(cells) > len(header) or not has_time:
                raise unexplained(number, line, f"a row of {len(header)} columns is expected")
            rows.append(row)
    return rows


def _of_all_processors(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """The rows of all processors together. Raises PowerError if they cannot be told apart."""
    if any(name in row for row in rows for name in _TOPOLOGY):
        return [row for row in rows if all(row.get(name, "-") == "-" for name in _TOPOLOGY)]
    powers = [
        (float(row[_TIME]), watts_of(row["PkgWatt"]) if "PkgWatt" in row else None) for row in rows
    ]
    indices = totals(powers) if powers else []
    if indices is None:
        raise PowerError(
            "the rows of all processors together cannot be told from those of each: no row is the "
            "sum of those behind it; --show Package,Core,CPU too, or use --Summary"
        )
    return [rows[index] for index in indices]


def _read(text: str) -> ReadLog:
    """The rows of all processors together: means since the row before."""
    powers: dict[str, list[tuple[float, float]]] = {"package": [], "dram": []}
    for row in _of_all_processors(_rows(text)):
        time_s, _ = time_of(row[_TIME])
        for domain, column in (("package", "PkgWatt"), ("dram", "RAMWatt")):
            if column in row:
                powers[domain].append((time_s, watts_of(row[column])))
    if not any(value == value for of_domain in powers.values() for _, value in of_domain):
        raise PowerError("no row of all processors together has a power")
    return ReadLog(
        [
            series_of("turbostat", domain, "measured", "mean", of_domain, PUNCTUAL)
            for domain, of_domain in powers.items()
            if any(value > 0 for _, value in of_domain if not math.isnan(value))
        ]
    )


LOGS = (LogFormat("turbostat", re.compile(r"^(?:\S{1,40}\s{1,20}){0,99}PkgWatt\b", re.M), _read),)
