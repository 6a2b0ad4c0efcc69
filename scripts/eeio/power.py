"""Power during a campaign: which meters, and what a window cost."""

from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from eeio.errors import RefusedError
from eeio_power.errors import PowerError
from eeio_power.meters import Meter, open_meters
from eeio_power.sampler import Sampler
from eeio_results.record import EnergyReading

SAMPLE_RATE_HZ = 10.0


@dataclass(frozen=True)
class PowerSource:
    """The open meters of a campaign; `reason` says why there are none."""

    meters: tuple[Meter, ...]
    reason: str | None


def open_source(specs: tuple[str, ...], estimates_allowed: bool) -> PowerSource:
    """Opens what `--meter` names. `auto` takes every measured source; where there is none the
    model stands in for it, if estimates are allowed."""
    meters = open_meters(specs or ("auto",))
    if not meters and specs in ((), ("auto",)) and estimates_allowed:
        meters = open_meters(("modelled",))
    if meters:
        return PowerSource(tuple(meters), None)
    if "none" in specs:
        return PowerSource((), "--meter none was given")
    return PowerSource(
        (), "no measured power source was found (`eeio doctor` says what would add one)"
    )


def check_meters(specs: tuple[str, ...]) -> None:
    """Refuses meters that are named and not there, before anything is touched."""
    try:
        for meter in open_meters(specs or ("auto",)):
            meter.close()
    except PowerError as error:
        raise RefusedError(str(error)) from error


class PowerMonitor:
    """Samples every meter while the block runs; without meters it answers with no readings."""

    def __init__(self, source: PowerSource, samples: Path) -> None:
        self._sampler = (
            Sampler(list(source.meters), samples, SAMPLE_RATE_HZ) if source.meters else None
        )

    def __enter__(self) -> "PowerMonitor":
        if self._sampler is not None:
            self._sampler.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._sampler is not None:
            self._sampler.stop()

    def energy(self, start_s: float, end_s: float) -> tuple[EnergyReading, ...]:
        """One reading a meter and domain, for a window in CLOCK_MONOTONIC seconds."""
        if self._sampler is None:
            return ()
        return tuple(
            EnergyReading.from_json(reading.to_json())
            for reading in self._sampler.energy(start_s, end_s)
        )
