"""Where the kernel's tracing is found, for instances of our own."""

import contextlib
import os
from pathlib import Path

from eeio.paths import state_root
from eeio.system.owner import own_name
from eeio.system.undo import UndoEntry, UndoJournal, run_command
from eeio_results.errors import EeioError

_TRACEFS = Path("/sys/kernel/tracing")
# PROC_PID_INIT_INO: the kernel's own name for its first PID namespace.
_HOST_PIDS = "pid:[4026531836]"


def find(journal: UndoJournal, what: str) -> Path:
    """Where tracefs is; where it is not mounted, at a folder of this program's own for its length.

    Not at the usual place: another program would come to use it there, and then neither could
    this one unmount it nor the other go on after that. EeioError, which says that `what` cannot be
    traced and why, where it is not to be had.
    """
    if os.geteuid() != 0:
        raise EeioError(f"tracing {what} needs root")
    # Filters and events have the host's numbers: ours would name other tasks, or nobody.
    with contextlib.suppress(OSError):
        if str(Path("/proc/self/ns/pid").readlink()) != _HOST_PIDS:
            raise EeioError(
                f"{what} cannot be traced from a PID namespace of one's own: start the container "
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
