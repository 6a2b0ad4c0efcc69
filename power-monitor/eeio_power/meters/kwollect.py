"""Power of a node of Grid'5000, which Kwollect records: wattmeters, BMCs and PDUs.

`kwollect:SITE/NODE[,metric=wattmetre_power_watt][,user=NAME,password_file=FILE]`: the values since
the meter was opened, with their times, are requested for a window
(`/sites/SITE/metrics?nodes=NODE&metrics=METRIC&start_time=&end_time=`, Grid'5000's REST API). All
values are kept: one a second, or up to 50 in jobs with `-t monitor=wattmetre_power_watt`.

A wattmeter's value is the mean power of a second at the plugs of the node's power supplies
(Grid'5000's pages on wattmeters). Neither its accuracy nor the lag of its times is stated: 5 % and
up to 1 s are used. `bmc_node_power_watt` is as late as a BMC.

Times are those of Grid'5000's servers, whose clocks NTP sets. Their `Date` shows whether the clock
of this machine differs by more than its whole seconds; then times are shifted. Values with times in
the future are left out.
"""

import math
import re
import statistics
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from eeio.errors import LimitError
from eeio.units.quantities import POWER_SAMPLE, TIMESTAMP
from eeio_power import http_json
from eeio_power.delay import BMC, Delay
from eeio_power.errors import PowerError
from eeio_power.meters import (
    Channel,
    Detected,
    Verified,
    domain_option,
    number_option,
    offset_option,
)
from eeio_power.meters.csv import CLOCK_SLACK_S
from eeio_power.reading import DOMAINS, MACHINE, UNKNOWN, WALL, Contents, Kind

OPTIONS = {
    "node": "the node, as SITE/NODE, such as lyon/taurus-7",
    "metric": "Kwollect's metric in watts (default wattmetre_power_watt)",
    "source": "device of the values, if several measure the node, such as wattmetre1-port6",
    "url": "address of the API (default https://api.grid5000.fr/stable)",
    "domain": f"power domain: {', '.join(DOMAINS)} (default system)",
    "accuracy": "uncertainty as a share (default 0.05)",
    "max_w": "highest power that can be true, W (default 10000)",
    "period_s": "time between values, s (default: as in the last minutes)",
    "offset_s": "seconds that the server's clock is ahead of this machine's (may be negative)",
    "wait_s": "how long to wait for the newest values, s (default 10)",
    "user": "Grid'5000 account, from outside Grid'5000",
    "password_file": http_json.OPTIONS["password_file"],
    "cafile": http_json.OPTIONS["cafile"],
    "insecure": http_json.OPTIONS["insecure"],
    "timeout_s": "how long an answer may take, s (default 10)",
}
ARGUMENT = "node"

KIND: Kind = "measured"
VERIFIED_ON: Verified = "simulator"
URL = "https://api.grid5000.fr/stable"
METRIC = "wattmetre_power_watt"
_ACCURACY, _MOST_W, _WAIT_S, _TIMEOUT_S = 0.05, 10_000.0, 10.0, 10.0
# At opening.
_LOOK_BACK_S = 120.0
# At most: 50 values a second of 200 bytes are half of the largest answer.
_REQUESTED_S = 60.0
_PAUSE_S = 0.5
# Of one reading.
_INTERVALS = 1.5
_MOST_MEAN_S = 1.0
_DATE_S = 1.0
_AHEAD_S = 3.0
"""Values further ahead of this machine's clock are left out. `compare_clocks` is right to half a
second, and a clock drifts a little in a long run."""
_NODE = re.compile(r"([a-z]{2,20})/([a-z0-9-]{1,40})")
_METRIC = re.compile(r"[a-z0-9_]{1,80}_watts?")
_WATTMETER = ("wattmetre_power_watt",)


@dataclass(frozen=True)
class Value:
    """One value of the node."""

    time_s: float
    """Unix s, by the server."""
    power_w: float
    """NaN if it is null."""
    source: str
    """The measuring devices, joined by `+`."""


@dataclass(frozen=True)
class Query:
    """Values of one metric of one node."""

    site: str
    node: str
    metric: str

    def path(self, start_s: float, end_s: float) -> str:
        """In whole seconds, which contain these."""
        return (
            f"/sites/{self.site}/metrics?nodes={self.node}&metrics={self.metric}"
            f"&start_time={math.floor(start_s)}&end_time={math.ceil(end_s)}"
        )

    def values(self, answer: Any) -> list[Value]:
        """In the order of their times. Raises PowerError."""
        if not isinstance(answer, list):
            raise PowerError("not an answer of Kwollect")
        try:
            values = [
                _value(entry)
                for entry in answer
                if (entry["device_id"], entry["metric_id"]) == (self.node, self.metric)
            ]
        except (
            KeyError,
            TypeError,
            ValueError,
            AttributeError,
            OverflowError,
            LimitError,
        ) as error:
            raise PowerError(f"not an answer of Kwollect ({type(error).__name__})") from error
        return sorted(values, key=_time_s)


def _value(entry: Any) -> Value:
    power_w = entry["value"]
    if power_w is None:
        power_w = math.nan
    elif not POWER_SAMPLE.contains(power_w):
        raise ValueError("not a power")
    time_s = TIMESTAMP.checked(datetime.fromisoformat(entry["timestamp"]).timestamp())
    # A node with several supplies has a list of ports, and their sum.
    ports = (entry.get("labels") or {}).get("_device_orig", "")
    return Value(time_s, float(power_w), ports if isinstance(ports, str) else "+".join(ports))


def _time_s(value: Value) -> float:
    return value.time_s


class KwollectMeter:
    """One metric of one node; its values are requested when a window is."""

    kind: Kind = KIND

    def __init__(
        self,
        spec: str,
        name: str,
        client: http_json.JsonClient,
        query: Query,
        *,
        source: str | None,
        wait_s: float,
        offset_s: float | None,
        clock: Callable[[], float],
        monotonic: Callable[[], float],
        sleep: Callable[[float], None],
    ) -> None:
        self.spec, self.name = spec, name
        self.native_period_s = 1.0
        self.channels: Sequence[Channel] = ()
        self._client, self._query = client, query
        self._source = source
        self._wait_s = wait_s
        self._clock, self._monotonic, self._sleep = clock, monotonic, sleep
        self._opened_offset_s = monotonic() - clock()
        self.offset_s = 0.0 if offset_s is None else offset_s
        """How far the server's clock is ahead of this machine's."""
        self._waits = True
        self._values: list[Value] = []
        self._begun_s = clock() - _LOOK_BACK_S
        self._asked_s = -math.inf
        """The values up to this time, by the server, were requested."""

    def compare_clocks(self) -> None:
        """By the date of one answer, to half a second; none if that fits equal clocks. Raises
        PowerError."""
        sent_s = self._clock()
        self._requested(sent_s, sent_s)
        if (served_s := self._client.served_s) is None:
            return
        least_s, most_s = served_s - self._clock(), served_s + _DATE_S - sent_s
        if not least_s <= 0.0 <= most_s:
            self.offset_s = (least_s + most_s) / 2.0

    def fetch(self) -> None:
        """Adds the values up to now. Raises PowerError."""
        now_s = self._clock() + self.offset_s
        # Again from the second of the newest: it may have got more values. One that is ahead of the
        # last request does not count, for those before it came later.
        known = bisect_right(self._values, self._asked_s, key=_time_s)
        begin_s = self._begun_s + self.offset_s
        if known:
            begin_s = self._values[known - 1].time_s
        while True:
            end_s = min(begin_s + _REQUESTED_S, now_s + _DATE_S)
            values = self._requested(begin_s, end_s)
            self._add(values, math.floor(begin_s), now_s + _AHEAD_S)
            self._asked_s = min(end_s, now_s)
            if end_s > now_s:
                break
            begin_s = end_s

    def _requested(self, begin_s: float, end_s: float) -> list[Value]:
        answer = self._client.get(self._query.path(begin_s, end_s))
        try:
            values = self._query.values(answer)
        except PowerError as error:
            raise PowerError(f"{self._label}: {error}") from error
        return self._of_source(values)

    def _of_source(self, values: list[Value]) -> list[Value]:
        if self._source is not None:
            return [value for value in values if value.source == self._source]
        if len(sources := sorted({value.source for value in values})) > 1:
            raise PowerError(
                f"{self._label}: several devices measure it: {', '.join(sources[:8])}; name one "
                f"with source={sources[0]}"
            )
        return values

    def _add(self, values: Sequence[Value], begin_s: float, end_s: float) -> None:
        """Those of this time, one of each moment, instead of the ones from before."""
        new = {}
        for value in values:
            if begin_s <= value.time_s <= end_s:
                new[value.time_s] = value
        if new:
            low = bisect_left(self._values, begin_s, key=_time_s)
            self._values[low:] = new.values()

    def logged(self) -> tuple[Sequence[float], tuple[Sequence[float], ...]]:
        """All values since it was opened, on this machine's monotonic clock. Raises PowerError."""
        step_s = self._opened_offset_s - (self._monotonic() - self._clock())
        if abs(step_s) > CLOCK_SLACK_S:
            raise PowerError(
                f"{self._label}: this machine's clock was set by {step_s:+.3f} s while measuring: "
                "its values cannot be aligned"
            )
        self._fetch_until(self._clock())
        shift_s = self._opened_offset_s - self.offset_s
        return (
            [value.time_s + shift_s for value in self._values],
            ([value.power_w for value in self._values],),
        )

    def _fetch_until(self, time_s: float) -> None:
        """Fetches, and waits for values up to this time of the local clock: they arrive late."""
        before = len(self._values)
        self.fetch()
        end_s = self._monotonic() + self._wait_s
        while self._waits and self._newest_s() < time_s - _INTERVALS * self.native_period_s:
            if self._monotonic() >= end_s:
                # Once: without new values each window would wait as long.
                self._waits = False
                return
            self._sleep(_PAUSE_S)
            self.fetch()
        self._waits = self._waits or len(self._values) > before

    def _newest_s(self) -> float:
        if self._values:
            return self._values[-1].time_s - self.offset_s
        return -math.inf

    def read(self) -> Sequence[float | None]:
        """W of the newest value, for a look at it. Raises PowerError without one."""
        self.fetch()
        age_s = self._clock() - self._newest_s()
        if age_s > _INTERVALS * self.native_period_s + self._wait_s:
            raise PowerError(
                f"{self._label}: no value in the last {min(age_s, _LOOK_BACK_S):.0f} s"
            )
        if age_s < -_AHEAD_S:
            raise PowerError(
                f"{self._label}: its newest value is {-age_s:.0f} s ahead of this machine's clock: "
                "was the clock set back?"
            )
        power_w = self._values[-1].power_w
        return [None if math.isnan(power_w) else power_w]

    def period_s(self) -> float | None:
        """The usual time between values so far; None for less than three."""
        if len(self._values) < 3:
            return None
        gaps_s = []
        for a, b in pairwise(self._values):
            if b.time_s > a.time_s:
                gaps_s.append(b.time_s - a.time_s)
        if gaps_s:
            return statistics.median(gaps_s)
        return None

    @property
    def sources(self) -> str:
        """The measuring device of the values."""
        if self._values:
            return self._values[-1].source
        return ""

    @property
    def _label(self) -> str:
        return f"{self._client.host}: {self._query.metric} of {self._query.node}"

    def close(self) -> None:
        """Drop the connection."""
        self._client.close()


def open_meter(
    spec: str,
    options: Mapping[str, str],
    root: Path,
    clock: Callable[[], float] = time.time,
    monotonic: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> KwollectMeter:
    """Request the values of the last minutes. Raises PowerError if there are none."""
    node, metric = _NODE.fullmatch(options.get("node", "")), options.get("metric", METRIC)
    if node is None:
        raise PowerError(f"meter '{spec}': name the node, such as kwollect:lyon/taurus-7")
    if _METRIC.fullmatch(metric) is None:
        raise PowerError(f"meter '{spec}': metric={metric:.80} is no metric in watts (..._watt)")
    domain = domain_option(spec, options)
    accuracy = number_option(spec, options, "accuracy")
    most_w = number_option(spec, options, "max_w", above_zero=True) or _MOST_W
    stated_s = number_option(spec, options, "period_s", above_zero=True)
    wait_s = number_option(spec, options, "wait_s")
    network = {"timeout_s": f"{_TIMEOUT_S:g}", **options}
    meter = KwollectMeter(
        spec,
        options.get("name", "kwollect"),
        http_json.client(spec, network, options.get("url", URL)),
        Query(node[1], node[2], metric),
        source=options.get("source"),
        wait_s=_WAIT_S if wait_s is None else wait_s,
        offset_s=offset_option(options, f"meter '{spec}': "),
        clock=clock,
        monotonic=monotonic,
        sleep=sleep,
    )
    try:
        if "offset_s" not in options:
            meter.compare_clocks()
        meter.fetch()
        usual_s = meter.period_s()
        if usual_s is None:
            raise PowerError(
                f"{metric} has no values for {node[2]} in the last {_LOOK_BACK_S:g} s; its "
                "cluster may have no wattmeter: choose another metric="
            )
    except PowerError as error:
        meter.close()
        raise PowerError(f"meter '{spec}': {error}") from error
    meter.native_period_s = stated_s or usual_s
    meter.channels = (
        Channel(
            name=f"{meter.name}:{domain}",
            domain=domain,
            quantity="power_w",
            accuracy_relative=_ACCURACY if accuracy is None else accuracy,
            resolution=0.1 if metric in _WATTMETER else 1.0,
            max_power_w=most_w,
            contents=_contents(metric) if domain == "system" else UNKNOWN,
            remark=f"{metric} of {node[2]}" + (f" ({meter.sources})" if meter.sources else ""),
            delay=_delay(metric, meter.native_period_s),
        ),
    )
    return meter


def find(root: Path) -> Detected:
    """It is asked for only if the user names the node."""
    return Detected(
        "kwollect",
        KIND,
        ("system",),
        False,
        "eeio does not search the network for Kwollect",
        "name the node: --meter kwollect:SITE/NODE",
    )


def _contents(metric: str) -> Contents:
    if metric.startswith(("wattmetre_", "pdu_")):
        return WALL
    if metric == "bmc_node_power_watt":
        return MACHINE
    return UNKNOWN


def _delay(metric: str, period_s: float) -> Delay | None:
    if metric.startswith("bmc_"):
        return BMC
    if metric in _WATTMETER:
        mean_s = min(period_s, _MOST_MEAN_S)
        return Delay(
            0.5, mean_s, lag_within_s=0.5, source="Grid'5000: means of a second; lag assumed"
        )
    return None
