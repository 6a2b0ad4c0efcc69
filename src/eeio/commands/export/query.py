"""`eeio export query`, also called as `eeio query`: SQL over campaigns and Parquet files."""

import csv
import datetime
import io
import json
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eeio.commands.campaign_folders import load_campaigns
from eeio.commands.output_file import format_option
from eeio.errors import EXIT_DONE, InterruptedCampaignError
from eeio.exchange.tidy import parquet
from eeio.exchange.tidy.rows import TABLES
from eeio.measure.signals import signals_raise
from eeio.options import Command, argument
from eeio.report.campaign.columns import NONE
from eeio.report.table_and_plot import Table
from eeio.report.text import render_table
from eeio.units.external_text import csv_cell
from eeio.units.number_text import number


@dataclass(frozen=True, kw_only=True)
class QueryRequest:
    """`eeio export query`."""

    sql: str = argument(
        "SQL",
        help="SELECT statement",
    )
    sources: tuple[str, ...] = argument(
        "FOLDER|NAME",
        help="folder of Parquet files, campaign name or campaign folder",
        count="+",
    )
    format: str = format_option(("table", "csv", "json"))


def query(request: QueryRequest) -> int:
    folders = [path for path in map(Path, request.sources) if _has_tables(path)]
    names = [name for name in request.sources if Path(name) not in folders]
    try:
        with signals_raise("nothing was changed"):  # its temporary folder is removed
            columns, rows = parquet.query(request.sql, folders, load_campaigns(names))
    except RuntimeError as error:  # DuckDB's, of a signal while the tables are made
        raise InterruptedCampaignError(signal.SIGINT, f"{error}; nothing was changed") from error
    if request.format == "json":
        body = [dict(zip(columns, map(_plain, row), strict=True)) for row in rows]
        print(json.dumps(body, allow_nan=False))
    elif request.format == "csv":
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerows([columns, *([_of_csv(_plain(cell)) for cell in row] for row in rows)])
        sys.stdout.write(text.getvalue())
    else:
        numeric = frozenset(
            place
            for place in range(len(columns))
            if any(isinstance(row[place], int | float) for row in rows)
        )
        cells = tuple(tuple(map(_cell, row)) for row in rows)
        title = f"{len(rows)} row{'s' * (len(rows) != 1)}"
        print(render_table(Table(title, tuple(columns), cells, numeric), None))
    return EXIT_DONE


def _has_tables(path: Path) -> bool:
    return path.is_dir() and next(path.glob("*.parquet"), None) is not None


def _plain(cell: Any) -> Any:
    """For JSON and CSV: times in ISO 8601, numbers that JSON lacks as null."""
    if isinstance(cell, datetime.datetime | datetime.date):
        return cell.isoformat()
    if isinstance(cell, float) and (cell != cell or abs(cell) == float("inf")):
        return None
    if isinstance(cell, list):
        return [_plain(item) for item in cell]
    if isinstance(cell, dict):
        return {str(key): _plain(value) for key, value in cell.items()}
    if cell is None or isinstance(cell, str | int | float):
        return cell
    return str(cell)


def _of_csv(cell: Any) -> Any:
    if isinstance(cell, str):
        return csv_cell(cell)
    return cell


def _cell(cell: Any) -> str:
    if cell is None:
        return NONE
    if isinstance(cell, float):
        return number(cell)
    return str(_plain(cell))


COMMAND = Command(
    "query",
    QueryRequest,
    query,
    help="answer an SQL query over campaigns",
    description="Runs one SELECT over campaigns and folders of Parquet files. Tables: "
    f"{', '.join(TABLES)} (docs/reference/parquet.md). `eeio query` is the same. Needs the "
    "extra `query`.",
)
