"""`eeio.json`: what a profile without a parser of its own writes into its output directory.

    {"schema_version": 1,
     "phases": [{"name": "dump", "operation": "write", "spatiality": "sequential",
                 "request_size_bytes": 131072, "bytes_moved": 10485760,
                 "start_monotonic_s": 812.25, "end_monotonic_s": 812.5,
                 "bandwidth_bytes_per_s": 41943040.0, "metrics": {"iops": 320.0}}],
     "context": [{"name": "ranks", "value": 4, "unit": "1"}]}

Times are CLOCK_MONOTONIC seconds of the measured machine. `request_size_bytes`, both times and
the bandwidth may be null; `metrics`, `invalid`, `context` and `notes` may be left out.
The spatiality `mixed` is that of several patterns. Creating, looking up or deleting files has the
operation `metadata` and the spatiality `none`; its rate is the metric `operations_per_s`.
"""

from collections.abc import Mapping
from typing import Any

from eeio_limits import inputs
from eeio_limits import quantities as q
from eeio_results.errors import ToolOutputError
from eeio_results.record import ContextValue
from eeio_results.tools.capture import Capture, PhaseResult, ToolResult

OUTPUT_FILE = "eeio.json"
SCHEMA_VERSION = 1

_OPERATIONS = ("read", "write", "mixed", "metadata")
_SPATIALITIES = ("sequential", "random", "strided", "mixed", "none")
# Stamps are taken by other processes than the runner's; they agree this closely.
_TOLERANCE_S = 0.01


def parse(capture: Capture) -> ToolResult:
    """The phases and context values a profile wrote in the project's own format."""
    source = str(capture.directory / OUTPUT_FILE)
    try:
        body = inputs.parse_json(capture.text(OUTPUT_FILE, None), inputs.TOOL_FILE_BYTES)
        version = body["schema_version"]
        if version != SCHEMA_VERSION:
            raise ToolOutputError(
                f"{source}: schema_version {version!r}, this program reads {SCHEMA_VERSION}"
            )
        result = ToolResult(
            phases=tuple(_phase(capture, row) for row in body["phases"]),
            context=tuple(
                ContextValue(_text(row, "name"), _number(row, "value"), _text(row, "unit"))
                for row in body.get("context", ())
            ),
            notes=tuple(str(note) for note in body.get("notes", ())),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ToolOutputError(f"{source}: not a result of a profile: {error!r}") from error
    if not result.phases and not result.context:
        raise ToolOutputError(f"{source}: neither phases nor context")
    return result


def _phase(capture: Capture, row: Mapping[str, Any]) -> PhaseResult:
    if row["operation"] not in _OPERATIONS or row["spatiality"] not in _SPATIALITIES:
        raise ValueError(f"operation {row['operation']!r}, spatiality {row['spatiality']!r}")
    start_s, end_s = _since_start(capture, row, "start"), _since_start(capture, row, "end")
    whole = start_s is not None and end_s is not None
    duration_s = capture.ended_monotonic_s - capture.started_monotonic_s
    if (
        start_s is not None
        and end_s is not None
        and not -_TOLERANCE_S <= start_s < end_s <= duration_s + _TOLERANCE_S
    ):
        raise ValueError(f"phase {row['name']!r} from {start_s} to {end_s} s of {duration_s} s")
    request_size = row["request_size_bytes"]
    return PhaseResult(
        name=_text(row, "name"),
        operation=row["operation"],
        spatiality=row["spatiality"],
        request_size_bytes=None
        if request_size is None
        else int(_number(row, "request_size_bytes")),
        bytes_moved=int(_number(row, "bytes_moved")),
        bandwidth_bytes_per_s=_optional(row, "bandwidth_bytes_per_s"),
        start_s=start_s if whole else None,
        end_s=end_s if whole else None,
        window_source="the workload's own clock" if whole else "none: the workload tells no times",
        metrics={key: _number(row["metrics"], key) for key in row.get("metrics", {})},
        invalid=tuple(str(reason) for reason in row.get("invalid", ())),
    )


def _since_start(capture: Capture, row: Mapping[str, Any], which: str) -> float | None:
    stamp_s = _optional(row, f"{which}_monotonic_s")
    return None if stamp_s is None else stamp_s - capture.started_monotonic_s


def _optional(row: Mapping[str, Any], key: str) -> float | None:
    return None if row[key] is None else _number(row, key)


def _number(row: Mapping[str, Any], key: str) -> float:
    value = row[key]
    number = q.FIGURE.checked(value, key)
    if number < 0:
        raise ValueError(f"{key} is negative: {number}")
    return number


def _text(row: Mapping[str, Any], key: str) -> str:
    value = row[key]
    if not isinstance(value, str) or not value:
        raise ValueError(f"{key} is {value!r}, not a name")
    return value
