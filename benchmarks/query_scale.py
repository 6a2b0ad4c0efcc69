"""`eeio query` over many runs and power samples, against DuckDB's own time for reading the columns.

    python -m benchmarks.query_scale [--runs N] [--samples N]

Writes Parquet files of invented runs (one phase each) and power samples in the schema of
`eeio export parquet`. Prints times, their ratios and the peak memory of `eeio query`.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from eeio.exchange.tidy.parquet import duckdb
from eeio.exchange.tidy.rows import SCHEMA_VERSION, TABLES

VALUES = {
    "phases": {
        "run_id": "'c/' || n", "campaign": "'c'", "operation": "'write'",
        "access_pattern": "CASE n % 3 WHEN 0 THEN 'random' ELSE 'sequential' END",
        "request_bytes": "4096 << (n % 8)", "bandwidth_bytes_per_s": "1e8 + 1e7 * sin(n)",
        "power_w": "50 + cos(n)", "energy_j": "100 + sin(n)", "j_per_gb": "500 + 10 * sin(n)",
        "valid": "true", "domain": "'system'", "energy_kind": "'measured'",
    },
    "power": {
        "campaign": "'c' || n % 10", "meter": "'m'", "domain": "'system'",
        "energy_kind": "'measured'", "t_s": "0.1 * n", "watts": "50 + sin(n)",
        "interval_s": "0.1",
    },
}  # fmt: skip
CHARACTERIZATION = (
    "SELECT operation, access_pattern, request_bytes, count(*), median(bandwidth_bytes_per_s), "
    "median(power_w), median(energy_j), median(j_per_gb) FROM {phases} WHERE valid "
    "GROUP BY ALL ORDER BY ALL"
)
COLUMNS = (
    "SELECT count(operation), count(access_pattern), sum(request_bytes), "
    "sum(bandwidth_bytes_per_s), sum(power_w), sum(energy_j), sum(j_per_gb) FROM {phases}"
)
POWER = "SELECT campaign, count(*), avg(watts), max(watts) FROM {power} GROUP BY ALL ORDER BY ALL"
POWER_COLUMNS = "SELECT count(campaign), sum(watts) FROM {power}"


def write(folder: Path, table: str, count: int) -> None:
    columns = ", ".join(
        f"CAST({VALUES.get(table, {}).get(name, 'NULL')} AS {kind}) AS {name}"
        for name, kind in TABLES[table].items()
    )
    duckdb().connect().execute(
        f"COPY (SELECT {columns} FROM range({count}) AS t(n)) TO '{folder}/{table}-c.parquet' "
        f"(FORMAT parquet, COMPRESSION zstd, KV_METADATA {{eeio_schema: '{SCHEMA_VERSION}'}})"
    )


def direct_s(folder: Path, sql: str, table: str) -> float:
    begun_s = time.monotonic()
    duckdb().connect().execute(sql.format(**{table: f"'{folder}/{table}-c.parquet'"})).fetchall()
    return time.monotonic() - begun_s


def eeio_s(folder: Path, sql: str, table: str) -> float:
    begun_s = time.monotonic()
    arguments = ["query", sql.format(**{table: table}), str(folder), "--format", "json"]
    subprocess.run(
        [sys.executable, "-m", "eeio", *arguments],
        check=True,
        stdout=subprocess.DEVNULL,
        timeout=600,
    )
    return time.monotonic() - begun_s


def main(options: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--samples", type=int, default=10_000_000)
    arguments = parser.parse_args(options)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, "phases", arguments.runs)
        write(folder, "power", arguments.samples)
        for table in TABLES.keys() - VALUES.keys():
            write(folder, table, 0)
        start_s = min(eeio_s(folder, "SELECT 1", "phases") for _ in range(3))
        print(f"eeio query 'SELECT 1': {start_s:.2f} s")
        for label, table, sql, columns in (
            ("characterization", "phases", CHARACTERIZATION, COLUMNS),
            ("power", "power", POWER, POWER_COLUMNS),
        ):
            read_s, own_s, total_s = (
                min(one() for _ in range(3))
                for one in (
                    lambda t=table, q=columns: direct_s(folder, q, t),
                    lambda t=table, q=sql: direct_s(folder, q, t),
                    lambda t=table, q=sql: eeio_s(folder, q, t),
                )
            )
            print(
                f"{label}: columns read {read_s:.3f} s, same SQL in DuckDB {own_s:.3f} s, eeio "
                f"query {total_s:.3f} s ({(total_s - start_s) / read_s:.1f} times the columns, "
                f"{(total_s - start_s) / own_s:.1f} times the same SQL, without the start)"
            )
        memory_mb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1000
        print(f"peak memory of eeio query: {memory_mb:.0f} MB")


if __name__ == "__main__":
    main()
