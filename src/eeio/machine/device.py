"""Checks whether a block device may be written: its users, its contents, the user's permission.

Checks whether a block device may be read or overwritten, and claims it while a campaign writes.

Contents of a block device: file systems, RAID, LVM, LUKS, swap, partition tables.

Users of a block device that writes would harm.

All sources in the kernel are checked: mounts of every mount namespace, swap, RAID and device
mapper, loop devices over the device or sharing its file, partitions and their disk, the devices
below, and processes with the device open. `device.py` also tries an exclusive open, which detects
holders that the kernel shows nowhere.
"""

import errno
import json
import os
import re
import shlex
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from eeio.errors import EeioError, RejectedError
from eeio.files.mounts import parse_mountinfo, unescape
from eeio.machine.filesystem import BlockDevice, Mount, block_device, device_number
from eeio.machine.loop import status
from eeio.machine.undo import run_command
from eeio.units.external_text import shown

# A drive that needs longer to give a few blocks is no drive to write to.
_TIMEOUT_S = 30
# A backup GPT and the protective table in its first sector belong to the table.
_PROTECTIVE = "PMBR"


@dataclass(frozen=True)
class Signature:
    """One signature that libblkid finds on `device`; None without a label or UUID."""

    device: str
    type: str
    label: str | None = None
    uuid: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names that the user may give to release it, the best first. A signature with a label or
        UUID needs that name: just `ext4` could be on any disk."""
        label = None
        if self.label and self.label.isprintable():
            label = self.label
        return tuple(f"{self.type}:{name}" for name in (label, self.uuid) if name) or (self.type,)

    @property
    def identity(self) -> str:
        """Without the device, whose name may change."""
        return json.dumps([self.type, self.label, self.uuid])

    @property
    def text(self) -> str:
        """Harmless to print: a label may hold anything."""
        label = ""
        if self.label is not None:
            label = f" {self.label!a}"
        uuid = ""
        if self.uuid is not None:
            uuid = f" (UUID {self.uuid})"
        return shown(f"{self.type}{label}{uuid}")


def signatures_found(nodes: Iterable[Path]) -> list[Signature]:
    """All signatures on these devices; EeioError if they cannot be read.

    wipefs without -a only reads. Unlike `blkid -p`, it names all signatures if a disk has remains
    of several.
    """
    signatures: dict[Signature, None] = {}
    for node in nodes:
        try:
            text = run_command(
                ["wipefs", "--json", "--output", "TYPE,LABEL,UUID", str(node)], _TIMEOUT_S
            )
            signatures.update(dict.fromkeys(_parse(str(node), text)))
        except EeioError as error:
            raise EeioError(f"{node}: cannot identify its contents ({error})") from error
    return list(signatures)


def _parse(node: str, text: str) -> list[Signature]:
    if not text.strip():
        return []  # older wipefs prints no output without signatures
    try:
        body: dict[str, Any] = json.loads(text)
        listed = []
        for item in body["signatures"]:
            listed.append(
                Signature(node, str(item["type"]), _text(item, "label"), _text(item, "uuid"))
            )
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
        raise EeioError(f"wipefs printed {text[:100]!a}") from error
    tables = any(signature.type == "gpt" for signature in listed)
    return [each for each in listed if not (tables and each.type == _PROTECTIVE)]


def _text(item: dict[str, Any], name: str) -> str | None:
    value = item.get(name)
    if not isinstance(value, str | None):
        raise TypeError(f"{name} is not text")
    return value


def unnamed(signatures: Iterable[Signature], named: Iterable[str]) -> list[Signature]:
    """Those that none of the names means."""
    names = set(named)
    return [signature for signature in signatures if not names.intersection(signature.names)]


def signatures_listed(signatures: Iterable[Signature], node: Path) -> str:
    """All of them as text, those of partitions with their location."""
    return "; ".join(
        s.text if s.device == str(node) else f"{s.text} on {s.device}" for s in signatures
    )


def options_of_signatures(signatures: Iterable[Signature]) -> str:
    """Arguments that release these."""
    names = dict.fromkeys(signature.names[0] for signature in signatures)
    return " ".join(f"--lose {shlex.quote(name)}" for name in names)


_DELETED = " (deleted)"
# A stat there may wait for an unreachable server, and no disk is there.
_REMOTE = re.compile(r"(nfs|cifs|smb|ceph|9p|lustre|afs|fuse)")


@dataclass(frozen=True)
class Opener:
    """A process with an open device."""

    pid: int
    name: str
    writes: bool

    @property
    def text(self) -> str:
        how = "reading"
        if self.writes:
            how = "writing"
        return f"process {self.pid} ({self.name}), for {how}"


@dataclass(frozen=True)
class _Backing:
    """The backing of a loop device: its name in the kernel, and device and inode if the loop device
    could be queried. For a backing device, its number."""

    name: str
    file: tuple[int, int] | None
    number: str | None

    def is_same(self, other: "_Backing") -> bool:
        """Whether it is the same file or device; by the names if one could not be queried."""
        if self.file and other.file:
            return self.file == other.file
        return self.name == other.name


@dataclass(frozen=True)
class Kernel:
    """The kernel's information on devices, read once. Tests supply other trees."""

    proc: Path = Path("/proc")
    sysfs: Path = Path("/sys")
    dev: Path = Path("/dev")

    def users(self, name: str) -> list[str]:
        """Uses that writes to the device of that kernel name would harm: a clause each, with the
        remedy, the most important first. Empty: no visible use."""
        names = []
        for member in self._members(name):
            for use in self._used(member):
                names.append(f"/dev/{member} {use}")
        names += self._below(name, {name})
        return list(dict.fromkeys(names))

    def openers(self, name: str) -> list[Opener]:
        """Processes other than this one that hold the device or a partition of it open, as far as
        this user may see, those that write first."""
        numbers = set()
        for member in self._members(name):
            if member in self.numbers:
                numbers.add(self.numbers[member])
        return self._having_open(lambda descriptor: _number_of(descriptor) in numbers)

    def image_writers(self, name: str) -> list[Opener]:
        """Processes that have the image of a loop device open for writing."""
        images = set()
        for member in self._members(name):
            if member in self._loops:
                with suppress(OSError):
                    images.add(_file_of(Path(self._loops[member].name)))
        openers = self._having_open(lambda descriptor: _file_of(descriptor) in images)
        return [opener for opener in openers if opener.writes]

    def _having_open(self, is_it: Callable[[Path], bool]) -> list[Opener]:
        """Processes with a matching open file, writers first."""
        remote = tuple(
            f"{mount.mount_point}/" for mount in self.mounts if _REMOTE.match(mount.filesystem)
        )
        openers = set()
        for process in self._processes():
            for descriptor in _entries(process / "fd"):
                with suppress(OSError, ValueError):
                    target = (process / "fd" / descriptor).readlink()
                    if not target.is_absolute() or str(target).startswith(remote):
                        continue
                    if is_it(process / "fd" / descriptor):
                        openers.add(self._opener(process, descriptor))
        return sorted(openers, key=lambda opener: (not opener.writes, opener.pid))

    def _opener(self, process: Path, descriptor: str) -> Opener:
        name = "?"
        with suppress(OSError):
            name = (process / "comm").read_bytes().strip().decode(errors="backslashreplace")
        # Without a word on how, the worse is taken.
        writes = True
        with suppress(OSError):
            text = (process / "fdinfo" / descriptor).read_bytes()
            flags = re.search(rb"^flags:\s*([0-7]+)", text, re.MULTILINE)
            writes = flags is None or int(flags[1], 8) & os.O_ACCMODE != os.O_RDONLY
        return Opener(int(process.name), name if name.isprintable() else ascii(name), writes)

    @cached_property
    def numbers(self) -> dict[str, str]:
        """Kernel name -> number, such as `8:1`, of every block device."""
        numbers = {}
        for name in _entries(self.sysfs / "class/block"):
            with suppress(OSError):
                numbers[name] = (
                    (self.sysfs / "class/block" / name / "dev").read_text("ascii").strip()
                )
        return numbers

    @cached_property
    def mounts(self) -> list[Mount]:
        """Of every mount namespace that a process this user may look into lives in."""
        seen = set()
        texts: dict[bytes, None] = {}
        for process in self._processes(own=True):
            with suppress(OSError):
                # A process in a chroot sees only the mounts in it.
                view = ((process / "ns/mnt").readlink(), (process / "root").readlink())
                if view in seen:
                    continue
                texts[(process / "mountinfo").read_bytes()] = None
                seen.add(view)  # not before: the process may be gone, and another tell as much
        mounts = []
        for text in texts:
            mounts.extend(parse_mountinfo(text))
        return mounts

    @cached_property
    def _mounted(self) -> dict[str, list[str]]:
        """Number of a device -> where it is mounted, by the mount's number and by its source (the
        number of btrfs is no device's)."""
        mounts: dict[str, list[str]] = {}
        by_source: dict[str, str | None] = {}
        for mount in self.mounts:
            if mount.source not in by_source:
                by_source[mount.source] = (
                    _number_of(Path(mount.source)) if mount.source.startswith("/") else None
                )
            for number in {mount.number, by_source[mount.source]} - {None}:
                assert number is not None
                mounts.setdefault(number, []).append(shown(str(mount.mount_point)))
        return mounts

    @cached_property
    def _swaps(self) -> set[str]:
        """Numbers of the devices that are swap space."""
        swaps = set()
        with suppress(OSError):
            for line in (self.proc / "swaps").read_bytes().split(b"\n")[1:]:
                fields = line.split()
                if fields:
                    number = _number_of(Path(unescape(fields[0]).removesuffix(_DELETED)))
                    swaps.add(number)
        return {number for number in swaps if number is not None}

    @cached_property
    def _loops(self) -> dict[str, _Backing]:
        """Loop device -> its backing."""
        loops = {}
        for name in self.numbers:
            with suppress(OSError):
                file = self.sysfs / "class/block" / name / "loop/backing_file"
                # Ends in a line feed; the name itself may hold others.
                text = os.fsdecode(file.read_bytes().removesuffix(b"\n"))
                loops[name] = self._backing(name, text)
        return loops

    def _backing(self, loop: str, name: str) -> _Backing:
        if (known := status(self.dev / loop)) is not None:
            own = known.block
            number = None
            if own is not None:
                number = f"{os.major(own)}:{os.minor(own)}"
            return _Backing(name, known.file, number)
        # If the name was removed, a file that has it now is irrelevant.
        return _Backing(name, None, None if name.endswith(_DELETED) else _number_of(Path(name)))

    @cached_property
    def _btrfs(self) -> dict[str, str]:
        """Member device -> UUID of the mounted btrfs that it belongs to."""
        btrfs = {}
        for identifier in _entries(self.sysfs / "fs/btrfs"):
            for member in _entries(self.sysfs / "fs/btrfs" / identifier / "devices"):
                btrfs[member] = identifier
        return btrfs

    def _processes(self, own: bool = False) -> Iterator[Path]:
        for name in _entries(self.proc):
            if name.isdecimal() and (own or int(name) != os.getpid()):
                yield self.proc / name

    def _folder(self, name: str) -> Path:
        return (self.sysfs / "class/block" / name).resolve()

    def _members(self, name: str) -> list[str]:
        """The device, its partitions, and the disk it is part of, without the disk's other
        partitions."""
        folder = self._folder(name)
        if (folder / "partition").exists():
            return [name, folder.parent.name]
        partitions = [e for e in _entries(folder) if (folder / e / "partition").exists()]
        return [name, *partitions]

    def _used(self, name: str, but: set[str] | frozenset[str] = frozenset()) -> list[str]:
        """Uses of one device itself, except (`but`) holders of these names."""
        uses = self._claimed(name)
        for holder in self._above(name):
            if holder not in but:
                further = self._uppermost(holder, {name})
                uses.append(f"is used by {holder}{further}; take it out first")
        return uses

    def _claimed(self, name: str) -> list[str]:
        number = self.numbers.get(name, "none")
        claims = []
        for mount_point in self._mounted.get(number, ()):
            claims.append(f"is mounted at {mount_point}; unmount it first")
        if name in self._btrfs and not claims:
            claims.append(f"is part of the mounted btrfs {self._btrfs[name]}; unmount it first")
        if number in self._swaps:
            claims.append(f"is swap space; `swapoff /dev/{name}` first")
        return claims

    def _above(self, name: str) -> list[str]:
        """Devices on top of one device: device mapper, RAID, caches by sysfs, and loop devices."""
        loops = [loop for loop, backing in self._loops.items() if self._lies_on(backing, name)]
        return sorted({*_entries(self._folder(name) / "holders"), *loops})

    def _lies_on(self, backing: _Backing, name: str) -> bool:
        # By the name too: an alias made in another namespace or gone since shows in neither.
        return backing.number == self.numbers.get(name, "none") or backing.name.removesuffix(
            _DELETED
        ) in (f"/dev/{name}", str(self.dev / name))

    def _uppermost(self, name: str, seen: set[str]) -> str:
        """The use of a holder further up as text, or an empty string."""
        if name in seen:
            return ""
        for member in self._members(name):
            mounted = self._mounted.get(self.numbers.get(member, ""), ())
            if mounted:
                return f", which is mounted at {mounted[0]}"
            for above in self._above(member):
                return f", which is used by {above}{self._uppermost(above, {*seen, name})}"
        return ""

    def _below(self, name: str, seen: set[str]) -> list[str]:
        """Uses of the devices below this one. For RAID and device mapper only mounts and swap of a
        member: other devices may share the members, as volumes of a group do. A loop device covers
        its complete backing file or device, so any other use of that counts."""
        folder = self._folder(name)
        uses = []
        for lower in _entries(folder / "slaves"):
            if lower not in seen:
                for use in self._claimed(lower):
                    uses.append(f"/dev/{name} is on /dev/{lower}, which {use}")
                uses += self._below(lower, {*seen, lower})
        if (folder / "partition").exists() and folder.parent.name not in seen:
            uses += self._below(folder.parent.name, {*seen, folder.parent.name})
        if name in self._loops:
            uses += self._below_loop(name, self._loops[name], seen)
        return uses

    def _below_loop(self, name: str, backing: _Backing, seen: set[str]) -> list[str]:
        """Other uses of a loop device's file or device."""
        uses = []
        for loop, other in self._loops.items():
            if loop not in seen and backing.is_same(other):
                uses.append(f"/dev/{name} has the same image as /dev/{loop}; detach that first")
        for lower in self.numbers:
            if lower in seen or not self._lies_on(backing, lower):
                continue
            for member in self._members(lower):
                for use in self._used(member, but=seen):
                    uses.append(f"/dev/{name} is on /dev/{lower}, and /dev/{member} {use}")
            uses += self._below(lower, {*seen, lower})
        return uses


def _entries(folder: Path) -> list[str]:
    """Names in a folder; none where it is not there, or may not be read."""
    try:
        return sorted(entry.name for entry in folder.iterdir())
    except OSError:
        return []


def _file_of(path: Path) -> tuple[int, int]:
    """Device and inode."""
    status = path.stat()
    return status.st_dev, status.st_ino


def _number_of(node: Path) -> str | None:
    """The number of the block device at a node, as sysfs writes it."""
    number = device_number(node)
    if number is None:
        return None
    return f"{number[0]}:{number[1]}"


_SAMPLES = 256
_SAMPLE_BYTES = 4096
_END_BYTES = 1 << 20
# After an unmount the kernel may need a moment to let go of a device.
_TRIES = 20
_PAUSE_S = 0.1


def check_readable(node: Path, root: Path = Path("/")) -> BlockDevice:
    """The device at `node`, which this user can read; RejectedError if not. `root` is `/`, or that
    of a machine that is only described."""
    path = node
    if root != Path("/"):
        path = root / str(node).lstrip("/")
    try:
        path.stat()
    except OSError as error:
        raise RejectedError(f"{node}: {error.strerror}; `lsblk` lists the devices") from error
    device = block_device(node, root)
    if device is None:
        raise RejectedError(f"{node} is not a block device; `lsblk` lists them")
    if not os.access(path, os.R_OK):
        raise RejectedError(f"{node}: this user may not read it; run as root or join group disk")
    return device


def check_unused(node: Path) -> BlockDevice:
    """The device at `node`, which is readable and unused."""
    device = check_readable(node)
    _reject_used(device)
    return device


@dataclass(frozen=True)
class Permission:
    """The user's permission: the device in `erase`, the contents in `lose` (`ext4:LABEL`,
    `ext4:UUID`, `gpt`, `data`), and the file systems of these UUIDs, which the campaign made
    itself. Of a campaign that has begun, the names in `lose` mean only what was there then
    (`at_start`, `Signature.identity`)."""

    erase: Path
    lose: tuple[str, ...] = ()
    made: frozenset[str] = frozenset()
    at_start: frozenset[str] | None = None

    def missing(self, found: Sequence[Signature]) -> list[Signature]:
        """Contents of the device that the user did not release."""
        not_named = unnamed(found, self.lose)
        return [s for s in found if s.uuid not in self.made and (s in not_named or self._is_new(s))]

    def _is_new(self, signature: Signature) -> bool:
        return self.at_start is not None and signature.identity not in self.at_start


def check_erasable(node: Path, permission: Permission) -> BlockDevice:
    """The device at `node`, which may be overwritten: the user named it with --erase, it is unused,
    and all its contents were released by name. RejectedError gives the reason if not."""
    device = check_readable(node)
    if block_device(permission.erase) != device:
        raise RejectedError(
            f"--erase names {permission.erase}, --device names {node}: to write to a device, "
            "name it in both options"
        )
    with suppress(OSError):
        if (device.sysfs / "ro").read_text(encoding="ascii").strip() == "1":
            raise RejectedError(f"{node} is read-only; `blockdev --setrw` changes that")
    if not os.access(node, os.W_OK):
        raise RejectedError(f"{node}: this user may not write to it; run as root")
    if not device.size_bytes:
        raise RejectedError(f"{node} has 0 bytes: it has no medium, or no device is attached")
    _reject_in_use(device)
    os.close(_claim(node, device))
    signatures = signatures_carried(node)
    missing = permission.missing(signatures)
    if missing and permission.at_start is not None:
        raise _became_another(node, missing)
    if missing:
        raise RejectedError(
            f"{node} ({device.size_bytes / 1e9:.3g} GB) contains "
            f"{signatures_listed(missing, node)}: all its data would be destroyed. To allow "
            f"that, add {options_of_signatures(missing)}"
        )
    return device


def _became_another(node: Path, missing: Sequence[Signature]) -> RejectedError:
    return RejectedError(
        f"{node} contains {signatures_listed(missing, node)}, which was not there when the "
        "campaign began; eeio does not write to it. If it may be destroyed, start another "
        f"campaign with {options_of_signatures(missing)}"
    )


DATA = "data"
"""Argument of --lose for data without a signature, such as a raw database."""


def check_named(node: Path, lose: Sequence[str]) -> None:
    """RejectedError for contents in --lose that the device does not have, since they may be on
    another disk; and for data without a signature that --lose does not name."""
    signatures = signatures_carried(node)
    known = {name for signature in signatures for name in signature.names} | {DATA}
    for name in lose:
        if name not in known:
            has = signatures_listed(signatures, node) or "no named signature"
            raise RejectedError(
                f"--lose {name}: {node} contains no such signature; it contains {has}"
            )
    if not signatures and DATA not in lose and has_data(node):
        raise RejectedError(
            f"{node} contains data of an unknown kind, which would be destroyed. To allow that, "
            f"add --lose {DATA}"
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


def signatures_carried(node: Path) -> list[Signature]:
    """All signatures on a device and its partitions; RejectedError if they cannot be read."""
    device = block_device(node)
    parts = []
    if device:
        parts = device.partitions
    try:
        return signatures_found([node, *(part.node for part in parts)])
    except EeioError as error:
        raise RejectedError(str(error)) from error


def readers(node: Path) -> list[str]:
    """Processes that only read the device, for the user to know of."""
    device = block_device(node)
    openers = []
    if device:
        openers = Kernel().openers(device.name)
    return [opener.text for opener in openers if not opener.writes]


class ErasedDevice:
    """A device that a campaign overwrites, from its start to its end.

    It stays open exclusively if possible. The kernel then rejects mounts, swap, new file systems
    and arrays on it; plain opens, such as a tool's, still work. The descriptor ends with the
    process. Each call of `hold` also checks for users that an exclusive open does not exclude: a
    loop device, a process that writes.

    `record` is the file with the UUIDs of the campaign's file systems. Each is noted before it is
    made, so that a resumed campaign recognizes them.
    """

    def __init__(self, node: Path, permission: Permission, record: Path) -> None:
        self.node = node
        self._device = check_readable(node)
        self._identity = self._device.identity
        self._permission = permission
        self._record = record
        self._descriptor: int | None = None

    def hold(self) -> None:
        """Call it before every write: claims the device, if not yet claimed, and checks it again;
        EeioError if it may not, or no longer, be written."""
        self._same()
        if self._descriptor is None:
            self._descriptor = _claim(self.node, self._device)
        _reject_in_use(self._device)
        signatures = signatures_carried(self.node)
        made = self._permission.made | read_made(self._record)
        if missing := replace(self._permission, made=made).missing(signatures):
            raise _became_another(self.node, missing)

    def _same(self) -> None:
        with suppress(OSError):
            if block_device(self.node) == self._device and self._device.identity == self._identity:
                return
        raise RejectedError(
            f"{self.node} is no longer the device that the campaign began on "
            f"({self._identity}); eeio stops writing to it. Attach that device again, then "
            "`eeio resume`"
        )

    @contextmanager
    def released(self) -> Iterator[None]:
        """Releases the device for a program that opens it exclusively, and claims it again
        afterwards. The kernel rejects that program if another was faster."""
        self.hold()
        self.release()
        yield
        self.hold()

    def new_uuid(self) -> str:
        """UUID for a new file system; noted as the campaign's."""
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


@dataclass(frozen=True)
class Zone:
    """What can be written of a zone, and what was written up to its write pointer, bytes."""

    capacity_bytes: int
    written_bytes: int


_ZONE = re.compile(r"cap (0x[0-9a-f]+), wptr (0x[0-9a-f]+).*\((\w\w)\)")


def zones_of(report: str) -> list[Zone]:
    """The zones in the output of `blkzone report`; one without a write pointer is written."""
    zones = []
    for sectors, pointer, condition in _ZONE.findall(report):
        capacity, written = 512 * int(sectors, 16), 512 * int(pointer, 16)
        is_full = condition in ("fu", "nw")
        zones.append(Zone(capacity, capacity if is_full else min(capacity, written)))
    return zones


def zero_share(
    node: Path, length_bytes: int, zone_bytes: int = 0, zones: Sequence[Zone] = ()
) -> float:
    """Share of blocks, sampled evenly over the first `length_bytes`, that contain only zeros. Of
    `zones` of `zone_bytes` each, gaps behind their capacity are left out, and what is behind their
    write pointer counts as zeros.

    A drive answers for blocks that were never written, or were trimmed, without touching its
    medium, and it answers with zeros; the block layer's counters do not show that.
    """
    step = max(_SAMPLE_BYTES, length_bytes // _SAMPLES // _SAMPLE_BYTES * _SAMPLE_BYTES)
    empty = bytes(_SAMPLE_BYTES)
    zeros = []
    with node.open("rb", buffering=0) as device:
        for offset in range(0, length_bytes - _SAMPLE_BYTES + 1, step):
            number, inside = divmod(offset, zone_bytes) if zones else (0, 0)
            zone = None
            if number < len(zones):
                zone = zones[number]
            if zone is not None and inside >= zone.written_bytes:
                if inside < zone.capacity_bytes:
                    zeros.append(True)
                continue
            device.seek(offset)
            zeros.append(device.read(_SAMPLE_BYTES) == empty)
    if zeros:
        return sum(zeros) / len(zeros)
    return 0.0


def _claim(node: Path, device: BlockDevice) -> int:
    """A descriptor that has the device for itself: the kernel gives it to one only, and to none
    while the device is mounted, swapped to, or part of something."""
    for left in reversed(range(_TRIES)):
        try:
            descriptor = os.open(node, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise RejectedError(f"{node}: {error.strerror}") from error
            if left:
                time.sleep(_PAUSE_S)
                continue
            _reject_used(device)
            openers = "; ".join(opener.text for opener in Kernel().openers(device.name))
            by = openers or "the kernel: RAID, LVM, a file system?"
            raise RejectedError(f"{node} is in exclusive use ({by})") from error
        number = os.fstat(descriptor).st_rdev
        if (os.major(number), os.minor(number)) == (device.major, device.minor):
            return descriptor
        os.close(descriptor)
        break
    raise RejectedError(f"{node} has just become another device; find out which program changes it")


def _reject_used(device: BlockDevice, kernel: Kernel | None = None) -> None:
    """Rejects a device in use, and names its first user."""
    used = (kernel or Kernel()).users(device.name)
    if used:
        more = ""
        if len(used) > 1:
            more = f" (and {len(used) - 1} more)"
        raise RejectedError(used[0] + more)


def _reject_in_use(device: BlockDevice) -> None:
    """Also a device that a process, such as a virtual machine, may write to. Readers (udev, smartd)
    are not affected."""
    kernel = Kernel()
    _reject_used(device, kernel)
    for opener in kernel.openers(device.name):
        if opener.writes:
            raise RejectedError(f"{device.node} is held open by {opener.text}; end it first")
    for opener in kernel.image_writers(device.name):
        raise RejectedError(f"the image of {device.node} is open by {opener.text}; end it first")
