"""The command behind tests/fuzz/run."""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.fuzz import harness, parts, sequences
from tests.fuzz.targets import all_targets


def main(argv: Sequence[str] | None = None) -> int:
    """0 without a finding, 1 with one."""
    parser = argparse.ArgumentParser(
        prog="tests/fuzz/run", description="Tries damaged inputs on everything that reads."
    )
    parser.add_argument("--seconds", type=float, default=0.0, help="go on so long")
    parser.add_argument("--inputs", type=int, default=0, help="of each target, at least")
    parser.add_argument("--total", type=int, default=0, help="inputs over all targets, at least")
    parser.add_argument("--seed", type=int, default=1, help="(default: 1)")
    parser.add_argument("--jobs", type=int, default=1, help="processes at once (default: 1)")
    parser.add_argument("--target", action="append", metavar="NAME", help="this one only")
    parser.add_argument(
        "--sequences", type=int, default=0, help="of power readings, and nothing else"
    )
    parser.add_argument(
        "--parts", type=int, default=0,
        help="reports without or with doubled lines and keys, and nothing else",
    )  # fmt: skip
    parser.add_argument("--list", action="store_true", help="the targets' names")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="try a saved input again")
    parser.add_argument(
        "--findings", type=Path, default=Path("fuzz-findings"), metavar="DIR",
        help="where inputs are saved (default: %(default)s)",
    )  # fmt: skip
    arguments = parser.parse_args(argv)
    if arguments.list:
        print("\n".join(all_targets()))
        return 0
    if arguments.sequences:
        tallies_of_faults = sequences.tallied(arguments.seed, arguments.sequences, arguments.jobs)
        sequences.show(tallies_of_faults)
        wrong = sequences.problems(tallies_of_faults)
        print("\n".join([f"seed {arguments.seed}", *wrong]))
        return int(bool(wrong))
    if arguments.parts:
        counts, wrong = parts.tallied(arguments.seed, arguments.parts, arguments.jobs)
        print("\n".join(f"{name}: {number}" for name, number in sorted(counts.items())))
        print("\n".join([f"seed {arguments.seed}", *wrong]))
        return int(bool(wrong))
    if arguments.replay is not None:
        found = harness.replay(arguments.replay)
        print("no finding" if found is None else f"{found.where}\n{found.text}")
        return int(found is not None)
    unknown = set(arguments.target or ()) - set(all_targets())
    if unknown:
        parser.error(f"no target {', '.join(sorted(unknown))}; --list names them")
    if arguments.total:
        among = len(arguments.target or all_targets())
        arguments.inputs = max(arguments.inputs, -(-arguments.total // among))
    if not arguments.seconds and not arguments.inputs:
        arguments.seconds = 60.0
    begun_s = time.monotonic()
    tallies = harness.fuzz(
        arguments.target or list(all_targets()),
        arguments.seed,
        inputs=arguments.inputs,
        seconds=arguments.seconds,
        jobs=arguments.jobs,
    )
    took_s = time.monotonic() - begun_s
    harness.show(tallies)
    tried = sum(tally.tried for tally in tallies.values())
    print(f"seed {arguments.seed}, {took_s:.0f} s, {tried / took_s:.0f} inputs a second")
    findings = [finding for tally in tallies.values() for finding in tally.findings]
    for finding in findings:
        path = finding.save(arguments.findings)
        text = finding.text.strip().splitlines()[-1][:160]
        print(f"{finding.target} {finding.index}: {finding.where}: {text}; --replay {path}")
    return int(bool(findings))


if __name__ == "__main__":
    sys.exit(main())
