"""Campaigns from a result file of the Phoronix Test Suite."""

import re
from dataclasses import replace
from pathlib import Path

from eeio import __version__, paths
from eeio.errors import RefusedError
from eeio.pts import composite
from eeio.pts.composite import ResultFile, System
from eeio.pts.entry import Idle, own_of
from eeio.pts.experiments import PtsExperiment, experiments_of
from eeio.pts.machine import machine_of
from eeio.pts.runs import run_of, utc
from eeio_limits import LimitError
from eeio_limits.names import LONGEST_NAME, campaign_name
from eeio_results.campaign import PlannedExperiment
from eeio_results.errors import EeioError, SchemaError
from eeio_results.imported import imported
from eeio_results.record import EnergyReading
from eeio_results.store import Store


def import_file(path: Path, name: str | None, preset: str | None) -> list[tuple[str, Path, int]]:
    """Stores a campaign a system of the file; (name, folder, runs) of each.

    `name` is the campaign's, else the file's own title; `preset` is what it ran with where the
    file does not say. Raises RefusedError when nothing in it is ours to read, or a name is taken,
    and SchemaError, with the file, for what cannot be.
    """
    try:
        return _import(path, name, preset)
    except SchemaError as error:
        words = str(error)
        raise SchemaError(words if str(path) in words else f"{path}: {words}") from error


def _import(path: Path, name: str | None, preset: str | None) -> list[tuple[str, Path, int]]:
    file = composite.read(path)
    base = _checked(name) if name is not None else slug(file.title or path.parent.name)
    made = []
    for system in file.systems:
        tests = experiments_of(file, system.identifier, preset)
        if tests:
            several = len(file.systems) > 1
            made.append((f"{base}-{slug(system.identifier)}" if several else base, system, tests))
    made = [(_checked(campaign), system, tests) for campaign, system, tests in made]
    if not made:
        raise RefusedError(f"{path}: no result of our profiles, pts/fio or pts/iozone in it")
    for campaign, _, _ in made:
        if (paths.results_root() / campaign).exists():
            raise RefusedError(
                f"{paths.results_root() / campaign} is there already: give another --name"
            )
    stored = []
    for campaign, system, tests in made:
        folder = paths.results_root() / campaign
        with Store(folder).made_whole() as store:
            runs = _store(store, campaign, file, system, tests, preset)
        stored.append((campaign, folder, runs))
    return stored


def _store(
    store: Store, name: str, file: ResultFile, system: System, tests: list[PtsExperiment],
    preset: str | None,
) -> int:  # fmt: skip
    pairs = [(place, trial) for place, test in enumerate(tests) for trial in range(test.trials)]
    runs = [run_of(tests[place], trial, system) for place, trial in pairs]
    # The order is known where our module wrote it down; else the file's own stands for it.
    told = {index: _order(tests[place], trial) for index, (place, trial) in enumerate(pairs)}
    if all(order is not None for order in told.values()) and len(set(told.values())) == len(told):
        ranks = {index: rank for rank, index in enumerate(sorted(told, key=lambda i: told[i] or 0))}
    else:
        ranks = {index: index for index in told}
    used = preset or file.environment.get("EEIO_PRESET") or tests[0].preset
    order = sorted(range(len(pairs)), key=lambda index: ranks[index])
    ordered = [replace(runs[index], order_index=rank) for rank, index in enumerate(order)]
    store.create(
        imported(
            name=name,
            title=file.title,
            created_utc=utc(system.timestamp or file.last_modified),
            experiments=[
                PlannedExperiment(t.experiment, t.profile, dict(t.factors), t.description)
                for t in tests
            ],
            runs=ordered,
            preset=used,
            is_measurement=used != "quick",
            eeio_version=__version__,
        )
    )
    store.write_machine(machine_of(system))
    idle = idle_of(file, system.identifier)
    store.write_idle(idle, None if idle else "the result file holds no idle baseline")
    store.append_all(ordered)
    return len(runs)


def _order(test: PtsExperiment, trial: int) -> int | None:
    seen = test.trial(trial)
    return None if seen is None else seen.order


def idle_of(file: ResultFile, identifier: str) -> tuple[EnergyReading, ...]:
    """The idle baseline of a system; empty where there is none."""
    for result in file.results:
        for entry in result.entries:
            if entry.identifier == identifier and isinstance(own := own_of(entry), Idle):
                return own.readings
    return ()


def slug(text: str) -> str:
    """A campaign's name made of any text. Raises EeioError where nothing is left of it."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", text[: 2 * LONGEST_NAME]).strip("-.")
    if not name:
        raise EeioError(f"{text!r} gives no campaign name: give --name")
    return name[:LONGEST_NAME]


def _checked(name: str) -> str:
    try:
        return campaign_name(name)
    except LimitError as error:
        raise RefusedError(str(error)) from error
