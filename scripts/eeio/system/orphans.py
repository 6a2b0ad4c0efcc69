"""Processes that a program leaves behind, also in a session of their own (setsid, daemons)."""

import ctypes
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from eeio.system.owner import stat_fields

_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h, since Linux 3.4
_KILL_S = 5.0


class Orphans:
    """What the programs leave that this process starts with `environment` (at least one variable
    that no other program of it has): from now on this process is the parent of whatever its
    children leave, as init would be (prctl(2)). A program that clears its environment is not
    found."""

    def __init__(self, environment: dict[str, str]) -> None:
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._wanted = {f"{name}={value}".encode() for name, value in environment.items()}
        self._before = self._children()

    def end(self, group: int) -> int:
        """Kills what is left outside of the process group `group`, whose end is the caller's, and
        returns how many processes still ran."""
        found: set[int] = set()
        deadline_s = time.monotonic() + _KILL_S
        while (left := self._children(group) - self._before) and time.monotonic() < deadline_s:
            for pid in left - found:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            found |= left
            for pid in left:
                with suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
            time.sleep(0.001)
        return len(found)

    def _children(self, but_group: int = 0) -> set[int]:
        """Living children of this process with that environment."""
        own, found = str(os.getpid()).encode(), set()
        for folder in Path("/proc").glob("[0-9]*"):
            fields = stat_fields(folder)
            if fields is None or fields[1] != own or fields[0] == b"Z":
                continue
            if int(fields[2]) == but_group:
                continue
            with suppress(OSError):
                if self._wanted <= set((folder / "environ").read_bytes().split(b"\0")):
                    found.add(int(folder.name))
        return found
