"""`tests/power_cuts/run`: cuts the power in recorded campaigns; 1 if anything cannot be read."""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.power_cuts.harness import cut_over_and_over, record


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests/power_cuts/run", description=__doc__)
    parser.add_argument("--cuts", type=int, default=2000, help="(default: 2000)")
    parser.add_argument("--resumes", type=int, default=20, help="real ones (default: 20)")
    parser.add_argument("--seed", type=int, default=1, help="repeats the cuts (default: 1)")
    arguments = parser.parse_args()
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="eeio-power-cuts-", dir="/var/tmp") as folder:
        recordings = record(Path(folder).resolve() / "home")
        for one in recordings:
            print(f"{one.name}: {len(one.ops) - one.begin} operations recorded", flush=True)
        found = cut_over_and_over(recordings, arguments.cuts, arguments.seed, arguments.resumes)
    print(
        f"{found.cuts} power cuts: {found.cuts - len(found.wrong)} load and go on; "
        f"{found.none} before the campaign began, {found.lost} with a part of a record, "
        f"{found.resumed} resumed by eeio; {time.monotonic() - began_s:.0f} s"
    )
    print("\n".join(found.wrong), file=sys.stderr)
    return 1 if found.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
