"""`eeio meter check`: is this meter good enough, and for which experiments?"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from eeio.commands.campaign_options import CampaignRequest
from eeio.commands.meter.meters import opened, rate, seconds
from eeio.commands.output_file import format_option
from eeio.errors import EXIT_DONE, EXIT_FAILED
from eeio.measure.calibration.check import Checked, check, verdicts
from eeio.measure.campaign import plan as plans
from eeio.measure.campaign.forecast import expected_lengths, too_slow_meters
from eeio.measure.profiles import suite as suites
from eeio.options import Command, argument, option
from eeio.units.external_text import shown
from eeio.units.number_text import number
from eeio_power.meters import Meter
from eeio_power.monitor import SAMPLE_RATE_HZ

_LASTS_S = 20.0


@dataclass(frozen=True, kw_only=True)
class CheckRequest:
    """`eeio meter check`."""

    spec: str = argument(
        "SPEC",
        help="meter, e.g. rapl or wattsup:/dev/ttyUSB0",
    )
    suite: str | None = option(
        "--suite",
        value="SUITE",
        help="also check the experiments of a suite",
    )
    preset: str | None = option(
        "--preset",
        help="with --suite: preset (default: standard)",
    )
    directory: Path = option(
        "--directory",
        value="DIR",
        help="with --suite: where it would run (default: here)",
        parse=Path,
        default=Path(),
    )
    seconds: float = option(
        "--seconds",
        value="S",
        help=f"time of the check (default: {_LASTS_S:g})",
        parse=seconds,
        default=_LASTS_S,
    )
    rate: float = option(
        "--rate",
        value="HZ",
        help=f"readings per second, if the meter supports it (default: {SAMPLE_RATE_HZ:g})",
        parse=rate,
        default=SAMPLE_RATE_HZ,
    )
    format: str = format_option()


def check_meter(request: CheckRequest) -> int:
    with opened([request.spec]) as meters:
        checked = check(meters, request.rate, request.seconds)
        of_suite = []
        if request.suite is not None:
            of_suite = _of_suite(request, request.suite, meters)
    if request.format == "json":
        body = {
            "schema_version": 1,
            "meters": [each.to_json() for each in checked],
            "suite": of_suite,
        }
        print(json.dumps(body, indent=1, allow_nan=False))
    else:
        lines = verdicts(checked) + of_suite
        lines += [line for each in checked for line in _details(each)]
        lines.append(
            f"next: `eeio meter calibrate --meter {request.spec}` measures its delay, by a load"
        )
        print("\n".join(map(shown, lines)))
    is_enough = bool(checked) and all(each.why_not is None for each in checked)
    if is_enough:
        return EXIT_DONE
    return EXIT_FAILED


def _of_suite(request: CheckRequest, suite: str, meters: Sequence[Meter]) -> list[str]:
    """Which experiments of the suite the meters resolve, a line a meter."""
    options = CampaignRequest(
        suite=suite,
        preset=request.preset or "standard",
        directory=str(request.directory),
        meters=(request.spec,),
    ).options()
    plan = plans.make(options, suites.find(suite))
    lines = too_slow_meters(plan, meters, expected_lengths(plan, meters))
    return [f"{suite}: {line}" for line in lines]


def _details(checked: Checked) -> list[str]:
    if checked.changes_s is None or checked.longest_s is None:
        changes = "its value changed less than twice in this time"
    else:
        changes = (
            f"its value changes each {number(checked.changes_s)} s "
            f"(at most {number(checked.longest_s)} s)"
        )
    step = "no step was seen"
    if checked.resolution is not None:
        step = f"smallest step {number(checked.resolution)} {checked.unit}"
    power = "no power"
    if checked.power_w is not None:
        power = f"{number(checked.power_w)} W"
    lines = [
        "",
        f"{checked.meter}, {checked.domain} ({checked.kind}): {power}",
        f"  read each {number(checked.period_s)} s; {changes}; {step}",
        f"  accuracy {100 * checked.accuracy:g} %, coverage {100 * checked.coverage:.1f} %",
        f"  delay: {checked.delay}",
    ]
    for name, missed in checked.grades.items():
        lines.append(f"  {name}: {'; '.join(missed) if missed else 'meets its limits'}")
    return lines


COMMAND = Command(
    "check",
    CheckRequest,
    check_meter,
    help="check whether a meter is good enough",
    description="Reads a meter for some seconds, without any load. Shows how often its value "
    "changes, its resolution, delay and coverage, the shortest phases whose energy it gives to "
    "5 % and 10 %, and the limits of SPECpower, SNIA Emerald and Green500 that it misses. The "
    "first line is the verdict. With --suite it names the experiments that are too short for "
    "it. Exit status 1 if a meter is not good enough.",
)
