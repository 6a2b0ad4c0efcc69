"""`eeio meter calibrate`: how far a log's clock is off, by pulses of load."""

import argparse
import json
import sys
import time
from itertools import pairwise
from pathlib import Path

from eeio.commands.meter.meters import seconds
from eeio.errors import EXIT_DONE, RejectedError
from eeio_limits import LimitError, inputs
from eeio_limits.quantities import TIMESTAMP
from eeio_power import alignment
from eeio_power.errors import PowerError
from eeio_power.meters import LoggedMeter, close_meters, open_meters


def add_parser(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = actions.add_parser(
        "calibrate", help="find the clock offset of a log with load pulses",
        description="Loads all CPUs in pulses of some seconds and finds the pulses in a log. If "
        "the log is available only later, use `--save FILE` now and `--meter csv:... --pulses "
        "FILE` then.",
    )  # fmt: skip
    parser.add_argument("--meter", metavar="SPEC", help="power log: csv:FILE,map=...")
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
