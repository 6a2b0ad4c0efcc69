"""Which files root may act on: those that no other user could have written."""

import os
import stat
from pathlib import Path


def trusted_users() -> frozenset[int]:
    """Root, and the user who became root through sudo."""
    sudo = os.environ.get("SUDO_UID", "")
    return frozenset({0, int(sudo)} if sudo.isdecimal() and len(sudo) < 10 else {0})


def why_untrusted(path: Path) -> str | None:
    """Why root must not read or run `path`: another user owns it, or a folder above it, or may
    write there. None for any user but root, and for a path that does not exist."""
    if os.geteuid() != 0:
        return None
    users = trusted_users()
    absolute = Path(os.path.abspath(path))  # noqa: PTH100 - a link's own folder counts, too
    for leaf in dict.fromkeys((absolute, absolute.resolve())):
        for place in (leaf, *leaf.parents):
            try:
                status = place.lstat()
            except FileNotFoundError:
                continue
            except OSError as error:
                return f"{place}: {error.strerror}"
            if stat.S_ISLNK(status.st_mode):
                if status.st_uid not in users:
                    return f"{place} is a link of user {status.st_uid}"
            elif status.st_uid not in users:
                return f"{place} is owned by user {status.st_uid}"
            elif _others_may_write(status, is_leaf=place == leaf):
                return f"{place} can be written by other users (mode {status.st_mode & 0o7777:o})"
    return None


def _others_may_write(status: os.stat_result, *, is_leaf: bool) -> bool:
    # In a folder such as /tmp only owners can replace their files.
    if stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX and not is_leaf:
        return False
    if status.st_mode & stat.S_IWOTH:
        return True
    # Many systems give each user a group of the same number, and let it write.
    return bool(status.st_mode & stat.S_IWGRP) and status.st_gid not in (0, status.st_uid)


def make_folder(folder: Path, mode: int = 0o777) -> None:
    """Makes `folder` and those above it. Where root does that through sudo below a folder of the
    user behind it, they are the user's: with a strict umask they would be closed to their owner."""
    missing = []
    place = folder
    while not place.exists():
        missing.append(place)
        place = place.parent
    owner = place.stat()
    for new in reversed(missing):
        new.mkdir(mode, exist_ok=True)
        if os.geteuid() == 0 and owner.st_uid != 0 and owner.st_uid in trusted_users():
            os.chown(new, owner.st_uid, owner.st_gid, follow_symlinks=False)
