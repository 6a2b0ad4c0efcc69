"""The power in a metric report of a BMC (Redfish's telemetry).

`redfish:https://BMC,user=NAME,report=NAME[,metric=ID][,period_s=60]` reads
`/redfish/v1/TelemetryService/MetricReports/NAME` (DMTF DSP0268, MetricReport and
MetricReportDefinition). BMCs collect the values of a report more often than they answer requests.
A reading is the mean of the values that the BMC's times put in the report's last interval.

**Which metric.** Without `metric=`: the one whose `MetricProperty` is the place from which the
meter `redfish` would read the system's power. Another one must be named by its `MetricId` or
`MetricProperty`; eeio does not know which parts it includes. Largest and smallest values of an
interval, limits, and units other than W are rejected.

**How old.** The BMC's `Date` header is its clock. A newest value that is older than 2.5 intervals,
or from the future, is not a reading.
"""

import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from eeio_power import http_json
from eeio_power.errors import PowerError
from eeio_power.meters import Channel
from eeio_power.reading import Contents, Kind
from eeio_power.watt_names import domain_of

_REPORTS = "/redfish/v1/TelemetryService/MetricReports"
_DEFINITIONS = "/redfish/v1/TelemetryService/MetricDefinitions"
_INTERVALS = 2.5
_CLOCK_S = 2.0
"""A `Date` header has whole seconds, and an answer takes time."""
_LEAST_PERIOD_S = 1.0
"""BMCs are not asked more often."""
# ISO 8601, as DMTF's schemas restrict it: no years and months.
_DURATION = re.compile(
    r"P(?:(\d{1,5})D)?(?:T(?:(\d{1,5})H)?(?:(\d{1,5})M)?(?:(\d{1,6}(?:\.\d{1,6})?)S)?)?"
)
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_NO_MEAN = frozenset(
    ("max", "maximum", "min", "minimum", "peak", "highest", "lowest", "limit", "cap", "capacity",
     "rated", "allocated", "requested", "available")
)  # fmt: skip
_MEAN = frozenset(("avg", "average", "mean"))
_NO_MEAN_FUNCTIONS = ("Maximum", "Minimum", "Summation")
_WATTS = ("W", "Watt", "Watts")
_MOST_LISTED = 8


@dataclass(frozen=True)
class _Value:
    metric: str
    property: str
    """The place that the metric was read from; empty if the report does not say."""
    time_s: float
    """Unix time of the BMC's clock."""
    power_w: float | None


@dataclass(frozen=True)
class RedfishReport:
    """One metric of one report."""

    spec: str
    name: str
    client: http_json.JsonClient
    path: str
    metric: tuple[str, str]
    """Its MetricId and MetricProperty."""
    native_period_s: float
    channels: Sequence[Channel]
    kind: Kind = "measured"

    def read(self) -> Sequence[float | None]:
        """W. Raises PowerError without a value of the last intervals."""
        where = f"{self.client.host}{self.path}"
        values = [
            one
            for one in _values(self.client.get(self.path), where)
            if (one.metric, one.property) == self.metric
        ]
        label = _label(*self.metric)
        if not values:
            raise PowerError(f"{where}: {label} is not in the report")
        newest_s = max(one.time_s for one in values)
        _check_age(where, newest_s, self.client.served_s, self.native_period_s)
        last = [one for one in values if one.time_s > newest_s - self.native_period_s]
        by_time = {one.time_s: one.power_w for one in last}
        if len({(one.time_s, one.power_w) for one in last}) > len(by_time):
            raise PowerError(f"{where}: {label} has several values of one time, of several parts")
        powers_w = [w for w in by_time.values() if w is not None]
        if len(powers_w) < len(by_time):
            raise PowerError(f"{where}: {label} is not a number")
        mean_w = math.fsum(powers_w) / len(powers_w)
        if mean_w <= 0.0:
            raise PowerError(f"{where}: {mean_w:g} W for a running machine: it is not measured")
        return [mean_w]

    def close(self) -> None:
        """Drop the connection."""
        self.client.close()


def open_report(
    spec: str, name: str, client: http_json.JsonClient, report: str, wanted: str | None,
    period_s: float | None, channel: Channel, place: str | None,
) -> RedfishReport:  # fmt: skip
    """Find the metric and take a first reading.

    Without `wanted`: the metric of the property `place`, which is the power of `channel`. Raises
    PowerError.
    """
    path = f"{_REPORTS}/{report}"
    where = f"{client.host}{path}"
    answer = client.get(path)
    metric = _chosen(_values(answer, where), wanted, place, where)
    label, words = _label(*metric), " ".join(metric)
    known = {word.lower() for word in _WORDS.findall(words)}
    definition = _definition(client, answer)
    if _function(definition, *metric) in _NO_MEAN_FUNCTIONS or known & _NO_MEAN:
        raise PowerError(f"{where}: {label} is not the power of a time")
    if period_s is None:
        period_s = _interval_s(definition, where)
    period_s = max(period_s, _LEAST_PERIOD_S)
    units = _units(client, metric[0])
    if units and units not in _WATTS:
        raise PowerError(f"{where}: {label} is in {units}, not in W")
    if wanted is not None:
        domain, contents = domain_of(words)
        doubt = None
        if not units and not known & {"watts", "watt"}:
            doubt = f"the unit of {label} is unknown: W is assumed"
        elif known & _MEAN:
            doubt = _mean_doubt(client, label, metric[1], period_s)
        channel = replace(
            channel, name=f"redfish:{domain}", domain=domain, doubt=doubt,
            contents=Contents() if domain == "system" else contents,
        )  # fmt: skip
    channel = replace(channel, remark=f"{label} of the report {report}")
    found = RedfishReport(spec, name, client, path, metric, period_s, (channel,))
    found.read()
    return found


def _mean_doubt(
    client: http_json.JsonClient, label: str, source: str, period_s: float
) -> str | None:
    """Why a mean that the BMC makes is not the power of the last interval."""
    path, _, pointer = source.partition("#/")
    minutes = None
    with suppress(PowerError):
        keys = [int(key) if key.isdigit() else key for key in pointer.split("/")[:-1]]
        if path.startswith("/redfish/v1/"):
            minutes = http_json.number_at(client.get(path), *keys, "IntervalInMin")
    if minutes is None:
        return f"{label} is a mean over a time that the BMC does not give"
    return f"{label} is a mean over {60.0 * minutes:g} s" if 60.0 * minutes > period_s else None


def _values(answer: Any, where: str) -> list[_Value]:
    """The report's values with their times. Raises PowerError without any."""
    listed = answer.get("MetricValues") if isinstance(answer, Mapping) else None
    if not isinstance(listed, list):
        raise PowerError(f"{where}: not a metric report")
    found = []
    for one in listed:
        metric, source = _text(one, "MetricId"), _text(one, "MetricProperty")
        stamp = _text(one, "Timestamp") or _text(answer, "Timestamp")
        time_s = _unix_s(stamp)
        if time_s is None:
            raise PowerError(f"{where}: {_label(metric, source)} has no time with a zone: {stamp}")
        found.append(_Value(metric, source, time_s, _number(one)))
    if not found:
        raise PowerError(f"{where}: the report has no values: is it enabled?")
    return found


def _chosen(
    values: Sequence[_Value], wanted: str | None, place: str | None, where: str
) -> tuple[str, str]:
    """The MetricId and MetricProperty of the one metric. Raises PowerError."""
    metrics = list(dict.fromkeys((one.metric, one.property) for one in values))
    if wanted is not None:
        found = [metric for metric in metrics if wanted in metric]
    else:
        # Some BMCs write a property's place without the second slash.
        found = [metric for metric in metrics if metric[1].replace("#/", "#") == place]
    if len(found) == 1:
        return found[0]
    newest = {(one.metric, one.property): one for one in sorted(values, key=lambda v: v.time_s)}
    shown = {metric: newest[metric].power_w for metric in (found or metrics)[:_MOST_LISTED]}
    listed = ", ".join(
        f"{_label(*metric)} {'no number' if power_w is None else f'{power_w:g}'}"
        for metric, power_w in shown.items()
    )
    if wanted is None:
        raise PowerError(
            f"{where}: no metric is known to be the system's power; name it with metric=: {listed}"
        )
    raise PowerError(f"{where}: {len(found)} metrics have the name {wanted}: {listed}")


def _check_age(where: str, newest_s: float, now_s: float | None, period_s: float) -> None:
    if now_s is None:
        raise PowerError(f"{where}: the answer has no Date header, so its age is unknown")
    age_s = now_s - newest_s
    if age_s > _INTERVALS * period_s + _CLOCK_S:
        raise PowerError(
            f"{where}: the newest value is {age_s:.0f} s old, with {period_s:g} s between reports"
        )
    if age_s < -_CLOCK_S:
        raise PowerError(f"{where}: the newest value is {-age_s:.0f} s ahead of the BMC's clock")


def _definition(client: http_json.JsonClient, answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """The definition that the report links to; empty without one."""
    target = _text(answer.get("MetricReportDefinition"), "@odata.id")
    if target.startswith("/redfish/v1/"):
        with suppress(PowerError):  # not every user may read it
            found = client.get(target)
            if isinstance(found, Mapping):
                return found
    return {}


def _function(definition: Mapping[str, Any], metric: str, source: str) -> str:
    """How a metric is computed from what was collected; empty if the definition does not say."""
    metrics = definition.get("Metrics")
    for one in metrics if isinstance(metrics, list) else []:
        properties = one.get("MetricProperties") if isinstance(one, Mapping) else None
        is_this = bool(metric) and _text(one, "MetricId") == metric
        if is_this or (isinstance(properties, list) and source and source in properties):
            return _text(one, "CollectionFunction")
    return ""


def _interval_s(definition: Mapping[str, Any], where: str) -> float:
    """Time between two reports, s. Raises PowerError if the definition does not say."""
    text = _text(definition.get("Schedule"), "RecurrenceInterval")
    found = _DURATION.fullmatch(text)
    days, hours, minutes, seconds = (float(part or 0.0) for part in found.groups()) if found else (
        0.0, 0.0, 0.0, 0.0)  # fmt: skip
    interval_s = ((days * 24.0 + hours) * 60.0 + minutes) * 60.0 + seconds
    if interval_s <= 0.0:
        raise PowerError(f"{where}: the time between its reports is unknown; give period_s=")
    return interval_s


def _units(client: http_json.JsonClient, metric: str) -> str:
    """The unit of a metric by its definition; empty without one."""
    if re.fullmatch(r"[\w.-]{1,100}", metric) is None:
        return ""
    with suppress(PowerError):
        return _text(client.get(f"{_DEFINITIONS}/{metric}"), "Units")
    return ""


def _label(metric: str, source: str) -> str:
    return metric or source or "a metric without a name"


def _unix_s(text: str) -> float | None:
    """Of a time in ISO 8601 with its zone; None for other texts."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if moment.tzinfo is None else moment.astimezone(UTC).timestamp()


def _number(value: Any) -> float | None:
    """MetricValue is a text by the schema; some BMCs give a number."""
    number = http_json.number_at(value, "MetricValue")
    if number is not None:
        return number
    try:
        power_w = float(_text(value, "MetricValue"))
    except ValueError:
        return None
    return power_w if math.isfinite(power_w) else None


def _text(answer: Any, key: str) -> str:
    """The text at a key; empty if there is none."""
    value = answer.get(key) if isinstance(answer, Mapping) else None
    return value if isinstance(value, str) else ""
