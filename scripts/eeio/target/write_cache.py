"""The drive's own write cache: read, switched where the drive allows it, read back, put back."""

import json
from pathlib import Path

from eeio.target.filesystem import BlockDevice
from eeio.target.undo import Entry, UndoJournal, run_command
from eeio_results.errors import EeioError
from eeio_results.record import Switch

_NVME_VOLATILE_WRITE_CACHE = "6"  # feature identifier in the NVMe base specification


def found(device: BlockDevice) -> Switch | None:
    """What the kernel believes of the drive: `write back` is on, `write through` is off."""
    try:
        text = (device.disk_sysfs / "queue/write_cache").read_text(encoding="ascii").strip()
    except OSError:
        return None
    return {"write back": "on", "write through": "off"}.get(text)  # type: ignore[return-value]


def switch(device: BlockDevice, wanted: Switch, journal: UndoJournal) -> None:
    """Sets the cache and proves it by reading back; EeioError when the drive does not follow.

    The kernel's `queue/write_cache` alone only tells the kernel whether to send flushes, so the
    drive itself is asked (SCSI `cache_type`, ATA `hdparm -W`, NVMe feature 6).
    """
    before = found(device)
    if before == wanted:
        return
    disk = device.disk_sysfs
    node = f"/dev/{disk.name}"
    scsi = sorted((disk / "device/scsi_disk").glob("*/cache_type"))
    if scsi:
        _switch_scsi(scsi[0], wanted, journal)
    elif disk.name.startswith("nvme"):
        _switch_command(
            ["nvme", "set-feature", node, "-f", _NVME_VOLATILE_WRITE_CACHE, "-v"],
            node, wanted, journal,
        )  # fmt: skip
    elif disk.name.startswith(("sd", "hd")):
        _switch_command(["hdparm", "-q", "-W"], node, wanted, journal)
    else:
        raise EeioError(f"{node} offers no way to switch its write cache (it is {before})")
    now = found(device)
    if now != wanted:
        raise EeioError(f"{node}: write cache asked to be {wanted}, but reads back {now}")


def _switch_scsi(path: Path, wanted: Switch, journal: UndoJournal) -> None:
    journal.add(Entry("setting", str(path), path.read_text(encoding="ascii").strip()))
    path.write_text({"on": "write back", "off": "write through"}[wanted], encoding="ascii")


def _switch_command(command: list[str], node: str, wanted: Switch, journal: UndoJournal) -> None:
    def words(value: Switch) -> list[str]:
        number = "1" if value == "on" else "0"
        if command[0] == "hdparm":
            return [*command[:-1], f"-W{number}", node]
        return [*command, number]

    journal.add(Entry("command", node, json.dumps(words("off" if wanted == "on" else "on"))))
    run_command(words(wanted))
