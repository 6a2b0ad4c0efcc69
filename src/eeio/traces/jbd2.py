"""The text of a journal trace (`eeio record journal`) -> commits and the system calls they served.

A commit has the five stamps that jbd2 gives it. Overlap in time does not show which commit served
an fsync. The journal's thread wakes all waiters of a transaction right after it ended, so the last
commit whose end woke the caller is the one that it waited for.
"""

import gzip
import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from eeio.errors import LimitError, ToolOutputError
from eeio.files import inputs
from eeio.units import quantities as q

HEADER = "# eeio journal trace 1"

STAMPS = ("start_commit", "commit_locking", "commit_flushing", "commit_logging", "end_commit")
WRITES = ("write", "pwrite64", "writev", "pwritev", "pwritev2")
SYNCS = ("fsync", "fdatasync")
DUPS = ("dup2", "dup3")  # not every machine has both
CALLS = ("openat", *WRITES, *SYNCS, *DUPS, "close")

_O_CREAT = 0o100  # the same on x86 and arm
_LINE = re.compile(
    r"\s*.{1,40}?-(?P<task>\d{1,10})\s+\[\d+\]\s+(?P<flags>\S+)\s+(?P<time>\d+\.\d+): "
    r"(?P<event>\S+?)(?P<rest>[:( ].*)"
)
_IN_INTERRUPT = tuple("hHsZz")  # third of the flags: hardirq, softirq, NMI
_ENTER = re.compile(r"\((?P<arguments>.*)\)")
_EXIT = re.compile(r" -> (?P<result>-?(?:0x)?[0-9a-f]{1,16})\b")
_FAST_DONE = re.compile(r"\breason 0\b")  # EXT4_FC_STATUS_OK
_TRANSACTION = re.compile(r"transaction (\d{1,18})\b")
_WOKEN = re.compile(r"\bpid=(\d{1,10})\b")
_HEADER_LINE = re.compile(r"# (?P<key>[\w ]+?): (?P<value>.*)")


@dataclass(frozen=True)
class Commit:
    """One transaction's way to the disk; CLOCK_MONOTONIC seconds. The journal's metadata are
    locked from `locking_s`; `end_s` is when those who wait for it go on."""

    transaction: int
    start_s: float
    locking_s: float
    flushing_s: float
    logging_s: float
    end_s: float


@dataclass(frozen=True)
class Call:
    """One system call of a traced task.

    `descriptor` is its argument, or for openat and dup its result; -1 for neither. `count` is the
    requested bytes (0 if they are in a vector). `commit` is the transaction that woke it at its
    end, None for none. `on_device` is whether an fsync reached ext4 on the traced device.
    """

    task: int
    name: str
    descriptor: int
    count: int
    start_s: float
    end_s: float
    result: int
    creates: bool = False
    commit: int | None = None
    on_device: bool = False

    @property
    def took_s(self) -> float:
        return self.end_s - self.start_s


@dataclass(frozen=True)
class JournalTrace:
    """The contents of one trace, in order of time. `overruns` is the number of missing events."""

    commits: tuple[Commit, ...] = ()
    fast_commits: tuple[tuple[float, float], ...] = ()
    calls: tuple[Call, ...] = ()
    overruns: int = 0
    header: dict[str, str] = field(default_factory=dict)


def load(path: Path) -> JournalTrace:
    """The trace in a file, compressed or not. ToolOutputError when it is none."""
    try:
        with inputs.open_file(path) as file:
            if path.suffix != ".gz":
                return parse(inputs.trace_lines(file), str(path))
            with gzip.open(file) as unpacked:
                return parse(inputs.trace_lines(unpacked), str(path))
    except (OSError, EOFError, zlib.error, LimitError) as error:
        raise ToolOutputError(f"{path}: not a complete journal trace: {error}") from error


def parse(lines: Iterable[str], source: str = "trace") -> JournalTrace:
    """The trace in `lines`, which begin with HEADER. ToolOutputError for another text."""
    reader = _Reader(source)
    for number, line in enumerate(lines, 1):
        line = line.rstrip("\n")
        if number == 1 and line != HEADER:
            raise ToolOutputError(f"{source}: not a journal trace, it begins {line[:60]!r}")
        if line.startswith("#"):
            reader.note(line)
        elif line.strip():
            reader.event(line, number)
    if not reader.header:
        raise ToolOutputError(f"{source}: an empty file, not a journal trace")
    return reader.trace()


class _Reader:
    """The state of each task while the lines are read."""

    def __init__(self, source: str) -> None:
        self.header: dict[str, str] = {}
        self._source = source
        self._stamps: dict[int, dict[str, float]] = {}
        self._commits: list[Commit] = []
        self._fast: list[tuple[float, float]] = []
        self._fast_open: dict[int, float] = {}
        self._open: dict[int, _Entered] = {}
        self._calls: list[Call] = []
        self._last_end: int | None = None
        self._followed: int | None = None  # the tracer; its calls are not the program's

    def note(self, line: str) -> None:
        if match := _HEADER_LINE.match(line):
            self.header[match["key"]] = match["value"]
            if match["key"] == "followed" and match["value"].isdecimal():
                self._followed = int(match["value"][:10])
        elif line == HEADER:
            self.header["format"] = "1"

    def event(self, line: str, number: int) -> None:
        if line.startswith("CPU:") and "LOST" in line:
            return  # the header contains their number
        match = _LINE.match(line)
        if match is None:
            raise ToolOutputError(f"{self._source}:{number}: not an event: {line.strip()[:80]!r}")
        task = int(match["task"])
        time_s = _time_s(match["time"], f"{self._source}:{number}")
        event, rest = match["event"], match["rest"]
        if task == self._followed:
            return
        if event.startswith("sys_"):
            self._call(task, time_s, event.removeprefix("sys_"), rest)
        elif event.startswith("jbd2_"):
            self._commit(time_s, event.removeprefix("jbd2_"), rest)
        elif event == "sched_waking":
            # An interrupt during the journal's thread may wake any task.
            if match["flags"][2:3] not in _IN_INTERRUPT:
                self._woken(rest)
        elif event == "ext4_sync_file_enter":
            if task in self._open:
                self._open[task].on_device = True
        elif event == "ext4_fc_commit_start":
            self._fast_open[task] = time_s
        elif event == "ext4_fc_commit_stop" and task in self._fast_open:
            start_s = self._fast_open.pop(task)
            # Each fsync tries one. Most find that another's has served them, some are not eligible
            # and fall back to a commit of jbd2: neither is a fast commit, to the kernel as to us.
            if _FAST_DONE.search(rest):
                self._fast.append((start_s, time_s))

    def _commit(self, time_s: float, stamp: str, rest: str) -> None:
        match = _TRANSACTION.search(rest)
        if match is None or stamp not in STAMPS:
            return
        transaction = int(match[1])
        self._last_end = None
        stamps = self._stamps.setdefault(transaction, {})
        stamps[stamp] = time_s
        if stamp == "end_commit":
            self._last_end = transaction
            del self._stamps[transaction]
            if len(stamps) == len(STAMPS):  # else it began before the trace did
                self._commits.append(Commit(transaction, *(stamps[name] for name in STAMPS)))

    def _woken(self, rest: str) -> None:
        """The journal woke a task. After a commit's end those are who waited for that commit."""
        match = _WOKEN.search(rest)
        if match is not None and self._last_end is not None and int(match[1]) in self._open:
            self._open[int(match[1])].commit = self._last_end

    def _call(self, task: int, time_s: float, name: str, rest: str) -> None:
        if (entered := _ENTER.match(rest)) is not None:
            self._open[task] = _Entered(name, time_s, _arguments(entered["arguments"]))
            return
        left = _EXIT.match(rest)
        before = self._open.pop(task, None)
        if left is None or before is None or before.name != name:
            return  # entered before the trace began
        result = _signed(int(left["result"], 16))
        opened = name == "openat"
        if name in DUPS and before.arguments.get("oldfd") == result:
            return  # dup2(3, 3) has no effect
        self._calls.append(
            Call(
                task=task,
                name=name,
                descriptor=result if opened or name in DUPS else before.arguments.get("fd", -1),
                count=before.arguments.get("count", 0),
                start_s=before.time_s,
                end_s=time_s,
                result=result,
                creates=opened and bool(before.arguments.get("flags", 0) & _O_CREAT),
                commit=before.commit,
                on_device=before.on_device,
            )
        )

    def trace(self) -> JournalTrace:
        try:
            overruns = int(q.COUNT.of_text(self.header.get("overruns", "0"), "overruns"))
        except LimitError as error:
            raise ToolOutputError(f"{self._source}: overruns: {error}") from error
        return JournalTrace(
            commits=tuple(self._commits),
            fast_commits=tuple(self._fast),
            calls=tuple(self._calls),
            overruns=overruns,
            header=self.header,
        )


@dataclass
class _Entered:
    name: str
    time_s: float
    arguments: dict[str, int]
    commit: int | None = None
    on_device: bool = False


def _time_s(text: str, where: str) -> float:
    try:
        return q.TIMESTAMP.of_text(text, "the time")
    except LimitError as error:
        raise ToolOutputError(f"{where}: {error}") from error


_LONGEST_WORD = 20


def _arguments(text: str) -> dict[str, int]:
    """`fd: 3, buf: 0x7f.., count: 8000` -> numbers by name; the kernel prints them in hex."""
    arguments = {}
    for part in text.split(", "):
        key, _, value = part.partition(": ")
        word = value.split(" ")[0].strip('"')
        try:
            number = int(word[:_LONGEST_WORD], 16)
        except ValueError:
            continue  # newer kernels add the text of a path
        if len(word) < _LONGEST_WORD and q.SIZE.contains(_signed(number)):
            arguments[key] = number
    return arguments


def _signed(value: int) -> int:
    """The kernel prints a negative result as an unsigned long."""
    for bits in (64, 32):
        if value >= 1 << (bits - 1) and value < 1 << bits and value > (1 << bits) - 4096:
            return value - (1 << bits)
    return value
