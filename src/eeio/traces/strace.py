"""Parses strace's files (-ff -ttt -T -y, one per process) into events.

read and write report no offset. It is derived from open, lseek and earlier transfers, over all
processes together, because duplicated and inherited descriptors and those of threads share one
position. If it cannot be known (appending writes to the current end) there is none. Calls that
failed or moved no data are not events. A call that copies between two files is a read and a write.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path

from eeio.errors import LimitError, ToolOutputError
from eeio.files import inputs
from eeio.traces.events import ALL_FILES, Event, Unobserved, possible

# A question mark is for those that not every machine has.
CALLS = (
    "openat,?openat2,?open,?creat,close,dup,?dup2,dup3,fcntl,?fcntl64,clone,?clone3,?fork,?vfork,"
    "read,write,pread64,pwrite64,readv,writev,preadv,pwritev,preadv2,pwritev2,lseek,?_llseek,"
    "?copy_file_range,?sendfile,?sendfile64,?splice,?mmap,?mmap2,?io_uring_setup,?io_setup,"
    "fsync,fdatasync,sync,syncfs,?sync_file_range,?sync_file_range2"
)

CLOSE_S = 1e-3
"""A close that takes longer is an event: it may write back, or wait for a server."""

_LINE = re.compile(
    r"(?P<time>\d{1,12}\.\d{1,12}) (?P<call>\w{1,40})\((?P<arguments>.*)\) += "
    r"(?P<result>-?\d{1,19})(?P<rest>(?!\d).*?)(?: <(?P<took>\d{1,12}\.\d{1,12})>)?$"
)
_RESUMED = re.compile(r"(?P<time>\d{1,12}\.\d{1,12}) <\.\.\. (?P<call>\w+) resumed>(?P<rest>.*)")
_FD = re.compile(r"(?:AT_FDCWD<[^>]*>|(\d+)(?:<([^>]*)>)?)")
_ESCAPE = re.compile(rb"\\([0-7]{1,3}|.)")
_ESCAPED = {b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r"}
_PLACE = r"(?:NULL|\[(\d{1,19})\][^,]*)"
_FILE = r"(\d{1,10})(?:<([^>]*)>)?"
# From where, to where: file and place of each. sendfile names the target first, without a place.
_FROM_TO = re.compile(f"{_FILE}, {_PLACE}, {_FILE}, {_PLACE}, ")
_SENDFILE = re.compile(f"{_FILE}, {_FILE}, {_PLACE}, ")
_MMAP = re.compile(f"[^,]*, \\d+, ([^,]*), ([^,]*), {_FILE}, ")
_LLSEEK = re.compile(r"\[(\d{1,19})\]")
_SYNC = re.compile("O_D?SYNC")
_DURABLE_WRITE = re.compile(r"\bRWF_D?SYNC")
_OPENED_TO_WRITE = re.compile(r"(?:open|creat).*\) += \d+<(/[^>]*)>")
_NO_DATA = re.compile(r"^(?:/dev/(?!shm/)|/proc/|/sys/|pipe:|socket:|anon_inode:|TCP|UNIX|NETLINK)")
# Locations of programs and their libraries; reads there are not the programs' work.
_SYSTEM = re.compile(
    r"^/(?:usr|lib|lib32|lib64|libx32|etc|bin|sbin|opt|nix|run(?!/media/|/user/))/"
)


def is_data(path: str, operation: str) -> bool:
    """Whether a path is a file that a program works on: reads of system files are not."""
    if not path.startswith("/") or _NO_DATA.match(path):
        return False
    return operation == "write" or not _SYSTEM.match(path)


def read(paths: Sequence[Path], unobserved: set[Unobserved] | None = None) -> list[Event]:
    """Events of all processes; adds I/O whose bytes no call reports to `unobserved`.

    Raises ToolOutputError for a file that is not strace's, or not complete.
    """
    calls: list[_Call] = []
    for path in paths:
        process = path.suffix.removeprefix(".") or path.name
        try:
            with inputs.open_file(path) as file:
                calls += _calls(inputs.trace_lines(file), process, str(path))
        except OSError as error:
            raise ToolOutputError(f"{path}: {error.strerror}") from error
        except LimitError as error:
            raise ToolOutputError(f"{path}: {error}") from error
    calls.sort(key=itemgetter(0))
    try:
        return list(_events(calls, set() if unobserved is None else unobserved))
    except LimitError as error:
        raise ToolOutputError(
            f"{', '.join(map(str, paths))}: a call is damaged: {error}"
        ) from error


def opened_to_write(paths: Iterable[Path]) -> set[str]:
    """Files that the traced processes opened for writing, quickly: from the lines of the opens.
    Raises OSError."""
    files = set()
    for path in paths:
        with path.open(encoding="utf-8", errors="replace") as file:
            for line in file:
                if "O_WRONLY" in line or "O_RDWR" in line or " creat(" in line:
                    match = _OPENED_TO_WRITE.search(line)
                    if match and is_data(match[1], "write"):
                        files.add(_unescape(match[1]))
    return files


def parse(lines: Iterable[str], process: str, source: str = "strace") -> Iterator[Event]:
    """Events of one process, in its order."""
    return _events(_calls(lines, process, source), set())


# Time, process, call, arguments, result, the path in the result, and duration; s.
_Call = tuple[float, str, str, str, int, str, float]


def _calls(lines: Iterable[str], process: str, source: str) -> Iterator[_Call]:
    """The calls of one file that did not fail."""
    unfinished: dict[str, str] = {}
    last_s = 0.0
    ended = False
    number = 0
    for number, line in enumerate(lines, 1):
        line = line.rstrip("\n")
        if line.endswith("<unfinished ...>"):
            call = ""
            if line.count(" ") > 1:
                call = line.split(" ", 2)[1].partition("(")[0]
            unfinished[call] = line.removesuffix("<unfinished ...>").rstrip()
            continue
        if resumed := _RESUMED.match(line):
            line = unfinished.pop(resumed["call"], "") + resumed["rest"]
        match = _LINE.match(line)
        if match is None:
            if _is_note(line):
                ended = ended or line.partition(" ")[2].startswith("+++")
                continue
            raise ToolOutputError(f"{source}:{number}: not a line of strace: {line[:80]!r}")
        time, call, arguments, result, rest, took = match.groups()
        time_s = float(time)
        if time_s < last_s:
            raise ToolOutputError(
                f"{source}:{number}: the time runs backwards by {last_s - time_s:.6f} s: the clock "
                "was set while tracing"
            )
        last_s = time_s
        if result[0] != "-":
            yield time_s, process, call, arguments, int(result), rest, float(took or 0.0)
    if not ended:
        raise ToolOutputError(
            f"{source}:{number}: cut off: strace ends a file with the end of its process "
            "(`+++ exited with 0 +++`)"
        )


def _is_note(line: str) -> bool:
    """Signals, exits, and calls without a result (`= ?`)."""
    body = line.partition(" ")[2]
    return not line or body.startswith(("---", "+++")) or " = ?" in body or "resuming" in body


@dataclass(slots=True)
class _Open:
    """An open file, which several descriptors and processes may have. `place` is None where it is
    not known; `strange` when one has it that was not seen to get it, and may have moved it. `flags`
    are those of its open, or None if that was not traced."""

    path: str
    place: int | None
    flags: str | None = None
    strange: bool = False
    appends: bool = False

    def set_flags(self, text: str) -> None:
        """Those of fcntl, which cannot change O_SYNC."""
        self.appends = "O_APPEND" in text
        if self.flags is not None:
            self.flags = text + "".join(_SYNC.findall(self.flags))

    def page_cache(self, operation: str, arguments: str = "") -> bool | None:
        """Whether bytes of a write with these arguments may be only in the page cache; None if
        that is not known, and for a read."""
        if operation == "read":
            return None
        if _DURABLE_WRITE.search(arguments):
            return False
        if self.flags is None:
            return None
        return "O_DIRECT" not in self.flags and not _SYNC.search(self.flags)


def _events(calls: Iterable[_Call], unobserved: set[Unobserved]) -> Iterator[Event]:
    """Of all processes together, by time."""
    descriptors = _Descriptors()
    for call in calls:
        name, arguments = call[2], call[3]
        if name in _MOVES:
            if (event := descriptors.transfer(call)) is not None:
                yield event
        elif name in _COPIES:
            yield from descriptors.copy(call)
        elif name in ("mmap", "mmap2"):
            if mapped := _mapped(arguments):
                unobserved.add(Unobserved("mmap", mapped))
        elif name in _QUEUES:
            unobserved.add(Unobserved(_QUEUES[name]))
        elif name in _WAITS:
            if (event := descriptors.wait(call)) is not None:
                yield event
        else:
            descriptors.follow(call)


class _Descriptors:
    """The open files of all processes, by descriptor."""

    def __init__(self) -> None:
        self._tables: dict[str, dict[str, _Open]] = {}
        # The paths whose open was traced.
        self._opened: set[str] = set()

    def transfer(self, call: _Call) -> Event | None:
        """A call that reads or writes one file; None if it moved no data."""
        time_s, process, name, arguments, moved, _, took_s = call
        operation, _ = _MOVES[name]
        descriptor, path = _descriptor_and_path(arguments)
        if moved == 0 or not is_data(path, operation):
            return None
        file = self._file(process, descriptor, path)
        offset = _offset_of(name, arguments, moved, file)
        cached = file.page_cache(operation, arguments)
        event = Event(time_s, took_s, process, operation, _unescape(path), offset, moved, cached)
        return possible(event)

    def copy(self, call: _Call) -> Iterator[Event]:
        """The read and the write of a call that copies between two files."""
        time_s, process, name, arguments, moved, _, took_s = call
        for operation, descriptor, path, place in _sides(name, arguments):
            if moved == 0 or not is_data(path, operation):
                continue
            file = self._file(process, descriptor, path)
            offset = int(place) if place else _advance(file, moved)
            cached = file.page_cache(operation)
            yield possible(
                Event(time_s, took_s, process, operation, _unescape(path), offset, moved, cached)
            )

    def wait(self, call: _Call) -> Event | None:
        """A flush or a long close of a file with data."""
        time_s, process, name, arguments, _, _, took_s = call
        descriptor, path = _descriptor_and_path(arguments)
        if name == "close":
            self._table(process).pop(descriptor, None)
        event = _wait(time_s, took_s, process, name, path)
        if event is None:
            return None
        return possible(event)

    def follow(self, call: _Call) -> None:
        """A call that changes what the descriptors refer to, or a file's position."""
        _, process, name, arguments, result, rest, _ = call
        table = self._table(process)
        descriptor, path = _descriptor_and_path(arguments)
        if name in _OPENS:
            self._open(table, str(result), arguments, rest)
        elif name in _DOUBLES or ", F_DUPFD" in arguments:
            unknown = _Open(path, None, strange=path in self._opened)
            table[str(result)] = table.setdefault(descriptor, unknown)
        elif ", F_SETFL, " in arguments:
            if descriptor in table:
                table[descriptor].set_flags(arguments)
        elif name in ("lseek", "_llseek"):
            position = _LLSEEK.search(arguments)
            table.setdefault(descriptor, _Open(path, None)).place = (
                result if position is None else int(position[1])
            )
        elif name in _FORKS and result > 0:
            self._tables[str(result)] = table if "CLONE_FILES" in arguments else dict(table)

    def _table(self, process: str) -> dict[str, _Open]:
        return self._tables.setdefault(process, {})

    def _open(self, table: dict[str, _Open], descriptor: str, arguments: str, rest: str) -> None:
        path = rest.partition("<")[2].partition(">")[0]
        self._opened.add(path)
        # The flags come after the name.
        flags = arguments.rpartition('"')[2]
        table[descriptor] = _Open(path, 0, flags, appends="O_APPEND" in flags)

    def _file(self, process: str, descriptor: str, path: str) -> _Open:
        """The open file of a descriptor. If it was not seen to come, it may be any of its path's
        open files."""
        table = self._table(process)
        if descriptor not in table:
            table[descriptor] = _Open(path, None, strange=path in self._opened)
            if path in self._opened:
                self._mark_strange(path)
        return table[descriptor]

    def _mark_strange(self, path: str) -> None:
        for table in self._tables.values():
            for file in table.values():
                if file.path == path:
                    file.strange = True


def _descriptor_and_path(arguments: str) -> tuple[str, str]:
    """Of a call's first argument; empty without one."""
    match = _FD.match(arguments)
    if match is None:
        return "", ""
    return match[1] or "", match[2] or ""


def _wait(time_s: float, took_s: float, process: str, call: str, path: str) -> Event | None:
    """A flush, or a close that took long, of a file with data."""
    if call == "sync":
        return Event(time_s, took_s, process, "flush", ALL_FILES, None, 0, _FLUSHES[call])
    if call == "close":
        if took_s <= CLOSE_S or not is_data(path, "read"):
            return None
        return Event(time_s, took_s, process, "close", _unescape(path), None, 0)
    if not is_data(path, "write"):
        return None
    return Event(time_s, took_s, process, "flush", _unescape(path), None, 0, _FLUSHES[call])


def _offset_of(call: str, arguments: str, result: int, file: _Open) -> int | None:
    """The offset of a call's bytes. Moves the file's position if the call names no offset."""
    operation, positioned = _MOVES[call]
    offset, flags = -1, ""
    if positioned:
        fields = arguments.rsplit(",", 2)
        place = fields[-2:-1] if call in _FLAGGED else fields[-1:]
        try:
            offset = int(place[0])
        except (ValueError, IndexError):
            raise LimitError(f"{call}({arguments[:100]}: no offset in it") from None
        flags = ""
        if call in _FLAGGED:
            flags = fields[-1]
    end = operation == "write" and (file.appends or "RWF_APPEND" in flags)
    if offset >= 0:
        if end:
            return None
        return offset
    if end:
        file.place = None
        return None
    return _advance(file, result)


def _advance(file: _Open, moved: int) -> int | None:
    """The file's place before a call that moved so many bytes."""
    begin = None
    if not file.strange:
        begin = file.place
    file.place = None if begin is None else begin + moved
    return begin


def _sides(call: str, arguments: str) -> tuple[tuple[str, str, str, str | None], ...]:
    """Operation, descriptor, path and place of both files of a call that copies; no place if the
    call uses the file's position."""
    match = (_FROM_TO if call in ("copy_file_range", "splice") else _SENDFILE).match(arguments)
    if match is None:
        raise LimitError(f"{call}({arguments[:100]}: no two files in it")
    if len(match.groups()) == 5:
        target, target_path, source, source_path, source_place = match.groups()
        target_place = None
    else:
        source, source_path, source_place, target, target_path, target_place = match.groups()
    return (
        ("read", source, source_path or "", source_place),
        ("write", target, target_path or "", target_place),
    )


def _mapped(arguments: str) -> str | None:
    """The file that a program maps to read or write it; None for its libraries and for memory."""
    match = _MMAP.match(arguments)
    if match is None:
        return None
    protection, flags, _, path = match.groups()
    if "PROT_EXEC" in protection or "MAP_DENYWRITE" in flags or "MAP_ANON" in flags:
        return None
    operation = "read"
    if "PROT_WRITE" in protection and "MAP_SHARED" in flags:
        operation = "write"
    if is_data(path or "", operation):
        return _unescape(path)
    return None


def _unescape(path: str) -> str:
    """As strace writes it (`\\303\\274` is an ü) -> as it is."""
    if "\\" not in path:
        return path

    def byte(match: re.Match[bytes]) -> bytes:
        word = match[1]
        if word.isdigit():
            return bytes([int(word, 8) & 0xFF])
        return _ESCAPED.get(word, word)

    return _ESCAPE.sub(byte, path.encode()).decode(errors="replace")


# call -> operation, and whether it names its offset.
_MOVES = {
    "read": ("read", False),
    "readv": ("read", False),
    "pread64": ("read", True),
    "preadv": ("read", True),
    "preadv2": ("read", True),
    "write": ("write", False),
    "writev": ("write", False),
    "pwrite64": ("write", True),
    "pwritev": ("write", True),
    "pwritev2": ("write", True),
}
# Their flags come after the offset.
_FLAGGED = ("preadv2", "pwritev2")
_COPIES = ("copy_file_range", "sendfile", "sendfile64", "splice")
# Calls that set up a request queue, which the program then submits without a call each.
_QUEUES = {"io_uring_setup": "io_uring", "io_setup": "libaio"}
# call -> whether written bytes of the file may still be only in the page cache afterwards.
# sync_file_range leaves out parts of the file; syncfs may be of files that are not known here.
_FLUSHES = dict.fromkeys(("fsync", "fdatasync", "sync"), False)
_FLUSHES |= dict.fromkeys(("syncfs", "sync_file_range", "sync_file_range2"), True)
_WAITS = {*_FLUSHES, "close"}
_OPENS = ("openat", "openat2", "open", "creat")
_DOUBLES = ("dup", "dup2", "dup3")
_FORKS = ("clone", "clone3", "fork", "vfork")
