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

from eeio_limits import LimitError
from eeio_limits import quantities as q
from eeio_results.errors import ToolOutputError
from eeio_results.tools._arrivals import Arrivals
from eeio_results.tools.capture import Capture, PhaseResult, ToolResult, naming
from eeio_results.tools.description import FSYNC, About
from eeio_results.units import MIB

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

_RESULT = re.compile(r"^(write|read) +(.*)$", re.M)
_COLUMNS = ("bw", "iops", "latency", "block", "xfer", "open", "wrrd", "close", "total", "iter")
# Summary of all tests: its last columns are segcnt blksiz xsize aggs API RefNum.
_SUMMARY = re.compile(
    r"^(write|read) .* (?P<tasks>\d{1,9}) +\d+ +\d+ +\d+ +\d+ +\d+ +\d+ +\d+ "
    r"+(?P<segments>\d{1,15}) +(?P<block>\d{1,18}) +(?P<transfer>\d{1,18}) +[\d.]+ +\S+ +\d+ *$",
    re.M,
)
_ORDERING = re.compile(r"^ordering in a file +: (\w+)", re.M)
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
    if not re.search(r"^IOR-\d", text, re.M):
        raise ToolOutputError(f"{source}: not IOR's report, it begins {text[:60]!r}")
    if error := re.search(r"ERROR: (.*)", text):
        message = re.split(r",? (?=errno|MPI)", error[1])[0].strip(" ,")
        raise ToolOutputError(f"{source}: IOR stopped: {message}")
    head, separator, tail = text.partition("\nSummary of all tests:")
    summaries = {match[1]: match for match in _SUMMARY.finditer(tail)}
    results = [match for match in _RESULT.finditer(head) if _is_result(match[2])]
    if not separator or not results or not {match[1] for match in results} <= set(summaries):
        raise ToolOutputError(f"{source}: cut off before IOR's summary")
    ordering = _ORDERING.search(head)
    random = ordering is not None and ordering[1] == "random"
    flush = _flush(head)
    rows = [_columns(match[2], source) for match in results]
    several = max(row["iter"] for row in rows) > 0
    arrivals = Arrivals(capture, "stdout", text)
    phases = []
    for match, columns in zip(results, rows, strict=True):
        summary = summaries[match[1]]
        tasks, segments, block = (int(summary[n]) for n in ("tasks", "segments", "block"))
        transfer = int(summary["transfer"])
        total_s = columns["total"]
        end_s = arrivals.of(match.end())
        start_s = None if end_s is None else max(0.0, end_s - total_s)
        name = f"{match[1]} {columns['iter']:.0f}" if several else match[1]
        phases.append(
            PhaseResult(
                name=name,
                operation=match[1],
                spatiality=_spatiality(random, segments, tasks, block == transfer),
                request_size_bytes=transfer,
                bytes_moved=tasks * segments * block,
                bandwidth_bytes_per_s=columns["bw"] * MIB,
                start_s=start_s,
                end_s=end_s,
                window_source=_NO_WINDOW if end_s is None else _WINDOW,
                metrics=_metrics(columns),
            ).flushed(flush)
        )
    return ToolResult(phases=tuple(phases), notes=_warnings(text))


def _flush(head: str) -> str | None:
    """The flush in IOR's command line."""
    command = _COMMAND.search(head)
    arguments = command[1].split() if command else []
    return next((_FLUSHES[argument] for argument in arguments if argument in _FLUSHES), None)


def _is_result(text: str) -> bool:
    fields = text.split()
    return len(fields) == len(_COLUMNS) and fields[0] != "-"


def _columns(text: str, source: str) -> dict[str, float]:
    try:
        columns = {
            name: q.FIGURE.of_text(word, name)
            for name, word in zip(_COLUMNS, text.split(), strict=True)
            if word != "-"
        }
        q.COUNT.checked(columns["iter"], "iter")
        q.DURATION.checked(columns["total"], "total")
    except (KeyError, LimitError) as error:
        raise ToolOutputError(
            f"{source}: not a line of IOR's results: {q.shortened(text)}: {error}"
        ) from error
    return columns


def _metrics(columns: Mapping[str, float]) -> dict[str, float]:
    names = {
        "iops": "iops", "latency": "latency_mean_s", "open": "open_s", "wrrd": "transfer_s",
        "close": "close_s", "total": "total_s",
    }  # fmt: skip
    return {name: columns[key] for key, name in names.items() if key in columns}


def _spatiality(random: bool, segments: int, tasks: int, one_transfer: bool) -> str:
    """`one_transfer`: each segment is one; then the tasks take turns through the file."""
    if random:
        return "random"
    return "strided" if segments > 1 and tasks > 1 and one_transfer else "sequential"


def _warnings(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(re.findall(r"^.*(?:WARNING|warning): (.*)$", text, re.M)))
