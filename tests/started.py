"""The `eeio` command without the start of an interpreter, which takes longer than most commands.

One Python process imports every command once and then forks for each call. The forked process has
its own arguments, environment, folder and standard streams, and ends as any interpreter does.
"""

import atexit
import gc
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_MOST_BYTES = 1 << 20
# An interpreter reads these when it starts.
_READ_AT_START = ("PYTHON", "LC_", "LANG", "MPL", "LD_")
_SLOW_TO_IMPORT = ("jinja2", "matplotlib.backends.backend_svg", "matplotlib.figure", "scipy.stats")


def _at_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in environment.items() if key.startswith(_READ_AT_START)}


class Starter:
    """Starts the command. `run` gives what subprocess.run gives.

    `prefix` is a command that starts the process that forks, for example as another user.
    """

    def __init__(self, prefix: Sequence[str] = ()) -> None:
        self._environment = _at_start(os.environ)
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._requests.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _MOST_BYTES)
        with theirs:
            self._process = subprocess.Popen(
                [*prefix, sys.executable, "-m", "tests.started"], cwd=_ROOT,
                stdin=theirs.fileno(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip

    def fits(self, environment: Mapping[str, str]) -> bool:
        """Whether the interpreter that is already there would have started in the same way."""
        return _at_start(environment) == self._environment

    def run(
        self, arguments: Sequence[str], environment: Mapping[str, str]
    ) -> "subprocess.CompletedProcess[str]":
        """Raises OSError if the process that forks has ended."""
        request = json.dumps([list(arguments), dict(environment), str(Path.cwd())]).encode()
        mine, theirs = zip(os.pipe(), os.pipe(), os.pipe(), strict=True)
        null = os.open(os.devnull, os.O_RDONLY)
        try:
            socket.send_fds(self._requests, [request], [null, *theirs])
        finally:
            for descriptor in (null, *theirs):
                os.close(descriptor)
        texts = dict.fromkeys(mine, b"")
        stdout, stderr, status = mine
        ended = False
        try:
            with selectors.DefaultSelector() as selector:
                for descriptor in mine:
                    selector.register(descriptor, selectors.EVENT_READ)
                while selector.get_map():
                    for key, _ in selector.select():
                        text = os.read(key.fd, 1 << 16)
                        texts[key.fd] += text
                        if not text:
                            selector.unregister(key.fd)
            ended = True
        finally:
            for descriptor in mine:
                os.close(descriptor)
            if not ended and b"\n" in texts[status]:
                with suppress(ProcessLookupError):
                    os.kill(int(texts[status].split()[0]), signal.SIGKILL)
        _, code = texts[status].split()
        return subprocess.CompletedProcess(
            ["eeio", *arguments], int(code), _text(texts[stdout]), _text(texts[stderr])
        )

    def close(self) -> None:
        self._requests.close()
        self._process.wait()


def _text(output: bytes) -> str:
    """Line ends as subprocess.run(text=True) gives them."""
    return output.decode().replace("\r\n", "\n").replace("\r", "\n")


def _serve(requests: socket.socket) -> None:
    """Returns in each forked process, and nowhere else."""
    while True:
        message, descriptors, _, _ = socket.recv_fds(requests, _MOST_BYTES, 4)
        if not message:
            os._exit(0)
        if os.fork() == 0:
            break
        for descriptor in descriptors:
            os.close(descriptor)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
    *streams, status = descriptors
    if child := os.fork():
        requests.close()
        for descriptor in (0, 1, 2, *streams):
            os.close(descriptor)
        os.write(status, b"%d\n" % child)
        os.write(status, b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        os._exit(0)
    arguments, environment, folder = json.loads(message)
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.close(status)
    requests.close()
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    os.chdir(folder)
    sys.argv[1:] = arguments
    sys.path[0] = folder


def _main() -> None:
    # Not the standard input of what is forked.
    requests = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)

    from eeio.commands import registry
    from tests.shared_disk import allow_other_io

    registry.import_all()
    allow_other_io()
    for name in _SLOW_TO_IMPORT:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    _serve(requests)
    try:
        runpy.run_module("eeio", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        # What an interpreter does as it ends, but for freeing memory, which would copy all of it.
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        if isinstance(end.code, int):
            os._exit(end.code)
        raise


if __name__ == "__main__":
    _main()
