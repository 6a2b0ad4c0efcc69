"""Runs a command so many times, one after the other, and tells what each took: command.json.

Stands alone: it runs with nothing but Python's standard library, in a process of its own, so that
what it costs is outside of what it measures. Words are key=value: command (JSON: a text for the
shell, or a list), count, directory, stdin, output, ignore_failure (on, off). Times are
CLOCK_MONOTONIC; bytes are the kernel's account of the process and those that it waited for
(/proc/PID/io): what it had fetched from storage or made dirty to be written, whoever wrote it then.
EEIO_IO_GROUP names a control group that the command is to run in, so that its bytes at each drive
are counted, too.
"""

import json
import os
import shutil
import signal
import sys
import time

KEPT = 10_000  # executions whose times are kept one by one
# In the order in which the kernel tells them.
ACCOUNTS = (
    "rchar", "wchar", "syscr", "syscw", "read_bytes", "write_bytes", "cancelled_write_bytes",
)  # fmt: skip


def main(words):
    factors = dict(word.split("=", 1) for word in words)
    command = json.loads(factors["command"])
    argv = ["/bin/sh", "-c", command] if isinstance(command, str) else command
    os.chdir(factors["directory"])
    group = os.environ.pop("EEIO_IO_GROUP", "")
    if group:
        enter(group)
    # Made once: of a command that takes a millisecond each of these would be a part in twenty.
    null = os.open(os.devnull, os.O_RDWR)
    quiet = [(os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, null, 1)]
    if factors.get("stdin"):
        quiet[0] = (os.POSIX_SPAWN_OPEN, 0, factors["stdin"], os.O_RDONLY, 0)
    environment = {os.fsencode(key): os.fsencode(value) for key, value in os.environ.items()}
    total = [0] * len(ACCOUNTS)
    accounted = True
    program = shutil.which(argv[0]) or argv[0]
    executions, codes = [], {}
    user_s = system_s = 0.0
    peak_bytes = 0
    status = 0
    began_s = ended_s = time.monotonic()
    for _ in range(int(factors["count"])):
        start_s = time.monotonic()
        try:
            child = os.posix_spawn(program, argv, environment, file_actions=quiet)
        except OSError as error:
            sys.exit(f"{argv[0]}: {error.strerror}")
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        ended_s = time.monotonic()
        account = told(child)
        _, ended, usage = os.wait4(child, 0)
        code = os.waitstatus_to_exitcode(ended)
        if account is None:
            accounted = False
        else:
            total = list(map(int.__add__, total, account))
        user_s += usage.ru_utime
        system_s += usage.ru_stime
        peak_bytes = max(peak_bytes, usage.ru_maxrss * 1024)
        codes[code] = codes.get(code, 0) + 1
        if len(executions) < KEPT:
            executions.append(ended_s - start_s)
        if code != 0 and factors.get("ignore_failure") != "on":
            status = code
            break
    if group:
        enter(os.path.dirname(group))  # what is written now is not the command's
    body = {
        "start_monotonic_s": began_s,
        "end_monotonic_s": ended_s,
        "count": sum(codes.values()),
        "executions_s": executions,
        "exit_codes": codes,
        "user_s": user_s,
        "system_s": system_s,
        "memory_peak_bytes": peak_bytes,
        # A process begins with the peak of who started it: less than this cannot be seen.
        "memory_own_bytes": own_peak_bytes(),
        "account": dict(zip(ACCOUNTS, total, strict=True)) if accounted else None,
        "left": left(),
    }
    with open(os.path.join(factors["output"], "command.json"), "w", encoding="utf-8") as file:
        json.dump(body, file)
    if status < 0:  # as a shell tells it
        print(f"ended by signal {signal.Signals(-status).name}", file=sys.stderr)
        sys.exit(128 - status)
    sys.exit(status)


def enter(group):
    """This process, and what it starts from now on, is of that group."""
    with open(os.path.join(group, "cgroup.procs"), "w", encoding="ascii") as file:
        file.write(str(os.getpid()))


def told(process):
    """The kernel's account of a process that has ended and was not waited for yet."""
    try:
        file = os.open(f"/proc/{process}/io", os.O_RDONLY)
    except OSError:
        return None
    try:
        words = os.read(file, 1024).split()
    except OSError:
        return None
    finally:
        os.close(file)
    # `rchar: 323934` and so on, a line each.
    found = [int(word) for word in words[1::2]]
    return found if len(found) == len(ACCOUNTS) else None


def own_peak_bytes():
    """Of this program alone: getrusage would tell that of who started it, too."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        words = next((line.split() for line in file if line.startswith("VmHWM:")), ["", "0"])
    return int(words[1]) * 1024


def left():
    """How many processes of this session still run beside this one: what went to the background."""
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


main(sys.argv[1:])
