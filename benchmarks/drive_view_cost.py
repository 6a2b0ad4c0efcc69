"""What it costs a tool that the requests to its drive are looked at (`eeio run --see-order`).

Usage (as root): drive_view_cost.py [--pairs N] [--seconds S] DIR

fio reads 4 KiB at random places of a file in DIR, past the page cache, 32 requests at a time, with
the trace and without it, the order within each pair drawn. Prints the ratio of the medians of IOPS
and the median of the pairs' ratios with its 95 % interval (of ranks). Goal: at most 0.5 % less. The
trace keeps the first 65536 requests, so that a longer run pays for fewer of its own.
"""

import argparse
import json
import random
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from eeio.machine.filesystem import BlockDevice, backing_device
from eeio.machine.undo import UndoJournal
from eeio.measure.campaign.probes import DriveView


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=2.0)
    arguments = parser.parse_args()
    device, reason = backing_device(arguments.directory)
    if device is None:
        raise SystemExit(reason)
    found: dict[bool, list[float]] = {True: [], False: []}
    kept, journal = 0, UndoJournal()
    with tempfile.TemporaryDirectory(dir=arguments.directory) as name:
        command = fio(Path(name) / "file", arguments.seconds)
        iops(command)  # lays the file out
        try:
            for _ in range(arguments.pairs):
                for traced in random.sample((True, False), 2):
                    rate, requests = measured(command, device if traced else None, journal)
                    found[traced].append(rate)
                    kept = max(kept, requests)
        finally:
            journal.undo_all()
    show(found[True], found[False], kept)


def fio(path: Path, seconds: float) -> list[str]:
    return [
        "fio", "--name=seen", f"--filename={path}", "--size=1g", "--rw=randread", "--bs=4k",
        "--direct=1", "--ioengine=libaio", "--iodepth=32", "--time_based", f"--runtime={seconds}",
        "--output-format=json",
    ]  # fmt: skip


def iops(command: list[str]) -> float:
    done = subprocess.run(command, check=True, capture_output=True, timeout=600, text=True)
    return float(json.loads(done.stdout)["jobs"][0]["read"]["iops"])


def measured(
    command: list[str], device: BlockDevice | None, journal: UndoJournal
) -> tuple[float, int]:
    """IOPS, and how many requests were kept of the run."""
    if device is None:
        return iops(command), 0
    view = DriveView(device, journal)
    view.start()
    try:
        rate = iops(command)
    finally:
        view.stop(time.monotonic())
    if view.observed.reason is not None:
        raise SystemExit(view.observed.reason)
    return rate, len(view.observed.requests)


def show(traced: list[float], plain: list[float], kept: int) -> None:
    ratios = sorted(one / other for one, other in zip(traced, plain, strict=True))
    n = len(ratios)
    # Ranks of the sign test: the binomial's mean and 1.96 of its deviations.
    low = max(0, round(n / 2 - 0.98 * n**0.5) - 1)
    print(
        f"IOPS with {statistics.median(traced):.0f}, without {statistics.median(plain):.0f}, ratio "
        f"of the medians {statistics.median(traced) / statistics.median(plain):.4f}; of the pairs "
        f"{statistics.median(ratios):.4f} [{ratios[low]:.4f} - {ratios[n - 1 - low]:.4f}] (n={n}); "
        f"{kept} requests kept"
    )


if __name__ == "__main__":
    main()
