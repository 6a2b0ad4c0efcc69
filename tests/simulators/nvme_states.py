"""An NVMe controller with power states, behind its ioctl; what it is in stands in a file, so that
several processes meet the same drive.

It answers Identify Controller, and Get and Set Features 02h (power management) and 0Ch (autonomous
transitions) as NVM Express Base Specification 2.0 has them, and nothing else.
"""

import ctypes
import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from eeio_power.meters.nvme import ADMIN_COMMAND, COMMAND

INVALID_FIELD = 0x4002
_TABLE = bytes(range(256))


@dataclass(frozen=True)
class FakePowerState:
    """`most_w` is what it says of itself (below 1 W in 0.1 mW), `power_w` what it draws."""

    most_w: float
    power_w: float
    is_operational: bool = True
    enter_us: int = 0
    leave_us: int = 0

    def descriptor(self) -> bytes:
        small = self.most_w < 1
        return struct.pack(
            "<HBBII", round(self.most_w / (1e-4 if small else 1e-2)), 0,
            int(small) | (0 if self.is_operational else 2), self.enter_us, self.leave_us,
        ).ljust(32, b"\0")  # fmt: skip


STATES = (
    FakePowerState(8.0, 5.0),
    FakePowerState(4.0, 3.0),
    FakePowerState(0.05, 0.04, False, 2000, 5000),
    FakePowerState(0.005, 0.004, False, 5000, 20000),
)


class FakeNvmeStates:
    """`ioctl` stands in for fcntl.ioctl. `file` holds its state; a new one begins in state 0 with
    autonomous transitions on. `refuses` are states that it will not go to."""

    def __init__(
        self, file: Path, states: Sequence[FakePowerState] = STATES, rejects: Sequence[int] = ()
    ) -> None:
        self.file = file
        self.states = tuple(states)
        self.rejects = tuple(rejects)
        if not file.exists():
            self._write({"state": 0, "operational": 0, "autonomous": 1})

    def body(self) -> dict[str, int]:
        return dict(json.loads(self.file.read_text(encoding="ascii")))

    def power_w(self) -> float:
        """What it draws now."""
        return self.states[self.body()["state"]].power_w

    def access(self) -> None:
        """A command for its media: it leaves a state that is not operational."""
        body = self.body()
        if not self.states[body["state"]].is_operational:
            self._write({**body, "state": body["operational"]})

    def ioctl(self, fd: int, request: int, command: bytearray) -> int:
        """The controller's status: 0, or why not."""
        assert request == ADMIN_COMMAND and len(command) == COMMAND.size
        opcode = command[0]
        address, _, length, dword10, dword11 = struct.unpack_from("<QIIII", command, 24)
        body = self.body()
        feature = dword10 & 0xFF
        if opcode == 0x06 and feature == 1:
            ctypes.memmove(address, self._identity(), length)
        elif opcode == 0x0A and feature == 0x02:
            self._answer(command, body["state"])
        elif opcode == 0x0A and feature == 0x0C:
            ctypes.memmove(address, _TABLE, length)
            self._answer(command, body["autonomous"])
        elif opcode == 0x09 and feature == 0x02:
            if dword11 >= len(self.states) or dword11 in self.rejects:
                return INVALID_FIELD
            last = dword11 if self.states[dword11].is_operational else body["operational"]
            self._write({**body, "state": dword11, "operational": last})
        elif opcode == 0x09 and feature == 0x0C:
            if ctypes.string_at(address, length) != _TABLE:
                return INVALID_FIELD
            self._write({**body, "autonomous": dword11 & 1})
        else:
            return INVALID_FIELD
        return 0

    def _answer(self, command: bytearray, result: int) -> None:
        struct.pack_into("=I", command, COMMAND.size - 4, result)

    def _identity(self) -> bytes:
        page = bytearray(4096)
        page[263], page[265] = len(self.states) - 1, 1
        for number, state in enumerate(self.states):
            page[2048 + 32 * number : 2080 + 32 * number] = state.descriptor()
        return bytes(page)

    def _write(self, body: dict[str, int]) -> None:
        new = self.file.with_suffix(".new")
        new.write_text(json.dumps(body), encoding="ascii")
        new.replace(self.file)
