"""The options that name meters, those meters, open, and a reading in a line."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from eeio.errors import LimitError, RejectedError
from eeio.options import option
from eeio.record.reasons import unknown_energy
from eeio.units.quantities import DURATION, MOST_UNKNOWN
from eeio_power.errors import PowerError
from eeio_power.meters import Meter, close_meters
from eeio_power.monitor import SAMPLE_RATE_HZ, open_source
from eeio_power.reading import EnergyReading


def meter_option() -> Any:
    """The field `meter: tuple[str, ...]`."""
    return option(
        "--meter",
        value="SPEC",
        repeat=True,
        help="power meter, e.g. wattsup:/dev/ttyUSB0; repeatable (default: auto)",
    )


def rate_option() -> Any:
    """The field `rate: float`, in Hz."""
    return option(
        "--rate",
        value="HZ",
        parse=rate,
        default=SAMPLE_RATE_HZ,
        help=f"readings per second, if the meter supports it (default: {SAMPLE_RATE_HZ:g})",
    )


@contextmanager
def opened(specs: Sequence[str]) -> Iterator[tuple[Meter, ...]]:
    try:
        source = open_source(tuple(specs), estimates_allowed=False)
    except PowerError as error:
        raise RejectedError(str(error)) from error
    if not source.meters:
        raise RejectedError(f"{source.reason}; `eeio meter list` shows each meter's requirements")
    try:
        yield source.meters
    finally:
        close_meters(source.meters)


def _number(convert: Callable[[str], float], text: str, what: str) -> float:
    try:
        value = convert(text)
    except ValueError:
        value = -1.0
    if not 0.0 < value <= DURATION.most:
        raise LimitError(f"{text!r} is not {what}")
    return value


def seconds(text: str) -> float:
    return _number(float, text, "a number of seconds above 0")


def rate(text: str) -> float:
    return _number(float, text, "a number of readings a second above 0")


def line(reading: EnergyReading) -> str:
    head = f"{reading.meter:12}{reading.domain:7} "
    if reading.energy_j is None or reading.power_w is None:
        return f"{head}invalid"
    if (unknown := _unknown(reading)) is not None:
        return f"{head}{unknown}"
    return (
        f"{head}{reading.energy_j:12.2f} J ± {reading.uncertainty_j or 0.0:.2f}"
        f"  {reading.power_w:9.2f} W  coverage {reading.coverage:.1%}{marks(reading)}"
    )


def marks(reading: EnergyReading) -> str:
    """Behind its figures: whether it is an estimate, and whether it is doubtful."""
    text = ""
    if reading.kind != "measured":
        text = f"  {kind_word(reading)}"
    if reading.doubtful:
        text += "  doubtful"
    return text


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
