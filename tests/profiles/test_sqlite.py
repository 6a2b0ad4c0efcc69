"""eeio-sqlite: what its transactions leave in the database, and what is told of them."""

import json
import sqlite3
from pathlib import Path

import pytest

from eeio.record import tools
from tests.profiles.harness import Installed, Installer

pytestmark = pytest.mark.tools


WORK = "rows=3000 transactions=40 runtime_s=0"


@pytest.mark.parametrize(
    ("factors", "promise"),
    [
        ("journal=delete synchronous=off flush=none", "no commit is flushed"),
        ("journal=delete synchronous=normal flush=each", "flushed at each commit"),
        ("journal=delete synchronous=full", "the journal twice"),
        ("journal=wal synchronous=off", "nothing is flushed"),
        ("journal=wal synchronous=normal flush=none", "at checkpoints alone"),
        ("journal=wal synchronous=full flush=each", "the log is flushed at each commit"),
    ],
)
def test_transactions_and_lookups(
    installed: Installer, tmp_path: Path, factors: str, promise: str
) -> None:
    profile = installed("sqlite")
    fields = [*factors.split(), *WORK.split()]
    profile.script("pre.sh", *fields)
    capture = profile.capture(tmp_path / "out", dict(field.split("=") for field in fields))
    assert capture.exit_code == 0, capture.text("stderr.txt")
    result = tools.parse("sqlite", capture)
    write, read = result.phases
    assert (write.name, write.operation, write.spatiality) == ("write", "mixed", "mixed")
    assert write.bytes_moved == write.metrics["fetched_bytes"] + write.metrics["dirtied_bytes"]
    assert (read.operation, read.spatiality) == ("read", "random")
    for phase in (write, read):
        assert phase.start_s is not None and phase.end_s is not None
        metrics = phase.metrics
        lasted_s = phase.end_s - phase.start_s
        assert metrics["operations"] == 40
        assert metrics["operations_per_s"] == pytest.approx(40 / lasted_s, rel=1e-6)
        places = [metrics[f"latency_{name}_s"] for name in ("p50", "p95", "p99", "p999", "max")]
        assert places == sorted(places) and places[0] > 0 and sum(places) / 5 < lasted_s
    assert write.metrics["returned_operations_per_s"] > write.metrics["operations_per_s"]
    # One window: what it tells holds its flush, and no rate into the page cache is made of it.
    assert write.includes_flush and write.until_durable is not None
    assert write.until_durable.end_s == write.end_s
    assert result.notes[0].startswith(f"SQLite {sqlite3.sqlite_version.partition('.')[0]}.")
    assert promise in result.notes[1]

    scratch = profile.directory / "eeio-scratch"
    assert [path.name for path in scratch.iterdir()] == ["eeio-sqlite.db"]
    with sqlite3.connect(scratch / "eeio-sqlite.db") as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        (counted,) = database.execute("SELECT count(*) FROM item").fetchone()
        # Each transaction writes one value into three rows, where its keys differ.
        every = database.execute("SELECT count(*) FROM item GROUP BY value HAVING count(*) > 1")
        written = [times for (times,) in every]
    assert counted == 3040
    assert written and set(written) <= {2, 3}
    # A run changes the table: the next begins with another.
    profile.script("pre.sh", *fields)
    with sqlite3.connect(scratch / "eeio-sqlite.db") as database:
        assert database.execute("SELECT count(*) FROM item").fetchone() == (3000,)
    database.close()
    profile.clean_up(*fields)


def test_a_phase_ends_in_time(installed: Installer, tmp_path: Path) -> None:
    profile = installed("sqlite")
    arguments = ["rows=1000", "transactions=100000000", "runtime_s=1", "synchronous=off"]
    profile.script("pre.sh", "rows=1000", "transactions=1")
    profile.run(*arguments, EEIO_OUTPUT_DIR=str(tmp_path))
    body = json.loads((tmp_path / "eeio.json").read_text())
    assert all(0 < phase["metrics"]["operations"] < 100_000_000 for phase in body["phases"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("journal=memory", "journal=memory: give one of: delete wal"),
        ("synchronous=extra", "give one of: off normal full"),
        ("synchronous=off flush=each", "journal=delete with synchronous=off is flush=none"),
        ("journal=wal synchronous=normal flush=each", "synchronous=normal is flush=none"),
        ("flush=none", "synchronous=full is flush=each"),
        ("rows=0", "rows=0: give a whole number from 1 to 100000000"),
        ("buffer=off", "buffer=off: give one of: on"),
        ("cache=1", "unknown factor 'cache=1'"),
    ],
)
def test_rejected_factors(installed: Installer, arguments: str, message: str) -> None:
    profile = installed("sqlite")
    profile.rejects(arguments, message)


def test_what_cannot_run_is_reported_in_a_line(installed: Installer, tmp_path: Path) -> None:
    profile = installed("sqlite")
    assert "run pre.sh with these factors first" in profile.run(code=2).stderr
    scratch = profile.directory / "eeio-scratch"
    scratch.mkdir(exist_ok=True)
    (scratch / "eeio-sqlite.db").write_text("no database, " * 100)
    done = profile.run("rows=10", EEIO_OUTPUT_DIR=str(tmp_path), code=None)
    (line,) = done.stderr.splitlines()
    assert done.returncode == 1 and "eeio-sqlite.db: file is not a database" in line
    assert not (tmp_path / "eeio.json").exists()


def test_an_interpreter_without_sqlite_is_not_installed(tmp_path: Path) -> None:
    profile = Installed("sqlite", tmp_path / "home", tmp_path / "disk")
    done = profile.install(EEIO_PYTHON="/bin/false", code=1)
    assert "/bin/false has no module sqlite3: install the package python3" in done.stderr
    done = profile.install(EEIO_PYTHON="/nowhere/python3", code=1)
    assert "/nowhere/python3 is missing" in done.stderr


def test_lines_for_pts(installed: Installer, tmp_path: Path) -> None:
    profile = installed("sqlite")
    log = tmp_path / "pts.log"
    profile.script("pre.sh", *WORK.split())
    profile.run(*WORK.split(), LOG_FILE=str(log))
    labels = [line.partition(":")[0] for line in log.read_text().splitlines() if "EEIO" in line]
    assert {"EEIO write rate", "EEIO read rate"} <= set(labels)
