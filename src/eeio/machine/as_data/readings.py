"""Readings of the available meters of this machine, for a capture."""

import math
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from eeio.machine.as_data.description import MeterReadings
from eeio_power.errors import PowerError
from eeio_power.meters import Meter, close_meters, discover, open_meters
from eeio_power.now import Recorded
from eeio_power.sampler import Sampler
from eeio_power.samples import MeterSamples

LENGTH_S = 10.0
RATE_HZ = 2.0


def record(
    root: Path = Path("/"), wait: Callable[[float], None] = time.sleep
) -> list[MeterReadings]:
    """Two readings a second for ten seconds, without the model and the demo."""
    meters: list[Meter] = []
    try:
        for finding in discover(root):
            if finding.available and finding.kind in ("measured", "device-reported"):
                with suppress(PowerError):  # it may need what only a campaign gives
                    meters += open_meters([finding.spec], root)
        if not meters:
            return []
        with Sampler(meters, Path(os.devnull), RATE_HZ) as sampler:
            wait(LENGTH_S)
        return [_readings(samples) for samples in sampler.samples().meters if samples.times_s]
    finally:
        close_meters(meters)


def _readings(samples: MeterSamples) -> MeterReadings:
    first_s = samples.times_s[0]
    return MeterReadings(
        meter=samples.info.name,
        times_s=tuple(time_s - first_s for time_s in samples.times_s),
        channels={
            channel.name: tuple(None if math.isnan(value) else value for value in column)
            for channel, column in zip(samples.info.channels, samples.values, strict=True)
        },
    )


def first_and_last(readings: MeterReadings) -> Recorded:
    """For the power of a machine that is replayed."""
    return Recorded(
        first={name: values[0] for name, values in readings.channels.items()},
        last={name: values[-1] for name, values in readings.channels.items()},
        lasted_s=readings.times_s[-1],
    )
