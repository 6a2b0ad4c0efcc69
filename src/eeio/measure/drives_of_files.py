"""The drives of a traced program's files: caches below them, and what they moved meanwhile,
compared with the program's own bytes."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from eeio.errors import EeioError
from eeio.machine.below import caches_below, why_in_memory
from eeio.machine.counters import read_counters, unwrapped
from eeio.machine.filesystem import BlockDevice, backing_devices, drives_below, named_device
from eeio.machine.other_io import COPYING_SLACK_BYTES, PROGRAMS, PROGRAMS_BYTES, share_a_disk
from eeio.record.run import DeviceCounters
from eeio.traces.events import Event, transfers
from eeio.units.sizes import MB

_SHARE = 1.0
"""Of the program's bytes: so much more is noted. A file system's journal or trees are less."""


class DrivesOfFiles:
    """Bytes that all disks of the machine moved since it was made."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._before: dict[str, DeviceCounters] = {}
        for folder in (root / "sys/block").glob("*"):
            device = named_device(folder.name, root)
            if device is not None:
                with suppress(OSError, EeioError):
                    self._before[device.name] = read_counters(device)

    def notes(self, events: Sequence[Event]) -> list[str]:
        """On caches below the files of the trace, and on each drive with some of them that moved
        much more than the program."""
        moved = transfers(events)
        own = {"read": 0, "write": 0}
        for event in moved:
            own[event.operation] += event.length
        devices = _devices({event.file for event in moved})
        notes = _on_caches(devices)
        for drive in _drives(devices):
            before = self._before.get(drive.name)
            if before is None:
                continue
            with suppress(OSError, EeioError):
                after = unwrapped(before, read_counters(drive))
                programs_bytes = COPYING_SLACK_BYTES
                if share_a_disk(backing_devices(PROGRAMS), [drive]):
                    programs_bytes = PROGRAMS_BYTES
                notes += _of_drive(drive.name, before, after, own, programs_bytes)
        return notes


def _of_drive(
    name: str,
    before: DeviceCounters,
    after: DeviceCounters,
    own: dict[str, int],
    programs_bytes: int,
) -> list[str]:
    read = after.read_bytes - before.read_bytes
    written = after.written_bytes - before.written_bytes
    least = _SHARE * sum(own.values())
    beyond_read = read - own["read"] - programs_bytes
    beyond_written = written - own["write"] - COPYING_SLACK_BYTES
    if max(beyond_read, beyond_written) <= least:
        return []
    return [
        f"{name} read {read / MB:.4g} MB and wrote {written / MB:.4g} MB meanwhile, the program "
        f"{own['read'] / MB:.4g} and {own['write'] / MB:.4g} MB: the energy may contain I/O of "
        "other programs"
    ]


def _on_caches(devices: Iterable[BlockDevice]) -> list[str]:
    notes: list[str] = []
    for device in devices:
        if (reason := why_in_memory(device)) is not None:
            notes.append(f"{reason}: its figures are of no drive")
        for cache in caches_below(device):
            if cache.in_memory:
                notes.append(f"through {cache.text}: the figures are not those of the drive")
    return list(dict.fromkeys(notes))


def _devices(files: Iterable[str]) -> list[BlockDevice]:
    """Those of the file systems of the files, or of the folders of files that are gone."""
    devices: dict[str, BlockDevice] = {}
    for file in files:
        path = Path(file)
        if not path.is_absolute():
            continue
        with suppress(OSError, ValueError):
            while not path.exists() and path != path.parent:
                path = path.parent
            for device in backing_devices(path):
                devices[device.name] = device
    return list(devices.values())


def _drives(devices: Iterable[BlockDevice]) -> list[BlockDevice]:
    """The complete drives below them."""
    drives: dict[str, BlockDevice] = {}
    for device in devices:
        for drive in drives_below(device):
            disk = named_device(drive.disk_sysfs.name, drive.root)
            if disk is not None:
                drives[disk.name] = disk
    return list(drives.values())
