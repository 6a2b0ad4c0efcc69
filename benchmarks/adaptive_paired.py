"""A fixed campaign and an adaptive one on one disk, turn about: the same answers, in what time?

Usage: adaptive_paired.py [--seconds S] [--repetitions N] [--meter SPEC|simulated] [--json] DIR

The suite eeio-pavan2018 in DIR, its runs S seconds long (the paper's 60), pauses and the lengths
that a pilot tries in the paper's proportion; the adaptive one by the suite's own rule. Each
campaign runs twelve runs, a round, and is interrupted for the other, so that both meet what else
the machine does; the pilots run first. Then the medians of the adaptive one are held against the
95 % intervals of the fixed one's (of the mean logarithm, Student), and both campaigns' answers to
each pair of experiments against each other.

Of two campaigns that measure the same with the same spread, not all medians lie within the other's
interval: with n and m repetitions the share is that of |t| < t(.975, n-1) / sqrt(1 + n/m), which is
printed beside it. Without a meter no pause is shorter than the protocol's, for nothing tells that
the machine has settled; `--meter simulated` is one of 20 W. What must not happen is a wrong sign:
both confirm a direction, and not the same.
"""

import argparse
import json
import math
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from scipy.special import stdtr, stdtrit

from eeio.comparison.cells import BANDWIDTH, Cell, cells_of
from eeio.comparison.drift import compared_cells
from eeio.comparison.questions import questions
from eeio.measure.profiles.suite import PROTOCOL
from eeio.paths import shipped
from eeio.record.store import Campaign, load
from eeio.report.campaign.rounds import times
from eeio.statistics.decision import Rule

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.simulators.powercap import FakeRapl

PAPER_S, PAUSE_S = 60.0, 20.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--seconds", type=int, default=6)
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--meter", default="none", metavar="SPEC")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="eeio-paired-", dir=arguments.directory) as name:
        home = Path(name)
        suite = make_suite(home, arguments.seconds, arguments.repetitions)
        if arguments.meter == "simulated":
            with FakeRapl(home / "powercap", power_w=lambda _: 20.0):
                folders = run_both(home, suite, f"rapl,root={home / 'powercap'}")
        else:
            folders = run_both(home, suite, arguments.meter)
        found = compared(*(load(folder) for folder in folders))
    if arguments.json:
        print(json.dumps(found, indent=1))
    else:
        show(found)


def make_suite(home: Path, seconds: int, repetitions: int) -> Path:
    """eeio-pavan2018 with runs of so many seconds, as a fixed and as an adaptive preset."""
    suite = home / "paired"
    shutil.copytree(shipped("suites") / "eeio-pavan2018", suite)
    share = seconds / PAPER_S
    fixed = {
        "like": "quick", "repetitions": repetitions, "settle_s": PAUSE_S * share, "idle_s": 0,
        "is_measurement": False,
    }  # fmt: skip
    own = yaml.safe_load((suite / PROTOCOL).read_text())["presets"]["adaptive"]
    rule = own["adaptive"]
    rule["lengths_s"] = sorted({max(1, round(s * share)) for s in rule["lengths_s"]})
    for name in ("settle_least_s", "settle_most_s"):
        rule[name] *= share
    adaptive = {**fixed, "repetitions": own["repetitions"], "adaptive": rule}
    quick = {**fixed}
    del quick["like"]
    presets = {"quick": quick, "fixed": fixed, "adaptive": adaptive}
    (suite / PROTOCOL).write_text(yaml.safe_dump({"presets": presets}))
    definition = suite / "suite-definition.xml"
    text = definition.read_text()
    timed = f" runtime_s={seconds} file_size={2 + math.ceil(seconds / 2)}g</Arguments>"
    definition.write_text(text.replace("</Arguments>", timed))
    return suite


def run_both(home: Path, suite: Path, meter: str) -> tuple[Path, Path]:
    """The folders of the two campaigns, each of which has run to its end."""
    (home / "target").mkdir()
    environment = {
        **os.environ, "XDG_DATA_HOME": str(home / "data"), "XDG_STATE_HOME": str(home / "state"),
    }  # fmt: skip
    arguments = ["--directory", str(home / "target"), "--meter", meter, "--seed", "1"]
    begin = {
        preset: ["run", str(suite), "--preset", preset, "--name", preset, *arguments]
        for preset in ("adaptive", "fixed")
    }
    left = dict(begin)
    while left:
        for preset in list(left):
            if turn(left[preset], environment, runs=12):
                del left[preset]
            else:
                left[preset] = ["resume", preset]
    results = home / "data/eeio/results"
    return results / "fixed", results / "adaptive"


def turn(arguments: list[str], environment: Mapping[str, str], runs: int) -> bool:
    """So many runs of a campaign; whether it ended."""
    process = subprocess.Popen(
        [sys.executable, "-m", "eeio", *arguments], env=dict(environment), text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stderr is not None
    done, message = 0, ""
    for line in process.stderr:
        message = line
        if "INVALID" in line:
            print(line, end="", file=sys.stderr)
        done += re.match(r"\[\d+/\d+\]", line) is not None
        if done == runs:
            process.send_signal(signal.SIGINT)
            break
    process.stderr.read()
    code = process.wait()
    if code in (0, 3):
        return True
    if code != 128 + signal.SIGINT:
        raise SystemExit(f"eeio {' '.join(arguments)}: exit code {code}: {message}")
    return False


def compared(fixed: Campaign, adaptive: Campaign) -> dict[str, Any]:
    """Cells within the fixed campaign's intervals, decisions of both, times."""
    pairs = list(matched(fixed, adaptive))
    inside = [within(a.values(BANDWIDTH), b.values(BANDWIDTH)) for a, b in pairs]
    chance = [share_by_chance(a.n(BANDWIDTH), b.n(BANDWIDTH)) for a, b in pairs]
    off = [b.median(BANDWIDTH) / a.median(BANDWIDTH) - 1 for a, b in pairs]
    took = [times(campaign)["time_s"] or 0.0 for campaign in (fixed, adaptive)]
    took[0] += fixed.design.protocol.settle_s * len(fixed.runs)
    both = list(decisions(fixed, adaptive))
    pilots_s = adaptive.design.pilots_s or 0.0
    return {
        "cells": len(pairs),
        "within_fixed_interval": sum(inside) / len(inside),
        "within_by_chance": statistics.fmean(chance),
        "median_off_percent": 100 * statistics.median(map(abs, off)),
        "largest_off_percent": 100 * max(off, key=abs),
        "cut": sum(p.is_cut for p in adaptive.design.experiments),
        "runs": {"fixed": len(fixed.runs), "adaptive": len(adaptive.runs)},
        "time_share": took[1] / took[0],
        "time_share_without_pilot": (took[1] - pilots_s) / took[0],
        "questions": len(both),
        "wrong_sign": sum({a, b} == {"higher", "lower"} for a, b in both),
        "contrary": sum({a, b} in ({"none above", "higher"}, {"none above", "lower"})
                        for a, b in both),
        "open": {"fixed": sum(a == "open" for a, _ in both),
                 "adaptive": sum(b == "open" for _, b in both)},
        "answers": {f"{a} / {b}": n for (a, b), n in sorted(Counter(both).items())},
    }  # fmt: skip


def matched(fixed: Campaign, adaptive: Campaign) -> Iterator[tuple[Cell, Cell]]:
    """The cells of the same experiment in both."""

    def by_what(campaign: Campaign) -> dict[object, Cell]:
        return {tuple(c.factors.items()): c for c in cells_of(campaign) if c.n(BANDWIDTH) >= 2}

    others = by_what(adaptive)
    for what, cell in by_what(fixed).items():
        if what in others:
            yield cell, others[what]


def within(fixed: tuple[float, ...], adaptive: tuple[float, ...]) -> bool:
    logs = [math.log(value) for value in fixed]
    half = float(stdtrit(len(logs) - 1, 0.975)) * statistics.stdev(logs) / math.sqrt(len(logs))
    return abs(math.log(statistics.median(adaptive)) - statistics.fmean(logs)) <= half


def share_by_chance(n: int, m: int) -> float:
    """Of means of m values within the interval of n, where both draw from the same normal."""
    edge = float(stdtrit(n - 1, 0.975)) / math.sqrt(1 + n / m)
    return 2 * float(stdtr(n - 1, edge)) - 1


def decisions(fixed: Campaign, adaptive: Campaign) -> Iterator[tuple[str, str]]:
    others = answers(adaptive)
    for key, answer in answers(fixed).items():
        if key in others:
            yield answer, others[key]


def answers(campaign: Campaign) -> dict[object, str]:
    """By the figure and the two experiments, in one order in both campaigns."""
    turned = {"higher": "lower", "lower": "higher"}
    found: dict[object, str] = {}
    for question in questions(compared_cells(campaign), Rule()):
        pair = [tuple(c.factors.items()) for c in (question.before, question.after)]
        answer = question.change.answer
        if pair != sorted(pair):
            answer = turned.get(answer, answer)
        found[question.metric, *sorted(pair)] = answer
    return found


def show(found: dict[str, Any]) -> None:
    print(
        f"{found['cells']} cells ({found['cut']} cut): medians within the fixed campaign's 95 % "
        f"intervals {found['within_fixed_interval']:.0%} (by chance {found['within_by_chance']:.0%}"
        f"), off by {found['median_off_percent']:.1f} % (median), "
        f"{found['largest_off_percent']:+.1f} % at most"
    )
    print(
        f"time {found['time_share']:.0%} of the fixed campaign's, without the pilots "
        f"{found['time_share_without_pilot']:.0%}; runs {found['runs']['adaptive']} of "
        f"{found['runs']['fixed']}"
    )
    print(
        f"{found['questions']} questions: wrong sign {found['wrong_sign']}, contrary "
        f"{found['contrary']}, open {found['open']['fixed']} (fixed) and "
        f"{found['open']['adaptive']} (adaptive); fixed / adaptive:"
    )
    for answers, n in found["answers"].items():
        print(f"  {answers}: {n}")


if __name__ == "__main__":
    main()
