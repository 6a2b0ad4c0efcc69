"""Parquet files of campaigns, and SQL over them, by DuckDB (the extra `query`).

One file per table and campaign, `runs-NAME.parquet`. Each contains the version of the schema.
"""

import csv
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from eeio.errors import RejectedError
from eeio.tidy.rows import SCHEMA_VERSION, TABLES, rows
from eeio_results.errors import EeioError
from eeio_results.store import Campaign

_VERSION = "eeio_schema"
_NULL = "\\N"
_READING = ("SELECT", "EXPLAIN")


def duckdb() -> Any:
    """The library. Raises RejectedError with the remedy if it is not installed."""
    try:
        import duckdb as library
    except ImportError:
        raise RejectedError(
            "Parquet and SQL need DuckDB: pip install 'eeio[query]' (no wheels for 32-bit ARM)"
        ) from None
    return library


def write(campaign: Campaign, folder: Path) -> list[Path]:
    """Writes the tables of a campaign; files of an earlier export of it are replaced."""
    library = duckdb()
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    with TemporaryDirectory(dir=folder, prefix=".eeio-") as name, ExitStack() as stack:
        place = Path(name)
        writers = {}
        for table, columns in TABLES.items():
            file = stack.enter_context((place / table).open("w", encoding="utf-8", newline=""))
            writers[table] = csv.writer(file)
            writers[table].writerow(columns)
        for table, row in rows(campaign):
            cells = (row.get(column) for column in TABLES[table])
            writers[table].writerow([_NULL if cell is None else cell for cell in cells])
        stack.close()
        with library.connect() as connection:
            for table, columns in TABLES.items():
                path = folder / f"{table}-{campaign.name}.parquet"
                part = place / path.name
                connection.execute(
                    f"COPY (SELECT * FROM read_csv({_quoted(place / table)}, header = true, "
                    f"delim = ',', quote = '\"', escape = '\"', nullstr = '{_NULL}', "
                    f"auto_detect = false, columns = {dict(columns)})) TO {_quoted(part)} "
                    f"(FORMAT parquet, COMPRESSION zstd, KV_METADATA "
                    f"{{{_VERSION}: '{SCHEMA_VERSION}'}})"
                )
                part.replace(path)
                written.append(path)
    return written


def query(
    sql: str, folders: Sequence[Path], campaigns: Sequence[Campaign]
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Columns and rows of one SELECT over Parquet folders and campaigns.

    Raises RejectedError for SQL that writes or has an error, and EeioError for such files.
    """
    library = duckdb()
    try:
        statements = library.extract_statements(sql)
    except library.Error as error:
        raise RejectedError(f"SQL: {_line(error)}") from error
    kinds = [statement.type.name for statement in statements]
    if len(kinds) != 1 or kinds[0] not in _READING:
        raise RejectedError(
            f"only one SELECT is accepted, and this is {', '.join(kinds) or 'empty'}: "
            "eeio query changes nothing"
        )
    with _tables(library, folders, campaigns) as connection:
        try:
            found = connection.execute(sql)
            return [column[0] for column in found.description], found.fetchall()
        except library.Error as error:
            known = "; ".join(f"{name}({', '.join(columns)})" for name, columns in TABLES.items())
            raise RejectedError(f"SQL: {_line(error)}. Tables: {known}") from error


@contextmanager
def _tables(library: Any, folders: Sequence[Path], campaigns: Sequence[Campaign]) -> Iterator[Any]:
    with TemporaryDirectory(prefix="eeio-query-") as name, library.connect() as connection:
        made = Path(name)
        for campaign in campaigns:
            write(campaign, made)
        for table, columns in TABLES.items():
            paths = sorted(
                path for folder in (*folders, made) for path in folder.glob(f"{table}*.parquet")
            )
            for path in paths:
                _check_version(library, connection, path)
            if paths:
                listed = ", ".join(map(_quoted, paths))
                connection.execute(
                    f"CREATE VIEW {table} AS SELECT * FROM read_parquet([{listed}], "
                    "union_by_name = true)"
                )
            else:
                empty = ", ".join(f"{column} {kind}" for column, kind in columns.items())
                connection.execute(f"CREATE TABLE {table} ({empty})")
        yield connection


def _check_version(library: Any, connection: Any, path: Path) -> None:
    try:
        found = dict(
            connection.execute(
                f"SELECT decode(key), decode(value) FROM parquet_kv_metadata({_quoted(path)})"
            ).fetchall()
        )
    except library.Error as error:
        raise EeioError(f"{path}: {_line(error)}") from error
    version = found.get(_VERSION)
    if version is None or not version.isdecimal():
        raise RejectedError(f"{path}: eeio did not write this file; it has no {_VERSION}")
    if int(version) > SCHEMA_VERSION:
        raise RejectedError(
            f"{path}: schema {version}, and this eeio knows {SCHEMA_VERSION}: update eeio"
        )


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"


def _line(error: Exception) -> str:
    return " ".join(str(error).split("\n\n")[0].split())[:300]
