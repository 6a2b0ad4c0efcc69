"""Whether a block device may be read, or written over; and keeping it while a campaign writes."""

import errno
import os
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from eeio.errors import RefusedError
from eeio.system import signatures
from eeio.system.filesystem import BlockDevice, block_device
from eeio.system.holders import Kernel
from eeio.system.signatures import Signature
from eeio_results.errors import EeioError

_SAMPLES = 256
_SAMPLE_BYTES = 4096
_END_BYTES = 1 << 20
# After an unmount the kernel may need a moment to let go of a device.
_TRIES = 20
_PAUSE_S = 0.1


def check_readable(node: Path, root: Path = Path("/")) -> BlockDevice:
    """The device at `node`, which this user can read; RefusedError otherwise. `root` stands for `/`
    of a machine that is only described."""
    path = node if root == Path("/") else root / str(node).lstrip("/")
    try:
        path.stat()
    except OSError as error:
        raise RefusedError(f"{node}: {error.strerror}; `lsblk` lists the devices") from error
    device = block_device(node, root)
    if device is None:
        raise RefusedError(f"{node} is not a block device; `lsblk` lists them")
    if not os.access(path, os.R_OK):
        raise RefusedError(f"{node}: this user may not read it; run as root or join group disk")
    return device


def check_unused(node: Path) -> BlockDevice:
    """The device at `node`, which is readable and which nothing uses."""
    device = check_readable(node)
    _refuse_used(device)
    return device


@dataclass(frozen=True)
class Permission:
    """What the user gave up: the device `erase` names, and of what it carries what `lose` names
    (`ext4:LABEL`, `ext4:UUID`, `gpt`, `data`), and the file systems of these UUIDs, which the
    campaign made itself."""

    erase: Path
    lose: tuple[str, ...] = ()
    made: frozenset[str] = frozenset()

    def missing(self, found: Sequence[Signature]) -> list[Signature]:
        """What is on the device and was not given up."""
        return [s for s in signatures.unnamed(found, self.lose) if s.uuid not in self.made]


def check_erasable(node: Path, permission: Permission) -> BlockDevice:
    """The device at `node`, which may be written over: it is the one that the user named with
    --erase, nothing uses it, and all that it carries was given up by name. RefusedError says what
    stands against it."""
    device = check_readable(node)
    if block_device(permission.erase) != device:
        raise RefusedError(
            f"--erase names {permission.erase}, --device names {node}: to write to a device name "
            "it twice"
        )
    with suppress(OSError):
        if (device.sysfs / "ro").read_text(encoding="ascii").strip() == "1":
            raise RefusedError(f"{node} is read-only; `blockdev --setrw` changes that")
    if not os.access(node, os.W_OK):
        raise RefusedError(f"{node}: this user may not write to it; run as root")
    if not device.size_bytes:
        raise RefusedError(f"{node} holds 0 bytes: no medium is in it, or nothing is attached")
    _refuse_in_use(device)
    os.close(_claim(node, device))
    found = carried(node)
    missing = permission.missing(found)
    if missing:
        raise RefusedError(
            f"{node} ({device.size_bytes / 1e9:.3g} GB) carries "
            f"{signatures.listed(missing, node)}: all that is on it would be lost. To allow that "
            f"add {signatures.options(missing)}"
        )
    return device


DATA = "data"
"""Given up by --lose: what a device contains that has no signature, as a raw database has none."""


def check_named(node: Path, lose: Sequence[str]) -> None:
    """RefusedError for what --lose names and the device does not carry, since it may be another
    disk's; and for data without a signature that --lose does not name."""
    found = carried(node)
    known = {name for signature in found for name in signature.names} | {DATA}
    for name in lose:
        if name not in known:
            has = signatures.listed(found, node) or "nothing that has a name"
            raise RefusedError(f"--lose {name}: {node} carries no such thing; it carries {has}")
    if not found and DATA not in lose and has_data(node):
        raise RefusedError(
            f"{node} contains data of an unknown kind, which would be lost. To allow that add "
            f"--lose {DATA}"
        )


def has_data(node: Path) -> bool:
    """Whether a block of the device is not zero: of its first and last MiB, and of samples."""
    device = check_readable(node)
    with node.open("rb", buffering=0) as file:
        for offset in (0, max(0, device.size_bytes - _END_BYTES)):
            file.seek(offset)
            if any(file.read(_END_BYTES)):
                return True
    return zero_share(node, device.size_bytes) < 1.0


def carried(node: Path) -> list[Signature]:
    """All signatures on a device and its partitions; RefusedError when they cannot be told."""
    device = block_device(node)
    parts = device.partitions if device else []
    try:
        return signatures.found([node, *(part.node for part in parts)])
    except EeioError as error:
        raise RefusedError(str(error)) from error


def readers(node: Path) -> list[str]:
    """Processes that only read the device, for the user to know of."""
    device = block_device(node)
    found = Kernel().openers(device.name) if device else []
    return [opener.text for opener in found if not opener.writes]


class ErasedDevice:
    """A device that a campaign writes over, from its start to its end.

    It is kept open exclusively wherever possible, so that the kernel lets nobody mount it, swap to
    it, make a file system on it or take it into an array meanwhile; plain opens, such as a tool's,
    are as free as before. The descriptor ends with the process. What an exclusive open does not
    keep away (a loop device, a process that writes) is looked for each time that `hold` is asked.

    `record` is the file that keeps the UUIDs of the file systems that the campaign makes, each
    noted before it is made, so that a campaign which was killed knows its own again.
    """

    def __init__(self, node: Path, permission: Permission, record: Path) -> None:
        self.node = node
        self._device = check_readable(node)
        self._identity = self._device.identity
        self._permission = permission
        self._record = record
        self._descriptor: int | None = None

    def hold(self) -> None:
        """To be asked before every write: takes the device, unless it is held already, and looks at
        it again; EeioError when it may not, or no longer, be written."""
        self._same()
        if self._descriptor is None:
            self._descriptor = _claim(self.node, self._device)
        _refuse_in_use(self._device)
        found = carried(self.node)
        made = self._permission.made | read_made(self._record)
        permission = Permission(self._permission.erase, self._permission.lose, made)
        if missing := permission.missing(found):
            raise RefusedError(
                f"{self.node} carries {signatures.listed(missing, self.node)}, which was not there "
                "when the campaign began; it is not written any more. If that may be lost, begin "
                f"another campaign with {signatures.options(missing)}"
            )

    def _same(self) -> None:
        with suppress(OSError):
            if block_device(self.node) == self._device and self._device.identity == self._identity:
                return
        raise RefusedError(
            f"{self.node} is no longer the device that the campaign began on ({self._identity}); "
            "it is not written any more. Attach that device again, then `eeio resume`"
        )

    @contextmanager
    def released(self) -> Iterator[None]:
        """Let go of for a program that opens it exclusively itself, and taken again after it. That
        program is refused by the kernel where another was faster."""
        self.hold()
        self.release()
        yield
        self.hold()

    def new_uuid(self) -> str:
        """For a file system about to be made; noted as the campaign's own."""
        made = str(uuid.uuid4())
        with self._record.open("a", encoding="ascii") as file:
            file.write(f"{made}\n")
            file.flush()
            os.fsync(file.fileno())
        return made

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def read_made(record: Path) -> frozenset[str]:
    """UUIDs that a campaign noted; none when there is no such file."""
    try:
        return frozenset(record.read_text(encoding="ascii", errors="replace").split())
    except FileNotFoundError:
        return frozenset()


def zero_share(node: Path, length_bytes: int) -> float:
    """Share of blocks, sampled evenly over the first `length_bytes`, that hold nothing but zeros.

    A drive answers for blocks that were never written, or were trimmed, without touching its
    medium, and it answers with zeros; the block layer's counters do not show that.
    """
    step = max(_SAMPLE_BYTES, length_bytes // _SAMPLES // _SAMPLE_BYTES * _SAMPLE_BYTES)
    empty = bytes(_SAMPLE_BYTES)
    found = []
    with node.open("rb", buffering=0) as device:
        for offset in range(0, length_bytes - _SAMPLE_BYTES + 1, step):
            device.seek(offset)
            found.append(device.read(_SAMPLE_BYTES) == empty)
    return sum(found) / len(found) if found else 0.0


def _claim(node: Path, device: BlockDevice) -> int:
    """A descriptor that has the device for itself: the kernel gives it to one only, and to none
    while the device is mounted, swapped to, or part of something."""
    for left in reversed(range(_TRIES)):
        try:
            descriptor = os.open(node, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise RefusedError(f"{node}: {error.strerror}") from error
            if left:
                time.sleep(_PAUSE_S)
                continue
            _refuse_used(device)
            openers = "; ".join(opener.text for opener in Kernel().openers(device.name))
            by = openers or "the kernel: RAID, LVM, a file system?"
            raise RefusedError(f"{node} is in use, and its user lets nobody else ({by})") from error
        number = os.fstat(descriptor).st_rdev
        if (os.major(number), os.minor(number)) == (device.major, device.minor):
            return descriptor
        os.close(descriptor)
        break
    raise RefusedError(f"{node} became another device just now; look what changes it")


def _refuse_used(device: BlockDevice, kernel: Kernel | None = None) -> None:
    """Refuses a device that anything uses, with the first that does."""
    used = (kernel or Kernel()).users(device.name)
    if used:
        more = f" (and {len(used) - 1} more)" if len(used) > 1 else ""
        raise RefusedError(used[0] + more)


def _refuse_in_use(device: BlockDevice) -> None:
    """Also one that a process, such as a virtual machine, may write to. Those that only read (udev,
    smartd) lose nothing."""
    kernel = Kernel()
    _refuse_used(device, kernel)
    for opener in kernel.openers(device.name):
        if opener.writes:
            raise RefusedError(f"{device.node} is held open by {opener.text}; end it first")
    for opener in kernel.image_writers(device.name):
        raise RefusedError(f"the image of {device.node} is open by {opener.text}; end it first")
