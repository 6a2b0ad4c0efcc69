"""One ipmitool on pipes, which gets a line a question and lives as long as its meter."""

import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from eeio_power.errors import PowerError

# A first answer over the network takes a handshake and, for sensors, the whole SDR repository.
FIRST_ANSWER_S = 20.0
# Its network function is no number: ipmitool says so and asks nobody.
TOKEN_LINE = "raw {} 0"


class ToolShell:
    """`ipmitool ... exec` on pipes."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        # Into a pipe it would answer 4096 bytes at a time. /dev/stdin is not there before udev is.
        self._command = ["stdbuf", "-oL", *command, "exec", "/proc/self/fd/0"]
        self._environment = dict(environment)
        self._process: subprocess.Popen[bytes] | None = None
        self._buffer = b""
        self._heard: list[str] = []
        self._questions = 0

    def ask(self, line: str, timeout_s: float) -> list[str]:
        """What the tool prints for one line. Raises PowerError if it does not answer in time."""
        process = self._started()
        self._questions += 1
        token = f"eeio-{self._questions}"
        assert process.stdin is not None
        try:
            process.stdin.write(f"{line}\n{TOKEN_LINE.format(token)}\n".encode())
            process.stdin.flush()
            return self._until(token, time.monotonic() + timeout_s, timeout_s)
        except OSError as error:
            self.close()
            raise PowerError(f"ipmitool ended: {self._last_words()}") from error
        except PowerError:
            self.close()
            raise

    def descriptors(self) -> tuple[int, int, float | None]:
        """Its input and output for a helper, and how long it may take to log in, s, if it must.

        Raises OSError if it cannot be started.
        """
        first_s = FIRST_ANSWER_S if self._process is None else None
        process = self._started()
        assert process.stdin is not None and process.stdout is not None
        return process.stdin.fileno(), process.stdout.fileno(), first_s

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is None:
            return
        for stream in (process.stdin, process.stdout):
            with suppress(OSError):
                if stream is not None:
                    stream.close()
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            process.wait(1.0)

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._buffer = b""
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=self._environment,
                # No terminal: nothing may ask for a password, and Ctrl-C is for the command that
                # is measured.
                start_new_session=True,
            )
        return self._process

    def _until(self, token: str, deadline_s: float, timeout_s: float) -> list[str]:
        lines: list[str] = []
        self._heard = lines
        process = self._started()
        assert process.stdout is not None
        while True:
            while b"\n" in self._buffer:
                raw, _, self._buffer = self._buffer.partition(b"\n")
                line = raw.decode("utf-8", errors="replace").rstrip()
                if f'"{token}"' in line:
                    return lines
                lines.append(line)
            left_s = deadline_s - time.monotonic()
            if left_s <= 0.0 or not select.select([process.stdout], [], [], left_s)[0]:
                said = " ".join(lines).strip()[:120]
                raise PowerError(
                    f"the BMC did not answer in {timeout_s:g} s" + (f": {said}" if said else "")
                )
            data = os.read(process.stdout.fileno(), 65536)
            if not data:
                raise OSError(32, "ipmitool closed its output")
            self._buffer += data
            if len(self._buffer) > 1 << 20:
                raise PowerError("the BMC or ipmitool talks without end")

    def _last_words(self) -> str:
        words = [*self._heard, self._buffer.decode("utf-8", errors="replace")]
        return " ".join(words).strip()[:200] or "no reason given"
