"""`eeio meter calibrate`: a meter against a reference, or how far a log's clock is off."""

import argparse
import json
import sys
from pathlib import Path

from eeio.arguments import OptionGroup, add_help_all
from eeio.calibration import against, clock
from eeio.commands import campaign_options
from eeio.commands.meter.meters import seconds
from eeio.errors import EXIT_DONE, RejectedError
from eeio_power import alignment, calibration


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
        raise RejectedError("name the log with --meter csv:..., or keep the pulses with --save")
    if arguments.count < 2:
        raise RejectedError("--count: two pulses at least")
    if arguments.save is not None:
        try:
            arguments.save.open("a").close()  # before a minute of pulses is spent
        except OSError as error:
            raise RejectedError(f"--save {arguments.save}: {error.strerror}") from error
    meter = None if arguments.meter is None else clock.log(arguments.meter)
    pulses = clock.load_pulses(arguments.pulses) if arguments.pulses else None
    if pulses is None:
        print(f"{arguments.count} load pulses, about {arguments.count * 7} s", file=sys.stderr)
        pulses = alignment.make_pulses(arguments.count)
    if arguments.save is not None:
        body = {"schema_version": 1, "pulses_unix_s": [[p.start_s, p.end_s] for p in pulses]}
        arguments.save.write_text(json.dumps(body) + "\n", encoding="utf-8")
    if meter is None:
        return EXIT_DONE
    found = clock.offset(meter, pulses, arguments.search)
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
    against.calibrate(arguments.meter, arguments.reference, directory, arguments.seed)
    return EXIT_DONE
