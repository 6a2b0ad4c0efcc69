"""The machine as a campaign found it: the data needed to repeat the campaign."""

import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from eeio.errors import EeioError
from eeio.machine.as_data.root import memory_bytes
from eeio.machine.drive import drive_of, network_file_system
from eeio.machine.filesystem import BlockDevice, Mount, mount_of
from eeio.machine.limits import known_limits
from eeio.machine.undo import run_command
from eeio.record.run import Machine, Tool
from eeio.units.external_text import shown

_OF_DISK = (
    "device",
    "device_model",
    "device_firmware",
    "device_size_bytes",
    "device_rotational",
    "device_write_cache",
    "scheduler",
)
"""Fields of Machine without a default, None without a disk."""


class _Files:
    """Values of files of the machine. `missing` has the reason of each that cannot be read."""

    def __init__(self) -> None:
        self.missing: dict[str, str] = {}

    def text(self, name: str, path: Path) -> str | None:
        """The file's text; None if it cannot be read."""
        try:
            return path.read_text(encoding="utf-8", errors="replace").strip()
        except OSError as error:
            self.missing[name] = f"{path}: {error.strerror}"
            return None

    def number(self, name: str, path: Path, factor: int = 1) -> int | None:
        """The file's whole number, multiplied by `factor`."""
        text = self.text(name, path)
        if text is None:
            return None
        try:
            return int(text) * factor
        except ValueError as error:
            self.missing[name] = f"{path}: {error}"
            return None


def capture(
    directory: Path | None,
    device: BlockDevice | None,
    tools: Sequence[Tool],
    mkfs_options: str | None = None,
    drive_label: str | None = None,
    hash_serial: bool = False,
    programs: Mapping[str, str] | None = None,
) -> Machine:
    """Reads /proc and /sys; a value that cannot be read is None, with the reason in `missing`."""
    files = _Files()
    of_disk = _of_disk(device, hash_serial, files)
    of_filesystem = _of_filesystem(directory, mkfs_options, files.missing)
    cpufreq = Path("/sys/devices/system/cpu/cpu0/cpufreq")
    return Machine(
        hostname=platform.node(),
        architecture=platform.machine(),
        cpu_model=_cpu_model(files.missing),
        logical_cpus=os.cpu_count() or 1,
        governor=files.text("governor", cpufreq / "scaling_governor"),
        frequency_min_hz=files.number("frequency_min_hz", cpufreq / "scaling_min_freq", 1000),
        frequency_max_hz=files.number("frequency_max_hz", cpufreq / "scaling_max_freq", 1000),
        memory_bytes=memory_bytes(),
        kernel=platform.release(),
        distribution=_distribution(),
        virtualization=_virtualization(),
        **of_disk,
        **of_filesystem,
        tools=tuple(tools),
        missing=files.missing,
        drive_label=drive_label,
        programs=dict(programs or {}),
        limits=known_limits(),
    )


def _of_disk(device: BlockDevice | None, hash_serial: bool, files: _Files) -> dict[str, Any]:
    if device is None:
        names = ("device", "device_model", "device_size_bytes", "scheduler")
        files.missing |= dict.fromkeys(names, "the target has no block device")
        return dict.fromkeys(_OF_DISK)
    disk = device.disk_sysfs
    drive = drive_of(disk, hash_serial)
    files.missing |= drive.missing
    rotational = files.number("device_rotational", disk / "queue/rotational")
    is_rotational = None
    if rotational is not None:
        is_rotational = bool(rotational)
    return {
        "device": disk.name,
        "device_model": _device_model(disk, files.missing),
        "device_firmware": files.text("device_firmware", _firmware_file(disk)),
        "device_size_bytes": files.number("device_size_bytes", disk / "size", 512),
        "device_rotational": is_rotational,
        "device_write_cache": files.text("device_write_cache", disk / "queue/write_cache"),
        "scheduler": _scheduler(files.text("scheduler", disk / "queue/scheduler")),
        "drive_id": drive.drive_id,
        "rotation_rate_rpm": drive.rotation_rate_rpm,
        "drive_interface": drive.drive_interface,
        "drive_link_speed": drive.drive_link_speed,
        "raid_level": drive.raid_level,
        "raid_members": drive.raid_members,
    }


def _of_filesystem(
    directory: Path | None, mkfs_options: str | None, missing: dict[str, str]
) -> dict[str, Any]:
    mount = None
    if directory is not None:
        mount = mount_of(directory)
    if mount is None:
        missing["filesystem"] = "only a raw device was measured"
        return {"filesystem": None, "mount_options": None, "mkfs_options": mkfs_options}
    if mkfs_options is None:
        mkfs_options = _filesystem_features(mount, missing)
    values = {
        "filesystem": mount.filesystem,
        "mount_options": mount.options,
        "mkfs_options": mkfs_options,
    }
    network = network_file_system(mount)
    if network is not None:
        values["nfs_server"] = network.server
        values["nfs_version"] = network.version
        values["network_link"] = network.link
    return values


def differences(before: Machine, now: Machine, of_target: bool) -> list[str]:
    """In words, what makes figures of the two machines no repetitions of each other. What belongs
    to the file system and its disk counts where `of_target` says so."""
    names = ["hostname", "architecture", "cpu_model", "logical_cpus", "governor", "kernel"]
    if of_target:
        names += ["filesystem", "mount_options", "scheduler"]
    pairs = [(name, getattr(before, name), getattr(now, name)) for name in names]
    tools_now = {tool.name: f"{tool.version} (sha256 {tool.sha256[:12]})" for tool in now.tools}
    for tool in before.tools:
        text = f"{tool.version} (sha256 {tool.sha256[:12]})"
        pairs.append((tool.name, text, tools_now.get(tool.name, text)))
    for name, sha256 in before.programs.items():
        now_sha256 = now.programs.get(name, sha256)
        pairs.append((f"program of {name}", f"sha256 {sha256[:12]}", f"sha256 {now_sha256[:12]}"))
    return [
        f"{name} was {shown(str(old))}, is {shown(str(new))}"
        for name, old, new in pairs
        if old != new
    ]


def _cpu_model(missing: dict[str, str]) -> str | None:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("model name", "Model", "Hardware", "cpu model"):
            return value.strip()
    missing["cpu_model"] = "/proc/cpuinfo names no model"
    return None


def _filesystem_features(mount: Mount, missing: dict[str, str]) -> str | None:
    """How an existing file system was made, from its tool's output."""
    commands = {
        "ext4": ["dumpe2fs", "-h", mount.source],
        "xfs": ["xfs_info", str(mount.mount_point)],
        "btrfs": ["btrfs", "inspect-internal", "dump-super", mount.source],
    }
    if mount.filesystem not in commands:
        missing["mkfs_options"] = f"eeio supports no tool that prints them for {mount.filesystem}"
        return None
    try:
        text = run_command(commands[mount.filesystem])
    except EeioError as error:
        missing["mkfs_options"] = str(error)
        return None
    if mount.filesystem == "xfs":
        return " ".join(text.split())
    wanted = ("features", "block size", "inode size", "csum_type", "sectorsize", "nodesize")
    lines = (" ".join(line.split()) for line in text.splitlines())
    return "; ".join(
        line
        for line in lines
        if line.lower().startswith(wanted) or line.startswith("Filesystem features")
    )


def _distribution() -> str | None:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME")
    except OSError:
        return None


def _virtualization() -> str | None:
    """The hypervisor's name if the firmware or the CPU reports one."""
    flags = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    if "hypervisor" not in flags:
        return None
    for path in ("/sys/hypervisor/type", "/sys/class/dmi/id/sys_vendor"):
        try:
            return (
                Path(path).read_bytes().decode(errors="backslashreplace").strip()
                or "unnamed hypervisor"
            )
        except OSError:
            continue
    return "unnamed hypervisor"


def _device_model(disk: Path, missing: dict[str, str]) -> str | None:
    backing = disk / "loop/backing_file"
    if backing.exists():
        name = backing.read_bytes().decode(errors="backslashreplace")
        return f"loop image {name.strip()}"
    try:
        model = (disk / "device/model").read_bytes().decode(errors="backslashreplace").strip()
    except OSError as error:
        missing["device_model"] = f"{disk / 'device/model'}: {error.strerror}"
        return None
    return model


def _firmware_file(disk: Path) -> Path:
    nvme = disk / "device/firmware_rev"
    if nvme.exists():
        return nvme
    return disk / "device/rev"


def _scheduler(line: str | None) -> str | None:
    """`[none] mq-deadline` -> `none`."""
    if line is None or "[" not in line:
        return line
    return line.partition("[")[2].partition("]")[0]
