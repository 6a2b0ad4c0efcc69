"""Energies of meters that lag and average: how often the uncertainty contains the error.

Simulated machines change their power in steps; each window is one of their loads, 1 to 60 s long.
The meter lags by 0 to 5 s and averages 0 to 5 s, and has a new value every 0.1 to 1 s. The delay
is given, measured within the limits of `eeio meter calibrate`, assumed for a BMC, or unknown.

    python benchmarks/delay_coverage.py [--windows 20000] [--seed 1]
"""

import argparse
import random
import statistics
from bisect import bisect_right
from dataclasses import dataclass, replace
from itertools import accumulate

from eeio.units.quantities import MOST_UNCERTAIN
from eeio_power.delay import BMC, Delay
from eeio_power.energy import meter_energy, wait_s
from eeio_power.meters import Channel

LONGEST_DELAY_S = 5.0
SHORTEST_S, LONGEST_S = 1.0, 60.0
CALIBRATED_LAG_S, CALIBRATED_MEAN_S = 0.2, 0.5
BEFORE = 6
"""Loads before the window and after it."""


@dataclass(frozen=True)
class Machine:
    """Power in steps: `watts[k]` from `times_s[k]` on."""

    times_s: list[float]
    watts: list[float]
    joules: list[float]
    """Until each of the times."""

    def energy_j(self, start_s: float, end_s: float) -> float:
        return self._until_j(end_s) - self._until_j(start_s)

    def _until_j(self, time_s: float) -> float:
        k = max(0, bisect_right(self.times_s, time_s) - 1)
        return self.joules[k] + self.watts[k] * (time_s - self.times_s[k])

    def mean_w(self, start_s: float, end_s: float) -> float:
        if end_s <= start_s:
            return self.watts[max(0, bisect_right(self.times_s, end_s) - 1)]
        return self.energy_j(start_s, end_s) / (end_s - start_s)


def machine(draw: random.Random, window_s: float) -> Machine:
    """Idle and loaded in turn, the window in the middle."""
    idle_w = draw.uniform(20.0, 200.0)
    lengths_s = [draw.uniform(SHORTEST_S, 20.0) for _ in range(2 * BEFORE + 1)]
    lengths_s[BEFORE] = window_s
    loaded = BEFORE % 2
    watts = [
        idle_w * (1.0 + draw.uniform(0.02, 1.0) * (k % 2 == loaded)) for k in range(len(lengths_s))
    ]
    times_s = [0.0, *accumulate(lengths_s[:-1])]
    joules = [0.0, *accumulate(w * s for w, s in zip(watts, lengths_s, strict=True))]
    return Machine(times_s, watts, joules)


@dataclass(frozen=True)
class Outcome:
    """Of one window, as shares of its energy."""

    error: float
    uncertainty: float


def outcome(draw: random.Random, assumed: str) -> Outcome | None:
    """One window; None if eeio gives it no energy."""
    window_s = SHORTEST_S * (LONGEST_S / SHORTEST_S) ** draw.random()
    real = Delay(draw.uniform(0.0, LONGEST_DELAY_S), draw.uniform(0.0, LONGEST_DELAY_S))
    period_s = draw.choice((0.1, 0.2, 0.5, 1.0))
    power = machine(draw, window_s)
    start_s = power.times_s[BEFORE]
    channel = Channel("meter", "system", "power_w", delay=_known(draw, real, assumed))
    # The sampler waits until the readings of the window are there.
    last_s = start_s + window_s + wait_s(channel, period_s, period_s) + period_s
    updates_at_s, read_at_s = draw.uniform(0.0, period_s), draw.uniform(0.0, period_s)
    times_s, values = [], []
    count = int(last_s / period_s)
    for k in range(1, count + 1):
        time_s = k * period_s + read_at_s
        updated_s = time_s - (time_s - updates_at_s) % period_s
        until_s = updated_s - real.lag_s
        times_s.append(time_s)
        values.append(power.mean_w(until_s - real.averages_s, until_s))
    (reading,) = meter_energy(
        meter="meter", kind="measured", channels=[channel], native_period_s=period_s,
        period_s=period_s, times_s=times_s, values=[values], start_s=start_s,
        end_s=start_s + window_s,
    )  # fmt: skip
    if reading.energy_j is None or reading.uncertainty_j is None:
        return None
    true_j = power.energy_j(start_s, start_s + window_s)
    return Outcome((reading.energy_j - true_j) / true_j, reading.uncertainty_j / true_j)


def _known(draw: random.Random, real: Delay, assumed: str) -> Delay | None:
    if assumed == "given":
        return replace(real, source="given")
    if assumed == "measured":
        return Delay(
            max(0.0, real.lag_s + draw.uniform(-CALIBRATED_LAG_S, CALIBRATED_LAG_S)),
            max(0.0, real.averages_s + draw.uniform(-CALIBRATED_MEAN_S, CALIBRATED_MEAN_S)),
            CALIBRATED_LAG_S, CALIBRATED_MEAN_S, "measured",
        )  # fmt: skip
    return BMC if assumed == "BMC" else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--windows", type=int, default=20_000, help="of each kind")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    for assumed in ("given", "measured", "BMC", "unknown"):
        draw = random.Random(arguments.seed)
        outcomes = [outcome(draw, assumed) for _ in range(arguments.windows)]
        known = [each for each in outcomes if each is not None]
        inside = statistics.fmean(abs(o.error) <= o.uncertainty for o in known)
        ranked = [o for o in known if o.uncertainty <= MOST_UNCERTAIN]
        errors = sorted(abs(o.error) for o in known)
        percentile = errors[int(0.95 * (len(errors) - 1))]
        median = statistics.median(o.uncertainty for o in known)
        print(
            f"delay {assumed:8}: {len(known)} windows, {inside:.2%} within the uncertainty; "
            f"median uncertainty {median:.2%}, 95 % of errors below {percentile:.2%} "
            f"(ratio {median / percentile:.2f}); ranked {len(ranked) / len(known):.0%}, of these "
            f"{statistics.fmean(abs(o.error) <= o.uncertainty for o in ranked):.2%} within"
        )


if __name__ == "__main__":
    main()
