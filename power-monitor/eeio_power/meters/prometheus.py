"""A metric that Prometheus stores: the machine's own exporter of IPMI, Redfish, RAPL or a PDU.

`prometheus:HOST:PORT,metric=NAME,domain=DOMAIN[,labels=KEY:VALUE+KEY:VALUE]` asks the query API for
the last samples of one series (`/api/v1/query`, https://prometheus.io/docs/prometheus/latest/
querying/api/). A counter of joules gives the mean power between its last two samples.

A sample is as old as the last scrape: `period_s` is the scrape interval. Without a sample within
2.5 intervals the reading is missing.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from eeio.units.quantities import FIGURE, POWER, TIMESTAMP
from eeio_power import http_json
from eeio_power.errors import PowerError
from eeio_power.meters import (
    Channel,
    Detected,
    Verified,
    domain_option,
    first_reading,
    number_option,
)
from eeio_power.reading import DOMAINS, UNKNOWN, Kind

OPTIONS = {
    "host": "address of Prometheus, HOST:PORT or https://...",
    "metric": "metric's name; its suffix or unit= gives the unit",
    "labels": "labels of the series, KEY:VALUE+KEY:VALUE",
    "domain": f"power domain of the metric: {', '.join(DOMAINS)}",
    "unit": "W, mW, uW, J, mJ or uJ (default: from the metric's suffix)",
    "accuracy": "uncertainty as a share (default 0.05)",
    "period_s": "scrape interval, s (default 15)",
    "user": "user for Basic authentication",
    "password_file": http_json.OPTIONS["password_file"],
    "cafile": http_json.OPTIONS["cafile"],
    "insecure": http_json.OPTIONS["insecure"],
    "timeout_s": http_json.OPTIONS["timeout_s"],
}
ARGUMENT = "host"

KIND: Kind = "measured"
VERIFIED_ON: Verified = "simulator"
_ACCURACY = 0.05
_SCRAPE_S = 15.0
_INTERVALS = 2.5
_UNITS = {"W": 1.0, "mW": 1e-3, "uW": 1e-6, "J": 1.0, "mJ": 1e-3, "uJ": 1e-6}
_SUFFIXES = {
    "microwatts": "uW",
    "milliwatts": "mW",
    "watts": "W",
    "microjoules": "uJ",
    "millijoules": "mJ",
    "joules": "J",
}
_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]{0,200}")
_VALUE = re.compile(r"[^\"\\\n]{1,200}")


@dataclass(frozen=True)
class PrometheusMeter:
    """One series."""

    spec: str
    name: str
    client: http_json.JsonClient
    selector: str
    unit: str
    native_period_s: float
    channels: Sequence[Channel]
    kind: Kind = KIND

    def read(self) -> Sequence[float | None]:
        """W; None if a counter was reset, jumped, or has one sample. Raises PowerError without a
        sample."""
        # A counter needs two samples.
        range_s = self.native_period_s * _INTERVALS
        query = quote(f"{self.selector}[{max(1, round(range_s * 1000))}ms]", safe="")
        samples = self._samples(self.client.get(f"/api/v1/query?query={query}"), range_s)
        factor = _UNITS[self.unit]
        if self.unit.endswith("W"):
            return [samples[-1][1] * factor]
        if len(samples) < 2:
            return [None]
        (before_s, before), (after_s, after) = samples[-2:]
        if after < before or after_s <= before_s:
            return [None]
        power_w = (after - before) * factor / (after_s - before_s)
        return [power_w if POWER.contains(power_w) else None]

    def _samples(self, answer: Any, range_s: float) -> list[tuple[float, float]]:
        try:
            if answer["status"] != "success":
                raise PowerError(f"{self.client.host}: {str(answer.get('error'))[:200]}")
            series = answer["data"]["result"]
            if not series:
                raise PowerError(
                    f"{self.client.host}: {self.selector}: no sample in the last {range_s:g} s; "
                    "check the metric, its labels, and period_s= (the scrape interval)"
                )
            if len(series) > 1:
                metrics = "; ".join(str(entry["metric"])[:120] for entry in series[:3])
                raise PowerError(
                    f"{self.client.host}: {self.selector}: {len(series)} series ({metrics}); "
                    "name one by labels=KEY:VALUE"
                )
            samples = [(float(at), float(value)) for at, value in series[0]["values"]]
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise PowerError(f"{self.client.host}: not an answer of Prometheus") from error
        if not samples or not all(
            TIMESTAMP.contains(at) and FIGURE.contains(value) for at, value in samples
        ):
            raise PowerError(f"{self.client.host}: {self.selector}: a sample is not a number")
        return samples

    def close(self) -> None:
        """Drop the connection."""
        self.client.close()


def open_meter(spec: str, options: Mapping[str, str], root: Path) -> PrometheusMeter:
    """Take a first reading. Raises PowerError if there is none."""
    host, metric = options.get("host"), options.get("metric")
    if host is None or metric is None or "domain" not in options:
        raise PowerError(
            f"meter '{spec}': give address, metric and domain, such as "
            "prometheus:127.0.0.1:9090,metric=ipmi_dcmi_power_consumption_watts,domain=system"
        )
    if _NAME.fullmatch(metric) is None:
        raise PowerError(f"meter '{spec}': metric={metric} is not the name of a metric")
    domain = domain_option(spec, options)
    network = {}
    for key, value in options.items():
        if key in ("user", "password_file", "cafile", "insecure", "timeout_s"):
            network[key] = value
    unit = _unit(spec, options, metric)
    name = options.get("name", "prometheus")
    accuracy = number_option(spec, options, "accuracy")
    if accuracy is None:
        accuracy = _ACCURACY
    meter = PrometheusMeter(
        spec=spec,
        name=name,
        client=http_json.client(spec, network, host),
        selector=metric + _labels(spec, options.get("labels", "")),
        unit=unit,
        native_period_s=number_option(spec, options, "period_s", above_zero=True) or _SCRAPE_S,
        channels=(
            Channel(
                name=f"{name}:{domain}",
                domain=domain,
                quantity="power_w",
                accuracy_relative=accuracy,
                contents=UNKNOWN,
                remark=f"{metric}, stored by Prometheus",
            ),
        ),
    )
    return first_reading(meter)


def _unit(spec: str, options: Mapping[str, str], metric: str) -> str:
    suffix = metric.removesuffix("_total").rpartition("_")[2]
    unit = options.get("unit") or _SUFFIXES.get(suffix)
    if unit not in _UNITS:
        raise PowerError(f"meter '{spec}': the unit is unknown; give unit={', '.join(_UNITS)}")
    return unit


def _labels(spec: str, text: str) -> str:
    """`{instance="node1:9100",chip="x"}`."""
    labels = []
    for part in filter(None, text.split("+")):
        key, colon, value = part.partition(":")
        if not colon or _NAME.fullmatch(key) is None or _VALUE.fullmatch(value) is None:
            raise PowerError(f"meter '{spec}': labels={text}: write KEY:VALUE+KEY:VALUE")
        labels.append(f'{key}="{value}"')
    if labels:
        return f"{{{','.join(labels)}}}"
    return ""


def find(root: Path) -> Detected:
    """The user knows which metric is of this machine."""
    return Detected(
        "prometheus",
        KIND,
        ("system",),
        False,
        "eeio does not search the network for Prometheus",
        "name it: --meter prometheus:HOST:PORT,metric=NAME,domain=system",
    )
