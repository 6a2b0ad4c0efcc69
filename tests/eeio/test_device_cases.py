"""No device is written that anything uses, or that carries what the user did not name.

Each case is a campaign that would write to a device of the test's own, in a state that forbids it:
the command has to refuse it in one line, and to leave every byte as it is. `pytest -q` on this file
tells how many cases there are.
"""

import fcntl
import hashlib
import json
import os
import signal
import struct
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from tests import dummy
from tests.campaigns import records
from tests.mounts import detach, wait_for_losetup
from tests.plugin import Eeio
from tests.processes import Code, Done, ran

from eeio.machine.filesystem import mounts

pytestmark = pytest.mark.root

# Written by each run where no case looks for anything else.
PATTERN = b"written by a run"
OFFSET = 32 << 20
WRITE = f"""
if [ -n "$EEIO_DEVICE" ]; then
	printf "{PATTERN.decode()}" |
		dd of="$EEIO_DEVICE" bs=1 seek={OFFSET} conv=notrunc,fsync 2>"$EEIO_OUTPUT_DIR/dd"
	[ "$EEIO_ERASE" = "$EEIO_DEVICE" ]
fi
"""
WRITES = "level=device operation=write spatiality=sequential"


class Rig:
    """Devices of a test, and the command that would write to them."""

    def __init__(self, home: Path, eeio: Eeio, stack: ExitStack) -> None:
        self.home, self.eeio, self.stack = home, eeio, stack
        self._profiles: Path | None = None

    def image(self, megabytes: int = 64, name: str = "image") -> Path:
        path = self.home / name
        with path.open("wb") as file:
            file.truncate(megabytes << 20)
        return path

    def attach(self, path: Path, *options: str) -> Path:
        done = _try("losetup", "--find", "--show", "--direct-io=on", *options, str(path))
        if done.returncode != 0:
            pytest.skip(f"no loop device: {done.stderr.strip()}")
        node = Path(done.stdout.strip())
        self.stack.callback(detach, node, path)
        wait_for_losetup(node)
        return node

    def device(self, megabytes: int = 64, name: str = "image") -> Path:
        return self.attach(self.image(megabytes, name))

    def ext4(self, *options: str, name: str = "image") -> Path:
        node = self.device(name=name)
        _do("mkfs.ext4", "-q", "-F", *options, str(node))
        return node

    def mount(self, node: Path, *options: str) -> Path:
        """Read-only: what the file system itself would write is none of ours."""
        point = self.home / f"mnt-{node.name}"
        point.mkdir(exist_ok=True)
        done = _try("mount", "-o", ",".join(("ro", *options)), str(node), str(point))
        if done.returncode != 0:
            pytest.skip(f"mount is not permitted here: {done.stderr.strip()}")
        self.stack.callback(_try, "umount", str(point))
        return point

    def process(self, *arguments: str) -> "subprocess.Popen[str]":
        """Runs until the end of the test; it has said a line when this returns."""
        process = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
        self.stack.callback(_end, process)
        assert process.stdout is not None
        if not process.stdout.readline():
            pytest.skip(f"{arguments[0]} does not work here")
        return process

    def opener(self, node: Path, flags: str) -> "subprocess.Popen[str]":
        code = f"import os, time; os.open('{node}', {flags}); print(flush=True); time.sleep(1000)"
        return self.process(sys.executable, "-c", code)

    def run(
        self, node: Path | str, *arguments: str, erase: Path | str | None = None, before: str = "",
        code: Code = 0,
    ) -> Done:  # fmt: skip
        """A campaign that writes to `node`; `before` is what happens before each run's pause."""
        if self._profiles is None:
            self._profiles = dummy.profile(self.home, WRITE, before)
        level = "filesystem" if "--filesystem" in arguments else "device"
        suite = dummy.suite(self.home, WRITES.replace("device", level))
        return self.eeio(
            "run", suite, "--name", "c", "--meter", "none",
            "--device", str(node), "--erase", str(erase or node), *arguments,
            environment={"EEIO_TEST_PROFILES": str(self._profiles)}, code=code,
        )  # fmt: skip

    def resume(self, code: Code = 0) -> Done:
        own = {"EEIO_TEST_PROFILES": str(self._profiles)}
        return self.eeio("resume", "c", environment=own, code=code)

    def reasons(self) -> list[str]:
        """Why each run is invalid."""
        return ["; ".join(record["validity"]) for record in records(self.home)]


@pytest.fixture
def rig(home: Path, eeio: Eeio) -> Iterator[Rig]:
    with ExitStack() as stack:
        yield Rig(home, eeio, stack)


def _try(*arguments: str, **more: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(  # type: ignore[call-overload,no-any-return]
        arguments, capture_output=True, text=True, timeout=300, check=False, **more
    )


def _do(*arguments: str) -> None:
    done = _try(*arguments)
    assert done.returncode == 0, done.stderr


def _end(process: "subprocess.Popen[str]") -> None:
    process.kill()
    process.communicate()


def _digest(image: Path, most_bytes: int | None = None) -> str:
    """Of the image's bytes (the first ones), once the kernel has written back what was written to
    its devices."""
    for line in _try("losetup", "--noheadings", "--output", "NAME").stdout.split():
        with suppress(OSError), Path(line).open("rb") as device:
            os.fsync(device.fileno())
    return hashlib.sha256(image.read_bytes()[:most_bytes]).hexdigest()


def _rejected(done: "subprocess.CompletedProcess[str]", *expected: str) -> None:
    message = done.stderr.strip()
    assert done.returncode == 2, (done.stdout, message)
    assert message.startswith("eeio: ") and len(message.splitlines()) == 1, message
    assert message.isprintable(), ascii(message)
    for reason in expected:
        assert reason in message, message


# --- A device in use: what it is in, and the words that must be told.

Case = Callable[[Rig], tuple[Path, str]]


def mounted(rig: Rig) -> tuple[Path, str]:
    node = rig.ext4()
    return node, f"{node} is mounted at {rig.mount(node)}"


def mounted_twice(rig: Rig) -> tuple[Path, str]:
    node = rig.ext4()
    rig.mount(node)
    other = rig.home / "other mount"
    other.mkdir()
    _do("mount", "-o", "ro", str(node), str(other))
    rig.stack.callback(_try, "umount", str(other))
    return node, "(and 1 more)"


def mounted_under_a_name_of_odd_bytes(rig: Rig) -> tuple[Path, str]:
    node = rig.ext4()
    point = rig.home / os.fsdecode(b"\xff\x1b[31m \n\\")
    point.mkdir()
    if _try("mount", "-o", "ro", str(node), str(point)).returncode != 0:
        pytest.skip("mount is not permitted here")
    rig.stack.callback(_try, "umount", str(point))
    return node, "is mounted at"


def mounted_in_another_namespace(rig: Rig) -> tuple[Path, str]:
    node = rig.ext4()
    point = rig.home / "elsewhere"
    point.mkdir()
    rig.process("unshare", "--mount", "--propagation", "private", "sh", "-c",
                f"mount -o ro {node} {point} && echo mounted && exec sleep 1000")  # fmt: skip
    return node, f"is mounted at {point}"


def mounted_in_a_namespace_and_a_chroot(rig: Rig) -> tuple[Path, str]:
    """A process shown little of its namespace must not stand for all of it."""
    node = rig.ext4()
    point = rig.home / "elsewhere"
    point.mkdir()
    script = (
        f"mount --bind / {rig.home}/root && (exec chroot {rig.home}/root sleep 1000 >/dev/null) & "
        f"sleep 0; mount -o ro {node} {point} && echo mounted && exec sleep 1000"
    )
    (rig.home / "root").mkdir()
    rig.process("unshare", "--mount", "--propagation", "private", "--kill-child", "--fork", "--pid",
                "sh", "-c", script)  # fmt: skip
    return node, f"is mounted at {point}"


def swap(rig: Rig) -> tuple[Path, str]:
    node = rig.device()
    _do("mkswap", str(node))
    _swapon(rig, node)
    return node, f"{node} is swap space; `swapoff {node}` first"


def _swapon(rig: Rig, node: Path) -> None:
    done = _try("swapon", str(node))
    if done.returncode != 0:
        pytest.skip(f"swapon is not permitted here: {done.stderr.strip()}")
    rig.stack.callback(_try, "swapoff", str(node))


def swap_by_a_name_with_a_blank(rig: Rig) -> tuple[Path, str]:
    node = rig.device()
    _do("mkswap", str(node))
    alias = _mknod(rig, node, "swap alias")
    _swapon(rig, alias)
    return node, "is swap space"


def _mknod(rig: Rig, node: Path, name: str = "alias") -> Path:
    alias = rig.home / name
    os.mknod(alias, 0o600 | 0o060000, node.stat().st_rdev)
    if _try("dd", f"if={alias}", "of=/dev/null", "count=1").returncode != 0:
        pytest.skip("device nodes cannot be used in the temporary folder")
    return alias


def under_a_mounted_loop_device(rig: Rig) -> tuple[Path, str]:
    node = rig.ext4()
    upper = rig.attach(node)
    return node, f"is used by {upper.name}, which is mounted at {rig.mount(upper)}"


def under_an_idle_loop_device(rig: Rig) -> tuple[Path, str]:
    node = rig.device()
    return node, f"{node} is used by {rig.attach(node).name}; take it out first"


def under_two_loop_devices(rig: Rig) -> tuple[Path, str]:
    node = rig.ext4()
    middle = rig.attach(node)
    upper = rig.attach(middle)
    rig.mount(upper)
    return node, f"is used by {middle.name}, which is used by {upper.name}, which is mounted at"


def under_a_loop_device_by_an_alias(rig: Rig) -> tuple[Path, str]:
    node = rig.ext4()
    upper = rig.attach(_mknod(rig, node))
    rig.mount(upper)
    return node, f"is used by {upper.name}"


def under_a_loop_device_by_an_alias_that_is_gone(rig: Rig) -> tuple[Path, str]:
    node = rig.ext4()
    alias = _mknod(rig, node)
    upper = rig.attach(alias)
    alias.unlink()
    rig.mount(upper)
    return node, f"is used by {upper.name}"


def under_a_loop_device_by_a_link(rig: Rig) -> tuple[Path, str]:
    node = rig.ext4()
    (rig.home / "link").symlink_to(node)
    upper = rig.attach(rig.home / "link")
    rig.mount(upper)
    return node, f"is used by {upper.name}"


def over_a_mounted_device(rig: Rig) -> tuple[Path, str]:
    lower = rig.ext4()
    upper = rig.attach(lower)
    rig.mount(lower)
    return upper, f"{upper} is on {lower}, and {lower} is mounted at"


def over_a_device_with_another_over_it(rig: Rig) -> tuple[Path, str]:
    lower = rig.ext4()
    mine, other = rig.attach(lower), rig.attach(lower)
    rig.mount(other)
    return mine, f"has the same image as {other}"


def one_image_twice(rig: Rig) -> tuple[Path, str]:
    other = rig.ext4()
    rig.mount(other)
    return rig.attach(rig.home / "image"), f"has the same image as {other}"


def one_image_by_two_names(rig: Rig) -> tuple[Path, str]:
    other = rig.ext4()
    rig.mount(other)
    (rig.home / "hard").hardlink_to(rig.home / "image")
    return rig.attach(rig.home / "hard"), f"has the same image as {other}"


def part_of_a_mounted_btrfs(rig: Rig) -> tuple[Path, str]:
    nodes = [rig.device(128, "image"), rig.device(128, "second")]
    _do("mkfs.btrfs", "-q", "-f", *map(str, nodes))
    _do("btrfs", "device", "scan", *map(str, nodes))
    rig.mount(nodes[1], *(f"device={node}" for node in nodes))
    return nodes[0], ""


def journal_of_a_mounted_ext4(rig: Rig) -> tuple[Path, str]:
    node, other = rig.device(), rig.device(name="data")
    _do("mke2fs", "-q", "-F", "-b", "4096", "-O", "journal_dev", str(node))
    _do("mkfs.ext4", "-q", "-F", "-b", "4096", "-J", f"device={node}", str(other))
    rig.mount(other)
    return node, f"{node} is in exclusive use"


def locked_exclusively(rig: Rig) -> tuple[Path, str]:
    node = rig.device()
    process = rig.opener(node, "os.O_RDONLY | os.O_EXCL")
    return node, f"process {process.pid} ("


def open_for_writing(rig: Rig) -> tuple[Path, str]:
    node = rig.device()
    process = rig.opener(node, "os.O_RDWR")
    return node, f"{node} is held open by process {process.pid} ("


def open_for_writing_by_an_alias_that_is_gone(rig: Rig) -> tuple[Path, str]:
    node = rig.device()
    alias = _mknod(rig, node)
    rig.opener(alias, "os.O_WRONLY")
    alias.unlink()
    return node, "for writing"


def read_only(rig: Rig) -> tuple[Path, str]:
    return rig.attach(rig.image(), "--read-only"), "is read-only"


IN_USE: list[Case] = [
    mounted, mounted_twice, mounted_under_a_name_of_odd_bytes, mounted_in_another_namespace,
    mounted_in_a_namespace_and_a_chroot, swap, swap_by_a_name_with_a_blank,
    under_a_mounted_loop_device, under_an_idle_loop_device, under_two_loop_devices,
    under_a_loop_device_by_an_alias, under_a_loop_device_by_an_alias_that_is_gone,
    under_a_loop_device_by_a_link, over_a_mounted_device, over_a_device_with_another_over_it,
    one_image_twice, one_image_by_two_names, part_of_a_mounted_btrfs, journal_of_a_mounted_ext4,
    locked_exclusively, open_for_writing, open_for_writing_by_an_alias_that_is_gone, read_only,
]  # fmt: skip


@pytest.mark.fast_variants(5)
@pytest.mark.parametrize("case", IN_USE, ids=lambda case: case.__name__)
def test_a_device_in_use_is_left_alone(rig: Rig, case: Case) -> None:
    node, expected = case(rig)
    # To swap space the kernel itself writes whenever it likes, but not to its header.
    most_bytes = 4096 if case in (swap, swap_by_a_name_with_a_blank) else None
    before = _digest(rig.home / "image", most_bytes)
    # Whatever it carries: named or not, it is in use.
    _rejected(rig.run(node, code=2), expected)
    assert _digest(rig.home / "image", most_bytes) == before
    assert not (rig.home / "data/eeio/results/c").exists()


# --- The same device by other names.


@pytest.mark.parametrize("alias", ["link", "link to a link", "by number", "node", "other case"])
def test_a_mounted_device_by_another_name_is_left_alone(rig: Rig, alias: str) -> None:
    node = rig.ext4()
    rig.mount(node)
    name = rig.home / "name"
    if alias == "link":
        name.symlink_to(node)
    elif alias == "link to a link":
        (rig.home / "first").symlink_to(node)
        name.symlink_to("first")
    elif alias == "by number":
        number = node.stat().st_rdev
        name = Path(f"/dev/block/{os.major(number)}:{os.minor(number)}")
        if not name.exists():
            pytest.skip("no /dev/block here")
    elif alias == "node":
        name = _mknod(rig, node)
    else:
        name = Path(f"/dev/../dev/./{node.name}")
    before = _digest(rig.home / "image")
    _rejected(rig.run(name, code=2), "is mounted at")
    _rejected(rig.run(node, erase=name, code=2), "is mounted at")
    assert _digest(rig.home / "image") == before


def _empty_loop_device(rig: Rig) -> Path:
    """One with a number that nobody gets who asks for a free one."""
    add, remove, number = 0x4C80, 0x4C81, 900 + os.getpid() % 90  # linux/loop.h
    try:
        control = os.open("/dev/loop-control", os.O_RDWR | os.O_CLOEXEC)
        rig.stack.callback(os.close, control)
        fcntl.ioctl(control, add, number)
    except OSError as error:
        pytest.skip(f"no loop device can be made: {error.strerror}")
    rig.stack.callback(fcntl.ioctl, control, remove, number)
    return Path(f"/dev/loop{number}")


@pytest.mark.parametrize(
    ("device", "erase", "expected"),
    [
        ("{node}", "{other}", "name it in both options"),
        ("{node}", "/dev/null", "name it in both options"),
        ("{node}", "/dev/no-such-device", "name it in both options"),
        ("{home}/image", "{home}/image", "is not a block device"),
        ("/dev/null", "/dev/null", "is not a block device"),
        ("/dev/tty", "/dev/tty", "is not a block device"),
        ("{home}", "{home}", "is not a block device"),
        ("/dev/no-such-device", "/dev/no-such-device", "No such file"),
        ("{home}/dangling", "{home}/dangling", "No such file"),
        ("{free}", "{free}", "has 0 bytes"),
    ],
)
def test_what_is_not_the_device_is_left_alone(
    rig: Rig, device: str, erase: str, expected: str
) -> None:
    node, other = rig.device(), rig.device(name="second")
    free = _empty_loop_device(rig)
    (rig.home / "dangling").symlink_to("nothing")
    names = {"node": node, "other": other, "home": rig.home, "free": free}
    before = _digest(rig.home / "image"), _digest(rig.home / "second")
    done = rig.run(device.format(**names), erase=erase.format(**names), code=2)
    _rejected(done, expected)
    assert (_digest(rig.home / "image"), _digest(rig.home / "second")) == before


# --- A device that carries something.

UUID = "5e3f1c2a-0b1d-4c8e-9f00-123456789abc"


def _write(image: Path, offset: int, content: bytes) -> None:
    with image.open("r+b") as file:
        file.seek(offset)
        file.write(content)


def _make(rig: Rig, what: str) -> Path:
    """A device that carries `what`."""
    node = rig.device(320 if what.startswith("xfs") else 128)
    image = rig.home / "image"
    commands = {
        "ext4": ["mkfs.ext4", "-q", "-U", UUID],
        "ext4 with a label": ["mkfs.ext4", "-q", "-U", UUID, "-L", "HOME"],
        "ext4 with a blank": ["mkfs.ext4", "-q", "-U", UUID, "-L", "my data"],
        "ext4 with an escape": ["mkfs.ext4", "-q", "-U", UUID, "-L", "\x1b[31m\n"],
        "xfs": ["mkfs.xfs", "-q", "-m", f"uuid={UUID}"],
        "btrfs": ["mkfs.btrfs", "-q", "-L", "pool"],
        "swap": ["mkswap", "-U", UUID],
    }
    if what in commands:
        _do(*commands[what], str(node))
    elif what in ("gpt", "dos"):
        _partition(image, what)
    elif what == "dos over ext4":
        _do("mkfs.ext4", "-q", "-U", UUID, str(node))
        _partition(image, "dos")
    elif what == "LUKS":
        header = b"LUKS\xba\xbe" + struct.pack(">H", 1)
        _write(image, 0, header.ljust(168, b"\0") + UUID.encode())
    elif what == "LVM":
        body = struct.pack(
            "<I8s32sQ", 32, b"LVM2 001", b"abcdefghijklmnopqrstuvwxyzABCDEF", 1 << 27
        )
        body = body.ljust(492, b"\0")
        _write(image, 512, struct.pack("<8sQI", b"LABELONE", 1, _lvm_crc(body)) + body)
    elif what == "RAID":
        block = struct.pack("<4I16s32s", 0xA92B4EFC, 1, 0, 0, uuid.UUID(UUID).bytes, b"host:data")
        _write(image, 4096, block.ljust(144, b"\0") + struct.pack("<Q", 8))
    return node


def _partition(image: Path, table: str) -> None:
    done = _try(
        "sfdisk", "-q", "--wipe", "never", str(image), input=f"label: {table}\n2048,32768\n"
    )
    assert done.returncode == 0, done.stderr


def _lvm_crc(body: bytes) -> int:
    crc = 0xF597A6CF
    for byte in body:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0xEDB88320 if crc & 1 else 0)
    return crc


# What it is, what must be typed to give it up, and what does not give it up.
CARRIED = [
    ("ext4", f"--lose ext4:{UUID}", ["ext4"]),
    ("ext4 with a label", "--lose ext4:HOME", ["ext4:home", "xfs:HOME", "HOME"]),
    ("ext4 with a blank", "--lose 'ext4:my data'", ["ext4:my"]),
    ("ext4 with an escape", f"--lose ext4:{UUID}", ["ext4"]),
    ("xfs", f"--lose xfs:{UUID}", [f"ext4:{UUID}"]),
    ("btrfs", "--lose btrfs:pool", ["btrfs"]),
    ("swap", f"--lose swap:{UUID}", ["swap"]),
    ("LUKS", f"--lose crypto_LUKS:{UUID}", ["crypto_LUKS"]),
    ("LVM", "--lose LVM2_member:", ["LVM2_member"]),
    ("RAID", "--lose linux_raid_member:host:data", ["linux_raid_member"]),
    ("gpt", "--lose gpt", ["dos"]),
    ("dos", "--lose dos", ["gpt"]),
    ("dos over ext4", "--lose dos", ["dos", f"ext4:{UUID}"]),
]  # fmt: skip


@pytest.mark.fast_variants(5)
@pytest.mark.parametrize(("what", "message", "wrong"), CARRIED, ids=[case[0] for case in CARRIED])
def test_what_a_device_carries_is_lost_only_when_named(
    rig: Rig, what: str, message: str, wrong: list[str]
) -> None:
    node = _make(rig, what)
    before = _digest(rig.home / "image")
    done = rig.run(node, code=2)
    _rejected(done, "contains", message)
    for name in wrong:
        _rejected(rig.run(node, "--lose", name, code=2), "contains")
    assert _digest(rig.home / "image") == before
    # And with the very words that were told it is.
    printed = ran(
        ["sh", "-c", f'printf "%s\\n" {done.stderr.strip().rpartition("add ")[2]}']
    ).stdout.splitlines()
    rig.run(node, *printed)
    assert _digest(rig.home / "image") != before
    assert (rig.home / "image").read_bytes()[OFFSET : OFFSET + len(PATTERN)] == PATTERN


def test_a_device_that_carries_nothing_needs_no_name(rig: Rig) -> None:
    node = rig.device()
    _rejected(rig.run(node, "--lose", "ext4:HOME", code=2), "contains no such signature")
    rig.run(node)
    assert PATTERN in (rig.home / "image").read_bytes()


def test_a_reader_stops_nothing_and_is_reported(rig: Rig) -> None:
    node = rig.device()
    process = rig.opener(node, "os.O_RDONLY")
    plan = rig.eeio("plan", dummy.suite(rig.home, WRITES), "--device", str(node),
                    "--erase", str(node), code=None)  # fmt: skip
    assert f"also opened by process {process.pid} (" in plan.stdout, plan.stderr
    rig.run(node)


def test_a_plan_reports_what_is_lost(rig: Rig) -> None:
    node = _make(rig, "ext4 with a label")
    arguments = ("plan", dummy.suite(rig.home, WRITES), "--device", str(node))
    before = _digest(rig.home / "image")
    done = rig.eeio(*arguments, "--erase", str(node), "--lose", "ext4:HOME", code=None)
    assert (
        f"{node}: OVERWRITTEN: all its data are destroyed, ext4 'HOME' (UUID {UUID})" in done.stdout
    )
    done = rig.eeio(*arguments, "--lose", "ext4:HOME", code=2)
    _rejected(done, "--lose ext4:HOME requires --erase DEV")
    assert _digest(rig.home / "image") == before


def test_file_systems_are_made_only_over_what_was_named(rig: Rig) -> None:
    node = _make(rig, "xfs")
    arguments = ("--directory", str(rig.home / "target"), "--filesystem", "ext4")
    before = _digest(rig.home / "image")
    _rejected(rig.run(node, *arguments, code=2), "contains xfs", f"--lose xfs:{UUID}")
    assert _digest(rig.home / "image") == before


# --- What happens to the device while the campaign runs: `act` happens after the device was looked
# at and before the pause of the first run, and must not end in a write.


OPEN = "exec <>{node}; echo $$ >{home}/new; mv {home}/new {home}/pid; "
OPEN += "exec sleep 1000"
# eeio ends what it started itself, which it knows by this variable.
HOLDER = f"setsid env -u EEIO_STARTED_BY sh -c '{OPEN}'"


def _during(
    rig: Rig, node: Path | str, act: str, *arguments: str
) -> "subprocess.CompletedProcess[str]":
    """The campaign during which `act` (sh) happens once; what it said is in act.log."""
    once = rig.home / "acted"
    script = rig.home / "act.sh"
    script.write_text(act)
    return rig.run(node, *arguments, before=(
        f"[ -e {once} ] || {{ touch {once}; sh -x {script} >{rig.home}/act.log 2>&1; }}\n"
        f"echo $? >>{rig.home}/act.log\nexit 0\n"
    ), code=None)  # fmt: skip


@pytest.mark.fast_variants(4)
@pytest.mark.parametrize(
    ("command", "reported"),
    [
        ("mount -o ro {node} {home}/mnt", "busy"),
        ("unshare --mount mount -o ro {node} {home}/mnt", "busy"),
        ("swapon {node}", "busy"),
        ("mkfs.ext4 -q -F {node}", "in use"),
        ("mkfs.btrfs -q -f {node}", "busy"),
        ("wipefs --all {node}", "busy"),
        ("mkswap {node}", "busy"),
    ],
)
def test_nobody_takes_the_device_during_a_campaign(rig: Rig, command: str, reported: str) -> None:
    node = _make(rig, "swap" if command.startswith("swapon") else "ext4")
    (rig.home / "mnt").mkdir()
    kind = "swap" if command.startswith("swapon") else "ext4"
    act = command.format(node=node, home=rig.home)
    done = _during(rig, node, f"LC_ALL=C {act}", "--lose", f"{kind}:{UUID}")
    # Refused by the kernel, so the campaign is none the worse.
    assert reported in (rig.home / "act.log").read_text().lower()
    assert done.returncode == 0, done.stderr
    assert not any(mount.mount_point == rig.home / "mnt" for mount in mounts())
    found = _try("wipefs", "--json", str(node)).stdout
    assert UUID in found
    assert _try("mount", "-o", "ro", str(node), str(rig.home / "mnt")).returncode in (0, 32)
    _try("umount", str(rig.home / "mnt"))


@pytest.mark.parametrize(
    ("act", "reason"),
    [
        # An exclusive open does not keep a loop device away.
        ("mount -o ro $(losetup --find --show {node}) {home}/mnt", "is used by loop"),
        ("losetup --find {node}", "is used by loop"),
        (f"{HOLDER} & while [ ! -e {{home}}/pid ]; do sleep 0.01; done",
         "is held open by process"),
        ("mkfs.ext4 -q -F -U {uuid} {home}/small; dd if={home}/small of={node} bs=1M conv=notrunc",
         "which was not there when the campaign began"),
        ("rm {home}/name; cp -a {other} {home}/name",
         "is no longer the device that the campaign began on"),
        ("rm {home}/name", "is no longer the device that the campaign began on"),
    ],
)  # fmt: skip
def test_a_device_that_is_taken_all_the_same_is_not_written(
    rig: Rig, act: str, reason: str
) -> None:
    node, other = rig.ext4("-U", UUID), rig.device(name="second")
    rig.image(16, "small")
    (rig.home / "mnt").mkdir()
    name = _mknod(rig, node)
    name.rename(rig.home / "name")
    names = {"node": node, "other": other, "home": rig.home, "uuid": uuid.uuid4()}
    rig.stack.callback(_tidy, rig.home, node)
    done = _during(rig, rig.home / "name", act.format(**names), "--lose", f"ext4:{UUID}")
    assert done.returncode == 3, (done.stderr, (rig.home / "act.log").read_text())
    assert all(reason in message for message in rig.reasons()), rig.reasons()
    assert len(rig.reasons()) == 2
    _digest(rig.home / "image")
    assert PATTERN not in (rig.home / "image").read_bytes()
    assert PATTERN not in (rig.home / "second").read_bytes()


def test_a_link_is_followed_once(rig: Rig) -> None:
    """Changed between the last check and the tool's start, it would lead to another device."""
    node, other = rig.device(), rig.device(name="second")
    name = rig.home / "name"
    name.symlink_to(node)
    _during(rig, name, f"ln -sfn {other} {name}")
    assert (rig.home / "acted").exists() and rig.reasons() == [""] * 2
    _digest(rig.home / "image")
    assert PATTERN in (rig.home / "image").read_bytes()
    assert PATTERN not in (rig.home / "second").read_bytes()


def test_a_campaign_keeps_the_name_that_leads_to_the_same_drive_after_a_boot(rig: Rig) -> None:
    node, other = rig.device(), rig.device(name="second")
    name = rig.home / "name"
    name.symlink_to(node)
    rig.run(name)
    folder = rig.home / "data/eeio/results/c"
    lines = (folder / "runs.jsonl").read_text().splitlines(keepends=True)
    (folder / "runs.jsonl").write_text(lines[0])
    name.unlink()
    name.symlink_to(other)
    _rejected(rig.resume(code=2), "is not on the disk that the campaign began on")
    name.unlink()
    name.symlink_to(node)
    rig.resume()
    assert rig.reasons() == [""] * 2
    options = json.loads((folder / "campaign.json").read_text())["options"]
    assert (options["device"], options["erase"]) == (str(name), str(name))


def _tidy(home: Path, node: Path) -> None:
    _try("umount", str(home / "mnt"))
    if (home / "pid").exists():
        os.kill(int((home / "pid").read_text()), signal.SIGKILL)
    for line in _try("losetup", "--noheadings", "--output", "NAME,BACK-FILE").stdout.splitlines():
        name, _, backing = line.partition(" ")
        if backing.strip() == str(node):
            _try("losetup", "--detach", name)


def test_another_image_behind_the_loop_device_is_not_written(rig: Rig) -> None:
    """The campaign holds it, so the kernel puts the change off to its end."""
    node, second = rig.device(), rig.image(name="second")
    act = f"losetup --detach {node}; losetup {node} {second}"
    done = _during(rig, node, act)
    assert PATTERN not in second.read_bytes()
    assert done.returncode in (0, 3), done.stderr


def test_a_file_system_is_not_made_over_what_took_the_device(rig: Rig) -> None:
    """Between two file systems the device is free for a moment: it is asked again before mkfs."""
    node = rig.device(128)
    act = f"umount {rig.home}/data/eeio/results/c/eeio-*; losetup --find {node}"
    rig.stack.callback(_tidy, rig.home, node)
    done = _during(rig, node, act, "--filesystem", "ext4,btrfs", "--seed", "1",
                   "--directory", str(rig.home / "target"))  # fmt: skip
    assert done.returncode in (1, 3), done.stderr
    assert any("is used by loop" in reason for reason in rig.reasons()), rig.reasons()


def test_a_campaign_goes_on_over_what_it_may_lose_and_made_itself(rig: Rig) -> None:
    node = _make(rig, "ext4")
    arguments = ("--filesystem", "btrfs", "--directory", str(rig.home / "target"))
    rig.run(node, *arguments, "--lose", f"ext4:{UUID}")
    _drop_last_run(rig.home)
    # The btrfs that the campaign made is on it now.
    assert "btrfs" in _try("wipefs", "--json", str(node)).stdout
    rig.resume()
    _drop_last_run(rig.home)
    _do("mkfs.ext4", "-q", "-F", str(node))
    before = _digest(rig.home / "image")
    _rejected(rig.resume(code=2), "contains ext4", "--lose ext4:")
    assert _digest(rig.home / "image") == before


def _drop_last_run(home: Path) -> None:
    path = home / "data/eeio/results/c/runs.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))


def test_a_killed_campaign_goes_on_over_the_file_system_it_made(rig: Rig) -> None:
    node = rig.device(128)
    act = "read -r _ _ _ parent _ </proc/$PPID/stat; kill -9 $parent"
    arguments = ("--filesystem", "ext4", "--directory", str(rig.home / "target"))
    done = _during(rig, node, act, *arguments)
    assert done.returncode == -signal.SIGKILL, done.stderr
    rig.resume()
    assert rig.reasons() == ["", ""]


def test_a_device_not_named_with_erase_is_only_read(rig: Rig) -> None:
    node = rig.device()
    before = _digest(rig.home / "image")
    suite = dummy.suite(rig.home, WRITES)
    _rejected(rig.eeio("run", suite, "--device", str(node), code=2), "is only read", "--erase")
    done = rig.eeio("run", suite, "--device", str(node), "--filesystem", "ext4", code=2)
    _rejected(done, "name it again")
    assert _digest(rig.home / "image") == before


@pytest.mark.parametrize("place", ["start", "middle", "end"])
def test_data_without_a_signature_must_be_given_up_by_name(rig: Rig, place: str) -> None:
    """As a raw database, or an encrypted device without a header, has none."""
    node = rig.device()
    offset = {"start": 4096, "middle": 8 << 20, "end": (64 << 20) - 8192}[place]
    with node.open("r+b") as file:
        file.seek(offset)
        file.write(os.urandom(4096 if place != "middle" else 16 << 20))
    before = _digest(rig.home / "image")
    _rejected(rig.run(node, code=2), "contains data of an unknown kind", "--lose data")
    assert _digest(rig.home / "image") == before
    rig.run(node, "--lose", "data")


def test_a_loop_device_whose_image_another_process_writes_is_rejected(rig: Rig) -> None:
    node = rig.device()
    holder = rig.opener(rig.home / "image", "os.O_RDWR")
    before = _digest(rig.home / "image")
    _rejected(rig.run(node, code=2), f"the image of {node} is open by process {holder.pid}")
    assert _digest(rig.home / "image") == before
    holder.kill()
    holder.wait()
    rig.opener(rig.home / "image", "os.O_RDONLY")
    rig.run(node)
