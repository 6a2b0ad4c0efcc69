"""vdbench's text and flat files."""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

from eeio.record.consistency import MOST_TIMES
from eeio_parsers.format import Format
from eeio_parsers.found import (
    MIB,
    FoundPhase,
    FoundReport,
    count,
    figure,
    first_group,
    more_exact_rate,
    none_found,
    number,
    rounding,
    size,
)
from eeio_parsers.rules import FoundFile, Rules

TEXT = re.compile(
    r"Vdbench distribution:\s{0,99}\S|^Vdbench summary report, created "
    r"|\binterval\s{1,99}i/o\s{1,99}MB/sec\s{1,99}bytes"
    r"|\bInterval\.{1,9} \.ReqstdOps|^\d\d:\d\d:\d\d\.\d{3}\s{0,99}avg_\d{1,20}-\d{1,20}\s",
    re.M,
)
FLATFILE = re.compile(r"^\s{0,99}tod\s{1,99}(?:timestamp\s{1,99})?Run\s{1,99}Interval\s", re.M)


_LINES = re.compile(
    r"(?P<time>\d\d:\d\d:\d\d\.\d{3}) Starting RD=(?P<name>[^;\s]{1,300});?(?P<rest>[^\n]*)"
    r"|^(?:[\d:.]{12} )?(?P<date>[A-Z][a-z]{2} \d\d, \d{4})\s{1,99}"
    r"(?P<header>interval|\.{1,2}Interval)"
    r"|^(?P<end>\d\d:\d\d:\d\d\.\d{3})\s{0,99}avg_\d{1,20}-\d{1,20}\s{1,99}(?P<row>[^\n]*)$"
    r"|^\d\d:\d\d:\d\d\.\d{3}\s{1,99}(?P<interval>\d{1,20})\s(?P<of_interval>[^\n]*)$",
    re.M,
)
_PART = re.compile(
    r"^(?:[A-Z][A-Za-z ]{0,30})?[Rr]eport(?:\(s\))? for (?:host|slave|sd|wd|fsd|fwd)[= ]\S{1,200}",
    re.M,
)
"""The title of a file with the work of one host, slave, volume or workload."""
_LOOP_OF_SIZES = re.compile(r"(?<!\S)xfersize=(\S{1,40})")
_FORMAT = "%b %d, %Y %H:%M:%S.%f"


def _start(date: str, time: str, end: str | None, rest: str) -> str | None:
    """When a run began, by the date of its first header. `end` is the time of its only line, if the
    header was printed after the run (totals.html), which took the seconds of `elapsed`."""
    try:
        start = datetime.strptime(f"{date} {time}", _FORMAT)
        if end is not None:
            last = datetime.strptime(f"{date} {end}", _FORMAT)
            elapsed = re.search(r"\belapsed=(\d{1,9})", rest)
            over = start - last + timedelta(seconds=int(elapsed[1]) if elapsed else 0)
            start -= timedelta(days=round(over / timedelta(days=1)))
    except (ValueError, OverflowError):
        return None
    return start.isoformat(timespec="milliseconds")


@dataclass(frozen=True)
class _Average:
    """The figures of a run as vdbench prints them. Operations of file systems are also others than
    transfers; the sum of `transfers_per_s` is of those only. `means_of_intervals` are the mean
    sizes in the intervals of the run; `requested_*` are None where the file does not state them."""

    operations_per_s: str
    transfers_per_s: tuple[str, ...]
    mib_per_s: str
    mean_bytes: str
    read_percent: float
    means_of_intervals: tuple[str, ...] = ()
    requested_bytes: int | None = None
    requested_read_percent: float | None = None

    @property
    def request_bytes(self) -> int | None:
        """The size of each transfer, which is never a mean: the mean if it is the requested size,
        or if it is one of sectors in each interval. With several sizes, intervals differ."""
        mean = count(self.mean_bytes)
        if not mean:
            return None
        is_same = len(self.means_of_intervals) >= _FEWEST_INTERVALS
        is_same = is_same and set(self.means_of_intervals) == {self.mean_bytes}
        if mean == self.requested_bytes or (is_same and mean % _SECTOR_BYTES == 0):
            return mean
        return None

    @property
    def read_share(self) -> str:
        """As requested. The observed one differs a little from run to run."""
        share = self.requested_read_percent
        if share is None:
            share = round(self.read_percent)
            if self.operation == "mixed":
                share = min(max(share, 1), 99)
        return f"{share:g} %"

    @property
    def operation(self) -> str:
        return {100.0: "read", 0.0: "write"}.get(round(self.read_percent, 6), "mixed")

    @property
    def transferred_bytes_per_s(self) -> float:
        return sum(map(figure, self.transfers_per_s)) * figure(self.mean_bytes)

    @property
    def bandwidth_bytes_per_s(self) -> float:
        """vdbench prints MiB/s with two decimals, so that small rates are 0.00, and cuts the
        decimals of the mean off."""
        per_s = sum(map(figure, self.transfers_per_s))
        digits = sum(map(rounding, self.transfers_per_s)) * figure(self.mean_bytes)
        return more_exact_rate(
            self.mib_per_s, MIB, self.transferred_bytes_per_s, digits + per_s * _CUT_OFF_BYTES
        )

    @property
    def error(self) -> str | None:
        """Why the run is invalid."""
        bandwidth, transferred = self.bandwidth_bytes_per_s, self.transferred_bytes_per_s
        if not figure(self.operations_per_s) and not bandwidth:
            return "vdbench counted no I/O in it"
        less, more = sorted((bandwidth, transferred))
        if transferred and more > MOST_TIMES * less:
            return (
                f"{' + '.join(self.transfers_per_s)} transfers/s of {self.mean_bytes} bytes are "
                f"{transferred:.6g} bytes/s, but its bandwidth is {self.mib_per_s} MiB/s"
            )
        return None


_CUT_OFF_BYTES = 1.0
_SECTOR_BYTES = 512
_FEWEST_INTERVALS = 3
"""In fewer, means of several sizes may be equal by chance."""


_REQUESTED = re.compile(r"\b(I/O rate|elapsed)[:=]\s{0,9}([^;\s]{1,80})")
"""In the line `Starting RD`."""


def _phase(name: str, place: int, average: _Average, rest: str, started: str | None) -> FoundPhase:
    stated, _, loops = rest.partition("For loops:")
    loops = loops.strip()
    options = {"read_share": average.read_share}
    for word, value in _REQUESTED.findall(stated):
        options[f"requested {word.lower()}"] = value
    if loops not in ("", "None"):
        options["for loops"] = loops
    return FoundPhase(
        error=average.error,
        name=name,
        operation=average.operation,
        group=str(place),
        request_bytes=average.request_bytes,
        bandwidth_bytes_per_s=average.bandwidth_bytes_per_s,
        iops=figure(average.operations_per_s),
        metrics={"transfer_mean_bytes": figure(average.mean_bytes)},
        options=options,
        started_utc=started,
        time_source=None if started is None else "vdbench's local time, zone not reported",
    )


@dataclass
class _Run:
    """A run definition while its lines are read: its line `Starting RD`, and the date of its first
    header."""

    name: str | None = None
    time: str | None = None
    rest: str = ""
    date: str | None = None
    started: str | None = None
    means: list[str] = field(default_factory=list)
    has_average: bool = False

    def begin(self, end: str | None) -> None:
        if self.date and self.time and self.started is None:
            self.started = _start(self.date, self.time, end, self.rest)

    def completed(self, average: _Average) -> _Average:
        """With the means of the intervals before it, and the size of a loop over sizes."""
        requested = _LOOP_OF_SIZES.search(self.rest)
        means, self.means = tuple(self.means), []
        return replace(
            average,
            means_of_intervals=means,
            requested_bytes=size(requested[1]) if requested else None,
        )


def read_text(text: str) -> Iterator[FoundReport]:
    """`summary.html` or its text: the average line of each run definition. File systems have other
    columns than volumes: operations/s, their time, CPU, reads, writes, then MiB/s."""
    version = re.search(r"Vdbench distribution:\s{0,99}vdbench(\S{1,300})", text)
    phases, header = list[FoundPhase](), None
    run = _Run()
    runs = [run]
    for line in _LINES.finditer(re.sub(r"<[^>\n]*>", "", text)):
        if line["name"]:
            run = _Run(line["name"], line["time"], line["rest"])
            runs.append(run)
        elif line["date"]:
            run.date, header = run.date or line["date"], line["header"]
        else:
            run.begin(line["end"])
        average = _average(line["row"] or line["of_interval"] or "", header)
        if average is not None and line["interval"]:
            run.means += _known_mean(average.mean_bytes)
        elif average is not None:
            # Without the line of its start, nothing shows that another run is a repetition.
            index = len(phases)
            name = run.name or f"run {index}"
            run.has_average = True
            phases.append(_phase(name, index, run.completed(average), run.rest, run.started))
        elif line["row"] and _is_cut_off(line["row"], header):
            raise none_found("vdbench", f"cut off in the average of {run.name!r:.80}")
    if not phases:
        raise none_found("vdbench", _why_no_average(text))
    yield FoundReport(tuple(phases), first_group(version), notes=_notes(text, runs))


def _notes(text: str, runs: Sequence[_Run]) -> tuple[str, ...]:
    part = _PART.search(text)
    notes = [f"may be a part of a run: {part[0]!r:.200}"] if part else []
    notes += _without_average([run.name for run in runs if run.name and not run.has_average])
    return tuple(notes)


def _without_average(names: Sequence[str]) -> list[str]:
    """The note on run definitions that began, and have no average."""
    if not names:
        return []
    listed = ", ".join(name[:80] for name in names[:8])
    return [f"no row of {listed}: no line `avg_`, or one without numbers: the run was ended early"]


def _why_no_average(text: str) -> str:
    for line in _LINES.finditer(text):
        if "NaN" in (line["row"] or "").split():
            return "its averages are NaN: it was ended before its second interval"
    return "no line `avg_`: it was ended before its first run was done"


def _is_of_files(row: str, header: str | None) -> bool:
    """Whether a row has the columns of file systems."""
    return (header or "").startswith(".") or (header is None and len(row.split()) > 14)


def _is_cut_off(row: str, header: str | None) -> bool:
    return len(row.split()) < _COLUMNS[_is_of_files(row, header)]


_COLUMNS = {True: 13, False: 4}
"""Those that are read of file systems, and of volumes."""


def _average(row: str, header: str | None) -> _Average | None:
    """None for a row of another form."""
    words, of_files = row.split(), _is_of_files(row, header)
    cells = list(map(number, words))
    if _is_cut_off(row, header) or None in cells[: _COLUMNS[of_files]]:
        return None
    known = [cell or 0.0 for cell in cells]
    if not of_files:
        return _Average(words[0], (words[0],), words[1], words[2], known[3])
    reads, writes = known[5], known[7]
    share = known[4]
    if not writes or not reads:
        share = 100.0
        if writes:
            share = 0.0
    return _Average(words[0], (words[5], words[7]), words[11], words[12], share)


FLATFILE_CSV = re.compile(r"^\"?(?:tod|date)\"?,[^\n]{0,99}\bRun\"?,\"?Interval\"?,", re.M)


def read_flatfile(text: str) -> Iterator[FoundReport]:
    """`flatfile.html`: the average line of each run, in columns with names."""
    names: list[str] = []
    rows: list[Mapping[str, str]] = []
    for line in text.splitlines():
        cells = line.split()
        if FLATFILE.match(line):
            names = [name.lower() for name in cells]
            continue
        row = dict(zip(names, cells, strict=False))
        is_average = row.get("interval", "").startswith("avg_")
        if is_average and len(cells) < len(names):
            raise none_found("vdbench", f"cut off in the average of {row['run'][:80]}")
        if is_average or row.get("interval", "").isdecimal():
            rows.append(row)
    yield _flatfile(rows)


def read_flatfile_csv(text: str) -> Iterator[FoundReport]:
    """The flatfile as `vdbench parseflat` writes it."""
    begin = FLATFILE_CSV.search(text)
    rows = []
    for cells in csv.DictReader(text[begin.start() if begin else 0 :].splitlines()):
        row = {str(name).lower(): value for name, value in cells.items()}
        is_average = str(row.get("interval")).startswith("avg_")
        if is_average and None in row.values():
            raise none_found("vdbench", f"cut off in the average of {row['run'][:80]}")
        if is_average or str(row.get("interval")).isdecimal():
            rows.append(row)
    yield _flatfile(rows)


def _flatfile(rows: Sequence[Mapping[str, str]]) -> FoundReport:
    phases, means = list[FoundPhase](), list[str]()
    for row, following in pairwise([*rows, _END]):
        if row["interval"].startswith("avg_"):
            loops = " ".join(f"{key}={row[key]}" for key in ("reqrate", "threads") if key in row)
            average = _average_of_row(row, means)
            phases.append(_phase(row["run"], len(phases), average, f"For loops: {loops}", None))
            means = []
        elif _is_last(row, following):
            means = []
        else:
            means += _known_mean(_mean_bytes(row))
    if not phases:
        raise none_found("vdbench", "no line `avg_`: it was ended before its first run was done")
    lacking = [row["run"] for row, following in pairwise([*rows, _END]) if _is_last(row, following)]
    return FoundReport(tuple(phases), notes=tuple(_without_average(lacking)))


_END = {"run": "", "interval": ""}


def _is_last(row: Mapping[str, str], following: Mapping[str, str]) -> bool:
    """Whether an interval is the last line of a run without an average."""
    is_other = row["run"] != following["run"] or following["interval"] == "1"
    return is_other and not row["interval"].startswith("avg_")


def _average_of_row(row: Mapping[str, str], means: Sequence[str]) -> _Average:
    reads = number(row.get("read%"))
    if reads is None:
        read, write = (figure(row[f"{kind}_rate"]) for kind in ("read", "write"))
        reads = 100.0
        if read + write:
            reads = 100 * read / (read + write)
    transfers = [row[name] for name in ("read_rate", "write_rate") if name in row]
    return _Average(
        operations_per_s=row["rate"],
        transfers_per_s=tuple(transfers or [row["rate"]]),
        mib_per_s=row["mb/sec"],
        mean_bytes=_mean_bytes(row),
        read_percent=reads,
        means_of_intervals=tuple(means),
        # Of file systems, a column of this name has the mean.
        requested_bytes=count(row.get("xfersize")) if "bytes/io" in row else None,
        requested_read_percent=number(row.get("rdpct")),
    )


def _known_mean(mean_bytes: str) -> list[str]:
    """The mean of an interval that transferred something."""
    if number(mean_bytes):
        return [mean_bytes]
    return []


def _mean_bytes(row: Mapping[str, str]) -> str:
    """In a flatfile of file systems the mean is called Xfersize."""
    for name in ("bytes/io", "xfersize"):
        if number(row.get(name)):
            return row[name]
    return "0"


@dataclass(frozen=True)
class _Runs:
    """What identifies the runs of a file: names with their beginnings, or, in a flatfile, which has
    none, with their rates."""

    file: FoundFile
    runs: frozenset[tuple[str, str]]

    @property
    def names(self) -> frozenset[str]:
        return frozenset(name for name, _ in self.runs)

    def contains(self, other: "_Runs") -> bool:
        if other.runs and other.runs <= self.runs:
            return True
        is_flat = self.file.form == "flatfile", other.file.form == "flatfile"
        return is_flat == (False, True) and bool(other.runs) and other.names <= self.names


def _runs(file: FoundFile) -> _Runs:
    phases = file.reports[0].phases
    if file.form == "flatfile":
        rates = ((phase.name, f"{phase.bandwidth_bytes_per_s or 0.0:.4g}") for phase in phases)
        return _Runs(file, frozenset(rates))
    begun = ((phase.name, phase.started_utc[:19]) for phase in phases if phase.started_utc)
    return _Runs(file, frozenset(begun))


def _total_rate(file: FoundFile) -> float:
    return sum(
        phase.bandwidth_bytes_per_s or 0.0 for report in file.reports for phase in report.phases
    )


def _reject_parts(files: Sequence[FoundFile]) -> None:
    """vdbench writes a run once more for each host, slave and volume."""
    complete: dict[Path, list[_Runs]] = {}
    parts = [file for file in files if file.tool == "vdbench" and file.reports]
    parts.sort(
        key=lambda file: (
            file.form == "flatfile",
            -_total_rate(file),
            file.path.name != "summary.html",
        )
    )
    for file in parts:
        kept, of_file = complete.setdefault(file.path.parent, []), _runs(file)
        other = next((runs for runs in kept if runs.contains(of_file)), None)
        if other is None:
            kept.append(of_file)
        else:
            file.reject(f"repeats the runs of {other.file.path.name}, or a part")


RULES = {"vdbench": Rules(reject_repeated=_reject_parts)}
FORMATS = (
    Format("vdbench", "flatfile", read_flatfile, begins=FLATFILE),
    Format("vdbench", "flatfile", read_flatfile_csv, begins=FLATFILE_CSV),
    Format("vdbench", "text", read_text, begins=TEXT),
)
