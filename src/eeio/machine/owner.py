"""eeio's processes, and those that a tool left behind.

Which process an undo journal or a lock belongs to, and whether it can still be alive.

Processes that a program leaves behind, also in a session of their own (setsid, daemons).
"""

import ctypes
import os
import platform
import re
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_MACHINE_ID = Path("/etc/machine-id")

Place = Literal["here", "earlier boot", "elsewhere"]
"""Where a process ran, as seen from this one: in this PID namespace of this boot, on this machine
before it was booted again, or in another container or on another machine."""


@dataclass(frozen=True)
class Owner:
    """A process. `machine` is empty where /etc/machine-id has none, as in many containers."""

    pid: int
    start_ticks: int
    boot_id: str
    machine: str
    pid_namespace: str

    @property
    def name(self) -> str:
        """Unique among all processes of all machines that share a folder."""
        return f"{self.pid}-{self.start_ticks}-{self.boot_id[:8]}-{self.pid_namespace}"

    @property
    def text(self) -> str:
        host = self.machine.partition(" ")[2] or "an unknown machine"
        return f"process {self.pid} on {host} (boot {self.boot_id[:8]})"

    def place(self, now: "Owner") -> Place:
        if self.boot_id == now.boot_id:
            if self.pid_namespace == now.pid_namespace:
                return "here"
            return "elsewhere"
        same_machine = self.machine != "" and self.machine == now.machine
        if same_machine:
            return "earlier boot"
        return "elsewhere"

    @property
    def is_alive(self) -> bool:
        """Only for a process in this PID namespace of this boot."""
        return start_ticks(self.pid) == self.start_ticks


NAME = re.compile(r"[1-9][0-9]{0,9}-[0-9]{1,20}-[0-9a-f]{8}-[0-9]{1,20}")


def this_process(pid: int) -> Owner:
    """A process of this PID namespace; `start_ticks` is 0 if there is none."""
    return Owner(pid, start_ticks(pid) or 0, _boot_id(), _machine(), _pid_namespace())


def own_name() -> str:
    """For what this process makes in folders of the kernel or of all processes: a process of
    another boot or container with the same number never has that name."""
    return f"eeio-{this_process(os.getpid()).name}"


def _boot_id() -> str:
    with suppress(OSError):
        text = _BOOT_ID.read_text(encoding="ascii", errors="replace").strip().lower()
        if re.fullmatch(r"[0-9a-f]{8}-[0-9a-f-]{27}", text):
            return text
    return "00000000-0000-0000-0000-000000000000"


def _machine() -> str:
    with suppress(OSError):
        text = _MACHINE_ID.read_text(encoding="ascii", errors="replace").strip()
        if re.fullmatch(r"[0-9a-f]{32}", text):
            return f"{text} {platform.node()}"
    return ""


def _pid_namespace() -> str:
    with suppress(OSError):
        match = re.fullmatch(r"pid:\[([0-9]+)\]", str(Path("/proc/self/ns/pid").readlink()))
        if match:
            return match[1]
    return "0"


def start_ticks(pid: int) -> int | None:
    """When a process began, in clock ticks after boot: with the PID it identifies a process for the
    time of one boot. None if there is no such process, or it is a zombie."""
    fields = stat_fields(Path(f"/proc/{pid}"))
    if fields is None or fields[0] == b"Z":
        return None
    return int(fields[19])


def stat_fields(process: Path) -> list[bytes] | None:
    """State, parent, group and the following fields of /proc/PID/stat; None if the process has
    ended. Its name, which may be any bytes, is before them in brackets."""
    try:
        text = (process / "stat").read_bytes()
    except OSError:
        return None
    return text.rpartition(b")")[2].split() or None


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
        killed: set[int] = set()
        deadline_s = time.monotonic() + _KILL_S
        while (left := self._children(group) - self._before) and time.monotonic() < deadline_s:
            for pid in left - killed:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            killed |= left
            time.sleep(0.001)
        for pid in killed:  # at the end: one that has just been killed may not be a zombie yet
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        return len(killed)

    def _children(self, but_group: int = 0) -> set[int]:
        """Living children of this process with that environment."""
        own, children = str(os.getpid()).encode(), set()
        for folder in Path("/proc").glob("[0-9]*"):
            fields = stat_fields(folder)
            if fields is None or fields[1] != own or fields[0] == b"Z":
                continue
            if int(fields[2]) == but_group:
                continue
            with suppress(OSError):
                if self._wanted <= set((folder / "environ").read_bytes().split(b"\0")):
                    children.add(int(folder.name))
        return children
