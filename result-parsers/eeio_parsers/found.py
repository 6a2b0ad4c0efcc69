"""What a reader finds in a file: reports, and the phases of each. None is what the file lacks."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from eeio.errors import ToolOutputError
from eeio.record.energy_reading import EnergyReading
from eeio.units import quantities as q
from eeio.units.sizes import bytes_of

KIB, MIB = 1024, 1 << 20


@dataclass(frozen=True, slots=True)
class FoundPhase:
    """One direction of one group of jobs. `iops` are operations per second, also of metadata.

    `jobs` work at the same time; their bytes and rates are added. `metrics` are further figures in
    SI units; a latency has its kind in its name, for example `latency_completion_p99_s`.
    `options` are settings as the tool reports them: two phases that differ in one are no
    repetitions. `error` is the tool's message on a failure. `starts_within_s` is the uncertainty of
    `started_utc` as the start of this phase; None if that may be another's.
    """

    name: str
    operation: str | None
    access_pattern: str | None = None
    group: str = "0"
    request_bytes: int | None = None
    direct: bool | None = None
    iodepth: int | None = None
    jobs: int | None = None
    nodes: int | None = None
    engine: str | None = None
    bandwidth_bytes_per_s: float | None = None
    iops: float | None = None
    bytes: int | None = None
    runtime_s: float | None = None
    started_utc: str | None = None
    time_source: str | None = None
    starts_within_s: float | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    error: str | None = None
    energy: tuple[EnergyReading, ...] = ()
    stretches: tuple[tuple[str, float], ...] = ()
    """Start and duration (s) of each part, if there is other work between them: its energy is of
    these only. `started_utc` and `runtime_s` are of all."""

    def checked(self) -> "FoundPhase":
        """Itself. Raises LimitError if a figure is out of range."""
        for quantity, name in (
            (q.BANDWIDTH, "bandwidth_bytes_per_s"),
            (q.RATE, "iops"),
            (q.SIZE, "bytes"),
            (q.DURATION, "runtime_s"),
            (q.REQUEST_SIZE, "request_bytes"),
            (q.COUNT, "iodepth"),
            (q.REQUEST_SIZE, "jobs"),
            (q.COUNT, "nodes"),  # the limit of a record's processes
        ):
            value = getattr(self, name)
            if value is not None:
                quantity.checked(value, name)
        for name, value in self.metrics.items():
            is_time = name.endswith("_s") and not name.endswith("_per_s")
            (q.DURATION if is_time else q.FIGURE).checked(value, name)
        return self


@dataclass(frozen=True, slots=True)
class FoundReport:
    """One report of a file: fio may append one after the other. It begins at that character of the
    file; None if its reader does not tell reports apart by their places. `mixed` are the groups
    that read and wrote at the same time, with both directions together: energy and bytes are
    theirs."""

    phases: tuple[FoundPhase, ...]
    version: str | None = None
    host: str | None = None
    notes: tuple[str, ...] = ()
    begins_at: int | None = None
    mixed: tuple[FoundPhase, ...] = ()

    @property
    def work(self) -> tuple[FoundPhase, ...]:
        """Each group once: both directions together, or its only phases."""
        groups = {phase.group for phase in self.mixed}
        return (*self.mixed, *(phase for phase in self.phases if phase.group not in groups))


def to_json(report: FoundReport, number: int) -> dict[str, Any]:
    """`reports[]` of `eeio import --format json`."""
    return {
        "report": number,
        "host": report.host,
        "notes": list(report.notes),
        "phases": list(map(asdict, report.phases)),
        "mixed": list(map(asdict, report.mixed)),
    }


def with_mixed(report: FoundReport) -> FoundReport:
    """The report of a tool whose groups run at once, with the groups that read and wrote."""
    of_group: dict[str, list[FoundPhase]] = {}
    for phase in report.phases:
        of_group.setdefault(phase.group, []).append(phase)
    mixed = []
    for phases in of_group.values():
        if {phase.operation for phase in phases} >= {"read", "write"}:
            mixed.append(_both(phases))
    return replace(report, mixed=tuple(mixed))


def _both(phases: Sequence[FoundPhase]) -> FoundPhase:
    """The directions of a group as one phase. The figures of each are metrics that begin with its
    name, as in eeio's own runs."""
    metrics: dict[str, float] = {}
    for phase in phases:
        metrics |= {f"{phase.operation}_{name}": value for name, value in phase.metrics.items()}
        if phase.bandwidth_bytes_per_s is not None:
            metrics[f"{phase.operation}_bandwidth_bytes_per_s"] = phase.bandwidth_bytes_per_s
        if phase.iops is not None:
            metrics[f"{phase.operation}_iops"] = phase.iops
    names, jobs = _jobs_of_both(phases)
    return replace(
        added(phases, names),
        operation="mixed",
        jobs=jobs,
        options=_options_of_both(phases),
        metrics=metrics,
    )


def _options_of_both(phases: Sequence[FoundPhase]) -> dict[str, str]:
    """With each value of those that differ: `read + write`."""
    values: dict[str, dict[str, None]] = {}
    for phase in phases:
        for name, value in phase.options.items():
            values.setdefault(name, {})[value] = None
    return {name: " + ".join(of_phases) for name, of_phases in values.items()}


def _jobs_of_both(phases: Sequence[FoundPhase]) -> tuple[str, int | None]:
    """The names of the jobs of a group, and their number; None if some of the jobs that share a
    name did one direction only."""
    first = phases[0]
    if all(phase.name == first.name for phase in phases):
        return first.name, first.jobs
    names: dict[str, None] = {}
    has_unique_names = True
    for phase in phases:
        of_phase = phase.name.split(", ")
        names |= dict.fromkeys(of_phase)
        has_unique_names = has_unique_names and phase.jobs == len(of_phase)
    jobs = None
    if has_unique_names:
        jobs = len(names)
    return ", ".join(names)[:200], jobs


def added(jobs: Sequence[FoundPhase], name: str) -> FoundPhase:
    """Jobs of one group that worked at the same time, as one phase. Bytes and requests are added,
    and rates are theirs over the longest run time, as fio prints them for a group. Settings in
    which they differ are unknown. Percentiles of several jobs cannot be joined, so only a single
    job has latencies."""
    first = jobs[0]
    if len(jobs) == 1:
        return first

    def same(field_name: str) -> Any:
        values = {getattr(job, field_name) for job in jobs}
        if len(values) == 1:
            return values.pop()
        return None

    def total(field_name: str) -> Any:
        values = [getattr(job, field_name) for job in jobs]
        if None in values:
            return None
        return sum(values)

    runtimes = [job.runtime_s for job in jobs]
    longest_s = None
    if None not in runtimes:
        longest_s = max(r for r in runtimes if r is not None)

    def rate(field_name: str) -> float | None:
        plain: float | None = total(field_name)
        if plain is None or not longest_s:
            return plain
        done: float = sum(getattr(job, field_name) * (job.runtime_s or 0.0) for job in jobs)
        return done / longest_s

    names = dict.fromkeys(key for job in jobs for key in job.options)
    options = {}
    for key in names:
        options[key] = " | ".join(dict.fromkeys(job.options.get(key, "-") for job in jobs))
    return replace(
        first,
        name=name,
        **{
            one: same(one)
            for one in ("access_pattern", "request_bytes", "direct", "iodepth", "engine", "nodes")
        },
        jobs=total("jobs"),
        bandwidth_bytes_per_s=rate("bandwidth_bytes_per_s"),
        iops=rate("iops"),
        bytes=total("bytes"),
        runtime_s=longest_s,
        started_utc=min((job.started_utc for job in jobs if job.started_utc), default=None),
        metrics={},
        options=options,
        error=next((job.error for job in jobs if job.error), None),
    )


def groups(phases: Iterable[tuple[str, FoundPhase]]) -> tuple[FoundPhase, ...]:
    """One phase for each group and direction, of phases with their groups."""
    found: dict[tuple[str, str | None], list[FoundPhase]] = {}
    for group, phase in phases:
        if phase.group != group:
            phase = replace(phase, group=group)
        found.setdefault((group, phase.operation), []).append(phase)
    return tuple(
        added(jobs, ", ".join(dict.fromkeys(job.name for job in jobs))[:200])
        for jobs in found.values()
    )


def size(text: str, kilo: int = KIB) -> int | None:
    """Whole bytes of `4k`, `4KiB`, `1 MiB`, `4096B` (`units.bytes_of`)."""
    found = bytes_of(text, kilo)
    if found is None:
        return None
    return round(found)


def number(text: str | None) -> float | None:
    """None for text that is no finite number above or equal to 0."""
    try:
        value = float(str(text).replace(",", ""))
    except ValueError:
        return None
    if 0 <= value < 1e18:
        return value
    return None


def figure(text: object) -> float:
    """Raises ToolOutputError for text that is no number."""
    value = number(str(text))
    if value is None:
        raise ToolOutputError(f"{q.shortened(text)} is not a number of 0 or more")
    return value


def rounding(text: str) -> float:
    """Half of the last digit that a tool printed."""
    return 0.5 * 10.0 ** -len(text.partition(".")[2])


def more_exact_rate(printed: str, unit: float, computed: float, within: float) -> float:
    """A rate as printed, in units of so many bytes/s, or as requests/s times their size: the one
    with more digits. The printed one if the two differ by more than their digits explain."""
    rate, printed_within = figure(printed) * unit, rounding(printed) * unit
    if abs(rate - computed) > printed_within + within:
        return rate
    if printed_within * computed > within * rate:
        return computed
    return rate


def first_group(match: re.Match[str] | None) -> str | None:
    """None without a match."""
    if match is None:
        return None
    return match[1]


def count(text: object) -> int | None:
    value = number(str(text))
    if value is None or value != int(value):
        return None
    return int(value)


T = TypeVar("T")


def only_one(values: Iterable[T]) -> T | None:
    """The value that all have; None if they differ, or if there is none."""
    found = set(values)
    if len(found) == 1:
        return found.pop()
    return None


def utc(seconds: float) -> str:
    """Raises ToolOutputError for a time that no date has."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError) as error:
        raise ToolOutputError(f"time stamp {seconds:g} s is out of range") from error


_DATE = re.compile(
    r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\s{1,99}([A-Z][a-z]{2})\s{1,99}(\d{1,2})\s{1,99}(\d\d:\d\d:\d\d)"
    r"(?:\s{1,99}([A-Z]{3,4}))?\s{1,99}(\d{4})"
)


def local_date(text: str) -> str | None:
    """The ISO time of a date as ctime() prints it, without a zone: the file does not report one.
    With `UTC` or `GMT` it has the zone."""
    match = _DATE.search(text)
    if match is None:
        return None
    try:
        date = datetime.strptime(
            f"{match[1]} {match[2]} {match[5]} {match[3]}", "%b %d %Y %H:%M:%S"
        )
    except ValueError:
        return None
    zone = ""
    if match[4] in ("UTC", "GMT"):
        zone = "+00:00"
    return date.isoformat(timespec="seconds") + zone


def parts(text: str, begin: re.Pattern[str]) -> Iterator[tuple[str, int]]:
    """The reports of a file, each from a match of `begin` to the next, and where they begin."""
    starts = [match.start() for match in begin.finditer(text)]
    for start, end in zip(starts, [*starts, len(text)][1:], strict=True):
        yield text[start:end], start


def columns(
    wanted: Sequence[int], ends: Sequence[int], wider: int = 0, *, most_apart: int
) -> Iterator[int]:
    """The column of each figure of a row, from left to right, by where it ends; others are blank.
    `wanted` are the ends of the columns, of which a figure is `wider` than a blank, and ends
    at most `most_apart` characters away. Raises
    ValueError if there are more figures than columns, or one is below none."""
    column = -1
    for index, end in enumerate(ends):
        left = range(column + 1, len(wanted) - (len(ends) - index - 1))
        apart = [abs(expected - wider * (k - index) - end) for k, expected in enumerate(wanted)]
        column = min(left, key=apart.__getitem__)
        if apart[column] > most_apart:
            raise ValueError(f"a figure is not below the name of a column: {apart[column]} off")
        yield column


def json_of(text: str) -> Any:
    """Raises ValueError also for an object with two values of one key: one would be lost."""
    return json.loads(text, object_pairs_hook=unique)


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON. Raises ValueError if it has two values of one key."""
    body = dict(pairs)
    # Some versions of IOR write a setting twice.
    if len(body) < len(pairs) and any(body[key] != value for key, value in pairs):
        raise ValueError("an object has two values of one key")
    return body


def complete(found: list[FoundReport], lost: Sequence[ToolOutputError]) -> Iterator[FoundReport]:
    """The reports of a file, with a note on those that cannot be read: the other runs of a script,
    or of a log that was ended early, are whole. Raises the first error if there are no others."""
    if lost and not found:
        raise lost[0]
    notes = (
        (f"{len(lost)} other reports of the file are not read, the first: {lost[0]}",)
        if lost
        else ()
    )
    yield from (replace(report, notes=(*report.notes, *notes)) for report in found)


def none_found(tool: str, what: str) -> ToolOutputError:
    """The error of a file that is the tool's, but cannot be used."""
    return ToolOutputError(f"{tool}: {what}")
