"""Steps of load, and the mean power of two meters in each.

Each step has 3 periods of the slower meter, at least 5 s, that are discarded, and then 20 periods,
at least 10 s, that are averaged. The loads are no load, the processors at a quarter, half, three
quarters and all of their time, and, if there is a directory, writes to it for half and all of the
time. Each is repeated, in a random order, so that drift becomes noise and not an error of the gain.
"""

import platform
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from eeio.errors import EeioError, RejectedError
from eeio.measure.calibration.fit import FEWEST_STEPS, Fit
from eeio.record.contradictions import INSIDE
from eeio_power import alignment
from eeio_power.calibration import Calibration
from eeio_power.meters import Meter, contents_of
from eeio_power.reading import DOMAINS, Domain
from eeio_power.samples import MeterSamples
from eeio_power.sysfs import read_optional_int

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
WRITE_SHARES = (0.5, 1.0)
REPEATS = 2
SETTLE_PERIODS, SHORTEST_SETTLE_S = 3, 5.0
PERIODS, SHORTEST_S = 20, 10.0
LEAST_COVERAGE = 0.9
"""Of a usable step."""

Sees = Literal["the same", "more", "less"]
Window = tuple[float, float]


@dataclass(frozen=True)
class Load:
    """For a share of the time, of all processors or of `writes` to a directory."""

    share: float
    writes: bool = False


def loads(seed: int, *, writes: bool) -> list[Load]:
    """All steps, in the random order of the seed."""
    every = [Load(share) for share in SHARES]
    if writes:
        every += [Load(share, True) for share in WRITE_SHARES]
    order = every * REPEATS
    random.Random(seed).shuffle(order)
    return order


def lengths_s(meters: Sequence[Meter]) -> tuple[float, float]:
    """Of the discarded and of the averaged part of a step, s."""
    period_s = max(meter.native_period_s for meter in meters)
    return max(SHORTEST_SETTLE_S, SETTLE_PERIODS * period_s), max(SHORTEST_S, PERIODS * period_s)


def run(
    order: Sequence[Load],
    directory: Path | None,
    lengths: tuple[float, float],
    edge: Callable[[float, float], object],
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> tuple[list[Window], tuple[float, float] | None]:
    """Applies each load, and returns the averaged windows and the range of temperature, °C. `edge`
    is called with each window when it has ended. Raises EeioError if the load fails."""
    windows, temperatures_c = [], []
    for load in order:
        with _loaded(load, directory) as is_running:
            sleep(lengths[0])
            start_s = clock()
            sleep(lengths[1])
            end_s = clock()
            if not is_running():
                raise EeioError("the load ended early; see its error message above")
        edge(start_s, end_s)
        windows.append((start_s, end_s))
        if (temperature_c := hottest_c()) is not None:
            temperatures_c.append(temperature_c)
    span = None
    if temperatures_c:
        span = (min(temperatures_c), max(temperatures_c))
    return windows, span


@contextmanager
def _loaded(load: Load, directory: Path | None) -> Iterator[Callable[[], bool]]:
    """The load meanwhile; gives a function that says whether it runs."""
    if load.writes:
        workers = alignment.loading(1, alignment.WRITE, str(directory), str(load.share))
    elif load.share > 0.0:
        workers = alignment.loading(None, alignment.SHARE, str(load.share))
    else:
        yield lambda: True
        return
    with workers as processes:
        alignment.resume(processes)
        yield lambda: all(process.poll() is None for process in processes)


def hottest_c(root: Path = Path("/")) -> float | None:
    """Of all thermal zones, °C; None if there is none that can be read."""
    temperatures = []
    for path in root.glob("sys/class/thermal/thermal_zone*/temp"):
        with suppress(OSError, ValueError):
            if (value := read_optional_int(path)) is not None:
                temperatures.append(value / 1000.0)
    return max(temperatures, default=None)


def domains(meter: Meter, reference: Meter) -> list[tuple[Domain, Domain, Sees]]:
    """Which domains of both are compared: those that both read; if there are none, the widest of
    each. The reference `sees` the same, more or less."""
    ours, theirs = contents_of(meter.channels), contents_of(reference.channels)
    pairs = [(domain, domain) for domain in DOMAINS if domain in ours and domain in theirs] or [
        (next(d for d in DOMAINS if d in ours), next(d for d in DOMAINS if d in theirs))
    ]
    found: list[tuple[Domain, Domain, Sees]] = []
    for domain, wider in pairs:
        sees: Sees = "less"
        if domain == wider:
            sees = "the same"
        if set(ours[domain].includes) & set(theirs[wider].leaves_out):
            sees = "less"
        elif domain in INSIDE[wider] or set(theirs[wider].includes) & set(ours[domain].leaves_out):
            sees = "more"
        found.append((domain, wider, sees))
    return found


def step_powers(
    meter: tuple[MeterSamples, str], reference: tuple[MeterSamples, str], windows: Sequence[Window]
) -> list[tuple[float, float]]:
    """Mean powers, W, of a domain of both in each usable step, without any calibration.

    Raises EeioError if fewer than 6 are usable.
    """
    found, reasons = [], []
    for window in windows:
        readings = [
            reading
            for samples, domain in (meter, reference)
            for reading in _plain(samples).energy(*window)
            if reading.domain == domain
        ]
        bad = [r for r in readings if r.doubtful or not r.valid or r.coverage < LEAST_COVERAGE]
        powers = [r.power_w for r in readings if r.power_w is not None]
        if not bad and len(powers) == 2:
            found.append((powers[0], powers[1]))
        reasons += [
            f"{r.meter}: "
            + (
                "; ".join(r.reasons)
                or f"readings cover {r.coverage:.0%} of a step, and {LEAST_COVERAGE:.0%} are needed"
            )
            for r in bad
        ]
    if len(found) < FEWEST_STEPS:
        reason = "the meters gave no readings"
        if reasons:
            reason = reasons[0]
        raise EeioError(
            f"{len(found)} of {len(windows)} steps are usable, and {FEWEST_STEPS} are needed: "
            + reason
        )
    return found


def _plain(samples: MeterSamples) -> MeterSamples:
    """Without earlier calibrations."""
    return replace(samples, info=replace(samples.info, calibrations=()))


def calibrated(
    fitted: Fit,
    steps: Sequence[tuple[float, float]],
    meters: tuple[Meter, Meter],
    domain: Domain,
    *,
    step_s: float,
    seed: int,
    temperature_c: tuple[float, float] | None,
) -> Calibration:
    """The fit as it is stored, with the limit that the reference states of itself."""
    meter, reference = meters
    channels = [c for c in reference.channels if c.domain == domain and c.in_domain_total]
    if not channels:
        raise RejectedError(f"{reference.spec}: it does not read {domain}")
    resolution_w = sum(
        c.resolution / (step_s if c.quantity == "energy_j" else 1.0) for c in channels
    )
    return Calibration(
        meter=meter.name,
        spec=meter.spec,
        domain=domain,
        gain=fitted.gain,
        offset_w=fitted.offset_w,
        limit_w=fitted.limit_w + resolution_w,
        limit_relative=max(c.accuracy_relative for c in channels),
        least_w=fitted.least_w,
        most_w=fitted.most_w,
        reference=reference.spec,
        kernel=platform.release(),
        date=datetime.now(UTC).date().isoformat(),
        seed=seed,
        steps=tuple(steps),
        temperature_c=temperature_c,
    )
