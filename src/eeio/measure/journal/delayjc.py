"""The library that batches journal commits (`libdelayjc.c`): finding, setting and reading it.

It is preloaded into a program, delays fsync() and fdatasync() there, and stores counters in a state
file. `scripts/setup` compiles it if there is a C compiler.
"""

import os
import secrets
import shutil
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from eeio.errors import EeioError, LimitError
from eeio.files import inputs
from eeio.machine.undo import UndoEntry, UndoJournal

NAME = "libdelayjc.so"
INSTALLED = Path("usr/local/libexec") / NAME

WINDOW_US = 1000
MAX_RESETS = 64
LONGEST_WINDOW_US = 10_000_000
MOST_RESETS = 255

# As in libdelayjc.c: `struct header` and `struct slot`, 128 bytes each.
_MAGIC = 0x31434A59414C4544
_VERSION = 1
_SLOTS = 64
_RECORD = struct.Struct("=16Q")
_SIZE = _RECORD.size * (1 + _SLOTS)

# elf(5)
_ELF_MAGIC = b"\x7fELF"
_ELF_HEADER_BYTES = 52
_PT_INTERP = 3
_LONGEST_HEAD_BYTES = 1 << 16
# The kernel follows no more interpreters either.
_MOST_INTERPRETERS = 5


@dataclass(frozen=True)
class DelayedCalls:
    """Delayed calls on one file system (`device` is its st_dev; for a total, None).

    Every call is in one of `windows` (it opened one), `resets` (it moved the end of an open one)
    and `joins_at_maximum` (it could not, and waited for the existing end). `calls` beyond
    `finished` still wait, or were killed.
    """

    device: int | None
    calls: int
    windows: int
    resets: int
    joins_at_maximum: int
    finished: int
    held_ns: int
    held_max_ns: int
    flush_ns: int
    flush_errors: int
    sync_ns: int
    sync_max_ns: int


@dataclass(frozen=True)
class Counters:
    """A state file at one moment. `processes` loaded the library and use the file: 0 means that no
    call was delayed. `passed_calls` were not on a file or directory; `table_full_calls` on a file
    system beyond the maximum of 64."""

    window_us: int | None
    max_resets: int | None
    flush_first: bool | None
    processes: int
    passed_calls: int
    table_full_calls: int
    devices: tuple[DelayedCalls, ...]

    @property
    def total(self) -> DelayedCalls:
        """Of all file systems together: sums, and maxima of maxima."""
        summed = self.devices
        return DelayedCalls(
            device=None,
            calls=sum(d.calls for d in summed),
            windows=sum(d.windows for d in summed),
            resets=sum(d.resets for d in summed),
            joins_at_maximum=sum(d.joins_at_maximum for d in summed),
            finished=sum(d.finished for d in summed),
            held_ns=sum(d.held_ns for d in summed),
            held_max_ns=max((d.held_max_ns for d in summed), default=0),
            flush_ns=sum(d.flush_ns for d in summed),
            flush_errors=sum(d.flush_errors for d in summed),
            sync_ns=sum(d.sync_ns for d in summed),
            sync_max_ns=max((d.sync_max_ns for d in summed), default=0),
        )


def find_library(root: Path = Path("/")) -> Path | None:
    """The library, if it was installed or compiled."""
    places = [root / INSTALLED, Path(sys.prefix) / "libexec" / NAME]
    return next((place for place in places if os.access(place, os.R_OK)), None)


def settings(
    state: Path,
    window_us: int = WINDOW_US,
    max_resets: int = MAX_RESETS,
    flush_first: bool = True,
    *,
    library: Path | None = None,
) -> dict[str, str]:
    """The environment variables of a program with calls to delay.

    `state` is shared by all processes of one experiment and belongs on a tmpfs: its pages would be
    written to the disk that is measured. Present entries of LD_PRELOAD stay, after ours. EeioError
    if the library is missing or a value is invalid.
    """
    library = library or find_library()
    if library is None:
        raise EeioError(f"{NAME} is missing: `scripts/setup` compiles it, given a C compiler")
    if any(letter in str(library) for letter in " :"):
        raise EeioError(f"{library}: no path with a space or a colon can be preloaded")
    if not 1 <= window_us <= LONGEST_WINDOW_US:
        raise EeioError(f"a window of {window_us} us: 1 to {LONGEST_WINDOW_US} us are possible")
    if not 0 <= max_resets <= MOST_RESETS:
        raise EeioError(f"{max_resets} resets: 0 to {MOST_RESETS} are possible")
    others = os.environ.get("LD_PRELOAD", "")
    preloaded = str(library)
    if others:
        preloaded = f"{library}:{others}"
    flush_first_text = "0"
    if flush_first:
        flush_first_text = "1"
    return {
        "LD_PRELOAD": preloaded,
        "DELAYJC_STATE": str(state.absolute()),
        "DELAYJC_WINDOW_US": str(window_us),
        "DELAYJC_MAX_RESETS": str(max_resets),
        "DELAYJC_FLUSH_FIRST": flush_first_text,
    }


@contextmanager
def state_file(journal: UndoJournal) -> Iterator[Path]:
    """The file of the library's counters, until the end of the `with`.

    In memory: its pages would be written to the disk that is measured. In a private folder:
    everybody may write to /dev/shm, and create links there.
    """
    name = f"eeio-delayjc-{os.getpid()}-{secrets.token_hex(8)}"
    folder = Path("/dev/shm", name)  # noqa: S108 - a new folder of its own
    with journal.recorded(UndoEntry("directory", str(folder))):
        folder.mkdir(mode=0o700)
        with journal.recorded(UndoEntry("file", str(folder / "state"))):
            yield folder / "state"


def read_counters(state: Path) -> Counters:
    """The counters as they are, also while programs run: each is exact, but they are read one
    after another. EeioError for a file that is not there or not the library's."""
    try:
        body = inputs.read_bytes(state, _SIZE)
    except OSError as error:
        raise EeioError(f"{state}: {error.strerror}; was a program run with it?") from error
    except LimitError as error:
        raise EeioError(f"{state}: {error}: no state file of {NAME}") from error
    if len(body) != _SIZE:
        raise EeioError(f"{state}: {len(body)} bytes, but a state file of {NAME} has {_SIZE}")
    header, *slots = _RECORD.iter_unpack(body)
    magic, layout, chosen, processes, passed, table_full = header[:6]
    if magic != _MAGIC or layout != _VERSION << 32 | _SIZE:
        raise EeioError(f"{state}: no state file of {NAME}, version {_VERSION}")
    window_us, max_resets, flush_first = None, None, None
    if chosen:
        window_us, max_resets = chosen >> 16, chosen >> 8 & 0xFF
        flush_first = bool(chosen >> 1 & 1)
    return Counters(
        window_us=window_us,
        max_resets=max_resets,
        flush_first=flush_first,
        processes=processes,
        passed_calls=passed,
        table_full_calls=table_full,
        devices=tuple(DelayedCalls(slot[0], *slot[2:13]) for slot in slots if slot[0] != 0),
    )


def cannot_preload(program: Path, *, library: Path | None = None) -> str | None:
    """Why the library would not be loaded into a program; None if no obstacle is known.

    A name without a slash is looked for in PATH; a script's interpreter is followed. A program that
    makes its system calls by itself (Go) loads the library and is still not delayed:
    `Counters.calls` shows that.
    """
    return _cannot_preload(str(program), library or find_library(), _MOST_INTERPRETERS)


def _cannot_preload(program: str, library: Path | None, left: int) -> str | None:
    found = shutil.which(program)
    if found is None:
        return f"{program}: no such program"
    path = Path(found)
    try:
        with path.open("rb") as file:
            head = file.read(_LONGEST_HEAD_BYTES)
        status = path.stat()
        reference = library or Path("/proc/self/exe")
        with reference.open("rb") as file:
            ours = file.read(_LONGEST_HEAD_BYTES)
    except OSError as error:
        return f"{error.filename or path}: {error.strerror}"
    if head.startswith(b"#!"):
        if left == 0:
            return f"{path}: too many interpreters one after another"
        arguments = head[2:].partition(b"\n")[0].decode(errors="replace").split()
        if not arguments:
            return f"{path}: names no interpreter"
        reason = _cannot_preload(arguments[0], library, left - 1)
        if reason is None and Path(arguments[0]).name == "env":
            return _through_env(path, arguments[1:], library, left - 1)
        return reason
    if not head.startswith(_ELF_MAGIC) or len(head) < _ELF_HEADER_BYTES:
        return f"{path}: neither an ELF program nor a script with an interpreter"
    # The loader drops LD_PRELOAD where the program gains rights.
    for bit, name, owner, mine in (
        (0o4000, "setuid", status.st_uid, os.getuid()),
        (0o2000, "setgid", status.st_gid, os.getgid()),
    ):
        if status.st_mode & bit and owner != mine:
            return f"{path}: {name}, so the loader preloads no library into it"
    if os.getuid() != 0 and _has_capabilities(path):
        return f"{path}: has file capabilities, so the loader preloads no library into it"
    if _kind(head) != _kind(ours):
        return f"{path}: of another machine ({_machine(head)}) than the library ({_machine(ours)})"
    if not _has_interpreter(head):
        return f"{path}: statically linked, so no library can be preloaded into it"
    return None


def _through_env(script: Path, arguments: list[str], library: Path | None, left: int) -> str | None:
    """`#!/usr/bin/env python3`: the program is what env starts."""
    for argument in arguments:
        if argument in ("-", "-i", "--ignore-environment"):
            return f"{script}: its interpreter line empties the environment"
        if not argument.startswith("-") and "=" not in argument:
            return _cannot_preload(argument, library, left)
    return f"{script}: names no interpreter"


def _has_capabilities(path: Path) -> bool:
    try:
        return bool(os.getxattr(path, "security.capability"))
    except OSError:
        return False


def _kind(head: bytes) -> tuple[int, int, bytes]:
    """Class (32 or 64 bit), byte order and machine."""
    return head[4], head[5], head[18:20]


def _machine(head: bytes) -> str:
    order: Literal["little", "big"] = "little"
    if head[5] == 2:
        order = "big"
    machine = int.from_bytes(head[18:20], order)
    return f"{32 * head[4]} bit, {order}-endian, ELF machine {machine}"


def _has_interpreter(head: bytes) -> bool:
    """Whether there is a loader (PT_INTERP); a damaged header has none."""
    order = "<"
    if head[5] == 2:
        order = ">"
    # e_phoff, then e_phentsize and e_phnum, in Elf64_Ehdr and Elf32_Ehdr.
    (offset, sizes) = ((32, 54), (28, 42))[head[4] != 2]
    try:
        address = "I"
        if head[4] == 2:
            address = "Q"
        (start,) = struct.unpack_from(order + address, head, offset)
        size, count = struct.unpack_from(order + "HH", head, sizes)
        kinds = [struct.unpack_from(order + "I", head, start + size * k)[0] for k in range(count)]
    except struct.error:
        return False
    return _PT_INTERP in kinds
