"""How much work makes a phase long enough: from a short run before the first repetition.

A phase that is over in a tenth of a second has hardly a reading in it. How long it lasts is known
when the disk is: so each experiment whose work is a size runs once, at the size of preset `quick`,
and what that took tells which size the campaign uses, for all repetitions alike. What a suite or
the user fixed stays as it is.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from eeio.campaign.plan import Plan
from eeio.profiles.profile import Profile
from eeio_limits.quantities import DURATION
from eeio_power.meters import Meter
from eeio_power.monitor import reading_period_s
from eeio_results.campaign import NotMeasured, Options, PlannedExperiment, Protocol
from eeio_results.record import Phase, Run
from eeio_results.units import parse_size

READINGS = 20
"""Of the slowest meter, in the shortest phase."""
MOST_BYTES = 64 << 30
"""The largest file that a pilot chooses."""
MOST_COUNT = 100_000
"""The most of what is counted and no size, such as rounds."""

MOST_TIMES = 30
"""A run that grew lasts so many times the shortest phase that is wanted, at most: of several phases
one may be far longer than another."""

PILOT_PRESET = "quick"
# A short run is slower than a long one by its start, and disks are not steady.
_MARGIN = 1.5


@dataclass(frozen=True)
class Sized:
    """The work that a pilot found: of `planned` one step more or less, and what to tell of it.

    `too_slow` is why the experiment cannot be run in this preset.
    """

    planned: PlannedExperiment
    short: str | None = None
    """Why phases stay shorter than wanted."""
    too_slow: str | None = None


def least_phase_s(protocol: Protocol, options: Options, meters: Sequence[Meter]) -> float | None:
    """How long each phase should last, s; None where the protocol asks for nothing."""
    if protocol.min_phase_s is None:
        return None
    return max(protocol.min_phase_s, resolved_s(options, meters))


def resolved_s(options: Options, meters: Sequence[Meter]) -> float:
    """How long a phase must be for the slowest of the meters, s; 0 without one."""
    rates_hz = options.rate_hz, options.counter_rate_hz
    slowest_s = max((reading_period_s(meter, *rates_hz) for meter in meters), default=0.0)
    return READINGS * slowest_s


def growing(planned: PlannedExperiment, profile: Profile, preset: str) -> str | None:
    """The factor that a pilot may raise; None where the work is fixed, by the suite or the user, or
    is a file system's that is made for the campaign, or no size."""
    decided = profile.preset(preset)
    factor = decided.get("grows")
    if factor is None or planned.volume or planned.variant is not None:
        return None
    return factor if planned.factors.get(factor) == decided.get(factor) else None


def trial(planned: PlannedExperiment, profile: Profile, preset: str) -> PlannedExperiment:
    """The experiment at the size of the pilot: what the preset decides is the quick one's."""
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
    """What the pilot's run says about the work of `planned`, whose size is the factor's.

    Sizes grow by powers of two, to `most_bytes` at most. A run that would take longer than
    `timeout_s` is too slow: it would be given up.
    """
    name = f"{planned.profile} {planned.experiment.id}"
    lasted_s = [s for s in map(_lasted_s, run.phases) if s]
    if run.validity or not lasted_s:
        why = run.validity[0] if run.validity else "it told no window"
        told = f"a pilot of no use, so {factor} is the preset's: {why}"
        return Sized(replace(planned, pilot=told, sized=factor), short=f"{name}: {told}")
    steps = _steps(factor, profile)
    now, then = (_amount(steps, p.factors[factor]) for p in (planned, tried))
    runtime_s = DURATION.of_text(planned.factors.get("runtime_s", "0"))
    shortest_s, whole_s = min(lasted_s) * now / then, sum(lasted_s) * now / then
    if not runtime_s and whole_s > timeout_s:
        return Sized(planned, too_slow=(
            f"too slow for this preset: {factor}={planned.factors[factor]} would take "
            f"{whole_s:.0f} s (a pilot of {tried.factors[factor]} took {sum(lasted_s):.1f} s), "
            f"and a run is given up after {timeout_s:.0f} s; take preset {PILOT_PRESET}, or a "
            "faster disk"
        ))  # fmt: skip
    words = f"a pilot of {tried.factors[factor]} took {min(lasted_s):.3g} s"
    if shortest_s >= least_s:
        told = f"{words}: {factor}={planned.factors[factor]}, as the preset has it"
        return Sized(replace(planned, pilot=told, sized=factor))
    wanted = now * 2 ** math.ceil(math.log2(least_s * _MARGIN / shortest_s))
    is_count = steps is None and factor != "file_size"
    # Of a run that has a run time, that ends it.
    in_time = math.inf if runtime_s else now * MOST_TIMES * least_s / whole_s
    most = min(in_time, MOST_COUNT if is_count else min(MOST_BYTES, most_bytes))
    word, amount = _at_most(steps, wanted, now, most)
    grown = planned
    if amount > now:
        grown = _with(planned, factor, word, 0 if is_count else amount)
    told = f"{words}: {factor}={grown.factors[factor]}, by the preset {planned.factors[factor]}"
    will_s = shortest_s * max(amount, now) / now
    short = None
    if will_s < least_s:
        short = (
            f"{name}: its shortest phase will last about {will_s:.2g} s, less than {least_s:g} s: "
            f"{factor}={grown.factors[factor]} is the most for the room there is and for "
            f"{MOST_TIMES * least_s:g} s a run"
        )
    return Sized(replace(grown, pilot=told, sized=factor), short=short)


def as_stored(
    planned: PlannedExperiment, factor: str, word: str, file_bytes: int, words: str
) -> PlannedExperiment:
    """The experiment with the work that an earlier pilot found."""
    same = planned.factors[factor] == word
    grown = planned if same else _with(planned, factor, word, file_bytes)
    return replace(grown, pilot=words, sized=factor)


def _lasted_s(phase: Phase) -> float | None:
    durable = phase.until_durable
    if durable is None or phase.start_s is None:
        return phase.lasted_s
    return durable.end_s - phase.start_s


def _steps(factor: str, profile: Profile) -> Mapping[str, int] | None:
    """Of a factor whose words are no numbers (classes): the presets' words, with their bytes."""
    words = {
        decided[factor]: int(decided.get("footprint", 0))
        for decided in profile.presets.values()
        if factor in decided and not decided[factor][:1].isdigit()
    }
    return words or None


def _amount(steps: Mapping[str, int] | None, word: str) -> int:
    return steps[word] if steps is not None else parse_size(word)


def _at_most(
    steps: Mapping[str, int] | None, wanted: int, now: int, most: float
) -> tuple[str, int]:
    """The word for what is wanted, or for the most there may be, no less than now."""
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
    """The plan with what was found of its experiments, by their ids; the runs keep their order."""
    ids = {planned.experiment.id for planned in plan.experiments}

    def anew(planned: PlannedExperiment) -> PlannedExperiment | None:
        new = found.get(planned.experiment.id, planned)
        if isinstance(new, NotMeasured):
            return None
        # Where the suite has the grown one too, one of each stays.
        taken = new.experiment.id != planned.experiment.id and new.experiment.id in ids
        return planned if taken else new

    by_id = {planned.experiment.id: anew(planned) for planned in plan.experiments}
    runs = [(new, run) for run in plan.runs if (new := by_id[run.experiment.experiment.id])]
    experiments = tuple(new for new in by_id.values() if new is not None)
    return replace(
        plan,
        experiments=experiments,
        not_measured=(
            *plan.not_measured, *(new for new in found.values() if isinstance(new, NotMeasured))
        ),
        runs=tuple(
            replace(run, order_index=index, experiment=new) for index, (new, run) in enumerate(runs)
        ),
    )  # fmt: skip
