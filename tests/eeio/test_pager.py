"""Long text on a terminal goes through a pager, by git's rules."""

import os
import sys
from pathlib import Path

import pytest

from eeio.commands import pager


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("EEIO_PAGER", "PAGER", "NO_PAGER"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A terminal, and a pager that keeps what it is given in the file returned."""
    script = tmp_path / "pager.py"
    script.write_text(
        "import sys, pathlib\npathlib.Path(sys.argv[1]).write_text(sys.stdin.read())\n"
    )
    monkeypatch.setenv("EEIO_PAGER", f"{sys.executable} {script} {tmp_path / 'kept'}")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys.stdout, "fileno", lambda: 1, raising=False)
    return tmp_path / "kept"


def test_on_a_terminal_the_pager_gets_it(kept: Path) -> None:
    pager.show("text \x1b\n")
    assert kept.read_text() == "text \\x1b\n"


def test_without_being_wanted_it_is_printed(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pager.show("text\n", wanted=False)
    assert not kept.exists() and capsys.readouterr().out == "text\n"


def test_a_pipe_is_not_paged(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PAGER", "false")
    pager.show("text\n")
    assert capsys.readouterr().out == "text\n"


@pytest.mark.parametrize(
    "settings",
    [
        {"PAGER": "cat"}, {"PAGER": ""}, {"PAGER": "sh", "EEIO_PAGER": "cat"},
        {"PAGER": "sh", "NO_PAGER": "1"}, {"PAGER": "no-such-pager-here"}, {"PAGER": "sh '"},
    ],
)  # fmt: skip
def test_what_means_no_pager(monkeypatch: pytest.MonkeyPatch, settings: dict[str, str]) -> None:
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    assert pager.command() == []


def test_its_own_variable_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGER", "cat")
    monkeypatch.setenv("EEIO_PAGER", "sh -e")
    assert pager.command() == ["sh", "-e"]


@pytest.mark.root
def test_root_starts_no_pager_of_another_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SUDO_UID", raising=False)
    program = tmp_path / "pager"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PAGER", str(program))
    assert pager.command() == [str(program)]
    os.chown(program, 1000, 1000)
    assert pager.command() == []
