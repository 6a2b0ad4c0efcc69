"""A program's I/O phases with their power: under a tracer while meters are read, or from stored
traces."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from eeio import tracers
from eeio.errors import RejectedError
from eeio.paths import make_trace_folder
from eeio.power import check_meters, recorded
from eeio_power.monitor import PowerMonitor, open_source
from eeio_power.samples import load as load_samples
from eeio_power.samples import power_over_time
from eeio_results.record import mark
from eeio_results.report.traced import Traced
from eeio_results.traces import stored
from eeio_results.traces.events import Event, Unobserved, find_phases
from eeio_results.windows import known


def of_stored(paths: Sequence[Path], names: Sequence[str], gap_s: float) -> Traced:
    """Of files that contain one of the names in their path; of all without names. Phases end at a
    pause of `gap_s`. Raises ToolOutputError."""
    unobserved: set[Unobserved] = set()
    events = stored.read(paths, unobserved)
    return Traced(
        events, find_phases(wanted(events, names), gap_s), "a stored trace has no power",
        unobserved=_of_files(unobserved, names),
    )  # fmt: skip


def of_program(
    command: Sequence[str],
    folder: Path,
    tracer: str,
    meters: Sequence[str],
    names: Sequence[str],
    gap_s: float,
    *,
    to_stderr: bool,
) -> tuple[Traced, Path | None]:
    """Runs the program to its end; returns the file of the meters' samples, too. The program's
    output is shown to the user. Raises RejectedError before anything is started."""
    if shutil.which(command[0]) is None:
        raise RejectedError(f"{command[0]}: no such program")
    check_meters(tuple(meters))
    tracers.check(tracer, folder)
    make_trace_folder(folder)
    source = open_source(tuple(meters), False)
    unobserved: set[Unobserved] = set()
    samples = folder / "power.csv.gz"
    with PowerMonitor(source, samples) as power:
        exit_code, events = tracers.run(
            tracer, command, folder, power.mark, to_stderr=to_stderr, unobserved=unobserved
        )
        phases = find_phases(wanted(events, names), gap_s)
        energy = {
            n: tuple(map(known, recorded(power.energy(phase.start_s, phase.end_s))))
            for n, phase in enumerate(phases)
        }
    traced = Traced(
        events, phases, source.reason, energy, exit_code, tracers.OVERHEAD[tracer],
        _of_files(unobserved, names),
    )  # fmt: skip
    return traced, samples if source.meters else None


def wanted(events: Sequence[Event], names: Sequence[str]) -> list[Event]:
    return [e for e in events if not names or any(name in e.file for name in names)]


def _of_files(unobserved: set[Unobserved], names: Sequence[str]) -> list[Unobserved]:
    """Those of the wanted files, and those whose file is not known, by kind and file."""
    return sorted(
        (u for u in unobserved if not names or not u.file or any(n in u.file for n in names)),
        key=lambda u: (u.kind, u.file or ""),
    )


def timeline_svg(traced: Traced, samples: Path | None) -> str:
    """SVG: bandwidth and power over time. Needs matplotlib."""
    from eeio_results.report import timeline

    power: dict[str, list[tuple[float, float]]] = {}
    for meter in load_samples(samples).meters if samples is not None else ():
        for of_domain in power_over_time(meter):
            name = f"{mark(meter.info.kind)}{of_domain.domain} ({meter.info.name})"
            pairs = zip(of_domain.times_s, of_domain.watts, strict=True)
            power[name] = [(time_s, watts) for time_s, watts in pairs if watts == watts]
    return timeline.draw(traced.events, traced.phases, power)
