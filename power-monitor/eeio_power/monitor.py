"""The power of all that happens between a start and a stop: the runner's, and the session's.

with PowerMonitor(open_source(("auto",), estimates_allowed=False), samples) as power:
    power.mark()
    start_s = time.monotonic()
    ...
    end_s = time.monotonic()
    power.mark()
    readings = power.energy(start_s, end_s)
"""

import json
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from eeio_power.meters import Meter, close_meters, open_meters
from eeio_power.reading import EnergyReading
from eeio_power.sampler import Sampler

SAMPLE_RATE_HZ = 10.0

# The sampler takes a sample for the end of any window, however short.
_SHORT_S = 0.01


@dataclass(frozen=True)
class PowerSource:
    """Open meters; `reason` says why there are none."""

    meters: tuple[Meter, ...]
    reason: str | None


def open_source(specs: Sequence[str], estimates_allowed: bool) -> PowerSource:
    """Opens what `--meter` names. `auto`, and no spec at all, takes every measured source; where
    there is none the model stands in for it, if estimates are allowed.

    Raises PowerError for a meter that was named and cannot be read.
    """
    meters = open_meters(specs or ("auto",))
    if not meters and tuple(specs) in ((), ("auto",)) and estimates_allowed:
        meters = open_meters(("modelled",))
    if meters:
        return PowerSource(tuple(meters), None)
    if "none" in specs:
        return PowerSource((), "--meter none was given")
    return PowerSource(
        (), "no measured power source was found (`eeio doctor` says what would add one)"
    )


class PowerMonitor:
    """Samples every meter from `start` to `stop`; without meters it answers with no readings.

    The samples go to `samples` (.csv.gz); `stop` leaves the rates and errors of the meters in a
    file of the same name that ends in .json, and closes the meters. A meter is read at `rate_hz`,
    or as often as it has something new where that is less.
    """

    def __init__(self, source: PowerSource, samples: Path, rate_hz: float = SAMPLE_RATE_HZ) -> None:
        self.meters = source.meters
        self._samples = samples
        self._sampler = Sampler(self.meters, samples, rate_hz) if self.meters else None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Returns when every meter was read once. Raises PowerError if the file cannot be written;
        the meters are closed then."""
        if self._sampler is None:
            return
        try:
            self._sampler.start()
        except BaseException:
            close_meters(self.meters)
            raise

    def stop(self) -> None:
        """May be called twice."""
        if self._sampler is None:
            return
        self._sampler.stop()
        close_meters(self.meters)
        summary = {
            "rates": [asdict(rates) for rates in self._sampler.rates()],
            "errors": self._sampler.errors,
            "write_error": self._sampler.write_error,
        }
        # Best effort on a full disk: the error of who measures must not be hidden by this one.
        with suppress(OSError):
            self._samples.with_suffix("").with_suffix(".json").write_text(
                json.dumps(summary, indent=1) + "\n", encoding="utf-8"
            )

    def mark(self) -> None:
        """Samples every meter at once: at both edges of a window, so that a short one need not be
        interpolated between two beats of the sampler, which would cost accuracy."""
        if self._sampler is not None:
            now_s = time.monotonic()
            self._sampler.energy(now_s - _SHORT_S, now_s)

    def energy(self, start_s: float, end_s: float) -> tuple[EnergyReading, ...]:
        """One reading a meter and domain, for a window in CLOCK_MONOTONIC seconds."""
        return () if self._sampler is None else tuple(self._sampler.energy(start_s, end_s))
