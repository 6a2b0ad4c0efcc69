"""`eeio meter calibrate`: a meter against a reference, how late a live meter is, or how far a log's
clock is off."""

import argparse
import json
import sys
import time
from pathlib import Path

from eeio.commands import campaign_options
from eeio.commands.arguments import OptionGroup, add_help_all
from eeio.commands.meter.meters import seconds
from eeio.commands.output_file import check_writable, write_file
from eeio.errors import EXIT_DONE, RejectedError
from eeio.machine.lock import machine_lock
from eeio.measure.calibration import against, clock, delay
from eeio.record.energy_reading import MARKS
from eeio_power import alignment, calibration
from eeio_power.errors import PowerError
from eeio_power.meters import LoggedMeter, Meter, close_meters, open_meters


def add_parser(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = actions.add_parser(
        "calibrate",
        help="measure the delay or the gain of a meter, or the clock offset of a log",
        description="Without --reference: loads all CPUs in pulses of some seconds. Finds how late "
        "the readings of a live meter are and over how long it averages, and stores both. Finds "
        "the pulses in a log, and prints how far its clock is ahead. If the log is available only "
        "later, use `--save FILE` now and `--meter csv:... --pulses FILE` then. With --reference: "
        "applies steps of load, fits a line to the power of both meters, and stores gain and "
        "offset.",
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
    experts = OptionGroup(parser)
    experts.rare(
        "--count", type=int, default=alignment.PULSES, help="number of pulses (default: 10)"
    )
    experts.rare(
        "--search", type=seconds, default=alignment.SEARCH_S, metavar="S",
        help="largest clock offset to search (default: 60)",
    )  # fmt: skip
    add_help_all(parser)
    parser.set_defaults(action=calibrate)


def calibrate(arguments: argparse.Namespace) -> int:
    if arguments.forget is not None:
        return _forget(arguments.forget)
    if arguments.reference is not None:
        return _against_reference(arguments)
    if arguments.directory is not None or arguments.seed is not None:
        raise RejectedError("--directory and --seed need --reference, the meter to compare with")
    if arguments.meter is None and arguments.save is None:
        raise RejectedError(
            "name a live meter with --meter, a log with --meter csv:..., or keep the pulses with "
            "--save"
        )
    if arguments.count < 2:
        raise RejectedError("--count: two pulses at least")
    if arguments.save is not None:
        try:
            check_writable(arguments.save)  # before a minute of pulses is spent
        except OSError as error:
            raise RejectedError(f"--save {arguments.save}: {error.strerror}") from error
    meter = None if arguments.meter is None else _opened(arguments.meter)
    if meter is not None and not isinstance(meter, LoggedMeter):
        return _delay(meter, arguments)
    if meter is not None and meter.channels[0].quantity != "power_w":
        raise RejectedError(f"{arguments.meter}: it is a log of energy; a log of power is needed")
    pulses = clock.load_pulses(arguments.pulses) if arguments.pulses else None
    if pulses is None:
        print(f"{arguments.count} load pulses, about {arguments.count * 7} s", file=sys.stderr)
        pulses = alignment.make_pulses(arguments.count)
    if arguments.save is not None:
        body = {"schema_version": 1, "pulses_unix_s": [[p.start_s, p.end_s] for p in pulses]}
        write_file(arguments.save, json.dumps(body) + "\n")
    if meter is None:
        return EXIT_DONE
    found = clock.offset(meter, pulses, arguments.search)
    print(
        f"the log's clock is {found.offset_s:+.2f} s ± {found.uncertainty_s:.2f} s ahead "
        f"(load {found.contrast_w:+.1f} W); add to the spec (to an offset_s that is there):"
    )
    print(f"offset_s={found.offset_s:.2f}")
    return EXIT_DONE


def _opened(spec: str) -> Meter:
    try:
        meters = open_meters([spec])
    except (PowerError, ValueError) as error:
        raise RejectedError(str(error)) from error
    if len(meters) != 1:
        close_meters(meters)
        raise RejectedError(f"--meter {spec}: name one meter")
    return meters[0]


def _delay(meter: Meter, arguments: argparse.Namespace) -> int:
    """Of a live meter; stored for this spec on this machine."""
    try:
        if arguments.save is not None or arguments.pulses is not None:
            raise RejectedError(f"--save and --pulses are for logs, and {meter.spec} is read live")
        if meter.kind in MARKS:
            raise RejectedError(f"{meter.spec}: it is {meter.kind}, and has no delay to measure")
        print(f"{arguments.count} load pulses, about {arguments.count * 7} s", file=sys.stderr)
        with machine_lock(shared=False):
            readings, pulses = delay.poll(
                meter, lambda: alignment.make_pulses(arguments.count, time.monotonic)
            )
        fit = delay.fitted(readings, pulses, meter.native_period_s, meter.spec)
        calibration.store_delay(meter.spec, fit.delay)
    finally:
        close_meters([meter])
    print(
        f"{meter.spec}: {fit.delay.text}; a new value every {fit.changes_every_s:.2g} s; the load "
        f"changes the power by {fit.change_w:.3g} W"
    )
    return EXIT_DONE


def _forget(meter: str) -> int:
    removed = calibration.forget(meter)
    if not removed:
        known = {found.meter for found in calibration.stored()} | set(calibration.stored_delays())
        names = ", ".join(sorted(known)) or "none"
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
    against.calibrate(arguments.meter, arguments.reference, directory, arguments.seed)
    return EXIT_DONE
