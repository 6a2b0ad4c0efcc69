"""How long a campaign and its phases take, and how much it writes, before it runs.

How long a campaign takes, and how much it writes: the results of `eeio plan`.

How long the phases of a plan will be, and which meters are too slow for them.
"""

import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from eeio import paths
from eeio.errors import EeioError
from eeio.measure.campaign import pilot_store, pilots, safety
from eeio.measure.campaign.planned_campaign import Plan
from eeio.measure.campaign.rounds import most_repetitions
from eeio.measure.profiles.suite import Suite
from eeio.record.design import AdaptiveProtocol, PlannedExperiment, PlannedRun
from eeio.record.store import load, read_design
from eeio.units.quantities import DURATION, MOST_UNCERTAIN
from eeio_power.calibration import hidden_s
from eeio_power.meters import Meter
from eeio_power.monitor import reading_period_s

# Forecast end of an adaptive campaign between minimum and maximum: the spread of its experiments is
# unknown before.
_SHARE_MADE = 1 / 3
# Of the lengths that a pilot tries, which one most runs are forecast to have (20 s of 60).
_LIKELY = 1


@dataclass(frozen=True)
class Forecast:
    """Times in seconds. `least_s` and `most_s` are the same where the protocol is not adaptive, and
    `fixed_s` is that of the same sizes with a fixed number of repetitions. `runs` are the least,
    `bytes_written` the most."""

    runs: int
    expected_s: float
    least_s: float
    most_s: float
    fixed_s: float
    bytes_written: int

    def to_json(self) -> dict[str, float]:
        """The contract of `eeio plan --format json`."""
        return asdict(self)


def most_text(plan: Plan, bytes_written: int, decimals: int = 1) -> str:
    """`at most 12.3 GB written`. A pilot that finds a fast drive enlarges the work."""
    text = f"{bytes_written / 1e9:.{decimals}f} GB written"
    if pilots.may_grow(plan):
        return f"{text}, more if pilots enlarge the work (--max-written sets a limit)"
    return f"at most {text}"


def forecast(plan: Plan, suite: Suite, of_here: bool = True) -> Forecast:
    """Of a plan that `plan.make` made of the suite; of another machine no pilots are known."""
    rule = plan.protocol.adaptive
    if (steady := plan.protocol.steady) is not None:
        longest = _with(plan, [steady.most_rounds] * len(plan.experiments))
        return Forecast(
            runs=len(plan.runs),
            expected_s=plan.expected_s,
            least_s=plan.expected_s,
            most_s=longest.expected_s,
            fixed_s=plan.expected_s,
            bytes_written=longest.most_bytes_written,
        )
    if rule is None:
        full_s = plan.expected_s
        return Forecast(len(plan.runs), full_s, full_s, full_s, full_s, plan.most_bytes_written)
    least_n = plan.protocol.repetitions
    most = _with(plan, [most_repetitions(p, rule, least_n) for p in plan.experiments])
    stored = {}
    if of_here:
        stored = _stored_lengths(plan, rule)
    pilots_s = _pilots_s(plan, rule, stored)
    likely, shortest = (_cut(plan, rule, stored, place) for place in (_LIKELY, 0))
    least_s = _settled(shortest, rule.settle_least_s).expected_s + pilots_s
    few_s = _settled(likely, rule.settle_least_s).expected_s + pilots_s
    many_s = _settled(_cut(most, rule, stored, _LIKELY), rule.settle_least_s).expected_s + pilots_s
    fixed = suite.protocol(plan.sizes_preset)
    fixed_plan = replace(
        _with(plan, [fixed.repetitions] * len(plan.experiments)),
        protocol=replace(plan.protocol, settle_s=fixed.settle_s, adaptive=None),
    )
    return Forecast(
        runs=len(plan.runs),
        expected_s=few_s + _SHARE_MADE * (many_s - few_s),
        least_s=least_s,
        most_s=_settled(_cut(most, rule, stored, None), rule.settle_most_s).expected_s + pilots_s,
        fixed_s=fixed_plan.expected_s,
        bytes_written=most.most_bytes_written,
    )


def _stored_lengths(plan: Plan, rule: AdaptiveProtocol) -> dict[str, str]:
    """Experiment id -> run time that a stored pilot of this machine found, s. Only the campaign
    checks whether it is still valid, down to the tool's version."""
    if rule.pilot not in ("once", "stored"):
        return {}
    here = platform.node(), safety.disks(plan.options)
    return {
        pilot.asked.experiment.id: pilot.found
        for pilot in pilot_store.stored("length")
        if (pilot.machine.hostname, pilot.disks) == here
    }


def _pilots_s(plan: Plan, rule: AdaptiveProtocol, stored: Mapping[str, str]) -> float:
    """Time of the complete runs that prove run times; those that size work are short."""
    tried = [
        planned
        for planned in plan.experiments
        if planned.experiment.id not in stored and pilots.lengths_to_try(planned, rule, 0.0)
    ]
    one_each = replace(_settled(plan, rule.settle_least_s), experiments=tuple(tried), runs=())
    return _with(one_each, [1] * len(tried)).expected_s - one_each.expected_s


def _cut(plan: Plan, rule: AdaptiveProtocol, stored: Mapping[str, str], place: int | None) -> Plan:
    """With the run times that pilots found, or else the one at that position of their candidates;
    None: complete runs."""

    def shortened(planned: PlannedExperiment) -> PlannedExperiment:
        lengths_s = pilots.lengths_to_try(planned, rule, 0.0)
        pilot = stored.get(planned.experiment.id)
        if pilot is None and lengths_s and place is not None:
            pilot = f"{lengths_s[min(place, len(lengths_s) - 1)]:g}"
        if pilot is None or not lengths_s:
            return planned
        return replace(planned, factors={**planned.factors, "runtime_s": pilot})

    runs = tuple(replace(run, experiment=shortened(run.experiment)) for run in plan.runs)
    return replace(plan, runs=runs)


def _with(plan: Plan, repetitions: Sequence[int]) -> Plan:
    """The plan with so many repetitions of each experiment, in any order."""
    runs = [
        (planned, repetition + 1)
        for planned, many in zip(plan.experiments, repetitions, strict=True)
        for repetition in range(many)
    ]
    return replace(
        plan, runs=tuple(PlannedRun(k, planned, n, 1) for k, (planned, n) in enumerate(runs))
    )


def _settled(plan: Plan, settle_s: float) -> Plan:
    return replace(plan, protocol=replace(plan.protocol, settle_s=settle_s))


# Of the same disk, the newest first; more of them add no information.
_CAMPAIGNS = 5


@dataclass(frozen=True)
class Length:
    """The shortest phase of an experiment, s, as far as it is known before it runs."""

    at_least_s: float | None
    at_most_s: float | None
    text: str


def phase_length(
    planned: PlannedExperiment, plan: Plan, earlier: Mapping[str, float], least_s: float | None
) -> Length:
    """By an earlier campaign on the same disk, else by the pilot to come, which makes phases last
    `least_s`, else by the run time."""
    profile = plan.profiles[planned.profile]
    if (observed_s := earlier.get(planned.experiment.id)) is not None:
        return Length(
            observed_s, observed_s, f"phases of {observed_s:.2g} s, as an earlier campaign has it"
        )
    runtime_s = DURATION.of_text(planned.factors.get("runtime_s", "0")) or None
    sized = (
        least_s is not None
        and pilots.growing_factor(planned, profile, plan.sizes_preset) is not None
    )
    if sized and (runtime_s is None or runtime_s > (least_s or 0.0)):
        most = ""
        if runtime_s:
            most = f", {runtime_s:g} s at most"
        return Length(least_s, runtime_s, f"phases of {least_s:g} s and more, by a pilot{most}")
    if runtime_s is not None:
        return Length(None, runtime_s, f"phases of {runtime_s:g} s at most")
    return Length(None, None, "phases of unknown length")


def earlier_lengths(plan: Plan) -> dict[str, float]:
    """Experiment id -> the shortest phase that the newest campaigns on the same disk have, s."""
    lengths: dict[str, float] = {}
    root = paths.results_root()
    disks = safety.disks(plan.options)
    folders = sorted(root.glob("*/campaign.json"), key=lambda f: f.stat().st_mtime, reverse=True)
    for file in folders[:_CAMPAIGNS]:
        try:
            if not disks or read_design(file.parent).disks != disks:
                continue
            runs = load(file.parent).runs
        except EeioError:
            continue  # damaged, which `eeio report` reports
        for run in runs:
            for phase in run.phases if run.valid else ():
                if (lasted_s := phase.lasted_s) is not None:
                    lengths[run.experiment.id] = min(
                        lasted_s, lengths.get(run.experiment.id, math.inf)
                    )
    return lengths


def resolvable_s(
    meter: Meter,
    rates_hz: tuple[float, float],
    share: float = MOST_UNCERTAIN,
    changes_s: float = 0.0,
) -> float:
    """The shortest phase that the meter resolves, s: of 20 readings, and of an uncertainty of at
    most `share`, which is the limit of ranking: the root of the squares of its accuracy, of one
    reading at the edges, and of what its means hide. Infinite if the accuracy itself is worse.
    `changes_s` is how often the value was seen to change, if that is more seldom than it is read.
    """
    period_s = max(reading_period_s(meter, *rates_hz), changes_s)
    accuracy = min(c.accuracy_relative for c in meter.channels if c.in_domain_total)
    room = share**2 - accuracy**2
    if room <= 0:
        return math.inf
    unsure_s = math.hypot(period_s, hidden_s(meter))
    return max(pilots.READINGS * period_s, unsure_s / math.sqrt(room))


_SHOWN = 3


def expected_lengths(plan: Plan, meters: Sequence[Meter]) -> dict[str, Length]:
    """How long the phases of each experiment will be, by its id."""
    least_s = pilots.least_phase_s(plan.protocol, plan.options, meters)
    earlier = earlier_lengths(plan)
    return {p.experiment.id: phase_length(p, plan, earlier, least_s) for p in plan.experiments}


def cannot_resolve(plan: Plan, meters: Sequence[Meter]) -> list[str]:
    """One line for each meter that is too slow for an experiment, as `eeio plan` shows it."""
    lengths = {}
    if meters:
        lengths = expected_lengths(plan, meters)
    lines = [(meter, _resolution(plan, meter, lengths)) for meter in meters]
    return [f"{meter.name}: {line}" for meter, (line, is_too_slow) in lines if is_too_slow]


def too_slow_meters(
    plan: Plan, meters: Sequence[Meter], lengths: Mapping[str, Length]
) -> list[str]:
    """One line per meter: its resolution, and the experiments that it does not, or may not,
    resolve."""
    return [f"{meter.name}: {_resolution(plan, meter, lengths)[0]}" for meter in meters]


def _resolution(plan: Plan, meter: Meter, lengths: Mapping[str, Length]) -> tuple[str, bool]:
    """In words, and whether the meter is too slow for an experiment."""
    needed_s = resolvable_s(meter, (plan.options.rate_hz, plan.options.counter_rate_hz))
    if math.isinf(needed_s):
        return f"its accuracy exceeds the {MOST_UNCERTAIN:.0%} ranking limit", True
    short = [id for id, of in lengths.items() if (of.at_most_s or math.inf) < needed_s]
    unsure = [
        id
        for id, of in lengths.items()
        if id not in short and (of.at_least_s is None or of.at_least_s < needed_s)
    ]
    text = f"resolves phases of {needed_s:.2g} s and more"
    if short:
        names = [p.description for p in plan.experiments if p.experiment.id in short]
        text += f"; CANNOT resolve {'; '.join(names[:_SHOWN])}"
        if len(short) > _SHOWN:
            text += f"; and {len(short) - _SHOWN} more"
    if unsure:
        text += f"; may not resolve {len(unsure)} experiments with possibly shorter phases"
    return text, bool(short)
