"""The power states of an NVMe drive, by admin commands to its controller.

NVM Express Base Specification 2.0: Identify Controller (NPSS, power state descriptors), features
02h (Power Management) and 0Ch (Autonomous Power State Transition, APST). A drive in a
non-operational state goes back to its last operational one by itself when a command for its media
comes. Root is needed, and the controller's node such as /dev/nvme0.
"""

import ctypes
import fcntl
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from eeio.errors import EeioError
from eeio.machine.undo import UndoEntry, UndoJournal
from eeio_power.meters.nvme import ADMIN_COMMAND, COMMAND, TIMEOUT_MS

_IDENTIFY, _SET_FEATURES, _GET_FEATURES = 0x06, 0x09, 0x0A
_CONTROLLER = 1
_POWER, _AUTONOMOUS = 0x02, 0x0C
_IDENTIFY_BYTES, _TABLE_BYTES = 4096, 256
_NPSS_AT, _APSTA_AT, _DESCRIPTORS_AT, _DESCRIPTOR_BYTES = 263, 265, 2048, 32
_MOST_STATES = 32


@dataclass(frozen=True)
class PowerState:
    """One of a drive's power states as it describes them: `most_w` it may take at most (None: it
    does not say), times to enter and to leave in s (0: not told). A state that is not operational
    answers nothing without leaving it."""

    number: int
    most_w: float | None
    is_operational: bool
    enter_s: float
    leave_s: float


@dataclass(frozen=True)
class NvmeController:
    """One controller. Its members raise EeioError if the drive or the kernel rejects a command."""

    node: Path

    def states(self) -> list[PowerState]:
        """All, from 0, the one with the most power, on."""
        page = self._admin(_IDENTIFY, dword10=_CONTROLLER, bytes_in=_IDENTIFY_BYTES)[1]
        many = min(page[_NPSS_AT] + 1, _MOST_STATES)
        states = []
        for number in range(many):
            states.append(_described(number, page[_DESCRIPTORS_AT + number * _DESCRIPTOR_BYTES :]))
        return states

    def state(self) -> int:
        """The one that it is in."""
        return self._admin(_GET_FEATURES, dword10=_POWER)[0] & 0x1F

    def set_state(self, number: int) -> None:
        """Proved by asking."""
        self._admin(_SET_FEATURES, dword10=_POWER, dword11=number)
        if (state := self.state()) != number:
            raise EeioError(f"{self.node}: set to power state {number}, it is in {state}")

    def is_autonomous(self) -> bool | None:
        """Whether it enters states by itself (APST); None for a drive that cannot."""
        page = self._admin(_IDENTIFY, dword10=_CONTROLLER, bytes_in=_IDENTIFY_BYTES)[1]
        if not page[_APSTA_AT] & 1:
            return None
        return bool(self._admin(_GET_FEATURES, dword10=_AUTONOMOUS, bytes_in=_TABLE_BYTES)[0] & 1)

    def set_autonomous(self, wanted: bool) -> None:
        """With the drive's table of its transitions, which stays."""
        _, table = self._admin(_GET_FEATURES, dword10=_AUTONOMOUS, bytes_in=_TABLE_BYTES)
        self._admin(_SET_FEATURES, dword10=_AUTONOMOUS, dword11=int(wanted), bytes_out=table)
        if self.is_autonomous() is not wanted:
            raise EeioError(f"{self.node}: its autonomous power states cannot be switched")

    def _admin(
        self,
        opcode: int,
        *,
        dword10: int,
        dword11: int = 0,
        bytes_in: int = 0,
        bytes_out: bytes = b"",
    ) -> tuple[int, bytes]:
        """The result (dword 0 of the completion) and the data that came."""
        length = bytes_in or len(bytes_out)
        data = None
        if length:
            data = ctypes.create_string_buffer(bytes_out, length)
        command = bytearray(
            COMMAND.pack(
                opcode,
                0,
                0,
                0,
                0,
                0,
                0,
                ctypes.addressof(data) if data else 0,
                0,
                length,
                dword10,
                dword11,
                0,
                0,
                0,
                0,
                TIMEOUT_MS,
                0,
            )
        )
        try:
            with self._opened() as fd:
                status = fcntl.ioctl(fd, ADMIN_COMMAND, command)
        except OSError as error:
            raise EeioError(f"{self.node}: {error.strerror or error}") from error
        if status != 0:
            raise EeioError(
                f"{self.node}: the drive refuses {_NAMES[opcode]} {dword10:#x} (status {status:#x})"
            )
        (result,) = struct.unpack_from("=I", command, COMMAND.size - 4)
        return result, data.raw if data else b""

    @contextmanager
    def _opened(self) -> Iterator[int]:
        fd = os.open(self.node, os.O_RDONLY | os.O_CLOEXEC)
        try:
            yield fd
        finally:
            os.close(fd)


_NAMES = {_IDENTIFY: "Identify", _GET_FEATURES: "Get Features", _SET_FEATURES: "Set Features"}


def _described(number: int, descriptor: bytes) -> PowerState:
    most, _, flags, enter_us, leave_us = struct.unpack_from("<HBBII", descriptor)
    unit_w = 1e-2
    if flags & 1:
        unit_w = 1e-4
    return PowerState(
        number, most * unit_w if most else None, not flags & 2, enter_us * 1e-6, leave_us * 1e-6
    )


def controller_of(disk: Path, dev: Path = Path("/dev")) -> NvmeController | None:
    """That of the drive behind a folder of /sys/block; None of other drives. EeioError where
    several controllers lead to one drive: none of them represents it."""
    name = (disk / "device").resolve().name
    if name.startswith("nvme-subsys"):
        raise EeioError(f"{disk.name}: it has several controllers, so none represents the drive")
    if not (name.startswith("nvme") and name.removeprefix("nvme").isdigit()):
        return None
    return NvmeController(dev / name)


def hold_state(controller: NvmeController, number: int, journal: UndoJournal) -> None:
    """Sets the state, with the drive's own transitions off; both are noted in the journal before.
    EeioError if the drive does not accept it."""
    node = controller.node
    journal.add(UndoEntry("nvme", str(node), f"state {controller.state()}").of_drive(node))
    if controller.is_autonomous():
        journal.add(UndoEntry("nvme", str(node), "autonomous 1").of_drive(node))
        controller.set_autonomous(False)
    controller.set_state(number)


def put_back(node: str, value: str) -> None:
    """`state N` or `autonomous 0|1`, as an undo journal holds it. EeioError where it cannot be."""
    what, _, number = value.partition(" ")
    if what not in ("state", "autonomous") or not number.isdecimal():
        raise EeioError(
            f"{node}: {value!r:.40} is not a state that an NVMe drive can be restored to"
        )
    controller = NvmeController(Path(node))
    if what == "state":
        controller.set_state(int(number))
    else:
        controller.set_autonomous(number == "1")
