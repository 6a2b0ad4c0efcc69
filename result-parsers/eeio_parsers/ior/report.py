"""IOR 2.10 to 4.x (text, JSON, CSV) and mdtest 1.9 to 4.x (text)."""

import csv
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from eeio.errors import ToolOutputError
from eeio_parsers.format import Format
from eeio_parsers.found import (
    KIB,
    MIB,
    FoundPhase,
    FoundReport,
    complete,
    count,
    figure,
    first_group,
    json_of,
    local_date,
    none_found,
    number,
    parts,
    size,
)
from eeio_parsers.rules import Rules

BEGIN = re.compile(r"^IOR-\d[^\n]*MPI Coordinated Test", re.M)
_TEST = re.compile(
    r"^(?:Max |Operation |Summary|Options|Test \d{1,20} started|Starting test)\s{0,99}:?[^\n]*$",
    re.M,
)
_SETTING = re.compile(
    r"^\s{0,99}([a-zA-Z][\w /#-]{1,40}?)[ \t]{0,99}[:=][ \t]{1,99}(\S[^\n]*?)\s{0,99}$", re.M
)
_COLUMNS = re.compile(r"^access\s{1,99}bw\(MiB/s\)[^\n]*$", re.M)
_ROW = re.compile(r"^(write|read|remove)\s{1,99}(?=[\d.-]|nan|inf)([^\n]*)$", re.M)
_ACTUAL = re.compile(r"[Uu]sing actual aggregate bytes moved\s{0,99}=\s{0,99}(\d{1,20})")


def read_text(text: str) -> Iterator[FoundReport]:
    """A report for each test of each IOR: a script of IOR's has several. IOR 2.10 prints the header
    of their tables only once."""
    header, found, lost = "", list[FoundReport](), list[ToolOutputError]()
    for part, begin in parts(text, BEGIN):
        tables = list(_COLUMNS.finditer(part))
        if not tables and not _MEANS.search(part) and header and (first := _ROW.search(part)):
            part = f"{part[: first.start()]}{header}\n{part[first.start() :]}"
            tables = list(_COLUMNS.finditer(part))
        if tables:
            header = tables[-1][0]
        try:
            found += [replace(report, begins_at=begin) for report in _run(part, tables)]
        except ToolOutputError as error:
            lost.append(error)
    yield from complete(found, lost)


def _run(part: str, tables: Sequence[re.Match[str]]) -> Iterator[FoundReport]:
    head = re.match(r"IOR-(\S+?):", part)
    version = None
    if head:
        version = head[1]
    host = re.search(r"^Machine\s{0,99}:\s{0,99}\S{1,300} (\S{1,300})", part, re.M)
    if error := re.search(r"^.*ERROR: ([^\n]{1,300})", part, re.M):
        raise none_found("IOR", f"it stopped: {error[1].partition(', MPI')[0]}")
    if not tables and (means := tuple(_means(part))):
        note = "means of the repetitions: IOR 2.10 prints no others"
        yield FoundReport(means, version, first_group(host), (note,))
        return
    if not tables:
        raise none_found("IOR", "no table of results: it was ended before its first one")
    of_all = summary(part)[0]
    reports = []
    for phases in _tables(part, tables):
        phases = tuple(
            phase if phase.iops is not None else replace(phase, iops=_only_iops(phase, of_all))
            for phase in phases
        )
        if len(tables) == len(phases) == 1 and phases[0].started_utc:
            within_s = _starts_within_s(phases[0], part)
            phases = (replace(phases[0], starts_within_s=within_s),)
        notes: tuple[str, ...] = ()
        if _EMPTY_SUMMARY.search(part):
            notes = ("the summary of all tests has no row",)
        reports.append(FoundReport(phases, version, first_group(host), notes))
    if not reports:
        raise none_found("IOR", "its table of results has no row")
    yield from reports


def _tables(part: str, tables: Sequence[re.Match[str]]) -> Iterator[tuple[FoundPhase, ...]]:
    """The results of each table that has any. Raises ToolOutputError for one that is cut off."""
    start = 0
    for table, following in zip(tables, [*tables[1:], None], strict=True):
        before = part[start : table.start()]
        rows = part[table.end() : following.start() if following else len(part)]
        body = _body(rows)
        start = table.end() + len(body)
        phases = tuple(_phases(table[0], body, before, part))
        _check_complete(phases, before, part, rows)
        if phases:
            yield phases


_START_WITHIN_S = 2.0
"""IOR's times are whole seconds, and it opens its file before the timed part."""


def _starts_within_s(phase: FoundPhase, part: str) -> float | None:
    """How well `Began` is the start of the only result. None if `Finished` contradicts it: a delay
    (-d), the use of memory (-M) and the removal of old files are between the two as well."""
    line = re.search(r"^(?:Run finished|Finished)\s{0,99}:\s{0,99}(.*)$", part, re.M)
    finished = None
    if line:
        finished = local_date(line[1])
    if finished is None or phase.started_utc is None or phase.runtime_s is None:
        return None
    began = datetime.fromisoformat(phase.started_utc)
    lasted_s = (datetime.fromisoformat(finished) - began).total_seconds()
    if abs(lasted_s - phase.runtime_s) <= _START_WITHIN_S:
        return _START_WITHIN_S
    return None


def _body(rows: str) -> str:
    """Of a table: the settings of the next test are above its own table."""
    ends = _TEST.search(rows)
    if ends:
        return rows[: ends.start()]
    return rows


def ends_of_rows(text: str) -> list[int]:
    """Where the results in IOR's tables end."""
    ends = []
    tables = list(_COLUMNS.finditer(text))
    for table, following in zip(tables, [*tables[1:], None], strict=True):
        body = _body(text[table.end() : following.start() if following else len(text)])
        for row in _ROW.finditer(body):
            if row[1] != "remove" and row[2].split()[0] not in _NO_RATE:
                ends.append(table.end() + row.end())
    return ends


_NO_RATE = ("-", "NA")
_MARK = "XXCEL"
"""Behind rows of some IOR 2.10, for scripts that collect them."""
_EMPTY_SUMMARY = re.compile(r"^Summary of all tests:\s*\nOperation[^\n]*\n\s*(?:\n|\Z)", re.M)


def _settings(text: str) -> dict[str, str]:
    """The settings above a table. A value is a part of a line that no other setting is in, but for
    brackets: `NCMPI (version = 1.3.1)`."""
    settings = {}
    for name, value in _SETTING.findall(text):
        if " = " not in re.sub(r"\([^()]*\)", "", value):
            settings[name.strip().lower()] = value
    return settings


def _check_complete(phases: tuple[FoundPhase, ...], before: str, part: str, after: str) -> None:
    """A report that was ended early lacks rows; IO500's, which is whole, has only no summary."""
    if not phases or re.search(r"^(?:Max |Summary of|Finished|Run finished)", after, re.M):
        return
    command = re.search(r"^Command line(?: used)?\s{0,99}:\s{0,99}(.*)$", part, re.M)
    if command is None:
        return  # a part of a report, whose rows are all that is known
    # `-w`, or several in one word: `-wrk`.
    flags = "".join(word for word in command[1].split() if re.fullmatch(r"-[a-zA-Z]{1,8}", word))
    directions = sum(letter in flags for letter in "wr") or 2
    settings = _settings(before)
    wanted = directions * (count(settings.get("repetitions", "1")) or 1)
    if len(phases) < wanted:
        raise none_found("IOR", f"cut off: {len(phases)} of {wanted} results")


def _phases(header: str, body: str, before: str, part: str) -> Iterator[FoundPhase]:
    settings = _settings(before)
    names = re.split(r"\s{1,99}", header.strip())
    moved = _moved_by_rows(body)
    date = re.search(r"^(?:Run began|Began|Started)\s{0,99}:\s{0,99}(.*)$", part, re.M)
    started = None
    if date:
        started = local_date(date[1])
    for row in _ROW.finditer(body):
        if row[1] == "remove":
            continue
        cells = row[2].split()
        if cells[-1] == _MARK:
            cells.pop()
        if len(cells) != len(names) - 1:
            raise none_found("IOR", f"{len(cells)} of {len(names) - 1} figures in {row[0]!r:.80}")
        values = dict(zip(names[1:], cells, strict=True))
        if values.get("bw(MiB/s)", "-") in _NO_RATE:
            continue
        phase = _phase_of_row(row[1], values, settings, part, started)
        if row.start() in moved:
            yield replace(phase, bytes=moved[row.start()])
        else:
            yield replace(phase, bytes=_unless_ended(_planned(settings), phase))


def _moved_by_rows(body: str) -> dict[int, int]:
    """The bytes that IOR states above a row because they are fewer than planned, by the place of
    the row."""
    rows = [row for row in _ROW.finditer(body) if row[1] != "remove"]
    stated = list(_ACTUAL.finditer(body))
    if len(stated) == len(rows):
        return {row.start(): int(s[1]) for row, s in zip(rows, stated, strict=True)}
    moved, begin = {}, 0
    for row in rows:
        if above := list(_ACTUAL.finditer(body, begin, row.start())):
            moved[row.start()] = int(above[-1][1])
        begin = row.end()
    return moved


def _phase_of_row(
    operation: str,
    values: Mapping[str, str],
    settings: dict[str, str],
    part: str,
    started: str | None,
) -> FoundPhase:
    """Without its bytes."""
    request_bytes = _exact(_first(settings, "xfersize") or "") or _kib(values.get("xfer(KiB)"))
    return FoundPhase(
        name=operation,
        operation=operation,
        access_pattern=_pattern(settings),
        group=values.get("iter", "0"),
        request_bytes=request_bytes,
        direct=_direct(settings, part),
        jobs=_jobs(settings),
        nodes=count(_first(settings, "nodes") or ""),
        engine=(_first(settings, "api") or "").partition(" ")[0] or None,
        # 0.00 is below its decimals, and not known.
        bandwidth_bytes_per_s=figure(values["bw(MiB/s)"]) * MIB or None,
        iops=number(values.get("IOPS")) or None,
        runtime_s=number(values.get("total(s)")),
        started_utc=started,
        time_source=None if started is None else "IOR's local time, zone not reported",
        metrics=_metrics(values, _TEXT_TIMES),
        options=_options(settings, part),
    )


_TEXT_TIMES = {
    "open(s)": "open_s",
    "wr/rd(s)": "transfer_s",
    "close(s)": "close_s",
}
_JSON_TIMES = {
    "openTime": "open_s",
    "wrRdTime": "transfer_s",
    "closeTime": "close_s",
}
"""Requests per second are of `transfer_s`, the bandwidth is of the total time. Latency(s) is not
the mean of the requests: it is that of the fastest task, and IOR up to 4.0 divides by the requests
of one segment, also if there are more or a deadline ended the test (ior.c, ReduceIterResults)."""


def _metrics(row: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, float]:
    values = {name: number(str(row.get(key))) for key, name in names.items()}
    metrics = {}
    for name, value in values.items():
        if value is not None:
            metrics[name] = value
    return metrics


def _jobs(settings: Mapping[str, str]) -> int | None:
    return count((_first(settings, "clients", "tasks", "nodes*tasks") or "").split(" ")[0])


def _exact(text: str) -> int | None:
    """Bytes of a size; None for a size with decimals, which IOR has rounded."""
    if "." in text:
        return None
    return size(text)


def _planned(settings: Mapping[str, str]) -> int | None:
    """The bytes of all tasks. IOR rounds the aggregate size, so it counts only where one of its
    factors is rounded too or missing, and it has no decimals itself."""
    jobs, segments = _jobs(settings), count(_first(settings, "segments", "segmentcount") or "1")
    block = _exact(_first(settings, "blocksize") or "")
    if jobs and segments and block:
        return jobs * segments * block
    return _exact(_first(settings, "aggregate filesize") or "")


_MEANS = re.compile(r"^Operation\s{1,99}Max \(MiB\)[^\n]*$", re.M)


def _means(part: str) -> Iterator[FoundPhase]:
    """The table of IOR 2.10: a mean of each direction over all repetitions."""
    table = _MEANS.search(part)
    if table is None:
        return
    settings = _settings(part[: table.start()])
    date = re.search(r"^Run began\s{0,99}:\s{0,99}(.*)$", part, re.M)
    started = None
    if date:
        started = local_date(date[1])
    for row in _ROW.finditer(part[table.end() :]):
        cells = row[2].split()
        if row[1] == "remove" or len(cells) < 9:
            continue
        yield FoundPhase(
            name=row[1],
            operation=row[1],
            access_pattern=_pattern(settings),
            request_bytes=_exact(settings.get("xfersize", "")),
            direct=_direct(settings, part),
            jobs=_jobs(settings),
            engine=settings.get("api"),
            bandwidth_bytes_per_s=figure(cells[2]) * MIB,
            iops=figure(cells[6]),
            bytes=_planned(settings),
            runtime_s=figure(cells[8]),
            started_utc=started,
            time_source=None if started is None else "IOR's local time, zone not reported",
            options=_options(settings, part),
        )


SUMMARY = re.compile(
    r"^Operation\s{1,20}Max\(MiB\)\s{1,20}Min\(MiB\)\s{1,20}Mean\(MiB\)[^\n]{0,400}#Tasks[^\n]{0,400}$",
    re.M,
)
_SUMMARY_ROW = re.compile(r"^(?:write|read)[ \t]{1,99}(?=[\d.])[^\n]*$", re.M)
_SUMMARY_NAMES = frozenset(
    ("Mean(MiB)", "Mean(s)", "#Tasks", "tPN", "reps", "fPP", "segcnt", "blksiz", "xsize", "API")
)


def summary(text: str) -> tuple[list[dict[str, str]], bool]:
    """The rows of the first summary, and whether it is whole."""
    header = SUMMARY.search(text)
    names = []
    if header:
        names = header[0].split()
    if header is None or names[-1] != "RefNum" or not _SUMMARY_NAMES.issubset(names):
        return [], False
    rows, end = list[dict[str, str]](), header.end() + 1
    while (row := _SUMMARY_ROW.match(text, end)) is not None:
        cells = row[0].split()
        if len(cells) != len(names):
            return rows, False
        # Some versions have two columns of one name; those used here occur once.
        rows.append(dict(zip(names, cells, strict=True)))
        end = row.end() + 1
    return rows, bool(rows)


def _same_rate(one: float, other: float) -> bool:
    """Whether two rates are one but for the digits: a table has fewer than the summary."""
    return abs(one - other) <= max(0.006 * MIB, 0.001 * other)


def _only_iops(phase: FoundPhase, rows: Sequence[Mapping[str, str]]) -> float | None:
    """Of a test without repetitions from its summary, where the table has no IOPS (before IOR 3.3).
    They are of the total time, and those of tables of the transfers, so both have to be equal."""
    total_s = phase.runtime_s or 0.0
    if not abs(phase.metrics.get("transfer_s", 0.0) - total_s) < 0.01 * total_s:
        return None
    found = set()
    for row in rows:
        if (
            (row["Operation"], row["reps"]) == (phase.operation, "1")
            and count(row["xsize"]) == phase.request_bytes
            and _same_rate(
                phase.bandwidth_bytes_per_s or 0.0, (number(row["Mean(MiB)"]) or 0.0) * MIB
            )
        ):
            found.add(row.get("Mean(OPs)"))
    if len(found) == 1:
        return number(found.pop()) or None
    return None


def read_summary(text: str) -> Iterator[FoundReport]:
    """The summary at the end of IOR 3.0 on, in a text without IOR's first line: the repetitions of
    each direction if their table is above it, else their mean."""
    begins, end = list[int](), 0
    for header in SUMMARY.finditer(text):
        begins.append((_COLUMNS.search(text, end, header.start()) or header).start())
        end = header.end()
    ends = [*begins[1:], len(text)]
    for begin, end in zip(begins, ends, strict=True):
        rows, is_whole = summary(text[begin:end])
        if not is_whole:
            raise none_found("IOR", "its summary is cut off, or broken inside a word")
        above = list(_above_summary(text[begin:end]))
        phases, notes = list[FoundPhase](), tuple[str, ...]()
        for row in rows:
            mean = _mean(row)
            own = _repetitions(mean, above)
            phases += own or [mean]
            if not own:
                notes = ("means of the repetitions: only IOR's summary is in the file",)
        yield FoundReport(tuple(phases), notes=notes, begins_at=begin)


def _above_summary(part: str) -> Iterator[FoundPhase]:
    """The rows of the tables above a summary, if none is broken."""
    tables = list(_COLUMNS.finditer(part))
    ends = [*(table.start() for table in tables[1:]), len(part)]
    for table, end in zip(tables, ends, strict=False):
        body = _body(part[table.end() : end])
        width = len(table[0].split())
        if all(len(row[0].split()) == width for row in _ROW.finditer(body)):
            yield from _phases(table[0], body, "", "")


def _mean(row: Mapping[str, str]) -> FoundPhase:
    tasks, segments, block = (count(row[name]) for name in ("#Tasks", "segcnt", "blksiz"))
    return FoundPhase(
        name=row["Operation"],
        operation=row["Operation"],
        request_bytes=count(row["xsize"]),
        jobs=tasks,
        engine=row["API"],
        bandwidth_bytes_per_s=figure(row["Mean(MiB)"]) * MIB or None,
        iops=number(row.get("Mean(OPs)")) or None,
        bytes=tasks * segments * block if tasks and segments and block else None,
        runtime_s=figure(row["Mean(s)"]),
        options={
            "access": "single-shared-file" if row["fPP"] == "0" else "file-per-process",
            "tasks per node": row["tPN"],
            "blocksize": row["blksiz"],
            "segments": row["segcnt"],
            "repetitions": row["reps"],
        },
    )


def _repetitions(mean: FoundPhase, above: Sequence[FoundPhase]) -> list[FoundPhase]:
    """Those that a row of the summary is the mean of, with its settings; none if that is not
    certain."""
    own = []
    for one in above:
        if one.operation == mean.operation and one.request_bytes in (None, mean.request_bytes):
            own.append(
                replace(
                    one,
                    request_bytes=mean.request_bytes,
                    jobs=mean.jobs,
                    engine=mean.engine,
                    options=mean.options,
                    bytes=one.bytes or _unless_ended(mean.bytes, one),
                )
            )
    rates = [one.bandwidth_bytes_per_s or 0.0 for one in own]
    complete = own and len(own) == count(mean.options["repetitions"])
    rate = mean.bandwidth_bytes_per_s or 0.0
    if complete and _same_rate(sum(rates) / len(own), rate):
        return own
    return []


def _unless_ended(planned: int | None, phase: FoundPhase) -> int | None:
    """The planned bytes, unless a deadline ended the test: its rate is that of what it moved."""
    rate, runtime_s = phase.bandwidth_bytes_per_s, phase.runtime_s
    if planned and rate and runtime_s and abs(rate * runtime_s / planned - 1) > 0.02:
        return None
    return planned


_FACTORS = (
    "access",
    "type",
    "ordering inter file",
    "ordering inter-file",
    "blocksize",
    "segments",
    "segmentcount",
    "aggregate filesize",
    "clients",
    "tasks",
    "nodes",
)


def _options(settings: Mapping[str, str], part: str) -> dict[str, str]:
    """The settings that make another experiment, and the command line with all others."""
    found = {}
    for name in _FACTORS:
        if name in settings:
            found[name] = settings[name]
    command = re.search(r"^Command line(?: used)?\s{0,99}:\s{0,99}\S{1,999}(.*)$", part, re.M)
    return found | ({"command": command[1].strip()[:500]} if command else {})


def _first(settings: Mapping[str, str], *names: str) -> str | None:
    for name in names:
        if name in settings:
            return settings[name]
    return None


def _kib(text: str | None) -> int | None:
    """Bytes of a column in KiB with two decimals; None if it may have been rounded."""
    value = number(text)
    if value is None or value != int(value):
        return None
    return round(value * KIB)


def _pattern(settings: Mapping[str, str]) -> str | None:
    order = _first(settings, "ordering in a file")
    if order is None:
        return None
    if "random" in order:
        return "random"
    access, segments = _first(settings, "access"), _first(settings, "segments", "segmentcount")
    block, transfer = (size(_first(settings, name) or "") for name in ("blocksize", "xfersize"))
    if access is None or block is None or transfer is None:
        return None
    if "shared" not in access:
        return "sequential"
    if segments is None:
        # Old IOR does not print a single segment; a block of several transfers is in sequence.
        if block == transfer:
            return None
        return "sequential"
    # With one task there is no other whose segments are between its own.
    is_alone = _jobs(settings) == 1
    is_strided = (count(segments) or 1) > 1 and block == transfer and not is_alone
    if is_strided:
        return "strided"
    return "sequential"


def _direct(settings: Mapping[str, str], part: str) -> bool | None:
    reported = _first(settings, "use o_direct", "useo_direct", "o_direct")
    if reported is not None:
        return reported.strip() not in ("0", "FALSE", "false")
    command = re.search(r"^Command line(?: used)?\s{0,99}:\s{0,99}(.*)$", part, re.M)
    if command and re.search(r"\s(-B|--posix\.odirect)\b", command[1]):
        return True
    return None


def read_json(text: str) -> Iterator[FoundReport]:
    try:
        body = json_of(text[text.index("{") :])
        for test in body["tests"]:
            options = {str(k).lower(): str(v) for k, v in test.get("Options", {}).items()}
            options |= {str(k).lower(): str(v) for k, v in test.get("Parameters", {}).items()}
            rows = [
                row
                for group in test["Results"]
                for row in (group if isinstance(group, list) else [group])
            ]
            phases = tuple(
                _json_phase(row, options, str(index), str(body.get("Command line", "")))
                for index, row in enumerate(rows)
                if row.get("access") in ("read", "write")
            )
            host = str(body.get("Machine", "")).split(" ")
            yield FoundReport(
                phases,
                str(body.get("Version", "")).removeprefix("IOR-") or None,
                host[1] if len(host) > 1 else None,
            )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise none_found("IOR", f"the JSON is damaged or cut off: {error!r:.120}") from error


_VOLATILE = ("testid", "refnum", "platform", "testfilename", "test filename", "options")
"""Parameters in IOR's JSON that do not change the experiment, or change with every run."""


def _json_phase(
    row: Mapping[str, Any], options: Mapping[str, str], place: str, command: str
) -> FoundPhase:
    rate = figure(row["bwMiB"]) * MIB
    total = None
    if "totalTime" in row:
        total = figure(row["totalTime"])
    return FoundPhase(
        name=row["access"],
        operation=row["access"],
        access_pattern="random"
        if options.get("randomoffset", "0") not in ("0", "false")
        else _pattern({"ordering in a file": "sequential", **options}),
        group=str(row.get("iteration", row.get("iter", place))),
        request_bytes=_kib(row.get("xferKiB")),
        direct=_direct(
            {k: v for k, v in options.items() if "direct" in k}, f"Command line: {command}"
        ),
        jobs=count(row.get("numTasks", options.get("tasks", options.get("clients", "")))),
        nodes=count(options.get("nodes", "")),
        engine=options.get("api"),
        bandwidth_bytes_per_s=rate,
        iops=None if "iops" not in row else figure(row["iops"]),
        bytes=_moved(options),
        runtime_s=total,
        metrics=_metrics(row, _JSON_TIMES),
        options={k: v for k, v in options.items() if k not in _VOLATILE},
    )


def _moved(options: Mapping[str, str]) -> int | None:
    """The bytes of all tasks; None if a deadline may have ended the test before."""
    tasks = options.get("tasks", options.get("clients", options.get("numtasks", "")))
    numbers = [count(tasks), *(count(options.get(n, "")) for n in ("blocksize", "segmentcount"))]
    limits = [v for k, v in options.items() if k.startswith("deadlineforstonewall")]
    if None in numbers or limits not in ([], ["0"]):
        return None
    return math.prod(number for number in numbers if number is not None)


def read_csv(text: str) -> Iterator[FoundReport]:
    """`-O summaryFormat=CSV`: a line for each phase and iteration."""
    begin = re.search(r"^access,bw\(MiB/s\)", text, re.M)
    rows = list(csv.DictReader(text[begin.start() if begin else 0 :].splitlines()))
    phases = []
    for row in rows:
        if None in row or None in row.values():
            raise none_found("IOR", "a line of its CSV has more or fewer cells than its header")
        rate = number(row.get("bw(MiB/s)"))
        if row.get("access") not in ("read", "write") or rate is None:
            continue
        total = number(row.get("total(s)"))
        phases.append(
            FoundPhase(
                name=row["access"],
                operation=row["access"],
                group=row.get("iter") or "0",
                request_bytes=_kib(row.get("xfer(KiB)")),
                jobs=count(row.get("numTasks") or ""),
                bandwidth_bytes_per_s=rate * MIB,
                iops=number(row.get("IOPS")),
                runtime_s=total,
            )
        )
    if not phases:
        raise none_found("IOR", "the CSV has no row of a read or a write")
    yield FoundReport(tuple(phases))


def _flushes(options: Mapping[str, str]) -> bool:
    """With -e, or -Y for each request."""
    command = options.get("command", "").split()
    return not {"-e", "-Y"}.isdisjoint(command) or options.get("fsync") in ("1", "TRUE")


RULES = {
    "ior": Rules(level="library", engine_is_api=True, flushes=_flushes, formats=("io500",)),
}
FORMATS = (
    Format("ior", "json", read_json, keys=("tests", "Results", "Parameters")),
    Format("ior", "text", read_text, begins=BEGIN),
    Format("ior", "summary", read_summary, begins=SUMMARY),
    Format("ior", "csv", read_csv, begins=re.compile(r"^access,bw\(MiB/s\)", re.M)),
)
