"""`eeio replicate`: a paper's printed figures, recomputed from its published data."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from eeio.commands.campaign_folders import analysis, named_study
from eeio.commands.figures import write_figures
from eeio.commands.output_file import add_output, write_output
from eeio.errors import EXIT_DONE, RefusedError
from eeio.importing import mapping, runs
from eeio_results import studies


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "replicate",
        help="recompute a paper's printed figures from its published data",
        description="Imports a paper's data and recomputes each figure that it prints: printed "
        "and recomputed value, p-value, verdict, and the two experiments that gave it.",
    )
    parser.add_argument("study", metavar=_one_of(studies.offering("published")))
    parser.add_argument("folder", metavar="DIR", type=Path, help="a copy of the published data")
    parser.add_argument(
        "--format", choices=studies.FORMATS, default="table", help="(default: table)"
    )
    parser.add_argument(
        "--figures", metavar="DIR", type=Path, help="also draw the paper's figures into DIR"
    )
    add_output(parser)
    parser.set_defaults(action=replicate)


def _one_of(names: Sequence[str]) -> str:
    """As argparse shows choices; which it is not given, for then a study that cannot be loaded
    would be told as one that there is not."""
    return f"{{{','.join(names)}}}"


def replicate(arguments: argparse.Namespace) -> int:
    published = named_study(arguments.study).published
    if published is None:
        raise RefusedError(f"the study {arguments.study!r} has no published data to recompute")
    shipped = mapping.shipped()
    data = mapping.load(shipped.get(str(published.import_map), Path(published.import_map)))
    found = runs.read(data, arguments.folder)
    for remark in found.remarks:
        print(remark, file=sys.stderr)
    for campaign in found.campaigns:
        for remark in campaign.remarks:
            print(f"{campaign.name}: {remark}", file=sys.stderr)
    sources = [studies.Source(one.campaign(), one.idle_watts) for one in found.campaigns]
    with analysis():
        if arguments.figures is not None:
            write_figures(published.figures(sources), arguments.figures)
        answer = published.answer(sources, arguments.format)
    write_output(arguments, answer)
    return EXIT_DONE
