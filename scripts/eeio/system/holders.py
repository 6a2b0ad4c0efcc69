"""Who uses a block device, so that writing to it would harm them.

Everything that the kernel shows is asked: mounts of every mount namespace, swap, RAID and device
mapper, loop devices over the device or sharing its file, partitions and the whole disk, and what
the device itself lies on; and processes that hold it open. The kernel's own answer to an exclusive
open, which knows holders that nothing shows, is asked by `device.py`.
"""

import fcntl
import os
import re
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from eeio.system.filesystem import Mount, device_number, parse_mountinfo, unescape
from eeio_limits.text import shown

_LOOP_GET_STATUS64 = 0x4C05  # linux/loop.h
# struct loop_info64: lo_device, lo_inode, lo_rdevice and what is not needed here.
_LOOP_INFO64 = struct.Struct("=QQQ208x")
_DELETED = " (deleted)"
# Asking one of their files may wait for a server that is gone, and no disk lies there.
_REMOTE = re.compile(r"(nfs|cifs|smb|ceph|9p|lustre|afs|fuse)")


@dataclass(frozen=True)
class Opener:
    """A process that holds a device open."""

    pid: int
    name: str
    writes: bool

    @property
    def text(self) -> str:
        how = "writing" if self.writes else "reading"
        return f"process {self.pid} ({self.name}), for {how}"


@dataclass(frozen=True)
class _Backing:
    """What a loop device lies on: its name as the kernel tells it, and device and inode (number of
    the device itself where it lies on one), where the loop device could be asked."""

    name: str
    file: tuple[int, int] | None
    number: str | None


@dataclass(frozen=True)
class Kernel:
    """What the kernel shows of devices, read once. Tests give trees of their own."""

    proc: Path = Path("/proc")
    sysfs: Path = Path("/sys")
    dev: Path = Path("/dev")

    def users(self, name: str) -> list[str]:
        """What would be harmed by writes to the device of that kernel name: a clause each, the
        first the one to tell, with what to do. Empty: nothing that can be seen."""
        found = [
            f"/dev/{member} {use}" for member in self._members(name) for use in self._used(member)
        ]
        found += self._below(name, {name})
        return list(dict.fromkeys(found))

    def openers(self, name: str) -> list[Opener]:
        """Processes other than this one that hold the device or a partition of it open, as far as
        this user may see, those that write first."""
        numbers = {self.numbers[member] for member in self._members(name) if member in self.numbers}
        return self._having_open(lambda descriptor: _number_of(descriptor) in numbers)

    def image_writers(self, name: str) -> list[Opener]:
        """Processes that have the image of a loop device open for writing."""
        images = set()
        for member in self._members(name):
            if member in self._loops:
                with suppress(OSError):
                    images.add(_file_of(Path(self._loops[member].name)))
        found = self._having_open(lambda descriptor: _file_of(descriptor) in images)
        return [opener for opener in found if opener.writes]

    def _having_open(self, is_it: Callable[[Path], bool]) -> list[Opener]:
        """Processes with an open file of which that holds, those that write first."""
        remote = tuple(
            f"{mount.mount_point}/" for mount in self.mounts if _REMOTE.match(mount.filesystem)
        )
        found = set()
        for process in self._processes():
            for descriptor in _entries(process / "fd"):
                with suppress(OSError, ValueError):
                    target = (process / "fd" / descriptor).readlink()
                    if not target.is_absolute() or str(target).startswith(remote):
                        continue
                    if is_it(process / "fd" / descriptor):
                        found.add(self._opener(process, descriptor))
        return sorted(found, key=lambda opener: (not opener.writes, opener.pid))

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
        found = {}
        for name in _entries(self.sysfs / "class/block"):
            with suppress(OSError):
                found[name] = (self.sysfs / "class/block" / name / "dev").read_text("ascii").strip()
        return found

    @cached_property
    def mounts(self) -> list[Mount]:
        """Of every mount namespace that a process this user may look into lives in."""
        seen = set()
        texts: dict[bytes, None] = {}
        for process in self._processes(own=True):
            with suppress(OSError):
                # A process in a chroot is shown only what lies in that.
                view = ((process / "ns/mnt").readlink(), (process / "root").readlink())
                if view in seen:
                    continue
                texts[(process / "mountinfo").read_bytes()] = None
                seen.add(view)  # not before: the process may be gone, and another tell as much
        return [mount for text in texts for mount in parse_mountinfo(text)]

    @cached_property
    def _mounted(self) -> dict[str, list[str]]:
        """Number of a device -> where it is mounted, by the mount's number and by its source (the
        number of btrfs is no device's)."""
        found: dict[str, list[str]] = {}
        by_source: dict[str, str | None] = {}
        for mount in self.mounts:
            if mount.source not in by_source:
                by_source[mount.source] = (
                    _number_of(Path(mount.source)) if mount.source.startswith("/") else None
                )
            for number in {mount.number, by_source[mount.source]} - {None}:
                assert number is not None
                found.setdefault(number, []).append(shown(str(mount.mount_point)))
        return found

    @cached_property
    def _swaps(self) -> set[str]:
        """Numbers of the devices that are swap space."""
        found = set()
        with suppress(OSError):
            for line in (self.proc / "swaps").read_bytes().split(b"\n")[1:]:
                words = line.split()
                if words:
                    number = _number_of(Path(unescape(words[0]).removesuffix(_DELETED)))
                    found.add(number)
        return {number for number in found if number is not None}

    @cached_property
    def _loops(self) -> dict[str, _Backing]:
        """Loop device -> what it lies on."""
        found = {}
        for name in self.numbers:
            with suppress(OSError):
                file = self.sysfs / "class/block" / name / "loop/backing_file"
                # Ends in a line feed; the name itself may hold others.
                text = os.fsdecode(file.read_bytes().removesuffix(b"\n"))
                found[name] = self._backing(name, text)
        return found

    def _backing(self, loop: str, name: str) -> _Backing:
        """The loop device itself knows best: the name may be gone, or be another's elsewhere."""
        with suppress(OSError):
            descriptor = os.open(self.dev / loop, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                info = fcntl.ioctl(descriptor, _LOOP_GET_STATUS64, bytes(_LOOP_INFO64.size))
            finally:
                os.close(descriptor)
            device, inode, own = _LOOP_INFO64.unpack(info)
            # Of a plain file the kernel gives its file system's number twice.
            number = None if own == device else f"{os.major(own)}:{os.minor(own)}"
            return _Backing(name, (device, inode), number)
        # Of a name that is gone, what has it now says nothing.
        return _Backing(name, None, None if name.endswith(_DELETED) else _number_of(Path(name)))

    @cached_property
    def _btrfs(self) -> dict[str, str]:
        """Member device -> UUID of the mounted btrfs that it belongs to."""
        return {
            member: uuid
            for uuid in _entries(self.sysfs / "fs/btrfs")
            for member in _entries(self.sysfs / "fs/btrfs" / uuid / "devices")
        }

    def _processes(self, own: bool = False) -> Iterator[Path]:
        for name in _entries(self.proc):
            if name.isdecimal() and (own or int(name) != os.getpid()):
                yield self.proc / name

    def _folder(self, name: str) -> Path:
        return (self.sysfs / "class/block" / name).resolve()

    def _members(self, name: str) -> list[str]:
        """The device, its partitions, and the whole disk it is part of: not the disk's others."""
        folder = self._folder(name)
        if (folder / "partition").exists():
            return [name, folder.parent.name]
        partitions = [e for e in _entries(folder) if (folder / e / "partition").exists()]
        return [name, *partitions]

    def _used(self, name: str, but: set[str] | frozenset[str] = frozenset()) -> list[str]:
        """What uses one device itself, `but` the holders of these names."""
        found = self._claimed(name)
        for holder in self._above(name):
            if holder not in but:
                further = self._uppermost(holder, {name})
                found.append(f"is used by {holder}{further}; take it out first")
        return found

    def _claimed(self, name: str) -> list[str]:
        number = self.numbers.get(name, "none")
        found = [
            f"is mounted at {mount_point}; unmount it first"
            for mount_point in self._mounted.get(number, ())
        ]
        if name in self._btrfs and not found:
            found.append(f"is part of the mounted btrfs {self._btrfs[name]}; unmount it first")
        if number in self._swaps:
            found.append(f"is swap space; `swapoff /dev/{name}` first")
        return found

    def _above(self, name: str) -> list[str]:
        """What lies on one device: device mapper, RAID, caches by sysfs, and loop devices."""
        loops = [loop for loop, backing in self._loops.items() if self._lies_on(backing, name)]
        return sorted({*_entries(self._folder(name) / "holders"), *loops})

    def _lies_on(self, backing: _Backing, name: str) -> bool:
        # By the name too: an alias made in another namespace or gone since shows in neither.
        return backing.number == self.numbers.get(name, "none") or backing.name.removesuffix(
            _DELETED
        ) in (f"/dev/{name}", str(self.dev / name))

    def _uppermost(self, name: str, seen: set[str]) -> str:
        """What becomes of a holder further up, in words, or nothing."""
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
        """Uses of what the device lies on. Of RAID and device mapper that a part is mounted or
        swap: others may lie on the same parts, as volumes of a group do. A loop device is its file
        or device whole, so nothing else may use that."""
        folder = self._folder(name)
        found = []
        for lower in _entries(folder / "slaves"):
            if lower not in seen:
                uses = self._claimed(lower)
                found += [f"/dev/{name} lies on /dev/{lower}, which {use}" for use in uses]
                found += self._below(lower, {*seen, lower})
        if (folder / "partition").exists() and folder.parent.name not in seen:
            found += self._below(folder.parent.name, {*seen, folder.parent.name})
        own = self._loops.get(name)
        if own is None:
            return found
        for other, backing in self._loops.items():
            alike = (
                own.file == backing.file if own.file and backing.file else own.name == backing.name
            )
            if alike and other not in seen:
                found.append(f"/dev/{name} has the same image as /dev/{other}; detach that first")
        for lower in self.numbers:
            if lower not in seen and self._lies_on(own, lower):
                found += [
                    f"/dev/{name} lies on /dev/{lower}, and /dev/{member} {use}"
                    for member in self._members(lower)
                    for use in self._used(member, but=seen)
                ]
                found += self._below(lower, {*seen, lower})
        return found


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
    return None if number is None else f"{number[0]}:{number[1]}"
