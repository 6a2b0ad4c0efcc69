"""A campaign run by PTS and the same one run by `eeio run` give the same tables."""

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from eeio import paths
from eeio.analysis import characterization
from eeio.cli import main
from eeio.record import store
from tests.pts.harness import ROOT, PtsHome, running
from tests.waiting import until

FS = "level=filesystem"
DIRECT = "request_size=4m buffer=off file_size=512m"
TESTS = (
    ("fio", "eeio-fio-1.0.0", f"{FS} operation=read spatiality=sequential {DIRECT}"),
    ("fio", "eeio-fio-1.0.0",
     f"{FS} operation=mixed spatiality=random request_size=32k buffer=on file_size=512m"),
    ("iozone", "eeio-iozone-1.0.0", f"{FS} operation=write spatiality=sequential {DIRECT}"),
    ("iozone", "eeio-iozone-1.0.0",
     f"{FS} operation=mixed spatiality=random {DIRECT}".replace("4m", "32k")),
    ("bonnie++", "eeio-bonnie-1.0.0",  # the preset's 1 GiB: less is too fast for it
     f"{FS} operation=mixed spatiality=sequential request_size=64k buffer=off"),
)  # fmt: skip
HERE = [test for test in TESTS if shutil.which(test[0])]

pytestmark = [
    pytest.mark.pts,
    pytest.mark.tools,
    pytest.mark.skipif(not HERE, reason="no fio, iozone or bonnie++: scripts/setup installs them"),
]


def rows(name: str) -> dict[tuple[Any, ...], dict[str, Any]]:
    """The characterization of a campaign, by what tells its rows apart."""
    campaign = store.load(paths.results_root() / name)
    found = {}
    for row in characterization.characterize(campaign):
        if row.experiment is not None:
            body = row.to_json()
            cache = (body["cache"]["buffer"], body["cache"]["disk"])
            found[(row.experiment.id, row.phase, row.operation, row.spatiality, *cache)] = body
    return found


METADATA = (
    ("cc", "eeio-metadata-1.0.0",
     f"{FS} operation=metadata buffer=on processes=2 files=16 rounds=300"),
)  # fmt: skip


@pytest.fixture
def both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """The same small suite on the same meter, by PTS and by ourselves."""
    return run_both(HERE, tmp_path, monkeypatch)


def run_both(
    tests: Sequence[tuple[str, str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, str]:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    home = PtsHome(tmp_path / "home")
    for profile in sorted({test[1] for test in tests}):
        home.add_profile(ROOT / "test-profiles" / profile)
    executes = [(test, factors, f"Test {k}") for k, (_, test, factors) in enumerate(tests)]
    suite = home.add_suite("eeio-two", executes)
    # Its presets; what the runner adds of tools that are rarely there is not under PTS.
    protocol = (ROOT / "suites/eeio-suite/protocol.yaml").read_text()
    (suite / "protocol.yaml").write_text(protocol.partition("\noptional:")[0])
    (tmp_path / "files").mkdir()
    # A busy machine moves the simulated counter late, by more than a real processor can draw.
    meter = f"rapl,root={tmp_path}/rapl,max_w=1000000"
    with running(sys.executable, "-m", "tests.pts.meter", str(tmp_path / "rapl")):
        until((tmp_path / "rapl/intel-rapl:0/energy_uj").exists)
        done = home.run(
            "benchmark", "eeio-two", timeout_s=300,
            environment={
                "EEIO_PRESET": "quick", "EEIO_IDLE_S": "0.5", "TEST_RESULTS_NAME": "t",
                "TEST_RESULTS_IDENTIFIER": "here", "EEIO_METER": meter, "FORCE_TIMES_TO_RUN": "2",
                "EEIO_DIRECTORY": str(tmp_path / "files"),
            },
        )  # fmt: skip
        assert done.returncode == 0, done.output[-3000:]
        if tests is METADATA:
            assert main(["profile", "install", "eeio-metadata-1.0.0"]) == 0
        code = main(
            ["run", str(suite), "--preset", "quick", "--directory", str(tmp_path / "files"),
             "--meter", meter, "--repetitions", "2", "--idle", "0.5", "--name", "ours"]
        )  # fmt: skip
        assert code in (0, 3)
    assert main(["import", str(home.result("t")), "--name", "theirs"]) == 0
    return "ours", "theirs"


def test_both_ways_give_the_same_tables(both: tuple[str, str]) -> None:
    ours, theirs = (rows(name) for name in both)
    assert set(ours) == set(theirs)
    for key, row in ours.items():
        other = theirs[key]
        for column in ("level", "tool", "target", "processes", "request_size_bytes", "cache", "n"):
            assert row[column] == other[column], (key, column, other["reasons"])
        if row["phase"] in ("reads", "writes"):
            continue  # of a phase that did both: its energy is in the row of that
        assert row["energy_kind"] == other["energy_kind"] == "measured"
        domains = [[d["power_domain"] for d in body["domains"]] for body in (row, other)]
        assert domains[0] == domains[1]
        for body in (row, other):
            assert body["power_w"]["median"] == pytest.approx(80, rel=0.2)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_rates_of_files_come_both_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files/s are no bandwidth: the phases come with their rate, and say why they have no other."""
    names = run_both(METADATA, tmp_path, monkeypatch)
    out = tmp_path / "out"
    assert main(["export", "ours", "--pts", "-o", str(out)]) == 0
    assert main(["import", str(out / "composite.xml"), "--name", "back"]) == 0
    ours, theirs, back = (rows(name) for name in (*names, "back"))
    assert set(ours) == set(theirs) == set(back)
    assert {key[1] for key in ours} == {"create", "stat", "utime", "delete"}
    for key, row in ours.items():
        for other in (theirs[key], back[key]):
            assert row["operation"] == other["operation"] == "metadata"
            assert row["n"] == other["n"] == 2
            assert row["bandwidth_bytes_per_s"] is other["bandwidth_bytes_per_s"] is None
            word = "bandwidth_bytes_per_s"
            assert row["reasons"][word] == other["reasons"][word]
            assert other["operations_per_s"]["median"] > 0.0
        mean = row["operations_per_s"]["median"]
        assert back[key]["operations_per_s"]["median"] == pytest.approx(mean, rel=1e-4)
