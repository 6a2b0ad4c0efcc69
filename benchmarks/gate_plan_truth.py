"""How often the gate finds a change with the repetitions that `eeio plan --detect` names for it.

    python -m benchmarks.gate_plan_truth [--campaigns N]

50 experiments, of which one is worse by the change to detect; the noise is of one mode, or with 30
% of the runs 16 % higher. The spread is that of a campaign of its own with six repetitions. Prints
the repetitions, the share of campaigns in which the experiment is found, and the shares of
campaigns without a change that fail as worse, and in which an experiment is not decided.
"""

import argparse
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from eeio.comparison.cells import J_PER_GB, Cell, Measured
from eeio.comparison.gate import Side, gate
from eeio.comparison.gate_plan import gate_plan

ROWS, EARLIER = 50, 6


@dataclass(frozen=True)
class Rates:
    """Over all campaigns: the median of the planned repetitions, and shares of the campaigns."""

    repetitions: float
    found: float
    false: float
    undecided: float


def side(
    name: str, n: int, noise: float, two_modes: bool, draw: random.Random, change: float = 0.0
) -> Side:
    """The first of the experiments is worse by `change`."""

    def value(row: int) -> float:
        mode = 1.16 if two_modes and draw.random() < 0.3 else 1.0
        worse = 1.0 + change if row == 0 else 1.0
        return mode * worse * draw.lognormvariate(0.0, noise)

    cells = [
        Cell({"size": str(row)}, {J_PER_GB: Measured(tuple(value(row) for _ in range(n)))})
        for row in range(ROWS)
    ]
    return Side(name, cells, [])


def rates(
    noise: float, share: float, detect: float, two_modes: bool, campaigns: int, seed: int
) -> Rates:
    draw = random.Random(f"{noise} {share} {detect} {two_modes} {seed}")
    repetitions: list[int] = []
    found = false = undecided = 0
    for _ in range(campaigns):
        earlier = side("earlier", EARLIER, noise, two_modes, draw)
        n = gate_plan(earlier, share, "J/GB", detect).repetitions or 1000
        repetitions.append(n)
        before, same = (side(name, n, noise, two_modes, draw) for name in ("before", "same"))
        worse = side("worse", n, noise, two_modes, draw, detect)
        unchanged = gate(before, same, share, "J/GB", detect=detect)
        false += bool(unchanged.of("worse"))
        undecided += bool(unchanged.of("not decided"))
        found += gate(before, worse, share, "J/GB", detect=detect).rows[0].verdict == "worse"
    return Rates(
        statistics.median(repetitions), found / campaigns, false / campaigns, undecided / campaigns
    )


def main(options: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--campaigns", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args(options)
    print("noise  modes  tolerated  detect  repetitions   found  false  undecided")
    for two_modes in (False, True):
        for noise, share, detect in (
            (0.01, 0.03, 0.05), (0.03, 0.03, 0.08), (0.08, 0.05, 0.20), (0.03, 0.0, 0.05),
        ):  # fmt: skip
            of = rates(noise, share, detect, two_modes, arguments.campaigns, arguments.seed)
            print(
                f"{noise:5.0%}  {2 if two_modes else 1:5d}  {share:9.0%}  {detect:6.0%}  "
                f"{of.repetitions:11.0f}  {of.found:6.1%} {of.false:6.1%}     {of.undecided:6.1%}"
            )


if __name__ == "__main__":
    main()
