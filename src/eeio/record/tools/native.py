"""`eeio.json`: the output file of a profile without a specific parser.

    {"schema_version": 1,
     "phases": [{"name": "dump", "operation": "write", "spatiality": "sequential",
                 "request_size_bytes": 131072, "bytes_moved": 10485760,
                 "start_monotonic_s": 812.25, "end_monotonic_s": 812.5,
                 "bandwidth_bytes_per_s": 41943040.0, "metrics": {"iops": 320.0},
                 "durable_monotonic_s": 812.75, "durable_source": "the program's own fsync"}],
     "context": [{"name": "ranks", "value": 4, "unit": "1"}]}

Times are CLOCK_MONOTONIC seconds of the measured machine. `request_size_bytes`, both times and the
bandwidth may be null; `metrics`, `invalid`, `context` and `notes` may be left out. The spatiality
`mixed` means several access patterns. Creating, looking up or deleting files has the operation
`metadata` and the spatiality `none`; its rate is the metric `operations_per_s`.

A phase that wrote may contain more members, each optional or null: `durable_monotonic_s`, when its
bytes were on the device, and `durable_source`, what made them so; `durable_bandwidth_bytes_per_s`,
if that is not all bytes over the time from its start until then (a program that computes in
between); `includes_flush`, true if `end_monotonic_s` and the bandwidth already include the flush;
`durable_reason`, why that time is not known. A phase that consists of stretches, with computation
in between, lists them: `stretches_monotonic_s` is a list of [start, end], the first and the last at
the phase's edges. Then its power is that of the stretches only, and it is durable within its time
(`includes_flush`) or not at all. Also for reads: `spatiality_seen`, the order in which the requests
were made (docs/explanation/caches-and-validity.md).
"""

from collections.abc import Mapping
from typing import Any

from eeio.errors import ToolOutputError
from eeio.files import inputs
from eeio.record.phase_times import Stretch
from eeio.record.run import ContextValue, Durable
from eeio.record.tools.capture import Capture, PhaseResult, ToolResult
from eeio.units import quantities as q

OUTPUT_FILE = "eeio.json"
SCHEMA_VERSION = 1

_OPERATIONS = ("read", "write", "mixed", "metadata")
_SPATIALITIES = ("sequential", "random", "strided", "mixed", "none")
# Stamps are taken by other processes than the runner's; they agree this closely.
_TOLERANCE_S = 0.01
_MOST_STRETCHES = 100_000


def parse(capture: Capture) -> ToolResult:
    """The phases and context values that a profile wrote in the project's format."""
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
            notes=tuple(map(str, body.get("notes", ()))),
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
    complete = start_s is not None and end_s is not None
    if start_s is not None and end_s is not None:
        _check_window(capture, row, start_s, end_s)
    request_size = row["request_size_bytes"]
    bytes_moved = int(_number(row, "bytes_moved"))
    return PhaseResult(
        name=_text(row, "name"),
        operation=row["operation"],
        spatiality=row["spatiality"],
        request_size_bytes=None
        if request_size is None
        else int(_number(row, "request_size_bytes")),
        bytes_moved=bytes_moved,
        bandwidth_bytes_per_s=_optional(row, "bandwidth_bytes_per_s"),
        start_s=start_s if complete else None,
        end_s=end_s if complete else None,
        window_source="the workload's clock" if complete else "none: the workload reports no times",
        metrics={key: _number(row["metrics"], key) for key in row.get("metrics", {})},
        invalid=tuple(map(str, row.get("invalid", ()))),
        until_durable=_durable(capture, row, start_s, end_s, bytes_moved),
        durable_reason=_optional_text(row, "durable_reason"),
        includes_flush=_truth(row, "includes_flush"),
        spatiality_seen=_optional_text(row, "spatiality_seen"),
        stretches=_stretches(capture, row),
    )


def _check_window(
    capture: Capture, row: Mapping[str, Any], start_s: float, end_s: float, until: str = ""
) -> None:
    duration_s = capture.ended_monotonic_s - capture.started_monotonic_s
    if not -_TOLERANCE_S <= start_s < end_s <= duration_s + _TOLERANCE_S:
        raise ValueError(
            f"phase {row['name']!r} from {start_s} to {end_s} s{until} of {duration_s} s"
        )


def _durable(
    capture: Capture,
    row: Mapping[str, Any],
    start_s: float | None,
    end_s: float | None,
    bytes_moved: int,
) -> Durable | None:
    if row.get("durable_monotonic_s") is None:
        return None
    if start_s is None or end_s is None:
        raise ValueError(f"phase {row['name']!r} has a time of durability, but no start and end")
    durable_s = _number(row, "durable_monotonic_s") - capture.started_monotonic_s
    _check_window(capture, row, start_s, durable_s, ", when it is durable,")
    if durable_s < end_s:
        raise ValueError(f"phase {row['name']!r} is durable at {durable_s} s, before it ends")
    reported = row.get("durable_bandwidth_bytes_per_s")
    return Durable(
        end_s=durable_s,
        bandwidth_bytes_per_s=bytes_moved / (durable_s - start_s)
        if reported is None
        else _number(row, "durable_bandwidth_bytes_per_s"),
        source=_text(row, "durable_source"),
    )


def _stretches(capture: Capture, row: Mapping[str, Any]) -> tuple[Stretch, ...]:
    found = row.get("stretches_monotonic_s") or ()
    if len(found) > _MOST_STRETCHES:
        raise ValueError(f"phase {row['name']!r} in {len(found)} stretches")
    began_s = capture.started_monotonic_s
    stretches = []
    for start_s, end_s in found:
        stretches.append(
            Stretch(
                q.FIGURE.checked(start_s, "stretch") - began_s,
                q.FIGURE.checked(end_s, "stretch") - began_s,
            )
        )
    return tuple(stretches)


def _since_start(capture: Capture, row: Mapping[str, Any], which: str) -> float | None:
    stamp_s = _optional(row, f"{which}_monotonic_s")
    if stamp_s is None:
        return None
    return stamp_s - capture.started_monotonic_s


def _optional(row: Mapping[str, Any], key: str) -> float | None:
    if row[key] is None:
        return None
    return _number(row, key)


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


def _optional_text(row: Mapping[str, Any], key: str) -> str | None:
    if row.get(key) is None:
        return None
    return _text(row, key)


def _truth(row: Mapping[str, Any], key: str) -> bool:
    value = row.get(key)
    if value is not None and not isinstance(value, bool):
        raise ValueError(f"{key} is {value!r}, neither true nor false")
    return bool(value)
