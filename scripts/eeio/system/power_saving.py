"""A drive's power saving for the length of a pause: begun at its start, or kept from it.

A kind of drive is a class here with the same members. What is changed stands in the undo journal
until it is put back.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from eeio.system import nvme_power, power_state
from eeio.system.nvme_power import NvmeController
from eeio.system.undo import UndoEntry, UndoJournal, run_command
from eeio_results.errors import EeioError

# ATA ACS-3, advanced power management: 1 to 127 let the drive stand by, 128 to 253 do not but save
# all the same, 254 is none of it; 255 is how hdparm switches it off.
_APM_NO_SAVING = 254


@dataclass(frozen=True)
class AtaDrive:
    """An ATA drive, through hdparm. Saving is standby, told at once (hdparm -y); what it saves by
    itself while it idles, advanced power management, is the other side's to be without."""

    node: Path

    def is_saving(self) -> bool:
        """EeioError where the drive does not tell."""
        return self.state() in power_state.STANDBY

    def state(self) -> str:
        return power_state.state_of(self.node)

    @contextmanager
    def saving(self, journal: UndoJournal) -> Iterator[None]:
        """It stands by from here on; whatever wakes it ends that. It is awake after the block, and
        `eeio doctor restore` wakes it, too."""
        wake = ["dd", f"if={self.node}", "of=/dev/null", "bs=4096", "count=1", "iflag=direct"]
        entry = UndoEntry("command", str(self.node), json.dumps(wake)).of_drive(self.node)
        with journal.held(entry):
            power_state.put_into_standby(self.node)
            yield

    @contextmanager
    def without_saving(self, journal: UndoJournal) -> Iterator[None]:
        """Advanced power management is off in the block, where the drive has it."""
        level = self._apm_level()
        if level is None or level >= _APM_NO_SAVING:
            yield
            return
        entry = UndoEntry("command", str(self.node), json.dumps(self._apm(level)))
        with journal.held(entry.of_drive(self.node)):
            run_command(self._apm(_APM_NO_SAVING))
            if (found := self._apm_level()) != _APM_NO_SAVING:
                raise EeioError(
                    f"{self.node}: asked for no power management (hdparm -B {_APM_NO_SAVING}), it "
                    f"reads back {found}"
                )
            yield

    def _apm(self, level: int) -> list[str]:
        return ["hdparm", "-q", "-B", str(level), str(self.node)]

    def _apm_level(self) -> int | None:
        """1 to 255, 255: off; None for a drive without it."""
        said = run_command(["hdparm", "-B", str(self.node)])
        match = re.search(r"APM_level\s*=\s*(off|[0-9]{1,3})\b", said)
        if match is None:
            return None
        return 255 if match[1] == "off" else int(match[1])


@dataclass(frozen=True)
class NvmeDrive:
    """An NVMe drive. Saving is its power state `deep`, told at once; what it saves by itself while
    it idles, autonomous transitions (APST), is the other side's to be without."""

    controller: NvmeController
    deep: int

    def is_saving(self) -> bool:
        """EeioError where the drive does not tell."""
        return self.controller.state() == self.deep

    def state(self) -> str:
        return f"ps{self.controller.state()}"

    @contextmanager
    def saving(self, journal: UndoJournal) -> Iterator[None]:
        """It is in its deep state from here on; whatever wakes it ends that. After the block, and
        after `eeio doctor restore`, it is in the state that it was in before."""
        node, before = self.controller.node, self.controller.state()
        with journal.held(UndoEntry("nvme", str(node), f"state {before}").of_drive(node)):
            self.controller.set_state(self.deep)
            yield

    @contextmanager
    def without_saving(self, journal: UndoJournal) -> Iterator[None]:
        """Autonomous transitions are off in the block, where the drive has them on."""
        if not self.controller.is_autonomous():
            yield
            return
        node = self.controller.node
        with journal.held(UndoEntry("nvme", str(node), "autonomous 1").of_drive(node)):
            self.controller.set_autonomous(False)
            yield


Drive = AtaDrive | NvmeDrive


def drive_at(node: Path, disk: Path, state: int | None = None) -> Drive:
    """The drive behind a node and its folder of /sys/block, with what it can do; `state` chooses
    among those of an NVMe drive, the deepest without. EeioError where it has none to save by."""
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
