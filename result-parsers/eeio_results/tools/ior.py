"""IOR 3.x and 4.x: its text report, which the profile uses, and its JSON for results of others.

IOR does not report when it moved its bytes, but prints a result line as soon as it has it. The
window of a phase ends when that line arrived, and lasts the total time (open to close) that it
gives. Bytes are tasks x segments x block size, which the summary prints exactly.

With -e IOR flushes after its last write, with -Y after each, and both are within its reported time
(flushes that strace delayed lengthened it, 4.1.0+dev): the rate into the page cache is not known
then. Without them there is no flush.
"""

import re
from collections.abc import Mapping
from typing import Any

from eeio_limits import LimitError, inputs
from eeio_limits import quantities as q
from eeio_results.errors import ToolOutputError
from eeio_results.tools._arrivals import Arrivals
from eeio_results.tools.capture import Capture, PhaseResult, ToolResult, naming
from eeio_results.units import MIB

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
_NO_WINDOW = "none: a stored report contains no times of its lines"


def parse(capture: Capture) -> ToolResult:
    """The phases of one invocation, with their windows from the arrival of their lines."""
    source = str(capture.directory / OUTPUT_FILE)
    with naming(source):
        return _parse_text(capture.text(OUTPUT_FILE), source, capture)


def parse_text(text: str, source: str = "IOR's report") -> ToolResult:
    """The phases of a stored report, one for each operation of each iteration; no windows.

    Raises ToolOutputError when it is cut off, is not IOR's, or reports an error.
    """
    with naming(source):
        inputs.check_lines(text)
        return _parse_text(text, source, None)


def _parse_text(text: str, source: str, capture: Capture | None) -> ToolResult:
    if not re.search(r"^IOR-\d", text, re.M):
        raise ToolOutputError(f"{source}: not IOR's report, it begins {text[:60]!r}")
    if error := re.search(r"ERROR: (.*)", text):
        words = re.split(r",? (?=errno|MPI)", error[1])[0].strip(" ,")
        raise ToolOutputError(f"{source}: IOR stopped: {words}")
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
    arrivals = None if capture is None else Arrivals(capture, "stdout", text)
    phases = []
    for match, columns in zip(results, rows, strict=True):
        summary = summaries[match[1]]
        tasks, segments, block = (int(summary[n]) for n in ("tasks", "segments", "block"))
        transfer = int(summary["transfer"])
        total_s = columns["total"]
        start_s = end_s = None
        window = _NO_WINDOW
        if arrivals is not None:
            end_s = arrivals.of(match.end())
            if end_s is not None:
                start_s = max(0.0, end_s - total_s)
                window = "the arrival of IOR's result less its total time"
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
                window_source=window,
                metrics=_metrics(columns),
            ).flushed(flush)
        )
    return ToolResult(phases=tuple(phases), notes=_warnings(text))


_OPTION = re.compile(r"^([a-z ]+?) +: (.+)$", re.M)
_EXACT_SIZE = re.compile(r"(\d{1,12}) (bytes|KiB|MiB|GiB|TiB)")
_UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_MOVED = re.compile(r"^WARNING: Using actual aggregate bytes moved = (\d{1,18})$", re.M)


def parse_without_summary(text: str, source: str = "IOR's report") -> ToolResult:
    """The phase of a report as IO500 stores it: of IOR in a process that prints the options and one
    line of results, but no summary.

    Bytes are IOR's reported bytes if a stonewall ended it, else tasks x segments x block size.
    Raises ToolOutputError if these are printed rounded, if the report is cut off, is not IOR's, or
    reports an error.
    """
    with naming(source):
        inputs.check_lines(text)
        head, separator, tail = text.partition("\nResults:")
        if not re.match(r"IOR-\d", text):
            raise ToolOutputError(f"{source}: not IOR's report, it begins {text[:60]!r}")
        if error := re.search(r"ERROR: (.*)", text):
            raise ToolOutputError(f"{source}: IOR stopped: {error[1]}")
        results = [match for match in _RESULT.finditer(tail) if _is_result(match[2])]
        if not separator or len(results) != 1 or not tail.endswith("\n"):
            raise ToolOutputError(f"{source}: cut off before IOR's one line of results")
        (match,) = results
        columns = _columns(match[2], source)
        options = dict(_OPTION.findall(head))
        counts = [_reported(options, name, source) for name in ("tasks", "segments", "blocksize")]
        moved = _MOVED.search(tail)
        if moved is None and None in counts:
            raise ToolOutputError(f"{source}: IOR reports a rounded block size, not the bytes")
        tasks, segments, block = (count or 0 for count in counts)
        transfer = _reported(options, "xfersize", source)
        flush = _flush(head)
        random = options.get("ordering in a file") == "random"
        phase = PhaseResult(
            name=match[1],
            operation=match[1],
            spatiality=_spatiality(random, segments, tasks, block == transfer),
            request_size_bytes=transfer,
            bytes_moved=int(moved[1]) if moved else tasks * segments * block,
            bandwidth_bytes_per_s=columns["bw"] * MIB,
            start_s=None,
            end_s=None,
            window_source=_NO_WINDOW,
            metrics=_metrics(columns),
        ).flushed(flush)
        return ToolResult(phases=(phase,), notes=_warnings(text))


def _reported(options: Mapping[str, str], name: str, source: str) -> int | None:
    """A count or a size of IOR's options; None for a size that it rounds."""
    if name not in options:
        raise ToolOutputError(f"{source}: cut off: IOR's {name} is missing")
    text = options[name].strip()
    if text.isdecimal():
        return q.COUNT.whole_number(q.COUNT.of_text(text, name), name)
    size = _EXACT_SIZE.fullmatch(text)
    return None if size is None else int(size[1]) * _UNITS[size[2]]


def _flush(head: str) -> str | None:
    """The flush in IOR's command line."""
    command = _COMMAND.search(head)
    words = command[1].split() if command else []
    return next((_FLUSHES[word] for word in words if word in _FLUSHES), None)


def _is_result(text: str) -> bool:
    words = text.split()
    return len(words) == len(_COLUMNS) and words[0] != "-"


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


def parse_json(text: str, source: str = "IOR's JSON") -> ToolResult:
    """The phases of a summaryFile in JSON: a list of iterations in 3.x, a flat one in 4.x.

    Its times have four decimals, so a short run's are 0; bandwidths are exact.
    """
    brace = text.find("{")
    try:
        body = inputs.parse_json_at(text, max(brace, 0))
        phases = [phase for test in body["tests"] for phase in _json_phases(test)]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ToolOutputError(f"{source}: not IOR's JSON, or cut off: {error!r}") from error
    if not phases:
        raise ToolOutputError(f"{source}: no result in it; IOR stopped before one")
    return ToolResult(phases=tuple(phases))


def _json_phases(test: Mapping[str, Any]) -> list[PhaseResult]:
    parameters, options = test["Parameters"], test["Options"]
    rows = test["Results"]
    if rows and isinstance(rows[0], list):
        rows = [row for iteration in rows for row in iteration]
    rows = [row for row in rows if row["access"] in ("read", "write")]
    tasks = _count(options["tasks"], "tasks")
    segments = _count(parameters["segmentCount"], "segmentCount")
    block = _count(parameters["blockSize"], "blockSize")
    transfer = _count(parameters["transferSize"], "transferSize")
    random = bool(parameters["randomOffset"])
    seen: dict[str, int] = {}
    several = len({row["access"] for row in rows}) < len(rows)
    phases = []
    for row in rows:
        number = seen.get(row["access"], 0)
        seen[row["access"]] = number + 1
        phases.append(
            PhaseResult(
                name=f"{row['access']} {number}" if several else row["access"],
                operation=row["access"],
                spatiality=_spatiality(random, segments, tasks, block == transfer),
                request_size_bytes=transfer,
                bytes_moved=tasks * segments * block,
                bandwidth_bytes_per_s=_figure(row["bwMiB"], "bwMiB") * MIB,
                start_s=None,
                end_s=None,
                window_source=_NO_WINDOW,
                metrics={
                    "iops": _figure(row["iops"], "iops"),
                    "latency_mean_s": _figure(row["latency"], "latency"),
                    "transfer_s": _figure(row["wrRdTime"], "wrRdTime"),
                    "total_s": _figure(row["totalTime"], "totalTime"),
                },
            )
        )
    return phases


def _count(value: object, what: str) -> int:
    """IOR writes some numbers as texts."""
    if isinstance(value, str):
        value = q.COUNT.of_text(value, what)
    return q.COUNT.whole_number(value, what)


def _figure(value: object, what: str) -> float:
    return (
        q.FIGURE.of_text(value, what) if isinstance(value, str) else q.FIGURE.checked(value, what)
    )
