"""How long the phases of a plan will be, and which meters are too slow for them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eeio import paths
from eeio.campaign import pilot, safety
from eeio.campaign.plan import Plan
from eeio_limits.quantities import DURATION
from eeio_power.meters import Meter
from eeio_power.monitor import reading_period_s
from eeio_results.campaign import PlannedExperiment
from eeio_results.errors import EeioError
from eeio_results.ranking import MOST_UNCERTAIN
from eeio_results.store import load, read_design

# Of the same disk, the newest first; more of them tell nothing new.
_CAMPAIGNS = 5


@dataclass(frozen=True)
class Length:
    """The shortest phase of an experiment, s, as far as it is known before it runs."""

    at_least_s: float | None
    at_most_s: float | None
    words: str


def length(
    planned: PlannedExperiment, plan: Plan, earlier: Mapping[str, float], least_s: float | None
) -> Length:
    """By an earlier campaign on the same disk, else by the pilot to come, which makes phases last
    `least_s`, else by the run time."""
    profile = plan.profiles[planned.profile]
    if (seen_s := earlier.get(planned.experiment.id)) is not None:
        return Length(seen_s, seen_s, f"phases of {seen_s:.2g} s, as an earlier campaign has it")
    runtime_s = DURATION.of_text(planned.factors.get("runtime_s", "0")) or None
    sized = least_s is not None and pilot.growing(planned, profile, plan.sizes_preset) is not None
    if sized and (runtime_s is None or runtime_s > (least_s or 0.0)):
        most = f", {runtime_s:g} s at most" if runtime_s else ""
        return Length(least_s, runtime_s, f"phases of {least_s:g} s and more, by a pilot{most}")
    if runtime_s is not None:
        return Length(None, runtime_s, f"phases of {runtime_s:g} s at most")
    return Length(None, None, "phases of unknown length")


def earlier_lengths(plan: Plan) -> dict[str, float]:
    """Experiment id -> the shortest phase that the newest campaigns on the same disk have, s."""
    found: dict[str, float] = {}
    root = paths.results_root()
    disks = safety.disks(plan.options)
    folders = sorted(root.glob("*/campaign.json"), key=lambda f: f.stat().st_mtime, reverse=True)
    for file in folders[:_CAMPAIGNS]:
        try:
            if not disks or read_design(file.parent).disks != disks:
                continue
            runs = load(file.parent).runs
        except EeioError:
            continue  # damaged, which `eeio report` tells
        for run in runs:
            for phase in run.phases if run.valid else ():
                if (lasted_s := phase.lasted_s) is not None:
                    found[run.experiment.id] = min(lasted_s, found.get(run.experiment.id, math.inf))
    return found


def resolvable_s(meter: Meter, rates_hz: tuple[float, float]) -> float:
    """The shortest phase that the meter resolves, s: of 20 readings, and of a limit of error that a
    ranking takes: the root of the squares of its accuracy and of one reading at the edges. Infinite
    where the accuracy alone is worse."""
    period_s = reading_period_s(meter, *rates_hz)
    accuracy = min(c.accuracy_relative for c in meter.channels if c.in_domain_total)
    room = MOST_UNCERTAIN**2 - accuracy**2
    return max(pilot.READINGS * period_s, period_s / math.sqrt(room)) if room > 0 else math.inf


def too_slow(plan: Plan, meters: Sequence[Meter], lengths: Mapping[str, Length]) -> list[str]:
    """A line a meter: what it resolves, and which experiments it does not, or may not."""
    rates_hz = plan.options.rate_hz, plan.options.counter_rate_hz
    lines = []
    for meter in meters:
        needed_s = resolvable_s(meter, rates_hz)
        if math.isinf(needed_s):
            lines.append(
                f"{meter.name}: its accuracy alone is worse than the {MOST_UNCERTAIN:.0%} that a "
                "ranking takes"
            )
            continue
        short = [id for id, one in lengths.items() if (one.at_most_s or math.inf) < needed_s]
        unsure = [
            id
            for id, one in lengths.items()
            if id not in short and (one.at_least_s is None or one.at_least_s < needed_s)
        ]
        words = f"{meter.name}: resolves phases of {needed_s:.2g} s and more"
        if short:
            words += f"; CANNOT resolve {', '.join(short)}"
        if unsure:
            words += f"; perhaps not {len(unsure)} experiments whose phases may be shorter"
        lines.append(words)
    return lines
