"""`eeio record trace`: the I/O phases of an unmodified program, with the power that each took."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from eeio.commands.arguments import program_of
from eeio.commands.campaign_folders import analysis
from eeio.commands.output_file import format_option, write_file
from eeio.errors import EXIT_DONE, EXIT_FAILED, EXIT_SIGNAL_BASE, EeioError, RejectedError
from eeio.measure import traced, tracers
from eeio.options import Command, argument, option
from eeio.paths import check_output_folder, make_output_folder
from eeio.report.document import RENDERERS, Document, render_terminal
from eeio.report.documents.traced import Traced, document
from eeio.traces import logs
from eeio.traces.events import GAP_S, transfers
from eeio.units import terminal


@dataclass(frozen=True, kw_only=True)
class TraceRequest:
    """`eeio record trace`."""

    tracer: str = option(
        "--tracer",
        help="bpftrace has less overhead and needs root (default: %(default)s)",
        choices=tracers.NAMES,
        default="strace",
    )
    read: tuple[Path, ...] = option(
        "--read",
        value="FILE",
        help="stored traces to read",
        parse=Path,
        count="+",
    )
    meter: tuple[str, ...] = option(
        "--meter",
        value="SPEC",
        help="power meter, repeatable (default: auto)",
        repeat=True,
    )
    gap: float = option(
        "--gap",
        value="S",
        help="shortest pause that ends a phase (default: %(default)s)",
        parse=float,
        default=GAP_S,
    )
    file: tuple[str, ...] = option(
        "--file",
        value="WORD",
        help="only files whose path contains this text; repeatable",
        repeat=True,
    )
    replay: Path | None = option(
        "--replay",
        value="TRACE.csv",
        help="also write the trace for eeio-dataserver",
        parse=Path,
    )
    output: Path | None = option(
        "-o",
        "--output",
        value="DIR",
        help="output folder (default: trace-TIME)",
        parse=Path,
    )
    format: str = format_option(tuple(RENDERERS))
    words: tuple[str, ...] = argument(
        "-- COMMAND",
        count="...",
    )


def trace(request: TraceRequest) -> int:
    command = program_of(request.words)
    if bool(command) == bool(request.read):
        raise RejectedError(
            "which program, or which trace? `eeio record trace -- COMMAND`, or --read FILE"
        )
    if not request.gap >= 0:
        raise RejectedError(f"--gap {request.gap}: --gap is 0 or above, in seconds")
    if request.replay is not None:
        check_output_folder(request.replay.parent)
    folder, names, samples = request.output, request.file, None
    if request.read:
        try:
            result = traced.of_stored(request.read, names, request.gap)
        except EeioError as error:
            raise RejectedError(str(error)) from error
    else:
        folder = folder or Path(f"trace-{datetime.now(UTC):%Y%m%d-%H%M%S}")
        result, samples = traced.of_program(
            command,
            folder,
            request.tracer,
            request.meter,
            names,
            request.gap,
            to_stderr=request.format != "table",
        )
    answer = document(result, _none_of(result, names))
    body = RENDERERS["json"](answer)
    if folder is not None:
        make_output_folder(folder)
        write_file(folder / "phases.json", body)
        _draw(result, samples, folder / "timeline.svg")
    _show(answer, request.format)
    if request.replay is not None:
        csv = logs.to_csv(traced.wanted(result.events, names))
        write_file(request.replay, csv)
    if result.exit_code < 0:
        return EXIT_SIGNAL_BASE - result.exit_code
    if result.exit_code == 0:
        return EXIT_DONE
    return EXIT_FAILED


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


COMMAND = Command(
    "trace",
    TraceRequest,
    trace,
    help="show the I/O phases of a program with their power",
    description="Runs a program under strace or bpftrace with power measurement. Prints its "
    "I/O phases: operation, access pattern, request sizes, bytes, start and end, and "
    "energy; then the rest and the total. --read reads stored traces instead: strace files, "
    "bpftrace.txt, fio iologs, Darshan logs and DXT text, or time,client,op,offset,length. "
    "I/O by mmap, io_uring or libaio is not observed; the output mentions such I/O.",
)
