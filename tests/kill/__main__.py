"""`tests/kill/run`: a line a target, and a code other than 0 when anything is wrong."""

import argparse
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

from tests.kill.harness import ROOT, TARGETS, UnavailableError, kill_over_and_over


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests/kill/run", description=__doc__)
    parser.add_argument("--kills", type=int, default=40, help="of all targets together")
    parser.add_argument("--seed", type=int, default=1, help="repeats the moments")
    parser.add_argument("--target", choices=TARGETS, action="append", help="default: all")
    arguments = parser.parse_args()
    # So that what the harness itself made is taken away then too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    names = arguments.target or list(TARGETS)
    wrong = False
    for number, name in enumerate(names):
        if name in ROOT and os.geteuid() != 0:
            print(f"{name}: not tried: needs root")
            continue
        kills = (arguments.kills + number) // len(names)
        began_s = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="eeio-kill-", dir="/var/tmp") as folder:
            target = TARGETS[name](Path(folder).resolve() / "home")
            try:
                outcome = kill_over_and_over(target, kills, arguments.seed)
            except UnavailableError as error:
                print(f"{name}: not tried: {error}")
                continue
            finally:
                target.close()
        print(f"{outcome.line}; {time.monotonic() - began_s:.0f} s", flush=True)
        for message in outcome.wrong:
            print(f"  {message}", file=sys.stderr)
        wrong = wrong or bool(outcome.wrong)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
