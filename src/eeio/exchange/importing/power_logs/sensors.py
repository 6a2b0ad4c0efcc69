"""The power of the system from sensors with names."""

import math
from collections.abc import Mapping, Sequence

from eeio.exchange.importing.power_logs.one_meter import check_one_meter
from eeio.exchange.importing.power_logs.series import Series, series_of
from eeio_power.delay import BMC
from eeio_power.errors import PowerError
from eeio_power.system_sensor.controller import complete_system


def of_sensors(meter: str, rounds: Sequence[tuple[float, Mapping[str, float | None]]]) -> Series:
    """The power of the system from sensors with names. Raises PowerError if none is
    its, or if the readings are of several machines."""
    last: dict[str, float | None] = {}
    for _, sensors in rounds:
        for name, value in sensors.items():
            is_known = value is not None and value == value
            last[name] = value if is_known else last.get(name)
    chosen = complete_system(last)
    if not chosen.sensors:
        raise PowerError(
            f"{meter}: the sensor of the system is unknown ({chosen.reason}) among "
            f"{', '.join(last)[:200]}: log only that sensor"
        )
    rows = []
    for time_s, sensors in rounds:
        parts = [sensors.get(name) for name in chosen.sensors]
        rows.append((time_s, math.nan if None in parts else math.fsum(filter(None, parts))))
    check_one_meter(meter, rows)
    return series_of(meter, "system", "measured", "sample", rows, BMC, contents=chosen.contents)
