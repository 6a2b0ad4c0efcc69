"""Power during a campaign: which meters, and what a window cost."""

import json
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType

from eeio.errors import RefusedError
from eeio_power.errors import PowerError
from eeio_power.meters import Meter, close_meters, open_meters
from eeio_power.sampler import Sampler
from eeio_results.record import EnergyReading

SAMPLE_RATE_HZ = 10.0
_SHORT_S = 0.01


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
        close_meters(open_meters(specs or ("auto",)))
    except PowerError as error:
        raise RefusedError(str(error)) from error


class PowerMonitor:
    """Samples every meter while the block runs; without meters it answers with no readings."""

    def __init__(self, source: PowerSource, samples: Path) -> None:
        self._meters = list(source.meters)
        self._samples = samples
        self._sampler = Sampler(self._meters, samples, SAMPLE_RATE_HZ) if source.meters else None

    @property
    def meters(self) -> tuple[Meter, ...]:
        return tuple(self._meters)

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
        if self._sampler is None:
            return
        self._sampler.stop()
        close_meters(self._meters)
        summary = {
            "rates": [asdict(rates) for rates in self._sampler.rates()],
            "errors": self._sampler.errors,
            "write_error": self._sampler.write_error,
        }
        # Best effort on a full disk: the campaign's own error must not be hidden by this one.
        with suppress(OSError):
            self._samples.with_suffix("").with_suffix(".json").write_text(
                json.dumps(summary, indent=1) + "\n", encoding="utf-8"
            )

    def mark(self) -> None:
        """Samples every meter at once: at both edges of a run, so that a short window need not be
        interpolated between two beats of the sampler."""
        if self._sampler is not None:
            now_s = time.monotonic()
            # The sampler takes a sample for the end of any window, however short.
            self._sampler.energy(now_s - _SHORT_S, now_s)

    def energy(self, start_s: float, end_s: float) -> tuple[EnergyReading, ...]:
        """One reading a meter and domain, for a window in CLOCK_MONOTONIC seconds."""
        if self._sampler is None:
            return ()
        return tuple(
            EnergyReading.from_json(reading.to_json())
            for reading in self._sampler.energy(start_s, end_s)
        )
