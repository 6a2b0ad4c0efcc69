"""A user's own program, run for the length of a command that changes settings or traces."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

from eeio.machine.owner import start_ticks
from eeio.machine.undo import UndoEntry, UndoJournal, end_group, mark

GATE = """
import os, signal, sys, warnings
gate = int(sys.argv[1])
if os.read(gate, 1):
    os.close(gate)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    try:
        os.execvp(sys.argv[2], sys.argv[2:])
    except OSError as error:
        sys.exit(f"eeio: {sys.argv[2]}: {error.strerror}")
"""
"""Becomes the program once a byte comes (it is noted in the journal, the tracer is ready); exits
when we end before that. What Python ignores at its start the program must not be born with. execvp
imports warnings: here already, so that no tracer sees it."""


def run(
    command: Sequence[str],
    journal: UndoJournal,
    *,
    to_stderr: bool,
    environment: Mapping[str, str] | None = None,
) -> int:
    """Runs a program in a group of its own and waits for it; its exit code, or -N after signal N.

    However we end, `eeio doctor restore` can end the group: the program must not go on under
    settings that are put back. What it prints is the user's to see, on standard error where
    `to_stderr` keeps standard output for us.
    """
    gate, opened = os.pipe()
    try:
        output = None
        if to_stderr:
            output = sys.stderr
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", GATE, str(gate), *command],
            start_new_session=True,
            pass_fds=(gate,),
            env={**(os.environ if environment is None else environment), **mark()},
            stdout=output,
        )
        entry = UndoEntry("process", str(process.pid), str(start_ticks(process.pid) or 0))
        journal.add(entry)
        os.write(opened, b".")
    finally:
        os.close(gate)
        os.close(opened)
    try:
        exit_code = process.wait()
    finally:
        if process.poll() is None:
            end_group(process.pid)
            process.wait()
    journal.forget(entry)
    return exit_code
