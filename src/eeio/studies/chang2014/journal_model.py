"""Chang et al., equations (3) to (10), on a trace: the expected figure of the benchmark, the writes
that a journal commit blocked and the commit that each fsync waited for (traces/journal_waits.py).

docs/studies/chang2014.md describes where the paper's equations are identities and where the classes
X, Y, Z do not suffice. Equations (5) and (6) cancel to the time of the write. So the throughput of
(8) is that of (3), and its agreement with the tool's figure checks clocks and matching, not a
model.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eeio.traces.jbd2 import JournalTrace
from eeio.traces.journal_waits import BLOCKED_S, CLASSES, Commits, FileTask, blocking_of, file_tasks

_CLOCK_S = 1e-6  # the smallest difference between stamps of a trace

LABELS: Mapping[str, tuple[str, float]] = {
    "commits": ("commits while files were written", 1),
    "fast_commits": ("fast commits", 1),
    "threads": ("threads", 1),
    "threads_not_blocked": ("writes up to an fsync: not blocked (X)", 1),
    "threads_fully_blocked": ("writes up to an fsync: fully blocked (Y)", 1),
    "threads_partly_blocked": ("writes up to an fsync: partly blocked (Z)", 1),
    "threads_ended_inside": ("writes up to an fsync: ended inside the commit", 1),
    "write_held_mean_s": ("mean time a commit blocked a thread's writes (ms)", 1e3),
    "model_bandwidth_bytes_per_s": ("sum of the threads' throughputs, equation (8) (MB/s)", 1e-6),
    "unblocked_bandwidth_bytes_per_s": ("the same without commits in the way, MODEL (MB/s)", 1e-6),
    "model_rate_eq9_per_s": ("file creation rate, equation (9) (1/s)", 1),
    "model_rate_eq10_per_s": ("file creation rate, equation (10) (1/s)", 1),
    "commit_wait_mean_s": ("mean wait for the commit that woke the call to begin (ms)", 1e3),
    "commit_wait_max_s": ("longest wait for it (ms)", 1e3),
    "threads_behind_a_commit": ("calls that waited behind another commit", 1),
    "until_durable_mean_s": ("mean time until durable (ms)", 1e3),
    "until_durable_max_s": ("longest time until durable (ms)", 1e3),
}
"""Figure of a trace -> its name in a table, and the factor to the unit there."""


def _during(
    spans: Sequence[tuple[float, float]], begin_s: float, end_s: float
) -> list[tuple[float, float]]:
    """The spans that overlap a window."""
    return [(start_s, stop_s) for start_s, stop_s in spans if start_s < end_s and stop_s > begin_s]


def metrics(
    trace: JournalTrace, *, includes_sync: bool = True, blocked_s: float = BLOCKED_S
) -> dict[str, float]:
    """The figures of one run, under names with their units; omits those that the trace does not
    support. Empty when no traced thread synchronized a file on the device.

    `includes_sync`: whether the tool times a thread's fsync with its writes (IOzone's -e).
    Throughput: equation (8), the sum over the threads of bytes / T. Creation rate: equations (9),
    (10). `unblocked_...` is the counterfactual: the same threads without the time that commits
    blocked their writes.
    """
    tasks = file_tasks(trace.calls)
    if not tasks:
        return {}
    commits = Commits(trace.commits)
    begin_s = min(task.begin_s for task in tasks)
    end_s = max(task.syncs[-1].end_s for task in tasks)
    delays = {
        "threads": float(len({task.task for task in tasks})),
        "commits": float(len(commits.during(begin_s, end_s))),
        "fast_commits": float(len(_during(trace.fast_commits, begin_s, end_s))),
        **_durable(tasks),
    }
    if not delays["fast_commits"]:
        # A fast commit wakes no traced caller; the few served by jbd2 are not representative.
        delays.update(_waits(tasks, commits))
    writers = [task for task in tasks if task.writes]
    if writers:
        delays.update(_throughput(writers, commits, includes_sync, blocked_s))
    creators = [task for task in tasks if task.opened and task.closed and not task.writes]
    if creators:
        delays.update(_creation(creators))
    return delays


@dataclass
class _Thread:
    """All that one thread wrote: several files one after the other are one thread's work."""

    bytes_moved: int = 0
    timed_s: float = 0.0
    held_s: float = 0.0


def _throughput(
    writers: Sequence[FileTask], commits: Commits, includes_sync: bool, blocked_s: float
) -> dict[str, float]:
    cases = [blocking_of(task, commits, blocked_s) for task in writers]
    threads: dict[int, _Thread] = {}
    for task, case in zip(writers, cases, strict=True):
        thread = threads.setdefault(task.task, _Thread())
        thread.bytes_moved += task.bytes_moved
        thread.timed_s += case.write_s + (task.synced_s - task.written_s if includes_sync else 0.0)
        thread.held_s += case.held_s
    rates = {
        "model_bandwidth_bytes_per_s": _sum_of_rates(
            [(thread.bytes_moved, thread.timed_s) for thread in threads.values()]
        ),
        "unblocked_bandwidth_bytes_per_s": _sum_of_rates(
            [(thread.bytes_moved, thread.timed_s - thread.held_s) for thread in threads.values()]
        ),
    }
    counts = {kind: sum(case.kind == kind for case in cases) for kind in CLASSES}
    return {
        **{f"threads_{kind}": float(count) for kind, count in counts.items()},
        "blocked": float(len(cases) - counts["not_blocked"]),
        **{name: rate for name, rate in rates.items() if rate is not None},
        "write_held_mean_s": statistics.fmean(case.held_s for case in cases),
    }


def _sum_of_rates(parts: Sequence[tuple[int, float]]) -> float | None:
    """The sum over (bytes, seconds) of each thread. None if one has no time that the trace's clock
    shows, such as a thread that commits blocked from its first write to its last: a sum without it
    would be too small."""
    if any(took_s < _CLOCK_S / 2 for _, took_s in parts):
        return None
    return sum(moved / took_s for moved, took_s in parts)


def _creation(creators: Sequence[FileTask]) -> dict[str, float]:
    complete_s = syncs_s = 0.0
    for task in creators:
        assert task.opened is not None and task.closed is not None
        syncs_s += task.synced_s - task.written_s
        # The three calls follow each other; the time between them is tracing.
        complete_s += task.closed.end_s - task.opened.start_s
    count = len(creators)
    return {"model_rate_eq9_per_s": count / complete_s, "model_rate_eq10_per_s": count / syncs_s}


def _durable(tasks: Sequence[FileTask]) -> dict[str, float]:
    """The time until written (or created) files were durable."""
    durable_s = sorted(task.synced_s - task.written_s for task in tasks)
    return {
        "until_durable_mean_s": statistics.fmean(durable_s),
        "until_durable_max_s": durable_s[-1],
    }


def _waits(tasks: Sequence[FileTask], commits: Commits) -> dict[str, float]:
    """How much of that time an fsync spent before the commit that served it even began."""
    waits: dict[str, float] = {}
    queued_s = []
    second = 0
    for task in tasks:
        serving = commits.by_transaction.get(task.syncs[0].commit or -1)
        if serving is None:
            continue
        queued_s.append(max(0.0, serving.start_s - task.written_s))
        before = commits.during(task.written_s, serving.start_s)
        second += bool(before)
    if queued_s:
        waits["commit_wait_mean_s"] = statistics.fmean(queued_s)
        waits["commit_wait_max_s"] = max(queued_s)
        # Fig. 6, group 2: a commit was on its way, and theirs had to wait for it.
        waits["threads_behind_a_commit"] = float(second)
    return waits


def with_ratio(metrics: Mapping[str, float]) -> dict[str, float]:
    """The figures of a phase, the tool's and the trace's, with the ratio of the model's to the
    tool's where there are both."""
    changed = dict(metrics)
    for model, tool in (
        ("model_bandwidth_bytes_per_s", "children_bandwidth_bytes_per_s"),
        ("model_rate_eq9_per_s", "rate_eq9_per_s"),
    ):
        if model in changed and changed.get(tool):
            changed["model_ratio"] = changed[model] / changed[tool]
    return changed
