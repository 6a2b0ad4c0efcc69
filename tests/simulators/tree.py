"""sysfs folders made of files: Industrial I/O, power supplies, the perf unit of RAPL."""

from collections.abc import Mapping
from pathlib import Path

from tests.simulators.files import write_atomically


def write_tree(root: Path, files: Mapping[str, int | str]) -> Path:
    """Write each file below `root`, a newline behind its text; returns `root`."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, str(text))
    return root


def cubietruck(folder: Path, voltage_uv: int = 5_012_000, current_ua: int = 640_000) -> Path:
    """The supplies of a Cubietruck: mains in use, USB not, no battery. `folder`: power_supply."""
    return write_tree(
        folder,
        {
            "axp20x-ac/type": "Mains",
            "axp20x-ac/online": 1,
            "axp20x-ac/voltage_now": voltage_uv,
            "axp20x-ac/current_now": current_ua,
            "axp20x-usb/type": "USB",
            "axp20x-usb/online": 0,
            "axp20x-usb/voltage_now": 0,
            "axp20x-usb/current_now": 0,
        },
    )


def topology(root: Path, cpus: Mapping[int, tuple[int, int]]) -> Path:
    """The package and the die of each CPU, below the machine's `root`."""
    files = {}
    for cpu, (package, die) in cpus.items():
        folder = f"sys/devices/system/cpu/cpu{cpu}/topology"
        files[f"{folder}/physical_package_id"] = package
        files[f"{folder}/die_id"] = die
    return write_tree(root, files)


def perf_unit(folder: Path, cpumask: str = "0,18", scale: float = 2.0**-32) -> Path:
    """The `power` unit of a server with two packages."""
    return write_tree(
        folder,
        {
            "type": 9,
            "cpumask": cpumask,
            "events/energy-pkg": "event=0x02",
            "events/energy-pkg.scale": repr(scale),
            "events/energy-pkg.unit": "Joules",
            "events/energy-ram": "event=0x03",
            "events/energy-ram.scale": repr(scale),
            "events/energy-ram.unit": "Joules",
            "events/energy-cores": "event=0x01",
            "events/energy-cores.scale": repr(scale),
            "events/energy-cores.unit": "Joules",
        },
    )
