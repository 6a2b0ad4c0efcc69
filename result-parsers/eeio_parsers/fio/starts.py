"""When the I/O of a job began by fio's report, and how well that is known."""

import math
from collections.abc import Mapping, Sequence

from eeio_parsers.fio.jobs import WITHIN_MS_S, Direction, Job, Report
from eeio_parsers.found import utc

_MOST_APART_SHARE = 0.05
"""Of the run time: jobs that start further apart do not run together."""
_END_WITHIN_S = 1.0
"""fio's time stamp may be of whole seconds."""


def start(
    job: Job, report: Report, direction: Direction
) -> tuple[str | None, str | None, float | None]:
    """When the I/O began, where that is from, and its uncertainty in s; None where not known."""
    runtime_s = direction.runtime_s
    source = "fio's start of the job"
    within_s: float | None = WITHIN_MS_S
    started_s = job.started_s
    if started_s is None:
        if report.ended_s is None:
            return None, None, None
        source = "fio's time stamp at the end, less its run time"
        started_s, within_s = report.ended_s - runtime_s, report.ended_within_s
        # The end is that of the last group; the others ended before.
        if len({each.group for each in report.jobs}) > 1 or _works_at_the_end(job.options):
            within_s = None
    elif "ramp_time" in job.options:
        within_s = None  # The run time is that after the ramp.
    if within_s is not None and runtime_s:
        apart_s = _apart_s(job, report, direction)
        is_together = apart_s <= _MOST_APART_SHARE * runtime_s
        within_s = within_s + apart_s if is_together else None
    return utc(started_s), source, within_s


def _works_at_the_end(options: Mapping[str, str]) -> bool:
    """Whether fio does other work between the last I/O and its end: a command that follows the job,
    the removal of the files, or a line in a log for each request."""
    if "exec_postrun" in options or options.get("unlink", "0") not in ("0", "false"):
        return True
    logs = any(name.startswith("write_") and name.endswith("_log") for name in options)
    return logs and options.get("log_avg_msec", "0") == "0"


def _apart_s(job: Job, report: Report, direction: Direction) -> float:
    """How far the starts of a group's jobs are apart: its bytes are the sum over them all."""
    jobs = [each for each in report.jobs if each.group == job.group]
    apart_s = _of_jobs_s(jobs)
    is_only_group = len(jobs) == len(report.jobs)
    if job.started_s is None or report.ended_s is None or not is_only_group:
        return apart_s
    if "group_reporting" not in job.options:
        return apart_s
    # The entry of a group has the first start and the longest run time of its jobs.
    later_s = report.ended_s - job.started_s - direction.runtime_s - _END_WITHIN_S
    return max(apart_s, later_s)


def _of_jobs_s(jobs: Sequence[Job]) -> float:
    """Infinite if some start later, and fio does not report when (before 3.36)."""
    starts_s = [job.started_s for job in jobs if job.started_s is not None]
    if len(starts_s) == len(jobs):
        return round(max(starts_s) - min(starts_s), 3)
    delays = {job.options.get("startdelay", "0") for job in jobs}
    is_range = any("-" in delay for delay in delays)
    waits = any("wait_for" in job.options for job in jobs)
    return math.inf if len(jobs) > 1 and (len(delays) > 1 or is_range or waits) else 0.0
