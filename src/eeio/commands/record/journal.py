"""`eeio record journal`: ext4 journal commits during a program, and the calls they delay."""

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path

from eeio.commands.arguments import program_of
from eeio.commands.output_file import format_option
from eeio.errors import EXIT_DONE, EXIT_FAILED, EXIT_SIGNAL_BASE, EeioError, RejectedError
from eeio.measure.journal import delayjc, program
from eeio.options import Command, argument, option, switch
from eeio.report.text import render_table
from eeio.traces import jbd2
from eeio.units import terminal


@dataclass(frozen=True, kw_only=True)
class JournalRequest:
    """`eeio record journal`."""

    directory: Path = option(
        "--directory",
        value="DIR",
        help="trace the file system of DIR (default: here)",
        parse=Path,
        default=Path(),
    )
    counters: Path | None = option(
        "--counters",
        value="STATE",
        help="only print the counters in this state file of libdelayjc.so",
        parse=Path,
        rare=True,
    )
    read: Path | None = option(
        "--read",
        value="FILE",
        help="read a stored trace",
        parse=Path,
    )
    without_sync: bool = switch(
        "--without-sync",
        help="the program times its writes without fsync (IOzone without -e)",
    )
    commits_only: bool = switch(
        "--commits-only",
        help="trace no system calls: lower cost, no waiting times",
    )
    delayjc: bool = switch(
        "--delayjc",
        help="delay fsync calls in a window",
    )
    window: float = option(
        "--window",
        value="MS",
        help="delay window; each fsync call restarts it (default: %(default)s)",
        parse=float,
        default=1.0,
        rare=True,
    )
    max_resets: int = option(
        "--max-resets",
        value="N",
        help="maximum restarts of a window (default: %(default)s)",
        parse=int,
        default=64,
        rare=True,
    )
    no_flush_first: bool = switch(
        "--no-flush-first",
        help="delay before writing the file's data",
        rare=True,
    )
    output: Path | None = option(
        "-o",
        "--output",
        value="DIR",
        help="output folder (default: journal-TIME)",
        parse=Path,
    )
    format: str = format_option()
    words: tuple[str, ...] = argument(
        "-- COMMAND",
        count="...",
    )


def journal(request: JournalRequest) -> int:
    command = program_of(request.words)
    if request.counters is not None:
        counters = delayjc.read_counters(request.counters)
        print(json.dumps({**asdict(counters), "total": asdict(counters.total)}, indent=1))
        return EXIT_DONE
    if bool(command) == bool(request.read):
        raise RejectedError(
            "which program, or which trace? `eeio record journal -- COMMAND`, or --read FILE"
        )
    if request.read:
        try:
            traced = program.Traced(jbd2.load(request.read))
        except EeioError as error:
            raise RejectedError(str(error)) from error
    else:
        traced = program.of_program(
            command,
            request.directory,
            request.output,
            _delay(request),
            calls=not request.commits_only,
            to_stderr=request.format == "json",
        )
    body = program.to_json(traced, not request.without_sync)
    if request.format == "json":
        print(json.dumps(body, indent=1))
    else:
        print(render_table(program.table(traced, body), terminal.width()))
    if traced.exit_code < 0:
        return EXIT_SIGNAL_BASE - traced.exit_code
    if traced.exit_code == 0:
        return EXIT_DONE
    return EXIT_FAILED


def _delay(request: JournalRequest) -> program.Delay | None:
    if not request.delayjc:
        return None
    if not 0 < request.window < math.inf:
        raise RejectedError(f"--window {request.window:g}: a number of milliseconds is wanted")
    return program.Delay(
        round(request.window * 1e3), request.max_resets, not request.no_flush_first
    )


COMMAND = Command(
    "journal",
    JournalRequest,
    journal,
    help="trace ext4 journal commits and the calls they block",
    description="Runs a program and traces the journal of one ext4 file system: commit "
    "times, the writes and fsync calls that wait for each commit, and a model of their "
    "time. Needs root. --delayjc delays fsync calls, so that one commit serves many.",
)
