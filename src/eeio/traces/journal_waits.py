"""Which writes a commit of the journal blocked, and which commit each fsync waited for.

From the calls and commits of a trace (jbd2.py). The classes of a thread and the equations for its
time are those of a paper. docs/studies/ describes where they are identities and where they do not
suffice.
"""

import bisect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from eeio.traces.jbd2 import DUPS, SYNCS, WRITES, Call, Commit

BLOCKED_S = 1e-3
"""A commit blocked a buffered write that takes longer than this while the commit is in progress."""

Class = Literal["not_blocked", "fully_blocked", "partly_blocked", "ended_inside"]
CLASSES: tuple[Class, ...] = ("not_blocked", "fully_blocked", "partly_blocked", "ended_inside")


@dataclass(frozen=True)
class FileTask:
    """K_i, one thread's work on one file: opened, written, synchronized, closed.

    If it writes again after an fsync (a log that is appended to), a new task begins: only the next
    fsync makes these writes safe.
    """

    task: int
    opened: Call | None
    writes: tuple[Call, ...]
    syncs: tuple[Call, ...]
    closed: Call | None

    @property
    def bytes_moved(self) -> int:
        return sum(call.result for call in self.writes)

    @property
    def begin_s(self) -> float:
        """When its timed work begins: the first write, or the open of a file without any."""
        return (self.writes[0] if self.writes else self.opened or self.syncs[0]).start_s

    @property
    def written_s(self) -> float:
        """When its last write ended (or, without writes, when the file was open)."""
        if self.writes:
            return self.writes[-1].end_s
        if self.opened:
            return self.opened.end_s
        return self.syncs[0].start_s

    @property
    def synced_s(self) -> float:
        """When the first fsync after the writes returned: its writes are durable.

        A delayed commit (`libdelayjc.so`) delays a call before it reaches the kernel, so the wait
        for durability is counted from `written_s`, not from the system call.
        """
        return self.syncs[0].end_s


def file_tasks(calls: Iterable[Call]) -> list[FileTask]:
    """The work on each file that was synchronized on the traced device, in order of time."""
    open_now: dict[tuple[int, int], _Session] = {}
    done: list[FileTask] = []

    def end(key: tuple[int, int], closed: Call | None) -> None:
        session = open_now.pop(key, None)
        if session is not None and (task := session.task(closed)) is not None:
            done.append(task)

    for call in sorted(calls, key=lambda call: call.start_s):
        key = (call.task, call.descriptor)
        if call.name == "openat":
            if call.result >= 0:
                end(key, None)
                open_now[key] = _Session(call.task, call if call.creates else None)
        elif call.name == "close":
            end(key, call)
        elif call.name in DUPS:
            # The descriptor is now another file: earlier writes went to the old one.
            if call.result >= 0:
                end(key, None)
        else:
            # A thread may work on files that another has opened.
            session = open_now.setdefault(key, _Session(call.task, None))
            if session.syncs and _has_written(call):
                end(key, None)
                session = open_now[key] = _Session(call.task, None)
            session.add(call)
    for key in list(open_now):
        end(key, None)
    return sorted(done, key=lambda task: task.begin_s)


def _has_written(call: Call) -> bool:
    return call.name in WRITES and call.result > 0


@dataclass
class _Session:
    number: int
    opened: Call | None
    writes: list[Call] = field(default_factory=list)
    syncs: list[Call] = field(default_factory=list)

    def add(self, call: Call) -> None:
        if call.name in SYNCS and call.on_device and call.result == 0:
            self.syncs.append(call)
        elif _has_written(call):
            self.writes.append(call)

    def task(self, closed: Call | None) -> FileTask | None:
        if not self.syncs:
            return None
        return FileTask(self.number, self.opened, tuple(self.writes), tuple(self.syncs), closed)


def write_time_s(start_s: float, end_s: float) -> float:
    """T_write of a write that no commit touched: equation (4), which is (1)."""
    return end_s - start_s


def fully_blocked_s(start_s: float, end_s: float, commit: Commit) -> float:
    """T_write of a write that began before a commit and ended after it: equation (5)."""
    commit_s = commit.end_s - commit.start_s
    return (commit.start_s - start_s) + commit_s + (end_s - commit.end_s)


def partly_blocked_s(start_s: float, end_s: float, commit: Commit) -> float:
    """T_write of a write that began inside a commit and ended after it: equation (6)."""
    return (commit.end_s - start_s) + (end_s - commit.end_s)


@dataclass(frozen=True)
class Blocking:
    """A thread's result: its class, its time in writes by the class's equation, and the part of
    that time in writes blocked by a commit, inside the commits."""

    kind: Class
    write_s: float
    held_s: float
    commit: Commit | None


class Commits:
    """The commits of a trace, found by time."""

    def __init__(self, commits: Sequence[Commit]) -> None:
        self._commits = sorted(commits, key=lambda commit: commit.start_s)
        self._ends = [commit.end_s for commit in self._commits]
        self.by_transaction = {commit.transaction: commit for commit in commits}

    def during(self, start_s: float, end_s: float) -> list[Commit]:
        """Those that overlap the time from `start_s` to `end_s`."""
        first = bisect.bisect_right(self._ends, start_s)
        commits = []
        for commit in self._commits[first:]:
            if commit.start_s >= end_s:
                break
            commits.append(commit)
        return commits


def blocking_of(task: FileTask, commits: Commits, blocked_s: float = BLOCKED_S) -> Blocking:
    """Into which of the paper's cases a thread falls, by its longest write that a commit blocked.

    X: not blocked. Y: begun before the commit, ended after it. Z: begun inside, ended after. The
    fourth, ended inside the commit, occurs on newer kernels: a write continues as soon as the
    commit has taken its copy, long before it is on the disk.
    """
    write_s = write_time_s(task.writes[0].start_s, task.writes[-1].end_s)
    longest: tuple[float, Call, Commit] | None = None
    held_s = 0.0
    for call in task.writes:
        if call.took_s <= blocked_s:
            continue
        for commit in commits.during(call.start_s, call.end_s):
            overlap_s = min(call.end_s, commit.end_s) - max(call.start_s, commit.start_s)
            held_s += overlap_s
            if longest is None or overlap_s > longest[0]:
                longest = (overlap_s, call, commit)
    if longest is None:
        return Blocking("not_blocked", write_s, 0.0, None)
    _, call, commit = longest
    first_s, last_s = task.writes[0].start_s, task.writes[-1].end_s
    if call.end_s <= commit.end_s:
        return Blocking("ended_inside", write_s, held_s, commit)
    if call.start_s < commit.start_s:
        return Blocking("fully_blocked", fully_blocked_s(first_s, last_s, commit), held_s, commit)
    return Blocking("partly_blocked", partly_blocked_s(first_s, last_s, commit), held_s, commit)
