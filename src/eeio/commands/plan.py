"""`eeio plan`: all actions and changes of a campaign, without running or writing anything."""

import dataclasses
import json
import sys
from dataclasses import dataclass
from pathlib import Path

from eeio.commands.campaign_folders import analysis, load_campaigns
from eeio.commands.campaign_options import CampaignRequest
from eeio.commands.doctor import replay_option
from eeio.commands.gate_options import FailIf, check_detect, detect_option, fail_if_option
from eeio.commands.output_file import format_option
from eeio.errors import EXIT_DONE, EeioError, RejectedError
from eeio.machine.as_data.replay import replayed
from eeio.measure.campaign import plan as plans
from eeio.measure.campaign import plan_text, safety
from eeio.measure.campaign.detection import (
    Detection,
    GateDetection,
    detection,
    gate_detection,
    newest,
)
from eeio.measure.campaign.planned_campaign import Plan
from eeio.measure.doctor import recorded
from eeio.measure.profiles import suite as suites
from eeio.options import Command, option, switch
from eeio.record.design import Options
from eeio.units.amounts import decimal_bytes
from eeio.units.external_text import shown


@dataclass(frozen=True, kw_only=True)
class PlanRequest(CampaignRequest):
    """`eeio plan`."""

    replay: Path | None = replay_option(rare=True)
    rated_writes: float | None = option(
        "--rated-writes",
        value="BYTES",
        help="drive endurance (TBW), e.g. 150T; shows the share to be used",
        parse=decimal_bytes,
        rare=True,
    )
    format: str = format_option()
    detect: float | None = detect_option(
        "show the repetitions that find this difference in 9 of 10 campaigns", group="repetitions"
    )
    fail_if: FailIf | None = fail_if_option(
        "with --detect: those with which the gate of `eeio compare` finds it", group="repetitions"
    )
    earlier: str | None = option(
        "--from",
        value="NAME",
        help="with --detect: campaign for the spread (default: newest of the suite)",
        group="repetitions",
    )
    name: str | None = option(
        "--name",
        hidden=True,
    )
    yes: bool = switch(
        "--yes",
        hidden=True,
    )


def show(request: PlanRequest) -> int:
    options = request.options()
    suite = suites.find(options.suite)
    if request.replay is not None:
        if request.detect is not None:
            raise RejectedError(
                "--detect: a machine description contains no campaign; leave out --replay"
            )
        return _show_described(options, suite, request.replay, request.format, request.rated_writes)
    options = safety.with_nodes(options)
    plan = plans.make(options, suite)
    detected = _detected(plan, suite, request)
    if request.format == "json":
        body = plan_text.to_json(plan, suite)
        print(json.dumps(body | (detected.to_json() if detected else {}), indent=1))
    else:
        lengths_of, meters = plan_text.lengths(plan)
        lines = plan_text.described(
            plan,
            suite,
            plan_text.names_waited_for(plan),
            plan_text.target(options),
            meters,
            lengths_of,
            request.rated_writes,
        )
        if detected is not None:
            lines = [*detected.lines(), "", *lines]
        touched = [f"  {line}" for line in plan_text.touched(plan)]
        print("\n".join([*lines, "", "would be touched:", *touched]))
    refusals = plan_text.refusals(plan)
    if refusals:
        # Last, because the plan's time is useful without enough room, too.
        sys.stdout.flush()
        raise RejectedError(f"`eeio run` would refuse this: {'; '.join(refusals)}")
    return EXIT_DONE


def _detected(
    plan: Plan, suite: suites.Suite, request: PlanRequest
) -> Detection | GateDetection | None:
    """The requested detection; None if not requested."""
    if request.detect is None:
        for flag, value in (("--from", request.earlier), ("--fail-if", request.fail_if)):
            if value is not None:
                raise RejectedError(f"{flag} requires --detect SHARE: the difference to detect")
        return None
    if request.fail_if is not None:
        check_detect(request.fail_if, request.detect)
    with analysis():
        named = request.earlier
        earlier = newest(plan, suite.name) if named is None else load_campaigns([named])[0]
        if (of := Path(earlier.design.suite).name) != suite.name:
            raise RejectedError(f"--from {named}: it is a campaign of {of}, not of {suite.name}")
        if request.fail_if is None:
            return detection(plan, earlier, request.detect)
        return gate_detection(
            plan, earlier, request.fail_if.share, request.fail_if.metric, request.detect
        )


def _show_described(
    options: Options, suite: suites.Suite, path: Path, form: str, rated_writes: float | None
) -> int:
    """The plan on another machine, without data that a description does not contain: free space,
    contents of devices, and whether this machine's profiles are installed."""
    if options.erase is not None:
        raise RejectedError("--erase: a machine description does not contain a device's signatures")
    with replayed(path) as replay:
        if options.sysfs_root == "/":
            options = dataclasses.replace(options, sysfs_root=str(replay.root))
        try:
            plan = plans.make(options, suite, replay.root)
            directory = plan.check_described(replay.root)
        except EeioError as error:
            # The machine's paths, not their temporary ones here.
            raise type(error)(replay.named(str(error))) from error
        except OSError as error:
            missing = replay.named(str(error.filename))
            raise RejectedError(
                f"{path}: {missing}: {error.strerror}, which a plan needs"
            ) from error
        names = [
            f"the name {finding.name}: {finding.detail}"
            for finding in recorded(replay)
            if finding.kind == "name" and not finding.found and plan_text.has_ranks(plan)
        ]
        if plan.frequency_reason:
            plan = dataclasses.replace(plan, frequency_reason=replay.named(plan.frequency_reason))
        if form == "json":
            body = plan_text.to_json(plan, suite, of_here=False)
            print(json.dumps(body | {"machine": replay.description.about}, indent=1))
            return EXIT_DONE
        touched = (directory, *plan_text.settings_touched(plan))
        lines = [
            *plan_text.described(plan, suite, names, rated_bytes=rated_writes),
            "",
            f"on {shown(replay.description.about)}, as {path} describes it",
            *(f"  {replay.named(line)}" for line in touched if line),
        ]
    print("\n".join(lines))
    return EXIT_DONE


COMMAND = Command(
    "plan",
    PlanRequest,
    show,
    help="preview a campaign",
    description="Shows the experiments, time, written bytes and machine changes of `eeio run` "
    "with the same options. Makes no changes.",
)
