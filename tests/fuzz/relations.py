"""Whether the numbers of one result agree with each other, by the harness's own arithmetic.

Independent of `eeio.record.consistency`: three rates follow from a phase, and no two of them may
differ by more than three times. A window may be longer than the work only where the result tells
the time of the work as well.
"""

import math
from collections.abc import Iterator
from typing import Any

from eeio.exchange.importing.outputs import Output
from eeio.record.run import Phase
from eeio.record.tools.capture import PhaseResult, ToolResult

_MOST = 3.0001
_WINDOW_S, _ROUNDED_S = 0.1, 0.002
_OF_WORK = ("io_time_s", "span_s", "runtime_s", "total_s")


def unrelated(result: Any) -> str | None:
    """The first phase whose numbers contradict each other, and how; None without one."""
    if not isinstance(result, ToolResult | Output):
        return None
    for phase in result.phases:
        for message in _negative(phase):
            return f"{phase.name} is {message}"
        if not (phase.validity if isinstance(phase, Phase) else phase.invalid):
            for message in _contradictions(phase):
                return f"{phase.name} is {message}"
    return None


def _negative(phase: PhaseResult | Phase) -> Iterator[str]:
    figures = {
        "bytes": phase.bytes_moved, "bandwidth": phase.bandwidth_bytes_per_s,
        "request": phase.request_size_bytes,
        **{name: value for name, value in phase.metrics.items() if name.endswith(("_s", "ops"))},
    }  # fmt: skip
    for name, value in figures.items():
        if value is not None and value < 0:
            yield f"negative: {name} {value}"
    if phase.start_s is not None and phase.end_s is not None and phase.end_s < phase.start_s:
        yield "over before it begins"


def _contradictions(phase: PhaseResult | Phase) -> Iterator[str]:
    rate, moved, reported = phase.bandwidth_bytes_per_s, phase.bytes_moved, phase.metrics
    if rate is None:
        return
    of_work = [reported[name] for name in _OF_WORK if name in reported]
    if moved:
        work_s = moved / rate if rate > 0 else math.inf
        for seconds in of_work:
            if max(work_s, seconds) > _MOST * min(work_s, seconds) + _ROUNDED_S:
                yield f"{moved} B at {rate} B/s in {seconds} s"
        if phase.start_s is not None and phase.end_s is not None:
            window_s = phase.end_s - phase.start_s
            for before, after in zip(phase.stretches, phase.stretches[1:], strict=False):
                window_s -= after.start_s - before.end_s
            if work_s > _MOST * window_s + _WINDOW_S:
                yield f"{moved} B at {rate} B/s in a window of {window_s} s"
            free = bool(of_work) or "told_bandwidth_bytes_per_s" in reported
            if not free and window_s > _MOST * work_s + _WINDOW_S:
                yield f"{moved} B at {rate} B/s in a window of {window_s} s"
    if phase.request_size_bytes and reported.get("iops"):
        by_requests = reported["iops"] * phase.request_size_bytes
        part = 1.0
        if moved and rate > 0 and "transfer_s" in reported:
            # Requests are counted while bytes move, the rate from the open to the close.
            served_s = moved / by_requests
            if (
                max(served_s, reported["transfer_s"])
                > _MOST * min(served_s, reported["transfer_s"]) + _ROUNDED_S
            ):
                yield f"{by_requests} B/s by requests for {reported['transfer_s']} s, {moved} B"
            return
        files = reported.get("operations_per_s")
        if files and rate > 0:
            part = min(1.0, max(1.0, rate / files) / phase.request_size_bytes)
        if not rate / _MOST <= by_requests * part <= rate * _MOST:
            yield f"{by_requests * part} B/s by requests at {rate} B/s"
