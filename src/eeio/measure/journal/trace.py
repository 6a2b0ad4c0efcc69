"""Traces in tracefs: a separate instance, and the journal of ext4 traced in one.

Tracing the journal of an ext4 file system: a separate tracefs instance, read to a file.

The global trace is not changed: instance, filters and the list of traced tasks belong only to this
trace, and the undo journal removes the instance after any end of the program. Events of the journal
are filtered to one device; system calls to the tasks that `follow` names, with all their children.

The location of the kernel's tracing, for our instances.
"""

import contextlib
import gzip
import os
import select
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from eeio.errors import EeioError
from eeio.machine.filesystem import backing_device, mount_of
from eeio.machine.owner import own_name
from eeio.machine.undo import UndoEntry, UndoJournal, run_command
from eeio.paths import state_root
from eeio.traces.jbd2 import CALLS, DUPS, HEADER, STAMPS

_TRACEFS = Path("/sys/kernel/tracing")
# PROC_PID_INIT_INO: the kernel's inode of its first PID namespace.
_HOST_PIDS = "pid:[4026531836]"


def find_tracefs(journal: UndoJournal, what: str) -> Path:
    """The path of tracefs; if it is not mounted, a private mount point while it is needed.

    Not at the usual place: another program could start to use it there, and then unmounting would
    fail or break that program. If it is not available, EeioError reports that `what` cannot be
    traced, and why.
    """
    if os.geteuid() != 0:
        raise EeioError(f"tracing {what} needs root")
    # Filters and events use the host's numbers: ours would mean other tasks, or none.
    with contextlib.suppress(OSError):
        if str(Path("/proc/self/ns/pid").readlink()) != _HOST_PIDS:
            raise EeioError(
                f"{what} cannot be traced from a separate PID namespace: start the container "
                "with --pid=host"
            )
    for usual in (_TRACEFS, Path("/sys/kernel/debug/tracing")):
        if (usual / "instances").is_dir():
            return usual
    if not _TRACEFS.is_dir():
        raise EeioError(f"this kernel has no tracefs, so {what} cannot be traced")
    own = state_root() / f"tracefs-{own_name()}"
    if not own.is_mount():
        journal.add_all([UndoEntry("directory", str(own)), UndoEntry("mount", str(own))])
        own.mkdir(parents=True, exist_ok=True)
        run_command(["mount", "-t", "tracefs", "nodev", str(own)])
    return own


_BUFFER_KIB = 8192  # per processor; a run of 256 threads fills a tenth of it
_WAKE_AT_PERCENT = 50  # the reader sleeps until so much of a buffer is full
_CHUNK_BYTES = 1 << 20

_ON_DEVICE = (
    *(f"jbd2/jbd2_{stamp}" for stamp in STAMPS),
    "ext4/ext4_sync_file_enter",
)
# Not in kernels before 5.10.
_FAST_COMMIT = ("ext4/ext4_fc_commit_start", "ext4/ext4_fc_commit_stop")


@dataclass(frozen=True)
class Ext4:
    """A mounted ext4 file system: its device number, kernel name and the journal's thread.

    `journal_task` is None where it has no journal.
    """

    device: tuple[int, int]
    name: str
    journal_task: int | None


def find_ext4(directory: Path) -> Ext4:
    """The file system of `directory`. EeioError when it is not ext4."""
    mount = mount_of(directory)
    if mount.filesystem != "ext4":
        raise EeioError(
            f"{directory} is not on ext4 but on {mount.filesystem}: only the journal of ext4 is "
            "traced; name a directory on ext4"
        )
    device, reason = backing_device(directory)
    if device is None:
        raise EeioError(f"{directory}: {reason}")
    try:
        task = Path(f"/sys/fs/ext4/{device.name}/journal_task").read_text(encoding="ascii").strip()
    except OSError as error:
        raise EeioError(f"{directory}: the kernel does not report its journal: {error}") from error
    journal_task = None
    if task.isdigit():
        journal_task = int(task)
    return Ext4(
        device=(device.major, device.minor),
        name=device.name,
        journal_task=journal_task,
    )


def read_transactions(target: Ext4) -> int | None:
    """jbd2's count since the mount (/proc/fs/jbd2/.../info), a cross-check without tracing; None
    without a journal, or with an external journal device (then jbd2 names it after that device)."""
    for folder in Path("/proc/fs/jbd2").glob(f"{target.name}-*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            return int((folder / "info").read_text(encoding="ascii").split()[0])
    return None


class TracefsInstance:
    """A separate instance of tracefs. It is in the undo journal.

    It traces `what`; `needs` is the kernel's requirement for that.
    """

    def __init__(self, journal: UndoJournal, name: str, what: str, needs: str) -> None:
        self._journal = journal
        self._name = f"{own_name()}-{name}"
        self._what = what
        self._needs = needs
        self._entry: UndoEntry | None = None
        self._folder = Path()

    def _make(self) -> None:
        """Makes it and sets it up. EeioError where that is not possible."""
        self._folder = find_tracefs(self._journal, self._what) / "instances" / self._name
        self._entry = UndoEntry("directory", str(self._folder))
        self._journal.add(self._entry)
        try:
            self._folder.mkdir()
            self._set_up()
        except OSError as error:
            self._remove()
            raise EeioError(
                f"{error.filename or self._folder}: {error.strerror}: {self._what} cannot be "
                f"traced here ({self._needs} needed)"
            ) from error

    def _set_up(self) -> None:
        """Chooses the events."""
        raise NotImplementedError

    def _write(self, name: str, value: str) -> None:
        (self._folder / name).write_text(value, encoding="ascii")

    def _counts(self) -> dict[int, dict[str, str]]:
        """The kernel's statistics of each processor's buffer."""
        return {
            int(path.parent.name[3:]): dict(
                line.split(":", 1)
                for line in path.read_text(encoding="ascii").splitlines()
                if ":" in line
            )
            for path in (self._folder / "per_cpu").glob("cpu*/stats")
        }

    def _remove(self) -> None:
        if self._entry is not None:
            with contextlib.suppress(OSError):
                self._write("events/enable", "0")
            self._journal.undo(self._entry)
            self._entry = None


class JournalTracer(TracefsInstance):
    """Traces from `with` to its end into `output`, a .gz file that traces/jbd2.py reads.

    `follow` is the task whose future children are traced, with all their system calls. Its calls
    are in the file too (this program notes its child processes on disk), and are not read. Without
    `calls` only commits are traced, at hardly any cost per write. EeioError if tracing is not
    possible: no tracefs, no privilege, events that this kernel does not have.
    """

    def __init__(
        self, target: Ext4, output: Path, journal: UndoJournal, *, calls: bool = True
    ) -> None:
        needs = "root and a kernel with CONFIG_FTRACE_SYSCALLS are"
        super().__init__(journal, target.name, "the journal", needs)
        self.target = target
        self._output = output
        self._calls = CALLS if calls else ()
        self._followed: int | None = None
        self._reader: threading.Thread | None = None
        self._unwritten: OSError | None = None
        self._stop_r, self._stop_w = -1, -1
        self._spool = output.with_suffix(".events")

    def __enter__(self) -> "JournalTracer":
        self._make()
        self._stop_r, self._stop_w = os.pipe()
        pipe = os.open(self._folder / "trace_pipe", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        self._reader = threading.Thread(target=self._read, args=(pipe,), daemon=True)
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._write("tracing_on", "0")
            os.close(self._stop_w)
            if self._reader is not None:
                self._reader.join()
            if self._unwritten is not None:
                raise self._unwritten
            self._finish()
        except OSError as problem:
            for part in (self._spool, self._output):
                part.unlink(missing_ok=True)
            raise EeioError(
                f"{self._output}: the trace was not written completely, so it is deleted: "
                f"{problem.strerror}"
            ) from problem
        finally:
            os.close(self._stop_r)
            self._remove()

    def follow(self, task: int) -> None:
        """Traces the system calls of processes that `task` starts from now on."""
        self._followed = task
        followed = [task]
        if self.target.journal_task is not None:
            followed.append(self.target.journal_task)
        self._write("set_event_pid", " ".join(map(str, followed)))
        self._write("tracing_on", "1")

    def unfollow(self) -> None:
        """Stops recording events; the buffers stay."""
        self._write("tracing_on", "0")

    def _set_up(self) -> None:
        major, minor = self.target.device
        # The clock that programs read too, and children of a traced task are traced.
        for name, value in (
            ("tracing_on", "0"),
            ("trace_clock", "mono"),
            ("buffer_size_kb", str(_BUFFER_KIB)),
            ("buffer_percent", str(_WAKE_AT_PERCENT)),
            ("options/event-fork", "1"),
        ):
            self._write(name, value)
        events = [*_ON_DEVICE, *(e for e in _FAST_COMMIT if self._has(e))]
        for event in events:
            self._write(f"events/{event}/filter", f"dev=={major << 20 | minor}")
        if self.target.journal_task is not None:
            self._write(
                "events/sched/sched_waking/filter", f"common_pid=={self.target.journal_task}"
            )
            events.append("sched/sched_waking")
        for call in self._calls:
            if call in DUPS and not self._has(f"syscalls/sys_enter_{call}"):
                continue
            events += [f"syscalls/sys_enter_{call}", f"syscalls/sys_exit_{call}"]
        for event in events:
            self._write(f"events/{event}/enable", "1")

    def _has(self, event: str) -> bool:
        return (self._folder / "events" / event).is_dir()

    def _read(self, pipe: int) -> None:
        """Copies events whenever a buffer is half full, and the rest at the end."""
        try:
            with self._spool.open("wb") as spool:
                poll = select.poll()
                poll.register(pipe, select.POLLIN)
                poll.register(self._stop_r, select.POLLIN | select.POLLHUP)
                ended = False
                while not ended:
                    ended = any(fd == self._stop_r for fd, _ in poll.poll())
                    self._drain(pipe, spool)
        except OSError as error:
            self._unwritten = error
        finally:
            os.close(pipe)  # or the instance could not be taken away

    @staticmethod
    def _drain(pipe: int, spool: BinaryIO) -> None:
        while True:
            try:
                chunk = os.read(pipe, _CHUNK_BYTES)
            except BlockingIOError:
                return
            if not chunk:
                return
            spool.write(chunk)

    def _finish(self) -> None:
        """The header with the number of lost events, and then the events."""
        lines = [
            HEADER,
            f"# device: {self.target.device[0]}:{self.target.device[1]} ({self.target.name})",
            f"# journal: {self.target.journal_task or 'none'}",
            f"# followed: {self._followed or 'none'}",
            f"# overruns: {self._lost()}",
        ]
        with gzip.open(self._output, "wb", compresslevel=3) as output:
            output.write("".join(f"{line}\n" for line in lines).encode())
            with self._spool.open("rb") as spool:
                while chunk := spool.read(_CHUNK_BYTES):
                    output.write(chunk)
        self._spool.unlink()

    def _lost(self) -> int:
        """Events that found no room, of all processors."""
        lost = ("overrun", "commit overrun", "dropped events")
        return sum(
            int(value)
            for counts in self._counts().values()
            for key, value in counts.items()
            if key in lost
        )
