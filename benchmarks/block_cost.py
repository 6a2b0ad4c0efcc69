"""What `eeio.energy` adds to a block, after the first one, which opens the meters.

Usage: block_cost.py [--blocks N] [--meter SPEC]

Prints the time to enter and leave an empty block, and the time until its energy is known. Goal: at
most 2 ms to enter and leave.
"""

import argparse
import statistics
import time

import eeio


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, default=1000)
    parser.add_argument("--meter", default="demo")
    arguments = parser.parse_args()
    block_s, answer_s = [], []
    for number in range(arguments.blocks + 1):
        start_s = time.perf_counter()
        with eeio.energy(arguments.meter) as reading:
            pass
        left_s = time.perf_counter()
        _ = reading.readings
        known_s = time.perf_counter()
        if number > 0:
            block_s.append(left_s - start_s)
            answer_s.append(known_s - left_s)
    print(f"entering and leaving a block: {_text(block_s)}; until its energy: {_text(answer_s)}")


def _text(times_s: list[float]) -> str:
    deciles = statistics.quantiles(times_s, n=10)
    return f"{1e3 * statistics.median(times_s):.2f} ms (90 % below {1e3 * deciles[-1]:.2f} ms)"


if __name__ == "__main__":
    main()
