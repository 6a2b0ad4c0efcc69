"""Profiles that list shared files: what a complete one is, and that it needs no checkout."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.profiles.conftest import is_present
from tests.profiles.harness import FOLDERS, copy_of, missing_files

from eeio.errors import RejectedError
from eeio.measure.profiles import complete, installation
from eeio.measure.profiles import profile as profiles
from eeio.measure.profiles.profile import Profile


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Profile]:
    """A profile with this list; `common` has a.sh, b.sh and part/c.sh."""
    common = tmp_path / "test-profiles/common"
    (common / "part").mkdir(parents=True)
    for name in ("a.sh", "b.sh", "part/c.sh"):
        (common / name).write_text(f"# shared {name}\n")
    monkeypatch.setattr(complete, "shipped", lambda _: tmp_path / "test-profiles")

    def make(listed: str) -> Profile:
        folder = tmp_path / "own/eeio-x-1.0.0"
        (folder / "data").mkdir(parents=True)
        for name in ("b.sh", "own.sh"):
            (folder / name).write_text(f"# own {name}\n")
        (folder / "common").write_text(listed)
        return Profile(folder, "x", "1.0.0", {})

    return make


def test_a_complete_profile_has_its_own_files_and_the_listed_ones(
    made: Callable[[str], Profile],
) -> None:
    profile = made("a.sh b.sh\npart/c.sh\n")
    with complete.folder_of(profile.folder) as folder:
        texts = {path.name: path.read_text() for path in folder.iterdir() if path.is_file()}
        assert folder.name == "eeio-x-1.0.0" and (folder / "data").is_dir()
    assert texts == {
        "a.sh": "# shared a.sh\n", "b.sh": "# own b.sh\n", "c.sh": "# shared part/c.sh\n",
        "own.sh": "# own own.sh\n",
    }  # fmt: skip
    assert not folder.exists()


def test_a_folder_without_a_list_is_complete(made: Callable[[str], Profile]) -> None:
    profile = made("")
    (profile.folder / "common").unlink()
    assert set(profile.files) == {"b.sh", "own.sh"}
    with complete.folder_of(profile.folder) as folder:
        assert folder == profile.folder.resolve()


@pytest.mark.parametrize(
    "name", ["nothing.sh", "../../own/eeio-x-1.0.0/own.sh", "/etc/passwd", "."]
)
def test_a_list_with_another_file_is_rejected(made: Callable[[str], Profile], name: str) -> None:
    with pytest.raises(RejectedError, match="common: no file "):
        _ = made(f"a.sh {name}").files


def test_the_hash_is_also_of_the_shared_files(
    made: Callable[[str], Profile], tmp_path: Path
) -> None:
    profile = made("a.sh")
    first = installation._of_profile(profile)
    shared = tmp_path / "test-profiles/common"
    (shared / "b.sh").write_text("# of other profiles\n")
    assert installation._of_profile(profile) == first
    (shared / "a.sh").write_text("# edited\n")
    assert installation._of_profile(profile) != first
    # A copy with all files in its folder is the same profile.
    copy = copy_of(profile.folder, tmp_path / "copy/eeio-x-1.0.0")
    assert installation._of_profile(Profile(copy, "x", "1.0.0", {})) == installation._of_profile(
        profile
    )


@pytest.mark.tools
@pytest.mark.fast_variants(6)
@pytest.mark.parametrize("source", FOLDERS, ids=lambda path: path.name)
def test_an_installed_profile_needs_no_checkout(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = profiles.load(source)
    if not is_present(profile.tool):
        pytest.skip(f"{profile.tool} is not installed")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    if profile.tool == "dlio":  # `eeio setup --ai` installs it into the checkout's environment
        monkeypatch.setenv("EEIO_DLIO", str(Path(sys.executable).parent / "dlio_benchmark"))
    home = installation.install(profile).home
    assert not any(path.is_symlink() for path in home.iterdir())
    assert missing_files(home) == []
    found = installation.find(profile)
    assert found is not None and found.home == home
    # One that PTS links and whose checkout is gone: a copy installs alike.
    copy = copy_of(source, tmp_path / "copy" / source.name)
    shutil.rmtree(tmp_path / "data")
    again = installation.install(profiles.load(copy))
    assert set(again.files) == set(found.files) or profile.tool == "ior"
