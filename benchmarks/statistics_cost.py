"""What the statistics cost: Mann-Whitney, bootstrap, normality, Dunn, against scipy and in n.

    .venv/bin/python benchmarks/statistics_cost.py [--pairs 5000] [--medians 10000]

Prints microseconds a call (best of five rounds), the ratio to scipy's own function on the same
data, and the time of twice and four times the data over that of once: 2 and 4 is linear.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
from scipy import stats

from eeio.statistics import normality

N = 10
ROUNDS = 5


def best_s(call: Callable[[], None]) -> float:
    """The shortest of a few rounds: what the machine does when nobody else does."""
    found = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return min(found)


def samples(count: int, n: int = N, tied: bool = False) -> list[list[float]]:
    made = np.random.default_rng(1).normal(100, 5, (count, n))
    return (made.round() if tied else made).tolist()


def growth(name: str, call: Callable[[list[list[float]]], None], count: int) -> None:
    once = best_s(lambda: call(samples(count)))
    twice, four = (best_s(lambda k=k: call(samples(k * count))) / once for k in (2, 4))
    print(
        f"{name:<34} {1e6 * once / count:8.1f} us a sample; x2 data {twice:.2f}, x4 data {four:.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=5000)
    parser.add_argument("--medians", type=int, default=10000)
    arguments = parser.parse_args()
    pairs = arguments.pairs
    for word, tied in (("exact", False), ("tied", True)):
        a, b = samples(2 * pairs, tied=tied)[:pairs], samples(2 * pairs, tied=tied)[pairs:]

        def ours(a: list[list[float]] = a, b: list[list[float]] = b) -> None:
            for x, y in zip(a, b, strict=True):
                pairs.mann_whitney(x, y)

        some = max(1, pairs // 20)

        def theirs(
            a: list[list[float]] = a, b: list[list[float]] = b, tied: bool = tied, some: int = some
        ) -> None:
            method = "asymptotic" if tied else "exact"
            for x, y in zip(a[:some], b[:some], strict=True):
                stats.mannwhitneyu(x, y, method=method)

        mine, peer = best_s(ours), best_s(theirs) * pairs / some
        print(
            f"Mann-Whitney {word}, {pairs} pairs of {N}: {mine:.2f} s, "
            f"{1e6 * mine / pairs:.1f} us each; scipy takes {peer / mine:.0f} times as long"
        )
    medians = samples(arguments.medians)

    def bootstrap() -> None:
        for sample in medians:
            bootstrap.median_interval(sample)

    def peer_bootstrap() -> None:
        for sample in medians[:20]:
            stats.bootstrap(
                (sample,), np.median, n_resamples=bootstrap.RESAMPLES, method="percentile"
            )

    mine, peer = best_s(bootstrap), best_s(peer_bootstrap) * len(medians) / 20
    print(
        f"bootstrap of {len(medians)} medians of {N}, {bootstrap.RESAMPLES} resamples: {mine:.2f} "
        f"s, {1e6 * mine / len(medians):.0f} us each; scipy takes {peer / mine:.0f} times as long"
    )

    def each(call: Callable[[list[float]], object]) -> Callable[[list[list[float]]], None]:
        def run(found: list[list[float]]) -> None:
            for sample in found:
                call(sample)

        return run

    def dunn(found: list[list[float]]) -> None:
        for index in range(0, len(found) - 3, 4):
            pairs.dunn_p(found[index : index + 4], "holm")

    growth("median_interval", each(bootstrap.median_interval), 500)
    growth("ratio_interval", each(lambda s: bootstrap.ratio_interval(s, s)), 500)
    growth("mann_whitney", each(lambda s: pairs.mann_whitney(s, s[::-1])), 2000)
    growth("normality", each(normality.normality), 200)
    growth("dunn of four groups", dunn, 1000)
    for n in (1000, 2000, 4000):
        x, y = samples(2, n)
        taken = best_s(lambda x=x, y=y: pairs.mann_whitney(x, y))
        print(f"mann_whitney, {n} against {n}: {1e3 * taken:.2f} ms")


if __name__ == "__main__":
    main()
