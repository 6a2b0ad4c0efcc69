"""The directories of a campaign's files: the user's, or file systems made for it."""

from dataclasses import dataclass
from pathlib import Path

from eeio.errors import EeioError
from eeio.machine import image
from eeio.machine.below import why_any_in_memory
from eeio.machine.device import ErasedDevice
from eeio.machine.filesystem import (
    WITHOUT_STORAGE,
    BlockDevice,
    backing_device,
    backing_devices,
    block_device,
    log_devices,
    mount_of,
)
from eeio.machine.undo import UndoJournal
from eeio.measure.campaign.planned_campaign import Plan
from eeio.measure.campaign.safety import MADE, SCRATCH, check_folder, permission


@dataclass(frozen=True)
class Volume:
    """A directory, the one block device behind it (None, with the reason), how it was made, why its
    data are in memory (None if they are not), where a server on this machine sees the same files
    (NFS), and all block devices of its file system."""

    directory: Path
    device: BlockDevice | None
    device_reason: str | None
    mkfs: str | None
    memory: str | None
    served: Path | None = None
    devices: tuple[BlockDevice, ...] = ()

    @property
    def test_files(self) -> list[Path]:
        """The profiles' present files there; with a server also the server's: each has pages in
        memory two times."""
        places = (self.directory, *([self.served] if self.served else []))
        return sorted(
            path for place in places for path in (place / SCRATCH).rglob("*") if path.is_file()
        )


class Volumes:
    """Makes each volume when it is first needed. File systems on one device replace each other."""

    def __init__(self, plan: Plan, folder: Path, journal: UndoJournal) -> None:
        self._plan = plan
        self.folder = folder
        """The campaign's."""
        self._journal = journal
        self._made: dict[str, Volume] = {}
        self._failed: dict[str, str] = {}
        self._erased: ErasedDevice | None = None

    def hold(self) -> None:
        """Takes the device that may be written over, and keeps it from everybody else until
        `close`; RejectedError when it may not be written."""
        options = self._plan.options
        if options.device is not None and options.erase is not None:
            self._erased = ErasedDevice(
                Path(options.device), permission(options, self.folder), self.folder / MADE
            )
            self._erased.hold()

    def check_device(self) -> None:
        """Before each run that may write to the device itself; EeioError when it may not."""
        if self._erased is not None:
            self._erased.hold()

    def get(self, name: str) -> Volume:
        """EeioError when it cannot be made; on a loop image for the same reason at each request,
        since remains of the first try prevent a second."""
        if name in self._failed:
            raise EeioError(self._failed[name])
        if name not in self._made:
            try:
                self._made[name] = self._make(name)
            except EeioError as error:
                if self._plan.options.device is None:
                    self._failed[name] = str(error)
                raise
        return self._made[name]

    def _make(self, name: str) -> Volume:
        options = self._plan.options
        if name == "":
            # A campaign on just a raw device has no files; its folder only contains the results.
            return describe(Path(options.directory) if options.directory else self.folder, None)
        if options.device is not None:
            assert self._erased is not None
            self._take_away()
            made = image.make_on_device(name, self._erased, self.folder, self._journal)
        else:
            assert options.directory is not None
            check_folder(Path(options.directory))
            made = image.make_on_loop(
                name, Path(options.directory), self._plan.room_bytes(name), self._journal
            )
        return describe(made.mount_point, made.how, made.served)

    def close(self) -> list[str]:
        """Unmounts and removes the volumes, and releases the device; returns what could not be
        restored."""
        failures = self._take_away()
        if self._erased is not None:
            self._erased.release()
        return failures

    def _take_away(self) -> list[str]:
        self._made.clear()
        return self._journal.undo_all()


def describe(directory: Path, mkfs: str | None, served: Path | None = None) -> Volume:
    """The volume at `directory`; behind this machine's NFS it is the server's device."""
    device, reason = backing_device(served or directory)
    devices = tuple(backing_devices(served or directory))
    memory = why_any_in_memory([*devices, *log_devices(served or directory)])
    if mount_of(served or directory).filesystem in WITHOUT_STORAGE and device is None:
        memory = reason
    return Volume(directory, device, reason, mkfs, memory, served, devices)


def raw_device(node: str) -> BlockDevice | None:
    """The device that the device-level experiments read or write."""
    return block_device(Path(node))
