"""`eeio import power NAME LOG`: the energy of a stored campaign from a power log that came later.

The windows of eeio's own runs are in their records. Those of an imported campaign are in the files
that it was imported from, which are read again. The records before are kept in the campaign's
folder, and its raw outputs are not touched.
"""

import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from eeio import paths
from eeio.errors import RejectedError
from eeio.exchange.importing.files import found
from eeio.exchange.importing.idle_of_logs import IdleOfLogs, idle_of_logs, is_measured
from eeio.exchange.importing.power_of_results import (
    UsedLog,
    Window,
    add_power,
    energy_of,
    pairs_of,
    used_logs,
)
from eeio.exchange.importing.rows import campaigns, source_of
from eeio.measure.campaign.runner import store_lock
from eeio.measure.power import idle_medians
from eeio.record.design import Design
from eeio.record.run import EnergyReading, Phase, Run
from eeio.record.store import Campaign, Store, load
from eeio_parsers.rules import FoundFile
from eeio_power.energy import energy_in_parts

_CLOCK_WITHIN_S = 0.01
"""Records have the start of a run in ms of the machine's clock, which may be slewed during it."""
_RAN_BESIDE = "it ran with --share-machine, and its records do not report when other campaigns ran"

Readings = tuple[EnergyReading, ...]


@dataclass(frozen=True)
class Added:
    """What was added to a campaign: `phases` have energy of the logs now, `without` is the reason
    -> phases that have none. `folder` has the records, `before` those from before (None: a dry
    run, or nothing changed)."""

    name: str
    folder: Path
    phases: int
    without: Mapping[str, int]
    logs: Sequence[UsedLog]
    before: Path | None
    idle_w: float | None
    idle_reason: str | None

    def to_json(self) -> dict[str, object]:
        return {
            "schema_version": 1,
            "campaign": self.name,
            "phases_with_energy": self.phases,
            "phases_without_energy": dict(self.without),
            "idle_w": self.idle_w,
            "records_before": None if self.before is None else str(self.before),
            "power": [used.to_json() for used in self.logs],
        }


def add(
    folder: Path, logs: Sequence[Path], offset_s: float | None, again: bool, dry_run: bool
) -> Added:
    """Adds the energy of the logs to a stored campaign. `again`: in place of that which the same
    meters have. Raises RejectedError if a log cannot be used, or its energy was added before."""
    if folder.resolve().parent != paths.results_root().resolve():
        raise RejectedError(f"{folder}: not a stored campaign; `eeio list` shows them")
    paths.check_campaign_to_change(folder, "changed")
    with store_lock(folder):
        campaign = load(folder)
        if campaign.design.options.share_machine:
            raise RejectedError(f"{campaign.name}: {_RAN_BESIDE}")
        if campaign.design.suite == "imported":
            files = _files_of(campaign)
            _, used = with_energy(files, logs, offset_s)
            return add_of_files(campaign, files, used, again, dry_run)
        return _add_to_own(campaign, logs, offset_s, again, dry_run)


def with_energy(
    files: Sequence[FoundFile], logs: Sequence[Path], offset_s: float | None
) -> tuple[Sequence[FoundFile], list[UsedLog]]:
    """The files with the energies of the logs in their reports. Results of PTS have the energy that
    eeio's module measured, if any."""
    measured = [file for file in files if file.tool != "pts"]
    made, used = add_power([r for file in measured for r in file.reports], logs, offset_s)
    following = iter(made)
    for file in measured:
        file.reports = [next(following) for _ in file.reports]
    return files, used


def add_of_files(
    campaign: Campaign,
    files: Sequence[FoundFile],
    used: Sequence[UsedLog],
    again: bool,
    dry_run: bool,
) -> Added:
    """Adds the energies of result files to the campaign that was imported from them."""
    _check_used(used)
    others = [file for file in files if file.tool != "pts" and file.reports]
    new = {
        source[1]: run
        for made in campaigns(others, campaign.name)
        for run in made.runs
        if (source := source_of(run)) is not None
    }

    def readings_of(run: Run, phase: Phase) -> tuple[Readings, Readings]:
        source = source_of(run)
        made = None
        if source is not None:
            made = new.get(source[1])
        of_phase = [] if made is None else [p for p in made.phases if p.name == phase.name]
        return (of_phase[0].energy if len(of_phase) == 1 else ()), ()

    return _stored(campaign, readings_of, used, again, dry_run)


def _files_of(campaign: Campaign) -> list[FoundFile]:
    """The files that it was imported from, read again. Raises RejectedError for one that is gone or
    that changed."""
    sources = {
        source[0]: source[1].sha256
        for run in campaign.runs
        if (source := source_of(run)) is not None
    }
    if not sources:
        raise RejectedError(
            f"{campaign.name}: its records do not name the files it was imported from: import "
            "them again with --power"
        )
    files: list[FoundFile] = []
    for path, sha256 in sources.items():
        read = found([path]) if path.is_file() else []
        if not any(file.sha256 == sha256 for file in read):
            raise RejectedError(
                f"{path}: not there, or changed since it was imported; the times of the results "
                "are in it. Import the folder again with --power, from where it is now"
            )
        files += read
    return files


def _add_to_own(
    campaign: Campaign, logs: Sequence[Path], offset_s: float | None, again: bool, dry_run: bool
) -> Added:
    windows = [
        Window(begin_s + phase.start_s, begin_s + phase.end_s, _CLOCK_WITHIN_S, False)
        for run in (*campaign.runs, *campaign.set_aside)
        if (begin_s := _begin_s(run)) is not None
        for phase in run.phases
        if phase.start_s is not None and phase.end_s is not None
    ]
    if not windows:
        raise RejectedError(f"{campaign.name}: no record reports the time of its I/O")
    used = used_logs(logs, windows, offset_s)
    _check_used(used)
    pairs = pairs_of(used)

    def readings_of(run: Run, phase: Phase) -> tuple[Readings, Readings]:
        begin_s = _begin_s(run)
        if begin_s is None:
            return (), ()
        unsure_s = _CLOCK_WITHIN_S + (phase.edges_unsure_s or 0.0)

        def energy(start_s: float, end_s: float) -> Readings:
            return energy_of(Window(begin_s + start_s, begin_s + end_s, unsure_s, False), pairs)

        durable: Readings = ()
        if phase.until_durable is not None and phase.start_s is not None:
            durable = energy(phase.start_s, phase.until_durable.end_s)
        if phase.stretches:
            return energy_in_parts(energy, [(s.start_s, s.end_s) for s in phase.stretches]), durable
        if phase.start_s is None or phase.end_s is None:
            return (), ()
        return energy(phase.start_s, phase.end_s), durable

    return _stored(campaign, readings_of, used, again, dry_run)


def _begin_s(run: Run) -> float | None:
    """Unix s; None if it is not stored."""
    try:
        moment = datetime.fromisoformat(run.started_utc)
    except ValueError:
        return None
    if moment.tzinfo is None:
        return None
    return moment.timestamp()


def _check_used(used: Sequence[UsedLog]) -> None:
    """Raises RejectedError for a log that cannot be used; nothing is stored then."""
    for log, alignment in ((each.log, each.alignment) for each in used):
        why = log.rejected or (alignment.source if alignment.ahead_s is None else None)
        if why is not None:
            raise RejectedError(f"{log.path}: {why}. The campaign is as before")


def _stored(
    campaign: Campaign,
    readings_of: Callable[[Run, Phase], tuple[Readings, Readings]],
    used: Sequence[UsedLog],
    again: bool,
    dry_run: bool,
) -> Added:
    """Stores the runs with the readings, of which the second are those until durable."""
    runs: list[Run] = []
    without: Counter[str] = Counter()
    added = 0
    for run in sorted((*campaign.runs, *campaign.set_aside), key=lambda run: run.order_index):
        phases = []
        for phase in run.phases:
            of_logs, durable = readings_of(run, phase)
            readings = of_logs
            if not again:
                # The next part of a log leaves the energy of the first.
                readings = _without_known(phase.energy, of_logs)
                if phase.until_durable is not None:
                    durable = _without_known(phase.until_durable.energy, durable)
                _check_new(campaign.name, phase.energy, readings)
            added += any(reading.power_w is not None for reading in readings)
            if readings or not of_logs:
                without.update(_reasons(readings))
            phases.append(_with_readings(phase, readings, durable))
        runs.append(replace(run, phases=tuple(phases)))
    if added == 0:
        reasons = "; ".join(dict.fromkeys(without)) or "no phase has a time"
        raise RejectedError(f"{campaign.name}: no energy from {_named(used)}: {reasons}")
    idle = idle_of_logs(campaign, used)
    if not again and campaign.idle and not idle.readings:
        idle = IdleOfLogs(campaign.idle)
    before = None
    if not dry_run:
        before = _write(campaign, runs, used, idle)
    idle_w = next((r.power_w for r in idle.readings if r.domain == "system"), None)
    return Added(
        campaign.name, campaign.folder, added, dict(without), used, before, idle_w, idle.reason
    )


def _reasons(readings: Readings) -> Iterator[str]:
    """Why a phase has no energy of the logs; nothing if it has."""
    if any(reading.power_w is not None for reading in readings):
        return
    reasons = [reason for reading in readings for reason in reading.reasons]
    yield reasons[-1] if reasons else "the records do not say when it was"


def _without_known(old: Readings, new: Readings) -> Readings:
    """The new readings without those that have no power where an old one has it."""
    known = {reading.key for reading in old if reading.power_w is not None}
    return tuple(
        reading for reading in new if reading.power_w is not None or reading.key not in known
    )


def _check_new(name: str, old: Readings, new: Readings) -> None:
    """Raises RejectedError for a second energy of one meter."""
    known = {reading.key for reading in old if reading.power_w is not None}
    twice = [reading for reading in new if reading.key in known]
    if twice:
        reading = twice[0]
        raise RejectedError(
            f"{name} has the energy of the meter {reading.meter} ({reading.domain}) already; "
            "--replace replaces it. The campaign is as before"
        )


def _with_readings(phase: Phase, readings: Readings, durable: Readings) -> Phase:
    until = phase.until_durable
    if until is not None and durable:
        until = replace(until, energy=_joined(until.energy, durable))
    return replace(phase, energy=_joined(phase.energy, readings), until_durable=until)


def _joined(old: Readings, new: Readings) -> Readings:
    made = {reading.key for reading in new}
    return (*(reading for reading in old if reading.key not in made), *new)


def _write(
    campaign: Campaign, runs: Sequence[Run], used: Sequence[UsedLog], idle: IdleOfLogs
) -> Path:
    """Keeps the records in a folder of their own, and writes the new ones. A process that is killed
    in between leaves the runs before or the new ones, and no idle power of another log."""
    store = Store(campaign.folder)
    before = _kept(campaign.folder)
    remarks = [
        f"power added later from {each.log.path}, SHA-256 {each.log.sha256}: its clock is ahead by "
        f"{each.alignment.ahead_s:+.2f} s: {each.alignment.source}"
        for each in used
    ]
    remarks += [note for each in used for note in each.notes]
    design: Design = campaign.design
    of_logs = design.suite == "imported" and not any(map(is_measured, campaign.idle))
    if of_logs:
        store.write_idle((), "a power log is being added")
    every = dict.fromkeys((*design.remarks, *remarks))
    store.write_design(replace(design, remarks=tuple(every)))
    store.replace_runs(runs)
    if of_logs:
        store.write_idle(idle.readings, idle.reason, idle_medians(idle.readings, {}))
    return before


def _kept(folder: Path) -> Path:
    """A copy of the records, in the first free folder `before-power-N`."""
    number = 1
    while os.path.lexists(folder / f"before-power-{number}"):
        number += 1
    kept = folder / f"before-power-{number}"
    kept.mkdir()
    for name in ("campaign.json", "idle.json", "runs.jsonl"):
        if (folder / name).exists():
            shutil.copy2(folder / name, kept / name)
    return kept


def _named(used: Sequence[UsedLog]) -> str:
    return ", ".join(str(each.log.path) for each in used)
