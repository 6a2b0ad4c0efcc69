"""`eeio record power`: energy of a command."""

import json
import signal
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from eeio.commands.arguments import program_of
from eeio.commands.meter.meters import line, meter_option, opened, rate_option, seconds
from eeio.commands.output_file import format_option
from eeio.errors import (
    EXIT_DONE,
    EXIT_DONE_WITH_INVALID_RUNS,
    EXIT_FAILED,
    EXIT_SIGNAL_BASE,
    RejectedError,
)
from eeio.measure.signals import signals_raise
from eeio.options import Command, argument, option
from eeio.paths import check_output_folder, temporary_folder
from eeio.record.reasons import unknown_delays
from eeio_power.errors import PowerError
from eeio_power.profile_rules import (
    PROFILES,
    Grade,
    GradeRules,
    Share,
    above_idle,
    breakdown,
    grade,
)
from eeio_power.recording import Recording, record, to_json
from eeio_power.samples import of_unknown_delay

_RECORD_EXITS = """\
exit codes: 0 command succeeded; 1 command failed (the output contains its code)
or timed out; 2 wrong usage, command not started; 3 command succeeded, but a
reading is invalid; 130 interrupted; 143 stopped by SIGTERM, with the command"""


@dataclass(frozen=True, kw_only=True)
class PowerRequest:
    """`eeio record power`."""

    meter: tuple[str, ...] = meter_option()
    rate: float = rate_option()
    format: str = format_option()
    profile: str | None = option(
        "--profile",
        help="grade the readings as PASS or WARN, with reasons",
        choices=tuple(PROFILES),
    )
    idle: float = option(
        "--idle",
        value="S",
        help="measure S idle seconds first; show idle and busy power (default: 0)",
        parse=seconds,
        default=0.0,
    )
    timeout: float | None = option(
        "--timeout",
        value="S",
        help="end the command (not its children) after S",
        parse=seconds,
    )
    samples: Path | None = option(
        "--samples",
        value="FILE",
        help="store the samples in this new file (.csv.gz)",
        parse=Path,
    )
    words: tuple[str, ...] = argument(
        "-- COMMAND",
        count="...",
    )


def record_command(request: PowerRequest) -> int:
    command = program_of(request.words)
    if not command:
        raise RejectedError("which command? `eeio record power -- COMMAND [ARGUMENT]...`")
    if request.samples is not None:
        check_output_folder(request.samples.parent)
    with (
        opened(request.meter) as meters,
        tempfile.TemporaryDirectory(prefix="eeio-", dir=temporary_folder()) as folder,
    ):
        try:
            with signals_raise("so is the command", (signal.SIGTERM,)):
                output = None
                if request.format == "json":
                    output = sys.stderr
                recording = record(
                    command,
                    meters,
                    request.samples or Path(folder) / "power.csv.gz",
                    rate_hz=request.rate,
                    idle_s=request.idle,
                    timeout_s=request.timeout,
                    stdout=output,
                    say=lambda text: print(f"eeio: {text}", file=sys.stderr),
                )
        except PowerError as error:
            raise RejectedError(str(error)) from error
    grades = _grades(recording, PROFILES.get(request.profile or ""), request.idle)
    if request.format == "json":
        body = to_json(recording)
        if request.profile:
            body["grades"] = [asdict(each) for each in grades]
        print(json.dumps(body, indent=1))
        # Values without a field in the JSON.
        if recording.timed_out:
            print(f"eeio: {command[0]} ran out of time and was ended", file=sys.stderr)
        if recording.write_error:
            print(f"eeio: {recording.write_error}", file=sys.stderr)
    else:
        _print_recording(recording, grades)
    if recording.interrupted:
        return EXIT_SIGNAL_BASE + 2
    if recording.exit_code != 0 or recording.timed_out:
        return EXIT_FAILED
    valid = all(reading.valid for reading in recording.readings)
    if valid:
        return EXIT_DONE
    return EXIT_DONE_WITH_INVALID_RUNS


def _grades(recording: Recording, profile: GradeRules | None, settled_s: float) -> list[Grade]:
    if profile is None:
        return []
    infos = {info.name: info for info in recording.infos}
    return [
        grade(reading, infos[reading.meter], profile, recording.duration_s, settled_s or None)
        for reading in recording.readings
    ]


def _print_recording(recording: Recording, grades: Sequence[Grade]) -> None:
    ended = "ran out of time"
    if not recording.timed_out:
        ended = f"exit code {recording.exit_code}"
    print(f"\n{recording.duration_s:.3f} s, {ended}")
    for reading in recording.readings:
        print(line(reading))
        for reason in reading.reasons:
            print(f"{'':12}{reason}")
    for rate in recording.rates:
        if rate.failed_reads:
            print(f"{rate.meter}: {rate.failed_reads} failed reads, the last: {rate.last_error}")
    for remark in unknown_delays(of_unknown_delay(recording.infos)):
        print(remark)
    if recording.write_error:
        print(recording.write_error)
    for each in grades:
        print(f"{each.verdict} {each.profile}: {each.meter} {each.domain}")
        for reason in each.reasons:
            print(f"{'':12}{reason}")
    _print_breakdown(recording)


def _print_breakdown(recording: Recording) -> None:
    busy = breakdown(recording.readings, recording.duration_s)
    if not recording.idle:
        return
    idle = breakdown(recording.idle, recording.idle_s)
    print(f"\n{'W':12}{'idle':>18}{'busy':>18}{'above idle':>18}")
    for low, high, more in zip(idle, busy, above_idle(busy, idle), strict=True):
        print(f"{high.part:12}{_watts(low):>18}{_watts(high):>18}{_watts(more):>18}")
        # What is above idle has the busy part's reason, or the idle part's.
        reason = more.reason
        if high.power_w is None:
            reason = high.reason
        if reason:
            print(f"{'':12}{reason}")


def _watts(share: Share) -> str:
    if share.power_w is None:
        return "-"
    return f"{share.power_w:.2f} ± {share.uncertainty_w or 0.0:.2f}"


COMMAND = Command(
    "power",
    PowerRequest,
    record_command,
    help="measure the energy of a command",
    description="Runs a command and prints its time, power and energy. With --format json the "
    "command's output goes to stderr.",
    epilog=_RECORD_EXITS,
    keeps_lines=True,
)
