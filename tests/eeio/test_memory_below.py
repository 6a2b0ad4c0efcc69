"""A loop device whose image is in memory, or in this machine's page cache, is no drive."""

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests import dummy, mounts
from tests.campaigns import records
from tests.executables import executable
from tests.mounts import sparse
from tests.plugin import InProcess
from tests.simulators.tree import write_tree

from eeio.cli import main
from eeio.errors import EeioError
from eeio.machine import below, caches, direct_io, fscrypt
from eeio.machine.below import caches_below, why_in_memory
from eeio.machine.durability import why_flushes_end_early
from eeio.machine.filesystem import (
    BlockDevice,
    Mount,
    backing_device,
    backing_devices,
    block_device,
    log_devices,
    mount_of,
)

pytestmark = pytest.mark.root
READ = "level=filesystem operation=read spatiality=sequential buffer=off"


@pytest.fixture
def mounted(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """An ext4 on a loop image, below the folder that the parameter names."""
    below = Path(tempfile.mkdtemp(dir=request.param or tmp_path))
    image = sparse(below / "image", 64 << 20)
    try:
        subprocess.run(["mkfs.ext4", "-q", str(image)], check=True)
        with mounts.mounted(image, tmp_path / "mounted", "-o", "loop") as point:
            yield point
    finally:
        shutil.rmtree(below)


def _arguments(target: Path, *more: str) -> list[str]:
    return ["run", "dummy-suite", "--directory", str(target), "--meter", "none", "--name", "c",
            "--idle", "0", "--settle", "0", "--repetitions", "1", *more]  # fmt: skip


def _reasons(home: Path) -> list[str]:
    return ["; ".join(record["phases"][0]["validity"]) for record in records(home)]


@pytest.mark.parametrize("mounted", ["/dev/shm"], indirect=True)
def test_an_image_on_tmpfs_is_rejected(home: Path, mounted: Path, in_process: InProcess) -> None:
    """It was measured as a drive of 4194 MB/s, and valid."""
    output = in_process(*_arguments(mounted), code=2).err
    assert f"{mounted}: the image of /dev/loop" in output and "is on tmpfs" in output
    assert main(_arguments(mounted, "--allow-memory-filesystem")) == 3
    assert all("no storage device was measured" in reason for reason in _reasons(home))


@pytest.fixture
def spanning(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A btrfs over two images in the folder that the parameter names."""
    if shutil.which("mkfs.btrfs") is None:
        pytest.skip("needs mkfs.btrfs")
    below = Path(tempfile.mkdtemp(dir=request.param or tmp_path))
    try:
        with ExitStack() as stack:
            images = [sparse(below / name, 128 << 20) for name in ("first", "second")]
            nodes = [stack.enter_context(mounts.attached(image)) for image in images]
            subprocess.run(["mkfs.btrfs", "-q", "-f", *map(str, nodes)], check=True)
            yield stack.enter_context(mounts.mounted(nodes[0], tmp_path / "mounted"))
    finally:
        shutil.rmtree(below)


@pytest.mark.parametrize("spanning", ["/dev/shm"], indirect=True)
def test_a_file_system_over_several_images_on_tmpfs_is_rejected(
    home: Path, spanning: Path, in_process: InProcess
) -> None:
    """Which of its devices has the files is not known, so none of them was asked."""
    output = in_process(*_arguments(spanning), code=2).err
    assert f"{spanning}: the image of /dev/loop" in output and "is on tmpfs" in output
    assert main(_arguments(spanning, "--allow-memory-filesystem")) == 3
    assert all("no storage device was measured" in reason for reason in _reasons(home))


def test_test_files_on_another_file_system_than_the_directory_are_rejected(
    tmp_path: Path, in_process: InProcess
) -> None:
    """Its drive and caches were taken for those of the directory."""
    with mounts.mounted(Path("tmpfs"), tmp_path / "eeio-scratch", "-t", "tmpfs", "-o", "mode=700"):
        output = in_process(*_arguments(tmp_path), code=2).err
    scratch = f"{tmp_path}/eeio-scratch"
    assert f"{scratch} is a mount point, so it is not used. Repair: umount {scratch}" in output


def test_an_image_on_a_file_system_without_a_device_has_no_known_drive(tmp_path: Path) -> None:
    """Of an overlay over tmpfs: it was measured as a drive of 3398 MB/s."""
    parts = [tmp_path / name for name in ("lower", "memory")]
    for part in parts:
        part.mkdir()
    with mounts.mounted(Path("tmpfs"), tmp_path / "upper", "-t", "tmpfs") as upper:
        for name in ("data", "work"):
            (upper / name).mkdir()
        options = f"lowerdir={parts[0]},upperdir={upper}/data,workdir={upper}/work"
        with (
            mounts.mounted(Path("overlay"), tmp_path / "ov", "-t", "overlay", "-o", options) as top,
            mounts.attached(sparse(top / "image", 8 << 20)) as node,
        ):
            device = block_device(node)
            assert device is not None
            assert "is on overlay" in str(why_in_memory(device))


def test_the_path_of_an_image_outside_of_a_container_is_not_looked_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container has no node of the loop device, and another file system at the path: an overlay,
    so that the image was rejected."""
    folder = tmp_path / "outside"
    folder.mkdir()
    with mounts.attached(sparse(folder / "image", 8 << 20)) as node:
        device = block_device(node)
        assert device is not None
        monkeypatch.setattr(below, "status", lambda _: None)
        mount = ["mount", "-t", "tmpfs", "tmpfs", str(folder)]
        if subprocess.run(mount, check=False).returncode != 0:
            pytest.skip("cannot mount")
        try:
            assert why_in_memory(device) is None
        finally:
            mounts.unmount(folder)


def test_direct_io_that_the_file_system_below_buffers_is_a_cache(tmp_path: Path) -> None:
    """A loop device shows that it uses direct I/O, and the kernel buffers it silently."""
    image = sparse(tmp_path / "below", 64 << 20)
    subprocess.run(["mkfs.ext4", "-q", str(image)], check=True)
    with (
        mounts.mounted(image, tmp_path / "journal", "-o", "loop,data=journal") as folder,
        mounts.attached(sparse(folder / "image", 8 << 20)) as node,
    ):
        device = block_device(node)
        assert device is not None
        texts = [cache.text for cache in caches_below(device) if cache.in_memory]
    assert any("ext4 with data=journal has no direct I/O" in text for text in texts)


@pytest.mark.parametrize("is_compressed", [True, False])
def test_a_compressed_file_has_no_direct_io(tmp_path: Path, is_compressed: bool) -> None:
    """Of an attribute the options of the mount tell nothing."""
    if shutil.which("mkfs.btrfs") is None or shutil.which("chattr") is None:
        pytest.skip("needs mkfs.btrfs and chattr")
    image = sparse(tmp_path / "below", 128 << 20)
    subprocess.run(["mkfs.btrfs", "-q", str(image)], check=True)
    with mounts.mounted(image, tmp_path / "btrfs", "-o", "loop") as folder:
        if is_compressed:
            subprocess.run(["chattr", "+c", str(folder)], check=True)
        with mounts.attached(sparse(folder / "image", 8 << 20)) as node:
            device = block_device(node)
            assert device is not None
            texts = [cache.text for cache in caches_below(device) if cache.in_memory]
    assert any("chattr +c" in text for text in texts) == is_compressed


@pytest.mark.parametrize("is_compressed", [True, False])
def test_an_image_that_btrfs_does_not_compress_has_direct_io(
    tmp_path: Path, is_compressed: bool
) -> None:
    """`chattr +C` of the file is stronger than the mount option."""
    if shutil.which("mkfs.btrfs") is None or shutil.which("chattr") is None:
        pytest.skip("needs mkfs.btrfs and chattr")
    image = sparse(tmp_path / "below", 128 << 20)
    subprocess.run(["mkfs.btrfs", "-q", str(image)], check=True)
    with mounts.mounted(image, tmp_path / "btrfs", "-o", "loop,compress=zstd") as folder:
        if not is_compressed:
            subprocess.run(["chattr", "+C", str(folder)], check=True)
        with mounts.attached(sparse(folder / "image", 8 << 20)) as node:
            device = block_device(node)
            assert device is not None
            texts = [cache.text for cache in caches_below(device) if cache.in_memory]
    assert any("no direct I/O of compressed" in text for text in texts) == is_compressed


def test_an_image_on_tmpfs_at_a_mount_of_its_own_is_in_memory(tmp_path: Path) -> None:
    """Its folder is on a drive: it was measured as that drive."""
    image = Path(tempfile.mkdtemp(dir="/dev/shm")) / "image"
    (tmp_path / "image").touch()
    try:
        sparse(image, 8 << 20)
        bind = ["mount", "--bind", str(image), str(tmp_path / "image")]
        if subprocess.run(bind, check=False).returncode != 0:
            pytest.skip("cannot mount")
        try:
            with mounts.attached(tmp_path / "image") as node:
                device = block_device(node)
                assert device is not None
                assert "is on tmpfs" in str(why_in_memory(device))
        finally:
            mounts.unmount(tmp_path / "image")
    finally:
        shutil.rmtree(image.parent)


def test_a_mount_that_a_later_one_hides_is_not_the_one_of_the_folder(tmp_path: Path) -> None:
    """tmpfs was measured as the drive of the hidden mount."""
    image = sparse(tmp_path / "image", 64 << 20)
    subprocess.run(["mkfs.ext4", "-q", str(image)], check=True)
    (tmp_path / "above").mkdir()
    with mounts.mounted(image, tmp_path / "above/mounted", "-o", "loop"):
        hide = ["mount", "-t", "tmpfs", "tmpfs", str(tmp_path / "above")]
        subprocess.run(hide, check=True)
        try:
            (tmp_path / "above/mounted").mkdir()
            shown = mount_of(tmp_path / "above/mounted")
        finally:
            mounts.unmount(tmp_path / "above")
    assert shown.filesystem == "tmpfs"


def test_an_encrypted_image_has_no_direct_io(tmp_path: Path) -> None:
    image = sparse(tmp_path / "below", 64 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-O", "encrypt", str(image)], check=True)
    with mounts.mounted(image, tmp_path / "ext4", "-o", "loop") as folder:
        (folder / "secret").mkdir()
        try:
            fscrypt.encrypt(folder / "secret")
        except EeioError as error:
            pytest.skip(str(error))
        (folder / "secret/image").write_bytes(os.urandom(8 << 20))
        with mounts.attached(folder / "secret/image") as node:
            device = block_device(node)
            assert device is not None
            texts = [cache.text for cache in caches_below(device) if cache.in_memory]
        of_new_files = direct_io.why_file_not_direct(folder / "secret", None)
    assert any("encrypted files may" in text for text in texts)
    assert of_new_files == "encrypted files may have no direct I/O", (
        "as of --filesystem ext4+fscrypt"
    )


def test_an_image_that_was_compressed_earlier_has_no_direct_io(tmp_path: Path) -> None:
    """The mount's options of today tell nothing of it."""
    if shutil.which("mkfs.btrfs") is None:
        pytest.skip("needs mkfs.btrfs")
    image = sparse(tmp_path / "below", 256 << 20)
    subprocess.run(["mkfs.btrfs", "-q", str(image)], check=True)
    with mounts.mounted(image, tmp_path / "first", "-o", "loop,compress-force=zstd") as folder:
        (folder / "image").write_bytes(os.urandom(16 << 20) + bytes(16 << 20))
    with mounts.mounted(image, tmp_path / "second", "-o", "loop") as folder:
        why = direct_io.why_file_not_direct(folder / "image", mount_of(folder))
        (folder / "plain").write_bytes(os.urandom(1 << 20))
        subprocess.run(["sync", str(folder / "plain")], check=True)
        plain = direct_io.why_file_not_direct(folder / "plain", mount_of(folder))
    # Where another mount namespace still has the first mount, its options are those of the second.
    assert why is not None and "compressed" in why
    assert plain is None or "a direct write" in plain or plain.startswith("btrfs has no"), plain


@pytest.mark.parametrize("filesystem", ["ext4", "xfs"])
def test_a_log_in_memory_is_found(tmp_path: Path, filesystem: str) -> None:
    """Each fsync waits for the log: with one on tmpfs, rows of metadata were those of memory."""
    if shutil.which(f"mkfs.{filesystem}") is None:
        pytest.skip(f"needs mkfs.{filesystem}")
    data = sparse(tmp_path / "data", 400 << 20)
    log = sparse(Path(tempfile.mkdtemp(dir="/dev/shm")) / "log", 128 << 20)
    try:
        with mounts.attached(data) as node, mounts.attached(log) as log_node:
            options = ["-o", "rw"]
            if filesystem == "xfs":
                make = [["mkfs.xfs", "-q", "-l", f"logdev={log_node}", str(node)]]
                options = ["-o", f"logdev={log_node}"]
            else:
                make = [
                    ["mke2fs", "-q", "-O", "journal_dev", str(log_node)],
                    ["mkfs.ext4", "-q", "-J", f"device={log_node}", str(node)],
                ]
            for command in make:
                subprocess.run(command, check=True, capture_output=True)
            with mounts.mounted(node, tmp_path / "mounted", *options) as folder:
                devices = [*backing_devices(folder), *log_devices(folder)]
                why = below.why_any_in_memory(devices)
            assert [device.node for device in devices] == [node, log_node]
            assert "is on tmpfs" in str(why)
    finally:
        shutil.rmtree(log.parent)


def test_a_default_of_the_superblock_is_found(tmp_path: Path) -> None:
    """/proc/mounts shows no data=journal then, and clean writes had other I/O of their bytes."""
    # Two images: a loop device that another program still has open keeps its page cache.
    images = [sparse(tmp_path / name, 64 << 20) for name in ("ordered.img", "journaled.img")]
    for image in images:
        subprocess.run(["mkfs.ext4", "-q", str(image)], check=True)
    ordered, journaled = images
    command = ["tune2fs", "-o", "journal_data", str(journaled)]
    subprocess.run(command, check=True, capture_output=True)
    with mounts.mounted(ordered, tmp_path / "ordered", "-o", "loop") as folder:
        assert not direct_io.journals_data(mount_of(folder))
    with mounts.mounted(journaled, tmp_path / "journaled", "-o", "loop") as folder:
        assert direct_io.journals_data(mount_of(folder))


@pytest.mark.parametrize(("options", "fills"), [("data=journal", True), ("data=ordered", False)])
def test_a_direct_read_shows_whether_there_is_direct_io(
    tmp_path: Path, options: str, fills: bool
) -> None:
    """Whatever the reason: nobody tells of a file system that is not known here."""
    image = sparse(tmp_path / "below", 64 << 20)
    subprocess.run(["mkfs.ext4", "-q", str(image)], check=True)
    with mounts.mounted(image, tmp_path / "mounted", "-o", f"loop,{options}") as folder:
        file = folder / "file"
        file.write_bytes(os.urandom(4 << 20))
        subprocess.run(["sync", str(file)], check=True)
        reasons = {direct_io.why_file_not_direct(path, None) for path in (file, folder)}
    if fills:
        assert reasons == {
            "a direct read filled the page cache", "a direct write filled the page cache",
        }  # fmt: skip
    else:
        assert reasons == {None}


@pytest.mark.parametrize("spanning", [""], indirect=True)
def test_caches_of_all_devices_of_a_file_system_are_named(home: Path, spanning: Path) -> None:
    first, second = backing_devices(spanning)
    assert backing_device(spanning)[0] is None
    subprocess.run(["losetup", "--direct-io=off", str(second.node)], check=True)
    main(_arguments(spanning))
    for record in records(home):
        remarks = "; ".join(record["remarks"].values())  # on a busy host others, too
        assert f"{second.node} has no direct I/O" in remarks
        assert f"{first.node} has" not in remarks


@pytest.mark.parametrize("mounted", ["/dev/shm"], indirect=True)
def test_a_device_below_which_memory_is(home: Path, mounted: Path, in_process: InProcess) -> None:
    device, _ = backing_device(mounted)
    assert device is not None
    arguments = ["run", "dummy-suite", "--device", str(device.node), "--meter", "none"]
    assert f"{device.node}: the image of {device.node}" in in_process(*arguments, code=2).err


@pytest.mark.parametrize("mounted", [""], indirect=True)
def test_what_goes_through_the_page_cache_of_an_image_says_so(
    home: Path, mounted: Path, monkeypatch: pytest.MonkeyPatch, in_process: InProcess
) -> None:
    """Direct I/O goes through that cache as well: it was reported as a drive of 881 MB/s. Without
    root nobody can empty it, so that reads are invalid at all levels."""
    device, _ = backing_device(mounted)
    assert device is not None and why_in_memory(device) is None
    subprocess.run(["losetup", "--direct-io=off", str(device.node)], check=True)
    (cache,) = caches_below(device)
    image = re.search(r"the page cache of the image (/.*/image) ", cache.text)
    assert image is not None and Path(image[1]).is_file() and cache.in_memory
    through = f"through {cache.text}"
    suite = dummy.suite(home, READ, READ.replace("filesystem", "device"))
    arguments = [*_arguments(mounted), suite]
    arguments.remove("dummy-suite")
    assert main(arguments) == 3
    runs = records(home)
    assert {run["remarks"]["memory cache"] for run in runs} == {through}
    reasons = {run["experiment"]["level"]: run["phases"][0]["validity"] for run in runs}
    assert reasons["filesystem"] == []
    assert reasons["device"][0].startswith(f"no device was measured: {through}")
    text = in_process("report", "c", "--format", "json").out
    rows = {row["level"]: row for row in json.loads(text)["characterization"]}
    assert rows["filesystem"]["remarks"]["memory cache"] == through
    assert not rows["filesystem"]["ranked"]
    shutil.rmtree(home / "data/eeio/results/c")
    monkeypatch.setattr(caches, "drops_all", lambda: False)
    assert main(arguments) == 3
    assert all(f"served {through} (run as root)" in reason for reason in _reasons(home))


@pytest.mark.parametrize("mounted", [""], indirect=True)
def test_with_direct_io_an_image_is_no_cache(home: Path, mounted: Path) -> None:
    device, _ = backing_device(mounted)
    assert device is not None
    subprocess.run(["losetup", "--direct-io=on", str(device.node)], check=True)
    assert caches_below(device) == []
    assert main(_arguments(mounted)) == 0
    assert not any("memory cache" in run["remarks"] for run in records(home))


def test_an_image_on_a_lazily_unmounted_tmpfs_has_no_known_drive(tmp_path: Path) -> None:
    """sysfs then shows its path as /image, which is on the disk."""
    with (
        mounts.mounted(Path("none"), tmp_path / "memory", "-t", "tmpfs") as point,
        mounts.attached(sparse(point / "image", 1 << 20)) as node,
    ):
        subprocess.run(["umount", "--lazy", str(point)], check=True)
        device = block_device(node)
        assert device is not None
        why = why_in_memory(device)
        # The fixture does not find its image again.
        subprocess.run(["losetup", "--detach", str(node)], check=True)
        subprocess.run(["mount", "-t", "tmpfs", "none", str(point)], check=True)
    assert why is not None and f"the drive below {node} is unknown" in why


def test_an_image_of_another_mount_namespace_has_no_known_drive(tmp_path: Path) -> None:
    """Its file system was said to be "not at / any more"."""
    image = tmp_path / "image"
    script = (
        f"mount -t tmpfs none {tmp_path} && truncate --size 1M {image} && "
        f"losetup --find --show {image}"
    )
    command = ["unshare", "--mount", "sh", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode != 0:
        pytest.skip(f"no mount namespace with a loop device: {done.stderr.strip()}")
    node = Path(done.stdout.strip())
    try:
        device = block_device(node)
        assert device is not None
        why = str(why_in_memory(device))
    finally:
        subprocess.run(["losetup", "--detach", str(node)], check=True)
    assert f"the drive below {node} is unknown: its image" in why
    assert "is unmounted, or mounted elsewhere only (such as in a container)" in why


def test_a_loop_device_over_a_loop_device_is_on_its_image(tmp_path: Path) -> None:
    """Its image is a node on devtmpfs, and it was rejected as a device in memory."""
    with mounts.attached(sparse(tmp_path / "image", 1 << 20)) as lower:
        subprocess.run(["losetup", "--direct-io=off", str(lower)], check=True)
        with mounts.attached(lower) as node:
            device = block_device(node)
            assert device is not None and why_in_memory(device) is None
            (cache,) = caches_below(device)
            assert str(tmp_path / "image") in cache.text


def test_what_is_below_other_devices(tmp_path: Path) -> None:
    sys = tmp_path / "sys/class/block"
    for name, number in (("ram0", "1:0"), ("zram1", "252:1"), ("dm-0", "253:0"), ("sda", "8:0")):
        write_tree(sys / name, {"dev": number})
    (sys / "dm-0/slaves/ram0").mkdir(parents=True)

    def why(name: str) -> str | None:
        return why_in_memory(BlockDevice(name, 1, 0, root=tmp_path))

    assert why("ram0") == why("dm-0") == "/dev/ram0 is a RAM disk"
    assert why("zram1") == "/dev/zram1 is a RAM disk"
    assert why("sda") is None


def test_caches_of_other_machines_devices(tmp_path: Path) -> None:
    sys = tmp_path / "sys/class/block"
    write_tree(sys, {
        "sda/dev": "8:0", "zd0/dev": "230:0",
        "md1/dev": "9:1", "md1/md/journal_mode": "write-through [write-back]",
        "md2/dev": "9:2", "md2/md/journal_mode": "[write-through] write-back",
        "bcache0/dev": "251:0", "bcache0/bcache/state": "dirty",
        "bcache1/dev": "251:1", "bcache1/bcache/state": "no cache",
        "dm-1/dev": "253:1", "dm-1/dm/name": "vg-lv_cdata", "dm-1/dm/uuid": "LVM-x-cdata",
        "dm-2/dev": "253:2", "dm-2/dm/name": "vg-lv", "dm-2/slaves/dm-1/dm/uuid": "LVM-x-cdata",
        "dm-3/dev": "253:3", "dm-3/dm/name": "on-md", "dm-3/slaves/md1/dev": "9:1",
    })  # fmt: skip

    def found(name: str) -> dict[str, bool]:
        device = BlockDevice(name, 1, 0, root=tmp_path)
        return {cache.text: cache.in_memory for cache in caches_below(device)}

    assert found("sda") == found("md2") == found("bcache1") == {}
    assert found("zd0") == {"the ARC of ZFS (/dev/zd0)": True}
    assert found("bcache0") == {"the cache of bcache (/dev/bcache0)": False}
    assert found("dm-2") == {"a cache of LVM (/dev/dm-2)": False}
    assert found("dm-3") == found("md1") == {"the write-back journal of /dev/md1": False}


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ("0 204800 cache 253:1 253:2 253:3 128 1 writethrough smq 0", ["dm-cache (/dev/dm-9)"]),
        ("0 204800 writecache s 8:1 8:2 4096 0", ["dm-writecache (/dev/dm-9)"]),
        ("0 1024 linear 8:1 2048\n1024 2048 linear 8:2 0", []),
    ],
)
def test_targets_of_the_device_mapper_that_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str, expected: list[str]
) -> None:
    executable(tmp_path / "bin/dmsetup", f"#!/bin/sh\necho '{table}'\n")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    write_tree(tmp_path / "dm-9", {"dm/name": "fast"})
    monkeypatch.setattr(BlockDevice, "sysfs", tmp_path / "dm-9")
    assert [cache.text for cache in caches_below(BlockDevice("dm-9", 253, 9))] == expected


@pytest.mark.parametrize("is_in_memory", [False, True])
def test_an_image_that_a_user_may_not_look_up_has_caches_that_are_not_known(
    is_in_memory: bool,
) -> None:
    """The run was rejected, and no repair was named. Its mount is known by name."""
    base = Path(tempfile.mkdtemp(dir="/dev/shm" if is_in_memory else "/var/tmp"))
    try:
        with mounts.attached(sparse(base / "image", 1 << 20)) as node:
            device = block_device(node)
            assert device is not None
            os.seteuid(71500)
            try:
                found, why = caches_below(device), why_in_memory(device)
            finally:
                os.seteuid(0)
    finally:
        shutil.rmtree(base)
    unknown = f"an image of which caches are not known ({base}/image: Permission denied)"
    assert unknown in [cache.text for cache in found if not cache.in_memory]
    if is_in_memory:
        assert why == f"the image of {node}, {base}/image, is on tmpfs"
    elif mount_of(Path("/var/tmp")).filesystem == "ext4":
        assert why is None


@pytest.fixture
def bound(tmp_path: Path) -> Iterator[Path]:
    """A FUSE file system whose program keeps its data in a folder, through the page cache."""
    if shutil.which("bindfs") is None:
        pytest.skip("bindfs is not installed")
    (tmp_path / "below").mkdir()
    (tmp_path / "bound").mkdir()
    done = subprocess.run(
        ["bindfs", str(tmp_path / "below"), str(tmp_path / "bound")],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    if done.returncode != 0:
        pytest.skip(f"no FUSE: {done.stderr.strip()}")
    try:
        yield tmp_path / "bound"
    finally:
        mounts.unmount(tmp_path / "bound")


def test_what_goes_through_a_program_is_no_device_row_and_not_durable(
    home: Path, bound: Path, in_process: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kernels do not pass syncfs on to FUSE: 537 MB were durable after 0.4 s, of which 503 MB were
    in the page cache below; reads of that cache were a device of 5 GB/s."""
    write = READ.replace("read", "write")
    suite = dummy.suite(home, READ, READ.replace("filesystem", "device"), write)
    arguments = [*_arguments(bound), suite]
    arguments.remove("dummy-suite")
    assert main(arguments) == 3
    runs = records(home)
    program = f"the program that serves {bound} (fuse)"
    through = f"through the caches of {program}"
    assert {run["remarks"]["memory cache"] for run in runs} == {through}
    for run in runs:
        (phase,) = run["phases"]
        is_write = run["experiment"]["operation"] == "write"
        assert phase["until_durable"] is None
        assert phase["durable_reason"] == (f"flushes end at {program}" if is_write else None)
        is_device = run["experiment"]["level"] == "device"
        assert bool(phase["validity"]) == is_device, phase["validity"]
    rows = json.loads(in_process("report", "c", "--format", "json").out)["characterization"]
    assert not any(row["ranked"] for row in rows)
    assert {row["durable"] for row in rows if row["operation"] == "write"} == {False}
    shutil.rmtree(home / "data/eeio/results/c")
    monkeypatch.setattr(caches, "drops_all", lambda: False)
    assert main(arguments) == 3
    reads = [run for run in records(home) if run["experiment"]["operation"] == "read"]
    for run in reads:
        assert f"served {through} (run as root)" in "".join(run["phases"][0]["validity"])


def test_a_command_in_a_program_s_file_system_is_not_durable(
    home: Path, bound: Path, in_process: InProcess
) -> None:
    arguments = ["head -c 1048576 /dev/zero > a", "-r", "2", "--meter", "none"]
    answer = in_process("bench", "--directory", str(bound), "--format", "json", *arguments).out
    (command,) = json.loads(answer)["commands"]
    assert command["durable_s"] is None
    reason = f"flushes end at the program that serves {bound} (fuse)"
    assert command["reasons"]["durable_s"] == reason


@pytest.mark.parametrize(
    ("filesystem", "reason"),
    [
        ("fuse", "flushes end at the program that serves /a"),
        ("fuse.sshfs", "flushes end at the program that serves /a"),
        ("fuseblk", "the kernel writes the data of /a (fuseblk)"),
        ("fusectl", "syncfs of /a (fusectl)"),
        ("ext4", "None"),
    ],
)  # fmt: skip
def test_no_flush_of_fuse_and_fuseblk_reaches_a_drive(filesystem: str, reason: str) -> None:
    mount = Mount(Path("/a"), filesystem, "/dev/sda1", "rw,user_id=0", "0:9")
    assert str(why_flushes_end_early(mount, ())).startswith(reason)
