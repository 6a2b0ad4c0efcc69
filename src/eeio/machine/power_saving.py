"""The power saving of drives: its settings, its states, and standby.

A drive's power saving for the length of a pause: started at its begin, or prevented.

A kind of drive is a class here with the same members. Changes are in the undo journal until they
are restored.

The power states of an ATA drive, through hdparm: query, and enter standby.

Kernel settings that save power between a drive and its processor.

Links of SATA (ALPM), of PCI Express (ASPM) and runtime power management, each from sysfs
(Documentation/ABI and Documentation/admin-guide in the kernel's sources).
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from eeio.errors import EeioError
from eeio.machine import nvme_power
from eeio.machine.as_data.root import HERE
from eeio.machine.nvme_power import NvmeController
from eeio.machine.undo import UndoEntry, UndoJournal, run_command

_TIMEOUT_S = 60
_PATH = ":/usr/sbin:/sbin"

IDLE = ("active/idle", "idle", "idle_a", "idle_b", "idle_c")
"""The medium turns. Drives with extended power conditions (EPC, ATA ACS-3) report separate idle
states, idle_a to idle_c (0x81 to 0x83); `idle` is 0x80, and `active/idle` is 0xff, any of them."""
STANDBY = ("standby", "standby_y", "standby_z")
"""It does not."""
_STATES = (*IDLE, *STANDBY, "sleeping")
# hdparm then shows its memory's initial 0, which means standby, and exits with 0.
_NO_ANSWER = "bad/missing sense data"


def state_of(node: Path) -> str:
    """The drive's state (hdparm -C), one of IDLE, STANDBY or `sleeping`. EeioError if it reports no
    power state, or a bridge passes none on."""
    output = _hdparm("-C", node)
    match = re.search(r"drive state is:\s*(\S+)", output)
    if match is None or match[1] not in _STATES:
        raise EeioError(f"{node} {_NO_STATE} (output of hdparm -C: {_last(output)})")
    return match[1]


_NO_STATE = "reports no power state, as loop devices and virtual drives"


def _last(output: str) -> str:
    return (output.strip() or "nothing").splitlines()[-1].strip()


def put_into_standby(node: Path) -> None:
    """Spins the drive down (hdparm -y), proved by asking. The next access wakes it."""
    _hdparm("-y", node)
    state = state_of(node)
    if state not in STANDBY:
        raise EeioError(f"{node} was sent to standby and is {state}: a program uses it")


def _hdparm(option: str, node: Path) -> str:
    program = shutil.which("hdparm", path=os.environ.get("PATH", os.defpath) + _PATH)
    if program is None:
        raise EeioError("hdparm is missing: install the package hdparm")
    try:
        done = subprocess.run(
            [program, option, str(node)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_TIMEOUT_S,
            text=True,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise EeioError(f"{node}: hdparm {option} did not answer in {_TIMEOUT_S} s") from error
    if done.returncode != 0:
        if option == "-C":
            raise EeioError(f"{node} {_NO_STATE} (hdparm -C failed: {_last(done.stdout)[:200]})")
        raise EeioError(f"{node}: hdparm {option} failed: {_last(done.stdout)[:200]}")
    if _NO_ANSWER in done.stdout:
        raise EeioError(
            f"{node}: the drive's answer is blocked (hdparm {option}: SG_IO: {_NO_ANSWER}), as "
            "by USB bridges and RAID controllers. Connect it to a SATA port"
        )
    return done.stdout


# ATA ACS-3, advanced power management: 1 to 127 permit standby, 128 to 253 save power without
# standby, 254 is maximum performance; 255 is hdparm's value for off.
_APM_NO_SAVING = 254


@dataclass(frozen=True)
class AtaDrive:
    """An ATA drive, through hdparm. Saving is standby, entered at once (hdparm -y). The comparison
    side has no automatic saving (advanced power management)."""

    node: Path

    def is_saving(self) -> bool:
        """EeioError if the drive does not report it."""
        return self.state() in STANDBY

    def state(self) -> str:
        return state_of(self.node)

    @contextmanager
    def saving(self, journal: UndoJournal) -> Iterator[None]:
        """It is in standby from here on, until an access wakes it. It is awake after the block, and
        `eeio doctor restore` wakes it, too."""
        wake = ["dd", f"if={self.node}", "of=/dev/null", "bs=4096", "count=1", "iflag=direct"]
        entry = UndoEntry("command", str(self.node), json.dumps(wake)).of_drive(self.node)
        with journal.recorded(entry):
            put_into_standby(self.node)
            yield

    @contextmanager
    def without_saving(self, journal: UndoJournal) -> Iterator[None]:
        """Advanced power management is off in the block, where the drive has it."""
        level = self._apm_level()
        if level is None or level >= _APM_NO_SAVING:
            yield
            return
        entry = UndoEntry("command", str(self.node), json.dumps(self._apm(level)))
        with journal.recorded(entry.of_drive(self.node)):
            run_command(self._apm(_APM_NO_SAVING))
            if (found := self._apm_level()) != _APM_NO_SAVING:
                raise EeioError(
                    f"{self.node}: power management switched off (hdparm -B {_APM_NO_SAVING}), "
                    f"but it reads back {found}"
                )
            yield

    def _apm(self, level: int) -> list[str]:
        return ["hdparm", "-q", "-B", str(level), str(self.node)]

    def _apm_level(self) -> int | None:
        """1 to 255, 255: off; None for a drive without it."""
        output = run_command(["hdparm", "-B", str(self.node)])
        match = re.search(r"APM_level\s*=\s*(off|[0-9]{1,3})\b", output)
        if match is None:
            return None
        if match[1] == "off":
            return 255
        return int(match[1])


@dataclass(frozen=True)
class NvmeDrive:
    """An NVMe drive. Saving is its power state `deep`, set at once. The comparison side has no
    automatic saving (autonomous transitions, APST)."""

    controller: NvmeController
    deep: int

    def is_saving(self) -> bool:
        """EeioError if the drive does not report it."""
        return self.controller.state() == self.deep

    def state(self) -> str:
        return f"ps{self.controller.state()}"

    @contextmanager
    def saving(self, journal: UndoJournal) -> Iterator[None]:
        """It is in its deep state from here on; whatever wakes it ends that. After the block, and
        after `eeio doctor restore`, it is in the state that it was in before."""
        node, before = self.controller.node, self.controller.state()
        with journal.recorded(UndoEntry("nvme", str(node), f"state {before}").of_drive(node)):
            self.controller.set_state(self.deep)
            yield

    @contextmanager
    def without_saving(self, journal: UndoJournal) -> Iterator[None]:
        """Autonomous transitions are off in the block, where the drive has them on."""
        if not self.controller.is_autonomous():
            yield
            return
        node = self.controller.node
        with journal.recorded(UndoEntry("nvme", str(node), "autonomous 1").of_drive(node)):
            self.controller.set_autonomous(False)
            yield


Drive = AtaDrive | NvmeDrive


def drive_at(node: Path, disk: Path, state: int | None = None) -> Drive:
    """The drive behind a node and its folder of /sys/block, with its capabilities; `state` chooses
    among those of an NVMe drive (default: the deepest). EeioError if it has no power-saving
    state."""
    controller = nvme_power.controller_of(disk)
    if controller is None:
        if state is not None:
            raise EeioError(f"{node}: power states with numbers are those of NVMe drives")
        return AtaDrive(node)
    states = controller.states()
    deep = [one.number for one in states if not one.is_operational]
    if state is None and not deep:
        raise EeioError(
            f"{node}: it has {len(states)} power states, all operational: none to save by in a "
            "pause (--state takes one of them all the same)"
        )
    if state is not None and state >= len(states):
        raise EeioError(f"{node}: no power state {state}; it has 0 to {len(states) - 1}")
    return NvmeDrive(controller, deep[-1] if state is None else state)


_PCI = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_HOST = re.compile(r"host[0-9]+")


@dataclass(frozen=True)
class Setting:
    """One mechanism, `key` in short: its value now, None with the reason if unknown; `path` is its
    file, `choices` the kernel's possible values, from least saving on."""

    name: str
    value: str | None
    path: str | None = None
    reason: str | None = None
    key: str | None = None
    choices: tuple[str, ...] = ()

    @contextmanager
    def set_to(self, wanted: str, journal: UndoJournal) -> Iterator[None]:
        """It has that value in the block, proved by reading it. EeioError where the kernel or the
        drive does not take it."""
        if self.path is None or self.value is None:
            raise EeioError(f"{self.name}: {self.reason}")
        path = Path(self.path)
        with journal.recorded(UndoEntry("setting", self.path, self.value)):
            try:
                path.write_text(wanted, encoding="ascii")
                value = _value(path)
            except OSError as error:
                raise EeioError(f"{path}: {wanted!r} is rejected: {error.strerror}") from error
            if value != wanted:
                raise EeioError(f"{path}: set to {wanted!r}, but it reads back {value!r}")
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
            "alpm",
            "SATA link power management (ALPM)",
            host / "link_power_management_policy" if host else None,
            "the drive is on no SATA link",
            (
                "max_performance",
                "medium_power",
                "med_power_with_dipm",
                "min_power_with_partial",
                "min_power",
            ),
        ),
        _read(
            "aspm",
            "PCI Express link power management (ASPM), the kernel's policy",
            root / "sys/module/pcie_aspm/parameters/policy" if pci else None,
            "the drive is on no PCI Express link",
            ("performance", "default", "powersave", "powersupersave"),
        ),
        _read(
            "aspm-l1",
            "ASPM L1 of the drive's controller",
            pci / "link/l1_aspm" if pci else None,
            "the drive is on no PCI Express link",
            ("0", "1"),
        ),
        _read(
            "controller",
            "runtime power management of the controller",
            pci / "power/control" if pci else None,
            "the drive is on no PCI bus",
            runtime,
        ),
        _read(
            "drive",
            "runtime power management of the drive",
            disk / "device/power/control",
            "the kernel reports none",
            runtime,
        ),
    ]


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
    if chosen:
        return chosen[1]
    return text
