"""A database server of a run's own, in the target directory; the same file in each such profile.

Stands alone: it runs with nothing but Python's standard library. The server is a child of this
process and never a daemon. It is sent a signal by the kernel when this process dies, however it
dies, and a SIGTERM to this process ends it and takes its data away: `eeio restore` sends one to the
process group.

As root, server and client run under another user, for the servers refuse root. Nothing listens on
the network: the socket lies in the data directory, which nobody else can enter, and both name it
from within, since the path of a socket has at most 107 bytes.
"""

import ctypes
import json
import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

MARK = "made-by-eeio"
ANSWER_S = 60  # a server of clean data answers in a second
STOP_S = 600  # its checkpoint writes all that is dirty in its memory
END_NOW_S = 3  # less than the 5 s that a runner waits from SIGTERM to SIGKILL
SPOKEN_BYTES = 65536
FULL_BYTES = 1 << 20  # less is a full disk: servers reserve space in larger steps
FULL = ("No space left on device", "is full", "rror 28", "isk full", "rrno: 28")
TROUBLE = ("ERROR", "FATAL", "PANIC", "rror:")
PERCENTILES = (("p50", 500), ("p95", 950), ("p99", 990), ("p999", 999))  # in thousandths
# eeio's mark, and the library that batches commits (ext4+delayjc).
KEPT = (
    "PATH",
    "EEIO_STARTED_BY",
    "LD_PRELOAD",
    "DELAYJC_STATE",
    "DELAYJC_WINDOW_US",
    "DELAYJC_MAX_RESETS",
    "DELAYJC_FLUSH_FIRST",
)
LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG = 1
LEAVING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class RejectedError(Exception):
    """What cannot be done, where, and what to do next: one line."""


class Server:
    """A server's data below `folder`, and the server while it runs.

    `program` is the server's executable, `users` who may run it where this process is root, and
    `abrupt` the signal that ends it and its children at once.
    """

    def __init__(self, folder, program, users, abrupt):
        self.folder = Path(folder)
        self.data = self.folder / "data"
        self.abrupt = abrupt
        self._program = os.path.realpath(program)
        self._process = None
        self._log = None
        self._delays = {}
        if os.geteuid() and _known(os.geteuid()) is None:
            raise RejectedError(
                f"the user {os.geteuid()} has no name here (/etc/passwd), and the server wants "
                "one: run as a user with a name"
            )
        self._user = None if os.geteuid() else next(filter(None, map(_known, users)), None)
        if self._user is None and not os.geteuid():
            raise RejectedError(
                f"the server refuses root, and there is no user {' or '.join(users)} to run it "
                "under: install the server's package, or run as a plain user"
            )

    @property
    def user(self):
        """The name of who runs the server."""
        return (self._user or pwd.getpwuid(os.geteuid())).pw_name

    def make(self):
        """The empty folder of the data, this process's mark beside it."""
        self.folder.mkdir(0o755)
        (self.folder / MARK).touch()
        self.data.mkdir(0o700)
        if self._user is not None:
            self.folder.chmod(0o755)  # whatever the umask
            os.chown(self.data, self._user.pw_uid, self._user.pw_gid)
            self._check_reach()

    def clear(self):
        """Takes away what `make` made, and ends what still runs in it; RejectedError where it is
        not ours."""
        try:
            status = self.folder.lstat()
        except FileNotFoundError:
            return
        if not stat.S_ISDIR(status.st_mode):
            raise RejectedError(
                f"{self.folder}: no folder (a link?): it is not touched; take it away"
            )
        # One that is empty was made and not yet marked.
        if not (self.folder / MARK).is_file() and any(self.folder.iterdir()):
            raise RejectedError(
                f"{self.folder}: not made by eeio (no {MARK} in it): it is not touched; "
                "take it away"
            )
        self._end_strays()
        shutil.rmtree(self.folder)

    def mark_ready(self, words):
        """Notes that the data are whole, and of what: the wrapper asks for that before a run."""
        sync(self.folder)
        (self.folder / MARK).write_text(words, encoding="ascii")

    def drop(self):
        """The data's pages out of the page cache: they are clean."""
        for path in self.data.rglob("*"):
            if path.is_file() and not path.is_symlink():
                fd = os.open(path, os.O_RDONLY)
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
                os.close(fd)

    def call(self, command, within_s):
        """What a small program prints that runs to its end; RejectedError with its own words."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = self.spawn(command, out, err)
            try:
                status = process.wait(within_s)
            except subprocess.TimeoutExpired:
                raise RejectedError(
                    f"{command[0]}: no end after {within_s} s{self.said()}"
                ) from None
            finally:
                end(process)
            if status:
                words = error_line(err, began=True) or error_line(out, began=True)
                raise RejectedError(f"{command[0]}: exit status {status}: {words}{self.said()}")
            out.seek(0)
            return out.read(SPOKEN_BYTES).decode(errors="replace")

    def spawn(self, command, out, err, signum=signal.SIGKILL, before=None):
        """A child in the data directory under the server's user, sent `signum` when this process
        dies. `before` is called in it."""
        parent = os.getpid()
        user = self._user

        def tie():
            LIBC.prctl(PR_SET_PDEATHSIG, signum, 0, 0, 0)
            if os.getppid() != parent:  # it died in between
                os._exit(1)
            if before is not None:
                before()

        # Nothing of the user's settings: PGHOST, PGOPTIONS, a .my.cnf.
        kept = {key: os.environ[key] for key in KEPT if key in os.environ} | self._delays
        return subprocess.Popen(
            command,
            cwd=self.data,
            env={**kept, "LC_ALL": "C", "HOME": str(self.data)},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            preexec_fn=tie,
            user=user and user.pw_uid,
            group=user and user.pw_gid,
            extra_groups=user and [],
        )

    def start(self, command, log, answers):
        """Starts it, and returns when the command `answers` ends well. `log` is a file for what it
        says."""
        self._log = log
        self._hand_over_delays()
        self._process = self.spawn(command, log, log, self.abrupt)
        deadline_s = time.monotonic() + ANSWER_S
        while True:
            if self._process.poll() is not None:
                raise RejectedError(f"the server ended at its start{self.said(began=True)}")
            with tempfile.TemporaryFile() as nowhere:
                asked = self.spawn(answers, nowhere, nowhere)
                try:
                    if asked.wait(max(1, deadline_s - time.monotonic())) == 0:
                        return
                except subprocess.TimeoutExpired:
                    pass
                finally:
                    end(asked)
            if time.monotonic() > deadline_s:
                raise RejectedError(f"the server does not answer after {ANSWER_S} s{self.said()}")
            time.sleep(0.02)

    def stop(self, signum):
        """Asks for an orderly end, which brings everything into its files, and waits for it."""
        self._process.send_signal(signum)
        try:
            status = self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            raise RejectedError(f"the server does not end after {STOP_S} s{self.said()}") from None
        if status:
            raise RejectedError(f"the server ended with status {status}{self.said()}")

    def end_now(self):
        """Ends what still runs, without order."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(self.abrupt)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(END_NOW_S)
            end(self._process)
        self._end_strays()

    def said(self, began=False):
        """What explains the server's failure, as the end of a message: a full disk, or its line."""
        with suppress(OSError):
            room = os.statvfs(self.folder)
            if room.f_bavail * room.f_frsize < FULL_BYTES:
                return f": No space left on device: {self.folder}"
        words = error_line(self._log, began) if self._log is not None else ""
        return f": the server says: {words}" if words else ""

    def account(self):
        """Bytes so far that the kernel counts for this process, the children that have ended, and
        the server's processes that run: fetched from storage, and made dirty to be written."""
        pids = ["self"]
        if self._process.returncode is None:
            pids += _tree(self._process.pid)
        counts = [_io(pid) for pid in pids]
        return sum(fetched for fetched, _ in counts), sum(dirtied for _, dirtied in counts)

    def _hand_over_delays(self):
        """The library that batches commits and its state, to the server's user: root made the
        state when this process began, and the library takes only its own user's; and it may lie
        below a folder that nobody else can pass."""
        if self._user is None or "DELAYJC_STATE" not in os.environ:
            return
        state = Path(os.environ["DELAYJC_STATE"])
        state.parent.chmod(0o711)
        os.chown(state, self._user.pw_uid, self._user.pw_gid)
        library, *others = os.environ["LD_PRELOAD"].split(":")
        own = self.folder / Path(library).name
        shutil.copyfile(library, own)
        own.chmod(0o644)
        self._delays = {"LD_PRELOAD": ":".join([str(own), *others])}

    def _check_reach(self):
        """RejectedError where the server's user cannot come to the data."""
        for path in (*reversed(self.data.parents), self.data):
            with tempfile.TemporaryFile() as nowhere:
                # From /, for the folder a child begins in needs no leave to be entered.
                done = subprocess.run(
                    ["test", "-x", str(path)],
                    cwd="/",
                    stdin=subprocess.DEVNULL,
                    stdout=nowhere,
                    stderr=nowhere,
                    timeout=ANSWER_S,
                    check=False,
                    user=self._user.pw_uid,
                    group=self._user.pw_gid,
                    extra_groups=[],
                )
            if done.returncode:
                mode = stat.S_IMODE(path.stat().st_mode)
                raise RejectedError(
                    f"{path}: has mode {mode:04o}: the user {self.user}, under whom the server "
                    "runs where eeio is root, cannot pass it; give another directory, or run as a "
                    "plain user"
                )

    def _end_strays(self):
        """Ends processes of the server's program that still work in the data: PostgreSQL's are in
        process groups of their own, and live on for a moment where their parent was killed."""
        where = os.path.realpath(self.data)
        deadline_s = time.monotonic() + END_NOW_S
        while strays := [pid for pid in _processes() if self._is_stray(pid, where)]:
            if time.monotonic() > deadline_s:
                raise RejectedError(
                    f"{self.data}: the process {strays[0]} still works in it: end it"
                )
            for pid in strays:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)

    def _is_stray(self, pid, where):
        try:
            return _of_process(pid, "cwd") == where and _of_process(pid, "exe") == self._program
        except OSError:
            return False  # it has ended, or is another user's


def _known(user):
    with suppress(KeyError):
        return pwd.getpwnam(user) if isinstance(user, str) else pwd.getpwuid(user)
    return None


def _processes():
    return [int(path.name) for path in Path("/proc").glob("[0-9]*")]


def _of_process(pid, link):
    return str(Path(f"/proc/{pid}/{link}").readlink()).removesuffix(" (deleted)")


def _tree(root):
    """A process and all that come of it."""
    parents = {}
    for pid in _processes():
        with suppress(OSError):
            text = Path(f"/proc/{pid}/stat").read_bytes()
            parents[pid] = int(text.rpartition(b")")[2].split()[1])
    found = [root]
    for each in found:
        found += [pid for pid, parent in parents.items() if parent == each]
    return found


def _io(pid):
    try:
        text = Path(f"/proc/{pid}/io").read_text(encoding="ascii")
        told = {key: int(value) for key, value in (line.split(": ") for line in text.splitlines())}
        return told["read_bytes"], told["write_bytes"] - told["cancelled_write_bytes"]
    except (FileNotFoundError, ProcessLookupError):
        return 0, 0  # it has ended: its parent has its bytes
    except (OSError, KeyError, ValueError) as error:
        raise RejectedError(
            f"/proc/{pid}/io: the kernel tells no account of bytes: {error}"
        ) from error


def reap(client, within_s):
    """Waits for a client's end; the bytes that the kernel counts for it alone: with its end they
    are this process's, too. subprocess.TimeoutExpired where it does not end."""

    def late(*_):
        raise subprocess.TimeoutExpired(client.args, within_s)

    signal.signal(signal.SIGALRM, late)
    signal.alarm(within_s)
    try:
        os.waitid(os.P_PID, client.pid, os.WEXITED | os.WNOWAIT)
    finally:
        signal.alarm(0)
    before = _io("self")
    client.wait()
    return tuple(after - once for after, once in zip(_io("self"), before, strict=True))


def end(process):
    """Ends a child if it still runs, and waits for it."""
    if process.poll() is None:
        process.kill()
        process.wait()


def sync(folder):
    """All of the file system that `folder` is on, to the device."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        if LIBC.syncfs(fd):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(folder))
    finally:
        os.close(fd)


def error_line(file, began=False):
    """The line of a program's output that explains its failure.

    That is the last line about a full disk, else the last about an error, else the last. The first
    about an error explains the failure of a program that has just begun (`began`): the others are
    consequences ("Aborting").
    """
    file.flush()
    size = os.fstat(file.fileno()).st_size
    text = os.pread(file.fileno(), SPOKEN_BYTES, max(0, size - SPOKEN_BYTES))
    lines = [line.strip() for line in text.decode(errors="replace").splitlines() if line.strip()]
    worst = [line for line in lines if any(word in line for word in TROUBLE)]
    full = [line for line in lines if any(word in line for word in FULL)]
    if began and worst and not full:
        return worst[0][:300]
    return (full or worst or lines or [""])[-1][:300]


def latencies(counted):
    """Percentiles by nearest rank of a mapping of seconds to how often they were seen, and the
    longest."""
    total = sum(counted.values())
    found, seen, wanted = {}, 0, list(PERCENTILES)
    for seconds in sorted(counted):
        seen += counted[seconds]
        while wanted and seen >= -(-total * wanted[0][1] // 1000):
            found[f"latency_{wanted.pop(0)[0]}_s"] = seconds
    return {**found, "latency_max_s": max(counted)}


def report(eeio, phase, notes):
    """The lines that PTS reads, and eeio.json."""
    print(f"{phase['name']} rate: {phase['metrics']['operations_per_s']:.3f} operations/s")
    if phase["bandwidth_bytes_per_s"] is not None:
        print(f"{phase['name']} bandwidth: {phase['bandwidth_bytes_per_s'] / 1e6:.6f} MB/s")
    result = {"schema_version": 1, "phases": [phase], "notes": notes}
    Path(eeio).write_text(json.dumps(result), encoding="ascii")


def guarded(tool, work, *of_server):
    """Does `work` with a Server; whatever ends it, no server is left. A signal, or trouble, takes
    its data away, too: what is left of half a run serves nobody."""

    def leave(signum, _):
        for each in LEAVING:
            signal.signal(each, signal.SIG_IGN)
        sys.exit(128 + signum)

    for each in LEAVING:
        signal.signal(each, leave)
    server = None
    try:
        server = Server(*of_server)
        try:
            work(server)
        finally:
            server.end_now()
    except (RejectedError, OSError, subprocess.SubprocessError) as error:
        _clear_quietly(server)
        sys.exit(f"{tool}: {error}")
    except SystemExit:
        _clear_quietly(server)
        raise


def _clear_quietly(server):
    if server is not None:
        with suppress(RejectedError, OSError):
            server.clear()
