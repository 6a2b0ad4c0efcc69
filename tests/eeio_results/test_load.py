"""The Python interface for notebooks: `eeio_results.load`."""

import shutil
from pathlib import Path

import pytest

import eeio_results
from eeio.errors import EeioError
from tests.plugin import DATA

BOARD = DATA / "campaigns/board"


def test_by_path_and_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    shutil.copytree(BOARD, tmp_path / "eeio/results/mine")
    by_name = eeio_results.load("mine")
    assert by_name.runs and by_name.runs == eeio_results.load(BOARD).runs
    assert by_name.runs == eeio_results.load(str(BOARD)).runs


@pytest.mark.parametrize("name", ["nothing", "", "..", "a b"])
def test_no_such_campaign(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with pytest.raises(EeioError, match="campaign"):
        eeio_results.load(name)
