"""A reading in a line, as `eeio power` prints it."""

from eeio_power.reading import EnergyReading


def line(reading: EnergyReading) -> str:
    head = f"{reading.meter:12}{reading.domain:8}"
    if reading.energy_j is None or reading.power_w is None:
        return f"{head}invalid"
    estimate = "" if reading.kind == "measured" else f"  {kind_word(reading)}"
    return (
        f"{head}{reading.energy_j:12.2f} J ± {reading.uncertainty_j or 0.0:.2f}"
        f"  {reading.power_w:9.2f} W  coverage {reading.coverage:.1%}{estimate}"
        + ("  doubtful" if reading.doubtful else "")
    )


def kind_word(reading: EnergyReading) -> str:
    return {"modelled": "ESTIMATE", "demo": "DEMO"}.get(reading.kind, reading.kind)
