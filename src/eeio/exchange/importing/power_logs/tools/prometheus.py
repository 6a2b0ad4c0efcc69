"""Answers of Prometheus to range queries."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from typing import Any, cast

from eeio.exchange.importing.power_logs.format import LogFormat
from eeio.exchange.importing.power_logs.readings import Row, Value, summed, summed_counters
from eeio.exchange.importing.power_logs.series import (
    PUNCTUAL,
    Form,
    ReadLog,
    Series,
    series_of,
    usual_longest_s,
)
from eeio_power.delay import BMC, NVIDIA, Delay, unknown_up_to
from eeio_power.errors import PowerError
from eeio_power.meters.nut import DELAY as NUT
from eeio_power.reading import Kind
from eeio_power.renewals import times_unchanged_s


@dataclass(frozen=True)
class _Metric:
    """A metric of power: its domain (or the label that has it), form, unit in W or J, exporter."""

    domain: str
    form: Form
    unit: float
    exporter: str


_METRICS: Mapping[str, _Metric] = {
    "kepler_node_package_joules_total": _Metric("package", "counter", 1.0, "kepler"),
    "kepler_node_dram_joules_total": _Metric("dram", "counter", 1.0, "kepler"),
    "kepler_node_platform_joules_total": _Metric("system", "counter", 1.0, "kepler"),
    "kepler_node_gpu_joules_total": _Metric("accelerator", "counter", 1.0, "kepler"),
    "kepler_node_cpu_joules_total": _Metric("zone", "counter", 1.0, "kepler"),
    "node_rapl_package_joules_total": _Metric("package", "counter", 1.0, "node_exporter"),
    "node_rapl_dram_joules_total": _Metric("dram", "counter", 1.0, "node_exporter"),
    "scaph_socket_power_microwatts": _Metric("package", "mean", 1e-6, "scaphandre"),
    "ipmi_dcmi_power_consumption_watts": _Metric("system", "sample", 1.0, "ipmi_exporter"),
    "eeio_energy_joules_total": _Metric("domain", "counter", 1.0, "eeio"),
    "eeio_power_watts": _Metric("domain", "mean", 1.0, "eeio"),
}
_PART_LABELS = (
    "index",
    "path",
    "zone",
    "domain",
    "socket_id",
    "package",
    "mode",
    "gpu",
    "gpu_uuid",
    "uuid",
    "minor_number",
    "gpu_name",
    "channel",
)
"""Labels in which the parts of a power differ: packages, sockets, GPUs, the modes of Kepler."""
_PROCESS_LABELS = ("pod", "pod_name", "pod_uid", "container", "container_id", "endpoint")
"""Labels of a start of the exporter: when it is started again, another series begins."""
_DESCRIPTIONS = ("__name__", "meter", "kind", *_PART_LABELS, *_PROCESS_LABELS)
_MODES = {"dynamic", "idle"}
"""Kepler's modes add up to the power."""
_FILE_S = 5.0
"""eeio writes its page at least so often (`meter serve --textfile`): the file may be as old."""
_SOURCES: tuple[tuple[str, str, Delay | None], ...] = (
    ("node_exporter", r".*", PUNCTUAL),
    ("scaphandre", r".*", PUNCTUAL),
    ("eeio", r"rapl|perf", PUNCTUAL),
    ("eeio", r"nvml", NVIDIA),
    ("eeio", r"nut", NUT),
    (
        "kepler",
        r"rapl.*|nvml",
        unknown_up_to(5.0, 0.0, "Kepler: adds to its counters each 3 to 5 s"),
    ),
    (
        "kepler",
        r"redfish",
        unknown_up_to(65.0, 5.0, "Kepler: reads the BMC each 60 s; a BMC: up to 5 s late"),
    ),
    (
        "kepler",
        r".*",
        unknown_up_to(10.0, 5.0, "Kepler: reads the sensor each 3 to 5 s; a BMC: up to 5 s late"),
    ),
    (r".*", r".*", BMC),
)
"""Exporter, its source or meter, and the delay of that: the first that fits."""


def _delay_of(exporter: str, source: str) -> Delay | None:
    return next(
        delay
        for of_exporter, of_source, delay in _SOURCES
        if re.fullmatch(of_exporter, exporter) and re.fullmatch(of_source, source, re.DOTALL)
    )


@dataclass(frozen=True)
class _Power:
    """The power of a domain by one exporter."""

    meter: str
    domain: str
    kind: str
    metric: _Metric
    delay: Delay | None


@dataclass
class _Answer:
    """The series of one power, by the start of its exporter."""

    name: str
    labels: Mapping[str, str]
    """Those in which its series must not differ."""
    starts: dict[tuple[str | None, ...], list[Value]] = field(default_factory=dict)
    modes: dict[str, set[str]] = field(default_factory=dict)

    def add(self, labels: Mapping[str, str], values: Sequence[tuple[Any, Any]]) -> None:
        """Raises PowerError for a series that is no part of this power."""
        others = _other_labels(labels)
        different = [
            label
            for label in sorted(self.labels.keys() | others.keys())
            if self.labels.get(label) != others.get(label)
        ]
        if different:
            raise _not_parts(self.name, different)
        part = " ".join(f"{label} {labels[label]}" for label in _PART_LABELS if label in labels)
        start = tuple(labels.get(label) for label in _PROCESS_LABELS)
        self.starts.setdefault(start, []).extend(
            (float(time_s), part, float(value)) for time_s, value in values
        )
        mode = labels.get("mode", "")
        self.modes.setdefault(part.replace(f"mode {mode}", ""), set()).add(mode)

    def in_order(self) -> list[list[Value]]:
        """The values of each start. Raises PowerError for starts at the same time, and for a mode
        of Kepler that is missing."""
        for modes in self.modes.values():
            lacking = _MODES - modes
            if lacking and modes != {""}:
                raise PowerError(
                    f"{self.name}: the mode {', '.join(sorted(lacking))} is missing, so that this "
                    "is a part of the power: query all modes"
                )
        starts = sorted(map(sorted, self.starts.values()))
        for before, after in pairwise(starts):
            if after[0][0] <= before[-1][0]:
                differences = []
                for label, values in zip(
                    _PROCESS_LABELS, zip(*self.starts, strict=True), strict=True
                ):
                    if len(set(values)) > 1:
                        differences.append(label)
                raise _not_parts(self.name, differences)
        return starts


def _other_labels(labels: Mapping[str, str]) -> dict[str, str]:
    return {label: text for label, text in labels.items() if label not in _DESCRIPTIONS}


def _not_parts(name: str, different: Sequence[str]) -> PowerError:
    return PowerError(
        f"{name} has several series, which differ in {', '.join(different)}: they are no parts of "
        "one power; name one in the query"
    )


def _read(text: str) -> ReadLog:
    """The answer of `/api/v1/query_range`, with one or more known metrics of one machine."""
    log = ReadLog(same_machine=False)
    results = json.loads(text)["data"]["result"]
    machines = set()
    for r in results:
        machines.add(
            tuple(r["metric"].get(k) for k in ("instance", "node", "nodename", "exported_instance"))
        )
    if len(machines) > 1:
        raise PowerError("several machines: name the instance in the query")
    answers: dict[_Power, _Answer] = {}
    for result in results:
        labels = result["metric"]
        power = _power_of(labels)
        name = labels["__name__"]
        if power.domain in ("core", "uncore", "psys"):
            log.notes.append(f"{name}: {power.domain} is a part of another domain: not used")
        elif result["values"]:
            answer = answers.setdefault(power, _Answer(name, _other_labels(labels)))
            answer.add(labels, result["values"])
    log.series = [_series(power, answer) for power, answer in answers.items()]
    return log


def _power_of(labels: Mapping[str, str]) -> _Power:
    """Raises PowerError for a metric whose domain is unknown."""
    name = labels.get("__name__", "a query without the name of a metric")
    metric = _METRICS.get(name)
    if metric is None:
        raise PowerError(
            f"the power domain of {name} is unknown; query one of {', '.join(_METRICS)}"
        )
    domain = metric.domain
    if domain in ("zone", "domain"):
        domain = labels.get(domain, "unknown")
    if metric.exporter == "eeio":
        meter = labels.get("meter", "eeio")
        return _Power(
            meter, domain, labels.get("kind", "modelled"), metric, _delay_of("eeio", meter)
        )
    source = labels.get("source", "rapl" if "zone" in labels else "")
    is_known = re.search(r"rapl|acpi|hwmon|nvml|redfish", source) is not None
    kind = "modelled"
    if metric.exporter != "kepler" or is_known:
        kind = "measured"
    return _Power(metric.exporter, domain, kind, metric, _delay_of(metric.exporter, source))


def _series(power: _Power, answer: _Answer) -> Series:
    metric = power.metric
    starts = answer.in_order()
    if metric.form == "counter":
        sums = summed_counters(power.meter, starts)
    else:
        sums = summed(power.meter, list(chain(*starts)))
    rows = [(time_s, value * metric.unit) for time_s, value in sums]
    interval_s = _interval_s(metric.form, rows)
    delay = _of_scrapes(power.delay, metric, rows, interval_s)
    series = series_of(power.meter, power.domain, cast(Kind, power.kind), metric.form, rows, delay)
    scraped_s = interval_s + (_FILE_S if metric.exporter == "eeio" else 0.0)
    return replace(series, is_punctual=power.delay is None, scraped_s=scraped_s)


_LONGEST_SCRAPE_S = 60.0
"""The interval of Prometheus if nobody sets another one."""


def _step_s(rows: Sequence[Row]) -> float:
    """The step of the query."""
    return min((after - before for (before, _), (after, _) in pairwise(rows)), default=0.0)


def _interval_s(form: Form, rows: Sequence[Row]) -> float:
    """The interval of the scrapes: a range query repeats the last one at each step. It is the time
    for which values stay the same, a step at least: of a gauge the shortest ones count, as it may
    be constant; of a counter the longest ones, as its energy is that of the last scrape."""
    stays_s = times_unchanged_s(rows)
    if not stays_s:
        return max(_step_s(rows), _LONGEST_SCRAPE_S)
    if form == "counter":
        return max(_step_s(rows), usual_longest_s(stays_s))
    return max(_step_s(rows), min(stays_s[len(stays_s) // 10], _LONGEST_SCRAPE_S))


def _of_scrapes(
    delay: Delay | None, metric: _Metric, rows: Sequence[Row], interval_s: float
) -> Delay:
    """The delay of scraped values: up to the interval of the scrapes later, and that of the file
    that an exporter may write. A mean is one since the scrape before."""
    known = delay or Delay(source="punctual")
    most_lag_s = known.lag_s + known.lag_within_s + interval_s
    most_mean_s = known.averages_s + known.averages_within_s
    if metric.form == "mean":  # of a step, the series has it already
        most_mean_s += interval_s - _step_s(rows)
    source = f"{known.source}; Prometheus: a scrape each {interval_s:g} s"
    if metric.exporter == "eeio":
        most_lag_s += _FILE_S
        source += f"; a file of eeio each {_FILE_S:g} s"
    return unknown_up_to(most_lag_s, most_mean_s, source)


LOGS = (
    LogFormat(
        "prometheus",
        re.compile(
            r'\A\s*\{(?:[^\0]{0,200}"resultType"\s*:\s*"matrix"'
            r'|(?=[^\0]{0,2000}"metric"\s*:\s*\{)[^\0]{0,2000}"values"\s*:\s*\[)'
        ),
        _read,
    ),
)
