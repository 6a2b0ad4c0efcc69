"""`eeio export parquet`: campaigns as Parquet files."""

from dataclasses import dataclass
from pathlib import Path

from eeio.commands.campaign_folders import load_campaigns
from eeio.errors import EXIT_DONE
from eeio.exchange.tidy.parquet import check_names, duckdb, write
from eeio.options import Command, argument, option


@dataclass(frozen=True, kw_only=True)
class ParquetRequest:
    """`eeio export parquet`."""

    campaigns: tuple[str, ...] = argument(
        "NAME|PATH",
        help="campaign name or folder",
        count="+",
    )
    output: Path = option(
        "-o",
        "--output",
        value="FOLDER",
        help="output folder (default: ./parquet)",
        parse=Path,
        default=Path("parquet"),
    )


def export(request: ParquetRequest) -> int:
    duckdb()  # before the campaigns are read
    campaigns = load_campaigns(request.campaigns)
    check_names(campaigns)
    for campaign in campaigns:
        for path in write(campaign, request.output):
            print(path)
    return EXIT_DONE


COMMAND = Command(
    "parquet",
    ParquetRequest,
    export,
    help="write Parquet files for SQL, pandas and polars",
    description="Writes the tables files, runs, phases, metrics, options and power of each "
    "campaign: FOLDER/runs-NAME.parquet and so on. An earlier export of the same campaign is "
    "replaced. `eeio export NAME --format parquet` is the same. Needs the extra `query`.",
)
