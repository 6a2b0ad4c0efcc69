"""The data servers' `eeio.json`; a replay has the access pattern of its trace.

That of the logical requests of each client, by the rule of docs/how-to/trace-a-program.md,
separately for reads and writes; `mixed` if they differ, or if no client made two requests.
"""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from eeio.errors import LimitError, ToolOutputError
from eeio.files import inputs
from eeio.record.tools import native
from eeio.record.tools.capture import Capture, ToolResult
from eeio.record.tools.description import FSYNC, About
from eeio.traces import events, logs

ABOUT = About(
    reports_all_bytes=True,
    words={("collective", "on"): "collective", ("file", "shared"): "shared file", **FSYNC},
    named=("stride", "clients", "pace"),
    layer_rank=1,
)


def parse(capture: Capture) -> ToolResult:
    """The results that the servers wrote."""
    result = native.parse(capture)
    trace = capture.factors.get("replay")
    if not trace:
        return result
    try:
        # A trace that the profile made is next to its output.
        path = capture.directory / "hou10ni.csv" if trace == "hou10ni" else Path(trace)
        found = spatiality(_events(path))
    except (OSError, LimitError, ToolOutputError) as error:
        note = f"spatiality of the replay: mixed, for its trace cannot be read ({error})"
        return replace(result, notes=(*result.notes, note))
    return replace(
        result, phases=tuple(replace(phase, spatiality=found) for phase in result.phases)
    )


def _events(trace: Path) -> Iterable[events.Event]:
    """As the program reads it: comments, empty lines and the header may be anywhere or missing."""
    lines = inputs.read_text(trace, inputs.TOOL_FILE_BYTES).splitlines()
    requests = [line for line in lines if line and not line.startswith(("#", "time,"))]
    return logs.parse_csv("\n".join([",".join(logs.HEADER), *requests]), str(trace))


def spatiality(trace: Iterable[events.Event]) -> str:
    """sequential, strided, random or mixed."""
    of: dict[str, list[events.Event]] = {}
    for event in trace:
        of.setdefault(event.operation, []).append(event)
    found = set(map(events.spatiality, of.values()))
    if len(found) == 1 and found != {"unknown"}:
        return found.pop()
    return "mixed"
