"""`eeio doctor`: what is there, what each missing thing costs, and how to get it."""

import argparse
import importlib.util
import json
import os
import shutil
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from eeio import hostnames
from eeio.errors import EXIT_DONE, EXIT_FAILED, RefusedError
from eeio.profiles import profile as profiles
from eeio.target import caches, image, write_cache
from eeio.target.filesystem import block_device
from eeio_power.meters import discover
from eeio_results.errors import EeioError
from eeio_results.record import SCHEMA_VERSION

_SETUP = "scripts/setup"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked for. `cost` and `remedy` belong to a missing one."""

    kind: str
    name: str
    found: bool
    detail: str
    cost: str | None = None
    remedy: str | None = None


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "doctor",
        help="what was found, what each missing thing costs, how to get it",
        description="Looks for tools, meters, devices, privileges and file systems.",
    )
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.add_argument(
        "--require",
        metavar="WHAT,...",
        default="",
        help="end with code 1 when one of these is missing: names (fio, rapl), or kinds (tool, "
        "meter, library) for all of a kind",
    )
    parser.set_defaults(action=show)


def show(arguments: argparse.Namespace) -> int:
    findings = examine()
    required = {word for word in arguments.require.split(",") if word}
    unknown = required - {f.kind for f in findings} - {f.name for f in findings}
    if unknown:
        raise RefusedError(f"--require {min(unknown)}: `eeio doctor` looks for no such thing")
    missing = any(not required.isdisjoint({f.kind, f.name}) and not f.found for f in findings)
    code = EXIT_FAILED if missing else EXIT_DONE
    if arguments.json:
        body = {
            "schema_version": SCHEMA_VERSION,
            "findings": [asdict(finding) for finding in findings],
        }
        print(json.dumps(body, indent=1))
        return code
    kind = ""
    for finding in findings:
        if finding.kind != kind:
            kind = finding.kind
            print(f"{kind}:")
        print(f"  {'ok     ' if finding.found else 'missing'}  {finding.name}: {finding.detail}")
        if not finding.found:
            print(f"           costs: {finding.cost}")
            print(f"           get it: {finding.remedy}")
    return code


def examine() -> list[Finding]:
    """Everything that was looked for, grouped by kind."""
    return [
        *_tools(),
        *_meters(),
        *_privileges(),
        *_devices(),
        *_filesystems(),
        *_programs(),
        *_names(),
        *_libraries(),
    ]


def _tools() -> list[Finding]:
    found = []
    for name, folder in profiles.available().items():
        cost = f"every row of {name}: its runs are recorded as failed"
        try:
            profile = profiles.load(folder)
            tool = profiles.installed_tool(profile) if profiles.is_installed(profile) else None
        except EeioError as error:
            found.append(Finding("tool", name, False, str(error), cost, f"mend or delete {folder}"))
            continue
        detail = f"{tool.version} ({tool.path}, {tool.source})" if tool else "not installed"
        found.append(
            Finding(
                "tool", profile.tool, tool is not None, detail, cost, _SETUP,
            )
        )  # fmt: skip
    return found


def _meters() -> list[Finding]:
    return [
        Finding(
            "meter",
            meter.spec,
            meter.available,
            f"{meter.kind}, {', '.join(meter.domains)}"
            if meter.available
            else meter.reason or "not found",
            "power, energy and MB/J of its domains",
            meter.remedy or "connect one; docs/meters.md says how",
        )
        for meter in discover()
    ]


def _privileges() -> list[Finding]:
    root = os.geteuid() == 0
    drop_file = caches.drop_file()
    drop = os.access(drop_file, os.W_OK)
    loop = root and Path("/dev/loop-control").exists()
    return [
        Finding(
            "privilege", "root", root, "user id 0" if root else f"user id {os.geteuid()}",
            "raw devices, new file systems, the drive's write cache, most RAPL counters", "sudo",
        ),
        Finding(
            "privilege", "drop caches", drop,
            f"{drop_file} is {'writable' if drop else 'not writable'}",
            "only the test files' own pages can be dropped, not those of metadata",
            "run as root, or mount the file writable into the container",
        ),
        Finding(
            "privilege", "loop devices", loop, "/dev/loop-control",
            "--filesystem without a device to erase", "run as root; `modprobe loop`",
        ),
    ]  # fmt: skip


def _devices() -> list[Finding]:
    found = []
    for folder in sorted(Path("/sys/block").iterdir()):
        size = int((folder / "size").read_text()) * 512
        device = block_device(Path("/dev") / folder.name)
        if size == 0 or device is None or folder.name.startswith(("zram", "ram")):
            continue
        model = folder / "device/model"
        words = "no model name"
        with suppress(OSError):
            words = model.read_bytes().decode(errors="backslashreplace").strip()
        cache = write_cache.found(device) or "unknown"
        readable = os.access(device.node, os.R_OK)
        found.append(
            Finding(
                "device", str(device.node), readable,
                f"{size / 1e9:.1f} GB, {words}, write cache {cache}",
                "the device level on it", "run as root or join group disk",
            )
        )  # fmt: skip
    return found


def _filesystems() -> list[Finding]:
    known = Path("/proc/filesystems").read_text(encoding="ascii").split()
    packages = {"ext4": "e2fsprogs", "xfs": "xfsprogs", "btrfs": "btrfs-progs"}
    found = []
    for name, package in packages.items():
        command = image.MKFS[name]
        there = shutil.which(command[0]) is not None
        loaded = name in known
        detail = f"{command[0]} {'found' if there else 'missing'}"
        detail += ", kernel support loaded" if loaded else ", kernel module loaded on first mount"
        found.append(
            Finding(
                "file system", name, there, detail, f"--filesystem {name}",
                f"apt-get install {package}",
            )
        )  # fmt: skip
    return found


def _programs() -> list[Finding]:
    wanted = {
        "hdparm": ("switching the write cache of ATA drives", "apt-get install hdparm"),
        "nvme": ("switching the write cache of NVMe drives", "apt-get install nvme-cli"),
        "losetup": ("file systems on loop images", "apt-get install mount"),
    }
    return [
        Finding("program", name, (path := shutil.which(name)) is not None, path or "not on PATH",
                cost, remedy)
        for name, (cost, remedy) in wanted.items()
    ]  # fmt: skip


def _names() -> list[Finding]:
    unresolved = hostnames.unresolved()
    return [
        Finding(
            "name", name, name not in unresolved,
            unresolved[name].reason if name in unresolved else "known",
            "Open MPI waits for name servers at each start: programs of your own (the profiles "
            "tell it not to ask), and all of them where a hostfile names hosts",
            unresolved[name].remedy if name in unresolved else None,
        )
        for name in hostnames.own()
    ]  # fmt: skip


def _libraries() -> list[Finding]:
    wanted = {
        "matplotlib": "plots in the HTML report",
        "jinja2": "the HTML report",
        "rich": "the progress bar",
        "argcomplete": "shell completion",
    }
    return [
        Finding(
            "library", name, there := importlib.util.find_spec(name) is not None,
            "importable" if there else "not importable", cost, _SETUP,
        )
        for name, cost in wanted.items()
    ]  # fmt: skip
