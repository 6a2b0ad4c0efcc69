"""The power of the system from sensors with names."""

import math
from collections.abc import Mapping, Sequence

from eeio.importing.power_logs.series import Series, series_of
from eeio_power.delay import BMC
from eeio_power.errors import PowerError
from eeio_power.watt_names import complete_system


def _last(name: str, rounds: Sequence[tuple[float, Mapping[str, float | None]]]) -> float | None:
    """The last value that is known."""
    values = (sensors.get(name) for _, sensors in reversed(rounds))
    return next((value for value in values if value is not None and value == value), None)


def of_sensors(meter: str, rounds: Sequence[tuple[float, Mapping[str, float | None]]]) -> Series:
    """The power of the system from sensors with names. Raises PowerError if none is its."""
    names = dict.fromkeys(name for _, sensors in rounds for name in sensors)
    last = {name: _last(name, rounds) for name in names}
    chosen = complete_system(last)
    if not chosen.sensors:
        raise PowerError(
            f"{meter}: the sensor of the system is unknown ({chosen.reason}) among "
            f"{', '.join(names)[:200]}: log only that sensor"
        )
    rows = (
        (t, math.nan if None in parts else sum(p for p in parts if p is not None))
        for t, sensors in rounds
        for parts in [[sensors.get(name) for name in chosen.sensors]]
    )
    return series_of(meter, "system", "measured", "sample", rows, BMC, contents=chosen.contents)
