"""How long the README's two commands take, in wall time and in processor seconds:

    python -m benchmarks.readme_commands                     both, on an idle machine with 2 cores
    python -m benchmarks.readme_commands --only test -- -k sizes

The figures in README.md are those of this script. Programs that outlive a command are not counted.
"""

import argparse
import os
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COMMANDS = {"benchmark": "scripts/benchmark", "test": "scripts/test"}


@dataclass(frozen=True)
class Times:
    """Of a command that has ended, in s."""

    wall_s: float
    processor_s: float
    exit_code: int


def measured(command: list[str]) -> Times:
    """Runs it in the repository's root; its output goes to stderr."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began_s = time.monotonic()
    done = subprocess.run(command, cwd=ROOT, stdout=sys.stderr, check=False)
    wall_s = time.monotonic() - began_s
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    user_s = after.ru_utime - before.ru_utime
    system_s = after.ru_stime - before.ru_stime
    return Times(wall_s, user_s + system_s, done.returncode)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", choices=tuple(COMMANDS))
    parser.add_argument("arguments", nargs="*", help="of the command, after --")
    requested = parser.parse_args()
    names = [requested.only] if requested.only else [*COMMANDS]
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} before the first command")
    print("| command | wall time | processor time | exit code |\n|---|---|---|---|")
    failed = False
    for name in names:
        times = measured([COMMANDS[name], *requested.arguments])
        wall, processor = (
            f"{s // 60:.0f} min {s % 60:.0f} s" for s in (times.wall_s, times.processor_s)
        )
        print(f"| `{COMMANDS[name]}` | {wall} | {processor} | {times.exit_code} |", flush=True)
        failed = failed or times.exit_code not in (0, 3)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
