"""Runs a command repeatedly and records time and bytes of each execution: command.json.

Stands alone: it runs with nothing but Python's standard library, in a process of its own, so that
what it costs is outside of what it measures. Words are key=value: command (JSON: a text for the
shell, or a list), count, directory, stdin, output, ignore_failure (on, off), flush (each: the file
system of the directory after each execution but the last, whose flush the caller measures: pages
that executions overwrite or delete would be written once or never). Times are CLOCK_MONOTONIC.
Bytes are the kernel's account of the processes that this one waited for, with those that they
waited for: what they had fetched from storage or made dirty to be written, whoever wrote it then. A
user may read it of this process (/proc/self/io), but not of one that has ended. This process adopts
those that the command does not wait for (prctl(2), child subreaper). That needs a library, and a
process begins with the memory of its parent, so that it starts again without the library:
EEIO_ADOPTS is set then.
The processor's counters (perf_event_open(2)) are opened then, too, each two times: of this process
with all that it starts, and of this process alone. The difference is that of the command.
EEIO_COUNTERS names them: `instructions:5:6 cycles:7:8`, or says why there are none.
EEIO_IO_GROUP names a control group that the command is to run in, so that its bytes at each drive
are counted, too; EEIO_OWN_GROUP is the one to return to.
"""

import json
import os
import shutil
import signal
import struct
import sys
import time

PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
# linux/perf_event.h, and asm/unistd.h of each architecture.
PERF_EVENT_OPEN = {
    "x86_64": 298,
    "i686": 336,
    "aarch64": 241,
    "riscv64": 241,
    "armv7l": 364,
    "ppc64le": 319,
    "s390x": 331,
}
HARDWARE = 0
COUNTERS = (("instructions", 1), ("cycles", 0))
INHERIT, EXCLUDE_KERNEL = 1 << 1, 1 << 5
TIMES = 1 | 2  # read_format: the time enabled, and the time in which it counted
LEAST_COUNTED = 0.999
KEPT = 10_000  # executions with separately stored times
ACCOUNTS = (
    "rchar",
    "wchar",
    "syscr",
    "syscw",
    "read_bytes",
    "write_bytes",
    "cancelled_write_bytes",
)


class Usage:
    """What the executions took: each of the first KEPT, and all together."""

    def __init__(self):
        self.each = []
        self.codes = {}
        self.ended_s = time.monotonic()
        self.executed_s = self.user_s = self.system_s = 0.0
        self.peak_bytes = self.context_switches = 0

    def add(self, start_s, end_s, code, resources):
        """One execution; `resources` are its process's, and those of processes that it left."""
        user_s = sum(used.ru_utime for used in resources)
        system_s = sum(used.ru_stime for used in resources)
        peak_bytes = 1024 * max(used.ru_maxrss for used in resources)
        self.ended_s = end_s
        self.executed_s += end_s - start_s
        self.user_s += user_s
        self.system_s += system_s
        self.peak_bytes = max(self.peak_bytes, peak_bytes)
        self.context_switches += sum(used.ru_nvcsw + used.ru_nivcsw for used in resources)
        self.codes[code] = self.codes.get(code, 0) + 1
        if len(self.each) < KEPT:
            self.each.append((start_s, end_s, user_s, system_s, peak_bytes, code))

    def add_late(self, resources):
        """Of processes that ended after the last execution."""
        self.user_s += sum(used.ru_utime for used in resources)
        self.system_s += sum(used.ru_stime for used in resources)
        self.context_switches += sum(used.ru_nvcsw + used.ru_nivcsw for used in resources)


def main(words):
    factors = dict(word.split("=", 1) for word in words)
    os.chdir(factors["directory"])
    opened = opened_counters(os.environ.pop("EEIO_COUNTERS", "not opened"))
    group, home = (os.environ.pop(f"EEIO_{name}_GROUP", "") for name in ("IO", "OWN"))
    if group:
        enter(group)
    usage = Usage()
    before = account_of_children()
    counted_before = read_counters(opened)
    began_s = time.monotonic()
    status = execute(factors, usage)
    # One that runs now is left; one that ends until the account is read is in it.
    running = left()
    usage.add_late(list(adopted()))
    after = account_of_children()
    counted_after = read_counters(opened)
    if group:
        enter(home)  # later writes are not the command's
    account = None
    if before is not None and after is not None:
        account = {name: after[name] - before[name] for name in ACCOUNTS}
    body = {
        "start_monotonic_s": began_s,
        "end_monotonic_s": usage.ended_s,
        "count": sum(usage.codes.values()),
        "each": usage.each,
        "executed_s": usage.executed_s,
        "exit_codes": usage.codes,
        "user_s": usage.user_s,
        "system_s": usage.system_s,
        "memory_peak_bytes": usage.peak_bytes,
        # A process begins with the peak of who started it: less than this cannot be seen.
        "memory_own_bytes": own_peak_bytes(),
        "account": account,
        "context_switches": usage.context_switches,
        "counters": counted(counted_before, counted_after),
        "left": running,
    }
    with open(os.path.join(factors["output"], "command.json"), "w", encoding="utf-8") as file:
        json.dump(body, file)
    if status < 0:  # as in a shell
        print(f"ended by signal {signal.Signals(-status).name}", file=sys.stderr)
        sys.exit(128 - status)
    sys.exit(status)


def execute(factors, usage):
    """Executes the command so often; ends at the first that fails, and returns its code."""
    command = json.loads(factors["command"])
    argv = command
    if isinstance(command, str):
        argv = ["/bin/sh", "-c", command]
    # Made once: of a command that takes a millisecond each of these would be a part in twenty.
    null = os.open(os.devnull, os.O_RDWR)
    quiet = [(os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, null, 1)]
    if factors.get("stdin"):
        quiet[0] = (os.POSIX_SPAWN_OPEN, 0, factors["stdin"], os.O_RDONLY, 0)
    environment = {os.fsencode(key): os.fsencode(value) for key, value in os.environ.items()}
    program = shutil.which(argv[0]) or argv[0]
    flush = None
    if factors.get("flush") == "each":
        flush = flush_of(".")
    for number in range(int(factors["count"])):
        if flush is not None and number:
            flush()
        start_s = time.monotonic()
        try:
            child = os.posix_spawn(program, argv, environment, file_actions=quiet)
        except OSError as error:
            sys.exit(f"{argv[0]}: {error.strerror}")
        _, ended, resources = os.wait4(child, 0)
        end_s = time.monotonic()
        code = os.waitstatus_to_exitcode(ended)
        usage.add(start_s, end_s, code, [resources, *adopted()])
        if code != 0 and factors.get("ignore_failure") != "on":
            return code
    return 0


def adopt(words):
    """Makes this program the parent of what the command leaves, and starts it again."""
    os.environ["EEIO_ADOPTS"] = "on"
    try:
        import ctypes
    except ImportError:  # then the account is without processes that nobody waited for
        return
    library = ctypes.CDLL(None, use_errno=True)
    library.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    os.environ["EEIO_COUNTERS"] = open_counters(library, ctypes.get_errno)
    os.execv(sys.executable, [sys.executable, "-I", "-S", __file__, *words])


def open_counters(library, get_errno):
    """EEIO_COUNTERS. Kernel and user where that is allowed, else of the user's mode alone."""
    number = PERF_EVENT_OPEN.get(os.uname().machine)
    if number is None:
        return f"not known on {os.uname().machine}"
    errors = []
    for prefix, mode in (("", 0), ("user_", EXCLUDE_KERNEL)):
        opened = []
        for name, config in COUNTERS:
            for inherit in (INHERIT, 0):
                # Type, size, event, period, samples, read_format, flags; the rest is 0.
                attributes = struct.pack(
                    "=IIQQQQQ16x", HARDWARE, 64, config, 0, 0, TIMES, inherit | mode
                )
                fd = library.syscall(number, attributes, 0, -1, -1, 0)
                if fd < 0:
                    errors.append(os.strerror(get_errno()))
                    break
                opened.append((f"{prefix}{name}", fd))
        if len(opened) == 2 * len(COUNTERS):
            words = []
            for place in range(0, len(opened), 2):
                name, every = opened[place]
                words.append(f"{name}:{every}:{opened[place + 1][1]}")
            return " ".join(words)
        for _, fd in opened:
            os.close(fd)
    return f"perf_event_open: {errors[0]}"


def opened_counters(text):
    """Name -> file descriptors, or why there are none. A command does not inherit them."""
    if ":" not in text or text.startswith("perf_event_open"):
        return text
    opened = {}
    for word in text.split():
        name, every, own = word.split(":")
        opened[name] = int(every), int(own)
        for fd in opened[name]:
            os.set_inheritable(fd, False)
    return opened


def read_counters(opened):
    """Name -> the count of what this process started, and which share of the time was counted; or
    why there is none."""
    if isinstance(opened, str):
        return opened
    counts = {}
    for name, fds in opened.items():
        every, own = (struct.unpack("=QQQ", os.read(fd, 24)) for fd in fds)
        share = 1.0
        if every[1]:
            share = every[2] / every[1]
        counts[name] = every[0] - own[0], share
    return counts


def counted(before, after):
    """The counts between two readings, or why there are none."""
    if isinstance(after, str):
        return {"reason": after}
    least = min(share for _, share in after.values())
    if least < LEAST_COUNTED:
        return {"reason": f"others used the counters: {100 * least:.0f} % of the time was counted"}
    return {name: count - before[name][0] for name, (count, _) in after.items()}


def adopted():
    """The usage of each adopted process that has ended."""
    while True:
        try:
            pid, _, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        yield usage


def flush_of(directory):
    """A function that flushes the file system of a directory."""
    import ctypes  # needs memory, of which a process begins with its parent's

    opened = os.open(directory, os.O_RDONLY)
    library = ctypes.CDLL(None, use_errno=True)

    def flush():
        if library.syncfs(opened) != 0:
            sys.exit(f"{os.getcwd()}: {os.strerror(ctypes.get_errno())}")

    return flush


def enter(group):
    """Moves this process, and all that it starts from now on, into that group."""
    with open(os.path.join(group, "cgroup.procs"), "w", encoding="ascii") as file:
        file.write(str(os.getpid()))


def account_of_children():
    """The kernel's account of all that this process has waited for: that of the process less that
    of its only thread. None where the kernel keeps none."""
    try:
        thread, process = map(account, (f"/proc/self/task/{os.getpid()}/io", "/proc/self/io"))
    except (OSError, ValueError):
        return None
    return {name: process[name] - thread[name] for name in ACCOUNTS}


def account(path):
    with open(path, encoding="ascii") as file:
        # `rchar: 323934` and so on, a line each.
        counts = dict(line.split(": ") for line in file)
    return {name: int(counts.get(name, "")) for name in ACCOUNTS}


def own_peak_bytes():
    """Only of this program: getrusage would include that of its parent."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        words = next((line.split() for line in file if line.startswith("VmHWM:")), ["", "0"])
    return int(words[1]) * 1024


def left():
    """Number of other processes of this session that still run in the background."""
    session, count = os.getsid(0), 0
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        count += fields[3] == str(session) and fields[0] != "Z" and int(name) != os.getppid()
    return count


if os.environ.get("EEIO_ADOPTS") != "on":
    adopt(sys.argv[1:])
del os.environ["EEIO_ADOPTS"]
main(sys.argv[1:])
