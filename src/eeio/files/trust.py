"""What no other user could replace: folders that eeio writes to, and files that root reads or runs.

test-profiles/common/trust.sh has the same rule for profiles that run without eeio
(docs/decisions/0058-files-of-others.md).
"""

import errno
import grp
import os
import pwd
import re
import shlex
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from io import FileIO
from pathlib import Path
from typing import Literal

from eeio.files.mounts import Mount, innermost, mount_in, parse_mountinfo

_Rule = Literal["strict", "usual", "lax"]
"""Who else may write in a folder: nobody; users of a sticky one, such as /tmp; also its group."""
_CONTAINER_MARKS = (Path("/run/.containerenv"), Path("/.dockerenv"))
_PROCESSES_OF_THE_MACHINE = "pid:[4026531836]"
"""The namespace that the kernel starts with has this number on every machine."""
_DEFAULT_LIST = "system.posix_acl_default"
"""Files and folders that are made in the folder inherit it, whatever the umask is."""
_ACCESS_LISTS = ("system.posix_acl_access", _DEFAULT_LIST)
_MOST_LINKS = 40
"""As the kernel follows."""
_MOUNTS = Path("/proc/self/mountinfo")
_UNMAPPED = 65534
_UNCHECKED = (
    ("fuse", "allow_other", "default_permissions", "default_permissions"),
    ("cifs", "noperm", "multiuser", "perm"),
    ("smb3", "noperm", "multiuser", "perm"),
)
"""Of mounts: the prefix of the file system; the option by which the kernel lets every user write,
whatever modes it shows; one with which somebody checks all the same; one to mount it again with."""
TEMPORARY = ("TMPDIR", "TEMP", "TMP")
"""Variables with the folder of temporary files; the first that is set counts."""
_KINDS = (stat.S_IFREG, stat.S_IFDIR, stat.S_IFSOCK)
"""What eeio makes in its folder; killed workers leave sockets, which no program opens as a file."""
_OF_SERVERS = ("eeio-mariadb.data/data", "eeio-postgresql.data/data")
"""Data of a database, which another user's server has made. Its profile only removes them."""
_ALL_USERS = b"4294967295"


@dataclass(frozen=True)
class Risk:
    """A path that another user could replace, and the command that repairs it."""

    path: Path
    problem: str
    repair: str

    @property
    def text(self) -> str:
        return f"{self.reason}. Repair: {_on_one_line(self.repair)}"

    @property
    def reason(self) -> str:
        """Without the repair, for a caller who knows a better one."""
        return _on_one_line(f"{self.path} {self.problem}")


def _on_one_line(text: str) -> str:
    """A line break in a name would begin a line of its own, with another repair."""
    return re.sub(r"[\x00-\x1f\x7f]", "?", text)


@dataclass(frozen=True)
class _Replaceable:
    kind: Literal["owned", "link", "writable"]
    path: Path
    status: os.stat_result

    @property
    def problem(self) -> str:
        if self.kind == "writable":
            return f"can be written by other users (mode {stat.S_IMODE(self.status.st_mode):o})"
        return f"is {'owned by' if self.kind == 'owned' else 'a link of'} user {self.status.st_uid}"

    @property
    def owner(self) -> str:
        """As an argument of sudo -u."""
        with suppress(KeyError):
            return pwd.getpwuid(self.status.st_uid).pw_name
        return f"'#{self.status.st_uid}'"


def _repair_by_new_folder(parent: str) -> str:
    """`parent` as an argument of a shell."""
    return f"mkdir -m 700 {parent}/eeio-files, and give it as the directory"


def _quoted(path: Path) -> str:
    return shlex.quote(str(path)).removesuffix("/")


def trusted_users() -> frozenset[int]:
    """Root, this user, and the user who became root through sudo."""
    me, sudo = os.geteuid(), os.environ.get("SUDO_UID", "")
    behind = {int(sudo)} if me == 0 and sudo.isdecimal() and len(sudo) < 10 else set[int]()
    return frozenset({0, me, *behind})


def why_untrusted(path: Path) -> str | None:
    """Why root must not read or run `path`: another user owns it, or a folder above it, or may
    write there. None for any user but root, and for a path that does not exist."""
    if os.geteuid() != 0:
        return None
    try:
        way = _way(path)
        users = _users_in(way[-1].parent, writes=False)
        if (risk := _risk_of_mounts(way, users)) is not None:
            return f"{risk.path} {risk.problem}"
        replaceable = _replaceable(way, users, "usual")
        if replaceable is None and way[-1].is_dir():
            # Whoever may add a file there adds a program or module.
            replaceable = _replaceable(way[-1:], users, "strict")
    except OSError as error:
        return f"{error.filename}: {error.strerror}"
    if replaceable:
        return f"{replaceable.path} {replaceable.problem}"
    return None


def trusted_search_path(path: str) -> tuple[str, list[str]]:
    """A PATH, as root without the folders in which another user could put a program; and why each
    is left out."""
    if os.geteuid() != 0:
        return path, []
    kept, reasons = [], []
    for folder in path.split(os.pathsep):
        if not folder.startswith("/"):
            reasons.append(f"{folder or '(empty)'} depends on the current folder")
        elif (reason := why_untrusted(Path(folder))) is not None:
            reasons.append(reason)
        else:
            kept.append(folder)
    return os.pathsep.join(kept), reasons


def risk_of_folder(directory: Path, *, must_exist: bool = False) -> Risk | None:
    """What another user could replace on the way to test files in `directory`. As root that is the
    folder and all above it; else the folder only. `must_exist`: also that it has just vanished."""
    try:
        way = _way(directory)
        physical = way[-1]
        users = _users_in(physical)
        is_root = os.geteuid() == 0
        risk = _risk_of_mounts(way if is_root else [physical], users)
        if risk is None and is_root:
            risk = _risk_of_default_list(physical)
        if risk is not None:
            return risk
        if is_root:
            replaceable = _replaceable(way, users, "usual", must_exist=must_exist)
        else:
            replaceable = _replaceable([physical], users, "lax", must_exist=must_exist)
    except OSError as error:
        path = Path(error.filename or directory)
        return Risk(path, f"cannot be checked: {error.strerror}", "check the path")
    if replaceable is None:
        return None
    if replaceable.kind == "writable" and os.geteuid() in (0, replaceable.status.st_uid):
        repair = f"chmod +t {_quoted(replaceable.path)}"
    elif os.geteuid() != 0:
        repair = _repair_by_new_folder("~")
    elif replaceable.kind == "owned" and replaceable.path == physical:
        repair = f"sudo -u {replaceable.owner} eeio ..."
    else:
        repair = _repair_by_new_folder(_quoted(replaceable.path.parent))
    return Risk(replaceable.path, replaceable.problem, repair)


def risk_of_device(node: Path) -> Risk | None:
    """What another user could replace so that the name leads to another device; only for root. Who
    owns the device itself is not checked: its group, such as `disk`, may write to it."""
    if os.geteuid() != 0:
        return None
    repair = "name the device itself, such as /dev/sdX; `lsblk` lists them"
    try:
        way = _way(node)
        physical = way[-1]
        above = [place for place in way if place != physical]
        users = _users_in(physical.parent, writes=False)
        if (risk := _risk_of_mounts(way, users)) is not None:
            return Risk(risk.path, risk.problem, repair)
        replaceable = _replaceable(above, users, "usual")
        if replaceable is None and physical.exists() and physical.stat().st_uid not in users:
            # In a sticky folder its owner may replace it.
            replaceable = _replaceable([physical.parent], users, "strict")
    except OSError as error:
        path = Path(error.filename or node)
        return Risk(path, f"cannot be checked: {error.strerror}", repair)
    if replaceable is None:
        return None
    return Risk(replaceable.path, replaceable.problem, repair)


def _risk_of_mounts(way: Iterable[Path], users: frozenset[int]) -> Risk | None:
    """Who mounted a FUSE file system decides which owners it shows, and where its links lead. In a
    mount without checks of permissions each user does."""
    mounts = _mounts()
    risks = {mount: risk for mount in mounts if (risk := _risk_of_mount(mount, users)) is not None}
    for place in way if risks else ():
        mounted = _mount_of(place, mounts)
        if mounted is not None and mounted in risks:
            return risks[mounted]
    return None


def _risk_of_mount(mount: Mount, users: frozenset[int]) -> Risk | None:
    point, options = mount.mount_point, mount.options.split(",")
    user = re.search(r"(?:^|,)user_id=(\d+)", mount.options)
    if mount.filesystem.startswith("fuse") and user is not None and int(user[1]) not in users:
        problem = f"is a FUSE file system of user {user[1]}"
        return Risk(point, problem, _repair_by_new_folder(_quoted(point.parent)))
    for filesystem, opening, checking, again in _UNCHECKED:
        is_open = opening in options and checking not in options
        if is_open and mount.filesystem.startswith(filesystem):
            problem = f"checks no permissions (mount option {opening})"
            return Risk(point, problem, f"mount it again with -o {again}")
    return None


def _risk_of_default_list(folder: Path) -> Risk | None:
    if _DEFAULT_LIST not in _attributes(folder):
        return None
    problem = "has a default access control list, which new files inherit"
    return Risk(folder, problem, f"setfacl -k {_quoted(folder)}")


def risk_of_scratch(scratch: Path) -> Risk | None:
    """What another user could replace of the folder of test files itself, or put in its place, and
    what eeio has not made in it. None if it does not exist."""
    try:
        status = scratch.lstat()
    except OSError:
        return None
    directory = scratch.parent
    # Before all others, whose repairs may delete: a mount leads to files of somebody else.
    if (risk := risk_of_mount_below(directory.resolve() / scratch.name)) is not None:
        return risk
    if os.geteuid() == 0 and _has_access_list(scratch):
        problem = "has an access control list"
        return Risk(scratch, problem, f"setfacl -bk {_quoted(directory)} {_quoted(scratch)}")
    users = _users_in(directory.resolve())
    replaceable = _replaceable([scratch], users, "strict")
    if replaceable is None and stat.S_ISDIR(status.st_mode):
        return _risk_of_contents(scratch, users)
    problem = "is not a folder (a link?), so it is not followed"
    if replaceable:
        problem = replaceable.problem
    repair = f"rm -r {_quoted(scratch)}"
    if replaceable and replaceable.kind != "writable":  # another user may be measuring there
        repair = _repair_by_new_folder(_quoted(directory))
    return Risk(scratch, problem, repair)


def risk_of_mount_below(folder: Path) -> Risk | None:
    """A bind mount of the same file system has the same device number: only its line shows it."""
    for mount in _mounts():
        point = mount.mount_point
        if point.is_relative_to(folder):
            return Risk(point, "is a mount point, so it is not used", f"umount {_quoted(point)}")
    return None


def _problem_of_entry(status: os.stat_result, users: frozenset[int]) -> str | None:
    """Why eeio cannot have made a file or folder; None if it can."""
    others = stat.S_IWOTH | (stat.S_IWGRP if os.geteuid() == 0 else 0)
    if stat.S_IFMT(status.st_mode) not in _KINDS:
        return "is neither a plain file nor a folder"
    if not stat.S_ISDIR(status.st_mode) and status.st_nlink > 1:
        return "is a file with another name (a hard link)"
    if status.st_uid not in users:
        return f"is owned by user {status.st_uid}"
    if status.st_mode & others:
        return f"can be written by other users (mode {stat.S_IMODE(status.st_mode):o})"
    return None


def _risk_of_contents(scratch: Path, users: frozenset[int]) -> Risk | None:
    """The first entry below the folder that eeio cannot have made: a drive that somebody else has
    formatted may have any, with root as its owner, and profiles write to names that they know."""
    folders = [scratch]
    while folders:
        try:
            entries = list(os.scandir(folders.pop()))
        except FileNotFoundError:
            continue
        for entry in entries:
            path = Path(entry.path)
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            is_folder = stat.S_ISDIR(status.st_mode)
            if is_folder and str(path.relative_to(scratch)) in _OF_SERVERS:
                continue
            problem = _problem_of_entry(status, users)
            if problem is not None:
                repair = f"rm -r {_quoted(scratch)}"
                return Risk(path, f"{problem}, so it is not used", repair)
            if is_folder:
                folders.append(path)
    return None


def _way(path: Path) -> list[Path]:
    """What the kernel passes on the way to `path`: folders, links, and the way to their targets.
    The last is the path without links. Raises OSError."""
    here = Path("/") if path.is_absolute() else Path.cwd()
    way = [*reversed(here.parents), here]
    rest = list(reversed(path.parts))
    links = 0
    while rest:
        name = rest.pop()
        if name == "..":
            here = here.parent
            continue
        place = here / name  # the root itself for /
        way.append(place)
        if not place.is_symlink():
            here = place
            continue
        links += 1
        if links > _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(place))
        rest.extend(reversed(place.readlink().parts))
    return [*way, here]


def _replaceable(
    places: Iterable[Path], users: frozenset[int], rule: _Rule, *, must_exist: bool = False
) -> _Replaceable | None:
    """The first that a user outside of `users` could replace. Raises OSError."""
    for place in places:
        try:
            status = place.lstat()
        except FileNotFoundError:
            if must_exist:
                raise
            continue
        is_link = stat.S_ISLNK(status.st_mode)
        if status.st_uid not in users:
            return _Replaceable("link" if is_link else "owned", place, status)
        if not is_link and _others_may_write(place, status, users, rule):
            return _Replaceable("writable", place, status)
    return None


def _others_may_write(
    path: Path, status: os.stat_result, users: frozenset[int], rule: _Rule
) -> bool:
    # In a folder such as /tmp only owners can replace their files.
    is_sticky = stat.S_ISDIR(status.st_mode) and bool(status.st_mode & stat.S_ISVTX)
    if is_sticky and rule != "strict":
        return False
    if status.st_mode & stat.S_IWOTH:
        return True
    if rule == "lax" or not status.st_mode & stat.S_IWGRP:
        return False
    # Many systems give each user a group of the same number, and let it write. With an access
    # control list these bits are of all whom it names.
    is_private = status.st_gid in (0, status.st_uid) and not _has_access_list(path)
    return not is_private or _has_other_members(status.st_gid, users)


def _has_access_list(path: Path) -> bool:
    return not _attributes(path).isdisjoint(_ACCESS_LISTS)


def _attributes(path: Path) -> frozenset[str]:
    """The names of the extended attributes of a file or folder, not of a link's target."""
    try:
        return frozenset(os.listxattr(path, follow_symlinks=False))
    except OSError:
        return frozenset()


def _has_other_members(group: int, users: frozenset[int]) -> bool:
    if group == 0 and _is_container():
        # Images run as any user of that group, whom who starts the container chooses.
        return False
    names = []
    with suppress(KeyError):
        names = grp.getgrgid(group).gr_mem
    accounts = pwd.getpwall()
    for name in names:  # a directory service may list none
        with suppress(KeyError):
            accounts.append(pwd.getpwnam(name))
    return any(
        account.pw_uid not in users and (account.pw_gid == group or account.pw_name in names)
        for account in accounts
    )


def _is_container() -> bool:
    """Such a file may be left on a machine that was made of an image; its processes are its own."""
    return (
        any(mark.exists() for mark in _CONTAINER_MARKS)
        and str(Path("/proc/self/ns/pid").readlink()) != _PROCESSES_OF_THE_MACHINE
    )


def _users_in(folder: Path, *, writes: bool = True) -> frozenset[int]:
    """Who may own what is on the way to files in a folder (without links). `writes`: eeio makes
    files there."""
    users = set(trusted_users())
    # Who has no number in this user namespace: the owner of what a rootless container mounts.
    if Path("/proc/self/uid_map").read_bytes().split()[2] != _ALL_USERS:
        users.add(_UNMAPPED)
    mount = _mount_of(folder, _mounts())
    if mount is not None and _is_container():
        # Who mounts a folder in a container has started it.
        users.add(mount.mount_point.stat().st_uid)
    is_nfs = mount is not None and mount.filesystem.startswith("nfs")
    if writes and os.geteuid() == 0 and is_nfs:
        users |= _owner_of_new_files(folder)
    return frozenset(users)


def _owner_of_new_files(folder: Path) -> set[int]:
    """With root_squash, an NFS server gives root's files to another user. Empty if no file can be
    made."""
    name = f".eeio-{os.getpid()}"
    try:
        descriptor = os.open(
            folder / name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600
        )
    except OSError:
        return set()
    try:
        return {os.fstat(descriptor).st_uid}
    finally:
        os.close(descriptor)
        with suppress(OSError):
            (folder / name).unlink()


def _mounts() -> Sequence[Mount]:
    return _parsed(_MOUNTS.read_bytes())


@lru_cache(maxsize=4)
def _parsed(mountinfo: bytes) -> tuple[Mount, ...]:
    """A command looks at the mounts dozens of times, and they seldom change meanwhile."""
    return tuple(parse_mountinfo(mountinfo))


def _mount_of(path: Path, mounts: Sequence[Mount]) -> Mount | None:
    """The mount of a path; None if no line tells, as in a chroot."""
    return mount_in(mounts, path) or innermost(mounts, path)


def make_folder(folder: Path, mode: int = 0o777) -> None:
    """Makes `folder` and those above it. Where root does that through sudo below a folder of the
    user behind it, they are the user's: with a strict umask they would be closed to their owner.
    PermissionError if another user makes one of them meanwhile, as everybody may in /tmp; and for
    root if another user could replace what exists, whatever was there when the caller checked."""
    missing = []
    place = folder
    while not place.exists():
        missing.append(place)
        place = place.parent
    if os.geteuid() == 0 and (risk := risk_of_folder(place, must_exist=True)) is not None:
        raise PermissionError(errno.EPERM, f"not used as root: {risk.text}", str(folder))
    if not missing:
        return
    flags = os.O_DIRECTORY | os.O_CLOEXEC
    above = os.open(place, flags | os.O_PATH)
    try:
        for new in reversed(missing):
            is_new = True
            try:
                os.mkdir(new.name, mode, dir_fd=above)
            except FileExistsError:
                is_new = False
            descriptor = os.open(new.name, flags | os.O_RDONLY | os.O_NOFOLLOW, dir_fd=above)
            os.close(above)
            above = descriptor
            owner = os.fstat(descriptor).st_uid
            if not is_new and owner not in _users_in(place.resolve()):
                raise PermissionError(errno.EPERM, f"user {owner} has just made it", str(new))
            hand_over(descriptor, place)
    finally:
        os.close(above)


def open_stream(path: Path) -> FileIO | None:
    """A pipe or character device, to write to it; None if it is neither. It is unbuffered. A link
    is followed only if a trusted user made it: that of another one in /tmp may lead to any device.
    Raises OSError; PermissionError for a pipe that another user made in /tmp, who may read it or
    let the program wait."""
    status = path.lstat()
    is_trusted = status.st_uid in trusted_users()
    if stat.S_ISFIFO(status.st_mode) and not is_trusted:
        raise PermissionError(errno.EPERM, f"a pipe of user {status.st_uid}", str(path))
    follow = 0 if stat.S_ISLNK(status.st_mode) and is_trusted else os.O_NOFOLLOW
    flags = os.O_WRONLY | os.O_APPEND | os.O_NOCTTY | os.O_CLOEXEC | follow
    file = FileIO(os.open(path, flags), "wb")
    mode = os.fstat(file.fileno()).st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode):
        return file
    file.close()
    return None


def hand_over(descriptor: int, folder: Path) -> None:
    """Gives a file that root made in `folder` through sudo to the user behind it, if the folder is
    that user's."""
    owner = folder.stat()
    if os.geteuid() == 0 and owner.st_uid != 0 and owner.st_uid in trusted_users():
        os.fchown(descriptor, owner.st_uid, owner.st_gid)
