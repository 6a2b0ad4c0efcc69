"""`eeio meter calibrate`: a meter against a reference, how late a live meter is, or how far a log's
clock is off."""

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from eeio.commands.meter.meters import seconds
from eeio.commands.output_file import check_writable, write_file
from eeio.errors import EXIT_DONE, RejectedError
from eeio.machine.lock import machine_lock
from eeio.measure.calibration import against, clock, delay
from eeio.options import Command, option
from eeio.record.energy_reading import MARKS
from eeio.units import amounts
from eeio_power import alignment, calibration
from eeio_power.errors import PowerError
from eeio_power.meters import LoggedMeter, Meter, close_meters, open_meters


@dataclass(frozen=True, kw_only=True)
class CalibrateRequest:
    """`eeio meter calibrate`."""

    meter: str | None = option(
        "--meter",
        value="SPEC",
        help="meter, or power log: csv:FILE,map=...",
    )
    reference: str | None = option(
        "--reference",
        value="SPEC",
        help="calibrate against this meter",
    )
    directory: Path | None = option(
        "--directory",
        value="DIR",
        help="with --reference: also write files there",
        parse=Path,
    )
    seed: int | None = option(
        "--seed",
        value="N",
        help="with --reference: repeat an order",
        parse=amounts.seed,
    )
    forget: str | None = option(
        "--forget",
        value="METER",
        help="remove the calibrations of a meter",
    )
    save: Path | None = option(
        "--save",
        value="FILE",
        help="store the times of the pulses",
        parse=Path,
    )
    pulses: Path | None = option(
        "--pulses",
        value="FILE",
        help="use stored pulse times",
        parse=Path,
    )
    count: int = option(
        "--count",
        help="number of pulses (default: 10)",
        parse=int,
        default=alignment.PULSES,
        rare=True,
    )
    search: float = option(
        "--search",
        value="S",
        help="largest clock offset to search (default: 60)",
        parse=seconds,
        default=alignment.SEARCH_S,
        rare=True,
    )


def calibrate(request: CalibrateRequest) -> int:
    if request.forget is not None:
        return _forget(request.forget)
    if request.reference is not None:
        return _against_reference(request, request.reference)
    _check(request)
    meter = None
    if request.meter is not None:
        meter = _opened(request.meter)
    if meter is not None and not isinstance(meter, LoggedMeter):
        return _delay(meter, request)
    if meter is not None and meter.channels[0].quantity != "power_w":
        raise RejectedError(f"{request.meter}: it is a log of energy; a log of power is needed")
    pulses = _pulses(request)
    if meter is None:
        return EXIT_DONE
    offset = clock.offset(meter, pulses, request.search)
    print(
        f"the log's clock is {offset.offset_s:+.2f} s ± {offset.uncertainty_s:.2f} s ahead "
        f"(load {offset.contrast_w:+.1f} W); add to the spec (to an offset_s that is there):"
    )
    print(f"offset_s={offset.offset_s:.2f}")
    return EXIT_DONE


def _check(request: CalibrateRequest) -> None:
    """RejectedError for options of a calibration of delay or clock that do not go together."""
    if request.directory is not None or request.seed is not None:
        raise RejectedError("--directory and --seed need --reference, the meter to compare with")
    if request.meter is None and request.save is None:
        raise RejectedError(
            "name a live meter with --meter, a log with --meter csv:..., or keep the pulses with "
            "--save"
        )
    if request.count < 2:
        raise RejectedError("--count: two pulses at least")
    if request.save is not None:
        try:
            check_writable(request.save)  # before a minute of pulses is spent
        except OSError as error:
            raise RejectedError(f"--save {request.save}: {error.strerror}") from error


def _pulses(request: CalibrateRequest) -> list[alignment.Pulse]:
    """The stored pulses of --pulses, or new ones; --save stores them."""
    if request.pulses is not None:
        pulses = clock.load_pulses(request.pulses)
    else:
        print(f"{request.count} load pulses, about {request.count * 7} s", file=sys.stderr)
        pulses = alignment.make_pulses(request.count)
    if request.save is not None:
        body = {"schema_version": 1, "pulses_unix_s": [[p.start_s, p.end_s] for p in pulses]}
        write_file(request.save, json.dumps(body) + "\n")
    return pulses


def _opened(spec: str) -> Meter:
    try:
        meters = open_meters([spec])
    except (PowerError, ValueError) as error:
        raise RejectedError(str(error)) from error
    if len(meters) != 1:
        close_meters(meters)
        raise RejectedError(f"--meter {spec}: name one meter")
    return meters[0]


def _delay(meter: Meter, request: CalibrateRequest) -> int:
    """Of a live meter; stored for this spec on this machine."""
    try:
        if request.save is not None or request.pulses is not None:
            raise RejectedError(f"--save and --pulses are for logs, and {meter.spec} is read live")
        if meter.kind in MARKS:
            raise RejectedError(f"{meter.spec}: it is {meter.kind}, and has no delay to measure")
        print(f"{request.count} load pulses, about {request.count * 7} s", file=sys.stderr)
        with machine_lock(shared=False):
            readings, pulses = delay.poll(
                meter, lambda: alignment.make_pulses(request.count, time.monotonic)
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
    plural = ""
    if removed > 1:
        plural = "s"
    print(f"{meter}: {removed} calibration{plural} removed")
    return EXIT_DONE


def _against_reference(request: CalibrateRequest, reference: str) -> int:
    if request.meter is None:
        raise RejectedError("name the meter to calibrate with --meter")
    if request.save is not None or request.pulses is not None:
        raise RejectedError("--save and --pulses are for the clock of a log; leave out --reference")
    directory = request.directory
    if directory is not None and not directory.is_dir():
        raise RejectedError(f"--directory {directory}: not a directory")
    against.calibrate(request.meter, reference, directory, request.seed)
    return EXIT_DONE


COMMAND = Command(
    "calibrate",
    CalibrateRequest,
    calibrate,
    help="measure the delay or the gain of a meter, or the clock offset of a log",
    description="Without --reference: loads all CPUs in pulses of some seconds. Finds how late "
    "the readings of a live meter are and over how long it averages, and stores both. Finds "
    "the pulses in a log, and prints how far its clock is ahead. If the log is available only "
    "later, use `--save FILE` now and `--meter csv:... --pulses FILE` then. With --reference: "
    "applies steps of load, fits a line to the power of both meters, and stores gain and "
    "offset.",
)
