"""Directories and programs that another user could change: one table for eeio's rule and for the
profiles', which also run without eeio."""

import ctypes
import json
import os
import shutil
import struct
import subprocess
import tempfile
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.mounts import mounted
from tests.processes import ran

from eeio.files import trust
from eeio.files.trust import (
    risk_of_folder,
    risk_of_scratch,
    trusted_search_path,
    why_untrusted,
)
from eeio.measure.campaign.safety import SCRATCH

COPIED = (
    "scratch.sh", "owners.sh", "trust.sh", "repairs.sh", "contents.sh", "programs.sh",
)  # fmt: skip
COMMON = Path(__file__).parents[2] / "test-profiles/common"
pytestmark = pytest.mark.root
_NEW_NAMESPACE, _NEW_USERS, NEW_PROCESSES = 0x20000, 0x10000000, 0x20000000
_LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Case:
    """A folder `top/dir` and what is in it; who runs eeio; the text of the rejection, in which B is
    the folder of the test and D the directory."""

    name: str
    text: str | tuple[str, str] | None
    """Of two: what eeio writes, and what a profile writes."""
    user: int = 0
    top: tuple[int, int, int] = (0, 0, 0o755)
    """Owner, group and mode."""
    directory: tuple[int, int, int] = (0, 0, 0o755)
    scratch: tuple[int, int, int] | None = None
    link_of: int | None = None
    """Who has put a link to `top/dir` into the sticky folder of the test."""
    scratch_link: bool = False
    more: tuple[tuple[int, str, str | None], ...] = ()
    """Owner and path in B of further folders and of links, which have a target."""
    named: str | None = None
    """The directory, if it is not D or the link."""
    open_folder: str | None = None
    """One of `more`, in which all may write."""
    group: str = ""
    account: str = ""
    """Lines of /etc/group and /etc/passwd."""
    list_of: int | None = None
    """A user to whom an access control list gives the same rights as D to its group."""
    inherited_of: int | None = None
    """A user whom a default access control list of D names."""
    scratch_list_of: int | None = None
    sudo: str | None = None
    inside: str = ""
    """A container, or a user namespace."""


NEW_IN_B, NEW_IN_D, NEW_AT_HOME = (
    f"mkdir -m 700 {parent}/eeio-files, and give it as the directory" for parent in ("B", "D", "~")
)
OF_USER = (71500, 71500, 0o755)
CASES = (
    Case("root's", None),
    Case("of another user", "D is owned by user 71500. Repair: sudo -u '#71500' eeio ...",
         directory=OF_USER),
    Case("below another user's", "B/top is owned by user 71500. Repair: " + NEW_IN_B,
         top=OF_USER),
    Case("of the user behind sudo", None, top=OF_USER, directory=OF_USER, sudo="71500"),
    Case("all may write", "D can be written by other users (mode 777). Repair: chmod +t D",
         directory=(0, 0, 0o777)),
    Case("sticky", None, directory=(0, 0, 0o1777)),
    Case("a group may write above",
         "B/top can be written by other users (mode 775). Repair: chmod +t B/top",
         top=(0, 100, 0o775)),
    Case("root's group may write", None, directory=(0, 0, 0o775)),
    Case("link of another user",
         "B/link is a link of user 71500. Repair: " + NEW_IN_B, link_of=71500),
    Case("link of root", None, link_of=0),
    Case("folder above the target of a link",
         "B/theirs is owned by user 71500. Repair: " + NEW_IN_B,
         more=((0, "theirs/x", None), (0, "theirs/dir", None), (71500, "theirs", None),
               (0, "link", "theirs/x")),
         named="B/link/../dir"),
    Case("folder of a link on the way", "B/theirs is owned by user 71500. Repair: " + NEW_IN_B,
         more=((71500, "theirs", None), (0, "theirs/next", "../top"), (0, "link", "theirs/next")),
         named="B/link/dir"),
    Case("link on the way", "B/next is a link of user 71500. Repair: " + NEW_IN_B,
         more=((71500, "next", "top"), (0, "link", "next")), named="B/link/dir"),
    Case("links of root", None, more=((0, "next", "top"), (0, "link", "B/next/../top")),
         named="B/link/./dir/"),
    Case("root's group has a member", "D can be written by other users (mode 775). "
         "Repair: chmod +t D", directory=(0, 0, 0o775), group="root:x:0:mallory",
         account="mallory:x:71500:71500::/:/bin/sh"),
    Case("root's group is the first of another user",
         "D can be written by other users (mode 775). Repair: chmod +t D",
         directory=(0, 0, 0o775), account="mallory:x:71500:0::/:/bin/sh"),
    Case("a group has only the user behind sudo", None, directory=(71500, 71500, 0o775),
         sudo="71500", group="mallory:x:71500:mallory",
         account="mallory:x:71500:71500::/:/bin/sh"),
    Case("an access control list gives rights",
         "D can be written by other users (mode 775). Repair: chmod +t D",
         directory=(0, 0, 0o775), list_of=71500),
    Case("an access control list gives no right to write", None, directory=(0, 0, 0o755),
         list_of=71500),
    Case("a default access control list",
         ("D has a default access control list, which new files inherit. Repair: setfacl -k D",
          f"D/{SCRATCH} has an access control list. Repair: setfacl -bk D D/{SCRATCH}"),
         inherited_of=71500),
    Case("scratch with an access control list",
         f"D/{SCRATCH} has an access control list. Repair: setfacl -bk D D/{SCRATCH}",
         scratch=(0, 0, 0o755), scratch_list_of=71500),
    Case("characters of a shell", "B/a 'b;?Repair: x is owned by user 71500. Repair: "
         "mkdir -m 700 B/eeio-files, and give it as the directory",
         more=((71500, "a 'b;\nRepair: x", None), (0, "a 'b;\nRepair: x/dir", None)),
         named="B/a 'b;\nRepair: x/dir"),
    Case("characters of a shell in a command",
         "B/a  'b?* can be written by other users (mode 777). Repair: chmod +t 'B/a  '\"'\"'b?*'",
         more=((0, "a  'b\n*", None),), named="B/a  'b\n*/", open_folder="a  'b\n*"),
    Case("scratch of another user",
         f"D/{SCRATCH} is owned by user 71500. Repair: " + NEW_IN_D,
         directory=(0, 0, 0o1777), scratch=OF_USER),
    Case("scratch that all may write",
         f"D/{SCRATCH} can be written by other users (mode 1777). Repair: rm -r D/{SCRATCH}",
         scratch=(0, 0, 0o1777)),
    Case("scratch of before", None, scratch=(0, 0, 0o755)),
    Case("scratch is a link",
         f"D/{SCRATCH} is not a folder (a link?), so it is not followed. Repair: rm -r D/{SCRATCH}",
         scratch_link=True),
    Case("a user's", None, user=71500, directory=OF_USER),
    Case("of another, as a user", "D is owned by user 71600. Repair: " + NEW_AT_HOME,
         user=71500, directory=(71600, 71600, 0o777)),
    Case("sticky, as a user", None, user=71500, directory=(0, 0, 0o1777)),
    Case("all may write, as a user",
         "D can be written by other users (mode 777). Repair: " + NEW_AT_HOME,
         user=71500, directory=(0, 0, 0o777)),
    Case("all may write in a user's own", "D can be written by other users (mode 777). Repair: "
         "chmod +t D", user=71500, directory=(71500, 71500, 0o777)),
    Case("in a project's folder", None, user=71500, top=(71600, 100, 0o775),
         directory=(71500, 100, 0o775)),
    Case("scratch of another, as a user",
         f"D/{SCRATCH} is owned by user 71600. Repair: " + NEW_IN_D,
         user=71500, directory=(0, 0, 0o1777), scratch=(71600, 71600, 0o755)),
    Case("scratch that a group may write, as a user",
         f"D/{SCRATCH} can be written by other users (mode 775). Repair: rm -r D/{SCRATCH}",
         user=71500, directory=OF_USER, scratch=(71500, 100, 0o775)),
    Case("a user's whom sudo made root before", None, user=71500, directory=OF_USER, sudo="71600"),
    Case("mounted folder of a host's user", None, directory=OF_USER, inside="container"),
    Case("root's group in a container has a member", None, directory=(0, 0, 0o775),
         group="root:x:0:mallory", account="mallory:x:71500:71500::/:/bin/sh", inside="container"),
    Case("the same outside", "D is owned by user 71500. Repair: sudo -u '#71500' eeio ...",
         directory=OF_USER, inside="mount"),
    Case("mounted folder of a host's user, as another", None, user=71600,
         directory=(71500, 0, 0o775), inside="container of group 0"),
    Case("unmapped owner", None, user=71500, directory=(0, 0, 0o1777), inside="users"),
    Case("mapped owner", None, user=71500, directory=OF_USER, inside="users"),
    Case("unmapped owner where all may write",
         "D can be written by other users (mode 777). Repair: chmod +t D",
         user=71500, directory=(0, 0, 0o777), inside="users"),
)  # fmt: skip


@pytest.fixture
def base() -> Iterator[Path]:
    """A folder that every user can pass, in /tmp: below a sticky one."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    folder.chmod(0o1777)
    for name in COPIED:
        shutil.copy(COMMON / name, folder / name)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_eeio_and_the_profiles_reject_the_same(base: Path, case: Case) -> None:
    named = directory = base / "top/dir"
    directory.mkdir(parents=True)
    for path, of in (
        (base / "top", case.top), (directory, case.directory), (directory / SCRATCH, case.scratch),
    ):  # fmt: skip
        if of is not None:
            path.mkdir(exist_ok=True)
            os.chown(path, of[0], of[1])
            path.chmod(of[2])
    if case.scratch_link:
        (base / "victim").mkdir()
        (directory / SCRATCH).symlink_to(base / "victim")
    if case.link_of is not None:
        named = base / "link"
        named.symlink_to(directory)
        os.chown(named, case.link_of, case.link_of, follow_symlinks=False)

    for owner, name, target in case.more:
        if target is None:
            (base / name).mkdir(parents=True, exist_ok=True)
            (base / name).chmod(0o777 if name == case.open_folder else 0o755)
        else:
            (base / name).symlink_to(target.replace("B/", f"{base}/"))
        os.chown(base / name, owner, owner, follow_symlinks=False)
    path = str(named) if case.named is None else case.named.replace("B/", f"{base}/")
    if case.list_of is not None:
        _add_access_list(directory, case.list_of)
    if case.inherited_of is not None:
        _add_access_list(directory, case.inherited_of, "system.posix_acl_default")
    if case.scratch_list_of is not None:
        _add_access_list(directory / SCRATCH, case.scratch_list_of)

    def both() -> list[str | None]:
        go_inside(case, directory)
        risk = risk_of_folder(Path(path)) or risk_of_scratch(Path(path) / SCRATCH)
        done = subprocess.run(
            ["sh", "-c", 'tool=eeio-x; . "$HOME/scratch.sh"; enter "$scratch"; touch file'],
            capture_output=True, text=True, cwd="/", check=False,
            env={**os.environ, "HOME": str(base), "EEIO_DIRECTORY": path},
        )  # fmt: skip
        assert done.stderr.count("\n") == (0 if done.returncode == 0 else 1), done.stderr
        return [risk.text if risk else None, done.stderr.removeprefix("eeio-x: ").strip() or None]

    texts = case.text if isinstance(case.text, tuple) else (case.text, case.text)
    wanted = [
        None if text is None else text.replace("D", str(directory)).replace("B/", f"{base}/")
        for text in texts
    ]
    inside = case.inside.startswith("container")
    assert in_child(both, namespace=NEW_PROCESSES if inside else 0) == wanted
    assert (directory / SCRATCH / "file").exists() == (case.text is None)


@dataclass(frozen=True)
class Planted:
    """What is made in `eeio-scratch`, by a shell, and the text of the rejection, in which S is that
    folder. `user` runs eeio."""

    name: str
    command: str
    text: str | None
    repair: str = "rm -r S"
    user: int = 0


KIND = "is neither a plain file nor a folder, so it is not used"
PLANTED = (
    Planted("link", "ln -s ../victim eeio-dataserver.0", f"S/eeio-dataserver.0 {KIND}"),
    Planted("link to a folder", "ln -s .. eeio-bonnie", f"S/eeio-bonnie {KIND}"),
    Planted("link below", "mkdir a; ln -s .. a/b", f"S/a/b {KIND}"),
    Planted("FIFO", "mkfifo 'a b'", f"S/a b {KIND}"),
    Planted("device node", "mknod a b 7 0", f"S/a {KIND}"),
    Planted("hard link", "ln ../victim a",
            "S/a is a file with another name (a hard link), so it is not used"),
    Planted("another user's", "touch a; chown 71500 a",
            "S/a is owned by user 71500, so it is not used"),
    Planted("another user's folder", "mkdir -p a/b; chown 71500 a/b",
            "S/a/b is owned by user 71500, so it is not used"),
    Planted("folder for all", "mkdir -m 1777 a",
            "S/a can be written by other users (mode 1777), so it is not used"),
    Planted("file for a group", "touch a; chmod 664 a",
            "S/a can be written by other users (mode 664), so it is not used"),
    Planted("file for all, as a user", "touch a; chmod 646 a",
            "S/a can be written by other users (mode 646), so it is not used", user=71500),
    Planted("file of a project's group", "touch a; chmod 664 a", None, user=71500),
    Planted("link, as a user", "ln -s ../victim a", f"S/a {KIND}", user=71500),
    Planted("mount", "mkdir a; mount -t tmpfs tmpfs a",
            "S/a is a mount point, so it is not used",
            "umount S/a"),
    Planted("mount of a folder of the same file system, whose files another user owns",
            "mkdir a ../of-user; touch ../of-user/file; chown -R 71500 ../of-user; "
            "mount --bind ../of-user a",
            "S/a is a mount point, so it is not used",
            "umount S/a"),
    Planted("mount of a file", "touch a; mount --bind ../victim a",
            "S/a is a mount point, so it is not used",
            "umount S/a"),
    Planted("mount with a blank in its name", "mkdir 'a b'; mount -t tmpfs tmpfs 'a b'",
            "S/a b is a mount point, so it is not used",
            "umount S/a b"),
    Planted("database of a killed run", "mkdir -p eeio-postgresql.data/data; "
            "ln -s .. eeio-postgresql.data/data/link; chown -R 71500 eeio-postgresql.data/data",
            None),
    Planted("database that is a link", "mkdir -p eeio-mariadb.data; ln -s / eeio-mariadb.data/data",
            f"S/eeio-mariadb.data/data {KIND}"),
    Planted("files of eeio", "mkdir -p a/b; touch a/b/c eeio-fio.0.0", None),
    Planted("socket of a killed worker", "mkdir eeio-dlio.tmp; cd eeio-dlio.tmp; "
            "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"s\")'", None),
)  # fmt: skip


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.name)
def test_eeio_and_the_profiles_use_no_planted_file(base: Path, planted: Planted) -> None:
    """A drive that somebody else has formatted: `eeio-scratch` is root's, and a link in it led to
    a file of the machine, which the run overwrote."""
    directory = base / "top dir"
    scratch = directory / SCRATCH
    scratch.mkdir(parents=True)
    (directory / "victim").touch()
    for path in (directory, scratch):
        os.chown(path, planted.user, planted.user)

    def both() -> list[str | None]:
        os.environ.pop("SUDO_UID", None)
        assert _LIBC.unshare(_NEW_NAMESPACE) == 0
        ran(["mount", "--make-rprivate", "/"])
        os.setresgid(planted.user, planted.user, planted.user)
        os.setresuid(planted.user, planted.user, planted.user)
        ran(["sh", "-c", planted.command], cwd=scratch)
        risk = risk_of_scratch(scratch)
        done = _entered(base, directory)
        return [risk.text if risk else None, done.stderr.removeprefix("eeio-x: ").strip() or None]

    wanted = None
    if planted.text is not None:
        repair = planted.repair.replace(" S", f" '{scratch}").strip() + "'"
        wanted = f"{planted.text.replace('S/', f'{scratch}/', 1)}. Repair: {repair}"
    assert in_child(both) == [wanted, wanted]


def test_a_tool_starts_in_a_folder_that_is_no_link(base: Path) -> None:
    """The wrapper looks at the folder again: it may be started without pre.sh."""
    directory = base / "top"
    (directory / SCRATCH).mkdir(parents=True)
    (directory / SCRATCH / "eeio-bonnie").symlink_to(base)
    done = ran(
        ["sh", "-c", 'tool=eeio-x; . "$HOME/scratch.sh"; prepared; cd eeio-bonnie; pwd -P'],
        env={**os.environ, "HOME": str(base), "EEIO_DIRECTORY": str(directory)}, code=2,
    )  # fmt: skip
    assert f"eeio-x: {directory}/{SCRATCH}/eeio-bonnie {KIND}. Repair: rm -r" in done.stderr


def go_inside(case: Case, directory: Path) -> None:
    """Into the namespaces of the case, as its user."""
    os.environ.pop("SUDO_UID", None)
    if case.sudo is not None:
        os.environ["SUDO_UID"] = case.sudo
    if case.inside == "mount" and trust._is_container():
        pytest.skip("this is a container")
    assert _LIBC.unshare(_NEW_NAMESPACE) == 0
    ran(["mount", "--make-rprivate", "/"])
    for file, line in (("passwd", case.account), ("group", case.group)):
        if not line:
            continue
        lines = Path("/etc", file).read_text().splitlines()
        others = [old for old in lines if old.split(":")[0] != line.split(":")[0]]
        changed = directory.parents[1] / file
        changed.write_text("\n".join([*others, line, ""]))
        ran(["mount", "--bind", str(changed), f"/etc/{file}"])
    if case.inside not in ("", "users"):
        ran(["mount", "--bind", str(directory), str(directory)])
        ran(["mount", "-t", "tmpfs", "tmpfs", "/run"])
        Path("/run/.containerenv").touch()
    group = 0 if case.inside.endswith("group 0") else case.user
    os.setgroups([])
    os.setresgid(group, group, group)
    os.setresuid(case.user, case.user, case.user)
    if case.inside == "users":
        _LIBC.prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE: else /proc/self belongs to root
        if _LIBC.unshare(_NEW_USERS):
            pytest.skip("users may make no user namespace here")
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {case.user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {case.user} 1")


def _add_access_list(folder: Path, user: int, attribute: str = "system.posix_acl_access") -> None:
    rights = folder.stat().st_mode >> 3 & 7
    entries = ((1, 7, -1), (2, rights, user), (4, 5, -1), (16, rights, -1), (32, 5, -1))
    content = struct.pack("<I", 2)
    for tag, right, of in entries:
        content += struct.pack("<HHi", tag, right, of)
    try:
        os.setxattr(folder, attribute, content)
    except OSError as error:
        pytest.skip(f"no access control lists in /tmp: {error}")


def in_child(call: Callable[[], list[str | None]], namespace: int = 0) -> list[str | None]:
    """The result of a call in a process of its own, and in a new namespace for its children."""
    reading, writing = os.pipe()
    if (pid := os.fork()) == 0:
        try:
            if namespace:
                assert _LIBC.unshare(namespace) == 0
                os.write(writing, json.dumps(in_child(call)).encode())
                os._exit(0)
            os.write(writing, json.dumps(call()).encode())
        except pytest.skip.Exception as skipped:
            os.write(writing, json.dumps(str(skipped)).encode())
        except BaseException:
            traceback.print_exc()
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        result = pipe.read()
    os.waitpid(pid, 0)
    found = json.loads(result)
    if isinstance(found, str):
        pytest.skip(found)
    return list(found)


def test_a_server_that_gives_root_s_files_to_another_user(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NFS with root_squash: its answers are made up, for no kernel of tests mounts one."""
    directory = base / "top/dir"
    directory.mkdir(parents=True)
    os.chown(directory, 65534, 65534)
    monkeypatch.delenv("SUDO_UID", raising=False)
    problem = f"{directory} is owned by user 65534."
    assert (risk_of_folder(directory) or pytest.fail()).text.startswith(problem)
    assert problem in _entered(base, directory).stderr
    (base / "bin").mkdir()
    (base / "bin/stat").write_text(
        "#!/bin/sh\ncase $* in -f*) echo nfs ;; *-L*) echo 65534 ;; "
        '*) exec /usr/bin/stat "$@" ;; esac\n'
    )
    (base / "bin/stat").chmod(0o755)
    monkeypatch.setenv("PATH", f"{base}/bin:{os.environ['PATH']}")
    mounts = base / "mountinfo"
    mounts.write_text(f"9 1 0:9 / {base} rw - nfs4 server:/ rw\n")
    monkeypatch.setattr(trust, "_MOUNTS", mounts)
    assert risk_of_folder(directory) is not None  # the files are root's
    monkeypatch.setattr(os, "fstat", lambda _: directory.stat())
    assert risk_of_folder(directory) is None
    assert _entered(base, directory).stderr == ""
    assert [path.name for path in directory.iterdir()] == [SCRATCH]
    monkeypatch.undo()


def _entered(base: Path, directory: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["sh", "-c", 'tool=eeio-x; . "$HOME/scratch.sh"; enter "$scratch"'],
        capture_output=True, text=True, check=False,
        env={**os.environ, "HOME": str(base), "EEIO_DIRECTORY": str(directory)},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("line", "user"),
    [
        (
            "9 1 0:9 / {base}/a\\040b rw shared:1 - fuse.x user_id=0 rw,user_id=71500,group_id=0",
            71500,
        ),
        ("9 1 0:9 / {base}/a\\040b rw - fuse.x x rw,user_id=71500,allow_other", 71500),
        ("9 1 0:9 / {base}/a\\040b rw - fuse.sshfs x rw,user_id=0,group_id=0", None),
        ("9 1 0:9 / {base}/a rw - fuse.x x rw,user_id=71500,group_id=0", None),
        ("9 1 0:9 / {base}/a\\040b rw - fuse.x\r x\ry rw,user_id=71500,group_id=0", 71500),
        ("9 1 0:9 / {base}/a\\040b rw - ext4 x rw,user_id=71500", None),
    ],
)
def test_a_fuse_file_system_of_another_user_is_rejected(
    base: Path, monkeypatch: pytest.MonkeyPatch, line: str, user: int | None
) -> None:
    monkeypatch.delenv("SUDO_UID", raising=False)
    directory = base / "a b/dir"
    directory.mkdir(parents=True)
    (base / "mountinfo").write_text(f"1 0 8:1 / / rw - ext4 x rw\n{line.format(base=base)}\n")
    monkeypatch.setattr(trust, "_MOUNTS", base / "mountinfo")
    done = ran(
        ["sh", "-c", '. "$0/owners.sh"; . "$0/trust.sh"; . "$0/repairs.sh"; '
         'problem=$(risk_of_mount " 0 " "$1" "$2"); '
         '[ -z "$problem" ] || explained "$1" "$problem"', base, directory, base / "mountinfo"]
    )  # fmt: skip
    risk = risk_of_folder(directory)
    assert done.stdout.strip() == (risk.text if risk else "")
    wanted = (
        f"{base}/a b is a FUSE file system of user {user}. "
        f"Repair: mkdir -m 700 {base}/eeio-files, and give it as the directory"
    )
    assert (risk.text if risk else None) == (wanted if user else None)


@pytest.mark.parametrize(
    ("options", "problem", "repair"),
    [
        ("fuse.x x rw,user_id=0,allow_other", "allow_other", "default_permissions"),
        ("fuse x rw,user_id=0,allow_other,blksize=4096", "allow_other", "default_permissions"),
        ("fuse.x x rw,user_id=0,default_permissions,allow_other", None, None),
        ("fuse.x x rw,user_id=0", None, None),
        ("cifs //a/b rw,noperm,vers=3.1.1", "noperm", "perm"),
        ("smb3 //a/b rw,noperm", "noperm", "perm"),
        ("cifs //a/b rw,noperm,multiuser", None, None),
        ("cifs //a/b rw,uid=0", None, None),
        ("ext4 /dev/sda1 rw,allow_other", None, None),
    ],
)
@pytest.mark.parametrize("user", [0, 71500])
def test_a_mount_without_checks_of_permissions_is_rejected(
    base: Path, monkeypatch: pytest.MonkeyPatch, options: str, problem: str | None,
    repair: str | None, user: int,
) -> None:  # fmt: skip
    """A folder that it shows as root's, of mode 755, can be written by every user."""
    monkeypatch.delenv("SUDO_UID", raising=False)
    directory = base / "a b/dir"
    directory.mkdir(parents=True)
    os.chown(directory, user, user)
    (base / "a b").chmod(0o755)
    (base / "mountinfo").write_text(
        f"1 0 8:1 / / rw - ext4 x rw\n9 1 0:9 / {base}/a\\040b rw - {options}\n"
    )
    monkeypatch.setattr(trust, "_MOUNTS", base / "mountinfo")

    def both() -> list[str | None]:
        os.setresuid(user, user, user)
        risk = risk_of_folder(directory)
        done = ran(
            ["sh", "-c", '. "$0/owners.sh"; . "$0/trust.sh"; . "$0/repairs.sh"; '
             'problem=$(risk_of_mount " 0 " "$1" "$2"); '
             '[ -z "$problem" ] || explained "$1" "$problem"',
             base, directory, base / "mountinfo"]
        )  # fmt: skip
        return [risk.text if risk else None, done.stdout.strip() or None]

    text = f"{base}/a b checks no permissions (mount option {problem}). Repair: mount it again with"
    assert in_child(both) == [None if problem is None else f"{text} -o {repair}"] * 2


def test_a_mount_is_known_whatever_its_name_is(base: Path) -> None:
    """A backslash is octal in mountinfo, and the mount counted as the one above it."""
    folder = base / "a\\b\tc"
    folder.mkdir()
    with mounted(Path("tmpfs"), folder / "d", "-t", "tmpfs") as point:
        mount = trust._mount_of(point, trust._mounts())
        line = ran(
            ["sh", "-c", '. "$0/owners.sh"; mount_of "$1" /proc/self/mountinfo', base, point]
        )
    assert mount is not None and (mount.mount_point, mount.filesystem) == (point, "tmpfs")
    assert line.stdout == f"- - {point}\n"


@pytest.mark.parametrize("named", ["fuse/folder", "link/folder"])
def test_root_reads_nothing_through_a_fuse_file_system_of_another_user(
    base: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    """It shows its files as root's, and its links lead where its user wants at that moment."""
    (base / "fuse/folder").mkdir(parents=True)
    (base / "link").symlink_to("fuse")
    (base / "mountinfo").write_text(
        f"1 0 8:1 / / rw - ext4 x rw\n9 1 0:9 / {base}/fuse rw - fuse.x x rw,user_id=71500\n"
    )
    monkeypatch.delenv("SUDO_UID", raising=False)
    base.chmod(0o755)
    monkeypatch.setattr(trust, "_MOUNTS", base / "mountinfo")
    problem = f"{base}/fuse is a FUSE file system of user 71500"
    assert why_untrusted(base / named) == problem
    assert trusted_search_path(f"{base / named}:/usr/bin") == ("/usr/bin", [problem])
    # A link inside leads to a folder that is none of it.
    (base / "fuse/out").symlink_to(base)
    assert (risk_of_folder(base / "fuse/out") or pytest.fail()).text.startswith(problem)
