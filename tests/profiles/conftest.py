"""Installed profiles, skipped with the reason where their tool is not on the machine."""

import os
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.once import once
from tests.plugin import ior_program
from tests.profiles import programs
from tests.profiles.harness import Installed, Installer
from tests.profiles.hosts import eeio_on_path, hosts
from tests.profiles.programs import Program

__all__ = ["eeio_on_path", "hosts"]


def dlio_program() -> str | None:
    """The one that EEIO_DLIO or PATH names, or that `eeio setup --ai` has installed."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), str(Path(sys.prefix) / "bin")])
    return shutil.which(os.environ.get("EEIO_DLIO") or "dlio_benchmark", path=path)


def is_present(tool: str) -> bool:
    if tool == "dlio":
        return dlio_program() is not None
    if tool == "lmbench":
        return any(Path("/usr/lib/lmbench/bin").glob("*/lat_fs"))
    if tool in ("dataserver", "btio", "checkpoint"):
        tool = "mpicc"  # our own, compiled by its install.sh
    if tool in ("metadata", "varmail"):
        tool = "cc"  # MPI is used where it is there
    if tool == "rocksdb":
        tool = "db_bench"
    if tool in ("sqlite", "s3"):
        tool = "python3"  # its own SQLite; a client of ours
    if tool == "postgresql":
        return shutil.which("postgres") is not None or any(
            Path("/usr/lib/postgresql").glob("*/bin/pgbench")
        )
    if tool == "mariadb":
        path = os.environ.get("PATH", os.defpath) + ":/usr/sbin"
        return all(shutil.which(name, path=path) for name in ("mariadbd", "sysbench"))
    if tool == "archive":
        tool = "tar"  # rsync and zstd where they are there
    if tool == "ior":
        return ior_program() is not None
    if tool == "io500":
        named = Path(os.environ.get("EEIO_IO500") or "io500")
        return shutil.which(named / "io500" if named.is_dir() else named) is not None
    path = os.environ.get("PATH", os.defpath) + ":/usr/sbin"
    return shutil.which("bonnie++" if tool == "bonnie" else tool, path=path) is not None


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Where install.sh of a tool's profile has installed it, once for all tests."""

    def install(tool: str, folder: Path) -> None:
        profile = Installed(tool, folder / "home", folder / "disk")
        named: dict[str, Any] = {
            key: os.environ[key] for key in ("EEIO_IOR", "EEIO_IO500") if key in os.environ
        }
        if tool == "dlio":
            named["EEIO_DLIO"] = str(dlio_program())
        if tool == "s3":
            named["EEIO_S3_ENDPOINT"] = "http://127.0.0.1:1"  # each test names its own
        profile.install(**named)

    def installed_once(tool: str) -> Path:
        return once(tmp_path_factory, f"installed-{tool}", partial(install, tool)) / "home"

    return installed_once


@pytest.fixture
def installed(tmp_path: Path, compiled: Callable[[str], Path]) -> Installer:
    """The profile of a tool, in a folder of the test's own."""

    def install(tool: str) -> Installed:
        if not is_present(tool):
            pytest.skip(f"{tool} is not installed")
        profile = Installed(tool, tmp_path / "home", tmp_path / "disk")
        origin = compiled(tool)
        shutil.copytree(origin, profile.home, symlinks=True, dirs_exist_ok=True)
        conf = profile.home / "tool.conf"
        conf.write_text(conf.read_text().replace(f"{origin}/", f"{profile.home}/"))
        return profile

    return install


@pytest.fixture
def fio(installed: Installer) -> Installed:
    return installed("fio")


@pytest.fixture(scope="module")
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Program:
    """The program that the module tests, which names it in PROGRAM."""
    name = request.module.PROGRAM
    return programs.shared(tmp_path_factory, f"plain-{name}", partial(programs.plain, name))


@pytest.fixture(scope="module")
def sanitized(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Program:
    name = request.module.PROGRAM
    return programs.shared(tmp_path_factory, f"sanitized-{name}", partial(programs.sanitized, name))
