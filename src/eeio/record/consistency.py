"""Whether the bytes, times, bandwidth and requests that a tool reports of one phase agree.

Every phase that a parser makes is checked (`PhaseResult`), and imported ones (rows of a table, PTS
result files). A relation is checked only where the tool reports both of its sides; bytes of 0 mean
that they were not counted. Different clocks,
rounded figures and a short last request make real outputs differ by up to 1.8 times.
"""

import math
from collections.abc import Sequence
from typing import Any

from eeio.record.energy_reading import EnergyReading
from eeio.record.phase_times import lasted_s
from eeio.record.run import IdleMedian
from eeio.units.quantities import DURATION

MOST_TIMES = 3.0
"""Figures of one phase that differ by more contradict each other."""
_REPORTED_S = 0.002
"""Tools report integer milliseconds."""
_OBSERVED_S = 0.1
"""A window may be known by when a line of output arrived."""

_LEAST_IDLE_S, _SAME_IDLE = 0.01, 1.01
"""The shortest idle baseline, and how far the times of its meters may be apart."""
MOST_OF_MEDIAN, _LITTLE_W = 20.0, 1.0
"""A machine that wakes now and then has a mean that is so many times its median, and no more."""

_OWN_TIMES = ("runtime_s", "total_s", "io_time_s", "span_s")
"""Metrics: the time that the bandwidth is of. The window then may contain other work."""
_TRANSFER_TIME = "transfer_s"
"""Metric: the time that the rate of requests is of, without opening and closing."""
_TIMES = {"window": "its window", "durable": "the time until it is durable"}
_OF_A_PART = "told_bandwidth_bytes_per_s"
"""Metric: a bandwidth that covers an unknown part of the window."""


def disagreement(phase: Any) -> str | None:
    """The two figures of a `Phase` or `PhaseResult` that contradict each other; None if none do."""
    bandwidth, metrics = phase.bandwidth_bytes_per_s, phase.metrics
    if bandwidth is None:
        return None
    moved, request = phase.bytes_moved, phase.request_size_bytes
    if moved:
        own = {name: metrics[name] for name in _OWN_TIMES if name in metrics}
        for name, own_s in own.items():
            if reason := _of_time(moved, bandwidth, own_s, name, _REPORTED_S):
                return reason
        includes_more = bool(own) or _OF_A_PART in metrics
        if reason := _of_time(
            moved, bandwidth, lasted_s(phase), "window", _OBSERVED_S, includes_more
        ):
            return reason
        durable = phase.until_durable
        if durable is not None and phase.start_s is not None:
            rate, until_s = durable.bandwidth_bytes_per_s, durable.end_s - phase.start_s
            if reason := _of_time(moved, rate, until_s, "durable", _OBSERVED_S, includes_more):
                return reason
    if request and (iops := metrics.get("iops")):
        return _of_requests(phase, bandwidth, iops * request)
    return None


def _no_power(reading: EnergyReading) -> str | None:
    """Why a reading that is called valid has no power; None if it has."""
    name = f"{reading.meter} {reading.domain}"
    if reading.power_w is None or reading.energy_j is None:
        return f"{name}: a valid reading without power or energy"
    if reading.samples < 1 or reading.coverage <= 0.0:
        seen = f"{reading.samples} samples over {reading.coverage:.0%} of the time"
        return f"{name}: {seen} give no power"
    return None


def idle_disagreement(
    readings: Sequence[EnergyReading], medians: Sequence[IdleMedian]
) -> str | None:
    """The figures of an idle baseline that contradict each other; None if none do. All its meters
    were read over one time, which energy and mean power show."""
    valid = [reading for reading in readings if reading.valid]
    lasted_s = []
    for reading in valid:
        if (reason := _no_power(reading)) is not None:
            return reason
        if reading.power_w and reading.energy_j is not None:
            lasted_s.append(reading.energy_j / reading.power_w)
    if lasted_s and not _LEAST_IDLE_S <= min(lasted_s) <= max(lasted_s) <= DURATION.most:
        return f"energy and power are of {min(lasted_s):.3g} s to {max(lasted_s):.3g} s"
    if lasted_s and max(lasted_s) > _SAME_IDLE * min(lasted_s):
        return f"the readings are of {min(lasted_s):.3g} s and of {max(lasted_s):.3g} s"
    powers_w = {(r.meter, r.domain): r.power_w for r in readings}
    for median in medians:
        if (mean_w := powers_w.get((median.meter, median.domain))) is None:
            continue
        low_w, high_w = sorted((abs(mean_w), abs(median.power_w)))
        if high_w > MOST_OF_MEDIAN * low_w + _LITTLE_W:
            return f"{median.meter} {median.domain}: median {median.power_w:g} W, mean {mean_w:g} W"
    return None


def _of_time(
    moved: int,
    bandwidth: float,
    reported_s: float | None,
    name: str,
    slack_s: float,
    includes_more: bool = False,
) -> str | None:
    needed_s = math.inf
    if bandwidth:
        needed_s = moved / bandwidth
    if reported_s is None or not _differ(needed_s, reported_s, slack_s):
        return None
    if includes_more and needed_s < reported_s:
        return None
    took = f"{moved} bytes at {bandwidth:.6g} bytes/s take {needed_s:.6g} s"
    return _message(took, f"{_TIMES.get(name, name)} is {reported_s:.6g} s")


def _of_requests(phase: Any, bandwidth: float, rate: float) -> str | None:
    """`rate` is requests per second times the request size, bytes/s."""
    metrics = phase.metrics
    requests = f"{metrics['iops']:.6g} requests/s of {phase.request_size_bytes} bytes"
    if phase.bytes_moved and _TRANSFER_TIME in metrics:
        needed_s, reported_s = phase.bytes_moved / rate, metrics[_TRANSFER_TIME]
        if _differ(needed_s, reported_s, _REPORTED_S):
            return _message(
                f"{phase.bytes_moved} bytes in {requests} take {needed_s:.6g} s",
                f"{_TRANSFER_TIME} is {reported_s:.6g} s",
            )
        return None
    files = metrics.get("operations_per_s")
    if files and phase.request_size_bytes:
        # Files smaller than a request are one short request each.
        rate = min(rate, metrics["iops"] * max(1.0, bandwidth / files))
    if _differ(rate, bandwidth, 0.0):
        return _message(
            f"{requests} are {rate:.6g} bytes/s", f"its bandwidth is {bandwidth:.6g} bytes/s"
        )
    return None


def _differ(one: float, other: float, slack: float) -> bool:
    less, more = sorted((one, other))
    return more > MOST_TIMES * less + slack


def _message(one: str, other: str) -> str:
    return f"{one}, but {other}: the tool's figures contradict each other"
