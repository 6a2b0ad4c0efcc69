"""Result files that real PTS wrote with upstream's own profiles (data/command says how)."""

from pathlib import Path

import pytest

from eeio import paths
from eeio.analysis import characterization
from eeio.analysis.rows import Row
from eeio.cli import main
from eeio.record import store

DATA = Path(__file__).parent / "data"
MIB = 1 << 20


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))


def imported(name: str) -> Row:
    assert main(["import", str(DATA / name), "--name", "theirs"]) == 0
    campaign = store.load(paths.results_root() / "theirs")
    (row,) = [row for row in characterization.characterize(campaign) if row.experiment]
    return row


def test_fios_megabytes_are_binary_and_agree_with_its_iops() -> None:
    row = imported("pts-fio-2.2.0.xml")
    assert row.experiment is not None
    assert (row.operation, row.spatiality, row.request_size_bytes) == ("read", "random", 4096)
    assert (row.cache.buffer, row.experiment.processes, row.n) == ("off", 2, 2)
    assert row.bandwidth_values == pytest.approx([36.9 * MIB, 36.4 * MIB])
    assert row.bandwidth_values == pytest.approx([9459 * 4096, 9306 * 4096], rel=0.005)


def test_iozones_read_is_a_read_through_the_page_cache() -> None:
    row = imported("pts-iozone-1.9.6.xml")
    assert (row.operation, row.spatiality, row.request_size_bytes) == ("read", "sequential", MIB)
    assert (row.cache.buffer, row.n) == ("on", 2)
    assert row.bandwidth_values == pytest.approx([1255.2646484375 * MIB, 6738.517578125 * MIB])
