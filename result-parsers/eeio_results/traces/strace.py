"""strace's files (-ff -ttt -T -y, one a process) -> events.

read and write tell no offset: it is followed from open, lseek and what was moved before. Calls that
failed or moved nothing are no events.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from eeio_results.errors import ToolOutputError
from eeio_results.traces.events import Event

CALLS = (
    "openat,open,creat,dup,dup2,dup3,read,write,pread64,pwrite64,readv,writev,preadv,pwritev,preadv2,"
    "pwritev2,lseek,ftruncate"
)

_LINE = re.compile(
    r"(?P<time>\d+\.\d+) (?P<call>\w+)\((?P<arguments>.*)\) += (?P<result>-?\d+)"
    r"(?P<rest>.*?)(?: <(?P<took>\d+\.\d+)>)?$"
)
_RESUMED = re.compile(r"(?P<time>\d+\.\d+) <\.\.\. (?P<call>\w+) resumed>(?P<rest>.*)")
_FD = re.compile(r"(?:AT_FDCWD<[^>]*>|(\d+)(?:<([^>]*)>)?)")
_NO_DATA = re.compile(r"^(?:/dev/|/proc/|/sys/|/run/|pipe:|socket:|anon_inode:|TCP|UNIX|NETLINK)")
# Where programs and their libraries lie; what they read there is not their work.
_SYSTEM = ("/usr/", "/lib", "/etc/", "/bin/", "/sbin/", "/opt/", "/nix/")


def is_data(path: str) -> bool:
    """Whether a path is a file that a program works on, and not part of the system."""
    return not _NO_DATA.match(path) and not path.startswith(_SYSTEM) and path.startswith("/")


def read(paths: Iterable[Path]) -> list[Event]:
    """Events of all processes. Raises ToolOutputError for a file that is not strace's."""
    events: list[Event] = []
    for path in paths:
        process = path.suffix.removeprefix(".") or path.name
        with path.open(encoding="utf-8", errors="replace") as file:
            events += parse(file, process, str(path))
    return events


def parse(lines: Iterable[str], process: str, source: str = "strace") -> Iterator[Event]:
    """Events of one process, in its order."""
    places: dict[str, int] = {}
    unfinished: dict[str, str] = {}
    last_s = 0.0
    for number, line in enumerate(lines, 1):
        line = line.rstrip("\n")
        if line.endswith("<unfinished ...>"):
            call = line.split(" ", 2)[1].partition("(")[0] if line.count(" ") > 1 else ""
            unfinished[call] = line.removesuffix("<unfinished ...>").rstrip()
            continue
        if resumed := _RESUMED.match(line):
            line = unfinished.pop(resumed["call"], "") + resumed["rest"]
        match = _LINE.match(line)
        if match is None:
            if _is_note(line):
                continue
            raise ToolOutputError(f"{source}:{number}: not a line of strace: {line[:80]!r}")
        time_s = float(match["time"])
        if time_s < last_s:
            raise ToolOutputError(
                f"{source}:{number}: the time runs backwards by {last_s - time_s:.6f} s: the clock "
                "was set while tracing"
            )
        last_s = time_s
        event = _event(match, process, places)
        if event is not None:
            yield event


def _is_note(line: str) -> bool:
    """Signals, exits, and calls without a result (`= ?`)."""
    body = line.partition(" ")[2]
    return not line or body.startswith(("---", "+++")) or " = ?" in body or "resuming" in body


def _event(match: re.Match[str], process: str, places: dict[str, int]) -> Event | None:
    call, result = match["call"], int(match["result"])
    arguments = match["arguments"]
    found = _FD.match(arguments)
    descriptor = (found[1] if found else None) or ""
    path = (found[2] if found else None) or ""
    if call in ("openat", "open", "creat"):
        if result >= 0:
            places[str(result)] = 0
        return None
    if call in ("dup", "dup2", "dup3"):
        # Both share one place from then on; programs go on with the new one.
        if result >= 0 and descriptor in places:
            places[str(result)] = places[descriptor]
        return None
    if call == "lseek":
        if result >= 0:
            places[descriptor] = result
        return None
    if call not in _MOVES or result <= 0 or not is_data(path):
        return None
    operation, positioned = _MOVES[call]
    if positioned:
        offset: int | None = int(arguments.rsplit(",", _AFTER.get(call, 0) + 1)[1])
    else:
        offset = places.get(descriptor)
        if offset is not None:
            places[descriptor] = offset + result
    took_s = float(match["took"] or 0.0)
    return Event(float(match["time"]), took_s, process, operation, path, offset, result)


# call -> operation, and whether it names its offset.
_MOVES = {
    "read": ("read", False), "readv": ("read", False), "pread64": ("read", True),
    "preadv": ("read", True), "preadv2": ("read", True),
    "write": ("write", False), "writev": ("write", False), "pwrite64": ("write", True),
    "pwritev": ("write", True), "pwritev2": ("write", True),
}  # fmt: skip
# Arguments that stand after the offset.
_AFTER = {"preadv2": 1, "pwritev2": 1}
