"""Campaigns with servers of their own: what they tell, and that killed ones are cleaned up."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml
from tests.campaigns import records
from tests.executables import executable
from tests.plugin import Eeio
from tests.processes import ran
from tests.profiles.conftest import is_present
from tests.simulators import FakeRapl
from tests.suites import written
from tests.waiting import until

from eeio.machine.filesystem import mounts
from eeio.measure.journal import delayjc
from eeio.measure.profiles import suite as suites
from eeio.schemas.published import FOLDER as SCHEMAS

ROOT = Path(__file__).parents[2]
SCHEMA = SCHEMAS / "report.schema.json"
PROGRAMS = ("postgres", "pgbench", "mariadbd", "sysbench")
COMMON = "level=application buffer=%s operation=mixed"
EXPERIMENTS = {
    "postgresql": COMMON % "on" + " scale=1 synchronous_commit=on flush=each",
    "mariadb": COMMON % "off" + " rows=1000 workload=write_only flush=each",
}


@pytest.fixture(autouse=True)
def shipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EEIO_TEST_PROFILES", str(ROOT / "test-profiles"))
    monkeypatch.delenv("EEIO_POSTGRESQL_BIN", raising=False)


def _suite(home: Path, more: str, *names: str) -> str:
    """eeio-applications with an experiment of each of these servers alone."""
    for name in names:
        if not is_present(name):
            pytest.skip(f"{name} is not installed")
    protocol = yaml.safe_load((ROOT / "suites/eeio-applications/protocol.yaml").read_text())
    del protocol["optional"]
    protocol["presets"]["quick"]["idle_s"] = 0
    entries = [(name, f"{EXPERIMENTS[name]} {more}", name) for name in names]
    return str(written(home / "suites/servers", entries, yaml.safe_dump(protocol)))


def _running(folder: Path) -> set[str]:
    """Servers and clients that work below a folder."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            where = str((process / "cwd").readlink())
            name = (process / "comm").read_text().strip()
        except OSError:
            continue
        if where.startswith(str(folder.resolve())) and name in PROGRAMS:
            found.add(name)
    return found


def test_servers_are_found_where_packages_put_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = {item.command: item for item in suites.load(ROOT / "suites/eeio-applications").optional}
    postgresql, mariadb = found["postgres initdb pgbench"], found["mariadbd sysbench"]
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(suites, "_SERVERS", ())
    assert not postgresql.is_found() and not mariadb.is_found()
    for name in ("postgres", "initdb", "mariadbd"):
        executable(tmp_path / name, "")
    # All of them are wanted.
    assert not postgresql.is_found() and not mariadb.is_found()
    for name in ("pgbench", "sysbench"):
        executable(tmp_path / name, "")
    assert postgresql.is_found() and mariadb.is_found()
    monkeypatch.setenv("PATH", "/nowhere")
    assert not postgresql.is_found()
    monkeypatch.setenv("EEIO_POSTGRESQL_BIN", str(tmp_path))
    assert postgresql.is_found()


@pytest.mark.root
@pytest.mark.tools
def test_a_transaction_costs_joules(home: Path, place: Path, eeio: Eeio) -> None:
    """Power that is always the same: a transaction costs it over its rate."""
    suite = _suite(home, "runtime_s=2", "postgresql", "mariadb")
    with FakeRapl(home / "powercap", power_w=lambda time_s: 20.0):
        eeio(
            "run", suite, "--preset", "quick", "--directory", str(place), "--name", "db",
            "--filesystem", "ext4", "--meter", f"rapl,root={home / 'powercap'}",
            "--repetitions", "1",
        )  # fmt: skip
    assert list(place.iterdir()) == []
    body = eeio.json("report", "db")
    jsonschema.validate(body, json.loads(SCHEMA.read_text()))
    rows = [row for row in body["characterization"] if row["tool"] in EXPERIMENTS]
    assert sorted(row["tool"] for row in rows) == ["mariadb", "postgresql"]
    for row in rows:
        assert row["n"] == 1 and row["flush"] == "each" and row["durable"], row["invalid_reasons"]
        rate = row["operations_per_s"]["median"]
        joules = row["energy_j_per_operation"]["median"]
        assert joules == pytest.approx(row["power_w"]["median"] / rate, rel=0.02)
        assert row["latency_s"]["p99"]["median"] > 0 and row["bytes"]["median"] > 0
    text = eeio("report", "db").stdout
    assert " postgresql synchronous_commit=on " in text
    assert " mariadb workload=write_only " in text


@pytest.mark.root
@pytest.mark.tools
def test_calls_of_a_server_are_delayed_where_delayjc_is_requested(
    home: Path, place: Path, eeio: Eeio
) -> None:
    """Servers run under a user of their own, and the library takes no other user's state."""
    if delayjc.find_library() is None:
        pytest.skip("libdelayjc.so is not compiled (scripts/setup, with a C compiler)")
    suite = _suite(home, "runtime_s=1", "postgresql", "mariadb")
    eeio(
        "run", suite, "--preset", "quick", "--directory", str(place), "--name", "db",
        "--filesystem", "ext4+delayjc", "--meter", "none", "--repetitions", "1",
    )  # fmt: skip
    runs = records(home, "db")
    assert len(runs) == 2
    for run in runs:
        (phase,) = run["phases"]
        assert phase["validity"] == []
        assert phase["metrics"]["delayjc_calls"] > 10
        assert phase["metrics"]["delayjc_held_mean_s"] >= 0.001


@pytest.mark.fast_variants(1)
@pytest.mark.root
@pytest.mark.tools
@pytest.mark.parametrize("name", sorted(EXPERIMENTS))
@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGKILL])
def test_a_killed_campaign_leaves_no_server(
    home: Path, place: Path, eeio: Eeio, name: str, signum: signal.Signals
) -> None:
    suite = _suite(home, "runtime_s=30", name)
    process = subprocess.Popen(
        [sys.executable, "-m", "eeio", "run", suite, "--preset", "quick", "--directory",
         str(place), "--filesystem", "ext4", "--meter", "none", "--name", "killed"],
        env=dict(os.environ), stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    client = "pgbench" if name == "postgresql" else "sysbench"
    volume = place / "eeio-ext4"
    ready = volume / f"eeio-scratch/eeio-{name}.data/made-by-eeio"
    # pgbench fills the tables, too: it is the run only when they are whole.
    until(lambda: ready.is_file() and ready.read_text() and client in _running(volume))
    process.send_signal(signum)
    process.wait(60)
    if signum == signal.SIGKILL:
        eeio("doctor", "restore")
    assert _running(place) == set()
    assert not any(mount.mount_point.parent == place for mount in mounts())
    assert list(place.iterdir()) == []
    attached = ran(["losetup", "--list"])
    assert str(place) not in attached.stdout
