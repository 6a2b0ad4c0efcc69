"""`eeio setup`: what it would install, and what it installs into an environment of the user."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.executables import executable
from tests.plugin import Eeio
from tests.processes import ran

ROOT = Path(__file__).parents[2]


def _fake(folder: Path, **programs: str) -> str:
    folder.mkdir()
    for name, script in programs.items():
        executable(folder / name.replace("_", "-"), f"#!/bin/sh\n{script}\n")
    return f"{folder}:{os.environ['PATH']}"


def test_a_dry_run_names_missing_packages_and_installs_none(tmp_path: Path, eeio: Eeio) -> None:
    search = _fake(
        tmp_path / "bin",
        dpkg_query='case "$*" in *bonnie*|*lmbench*) exit 1 ;; *) echo installed ;; esac',
        apt_cache="echo 'Candidate: (none)'",
        apt_get=f"touch {tmp_path}/called",
    )
    done = eeio("setup", "--dry-run", environment={"PATH": search})
    assert "setup: packages: bonnie++ lmbench \n" in done.stdout
    assert "eeio-non-free.sources, for iozone3 and lmbench" in done.stdout
    more = eeio("setup", "--dry-run", "--applications", environment={
        "PATH": search.replace(str(tmp_path / "bin"), _fake(
            tmp_path / "none", dpkg_query="exit 1", apt_cache="true").partition(":")[0])
    })  # fmt: skip
    assert "postgresql mariadb-server" in more.stdout
    more = eeio("setup", "--dry-run", "--ai", environment={
        "PATH": search.replace(str(tmp_path / "bin"), str(tmp_path / "none"))
    })  # fmt: skip
    assert "python3-torch" in more.stdout and "postgresql" not in more.stdout
    without = eeio("setup", "--dry-run", "--no-packages", environment={"PATH": search})
    assert "packages" not in without.stdout
    assert not (tmp_path / "called").exists()


def test_it_needs_a_confirmation(eeio: Eeio) -> None:
    assert "give --yes" in eeio("setup", "--no-packages", code=2).stderr
    assert "one of them" in eeio("setup", "--yes", "--dry-run", code=2).stderr


@pytest.mark.tools
def test_readers_and_profiles_are_installed_for_a_user(tmp_path: Path) -> None:
    own = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", own], check=True)
    home = tmp_path / "home"
    sources = [ROOT / name for name in ("scripts", "src", "result-parsers", "power-monitor")]
    packages = [path for path in sys.path if path.endswith("-packages")]
    done = ran(
        [own / "bin/python", "-m", "eeio", "setup", "--yes", "--no-packages"],
        env={
            **os.environ, "HOME": str(home), "XDG_DATA_HOME": str(home / "data"),
            "PYTHONPATH": os.pathsep.join(map(str, [*sources, *packages])),
            "EEIO_IOR_URL": f"file://{tmp_path}/none",
        },
    )  # fmt: skip
    assert "setup: missing tools: " in done.stdout
    for name in ("eeio-energy-reader", "eeio-ipmi-reader", "libdelayjc.so"):
        assert os.access(own / "libexec" / name, os.X_OK)
    installed = {path.name for path in (home / "data/eeio/installed").glob("eeio-*")}
    assert any(name.startswith("eeio-metadata-1.0.0") for name in installed)
