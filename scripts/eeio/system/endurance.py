"""How much of its rated endurance a drive has used, and what was written to it, by its own word.

NVMe alone: of the SMART / health log page (NVM Express Base Specification, log 02h) "Percentage
Used" (byte 5), the drive's own estimate, which may go beyond 100 %, and "Data Units Written" (bytes
48 to 63), in thousands of 512 bytes, rounded up. Nothing is taken from tables of models. Root is
needed to ask.
"""

import os
from datetime import UTC, datetime
from pathlib import Path

from eeio_limits.quantities import SIZE
from eeio_power.meters.nvme import read_smart_log
from eeio_results.campaign import Wear

_PERCENTAGE_USED = 5
_WRITTEN = slice(48, 64)
_DATA_UNIT_BYTES = 512_000


def percentage_used(disk: Path, dev: Path = Path("/dev")) -> int | None:
    """Of the drive behind a folder of /sys/block; None of other drives, and where it does not
    answer."""
    log = _health(disk, dev)
    return None if log is None else log[_PERCENTAGE_USED]


def wear(disk: Path, dev: Path = Path("/dev")) -> Wear | None:
    """The same, with what was ever written, now."""
    log = _health(disk, dev)
    if log is None:
        return None
    now = datetime.now(UTC).isoformat(timespec="seconds")
    written = int.from_bytes(log[_WRITTEN], "little") * _DATA_UNIT_BYTES
    return Wear(now, log[_PERCENTAGE_USED], written) if SIZE.holds(written) else None


def _health(disk: Path, dev: Path) -> bytes | None:
    controller = (disk / "device").resolve().name
    # nvme0, not nvme-subsys0: of several paths to one drive none is asked.
    if not controller.removeprefix("nvme").isdigit() or not controller.startswith("nvme"):
        return None
    try:
        fd = os.open(dev / controller, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return read_smart_log(fd)
    except OSError:
        return None
    finally:
        os.close(fd)
