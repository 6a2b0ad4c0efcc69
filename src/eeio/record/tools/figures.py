"""User programs (`eeio profile new`): figures from their output, by regular expressions.

Their profile writes figures.json next to the output (its form: `_figures.py`). A separate process
tries the patterns. It is ended after PATTERN_TIMEOUT_S: some take for ever on some texts.
"""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eeio.errors import ToolOutputError
from eeio.files import inputs
from eeio.record.tools import _figures
from eeio.record.tools._arrivals import Arrivals
from eeio.record.tools.capture import Capture, PhaseResult, ToolResult
from eeio.units import quantities as q

DEFINITION = _figures.DEFINITION
PATTERN_TIMEOUT_S = 10
_UPTIME_STEP_S = 0.01

# More than the window's time at the printed bandwidth means a wrong pattern or unit.
_MOST_SHARE = 1.1
_SHORTEST_S = 0.1


def parse(capture: Capture) -> ToolResult:
    """One phase, named after its operation: the command from its start to its end.

    A figure in a unit of bandwidth is the phase's bandwidth if its bytes are known, too. Without
    them it is the metric `told_bandwidth_bytes_per_s`, because it cannot be checked. Another figure
    is `iops`, `operations_per_s` or `told_s`, and the bandwidth is the bytes over the command's
    time. Raises ToolOutputError.
    """
    source = str(capture.directory / DEFINITION)
    try:
        definition = inputs.parse_json(capture.text(DEFINITION), inputs.DEFINITION_BYTES)
        if definition["schema_version"] != 1:
            raise ToolOutputError(f"{source}: not of version 1, which this program reads")
        reported = _reported(capture, definition)
        phase = _phase(capture, definition, reported)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ToolOutputError(f"{source}: does not define the figures: {error!r:.200}") from error
    figure = definition["figure"]
    notes = (
        () if figure is None else (f"the program reported {reported['figure']:g} {figure['unit']}",)
    )
    return ToolResult(phases=(phase,), notes=notes)


def _reported(capture: Capture, definition: Mapping[str, Any]) -> Mapping[str, Any]:
    for stream, count in capture.left_out.items():
        raise ToolOutputError(
            f"{capture.directory / stream}.txt: the program's output exceeds the limit: {count} "
            "bytes were not stored. Let it print less"
        )
    factors = []
    for k, v in capture.factors.items():
        if k in definition["factors"]:
            factors.append(f"{k}={v}")
    command = [sys.executable, "-I", "-S", str(Path(_figures.__file__)), str(capture.directory)]
    try:
        done = subprocess.run(
            [*command, "--json", *factors],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATTERN_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ToolOutputError(
            f"{capture.directory}: the patterns of {DEFINITION} took longer than "
            f"{PATTERN_TIMEOUT_S} s: write them without repetitions in each other, such as (a+)+"
        ) from error
    if done.returncode != 0:
        messages = done.stderr.decode(errors="replace").strip().splitlines() or ["no reason"]
        raise ToolOutputError(f"{capture.directory}: {messages[-1]:.500}")
    body: Mapping[str, Any] = inputs.parse_json(done.stdout, inputs.ANSWER_BYTES)
    return body


def _phase(
    capture: Capture, definition: Mapping[str, Any], reported: Mapping[str, Any]
) -> PhaseResult:
    start_s, end_s, source = _window(capture)
    figure, moved = definition["figure"], reported["bytes"]
    unit = None
    if figure is not None:
        unit = figure["unit"]
    bandwidth = None
    if moved and end_s > start_s:
        bandwidth = moved / (end_s - start_s)
    metrics: dict[str, float] = {}
    invalid: list[str] = []
    if unit in _figures.BANDWIDTHS:
        rate = reported["figure"] * _figures.BANDWIDTHS[unit]
        metrics["told_bandwidth_bytes_per_s"] = rate
        if moved:
            bandwidth = rate or None
            needed_s, had_s = moved / rate if rate else 0.0, end_s - start_s
            if needed_s > _MOST_SHARE * had_s + _SHORTEST_S:
                invalid.append(
                    f"at {reported['figure']:g} {unit} its {moved} bytes take {needed_s:.3g} s, "
                    f"but it ran for {had_s:.3g} s: one of the values is wrong"
                )
    elif unit is not None:
        metrics[_metric(unit)] = reported["figure"] * _figures.TIMES.get(unit, 1.0)
    return PhaseResult(
        name=definition["operation"],
        operation=definition["operation"],
        spatiality=definition["spatiality"],
        request_size_bytes=None,
        bytes_moved=None if moved is None else q.SIZE.whole_number(moved, "--bytes"),
        bandwidth_bytes_per_s=bandwidth,
        start_s=start_s,
        end_s=end_s,
        window_source=source,
        metrics=metrics,
        invalid=tuple(invalid),
        # If a command flushes by itself, its rate into the page cache is not known.
        includes_flush=capture.factors.get("flush") in ("end", "each"),
    )


def _metric(unit: str) -> str:
    if unit not in _figures.UNITS:
        raise ValueError(f"unit {unit!r}")
    if unit in _figures.TIMES:
        return "told_s"
    if unit == "IOPS":
        return "iops"
    return "operations_per_s"


def _window(capture: Capture) -> tuple[float, float, str]:
    """Of the command, in seconds from the start of the invocation: by the lines around it."""
    complete_s = capture.ended_monotonic_s - capture.started_monotonic_s
    text = capture.text("stderr.txt")
    edges = list(_figures.EDGE.finditer(text))
    begins = next((edge for edge in edges if edge[1] == "begins"), None)
    ends = next((edge for edge in reversed(edges) if edge[1] == "ends"), None)
    if begins is not None and ends is not None:
        arrivals = Arrivals(capture, "stderr", text)
        start_s, end_s = arrivals.of(begins.end()), arrivals.of(ends.end())
        if start_s is not None and end_s is not None:
            if begins[2] and ends[2]:
                # On a busy machine the first line is read late.
                ran_s = round(float(ends[2]) - float(begins[2]) - _UPTIME_STEP_S, 2)
                start_s = min(start_s, end_s - ran_s)
            if 0 <= start_s < end_s:
                source = "when the lines that its script prints around the command arrived"
                return start_s, end_s, source
    return (
        0.0,
        complete_s,
        "the complete run of the profile's script: the start of the command is unknown",
    )
