"""Whether an installed profile still has the tool that install.sh would find today."""

import hashlib
from pathlib import Path

import pytest

from eeio.profiles import profile as profiles
from eeio.profiles.profile import Profile


def _program(folder: Path, words: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "measure"
    path.write_text(f"#!/bin/sh\necho {words}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def installed(home: Path, monkeypatch: pytest.MonkeyPatch) -> Profile:
    """The dummy profile, with a tool that PATH finds in tools/ or EEIO_MEASURE names."""
    monkeypatch.delenv("EEIO_MEASURE", raising=False)
    monkeypatch.setenv("PATH", f"{home}/tools:/usr/bin:/bin")
    _program(home / "tools", "one")
    return _install(profiles.find("eeio-dummy-1.0.0"), home / "tools/measure", "")


def _install(profile: Profile, program: Path, named: str) -> Profile:
    profiles.install(profile)
    digest = hashlib.sha256(program.read_bytes()).hexdigest()
    (profile.install_dir / "tool.conf").write_text(
        f"path={program}\nversion=1\nsha256={digest}\nsource=system\nEEIO_MEASURE={named}\n"
    )
    assert profiles.is_installed(profile)
    return profile


def test_an_upgraded_tool_is_installed_again(installed: Profile, home: Path) -> None:
    _program(home / "tools", "two")
    assert not profiles.is_installed(installed)


def test_a_tool_that_went_is_installed_again(installed: Profile, home: Path) -> None:
    (home / "tools/measure").unlink()
    assert not profiles.is_installed(installed)


def test_another_first_in_path(
    installed: Profile, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _program(home / "module", "one")
    monkeypatch.setenv("PATH", f"{home}/module:{home}/tools")
    assert not profiles.is_installed(installed)
    monkeypatch.setenv("PATH", f"{home}/tools:{home}/module")
    assert profiles.is_installed(installed)


def test_another_named_by_the_setting(
    installed: Profile, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = _program(home / "own", "own")
    monkeypatch.setenv("EEIO_MEASURE", str(own))
    assert not profiles.is_installed(installed)
    _install(installed, own, str(own))  # PATH has another, and the setting outranks it
    monkeypatch.delenv("EEIO_MEASURE")
    assert not profiles.is_installed(installed)


def test_what_failed_is_installed_again(installed: Profile) -> None:
    """Its tool was missing then, and its executable is there all the same."""
    (installed.install_dir / "install-exit-status").write_text("1\n")
    assert not profiles.is_installed(installed)
    (installed.install_dir / "install-exit-status").write_text("0\n")
    assert profiles.is_installed(installed)
