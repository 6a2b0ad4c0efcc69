"""The lock of a disk lies where everybody may write."""

import os
from pathlib import Path

import pytest

from eeio.errors import RefusedError
from eeio.system.lock import TargetLock


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "locks").mkdir(mode=0o1777)
    monkeypatch.setenv("EEIO_LOCKS", str(tmp_path / "locks"))
    return tmp_path / "locks" / "eeio-sdx.lock"


def test_one_at_a_time(path: Path) -> None:
    for _ in range(2):
        with TargetLock("sdx"):
            assert path.read_text() == f"{os.getpid()}\n"
            with pytest.raises(RefusedError, match=f"process {os.getpid()}"), TargetLock("sdx"):
                pass
    assert path.stat().st_mode & 0o777 == 0o666


@pytest.mark.parametrize("content", ["", "123\n", "4194304"])
def test_a_lock_that_another_left_is_taken(path: Path, content: str) -> None:
    path.write_text(content)
    with TargetLock("sdx"):
        assert path.read_text() == f"{os.getpid()}\n"


@pytest.mark.root
def test_a_lock_that_another_user_made_is_taken(path: Path) -> None:
    path.write_text("123\n")
    os.chown(path, 12345, 12345)
    with TargetLock("sdx"):
        assert path.stat().st_uid == 12345


@pytest.mark.parametrize("kind", ["link", "dangling link", "hard link", "pipe", "folder", "text"])
def test_what_is_no_lock_is_left_as_it_is(path: Path, tmp_path: Path, kind: str) -> None:
    victim = tmp_path / "victim"
    victim.write_text("123\n")  # as the file of any daemon's number
    before = victim.read_text()
    if kind == "link":
        path.symlink_to(victim)
    elif kind == "dangling link":
        path.symlink_to(tmp_path / "new")
    elif kind == "hard link":
        path.hardlink_to(victim)
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.write_text("precious")
    with pytest.raises(RefusedError, match=r"eeio-sdx\.lock"), TargetLock("sdx"):
        pass
    assert victim.read_text() == before
    assert not (tmp_path / "new").exists()
    if kind == "text":
        assert path.read_text() == "precious"
