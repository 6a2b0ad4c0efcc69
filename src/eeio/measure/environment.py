"""The machine as a campaign found it: the data needed to repeat the campaign."""

import os
import platform
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from eeio.errors import EeioError
from eeio.machine.as_data.root import memory_bytes
from eeio.machine.drive import Drive, drive_of, network_file_system
from eeio.machine.filesystem import BlockDevice, Mount, mount_of
from eeio.machine.limits import known_limits
from eeio.machine.undo import run_command
from eeio.record.run import Machine, Tool
from eeio.units.external_text import shown


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
    missing: dict[str, str] = {}

    def read(name: str, path: Path, convert: Callable[[str], str | int] = str) -> str | int | None:
        try:
            return convert(path.read_text(encoding="utf-8", errors="replace").strip())
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            missing[name] = f"{path}: {reason}"
            return None

    def text(name: str, path: Path) -> str | None:
        value = read(name, path)
        return None if value is None else str(value)

    def number(name: str, path: Path, factor: int = 1) -> int | None:
        value = read(name, path, lambda text: int(text) * factor)
        return None if value is None else int(value)

    cpufreq = Path("/sys/devices/system/cpu/cpu0/cpufreq")
    disk = device.disk_sysfs if device else None
    if disk is None:
        for name in ("device", "device_model", "device_size_bytes", "scheduler"):
            missing[name] = "the target has no block device"
    mount = mount_of(directory) if directory else None
    if mount is None:
        missing["filesystem"] = "only a raw device was measured"
    if mkfs_options is None and mount is not None:
        mkfs_options = _filesystem_features(mount, missing)
    drive = drive_of(disk, hash_serial) if disk else Drive()
    missing.update(drive.missing)
    network = network_file_system(mount) if mount else None
    rotational = number("device_rotational", disk / "queue/rotational") if disk else None
    return Machine(
        hostname=platform.node(),
        architecture=platform.machine(),
        cpu_model=_cpu_model(missing),
        logical_cpus=os.cpu_count() or 1,
        governor=text("governor", cpufreq / "scaling_governor"),
        frequency_min_hz=number("frequency_min_hz", cpufreq / "scaling_min_freq", 1000),
        frequency_max_hz=number("frequency_max_hz", cpufreq / "scaling_max_freq", 1000),
        memory_bytes=memory_bytes(),
        kernel=platform.release(),
        distribution=_distribution(),
        virtualization=_virtualization(),
        device=disk.name if disk else None,
        device_model=_device_model(disk, missing) if disk else None,
        device_firmware=text("device_firmware", _firmware_file(disk)) if disk else None,
        device_size_bytes=number("device_size_bytes", disk / "size", 512) if disk else None,
        device_rotational=None if rotational is None else bool(rotational),
        device_write_cache=text("device_write_cache", disk / "queue/write_cache") if disk else None,
        scheduler=_scheduler(text("scheduler", disk / "queue/scheduler")) if disk else None,
        filesystem=mount.filesystem if mount else None,
        mount_options=mount.options if mount else None,
        mkfs_options=mkfs_options,
        tools=tuple(tools),
        missing=missing,
        drive_id=drive.drive_id,
        drive_label=drive_label,
        rotation_rate_rpm=drive.rotation_rate_rpm,
        drive_interface=drive.drive_interface,
        drive_link_speed=drive.drive_link_speed,
        raid_level=drive.raid_level,
        raid_members=drive.raid_members,
        nfs_server=network.server if network else None,
        nfs_version=network.version if network else None,
        network_link=network.link if network else None,
        programs=dict(programs or {}),
        limits=known_limits(),
    )


def differences(before: Machine, now: Machine, of_target: bool) -> list[str]:
    """In words, what makes figures of the two machines no repetitions of each other. What belongs
    to the file system and its disk counts where `of_target` says so."""
    names = ["hostname", "architecture", "cpu_model", "logical_cpus", "governor", "kernel"]
    if of_target:
        names += ["filesystem", "mount_options", "scheduler"]
    pairs = [(name, getattr(before, name), getattr(now, name)) for name in names]
    found = {tool.name: f"{tool.version} (sha256 {tool.sha256[:12]})" for tool in now.tools}
    for tool in before.tools:
        text = f"{tool.version} (sha256 {tool.sha256[:12]})"
        pairs.append((tool.name, text, found.get(tool.name, text)))
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
    return nvme if nvme.exists() else disk / "device/rev"


def _scheduler(line: str | None) -> str | None:
    """`[none] mq-deadline` -> `none`."""
    if line is None or "[" not in line:
        return line
    return line.partition("[")[2].partition("]")[0]
