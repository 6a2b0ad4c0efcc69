"""Directories and programs that another user could change: one table for eeio's rule and for the
profiles', which also run without eeio."""

import ctypes
import json
import os
import shutil
import stat
import struct
import subprocess
import tempfile
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests import dummy
from tests.executables import executable
from tests.mounts import mounted
from tests.plugin import InProcess
from tests.processes import ran
from tests.profiles.harness import copy_of

from eeio import paths
from eeio.cli import main
from eeio.errors import EeioError, RejectedError
from eeio.files import trust
from eeio.files.trust import (
    make_folder,
    risk_of_folder,
    risk_of_scratch,
    trusted_search_path,
    why_untrusted,
)
from eeio.machine import caches, undo
from eeio.machine.undo import UndoEntry
from eeio.measure import doctor as examination
from eeio.measure.campaign.safety import SCRATCH, checked_folder, with_nodes
from eeio.measure.profiles import complete
from eeio.measure.profiles.suite import Optional
from eeio.record.design import Options

COPIED = (
    "scratch.sh", "owners.sh", "trust.sh", "repairs.sh", "contents.sh", "programs.sh",
)  # fmt: skip
COMMON = Path(__file__).parents[2] / "test-profiles/common"
pytestmark = pytest.mark.root
_NEW_NAMESPACE, _NEW_USERS, _NEW_PROCESSES = 0x20000, 0x10000000, 0x20000000
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
        _go_inside(case, directory)
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
    assert _in_child(both, namespace=_NEW_PROCESSES if inside else 0) == wanted
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
    assert _in_child(both) == [wanted, wanted]


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


def _go_inside(case: Case, directory: Path) -> None:
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


def _in_child(call: Callable[[], list[str | None]], namespace: int = 0) -> list[str | None]:
    """The result of a call in a process of its own, and in a new namespace for its children."""
    reading, writing = os.pipe()
    if (pid := os.fork()) == 0:
        try:
            if namespace:
                assert _LIBC.unshare(namespace) == 0
                os.write(writing, json.dumps(_in_child(call)).encode())
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
    assert _in_child(both) == [None if problem is None else f"{text} -o {repair}"] * 2


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


def test_the_directory_of_a_campaign_is_the_one_that_was_checked(base: Path) -> None:
    (base / "real").mkdir()
    (base / "link").symlink_to("real")
    assert checked_folder(base / "link/../link") == base / "real"
    os.chown(base / "link", 71500, 71500, follow_symlinks=False)
    with pytest.raises(RejectedError, match="link is a link of user 71500"):
        checked_folder(base / "link")


def test_root_runs_no_program_of_another_user(
    base: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("SUDO_UID", raising=False)
    theirs, ours, shared = base / "theirs", base / "ours", base / "shared"
    for folder in (theirs, ours, shared):
        folder.mkdir()
        folder.chmod(0o755)
    shared.chmod(0o1777)
    os.chown(theirs, 71500, 71500)
    searched = f"{theirs}:.::{ours}:{shared}:/usr/bin:/bin"
    monkeypatch.setenv("PATH", searched)
    assert main(["completion", "bash"]) == 0
    assert os.environ["PATH"] == searched, "it is that of the command only"
    assert trusted_search_path(searched)[0] == f"{ours}:/usr/bin:/bin"
    said = capsys.readouterr().err.splitlines()
    assert said == [
        f"eeio: PATH: not searched as root: {theirs} is owned by user 71500",
        "eeio: PATH: not searched as root: . depends on the current folder",
        "eeio: PATH: not searched as root: (empty) depends on the current folder",
        f"eeio: PATH: not searched as root: {shared} can be written by other users (mode 1777)",
    ]
    monkeypatch.setenv("PATH", searched)
    for folder in (theirs, shared):
        for name in ("id", "stat", "sed", "awk", "readlink", "getent", "ls"):
            executable(folder / name, f"#!/bin/sh\ntouch {base}/ran\n")
    shutil.copy(COMMON / "post.sh", base / "post.sh")
    (base / "tool.conf").write_text("name=eeio-x\n")
    done = ran(["sh", base / "post.sh"], env={**os.environ, "HOME": str(base)})
    assert done.stderr == "" and not (base / "ran").exists()
    command = '. "$HOME/scratch.sh"; echo "$PATH"'
    done = ran(["sh", "-c", command], env={**os.environ, "HOME": str(base)})
    assert done.stdout == f"{ours}:/usr/bin:/bin\n"


@pytest.mark.parametrize("call", ["make_output", "prepared"])
def test_results_and_cleaning_follow_no_link_of_another_user(base: Path, call: str) -> None:
    shutil.copy(COMMON / "checks.sh", base / "checks.sh")
    (base / "ours" / SCRATCH).mkdir(parents=True)
    (base / "link").symlink_to(base / "ours")
    os.chown(base / "link", 71500, 71500, follow_symlinks=False)
    environment = {
        **os.environ, "HOME": str(base), "EEIO_DIRECTORY": f"{base}/link",
        "EEIO_OUTPUT_DIR": f"{base}/link/new/output",
    }  # fmt: skip
    environment.pop("SUDO_UID", None)
    done = subprocess.run(
        ["sh", "-c", f'tool=eeio-x; . "$HOME/checks.sh"; {call}; touch file'],
        capture_output=True, text=True, cwd=base, env=environment, check=False,
    )  # fmt: skip
    assert done.returncode == 2 and not (base / "ours/new").exists()
    assert done.stderr.startswith(f"eeio-x: {base}/link is a link of user 71500. Repair: ")
    (base / "link").unlink()
    (base / "link").mkdir()
    (base / "link" / SCRATCH).mkdir()
    ran(["sh", "-c", f'tool=eeio-x; . "$HOME/checks.sh"; {call}'], env=environment)


@pytest.mark.parametrize("owned", ["program", "folder", "link"])
def test_an_installation_takes_no_program_of_another_user(base: Path, owned: str) -> None:
    """Under PTS, too; and it is not run to ask for its version."""
    programs, home = base / "programs", base / "home"
    programs.mkdir()
    programs.chmod(0o755)
    program = executable(programs / "fio", f"#!/bin/sh\ntouch {base}/ran\necho fio-3.36\n")
    home.mkdir()
    found = program
    if owned == "link":
        (base / "links").mkdir()
        found = base / "links/fio"
        found.symlink_to(program)
        program.chmod(0o777)
    os.chown(programs if owned == "folder" else program, 71500 * (owned != "link"), 0)
    profile = copy_of(COMMON.parent / "eeio-fio-1.0.0", base / "profile")
    environment = {
        **os.environ, "HOME": str(home), "PATH": f"{found.parent}:/usr/bin:/bin",
    }  # fmt: skip
    environment.pop("SUDO_UID", None)
    done = subprocess.run(
        ["bash", str(profile / "install.sh")], env=environment, cwd=home, check=False,
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1 and not (base / "ran").exists()
    assert done.stderr.startswith(f"eeio-fio: {found} is not run as root: ")
    assert done.stderr.endswith(
        "Repair: install the package of fio, and remove this one from PATH\n"
    )


@pytest.mark.parametrize("inside", ["", "container"])
def test_a_mounted_program_in_a_container_is_of_who_started_it(base: Path, inside: str) -> None:
    """A checkout that a CI system mounts belongs to a user of the host."""
    checkout = base / "checkout"
    checkout.mkdir()
    program = executable(checkout / "ior", "#!/bin/sh\n")
    for path in (checkout, program):
        path.chmod(0o755)
        os.chown(path, 71500, 71500)
    case = Case("", None, inside=inside)

    def both() -> list[str | None]:
        _go_inside(case, checkout)
        done = subprocess.run(
            ["sh", "-c", 'profile=$0; finish() { echo "$2"; exit 1; }; . "$0/programs.sh"; '
             'find_program "$1"', base, program],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        return [why_untrusted(program), done.stdout.strip() or None]

    python, shell = _in_child(both, namespace=_NEW_PROCESSES if inside else 0)
    if inside:
        assert (python, shell) == (None, None)
    else:
        assert python == f"{checkout} is owned by user 71500"
        assert shell == (
            f"{program} is not run as root: {python}. "
            "Repair: install the package of ior, and remove this one from PATH"
        )


def _outputs() -> list[tuple[str, list[str]]]:
    """File, and the command that writes it."""
    data = Path(__file__).parents[1] / "data"
    sides = ["--traditional", f"{data}/campaigns/server", "--low-power", f"{data}/campaigns/board"]
    replay = [str(next(data.glob("bpftrace/*/*.txt")))]
    return [
        ("map.html", ["cost", *sides, "--workload", f"{data}/mix.yaml", "--map", "map.html"]),
        ("replay.csv", ["record", "trace", "--read", *replay, "--replay", "replay.csv"]),
        ("phases.json", ["record", "trace", "--read", *replay, "-o", "."]),
        ("composite.xml", ["export", "pts", f"{data}/campaigns/quick-before", "-o", "."]),
    ]  # fmt: skip


@pytest.mark.parametrize(("name", "command"), _outputs())
def test_no_output_is_written_through_a_link(
    base: Path, monkeypatch: pytest.MonkeyPatch, name: str, command: list[str]
) -> None:
    """A link in a shared folder named a file that did not exist, and that file was written."""
    folder = base / "shared"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / name).symlink_to(base / "victim")
    assert main(command) == 0
    assert not (base / "victim").exists()
    assert (folder / name).is_file() and not (folder / name).is_symlink()


@pytest.mark.parametrize("results", ["", "results"])
def test_root_writes_no_results_into_a_folder_of_another_user(
    base: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], results: str
) -> None:
    """XDG_DATA_HOME stays in `su` without `-`: a campaign was written through that user's link."""
    data = base / "data/eeio"
    data.mkdir(parents=True)
    (base / "victim").mkdir()
    if results:
        (data / results).symlink_to(base / "victim")
    for path in (base / "data", data):
        os.chown(path, 71500, 71500)
    monkeypatch.setenv("XDG_DATA_HOME", str(base / "data"))
    arguments = ["bench", "--meter", "none", "--name", "c", "true"]
    assert main(arguments) == 2
    text = capsys.readouterr().err
    assert "no results are written there as root: " in text
    repair = "Repair: sudo -H eeio ..., or set XDG_DATA_HOME to a folder of root"
    assert text.endswith(f" is owned by user 71500. {repair}\n")
    assert "...." not in text
    assert not list((base / "victim").iterdir()) and not (data / "results/c").exists()


@pytest.mark.parametrize("linked", ["scaling_max_freq", "scaling_governor"])
def test_root_sets_no_frequency_through_a_link_of_another_user(
    base: Path, capsys: pytest.CaptureFixture[str], linked: str
) -> None:
    """`--sysfs-root` with the tree of another user."""
    policy = base / "fs/sys/devices/system/cpu/cpufreq/policy0"
    policy.mkdir(parents=True)
    for name, text in {
        "scaling_driver": "acpi-cpufreq", "scaling_available_governors": "userspace",
        "scaling_governor": "userspace", "scaling_setspeed": "2000000", "affected_cpus": "0",
        "scaling_min_freq": "800000", "scaling_max_freq": "2000000",
        "cpuinfo_min_freq": "800000", "cpuinfo_max_freq": "2000000",
    }.items():  # fmt: skip
        (policy / name).write_text(f"{text}\n")
    victim = base / "victim"
    victim.write_text((policy / linked).read_text())
    before = victim.stat().st_mtime_ns
    (policy / linked).unlink()
    (policy / linked).symlink_to(victim)
    os.chown(policy / linked, 71500, 71500, follow_symlinks=False)
    arguments = ["record", "frequency", "--sysfs-root", str(base / "fs"), "--set", "lowest"]
    assert main([*arguments, "--", "true"]) != 0
    text = capsys.readouterr().err
    assert f"not written as root: {policy / linked} is a link of user 71500. Repair: `mkdir" in text
    assert victim.stat().st_mtime_ns == before
    with pytest.raises(EeioError, match="not written as root"):
        undo._restore_setting(UndoEntry("setting", str(policy / linked), "1"))
    assert victim.stat().st_mtime_ns == before
    os.chown(policy / linked, 0, 0, follow_symlinks=False)
    assert main([*arguments, "--", "true"]) == 0


def test_root_writes_no_results_into_a_folder_that_another_user_makes_after_the_check(
    base: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(base / "data"))
    monkeypatch.delenv("SUDO_UID", raising=False)
    new_campaign_folder = paths.new_campaign_folder

    def then_made(name: str) -> Path:
        folder = new_campaign_folder(name)
        (base / "data").mkdir(0o755)
        os.chown(base / "data", 71500, 71500)
        return folder

    monkeypatch.setattr(paths, "new_campaign_folder", then_made)
    arguments = ["bench", "--meter", "none", "--name", "c", "--directory", str(base), "true"]
    base.chmod(0o755)
    assert main(arguments) == 1
    assert f"as root: {base}/data is owned by user 71500" in capsys.readouterr().err
    assert not (base / "data/eeio/results/c").exists()


@pytest.mark.parametrize("is_link", [False, True])
def test_a_folder_that_another_user_makes_at_that_moment_is_not_used(
    base: Path, monkeypatch: pytest.MonkeyPatch, is_link: bool
) -> None:
    """Everybody may make a folder in /tmp, also between the check of /tmp and the new folder."""
    monkeypatch.delenv("SUDO_UID", raising=False)
    (base / "theirs").mkdir()
    os.chown(base / "theirs", 71500, 71500)
    mkdir = os.mkdir

    def made_by_another(name: str, mode: int, *, dir_fd: int) -> None:
        if is_link:
            os.symlink(base / "theirs", name, dir_fd=dir_fd)
        else:
            mkdir(name, dir_fd=dir_fd)
            os.chown(name, 71500, 71500, dir_fd=dir_fd)
        mkdir(name, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "mkdir", made_by_another)
    with pytest.raises(OSError, match=r"user 71500 has just made it|Not a directory"):
        make_folder(base / "data/eeio/results")
    monkeypatch.undo()
    assert list((base / "theirs").iterdir()) == []
    assert not (base / "data/eeio").exists()


def test_a_folder_that_another_process_of_ours_makes_at_that_moment_is_used(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mkdir = os.mkdir

    def made_before(name: str, mode: int, *, dir_fd: int) -> None:
        mkdir(name, mode, dir_fd=dir_fd)
        mkdir(name, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "mkdir", made_before)
    make_folder(base / "data/eeio", 0o700)
    assert (base / "data/eeio").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("theirs", ["link", "folder", "node", "nothing"])
def test_root_uses_no_device_by_a_name_that_another_user_can_lead_elsewhere(
    base: Path, monkeypatch: pytest.MonkeyPatch, theirs: str
) -> None:
    """That user changed the link during a campaign, and the other device was erased."""
    monkeypatch.delenv("SUDO_UID", raising=False)
    folder = base / "folder"
    folder.mkdir(0o755)
    node = folder / "node"
    os.mknod(node, 0o660 | stat.S_IFBLK, os.makedev(7, 7))
    os.chown(node, 71500, 71500)  # as databases have it
    name = folder / "name"
    name.symlink_to(node)
    reason = None
    if theirs == "link":
        os.chown(name, 71500, 71500, follow_symlinks=False)
        reason = f"{name} is a link of user 71500"
    elif theirs == "folder":
        os.chown(folder, 71500, 71500)
        reason = f"{folder} is owned by user 71500"
    elif theirs == "node":
        folder.chmod(0o1777)
        reason = f"{folder} can be written by other users"
    options = Options(preset="quick", device=str(name), seed=1, erase=str(name))
    if reason is None:
        made = with_nodes(options)
        assert (made.device, made.erase) == (str(node), str(node))
    else:
        with pytest.raises(RejectedError, match=f"{reason}.*Repair: name the device itself"):
            with_nodes(options)


@pytest.mark.parametrize("theirs", ["folder", "file", "file below", "link"])
@pytest.mark.parametrize("kind", ["test-profiles", "suites"])
def test_root_uses_no_profile_and_no_suite_of_another_user(
    home: Path, monkeypatch: pytest.MonkeyPatch, in_process: InProcess, theirs: str, kind: str
) -> None:
    """`plan` with --sweep reads the profile's factors.conf, and runs the program that a suite
    names."""
    monkeypatch.delenv("SUDO_UID", raising=False)
    profiles = dummy.profile(home, "")
    suite = Path(dummy.suite(home, "level=application processes=1"))
    executable(home / "ran.sh", f"#!/bin/sh\ntouch {home}/ran\n")
    if kind == "suites":
        folder = suite
        with (suite / "protocol.yaml").open("a") as file:
            file.write(
                f"optional:\n- command: {home}/ran.sh\n  help: x\n  otherwise: x\n"
                "  experiments:\n  - {profile: eeio-dummy-1.0.0, factors: {}, description: x}\n"
            )
    else:
        folder = profiles / "eeio-dummy-1.0.0"
        (folder / "factors.conf").write_text(
            "level words application | level\nprocesses number 1..2 | processes\n"
            "sleep_s text any | pause\n"
        )
    (folder / "below").mkdir()
    (folder / "below/file").write_text("")
    changed = {"folder": folder, "file below": folder / "below/file"}.get(theirs)
    if theirs == "file":
        changed = folder / ("factors.conf" if kind == "test-profiles" else "protocol.yaml")
    elif theirs == "link":
        folder.rename(home / "elsewhere")
        folder.symlink_to(home / "elsewhere")
        changed = folder
    assert changed is not None
    monkeypatch.setenv("EEIO_TEST_PROFILES", str(profiles))
    command = ["plan", str(suite), "--directory", str(home / "target"), "--sweep", "processes=1,2"]
    in_process(*command)
    assert (home / "ran").exists() == (kind == "suites")
    (home / "ran").unlink(missing_ok=True)
    os.chown(changed, 71500, 71500, follow_symlinks=False)
    what = f"{changed} is {'a link of' if theirs == 'link' else 'owned by'} user 71500"
    assert f"{folder}: not used as root: {what}. Repair: cp -r " in in_process(*command, code=2).err
    assert not (home / "ran").exists()


def test_root_asks_no_program_of_another_user_for_its_options(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SUDO_UID", raising=False)
    program = executable(base / "ior", f"#!/bin/sh\ntouch {base}/ran\necho HDF5\n")
    monkeypatch.setenv("EEIO_IOR", str(program))
    optional = Optional("ior", "EEIO_IOR", "", (), "HDF5")
    base.chmod(0o755)
    assert optional.is_found() and (base / "ran").exists()
    (base / "ran").unlink()
    os.chown(program, 71500, 71500)
    reason = f"{program} is not run as root: {program} is owned by user 71500. Repair: set EEIO_IOR"
    with pytest.raises(RejectedError, match=reason):
        optional.is_found()
    assert not (base / "ran").exists()


@pytest.mark.parametrize(
    ("profile", "variable", "script"),
    [
        ("btio", "EEIO_MPIRUN", "eeio-btio.sh class=S processes=4"),
        ("btio", "EEIO_NPB", "eeio-btio.sh class=S processes=4"),
        ("btio", "EEIO_HOSTFILE", "eeio-btio.sh class=S processes=4"),
        ("io500", "EEIO_IO500_INI", "pre.sh"),
        ("io500", "EEIO_DROP_CACHES", "pre.sh"),
    ],
)
@pytest.mark.parametrize("link", [False, True])
def test_a_run_uses_no_file_of_another_user_that_a_variable_names(
    base: Path, profile: str, variable: str, script: str, link: bool
) -> None:
    """Some of them were checked only when the profile was installed."""
    base.chmod(0o755)
    home = copy_of(COMMON.parent / f"eeio-{profile}-1.0.0", base / "home")
    (base / "data/eeio-scratch").mkdir(parents=True)
    ran = base / "ran"
    mpirun = executable(base / "mpirun", f'#!/bin/sh\n[ "$1" = --version ] || touch {ran}\n')
    executable(base / "bt.S.4.mpi_io_full", "#!/bin/sh\n")
    executable(base / "io500", "#!/bin/sh\n")
    (home / "tool.conf").write_text(f"name=eeio-{profile}\npath={base}/io500\n")
    named = {
        "EEIO_MPIRUN": mpirun, "EEIO_NPB": base / "bt.S.4.mpi_io_full",
        "EEIO_IO500_INI": base / "ini", "EEIO_DROP_CACHES": base / "drop_caches",
        "EEIO_HOSTFILE": base / "hosts",
    }[variable]  # fmt: skip
    for name in ("ini", "drop_caches", "hosts"):
        (base / name).write_text("[debug]\n")
    environment = {
        **os.environ, "HOME": str(home), "EEIO_MPIRUN": str(mpirun),
        "EEIO_DIRECTORY": f"{base}/data", "EEIO_OUTPUT_DIR": f"{base}/output",
        "EEIO_DROP_CACHES": str(base / "drop_caches"),
        variable: str(base if variable == "EEIO_NPB" else named),
    }  # fmt: skip
    for name in ("SUDO_UID", "EEIO_PRESET", "LOG_FILE", "SLURM_JOB_ID"):
        environment.pop(name, None)

    def done() -> "subprocess.CompletedProcess[str]":
        program, *factors = script.split()
        return subprocess.run(
            ["sh", str(home / program), *factors], env=environment, cwd=base, check=False,
            capture_output=True, text=True, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    first = done()
    assert (first.returncode, first.stderr) == (0, "") and ran.exists()
    ran.unlink()
    if link:
        named.rename(base / "elsewhere")
        named.symlink_to(base / "elsewhere")
    os.chown(named, 71500, 71500, follow_symlinks=False)
    second = done()
    problem = f"is {'a link of' if link else 'owned by'} user 71500"
    assert second.returncode == 2
    assert second.stderr == (
        f"eeio-{profile}: {named} is not used as root: {named} {problem}. "
        f"Repair: name a file of root by {variable}\n"
    )
    assert variable == "EEIO_DROP_CACHES" or not ran.exists()


def test_root_makes_no_temporary_file_in_a_folder_of_another_user(
    base: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """That user could put a profile's script, or the times of a command, in the place of eeio's."""
    monkeypatch.delenv("SUDO_UID", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", None)
    theirs, ours = base / "theirs", base / "ours"
    for folder in (theirs, ours):
        folder.mkdir(0o755)
    os.chown(theirs, 71500, 71500)
    monkeypatch.setenv("TMPDIR", str(base))
    assert paths.temporary_folder() == base, "it is sticky, and root's"
    profile = COMMON.parent / "eeio-fio-1.0.0"
    with complete.folder_of(profile) as made:
        assert made.is_relative_to(base)
    monkeypatch.setenv("TMPDIR", str(theirs))
    monkeypatch.setenv("TMP", str(ours))
    assert paths.temporary_folder() == ours
    with complete.folder_of(profile) as made:
        assert made.is_relative_to(ours)
    command = ["record", "power", "--meter", "demo", "--", "sh", "-c", "echo $TMPDIR; mktemp"]
    assert main(command) == 3, "too short for a reading"
    said = capfd.readouterr()
    assert f"eeio: TMPDIR: not used as root: {theirs} is owned by user 71500\n" in said.err
    assert said.out.startswith(f"{ours}\n{ours}/") and not list(theirs.iterdir())
    assert os.environ["TMPDIR"] == str(theirs), "it is that of the command only"
    monkeypatch.delenv("TMP")
    monkeypatch.setenv("XDG_STATE_HOME", str(base / "state"))
    monkeypatch.setattr(paths, "_SHARED", theirs)
    assert paths.temporary_folder() == base / "state/eeio/temporary"


@pytest.mark.parametrize("theirs", ["link", "folder"])
def test_root_empties_no_cache_by_a_file_of_another_user(
    home: Path, monkeypatch: pytest.MonkeyPatch, in_process: InProcess, theirs: str
) -> None:
    monkeypatch.delenv("SUDO_UID", raising=False)
    victim, folder = home / "victim", home / "folder"
    victim.write_text("kept")
    folder.mkdir()
    name = folder / "drop_caches"
    name.symlink_to(victim)
    monkeypatch.setenv("EEIO_DROP_CACHES", str(name))
    assert caches.drops_all()
    changed = name if theirs == "link" else folder
    os.chown(changed, 71500, 71500, follow_symlinks=False)
    target = ["--directory", str(home / "target"), "--meter", "none"]
    for command in (["run", "dummy-suite"], ["plan", "dummy-suite"], ["bench", "--cold", "true"]):
        said = in_process(*command, *target, code=2).err
        assert f"EEIO_DROP_CACHES={name}: not written as root: {changed} is " in said
    with pytest.raises(RejectedError, match="Repair: unset EEIO_DROP_CACHES"):
        caches.drop([], None)
    assert victim.read_text() == "kept"
    (found,) = [one for one in examination.examine() if one.name == "drop caches"]
    assert not found.found and "not written as root" in found.detail
