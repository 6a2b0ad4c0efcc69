"""`eeio drive review`: idle power, states, request sizes, depths, load curve and writes over time
of a drive, on one page."""

import sys
from dataclasses import dataclass
from pathlib import Path

from eeio.commands import run
from eeio.commands.run import RunRequest
from eeio.commands.waiting import wait_option
from eeio.errors import EXIT_DONE, RejectedError
from eeio.machine.device import check_unused
from eeio.measure.campaign import plan as plans
from eeio.measure.campaign import plan_text, safety
from eeio.measure.profiles import suite as suites
from eeio.options import Command, argument, option, switch
from eeio.units import amounts
from eeio.units.amounts import decimal_bytes

SUITE = "eeio-drive-review"


@dataclass(frozen=True, kw_only=True)
class ReviewRequest:
    """`eeio drive review`."""

    device: Path = argument("DEVICE", parse=Path)
    erase: bool = switch(
        "--erase", help="also measure writes: this destroys all data on the device"
    )
    lose: tuple[str, ...] = option(
        "--lose",
        value="NAME",
        repeat=True,
        help="existing signature to destroy, e.g. ext4:LABEL; repeatable",
    )
    plan: bool = switch("--plan", help="only show time, bytes and wear")
    rated_writes: float | None = option(
        "--rated-writes",
        value="BYTES",
        help="drive endurance (TBW), e.g. 150T; shows the share to be used",
        parse=decimal_bytes,
    )
    preset: str = option(
        "--preset",
        default="standard",
        help="quick (test only), standard or paper (default: standard)",
    )
    repetitions: int | None = option(
        "--repetitions", value="N", parse=amounts.repetitions, help="runs of each experiment"
    )
    meter: tuple[str, ...] = option(
        "--meter",
        value="SPEC",
        help="power meter, repeatable (default: auto)",
        repeat=True,
    )
    drive_label: str | None = option(
        "--drive-label", value="NAME", help="drive name in tables and comparisons"
    )
    name: str | None = option(
        "--name", value="NAME", help="campaign name (default: suite and time)"
    )
    yes: bool = switch("--yes", help="skip the question before data are destroyed")
    wait: float | None = wait_option()


def review(request: ReviewRequest) -> int:
    node = safety.checked_device(request.device)
    check_unused(node)
    if request.lose and not request.erase:
        raise RejectedError("--lose names contents that --erase may destroy; give --erase too")
    of_campaign = _campaign_request(request, node)
    _show_plan(of_campaign, request.rated_writes)
    if request.plan:
        return EXIT_DONE
    if request.erase and not request.yes:
        _ask(node)
    return run.run_suite(of_campaign)


def _campaign_request(request: ReviewRequest, node: Path) -> RunRequest:
    erase = None
    if request.erase:
        erase = str(node)
    return RunRequest(
        suite=SUITE,
        device=str(node),
        erase=erase,
        lose=request.lose,
        preset=request.preset,
        repetitions=request.repetitions,
        meters=request.meter,
        drive_label=request.drive_label,
        name=request.name,
        yes=True,  # asked here, after the plan
        wait=request.wait,
    )


def _show_plan(of_campaign: RunRequest, rated_bytes: float | None) -> None:
    """Time, bytes and wear, before anything is written."""
    options = safety.with_nodes(of_campaign.options())
    suite = suites.find(SUITE)
    plan = plans.make(options, suite)
    lengths_of, meters = plan_text.lengths(plan)
    target = plan_text.target(options)
    lines = plan_text.described(plan, suite, (), target, meters, lengths_of, rated_bytes)
    touched = [f"  {line}" for line in plan_text.touched(plan)]
    print("\n".join([*lines, "", "will be touched:", *touched]), flush=True)


def _ask(node: Path) -> None:
    """RejectedError without the answer yes; not asked without a terminal."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    print(f"Destroy all data on {node}? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise RejectedError("no experiment was run; without --erase the drive is only read")


COMMAND = Command(
    "review",
    ReviewRequest,
    review,
    help="review a drive: idle, states, sizes, depths, load curve, garbage collection",
    description="Measures a drive for a review, and writes a page with ten figures and six charts "
    "(docs/studies/drive-review.md). Prints the plan first: time, bytes written, wear. The drive "
    "must not be mounted, and is only read without --erase. The review is a campaign: `eeio "
    "resume`, `eeio report` and `eeio export bundle` take its name, and `eeio export table` puts "
    "the bundles of many drives into one table.",
)
