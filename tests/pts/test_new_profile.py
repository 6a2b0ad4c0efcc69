"""A profile that `eeio profile new` made, under the Phoronix Test Suite itself."""

import sys
from pathlib import Path

import pytest

from eeio.cli import main
from eeio.pts import composite
from tests.plugin import Eeio
from tests.pts.harness import PtsHome, running
from tests.pts.test_with_pts import QUICK
from tests.waiting import until

pytestmark = pytest.mark.pts


def test_a_command_has_its_bandwidth_power_and_efficiency(
    tmp_path: Path, home: Path, eeio: Eeio, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EEIO_TEST_PROFILES", str(tmp_path / "own"))
    eeio(
        "profile", "new", "mine", "--operation", "write", "--factor", "size=2m,4m",
        "--bytes", "{size}", "--figure", "took ([0-9]+) s", "--unit", "s",
        "--", "sh", "-c", "head -c {size} /dev/zero >out; sync out; sleep 1; echo took 1 s",
    )  # fmt: skip
    pts = PtsHome(tmp_path / "pts")
    pts.add_profile(tmp_path / "own/eeio-mine-1.0.0")
    factors = "level=application operation=write spatiality=mixed buffer=on flush=none"
    pts.add_suite("eeio-two", [("eeio-mine-1.0.0", f"{factors} size=4m", "Four")])
    (tmp_path / "files").mkdir()
    with running(sys.executable, "-m", "tests.pts.meter", str(tmp_path / "rapl")):
        until((tmp_path / "rapl/intel-rapl:0/energy_uj").exists)
        ran = pts.run(
            "benchmark", "eeio-two", timeout_s=120,
            environment=QUICK | {
                "EEIO_METER": f"rapl,root={tmp_path}/rapl", "FORCE_TIMES_TO_RUN": "1",
                "EEIO_DIRECTORY": str(tmp_path / "files"),
                "EEIO_TEST_PROFILES": str(tmp_path / "own"),
            },
        )  # fmt: skip
    assert ran.returncode == 0, ran.output[-2000:]
    results = composite.read(pts.result("t")).results
    found = {r.scale: r.entries[0].values for r in results if r.identifier or r.parent}
    assert found["s"] == (1.0,)
    assert 1 < found["MB/s"][0] < 4.3, "4 MiB in a little more than 1 s"
    assert found["W"][0] == pytest.approx(80, rel=0.1)
    assert {"J", "MB/J"} <= set(found)
    assert main(["import", str(pts.result("t")), "--name", "i"]) == 0
    assert main(["report", "i"]) == 0
