"""IOR 3.x and 4.x: the text report of the profile.

IOR does not report when it moved its bytes, but prints a result line as soon as it has it. The
window of a phase ends when that line arrived, and lasts the total time (open to close) that it
gives. Bytes are tasks x segments x block size, which the summary prints exactly.

With -e IOR flushes after its last write, with -Y after each, and both are within its reported time
(flushes that strace delayed lengthened it, 4.1.0+dev): the rate into the page cache is not known
then. Without them there is no flush.
"""

import re
from collections.abc import Mapping

from eeio.errors import ToolOutputError
from eeio.record.tools._arrivals import Arrivals
from eeio.record.tools.capture import Capture, PhaseResult, ToolResult, naming
from eeio.record.tools.description import FSYNC, About
from eeio.units import quantities as q
from eeio_parsers.found import FoundPhase
from eeio_parsers.ior import report

ABOUT = About(
    reports_all_bytes=True,
    words={
        ("collective", "on"): "collective",
        ("file_per_process", "on"): "file per process",
        **FSYNC,
    },
    named=(),
    layer_rank=2,
    own_file=("file_per_process", "on"),
)

OUTPUT_FILE = "stdout.txt"

# IOR's options, and their effect.
_FLUSHES = {"-e": "IOR's flush (-e)", "-Y": "IOR's flush of each request (-Y)"}
_COMMAND = re.compile(r"^Command line *: (.*)$", re.M)
_WINDOW = "the arrival of IOR's result less its total time"
_NO_WINDOW = "none: a stored report contains no times of its lines"


def parse(capture: Capture) -> ToolResult:
    """The phases of one invocation, with their windows from the arrival of their lines."""
    source = str(capture.directory / OUTPUT_FILE)
    with naming(source):
        return _parse_text(capture.text(OUTPUT_FILE), source, capture)


def _parse_text(text: str, source: str, capture: Capture) -> ToolResult:
    reports = list(report.read_text(text))
    summaries = {row["Operation"]: row for row in report.summary(text)[0]}
    phases: list[FoundPhase] = []
    for each in reports:
        phases.extend(each.phases)
    if not reports or not {phase.name for phase in phases} <= set(summaries):
        raise ToolOutputError(f"{source}: cut off before IOR's summary")
    ends = report.ends_of_rows(text)
    if len(ends) != len(phases):
        raise ToolOutputError(f"{source}: {len(ends)} lines of {len(phases)} results")
    flush = _flush(text)
    several = len({phase.group for phase in phases}) > 1
    arrivals = Arrivals(capture, "stdout", text)
    return ToolResult(
        phases=tuple(
            _result(phase, summaries[phase.name], arrivals.of(end), several).flushed(flush)
            for phase, end in zip(phases, ends, strict=True)
        ),
        notes=_warnings(text),
    )


def _result(
    phase: FoundPhase, summary: Mapping[str, str], end_s: float | None, several: bool
) -> PhaseResult:
    """`summary` has exact sizes; `several` says that its operation was repeated."""
    total_s = q.DURATION.checked(phase.runtime_s, "total(s)")
    tasks, segments, block, transfer = (
        int(q.COUNT.of_text(summary[name], name))
        for name in ("#Tasks", "segcnt", "blksiz", "xsize")
    )
    return PhaseResult(
        name=f"{phase.name} {phase.group}" if several else phase.name,
        operation=phase.name,
        spatiality=str(phase.access_pattern),
        request_size_bytes=transfer,
        bytes_moved=tasks * segments * block,
        bandwidth_bytes_per_s=phase.bandwidth_bytes_per_s,
        start_s=None if end_s is None else max(0.0, end_s - total_s),
        end_s=end_s,
        window_source=_NO_WINDOW if end_s is None else _WINDOW,
        metrics={
            **({"iops": phase.iops} if phase.iops is not None else {}),
            **phase.metrics,
            "total_s": total_s,
        },
    )


def _flush(head: str) -> str | None:
    """The flush in IOR's command line."""
    command = _COMMAND.search(head)
    arguments: list[str] = []
    if command:
        arguments = command[1].split()
    for argument in arguments:
        if argument in _FLUSHES:
            return _FLUSHES[argument]
    return None


def _warnings(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(re.findall(r"^.*(?:WARNING|warning): (.*)$", text, re.M)))
