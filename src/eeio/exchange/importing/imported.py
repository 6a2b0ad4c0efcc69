"""An imported campaign: in memory for analyses, or stored as one of the user's own."""

import csv
import gzip
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from eeio import __version__, paths
from eeio.errors import LimitError, RejectedError
from eeio.measure.power import idle_medians
from eeio.record.design import Design, PlannedExperiment
from eeio.record.imported_design import imported
from eeio.record.run import EnergyReading, Experiment, IdleMedian, Machine, Run
from eeio.record.store import Campaign, Store
from eeio.units.names import campaign_name


@dataclass(frozen=True)
class Imported:
    """One campaign's files as read by a map.

    `idle_watts` holds the samples of the idle baseline, by power domain. `remarks` names all that
    was passed over, changed or found odd; nothing is dropped without one.
    """

    name: str
    title: str
    machine: Machine
    runs: Sequence[Run]
    idle: tuple[EnergyReading, ...]
    idle_watts: Mapping[str, Sequence[float]] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    no_idle: str | None = None
    """Why there is no idle baseline, if that is known."""
    settings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Those that the files state, by the id of the experiment."""

    @property
    def idle_reason(self) -> str | None:
        if self.idle:
            return None
        return self.no_idle or "the files hold no idle baseline"

    @property
    def idle_medians(self) -> tuple[IdleMedian, ...]:
        """Of the samples of the idle baseline."""
        medians_w = {
            (reading.meter, reading.domain): statistics.median(watts)
            for reading in self.idle
            if (watts := self.idle_watts.get(reading.domain))
        }
        return idle_medians(self.idle, medians_w)

    @property
    def design(self) -> Design:
        """In the form of an eeio campaign."""
        experiments: dict[str, Experiment] = {}
        created_utc = None
        for run in self.runs:
            experiments[run.experiment.id] = run.experiment
            created_utc = min(created_utc or run.started_utc, run.started_utc)
        return imported(
            name=self.name,
            title=self.title,
            created_utc=created_utc or "",
            experiments=[
                PlannedExperiment(e, profile=e.tool, settings=self.settings.get(e.id))
                for e in experiments.values()
            ],
            runs=self.runs,
            remarks=self.remarks,
            eeio_version=__version__,
        )

    def campaign(self) -> Campaign:
        """As if it had been stored and loaded again."""
        return Campaign(
            folder=Path(self.name),
            design=self.design,
            machine=self.machine,
            idle=self.idle,
            idle_reason=self.idle_reason,
            runs=tuple(self.runs),
            idle_medians=self.idle_medians,
        )


def store(campaigns: Sequence[Imported], prefix: str) -> list[tuple[str, Path, int]]:
    """Stores each campaign as PREFIX-NAME, or as NAME without a prefix; (name, folder, runs) of
    each.

    Raises RejectedError, before anything is written, when one of the names is taken.
    """
    prefix = f"{prefix}-" if prefix else ""
    try:
        stores = [
            (item, Store(paths.new_campaign_folder(campaign_name(f"{prefix}{item.name}"))))
            for item in campaigns
        ]
    except LimitError as error:
        raise RejectedError(str(error)) from error
    for _, place in stores:
        if place.folder.exists():
            raise RejectedError(f"{place.folder} exists: choose another --name")
    stored = []
    for item, place in stores:
        with place.made_complete() as new:
            new.create(replace(item.design, name=place.folder.name))
            new.write_machine(item.machine)
            new.write_idle(item.idle, item.idle_reason, item.idle_medians)
            new.append_all(item.runs)
            for domain, watts in item.idle_watts.items():
                _write_samples(new.folder / "samples" / f"idle-{domain}.csv.gz", watts)
        stored.append((place.folder.name, place.folder, len(item.runs)))
    return stored


def _write_samples(path: Path, watts: Sequence[float]) -> None:
    with gzip.open(path, "wt", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["power_w"])
        writer.writerows([value] for value in watts)
