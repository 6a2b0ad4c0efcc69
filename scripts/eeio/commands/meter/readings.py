"""A reading in a line, as `eeio meter` prints it."""

from eeio_limits.quantities import MOST_UNKNOWN
from eeio_limits.reasons import unknown_energy
from eeio_power.reading import EnergyReading


def line(reading: EnergyReading) -> str:
    head = f"{reading.meter:12}{reading.domain:8}"
    if reading.energy_j is None or reading.power_w is None:
        return f"{head}invalid"
    if (unknown := _unknown(reading)) is not None:
        return f"{head}{unknown}"
    estimate = "" if reading.kind == "measured" else f"  {kind_word(reading)}"
    return (
        f"{head}{reading.energy_j:12.2f} J ± {reading.uncertainty_j or 0.0:.2f}"
        f"  {reading.power_w:9.2f} W  coverage {reading.coverage:.1%}{estimate}"
        + ("  doubtful" if reading.doubtful else "")
    )


def _unknown(reading: EnergyReading) -> str | None:
    """Why an energy is not shown: its uncertainty is too large."""
    if reading.kind == "modelled" or not reading.energy_j or reading.uncertainty_j is None:
        return None
    share = reading.uncertainty_j / abs(reading.energy_j)
    if share <= MOST_UNKNOWN:
        return None
    return unknown_energy(share)


def kind_word(reading: EnergyReading) -> str:
    return {"modelled": "ESTIMATE", "demo": "DEMO"}.get(reading.kind, reading.kind)
