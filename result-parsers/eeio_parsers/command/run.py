"""`eeio bench`: the results of loop.py of the profile eeio-command for a command (command.json)."""

from typing import Any

from eeio.errors import ToolOutputError
from eeio.files import inputs
from eeio.record.reasons import WROTE_NOTHING
from eeio.record.tools.capture import Capture, PhaseResult, ToolResult
from eeio.record.tools.description import About
from eeio.units import quantities as q

ABOUT = About(bytes_of="drive", named=())

OUTPUT_FILE = "command.json"
_NO_ACCOUNT = "the kernel keeps no account of its bytes, so whether it wrote is not known"
_COUNTERS = ("instructions", "cycles", "user_instructions", "user_cycles")
_SOURCE = "around the command, by who started it"


def parse(capture: Capture) -> ToolResult:
    """One phase, `run`: all executions of the command, one after the other.

    Its bytes are those that the command caused to be read from or written to storage, by the
    kernel's accounting of its processes; `asked_bytes` those that it read and wrote by calls,
    including pipes and devices. `processor_s`, `user_s`, `system_s` and `executed_s` (without the
    flushes between them) are sums over the executions, `executions` their number, `exit_code_N` how
    many ended with N. `context_switches`, `instructions` and `cycles` are sums of the command's
    processes; with `user_` before them, they are without those of the kernel. `memory_peak_bytes`
    is present if it exceeds the memory of the process that starts the command, else
    `memory_most_bytes`. Raises ToolOutputError.
    """
    source = str(capture.directory / OUTPUT_FILE)
    try:
        body = inputs.parse_json(capture.text(OUTPUT_FILE, None), inputs.TOOL_FILE_BYTES)
        phase = _phase(capture, body)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ToolOutputError(f"{source}: not a command's record: {error!r}") from error
    return ToolResult(phases=(phase,))


def _phase(capture: Capture, body: dict[str, Any]) -> PhaseResult:
    start_s, end_s = (
        q.TIMESTAMP.checked(body[f"{edge}_monotonic_s"], edge) - capture.started_monotonic_s
        for edge in ("start", "end")
    )
    account = body["account"]
    moved: int | None = None
    # A command that only reads does not wait for durability.
    durable_reason: str | None = _NO_ACCOUNT
    metrics = {
        "executions": float(q.COUNT.whole_number(body["count"], "count")),
        "user_s": q.DURATION.checked(body["user_s"], "user_s"),
        "system_s": q.DURATION.checked(body["system_s"], "system_s"),
    }
    peak, own = (
        float(q.SIZE.whole_number(body[f"memory_{of}_bytes"], "memory")) for of in ("peak", "own")
    )
    # The kernel's peak of a process begins with that of who started it.
    metrics["memory_peak_bytes" if peak > 1.05 * own else "memory_most_bytes"] = peak
    metrics["processor_s"] = metrics["user_s"] + metrics["system_s"]
    if "executed_s" in body:  # not in files of earlier versions
        metrics["executed_s"] = q.DURATION.checked(body["executed_s"], "executed_s")
    if "context_switches" in body:  # not in files of earlier versions
        metrics["context_switches"] = float(
            q.COUNT.whole_number(body["context_switches"], "context_switches")
        )
    counters = body.get("counters", {})
    for name in _COUNTERS:
        if name in counters:
            metrics[name] = float(q.COUNT.whole_number(counters[name], name))
    for code, count in body["exit_codes"].items():
        number = q.EXIT_CODE.whole_number(int(code), "exit_codes")
        metrics[f"exit_code_{number}"] = float(q.COUNT.whole_number(count, "exit_codes"))
    if account is not None:
        sizes = {name: q.SIZE.whole_number(value, name) for name, value in account.items()}
        read_bytes = sizes["read_bytes"]
        # Data deleted before they were written are not written.
        written_bytes = max(0, sizes["write_bytes"] - sizes["cancelled_write_bytes"])
        metrics["asked_bytes"] = float(sizes["rchar"] + sizes["wchar"])
        metrics |= {"bytes_read": float(read_bytes), "bytes_written": float(written_bytes)}
        moved = read_bytes + written_bytes
        durable_reason = None
        if not written_bytes:
            durable_reason = WROTE_NOTHING
    invalid = []
    if left := q.COUNT.whole_number(body["left"], "left") + capture.left_running:
        invalid.append(
            f"{left} of its processes continued in the background: its time excludes their work"
        )
    return PhaseResult(
        name="run",
        operation="mixed",
        spatiality="mixed",
        request_size_bytes=None,
        bytes_moved=moved,
        bandwidth_bytes_per_s=moved / (end_s - start_s) if moved and end_s > start_s else None,
        start_s=start_s,
        end_s=end_s,
        window_source=_SOURCE,
        metrics=metrics,
        invalid=tuple(invalid),
        durable_reason=durable_reason,
    )
