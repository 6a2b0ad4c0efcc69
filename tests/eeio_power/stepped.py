"""The energy of a window by a meter that is read at times which the test sets."""

import math

from eeio_power.errors import PowerError
from eeio_power.meters import Meter
from eeio_power.reading import EnergyReading
from eeio_power.samples import MeterSamples, meter_info

BEYOND_S = 10.0
"""Before and after the window: readings are late."""


def reading_of(meter: Meter, now_s: list[float], start_s: float, end_s: float) -> EnergyReading:
    """Of the first domain. The meter is read each period, while `now_s[0]` is the time."""
    info = meter_info(meter, 1.0 / meter.native_period_s)
    times_s, rows = [], []
    first = math.floor((start_s - BEYOND_S) / info.period_s)
    last = math.ceil((end_s + BEYOND_S) / info.period_s)
    for k in range(first, last + 1):
        now_s[0] = k * info.period_s
        times_s.append(now_s[0])
        try:
            rows.append([math.nan if value is None else value for value in meter.read()])
        except PowerError:
            rows.append([math.nan] * len(info.channels))
    return MeterSamples(info, times_s, tuple(zip(*rows, strict=True))).energy(start_s, end_s)[0]


def bursts_w(time_s: float) -> float:
    """60 W, and 100 W for one second in ten."""
    return 100.0 if math.floor(time_s) % 10 == 3 else 60.0


BURSTS_J = 60.0 * 60.0 + 6 * 40.0
"""Of 60 s from 0 on."""
