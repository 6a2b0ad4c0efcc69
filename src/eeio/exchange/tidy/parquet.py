"""Parquet files of campaigns, and SQL over them, by DuckDB (the extra `query`).

One file per table and campaign, `runs-NAME.parquet`. Each contains the version of the schema.
"""

import csv
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from eeio.errors import InterruptedCampaignError, RejectedError
from eeio.exchange.tidy.rows import SCHEMA_VERSION, TABLES, rows
from eeio.paths import make_output_folder
from eeio.record.store import Campaign

_VERSION = "eeio_schema"
_NULL = "\\N"


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
    """Writes the tables of a campaign; files of an earlier export of it are replaced. Raises
    RejectedError if they are of another machine's campaign of that name, and for root if another
    user could replace the folder."""
    library = duckdb()
    make_output_folder(folder)
    _check_machine(library, folder / f"runs-{campaign.name}.parquet", campaign)
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

    Raises RejectedError for SQL that writes or has an error, and for damaged files.
    """
    library = duckdb()
    check_names(campaigns)
    try:
        statements = library.extract_statements(sql)
    except library.Error as error:
        raise RejectedError(f"SQL: {_line(error)}") from error
    kinds = [statement.type.name for statement in statements]
    # EXPLAIN ANALYZE runs what it explains, also a COPY.
    if kinds != ["SELECT"]:
        raise RejectedError(
            f"only one SELECT is accepted, and this is {', '.join(kinds) or 'empty'}: "
            "eeio query changes nothing"
        )
    with _tables(library, folders, campaigns) as connection:
        try:
            names, rows = _interruptible(connection, sql)
        except library.Error as error:
            known = "; ".join(f"{name}({', '.join(columns)})" for name, columns in TABLES.items())
            raise RejectedError(f"SQL: {_line(error)}. Tables: {known}") from error
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        raise RejectedError(f"SQL: two columns are called {repeated[0]!r}; name them with AS")
    return names, rows


def _interruptible(connection: Any, sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Columns and rows. A signal ends the query, because Python handles signals in the main thread
    only, and this one waits there: DuckDB itself looks for them too rarely."""

    def run() -> tuple[list[str], list[tuple[Any, ...]]]:
        result = connection.execute(sql)
        return [column[0] for column in result.description], result.fetchall()

    with ThreadPoolExecutor(max_workers=1) as pool:
        answer = pool.submit(run)
        try:
            return answer.result()
        except InterruptedCampaignError:
            connection.interrupt()
            raise


@contextmanager
def _tables(library: Any, folders: Sequence[Path], campaigns: Sequence[Campaign]) -> Iterator[Any]:
    with TemporaryDirectory(prefix="eeio-query-") as name, library.connect() as connection:
        made = Path(name)
        for campaign in campaigns:
            write(campaign, made)
        files = _files([*folders, made], made)
        for table, columns in TABLES.items():
            paths = sorted(path for (of, _), path in files.items() if of == table)
            for path in paths:
                _check_version(library, connection, path)
                _check_content(connection, path, table)
            if paths:
                listed = ", ".join(map(_quoted, paths))
                connection.execute(
                    f"CREATE VIEW {table} AS SELECT * FROM read_parquet([{listed}], "
                    "union_by_name = true)"
                )
            else:
                empty = ", ".join(f"{column} {kind}" for column, kind in columns.items())
                connection.execute(f"CREATE TABLE {table} ({empty})")
        _confine(connection, [str(path) for path in files.values()])
        yield connection


def _confine(connection: Any, paths: Sequence[str]) -> None:
    """From now on SQL reads these files only, and connects to no network."""
    for name in ("autoinstall_known_extensions", "autoload_known_extensions"):
        connection.execute(f"SET {name} = false")
    listed = ", ".join(_quoted(Path(path)) for path in paths)
    connection.execute(f"SET allowed_paths = [{listed}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def check_names(campaigns: Sequence[Campaign]) -> None:
    """Raises RejectedError for two campaigns of one name, as of two machines: the tables name
    campaigns."""
    names = [campaign.name for campaign in campaigns]
    for campaign in campaigns:
        if names.count(campaign.name) > 1:
            raise RejectedError(
                f"two campaigns are called {campaign.name}: export each into its own folder, or "
                "import one under another name"
            )


def _files(folders: Sequence[Path], made: Path) -> dict[tuple[str, str], Path]:
    """(table, campaign) -> file. `made` are the files of campaigns. Raises RejectedError for a
    campaign that is in several folders, which would be counted twice, and for one that lacks a
    table."""
    files: dict[tuple[str, str], Path] = {}
    for folder in folders:
        for table in TABLES:
            for path in sorted(folder.glob(f"{table}*.parquet")):
                key = (table, _campaign(path, table))
                if key in files:
                    also = "is given itself, too"
                    if folder != made:
                        also = f"in {folder}, too"
                    raise RejectedError(
                        f"the campaign {key[1]} is in {files[key].parent} and {also}: its rows "
                        "would be counted twice"
                    )
                if not path.is_file():
                    raise RejectedError(f"{path}: not a file")
                files[key] = path
    for (_, campaign), path in files.items():
        for table in TABLES:
            if (table, campaign) not in files:
                name = f"{table}-{campaign}" if campaign else table
                raise RejectedError(
                    f"{path.parent / name}.parquet is missing: export the campaign again"
                )
    return files


def _campaign(path: Path, table: str) -> str:
    """Empty for a file that somebody made of several."""
    return path.stem.removeprefix(table).removeprefix("-")


def _check_content(connection: Any, path: Path, table: str) -> None:
    """Raises RejectedError if the file is of another table or campaign than its name says."""
    columns = set()
    for row in connection.execute(
        f"SELECT name FROM parquet_schema({_quoted(path)}) WHERE type IS NOT NULL"
    ).fetchall():
        columns.add(row[0])
    if columns != set(TABLES[table]):
        raise RejectedError(f"{path}: these are not the columns of the table {table}")
    (least, most) = connection.execute(
        f"SELECT min(stats_min_value), max(stats_max_value) FROM parquet_metadata({_quoted(path)}) "
        "WHERE path_in_schema = 'campaign'"
    ).fetchone()
    if least is not None and least == most and _campaign(path, table) not in ("", least):
        raise RejectedError(f"{path}: its rows are of the campaign {least!r:.80}")


def _check_machine(library: Any, path: Path, campaign: Campaign) -> None:
    if not path.exists():
        return
    with library.connect() as connection:
        hosts = set()
        for row in connection.execute(
            f"SELECT DISTINCT host FROM read_parquet({_quoted(path)})"
        ).fetchall():
            hosts.add(row[0])
    if hosts and hosts != {campaign.machine.hostname}:
        raise RejectedError(
            f"{path} is of a campaign of {', '.join(map(str, hosts))}, and this one is of "
            f"{campaign.machine.hostname}: give each its own folder"
        )


def _check_version(library: Any, connection: Any, path: Path) -> None:
    try:
        versions = dict(
            connection.execute(
                f"SELECT decode(key), decode(value) FROM parquet_kv_metadata({_quoted(path)})"
            ).fetchall()
        )
    except library.Error as error:
        raise RejectedError(f"{path}: {_line(error)}") from error
    version = versions.get(_VERSION)
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
