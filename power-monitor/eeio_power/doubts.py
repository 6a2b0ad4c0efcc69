"""Readings of one meter that contradict each other.

Parts that draw more than what holds them, and counters that are one counter shown several times.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import combinations, pairwise

from eeio_limits.contradictions import INSIDE
from eeio_power.integration import ChannelEnergy, combined_uncertainty_j
from eeio_power.meters import Channel
from eeio_power.reading import EnergyReading

# Counters of one name that agree so closely at most steps are one; fewer steps tell nothing.
STEP_AGREEMENT = 0.01
LEAST_STEPS = 3
# Two packages may run alike: to be one register they must agree as two reads of one do.
EQUAL_AGREEMENT = 0.001
LEAST_EQUAL_STEPS = 20


def part_doubts(
    reading: EnergyReading,
    channels: Sequence[Channel],
    energy_of: Callable[[int], ChannelEnergy],
) -> list[str]:
    """Which of the meter's parts (rails, outputs of supplies) draw more than what holds them."""
    if reading.energy_j is None or reading.uncertainty_j is None:
        return []
    doubts = []
    outputs = []
    for k, channel in enumerate(channels):
        if channel.in_domain_total:
            continue
        if channel.domain in INSIDE[reading.domain]:
            doubts += _excess(reading, [channel], [energy_of(k)])
        elif channel.domain == reading.domain and (
            set(channel.contents.leaves_out) & set(reading.includes)
        ):
            # It leaves something out that the total holds: an output beside the inputs.
            outputs.append(k)
    return doubts + _excess(reading, [channels[k] for k in outputs], [*map(energy_of, outputs)])


def _excess(
    reading: EnergyReading, channels: Sequence[Channel], parts: Sequence[ChannelEnergy]
) -> list[str]:
    energies = [part.energy_j for part in parts if part.energy_j is not None]
    if not parts or len(energies) < len(parts) or reading.energy_j is None:
        return []
    limit_j = combined_uncertainty_j(parts) + (reading.uncertainty_j or 0.0)
    if math.fsum(energies) - reading.energy_j <= limit_j:
        return []
    window_s = reading.energy_j / reading.power_w if reading.power_w else math.inf
    names = " + ".join(channel.name for channel in channels)
    return [
        f"{names} {math.fsum(energies) / window_s:.1f} W is in {reading.domain} ({reading.meter}) "
        f"{reading.power_w or 0.0:.1f} W and draws more, by more than both limits of error"
    ]


def step_doubts(
    reading: EnergyReading,
    channels: Sequence[Channel],
    times_s: Sequence[float],
    values: Sequence[Sequence[float]],
    start_s: float,
    end_s: float,
) -> list[str]:
    """Counters of different packages that move in step: one register, shown for both."""
    low, high = bisect_right(times_s, start_s), bisect_right(times_s, end_s)
    places = [
        k
        for k, channel in enumerate(channels)
        if channel.in_domain_total
        and (channel.domain, channel.quantity) == (reading.domain, "energy_j")
    ]
    if reading.domain != "package" or high - low <= LEAST_EQUAL_STEPS:
        return []
    return [
        f"{channels[one].name} and {channels[other].name} move in step: are they two counters?"
        for one, other in combinations(places, 2)
        if in_step(
            channels[one],
            channels[other],
            (values[one][low:high], values[other][low:high]),
            EQUAL_AGREEMENT,
            LEAST_EQUAL_STEPS,
        )
    ]


def in_step(
    before: Channel,
    after: Channel,
    columns: tuple[Sequence[float], Sequence[float]],
    agreement: float = STEP_AGREEMENT,
    least_steps: int = LEAST_STEPS,
) -> bool | None:
    """Whether two counters read together agree at most steps, within `agreement` and their quanta.

    True dies under one load differ by more at most of them. One register does not, though it is
    read twice: an update between the two reads, or a process that had to wait there, sets two steps
    apart, and no more. None if fewer than `least_steps` tell (a step that did not move, wrapped or
    was not read tells nothing).
    """
    quanta_j = 2.0 * (before.resolution + after.resolution)
    alike = apart = 0
    for (one, other), (next_one, next_other) in pairwise(zip(*columns, strict=True)):
        one_j, other_j = next_one - one, next_other - other
        most_j = max(one_j, other_j)
        if not (one_j >= 0.0 and other_j >= 0.0 and most_j > quanta_j):
            continue
        if abs(one_j - other_j) > agreement * most_j + quanta_j:
            apart += 1
        else:
            alike += 1
    if apart > alike:
        return False
    return True if alike + apart >= least_steps else None


def repeated_reasons(
    channels: Sequence[Channel],
    times_s: Sequence[float],
    values: Sequence[Sequence[float]],
    start_s: float,
    end_s: float,
) -> dict[str, str]:
    """By channel: why several counters of one name cannot be added."""
    by_name: dict[str, list[int]] = {}
    for k, channel in enumerate(channels):
        if channel.counts is not None and channel.in_domain_total:
            by_name.setdefault(channel.counts, []).append(k)
    low, high = bisect_right(times_s, start_s), bisect_right(times_s, end_s)
    # Readings around a short window tell of it too.
    low, high = max(0, low - 2 * LEAST_STEPS), min(len(times_s), high + 2 * LEAST_STEPS)
    reasons: dict[str, str] = {}
    for counts, places in by_name.items():
        for one, other in combinations(places, 2):
            columns = values[one][low:high], values[other][low:high]
            same = in_step(channels[one], channels[other], columns)
            if same is False:
                continue
            names = f"{channels[one].name} and {channels[other].name}"
            why = (
                f"move in step: one counter of {counts} shown twice, whose sum is twice the energy"
                if same
                else f"were read too rarely to tell whether they are one counter of {counts}"
            )
            for k in (one, other):
                reasons[channels[k].name] = (
                    f"{names} {why}; dies=once counts one of them, dies=each all"
                )
    return reasons
