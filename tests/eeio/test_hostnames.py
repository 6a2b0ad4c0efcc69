"""The machine's own names: known at once, unknown, or waited for."""

import socket
import subprocess
from pathlib import Path

import pytest
from tests.executables import executable
from tests.plugin import Eeio

from eeio.measure import hostnames


@pytest.fixture
def getent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A getent of the test's own, first on PATH."""
    folder = tmp_path / "bin"
    executable(folder / "getent", '#!/bin/sh\n[ "$2" = localhost ] || exit 2\n')
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    return folder / "getent"


def test_a_name_that_nobody_knows(getent: Path) -> None:
    name = socket.gethostname()
    (found,) = hostnames.unresolved().values()
    assert (found.name, found.remedy) == (name, f"echo '127.0.1.1 {name}' >> /etc/hosts")
    assert "resolves it" in found.reason


def test_a_name_server_that_does_not_answer(getent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def waits(arguments: list[str], timeout: float, **_: object) -> object:
        raise subprocess.TimeoutExpired(arguments, timeout)

    monkeypatch.setattr(subprocess, "run", waits)
    assert {name: found.reason for name, found in hostnames.unresolved().items()} == dict.fromkeys(
        hostnames.own(), "no name server answered within 1 s"
    )
    assert hostnames.unresolved()["localhost"].remedy == "echo '127.0.0.1 localhost' >> /etc/hosts"


def test_where_nothing_can_be_queried(getent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert hostnames.unresolved() == {}


def test_doctor_reports_it_with_the_remedy(getent: Path, eeio: Eeio) -> None:
    reported = eeio("doctor", "--all").stdout
    assert f"missing  {socket.gethostname()}: neither /etc/hosts nor a name server" in reported
    assert f"get it: echo '127.0.1.1 {socket.gethostname()}' >> /etc/hosts" in reported
    assert "ok       localhost: known" in reported


def test_plan_reports_it_where_ranks_are_started(getent: Path, home: Path, eeio: Eeio) -> None:
    target = str(home / "target")
    arguments = ("--preset", "quick", "--directory", target, "--allow-memory-filesystem")
    reported = f"the name {socket.gethostname()}: neither"
    assert reported in eeio("plan", "eeio-suite", *arguments).stdout
    assert reported not in eeio("plan", "dummy-suite", *arguments).stdout
