"""A program's I/O phases with their power: under a tracer while meters are read, or from stored
traces."""

import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from eeio.errors import RejectedError
from eeio.measure import tracers, writeback
from eeio.measure.drives_of_files import DrivesOfFiles
from eeio.measure.power import check_meters, recorded
from eeio.paths import make_trace_folder
from eeio.record.run import EnergyReading, mark
from eeio.record.windows import known
from eeio.report.documents.traced import Traced
from eeio.traces import account, stored, strace
from eeio.traces.account import Writeback
from eeio.traces.events import Event, Unobserved, find_phases
from eeio_power.monitor import PowerMonitor, open_source
from eeio_power.samples import load as load_samples
from eeio_power.samples import of_unknown_delay, power_over_time


def of_stored(paths: Sequence[Path], names: Sequence[str], gap_s: float) -> Traced:
    """Of files that contain one of the names in their path; of all without names. Phases end at a
    pause of `gap_s`. Raises ToolOutputError."""
    unobserved: set[Unobserved] = set()
    events = stored.read(paths, unobserved)
    mine = wanted(events, names)
    phases = find_phases(mine, gap_s)
    begin_s = min((event.start_s for event in events), default=0.0)
    window = (begin_s, max((event.end_s for event in events), default=0.0))
    return Traced(
        events,
        phases,
        "a stored trace has no power",
        unobserved=_of_files(unobserved, names),
        rows=account.rows_of(phases, mine, window, lambda *_: ()),
    )


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

        def measure(start_s: float, end_s: float) -> tuple[EnergyReading, ...]:
            return tuple(map(known, recorded(power.energy(start_s, end_s))))

        program = _Program(power, tracer, folder)
        power.hasten()
        drives = DrivesOfFiles()
        exit_code, events = tracers.run(
            tracer,
            command,
            folder,
            program,
            to_stderr=to_stderr,
            unobserved=unobserved,
        )
        other_io = drives.notes(events)
        mine = wanted(events, names)
        phases = find_phases(mine, gap_s)
        window = (program.start_s, program.end_s)
        rows = account.rows_of(phases, mine, window, measure, program.writeback)
        energy = {n: measure(phase.start_s, phase.end_s) for n, phase in enumerate(phases)}
    traced = Traced(
        events,
        phases,
        source.reason,
        energy,
        exit_code,
        tracers.OVERHEAD[tracer],
        _of_files(unobserved, names),
        rows,
        of_unknown_delay(power.infos),
        other_io,
    )
    if not source.meters:
        return traced, None
    return traced, samples


class _Program:
    """The time of the program, and the writeback of its files."""

    def __init__(self, power: PowerMonitor, tracer: str, folder: Path) -> None:
        self._power = power
        self._tracer = tracer
        self._folder = folder
        self.start_s = 0.0
        self.end_s = 0.0
        self.writeback: Writeback | None = None

    def start(self) -> None:
        self._power.mark()
        self.start_s = time.monotonic()

    def end(self) -> None:
        self.end_s = time.monotonic()
        self._power.mark()
        if self._tracer != "strace":
            reason = (
                f"{self._tracer}'s trace is not complete right after the end: use --tracer strace"
            )
            self.writeback = Writeback(self.end_s, reason)
            return
        files = strace.opened_to_write(sorted(self._folder.glob("strace.*")))
        self.writeback = writeback.flush(files)
        self._power.mark()


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
    from eeio.report.figures import timeline

    power: dict[str, list[tuple[float, float]]] = {}
    for meter in load_samples(samples).meters if samples is not None else ():
        for of_domain in power_over_time(meter):
            name = f"{mark(meter.info.kind)}{of_domain.domain} ({meter.info.name})"
            pairs = zip(of_domain.times_s, of_domain.watts, strict=True)
            power[name] = [(time_s, watts) for time_s, watts in pairs if watts == watts]
    return timeline.draw(traced.events, traced.phases, power)
