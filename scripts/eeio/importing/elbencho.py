"""elbencho's JSON (`--jsonfile`, 3.x): an object a line, one for each of its phases.

All numbers are texts. Taken are those when the last worker was done (`last_done`): all bytes, over
the whole time. Phases that move nothing (SYNC, DROPCACHES) are told as notes.
"""

from collections.abc import Mapping
from typing import Any

from eeio_limits import LimitError, inputs
from eeio_limits import quantities as q
from eeio_results.errors import ToolOutputError
from eeio_results.tools.capture import PhaseResult, ToolResult, naming

_METADATA = ("MKDIRS", "RMFILES", "RMDIRS", "STAT")
_PASSED_OVER = ("SYNC", "DROPCACHES")
_NO_WINDOW = "none: elbencho's JSON gives only the UTC start of a phase"
_US = 1e-6


def parse_text(text: str, source: str = "elbencho's JSON") -> ToolResult:
    """The phases, numbered where one comes several times. Raises ToolOutputError for a file that is
    cut off, of another program, or has a phase that eeio does not know."""
    with naming(source):
        inputs.check_lines(text)
        lines = [line for line in text.splitlines() if line.strip()]
        if not lines:
            raise ToolOutputError(f"{source}: empty; elbencho was ended before its first phase")
        bodies = [_body(line, number, source) for number, line in enumerate(lines, start=1)]
        known = [body for body in bodies if body["phase_type"] not in _PASSED_OVER]
        types = [body["phase_type"] for body in known]
        phases = []
        for place, (kind, body) in enumerate(zip(types, known, strict=True)):
            name = kind.lower()
            if types.count(kind) > 1:
                name += f" {types[:place].count(kind)}"
            try:
                phases.append(_phase(name, kind, body))
            except (LimitError, KeyError, TypeError, AttributeError) as error:
                raise ToolOutputError(f"{source}: phase {name}: {error!r:.200}") from error
        if not phases:
            raise ToolOutputError(f"{source}: no phase that moves data or makes files")
        passed = dict.fromkeys(b["phase_type"] for b in bodies if b["phase_type"] in _PASSED_OVER)
        return ToolResult(
            phases=tuple(phases), notes=tuple(f"elbencho: {kind} passed over" for kind in passed)
        )


def _body(line: str, number: int, source: str) -> dict[str, Any]:
    try:
        body = inputs.parse_json(line, inputs.TOOL_LINE_CHARACTERS)
    except (ValueError, LimitError) as error:
        raise ToolOutputError(f"{source}: line {number}: not JSON, or cut off: {error}") from error
    if not isinstance(body, dict) or not isinstance(body.get("phase_type"), str):
        raise ToolOutputError(f"{source}: line {number}: not a phase of elbencho's")
    return body


def _phase(name: str, kind: str, body: Mapping[str, Any]) -> PhaseResult:
    config, done = body["config"], body["last_done"]
    seconds = _number(done, "elapsed_time_ms", q.COUNT) / 1000
    # Whole milliseconds: 0 is not a time that is known.
    metrics = {"runtime_s": seconds} if seconds else {}
    if kind in _METADATA:
        metrics["operations_per_s"] = _number(done, "entries/s", q.RATE)
        return _result(name, "metadata", "none", None, 0, None, metrics)
    parts = [done]
    if kind.startswith("RWMIX"):
        operation = "mixed"
        parts.append(done["rwmix_read"])
    elif kind in ("READ", "WRITE"):
        operation = kind.lower()
        average_us = done.get("latency", {}).get("IO", {}).get("avg_us")
        if average_us is not None:
            metrics["latency_mean_s"] = q.FIGURE.of_text(average_us, "avg_us") * _US
    else:
        raise LimitError(f"a phase {q.shortened(kind)}, which eeio does not know")
    metrics["iops"] = sum(_number(part, "iops", q.RATE) for part in parts)
    if "entries/s" in done:
        metrics["operations_per_s"] = _number(done, "entries/s", q.RATE)
    return _result(
        name,
        operation,
        "random" if config.get("random_offsets") == "true" else "sequential",
        int(_number(config, "block_size", q.COUNT)),
        sum(int(_number(part, "bytes", q.COUNT)) for part in parts),
        sum(_number(part, "bytes/s", q.BANDWIDTH) for part in parts),
        metrics,
    )


def _result(
    name: str,
    operation: str,
    spatiality: str,
    request_size_bytes: int | None,
    bytes_moved: int,
    bandwidth_bytes_per_s: float | None,
    metrics: Mapping[str, float],
) -> PhaseResult:
    return PhaseResult(
        name=name,
        operation=operation,
        spatiality=spatiality,
        request_size_bytes=request_size_bytes,
        bytes_moved=bytes_moved,
        bandwidth_bytes_per_s=bandwidth_bytes_per_s,
        start_s=None,
        end_s=None,
        window_source=_NO_WINDOW,
        metrics=metrics,
    )


def _number(part: Mapping[str, Any], name: str, quantity: q.Quantity) -> float:
    return quantity.of_text(part[name], name)
