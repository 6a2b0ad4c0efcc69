"""`eeio power list`: which meters are here, and what the others need."""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, replace

from eeio.commands.doctor import add_replay
from eeio.errors import EXIT_DONE
from eeio.machine.replay import replayed
from eeio_power.meters import Detected, discover

_LIST_SCHEMA = 1


def add_parser(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = actions.add_parser(
        "list", help="which meters are here, and what the others need",
        description="Looks for meters. Nothing is written to a serial line or the network.",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="for programs")
    add_replay(parser)
    parser.set_defaults(action=show_list)


def show_list(arguments: argparse.Namespace) -> int:
    if arguments.replay is None:
        return _show_list(discover(), arguments.json)
    with replayed(arguments.replay) as replay:
        found = [
            replace(
                finding,
                reason=finding.reason and replay.named(finding.reason),
                remedy=finding.remedy and replay.named(finding.remedy),
            )
            for finding in discover(replay.root)
        ]
    return _show_list(found, arguments.json)


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
