"""Whether it helps to take the effects of rounds out, and from how many experiments in a round on.

    .venv/bin/python benchmarks/round_effects.py [--campaigns N]

Campaigns of 12 experiments, four rounds of all and six of few (two anchors and the noisiest); power
with deviations of 0.2 to 3 %, drifting evenly over the ten rounds. Of the pairs with unequal
repetitions: how often Welch's 95 % interval of the difference of mean logarithms holds the truth,
and its half-width, in %. "own" leaves an experiment's own value in the effect that is taken out of
it, "others" is the product's.
"""

import argparse
import sys
from itertools import combinations
from pathlib import Path

import numpy as np

# As a script it is to find the parts beside it, as with -m.
sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.truth.world import Floats

from eeio.statistics.decision import Rule, change
from eeio.statistics.round_effects import round_effects

EXPERIMENTS, FIRST, ROUNDS = 12, 4, 10


def campaign(rng: np.random.Generator, drift: float, late: int) -> Floats:
    """Logarithms by experiment and round, NaN where it does not run; `late` of them run on."""
    deviation = np.exp(rng.uniform(np.log(0.002), np.log(0.03), EXPERIMENTS))
    logs = rng.standard_normal((EXPERIMENTS, ROUNDS)) * deviation[:, None]
    logs += np.linspace(0.0, drift, ROUNDS) + rng.normal(0.0, drift / 20, ROUNDS)
    order = np.argsort(deviation)
    noisy = order[EXPERIMENTS - (late - 2) :]
    anchors = rng.choice(np.setdiff1d(order, noisy), 2, replace=False)
    logs[np.setdiff1d(order, [*noisy, *anchors]), FIRST:] = np.nan
    return logs


def ways(logs: Floats) -> dict[str, Floats]:
    """The logarithms as they are, and without the effects of rounds."""
    given = {
        (str(n), ""): {r: float(v) for r, v in enumerate(row) if not np.isnan(v)}
        for n, row in enumerate(logs)
    }
    effects = round_effects(given)
    own, others = logs.copy(), logs.copy()
    for n in range(len(logs)):
        for r in given[str(n), ""]:
            own[n, r] -= effects.common[r]
            others[n, r] -= effects.of[str(n), ""][r]
    return {"raw": logs, "own": own, "others": others}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--campaigns", type=int, default=200)
    campaigns = parser.parse_args().campaigns
    rng = np.random.default_rng(7)
    rule = Rule()
    print(f"{'drift':>6} {'late':>5}   {'raw':>14} {'own':>14} {'others':>14}")
    for drift in (0.0, 0.01, 0.03, 0.10):
        for late in (2, 3, 5, 8):
            covered: dict[str, list[tuple[bool, float]]] = {}
            for _ in range(campaigns):
                for way, logs in ways(campaign(rng, drift, late)).items():
                    values = [np.exp(row[~np.isnan(row)]).tolist() for row in logs]
                    for a, b in combinations(values, 2):
                        interval = change(a, b, rule).interval
                        if len(a) != len(b) and interval is not None:
                            low, high = np.log(interval)
                            covered.setdefault(way, []).append((low <= 0 <= high, (high - low) / 2))
            means = (100 * np.mean(of, axis=0) for of in covered.values())
            cells = (f"{share:6.1f} ±{half:5.2f}" for share, half in means)
            print(f"{100 * drift:5.0f}% {late:5}   {' '.join(f'{cell:>14}' for cell in cells)}")


if __name__ == "__main__":
    main()
