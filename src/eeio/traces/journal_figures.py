"""The activity of ext4's journal during a phase, for any program (`eeio run --trace-journal`)."""

from collections.abc import Mapping
from statistics import fmean

from eeio.traces import jbd2

FIGURES = (
    "journal_commits",
    "journal_commit_mean_s",
    "journal_fast_commits",
    "journal_fsyncs",
    "journal_fsync_mean_s",
    "journal_fsyncs_waiting",
)
"""Commits of the journal that ended in the window, how long each took on average, from its start
until its waiters continued (s), and ext4's fast commits; calls of fsync and fdatasync that reached
the file system and returned in the window, how long each took on average (s), and how many of them
a commit woke: these waited for the journal, not only for their data."""


def figures(trace: jbd2.JournalTrace, start_s: float, end_s: float) -> Mapping[str, float]:
    """The FIGURES of a window of CLOCK_MONOTONIC seconds; means only where there is one of them."""
    commits = [commit for commit in trace.commits if start_s <= commit.end_s <= end_s]
    syncs = []
    for call in trace.calls:
        if call.name in jbd2.SYNCS and call.on_device and start_s <= call.end_s <= end_s:
            syncs.append(call)
    values = {
        "journal_commits": float(len(commits)),
        "journal_fast_commits": float(
            sum(start_s <= ended_s <= end_s for _, ended_s in trace.fast_commits)
        ),
        "journal_fsyncs": float(len(syncs)),
        "journal_fsyncs_waiting": float(sum(call.commit is not None for call in syncs)),
    }
    if commits:
        values["journal_commit_mean_s"] = fmean(one.end_s - one.start_s for one in commits)
    if syncs:
        values["journal_fsync_mean_s"] = fmean(call.took_s for call in syncs)
    return values
