"""RocksDB, the mail server's pattern, checkpoints, DLIO, S3 and IO500 run under PTS as they are."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from eeio import paths
from eeio.analysis import characterization
from eeio.cli import main
from eeio.record import store
from tests.profiles.test_io500 import SHORT
from tests.pts.harness import ROOT, PtsHome, running

APPLICATION = "level=application buffer=on"
PROFILES = {
    "varmail": ("cc", f"{APPLICATION} operation=mixed processes=2 files=200 loops=3000 fsync=on"),
    "rocksdb": ("db_bench", f"{APPLICATION} operation=mixed workload=fillrandom keys=100000"),
    "checkpoint": ("mpicc", f"{APPLICATION} operation=write processes=2 size=8m"),
}
HERE = {tool: arguments for tool, (needed, arguments) in PROFILES.items() if shutil.which(needed)}

pytestmark = [
    pytest.mark.pts,
    pytest.mark.tools,
]


def rows_under_pts(
    folder: Path, tests: dict[str, tuple[str, str]], **environment: str
) -> list[characterization.Row]:
    """The rows of a benchmark by PTS; `tests` are the tool and the factors of each description."""
    home = PtsHome(folder / "home")
    for tool in {tool for tool, _ in tests.values()}:
        home.add_profile(ROOT / f"test-profiles/eeio-{tool}-1.0.0")
    home.add_suite(
        "eeio-stores",
        [(f"eeio-{tool}-1.0.0", arguments, name) for name, (tool, arguments) in tests.items()],
    )
    (folder / "files").mkdir()
    with running(sys.executable, "-m", "tests.pts.meter", str(folder / "rapl")):
        done = home.run(
            "benchmark", "eeio-stores", timeout_s=240,
            environment={
                "EEIO_PRESET": "quick", "EEIO_IDLE_S": "0.5", "TEST_RESULTS_NAME": "t",
                "TEST_RESULTS_IDENTIFIER": "here", "EEIO_METER": f"rapl,root={folder}/rapl",
                "FORCE_TIMES_TO_RUN": "1", "EEIO_DIRECTORY": str(folder / "files"),
                **environment,
            },
        )  # fmt: skip
    assert done.returncode == 0, done.output[-3000:]
    assert main(["import", str(home.result("t")), "--name", "theirs"]) == 0
    return [
        row
        for row in characterization.characterize(store.load(paths.results_root() / "theirs"))
        if row.experiment is not None and row.n
    ]


@pytest.mark.skipif(
    not (ROOT / ".venv/bin/dlio_benchmark").is_file(), reason="no DLIO (eeio setup --ai)"
)
def test_dlio_runs_under_pts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    # As from the profile's menu, which does not ask for the level.
    factors = {
        "train": "workload=unet3d files=14 record_size=1m",
        "checkpoint": "workload=checkpoint checkpoint_size=7m checkpoints=2",
    }
    rows = rows_under_pts(
        tmp_path, {name: ("dlio", arguments) for name, arguments in factors.items()}
    )
    assert sorted(row.phase for row in rows) == ["checkpoint", "restore", "train"]
    for row in rows:
        assert row["operations_per_s"] is not None and row["operations_per_s"].median > 0


@pytest.mark.skipif(
    shutil.which("io500") is None and "EEIO_IO500" not in os.environ, reason="no IO500 (EEIO_IO500)"
)
def test_io500_runs_under_pts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    ini, caches = tmp_path / "short.ini", tmp_path / "drop_caches"
    ini.write_text(SHORT)
    caches.touch()  # The page cache of this machine stays as it is.
    rows = rows_under_pts(
        tmp_path, {"io500": ("io500", "processes=2 data=4m files=200")},
        EEIO_IO500=os.environ.get("EEIO_IO500", ""), EEIO_IO500_INI=str(ini),
        EEIO_DROP_CACHES=str(caches),
    )  # fmt: skip
    moved = {row.phase: row["bytes"] for row in rows}
    segments = (4 << 20) // 47008
    for name in ("write", "read"):
        for phase, size in ((f"ior-easy-{name}", 8 << 20), (f"ior-hard-{name}", 94016 * segments)):
            found = moved[phase]
            assert found is not None and found.median == size


@pytest.mark.skipif(shutil.which("moto_server") is None, reason="no moto (pip)")
def test_an_object_store_runs_under_pts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    rows = rows_under_pts(tmp_path, {"objects": ("s3", "request_size=4k processes=2 objects=200")})
    assert sorted(row.phase for row in rows) == ["delete", "get", "list", "put"]
    for row in rows:
        assert row["operations_per_s"] is not None and row["operations_per_s"].median > 0


@pytest.mark.skipif(not HERE, reason="no C compiler, no MPI and no db_bench")
def test_each_runs_under_pts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    found = rows_under_pts(tmp_path, {tool: (tool, arguments) for tool, arguments in HERE.items()})
    rows = {row.experiment.tool: row for row in found if row.experiment is not None}
    assert set(rows) == set(HERE)
    for tool, row in rows.items():
        assert row["operations_per_s"] is not None and row["operations_per_s"].median > 0, tool
        assert row["bandwidth_bytes_per_s"] is not None and row.durable, tool
    if "checkpoint" in rows:
        # Of the stretches of writing alone, as `eeio run` reads it.
        (run,) = [r for r in store.load(paths.results_root() / "theirs").runs
                  if r.experiment.tool == "checkpoint"]  # fmt: skip
        (phase,) = run.phases
        (reading,) = phase.energy
        assert len(phase.stretches) == 3 and phase.lasted_s is not None
        assert reading.energy_j is not None and reading.power_w is not None
        assert reading.energy_j == pytest.approx(reading.power_w * phase.lasted_s, rel=1e-3)
        assert phase.end_s is not None and phase.lasted_s < 0.5 * phase.end_s
