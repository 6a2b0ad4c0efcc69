"""A meter against a reference: steps of load for both, and the calibrations that follow."""

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eeio.errors import EeioError, RejectedError
from eeio.machine.lock import machine_lock
from eeio.measure.calibration import steps
from eeio.measure.calibration.fit import Fit, fit
from eeio_power import calibration
from eeio_power.errors import PowerError
from eeio_power.meters import Meter, close_meters, open_meters, parse_spec
from eeio_power.reading import Domain
from eeio_power.sampler import NOWHERE, Sampler
from eeio_power.samples import MeterSamples

_SAME_COUNTERS = {"rapl", "perf"}
Part = tuple[Meter, Domain]


def calibrate(spec: str, reference_spec: str, directory: Path | None, seed: int | None) -> None:
    """Measures, stores the calibration of each domain that both read, and prints it. `directory`
    is also written to. Raises RejectedError for meters that cannot be compared, and EeioError if
    no domain could be calibrated."""
    with _opened(spec, reference_spec) as (meter, reference):
        pairs = _comparable(meter, reference)
        if seed is None:
            seed = random.SystemRandom().randrange(2**31)
        order = steps.loads(seed, writes=directory is not None)
        opened = (meter, reference)
        lengths = steps.lengths_s(opened)
        print(
            f"{len(order)} steps of {sum(lengths):.0f} s, about "
            f"{max(1, round(len(order) * sum(lengths) / 60))} min; seed {seed}",
            file=sys.stderr,
        )
        with machine_lock(shared=False), Sampler(opened, NOWHERE) as sampler:
            windows, temperature_c = steps.run(order, directory, lengths, sampler.energy)
            samples = sampler.samples().meters
    rejected: list[EeioError] = []
    for domain, wider, sees in pairs:
        try:
            powers, fitted = _fitted((meter, domain), (reference, wider), samples, windows)
        except EeioError as error:
            rejected.append(error)
            continue
        if sees == "more":
            print(_of_a_part(fitted, (meter, domain), (reference, wider)))
            continue
        new = steps.calibrated(
            fitted,
            powers,
            (meter, reference),
            domain,
            step_s=lengths[1],
            seed=seed,
            temperature_c=temperature_c,
        )
        calibration.store(new)
        print(
            f"{meter.name} {domain}: {new.remark}; limit {new.limit_w:.3g} W and "
            f"{new.limit_relative:.1%}, from {new.least_w:.4g} W to {new.most_w:.4g} W"
        )
    if len(rejected) == len(pairs):
        raise rejected[0]
    for each in rejected:
        print(f"eeio: {each}", file=sys.stderr)


@contextmanager
def _opened(spec: str, reference_spec: str) -> Iterator[tuple[Meter, Meter]]:
    try:
        opened = open_meters([spec, reference_spec])
    except PowerError as error:
        raise RejectedError(str(error)) from error
    try:
        if len(opened) != 2:
            raise RejectedError("--meter and --reference: name one meter each, not auto or none")
        yield opened[0], opened[1]
    finally:
        close_meters(opened)


def _comparable(meter: Meter, reference: Meter) -> list[tuple[Domain, Domain, steps.Sees]]:
    """The domains that are compared (`steps.domains`)."""
    if reference.kind in ("modelled", "demo"):
        raise RejectedError(
            f"{reference.spec}: it is {reference.kind}, and a reference must measure"
        )
    if {parse_spec(each.spec)[0] for each in (meter, reference)} <= _SAME_COUNTERS:
        raise RejectedError("rapl and perf read the same counters; name another reference")
    pairs = steps.domains(meter, reference)
    for domain, wider, sees in pairs:
        if sees == "less":
            raise RejectedError(
                f"{reference.spec} ({wider}) does not include all that {meter.spec} ({domain}) "
                "reads; name a reference that reads the same domain, or the system"
            )
    return pairs


def _fitted(
    meter: Part, reference: Part, samples: tuple[MeterSamples, ...], windows: list[steps.Window]
) -> tuple[list[tuple[float, float]], Fit]:
    """Powers of the steps and their line. Raises EeioError."""
    powers = steps.step_powers((samples[0], meter[1]), (samples[1], reference[1]), windows)
    return powers, fit(powers, _pair(meter, reference))


def _pair(meter: Part, reference: Part) -> str:
    return f"{meter[0].name} ({meter[1]}) against {reference[0].name} ({reference[1]})"


def _of_a_part(fitted: Fit, meter: Part, reference: Part) -> str:
    return (
        f"{_pair(meter, reference)}: gain {fitted.gain:.4g} ± {fitted.gain_limit:.2g}, offset "
        f"{fitted.offset_w:+.3g} W, limit {fitted.limit_w:.3g} W. The reference reads more than "
        "the meter: the gain contains the losses of the supply, and the offset the rest of the "
        "machine. Nothing is stored."
    )
