"""Our bpftrace program, and a parser from its lines to events.

A file is identified by its directory entry, inode and generation, from the kernel's table of
descriptors. So it does not matter who opened it, from which directory, or how the descriptor came
to the process (fork, dup, a shell's redirection). Its name is printed once, one directory per line,
up to the root of its file system; `mount` lines, which `eeio record trace` adds, locate the root.
The offset of read and write is the kernel's, after the call; so appending is right as well.

Lines are unordered, because each processor has a separate buffer. The kernel counts them, and the
parser checks their number.
"""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from eeio.errors import LimitError, ToolOutputError
from eeio.files import inputs
from eeio.traces.events import ALL_FILES, Event, Unobserved, in_order, possible
from eeio.traces.strace import is_data

FIRST = "eeio-bpftrace 1"
"""The first line of a trace: its format."""

OUTPUT_FILE = "bpftrace.txt"

ENVIRONMENT = {
    # The kernel's limit of 512 bytes allows this for a name; it is cut one before.
    "BPFTRACE_STRLEN": "128",
    "BPFTRACE_MAP_KEYS_MAX": "65536",
}
BUFFER = {"BPFTRACE_PERF_RB_PAGES": "4096"}
"""Pages of each processor's event buffer: 16 MiB, unless the user's environment sets another."""

_DEEPEST = 64
_LONGEST = int(ENVIRONMENT["BPFTRACE_STRLEN"]) - 1
_ID = "(uint64)$entry, $inode->i_ino, (uint64)$inode->i_generation"
# FD -> $file; only regular files are of interest, and directories that are flushed. $1 is the first
# process; those that it starts follow, and a number that another process gets later is struck off.
# FD, PLACE, FLAGS, MODE, LEAST, OP, @call and TO_THE_END are filled in for each call; of one that
# copies, @call is another map for the target.
_PROGRAM = f"""
BEGIN {{ @traced[$1] = 1; printf("{FIRST} %lu\\n", nsecs); }}
tracepoint:sched:sched_process_fork {{
  $child = (uint64)args->child_pid;
  if (@traced[pid]) {{ @traced[$child] = 1; }}
  else {{ if (@traced[$child]) {{ delete(@traced[$child]); }} }}
}}
tracepoint:sched:sched_process_free /@traced[(uint64)args->pid]/ {{
  delete(@traced[(uint64)args->pid]);
}}
"""
_ENTER = f"""{{
  $table = ((struct task_struct *)curtask)->files->fdt;
  $file = (struct file *)*(uint64 *)((uint64)$table->fd + 8 * (uint64)args->FD);
  $inode = $file->f_inode;
  if (MODE) {{
    $entry = $file->f_path.dentry;
    if (@named[{_ID}] == 0) {{
      @named[{_ID}] = 1;
      $at = $entry;
      $depth = 0;
      while ($depth < {_DEEPEST}) {{
        if ($at == $at->d_parent) {{ break; }}
        printf("n %lx %lu %lu %d %s\\n", {_ID}, $depth, str($at->d_name.name));
        $at = $at->d_parent;
        $depth = $depth + 1;
      }}
      printf("f %lx %lu %lu %d %u\\n", {_ID}, $depth, $inode->i_sb->s_dev);
    }}
    @call[tid] = (nsecs, (uint64)$file, PLACE, (uint64)FLAGS);
  }}
}}
"""
# With O_APPEND, pwrite also writes to the end.
_TO_THE_END = {"w": "($file->f_flags & 0x400) != 0"}
_FILE_MODE = "($inode->i_mode & 0xf000) == 0x8000"
_FLUSHED_MODE = f"{_FILE_MODE} || ($inode->i_mode & 0xf000) == 0x4000"
# O_SYNC has the bit of O_DSYNC. 6 is RWF_DSYNC and RWF_SYNC.
_CACHED = (
    f"(int64)(((uint64)$file->f_flags & {os.O_DIRECT | os.O_DSYNC}) == 0 "
    "&& (@call[tid].3 & 6) == 0)"
)
_EXIT = f"""{{
  if (args->ret >= LEAST) {{
    $end = nsecs;
    $file = (struct file *)@call[tid].1;
    $inode = $file->f_inode;
    $entry = $file->f_path.dentry;
    $place = @call[tid].2;
    if ($place == -1) {{ $place = (int64)$file->f_pos - (int64)args->ret; }}
    else {{ if (TO_THE_END) {{ $place = $inode->i_size - (int64)args->ret; }} }}
    printf("OP %d %lu %lu %lx %lu %lu %ld %ld %ld\\n", tid, @call[tid].0, $end, {_ID}, $place,
      args->ret, {_CACHED});
    @events = count();
  }}
  delete(@call[tid]);
}}
"""
# Operation, descriptor, place and flags, if any -> calls. s is a flush, p one after which bytes of
# the file may still be only in the page cache (as in traces.strace). -1 means the file's current
# position.
_CALLS = {
    ("r", "fd", "(int64)-1"): ("read", "readv"),
    ("r", "fd", "(int64)args->pos"): ("pread64",),
    ("r", "fd", "(int64)args->pos_l"): ("preadv", "preadv2"),
    ("w", "fd", "(int64)-1"): ("write", "writev"),
    ("w", "fd", "(int64)args->pos"): ("pwrite64",),
    ("w", "fd", "(int64)args->pos_l"): ("pwritev",),
    ("w", "fd", "(int64)args->pos_l", "args->flags"): ("pwritev2",),
    ("r", "fd_in", "PLACE_OF(off_in)"): ("copy_file_range", "splice"),
    ("w", "fd_out", "PLACE_OF(off_out)"): ("copy_file_range", "splice"),
    ("r", "in_fd", "PLACE_OF(offset)"): ("sendfile64",),
    ("w", "out_fd", "(int64)-1"): ("sendfile64",),
    ("s", "fd", "(int64)0"): ("fsync", "fdatasync"),
    ("p", "fd", "(int64)0"): ("syncfs", "sync_file_range"),
}
# The place at a pointer; if it is NULL, the call uses the file's position.
_PLACE_OF = re.compile(r"PLACE_OF\((\w+)\)")
_POINTED = r"(args->\1 == 0 ? (int64)-1 : *(int64 *)uptr(args->\1))"
# Mapped to read (0) or write (1), but neither anonymous, a library (MAP_DENYWRITE), nor code.
_MMAP = "@traced[pid] && (args->flags & 0x820) == 0 && (args->prot & 4) == 0"
_MMAP_WRITES = "(int64)((args->prot & 2) != 0 && (args->flags & 1) != 0)"
_QUEUES = {"io_uring_setup": "io_uring", "io_setup": "libaio"}
_QUEUE = """tracepoint:syscalls:sys_exit_CALL /@traced[pid] && args->ret >= 0/ {
  printf("q KIND\\n");
  @events = count();
}
"""
_SYNC = """tracepoint:syscalls:sys_enter_sync /@traced[pid]/ { @sync[tid] = nsecs; }
tracepoint:syscalls:sys_exit_sync /@sync[tid]/ {
  printf("y %d %lu %lu\\n", tid, @sync[tid], nsecs);
  @events = count();
  delete(@sync[tid]);
}
"""
_END = (
    "END { clear(@traced); clear(@named); clear(@call); clear(@target); clear(@sync); "
    'printf("end %lu\\n", nsecs); }\n'
)


def program() -> str:
    """For bpftrace 0.17 and later; its first parameter is the process to begin with."""
    parts = [_PROGRAM]
    for (operation, descriptor, place, *flags), calls in _CALLS.items():
        place = _PLACE_OF.sub(_POINTED, place)
        parts += _pair(operation, descriptor, place, calls, flags="".join(flags) or "0")
    parts += _pair("m", "fd", _MMAP_WRITES, ("mmap",), filter_=_MMAP)
    for call in _QUEUES:
        parts.append(_QUEUE.replace("CALL", call).replace("KIND", _QUEUES[call]))
    return "".join(parts) + _SYNC + _END


def _pair(
    operation: str,
    descriptor: str,
    place: str,
    calls: Iterable[str],
    *,
    filter_: str = "@traced[pid]",
    flags: str = "0",
) -> Iterator[str]:
    """Probes at the start and at the end of calls."""
    call = "@call"
    if descriptor in ("fd_out", "out_fd"):
        call = "@target"
    mode, least = _FILE_MODE, "1"
    if operation in _FLUSHES:
        mode, least = _FLUSHED_MODE, "0"
    enter = _ENTER.replace("PLACE", place).replace("FD", descriptor).replace("FLAGS", flags)
    enter = enter.replace("MODE", mode)
    leave = _EXIT.replace("OP", operation).replace("LEAST", least)
    leave = leave.replace("TO_THE_END", _TO_THE_END.get(operation, "0"))
    for side, when, body in (("enter", filter_, enter), ("exit", f"{call}[tid].1", leave)):
        probes = ",\n".join(f"tracepoint:syscalls:sys_{side}_{name}" for name in calls)
        yield f"{probes} /{when}/ {body.replace('@call', call)}"


_File = tuple[str, str, str]
_FLUSHES = {"s": False, "p": True}
# How many fields the lines of events have: former ones of reads and writes had no last one.
_FIELDS = {"r": (8, 9), "w": (8, 9), "m": (8, 9), "s": (9,), "p": (9,), "y": (3,)}
_LOST = re.compile(r"Lost (\d+) events")
_NOTE = re.compile(r"Attaching \d+ probes\.\.\.$|$")


def is_trace(first: str) -> bool:
    """Whether a file with this first line is one of our traces."""
    return first.startswith((FIRST, "Attaching "))


def read(path: Path, unobserved: set[Unobserved] | None = None) -> list[Event]:
    """Events of all processes, by time; adds I/O whose bytes no call reports to `unobserved`.

    Raises ToolOutputError when an event is missing.
    """
    try:
        with inputs.open_file(path) as file:
            return parse(inputs.trace_lines(file), str(path), unobserved)
    except OSError as error:
        raise ToolOutputError(f"{path}: {error.strerror}") from error
    except LimitError as error:
        raise ToolOutputError(f"{path}: {error}") from error


def began_ns(lines: Iterable[str], source: str = "bpftrace") -> int:
    """When the trace began, by the clock of its events."""
    for line in lines:
        if line.startswith(FIRST + " "):
            return int(line.split()[2])
    raise ToolOutputError(f"{source}: not a trace by eeio's bpftrace program")


def parse(
    lines: Iterable[str], source: str = "bpftrace", unobserved: set[Unobserved] | None = None
) -> list[Event]:
    """Events of all processes, by time, less the `clock` line's nanoseconds.

    Raises ToolOutputError when events are missing, the trace is cut off, or it is not eeio's.
    """
    trace = _Trace(source)
    for number, line in enumerate(lines, 1):
        line = line.rstrip("\n")
        try:
            trace.add(line)
        except ValueError as error:
            raise ToolOutputError(
                f"{source}:{number}: not a line of eeio's bpftrace program: {line[:80]!r}"
            ) from error
    trace.check_complete()
    paths = trace.paths()
    try:
        events = [_event(row, paths, trace.ahead_ns) for row in trace.rows if row[0] != "m"]
        mapped = [_mapped(fields, paths) for kind, fields in trace.rows if kind == "m"]
    except (KeyError, ValueError, OverflowError) as error:
        raise ToolOutputError(
            f"{source}: an event's file or number is missing: {str(error)[:200]}"
        ) from error
    if unobserved is not None:
        unobserved.update(Unobserved("mmap", path) for path in mapped if path)
        unobserved.update(trace.queues)
    return in_order(filter(_is_wanted, events))


class _Trace:
    """The lines of a trace, by kind."""

    def __init__(self, source: str) -> None:
        self.rows: list[tuple[str, list[str]]] = []
        self.queues: list[Unobserved] = []
        self.ahead_ns = 0
        self._source = source
        self._names: dict[_File, dict[int, str]] = {}
        self._roots: dict[_File, tuple[int, int]] = {}
        self._mounts: list[tuple[str, str, str]] = []
        self._counted = 0
        self._begun = self._ended = False

    def add(self, line: str) -> None:
        """Raises ValueError for a line that the program does not write, ToolOutputError for an
        incomplete trace."""
        kind, _, rest = line.partition(" ")
        if kind in _FIELDS:
            fields = rest.split(" ")
            if len(fields) not in _FIELDS[kind]:
                raise ValueError
            self.rows.append((kind, fields))
        elif kind == "n":
            self._add_name(rest)
        elif kind == "f":
            dentry, inode, generation, depth, device = rest.split(" ")
            self._roots[dentry, inode, generation] = (int(depth), int(device))
        elif kind == "q":
            self.queues.append(Unobserved(rest))
        else:
            self._add_about_trace(kind, rest, line)

    def _add_name(self, rest: str) -> None:
        dentry, inode, generation, depth, name = rest.split(" ", 4)
        if len(name.encode()) >= _LONGEST:
            raise ToolOutputError(
                f"{self._source}: a file or directory has a name longer than {_LONGEST - 1} "
                f"bytes, which bpftrace cuts: take --tracer strace: {name:.200}"
            )
        self._names.setdefault((dentry, inode, generation), {})[int(depth)] = name

    def _add_about_trace(self, kind: str, rest: str, line: str) -> None:
        """Mounts, clocks, counts, the beginning and the end."""
        if kind == "mount":
            device, root, point = rest.split(" ")
            self._mounts.append((device, _unescape(root), _unescape(point)))
        elif kind == "clock":
            self.ahead_ns = int(rest)
        elif kind == "@events:":
            self._counted = int(rest)
        elif kind == "end":
            self._ended = True
        elif line.startswith(FIRST):
            self._begun = True
        elif lost := _LOST.match(line):
            raise ToolOutputError(
                f"{self._source}: bpftrace lost {lost[1]} events, so the trace is incomplete: "
                "enlarge its buffers (BPFTRACE_PERF_RB_PAGES=32768) or use --tracer strace"
            )
        elif not _NOTE.match(line):
            raise ValueError

    def check_complete(self) -> None:
        """Raises ToolOutputError if a part of the trace is missing."""
        if not self._begun:
            raise ToolOutputError(f"{self._source}: not a trace by eeio's bpftrace program")
        if not self._ended:
            raise ToolOutputError(f"{self._source}: cut off: bpftrace ended before the program")
        present = len(self.rows) + len(self.queues)
        if self._counted != present:
            raise ToolOutputError(
                f"{self._source}: {present} of {self._counted} events are in the trace, the "
                "others are missing"
            )

    def paths(self) -> dict[_File, str]:
        """The path of every file. Raises ToolOutputError if a part of one is missing."""
        paths = {}
        for file, root in self._roots.items():
            paths[file] = _path(self._names.get(file, {}), root, self._mounts, self._source)
        return paths


def _is_wanted(event: Event) -> bool:
    if event.operation == "flush":
        return event.file == ALL_FILES or is_data(event.file, "write")
    return is_data(event.file, event.operation)


def _event(row: tuple[str, list[str]], paths: dict[_File, str], ahead_ns: int) -> Event:
    kind, (process, start, end, *fields) = row
    start_ns = int(start)
    start_s, took_s = (start_ns - ahead_ns) / 1e9, (int(end) - start_ns) / 1e9
    if kind == "y":
        return possible(Event(start_s, took_s, process, "flush", ALL_FILES, None, 0, False))
    dentry, inode, generation, offset, length, *cached = fields
    path = paths[dentry, inode, generation]
    if kind in _FLUSHES:
        event = Event(start_s, took_s, process, "flush", path, None, 0, _FLUSHES[kind])
    elif kind == "r":
        event = Event(start_s, took_s, process, "read", path, int(offset), int(length))
    else:
        in_cache = None
        if cached:
            in_cache = bool(int(cached[0]))
        event = Event(start_s, took_s, process, "write", path, int(offset), int(length), in_cache)
    return possible(event)


def _mapped(fields: list[str], paths: dict[_File, str]) -> str | None:
    """The file that was mapped; None for one of the system."""
    dentry, inode, generation, writes = fields[3:7]
    path = paths[dentry, inode, generation]
    operation = "read"
    if int(writes):
        operation = "write"
    if is_data(path, operation):
        return path
    return None


def _path(
    names: dict[int, str],
    root: tuple[int, int],
    mounts: Iterable[tuple[str, str, str]],
    source: str,
) -> str:
    depth, device = root
    if depth >= _DEEPEST:
        raise ToolOutputError(f"{source}: a file is deeper than {_DEEPEST} directories")
    if sorted(names) != list(range(depth)):
        raise ToolOutputError(f"{source}: a part of a file's name is missing: {names!s:.200}")
    path = "".join("/" + names[n] for n in reversed(range(depth)))
    # As the kernel packs a device's number.
    name = f"{device >> 20}:{device & 0xFFFFF}"
    fitting = [
        (len(top), -len(point), top, point)
        for where, top, point in mounts
        if where == name and (top == "/" or path == top or path.startswith(top + "/"))
    ]
    if not fitting:
        # Of a file system that is mounted no more, or only inside the kernel (memfd).
        return f"/[{name}]{path}"
    _, _, top, point = max(fitting)
    return (point if point != "/" else "") + (path if top == "/" else path[len(top) :])


def mount_lines(mountinfo: str) -> list[str]:
    """Lines for the trace from /proc/self/mountinfo (proc(5): fields 3 to 5)."""
    return [f"mount {' '.join(line.split(' ')[2:5])}\n" for line in mountinfo.splitlines()]


def _unescape(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)
