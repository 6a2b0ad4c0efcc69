"""install.sh: what it records, and what it says when it cannot."""

import hashlib
import os
import re
import shutil
from pathlib import Path

import pytest

from tests.profiles.harness import Installed, Installer

TOOLS = ("fio", "iozone", "bonnie", "lmbench")
PACKAGES = {"fio": "fio", "iozone": "iozone3", "bonnie": "bonnie++", "lmbench": "lmbench"}
# A machine with a shell and nothing to fetch, unpack or build with.
COMMANDS = ("awk", "bash", "cat", "chmod", "cp", "cut", "dirname", "mkdir", "rm", "sed", "sh",
            "sha256sum")  # fmt: skip


@pytest.mark.tools
@pytest.mark.parametrize("tool", TOOLS)
def test_takes_the_systems_tool(installed: Installer, tool: str) -> None:
    profile = installed(tool)
    lines = (profile.home / "tool.conf").read_text().splitlines()
    conf = dict(line.split("=", 1) for line in lines)
    assert conf["source"] == "system"
    assert conf["version"]
    assert hashlib.sha256(Path(conf["path"]).read_bytes()).hexdigest() == conf["sha256"]
    assert (profile.home / "install-exit-status").read_text() == "0\n"
    assert os.access(profile.home / f"eeio-{tool}", os.X_OK)


def without_tool(tool: str, folder: Path) -> Installed:
    """The profile on a machine that has no such tool and no network."""
    profile = Installed(tool, folder / "home", folder / "disk")
    script = (profile.profile / "tool.sh").read_text()
    for place in ("/usr/sbin", "/usr/local/sbin", "/usr/lib/lmbench"):
        script = script.replace(place, str(folder / "nothing"))
    (profile.profile / "tool.sh").write_text(script)
    commands = folder / "commands"
    commands.mkdir()
    for command in COMMANDS:
        found = shutil.which(command)
        assert found, command
        (commands / command).symlink_to(found)
    profile.environment["PATH"] = str(commands)
    return profile


@pytest.mark.parametrize("tool", TOOLS)
def test_missing_tool_names_the_package(tool: str, tmp_path: Path) -> None:
    profile = without_tool(tool, tmp_path)
    done = profile.install(code=1)
    assert (profile.home / "install-exit-status").read_text() == "1\n"
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"eeio-{tool}: ") and f"install the package {PACKAGES[tool]}" in line
    assert not (profile.home / "tool.conf").exists()


@pytest.mark.parametrize("tool", TOOLS)
def test_a_changed_release_is_not_unpacked(tool: str, tmp_path: Path) -> None:
    profile = without_tool(tool, tmp_path)
    (url,) = re.findall(r"\tunpack (\S+)", (profile.profile / "tool.sh").read_text())
    archive = profile.home / url.rpartition("/")[2]
    archive.write_bytes(b"not the release")
    profile.install(code=1)
    assert "wrong SHA-256" in (profile.home / "build.log").read_text()
    assert sorted(p.name for p in profile.home.iterdir() if p.is_dir()) == []
