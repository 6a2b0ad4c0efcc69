"""ext4's journal during a program, or in a stored trace: its commits, and the calls they delay."""

import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from eeio import studies
from eeio.errors import EeioError, RejectedError
from eeio.machine.undo import UndoJournal
from eeio.measure import foreground
from eeio.measure.journal import delayjc
from eeio.measure.journal.trace import JournalTracer, find_ext4, read_transactions
from eeio.measure.signals import signals_raise
from eeio.paths import make_trace_folder
from eeio.report.table_and_plot import Table
from eeio.traces import jbd2
from eeio.traces.journal_waits import Commits, FileTask, blocking_of, file_tasks
from eeio.units.number_text import number

SCHEMA_VERSION = 1
_TRACE = "journal.gz"


@dataclass(frozen=True)
class Traced:
    """A trace; of a program that ran here also its exit code, the number of transactions that jbd2
    itself counted, and the delayed calls if there were to be any."""

    trace: jbd2.JournalTrace
    exit_code: int = 0
    jbd2_transactions: int | None = None
    delays: delayjc.Counters | None = None


@dataclass(frozen=True)
class Delay:
    """How libdelayjc.so delays the calls of fsync (journal/delayjc.py)."""

    window_us: int
    max_resets: int
    flush_first: bool


def of_program(
    command: Sequence[str],
    directory: Path,
    folder: Path | None,
    delay: Delay | None,
    *,
    calls: bool,
    to_stderr: bool,
) -> Traced:
    """Runs the program and traces the file system of `directory` into `folder`. `calls`: also the
    system calls. Raises RejectedError before anything is started."""
    program = shutil.which(command[0])
    if program is None:
        raise RejectedError(f"{command[0]}: no such program")
    if os.geteuid() != 0:
        raise RejectedError("not traced: tracing the journal needs root")
    try:
        target = find_ext4(directory)
    except EeioError as error:
        raise RejectedError(f"not traced: {error}") from error
    folder = folder or Path(f"journal-{datetime.now(UTC):%Y%m%d-%H%M%S}")
    make_trace_folder(folder)
    if (folder / _TRACE).exists():
        raise RejectedError(f"{folder}: contains a trace; name another with -o")
    if delay is not None:
        # Absolute: of `./su` Path leaves `su`, which is another program in PATH.
        reason = delayjc.cannot_preload(Path(program).absolute())
        if reason is not None:
            raise RejectedError(f"--delayjc: {reason}")
    environment = dict(os.environ)
    undo = UndoJournal()
    before = read_transactions(target)
    with signals_raise("the trace was removed"), ExitStack() as stack:
        stack.callback(undo.undo_all)
        state: Path | None = None
        if delay is not None:
            state = stack.enter_context(delayjc.state_file(undo))
            environment |= delayjc.settings(
                state, delay.window_us, delay.max_resets, delay.flush_first
            )
        with JournalTracer(target, folder / _TRACE, undo, calls=calls) as trace:
            # Children of this very thread are traced, but no processes that they started before.
            trace.follow(os.getpid())
            exit_code = foreground.run(command, undo, to_stderr=to_stderr, environment=environment)
            trace.unfollow()
        after = read_transactions(target)
        delays = None
        if state:
            delays = delayjc.read_counters(state)
    transactions = None
    if before is not None and after is not None:
        transactions = after - before
    return Traced(jbd2.load(folder / _TRACE), exit_code, transactions, delays)


def to_json(traced: Traced, includes_sync: bool) -> dict[str, Any]:
    """The body of `eeio record journal --format json`. `includes_sync`: the program's times of its
    writes include its fsync."""
    trace = traced.trace
    commits = Commits(trace.commits)
    reason = _why_no_metrics(trace)
    metrics: dict[str, float] = {}
    if not reason:
        metrics = _metrics(trace, includes_sync)
    delays = None
    if traced.delays:
        delays = asdict(traced.delays)
    return {
        "schema_version": SCHEMA_VERSION,
        "exit_code": traced.exit_code,
        "device": trace.header.get("device"),
        "overruns": trace.overruns,
        "has_journal": trace.header.get("journal") != "none",
        "jbd2_transactions": traced.jbd2_transactions,
        # A trace with holes would name wrong commits.
        "reason": reason,
        "metrics": metrics,
        "delayjc": delays,
        "commits": [asdict(commit) for commit in trace.commits],
        "fast_commits": len(trace.fast_commits),
        "files": [_file(task, commits) for task in file_tasks(trace.calls)],
    }


def _figures() -> list[studies.JournalFigures]:
    return [study.journal for study in studies.every().values() if study.journal is not None]


def _metrics(trace: jbd2.JournalTrace, includes_sync: bool) -> dict[str, float]:
    """Analysis of a trace by the studies of the journal."""
    metrics: dict[str, float] = {}
    for figures in _figures():
        metrics |= figures.of_trace(trace, includes_sync)
    return metrics


def _file(task: FileTask, commits: Commits) -> dict[str, Any]:
    """One thread's work on one file: its writes, and the fsync with the commit that served both."""
    case = None
    if task.writes:
        case = blocking_of(task, commits)
    kind, held_s = None, None
    if case:
        kind, held_s = case.kind, case.held_s
    return {
        "task": task.task,
        "bytes": task.bytes_moved,
        "writes": [
            {"start_s": call.start_s, "end_s": call.end_s, "bytes": call.result}
            for call in task.writes
        ],
        "class": kind,
        "held_s": held_s,
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


def table(traced: Traced, body: Mapping[str, Any]) -> Table:
    """The metrics of `to_json`'s body; its note has the counters, and why there are no metrics."""
    labels = {key: label for figures in _figures() for key, label in figures.labels.items()}
    rows = [
        (labels[key][0], number(value * labels[key][1]))
        for key, value in body["metrics"].items()
        if key in labels
    ]
    notes = [f"device {body['device']}, {len(traced.trace.commits)} commits in the trace"]
    if not body["has_journal"]:
        notes.append("this ext4 has no journal: no commit can block a call")
    if traced.jbd2_transactions is not None:
        notes.append(f"jbd2's counter shows {traced.jbd2_transactions}")
    if traced.delays is not None:
        notes.append(_delayed(traced.delays.total))
    if body["reason"]:
        notes.append(body["reason"])
    return Table("Journal", ("Figure", "Value"), tuple(rows), frozenset((1,)), "; ".join(notes))
