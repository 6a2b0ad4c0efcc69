"""Pilots before the first run: how much work makes phases long enough, how short a run may be.

Results are stored (pilot_store.py), so that each machine needs one pilot. A run at the size of
preset `quick` sizes the work; a complete run sets the run times.

How much work makes a phase long enough: from a short run before the first repetition.

A phase of a tenth of a second contains hardly a power reading. Its length depends on the disk. So
each experiment with a work size runs once at the size of preset `quick`. The time it takes sets the
size for all repetitions. Sizes fixed by a suite or the user do not change.

How short a run may be: from one complete run of each time-limited experiment.

If bandwidth and power are constant, the first seconds of a run give the same result as the complete
run. That depends on the machine and the drive. So a pilot runs each such experiment to its end. It
finds the length from which on the result is within the minimum effect (`floor`) of the complete
run's. Bandwidth over time comes from the drive's byte counters, so tools need no log. With direct
I/O these are the tool's bytes, which the pilot checks. Runs through the page cache are not
shortened: they begin by filling it.

The bytes that a drive moves over time: its counters, read during a run.
"""

import math
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from eeio.errors import EeioError, RejectedError
from eeio.machine.counters import read_counters
from eeio.machine.filesystem import BlockDevice
from eeio.measure.campaign import pilot_store, safety
from eeio.measure.campaign.pilot_store import PilotTask, StoredPilot
from eeio.measure.campaign.planned_campaign import Plan
from eeio.measure.campaign.probes import Sampling
from eeio.measure.profiles.profile import Profile
from eeio.record.design import AdaptiveProtocol, NotMeasured, Options, PlannedExperiment, Protocol
from eeio.record.run import Machine, Phase, Run
from eeio.statistics.stopping import proven_length
from eeio.units.external_text import shown
from eeio.units.quantities import DURATION
from eeio.units.sizes import parse_size, percent
from eeio_power.meters import Meter
from eeio_power.monitor import PowerMonitor, reading_period_s

READINGS = 20
"""Of the slowest meter, in the shortest phase."""
MOST_BYTES = 64 << 30
"""The largest file that a pilot chooses."""
MOST_COUNT = 100_000
"""Maximum of counts that are not sizes, such as rounds."""

MOST_TIMES = 30
"""A run that grew lasts so many times the shortest phase that is wanted, at most: of several phases
one may be far longer than another."""

PILOT_PRESET = "quick"
# A short run is slower than a long one by its start, and disks are not steady.
_MARGIN = 1.5


@dataclass(frozen=True)
class Sized:
    """The work that a pilot found: `planned` at another size, and the messages about it.

    `too_slow` is why the experiment cannot be run in this preset.
    """

    planned: PlannedExperiment
    short: str | None = None
    """Why phases stay shorter than wanted."""
    too_slow: str | None = None


def least_phase_s(protocol: Protocol, options: Options, meters: Sequence[Meter]) -> float | None:
    """How long each phase should last, s; None if the protocol does not set it."""
    if protocol.min_phase_s is None:
        return None
    return max(protocol.min_phase_s, resolved_s(options, meters))


def resolved_s(options: Options, meters: Sequence[Meter]) -> float:
    """How long a phase must be for the slowest of the meters, s; 0 without one."""
    rates_hz = options.rate_hz, options.counter_rate_hz
    slowest_s = max((reading_period_s(meter, *rates_hz) for meter in meters), default=0.0)
    return READINGS * slowest_s


def growing_factor(planned: PlannedExperiment, profile: Profile, preset: str) -> str | None:
    """The factor that a pilot may raise; None where the work is fixed, by the suite or the user, or
    is a file system's that is made for the campaign, or no size."""
    decided = profile.preset(preset)
    factor = decided.get("grows")
    if factor is None or planned.volume or planned.variant is not None:
        return None
    if planned.factors.get(factor) == decided.get(factor):
        return factor
    return None


def may_grow(plan: Plan) -> bool:
    """Whether a pilot may raise the work of an experiment above the plan's."""
    return plan.protocol.min_phase_s is not None and any(
        growing_factor(planned, plan.profiles[planned.profile], plan.sizes_preset) is not None
        for planned in plan.experiments
        if planned.pilot is None
    )


def at_pilot_size(planned: PlannedExperiment, profile: Profile, preset: str) -> PlannedExperiment:
    """The experiment at the pilot's size: values of the preset come from preset `quick`."""
    decided, quick = profile.preset_factors(preset), profile.presets.get(PILOT_PRESET, {})
    factors = {
        key: quick[key] if key in quick and decided.get(key) == value else value
        for key, value in planned.factors.items()
    }
    return replace(planned, factors=factors)


def sized(
    planned: PlannedExperiment,
    run: Run,
    tried: PlannedExperiment,
    factor: str,
    profile: Profile,
    *,
    least_s: float,
    most_bytes: int,
    timeout_s: float,
) -> Sized:
    """The work of `planned` by the pilot's run; the factor is its size.

    Sizes grow by powers of two, to `most_bytes` at most. A run that would take longer than
    `timeout_s` is too slow: it would time out.
    """
    name = f"{planned.profile} {planned.experiment.id}"
    lasted_s = [s for s in map(_lasted_s, run.phases) if s]
    if run.validity or not lasted_s:
        reason = run.validity[0] if run.validity else "it reported no window"
        text = f"unusable pilot, so {factor} is the preset's: {reason}"
        return Sized(replace(planned, pilot=text, sized=factor), short=f"{name}: {text}")
    steps = _steps(factor, profile)
    now, then = (_amount(steps, p.factors[factor]) for p in (planned, tried))
    runtime_s = DURATION.of_text(planned.factors.get("runtime_s", "0"))
    shortest_s, complete_s = min(lasted_s) * now / then, sum(lasted_s) * now / then
    if not runtime_s and complete_s > timeout_s:
        return Sized(
            planned,
            too_slow=(
                f"too slow for this preset: {factor}={planned.factors[factor]} would take "
                f"{complete_s:.0f} s (a pilot of {tried.factors[factor]} took {sum(lasted_s):.1f} "
                f"s), and a run is given up after {timeout_s:.0f} s; take preset {PILOT_PRESET}, "
                "or a faster disk"
            ),
        )
    result = f"a pilot of {tried.factors[factor]} took {min(lasted_s):.3g} s"
    if shortest_s >= least_s:
        text = f"{result}: {factor}={planned.factors[factor]}, as the preset has it"
        return Sized(replace(planned, pilot=text, sized=factor))
    wanted = now * 2 ** math.ceil(math.log2(least_s * _MARGIN / shortest_s))
    is_count = steps is None and factor != "file_size"
    # Of a run that has a run time, that ends it.
    in_time = math.inf if runtime_s else now * MOST_TIMES * least_s / complete_s
    most = min(in_time, MOST_COUNT if is_count else min(MOST_BYTES, most_bytes))
    word, amount = _at_most(steps, wanted, now, most)
    grown = planned
    if amount > now:
        grown = _with(planned, factor, word, 0 if is_count else amount)
    text = f"{result}: {factor}={grown.factors[factor]}, by the preset {planned.factors[factor]}"
    will_s = shortest_s * max(amount, now) / now
    short = None
    if will_s < least_s:
        short = (
            f"{name}: its shortest phase will last about {will_s:.2g} s, less than {least_s:g} s: "
            f"{factor}={grown.factors[factor]} is the most for the room there is and for "
            f"{MOST_TIMES * least_s:g} s a run"
        )
    return Sized(replace(grown, pilot=text, sized=factor), short=short)


def as_stored(
    planned: PlannedExperiment, factor: str, word: str, file_bytes: int, text: str
) -> PlannedExperiment:
    """The experiment with the work that an earlier pilot found."""
    same = planned.factors[factor] == word
    grown = planned
    if not same:
        grown = _with(planned, factor, word, file_bytes)
    return replace(grown, pilot=text, sized=factor)


def _lasted_s(phase: Phase) -> float | None:
    durable = phase.until_durable
    if durable is None or phase.start_s is None:
        return phase.lasted_s
    return durable.end_s - phase.start_s


def _steps(factor: str, profile: Profile) -> Mapping[str, int] | None:
    """For a factor with class names as values: the presets' values, with their bytes."""
    steps = {
        decided[factor]: int(decided.get("footprint", 0))
        for decided in profile.presets.values()
        if factor in decided and not decided[factor][:1].isdigit()
    }
    return steps or None


def _amount(steps: Mapping[str, int] | None, word: str) -> int:
    if steps is not None:
        return steps[word]
    return parse_size(word)


def _at_most(
    steps: Mapping[str, int] | None, wanted: int, now: int, most: float
) -> tuple[str, int]:
    """The value for the wanted size, or for the maximum, at least the present one."""
    if steps is None:
        amount = wanted
        while amount > most and amount > now:
            amount //= 2
        return str(amount), amount
    allowed = sorted((s, word) for word, s in steps.items() if s == now or now < s <= most)
    size, word = next(((s, w) for s, w in allowed if s >= wanted), allowed[-1])
    return word, size


def _with(planned: PlannedExperiment, factor: str, word: str, file_bytes: int) -> PlannedExperiment:
    """The experiment with more work: another one, by its id, for it is not the same work."""
    arguments = {**dict(planned.experiment.arguments), factor: word}
    return replace(
        planned,
        experiment=replace(planned.experiment, arguments=tuple(sorted(arguments.items()))),
        factors={**planned.factors, factor: word},
        file_bytes=max(planned.file_bytes, file_bytes),
    )


def on_one_file(
    found: Mapping[str, PlannedExperiment | NotMeasured],
) -> dict[str, PlannedExperiment | NotMeasured]:
    """All experiments that a run time ends with the largest file that one of them needs: they share
    it, where other sizes would be written anew between them, and layers are compared on it."""
    shared = [
        planned
        for planned in found.values()
        if isinstance(planned, PlannedExperiment)
        and planned.sized == "file_size"
        and planned.experiment.target != "device"
        and float(planned.factors.get("runtime_s", "0"))
    ]
    largest = max(shared, key=lambda p: parse_size(p.factors["file_size"]), default=None)
    if largest is None:
        return dict(found)
    word = largest.factors["file_size"]
    ids = {planned.experiment.id for planned in shared}
    return {
        id: _with(planned, "file_size", word, parse_size(word))
        if isinstance(planned, PlannedExperiment) and planned.experiment.id in ids
        else planned
        for id, planned in found.items()
    }


def planned_anew(plan: Plan, found: Mapping[str, PlannedExperiment | NotMeasured]) -> Plan:
    """The plan with the pilots' results for its experiments, by their ids; the order of runs
    stays."""
    ids = {planned.experiment.id for planned in plan.experiments}

    def anew(planned: PlannedExperiment) -> PlannedExperiment | None:
        new = found.get(planned.experiment.id, planned)
        if isinstance(new, NotMeasured):
            return None
        # Where the suite has the grown one too, one of each stays.
        taken = new.experiment.id != planned.experiment.id and new.experiment.id in ids
        if taken:
            return planned
        return new

    by_id = {planned.experiment.id: anew(planned) for planned in plan.experiments}
    runs = [(new, run) for run in plan.runs if (new := by_id[run.experiment.experiment.id])]
    experiments = tuple(new for new in by_id.values() if new is not None)
    return replace(
        plan,
        experiments=experiments,
        not_measured=(
            *plan.not_measured,
            *(new for new in found.values() if isinstance(new, NotMeasured)),
        ),
        runs=tuple(
            replace(run, order_index=index, experiment=new) for index, (new, run) in enumerate(runs)
        ),
    )


BANDWIDTH = "bandwidth"
# Other bytes on the drive, bytes that did not reach it, and bytes in flight at an edge.
_MOST_APART = 0.02
_EDGES_S = 0.1


@dataclass(frozen=True)
class Proof:
    """The run time that a pilot found, s, as a factor's value; the preset's if no shorter one is
    proved. `text` describes how. `metrics` are the compared metrics; none if the pilot was
    unusable."""

    runtime_s: str
    text: str
    metrics: tuple[str, ...] = ()


@dataclass(frozen=True)
class MovedBytes:
    """A drive's counters since boot, at times of CLOCK_MONOTONIC."""

    times_s: Sequence[float]
    counted: Sequence[int]

    def between(self, start_s: float, end_s: float) -> float:
        """Bytes, between two counts by a straight line. Raises EeioError outside them."""
        return self._at(end_s) - self._at(start_s)

    def _at(self, time_s: float) -> float:
        place = bisect_right(self.times_s, time_s)
        if not 0 < place < len(self.times_s):
            raise EeioError("the drive was not watched for all of the run")
        before, after = self.times_s[place - 1], self.times_s[place]
        share = (time_s - before) / (after - before)
        first = self.counted[place - 1]
        return first + share * (self.counted[place] - first)


def lengths_to_try(
    planned: PlannedExperiment, rule: AdaptiveProtocol, least_s: float
) -> tuple[float, ...]:
    """Run times shorter than the experiment's, s, at least the required phase length. None if its
    runs cannot be shortened: they use the page cache, or their work ends them."""
    complete_s = DURATION.of_text(planned.factors.get("runtime_s", "0"))
    if rule.pilot == "none" or planned.experiment.cache.buffer != "off":
        return ()
    return tuple(s for s in sorted(rule.lengths_s) if least_s <= s < complete_s)


def with_run_time(planned: PlannedExperiment, runtime_s: str, result: str) -> PlannedExperiment:
    """The experiment with the proved run time. If that differs, it is another experiment, with
    another id."""
    complete = planned.factors["runtime_s"]
    text = result
    if planned.pilot is not None:
        text = f"{planned.pilot}; {result}"
    changed = replace(planned, pilot=text, cut_from=complete)
    if runtime_s == complete:
        return changed
    arguments = {**dict(planned.experiment.arguments), "runtime_s": runtime_s}
    experiment = replace(planned.experiment, arguments=tuple(sorted(arguments.items())))
    return replace(
        changed, experiment=experiment, factors={**planned.factors, "runtime_s": runtime_s}
    )


def prove_run_time(
    planned: PlannedExperiment,
    run: Run,
    moved: MovedBytes | None,
    power: PowerMonitor,
    rule: AdaptiveProtocol,
    lengths_s: Iterable[float],
) -> Proof:
    """The result of the pilot's complete run. `moved` is None without drive counters."""
    complete = planned.factors["runtime_s"]

    def stays(reason: str, metrics: Iterable[str] = ()) -> Proof:
        return Proof(complete, f"run time {complete} s, complete: {reason}", tuple(metrics))

    if run.validity or len(run.phases) != 1 or run.phases[0].validity:
        invalid = (*run.validity, *(reason for phase in run.phases for reason in phase.validity))
        return stays(f"its pilot is unusable: {next(iter(invalid), 'it is not one phase')}")
    phase = run.phases[0]
    if phase.start_s is None or phase.end_s is None:
        return stays(f"the time of the pilot's I/O is unknown: {phase.window_source}")
    if phase.stretches:
        return stays("its pilot's I/O has several intervals")
    if moved is None:
        return stays("no drive counters show its bandwidth over time")
    start_s, end_s = (run.started_monotonic_s + s for s in (phase.start_s, phase.end_s))
    try:
        full = _means(moved, power, start_s, end_s)
        reason = _disagrees(full[BANDWIDTH] * (end_s - start_s), phase, end_s - start_s)
        if reason is not None:
            return stays(reason)
        lengths = [s for s in lengths_s if s < end_s - start_s]
        means = {s: _means(moved, power, start_s, start_s + s) for s in lengths}
        found_s = proven_length(means, full, rule.floor)
    except EeioError as error:
        return stays(str(error))
    if found_s is None:
        reason = f"no shorter one keeps {' and '.join(full)} within {percent(rule.floor)} %"
        return stays(f"{reason}{_worst(means, full)}", full)
    text = (
        f"run time {found_s:g} s of {complete}: after it, {' and '.join(full)} of a complete run "
        f"stayed within {percent(rule.floor)} % of its means"
    )
    return Proof(f"{found_s:g}", text, tuple(full))


def _means(
    moved: MovedBytes, power: PowerMonitor, start_s: float, end_s: float
) -> Mapping[str, float]:
    """Bandwidth in bytes/s, and power in W of each meter and domain that measured it."""
    means = {BANDWIDTH: moved.between(start_s, end_s) / (end_s - start_s)}
    for reading in power.energy(start_s, end_s):
        if reading.kind != "modelled" and reading.power_w:
            means[f"{reading.meter} {reading.domain}"] = reading.power_w
    return means


def _disagrees(moved_bytes: float, phase: Phase, lasted_s: float) -> str | None:
    apart = None
    if phase.bytes_moved:
        apart = moved_bytes / phase.bytes_moved - 1
    if apart is not None and abs(apart) <= _MOST_APART + _EDGES_S / lasted_s:
        return None
    return (
        f"its drive moved {moved_bytes:.4g} bytes and the tool {phase.bytes_moved:.4g} in the "
        "pilot, so the drive's count is not its bandwidth"
    )


def _worst(means: Mapping[float, Mapping[str, float]], complete: Mapping[str, float]) -> str:
    """The deviation of the longest cut, as text."""
    if not means:
        return ""
    length_s = max(means)
    off = {
        metric: means[length_s][metric] / value - 1
        for metric, value in complete.items()
        if metric in means[length_s]
    }
    metric = max(off, key=lambda name: abs(off[name]))
    return f" ({metric} of {length_s:g} s is off by {100 * off[metric]:+.2g} %)"


_STEP_S = 0.02


class DriveBytes(Sampling):
    """The drive's counters of reads and writes."""

    def __init__(self, device: BlockDevice) -> None:
        super().__init__(_STEP_S)
        self._device = device
        self._times_s: list[float] = []
        self._counted: list[int] = []

    def moved(self) -> MovedBytes:
        """After the end: all that was read."""
        return MovedBytes(self._times_s, self._counted)

    def _begin(self) -> None:
        self._sample()

    def _sample(self) -> None:
        before_s = time.monotonic()
        try:
            counters = read_counters(self._device)
        except OSError:
            return  # the drive is gone, which the run reports
        self._times_s.append((before_s + time.monotonic()) / 2)
        self._counted.append(counters.read_bytes + counters.written_bytes)


_Found = dict[str, PlannedExperiment | NotMeasured]


@dataclass(frozen=True)
class Pilots:
    """Those of one campaign. `trial` runs an experiment once, and lets the machine settle before it
    where that is true; `device` is where its bytes go."""

    plan: Plan
    campaign: str
    machine: Machine
    power: PowerMonitor
    say: Callable[[str], None]
    trial: Callable[[PlannedExperiment, bool], Run]
    device: Callable[[PlannedExperiment], BlockDevice | None]

    def work(self) -> Plan:
        """The plan with work for long enough phases; itself if that is not required. Raises
        RejectedError if only stored pilots may be used, and one is not valid."""
        plan = self.plan
        least_s = least_phase_s(plan.protocol, plan.options, self.power.meters)
        if least_s is None:
            return plan
        results: _Found = {}
        for planned in plan.experiments:
            factor = growing_factor(planned, plan.profiles[planned.profile], plan.sizes_preset)
            if factor is not None and planned.pilot is None:
                results[planned.experiment.id] = self._worked(planned, factor, least_s)
        if results:
            return planned_anew(plan, on_one_file(results))
        return plan

    def lengths(self) -> Plan:
        """The plan with the shortest proved run times; itself if no run can be shortened. Raises
        RejectedError as `work` does."""
        plan = self.plan
        rule = plan.protocol.adaptive
        if rule is None:
            return plan
        least_s = max(plan.protocol.min_phase_s or 0.0, resolved_s(plan.options, self.power.meters))
        results: _Found = {
            planned.experiment.id: self._timed(planned, rule, lengths_s, least_s)
            for planned in plan.experiments
            if planned.cut_from is None and (lengths_s := lengths_to_try(planned, rule, least_s))
        }
        if results:
            return planned_anew(plan, results)
        return plan

    def _worked(
        self, planned: PlannedExperiment, factor: str, least_s: float
    ) -> PlannedExperiment | NotMeasured:
        plan, profile = self.plan, self.plan.profiles[planned.profile]
        most_bytes = plan.room_to_grow(planned)
        task = PilotTask(
            "work",
            planned.profile,
            planned.experiment,
            factor,
            planned.factors[factor],
            plan.sizes_preset,
            least_s,
        )
        known = self._known(task, planned)
        if known is not None and known.file_bytes <= max(most_bytes, planned.file_bytes):
            return as_stored(planned, factor, known.found, known.file_bytes, known.words)
        tried = at_pilot_size(planned, profile, plan.sizes_preset)
        self.say(f"pilot: {planned.description}")
        # It is not stored, so it needs no settling before it.
        changed = sized(
            planned,
            self.trial(tried, False),
            tried,
            factor,
            profile,
            least_s=least_s,
            most_bytes=most_bytes,
            timeout_s=plan.timeout_s(planned),
        )
        if changed.too_slow is not None:
            self.say(f"left out: {planned.description}: {changed.too_slow}")
            return NotMeasured(planned.experiment, changed.too_slow)
        self.say(changed.short or f"{planned.description}: {changed.planned.pilot}")
        if changed.short is None:
            new = changed.planned
            self._keep(task, new.factors[factor], new.file_bytes, new.pilot or "")
        return changed.planned

    def _timed(
        self,
        planned: PlannedExperiment,
        rule: AdaptiveProtocol,
        lengths_s: tuple[float, ...],
        least_s: float,
    ) -> PlannedExperiment:
        task = PilotTask(
            "length",
            planned.profile,
            planned.experiment,
            "runtime_s",
            planned.factors["runtime_s"],
            self.plan.sizes_preset,
            least_s,
            rule.floor,
            lengths_s,
            tuple(meter.name for meter in self.power.meters if meter.kind != "modelled"),
        )
        known = self._known(task, planned)
        if known is not None:
            return with_run_time(planned, known.found, known.words)
        self.say(f"pilot: {planned.description}: {task.before} s, for how short it may be")
        proof = self._proof(planned, rule, lengths_s)
        self.say(f"{planned.description}: {proof.text}")
        if proof.metrics:
            self._keep(task, proof.runtime_s, planned.file_bytes, proof.text)
        return with_run_time(planned, proof.runtime_s, proof.text)

    def _proof(
        self, planned: PlannedExperiment, rule: AdaptiveProtocol, lengths_s: tuple[float, ...]
    ) -> Proof:
        try:
            device = self.device(planned)
        except EeioError:
            device = None  # the run reports it
        if device is None:
            return Proof(
                planned.factors["runtime_s"],
                f"run time {planned.factors['runtime_s']} s, complete: no drive counters show "
                "its bandwidth over time",
            )
        with DriveBytes(device) as bytes_of:
            run = self.trial(planned, True)
        return prove_run_time(planned, run, bytes_of.moved(), self.power, rule, lengths_s)

    def _known(self, task: PilotTask, planned: PlannedExperiment) -> StoredPilot | None:
        """A valid stored pilot, if those may be used; RejectedError if no other may be."""
        rule = self.plan.protocol.adaptive
        uses = "each"
        if rule is not None:
            uses = rule.pilot
        if uses == "each":
            return None
        known, why = pilot_store.best(task, self.machine, self._disks())
        if known is not None:
            self.say(f"{planned.description}: as a pilot of {known.made_utc[:10]} found")
            return known
        if uses == "stored":
            reason = "; ".join(why) or "there is none"
            raise RejectedError(
                f"{planned.description}: no stored pilot is valid: {shown(reason)}; without "
                "--pilot stored the campaign runs one"
            )
        if why:
            self.say(f"a stored pilot is not valid: {shown('; '.join(why))}")
        return None

    def _keep(self, task: PilotTask, found: str, file_bytes: int, text: str) -> None:
        made_utc = datetime.now(UTC).isoformat(timespec="seconds")
        try:
            pilot_store.keep(
                StoredPilot(
                    pilot_store.SCHEMA_VERSION,
                    task,
                    found,
                    file_bytes,
                    text,
                    self.campaign,
                    made_utc,
                    self.machine,
                    self._disks(),
                )
            )
        except EeioError as error:
            self.say(f"eeio: {error}")  # the next campaign makes it again

    def _disks(self) -> Mapping[str, str]:
        return safety.disks(self.plan.options)
