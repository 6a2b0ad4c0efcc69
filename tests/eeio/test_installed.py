"""An installed profile never changes, and a campaign notices if its program does."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests import dummy
from tests.campaigns import records
from tests.executables import executable
from tests.plugin import Eeio, InProcess

from eeio import paths
from eeio.cli import main
from eeio.errors import EeioError
from eeio.measure.profiles import installation
from eeio.measure.profiles import profile as profiles
from eeio.measure.profiles.installation import Program
from eeio.measure.profiles.profile import Profile

FINDS_MEASURE = """
tool=$(command -v "${EEIO_MEASURE:-measure}") || { echo "measure is missing"; exit 1; }
{
	echo "path=$tool"
	echo "version=1"
	echo "sha256=$(sha256sum "$tool" | cut -d' ' -f1)"
	echo "source=system"
	echo "EEIO_MEASURE=${EEIO_MEASURE:-}"
} >"$HOME/tool.conf"
"""


def _program(folder: Path, output: str) -> Path:
    return executable(folder / "measure", f"#!/bin/sh\necho {output}\n")


@pytest.fixture
def profile(home: Path, monkeypatch: pytest.MonkeyPatch) -> Profile:
    """The dummy profile, with a tool that PATH finds in tools/ or EEIO_MEASURE names."""
    monkeypatch.delenv("EEIO_MEASURE", raising=False)
    monkeypatch.setenv("PATH", f"{home}/tools:/usr/bin:/bin")
    _program(home / "tools", "one")
    folder = dummy.profile(home, "") / "eeio-dummy-1.0.0"
    with (folder / "install.sh").open("a") as script:
        script.write(FINDS_MEASURE)
    monkeypatch.setenv("EEIO_TEST_PROFILES", str(folder.parent))
    return profiles.find("eeio-dummy-1.0.0")


@pytest.fixture
def installed(profile: Profile) -> Profile:
    found = installation.install(profile)
    assert found.tool is not None and found.tool.version == "1"
    assert installation.find(profile) == found == installation.install(profile)
    return profile


def test_an_upgraded_tool_is_installed_again(installed: Profile, home: Path) -> None:
    before = installation.find(installed)
    assert before is not None
    with_program = Program(before)  # as a campaign that runs
    _program(home / "tools", "two")
    assert installation.find(installed) is None
    after = installation.install(installed)
    assert after.home != before.home and after.sha256 != before.sha256
    assert before.home.is_dir()
    with_program.close()


def test_a_tool_that_went_is_not_found(installed: Profile, home: Path) -> None:
    (home / "tools/measure").unlink()
    assert installation.find(installed) is None
    with pytest.raises(EeioError, match="measure is missing"):
        installation.install(installed)


def test_another_first_in_path(
    installed: Profile, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _program(home / "module", "one")
    monkeypatch.setenv("PATH", f"{home}/module:{home}/tools")
    assert installation.find(installed) is None
    monkeypatch.setenv("PATH", f"{home}/tools:{home}/module")
    assert installation.find(installed) is not None


def test_another_named_by_the_setting(
    installed: Profile, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = _program(home / "own", "own")
    monkeypatch.setenv("EEIO_MEASURE", str(own))
    assert installation.find(installed) is None
    found = installation.install(installed)
    assert found.tool is not None and found.tool.path == str(own)
    monkeypatch.delenv("EEIO_MEASURE")
    assert installation.find(installed) is None


@pytest.mark.parametrize("damage", ["delete", "edit", "incomplete", "record"])
def test_what_is_damaged_is_installed_again(installed: Profile, damage: str) -> None:
    found = installation.find(installed)
    assert found is not None
    if damage == "delete":
        found.executable.unlink()
    elif damage == "edit":
        found.executable.write_text("#!/bin/sh\n")
    elif damage == "incomplete":
        (found.home / "installed.json").unlink()
    else:
        (found.home / "installed.json").write_text('{"files": [')
    assert installation.find(installed) is None
    again = installation.install(installed)
    assert again.sha256 == found.sha256
    assert again.executable.is_file()


def test_an_installation_that_fails_leaves_nothing(
    profile: Profile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EEIO_MEASURE", "not-there")
    with pytest.raises(EeioError, match="measure is missing"):
        installation.install(profile)
    assert not [path for path in paths.install_root().iterdir() if path.is_dir()]


def test_two_checkouts_with_one_home_do_not_share_programs(
    installed: Profile, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = installation.find(installed)
    assert ours is not None
    other = home / "other/eeio-dummy-1.0.0"
    other.parent.mkdir()
    subprocess.run(["cp", "-r", str(installed.folder), str(other)], check=True)
    (other / "eeio-dummy.sh").write_text("#!/bin/sh\necho other\n")
    monkeypatch.setenv("EEIO_TEST_PROFILES", str(other.parent))
    theirs = installation.install(profiles.find("eeio-dummy-1.0.0"))
    assert theirs.executable.read_text() != ours.executable.read_text()
    assert theirs.sha256 != ours.sha256


def test_two_processes_that_install_at_once_make_one(profile: Profile) -> None:
    command = [sys.executable, "-m", "eeio", "profile", "install", "eeio-dummy-1.0.0"]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate(timeout=300)[0] for process in both] == [
        f"eeio-dummy-1.0.0: 1 {os.environ['PATH'].partition(':')[0]}/measure\n"
    ] * 2
    assert len([path for path in paths.install_root().iterdir() if path.is_dir()]) == 1


def test_only_unused_installations_are_removed(installed: Profile, home: Path) -> None:
    first = installation.find(installed)
    assert first is not None
    locked = os.open(first.home / ".in-use", os.O_RDONLY)
    fcntl.flock(locked, fcntl.LOCK_SH)
    _program(home / "tools", "two")
    second = installation.install(installed)
    assert first.home.is_dir() and second.home.is_dir()
    os.close(locked)
    _program(home / "tools", "three")
    third = installation.install(installed)
    assert [path for path in paths.install_root().iterdir() if path.is_dir()] == [third.home]


def test_installations_of_another_checkout_are_removed_after_a_month(
    installed: Profile, home: Path
) -> None:
    first = installation.find(installed)
    assert first is not None
    (installed.folder / "eeio-dummy.sh").write_text("#!/bin/sh\necho other\n")
    second = installation.install(profiles.load(installed.folder))
    assert first.home.is_dir() and second.home.is_dir()
    os.utime(first.home / ".in-use", (0, 0))
    (installed.folder / "eeio-dummy.sh").write_text("#!/bin/sh\necho third\n")
    third = installation.install(profiles.load(installed.folder))
    assert not first.home.exists() and second.home.is_dir() and third.home.is_dir()


def test_a_profile_named_by_a_relative_path_is_installed(
    profile: Profile, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    monkeypatch.setenv("EEIO_TEST_PROFILES", "profiles")
    assert installation.install(profiles.find("eeio-dummy-1.0.0")).executable.is_file()


def _run(home: Path, eeio: Eeio, script: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """A campaign of nine runs; in the fourth, `script` runs."""
    count = f'echo run >>{home}/count\n[ "$(wc -l <{home}/count)" != 4 ]'
    folder = dummy.profile(home, f"{count} || {script}")
    monkeypatch.setenv("EEIO_TEST_PROFILES", str(folder))
    done = eeio.run(
        "dummy-suite", "--meter", "none", "--repetitions", "3", "--name", "c", "--idle", "0",
        "--settle", "0", code=None,
    )  # fmt: skip
    (home / "said").write_text(done.stderr)
    return done.returncode


@pytest.mark.parametrize(
    ("script", "message"),
    [('rm "$0"', "has vanished"), ('echo "# edited" >>"$0"', "has changed")],
)
def test_a_program_that_vanishes_or_changes_stops_the_campaign(
    home: Path, eeio: Eeio, monkeypatch: pytest.MonkeyPatch, script: str, message: str
) -> None:
    assert _run(home, eeio, script, monkeypatch) == 1
    output = (home / "said").read_text()
    assert message in output and "eeio resume c" in output
    assert len(records(home)) == 3  # not the run in which it happened
    # The installation is damaged, so `resume` makes another of the same program.
    eeio("resume", "c")
    assert len(records(home)) == 9
    assert all(run["validity"] == [] for run in records(home))


def test_a_profile_that_was_edited_ends_no_campaign_that_runs_but_its_resumption(
    home: Path, eeio: Eeio, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = home / "profiles/eeio-dummy-1.0.0/eeio-dummy.sh"
    assert _run(home, eeio, f"echo '# edited' >>{script}", monkeypatch) == 0
    runs = home / "data/eeio/results/c/runs.jsonl"
    runs.write_text("".join(runs.read_text().splitlines(keepends=True)[:5]))
    assert "program of eeio-dummy-1.0.0 was sha256" in eeio("resume", "c", code=2).stderr
    script.write_text(script.read_text().replace("# edited\n", ""))
    eeio("resume", "c")
    assert len(records(home)) == 9


def test_resume_names_a_program_that_cannot_be_installed_any_more(
    installed: Profile, home: Path, in_process: InProcess
) -> None:
    arguments = ["run", "dummy-suite", "--directory", str(home / "target"), "--meter", "none",
             "--name", "c", "--idle", "0", "--settle", "0"]  # fmt: skip
    assert main(arguments) == 0
    runs = home / "data/eeio/results/c/runs.jsonl"
    runs.write_text(runs.read_text().partition("\n")[0] + "\n")
    (home / "tools/measure").unlink()
    assert "measure is missing" in in_process("resume", "c", code=2).err
    assert len(records(home)) == 1
    _program(home / "tools", "one")
    assert main(["resume", "c"]) == 0
    assert len(records(home)) == len({run["order_index"] for run in records(home)}) > 1
