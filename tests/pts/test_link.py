"""scripts/pts-link: what it makes, and that it takes away no more than that."""

import os
import shutil
from pathlib import Path

import pytest

from eeio.measure.profiles import complete
from tests.executables import executable
from tests.processes import ran
from tests.profiles.harness import FOLDERS, missing_files
from tests.pts.harness import ROOT

SCRIPT = ROOT / "scripts" / "pts-link"

# For root the script writes to /etc as PTS does; in a namespace where it may not, it takes the
# user's folders.
_USER = 'mount --bind /var/lib /var/lib && mount -o remount,ro,bind /var/lib || exit 77; exec "$@"'

pytestmark = pytest.mark.skipif(shutil.which("php") is None, reason="no php")


@pytest.fixture
def pts(tmp_path: Path) -> Path:
    """What the script takes for PTS."""
    folder = tmp_path / "pts"
    (folder / "pts-core").mkdir(parents=True)
    executable(folder / "phoronix-test-suite", "#!/bin/sh\n")
    return folder


def link(home: Path, pts: Path | None, *arguments: str, **more: str) -> tuple[int, str]:
    data = home / ".phoronix-test-suite"
    data.mkdir(parents=True, exist_ok=True)
    # No network for the tests: what would fetch PTS fails at once, unless a test says otherwise.
    path = f"{_programs(home, 'exit 1')}:{os.environ['PATH']}"
    environment = {
        "PATH": path,
        "PTS_USER_PATH_OVERRIDE": f"{data}/",
        "XDG_DATA_HOME": str(home / "data"),
        **more,
    }
    if pts is not None:
        environment["PTS_DIR"] = str(pts)
    wrapper = ["unshare", "-m", "sh", "-c", _USER, "sh"] if os.geteuid() == 0 else []
    done = ran([*wrapper, str(SCRIPT), *arguments], env=environment, code=None)
    if done.returncode == 77:
        pytest.skip("root without the right to make namespaces")
    return done.returncode, done.stdout + done.stderr


def _programs(home: Path, script: str) -> Path:
    """A folder with a curl and a wget that do what `script` says."""
    folder = home.parent / f"{home.name}-programs"
    folder.mkdir(exist_ok=True)
    for name in ("curl", "wget"):
        executable(folder / name, f"#!/bin/sh\n{script}\n")
    return folder


def tree(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_a_release_with_another_hash_is_rejected_and_not_kept(tmp_path: Path) -> None:
    if shutil.which("phoronix-test-suite"):
        pytest.skip("PTS is in PATH")
    forged = 'while [ "$1" != -o ]; do shift; done; echo forged >"$2"'
    folder = _programs(tmp_path / "forged", forged)
    code, output = link(tmp_path, None, PATH=f"{folder}:{os.environ['PATH']}")
    assert code == 1
    assert "wrong SHA-256" in output
    assert tree(tmp_path) == {".phoronix-test-suite", "forged-programs"} | {
        f"forged-programs/{name}" for name in ("curl", "wget")
    }


def test_it_links_everything_and_takes_it_away_again(tmp_path: Path, pts: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    for _ in range(2):
        assert link(home, pts)[0] == 0
        data = home / ".phoronix-test-suite"
        profiles = {path.name for path in (data / "test-profiles/local").iterdir()}
        definitions = (ROOT / "test-profiles").glob("*/test-definition.xml")
        assert profiles == {path.parent.name for path in definitions}
        for folder in FOLDERS:
            linked = data / "test-profiles/local" / folder.name
            targets = {path.name: path.resolve() for path in linked.iterdir()}
            assert targets == complete.files(folder)
            assert missing_files(linked) == []
        assert (data / "test-suites/local/eeio-suite/suite-definition.xml").is_file()
        module = (data / "modules/eeio_power.php").resolve()
        assert module == ROOT / "power-monitor/eeio_power.php"
        assert (module.parent / "pts_module/session.php").is_file()
        assert "TRUE</NoInternetCommunication>" in (data / "user-config.xml").read_text()
    assert link(home, None, "--remove")[0] == 0
    assert tree(home) == {".phoronix-test-suite"}


def test_a_file_in_the_place_of_a_link_stays(tmp_path: Path, pts: Path) -> None:
    """It is the user's; it was deleted with the links."""
    home = tmp_path / "home"
    home.mkdir()
    assert link(home, pts)[0] == 0
    own = home / ".phoronix-test-suite/test-profiles/local/eeio-fio-1.0.0/presets.conf"
    own.unlink()
    own.write_text("mine")
    code, output = link(home, None, "--remove")
    assert code == 0 and f"{own} stays: it is not the link that was made" in output
    assert own.read_text() == "mine"


def test_links_of_before_and_of_removed_files_are_replaced(tmp_path: Path, pts: Path) -> None:
    place = tmp_path / ".phoronix-test-suite/test-profiles/local"
    place.mkdir(parents=True)
    # Before there were shared files, the folder itself was a link.
    (place / "eeio-fio-1.0.0").symlink_to(ROOT / "test-profiles/eeio-fio-1.0.0")
    assert link(tmp_path, pts)[0] == 0
    assert not (place / "eeio-fio-1.0.0").is_symlink()
    assert (place / "eeio-fio-1.0.0/checks.sh").is_file()
    (place / "eeio-fio-1.0.0/gone.sh").symlink_to(ROOT / "test-profiles/eeio-fio-1.0.0/gone.sh")
    assert link(tmp_path, pts)[0] == 0
    assert not (place / "eeio-fio-1.0.0/gone.sh").is_symlink()


def test_a_profile_of_the_users_own_is_linked(tmp_path: Path, pts: Path) -> None:
    own = tmp_path / "own/eeio-mine-1.0.0"
    own.mkdir(parents=True)
    (own / "test-definition.xml").write_text("<x/>")
    (own / "common").write_text("factors.sh interim.sh\n")
    assert link(tmp_path, pts, str(own))[0] == 0
    linked = tmp_path / ".phoronix-test-suite/test-profiles/local/eeio-mine-1.0.0"
    assert {path.name for path in linked.iterdir()} == {
        "test-definition.xml", "factors.sh", "factors.awk", "checks.sh", "scratch.sh", "owners.sh",
        "trust.sh", "repairs.sh", "contents.sh", "interim.sh",
    }  # fmt: skip
    assert link(tmp_path, None, "--remove")[0] == 0
    assert not linked.exists() and own.is_dir()


def test_what_was_there_stays(tmp_path: Path, pts: Path) -> None:
    data = tmp_path / "data"
    (data / "modules").mkdir(parents=True)
    (data / "user-config.xml").write_text("mine")
    (data / "modules" / "other.php").write_text("mine")
    before = tree(data)
    override = {"PTS_USER_PATH_OVERRIDE": f"{data}/"}
    code, output = link(tmp_path, pts, **override)
    assert code == 0
    assert "stays as it is" in output
    assert (data / "user-config.xml").read_text() == "mine"
    assert link(tmp_path, pts, "--remove", **override)[0] == 0
    assert tree(data) == before
    assert link(tmp_path, pts, "--remove", **override)[0] == 0


def test_a_name_that_is_taken_is_rejected(tmp_path: Path, pts: Path) -> None:
    taken = tmp_path / ".phoronix-test-suite/test-suites/local/eeio-suite"
    taken.mkdir(parents=True)
    code, output = link(tmp_path, pts)
    assert code == 1
    assert str(taken) in output


@pytest.mark.parametrize(
    ("arguments", "more", "message"),
    [
        ((), {"PTS_DIR": "/nowhere"}, "PTS_DIR=/nowhere"),
        ((), {}, "was not found"),
        ((), {"PTS_USER_PATH_OVERRIDE": "/nowhere"}, "PTS_USER_PATH_OVERRIDE=/nowhere"),
        (("--dance",), {}, "usage"),
    ],
)
def test_what_is_wrong_is_reported_in_a_line(
    tmp_path: Path, arguments: tuple[str, ...], more: dict[str, str], message: str
) -> None:
    if "was not found" in message and shutil.which("phoronix-test-suite"):
        pytest.skip("PTS is in PATH")
    code, output = link(tmp_path, None, *arguments, **more)
    assert code != 0
    assert message in output
    assert tree(tmp_path) == {".phoronix-test-suite"}
