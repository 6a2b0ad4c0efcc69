"""Who uses a device, from made-up trees of /proc and /sys: also where this machine has no RAID, no
device mapper and no partitions. The numbers are those of this machine's own nodes where a name has
to be asked for its number."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from eeio.files.mounts import parse_mountinfo, unescape
from eeio.machine.device import Kernel


class Tree:
    """A kernel with an sda of three partitions and an sdb, and one process."""

    def __init__(self, folder: Path) -> None:
        self.kernel = Kernel(folder / "proc", folder / "sys", folder / "dev")
        self.block = folder / "sys/devices"
        for path in ("proc", "dev", "sys/class/block", "sys/fs/btrfs", "sys/devices"):
            (folder / path).mkdir(parents=True)
        self.proc, self.sysfs = folder / "proc", folder / "sys"
        self.disk("sda", "8:0", "8:1", "8:2", "8:3")
        self.disk("sdb", "8:16")
        self.process(1)

    def disk(self, name: str, number: str, *partitions: str) -> None:
        self._device(self.block / name, number)
        for index, part in enumerate(partitions, 1):
            self._device(self.block / name / f"{name}{index}", part)
            (self.block / name / f"{name}{index}/partition").write_text(f"{index}\n")

    def _device(self, folder: Path, number: str) -> None:
        for sub in ("holders", "slaves"):
            (folder / sub).mkdir(parents=True)
        (folder / "dev").write_text(f"{number}\n")
        (self.sysfs / "class/block" / folder.name).symlink_to(folder)

    def folder(self, name: str) -> Path:
        return (self.sysfs / "class/block" / name).resolve()

    def over(self, upper: str, number: str, *lowers: str) -> None:
        """A device, as RAID or device mapper make them, over others."""
        self.disk(upper, number)
        for lower in lowers:
            (self.folder(upper) / "slaves" / lower).symlink_to(self.folder(lower))
            (self.folder(lower) / "holders" / upper).symlink_to(self.folder(upper))

    def loop(self, name: str, number: str, backing: bytes) -> None:
        self.disk(name, number)
        (self.folder(name) / "loop").mkdir()
        (self.folder(name) / "loop/backing_file").write_bytes(backing + b"\n")

    def process(self, pid: int, namespace: str = "mnt:[1]", root: str = "/") -> Path:
        folder = self.proc / str(pid)
        (folder / "ns").mkdir(parents=True)
        (folder / "ns/mnt").symlink_to(namespace)
        (folder / "root").symlink_to(root)
        (folder / "mountinfo").write_bytes(b"")
        return folder

    def mount(
        self, number: str, where: bytes = b"/x", source: bytes = b"none", pid: int = 1
    ) -> None:
        with (self.proc / str(pid) / "mountinfo").open("ab") as file:
            file.write(b"21 1 %s / %s rw - ext4 %s rw\n" % (number.encode(), where, source))


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def raid_mounted(tree: Tree) -> tuple[str, str]:
    tree.over("md0", "9:0", "sda", "sdb")
    tree.mount("9:0", b"/data")
    return "sda", "/dev/sda is used by md0, which is mounted at /data; take it out first"


def raid_of_partitions(tree: Tree) -> tuple[str, str]:
    tree.over("md0", "9:0", "sda2", "sdb")
    return "sda", "/dev/sda2 is used by md0; take it out first"


def volume_on_raid(tree: Tree) -> tuple[str, str]:
    tree.over("md0", "9:0", "sda", "sdb")
    tree.over("dm-0", "252:0", "md0")
    tree.mount("252:0", b"/data")
    return "sdb", "/dev/sdb is used by md0, which is used by dm-0, which is mounted at /data; take"


def mapped_without_a_mount(tree: Tree) -> tuple[str, str]:
    tree.over("dm-0", "252:0", "sdb")
    return "sdb", "/dev/sdb is used by dm-0; take it out first"


def partition_mounted(tree: Tree) -> tuple[str, str]:
    tree.mount("8:2", b"/home")
    return "sda", "/dev/sda2 is mounted at /home; unmount it first"


def the_disk_of_the_partition_mounted(tree: Tree) -> tuple[str, str]:
    tree.mount("8:0", b"/data")
    return "sda3", "/dev/sda is mounted at /data; unmount it first"


def the_disk_of_the_partition_in_an_array(tree: Tree) -> tuple[str, str]:
    tree.over("md0", "9:0", "sda")
    return "sda3", "/dev/sda is used by md0; take it out first"


def the_part_below_mounted(tree: Tree) -> tuple[str, str]:
    tree.over("dm-0", "252:0", "sda1")
    tree.mount("8:1", b"/data")
    return "dm-0", "/dev/dm-0 is on /dev/sda1, which is mounted at /data; unmount it first"


def loop_over_a_disk_with_a_mounted_partition(tree: Tree) -> tuple[str, str]:
    tree.loop("loop0", "7:0", b"/dev/sda")
    tree.mount("8:1", b"/data")
    return "loop0", "/dev/loop0 is on /dev/sda, and /dev/sda1 is mounted at /data"


def loop_over_the_disk(tree: Tree) -> tuple[str, str]:
    tree.loop("loop0", "7:0", b"/dev/sda")
    return "sda2", "/dev/sda is used by loop0; take it out first"


def loop_by_a_name_that_is_gone(tree: Tree) -> tuple[str, str]:
    tree.loop("loop0", "7:0", b"/dev/sdb (deleted)")
    return "sdb", "/dev/sdb is used by loop0"


def loop_10_next_to_loop_1(tree: Tree) -> tuple[str, str]:
    """The one that is asked for must not pass for the other, whose name begins so."""
    tree.loop("loop1", "7:1", b"/dev/sdb")
    tree.loop("loop10", "7:10", b"/dev/sdb (deleted)")
    return "loop1", "/dev/loop1 is on /dev/sdb, and /dev/sdb is used by loop10"


def one_image_twice(tree: Tree) -> tuple[str, str]:
    tree.loop("loop0", "7:0", b"/images/\xff (deleted)")
    tree.loop("loop1", "7:1", b"/images/\xff (deleted)")
    return "loop0", "/dev/loop0 has the same image as /dev/loop1"


def member_of_a_btrfs(tree: Tree) -> tuple[str, str]:
    (tree.sysfs / "fs/btrfs/1234-5678-9/devices/sdb").mkdir(parents=True)
    return "sdb", "/dev/sdb is part of the mounted btrfs 1234-5678-9; unmount it first"


def mounted_where_another_process_lives(tree: Tree) -> tuple[str, str]:
    tree.process(77, "mnt:[77]")
    tree.mount("8:16", b"/there", pid=77)
    return "sdb", "/dev/sdb is mounted at /there; unmount it first"


def a_chroot_stands_for_no_namespace(tree: Tree) -> tuple[str, str]:
    tree.process(2, "mnt:[1]", "/jail")
    tree.process(10, "mnt:[77]", "/jail")
    tree.process(11, "mnt:[77]", "/")
    tree.mount("8:16", b"/there", pid=11)
    return "sdb", "/dev/sdb is mounted at /there; unmount it first"


def names_of_any_bytes(tree: Tree) -> tuple[str, str]:
    tree.mount("0:99", b"/\xff\xfe")
    (tree.proc / "1/mountinfo").open("ab").write(b"\xff\n\n1 2 3\n- \n21 1 8:16 / - -\n")
    tree.mount("8:16", b"/a\\040b\\012\xff\x1b")
    return "sdb", r"/dev/sdb is mounted at /a b\x0a\udcff\x1b; unmount it first"


def processes_that_vanish(tree: Tree) -> tuple[str, str]:
    (tree.proc / "5").mkdir()
    (tree.proc / "6").symlink_to("nothing")
    (tree.process(7, "mnt:[7]") / "mountinfo").unlink()
    (tree.process(8, "mnt:[7]") / "fd").mkdir()
    tree.mount("8:16", b"/there", pid=8)
    return "sdb", "/dev/sdb is mounted at /there; unmount it first"


IN_USE: list[Callable[[Tree], tuple[str, str]]] = [
    raid_mounted, raid_of_partitions, volume_on_raid, mapped_without_a_mount, partition_mounted,
    the_disk_of_the_partition_mounted, the_disk_of_the_partition_in_an_array,
    the_part_below_mounted, loop_over_a_disk_with_a_mounted_partition, loop_over_the_disk,
    loop_by_a_name_that_is_gone, loop_10_next_to_loop_1, one_image_twice, member_of_a_btrfs,
    mounted_where_another_process_lives, a_chroot_stands_for_no_namespace, names_of_any_bytes,
    processes_that_vanish,
]  # fmt: skip


@pytest.mark.parametrize("case", IN_USE, ids=lambda case: case.__name__)
def test_a_device_in_use(tree: Tree, case: Callable[[Tree], tuple[str, str]]) -> None:
    device, expected = case(tree)
    (first, *_) = tree.kernel.users(device)
    assert first.startswith(expected)


def another_partition_mounted(tree: Tree) -> str:
    tree.mount("8:1")
    return "sda2"


def another_disk_mounted(tree: Tree) -> str:
    tree.mount("8:1")
    tree.over("md0", "9:0", "sda3")
    return "sdb"


def another_volume_on_the_same_disk(tree: Tree) -> str:
    tree.over("dm-0", "252:0", "sda3")
    tree.over("dm-1", "252:1", "sda3")
    tree.mount("252:1")
    tree.mount("8:1")
    return "dm-0"


def an_image_on_a_mounted_disk(tree: Tree) -> str:
    tree.mount("8:16")
    tree.loop("loop0", "7:0", b"/x/image")
    tree.loop("loop1", "7:1", b"/x/another")
    return "loop0"


def nothing_can_be_read(tree: Tree) -> str:
    (tree.proc / "1/mountinfo").unlink()
    return "sda"


@pytest.mark.parametrize(
    "case",
    [another_partition_mounted, another_disk_mounted, another_volume_on_the_same_disk,
     an_image_on_a_mounted_disk, nothing_can_be_read],
    ids=lambda case: case.__name__,
)  # fmt: skip
def test_a_device_that_is_free(tree: Tree, case: Callable[[Tree], str]) -> None:
    assert tree.kernel.users(case(tree)) == []


def _a_node() -> Path:
    nodes = (path for path in Path("/dev").iterdir() if path.is_block_device())
    node = next(iter(sorted(nodes)), None)
    if node is None:
        pytest.skip("no block device here")
    return node


@pytest.mark.parametrize("way", ["mount", "swap", "swap with blanks", "swap, name gone"])
def test_names_are_resolved_to_their_number(tree: Tree, tmp_path: Path, way: str) -> None:
    node = _a_node()
    number = node.stat().st_rdev
    tree.disk("odd", f"{os.major(number)}:{os.minor(number)}", "9:9")
    alias = tmp_path / "an alias"
    alias.symlink_to(node)
    name = str(alias).replace(" ", "\\040").encode()
    if way == "mount":
        tree.mount("0:44", b"/x", source=name)  # btrfs: a number of its own
    else:
        written = name + b"\\040(deleted)" if way == "swap, name gone" else name
        if way == "swap":
            written = str(node).encode()
        (tree.proc / "swaps").write_bytes(
            b"Filename Type Size Used Priority\n/\xff\\040swap file 1 0 -1\n\n"
            + written + b" partition 1 0 -2\n"
        )  # fmt: skip
    (text,) = tree.kernel.users("odd")
    assert text.startswith("/dev/odd is mounted at /x" if way == "mount" else "/dev/odd is swap")


@pytest.mark.parametrize(
    ("flags", "writes"), [("0100000", False), ("0100001", True), ("02100002", True), ("", True)]
)
def test_processes_that_hold_a_device_open(tree: Tree, flags: str, writes: bool) -> None:
    node = _a_node()
    number = node.stat().st_rdev
    tree.disk("odd", f"{os.major(number)}:{os.minor(number)}")
    process = tree.process(99)
    (process / "comm").write_bytes(b"\xff\x1b[31m\n")
    for folder in ("fd", "fdinfo"):
        (process / folder).mkdir()
    (process / "fd/3").symlink_to(node)
    (process / "fd/4").symlink_to("socket:[1]")
    (process / "fd/5").symlink_to("/dev/no-such-node")
    if flags:
        (process / "fdinfo/3").write_text(f"pos:\t0\nflags:\t{flags}\nmnt_id:\t1\n")
    (opener,) = tree.kernel.openers("odd")
    assert (opener.pid, opener.writes) == (99, writes)
    assert opener.text.isprintable()
    assert tree.kernel.openers("sdb") == []


def test_a_file_on_a_server_is_not_queried(tree: Tree, tmp_path: Path) -> None:
    """It might never answer."""
    node = _a_node()
    number = node.stat().st_rdev
    tree.disk("odd", f"{os.major(number)}:{os.minor(number)}")
    (process := tree.process(99)).joinpath("fd").mkdir()
    remote = tmp_path / "remote"
    remote.mkdir()
    (remote / "node").symlink_to(node)
    (process / "fd/3").symlink_to(remote / "node")
    assert len(tree.kernel.openers("odd")) == 1
    (process / "mountinfo").write_bytes(
        b"21 1 0:50 / " + bytes(remote) + b" rw - nfs4 server:/x rw\n"
    )
    (process / "ns/mnt").unlink()
    (process / "ns/mnt").symlink_to("mnt:[99]")
    assert Kernel(tree.proc, tree.sysfs).openers("odd") == []


@pytest.mark.parametrize(
    ("written", "name"),
    [
        (rb"/a\040b", "/a b"),
        (rb"/a\134040b", r"/a\040b"),
        (rb"/\377", "/\udcff"),
        (rb"/\9", r"/\9"),
    ],
)
def test_names_as_the_kernel_writes_them(written: bytes, name: str) -> None:
    assert unescape(written) == name
    (mount,) = parse_mountinfo(b"21 1 8:1 / %s rw,x shared:1 - ext4 %s rw,y" % (written, written))
    assert (str(mount.mount_point), mount.source, mount.options) == (name, name, "rw,x,y")


def test_a_mount_of_an_empty_source() -> None:
    (mount,) = parse_mountinfo(b"21 1 0:5 / /x rw - tmpfs  rw,z\n")
    assert (mount.filesystem, mount.source, mount.options) == ("tmpfs", "", "rw,z")
