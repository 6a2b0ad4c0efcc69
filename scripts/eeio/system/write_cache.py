"""The drive's own write cache: read, switched where the drive allows it, read back, put back.

The drive itself is asked: SCSI and ATA through the kernel's `cache_type`, other ATA drives with
hdparm, NVMe with feature 6, virtio with its `cache_type`. `queue/write_cache` is only read: writing
to it changes whether the kernel sends flushes, not what the drive does, so data would be at risk
and the measurement wrong.
"""

import json
import re
from pathlib import Path

from eeio.machine.root import user_id
from eeio.system.filesystem import BlockDevice
from eeio.system.undo import UndoEntry, UndoJournal, run_command
from eeio_results.errors import EeioError
from eeio_results.record import Switch

_WORDS: dict[Switch, str] = {"on": "write back", "off": "write through"}
_NVME_VOLATILE_WRITE_CACHE = "6"  # feature identifier in the NVMe base specification


def found(device: BlockDevice) -> Switch | None:
    """What is known of the drive: `write back` is on, `write through` is off."""
    if device.disk_sysfs.name.startswith("nvme"):
        state = _nvme_state(f"/dev/{device.disk_sysfs.name}")
        if state is not None:
            return state
    try:
        text = (device.disk_sysfs / "queue/write_cache").read_text(encoding="ascii").strip()
    except OSError:
        return None
    return next((state for state, words in _WORDS.items() if words == text), None)


def cannot_switch(device: BlockDevice, wanted: Switch) -> str | None:
    """Why the cache cannot be brought into that state; None when it can, or already is."""
    if found(device) == wanted:
        return None
    disk = device.disk_sysfs
    if _cache_type(disk) is not None or disk.name.startswith(("nvme", "sd", "hd")):
        if user_id(device.root) == 0:
            return None
        return f"the write cache of /dev/{disk.name} can only be switched as root"
    state = found(device) or "unknown"
    return f"/dev/{disk.name} offers no way to switch its write cache, which is {state}"


def switch(device: BlockDevice, wanted: Switch, journal: UndoJournal) -> None:
    """Sets the cache and proves it by reading back; EeioError when the drive does not follow."""
    before = found(device)
    if before == wanted:
        return
    reason = cannot_switch(device, wanted)
    if reason is not None:
        raise EeioError(reason)
    disk = device.disk_sysfs
    node = f"/dev/{disk.name}"
    cache_type = _cache_type(disk)
    if cache_type is not None:
        old = cache_type.read_text(encoding="ascii").strip()
        journal.add(UndoEntry("setting", str(cache_type), old).of_drive(Path(node)))
        cache_type.write_text(_WORDS[wanted], encoding="ascii")
    else:
        opposite: Switch = "off" if wanted == "on" else "on"
        restore = json.dumps(_command(node, before or opposite))
        journal.add(UndoEntry("command", node, restore).of_drive(Path(node)))
        run_command(_command(node, wanted))
    now = found(device)
    if now != wanted:
        raise EeioError(f"{node}: write cache asked to be {wanted}, but it reads back {now}")


def _nvme_state(node: str) -> Switch | None:
    """The drive's own answer: the kernel does not notice that feature 6 was set."""
    try:
        text = run_command(["nvme", "get-feature", node, "-f", _NVME_VOLATILE_WRITE_CACHE])
    except EeioError:
        return None  # no volatile cache, no privilege or no nvme-cli: the kernel's word stands
    match = re.search(r"value:\s*(?:0x)?([0-9a-f]+)", text, re.IGNORECASE)
    if match is None:
        return None
    return "on" if int(match[1], 16) & 1 else "off"


def _cache_type(disk: Path) -> Path | None:
    """The kernel's switch for SCSI, libata and virtio disks, where it can be written."""
    candidates = [*sorted((disk / "device/scsi_disk").glob("*/cache_type")), disk / "cache_type"]
    # As root access(2) says yes to everything, so the file's own mode decides.
    return next(
        (path for path in candidates if path.exists() and path.stat().st_mode & 0o200), None
    )


def _command(node: str, state: Switch) -> list[str]:
    number = "1" if state == "on" else "0"
    if Path(node).name.startswith("nvme"):
        return ["nvme", "set-feature", node, "-f", _NVME_VOLATILE_WRITE_CACHE, "-v", number]
    return ["hdparm", "-q", f"-W{number}", node]
