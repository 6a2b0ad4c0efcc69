"""`eeio frequency`: what the processors can be set to, and a program run at one frequency."""

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path

from eeio.commands.restore import restore_orphans
from eeio.errors import EXIT_DONE, EXIT_FAILED, EXIT_SIGNAL_BASE, RefusedError
from eeio.signals import signals_raise
from eeio.target import frequency as frequencies
from eeio.target.frequency import Processors
from eeio.target.lock import TargetLock
from eeio.target.undo import Entry, UndoJournal, end_group, start_ticks

SCHEMA_VERSION = 1

_ENDS = ("lowest", "highest")

# Becomes the program once it is noted in the journal; nothing when we end before that. What Python
# ignores at its start the program must not be born with.
_GATE = """
import os, signal, sys
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


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "frequency",
        help="the processors' frequencies, or a program at one of them",
        description="Lists what the processors can be set to. With --set, runs a program with all "
        "of them at one frequency, turbo and SMT off, and puts everything back however it ends "
        "(`eeio restore` does after SIGKILL).",
    )
    parser.add_argument(
        "--set", metavar="HZ", dest="wanted", help="1.6GHz, 1600MHz, 1600000000, lowest or highest"
    )
    parser.add_argument(
        "--sysfs-root", metavar="DIR", type=Path, default=Path("/"),
        help="another tree than /, to try it out",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="JSON on standard output")
    parser.add_argument("words", metavar="-- COMMAND", nargs=argparse.REMAINDER)
    parser.set_defaults(action=frequency)


def frequency(arguments: argparse.Namespace) -> int:
    words = arguments.words[1:] if arguments.words[:1] == ["--"] else arguments.words
    root = arguments.sysfs_root.resolve()
    if bool(words) != (arguments.wanted is not None):
        raise RefusedError("a frequency and a program go together: --set HZ -- COMMAND")
    if not words:
        found = frequencies.describe(root)
        print(_to_json(found) if arguments.json else _lines(found))
        return EXIT_DONE
    wanted_hz = None if arguments.wanted in _ENDS else frequencies.parse_hz(arguments.wanted)
    if shutil.which(words[0]) is None:
        raise RefusedError(f"{words[0]}: no such program")
    with TargetLock("processor-frequency") if root == Path("/") else nullcontext():
        restore_orphans()  # what a killed run left would be taken for the beginning
        if wanted_hz is not None:
            frequencies.check_reachable(wanted_hz, root)
        return _run(words, arguments.wanted, wanted_hz, root, arguments.json)


def _run(words: Sequence[str], name: str, wanted_hz: int | None, root: Path, as_json: bool) -> int:
    journal = UndoJournal()
    with signals_raise("what was changed is put back"):
        try:
            try:
                frequencies.prepare(journal, root)
                if wanted_hz is None:
                    # Only now: with turbo off the highest may be another one.
                    wanted_hz = frequencies.steps_hz(root)[0 if name == "lowest" else -1]
                frequencies.set_frequency(wanted_hz, journal, root)
                achieved = frequencies.verify(wanted_hz, root)
                print(f"eeio: {achieved.words}", file=sys.stderr)
                exit_code = _call(words, journal, as_json)
            finally:
                journal.undo_all()
        finally:
            # A signal raises once: what it kept from being put back is put back here.
            failures = journal.undo_all()
            for failure in failures:
                message = f"eeio: could not put back: {failure}; `eeio restore` tries again"
                print(message, file=sys.stderr)
    if as_json:
        body = {"schema_version": SCHEMA_VERSION, **asdict(achieved), "exit_code": exit_code}
        print(json.dumps(body, indent=1))
    if exit_code < 0:
        return EXIT_SIGNAL_BASE - exit_code
    return EXIT_DONE if exit_code == 0 and not failures else EXIT_FAILED


def _call(words: Sequence[str], journal: UndoJournal, as_json: bool) -> int:
    """Runs the program in a group of its own, which `eeio restore` can end: it must not go on at
    another frequency than the one it was started with. What it prints is the user's to see."""
    gate, opened = os.pipe()
    try:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _GATE, str(gate), *words],
            start_new_session=True,
            pass_fds=(gate,),
            stdout=sys.stderr if as_json else None,
        )
        entry = Entry("process", str(process.pid), str(start_ticks(process.pid) or 0))
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


def _to_json(found: Processors) -> str:
    return json.dumps({"schema_version": SCHEMA_VERSION, **asdict(found)}, indent=1)


def _lines(found: Processors) -> str:
    return "\n".join(
        (
            f"driver:    {found.driver}",
            f"governor:  {', '.join(found.governors)}",
            f"steps:     {' '.join(f'{hz / 1e9:.6g}' for hz in found.steps_hz)} GHz",
            f"turbo:     {found.turbo or 'unknown: no switch is shown'}",
            f"SMT:       {found.smt or 'unknown: no switch is shown'}",
            f"policies:  {found.policies}",
        )
    )
