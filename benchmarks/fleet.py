"""What `eeio fleet collect` finds in fleets whose outliers are known, and how long it takes.

    python -m benchmarks.fleet [--fleets N] [--nodes N]

First: fleets of several sizes with 3 % noise a run, three runs, eight experiments, three metrics;
1 % of the nodes (at least one) are 10 % worse in one metric. Prints the share of the bad nodes that
are found, and the share of false ones among the reported nodes. Then: campaigns of many nodes on
disk, read, compared and written as a page.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from tests.eeio_results.made import EXPERIMENT, MACHINE, design, energy, phase, run

from eeio.comparison.cells import BANDWIDTH, EFFICIENCY
from eeio.comparison.fleet import outliers_of, tests_of
from eeio.record.design import PlannedRun
from eeio.record.store import Store

NOISE, RUNS, EXPERIMENTS, WORSE = 0.03, 3, 8, 0.10


def found_and_false(nodes: int, bad: int, draw: np.random.Generator) -> tuple[float, float]:
    """Of one fleet: the share of the bad nodes reported, and of others among the reported."""
    tests = []
    for metric in (BANDWIDTH, "power_system_w", EFFICIENCY):
        logs = draw.normal(0.0, NOISE, (EXPERIMENTS, nodes, RUNS)).mean(axis=2)
        if metric == BANDWIDTH:
            logs[:, :bad] += np.log1p(-WORSE)
        values = {
            (metric, f"experiment {number}"): {f"n{node}": float(x) for node, x in enumerate(row)}
            for number, row in enumerate(logs)
        }
        tests += tests_of(values)[0]
    reported = {int(one.node[1:]) for one in outliers_of(tests)}
    return (
        sum(node < bad for node in reported) / bad if bad else 0.0,
        sum(node >= bad for node in reported) / max(1, len(reported)),
    )


def store(folder: Path, nodes: int) -> None:
    draw = np.random.default_rng(1)
    tests = [replace(EXPERIMENT, request_size_bytes=4096 << k) for k in range(EXPERIMENTS)]
    plan = design("any", RUNS * EXPERIMENTS, *tests)
    plan = replace(
        plan,
        suite="nightly",
        runs=tuple(
            PlannedRun(n, plan.experiments[n % EXPERIMENTS], n // EXPERIMENTS + 1, 0)
            for n in range(RUNS * EXPERIMENTS)
        ),
    )
    for node in range(nodes):
        place = Store(folder / f"n{node}" / f"nightly-n{node}")
        place.create(replace(plan, name=place.folder.name))
        place.write_machine(replace(MACHINE, hostname=f"n{node}"))
        place.write_idle((), None)
        rates = 1e8 * np.exp(draw.normal(0.0, NOISE, len(plan.runs)))
        place.append_all(
            [
                replace(
                    run(planned.order_index, (phase(float(rate), (energy(5.0),)),)),
                    experiment=planned.experiment.experiment,
                    repetition=planned.repetition,
                )
                for planned, rate in zip(plan.runs, rates, strict=True)
            ]
        )


def main(options: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fleets", type=int, default=200)
    parser.add_argument("--nodes", type=int, default=1000)
    arguments = parser.parse_args(options)
    draw = np.random.default_rng(1)
    print("nodes   bad   found   false   false without bad nodes (share of fleets)")
    for nodes in (8, 16, 50, 200, 1000):
        fleets = max(20, arguments.fleets * 50 // max(50, nodes))
        bad = max(1, nodes // 100)
        figures = np.mean([found_and_false(nodes, bad, draw) for _ in range(fleets)], axis=0)
        none = np.mean([found_and_false(nodes, 0, draw)[1] for _ in range(fleets)])
        print(f"{nodes:5}  {bad:4}  {figures[0]:6.1%}  {figures[1]:6.1%}  {none:6.1%}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store(folder / "results", arguments.nodes)
        options = ["fleet", "collect", str(folder / "results"), "-o", str(folder / "fleet.html")]
        begun_s = time.monotonic()
        done = subprocess.run([sys.executable, "-m", "eeio", *options], check=False)
        taken_s = time.monotonic() - begun_s
        memory_mb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1000
        print(
            f"{arguments.nodes} nodes of {EXPERIMENTS * RUNS} runs: {taken_s:.1f} s, "
            f"{memory_mb:.0f} MB, exit code {done.returncode}"
        )


if __name__ == "__main__":
    main()
