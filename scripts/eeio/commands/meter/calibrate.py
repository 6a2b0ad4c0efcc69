"""`eeio meter calibrate`: a meter against a reference, or how far a log's clock is off."""

import argparse
import json
import random
import sys
import time
from itertools import pairwise
from pathlib import Path

from eeio.calibration import steps
from eeio.calibration.fit import Fit, fit
from eeio.commands import campaign_options
from eeio.commands.meter.meters import NOWHERE, seconds
from eeio.errors import EXIT_DONE, RejectedError
from eeio.system.lock import machine_lock
from eeio_limits import LimitError, inputs
from eeio_limits.quantities import TIMESTAMP
from eeio_power import alignment, calibration
from eeio_power.errors import PowerError
from eeio_power.meters import LoggedMeter, Meter, close_meters, open_meters, parse_spec
from eeio_power.reading import Domain
from eeio_power.sampler import Sampler
from eeio_power.samples import MeterSamples
from eeio_results.errors import EeioError

_SAME_COUNTERS = {"rapl", "perf"}


def add_parser(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = actions.add_parser(
        "calibrate", help="calibrate a meter with a reference; find the clock offset of a log",
        description="With --reference: applies steps of load, fits a line to the power of both "
        "meters, and stores gain and offset for later readings of the meter. Without: loads all "
        "CPUs in pulses of some seconds and finds the pulses in a log. If "
        "the log is available only later, use `--save FILE` now and `--meter csv:... --pulses "
        "FILE` then.",
    )  # fmt: skip
    parser.add_argument("--meter", metavar="SPEC", help="meter, or power log: csv:FILE,map=...")
    parser.add_argument("--reference", metavar="SPEC", help="calibrate against this meter")
    parser.add_argument(
        "--directory", metavar="DIR", type=Path, help="with --reference: also write files there"
    )
    parser.add_argument(
        "--seed", metavar="N", type=campaign_options.seed, help="with --reference: repeat an order"
    )
    parser.add_argument("--forget", metavar="METER", help="remove the calibrations of a meter")
    parser.add_argument("--save", type=Path, metavar="FILE", help="store the times of the pulses")
    parser.add_argument("--pulses", type=Path, metavar="FILE", help="use stored pulse times")
    parser.add_argument(
        "--count", type=int, default=alignment.PULSES, help="number of pulses (default: 10)"
    )
    parser.add_argument(
        "--search", type=seconds, default=alignment.SEARCH_S, metavar="S",
        help="largest clock offset to search (default: 60)",
    )  # fmt: skip
    parser.set_defaults(action=calibrate)


def calibrate(arguments: argparse.Namespace) -> int:
    if arguments.forget is not None:
        return _forget(arguments.forget)
    if arguments.reference is not None:
        return _against_reference(arguments)
    if arguments.directory is not None or arguments.seed is not None:
        raise RejectedError("--directory and --seed need --reference, the meter to compare with")
    if arguments.meter is None and arguments.save is None:
        raise RejectedError("name the log with --meter csv:..., or keep the pulses with --save")
    if arguments.count < 2:
        raise RejectedError("--count: two pulses at least")
    if arguments.save is not None:
        try:
            arguments.save.open("a").close()  # before a minute of pulses is spent
        except OSError as error:
            raise RejectedError(f"--save {arguments.save}: {error.strerror}") from error
    meter = None if arguments.meter is None else _log(arguments.meter)
    pulses = _load_pulses(arguments.pulses) if arguments.pulses else None
    if pulses is None:
        print(f"{arguments.count} load pulses, about {arguments.count * 7} s", file=sys.stderr)
        pulses = alignment.make_pulses(arguments.count)
    if arguments.save is not None:
        body = {"schema_version": 1, "pulses_unix_s": [[p.start_s, p.end_s] for p in pulses]}
        arguments.save.write_text(json.dumps(body) + "\n", encoding="utf-8")
    if meter is None:
        return EXIT_DONE
    times_s, (values,) = meter.logged()
    # The pulses are on the wall clock, the log's times on the monotonic one.
    shift_s = time.monotonic() - time.time()
    known = [(t, v) for t, v in zip(times_s, values, strict=True) if v == v]
    found = alignment.find_offset(
        [t for t, _ in known],
        [v for _, v in known],
        [alignment.Pulse(p.start_s + shift_s, p.end_s + shift_s) for p in pulses],
        arguments.search,
    )
    print(
        f"the log's clock is {found.offset_s:+.2f} s ± {found.uncertainty_s:.2f} s ahead "
        f"(load {found.contrast_w:+.1f} W); add to the spec (to an offset_s that is there):"
    )
    print(f"offset_s={found.offset_s:.2f}")
    return EXIT_DONE


def _forget(meter: str) -> int:
    removed = calibration.forget(meter)
    if not removed:
        names = ", ".join(sorted({found.meter for found in calibration.stored()})) or "none"
        raise RejectedError(f"there is no calibration of the meter '{meter}'; there are: {names}")
    print(f"{meter}: {removed} calibration{'s' if removed > 1 else ''} removed")
    return EXIT_DONE


def _against_reference(arguments: argparse.Namespace) -> int:
    if arguments.meter is None:
        raise RejectedError("name the meter to calibrate with --meter")
    if arguments.save is not None or arguments.pulses is not None:
        raise RejectedError("--save and --pulses are for the clock of a log; leave out --reference")
    directory: Path | None = arguments.directory
    if directory is not None and not directory.is_dir():
        raise RejectedError(f"--directory {directory}: not a directory")
    try:
        opened = open_meters([arguments.meter, arguments.reference])
    except PowerError as error:
        raise RejectedError(str(error)) from error
    try:
        if len(opened) != 2:
            raise RejectedError("--meter and --reference: name one meter each, not auto or none")
        meter, reference = opened
        if reference.kind in ("modelled", "demo"):
            raise RejectedError(
                f"{reference.spec}: it is {reference.kind}, and a reference must measure"
            )
        if {parse_spec(each.spec)[0] for each in opened} <= _SAME_COUNTERS:
            raise RejectedError("rapl and perf read the same counters; name another reference")
        pairs = steps.domains(meter, reference)
        for domain, wider, sees in pairs:
            if sees == "less":
                raise RejectedError(
                    f"{reference.spec} ({wider}) does not include all that {meter.spec} ({domain}) "
                    "reads; name a reference that reads the same domain, or the system"
                )
        seed = random.SystemRandom().randrange(2**31) if arguments.seed is None else arguments.seed
        order = steps.loads(seed, writes=directory is not None)
        lengths = steps.lengths_s(opened)
        print(
            f"{len(order)} steps of {sum(lengths):.0f} s, about "
            f"{max(1, round(len(order) * sum(lengths) / 60))} min; seed {seed}",
            file=sys.stderr,
        )
        with machine_lock(shared=False), Sampler(opened, NOWHERE) as sampler:
            windows, temperature_c = steps.run(order, directory, lengths, sampler.energy)
            samples = sampler.samples().meters
    finally:
        close_meters(opened)
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
            fitted, powers, (meter, reference), domain,
            step_s=lengths[1], seed=seed, temperature_c=temperature_c,
        )  # fmt: skip
        calibration.store(new)
        print(
            f"{meter.name} {domain}: {new.remark}; limit {new.limit_w:.3g} W and "
            f"{new.limit_relative:.1%}, from {new.least_w:.4g} W to {new.most_w:.4g} W"
        )
    if len(rejected) == len(pairs):
        raise rejected[0]
    for each in rejected:
        print(f"eeio: {each}", file=sys.stderr)
    return EXIT_DONE


Part = tuple[Meter, Domain]


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


def _log(spec: str) -> LoggedMeter:
    try:
        (meter,) = open_meters([spec])
    except (PowerError, ValueError) as error:
        raise RejectedError(str(error)) from error
    if not isinstance(meter, LoggedMeter) or meter.channels[0].quantity != "power_w":
        close_meters([meter])
        raise RejectedError(f"{spec}: this meter needs no calibration; it is for logs of power")
    return meter


def _load_pulses(path: Path) -> list[alignment.Pulse]:
    try:
        pulses = [
            alignment.Pulse(TIMESTAMP.checked(a, "a pulse"), TIMESTAMP.checked(b, "a pulse"))
            for a, b in inputs.read_json(path)["pulses_unix_s"]
        ]
        if not all(p.start_s < p.end_s for p in pulses) or not all(
            before.end_s < after.start_s for before, after in pairwise(pulses)
        ):
            raise LimitError("pulses that overlap, or end before they start")
        return pulses
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RejectedError(f"{path}: no pulses that --save wrote ({error})") from error
