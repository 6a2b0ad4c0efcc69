"""How much of its rated endurance a drive has used, by its own word.

NVMe alone: "Percentage Used" of the SMART / health log page (NVM Express Base Specification, log
02h, byte 5), the drive's own estimate, which may go beyond 100 %. Nothing is taken from tables of
models. Root is needed to ask.
"""

import os
from pathlib import Path

from eeio_power.meters.nvme import read_smart_log

_PERCENTAGE_USED = 5


def percentage_used(disk: Path, dev: Path = Path("/dev")) -> int | None:
    """Of the drive behind a folder of /sys/block; None of other drives, and where it does not
    answer."""
    controller = (disk / "device").resolve().name
    # nvme0, not nvme-subsys0: of several paths to one drive none is asked.
    if not controller.removeprefix("nvme").isdigit() or not controller.startswith("nvme"):
        return None
    try:
        fd = os.open(dev / controller, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return read_smart_log(fd)[_PERCENTAGE_USED]
    except OSError:
        return None
    finally:
        os.close(fd)
