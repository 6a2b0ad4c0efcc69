"""The profiles with servers of their own, each run once by the Phoronix Test Suite itself."""

from pathlib import Path

import pytest

from eeio.pts import composite
from tests.profiles.conftest import is_present
from tests.pts.harness import ROOT, PtsHome

pytestmark = [pytest.mark.pts, pytest.mark.tools]

COMMON = "level=application operation=mixed"
RUNS = {
    "postgresql": f"{COMMON} scale=1 runtime_s=1 synchronous_commit=off flush=none",
    "mariadb": f"{COMMON} rows=1000 runtime_s=1 workload=write_only flush_log_at_trx_commit=1",
}


@pytest.mark.parametrize("tool", sorted(RUNS))
def test_a_trial_has_its_bandwidth_and_its_rate(tmp_path: Path, place: Path, tool: str) -> None:
    if not is_present(tool):
        pytest.skip(f"{tool} is not installed")
    home = PtsHome(tmp_path / "home")
    name = f"eeio-{tool}-1.0.0"
    home.add_profile(ROOT / "test-profiles" / name)
    home.add_suite("eeio-one", [(name, RUNS[tool], tool)])
    done = home.run(
        "benchmark", "eeio-one", timeout_s=120,
        environment={
            "EEIO_PRESET": "quick", "EEIO_METER": "none", "EEIO_DIRECTORY": str(place),
            "TEST_RESULTS_NAME": "t", "TEST_RESULTS_IDENTIFIER": "here",
            "FORCE_TIMES_TO_RUN": "2",
        },
    )  # fmt: skip
    assert done.returncode == 0, done.output[-2000:]
    results = {result.scale: result for result in composite.read(home.result("t")).results}
    for scale in ("MB/s", "Operations/s"):
        values = results[scale].entries[0].values
        assert len(values) == 2 and min(values) > 0
    assert list(place.iterdir()) == []
