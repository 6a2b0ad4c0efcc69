"""`eeio record journal`: ext4 journal commits during a program, and the calls they delay."""

import argparse
import json
import math
from dataclasses import asdict
from pathlib import Path

from eeio.commands.arguments import OptionGroup, add_format, add_help_all
from eeio.errors import EXIT_DONE, EXIT_FAILED, EXIT_SIGNAL_BASE, EeioError, RejectedError
from eeio.measure.journal import delayjc, program
from eeio.report.text import render_table
from eeio.traces import jbd2
from eeio.units import terminal


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
    experts = OptionGroup(parser)
    experts.rare(
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
    experts.rare(
        "--window", metavar="MS", type=float, default=1.0,
        help="delay window; each fsync call restarts it (default: %(default)s)",
    )  # fmt: skip
    experts.rare(
        "--max-resets",
        metavar="N",
        type=int,
        default=64,
        help="maximum restarts of a window (default: %(default)s)",
    )
    experts.rare(
        "--no-flush-first", action="store_true", help="delay before writing the file's data"
    )
    parser.add_argument(
        "-o", "--output", metavar="DIR", type=Path, help="output folder (default: journal-TIME)"
    )
    add_format(parser)
    add_help_all(parser)
    parser.add_argument("words", metavar="-- COMMAND", nargs=argparse.REMAINDER)
    parser.set_defaults(action=journal)


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
            traced = program.Traced(jbd2.load(arguments.read))
        except EeioError as error:
            raise RejectedError(str(error)) from error
    else:
        traced = program.of_program(
            command,
            arguments.directory,
            arguments.output,
            _delay(arguments),
            calls=not arguments.commits_only,
            to_stderr=arguments.format == "json",
        )
    body = program.to_json(traced, not arguments.without_sync)
    if arguments.format == "json":
        print(json.dumps(body, indent=1))
    else:
        print(render_table(program.table(traced, body), terminal.width()))
    if traced.exit_code < 0:
        return EXIT_SIGNAL_BASE - traced.exit_code
    return EXIT_DONE if traced.exit_code == 0 else EXIT_FAILED


def _delay(arguments: argparse.Namespace) -> program.Delay | None:
    if not arguments.delayjc:
        return None
    if not 0 < arguments.window < math.inf:
        raise RejectedError(f"--window {arguments.window:g}: a number of milliseconds is wanted")
    return program.Delay(
        round(arguments.window * 1e3), arguments.max_resets, not arguments.no_flush_first
    )
