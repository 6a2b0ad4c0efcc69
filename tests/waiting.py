"""Waiting for a condition, and a port that no program uses."""

import socket
import subprocess
import time
from collections.abc import Callable
from typing import Any, TypeVar

# Only a test that fails waits that long; a busy machine may need much of it.
PATIENCE_S = 120.0
Found = TypeVar("Found")


def until(found: Callable[[], Found], process: "subprocess.Popen[Any] | None" = None) -> Found:
    """Waits for a true value of `found` and returns it. Fails if the process ends before."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not (value := found()):
        assert time.monotonic() < deadline_s, f"not within {PATIENCE_S} s"
        assert process is None or process.poll() is None, "the process has ended"
        time.sleep(0.005)
    return value


def free_port(kind: socket.SocketKind = socket.SOCK_STREAM) -> int:
    with socket.socket(socket.AF_INET, kind) as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
