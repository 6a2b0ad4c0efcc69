"""A RAPL folder in real time, for PTS runs beside it: `python -m tests.pts.meter FOLDER [FAIL]`.

100 W, of which the package has 80. With FAIL it stops being readable as soon as that file exists.
"""

import sys
import time
from pathlib import Path

from tests.simulators.powercap import FakeRapl, FakeZone

ZONES = (FakeZone("intel-rapl:0", "package-0", 0.8),)


def main() -> None:
    folder, fail = Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None
    with FakeRapl(folder, ZONES, lambda _: 100.0) as fake:
        while fail is None or not fail.exists():
            time.sleep(0.02)
        fake.fail("intel-rapl:0")
        while True:
            time.sleep(1)


if __name__ == "__main__":
    main()
