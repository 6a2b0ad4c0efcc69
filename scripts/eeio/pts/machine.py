"""What PTS tells of a machine, as a campaign holds it."""

import re

from eeio.pts.composite import System
from eeio_results.record import Machine


def machine_of(system: System) -> Machine:
    """What PTS tells of a machine; the rest is named as missing."""
    told = dict(
        part.split(": ", 1) for part in f"{system.hardware}, {system.software}".split(", ")
        if ": " in part
    )  # fmt: skip
    cores = re.search(
        r"\((?:\d{1,6} Cores? / )?(\d{1,6}) (?:Cores?|Threads?)\)", told.get("Processor", "")
    )
    architecture = re.search(r"\(([^)]+)\)", told.get("Kernel", ""))
    memory = re.search(r"(\d{1,6})\s?([MGT])B", told.get("Memory", ""))
    missing = "a PTS result file does not hold it"
    unknown = ("frequency_min_hz", "frequency_max_hz", "device", "device_firmware",
               "device_size_bytes", "device_rotational", "device_write_cache",
               "mkfs_options")  # fmt: skip
    reasons = dict.fromkeys(unknown, missing)
    if cores is None:
        reasons["logical_cpus"] = f"{missing}; 1 stands for any number"
    scale = {"M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
    return Machine(
        hostname=system.identifier,
        architecture=architecture[1] if architecture else "unknown",
        cpu_model=(told.get("Processor") or "").partition(" (")[0] or None,
        logical_cpus=int(cores[1]) if cores else 1,
        governor=_text(system.json.get("cpu-scaling-governor")),
        frequency_min_hz=None,
        frequency_max_hz=None,
        memory_bytes=int(memory[1]) * scale[memory[2]] if memory else None,
        kernel=told.get("Kernel", "unknown").partition(" (")[0],
        distribution=told.get("OS"),
        virtualization=told.get("System Layer"),
        device=None,
        device_model=told.get("Disk"),
        device_firmware=None,
        device_size_bytes=None,
        device_rotational=None,
        device_write_cache=None,
        scheduler=_text(system.json.get("disk-scheduler")),
        filesystem=told.get("File-System"),
        mount_options=_text(system.json.get("disk-mount-options")),
        mkfs_options=None,
        missing=reasons,
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
