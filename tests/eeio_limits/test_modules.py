"""Modules in folders of a user's own."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from eeio.errors import LimitError
from eeio.files import modules
from eeio.files.modules import Modules

MADE = Modules("thing", "eeio.files", "EEIO_THINGS")
"""With the modules of eeio.files for ours."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("EEIO_THINGS", str(tmp_path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_files_and_folders_are_found_by_name(folder: Path) -> None:
    (folder / "one.py").write_text("VALUE = 1\n")
    (folder / "two").mkdir()
    (folder / "two/__init__.py").write_text("from eeio.files.two.inner import VALUE\n")
    (folder / "two/inner.py").write_text("VALUE = 2\n")
    (folder / "_shared.py").write_text("")
    (folder / "README.md").write_text("")
    assert [name for name in MADE.names() if name in ("one", "two", "_shared")] == ["one", "two"]
    assert "modules" in MADE.names()
    one, two = MADE.load("one"), MADE.load("two")
    assert one is not None and two is not None
    assert (one.VALUE, two.VALUE) == (1, 2)
    assert MADE.load("one") is one
    assert MADE.load("modules") is modules
    assert MADE.load("three") is None


def test_two_folders_are_separated_by_a_colon(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        (folder / name).mkdir()
        (folder / name / f"from_{name}.py").write_text("")
    monkeypatch.setenv("EEIO_THINGS", f"{folder / 'a'}::{folder / 'b'}")
    assert {"from_a", "from_b"} <= set(MADE.names())


def test_a_folder_that_is_not_there_is_reported(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EEIO_THINGS", str(folder / "nowhere"))
    message = r"EEIO_THINGS: .*nowhere: No such file or directory; make the folder"
    with pytest.raises(LimitError, match=message):
        MADE.names()
    # Ours are there all the same.
    assert MADE.load("modules") is modules


@pytest.mark.parametrize(
    "text", ["import no_such_module\n", "1 / 0\n", "def (:\n", "raise SystemExit('x')\n"]
)
def test_one_that_cannot_be_imported_is_reported_with_its_file(folder: Path, text: str) -> None:
    (folder / "broken.py").write_text(text)
    for _ in range(2):  # what failed once must not count as imported
        with pytest.raises(
            LimitError, match=r"'broken' \(.*broken\.py, named by EEIO_THINGS\).*: .*broken\.py:1: "
        ):
            MADE.load("broken")


def test_a_name_of_ours_is_taken(folder: Path) -> None:
    (folder / "trust.py").write_text("raise SystemExit('imported')\n")
    with pytest.raises(LimitError, match="eeio itself has a thing 'trust' already"):
        MADE.names()


def test_a_name_is_given_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        (folder / name).mkdir()
        (folder / name / "same.py").write_text("")
    monkeypatch.setenv("EEIO_THINGS", f"{folder / 'a'}:{folder / 'b'}")
    with pytest.raises(LimitError, match=r"a/same\.py has a thing 'same' already"):
        MADE.load("same")
