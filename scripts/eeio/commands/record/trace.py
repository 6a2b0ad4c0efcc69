"""`eeio record trace`: the I/O phases of an unmodified program, with the power that each took."""

import argparse
import json
import shutil
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from eeio import terminal, tracers
from eeio.arguments import add_format
from eeio.commands.campaign_folders import analysis
from eeio.errors import EXIT_DONE, EXIT_FAILED, EXIT_SIGNAL_BASE, RejectedError
from eeio.power import check_meters, recorded
from eeio_limits import LimitError, inputs
from eeio_power.monitor import PowerMonitor, open_source
from eeio_power.samples import load as load_samples
from eeio_results.errors import EeioError, ToolOutputError
from eeio_results.record import mark
from eeio_results.report.text import render_table
from eeio_results.report.traced import Traced, table, to_json
from eeio_results.traces import bpftrace, darshan, logs, strace
from eeio_results.traces.events import GAP_S, Event, Unobserved, find_phases
from eeio_results.windows import known


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "trace",
        help="show the I/O phases of a program with their power",
        description="Runs a program under strace or bpftrace with power measurement. Prints its "
        "I/O phases: operation, access pattern, request sizes, bytes, start and end, and "
        "energy. --read reads stored traces instead: strace files, bpftrace.txt, fio iologs, "
        "Darshan logs and DXT text, or time,client,op,offset,length. I/O by mmap, io_uring or "
        "libaio is not observed; the output mentions such I/O.",
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
    add_format(parser)
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
    folder = arguments.output
    samples = None
    if arguments.read:
        unobserved: set[Unobserved] = set()
        try:
            events = _read(arguments.read, unobserved)
        except EeioError as error:
            raise RejectedError(str(error)) from error
        phases = find_phases(_wanted(events, arguments.file), arguments.gap)
        traced = Traced(
            events, phases, "a stored trace has no power",
            unobserved=_of_files(unobserved, arguments.file),
        )  # fmt: skip
    else:
        if folder is None:
            folder = Path(f"trace-{datetime.now(UTC):%Y%m%d-%H%M%S}")
        traced, samples = _run(command, folder, arguments)
    body = to_json(traced)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "phases.json").write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8")
        _draw(traced, samples, folder)
    shown = table(traced)
    if not traced.phases and traced.events:
        shown = (
            f"none of {len(traced.events)} reads and writes was of a file with "
            f"{' or '.join(arguments.file)} in its path"
        )
    text = shown if isinstance(shown, str) else render_table(shown, terminal.width())
    print(json.dumps(body, indent=1) if arguments.format == "json" else text)
    if arguments.replay is not None:
        arguments.replay.write_text(
            logs.to_csv(_wanted(traced.events, arguments.file)), encoding="utf-8"
        )
    if traced.exit_code < 0:
        return EXIT_SIGNAL_BASE - traced.exit_code
    return EXIT_DONE if traced.exit_code == 0 else EXIT_FAILED


def _wanted(events: Sequence[Event], names: Sequence[str]) -> list[Event]:
    return [e for e in events if not names or any(name in e.file for name in names)]


def _of_files(unobserved: set[Unobserved], names: Sequence[str]) -> list[Unobserved]:
    """Those of the wanted files, and those whose file is not known, by kind and file."""
    return sorted(
        (u for u in unobserved if not names or not u.file or any(n in u.file for n in names)),
        key=lambda u: (u.kind, u.file or ""),
    )


def _read(paths: Sequence[Path], unobserved: set[Unobserved]) -> list[Event]:
    """Several files are one strace of several processes; one file may be any trace."""
    if len(paths) == 1 and paths[0].suffix == ".darshan":
        return darshan.read(paths[0])
    first = _first_line(paths[0])
    if len(paths) == 1 and bpftrace.is_trace(first):
        events = bpftrace.read(paths[0], unobserved)
    elif len(paths) == 1 and not _is_strace(first):
        return logs.read(paths[0])
    else:
        events = strace.read(paths, unobserved)
    if not events and not unobserved:
        raise ToolOutputError(f"{paths[0]}: no read and no write of a file in it")
    return events


def _first_line(path: Path) -> str:
    try:
        with inputs.open_file(path) as file:
            return file.readline(inputs.TRACE_LINE_BYTES).decode("utf-8", "replace")
    except OSError as error:
        raise RejectedError(f"{path}: {error.strerror}") from error
    except LimitError as error:
        raise RejectedError(f"{path}: {error}") from error


def _is_strace(first: str) -> bool:
    return first[:1].isdigit() and first.partition(" ")[0].count(".") == 1 and "(" in first


def _run(
    command: Sequence[str], folder: Path, arguments: argparse.Namespace
) -> tuple[Traced, Path | None]:
    """Traces a program while the meters are read, whose samples are in the file; what it printed is
    the user's to see."""
    if shutil.which(command[0]) is None:
        raise RejectedError(f"{command[0]}: no such program")
    check_meters(tuple(arguments.meter))
    tracers.check(arguments.tracer, folder)
    folder.mkdir(parents=True, exist_ok=True)
    source = open_source(tuple(arguments.meter), False)
    unobserved: set[Unobserved] = set()
    samples = folder / "power.csv.gz"
    with PowerMonitor(source, samples) as power:
        exit_code, events = tracers.run(
            arguments.tracer, command, folder, power.mark,
            to_stderr=arguments.format == "json", unobserved=unobserved,
        )  # fmt: skip
        phases = find_phases(_wanted(events, arguments.file), arguments.gap)
        energy = {
            n: tuple(map(known, recorded(power.energy(phase.start_s, phase.end_s))))
            for n, phase in enumerate(phases)
        }
    traced = Traced(
        events, phases, source.reason, energy, exit_code, tracers.OVERHEAD[arguments.tracer],
        _of_files(unobserved, arguments.file),
    )  # fmt: skip
    return traced, samples if source.meters else None


def _watts_of_counter(samples: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Mean power between samples of an energy counter, at their later time; a step backwards (the
    counter wrapped, or a value is missing) is left out of the picture."""
    return [
        (now_s, (now_j - before_j) / (now_s - before_s))
        for (before_s, before_j), (now_s, now_j) in pairwise(samples)
        if now_s > before_s and now_j >= before_j
    ]


def _draw(traced: Traced, samples: Path | None, folder: Path) -> None:
    """The time axis; a board without matplotlib keeps what it has measured all the same."""
    if not traced.phases:
        return
    try:
        with analysis():
            from eeio_results.report import timeline
    except EeioError as error:
        print(f"timeline not drawn: {error}", file=sys.stderr)
        return
    power: dict[str, list[tuple[float, float]]] = {}
    if samples is not None:
        for meter in load_samples(samples).meters:
            for channel, values in zip(meter.info.channels, meter.values, strict=True):
                found = list(zip(meter.times_s, values, strict=True))
                if channel.quantity == "energy_j":
                    found = _watts_of_counter(found)
                name = f"{mark(meter.info.kind)}{channel.domain} ({channel.name})"
                power[name] = [(t, v) for t, v in found if v == v]
    (folder / "timeline.svg").write_text(
        timeline.draw(traced.events, traced.phases, power), encoding="utf-8"
    )
    print(f"timeline: {folder / 'timeline.svg'}", file=sys.stderr)
