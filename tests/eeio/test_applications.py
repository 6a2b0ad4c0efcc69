"""The suite of applications: what its campaigns tell, and that killed ones are cleaned up."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from tests.campaigns import records
from tests.plugin import Eeio
from tests.processes import ran
from tests.suites import written
from tests.waiting import until

from eeio.machine.filesystem import mounts
from eeio.measure.campaign.file_sizes import file_bytes_of
from eeio.measure.journal import delayjc
from eeio.measure.profiles import profile as profiles
from eeio.measure.profiles import suite as suites
from eeio.schemas.published import FOLDER as SCHEMAS

ROOT = Path(__file__).parents[2]
SCHEMA = SCHEMAS / "report.schema.json"


@pytest.fixture(autouse=True)
def shipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EEIO_TEST_PROFILES", str(ROOT / "test-profiles"))


def _suite(home: Path, *arguments: str, tool: str = "sqlite") -> str:
    """eeio-applications with these experiments of one program alone."""
    of_suite = ROOT / "suites/eeio-applications"
    protocol = (of_suite / "protocol.yaml").read_text().partition("\noptional:")[0]
    entries = [(tool, factors, factors) for factors in arguments]
    protocol = protocol.replace("idle_s: 5\n", "idle_s: 0\n") + "\n"
    return str(written(home / "suites/apps", entries, protocol))


COMMON = "level=application operation=mixed buffer=on rows=2000"


def test_what_is_not_installed_is_left_out_with_its_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = shutil.which
    monkeypatch.setattr(
        shutil, "which", lambda name, *a, **k: None if name == "rsync" else found(name, *a, **k)
    )
    suite = suites.load(ROOT / "suites/eeio-applications")
    known = {optional.command: optional for optional in suite.optional}
    rsync, zstd = known["rsync"], known["zstd"]
    assert known["db_bench"].otherwise == (
        "db_bench is not installed here (the package rocksdb-tools)"
    )
    assert not rsync.is_found() and rsync.otherwise == (
        "rsync is not installed here (the package rsync)"
    )
    monkeypatch.setattr(shutil, "which", lambda name, *a, **k: f"/usr/bin/{name}")
    assert zstd.is_found() and rsync.is_found()


@pytest.mark.root
@pytest.mark.tools
def test_transactions_stand_next_to_bytes(home: Path, eeio: Eeio) -> None:
    suite = _suite(
        home,
        f"{COMMON} transactions=20 journal=wal synchronous=full flush=each",
        f"{COMMON} transactions=20 journal=delete synchronous=off flush=none",
    )
    eeio.run(
        suite, "--preset", "quick", "--name", "apps", "--filesystem", "ext4,ext4+nojc", "--meter",
        "none", "--repetitions", "1",
    )  # fmt: skip
    assert list((home / "target").iterdir()) == []
    body = eeio.json("report", "apps")
    jsonschema.validate(body, json.loads(SCHEMA.read_text()))
    rows = [row for row in body["characterization"] if row["tool"] == "sqlite"]
    assert sorted((row["target"], row["phase"], row["flush"] or "-") for row in rows) == [
        (f"file on {volume}", phase, flush)
        for volume in ("ext4", "ext4+nojc")
        for phase, flush in (("read", "-"), ("read", "-"), ("write", "each"), ("write", "none"))
    ]
    for row in rows:
        assert row["n"] == 1, row["invalid_reasons"]
        assert row["operations_per_s"]["median"] > 0 and row["bytes"]["median"] > 0
        assert row["latency_s"]["p99"]["median"] > 0
        assert row["energy_j_per_operation"] is None
        assert row["reasons"]["energy_j_per_operation"]
        assert row["durable"] is (True if row["phase"] == "write" else None)
    assert "journal=wal synchronous=full" in eeio("report", "apps").stdout


@pytest.mark.root
@pytest.mark.tools
def test_calls_are_delayed_where_delayjc_is_requested(home: Path, eeio: Eeio) -> None:
    if delayjc.find_library() is None:
        pytest.skip("libdelayjc.so is not compiled (scripts/setup, with a C compiler)")
    suite = _suite(home, f"{COMMON} transactions=40 journal=wal synchronous=full flush=each")
    eeio.run(
        suite, "--preset", "quick", "--name", "apps", "--meter", "none", "--repetitions", "1",
        "--filesystem", "ext4,ext4+delayjc",
    )  # fmt: skip
    runs = {run["experiment"]["target"]: run for run in records(home, "apps")}
    plain, delayed = runs["file on ext4"], runs["file on ext4+delayjc"]
    write, read = delayed["phases"]
    assert write["metrics"]["delayjc_calls"] >= 40
    assert 0 < write["metrics"]["delayjc_windows"] <= write["metrics"]["delayjc_calls"]
    assert write["metrics"]["delayjc_held_mean_s"] >= 0.001
    for phase in (*plain["phases"], read):
        assert "delayjc_calls" not in phase["metrics"]
    assert any("windows of 1 ms" in note for note in delayed["notes"])


@pytest.mark.tools
def test_a_plan_knows_the_intervals_between_checkpoints(home: Path, eeio: Eeio) -> None:
    if not shutil.which("mpicc"):
        pytest.skip("mpicc is not installed")
    factors = "level=application operation=write buffer=on processes=2 checkpoints=7"
    suite = _suite(
        home, f"{factors} interval_s=600", f"{factors} interval_s=soon", tool="checkpoint"
    )
    done = eeio.plan(
        suite, "--preset", "quick", "--meter", "none", "--repetitions", "1", "--format", "json",
    )  # fmt: skip
    # What the profile refuses itself has no time here.
    assert 4200 <= json.loads(done.stdout)["expected_s"] < 4260


@pytest.mark.parametrize("preset", ["quick", "standard", "paper"])
@pytest.mark.parametrize("tool", ["sqlite", "archive", "rocksdb", "varmail", "checkpoint"])
def test_room_is_made_for_the_footprint_of_the_preset(tool: str, preset: str) -> None:
    profile = profiles.find(f"eeio-{tool}-1.0.0")
    reported = int(profile.presets[preset]["footprint"])
    assert file_bytes_of(profile, {"buffer": "on"}, preset, Path("/")) == reported


MIXED = "level=application operation=mixed buffer=on"
# What is there while the program is at work, below eeio-scratch, of a run that takes minutes.
LONG = {
    "sqlite": (
        f"{COMMON} transactions=40000 runtime_s=300 journal=wal synchronous=full flush=each",
        "eeio-sqlite.db-wal",
    ),
    "rocksdb": (
        f"{MIXED} workload=fillrandom sync=on flush=each keys=1000 operations=500000 runtime_s=300",
        "eeio-rocksdb.db/CURRENT",
    ),
    "varmail": (
        f"{MIXED} processes=4 fsync=on flush=each files=200 loops=1000000 runtime_s=300",
        "eeio-varmail.files/folder.0/mail.*.10?",
    ),
    "checkpoint": (
        "level=application operation=write buffer=on processes=2 fsync=on flush=each size=1m "
        "interval_s=0 checkpoints=100000",
        "eeio-checkpoint.0.1",
    ),
}
PROGRAMS = {"rocksdb": "db_bench", "varmail": "cc", "checkpoint": "mpicc"}


@pytest.mark.root
@pytest.mark.tools
def test_commits_of_the_journal_are_counted_where_requested(home: Path, eeio: Eeio) -> None:
    """Each transaction of a deleted journal costs commits, a log's without flushing none; xfs has
    none to trace, and says so."""
    suite = _suite(
        home, f"{COMMON} transactions=40 journal=delete synchronous=full flush=each",
        f"{COMMON} transactions=40 journal=wal synchronous=off flush=none",
    )  # fmt: skip
    eeio.run(
        suite, "--preset", "quick", "--name", "apps", "--meter", "none", "--repetitions", "1",
        "--filesystem", "ext4,xfs", "--trace-journal",
    )  # fmt: skip
    notes = [note for run in records(home, "apps") for note in run["notes"]]
    assert any("not on ext4 but on xfs" in note for note in notes)
    if any("not traced" in note and "on xfs" not in note for note in notes):
        pytest.skip(next(note for note in notes if "not traced" in note and "xfs" not in note))
    body = eeio.json("report", "apps")
    jsonschema.validate(body, json.loads(SCHEMA.read_text()))
    writes = {
        (row["target"], row["flush"]): row["journal"]
        for row in body["characterization"]
        if row["phase"] == "write"
    }
    flushed, promised = writes["file on ext4", "each"], writes["file on ext4", "none"]
    assert writes["file on xfs", "each"] is None
    assert flushed["journal_commits"]["median"] >= 40 > promised["journal_commits"]["median"]
    waited = flushed["journal_fsyncs_waiting"]["median"]
    assert 40 <= waited <= flushed["journal_fsyncs"]["median"]
    assert 0 < flushed["journal_commit_mean_s"]["median"] < 5
    assert "of them waited for a commit" in eeio("report", "apps").stdout


@pytest.mark.fast_variants(2)
@pytest.mark.root
@pytest.mark.tools
@pytest.mark.parametrize("tool", LONG)
@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGKILL])
def test_a_killed_campaign_leaves_nothing(
    home: Path, eeio: Eeio, signum: signal.Signals, tool: str
) -> None:
    if tool in PROGRAMS and not shutil.which(PROGRAMS[tool]):
        pytest.skip(f"{PROGRAMS[tool]} is not installed")
    factors, at_work = LONG[tool]
    suite = _suite(home, factors, tool=tool)
    target = home / "target"
    log = home / "stderr.txt"
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "eeio", "run", suite, "--preset", "quick", "--directory",
             str(target), "--filesystem", "ext4", "--meter", "none", "--name", "killed"],
            env=dict(os.environ), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=stderr,
        )  # fmt: skip
    scratch = target / "eeio-ext4/eeio-scratch"
    until(lambda: list(scratch.glob(at_work)), process)
    process.send_signal(signum)
    process.wait(60)
    if signum == signal.SIGKILL:
        eeio("doctor", "restore")
    assert not any(mount.mount_point.parent == target for mount in mounts()), log.read_text()
    assert list(target.rglob("*")) == [], log.read_text()
    attached = ran(["losetup", "--list"])
    assert str(target) not in attached.stdout
    for arguments in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            assert str(target) not in arguments.read_text(errors="replace")
        except OSError:
            continue  # it has ended meanwhile
