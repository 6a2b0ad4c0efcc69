"""A campaign as a result file of the Phoronix Test Suite."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from eeio import __version__
from eeio.analysis.observation import Observation, known, sources
from eeio.analysis.selection import judged
from eeio.errors import RejectedError
from eeio.measure.profiles import profile as profiles
from eeio.measure.profiles import suite as suites
from eeio.measure.profiles.profile import Profile
from eeio.pts import composite, power_entries
from eeio.pts.composite import Result, ResultEntry, ResultFile, System
from eeio.pts.entry import Idle, TrialEntry, Values
from eeio.pts.power_entries import Base, PowerEntry
from eeio.pts.trial import telling
from eeio.record.design import PlannedExperiment
from eeio.record.run import EnergyReading, Machine, Phase, Run, mark
from eeio.record.store import Campaign

# Where PTS puts ours, in the words of its schema.
_CLIENT = "Phoronix Test Suite v10.8.6"
_CLIENT_VERSION = "10.8.6"


def result_file(campaign: Campaign) -> ResultFile:
    """One result a phase and figure, with the labels that PTS uses for the same test."""
    identifier = campaign.name[:128]
    results: list[Result] = _idle(campaign, identifier)
    for planned in campaign.design.experiments:
        runs = sorted(
            (run for run in campaign.runs if run.experiment.id == planned.experiment.id),
            key=lambda run: run.repetition,
        )
        results += _experiment(campaign, planned, runs, identifier)
    created = _timestamp(campaign.design.created_utc)
    options = campaign.design.options
    environment = {"EEIO_PRESET": campaign.preset, "EEIO_PROTOCOL": "random"}
    environment["EEIO_SEED"] = str(options.seed)
    if campaign.design.protocol.work_bytes is not None:
        environment["EEIO_WORK"] = str(campaign.design.protocol.work_bytes)
    if options.device:
        environment["EEIO_DEVICE"] = options.device
    return ResultFile(
        title=campaign.name,
        last_modified=created,
        test_client=_CLIENT,
        description=f"eeio campaign of {campaign.design.suite_title}, preset {campaign.preset}",
        environment=environment,
        systems=(_system(campaign.machine, identifier, created, _method(campaign)),),
        results=tuple(results),
    )


def left_out(campaign: Campaign, file: ResultFile) -> list[str]:
    """Descriptions of the experiments of which the file has no result."""
    bodies = []
    for result in file.results:
        for entry in result.entries:
            bodies.append(entry.own.get("experiment"))
    return [
        planned.description or planned.experiment.tool
        for planned in campaign.design.experiments
        if planned.experiment.to_json() not in bodies
    ]


def _experiment(
    campaign: Campaign, planned: PlannedExperiment, runs: Sequence[Run], identifier: str
) -> list[Result]:
    profile = profiles.find(planned.profile)
    descriptions = composite.pts_descriptions(profile.folder)
    description = _description(planned)
    head = {
        "identifier": f"local/{profile.identifier}",
        "title": profile.title,
        "app_version": composite.pts_app_version(profile.folder),
        "arguments": _arguments(campaign, planned, profile),
    }
    names = list(dict.fromkeys(phase.name for run in runs for phase in run.phases))
    results: list[Result] = []
    for name in names:
        valid = {k: phase for k, run in enumerate(runs) if (phase := _phase(run, name))}
        run_of = {id(phase): k for k, phase in valid.items()}
        good: dict[int, Observation] = {}
        values: list[float] = []
        for observation in judged(planned.experiment, tuple(valid.values()))[0]:
            if (value := _figure(observation)) is not None:
                good[run_of[id(observation.phase)]] = observation
                values.append(value)
        if not good:
            continue
        is_rate = any(observation.phase.operation == "metadata" for observation in good.values())
        # What PTS appends itself, for a phase that its profile prints; else the phase's name.
        scale = composite.FILES_PER_S if is_rate else composite.MB_PER_S
        appended = descriptions.get(name) or composite.phase_label(name, scale)
        described = f"{description} - {appended}"
        all_reported = () if results else tuple(telling(run) for run in runs)
        own = Values(tuple(good), len(runs), name, all_reported, planned.experiment)
        times = ":".join(f"{runs[k].duration_s:.3f}" for k in good)
        body = {"test-run-times": times, "eeio": own.to_json()}
        bandwidth = Result(
            **head,
            description=described,
            scale=scale,
            proportion="HIB",
            entries=(composite.entry_of(identifier, values, body),),
        )
        results.append(bandwidth)
        several = len(names) > 1
        results += _energies(
            bandwidth, described if several else description, name, runs, good, identifier
        )
    return results


def _energies(
    bandwidth: Result,
    described: str,
    phase_name: str,
    runs: Sequence[Run],
    good: Mapping[int, Observation],
    identifier: str,
) -> list[Result]:
    results = []
    for source in sources(list(good.values())):
        by_source = {k: observation.by(source) for k, observation in good.items()}
        readings = {k: observation.reading for k, observation in by_source.items()}
        valid = {k: r for k, r in readings.items() if r and r.valid and r.power_w and r.energy_j}
        if not valid:
            continue
        trials = [_trial(run, readings.get(k)).to_json() for k, run in enumerate(runs)]
        base = Base(bandwidth.comparison_hash, bandwidth.title, described)
        entries = power_entries.power_and_energy(
            base, source, list(valid.values()), {"phase": phase_name, "trials": trials}
        )
        efficiencies = [known(by_source[k].bytes_per_j) for k in valid]
        mb_per_j = [value / 1e6 for value in efficiencies if value is not None]
        # Not of metadata, of other work meanwhile, or if too little of the window was seen.
        if mb_per_j and bandwidth.scale == composite.MB_PER_S:
            base = Base(bandwidth.comparison_hash, bandwidth.title, bandwidth.description)
            entries.append(power_entries.efficiency(base, source, mb_per_j, list(valid.values())))
        results += [_result(entry, identifier, bandwidth) for entry in entries]
    return results


def _result(entry: PowerEntry, identifier: str, bandwidth: Result | None = None) -> Result:
    """The entry as a result of its own, next to the bandwidth that it is derived from."""
    return Result(
        identifier="",
        title=entry.title,
        app_version=bandwidth.app_version if bandwidth else "",
        arguments=bandwidth.arguments if bandwidth else entry.arguments or "",
        description=entry.description,
        scale=entry.scale,
        proportion=entry.proportion,
        parent=entry.base or "",
        entries=(ResultEntry(identifier, entry.mean, ":".join(entry.texts), entry.json),),
    )


def _trial(run: Run, reading: EnergyReading | None) -> TrialEntry:
    return TrialEntry(
        order=run.order_index,
        start_s=run.started_monotonic_s,
        failed=bool(run.validity),
        reading=reading,
        started_utc=run.started_utc,
        duration_s=run.duration_s,
    )


def _phase(run: Run, name: str) -> Phase | None:
    """The phase of a run that can be used."""
    if run.validity:
        return None
    return next((p for p in run.phases if p.name == name and not p.validity), None)


def _figure(observation: Observation) -> float | None:
    """What PTS shows of a phase: MB/s (of a write until its bytes are on the device, where that is
    known), or files/s where files are created, looked up, deleted."""
    if observation.phase.operation == "metadata":
        return observation.phase.metrics.get("operations_per_s")
    bandwidth = observation.window.bandwidth_bytes_per_s
    if bandwidth:
        return bandwidth / 1e6
    return None


def _description(planned: PlannedExperiment) -> str:
    """With the file system and the drive's write cache, for which PTS has no arguments. PTS joins
    results with the same arguments and description."""
    experiment = planned.experiment
    made, disk = experiment.target.removeprefix("file on "), experiment.cache.disk
    labels = [f"File System: {made}"] if made != experiment.target else []
    labels += [] if disk is None else [f"Disk Write Cache: {disk}"]
    known = planned.description.split(" - ")  # an imported export has them already
    return " - ".join((planned.description, *(label for label in labels if label not in known)))


def _arguments(campaign: Campaign, planned: PlannedExperiment, profile: Profile) -> str:
    """The suite's own words in their order, so that PTS finds the same test; without the suite,
    all factors but the preset's."""
    with suppress(RejectedError):
        for entry in suites.find(campaign.design.suite).entries:
            names_it = (entry.profile, entry.description) == (planned.profile, planned.description)
            if names_it and entry.factors.items() <= planned.factors.items():
                return " ".join(f"{key}={value}" for key, value in entry.factors.items())
    sizes: Mapping[str, str] = {}
    with suppress(RejectedError):
        sizes = profile.preset(campaign.preset)
    factors = planned.factors.items()
    return " ".join(f"{k}={v}" for k, v in factors if sizes.get(k) != v)


def _idle(campaign: Campaign, identifier: str) -> list[Result]:
    baseline = Idle(tuple(campaign.idle)).to_json()["idle"]
    return [
        _result(power_entries.idle(reading, baseline), identifier)
        for reading in campaign.idle
        if reading.valid and reading.power_w
    ]


def _system(machine: Machine, identifier: str, created: str, notes: str) -> System:
    threads = machine.logical_cpus or "unknown"
    hardware = {
        "Processor": f"{machine.cpu_model or 'unknown'} ({threads} Threads)",
        "Memory": _megabytes(machine.memory_bytes),
        "Disk": machine.device_model,
    }
    software = {
        "OS": machine.distribution,
        "Kernel": f"{machine.kernel} ({machine.architecture})",
        "File-System": machine.filesystem,
        "System Layer": machine.virtualization,
    }
    body = {
        "cpu-scaling-governor": machine.governor,
        "disk-scheduler": machine.scheduler,
        "disk-mount-options": machine.mount_options,
    }
    return System(
        identifier=identifier,
        hardware=_reported(hardware),
        software=_reported(software),
        user="",
        timestamp=created,
        client_version=_CLIENT_VERSION,
        notes=notes,
        json={key: value for key, value in body.items() if value},
    )


def _method(campaign: Campaign) -> str:
    """How the figures were measured, for readers of the result on a web page."""
    design = campaign.design
    readings = set()
    for run in campaign.runs:
        for phase in run.phases:
            for reading in phase.energy:
                if reading.valid:
                    readings.add(f"{mark(reading.kind)}{reading.meter} {reading.domain}")
    power = ", ".join(sorted(readings)) or "not measured"
    return (
        f"eeio {design.eeio_version or __version__}: suite {Path(design.suite).name}, preset "
        f"{campaign.preset}, one random order of all runs (seed {design.options.seed}). Power: "
        f"{power}; energy is integrated over each phase, for writes until the data is on the "
        "device. The uncertainty of each trial is in the JSON of its entry."
    )


def _reported(pairs: Mapping[str, str | None]) -> str:
    # PTS splits at the commas.
    return ", ".join(f"{k}: {v.replace(',', ' ')}" for k, v in pairs.items() if v)


def _megabytes(size_bytes: int | None) -> str | None:
    if size_bytes is None:
        return None
    return f"{size_bytes >> 20}MB"


def _timestamp(utc: str) -> str:
    return datetime.fromisoformat(utc).strftime("%Y-%m-%d %H:%M:%S")
