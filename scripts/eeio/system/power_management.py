"""What saves power between a drive and its processor: settings of the kernel, as they stand.

Links of SATA (ALPM), of PCI Express (ASPM) and runtime power management, each from sysfs
(Documentation/ABI in the kernel's sources). Nothing is changed here.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from eeio.machine.root import HERE

_PCI = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_HOST = re.compile(r"host[0-9]+")


@dataclass(frozen=True)
class Setting:
    """One mechanism: its value now, None with the reason where it cannot be told; `path` is the
    file that holds it."""

    name: str
    value: str | None
    path: str | None = None
    reason: str | None = None


def settings(disk: Path, root: Path = HERE) -> list[Setting]:
    """Of the drive behind a folder of /sys/block."""
    above = disk.resolve().parents
    host = next((p / "scsi_host" / p.name for p in above if _HOST.fullmatch(p.name)), None)
    pci = next((p for p in above if _PCI.fullmatch(p.name)), None)
    return [
        _read(
            "SATA link power management (ALPM)",
            host / "link_power_management_policy" if host else None,
            "the drive is on no SATA link",
        ),
        _read(
            "PCI Express link power management (ASPM), the kernel's policy",
            root / "sys/module/pcie_aspm/parameters/policy" if pci else None,
            "the drive is on no PCI Express link",
        ),
        _read(
            "ASPM L1 of the drive's controller", pci / "link/l1_aspm" if pci else None,
            "the drive is on no PCI Express link",
        ),
        _read(
            "runtime power management of the controller", pci / "power/control" if pci else None,
            "the drive is on no PCI bus",
        ),
        _read(
            "runtime power management of the drive", disk / "device/power/control",
            "the kernel tells none",
        ),
    ]  # fmt: skip


def _read(name: str, path: Path | None, why_none: str) -> Setting:
    if path is None:
        return Setting(name, None, None, why_none)
    try:
        return Setting(name, path.read_text(encoding="ascii", errors="replace").strip(), str(path))
    except OSError as error:
        return Setting(name, None, str(path), f"{path}: {error.strerror}")
