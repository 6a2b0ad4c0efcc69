"""Power as eeio takes it from eeio_power: meters refused in its words, readings in its records."""

from collections.abc import Sequence

from eeio.errors import RefusedError
from eeio_power import reading as measured
from eeio_power.errors import PowerError
from eeio_power.meters import close_meters, open_meters
from eeio_results.record import EnergyReading


def check_meters(specs: tuple[str, ...]) -> None:
    """Refuses meters that are named and not there, before anything is touched."""
    try:
        close_meters(open_meters(specs or ("auto",)))
    except PowerError as error:
        raise RefusedError(str(error)) from error


def recorded(readings: Sequence[measured.EnergyReading]) -> tuple[EnergyReading, ...]:
    """What a meter saw of a window, as a run record holds it."""
    return tuple(EnergyReading.from_json(reading.to_json()) for reading in readings)
