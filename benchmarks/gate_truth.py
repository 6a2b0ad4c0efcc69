"""How often `eeio compare --fail-if worse:5%` fails campaigns whose true change is known.

    python -m benchmarks.gate_truth [--campaigns N]

58 experiments with 3 % noise, in one mode or with 30 % of the runs 16 % higher, at several true
changes and repetitions. Prints the share of campaigns that fail.
"""

import argparse
import random
from collections.abc import Sequence

from eeio.comparison.cells import J_PER_GB, Cell, Measured
from eeio.comparison.gate import Side, gate

ROWS, NOISE, SHARE = 58, 0.03, 0.05


def cells(n: int, change: float, two_modes: bool, draw: random.Random) -> list[Cell]:
    def value() -> float:
        mode = 1.16 if two_modes and draw.random() < 0.3 else 1.0
        return mode * (1.0 + change) * draw.lognormvariate(0.0, NOISE)

    return [
        Cell({"size": str(row)}, {J_PER_GB: Measured(tuple(value() for _ in range(n)))})
        for row in range(ROWS)
    ]


def share_of_failures(n: int, change: float, two_modes: bool, campaigns: int, seed: int) -> float:
    draw = random.Random(f"{n} {change} {two_modes} {seed}")
    failed = 0
    for _ in range(campaigns):
        before, after = (Side(name, cells(n, by, two_modes, draw), []) for name, by in
                         (("before", 0.0), ("after", change)))  # fmt: skip
        failed += bool(gate(before, after, SHARE, "J/GB").of("worse"))
    return failed / campaigns


def main(options: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--campaigns", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args(options)
    print("true change  noise       n = 3   n = 6   n = 10")
    for change in (0.0, 0.03, 0.10):
        for two_modes in (False, True):
            rates = [
                share_of_failures(n, change, two_modes, arguments.campaigns, arguments.seed)
                for n in (3, 6, 10)
            ]
            noise = "two modes" if two_modes else "one mode "
            print(f"{change:+11.0%}  {noise} " + "".join(f"{rate:8.1%}" for rate in rates))


if __name__ == "__main__":
    main()
