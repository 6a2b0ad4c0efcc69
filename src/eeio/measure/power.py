"""Power from eeio_power: meters rejected with eeio's errors, readings in its records."""

from collections.abc import Mapping, Sequence

from eeio.errors import LimitError, RejectedError
from eeio.files import typed
from eeio.record.run import EnergyReading, IdleMedian
from eeio.units.quantities import MEAN_POWER
from eeio_power.errors import PowerError
from eeio_power.meters import close_meters, open_meters


def check_meters(specs: tuple[str, ...]) -> None:
    """Rejects named meters that are missing, before any change."""
    try:
        close_meters(open_meters(specs or ("auto",)))
    except PowerError as error:
        raise RejectedError(str(error)) from error


def recorded(readings: Sequence[EnergyReading]) -> tuple[EnergyReading, ...]:
    """A meter's reading of a window, as in a run record; invalid if a record cannot contain it."""
    return tuple(map(_recorded, readings))


def _recorded(reading: EnergyReading) -> EnergyReading:
    try:
        typed.check(reading)
        return reading
    except LimitError as error:
        return EnergyReading(
            reading.domain,
            reading.meter,
            reading.kind,
            power_w=None,
            energy_j=None,
            uncertainty_j=None,
            coverage=0.0,
            largest_gap_s=None,
            samples=0,
            lost=0,
            valid=False,
            reasons=(str(error),),
        )


def idle_medians(
    readings: Sequence[EnergyReading], medians_w: Mapping[tuple[str, str], float]
) -> tuple[IdleMedian, ...]:
    """Those of the readings that are valid, of all by (meter, domain)."""
    return tuple(
        IdleMedian(reading.domain, reading.meter, median_w)
        for reading in readings
        if reading.valid
        and (median_w := medians_w.get((reading.meter, reading.domain))) is not None
        and MEAN_POWER.contains(median_w)
    )
