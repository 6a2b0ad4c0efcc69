"""How long the energy of 1000 windows takes in 24 hours of samples of 4 meters at 10 Hz, and that
of a window of a second in a session that goes on.

python benchmarks/power_integration.py
"""

import math
import random
import sys
import time
from array import array
from dataclasses import replace

from eeio_power.meters import Channel
from eeio_power.samples import MeterInfo, MeterSamples, Samples
from eeio_power.sampling_loops import copied

HOURS, RATE_HZ, WINDOWS = 24, 10, 1000
GOAL_S = 2.0
REQUESTED, WINDOW_GOAL_S = 50, 0.002


def day(number: int, draw: random.Random) -> MeterSamples:
    """A day of one meter: two of power, two counters, 1 % of the readings lost."""
    counter = number % 2 == 1
    channel = Channel(
        f"m{number}", "system", "energy_j" if counter else "power_w", accuracy_relative=0.02,
        resolution=0.1, range_j=262_143.0 if counter else None, max_power_w=500.0,
    )  # fmt: skip
    times_s, values = array("d"), array("d")
    energy_j = 0.0
    for k in range(HOURS * 3600 * RATE_HZ):
        power_w = 300.0 if k // 20 % 2 else 120.0
        energy_j += power_w / RATE_HZ
        times_s.append(k / RATE_HZ + draw.uniform(0.0, 0.005))
        lost = draw.random() < 0.01
        values.append(float("nan") if lost else energy_j % 262_143.0 if counter else power_w)
    info = MeterInfo(f"m{number}", f"m{number}", "measured", 0.1, 0.1, (channel,))
    return MeterSamples(replace(info), times_s, (values,))


def main() -> int:
    draw = random.Random(1)
    samples = Samples(tuple(day(k, draw) for k in range(4)))
    windows = []
    for _ in range(WINDOWS):
        length_s = draw.uniform(2.0, 60.0)
        start_s = draw.uniform(60.0, HOURS * 3600 - 120.0)
        windows.append((start_s, start_s + length_s))
    begun_s = time.perf_counter()
    readings = [reading for window in windows for reading in samples.energy(*window)]
    took_s = time.perf_counter() - begun_s
    valid = sum(reading.valid for reading in readings)
    count = sum(len(meter.times_s) for meter in samples.meters)
    print(f"{count} samples of 4 meters, {WINDOWS} windows of 2 s to 60 s: {took_s:.2f} s")
    print(f"{valid} of {len(readings)} readings valid; goal {GOAL_S:g} s")
    complete_s, part_s = window_in_a_session(samples.meters[1])
    print(
        f"a window in that session of {HOURS} h: {1e3 * part_s:.2f} ms with what it depends on "
        f"copied, {1e3 * complete_s:.2f} ms with all of it; goal {1e3 * WINDOW_GOAL_S:g} ms"
    )
    return 0 if took_s < GOAL_S and part_s < WINDOW_GOAL_S else 1


def window_in_a_session(session: MeterSamples) -> tuple[float, float]:
    """Seconds for a window's energy, with all samples copied before and with the needed ones."""
    start_s = HOURS * 1800.0
    end_s = start_s + 1.0
    taken = []
    for bounds in ((-math.inf, math.inf), (start_s, end_s)):
        begun_s = time.perf_counter()
        for _ in range(REQUESTED):
            part = copied(session.info, session.times_s, session.values, *bounds)
            part.energy(start_s, end_s)
        taken.append((time.perf_counter() - begun_s) / REQUESTED)
    return taken[0], taken[1]


if __name__ == "__main__":
    sys.exit(main())
