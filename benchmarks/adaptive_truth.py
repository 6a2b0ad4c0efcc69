"""Adaptive campaigns against fixed ones where the truth is known: time, wrong and open answers.

    .venv/bin/python benchmarks/adaptive_truth.py --data DIR [--json] [--seed N] [--campaigns N]

The protocol is the preset `adaptive` of the suite eeio-pavan2018. All parts together, by the
product's own functions: pilot lengths, rounds and anchors, the stop on precision, the settle rule
on sampled pauses, drift taken out, the one test at the end, the guideline's number of servers.
Worlds: the published runs of Pavan et al. 2018 (benchmarks/README.md,
"How adaptive campaigns were checked") and made ones. The fixed protocol meets the same draws.

Assumed where nothing is published: a quarter of the variance of bandwidth is chance within a run,
and a cut run has no bias of its own (made worlds have one); the drive stands still within the least
pause; every drive settles as those of experiment 0 do.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

# As a script it is to find the parts beside it, as with -m.
sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.truth.generators import Generator, all_generators, made_world
from benchmarks.truth.judging import Score, inside, servers
from benchmarks.truth.protocols import FIXED_REPETITIONS, Drift, adaptive, fixed, pilot
from benchmarks.truth.published import published_world
from benchmarks.truth.world import Site

from eeio.errors import EeioError
from eeio.measure.profiles import suite
from eeio.record.design import AdaptiveProtocol, Protocol
from eeio.statistics.decision import Rule

SEED = 2018
CAMPAIGNS = 200
"""On each published site; in each made world a quarter of it, on two sites."""

# Limits. A made world has no time that would be its own.
MOST_TIME, MOST_TIME_WITHOUT_PILOT = 0.25, 0.22
MOST_WRONG_ABOVE_FIXED, MOST_WRONG_ABOVE_FIXED_MADE = 0.002, 0.003
LEAST_COVERAGE = 0.90


@dataclass
class Sums:
    """Over simulated campaigns of a world."""

    adaptive: Score = field(default_factory=Score)
    fixed: Score = field(default_factory=Score)
    seconds: float = 0.0
    pilot_s: float = 0.0
    fixed_s: float = 0.0
    runs: int = 0
    campaigns: int = 0
    lengths: dict[float | None, int] = field(default_factory=dict)


def paper_protocol() -> Protocol:
    """That of the suite with the experiments of the published data."""
    folder = Path(__file__).parents[1] / "suites" / "eeio-pavan2018"
    return suite.load(folder).protocol("adaptive")


def rule_of(protocol: Protocol) -> AdaptiveProtocol:
    """Raises EeioError for a fixed protocol."""
    if protocol.adaptive is None:
        raise EeioError("the protocol is a fixed one: there is no rule to simulate")
    return protocol.adaptive


def simulate(
    world: Callable[[np.random.Generator], list[Site]],
    protocol: Protocol,
    campaigns: int,
    seed: int,
    drift: Drift = "rounds",
) -> Sums:
    """So many campaigns on every site of the world; its sites are neighbours, two and two of which
    are asked for servers where they have the same drive."""
    sums = Sums()
    rule = rule_of(protocol)
    requested = Rule(rule.indifference, rule.floor)
    for number in range(campaigns):
        rng = np.random.default_rng((seed, number))
        of_site = []
        for site in world(rng):
            draws = site.draw(rng, FIXED_REPETITIONS + 1)
            proven = pilot(site, draws, FIXED_REPETITIONS, rule.floor, site.settled_s)
            short = adaptive(site, draws, protocol, proven.lengths, rng, drift)
            complete = fixed(site, draws, rng)
            sums.adaptive.add(inside(site, short.cells, requested))
            sums.fixed.add(inside(site, complete.cells, requested))
            sums.seconds += short.seconds
            sums.pilot_s += proven.seconds
            sums.fixed_s += complete.seconds
            sums.runs += short.runs
            sums.campaigns += 1
            for length in proven.lengths.values():
                sums.lengths[length] = sums.lengths.get(length, 0) + 1
            of_site.append((site, short.cells, complete.cells))
        of_site.sort(key=lambda one: (one[0].drive, one[0].machine == "PC"))
        for (low, short_low, complete_low), (high, short_high, complete_high) in pairwise(of_site):
            if low.drive == high.drive:
                sums.adaptive.add(servers((high, low), (short_high, short_low), seed + number))
                sums.fixed.add(servers((high, low), (complete_high, complete_low), seed + number))
    return sums


def figures(sums: Sums) -> dict[str, Any]:
    """The contract of --json; shares."""
    ours, theirs = sums.adaptive, sums.fixed
    return {
        "time_share": (sums.seconds + sums.pilot_s) / sums.fixed_s,
        "time_share_without_pilot": sums.seconds / sums.fixed_s,
        "wrong": ours.wrong / ours.questions,
        "wrong_fixed": theirs.wrong / theirs.questions,
        "open": ours.open / ours.questions,
        "open_fixed": theirs.open / theirs.questions,
        "wrong_sign_above_d": ours.wrong_sign_above / ours.questions,
        "wrong_sign_above_d_fixed": theirs.wrong_sign_above / theirs.questions,
        "coverage_servers": ours.covered / ours.intervals,
        "coverage_servers_fixed": theirs.covered / theirs.intervals,
        "half_width_servers": float(np.median(ours.half_widths)) if ours.half_widths else None,
        "runs": sums.runs / sums.campaigns,
    }


def misses(found: dict[str, Any], is_made: bool) -> list[str]:
    """Which limits are not kept, in words."""
    most_above = MOST_WRONG_ABOVE_FIXED_MADE if is_made else MOST_WRONG_ABOVE_FIXED
    checks = [
        (
            found["wrong"] > found["wrong_fixed"] + most_above,
            f"wrong is more than {100 * most_above:g} points above fixed",
        ),
        (
            found["wrong_sign_above_d"] > 0,
            f"a wrong sign of a difference above the indifference in "
            f"{100 * found['wrong_sign_above_d']:.2g} %",
        ),
        (
            found["coverage_servers"] < LEAST_COVERAGE,
            f"intervals hold the number of servers in less than {100 * LEAST_COVERAGE:g} %",
        ),
    ]
    if not is_made:
        checks += [
            (found["time_share"] > MOST_TIME, f"time above {100 * MOST_TIME:g} %"),
            (
                found["time_share_without_pilot"] > MOST_TIME_WITHOUT_PILOT,
                f"time without the pilot above {100 * MOST_TIME_WITHOUT_PILOT:g} %",
            ),
        ]
    return [message for is_missed, message in checks if is_missed]


def made_rows(
    generators: Iterable[Generator], protocol: Protocol, campaigns: int, seed: int
) -> list[dict[str, Any]]:
    """The list `generators` of --json."""
    rows = []
    for generator in generators:
        found = figures(simulate(partial(made_world, generator), protocol, campaigns, seed))
        parameters = {"kind": generator.kind, "drift": generator.drift, "bias": generator.bias}
        rows.append({"name": generator.name, **parameters, **found, "misses": misses(found, True)})
    return rows


_COLUMNS = {
    "time_share": "time", "time_share_without_pilot": "- pilot", "wrong": "wrong",
    "wrong_fixed": "fixed", "open": "open", "open_fixed": "fixed",
    "wrong_sign_above_d": "sign", "coverage_servers": "cover", "coverage_servers_fixed": "fixed",
}  # fmt: skip


def table(rows: Sequence[dict[str, Any]]) -> str:
    """In percent."""
    lines = [f"{'':44}{''.join(f'{word:>8}' for word in _COLUMNS.values())}   %"]
    for row in rows:
        cells = "".join(f"{100 * row[key]:8.2f}" for key in _COLUMNS)
        lines.append(f"{row['name']:44}{cells}{'  *' if row['misses'] else ''}")
    missed = [f"* {row['name']}: {'; '.join(row['misses'])}" for row in rows if row["misses"]]
    return "\n".join([*lines, *missed])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="the published data; without it: made worlds")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--campaigns", type=int, default=CAMPAIGNS)
    arguments = parser.parse_args()
    if arguments.campaigns < 1:
        parser.error("--campaigns: give 1 or more")
    protocol = paper_protocol()
    published: dict[str, Any] = {}
    if arguments.data is not None:
        try:
            sites = published_world(arguments.data)
        except (EeioError, OSError, KeyError, ValueError) as error:
            parser.error(f"--data {arguments.data}: {error}")
        published = figures(
            simulate(lambda _: sites, protocol, arguments.campaigns, arguments.seed)
        )
        published["misses"] = misses(published, False)
    made = made_rows(all_generators(), protocol, max(1, arguments.campaigns // 4), arguments.seed)
    if arguments.json:
        print(
            json.dumps(
                {**published, "rule": asdict(rule_of(protocol)), "generators": made}, indent=1
            )
        )
    else:
        rows = [{"name": "published data", **published}] if published else []
        print(table([*rows, *made]))


if __name__ == "__main__":
    main()
