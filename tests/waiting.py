"""What a test waits for, and a port on which something will answer."""

import socket
import subprocess
import time
from collections.abc import Callable
from typing import Any, TypeVar

PATIENCE_S = 20.0
Found = TypeVar("Found")


def until(
    found: Callable[[], Found], within_s: float = PATIENCE_S,
    process: "subprocess.Popen[Any] | None" = None,
) -> Found:  # fmt: skip
    """What `found` gives, once that is true. The process runs until then."""
    deadline_s = time.monotonic() + within_s
    while not (value := found()):
        assert time.monotonic() < deadline_s, f"not within {within_s} s"
        assert process is None or process.poll() is None, "the process has ended"
        time.sleep(0.005)
    return value


def free_port(kind: socket.SocketKind = socket.SOCK_STREAM) -> int:
    with socket.socket(socket.AF_INET, kind) as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
