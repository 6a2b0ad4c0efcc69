"""Whether the 95 % interval at which repeating stops still holds the true mean 95 % of the time.

    python benchmarks/stopping_coverage.py [--simulations 20000] [--half-width 0.05]

Repetitions are drawn from distributions with relative standard deviations of 13, 30 and 55 % (what
docs/studies/ has of others), normal, gamma (skewed, as throughputs are) and uniform; they stop by
the rule of eeio/statistics/stopping.py with at least 10 and at most 3000. Goal: coverage of
at least 93 %.
"""

import argparse

import numpy as np

from eeio.statistics.stopping import t_quantile

LEAST, MOST = 10, 3000


def simulate(draw: np.ndarray, half_width: float, quantiles: np.ndarray) -> tuple[bool, int]:
    """(whether the interval held the mean, which is 1, and after how many repetitions)."""
    n = np.arange(1, len(draw) + 1)
    mean = np.cumsum(draw) / n
    square = np.cumsum(draw * draw)
    spread = np.sqrt(np.maximum(square - n * mean * mean, 0)[1:] / (n[1:] - 1))
    half = quantiles[: len(draw) - 1] * spread / np.sqrt(n[1:])
    enough = np.flatnonzero((half <= half_width * np.abs(mean[1:])) & (n[1:] >= LEAST))
    stop = enough[0] if len(enough) else len(half) - 1
    return bool(abs(mean[stop + 1] - 1) <= half[stop]), int(n[stop + 1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=20000)
    parser.add_argument("--half-width", type=float, default=0.05)
    arguments = parser.parse_args()
    random = np.random.default_rng(20141)
    quantiles = np.array([t_quantile(0.975, degrees) for degrees in range(1, MOST)])
    print(f"half-width {arguments.half_width:.0%} of the mean, {arguments.simulations} simulations")
    for rsd in (0.13, 0.30, 0.55):
        size = min(MOST, int(40 + 12 * (1.96 * rsd / arguments.half_width) ** 2))
        for name in ("normal", "gamma", "uniform"):
            ends = [
                simulate(draws(random, name, rsd, size), arguments.half_width, quantiles)
                for _ in range(arguments.simulations)
            ]
            covered = sum(hit for hit, _ in ends) / len(ends)
            middle = sorted(n for _, n in ends)[len(ends) // 2]
            print(f"RSD {rsd:.0%}, {name}: coverage {covered:.1%}, median {middle} repetitions")


def draws(random: np.random.Generator, name: str, rsd: float, size: int) -> np.ndarray:
    """Repetitions with mean 1."""
    if name == "normal":
        return random.normal(1, rsd, size)
    if name == "gamma":
        return random.gamma(1 / rsd**2, rsd**2, size)
    return random.uniform(1 - rsd * 3**0.5, 1 + rsd * 3**0.5, size)


if __name__ == "__main__":
    main()
