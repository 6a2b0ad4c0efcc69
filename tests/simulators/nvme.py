"""An NVMe controller behind its ioctl: takes the admin command apart as the kernel does."""

import ctypes
import errno
import struct
from collections.abc import Callable

ADMIN_COMMAND = 0xC0484E41
INVALID_OPCODE = 0x4001


class FakeNvme:
    """`ioctl` stands in for fcntl.ioctl; every opcode but Get Log Page is refused and noted."""

    def __init__(self, power_w: Callable[[], float], scale: int = 2) -> None:
        self._power_w = power_w
        self._scale = scale
        self.gone = False
        self.opcodes: list[int] = []

    def ioctl(self, fd: int, request: int, command: bytearray) -> int:
        """The controller's status: 0, or why not. Raises OSError as the kernel does."""
        if self.gone:
            raise OSError(errno.ENODEV, "No such device")
        if request != ADMIN_COMMAND or len(command) != 72:
            raise OSError(errno.ENOTTY, "Inappropriate ioctl for device")
        self.opcodes.append(command[0])
        address, _, length, dword10 = struct.unpack_from("<QIII", command, 24)
        if command[0] != 0x02 or dword10 & 0xFF != 0x02:
            return INVALID_OPCODE
        if (dword10 >> 16) + 1 != length // 4:
            return 0x4002
        unit_w = {1: 1e-4, 2: 1e-2}.get(self._scale, 1.0)
        page = bytearray(length)
        word = round(self._power_w() / unit_w) & 0xFFFF | self._scale << 16
        struct.pack_into("<QI", page, 232, 1234, word)
        ctypes.memmove(address, bytes(page), length)
        return 0
