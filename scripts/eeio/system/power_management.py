"""What saves power between a drive and its processor: settings of the kernel.

Links of SATA (ALPM), of PCI Express (ASPM) and runtime power management, each from sysfs
(Documentation/ABI and Documentation/admin-guide in the kernel's sources).
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from eeio.machine.root import HERE
from eeio.system.undo import UndoEntry, UndoJournal
from eeio_results.errors import EeioError

_PCI = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_HOST = re.compile(r"host[0-9]+")


@dataclass(frozen=True)
class Setting:
    """One mechanism, `key` in short: its value now, None with the reason where it cannot be told;
    `path` is the file that holds it, `choices` what the kernel may take, from least saving on."""

    name: str
    value: str | None
    path: str | None = None
    reason: str | None = None
    key: str | None = None
    choices: tuple[str, ...] = ()

    @contextmanager
    def held_at(self, wanted: str, journal: UndoJournal) -> Iterator[None]:
        """It has that value in the block, proved by reading it. EeioError where the kernel or the
        drive does not take it."""
        if self.path is None or self.value is None:
            raise EeioError(f"{self.name}: {self.reason}")
        path = Path(self.path)
        with journal.held(UndoEntry("setting", self.path, self.value)):
            try:
                path.write_text(wanted, encoding="ascii")
                found = _value(path)
            except OSError as error:
                raise EeioError(f"{path}: {wanted!r} is refused: {error.strerror}") from error
            if found != wanted:
                raise EeioError(f"{path}: told {wanted!r}, it reads back {found!r}")
            yield


KEYS = ("alpm", "aspm", "aspm-l1", "controller", "drive")


def settings(disk: Path, root: Path = HERE) -> list[Setting]:
    """Of the drive behind a folder of /sys/block, in the order of KEYS."""
    above = disk.resolve().parents
    host = next((p / "scsi_host" / p.name for p in above if _HOST.fullmatch(p.name)), None)
    pci = next((p for p in above if _PCI.fullmatch(p.name)), None)
    runtime = ("on", "auto")
    return [
        _read(
            "alpm", "SATA link power management (ALPM)",
            host / "link_power_management_policy" if host else None,
            "the drive is on no SATA link",
            ("max_performance", "medium_power", "med_power_with_dipm", "min_power_with_partial",
             "min_power"),
        ),
        _read(
            "aspm", "PCI Express link power management (ASPM), the kernel's policy",
            root / "sys/module/pcie_aspm/parameters/policy" if pci else None,
            "the drive is on no PCI Express link",
            ("performance", "default", "powersave", "powersupersave"),
        ),
        _read(
            "aspm-l1", "ASPM L1 of the drive's controller", pci / "link/l1_aspm" if pci else None,
            "the drive is on no PCI Express link", ("0", "1"),
        ),
        _read(
            "controller", "runtime power management of the controller",
            pci / "power/control" if pci else None, "the drive is on no PCI bus", runtime,
        ),
        _read(
            "drive", "runtime power management of the drive", disk / "device/power/control",
            "the kernel tells none", runtime,
        ),
    ]  # fmt: skip


def _read(
    key: str, name: str, path: Path | None, why_none: str, choices: tuple[str, ...]
) -> Setting:
    if path is None:
        return Setting(name, None, None, why_none, key)
    try:
        return Setting(name, _value(path), str(path), None, key, choices)
    except OSError as error:
        return Setting(name, None, str(path), f"{path}: {error.strerror}", key)


def _value(path: Path) -> str:
    """Of a file that lists all it could be, the one in brackets."""
    text = path.read_text(encoding="ascii", errors="replace").strip()
    chosen = re.search(r"\[(\S+)\]", text)
    return chosen[1] if chosen else text
