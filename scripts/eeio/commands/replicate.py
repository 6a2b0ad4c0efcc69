"""`eeio replicate`: a paper's printed figures, recomputed from its published data."""

import argparse
import sys
from pathlib import Path

from eeio.commands.analysis import analysis
from eeio.commands.figures import draw_into, draw_processors_into
from eeio.commands.output import add_output, write_output
from eeio.errors import EXIT_DONE
from eeio.importing import mapping, runs

_DATA_SETS = {"pavan2018": "ccpe2017"}
"""Study -> the published data that it rests on."""

_DRAWN = (
    *(
        f"{machine}-{drive}"
        for machine in ("pc", "mpsoc")
        for drive in ("hdd1", "hdd2", "ssd1", "ssd2")
    ),
)
"""Campaigns that the paper's figures of bandwidth, power and efficiency show."""

_WATCHED = ("experiment0-", "experiment2-")
"""Those in which the processors were watched (figures 7 and 8)."""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "replicate",
        help="recompute a paper's printed figures from its published data",
        description="Imports a paper's data and recomputes each figure that it prints: printed "
        "and recomputed value, p-value, verdict, and the two experiments that gave it.",
    )
    parser.add_argument("study", choices=tuple(_DATA_SETS))
    parser.add_argument("folder", metavar="DIR", type=Path, help="a copy of the published data")
    parser.add_argument(
        "--format", choices=("table", "json", "markdown"), default="table", help="(default: table)"
    )
    parser.add_argument(
        "--figures", metavar="DIR", type=Path, help="also draw the paper's figures into DIR"
    )
    add_output(parser)
    parser.set_defaults(action=replicate)


def replicate(arguments: argparse.Namespace) -> int:
    with analysis():
        from eeio_results.studies.pavan2018 import claims as pavan2018
        from eeio_results.studies.pavan2018 import tables as claims

    data = mapping.load(mapping.shipped()[_DATA_SETS[arguments.study]])
    found = runs.read(data, arguments.folder)
    campaigns = found.campaigns
    for remark in found.remarks:
        print(remark, file=sys.stderr)
    for campaign in campaigns:
        for remark in campaign.remarks:
            print(f"{campaign.name}: {remark}", file=sys.stderr)
    if arguments.figures is not None:
        draw_into([c.campaign() for c in campaigns if c.name in _DRAWN], arguments.figures)
        watched = [c.campaign() for c in campaigns if c.name.startswith(_WATCHED)]
        draw_processors_into(watched, arguments.figures)
    replication = pavan2018.replicate(
        [pavan2018.Source(campaign.campaign(), campaign.idle_watts) for campaign in campaigns]
    )
    render = {"table": claims.to_text, "json": claims.to_json, "markdown": claims.to_markdown}
    write_output(arguments, render[arguments.format](replication))
    return EXIT_DONE
