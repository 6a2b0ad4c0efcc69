"""When the I/O of a job began by fio's report, and how well that is known."""

import math
from collections.abc import Mapping, Sequence

from eeio_parsers.fio import settings, verification
from eeio_parsers.fio.jobs import WITHIN_MS_S, Direction, Job, Report
from eeio_parsers.found import count, utc

_MOST_APART_SHARE = 0.05
"""Of the run time: jobs that start further apart do not run together."""
_END_WITHIN_S = 1.0
"""fio's time stamp may be of whole seconds."""
_RUNTIMES_WITHIN_S = 0.05
"""fio adds the run times of a group's jobs in other places than it takes the longest one."""


def start(
    job: Job, report: Report, direction: Direction
) -> tuple[str | None, str | None, float | None]:
    """When the I/O began, where that is from, and its uncertainty in s; None where not known."""
    if is_apart(job):
        return _start_apart(job, report, direction)
    within_s: float | None = WITHIN_MS_S
    if job.started_s is not None:
        started_s = job.started_s
        source = "fio's start of the job"
        if "ramp_time" in job.options:
            within_s = None  # The run time is that after the ramp.
    elif report.ended_s is not None and _is_last_work(job, report):
        started_s = report.ended_s - direction.runtime_s
        source = "fio's time stamp at the end, less its run time"
        within_s = _with_close(report.ended_within_s, job, report, direction)
    else:
        return None, None, None
    if within_s is not None and direction.runtime_s:
        apart_s = _apart_s(job, report, direction)
        is_together = apart_s <= _MOST_APART_SHARE * direction.runtime_s
        within_s = within_s + apart_s if is_together else None
    return utc(started_s), source, within_s


def is_apart(job: Job) -> bool:
    """Whether its reads are at another time than its writes."""
    if job.other_section is not None:
        return False
    runtimes_s = {each.operation: each.runtime_s for each in job.directions}
    rw = job.options.get("rw") or job.options.get("readwrite")
    return verification.is_apart(runtimes_s, rw, job.options)


_IN_BETWEEN = ("verify_backlog", "loops", "time_based", "ramp_time", "group_reporting")
"""Options with which a verification may be before the end of the writes, or not of this job."""


def _start_apart(
    job: Job, report: Report, direction: Direction
) -> tuple[str | None, str | None, float | None]:
    """Of a job that writes all, and then reads it to verify. The starts are known about only, if
    something else may be in between."""
    of_job = [each.runtime_s for each in job.directions]
    before_s = 0.0
    if direction.operation == "read":
        before_s = sum(of_job) - direction.runtime_s
    if job.started_s is not None:
        started_s, source = job.started_s + before_s, "fio's start of the job"
    elif report.ended_s is not None and len(report.jobs) == 1:
        started_s = report.ended_s - sum(of_job) + before_s
        source = "fio's time stamp at the end, less its run times"
    else:
        return None, None, None
    other_s = abs((job.runtimes_s or 0.0) - sum(of_job))
    is_known = job.started_s is not None and _is_verified_after(job, report)
    within_s = None
    if is_known and other_s <= _MOST_APART_SHARE * direction.runtime_s:
        within_s = WITHIN_MS_S + other_s
    return utc(started_s), source, within_s


def _is_verified_after(job: Job, report: Report) -> bool:
    """Whether the only job of a group writes all before it reads."""
    of_group = [each for each in report.jobs if each.group == job.group]
    if len(of_group) > 1 or job.options.get("numjobs", "1") != "1":
        return False
    rw = job.options.get("rw") or job.options.get("readwrite")
    return verification.is_one_way(rw) and set(_IN_BETWEEN).isdisjoint(job.options)


def _with_close(
    ended_within_s: float, job: Job, report: Report, direction: Direction
) -> float | None:
    """How well a start is known that is the end of fio less the run time: fio closes the files in
    between. On network file systems, close() waits until the data are written."""
    close_s = _close_s(job, report)
    if close_s is None or close_s > direction.runtime_s:
        return None
    return ended_within_s + close_s


_BEGIN_AND_END_S = 2.0
"""Of fio, without its I/O: its time since the start is in whole seconds, too."""
_WAITS_BEFORE = ("ramp_time", "startdelay")
_SYNC = ("sync", "end_fsync", "fsync_on_close")


def _is_written_before_close(options: Mapping[str, str]) -> bool:
    is_direct = settings.is_direct(options.get("direct"), options.get("buffered"))
    return bool(is_direct) or any(options.get(name, "0") not in ("0", "none") for name in _SYNC)


def _close_s(job: Job, report: Report) -> float | None:
    """How long close() may have taken at most; None where that is not known. It does not wait for
    data that are written before, nor on file systems of a drive. fio's time since its start
    contains that time, and the time before the I/O, in which fio makes the files that a job
    reads."""
    operations = {direction.operation for direction in job.directions}
    if operations == {"read"} or _is_written_before_close(job.options):
        return 0.0
    other_s = None
    if job.elapsed_s is not None:
        longest_s = max(direction.runtime_s for direction in job.directions)
        other_s = max(0.0, job.elapsed_s - longest_s)
    if report.drives:
        is_before = operations != {"write"} or any(name in job.options for name in _WAITS_BEFORE)
        if other_s is None or is_before or other_s <= _BEGIN_AND_END_S:
            return 0.0
    return other_s


def _is_last_work(job: Job, report: Report) -> bool:
    """Whether fio ends when this job's I/O does: there is no other group, which may end later, and
    no other work before fio's end: a command that follows the job, the removal of the files, or a
    line in a log for each request."""
    options = job.options
    if len({each.group for each in report.jobs}) > 1 or "exec_postrun" in options:
        return False
    if options.get("unlink", "0") not in ("0", "false"):
        return False
    logs = any(name.startswith("write_") and name.endswith("_log") for name in options)
    return not logs or options.get("log_avg_msec", "0") != "0"


def _apart_s(job: Job, report: Report, direction: Direction) -> float:
    """How far the starts of a group's jobs are apart: its bytes are the sum over them all."""
    jobs = [each for each in report.jobs if each.group == job.group]
    if job.started_s is None:
        if _may_start_later(jobs):
            return math.inf
        return 0.0
    starts_s = [each.started_s for each in jobs if each.started_s is not None]
    apart_s = round(max(starts_s) - min(starts_s), 3)
    end_s = _end_of_group_s(job, report)
    if "group_reporting" not in job.options or end_s is None:
        return apart_s
    # The entry of a group has the first start and the longest run time of its jobs.
    return max(apart_s, end_s - job.started_s - direction.runtime_s - _END_WITHIN_S)


def _end_of_group_s(job: Job, report: Report) -> float | None:
    """When the jobs of a group had ended at the latest: a later group waited for that, or fio
    ended."""
    waiting = [other for other in report.jobs if other.group != job.group and _waits(other.options)]
    starts_s = [other.started_s or 0.0 for other in waiting]
    begin_s = job.started_s or 0.0
    return min((start_s for start_s in starts_s if start_s > begin_s), default=report.ended_s)


def _waits(options: Mapping[str, str]) -> bool:
    return "stonewall" in options or "wait_for_previous" in options


def _may_start_later(jobs: Sequence[Job]) -> bool:
    """Whether some jobs of a group may start later than others, where fio does not report their
    starts (before 3.36)."""
    delays = {job.options.get("startdelay", "0") for job in jobs}
    is_range = any("-" in delay for delay in delays)
    waits = any("wait_for" in job.options for job in jobs)
    if len(jobs) > 1 and (len(delays) > 1 or is_range or waits):
        return True
    return any(map(_has_jobs_unseen, jobs))


def _has_jobs_unseen(job: Job) -> bool:
    """Whether an entry may contain other jobs than those of its section, whose options fio does not
    report (group_reporting). It contains them if their run times add up to more. fio before 3.12
    does not report that sum."""
    if job.other_section is not None:
        return True
    if job.runtimes_s is None:
        return "group_reporting" in job.options
    longest_s = max((each.runtime_s for each in job.directions), default=0.0)
    return job.runtimes_s > (count(job.options.get("numjobs")) or 1) * (
        longest_s + _RUNTIMES_WITHIN_S
    )
