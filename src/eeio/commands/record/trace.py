"""`eeio record trace`: the I/O phases of an unmodified program, with the power that each took."""

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from eeio.commands.arguments import add_format
from eeio.commands.campaign_folders import analysis
from eeio.commands.output_file import write_file
from eeio.errors import EXIT_DONE, EXIT_FAILED, EXIT_SIGNAL_BASE, EeioError, RejectedError
from eeio.measure import traced, tracers
from eeio.paths import check_output_folder, make_output_folder
from eeio.report.document import RENDERERS, Document, render_terminal
from eeio.report.documents.traced import Traced, document
from eeio.traces import logs
from eeio.traces.events import GAP_S, transfers
from eeio.units import terminal


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "trace",
        help="show the I/O phases of a program with their power",
        description="Runs a program under strace or bpftrace with power measurement. Prints its "
        "I/O phases: operation, access pattern, request sizes, bytes, start and end, and "
        "energy; then the rest and the total. --read reads stored traces instead: strace files, "
        "bpftrace.txt, fio iologs, Darshan logs and DXT text, or time,client,op,offset,length. "
        "I/O by mmap, io_uring or libaio is not observed; the output mentions such I/O.",
    )
    parser.add_argument(
        "--tracer", choices=tracers.NAMES, default="strace",
        help="bpftrace has less overhead and needs root (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--read", metavar="FILE", type=Path, nargs="+", help="stored traces to read"
    )
    parser.add_argument(
        "--meter",
        metavar="SPEC",
        action="append",
        default=[],
        help="power meter, repeatable (default: auto)",
    )
    parser.add_argument(
        "--gap", metavar="S", type=float, default=GAP_S,
        help="shortest pause that ends a phase (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--file", metavar="WORD", action="append", default=[],
        help="only files whose path contains this text; repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--replay", metavar="TRACE.csv", type=Path, help="also write the trace for eeio-dataserver"
    )
    parser.add_argument(
        "-o", "--output", metavar="DIR", type=Path, help="output folder (default: trace-TIME)"
    )
    add_format(parser, tuple(RENDERERS))
    parser.add_argument("words", metavar="-- COMMAND", nargs=argparse.REMAINDER)
    parser.set_defaults(action=trace)


def trace(arguments: argparse.Namespace) -> int:
    command = arguments.words[1:] if arguments.words[:1] == ["--"] else arguments.words
    if bool(command) == bool(arguments.read):
        raise RejectedError(
            "which program, or which trace? `eeio record trace -- COMMAND`, or --read FILE"
        )
    if not arguments.gap >= 0:
        raise RejectedError(f"--gap {arguments.gap}: --gap is 0 or above, in seconds")
    if arguments.replay is not None:
        check_output_folder(arguments.replay.parent)
    folder, names, samples = arguments.output, arguments.file, None
    if arguments.read:
        try:
            found = traced.of_stored(arguments.read, names, arguments.gap)
        except EeioError as error:
            raise RejectedError(str(error)) from error
    else:
        folder = folder or Path(f"trace-{datetime.now(UTC):%Y%m%d-%H%M%S}")
        found, samples = traced.of_program(
            command, folder, arguments.tracer, arguments.meter, names, arguments.gap,
            to_stderr=arguments.format != "table",
        )  # fmt: skip
    answer = document(found, _none_of(found, names))
    body = RENDERERS["json"](answer)
    if folder is not None:
        make_output_folder(folder)
        write_file(folder / "phases.json", body)
        _draw(found, samples, folder / "timeline.svg")
    _show(answer, arguments.format)
    if arguments.replay is not None:
        csv = logs.to_csv(traced.wanted(found.events, names))
        write_file(arguments.replay, csv)
    if found.exit_code < 0:
        return EXIT_SIGNAL_BASE - found.exit_code
    return EXIT_DONE if found.exit_code == 0 else EXIT_FAILED


def _none_of(found: Traced, names: Sequence[str]) -> str | None:
    """That I/O was observed, and none of the wanted files."""
    moved = transfers(found.events)
    if found.phases or not moved:
        return None
    return (
        f"none of {len(moved)} reads and writes was of a file with {' or '.join(names)} in its path"
    )


def _show(answer: Document, format_: str) -> None:
    """-o is a folder here, so the answer goes to standard output."""
    if format_ == "table":
        text = render_terminal(answer, terminal.width())
    elif format_ == "html":
        with analysis():
            text = RENDERERS["html"](answer)
    else:
        text = RENDERERS[format_](answer)
    print(text, end="")


def _draw(found: Traced, samples: Path | None, path: Path) -> None:
    """A board without matplotlib keeps its measurement all the same."""
    if not found.phases:
        return
    try:
        with analysis():
            write_file(path, traced.timeline_svg(found, samples))
    except EeioError as error:
        print(f"timeline not drawn: {error}", file=sys.stderr)
        return
    print(f"timeline: {path}", file=sys.stderr)
