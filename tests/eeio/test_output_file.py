"""`-o FILE`: the suffix chooses the format."""

import json
from pathlib import Path

import pytest
from tests import dummy
from tests.plugin import Eeio, InProcess
from tests.profiles import programs

from eeio.cli import main


@pytest.fixture
def stored(home: Path, eeio: Eeio) -> Path:
    suite = dummy.suite(home, "level=filesystem operation=read spatiality=sequential")
    eeio.run(suite, "--name", "a", "--meter", "none", "--repetitions", "2")
    return home


def test_the_suffix_chooses_the_format(stored: Path) -> None:
    for suffix, beginning in ((".html", "<!DOCTYPE html>"), (".csv", "campaign,"), (".md", "#")):
        path = stored / f"out{suffix}"
        assert main(["report", "a", "-o", str(path)]) == 0
        assert path.read_text().startswith(beginning), suffix
    assert main(["report", "a", "--format", "json", "-o", str(stored / "x.csv")]) == 0
    assert json.loads((stored / "x.csv").read_text())["campaigns"]
    assert main(["report", "a", "-o", str(stored / "out.txt")]) == 0
    assert "Level: filesystem" in (stored / "out.txt").read_text()


def test_a_file_name_is_no_folder_for_plots(stored: Path, in_process: InProcess) -> None:
    done = in_process("report", "a", "--plots", str(stored / "f.pdf"), code=2)
    assert "name a folder" in done.err
    assert not (stored / "f.pdf").exists()


def test_a_file_that_cannot_be_written_is_named_and_the_old_one_stays(
    stored: Path, in_process: InProcess
) -> None:
    (stored / "file").touch()
    missing = stored / "file/out.html"
    assert f"{missing}: File exists" in in_process("report", "a", "-o", str(missing), code=1).err
    in_process("report", "a", "-o", str(stored / "new/folder/out.html"))
    with programs.memory_disk(stored / "full", "size=64k") as full:
        (full / "out.csv").write_text("before")
        (full / "filler").write_bytes(bytes(56 << 10))
        done = in_process("report", "a", "-o", str(full / "out.html"), code=1)
        assert f"{full / 'out.html'}: No space left" in done.err
        assert sorted(path.name for path in full.iterdir()) == ["filler", "out.csv"]


def test_a_folder_or_an_unknown_suffix_is_rejected(stored: Path, in_process: InProcess) -> None:
    for path, why in ((stored, "is a folder"), (stored / "f.pdf", "no format has the suffix .pdf")):
        assert why in " ".join(in_process("report", "a", "-o", str(path), code=2).err.split())
    assert not (stored / "f.pdf").exists()
    assert main(["report", "a", "--format", "csv", "-o", str(stored / "f.data")]) == 0
    assert (stored / "f.data").read_text().startswith("campaign,")
