"""`eeio import PATHS`: campaigns from result files that other people made, without a map.

Each file is recognized by its content. One row is one direction of one group of one report of one
file: groups, reports and files are never joined. Runs with equal observed factors are repetitions,
ordered by their time, else by path. Factors are folders, the file's name without dates and numbers
that count the files, the text above a report, and each option in which runs of a tool differ.
"""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from eeio import paths
from eeio.errors import EeioError, RejectedError
from eeio.exchange.importing.file_names import file_names
from eeio.exchange.importing.files import found
from eeio.exchange.importing.idle_of_logs import idle_readings
from eeio.exchange.importing.imported import Imported, store
from eeio.exchange.importing.power_later import Added, add_of_files, with_energy
from eeio.exchange.importing.power_of_results import UsedLog
from eeio.exchange.importing.rows import campaigns, names_of, slug
from eeio.measure.campaign.runner import store_lock
from eeio.pts import read as pts
from eeio.record.store import load
from eeio_parsers.found import FoundPhase
from eeio_parsers.rules import FoundFile

_SOURCE = re.compile(rb"imported from [^\n]{1,5000}?SHA-256 ([0-9a-f]{64})")


def stored_before() -> dict[str, str]:
    """SHA-256 of each file that a stored campaign was imported from -> the campaign's name."""
    known: dict[str, str] = {}
    for name, folder in paths.campaigns().items():
        try:
            if b'"suite": "imported"' in (folder / "campaign.json").read_bytes():
                for file in ("campaign.json", "runs.jsonl"):
                    with (folder / file).open("rb") as lines:
                        for match in filter(None, map(_SOURCE.search, lines)):
                            known[match[1].decode()] = name
        except OSError:
            continue  # `eeio list` reports it
    return known


def free_name(wanted: str, others: Sequence[str] = ()) -> str:
    """The name, or the first of NAME-2, NAME-3 ... that no campaign has, and none of `others`."""
    taken = [*paths.campaigns(), *others]
    names = (wanted if k == 1 else f"{wanted}-{k}" for k in itertools.count(1))
    return next(
        name
        for name in names
        if not any(one == name or one.startswith(f"{name}-") for one in taken)
    )


@dataclass(frozen=True)
class Taken:
    """The files of one import. `names` are the campaigns that contain them, `stored` the new ones
    with folder and number of runs, and `before` is SHA-256 -> campaign of files that had been
    imported earlier. `logs` are power logs."""

    files: Sequence[FoundFile]
    names: Sequence[str]
    stored: Sequence[tuple[str, Path, int]]
    before: Mapping[str, str]
    logs: Sequence[UsedLog] = ()
    added: Sequence[Added] = ()
    """Energies of the logs that campaigns imported earlier have now."""
    not_added: Sequence[str] = ()
    """Why others of them have none."""

    @property
    def has_energy(self) -> bool:
        """Whether any row has one."""
        readings = (
            reading
            for file in self.files
            for report in file.reports
            for phase in report.work
            for reading in phase.energy
        )
        return any(reading.power_w is not None for reading in readings)

    @property
    def rejected(self) -> int:
        logs = sum(used.log.rejected is not None for used in self.logs)
        return logs + sum(file.rejected is not None for file in self.files)


def take(
    arguments: Sequence[Path],
    name: str | None,
    dry_run: bool,
    power: Sequence[Path] = (),
    power_offset_s: float | None = None,
    drives: int | None = None,
) -> Taken:
    """Reads the files and stores those that no campaign has. `power` are logs whose clocks are
    ahead by `power_offset_s`, if that is known; `drives` is the number of drives behind each
    result. Files that a campaign has already are not stored
    again; the energy of the logs is added to that campaign. Raises RejectedError if there is no
    file, if a campaign has the name, and if a log cannot be used."""
    files, before = found(arguments), stored_before()
    if not files:
        raise RejectedError(f"{arguments[0]}: no file in it")
    if drives is not None:
        _add_drives(files, drives)
    logs = _with_power(files, power, power_offset_s, dry_run) if power else []
    new = [file for file in files if file.reports and file.sha256 not in before]
    others = [file for file in new if file.tool != "pts"]
    of_pts = _named(new, name)
    prefix = name or free_name(slug(arguments[0].resolve().stem))
    names = dict.fromkeys(filter(None, (before.get(file.sha256) for file in files)))
    if dry_run:
        names |= dict.fromkeys(names_of(others, prefix).values())
        for file, wanted in of_pts:
            names |= dict.fromkeys(file.parsed.names(wanted))
        return Taken(files, list(names), (), before, logs)
    made = campaigns(others, prefix)
    if logs and len(made) == 1:
        idle = idle_readings(logs, logs[0].busy)
        made = [replace(made[0], idle=idle.readings, no_idle=idle.reason)]
    stored = store(_with_notes(made, logs), "")
    added, not_added = _added_later(files, before, logs)
    for file, wanted in of_pts:
        try:
            stored += pts.store(file.parsed, wanted)
        except EeioError as error:
            file.rejected = str(error)
    return Taken(
        files, [*names, *(name for name, *_ in stored)], stored, before, logs, added, not_added
    )


def _add_drives(files: Sequence[FoundFile], drives: int) -> None:
    def added(phases: Sequence[FoundPhase]) -> tuple[FoundPhase, ...]:
        metrics = {"drives": float(drives)}
        return tuple(replace(phase, metrics={**phase.metrics, **metrics}) for phase in phases)

    for file in files:
        file.reports = [
            replace(report, phases=added(report.phases), mixed=added(report.mixed))
            for report in file.reports
        ]


def _added_later(
    files: Sequence[FoundFile], before: Mapping[str, str], logs: Sequence[UsedLog]
) -> tuple[list[Added], list[str]]:
    """The energies that were added to campaigns that have the files already, and why they were not
    added to the others."""
    added, why_not = list[Added](), list[str]()
    names = dict.fromkeys(before[file.sha256] for file in files if file.sha256 in before)
    for name in names if logs else ():
        folder = paths.campaigns()[name]
        of_campaign = [file for file in files if before.get(file.sha256) == name]
        try:
            paths.check_campaign_to_change(folder, "changed")
            with store_lock(folder):
                added.append(add_of_files(load(folder), of_campaign, logs, False, False))
        except RejectedError as error:
            why_not.append(str(error))
    return added, why_not


def _with_power(
    files: Sequence[FoundFile], power: Sequence[Path], offset_s: float | None, dry_run: bool
) -> list[UsedLog]:
    """Adds the energy of the logs to the reports. Raises RejectedError for a log that cannot be
    used, but in a dry run."""
    _, logs = with_energy(files, power, offset_s)
    for log in (used.log for used in logs if used.log.rejected and not dry_run):
        raise RejectedError(
            f"{log.path}: {log.rejected}. No result was stored: correct --power, or omit it"
        )
    return logs


def _with_notes(made: Sequence[Imported], logs: Sequence[UsedLog]) -> list[Imported]:
    """With the notes on the alignment of the logs as remarks."""
    notes = []
    for used in logs:
        notes.extend(used.notes)
    return [replace(campaign, remarks=(*campaign.remarks, *notes)) for campaign in made]


def _named(files: Sequence[FoundFile], name: str | None) -> list[tuple[FoundFile, str]]:
    """Files of PTS with the names of their campaigns: several may have one title."""
    names = list[str]()
    of_pts = [file for file in files if file.tool == "pts"]
    for file in of_pts:
        wanted = file.parsed.title if name is None else name
        is_first = name is not None and not names
        names.append(wanted if is_first else free_name(wanted, names))
    return list(zip(of_pts, names, strict=True))


def remarks(taken: Taken) -> Iterator[str]:
    """Notes on the files and power logs, then the rejected ones with their reasons."""
    for used in taken.logs:
        yield from (f"{used.log.path}: {text}" for text in on_log(used))
    yield from taken.not_added
    named = [file for file in taken.files if file.reports and file.tool != "pts"]
    yield from file_names([file for file in named if file.sha256 not in taken.before]).notes
    for file in taken.files:
        for note in dict.fromkeys(note for report in file.reports for note in report.notes):
            yield f"{file.path}: {note}"
        if equal := _equal_reports(file):
            yield (
                f"{file.path}: reports {'; '.join(equal)} have equal settings: they are "
                "separate experiments. To name them, or to state that they are repetitions, use a "
                "map (docs/how-to/import-results.md)"
            )
    yield from (f"{file.path}: rejected: {file.rejected}" for file in taken.files if file.rejected)


def on_log(used: UsedLog) -> Iterator[str]:
    log, alignment = used.log, used.alignment
    if log.rejected:
        yield f"rejected: {log.rejected}"
        return
    if alignment.ahead_s is None:
        yield f"no energy from it: {alignment.source}"
    else:
        yield f"its clock is ahead by {alignment.ahead_s:+.2f} s: {alignment.source}"
    yield from (*log.notes, *alignment.notes, *(doubt.text for doubt in alignment.doubts))


_MOST_NAMED = 20


def _equal_reports(file: FoundFile) -> list[str]:
    """The numbers of reports of a file that no setting tells apart, such as `0, 1, 2`."""
    numbers: dict[tuple[object, ...], list[int]] = {}
    for index, report in enumerate(file.reports):
        settings = tuple(
            (
                phase.name,
                phase.operation,
                phase.access_pattern,
                phase.request_bytes,
                phase.direct,
                phase.iodepth,
                phase.jobs,
                phase.engine,
                *sorted(phase.options.items()),
            )
            for phase in report.phases
        )
        numbers.setdefault(settings, []).append(index)
    named = []
    for equal in numbers.values():
        if len(equal) > 1:
            more = len(equal) - _MOST_NAMED
            text = ", ".join(map(str, equal[:_MOST_NAMED]))
            named.append(f"{text} and {more} more" if more > 0 else text)
    return named[:_MOST_NAMED]
