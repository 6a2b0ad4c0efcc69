"""The JSON and JSON+ of fio as reports: one phase for each direction of a group."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime

from eeio_parsers.fio import settings, starts
from eeio_parsers.fio.jobs import WITHIN_MS_S, Direction, Job, Report, reports
from eeio_parsers.found import FoundPhase, FoundReport, count, groups, none_found

TEXT = re.compile(r"\(groupid=\d{1,20}, jobs=\d{1,20}\): err=|^(?:<[^>\n]{1,80}> )?fio-\d", re.M)
"""The beginning of a text report, or of one of its jobs."""
SO_FAR = "figures that fio printed during this run (--status-interval) are left out"
_ALSO_TEXT = "a text report of fio in this file is not read: each form needs a file of its own"
_SAME_START_S, _LONGER_S = 1.05, 0.5
"""fio's time stamps may be of whole seconds."""


def read_json(text: str) -> Iterator[FoundReport]:
    """Every report of a file. Of the reports that --status-interval makes of one run, the last one.
    A text report in the file is named. Raises ToolOutputError."""
    previous: FoundReport | None = None
    # JSON has no such word: the pattern takes as long as all else.
    has_text = ("(groupid=" in text or "\nfio-" in text) and TEXT.search(text)
    further = (_ALSO_TEXT,) if has_text else ()
    for of_fio, begins_at in reports(text):
        report = _found(of_fio)
        report = replace(report, begins_at=begins_at, notes=(*report.notes, *further))
        if previous is not None and _continues(previous, report):
            report = replace(report, notes=(*report.notes, SO_FAR))
        elif previous is not None:
            yield previous
        previous = report
    if previous is not None:
        yield previous


def moved(report: FoundReport) -> int:
    """The bytes of a report."""
    return sum(phase.bytes or 0 for phase in report.phases)


def _continues(before: FoundReport, after: FoundReport) -> bool:
    """Whether two reports are of one run: they began at the same time, and the later one moved
    more in a longer time."""
    names = [[(p.name, p.group, p.operation) for p in each.phases] for each in (before, after)]
    if not before.phases or names[0] != names[1] or moved(after) < moved(before):
        return False
    return _began_together(before.phases[0], after.phases[0])


def _began_together(first: FoundPhase, longer: FoundPhase) -> bool:
    if first.started_utc is None or longer.started_utc is None:
        return False
    if first.runtime_s is None or longer.runtime_s is None or longer.runtime_s <= first.runtime_s:
        return False
    begun = [datetime.fromisoformat(text) for text in (first.started_utc, longer.started_utc)]
    apart_s = abs((begun[1] - begun[0]).total_seconds())
    if first.starts_within_s == longer.starts_within_s == WITHIN_MS_S:
        # A further run would begin after the end of the first one.
        return apart_s < min(WITHIN_MS_S, first.runtime_s)
    is_longer = longer.runtime_s - first.runtime_s >= _LONGER_S
    return apart_s == 0.0 or (apart_s <= _SAME_START_S and is_longer)


def _found(report: Report) -> FoundReport:
    entries = Counter((job.group, job.name, job.host) for job in report.jobs)
    phases = []
    for job in report.jobs:
        jobs = _jobs(job, entries[job.group, job.name, job.host])
        for direction in job.directions:
            start = starts.start(job, report, direction)
            phases.append((job.group, _phase(job, direction, jobs, start)))
    failed = [job.error for job in report.jobs if job.error] if not phases else []
    notes = (f"all jobs failed, the first with fio's error {failed[0]}",) if failed else ()
    host = next((job.host for job in report.jobs if job.host is not None), None)
    return FoundReport(groups(phases), report.version, host=host, notes=notes)


def _jobs(job: Job, entries: int) -> int | None:
    """The jobs behind an entry. With group_reporting, which the command line may give unseen, one
    entry has all jobs of its group: their number is known if each section has its `numjobs`. Raises
    ToolOutputError where entries of some of the jobs are missing."""
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
    return {**options, "rw:N": skipped} if skipped else options
