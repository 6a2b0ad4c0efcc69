"""The power that an NVMe drive reports of itself.

`nvme:/dev/nvme0`: the Interval Power Measurement of the SMART / health log page (log 02h, bytes
240 to 243; NVM Express base specification 2.3): power in bits 15:0, its scale in bits 17:16
(1: 0.1 mW, 2: 10 mW, 0: not reported), the mean of about a second. Drives from before that leave
it 0, and the meter rejects them.

The values are `device-reported`: they cannot be verified, so `auto` does not select
them. Reading needs root, or CAP_SYS_ADMIN. The device is opened read-only, and the only command
that is ever sent is Get Log Page.
"""

import ctypes
import errno
import fcntl
import os
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from eeio_power.delay import Delay
from eeio_power.errors import PowerError
from eeio_power.meters import Channel, Detected, Reads, Verified
from eeio_power.reading import Kind, only
from eeio_power.sysfs import by_number

OPTIONS = {"device": "the drive's controller, such as /dev/nvme0"}
ARGUMENT = "device"

KIND: Kind = "device-reported"
VERIFIED_ON: Verified = "simulator"
READS = Reads(nodes=("dev/nvme[0-9]*",))
NATIVE_PERIOD_S = 1.0
DELAY = Delay(0.5, 1.0, 0.5, 0.0, "NVMe 2.3: the interval power is a mean of one second")
# The specification requires no accuracy.
ACCURACY = 0.10
CONTENTS = only("drives")
MAX_POWER_W = 100.0

# _IOWR('N', 0x41, struct nvme_admin_cmd), linux/nvme_ioctl.h
ADMIN_COMMAND = 0xC0484E41
GET_LOG_PAGE = 0x02
SMART_LOG = 0x02
LOG_BYTES = 512
ALL_NAMESPACES = 0xFFFFFFFF
POWER_OFFSET = 240
SCALES_W = {1: 1e-4, 2: 1e-2}

# struct nvme_passthru_cmd: opcode flags rsvd1 nsid cdw2 cdw3 metadata addr metadata_len data_len
# cdw10 to cdw15 timeout_ms result
COMMAND = struct.Struct("=BBHIIIQQIIIIIIIIII")
TIMEOUT_MS = 1000

Ioctl = Callable[[int, int, bytearray], int]


def interval_power_w(log: bytes) -> float | None:
    """The interval power of a SMART log page, W; None if the drive does not report it. 0 W with a
    scale: the drive can measure its power, and does not."""
    (word,) = struct.unpack_from("<I", log, POWER_OFFSET)
    scale_w = SCALES_W.get(word >> 16 & 0x3)
    if scale_w is None:
        return None
    return float((word & 0xFFFF) * scale_w)


def read_smart_log(fd: int, ioctl: Ioctl = fcntl.ioctl) -> bytes:
    """The SMART log page of the controller. Raises OSError as the kernel gave it."""
    page = ctypes.create_string_buffer(LOG_BYTES)
    dwords = LOG_BYTES // 4 - 1
    command = COMMAND.pack(
        GET_LOG_PAGE,
        0,
        0,
        ALL_NAMESPACES,
        0,
        0,
        0,
        ctypes.addressof(page),
        0,
        LOG_BYTES,
        dwords << 16 | SMART_LOG,
        0,
        0,
        0,
        0,
        0,
        TIMEOUT_MS,
        0,
    )
    # With a bytearray, ioctl returns the status of the drive, which is positive for a refusal.
    status = ioctl(fd, ADMIN_COMMAND, bytearray(command))
    if status != 0:
        raise OSError(5, f"the drive rejected the request for its SMART log (status {status:#x})")
    return page.raw


@dataclass
class NvmeMeter:
    """One drive."""

    spec: str
    name: str
    device: str
    fd: int
    ioctl: Ioctl = fcntl.ioctl
    kind: Kind = KIND
    native_period_s: float = NATIVE_PERIOD_S

    @property
    def channels(self) -> Sequence[Channel]:
        return (
            Channel(
                name=f"nvme:{Path(self.device).name}",
                domain="device",
                quantity="power_w",
                accuracy_relative=ACCURACY,
                resolution=0.01,
                max_power_w=MAX_POWER_W,
                contents=CONTENTS,
            ),
        )

    def read(self) -> Sequence[float | None]:
        """W. Raises OSError if the drive is gone, PowerError if it reports no power."""
        if self.fd < 0:
            raise OSError(errno.EBADF, f"{self.device} was closed")
        power_w = interval_power_w(read_smart_log(self.fd, self.ioctl))
        if power_w is None:
            raise PowerError(
                f"{self.device}: the drive does not report its power; drives before NVMe 2.3 do "
                "not, use a meter on their supply"
            )
        if power_w == 0.0:
            raise PowerError(
                f"{self.device}: the drive reports 0 W: its power measurement is switched off; "
                "switch it on with `nvme set-feature` (NVMe 2.3, Power Measurement)"
            )
        return [power_w]

    def close(self) -> None:
        """Give the device back."""
        fd, self.fd = self.fd, -1
        if fd >= 0:  # the number may be another file's by the second time
            os.close(fd)


def open_meter(
    spec: str, options: Mapping[str, str], root: Path, ioctl: Ioctl = fcntl.ioctl
) -> NvmeMeter:
    """Open the drive and take a first reading. Raises PowerError if it reports no power."""
    device = options.get("device")
    if device is None:
        raise PowerError(f"meter '{spec}': which drive? Such as nvme:/dev/nvme0")
    if not re.fullmatch(r"nvme\d+", Path(device).name):
        raise PowerError(f"meter '{spec}': {device} is not an NVMe controller; such as /dev/nvme0")
    try:
        fd = os.open(root / device.lstrip("/"), os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise PowerError(f"meter '{spec}': {device}: {error.strerror}; run as root") from error
    meter = NvmeMeter(spec, options.get("name", Path(device).name), device, fd, ioctl)
    try:
        meter.read()
    except (OSError, PowerError) as error:
        meter.close()
        raise PowerError(f"meter '{spec}': {error}") from error
    return meter


def find(root: Path) -> Detected:
    """The first drive that reports its power."""
    drives = sorted(
        (p for p in (root / "dev").glob("nvme*") if re.fullmatch(r"nvme\d+", p.name)),
        key=by_number,
    )
    problem = "no NVMe drive"
    for drive in drives:
        spec = f"nvme:/dev/{drive.name}"
        try:
            open_meter(spec, {"device": f"/dev/{drive.name}"}, root).close()
        except PowerError as error:
            problem = str(error)
        else:
            return Detected(spec, KIND, ("device",), True, contents={"device": CONTENTS})
    return Detected(
        "nvme",
        KIND,
        ("device",),
        False,
        problem,
        "as root, with a drive that reports its power (NVMe 2.3); or a meter on the drive's supply",
    )
