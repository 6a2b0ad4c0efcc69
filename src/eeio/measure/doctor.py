"""A machine's equipment for measurements: tools, meters, devices, privileges, file systems."""

import importlib.util
import os
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from eeio.errors import EeioError, LimitError, RejectedError
from eeio.files import inputs
from eeio.machine import caches, image, nfs
from eeio.machine.as_data.replay import Replay
from eeio.machine.as_data.root import HERE, user_id, which
from eeio.machine.filesystem import block_device
from eeio.measure import hostnames
from eeio.measure.bench.plan import PROFILE as BENCH_PROFILE
from eeio.measure.profiles import installation
from eeio.measure.profiles import profile as profiles
from eeio.measure.profiles import suite as suites
from eeio.record.tools import about
from eeio_power.meters import discover

MODELLED = "modelled"
_NO_METERS = (MODELLED, "demo")
_SETUP = "scripts/setup"
# Of a Finding.
_MAY_BE_NONE = ("cost", "remedy", "program")
# Debian's folders of programs outside of users' PATH, as in the profiles' install.sh.
_FURTHER_PATH = ":/usr/sbin:/usr/local/sbin"
# Of eeio's installation, not of the machine: no description of a machine has them in its tree.
_OF_THE_INSTALLATION = ("tool", "name", "library")


@dataclass(frozen=True)
class Finding:
    """One checked item. `cost` and `remedy` belong to a missing one."""

    kind: str
    name: str
    found: bool
    detail: str
    cost: str | None = None
    remedy: str | None = None
    program: str | None = None
    """For a tool without installed profile: the program that it would use."""


def examine(root: Path = HERE) -> list[Finding]:
    """All checked items, grouped by kind; below another root than `/` without those of eeio's
    installation."""
    here = root == HERE
    return [
        *(_tools() if here else ()),
        *_meters(root),
        *_privileges(root),
        *_devices(root),
        *_filesystems(root),
        *_programs(root),
        *(_names() if here else ()),
        *(_libraries() if here else ()),
    ]


def examine_replay(replay: Replay) -> list[Finding]:
    """This eeio's findings on a described machine; for the installation there, doctor's output on
    it."""
    of_machine = [
        replace(
            finding,
            detail=replay.named(finding.detail),
            remedy=finding.remedy and replay.named(finding.remedy),
        )
        for finding in examine(replay.root)
    ]
    kept = recorded(replay)
    return [
        *(finding for finding in kept if finding.kind == "tool"),
        *of_machine,
        *(finding for finding in kept if finding.kind != "tool"),
    ]


def recorded(replay: Replay) -> list[Finding]:
    """Doctor's findings, on the machine itself, on its installation. Raises RejectedError."""
    if replay.doctor is None:
        return []
    try:
        listed = inputs.parse_json(replay.doctor)["findings"]
        findings = [Finding(**finding) for finding in listed]
        if not all(
            isinstance(value, str) or (name in _MAY_BE_NONE and value is None)
            for finding in findings
            for name, value in asdict(finding).items()
            if name != "found"
        ):
            raise LimitError("a text is wanted")
    except (LimitError, TypeError, KeyError) as error:
        raise RejectedError(
            f"the output of `eeio doctor --format json` is not valid: {error}"
        ) from error
    return [finding for finding in findings if finding.kind in _OF_THE_INSTALLATION]


def _tools() -> list[Finding]:
    findings = []
    optional = _optional_tools()
    for name, folder in profiles.available().items():
        if name == BENCH_PROFILE:  # it comes with eeio and needs no tool
            continue
        what = "its runs are recorded as failed"
        if folder.name in optional:
            what = "suites leave them out"
        cost = f"every row of {name}: {what}"
        try:
            profile = profiles.load(folder)
            installed = installation.find(profile)
            tool = None
            if installed:
                tool = installed.tool
        except EeioError as error:
            findings.append(
                Finding("tool", name, False, str(error), cost, f"repair or delete {folder}")
            )
            continue
        if tool is not None:
            detail = f"{tool.version} ({tool.path}, {tool.source})"
            findings.append(Finding("tool", profile.tool, True, detail, cost, _SETUP))
            continue
        program = _program(profile.tool)
        if program is None:
            # Its program may be here under another name, or come with the profile.
            reason = "its profile is not installed yet"
            if_not = f"none if the first run that needs it can install it; otherwise {cost}"
            remedy = f"`eeio profile install {name}` installs it, or says what it needs"
            findings.append(Finding("tool", profile.tool, False, reason, if_not, remedy))
            continue
        findings.append(
            Finding(
                "tool",
                profile.tool,
                False,
                f"the program is here ({program}), its profile is not installed yet",
                "none: the first run that needs it installs it",
                f"eeio profile install {name}",
                program,
            )
        )
    return findings


def _optional_tools() -> set[str]:
    """Profiles that suites name as those of a tool that few have."""
    tools: set[str] = set()
    for folder in suites.available().values():
        with suppress(EeioError):  # a damaged suite is reported when it is run
            for optional in suites.load(folder).optional:
                tools.update(entry.profile for entry in optional.entries)
    return tools


def _program(tool: str) -> str | None:
    """The path of the program that a tool's profile would use from the system."""
    wanted = os.environ.get(f"EEIO_{tool.upper()}") or about(tool).program or tool
    path = f"{os.environ.get('PATH', os.defpath)}{_FURTHER_PATH}:{Path(sys.prefix) / 'bin'}"
    return shutil.which(wanted, path=path)


def can_measure(findings: Sequence[Finding]) -> list[str]:
    """Possible measurements, as text: `bandwidth: yes, by fio`, `energy: no, ...`."""
    return [_bandwidth(findings), _energy(findings), _levels(findings)]


def _bandwidth(findings: Sequence[Finding]) -> str:
    tools = [f for f in findings if f.kind == "tool"]
    if not tools:
        return "bandwidth: unknown (the installed tools are not known)"
    usable = [
        f.name + ("" if f.found else " (to be installed)")
        for f in tools
        if f.found or f.program is not None
    ]
    if not usable:
        return f"bandwidth: no: no tool is installed; {_SETUP} installs them"
    return f"bandwidth: yes, by {', '.join(usable)}"


def _energy(findings: Sequence[Finding]) -> str:
    meters = [f for f in findings if f.kind == "meter" and f.found and f.name not in _NO_METERS]
    if not meters:
        return (
            "energy: no: no meter was found (--all shows the needs of each); `quick` and "
            "--allow-estimates model it, marked ESTIMATE; --meter demo invents it, marked DEMO"
        )
    return f"energy: yes, by {'; '.join(f'{f.name} ({f.detail})' for f in meters)}"


def _levels(findings: Sequence[Finding]) -> str:
    """Measurements that need more than a writable directory."""
    device = any(f.kind == "device" and f.found for f in findings)
    loop = any(f.kind == "privilege" and f.name == "loop devices" and f.found for f in findings)
    dropped = any(f.kind == "privilege" and f.name == "drop caches" and f.found for f in findings)
    return "; ".join(
        (
            f"raw devices (--device): {'yes' if device else 'no'}",
            f"new file systems (--filesystem): {'yes' if loop else 'no'}",
            "page cache dropped before runs: "
            + ("yes" if dropped else "no, only pages of the test files"),
        )
    )


def _meters(root: Path) -> list[Finding]:
    return [
        Finding(
            "meter",
            meter.spec,
            meter.available,
            f"{meter.kind}, {', '.join(meter.domains)}"
            if meter.available
            else meter.reason or "not found",
            "power, energy and MB/J of its domains",
            meter.remedy or "connect one; see docs/reference/meters.md",
        )
        for meter in discover(root)
    ]


def _privileges(root: Path) -> list[Finding]:
    user = user_id(root)
    is_root = user == 0
    drop_file = caches.drop_file()
    why_not = None
    if root == HERE:
        why_not = caches.why_not_written()
    drop = why_not is None and os.access(root / str(drop_file).lstrip("/"), os.W_OK)
    loop = is_root and (root / "dev/loop-control").exists()
    return [
        Finding(
            "privilege",
            "root",
            is_root,
            f"user id {user}",
            "raw devices, new file systems, the drive's write cache, most RAPL counters",
            "sudo",
        ),
        Finding(
            "privilege",
            "drop caches",
            drop,
            why_not or f"{drop_file} is {'writable' if drop else 'not writable'}",
            "only pages of the test files can be dropped, not those of metadata",
            "run as root, or mount the file writable into the container",
        ),
        Finding(
            "privilege",
            "loop devices",
            loop,
            "/dev/loop-control",
            "--filesystem without a device to erase",
            "run as root; `modprobe loop`",
        ),
    ]


def _devices(root: Path) -> list[Finding]:
    findings = []
    for folder in sorted((root / "sys/block").glob("*")):
        size = 0
        with suppress(OSError, ValueError):
            size = int((folder / "size").read_text(encoding="ascii")) * 512
        device = block_device(Path("/dev") / folder.name, root)
        if size == 0 or device is None or folder.name.startswith(("zram", "ram")):
            continue
        model = folder / "device/model"
        name = "no model name"
        with suppress(OSError):
            name = model.read_bytes().decode(errors="backslashreplace").strip()
        cache = caches.write_cache_found(device) or "unknown"
        readable = os.access(root / str(device.node).lstrip("/"), os.R_OK)
        findings.append(
            Finding(
                "device",
                str(device.node),
                readable,
                f"{size / 1e9:.1f} GB, {name}, write cache {cache}",
                "the device level on it",
                "run as root or join group disk",
            )
        )
    return findings


def _filesystems(root: Path) -> list[Finding]:
    known: list[str] = []
    with suppress(OSError):
        known = (root / "proc/filesystems").read_text(encoding="ascii", errors="replace").split()
    packages = {"ext4": "e2fsprogs", "xfs": "xfsprogs", "btrfs": "btrfs-progs"}
    found = []
    for name, package in packages.items():
        command = image.MKFS[name]
        there = which(command[0], root) is not None
        loaded = name in known
        state = "missing"
        if there:
            state = "found"
        detail = f"{command[0]} {state}"
        support = ", kernel module loaded on first mount"
        if loaded:
            support = ", kernel support loaded"
        detail += support
        found.append(
            Finding(
                "file system",
                name,
                there,
                detail,
                f"--filesystem {name}",
                f"apt-get install {package}",
            )
        )
    missing = [name for name in nfs.PROGRAMS if which(name, root) is None]
    served_by = [
        label
        for label, names in (("Linux's server", nfs.KERNEL_PROGRAMS), ("NFS-Ganesha", nfs.GANESHA))
        if all(which(name, root) is not None for name in names)
    ]
    detail = "client found"
    if missing:
        detail = f"{missing[0]} missing"
    detail += f", {' or '.join(served_by) or 'no server'}"
    nfs_support = ", kernel module loaded on first mount"
    if "nfs4" in known:
        nfs_support = ", kernel support loaded"
    detail += nfs_support
    found.append(
        Finding(
            "file system",
            "nfs",
            not missing and bool(served_by),
            detail,
            "--filesystem nfs@1gbit+0.5ms",
            "apt-get install nfs-common nfs-kernel-server",
        )
    )
    return found


def _programs(root: Path) -> list[Finding]:
    wanted = {
        "hdparm": ("switching the write cache of ATA drives", "apt-get install hdparm"),
        "nvme": ("switching the write cache of NVMe drives", "apt-get install nvme-cli"),
        "losetup": ("file systems on loop images", "apt-get install mount"),
    }
    return [
        Finding(
            "program",
            name,
            (path := which(name, root)) is not None,
            path or "not on PATH",
            cost,
            remedy,
        )
        for name, (cost, remedy) in wanted.items()
    ]


def _names() -> list[Finding]:
    unresolved = hostnames.unresolved()
    return [
        Finding(
            "name",
            name,
            name not in unresolved,
            unresolved[name].reason if name in unresolved else "known",
            "Open MPI waits for name servers at each start: of your programs (the profiles "
            "prevent it), and of all programs with a hostfile",
            unresolved[name].remedy if name in unresolved else None,
        )
        for name in hostnames.own()
    ]


def _libraries() -> list[Finding]:
    wanted = {
        "matplotlib": "plots in the HTML report",
        "jinja2": "the HTML report",
        "rich": "the progress bar",
        "argcomplete": "shell completion",
    }
    return [
        Finding(
            "library",
            name,
            there := importlib.util.find_spec(name) is not None,
            "importable" if there else "not importable",
            cost,
            _SETUP,
        )
        for name, cost in wanted.items()
    ]
