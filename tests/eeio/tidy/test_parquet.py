"""`eeio export --format parquet` and `eeio query` against the report of the same campaigns."""

import csv
import json
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests import dummy
from tests.plugin import DATA, PARSERS, Eeio, InProcess
from tests.waiting import until

from eeio.cli import main
from eeio.exchange.tidy.rows import TABLES

duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed (extra `query`)")
CAMPAIGNS = DATA / "campaigns"


def answers(in_process: InProcess, sql: str, *sources: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(
        in_process("query", sql, *sources, "--format", "json").out
    )
    return found


@pytest.mark.parametrize("name", ["quick-before", "board", "server", "invalid", "estimates", "nfs"])
def test_medians_are_those_of_the_report(name: str, in_process: InProcess) -> None:
    campaign = str(CAMPAIGNS / name)
    rows = json.loads(in_process("report", campaign, "--format", "json").out)["characterization"]
    found = answers(
        in_process,
        "SELECT level, tool, r.operation, r.access_pattern, r.request_bytes, buffer, r.api, target,"
        " processes, name, list(bandwidth_bytes_per_s) mbs, list(j_per_gb) jgb,"
        " count(DISTINCT experiment_id) experiments FROM phases p JOIN runs r USING (run_id)"
        " WHERE p.valid GROUP BY ALL",
        campaign,
    )
    of = {tuple(one.values())[:10]: one for one in found if one["experiments"] == 1}
    compared = 0
    for row in rows:
        key = (
            row["level"], row["tool"], row["operation"], row["spatiality"],
            row["request_size_bytes"], row["cache"] and row["cache"]["buffer"], row["api"],
            row["target"], row["processes"], row["phase"],
        )  # fmt: skip
        one = of.get(key)
        if one is None or not row["bandwidth_bytes_per_s"]:
            continue
        values = [value for value in one["mbs"] if value is not None]
        if len(values) != row["n"]:
            continue
        compared += 1
        expected = row["bandwidth_bytes_per_s"]["median"]
        assert statistics.median(values) == pytest.approx(expected)
        joules = [value for value in one["jgb"] if value is not None]
        if row["energy_j_per_gb"] and len(joules) == row["n"] and row["energy_kind"] == "measured":
            expected = row["energy_j_per_gb"]["median"]
            assert statistics.median(joules) == pytest.approx(expected)
    assert compared or name == "invalid"


def test_a_campaign_with_samples_and_a_reason_for_each_missing_energy(
    home: Path, eeio: Eeio, in_process: InProcess
) -> None:
    suite = dummy.suite(home, "level=filesystem operation=read spatiality=random sleep_s=0.5")
    for name, meter in (("a", "demo"), ("b", "none")):
        eeio.run(suite, "--name", name, "--meter", meter, "--repetitions", "2", "--idle", "0.2")
    out = str(home / "out")
    done = in_process("export", "a", "b", "--format", "parquet", "-o", out)
    assert len(done.out.split()) == 2 * len(TABLES)
    # Again: replaced, not added.
    in_process("export", "parquet", "a", "-o", out)
    rows = answers(
        in_process,
        "SELECT campaign, count(*) n, count(energy_j) known, any_value(energy_kind) kind,"
        " any_value(energy_reason) why FROM phases GROUP BY campaign ORDER BY campaign",
        out,
    )
    assert [(r["campaign"], r["n"], r["known"], r["kind"]) for r in rows] == [
        ("a", 2, 2, "demo"), ("b", 2, 0, None),
    ]  # fmt: skip
    assert rows[0]["why"] is None and rows[1]["why"] == "no power was read in this window"
    (power,) = answers(
        in_process,
        "SELECT count(*) n, min(watts) least, max(interval_s) gap, min(t_utc) t_utc,"
        " any_value(domain) domain FROM power WHERE domain = 'system'",
        out,
    )
    (run,) = answers(in_process, "SELECT min(start_utc) t FROM runs WHERE campaign = 'a'", out)
    assert power["n"] > 3 and power["least"] > 0 and 0 < power["gap"] < 5
    assert power["t_utc"] < run["t"] and power["t_utc"][:13] == run["t"][:13]
    # A campaign by name and a folder together, and none twice.
    done = in_process("query", "SELECT count(*) n FROM runs", out, "a", code=2)
    assert "is given itself, too: its rows would be counted twice" in done.err
    for path in Path(out).glob("*-a.parquet"):
        path.unlink()
    assert answers(in_process, "SELECT count(*) n FROM runs", out, "a") == [{"n": 4}]


def test_imported_files_keep_their_sha256_and_options(home: Path, in_process: InProcess) -> None:
    files = PARSERS / "fio/outputs"
    in_process("import", str(files / "jobs-3.41.json"), "--name", "old")
    (file,) = answers(in_process, "SELECT * FROM files", "old")
    assert file["path"] == str(files / "jobs-3.41.json") and file["tool"] == "fio"
    found = answers(
        in_process,
        "SELECT count(*) n, count(DISTINCT sha256) files, min(report_no) r FROM runs",
        "old",
    )
    assert found[0]["n"] > 1 and (found[0]["files"], found[0]["r"]) == (1, 0)
    (metrics,) = answers(
        in_process,
        "SELECT count(*) n FROM metrics WHERE latency_kind = 'completion' AND statistic = 'p99'"
        " AND unit = 's'",
        "old",
    )
    assert metrics["n"] > 0


def test_a_doubtful_energy_has_no_j_per_gb(tmp_path: Path, in_process: InProcess) -> None:
    """As in reports, it is compared with no other."""
    campaign = tmp_path / "board"
    shutil.copytree(CAMPAIGNS / "board", campaign)
    runs = (campaign / "runs.jsonl").read_text()
    sql = (
        "SELECT count(energy_j) energies, count(j_per_gb) costs,"
        " count(*) FILTER (WHERE energy_reason LIKE 'doubtful: %') doubts FROM phases"
    )
    (before,) = answers(in_process, sql, str(campaign))
    assert before["costs"] > 0 and before["doubts"] == 0
    (campaign / "runs.jsonl").write_text(runs.replace('"doubtful":false', '"doubtful":true'))
    (after,) = answers(in_process, sql, str(campaign))
    assert after == {"energies": before["energies"], "costs": 0, "doubts": before["energies"]}
    figures = "SELECT count(*) n FROM metrics WHERE name IN ('j_per_gb', 'efficiency_bytes_per_j')"
    assert answers(in_process, figures, str(campaign)) == [{"n": 0}]


def test_csv_and_table(in_process: InProcess) -> None:
    sql = "SELECT 'a,b' AS text, NULL AS missing, 1.5 AS x, count(*) AS n FROM runs"
    campaign = str(CAMPAIGNS / "board")
    done = in_process("query", sql, campaign, "--format", "csv")
    assert list(csv.reader(done.out.splitlines())) == [
        ["text", "missing", "x", "n"], ["a,b", "", "1.5", "22"],
    ]  # fmt: skip
    assert "1 row\n" in in_process("query", sql, campaign).out


@pytest.mark.parametrize(
    "sql",
    ["DROP TABLE runs", "COPY (SELECT 1) TO 'x.csv'", "SELECT 1; SELECT 2", "", "SELEKT 1",
     "CREATE TABLE x AS SELECT 1", "ATTACH 'x.db'"],
)  # fmt: skip
def test_sql_that_writes_is_rejected(
    sql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_process: InProcess
) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(in_process("query", sql, str(CAMPAIGNS / "board"), code=2).err.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_files_of_another_schema_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], in_process: InProcess
) -> None:
    sql = "SELECT count(*) FROM runs"
    with duckdb.connect() as connection:
        for name, options in (("new", ", KV_METADATA {eeio_schema: '99'}"), ("other", "")):
            folder = tmp_path / name
            folder.mkdir()
            for table in TABLES:
                connection.execute(
                    f"COPY (SELECT 1 AS x) TO '{folder}/{table}.parquet' (FORMAT parquet{options})"
                )
    (tmp_path / "damaged").mkdir()
    for table in TABLES:
        (tmp_path / f"damaged/{table}.parquet").write_bytes(b"PAR1 nothing")
    for name, message in (
        ("new", "update eeio"),
        ("other", "did not write"),
        ("damaged", ".parquet: "),
    ):
        assert main(["query", sql, str(tmp_path / name)]) in (1, 2)
        error = capsys.readouterr().err
        assert message in error and len(error.splitlines()) == 1
    done = in_process("query", sql, str(tmp_path / "nowhere"), code=2)
    assert "`eeio list` shows them" in done.err


def test_without_duckdb_the_remedy_is_named(
    monkeypatch: pytest.MonkeyPatch, in_process: InProcess
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "duckdb", None)
    done = in_process("query", "SELECT 1", str(CAMPAIGNS / "board"), code=2)
    assert "pip install 'eeio[query]'" in done.err


def test_the_page_of_the_schema_has_all_columns() -> None:
    page = (Path(__file__).parents[3] / "docs/reference/parquet.md").read_text()
    for table, columns in TABLES.items():
        section = page.split(f"## {table}\n")[1].split("\n## ")[0]
        for column in columns:
            assert f"`{column}`" in section, (table, column)


@pytest.fixture
def exported(tmp_path: Path, in_process: InProcess) -> Path:
    folder = tmp_path / "exported"
    in_process("export", "parquet", str(CAMPAIGNS / "board"), "-o", str(folder))
    return folder


def refusal(in_process: InProcess, *sources: object) -> str:
    done = in_process("query", "SELECT count(*) FROM runs", *map(str, sources), code=2)
    (line,) = done.err.splitlines()
    return line


def test_rows_are_not_counted_twice(exported: Path, tmp_path: Path, in_process: InProcess) -> None:
    assert "counted twice" in refusal(in_process, exported, exported)
    assert "counted twice" in refusal(in_process, exported, CAMPAIGNS / "board")
    other = Path(shutil.copytree(exported, tmp_path / "other"))
    assert "counted twice" in refusal(in_process, exported, other)
    for path in list(exported.glob("*.parquet")):
        shutil.copy(path, path.with_name(path.name.replace("-board", "-copy")))
    assert "its rows are of the campaign 'board'" in refusal(in_process, exported)


def test_missing_and_exchanged_tables_are_named(exported: Path, in_process: InProcess) -> None:
    (exported / "runs-board.parquet").unlink()
    assert "runs-board.parquet is missing" in refusal(in_process, exported)
    shutil.copy(exported / "phases-board.parquet", exported / "runs-board.parquet")
    assert "not the columns of the table runs" in refusal(in_process, exported)


def test_campaigns_of_two_nodes_with_one_name_are_not_joined(
    exported: Path, tmp_path: Path, in_process: InProcess
) -> None:
    node = Path(shutil.copytree(CAMPAIGNS / "board", tmp_path / "node/board"))
    machine = json.loads((node / "machine.json").read_text())
    (node / "machine.json").write_text(json.dumps(machine | {"hostname": "node2"}))
    records = (node / "runs.jsonl").read_text().splitlines(keepends=True)
    (node / "runs.jsonl").write_text("".join(reversed(records)))  # not a copy
    assert "two campaigns are called" in refusal(in_process, node, CAMPAIGNS / "board")
    for arguments in ((node, CAMPAIGNS / "board", "-o", tmp_path / "new"), (node, "-o", exported)):
        assert "own folder" in in_process("export", "parquet", *map(str, arguments), code=2).err
    assert not (tmp_path / "new").exists()


def test_columns_of_one_name_are_rejected(exported: Path, in_process: InProcess) -> None:
    done = in_process("query", "SELECT 1 AS a, 2 AS a", str(exported), code=2)
    assert "two columns are called 'a'; name them with AS" in done.err


def test_cells_of_csv_are_no_formulas(exported: Path, in_process: InProcess) -> None:
    sql = "SELECT '=cmd()' AS a, -1.5 AS b"
    assert in_process("query", sql, str(exported), "--format", "csv").out == "a,b\n'=cmd(),-1.5\n"


@pytest.mark.parametrize(
    "sql",
    [
        "EXPLAIN ANALYZE COPY (SELECT 1) TO '{file}'",
        "EXPLAIN SELECT 1",
        "COPY (SELECT 1) TO '{file}'",
        "ATTACH '{file}'",
        "SET enable_external_access = true",
        "INSTALL httpfs",
    ],
)
def test_a_query_is_one_select(tmp_path: Path, in_process: InProcess, sql: str) -> None:
    file = tmp_path / "victim"
    file.write_text("kept")
    error = in_process("query", sql.format(file=file), str(CAMPAIGNS / "board"), code=2).err
    assert "only one SELECT is accepted" in error
    assert file.read_text() == "kept"


@pytest.mark.parametrize(
    "source",
    [
        "read_text('{file}')",
        "read_csv('{file}')",
        "read_blob('{file}')",
        "glob('{folder}/*')",
        "'{file}'",
        "'http://127.0.0.1:9/a.parquet'",
        "'s3://bucket/a.parquet'",
    ],
)
def test_a_query_reads_no_other_file_and_no_network(
    tmp_path: Path, in_process: InProcess, source: str
) -> None:
    file = tmp_path / "secret.csv"
    file.write_text("secret,words\n1,2\n")
    sql = f"SELECT * FROM {source.format(file=file, folder=tmp_path)}"
    printed = in_process("query", sql, str(CAMPAIGNS / "board"), code=2)
    assert "SQL: " in printed.err and "words" not in printed.out
    assert not printed.out and "INSTALL" not in printed.err


def test_a_query_of_parquet_files_reads_these(tmp_path: Path, in_process: InProcess) -> None:
    folder = str(tmp_path / "tables")
    in_process("export", str(CAMPAIGNS / "board"), "--format", "parquet", "-o", folder)
    (row,) = answers(in_process, "SELECT count(*) AS n FROM runs", folder)
    assert row["n"] > 0


@pytest.mark.parametrize("value", ["sum(a.range * b.range)", "count(*)"])
def test_a_query_that_is_ended_leaves_no_files(tmp_path: Path, value: str) -> None:
    """DuckDB itself did not notice a signal while it counted."""
    sql = f"SELECT {value} FROM range(30000000) a, range(30000000) b"
    with subprocess.Popen(
        [sys.executable, "-m", "eeio", "query", sql, str(CAMPAIGNS / "board")],
        env={**os.environ, "TMPDIR": str(tmp_path)}, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        until(lambda: any(tmp_path.glob("eeio-query-*/runs-*")))
        process.terminate()
        _, error = process.communicate(timeout=60)
    assert process.returncode in (130, 143) and "nothing was changed" in error
    assert not list(tmp_path.glob("eeio-query-*"))
