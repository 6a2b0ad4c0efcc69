"""`eeio reference`: how far an application lies from what the characterization promises."""

import argparse

from eeio.commands.analysis import analysis, load_campaigns
from eeio.commands.output import add_output, write_output
from eeio.errors import EXIT_DONE, RefusedError


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "reference",
        help="an application's phases against the characterization's values (Table I)",
        description="Holds each phase of an application (BT-IO) against the experiment of the "
        "library or file-system level that is most like it, and tells the deviation of bandwidth "
        "and power in percent, after Panadero et al. 2012.",
    )
    parser.add_argument(
        "campaigns", metavar="NAME|PATH", nargs="+",
        help="the application's campaign, and those of the characterization if they are others",
    )  # fmt: skip
    parser.add_argument(
        "--format", choices=("table", "json", "markdown"), default="table", help="(default: table)"
    )
    add_output(parser)
    parser.set_defaults(action=reference)


def reference(arguments: argparse.Namespace) -> int:
    with analysis():
        from eeio_results import comparison
        from eeio_results.studies.panadero2012 import references as panadero2012
        from eeio_results.studies.panadero2012 import tables as report
    campaigns = load_campaigns(arguments.campaigns)
    cells = [cell for campaign in campaigns for cell in comparison.cells_of(campaign)]
    found = panadero2012.references(cells)
    if not found:
        raise RefusedError(
            f"{', '.join(arguments.campaigns)}: nothing at the application level; "
            "`eeio run eeio-panadero2012` measures one"
        )
    render = {"table": report.to_text, "json": report.to_json, "markdown": report.to_markdown}
    write_output(arguments, render[arguments.format](found))
    return EXIT_DONE
