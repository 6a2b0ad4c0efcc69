"""Whether this machine's names can be resolved: MPI resolves them at every start.

A machine with no line for them in /etc/hosts (containers, boards) asks a name server, which may not
know them, or not answer. hwloc, which every program of Open MPI loads, looks for X displays 0 to 9
on `localhost`: with a silent name server that is 200 s a start. The profiles tell hwloc not to
look (mpi.sh); programs that others start do.
"""

import socket
import subprocess
from dataclasses import dataclass

# A name in /etc/hosts is found in milliseconds, a silent name server gives up after 5 s and more.
_PATIENCE_S = 1.0


@dataclass(frozen=True)
class Unresolved:
    """A name that is not known, or not at once."""

    name: str
    reason: str

    @property
    def remedy(self) -> str:
        address = "127.0.1.1"
        if self.name == "localhost":
            address = "127.0.0.1"
        return f"echo '{address} {self.name}' >> /etc/hosts"


def own() -> tuple[str, ...]:
    """The names of this machine that programs ask for."""
    return tuple(dict.fromkeys(["localhost", socket.gethostname()]))


def unresolved() -> dict[str, Unresolved]:
    """Which of them are not known at once, by name."""
    return {name: Unresolved(name, reason) for name in own() if (reason := _ask(name)) is not None}


def _ask(name: str) -> str | None:
    """In a process of its own: a resolver that waits cannot be interrupted."""
    try:
        done = subprocess.run(
            ["getent", "ahosts", name],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_PATIENCE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no name server answered within {_PATIENCE_S:g} s"
    except OSError:
        return None  # no getent: unknown
    if done.returncode == 0:
        return None
    return "neither /etc/hosts nor a name server resolves it"
