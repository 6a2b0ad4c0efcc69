"""The power in a metric report of a BMC (Redfish's telemetry).

`redfish:https://BMC,user=NAME,report=NAME[,metric=ID][,period_s=60]` reads
`/redfish/v1/TelemetryService/MetricReports/NAME` (DMTF DSP0268, MetricReport and
MetricReportDefinition). BMCs collect the values of a report more often than they answer requests.
A reading is the mean of the values that the BMC's times put in the last interval.

**Which metric.** Without `metric=`: the one whose `MetricProperty` is the place from which the
meter `redfish` would read the system's power. Another one can be named by its `MetricId` or
`MetricProperty`; its readings are doubtful, for its name alone does not show what it contains.
Largest and smallest values, limits, means over longer times and units other than W are rejected.

**How old.** The BMC's `Date` header is its clock. A newest value that is older than an interval and
2 s, or from the future, is not a reading. OpenBMC's header may itself be 10 s old.
"""

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from eeio_power import http_json
from eeio_power.delay import Delay
from eeio_power.errors import PowerError
from eeio_power.meters import Channel
from eeio_power.reading import Contents, Kind
from eeio_power.system_sensor.sensor_names import domain_of, is_average, is_no_power, possible_w

_REPORTS = "/redfish/v1/TelemetryService/MetricReports"
_DEFINITIONS = "/redfish/v1/TelemetryService/MetricDefinitions"
_LATE_S = 2.0
"""A `Date` header has whole seconds, and making a report takes time."""
_DATE_S = 10.0
"""OpenBMC's web server makes a new `Date` header only as often as this."""
_LEAST_PERIOD_S = 1.0
"""BMCs are not asked more often."""
# ISO 8601, as DMTF's schemas restrict it: no years and months.
_DURATION = re.compile(
    r"P(?:([0-9]{1,5})D)?(?:T(?:([0-9]{1,5})H)?(?:([0-9]{1,5})M)?"
    r"(?:([0-9]{1,6}(?:\.[0-9]{1,6})?)S)?)?"
)
# The names of a chassis and of a system are the administrator's.
_OF_WHAT = re.compile(r"^/redfish/v1/(?:Chassis|Systems)/[^/#]*")
_NUMBER = re.compile(r"-?[0-9]{1,20}(?:\.[0-9]{1,20})?(?:[eE][+-]?[0-9]{1,3})?")
_NO_MEAN_FUNCTIONS = ("Maximum", "Minimum", "Summation")
_WATTS = ("W", "Watt", "Watts")
_SINCE_START = "since the start"
"""In place of a duration: a mean that never ends."""
_ALIKE = 2.0
"""An idle machine's power a moment before and the mean of the last interval differ by less."""
_MOST_LISTED = 8

_Metric = tuple[str, str, str]
"""MetricId, MetricProperty, and the source that Dell's reports name; empty where it is missing."""


@dataclass(frozen=True)
class _Value:
    metric: _Metric
    time_s: float | None
    """Unix time of the BMC's clock; None without a zone."""
    power_w: float | None
    definition: str
    """The link to the metric's definition; empty without one."""


@dataclass(frozen=True)
class RedfishReport:
    """One metric of one report."""

    spec: str
    name: str
    client: http_json.JsonClient
    path: str
    metric: _Metric
    interval_s: float
    channels: Sequence[Channel]
    kind: Kind = "measured"

    @property
    def native_period_s(self) -> float:
        """A reading may be as old as this, s."""
        return self.interval_s + _LATE_S + _DATE_S

    def read(self) -> Sequence[float | None]:
        """W. Raises PowerError without a value of the last interval."""
        where = f"{self.client.host}{self.path}"
        found = _values(self.client.get(self.path), where)
        values = [value for value in found if value.metric == self.metric]
        label = _label(self.metric)
        if not values:
            raise PowerError(f"{where}: {label} is not in the report")
        times_s = [value.time_s for value in values if value.time_s is not None]
        if len(times_s) < len(values):
            raise PowerError(f"{where}: {label} has a time without a zone, or none")
        if len(set(times_s)) < len(times_s):
            raise PowerError(f"{where}: {label} has several values of one time, of several parts")
        newest_s = max(times_s)
        self._check_age(where, newest_s)
        least_s = newest_s - self.interval_s - _LATE_S
        powers_w = [value.power_w for value in values if (value.time_s or 0.0) > least_s]
        known_w = [w for w in map(possible_w, powers_w) if w is not None and w > 0.0]
        if len(known_w) < len(powers_w):
            raise PowerError(f"{where}: {label} has a value that is not the power of a machine")
        return [math.fsum(known_w) / len(known_w)]

    def _check_age(self, where: str, newest_s: float) -> None:
        now_s = self.client.served_s
        if now_s is None:
            raise PowerError(f"{where}: the answer has no Date header, so its age is unknown")
        age_s = now_s - newest_s
        if age_s > self.interval_s + _LATE_S:
            raise PowerError(
                f"{where}: the newest value is {age_s:.0f} s old, with {self.interval_s:g} s "
                "between reports"
            )
        if age_s < -_LATE_S - _DATE_S:
            raise PowerError(
                f"{where}: the newest value is {-age_s:.0f} s ahead of the BMC's clock"
            )

    def close(self) -> None:
        """Drop the connection."""
        self.client.close()


def open_report(
    spec: str,
    name: str,
    client: http_json.JsonClient,
    report: str,
    wanted: str | None,
    period_s: float | None,
    channel: Channel,
    places: Collection[str],
    power_w: float,
) -> RedfishReport:
    """Find the metric and take a first reading.

    A metric of one of the properties `places` is the power of `channel`, which was `power_w` just
    before. Raises PowerError.
    """
    path = f"{_REPORTS}/{quote(report, safe='')}"
    where = f"{client.host}{path}"
    answer = client.get(path)
    values = _values(answer, where)
    metric = _chosen(values, wanted, places, where)
    label = _label(metric)
    text = f"{metric[0]} {_OF_WHAT.sub('', metric[1])}"
    definition = _linked(client, answer.get("MetricReportDefinition"))
    if period_s is None:
        period_s = _interval_s(definition, where)
    period_s = max(period_s, _LEAST_PERIOD_S)
    of_metric = _metric_definition(client, values, metric)
    if (units := _text(of_metric, "Units")) and units not in _WATTS:
        raise PowerError(f"{where}: {label} is in {units}, not in W")
    how = _text(of_metric, "CalculationAlgorithm"), _text(of_metric, "CalculationTimeInterval")
    is_counter = _text(of_metric, "MetricType") == "Counter"
    functions = [*_functions(definition, metric), how]
    is_now = all(_is_power_now(each, period_s) for each in functions)
    if is_no_power(text) or is_counter or not is_now:
        raise PowerError(f"{where}: {label} is not the power of the last {period_s:g} s")
    doubt = channel.doubt
    if _place(metric[1]) not in places:
        context = _text(of_metric, "PhysicalContext")
        domain, contents = domain_of(f"{text} {context}")
        unit = ", nor that it is in W"
        if units:
            unit = ""
        doubt = f"{label} was named: its name does not show what it contains{unit}"
        if domain == "system":
            contents = Contents()
        channel = replace(channel, name=f"redfish:{domain}", domain=domain, contents=contents)
    elif is_average(text):
        doubt = doubt or f"{label} may be a mean over a longer time"
    channel = replace(
        channel, doubt=doubt, remark=f"{label} of the report {report}", delay=_delay(period_s)
    )
    return _compared(RedfishReport(spec, name, client, path, metric, period_s, (channel,)), power_w)


def _compared(report: RedfishReport, power_w: float) -> RedfishReport:
    """The report with a first reading, doubted if it differs from the power just before, W."""
    (channel,) = report.channels
    (now_w,) = report.read()
    if channel.doubt is not None or not now_w or 1 / _ALIKE <= now_w / power_w <= _ALIKE:
        return report
    label = _label(report.metric)
    doubt = f"{label} is {now_w:g} W, and the BMC reports {power_w:g} W elsewhere"
    return replace(report, channels=(replace(channel, doubt=doubt),))


def _delay(period_s: float) -> Delay:
    """A reading is the mean of an interval, and at most one interval and 2 s old (decision 56)."""
    lag_s = (period_s + _LATE_S) / 2.0
    return Delay(lag_s, period_s, lag_s, 0.0, "interval of the metric report")


def _values(answer: Any, where: str) -> list[_Value]:
    """The report's values. Raises PowerError without any."""
    listed = None
    if isinstance(answer, Mapping):
        listed = answer.get("MetricValues")
    if not isinstance(listed, list):
        raise PowerError(f"{where}: not a metric report")
    if "MetricValues@odata.nextLink" in answer:
        raise PowerError(f"{where}: the answer has only the first of its values")
    if not listed:
        raise PowerError(f"{where}: the report has no values: is it enabled?")
    values = []
    for entry in listed:
        values.append(
            _Value(
                (_text(entry, "MetricId"), _text(entry, "MetricProperty"), _source(entry)),
                _unix_s(_text(entry, "Timestamp") or _text(answer, "Timestamp")),
                _number(entry),
                _link(entry.get("MetricDefinition") if isinstance(entry, Mapping) else None),
            )
        )
    return values


def _source(value: Any) -> str:
    """The part that Dell's reports name next to a metric of several parts."""
    vendors = None
    if isinstance(value, Mapping):
        vendors = value.get("Oem")
    for vendor in vendors.values() if isinstance(vendors, Mapping) else ():
        for key in ("ContextID", "FQDD", "Label"):
            if text := _text(vendor, key):
                return text
    return ""


def _chosen(
    values: Sequence[_Value], wanted: str | None, places: Collection[str], where: str
) -> _Metric:
    """The one metric. Raises PowerError."""
    metrics = list(dict.fromkeys(value.metric for value in values))
    if wanted is not None:
        fitting = [metric for metric in metrics if wanted in metric[:2]]
    else:
        fitting = [metric for metric in metrics if _place(metric[1]) in places]
    if len(fitting) == 1:
        return fitting[0]
    last = {value.metric: value.power_w for value in values}
    listed = ", ".join(
        f"{_label(metric)} {'no number' if last[metric] is None else f'{last[metric]:g}'}"
        for metric in (fitting or metrics)[:_MOST_LISTED]
    )
    if fitting:
        what = wanted or "the system's power"
        raise PowerError(f"{where}: {len(fitting)} metrics are {what}: {listed}")
    if wanted is None:
        raise PowerError(
            f"{where}: no metric is known to be the system's power; name it with metric=: {listed}"
        )
    raise PowerError(f"{where}: no metric has the name {wanted}; there are {listed}")


def _linked(client: http_json.JsonClient, link: Any) -> Mapping[str, Any]:
    """What a link leads to; empty without one, and if this user may not read it."""
    if target := _link(link):
        with suppress(PowerError):
            target_body = client.get(target)
            if isinstance(target_body, Mapping):
                return target_body
    return {}


def _functions(definition: Mapping[str, Any], metric: _Metric) -> Iterator[tuple[str, str]]:
    """How the metric may be computed from what was collected, and over which time."""
    metrics = definition.get("Metrics")
    for one in metrics if isinstance(metrics, list) else []:
        listed = None
        if isinstance(one, Mapping):
            listed = one.get("MetricProperties")
        places = [_place(str(place)) for place in listed or ()]
        is_this = metric[0] and _text(one, "MetricId") == metric[0]
        if is_this or any("{" in place or place == _place(metric[1]) for place in places):
            since = _text(one, "CollectionTimeScope") == "StartupInterval"
            function = _text(one, "CollectionFunction")
            yield function, _SINCE_START if since else _text(one, "CollectionDuration")


def _is_power_now(how: tuple[str, str], period_s: float) -> bool:
    """Whether a value with this function, over this time, is of about the last interval."""
    function, duration = how
    if any(word in function for word in _NO_MEAN_FUNCTIONS):
        return False
    lasts_s: float | None = 0.0
    if duration:
        lasts_s = _seconds(duration)
    return lasts_s is not None and lasts_s <= period_s


def is_longer(duration: str, most_s: float) -> bool:
    """Whether a duration (ISO 8601) is longer, or none that is understood."""
    lasts_s = _seconds(duration)
    return lasts_s is None or lasts_s > most_s


def _interval_s(definition: Mapping[str, Any], where: str) -> float:
    """Time between two reports, s. Raises PowerError if the definition does not say."""
    interval_s = _seconds(_text(definition.get("Schedule"), "RecurrenceInterval"))
    if not interval_s:
        raise PowerError(f"{where}: the time between its reports is unknown; give period_s=")
    return interval_s


def _place(source: str) -> str:
    """A property's place in one form: with and without a slash on either side of the #."""
    return source.replace("/#", "#").replace("#/", "#").rstrip("/")


def _seconds(duration: str) -> float | None:
    """Of `PT1M30S` (OpenBMC writes 0 as `PT`); None for other texts."""
    match = _DURATION.fullmatch(duration)
    if match is None:
        return None
    parts = [float(part or 0.0) for part in match.groups()]
    return ((parts[0] * 24.0 + parts[1]) * 60.0 + parts[2]) * 60.0 + parts[3]


def _metric_definition(
    client: http_json.JsonClient, values: Sequence[_Value], metric: _Metric
) -> Mapping[str, Any]:
    """The definition of a metric, by its link or its name; empty without one."""
    link = next(
        (value.definition for value in values if value.metric == metric and value.definition), ""
    )
    if not link and metric[0]:
        link = f"{_DEFINITIONS}/{quote(metric[0], safe='')}"
    return _linked(client, {"@odata.id": link})


def _label(metric: _Metric) -> str:
    named = " ".join(filter(None, metric))
    return re.sub(r"\s+", " ", named)[:200] or "a metric without a name"


def _unix_s(text: str) -> float | None:
    """Of a time in ISO 8601 with its zone; None for other texts."""
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            return None
        return moment.astimezone(UTC).timestamp()
    except (ValueError, OverflowError):
        return None


def _number(value: Any) -> float | None:
    """MetricValue is a text by the schema; some BMCs give a number."""
    text = _text(value, "MetricValue")
    if _NUMBER.fullmatch(text):
        return http_json.number_at({"": float(text)}, "")
    return http_json.number_at(value, "MetricValue")


def _link(link: Any) -> str:
    target = _text(link, "@odata.id")
    if target.startswith("/redfish/v1/"):
        return target
    return ""


def _text(answer: Any, key: str) -> str:
    """The text at a key; empty if there is none."""
    value = None
    if isinstance(answer, Mapping):
        value = answer.get(key)
    if isinstance(value, str):
        return value
    return ""
