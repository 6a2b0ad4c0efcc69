"""`eeio export parquet`: campaigns as Parquet files."""

import argparse
from pathlib import Path

from eeio.commands.campaign_folders import load_campaigns
from eeio.errors import EXIT_DONE
from eeio.exchange.tidy.parquet import check_names, duckdb, write


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "parquet",
        help="write Parquet files for SQL, pandas and polars",
        description="Writes the tables files, runs, phases, metrics, options and power of each "
        "campaign: FOLDER/runs-NAME.parquet and so on. An earlier export of the same campaign is "
        "replaced. `eeio export NAME --format parquet` is the same. Needs the extra `query`.",
    )
    parser.add_argument("campaigns", metavar="NAME|PATH", nargs="+", help="campaign name or folder")
    parser.add_argument(
        "-o", "--output", metavar="FOLDER", type=Path, default=Path("parquet"),
        help="output folder (default: ./parquet)",
    )  # fmt: skip
    parser.set_defaults(action=export)


def export(arguments: argparse.Namespace) -> int:
    duckdb()  # before the campaigns are read
    campaigns = load_campaigns(arguments.campaigns)
    check_names(campaigns)
    for campaign in campaigns:
        for path in write(campaign, arguments.output):
            print(path)
    return EXIT_DONE
