"""`eeio plan`: all actions and changes of a campaign, without running or writing anything."""

import argparse
import dataclasses
import json
import sys
from pathlib import Path

from eeio.commands import campaign_options
from eeio.commands.amounts import decimal_bytes
from eeio.commands.arguments import OptionGroup, add_format, add_help_all
from eeio.commands.campaign_folders import analysis, load_campaigns
from eeio.commands.doctor import add_replay
from eeio.commands.gate_options import add_detect, add_fail_if, check_detect
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
from eeio.measure.doctor import recorded
from eeio.measure.profiles import suite as suites
from eeio.record.design import Options
from eeio.units.external_text import shown


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "plan",
        help="preview a campaign",
        description="Shows the experiments, time, written bytes and machine changes of `eeio run` "
        "with the same options. Makes no changes.",
    )
    campaign_options.add(parser)
    others = OptionGroup(parser)
    add_replay(others.rare)
    others.rare(
        "--rated-writes", metavar="BYTES", type=decimal_bytes,
        help="drive endurance (TBW), e.g. 150T; shows the share to be used",
    )  # fmt: skip
    add_format(parser)
    gate = OptionGroup(parser, "repetitions")
    add_detect(gate, "show the repetitions that find this difference in 9 of 10 campaigns")
    add_fail_if(gate, "with --detect: those with which the gate of `eeio compare` finds it")
    gate.add(
        "--from", dest="earlier", metavar="NAME",
        help="with --detect: campaign for the spread (default: newest of the suite)",
    )  # fmt: skip
    # The options of a run may be tried as they are.
    parser.add_argument("--name", help=argparse.SUPPRESS)
    parser.add_argument("--yes", action="store_true", help=argparse.SUPPRESS)
    add_help_all(parser)
    parser.set_defaults(action=show)


def show(arguments: argparse.Namespace) -> int:
    options = campaign_options.options_of(arguments)
    suite = suites.find(options.suite)
    if arguments.replay is not None:
        if arguments.detect is not None:
            raise RejectedError(
                "--detect: a machine description contains no campaign; leave out --replay"
            )
        return _show_described(options, suite, arguments)
    options = safety.with_nodes(options)
    plan = plans.make(options, suite)
    detected = _detected(plan, suite, arguments)
    if arguments.format == "json":
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
            arguments.rated_writes,
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
    plan: plans.Plan, suite: suites.Suite, arguments: argparse.Namespace
) -> Detection | GateDetection | None:
    """The requested detection; None if not requested."""
    if arguments.detect is None:
        for option, value in (("--from", arguments.earlier), ("--fail-if", arguments.fail_if)):
            if value is not None:
                raise RejectedError(f"{option} requires --detect SHARE: the difference to detect")
        return None
    if arguments.fail_if is not None:
        check_detect(arguments.fail_if, arguments.detect)
    with analysis():
        named = arguments.earlier
        earlier = newest(plan, suite.name) if named is None else load_campaigns([named])[0]
        if (of := Path(earlier.design.suite).name) != suite.name:
            raise RejectedError(f"--from {named}: it is a campaign of {of}, not of {suite.name}")
        if arguments.fail_if is None:
            return detection(plan, earlier, arguments.detect)
        return gate_detection(
            plan, earlier, arguments.fail_if.share, arguments.fail_if.metric, arguments.detect
        )


def _show_described(options: Options, suite: suites.Suite, arguments: argparse.Namespace) -> int:
    """The plan on another machine, without data that a description does not contain: free space,
    contents of devices, and whether this machine's profiles are installed."""
    if options.erase is not None:
        raise RejectedError("--erase: a machine description does not contain a device's signatures")
    path: Path = arguments.replay
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
        if arguments.format == "json":
            body = plan_text.to_json(plan, suite, of_here=False)
            print(json.dumps(body | {"machine": replay.description.about}, indent=1))
            return EXIT_DONE
        touched = (directory, *plan_text.settings_touched(plan))
        lines = [
            *plan_text.described(plan, suite, names, rated_bytes=arguments.rated_writes),
            "",
            f"on {shown(replay.description.about)}, as {path} describes it",
            *(f"  {replay.named(line)}" for line in touched if line),
        ]
    print("\n".join(lines))
    return EXIT_DONE
