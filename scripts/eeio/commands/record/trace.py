"""`eeio record trace`: the I/O phases of an unmodified program, with the power that each took."""

import argparse
import json
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from eeio import terminal, tracers
from eeio.arguments import add_json
from eeio.commands.campaign_folders import analysis
from eeio.errors import EXIT_DONE, EXIT_FAILED, EXIT_SIGNAL_BASE, RejectedError
from eeio.power import check_meters, recorded
from eeio_limits import LimitError, inputs
from eeio_power.monitor import PowerMonitor, open_source
from eeio_power.samples import load as load_samples
from eeio_results.errors import EeioError, ToolOutputError
from eeio_results.record import EnergyReading, mark
from eeio_results.report.columns import number
from eeio_results.report.parts import Table
from eeio_results.report.text import render_table
from eeio_results.traces import bpftrace, darshan, logs, strace
from eeio_results.traces.events import GAP_S, Event, TracePhase, Unobserved, find_phases
from eeio_results.units import MB, format_size, percent
from eeio_results.windows import known

SCHEMA_VERSION = 1
_MOST_FILES = 5


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
    add_json(parser)
    parser.add_argument("words", metavar="-- COMMAND", nargs=argparse.REMAINDER)
    parser.set_defaults(action=trace)


@dataclass(frozen=True)
class _Traced:
    """Events on CLOCK_MONOTONIC where they were taken here, else as their file has them."""

    events: list[Event]
    energy: dict[int, tuple[EnergyReading, ...]]
    exit_code: int
    samples: Path | None
    reason: str | None
    tracer: str | None = None
    """The tracer's effect on the program; None for a stored trace."""
    unobserved: Sequence[Unobserved] = ()
    """I/O with bytes that the trace does not show."""


def trace(arguments: argparse.Namespace) -> int:
    words = arguments.words[1:] if arguments.words[:1] == ["--"] else arguments.words
    if bool(words) == bool(arguments.read):
        raise RejectedError(
            "which program, or which trace? `eeio record trace -- COMMAND`, or --read FILE"
        )
    if not arguments.gap >= 0:
        raise RejectedError(f"--gap {arguments.gap}: --gap is 0 or above, in seconds")
    folder = arguments.output
    if arguments.read:
        unobserved: set[Unobserved] = set()
        events = _read(arguments.read, unobserved)
        traced = _Traced(
            events, {}, 0, None, "a stored trace has no power",
            unobserved=_of_files(unobserved, arguments.file),
        )  # fmt: skip
        phases = find_phases(_wanted(traced.events, arguments.file), arguments.gap)
    else:
        if folder is None:
            folder = Path(f"trace-{datetime.now(UTC):%Y%m%d-%H%M%S}")
        traced, phases = _run(words, folder, arguments)
    body = _to_json(traced, phases)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "phases.json").write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8")
        _draw(traced, phases, folder)
    if not phases and traced.events:
        text = (
            f"none of {len(traced.events)} reads and writes was of a file with "
            f"{' or '.join(arguments.file)} in its path"
        )
    else:
        text = _table(traced, phases)
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
    words: Sequence[str], folder: Path, arguments: argparse.Namespace
) -> tuple[_Traced, list[TracePhase]]:
    """Traces a program while the meters are read; what it printed is the user's to see."""
    if shutil.which(words[0]) is None:
        raise RejectedError(f"{words[0]}: no such program")
    check_meters(tuple(arguments.meter))
    tracers.refuse(arguments.tracer, folder)
    folder.mkdir(parents=True, exist_ok=True)
    source = open_source(tuple(arguments.meter), False)
    unobserved: set[Unobserved] = set()
    samples = folder / "power.csv.gz"
    with PowerMonitor(source, samples) as power:
        exit_code, events = tracers.run(
            arguments.tracer, words, folder, power.mark,
            to_stderr=arguments.format == "json", unobserved=unobserved,
        )  # fmt: skip
        phases = find_phases(_wanted(events, arguments.file), arguments.gap)
        energy = {
            n: tuple(map(known, recorded(power.energy(phase.start_s, phase.end_s))))
            for n, phase in enumerate(phases)
        }
    kept = samples if source.meters else None
    traced = _Traced(
        events, energy, exit_code, kept, source.reason, arguments.tracer,
        _of_files(unobserved, arguments.file),
    )  # fmt: skip
    return traced, phases


def _to_json(traced: _Traced, phases: Sequence[TracePhase]) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "exit_code": traced.exit_code,
        "events": len(traced.events),
        "power_reason": traced.reason,
        "not_observed": [each._asdict() for each in traced.unobserved],
        "phases": [
            {
                **phase.to_json(),
                "energy": [asdict(reading) for reading in traced.energy.get(place, ())],
            }
            for place, phase in enumerate(phases)
        ],
    }


def _table(traced: _Traced, phases: Sequence[TracePhase]) -> str:
    not_observed = _not_observed(traced.unobserved)
    if not phases:
        reason = "no read and no write of a file was observed (pipes, devices and system files "
        return "\n".join((reason + "are left out)", *not_observed))
    begin_s = phases[0].start_s
    rows = []
    for place, phase in enumerate(phases):
        readings = traced.energy.get(place, ())
        span_s = phase.end_s - phase.start_s
        rows.append(
            (
                str(place + 1),
                phase.operation,
                phase.spatiality,
                f"{phase.start_s - begin_s:.3f}",
                f"{span_s:.3f}",
                f"{phase.requests}",
                f"{format_size(phase.request_size_bytes)} ({phase.request_size_share:.0%})",
                number(phase.bytes_moved / MB),
                number(phase.bytes_moved / MB / span_s) if span_s > 0 else "-",
                str(phase.processes),
                _of_domains(readings, lambda r: r.power_w),
                _of_domains(readings, lambda r: r.energy_j),
                _of_domains(readings, partial(_mb_per_j, phase)),
            )
        )
    notes = not_observed + ([f"power: {traced.reason}"] if traced.reason else [])
    notes += [f"power of {why}" for why in _left_out(traced)]
    notes += [f"MB/J of {where}: power excludes the drives" for where in _no_drives(traced)]
    if traced.tracer is not None:
        notes.append(tracers.OVERHEAD[traced.tracer])
    header = (
        "Phase", "Operation", "Spatiality", "Start (s)", "Length (s)", "Requests", "Size (share)",
        "MB", "MB/s", "Processes", "Power (W)", "Energy (J)", "MB/J",
    )  # fmt: skip
    table = Table(
        "I/O phases", header, tuple(rows), frozenset((0, 3, 4, 5, 6, 7, 8, 9)), "\n".join(notes)
    )
    return render_table(table, terminal.width())


def _not_observed(unobserved: Sequence[Unobserved]) -> list[str]:
    """`not observed: bytes of mmap of FILE; io_uring`: what is missing in the figures, if any."""
    files = [each.file for each in unobserved if each.file is not None]
    kinds = [each.kind for each in unobserved if each.file is None]
    if files:
        more = f" and {len(files) - _MOST_FILES} more files" if len(files) > _MOST_FILES else ""
        kinds.append(f"mmap of {', '.join(files[:_MOST_FILES])}{more}")
    return [f"not observed, so its bytes are missing: {'; '.join(kinds)}"] if kinds else []


def _of_domains(
    readings: Sequence[EnergyReading], figure: Callable[[EnergyReading], float | None]
) -> str:
    """`package 12.1 ±1.2 %, dram 2.5`: of each domain with its uncertainty, where it has one."""
    found = []
    for reading in readings:
        value = figure(reading)
        if value is None:
            continue
        words = f"{mark(reading.kind)}{reading.domain} {number(value)}"
        if (share := reading.uncertainty_relative) is not None:
            words += f" ±{percent(share)} %"
        found.append(words)
    return ", ".join(found) or "-"


def _mb_per_j(phase: TracePhase, reading: EnergyReading) -> float | None:
    """None where there is no energy, or too little of the phase was seen for a figure of merit."""
    if not reading.energy_j or reading.why_not_ranked is not None:
        return None
    return phase.bytes_moved / MB / reading.energy_j


def _left_out(traced: _Traced) -> list[str]:
    """Why phases have no power, or a doubtful one, each reason once."""
    return list(
        dict.fromkeys(
            f"{reading.domain} ({reading.meter}): {'doubtful: ' * reading.doubtful}{reason}"
            for readings in traced.energy.values()
            for reading in readings
            if reading.power_w is None or reading.doubtful
            for reason in reading.reasons
        )
    )


def _no_drives(traced: _Traced) -> list[str]:
    """Domains whose power is not that of the storage, each once."""
    every = (reading for readings in traced.energy.values() for reading in readings)
    return list(dict.fromkeys(f"{r.domain} ({r.meter})" for r in every if r.leaves_drives_out))


def _watts_of_counter(samples: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Mean power between samples of an energy counter, at their later time; a step backwards (the
    counter wrapped, or a value is missing) is left out of the picture."""
    return [
        (now_s, (now_j - before_j) / (now_s - before_s))
        for (before_s, before_j), (now_s, now_j) in pairwise(samples)
        if now_s > before_s and now_j >= before_j
    ]


def _draw(traced: _Traced, phases: Sequence[TracePhase], folder: Path) -> None:
    """The time axis; a board without matplotlib keeps what it has measured all the same."""
    if not phases:
        return
    try:
        with analysis():
            from eeio_results.report import timeline
    except EeioError as error:
        print(f"timeline not drawn: {error}", file=sys.stderr)
        return
    power: dict[str, list[tuple[float, float]]] = {}
    if traced.samples is not None:
        for meter in load_samples(traced.samples).meters:
            for channel, values in zip(meter.info.channels, meter.values, strict=True):
                found = list(zip(meter.times_s, values, strict=True))
                if channel.quantity == "energy_j":
                    found = _watts_of_counter(found)
                name = f"{mark(meter.info.kind)}{channel.domain} ({channel.name})"
                power[name] = [(t, v) for t, v in found if v == v]
    (folder / "timeline.svg").write_text(
        timeline.draw(traced.events, phases, power), encoding="utf-8"
    )
    print(f"timeline: {folder / 'timeline.svg'}", file=sys.stderr)
