"""`eeio record journal`: ext4 journal commits during a program, and the calls they delay."""

import argparse
import json
import math
import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from eeio import foreground, terminal
from eeio.arguments import add_format
from eeio.errors import EXIT_DONE, EXIT_FAILED, EXIT_SIGNAL_BASE, RejectedError
from eeio.journal import delayjc
from eeio.journal.trace import JournalTracer, find_ext4, read_transactions
from eeio.signals import signals_raise
from eeio.system.undo import UndoJournal
from eeio_results import studies
from eeio_results.errors import EeioError
from eeio_results.report.columns import number
from eeio_results.report.parts import Table
from eeio_results.report.text import render_table
from eeio_results.traces import jbd2
from eeio_results.traces.journal_waits import Commits, FileTask, blocking_of, file_tasks

SCHEMA_VERSION = 1
_TRACE = "journal.gz"


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "journal",
        help="trace ext4 journal commits and the calls they block",
        description="Runs a program and traces the journal of one ext4 file system: commit "
        "times, the writes and fsync calls that wait for each commit, and a model of their "
        "time. Needs root. --delayjc delays fsync calls, so that one commit serves many.",
    )
    parser.add_argument(
        "--directory", metavar="DIR", type=Path, default=Path(),
        help="trace the file system of DIR (default: here)",
    )  # fmt: skip
    parser.add_argument(
        "--counters", metavar="STATE", type=Path,
        help="only print the counters in this state file of libdelayjc.so",
    )  # fmt: skip
    parser.add_argument("--read", metavar="FILE", type=Path, help="read a stored trace")
    parser.add_argument(
        "--without-sync", action="store_true",
        help="the program times its writes without fsync (IOzone without -e)",
    )  # fmt: skip
    parser.add_argument(
        "--commits-only", action="store_true",
        help="trace no system calls: lower cost, no waiting times",
    )  # fmt: skip
    parser.add_argument("--delayjc", action="store_true", help="delay fsync calls in a window")
    parser.add_argument(
        "--window", metavar="MS", type=float, default=1.0,
        help="delay window; each fsync call restarts it (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--max-resets",
        metavar="N",
        type=int,
        default=64,
        help="maximum restarts of a window (default: %(default)s)",
    )
    parser.add_argument(
        "--no-flush-first", action="store_true", help="delay before writing the file's data"
    )
    parser.add_argument(
        "-o", "--output", metavar="DIR", type=Path, help="output folder (default: journal-TIME)"
    )
    add_format(parser)
    parser.add_argument("words", metavar="-- COMMAND", nargs=argparse.REMAINDER)
    parser.set_defaults(action=journal)


@dataclass(frozen=True)
class _Traced:
    trace: jbd2.JournalTrace
    exit_code: int
    jbd2_transactions: int | None
    delays: delayjc.Counters | None


def journal(arguments: argparse.Namespace) -> int:
    command = arguments.words[1:] if arguments.words[:1] == ["--"] else arguments.words
    if arguments.counters is not None:
        counters = delayjc.read_counters(arguments.counters)
        print(json.dumps({**asdict(counters), "total": asdict(counters.total)}, indent=1))
        return EXIT_DONE
    if bool(command) == bool(arguments.read):
        raise RejectedError(
            "which program, or which trace? `eeio record journal -- COMMAND`, or --read FILE"
        )
    if arguments.read:
        try:
            traced = _Traced(jbd2.load(arguments.read), 0, None, None)
        except EeioError as error:
            raise RejectedError(str(error)) from error
    else:
        traced = _run(command, arguments)
    body = _to_json(traced, not arguments.without_sync)
    print(json.dumps(body, indent=1) if arguments.format == "json" else _table(traced, body))
    if traced.exit_code < 0:
        return EXIT_SIGNAL_BASE - traced.exit_code
    return EXIT_DONE if traced.exit_code == 0 else EXIT_FAILED


def _run(command: Sequence[str], arguments: argparse.Namespace) -> _Traced:
    program = shutil.which(command[0])
    if program is None:
        raise RejectedError(f"{command[0]}: no such program")
    if os.geteuid() != 0:
        raise RejectedError("not traced: tracing the journal needs root")
    try:
        target = find_ext4(arguments.directory)
    except EeioError as error:
        raise RejectedError(f"not traced: {error}") from error
    folder: Path = arguments.output or Path(f"journal-{datetime.now(UTC):%Y%m%d-%H%M%S}")
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / _TRACE).exists():
        raise RejectedError(f"{folder}: contains a trace; name another with -o")
    environment = dict(os.environ)
    state: Path | None = None
    if arguments.delayjc:
        # Absolute: of `./su` Path leaves `su`, which is another program in PATH.
        reason = delayjc.cannot_preload(Path(program).absolute())
        if reason is not None:
            raise RejectedError(f"--delayjc: {reason}")
        if not 0 < arguments.window < math.inf:
            raise RejectedError(
                f"--window {arguments.window:g}: a number of milliseconds is wanted"
            )
    undo = UndoJournal()
    before = read_transactions(target)
    with signals_raise("the trace was removed"), ExitStack() as stack:
        stack.callback(undo.undo_all)
        if arguments.delayjc:
            state = stack.enter_context(delayjc.state_file(undo))
            environment |= delayjc.settings(
                state,
                window_us=round(arguments.window * 1e3),
                max_resets=arguments.max_resets,
                flush_first=not arguments.no_flush_first,
            )
        calls = not arguments.commits_only
        with JournalTracer(target, folder / _TRACE, undo, calls=calls) as trace:
            # Children of this very thread are traced, but no processes that they started before.
            trace.follow(os.getpid())
            exit_code = foreground.run(
                command, undo, to_stderr=arguments.format == "json", environment=environment
            )
            trace.unfollow()
        after = read_transactions(target)
        delays = delayjc.read_counters(state) if state else None
    transactions = None if before is None or after is None else after - before
    return _Traced(jbd2.load(folder / _TRACE), exit_code, transactions, delays)


def _to_json(traced: _Traced, includes_sync: bool) -> dict[str, Any]:
    trace = traced.trace
    commits = Commits(trace.commits)
    reason = _why_no_metrics(trace)
    return {
        "schema_version": SCHEMA_VERSION,
        "exit_code": traced.exit_code,
        "device": trace.header.get("device"),
        "overruns": trace.overruns,
        "jbd2_transactions": traced.jbd2_transactions,
        # A trace with holes would name wrong commits.
        "reason": reason,
        "metrics": {} if reason else _metrics(trace, includes_sync),
        "delayjc": asdict(traced.delays) if traced.delays else None,
        "commits": [asdict(commit) for commit in trace.commits],
        "fast_commits": len(trace.fast_commits),
        "files": [_file(task, commits) for task in file_tasks(trace.calls)],
    }


def _figures() -> list[studies.JournalFigures]:
    return [study.journal for study in studies.every().values() if study.journal is not None]


def _metrics(trace: jbd2.JournalTrace, includes_sync: bool) -> dict[str, float]:
    """Analysis of a trace by the studies of the journal."""
    found: dict[str, float] = {}
    for figures in _figures():
        found |= figures.of_trace(trace, includes_sync)
    return found


def _file(task: FileTask, commits: Commits) -> dict[str, Any]:
    """One thread's work on one file: its writes, and the fsync with the commit that served both."""
    case = blocking_of(task, commits) if task.writes else None
    return {
        "task": task.task,
        "bytes": task.bytes_moved,
        "writes": [
            {"start_s": call.start_s, "end_s": call.end_s, "bytes": call.result}
            for call in task.writes
        ],
        "class": case.kind if case else None,
        "held_s": case.held_s if case else None,
        "syncs": [
            {"start_s": call.start_s, "end_s": call.end_s, "commit": call.commit}
            for call in task.syncs
        ],
        "durable_s": task.synced_s,
    }


def _why_no_metrics(trace: jbd2.JournalTrace) -> str | None:
    if trace.overruns:
        return f"{trace.overruns} events are missing: trace a shorter run"
    if not trace.calls:
        return "no system call was traced"
    on_device = [call for call in trace.calls if call.on_device]
    if not on_device:
        return "no traced task called fsync on this file system"
    syncs = [call for call in on_device if call.name in jbd2.SYNCS]
    if not syncs:
        return "written with O_SYNC or O_DSYNC, without an fsync: such writes have no figures"
    if all(call.result != 0 for call in syncs):
        return "every fsync on this file system failed"
    return None


def _delayed(total: delayjc.DelayedCalls) -> str:
    if total.calls == 0:
        return "libdelayjc.so delayed no call; the program that calls fsync may be static or setuid"
    return f"libdelayjc.so delayed {total.calls} calls in {total.windows} windows"


def _table(traced: _Traced, body: Mapping[str, Any]) -> str:
    labels = {key: label for figures in _figures() for key, label in figures.labels.items()}
    rows = [
        (labels[key][0], number(value * labels[key][1]))
        for key, value in body["metrics"].items()
        if key in labels
    ]
    notes = [f"device {body['device']}, {len(traced.trace.commits)} commits in the trace"]
    if traced.jbd2_transactions is not None:
        notes.append(f"jbd2's counter shows {traced.jbd2_transactions}")
    if traced.delays is not None:
        notes.append(_delayed(traced.delays.total))
    if body["reason"]:
        notes.append(body["reason"])
    table = Table("Journal", ("Figure", "Value"), tuple(rows), frozenset((1,)), "; ".join(notes))
    return render_table(table, terminal.width())
