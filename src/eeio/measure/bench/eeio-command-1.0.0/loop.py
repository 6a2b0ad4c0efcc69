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
EEIO_IO_GROUP names a control group that the command is to run in, so that its bytes at each drive
are counted, too; EEIO_OWN_GROUP is the one to return to.
"""

import json
import os
import shutil
import signal
import sys
import time

PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
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


def main(words):
    factors = dict(word.split("=", 1) for word in words)
    command = json.loads(factors["command"])
    argv = ["/bin/sh", "-c", command] if isinstance(command, str) else command
    os.chdir(factors["directory"])
    group, home = (os.environ.pop(f"EEIO_{name}_GROUP", "") for name in ("IO", "OWN"))
    if group:
        enter(group)
    # Made once: of a command that takes a millisecond each of these would be a part in twenty.
    null = os.open(os.devnull, os.O_RDWR)
    quiet = [(os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, null, 1)]
    if factors.get("stdin"):
        quiet[0] = (os.POSIX_SPAWN_OPEN, 0, factors["stdin"], os.O_RDONLY, 0)
    environment = {os.fsencode(key): os.fsencode(value) for key, value in os.environ.items()}
    program = shutil.which(argv[0]) or argv[0]
    flush = flush_of(".") if factors.get("flush") == "each" else None
    executions, codes = [], {}
    executed_s = user_s = system_s = 0.0
    peak_bytes = 0
    status = 0
    before = account_of_children()
    began_s = ended_s = time.monotonic()
    for number in range(int(factors["count"])):
        if flush is not None and number:
            flush()
        start_s = time.monotonic()
        try:
            child = os.posix_spawn(program, argv, environment, file_actions=quiet)
        except OSError as error:
            sys.exit(f"{argv[0]}: {error.strerror}")
        _, ended, usage = os.wait4(child, 0)
        ended_s = time.monotonic()
        executed_s += ended_s - start_s
        code = os.waitstatus_to_exitcode(ended)
        for used in (usage, *adopted()):
            user_s += used.ru_utime
            system_s += used.ru_stime
            peak_bytes = max(peak_bytes, used.ru_maxrss * 1024)
        codes[code] = codes.get(code, 0) + 1
        if len(executions) < KEPT:
            executions.append(ended_s - start_s)
        if code != 0 and factors.get("ignore_failure") != "on":
            status = code
            break
    # One that runs now is left; one that ends until the account is read is in it.
    running = left()
    for used in adopted():
        user_s += used.ru_utime
        system_s += used.ru_stime
    after = account_of_children()
    if group:
        enter(home)  # later writes are not the command's
    body = {
        "start_monotonic_s": began_s,
        "end_monotonic_s": ended_s,
        "count": sum(codes.values()),
        "executions_s": executions,
        "executed_s": executed_s,
        "exit_codes": codes,
        "user_s": user_s,
        "system_s": system_s,
        "memory_peak_bytes": peak_bytes,
        # A process begins with the peak of who started it: less than this cannot be seen.
        "memory_own_bytes": own_peak_bytes(),
        "account": None
        if before is None or after is None
        else {name: after[name] - before[name] for name in ACCOUNTS},
        "left": running,
    }
    with open(os.path.join(factors["output"], "command.json"), "w", encoding="utf-8") as file:
        json.dump(body, file)
    if status < 0:  # as in a shell
        print(f"ended by signal {signal.Signals(-status).name}", file=sys.stderr)
        sys.exit(128 - status)
    sys.exit(status)


def adopt(words):
    """Makes this program the parent of what the command leaves, and starts it again."""
    os.environ["EEIO_ADOPTS"] = "on"
    try:
        import ctypes
    except ImportError:  # then the account is without processes that nobody waited for
        return
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    os.execv(sys.executable, [sys.executable, "-I", "-S", __file__, *words])


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
        found = dict(line.split(": ") for line in file)
    return {name: int(found.get(name, "")) for name in ACCOUNTS}


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
