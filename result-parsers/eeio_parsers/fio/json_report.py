"""The JSON and JSON+ of fio as reports: one phase for each direction of a group."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from eeio_parsers.fio import settings, starts, verification
from eeio_parsers.fio.jobs import Direction, Job, Report, reports
from eeio_parsers.found import FoundPhase, FoundReport, count, groups, none_found

TEXT = re.compile(r"\(groupid=\d{1,20}, jobs=\d{1,20}\): err=|^(?:<[^>\n]{1,80}> )?fio-\d", re.M)
"""The beginning of a text report, or of one of its jobs."""
SO_FAR = "figures that fio printed during this run (--status-interval) are left out"
_ALSO_TEXT = "a text report of fio in this file is not read: each form needs a file of its own"
_LISTED_TWICE = "a report that the file contains twice counts once"
_STOPPED = re.compile(r"^fio: terminating on signal \d{1,3}\b", re.M)


def read_json(text: str) -> Iterator[FoundReport]:
    """Every report of a file. Of the reports that --status-interval makes of one run, the last one;
    of equal reports, the first one. A text report in the file is named. Raises ToolOutputError."""
    notes = _notes(text)
    of_runs: list[tuple[Report, FoundReport]] = []
    seen: dict[tuple[float | None, int, int], list[Report]] = {}
    for of_fio, begins_at in reports(text):
        report = _found(of_fio)
        report = replace(report, begins_at=begins_at, notes=(*report.notes, *notes))
        alike = seen.setdefault((of_fio.ended_s, len(of_fio.jobs), moved(report)), [])
        if of_fio in alike:
            of_fio, report = of_runs.pop()
            report = replace(report, notes=(*report.notes, _LISTED_TWICE))
        elif of_runs and _continues(*of_runs[-1], of_fio, report):
            of_runs.pop()
            report = replace(report, notes=(*report.notes, SO_FAR))
        alike.append(of_fio)
        of_runs.append((of_fio, report))
    yield from (report for _, report in of_runs)


def _notes(text: str) -> tuple[str, ...]:
    """About the file. JSON has no such words: the patterns take as long as all else."""
    notes: tuple[str, ...] = ()
    if ("(groupid=" in text or "\nfio-" in text) and TEXT.search(text):
        notes = (_ALSO_TEXT,)
    return (*notes, *stopped(text))


def stopped(text: str) -> tuple[str, ...]:
    """A note if somebody stopped fio before its time was over."""
    line = None
    if "terminating on signal" in text:
        line = _STOPPED.search(text)
    if line is None:
        return ()
    return (f"fio was stopped before its end: {line[0]}",)


def moved(report: FoundReport) -> int:
    """The bytes of a report."""
    return sum(phase.bytes or 0 for phase in report.phases)


def _continues(earlier: Report, before: FoundReport, later: Report, after: FoundReport) -> bool:
    """Whether two reports are of one run: the later one moved more, and its longest phase began
    before the end of the earlier one. A further run would begin after that."""
    names = [{(p.name, p.group, p.operation) for p in each.phases} for each in (before, after)]
    if not before.phases or not names[0] <= names[1] or moved(after) < moved(before):
        return False
    if earlier.ended_s is None or later.ended_s is None:
        return False
    longest_s = max(phase.runtime_s or 0.0 for phase in after.phases)
    between_s = later.ended_s - earlier.ended_s
    return 0.0 <= between_s < longest_s - later.ended_within_s


def _found(report: Report) -> FoundReport:
    entries = Counter((job.group, job.name, job.host) for job in report.jobs)
    hosts = {job.host for job in report.jobs}
    nodes = None
    if len(hosts) > 1:
        nodes = len(hosts)
    phases = []
    apart = []
    for job in report.jobs:
        if starts.is_apart(job):
            apart.append(job.group)
        jobs = _jobs(job, entries[job.group, job.name, job.host])
        for direction in job.directions:
            start = starts.start(job, report, direction)
            phase = replace(_phase(job, direction, jobs, start), nodes=nodes)
            phases.append((job.group, phase))
    failed = []
    if not phases:
        failed = [job.error for job in report.jobs if job.error]
    of_groups, notes = verification.separate(groups(phases), apart)
    notes = (*notes, *_of_sections(report.jobs))
    if failed:
        notes = (f"all jobs failed, the first with fio's error {failed[0]}",)
    host = ", ".join(sorted(host for host in hosts if host is not None)) or None
    return FoundReport(of_groups, report.version, host=host, notes=notes)


def _of_sections(jobs: Sequence[Job]) -> list[str]:
    notes = []
    for job in jobs:
        if job.other_section is not None:
            notes.append(
                f"job {job.name!r:.80}: one result of several sections (group_reporting), with the "
                f"options of {job.other_section!r:.80} only: its settings are not known"
            )
    return notes


def _jobs(job: Job, entries: int) -> int | None:
    """The jobs behind an entry. With group_reporting, which the command line may give unseen, one
    entry has all jobs of its group: their number is known if each section has its `numjobs`. Raises
    ToolOutputError where entries of some of the jobs are missing."""
    if job.other_section is not None:
        return None
    of_section = count(job.options.get("numjobs"))
    if "group_reporting" in job.options or (entries == 1 and of_section not in (None, 1)):
        return of_section
    if of_section is not None and entries < of_section:
        raise none_found("fio", f"results of {entries} of {of_section} jobs {job.name!r:.80}")
    return 1


_Start = tuple[str | None, str | None, float | None]
"""When the I/O began, where that is from, and its uncertainty in s; None where not known."""


def _phase(job: Job, direction: Direction, jobs: int | None, start: _Start) -> FoundPhase:
    options = job.options
    if job.other_section is not None:
        options = {}
    started_utc, time_source, starts_within_s = start
    return FoundPhase(
        name=job.name,
        operation=direction.operation,
        access_pattern=settings.pattern(options.get("rw") or options.get("readwrite")),
        request_bytes=settings.request_bytes(options, direction.operation),
        direct=settings.is_direct(options.get("direct"), options.get("buffered")),
        iodepth=count(options.get("iodepth")),
        jobs=jobs,
        engine=options.get("ioengine"),
        bandwidth_bytes_per_s=direction.bandwidth_bytes_per_s,
        iops=direction.iops,
        bytes=direction.bytes,
        runtime_s=direction.runtime_s,
        started_utc=started_utc,
        time_source=time_source,
        starts_within_s=starts_within_s,
        metrics={
            **{
                f"latency_{kind}_{statistic}_s": value
                for (kind, statistic), value in direction.latencies.items()
                if statistic != "max"
            },
            **job.processor,
        },
        options=_told(options),
        error=f"fio's error {job.error}" if job.error else None,
    )


def _told(options: Mapping[str, str]) -> Mapping[str, str]:
    """The options, with the requests of `rw=read:N` that are between two offsets."""
    skipped = (options.get("rw") or options.get("readwrite") or "").partition(":")[2]
    if skipped:
        return {**options, "rw:N": skipped}
    return options
