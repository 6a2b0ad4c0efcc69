"""Answers of Prometheus to range queries."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import cast

from eeio.importing.power_logs.format import LogFormat
from eeio.importing.power_logs.series import PUNCTUAL, Form, ReadLog, series_of
from eeio_power.delay import BMC, NVIDIA, Delay, unknown_up_to
from eeio_power.errors import PowerError
from eeio_power.meters.nut import DELAY as NUT
from eeio_power.reading import Kind

_METRICS: Mapping[str, tuple[str, Form, float, str]] = {
    "kepler_node_package_joules_total": ("package", "counter", 1.0, "kepler"),
    "kepler_node_dram_joules_total": ("dram", "counter", 1.0, "kepler"),
    "kepler_node_platform_joules_total": ("system", "counter", 1.0, "kepler"),
    "kepler_node_gpu_joules_total": ("accelerator", "counter", 1.0, "kepler"),
    "kepler_node_cpu_joules_total": ("zone", "counter", 1.0, "kepler"),
    "node_rapl_package_joules_total": ("package", "counter", 1.0, "node_exporter"),
    "node_rapl_dram_joules_total": ("dram", "counter", 1.0, "node_exporter"),
    "scaph_socket_power_microwatts": ("package", "mean", 1e-6, "scaphandre"),
    "ipmi_dcmi_power_consumption_watts": ("system", "sample", 1.0, "ipmi_exporter"),
    "eeio_energy_joules_total": ("domain", "counter", 1.0, "eeio"),
    "eeio_power_watts": ("domain", "mean", 1.0, "eeio"),
}
"""Metric -> domain (or the label that has it), form, unit in W or J, exporter."""


_PART_LABELS = frozenset((
    "__name__", "index", "path", "zone", "domain", "socket_id", "package", "mode", "gpu",
    "gpu_uuid", "uuid", "minor_number", "gpu_name", "channel", "meter", "kind",
))  # fmt: skip
"""Labels in which the parts of a power differ: packages, sockets, GPUs, the modes of Kepler."""


_SOURCES: tuple[tuple[str, str, Delay | None], ...] = (
    ("node_exporter", r".*", PUNCTUAL),
    ("scaphandre", r".*", PUNCTUAL),
    ("eeio", r"rapl|perf", PUNCTUAL),
    ("eeio", r"nvml", NVIDIA),
    ("eeio", r"nut", NUT),
    ("kepler", r"rapl.*|nvml",
     unknown_up_to(5.0, 0.0, "Kepler: adds to its counters each 3 to 5 s")),
    ("kepler", r"redfish",
     unknown_up_to(65.0, 5.0, "Kepler: reads the BMC each 60 s; a BMC: up to 5 s late")),
    ("kepler", r".*",
     unknown_up_to(10.0, 5.0, "Kepler: reads the sensor each 3 to 5 s; a BMC: up to 5 s late")),
    (r".*", r".*", BMC),
)  # fmt: skip
"""Exporter, its source or meter, and the delay of that: the first that fits."""


def _delay_of(exporter: str, source: str) -> Delay | None:
    return next(
        delay
        for of_exporter, of_source, delay in _SOURCES
        if re.fullmatch(of_exporter, exporter) and re.fullmatch(of_source, source, re.DOTALL)
    )


def _prometheus(text: str) -> ReadLog:
    """The answer of `/api/v1/query_range`, with one or more known metrics of one machine."""
    found = ReadLog(same_machine=False)
    results = json.loads(text)["data"]["result"]
    machines = {
        tuple(r["metric"].get(k) for k in ("instance", "node", "nodename", "exported_instance"))
        for r in results
    }
    if len(machines) > 1:
        raise PowerError("several machines: name the instance in the query")
    of: dict[tuple[str, str, str, Form, float, Delay | None], list[dict[float, float]]] = {}
    wholes: dict[tuple[str, str], dict[str, str]] = {}
    for result in results:
        labels = result["metric"]
        name = labels.get("__name__")
        if name not in _METRICS:
            raise PowerError(
                f"the power domain of {name or 'a query without the name of a metric'} is unknown; "
                f"query one of {', '.join(_METRICS)}"
            )
        domain, form, unit, exporter = _METRICS[name]
        if domain in ("zone", "domain"):
            domain = labels.get(domain, "unknown")
        if domain in ("core", "uncore", "psys"):
            found.notes.append(f"{name}: {domain} is a part of another domain: not used")
            continue
        if exporter == "eeio":
            kind = labels.get("kind", "modelled")
            exporter = labels.get("meter", "eeio")
            delay = _delay_of("eeio", exporter)
        else:
            source = labels.get("source", "rapl" if "zone" in labels else "")
            known = exporter != "kepler" or re.search(r"rapl|acpi|hwmon|nvml|redfish", source)
            kind = "measured" if known else "modelled"
            delay = _delay_of(exporter, source)
        whole = {label: text for label, text in labels.items() if label not in _PART_LABELS}
        first = wholes.setdefault((name, domain), whole)
        if different := sorted(k for k in first.keys() | whole.keys()
                               if first.get(k) != whole.get(k)):  # fmt: skip
            raise PowerError(
                f"{name} has several series, which differ in {', '.join(different)}: they are no "
                "parts of one power; name one in the query"
            )
        key = (exporter, domain, kind, form, unit, delay)
        of.setdefault(key, []).append({float(t): float(v) for t, v in result["values"]})
    for (exporter, domain, kind, form, unit, delay), parts in of.items():
        # A sum of packages, sockets and modes needs all of them.
        times = sorted(set().union(*parts))
        rows = [(t, sum(p.get(t, math.nan) for p in parts) * unit) for t in times]
        if form != "counter":
            delay = _of_scrapes(delay, form, rows)
        found.series.append(series_of(exporter, domain, cast(Kind, kind), form, rows, delay))
    return found


_LONGEST_SCRAPE_S = 60.0
"""The interval of Prometheus if nobody sets another one."""


def _of_scrapes(delay: Delay | None, form: Form, rows: Sequence[tuple[float, float]]) -> Delay:
    """That of a gauge in a range query, which repeats the last scrape at each step: up to the
    interval of the scrapes later, and a mean is one since the scrape before. The interval is the
    time for which most values stay the same, a step at least."""
    known = delay or Delay(source="punctual")
    changes = [time_s for (_, before), (time_s, value) in pairwise(rows) if value != before]
    stays_s = sorted(after - before for before, after in pairwise(changes))
    step_s = min((after - before for (before, _), (after, _) in pairwise(rows)), default=0.0)
    shortest_s = stays_s[len(stays_s) // 10] if stays_s else _LONGEST_SCRAPE_S
    interval_s = max(step_s, min(shortest_s, _LONGEST_SCRAPE_S))
    most_lag_s = known.lag_s + known.lag_within_s + interval_s
    most_mean_s = known.averages_s + known.averages_within_s
    if form == "mean":  # of a step, the series has it already
        most_mean_s += interval_s - step_s
    source = f"{known.source}; Prometheus: a scrape each {interval_s:g} s"
    return unknown_up_to(most_lag_s, most_mean_s, source)


LOGS = (
    LogFormat(
        "prometheus",
        re.compile(r'\A\s*\{[^\0]{0,200}"resultType"\s*:\s*"matrix"', re.M),
        _prometheus,
    ),
)
