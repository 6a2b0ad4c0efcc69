"""Campaigns from a result file of PTS: its experiments, its machine, its runs.

Campaigns from a result file of the Phoronix Test Suite.

The experiments of a PTS result file: which results are of one test with its factors.

PTS's description of a machine, in the form of a campaign.

A trial under PTS as a run record.
"""

import hashlib
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from eeio import __version__, paths
from eeio.errors import EeioError, LimitError, RejectedError, SchemaError
from eeio.files import inputs
from eeio.measure.profiles import profile as profiles
from eeio.measure.profiles.profile import Profile
from eeio.measure.profiles.suite import experiment_of, size_of
from eeio.pts import composite
from eeio.pts.composite import Result, ResultEntry, ResultFile, System
from eeio.pts.entry import ENERGY, Idle, QuantityEntry, TrialEntry, Values, own_of
from eeio.pts.trial import with_reported
from eeio.record.design import PlannedExperiment
from eeio.record.imported_design import imported
from eeio.record.run import ContextValue, EnergyReading, Experiment, Machine, Phase, Run
from eeio.record.store import Store
from eeio.units.names import LONGEST_NAME, campaign_name

MIB = 1 << 20

# Upstream's terms -> eeio's: (operation, spatiality).
_FIO_TYPES = {
    "random read": ("read", "random"),
    "random write": ("write", "random"),
    "sequential read": ("read", "sequential"),
    "sequential write": ("write", "sequential"),
}
_IOZONE_TESTS = {"read performance": "read", "write performance": "write"}
_TIOBENCH_TESTS = {
    "read": ("read", "sequential"),
    "write": ("write", "sequential"),
    "random read": ("read", "random"),
    "random write": ("write", "random"),
}


@dataclass(frozen=True)
class TrialValues:
    """The values of one result, and our module's data on their trials."""

    entry: ResultEntry
    own: Values | None

    @property
    def trials(self) -> int:
        """How many there were, with those that failed where that is known."""
        return max(len(self.entry.values), self.own.trials if self.own else 0)

    def value(self, trial: int) -> tuple[float, float | None] | None:
        """(value, run time in s) of a trial; None for one that failed."""
        values, times = self.entry.values, self.entry.run_times_s
        if self.own is not None:
            if trial not in self.own.trial_of_value:
                return None
            position = self.own.trial_of_value.index(trial)
            # PTS keeps the run times of all trials, the failed ones too.
            place = trial if len(times) != len(values) else position
        else:
            position = place = trial
        if position >= len(values):
            return None
        return values[position], times[place] if place < len(times) else None


@dataclass
class PtsExperiment:
    """One experiment of a file: its bandwidths by phase, and the measured energy of its trials."""

    experiment: Experiment
    profile: str
    factors: Mapping[str, str]
    description: str
    preset: str
    phases: dict[str, tuple[TrialValues, float | None]] = field(default_factory=dict)
    """Phase -> values, and bytes/s in one of their units; None for a rate, in files/s."""
    context: list[tuple[str, str, TrialValues]] = field(default_factory=list)
    """(label, unit, values) of figures that describe the machine."""
    energies: list[tuple[str, QuantityEntry]] = field(default_factory=list)
    """(phase, or empty for the complete trial, energy with its trials)."""

    @property
    def columns(self) -> list[TrialValues]:
        return [*(c for c, _ in self.phases.values()), *(c for _, _, c in self.context)]

    @property
    def trials(self) -> int:
        return max((column.trials for column in self.columns), default=0)

    def trial(self, number: int) -> TrialEntry | None:
        """Our module's data on a trial; empty in a file of plain PTS."""
        measured = (energy.trials for _, energy in self.energies)
        return next((trials[number] for trials in measured if number < len(trials)), None)


def _bytes_per_s(test: PtsExperiment, result: Result) -> float | None:
    """The bytes/s of one in the scale of a result; None for files per second. Profiles of PTS call
    MiB MB."""
    if result.scale == composite.FILES_PER_S:
        return None
    if test.profile.startswith("eeio-"):
        return 1e6
    return float(MIB)


def _energies_of(result: Result, identifier: str) -> list[QuantityEntry]:
    """The energies of one system in a result."""
    own = [own_of(entry) for entry in result.entries if entry.identifier == identifier]
    quantities = [one for one in own if isinstance(one, QuantityEntry)]
    return [quantity for quantity in quantities if quantity.quantity == ENERGY]


def experiments_of(file: ResultFile, identifier: str, preset: str | None) -> list[PtsExperiment]:
    """Those of one system; `preset` is used if the file does not contain one.

    Raises SchemaError for invalid values, and EeioError if one of our profiles is missing here.
    """
    tests: dict[tuple[str, str, str], PtsExperiment] = {}
    phase_of: dict[str, tuple[PtsExperiment, str]] = {}
    for result in file.results:
        entry = next((e for e in result.entries if e.identifier == identifier), None)
        if entry is None or not result.identifier:
            continue
        own = own_of(entry)
        column = TrialValues(entry, own if isinstance(own, Values) else None)
        test = _test(file, result, column.own, preset)
        if test is None:
            continue
        # Each figure of the machine has a description of its own.
        told_apart = ""
        if test.experiment.level != "context":
            told_apart = test.description
        test = tests.setdefault((result.identifier, result.arguments, told_apart), test)
        phase = _phase_name(test, result, column.own)
        if phase is not None and entry.values:
            if phase in test.phases:
                raise SchemaError(
                    f"{result.identifier}: two results of {identifier} are {result.description!r}: "
                    "give them different descriptions"
                )
            test.phases[phase] = (column, _bytes_per_s(test, result))
            phase_of[result.comparison_hash] = (test, phase)
        elif test.experiment.level == "context" and entry.values:
            label = result.description.removeprefix(test.description).strip() or result.description
            test.context.append((label, result.scale, column))
    for result in file.results:
        if result.parent in phase_of:
            test, phase = phase_of[result.parent]
            for energy in _energies_of(result, identifier):
                test.energies.append((phase if energy.phase is not None else "", energy))
    return _told_apart([test for test in tests.values() if test.phases or test.context])


def _told_apart(tests: Sequence[PtsExperiment]) -> list[PtsExperiment]:
    """Tests whose factors are the same get their description as a further argument. Raises
    SchemaError if that is the same, too."""
    alike = Counter(test.experiment.id for test in tests)
    made = []
    for test in tests:
        if alike[test.experiment.id] > 1:
            arguments = (*test.experiment.arguments, ("description", test.description))
            experiment = replace(test.experiment, arguments=tuple(sorted(arguments)))
            test = replace(test, experiment=experiment)
        made.append(test)
    counts = Counter(test.experiment.id for test in made)
    for test in made:
        if counts[test.experiment.id] > 1:
            raise SchemaError(
                f"{test.profile}: two tests have the description {test.description!r} and the same "
                "factors: give them different descriptions"
            )
    return made


def _test(
    file: ResultFile, result: Result, own: Values | None, preset: str | None
) -> PtsExperiment | None:
    name = result.identifier.rpartition("/")[2]
    ours = "/" in result.identifier and name.startswith("eeio-")
    preset = preset or file.environment.get("EEIO_PRESET") or "standard"
    if ours:
        profile = profiles.find(name)
        tool, factors = profile.tool, _own_factors(result, profile, preset, _work(file))
    else:
        upstream = _upstream(result)
        if upstream is None:
            return None
        (tool, factors), preset = upstream, "standard"
    device = ours and factors.get("level") == "device" and "EEIO_DEVICE" in file.environment
    experiment = experiment_of(tool, factors, "device" if device else "file", None)
    if own is not None and own.experiment is not None:
        experiment = own.experiment
    return PtsExperiment(experiment, name, factors, _description(result, name, own), preset)


def _work(file: ResultFile) -> int | None:
    text = file.environment.get("EEIO_WORK")
    if text is None:
        return None
    return size_of("EEIO_WORK", "the work", text)


def _own_factors(
    result: Result, profile: Profile, preset: str, work_bytes: int | None
) -> dict[str, str]:
    try:
        arguments = dict(_split(argument, result) for argument in shlex.split(result.arguments))
    except ValueError as error:
        raise SchemaError(f"{result.identifier}: arguments: {error}") from error
    return profile.factors_of(preset, arguments, work_bytes)


def _split(word: str, result: Result) -> tuple[str, str]:
    key, separator, value = word.partition("=")
    if not separator:
        raise SchemaError(f"{result.identifier}: argument {word!r} is not key=value")
    return key, value


def _description(result: Result, name: str, own: Values | None) -> str:
    """Without PTS's suffix for one of several results of a test."""
    if "/" not in result.identifier or not name.startswith("eeio-"):
        return result.description
    appended = [*composite.pts_descriptions(profiles.find(name).folder).values()]
    if own is not None and own.phase:
        appended += [composite.phase_label(own.phase, result.scale)]
    for text in sorted(appended, key=len, reverse=True):
        if text and result.description.endswith(text):
            return result.description.removesuffix(text).rstrip(" -")
    return result.description


def _phase_name(test: PtsExperiment, result: Result, own: Values | None) -> str | None:
    """The phase of this result, if it is a bandwidth or file rate; None for other figures."""
    if (
        result.scale not in (composite.MB_PER_S, composite.FILES_PER_S)
        or test.experiment.level == "context"
    ):
        return None
    if own is not None and own.phase is not None:
        return own.phase
    if not test.profile.startswith("eeio-"):
        return test.experiment.operation
    descriptions = composite.pts_descriptions(profiles.find(test.profile).folder)
    # The longest first: `Random Read` ends with `Read` too.
    for phase, appended in sorted(descriptions.items(), key=lambda item: -len(item[1])):
        if result.description.endswith(appended):
            return phase
    return None


def _upstream(result: Result) -> tuple[str, dict[str, str]] | None:
    """pts/fio, pts/iozone and pts/tiobench, with factors only in the description."""
    name = result.identifier.removeprefix("pts/").rpartition("-")[0]
    pairs = {
        key.strip().lower(): value.strip()
        for key, _, value in (part.partition(":") for part in result.description.split(" - "))
    }
    if result.scale != "MB/s":
        return None
    if name == "fio" and pairs.get("type", "").lower() in _FIO_TYPES:
        operation, spatiality = _FIO_TYPES[pairs["type"].lower()]
        factors = {"request_size": _size(pairs.get("block size", ""))}
        factors |= {"engine": pairs.get("engine", "")}
        factors |= {"buffer": "off" if pairs.get("direct", "").lower() == "yes" else "on"}
        if inputs.whole_number(jobs := pairs.get("job count", "1")):
            factors["processes"] = jobs
    elif name == "iozone" and pairs.get("disk test", "").lower() in _IOZONE_TESTS:
        operation, spatiality = _IOZONE_TESTS[pairs["disk test"].lower()], "sequential"
        factors = {"request_size": _size(pairs.get("record size", ""))}
        factors |= {"file_size": _size(pairs.get("file size", "")), "buffer": "on"}
    elif name == "tiobench" and pairs.get("test", "").lower() in _TIOBENCH_TESTS:
        operation, spatiality = _TIOBENCH_TESTS[pairs["test"].lower()]
        factors = {"file_size": _size(pairs.get("size per thread", "")), "buffer": "on"}
        if inputs.whole_number(threads := pairs.get("thread count", "1")):
            factors["processes"] = threads
    else:
        return None
    known = {key: value for key, value in factors.items() if value}
    return name, {"level": "filesystem", "operation": operation, "spatiality": spatiality, **known}


def _size(text: str) -> str:
    """Upstream's `4KB` and `2MB` are binary."""
    match = re.fullmatch(r"(\d{1,9})\s*([KMG])i?B", text, re.IGNORECASE)
    if match:
        return f"{match[1]}{match[2].lower()}"
    return ""


def machine_of(system: System) -> Machine:
    """PTS's description of a machine; the rest is reported as missing."""
    reported = dict(
        part.split(": ", 1)
        for part in f"{system.hardware}, {system.software}".split(", ")
        if ": " in part
    )
    cores = re.search(
        r"\((?:\d{1,6} Cores? / )?(\d{1,6}) (?:Cores?|Threads?)\)", reported.get("Processor", "")
    )
    architecture = re.search(r"\(([^)]+)\)", reported.get("Kernel", ""))
    memory = re.search(r"(\d{1,6})\s?([MGT])B", reported.get("Memory", ""))
    missing = "a PTS result file does not hold it"
    unknown = (
        "frequency_min_hz",
        "frequency_max_hz",
        "device",
        "device_firmware",
        "device_size_bytes",
        "device_rotational",
        "device_write_cache",
        "mkfs_options",
    )
    reasons = dict.fromkeys(unknown, missing)
    if cores is None:
        reasons["logical_cpus"] = missing
    scale = {"M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
    return Machine(
        hostname=system.identifier,
        architecture=architecture[1] if architecture else "unknown",
        cpu_model=(reported.get("Processor") or "").partition(" (")[0] or None,
        logical_cpus=int(cores[1]) if cores else None,
        governor=_text(system.json.get("cpu-scaling-governor")),
        frequency_min_hz=None,
        frequency_max_hz=None,
        memory_bytes=int(memory[1]) * scale[memory[2]] if memory else None,
        kernel=reported.get("Kernel", "unknown").partition(" (")[0],
        distribution=reported.get("OS"),
        virtualization=reported.get("System Layer"),
        device=None,
        device_model=reported.get("Disk"),
        device_firmware=None,
        device_size_bytes=None,
        device_rotational=None,
        device_write_cache=None,
        scheduler=_text(system.json.get("disk-scheduler")),
        filesystem=reported.get("File-System"),
        mount_options=_text(system.json.get("disk-mount-options")),
        mkfs_options=None,
        missing=reasons,
    )


def _text(value: object) -> str | None:
    if isinstance(value, str) and value:
        return value
    return None


_COMPLETE_TRIAL = "the complete trial, from the start of the profile's executable to its end (PTS)"
_NO_WINDOW = "PTS reports only the start and end of the complete trial, not of its phases"


def run_of(test: PtsExperiment, trial: int, system: System) -> Run:
    measured = test.trial(trial)
    taken = {}
    for name, (column, unit) in test.phases.items():
        if (value := column.value(trial)) is not None:
            taken[name] = value, unit
    context = []
    for label, scale, column in test.context:
        if (value := column.value(trial)) is not None:
            context.append(ContextValue(label.lower(), value[0], scale))
    times = [time_s for (_, time_s), _ in taken.values() if time_s is not None]
    duration_s = (measured.duration_s if measured else None) or (times[0] if times else 0.0)
    failed = not taken and not context
    run = Run(
        experiment=test.experiment,
        repetition=trial + 1,
        order_index=0,
        preset=test.preset,
        started_utc=(measured.started_utc if measured else None) or utc(system.timestamp),
        started_monotonic_s=measured.start_s if measured else 0.0,
        duration_s=duration_s,
        exit_code=1 if failed else 0,
        phases=tuple(_phases(test, trial, taken, duration_s)),
        raw="",
        context=tuple(context),
        device_reason="PTS keeps no counters of the device",
        validity=("the trial failed under PTS",) if failed else (),
    )
    reported = [column.own.reported_of(trial) for column in test.columns if column.own]
    return with_reported(run, next((one for one in reported if one is not None), None))


def _phases(
    test: PtsExperiment,
    trial: int,
    taken: Mapping[str, tuple[tuple[float, float | None], float | None]],
    duration_s: float,
) -> list[Phase]:
    rates: dict[str, float] = {}
    bandwidths: dict[str, float | None] = {}
    for name, ((value, _), unit) in taken.items():
        bandwidths[name] = None if unit is None else value * unit
        if unit is None:
            rates[name] = value
    metrics: dict[str, float] = {}
    if test.experiment.tool == "fio" and len(bandwidths) == 2:
        # fio reads and writes at once: one phase, for its energy cannot be divided.
        both = {name: rate for name, rate in bandwidths.items() if rate is not None}
        metrics = {f"{name}_bandwidth_bytes_per_s": rate for name, rate in both.items()}
        bandwidths = {"mixed": sum(both.values())}
    is_complete = len(bandwidths) == 1 and duration_s > 0
    return [
        Phase(
            name=name,
            operation="metadata" if name in rates else _operation(test, name),
            spatiality="none" if name in rates else _spatiality(test, name),
            # Bonnie++ writes and reads a byte at a time, too.
            request_size_bytes=1
            if name.startswith("character ")
            else test.experiment.request_size_bytes,
            bytes_moved=None,  # PTS keeps no count of bytes
            bandwidth_bytes_per_s=bandwidth,
            start_s=0.0 if is_complete else None,
            end_s=duration_s if is_complete else None,
            window_source=_COMPLETE_TRIAL if is_complete else _NO_WINDOW,
            metrics={"operations_per_s": rates[name]} if name in rates else metrics,
            energy=_energy(test, trial, name, is_complete),
        )
        for name, bandwidth in bandwidths.items()
    ]


def _operation(test: PtsExperiment, phase: str) -> str:
    last = phase.rpartition(" ")[2]
    if phase == "rewrite" and test.experiment.tool == "bonnie":
        return "mixed"
    return {"rewrite": "write", "reread": "read"}.get(last, last)


def _spatiality(test: PtsExperiment, phase: str) -> str:
    first = phase.partition(" ")[0]
    if first in ("random", "strided"):
        return first
    return test.experiment.spatiality or "sequential"


def _energy(
    test: PtsExperiment, trial: int, phase: str, is_complete: bool
) -> tuple[EnergyReading, ...]:
    """Observations of exactly this phase: in a trial with several phases, the trial's do not
    apply."""
    readings = []
    for of_phase, energy in test.energies:
        if of_phase == phase or (of_phase == "" and is_complete):
            measured = None
            if trial < len(energy.trials):
                measured = energy.trials[trial]
            if measured is not None and measured.reading is not None:
                readings.append(measured.reading)
    return tuple(readings)


def utc(timestamp: str) -> str:
    """PTS writes local time without a zone; on the measuring machine that is UTC as a rule."""
    try:
        moment = datetime.strptime(timestamp, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
    except ValueError:
        moment = datetime.fromtimestamp(0, UTC)
    return moment.isoformat(timespec="seconds")


@dataclass(frozen=True)
class PtsFile:
    """A result file, with the experiments of each of its systems."""

    path: Path
    sha256: str
    file: ResultFile
    systems: tuple[tuple[System, list[PtsExperiment]], ...]

    @property
    def title(self) -> str:
        """A campaign's name, of the title of the file."""
        return slug(self.file.title or self.path.parent.name)

    def names(self, name: str | None) -> list[str]:
        """The campaign of each system. Raises RejectedError for a name that none may have."""
        base = _checked(name) if name is not None else self.title
        several = len(self.file.systems) > 1
        return [
            _checked(f"{base}-{slug(system.identifier)}" if several else base)
            for system, _ in self.systems
        ]


def read_file(path: Path, preset: str | None = None) -> PtsFile:
    """Raises RejectedError if no result of the file is readable, and SchemaError."""
    file = composite.read(path)
    systems = [(each, experiments_of(file, each.identifier, preset)) for each in file.systems]
    made = tuple((system, tests) for system, tests in systems if tests)
    if not made:
        raise RejectedError(
            f"{path}: no result of our profiles, pts/fio, pts/iozone or pts/tiobench in it"
        )
    return PtsFile(path, hashlib.sha256(path.read_bytes()).hexdigest(), file, made)


def import_file(
    path: Path, name: str | None, preset: str | None, results: Path | None = None
) -> list[tuple[str, Path, int]]:
    """Stores one campaign per system of the file; (name, folder, runs) of each. They are stored in
    the folder `results`, by default with the user's other campaigns.

    `name` is the campaign's, else the file's title; `preset` is used if the file does not contain
    one. Raises RejectedError if no result is readable, or a name is taken, and SchemaError, with
    the file, for invalid values.
    """
    with _naming(path):
        return store(read_file(path, preset), name, preset, results)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    try:
        yield
    except SchemaError as error:
        message = str(error)
        raise SchemaError(message if str(path) in message else f"{path}: {message}") from error


def store(
    read: PtsFile, name: str | None, preset: str | None = None, results: Path | None = None
) -> list[tuple[str, Path, int]]:
    """As `import_file`, of a file that was read before."""
    results = results or paths.results_root()
    source = f"imported from {read.path}, SHA-256 {read.sha256}"
    names = read.names(name)
    for campaign in names:
        if (results / campaign).exists():
            raise RejectedError(f"{results / campaign} exists: choose another --name")
    stored = []
    for campaign, (system, tests) in zip(names, read.systems, strict=True):
        folder = results / campaign
        with _naming(read.path), Store(folder).made_complete() as new:
            runs = _store(new, campaign, read.file, system, tests, preset, source)
        stored.append((campaign, folder, runs))
    return stored


def _store(
    store: Store,
    name: str,
    file: ResultFile,
    system: System,
    tests: list[PtsExperiment],
    preset: str | None,
    source: str,
) -> int:
    pairs = [(place, trial) for place, test in enumerate(tests) for trial in range(test.trials)]
    runs = [run_of(tests[place], trial, system) for place, trial in pairs]
    # The order is known if our module stored it; else the file's order is used.
    orders = {index: _order(tests[place], trial) for index, (place, trial) in enumerate(pairs)}
    if all(order is not None for order in orders.values()) and len(set(orders.values())) == len(
        orders
    ):
        ranks = {
            index: rank for rank, index in enumerate(sorted(orders, key=lambda i: orders[i] or 0))
        }
    else:
        ranks = {index: index for index in orders}
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
            remarks=[source],
            eeio_version=__version__,
        )
    )
    store.write_machine(machine_of(system))
    idle = idle_of(file, system.identifier)
    store.write_idle(idle, None if idle else "the result file contains no idle baseline")
    store.append_all(ordered)
    return len(runs)


def _order(test: PtsExperiment, trial: int) -> int | None:
    measured = test.trial(trial)
    if measured is None:
        return None
    return measured.order


def idle_of(file: ResultFile, identifier: str) -> tuple[EnergyReading, ...]:
    """The idle baseline of a system; empty where there is none."""
    for result in file.results:
        for entry in result.entries:
            if entry.identifier == identifier and isinstance(own := own_of(entry), Idle):
                return own.readings
    return ()


def slug(text: str) -> str:
    """A campaign's name made of any text. Raises EeioError if no character is left."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", text[: 2 * LONGEST_NAME]).strip("-.")
    if not name:
        raise EeioError(f"{text!r} gives no campaign name: give --name")
    return name[:LONGEST_NAME]


def _checked(name: str) -> str:
    try:
        return campaign_name(name)
    except LimitError as error:
        raise RejectedError(str(error)) from error
