"""`eeio meter list`: available meters, and the requirements of others."""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, replace

from eeio.arguments import add_format
from eeio.commands.doctor import add_replay
from eeio.errors import EXIT_DONE, RejectedError
from eeio.machine.replay import replayed
from eeio_power.errors import PowerError
from eeio_power.meters import (
    Detected,
    LoggedMeter,
    Meter,
    close_meters,
    discover,
    open_meters,
)

_LIST_SCHEMA = 1


def add_parser(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = actions.add_parser(
        "list", help="list power meters and their requirements",
        description="Searches for meters. Does not write to serial lines or the network.",
    )  # fmt: skip
    add_format(parser)
    parser.add_argument(
        "--meter",
        metavar="SPEC",
        action="append",
        default=[],
        help="probe this meter: channels, readings, domain totals; repeatable",
    )
    add_replay(parser.add_argument)
    parser.set_defaults(action=show_list)


def show_list(arguments: argparse.Namespace) -> int:
    if arguments.meter:
        if arguments.replay is not None:
            raise RejectedError(
                "--meter opens a meter of this machine, and --replay is another one"
            )
        return _probe(arguments.meter, arguments.format == "json")
    if arguments.replay is None:
        return _show_list(discover(), arguments.format == "json")
    with replayed(arguments.replay) as replay:
        found = [
            replace(
                finding,
                reason=finding.reason and replay.named(finding.reason),
                remedy=finding.remedy and replay.named(finding.remedy),
            )
            for finding in discover(replay.root)
        ]
    return _show_list(found, arguments.format == "json")


def _probe(specs: Sequence[str], as_json: bool) -> int:
    """Each channel of the meters with one reading of it; PowerError where one cannot be opened."""
    meters = open_meters(specs)
    try:
        probed = [(meter, _read(meter)) for meter in meters]
    finally:
        close_meters(meters)
    if as_json:
        body = [
            {
                "spec": meter.spec, "name": meter.name, "kind": meter.kind,
                "period_s": meter.native_period_s, "reason": reason,
                "channels": [
                    {
                        "name": channel.name, "domain": channel.domain,
                        "quantity": channel.quantity, "value": value,
                        "added": channel.in_domain_total, "remark": channel.remark,
                        **asdict(channel.contents),
                    }
                    for channel, value in zip(meter.channels, values, strict=True)
                ],
            }
            for meter, (values, reason) in probed
        ]  # fmt: skip
        print(json.dumps({"schema_version": _LIST_SCHEMA, "probed": body}, indent=1))
        return EXIT_DONE
    for meter, (values, reason) in probed:
        print(f"{meter.spec}  {meter.kind}, every {meter.native_period_s:g} s")
        if reason:
            print(f"{'':9}{reason}")
        for channel, value in zip(meter.channels, values, strict=True):
            unit = "W" if channel.quantity == "power_w" else "J"
            shown = "no value" if value is None else f"{value:.6g} {unit}"
            added = "added" if channel.in_domain_total else "not added"
            print(f"{'':9}{channel.name}: {channel.domain}, {shown}, {added}")
            for words in (channel.contents.text(), channel.remark):
                if words:
                    print(f"{'':11}{words}")
    return EXIT_DONE


def _read(meter: Meter) -> tuple[Sequence[float | None], str | None]:
    """One value a channel, and why there are none."""
    nothing = [None] * len(meter.channels)
    if isinstance(meter, LoggedMeter):
        return nothing, "its log is read when a window is"
    try:
        return meter.read(), None
    except (OSError, PowerError) as error:
        return nothing, str(error)


def _show_list(findings: Sequence[Detected], as_json: bool) -> int:
    if as_json:
        body = {"schema_version": _LIST_SCHEMA, "meters": [asdict(f) for f in findings]}
        print(json.dumps(body, indent=1))
        return EXIT_DONE
    for finding in sorted(findings, key=lambda f: not f.available):
        state = "ok     " if finding.available else "missing"
        where = f"{finding.kind}, {', '.join(finding.domains) or 'no domain'}"
        print(f"{state}  {finding.spec:14} {where}")
        for domain, contents in finding.contents.items():
            if words := contents.text():
                print(f"{'':9}{domain}: {words}")
        if finding.reason:
            print(f"{'':9}{finding.reason}")
        if finding.remedy and not finding.available:
            print(f"{'':9}-> {finding.remedy}")
    return EXIT_DONE
