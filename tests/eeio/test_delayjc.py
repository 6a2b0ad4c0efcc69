"""The library that batches journal commits, as it is built and under ASan and UBSan.

Windows are long (a second or more) where arrivals must meet in one, so that only a machine that
stands still that long makes a test fail; what happened is told by the library's own counters.
"""

import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.processes import ran

from eeio.errors import EeioError
from eeio.measure.journal import delayjc
from eeio.measure.journal.delayjc import Counters, DelayedCalls

SOURCE = Path(delayjc.__file__).with_name("libdelayjc.c")
LIBRARY = ("-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread")
SANITIZERS = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
LONG_US = 1_500_000
TIMEOUT_S = 60

# Threads that meet at a barrier, then each call a function on a file of its own.
ARRIVALS = textwrap.dedent("""
    import os, sys, threading
    from pathlib import Path
    call = getattr(os, sys.argv[1])
    files = [os.open(name, os.O_RDWR | os.O_CREAT, 0o600) for name in sys.argv[2:]]
    barrier = threading.Barrier(len(files))
    def arrive(file):
        os.write(file, b"x" * 5000)
        barrier.wait()
        call(file)
    threads = [threading.Thread(target=arrive, args=(file,)) for file in files]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
""")

# Small enough to be linked statically and to run under valgrind.
CALLS = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static int file;
static void nothing(int signum) { (void)signum; }
static void *sync_it(void *unused) { return fsync(file) == 0 ? unused : &file; }

int main(int count, char **words)
{
	const char *what = count > 2 ? words[1] : "";
	file = open(words[count - 1], O_RDWR | O_CREAT, 0600);
	if (strcmp(what, "errors") == 0) {
		int ends[2];
		if (pipe(ends) != 0) return 9;
		errno = 77;
		if (fsync(file) != 0 || errno != 77) return 1;
		if (fsync(-1) != -1 || errno != EBADF) return 2;
		if (fdatasync(12345) != -1 || errno != EBADF) return 3;
		if (fsync(ends[1]) != -1 || errno != EINVAL) return 4;
		int folder = open("/", O_RDONLY | O_DIRECTORY);
		if (fsync(folder) != 0) return 5;
	} else if (strcmp(what, "signals") == 0) {
		/* A signal each 10 ms, which interrupts the hold again and again. */
		struct sigaction act = {.sa_handler = nothing};
		sigaction(SIGALRM, &act, NULL);
		struct itimerval often = {{0, 10000}, {0, 10000}};
		setitimer(ITIMER_REAL, &often, NULL);
		if (fsync(file) != 0) return 1;
	} else if (strcmp(what, "cancel") == 0) {
		pthread_t thread;
		void *result;
		pthread_create(&thread, NULL, sync_it, NULL);
		pthread_cancel(thread);
		pthread_join(thread, &result);
		if (result != PTHREAD_CANCELED || fsync(file) != 0) return 1;
	} else if (strcmp(what, "fork") == 0) {
		pid_t child = fork();
		if (child == 0) _exit(fsync(file) == 0 ? 0 : 1);
		int status;
		if (fsync(file) != 0 || waitpid(child, &status, 0) != child || status != 0) return 1;
	} else if (strcmp(what, "lost") == 0) {
		if (fsync(file) != -1 || errno != EIO) return 1;
	} else if (fsync(file) != 0) {
		return 1;
	}
	puts("done");
	return 0;
}
"""

# Stands in for a disk that fails: the kernel tells a write error to the flush alone.
FAILING_FLUSH = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
int sync_file_range(int file, off64_t at, off64_t length, unsigned flags)
{
	(void)file; (void)at; (void)length; (void)flags;
	errno = EIO;
	return -1;
}
"""


def _compile(source: Path, output: Path, *options: str) -> Path:
    ran(["cc", *options, "-o", str(output), str(source), "-ldl"])
    return output


@dataclass
class Shim:
    """A build of the library, with what is to be preloaded before it."""

    library: Path
    before: tuple[str, ...]
    state: Path
    started: list["subprocess.Popen[str]"] = field(default_factory=list)

    def environment(self, **options: int) -> dict[str, str]:
        settings = delayjc.settings(self.state, **options, library=self.library)  # type: ignore[arg-type]
        settings["LD_PRELOAD"] = ":".join((*self.before, settings["LD_PRELOAD"]))
        # Python leaks by design; what the library allocates is checked under valgrind.
        return {**os.environ, **settings, "ASAN_OPTIONS": "detect_leaks=0"}

    def start(
        self, command: list[str], environment: dict[str, str] | None = None, **options: int
    ) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            command,
            env=environment or self.environment(**options),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def run(
        self, command: list[str], environment: dict[str, str] | None = None, **options: int
    ) -> tuple[int, str]:
        """Exit code and standard error."""
        process = self.start(command, environment, **options)
        _, errors = process.communicate(timeout=TIMEOUT_S)
        return process.returncode, errors

    def arrivals(self, files: list[Path], call: str = "fsync", **options: int) -> None:
        names = [str(file) for file in files]
        assert self.run([sys.executable, "-c", ARRIVALS, call, *names], **options) == (0, "")

    @property
    def counters(self) -> Counters:
        return delayjc.read_counters(self.state)

    def _is_made(self) -> bool:
        """A file that has its size may lack its first two words still: what it is, its layout."""
        if not self.state.exists():
            return False
        with self.state.open("rb") as file:
            parts = file.read(8), file.read(8)
        return all(any(part) for part in parts)

    def wait_for(self, reached: Callable[[DelayedCalls], bool]) -> None:
        """Until the counters of processes that run say so."""
        deadline_s = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline_s:
            if self._is_made() and reached(self.counters.total):
                return
            time.sleep(0.001)
        pytest.fail(f"never came: {self.counters}")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("delayjc")
    _compile(SOURCE, folder / "plain.so", "-O2", *LIBRARY)
    _compile(SOURCE, folder / "sanitized.so", *SANITIZERS, *LIBRARY)
    (folder / "calls.c").write_text(CALLS)
    (folder / "flush.c").write_text(FAILING_FLUSH)
    _compile(folder / "calls.c", folder / "calls", "-pthread")
    _compile(folder / "flush.c", folder / "flush.so", "-shared", "-fPIC")
    return folder


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Path]:
    """A folder without a disk under it: where other tests keep the disk busy, an fsync or a page of
    the state file can take longer than any window."""
    shared = Path("/dev/shm")
    if not os.access(shared, os.W_OK):
        yield tmp_path
        return
    folder = Path(tempfile.mkdtemp(prefix="eeio-delayjc-test-", dir=shared))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@pytest.fixture(params=["plain", "sanitized"])
def shim(request: pytest.FixtureRequest, built: Path, memory: Path) -> Iterator[Shim]:
    before: tuple[str, ...] = ()
    if request.param == "sanitized":
        asan = ran(["cc", "-print-file-name=libasan.so"]).stdout.strip()
        before = (str(Path(asan).resolve()),)
    made = Shim(built / f"{request.param}.so", before, memory / "state")
    yield made
    for process in made.started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def _files(folder: Path, count: int) -> list[Path]:
    return [folder / f"file{k}" for k in range(count)]


@pytest.mark.fast_variants(2)
@pytest.mark.parametrize("call", ["fsync", "fdatasync"])
@pytest.mark.parametrize("flush_first", [0, 1])
def test_threads_that_arrive_within_a_window_go_on_together(
    shim: Shim, memory: Path, call: str, flush_first: int
) -> None:
    shim.arrivals(_files(memory, 8), call, window_us=LONG_US, flush_first=flush_first)
    found = shim.counters
    total = found.total
    assert (total.calls, total.windows, total.resets, total.finished) == (8, 1, 7, 8)
    assert total.joins_at_maximum == 0
    assert (found.processes, found.passed_calls, found.table_full_calls) == (1, 0, 0)
    assert (found.window_us, found.max_resets, found.flush_first) == (
        LONG_US,
        64,
        bool(flush_first),
    )
    assert found.devices[0].device == memory.stat().st_dev
    # None went on before the window's end, so none before the last had come.
    assert total.held_ns >= 8 * (total.held_max_ns - LONG_US * 1000)
    assert total.held_max_ns >= LONG_US * 1000 * 0.99
    assert (total.flush_ns > 0) == bool(flush_first)
    assert total.sync_max_ns <= total.sync_ns
    assert total.flush_errors == 0


def test_processes_share_a_window(shim: Shim, built: Path, memory: Path) -> None:
    first = [
        shim.start([str(built / "calls"), str(file)], window_us=LONG_US)
        for file in _files(memory, 5)
    ]
    assert [process.wait(TIMEOUT_S) for process in first] == [0] * 5
    total = shim.counters.total
    assert (total.windows, total.resets, total.finished) == (1, 4, 5)
    assert shim.counters.processes == 5


def test_a_window_that_ended_is_followed_by_another(
    shim: Shim, built: Path, tmp_path: Path
) -> None:
    for _ in range(300):  # more than there are generations
        if shim.before and shim.state.exists() and shim.counters.total.calls >= 20:
            break
        assert shim.run([str(built / "calls"), str(tmp_path / "f")], window_us=1) == (0, "")
    total = shim.counters.total
    assert total.windows == total.calls == total.finished


@pytest.mark.fast_variants(2)
@pytest.mark.parametrize(("maximum", "resets", "joins"), [(0, 0, 5), (2, 2, 3), (255, 5, 0)])
def test_resets_have_a_maximum(
    shim: Shim, memory: Path, maximum: int, resets: int, joins: int
) -> None:
    shim.arrivals(_files(memory, 6), window_us=LONG_US, max_resets=maximum)
    total = shim.counters.total
    assert (total.windows, total.resets, total.joins_at_maximum) == (1, resets, joins)
    assert total.finished == 6


def test_devices_do_not_disturb_each_other(shim: Shim, tmp_path: Path) -> None:
    other = Path("/dev/shm")
    if not os.access(other, os.W_OK) or other.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("no second file system to write to")
    far = other / f"eeio-delayjc-{os.getpid()}"
    try:
        shim.arrivals([tmp_path / "near", far], window_us=LONG_US)
    finally:
        far.unlink(missing_ok=True)
    devices = shim.counters.devices
    assert {d.device for d in devices} == {tmp_path.stat().st_dev, other.stat().st_dev}
    assert [(d.calls, d.windows, d.resets, d.finished) for d in devices] == [(1, 1, 0, 1)] * 2


@pytest.mark.fast_variants(1)
def test_a_killed_holder_leaves_nothing_to_wait_for(
    shim: Shim, built: Path, tmp_path: Path
) -> None:
    calls, name = str(built / "calls"), str(tmp_path / "f")
    victim = shim.start([calls, name], window_us=LONG_US)
    shim.wait_for(lambda total: total.windows == 1)
    other = shim.start([calls, name], window_us=LONG_US)
    shim.wait_for(lambda total: total.resets == 1)  # both wait; the counters are read meanwhile
    assert shim.counters.total.finished == 0
    victim.send_signal(signal.SIGKILL)
    assert other.wait(TIMEOUT_S) == 0
    assert shim.run([calls, name], window_us=LONG_US) == (0, "")
    total = shim.counters.total
    assert (total.calls, total.windows, total.resets, total.finished) == (3, 2, 1, 2)


@pytest.mark.parametrize("what", ["errors", "signals", "cancel", "fork"])
def test_the_program_sees_what_it_would_see_without(
    shim: Shim, built: Path, tmp_path: Path, what: str
) -> None:
    if what == "cancel" and shim.before:
        pytest.skip("ASan takes the frames that a cancelled thread left for live ones")
    command = [str(built / "calls"), what, str(tmp_path / "f")]
    assert shim.run(command, window_us=200_000) == (0, "")
    found = shim.counters
    if what == "errors":
        assert found.passed_calls == 3
        assert found.total.finished == 2
    elif what == "signals":
        assert (found.total.finished, found.total.resets) == (1, 0)
        assert found.total.held_max_ns >= 200_000_000 * 0.99
    elif what == "fork":
        assert found.total.finished == 2


def test_a_write_error_that_the_flush_returns_reaches_the_program(
    shim: Shim, built: Path, tmp_path: Path
) -> None:
    environment = shim.environment(window_us=1000)
    environment["LD_PRELOAD"] += f":{built / 'flush.so'}"
    command = [str(built / "calls"), "lost", str(tmp_path / "f")]
    assert shim.run(command, environment) == (0, "")
    assert (shim.counters.total.flush_errors, shim.counters.total.finished) == (1, 1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DELAYJC_WINDOW_US", "0"),
        ("DELAYJC_WINDOW_US", "10000001"),
        ("DELAYJC_WINDOW_US", "1ms"),
        ("DELAYJC_WINDOW_US", ""),
        ("DELAYJC_WINDOW_US", "99999999999999999999999"),
        ("DELAYJC_MAX_RESETS", "256"),
        ("DELAYJC_MAX_RESETS", "-1"),
        ("DELAYJC_FLUSH_FIRST", "yes"),
        ("DELAYJC_STATE", ""),
        ("DELAYJC_STATE", "/nonexistent/state"),
        ("DELAYJC_STATE", "/nonexistent/" + "x" * 5000),
        ("DELAYJC_STATE", "/dev/null"),
    ],
)
def test_a_bad_value_is_reported_once_and_nothing_is_changed(
    shim: Shim, built: Path, tmp_path: Path, name: str, value: str
) -> None:
    environment = {**shim.environment(), name: value}
    code, errors = shim.run([str(built / "calls"), "errors", str(tmp_path / "f")], environment)
    assert code == 0
    assert errors.count("\n") == 1
    assert name in errors and errors.endswith("nothing is held\n")
    assert not shim.state.exists()


@pytest.mark.parametrize(
    "garbage", [b"short", b"\0" * 8319, b"x" * 8320, b"\0" * 8319 + b"x", b"\0" * 9000]
)
def test_a_foreign_state_file_is_left_as_it_is(
    shim: Shim, built: Path, tmp_path: Path, garbage: bytes
) -> None:
    shim.state.write_bytes(garbage)
    code, errors = shim.run([str(built / "calls"), "errors", str(tmp_path / "f")])
    assert code == 0
    assert str(shim.state) in errors and errors.count("\n") == 1
    assert shim.state.read_bytes() == garbage
    with pytest.raises(EeioError, match=str(shim.state)):
        shim.counters  # noqa: B018


def test_a_link_is_not_followed(shim: Shim, built: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").write_bytes(b"")
    shim.state.symlink_to(tmp_path / "precious")
    code, errors = shim.run([str(built / "calls"), str(tmp_path / "f")])
    assert code == 0 and "DELAYJC_STATE" in errors
    assert (tmp_path / "precious").read_bytes() == b""


def test_an_empty_state_file_is_taken_and_a_new_one_is_private(
    shim: Shim, built: Path, tmp_path: Path
) -> None:
    command = [str(built / "calls"), str(tmp_path / "f")]
    assert shim.run(command) == (0, "")
    assert stat.S_IMODE(shim.state.stat().st_mode) == 0o600
    shim.state.write_bytes(b"")
    assert shim.run(command) == (0, "")
    assert shim.counters.processes == 1


def test_other_settings_on_the_same_file_hold_nothing(
    shim: Shim, built: Path, tmp_path: Path
) -> None:
    command = [str(built / "calls"), str(tmp_path / "f")]
    assert shim.run(command, window_us=1000) == (0, "")
    code, errors = shim.run(command, window_us=16000)
    assert code == 0 and "other settings" in errors
    assert (shim.counters.processes, shim.counters.total.calls) == (1, 1)


def test_a_deadline_of_another_boot_is_no_window(shim: Shim, built: Path, tmp_path: Path) -> None:
    """The clock began anew: the state file's deadline lies days ahead."""
    command = [str(built / "calls"), str(tmp_path / "f")]
    assert shim.run(command, window_us=1000) == (0, "")
    body = bytearray(shim.state.read_bytes())
    slot = next(at for at in range(128, len(body), 128) if body[at : at + 8] != bytes(8))
    days_ahead_us = int((time.monotonic() + 30 * 86400) * 1e6)
    body[slot + 8 : slot + 16] = (days_ahead_us << 16 | 3 << 8 | 7).to_bytes(8, sys.byteorder)
    shim.state.write_bytes(body)
    assert shim.run(command, window_us=1000) == (0, "")
    assert shim.counters.total.windows == 2


def test_a_full_table_passes_calls_on_and_counts_them(
    shim: Shim, built: Path, tmp_path: Path
) -> None:
    command = [str(built / "calls"), str(tmp_path / "f")]
    assert shim.run(command, window_us=1000) == (0, "")
    body = bytearray(shim.state.read_bytes())
    for slot in range(64):
        at = 128 * (1 + slot)
        body[at : at + 8] = (1 << 40 | slot).to_bytes(8, sys.byteorder)
    shim.state.write_bytes(body)
    assert shim.run(command, window_us=1000) == (0, "")
    assert shim.counters.table_full_calls == 1
    assert len(shim.counters.devices) == 64


def test_too_small_a_file_size_limit_ends_no_program(
    shim: Shim, built: Path, tmp_path: Path
) -> None:
    environment = shim.environment()
    limited = ["prlimit", "--fsize=1000", "env", *(f"{k}={environment[k]}" for k in (
        "LD_PRELOAD", "DELAYJC_STATE")), str(built / "calls"), str(tmp_path / "f")]  # fmt: skip
    if shutil.which("prlimit") is None:
        pytest.skip("no prlimit")
    code, errors = shim.run(limited, {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})
    assert code == 0 and "File too large" in errors


def test_a_reader_that_went_away_ends_no_program(shim: Shim, built: Path, tmp_path: Path) -> None:
    environment = {**shim.environment(), "DELAYJC_STATE": ""}
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [str(built / "calls"), str(tmp_path / "f")],
            env=environment, stderr=write, stdout=subprocess.DEVNULL, timeout=TIMEOUT_S,
        )  # fmt: skip
    finally:
        os.close(write)
    assert done.returncode == 0


@pytest.mark.tools
def test_valgrind_finds_nothing(built: Path, tmp_path: Path) -> None:
    if shutil.which("valgrind") is None:
        pytest.skip("no valgrind")
    shim = Shim(built / "plain.so", (), tmp_path / "state")
    for what in ("errors", "fork", "plain"):
        command = ["valgrind", "-q", "--error-exitcode=99", "--leak-check=full",
                   str(built / "calls"), what, str(tmp_path / "f")]  # fmt: skip
        assert shim.run(command, window_us=1000) == (0, "")
    # valgrind's own launcher loads the library too.
    assert shim.counters.total.finished == 5


def test_counters_of_no_file_say_so(tmp_path: Path) -> None:
    with pytest.raises(EeioError, match="was a program run"):
        delayjc.read_counters(tmp_path / "none")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"window_us": 0}, "a window of 0 us"),
        ({"max_resets": 256}, "256 resets"),
        ({"library": Path("/with space/libdelayjc.so")}, "with a space"),
    ],
)
def test_settings_that_cannot_work_are_rejected(options: dict[str, object], message: str) -> None:
    with pytest.raises(EeioError, match=message):
        delayjc.settings(Path("/s"), **{"library": Path("/l.so"), **options})  # type: ignore[arg-type]


def test_settings_keep_what_is_preloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_PRELOAD", "other.so")
    found = delayjc.settings(Path("/s"), 16000, 3, False, library=Path("/l.so"))
    assert found == {
        "LD_PRELOAD": "/l.so:other.so",
        "DELAYJC_STATE": "/s",
        "DELAYJC_WINDOW_US": "16000",
        "DELAYJC_MAX_RESETS": "3",
        "DELAYJC_FLUSH_FIRST": "0",
    }


def test_the_library_is_found_where_it_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "venv"))
    assert delayjc.find_library(tmp_path) is None
    for place in (tmp_path / "venv/libexec", tmp_path / "usr/local/libexec"):
        place.mkdir(parents=True)
        (place / "libdelayjc.so").touch()
        assert delayjc.find_library(tmp_path) == place / "libdelayjc.so"


def test_programs_that_cannot_be_preloaded_are_named(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reason(program: Path | str) -> str:
        return delayjc.cannot_preload(Path(program), library=built / "plain.so") or ""

    assert reason(sys.executable) == reason("sh") == reason(built / "calls") == ""
    static = _compile(built / "calls.c", tmp_path / "static", "-static", "-pthread")
    assert "statically linked" in reason(static)
    assert "no such program" in reason(tmp_path / "nothing")

    foreign = bytearray((built / "calls").read_bytes())
    foreign[18:20] = (243).to_bytes(2, sys.byteorder)
    for name, body, message in (
        ("foreign", bytes(foreign), "machine 243"),
        ("cut", bytes(foreign[:10]), "neither an ELF program"),
        ("text", b"hello", "neither an ELF program"),
        ("script", f"#!{static} -x\n".encode(), "statically linked"),
        ("good", b"#!/bin/sh\n", ""),
        ("env", b"#!/usr/bin/env -S A=1 sh\n", ""),
        ("lost", b"#!/usr/bin/env nosuchprogram\n", "no such program"),
        ("bare", b"#!/usr/bin/env -i sh\n", "empties the environment"),
        ("empty", b"#!\n", "names no interpreter"),
        ("circle", f"#!{tmp_path / 'circle'}\n".encode(), "too many interpreters"),
    ):
        path = tmp_path / name
        path.write_bytes(body)
        path.chmod(0o755)
        found = reason(path)
        assert message in found and bool(message) == bool(found), (name, found)

    monkeypatch.setattr(os, "getuid", lambda: 12345)
    monkeypatch.setattr(os, "getgid", lambda: 12345)
    program = shutil.copy(built / "calls", tmp_path / "gaining")
    for mode, message in ((0o4755, "setuid"), (0o2755, "setgid"), (0o755, "")):
        Path(program).chmod(mode)
        assert message in reason(program) and bool(message) == bool(reason(program))
    monkeypatch.setattr(os, "getxattr", lambda path, name: b"\1")
    assert "file capabilities" in reason(program)
