"""`eeio power`: meters and the energy of any command, without a campaign. A file an action."""

import argparse

from eeio.commands.power import calibrate, list, node, record, serve, sum, watch


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    power = subparsers.add_parser(
        "power",
        help="list and watch meters; record the energy of a command",
        description="Meters and the energy of any command, without a campaign.",
    )
    actions = power.add_subparsers(dest="power_command", metavar="COMMAND", required=True)
    # In the order of `eeio power --help`.
    for action in (list, watch, record, calibrate, serve, node, sum):
        action.add_parser(actions)
