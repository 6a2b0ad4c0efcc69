"""lmbench's result files and summaries."""

import re
from collections.abc import Iterator, Mapping, Sequence

from eeio_parsers.format import Format
from eeio_parsers.found import (
    FoundPhase,
    FoundReport,
    figure,
    first_group,
    none_found,
)
from eeio_parsers.rules import FoundFile, Rules

TEXT = re.compile(r"^\[lmbench[\d.]{1,30} results for ([^\]]*)\]", re.M)


def read_text(text: str) -> Iterator[FoundReport]:
    """Bandwidth of files through the page cache; the other figures describe the machine. KB is
    1000 bytes, MB is 10^6."""
    head = TEXT.search(text)
    phases: list[FoundPhase] = []
    written = re.search(r"^File \S{1,300} write bandwidth:\s{0,99}([\d.]{1,30}) KB/sec", text, re.M)
    if written:
        phases.append(
            FoundPhase(
                name="write bandwidth",
                operation="write",
                access_pattern="sequential",
                bandwidth_bytes_per_s=figure(written[1]) * 1000,
            )
        )
    settings = _settings(text)
    notes = []
    for title, lines in _TABLES.findall(text):
        rows, note = _table(title.strip(), lines.splitlines(), settings)
        phases += rows
        if note is not None:
            notes.append(note)
    if not phases:
        raise none_found("lmbench", "no bandwidth of files in it; its other figures are no I/O")
    version = None
    if head:
        version = re.match(r"\[lmbench([\d.]{1,30})", head[0])
    names: list[str] = []
    if head:
        names = head[1].split()
    host = None
    if len(names) > 1:
        host = names[1]
    yield FoundReport(tuple(phases), first_group(version), host, notes=tuple(notes))


_TABLES = re.compile(r'^"([^"\n]*(?:read|Mmap|open2close)[^"\n]*)\n((?:[^\n]+\n)*)', re.M)
_ROW = re.compile(r"([\d.]{1,30}) ([\d.]{1,30})")
_SETTINGS = {"FILE": "file of lmbench", "ENOUGH": "enough (us)", "RELEASE": "kernel"}
"""In the head of a result -> the option that shows that two results differ in it."""


def _settings(text: str) -> dict[str, str]:
    """Those of the head, and the sizes (`ALL`) that each table has a row of."""
    settings = {}
    for word in (*_SETTINGS, "ALL"):
        stated = re.search(rf"^\[{word}: ([^\]\n]{{1,999}})\]", text, re.M)
        if stated is not None:
            settings[word] = stated[1].strip()
    return settings


def _table(
    title: str, lines: Sequence[str], settings: Mapping[str, str]
) -> tuple[list[FoundPhase], str | None]:
    """The rows of one table, and a note on the sizes that the program failed with. Raises
    ToolOutputError for a table that lacks lines."""
    sizes = settings.get("ALL", "").split()
    if sizes and len(lines) != len(sizes):
        raise none_found("lmbench", f"{title}: {len(lines)} lines of {len(sizes)} sizes: cut off")
    options = {name: settings[word] for word, name in _SETTINGS.items() if word in settings}
    phases, messages = list[FoundPhase](), list[str]()
    for line in lines:
        row = _ROW.fullmatch(line.strip())
        if row is None:
            messages.append(line.strip())
            continue
        phases.append(
            FoundPhase(
                name=title,
                operation="read",
                access_pattern="sequential",
                group=str(len(phases)),
                bytes=_bytes(row[1]),
                bandwidth_bytes_per_s=figure(row[2]) * 1e6,
                options={"size": f"{row[1]} MB", **options},
            )
        )
    if not messages:
        return phases, None
    note = f"{title}: {len(messages)} of {len(lines)} sizes have no result: {messages[0]!r:.100}"
    return phases, note


def _bytes(megabytes: str) -> int | None:
    """Sizes above 1 MB have two decimals: they are powers of 2, or not known."""
    if "." not in megabytes or len(megabytes.partition(".")[2]) >= 6:
        return round(figure(megabytes) * 1e6)
    for exponent in range(20, 50):
        size_bytes = 1 << exponent
        if f"{size_bytes / 1e6:.2f}" == megabytes:
            return size_bytes
    return None


SUMMARY = re.compile(r"^\s{0,99}L M B E N C H\s{1,9}(\d) ?\. ?(\d)\s{1,9}S U M M A R Y", re.M)
_BANDWIDTHS = re.compile(
    r"^\*Local\* Communication bandwidths in MB/s[^\n]*\n-+\nHost\s{1,99}OS\s{1,99}Pipe AF"
    r"\s{1,99}TCP\s{1,99}File\s{1,99}Mmap[^\n]*\n[^\n]*\n(-[- ]+)\n((?:\S[^\n]*\n?)*)",
    re.M,
)


def read_summary(text: str) -> Iterator[FoundReport]:
    """The tables that `make see` prints: for each host, the bandwidth of files that were read
    again. MB is 10^6, and K 1000 of them. They are rounded, without the size of the file."""
    found = False
    version = None
    if head := SUMMARY.search(text):
        version = ".".join(head.groups())
    for dashes, rows in _BANDWIDTHS.findall(text):
        ends = [m.end() for m in re.finditer(r"-+", dashes)]
        for row in rows.splitlines():
            phases = []
            # A longer name of the host shifts all columns.
            wider = max(0, len(row.split(" ", 1)[0]) - ends[0])
            for place, name in ((5, "File reread"), (6, "Mmap reread")):
                begin, end = (ends[k] + wider if k < len(ends) else 0 for k in (place - 1, place))
                rate = re.fullmatch(r"([\d.]{1,30})(K?)", row[begin:end].strip())
                # A figure that reaches beyond its column has others' digits, or lacks its own.
                if rate is None or row[begin : begin + 1].strip() or row[end : end + 1].strip():
                    continue
                phases.append(
                    FoundPhase(
                        name=name,
                        operation="read",
                        access_pattern="sequential",
                        bandwidth_bytes_per_s=figure(rate[1]) * (1e9 if rate[2] else 1e6),
                    )
                )
            if phases:
                found = True
                yield FoundReport(tuple(phases), version, row[: ends[0] + wider].strip() or None)
    if not found:
        raise none_found("lmbench", "no bandwidth of files in its summary")


def _reject_summaries(files: Sequence[FoundFile]) -> None:
    """Of machines whose own results are there, too."""
    measured = {
        _host(report)
        for file in files
        if file.tool == "lmbench" and file.form != "summary"
        for report in file.reports
    }
    for file in files:
        new = [report for report in file.reports if _host(report) not in measured]
        if (file.tool, file.form) == ("lmbench", "summary") and len(new) < len(file.reports):
            file.reports = new
            if not new:
                file.reject("repeats results of lmbench")


def _host(report: FoundReport) -> str:
    """As long as a summary shows it."""
    return (report.host or "")[:10]


RULES = {"lmbench": Rules(reject_repeated=_reject_summaries)}
FORMATS = (
    Format("lmbench", "text", read_text, begins=TEXT),
    Format("lmbench", "summary", read_summary, begins=SUMMARY),
)
