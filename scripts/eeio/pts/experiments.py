"""The experiments of a PTS result file: which results are of one test with its factors."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

from eeio.profiles import profile as profiles
from eeio.profiles.profile import Profile
from eeio.profiles.suite import experiment_of, size_of
from eeio.pts import composite
from eeio.pts.composite import Result, ResultEntry, ResultFile
from eeio.pts.entry import ENERGY, QuantityEntry, TrialEntry, Values, own_of
from eeio_limits import inputs
from eeio_results.errors import SchemaError
from eeio_results.record import Experiment

MIB = 1 << 20
FILES_PER_S = "Files/s"

# Upstream's words -> ours: (operation, spatiality).
_FIO_TYPES = {
    "random read": ("read", "random"),
    "random write": ("write", "random"),
    "sequential read": ("read", "sequential"),
    "sequential write": ("write", "sequential"),
}
_IOZONE_TESTS = {"read performance": "read", "write performance": "write"}


@dataclass(frozen=True)
class TrialValues:
    """The values of one result, and what our module says of their trials."""

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
    """One experiment of a file: its bandwidths by phase, and the energy seen of its trials."""

    experiment: Experiment
    profile: str
    factors: Mapping[str, str]
    description: str
    preset: str
    phases: dict[str, tuple[TrialValues, float | None]] = field(default_factory=dict)
    """Phase -> values, and bytes/s in one of their units; None for a rate, in files/s."""
    context: list[tuple[str, str, TrialValues]] = field(default_factory=list)
    """(words, unit, values) of figures that describe the machine."""
    energies: list[tuple[str, QuantityEntry]] = field(default_factory=list)
    """(phase or nothing for the whole trial, energy with its trials)."""

    @property
    def columns(self) -> list[TrialValues]:
        return [*(c for c, _ in self.phases.values()), *(c for _, _, c in self.context)]

    @property
    def trials(self) -> int:
        return max((column.trials for column in self.columns), default=0)

    def trial(self, number: int) -> TrialEntry | None:
        """What our module wrote of a trial; nothing in a file of plain PTS."""
        seen = (energy.trials for _, energy in self.energies)
        return next((trials[number] for trials in seen if number < len(trials)), None)


def experiments_of(file: ResultFile, identifier: str, preset: str | None) -> list[PtsExperiment]:
    """Those of one system; `preset` is what it ran with where the file does not say.

    Raises SchemaError for what cannot be, and EeioError for a profile of ours that is not here.
    """
    found: dict[tuple[str, str], PtsExperiment] = {}
    phase_of: dict[str, tuple[PtsExperiment, str]] = {}
    for result in file.results:
        entry = next((e for e in result.entries if e.identifier == identifier), None)
        if entry is None or not result.identifier:
            continue
        key = (result.identifier, result.arguments)
        test = found.get(key) or _test(file, result, preset)
        if test is None:
            continue
        own = own_of(entry)
        column = TrialValues(entry, own if isinstance(own, Values) else None)
        phase = _phase_name(test, result, column.own)
        if phase is not None and entry.values:
            bytes_per_s = 1e6 if test.profile.startswith("eeio-") else float(MIB)
            test.phases[phase] = (column, None if result.scale == FILES_PER_S else bytes_per_s)
            phase_of[result.comparison_hash] = (test, phase)
        elif test.experiment.level == "context" and entry.values:
            words = result.description.removeprefix(test.description).strip() or result.description
            test.context.append((words, result.scale, column))
        found[key] = test
    for result in file.results:
        owner = phase_of.get(result.parent)
        for entry in result.entries:
            if owner is None or entry.identifier != identifier:
                continue
            energy = own_of(entry)
            if isinstance(energy, QuantityEntry) and energy.quantity == ENERGY:
                test, phase = owner
                test.energies.append((phase if energy.phase is not None else "", energy))
    return [test for test in found.values() if test.phases or test.context]


def _test(file: ResultFile, result: Result, preset: str | None) -> PtsExperiment | None:
    name = result.identifier.rpartition("/")[2]
    ours = result.identifier.startswith("local/eeio-")
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
    return PtsExperiment(experiment, name, factors, _description(result, name, ours), preset)


def _work(file: ResultFile) -> int | None:
    told = file.environment.get("EEIO_WORK")
    return None if told is None else size_of("EEIO_WORK", "the work", told)


def _own_factors(
    result: Result, profile: Profile, preset: str, work_bytes: int | None
) -> dict[str, str]:
    sizes = profile.preset_factors(preset, work_bytes)
    try:
        words = dict(_split(word, result) for word in shlex.split(result.arguments))
    except ValueError as error:
        raise SchemaError(f"{result.identifier}: arguments: {error}") from error
    return {**sizes, **words}


def _split(word: str, result: Result) -> tuple[str, str]:
    key, separator, value = word.partition("=")
    if not separator:
        raise SchemaError(f"{result.identifier}: argument {word!r} is not key=value")
    return key, value


def _description(result: Result, name: str, ours: bool) -> str:
    """Without what PTS appended for one of several results of a test."""
    if not ours:
        return result.description
    appended = composite.pts_words(profiles.find(name).folder).values()
    for words in sorted(appended, key=len, reverse=True):
        if words and result.description.endswith(words):
            return result.description.removesuffix(words).rstrip(" -")
    return result.description


def _phase_name(test: PtsExperiment, result: Result, own: Values | None) -> str | None:
    """The phase whose bandwidth, or rate of files, this result is; None for other figures."""
    if result.scale not in ("MB/s", FILES_PER_S) or test.experiment.level == "context":
        return None
    if own is not None and own.phase is not None:
        return own.phase
    if not test.profile.startswith("eeio-"):
        return test.experiment.operation
    words = composite.pts_words(profiles.find(test.profile).folder)
    # The longest first: `Random Read` ends with `Read` too.
    for phase, appended in sorted(words.items(), key=lambda item: -len(item[1])):
        if result.description.endswith(appended):
            return phase
    return None


def _upstream(result: Result) -> tuple[str, dict[str, str]] | None:
    """pts/fio and pts/iozone, whose factors stand in the description alone."""
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
    else:
        return None
    known = {key: value for key, value in factors.items() if value}
    return name, {
        "level": "filesystem", "operation": operation, "spatiality": spatiality, **known
    }  # fmt: skip


def _size(text: str) -> str:
    """Upstream's `4KB` and `2MB` are binary."""
    match = re.fullmatch(r"(\d{1,9})\s*([KMG])i?B", text, re.IGNORECASE)
    return f"{match[1]}{match[2].lower()}" if match else ""
