"""A capture: only the data that eeio reads of this machine, as one file to share.

`FILE.tar.gz` contains one file, machine.json, of the form in `description.py`. Names, addresses and
serial numbers are replaced (`anonymous.py`).
"""

import errno
import gzip
import io
import json
import os
import re
import subprocess
import tarfile
import zlib
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from eeio.errors import LimitError, RejectedError
from eeio.files import inputs
from eeio.machine import nfs
from eeio.machine.as_data import anonymous, description
from eeio.machine.as_data.anonymous import Replacer
from eeio.machine.as_data.description import Command, Description, MeterReadings
from eeio.machine.as_data.root import FOLDERS, HERE, which
from eeio.paths import check_output_folder, install_root
from eeio_power.meters import Reads, about_all
from eeio_power.meters.ipmi import DCMI_POWER_READING, watt_sensors
from eeio_power.system_sensor.controller import complete_system

_MEMBERS = ("machine.json", "machine.yaml")
# tar's headers and its end.
_AROUND_BYTES = 64 << 10
_TIMEOUT_S = 20.0
_MOST_LINKS = 40

_CPUFREQ = (
    "affected_cpus,base_frequency,boost,cpuinfo_max_freq,cpuinfo_min_freq,related_cpus,"
    "scaling_available_frequencies,scaling_available_governors,scaling_driver,scaling_governor,"
    "scaling_max_freq,scaling_min_freq,scaling_setspeed"
)
_BLOCK = (
    "dev,size,stat,ro,partition,cache_type,queue/write_cache,queue/scheduler,queue/rotational,"
    "device/model,device/type,device/rev,device/firmware_rev,device/scsi_disk/*/cache_type,"
    "dm/name,md/level,md/raid_disks,bcache/state,bcache/cache_mode"
)
FILES: tuple[tuple[str, str], ...] = (
    # folder, files in it
    ("sys/bus/event_source/devices/*", "cpus,type,events/cpu-cycles,events/cpu_cycles"),
    # processors
    (
        "sys/devices/system/cpu",
        "online,possible,present,smt/control,smt/active,intel_pstate/*,"
        "amd_pstate/status,cpufreq/boost",
    ),
    ("sys/devices/system/cpu/cpufreq/policy*", _CPUFREQ),
    (
        "sys/devices/system/cpu/cpu[0-9]*/topology",
        "physical_package_id,die_id,cluster_id,core_id,thread_siblings_list,die_cpus_list,"
        "package_cpus_list",
    ),
    (
        "sys/devices/system/cpu/cpu[0-9]*/cpufreq",
        "scaling_cur_freq,scaling_governor,scaling_min_freq,scaling_max_freq",
    ),
    # devices and file systems
    ("sys/block/*", "size"),
    ("sys/class/block/*", _BLOCK),
    ("sys/class/nvme/nvme*", "model,firmware_rev,transport,nvme*c*n*/stat,nvme*c*n*/dev"),
    ("sys/class/nvme-subsystem/*", "model,iopolicy,nvme*/nvme*c*n*/stat"),
    ("proc", "filesystems,meminfo,stat,cpuinfo,mdstat,swaps"),
    ("proc/self", "mountinfo,status"),
    # what it is
    (
        "sys/class/dmi/id",
        "sys_vendor,product_name,product_version,board_vendor,board_name,"
        "bios_vendor,bios_version,bios_date,chassis_type",
    ),
    ("proc/device-tree", "model,compatible"),
    ("sys/hypervisor", "type"),
    ("proc/sys/kernel", "osrelease,perf_event_paranoid,arch"),
    ("etc", "os-release"),
)
"""All files that a capture may contain, besides those that meters read, and links."""

LINKS = ("sys/class/block/*/slaves/*", "sys/fs/btrfs/*-*-*/devices/*", "dev/mapper/*")
NODES = ("dev/loop-control",)
PROGRAMS = (
    "hdparm",
    "nvme",
    "losetup",
    "wipefs",
    "mkfs.ext4",
    "mkfs.xfs",
    "mkfs.btrfs",
    "mpirun",
    "srun",
    *nfs.PROGRAMS,
    *nfs.KERNEL_PROGRAMS,
    *nfs.GANESHA,
)

# Texts that look like addresses, and are versions.
_VERSIONS = re.compile(r"(osrelease|os-release|version|firmware_rev|rev|model)$")
_OF_NO_DISK = frozenset(
    {
        "proc",
        "sysfs",
        "devpts",
        "devtmpfs",
        "cgroup",
        "cgroup2",
        "tracefs",
        "debugfs",
        "securityfs",
        "pstore",
        "bpf",
        "configfs",
        "mqueue",
        "hugetlbfs",
        "autofs",
        "binfmt_misc",
        "fusectl",
        "efivarfs",
        "nsfs",
        "rpc_pipefs",
        "selinuxfs",
        "nfsd",
        "ramfs",
    }
)
_REMOTE = re.compile(r"(nfs|cifs|smb|ceph|glusterfs|lustre|afs|fuse\.|9p|beegfs)")
_MOUNT_OPTIONS = ("data", "errors", "commit", "compress", "vers", "proto")
_CPU_KEYS = frozenset(
    {
        "processor",
        "vendor_id",
        "cpu family",
        "model",
        "model name",
        "stepping",
        "flags",
        "Features",
        "Hardware",
        "Model",
        "cpu model",
        "CPU implementer",
        "CPU architecture",
        "CPU variant",
        "CPU part",
        "CPU revision",
    }
)
_STATUS = re.compile(r"^(Uid|CapEff):.*$", re.MULTILINE)


@dataclass(frozen=True)
class MachineRecording:
    """A machine as it is shared, and the replacements in it: kind -> how many."""

    description: Description
    replaced: Mapping[str, int]

    def listed(self) -> list[str]:
        """Its contents, one line per kind of folder, for the user who shares it."""
        return [
            *_listed(self.description),
            *(f"  {kind}: {count} replaced" for kind, count in sorted(self.replaced.items())),
        ]


def take(
    doctor: str,
    root: Path = HERE,
    replacer: Replacer | None = None,
    readings: Sequence[MeterReadings] = (),
) -> MachineRecording:
    """Reads the machine below `root`; `doctor` is the output of `eeio doctor --format json` for
    it, and `readings` are those of its meters."""
    replacer = replacer or Replacer(*anonymous.own_names(), anonymous.own_serials(root))
    gathering = _Gathering(root)
    every = read_by_all()
    for folder, names in every.files:
        for path in _matches(root, folder):
            for name in names.split(","):
                for file in sorted(path.glob(name)):
                    gathering.file(file)
    for pattern in LINKS:
        for path in _matches(root, pattern):
            gathering.where(str(path.relative_to(root)))
    for pattern in every.nodes:
        for path in _matches(root, pattern):
            gathering.node(path)
    for disk in _matches(root, "sys/block/*"):
        gathering.node(root / "dev" / disk.name)
    caches = root / "proc/sys/vm/drop_caches"
    if os.access(caches, os.W_OK):
        gathering.tree["proc/sys/vm/drop_caches"] = ""
    for program in every.programs:
        if (program_path := which(program, root)) is not None:
            place = str(Path(program_path).parent).lstrip("/")
            gathering.tree[f"{place if place in FOLDERS else FOLDERS[1]}/{program}"] = ""
    description = Description(
        about=_about(root),
        tree=gathering.tree,
        links=gathering.links,
        refused=gathering.refused,
        commands=(
            Command(("eeio", "doctor", "--json"), 0, _without_folders(doctor)),
            *_requested(root),
        ),
        readings=tuple(readings),
    )
    return MachineRecording(_anonymous(description, replacer), dict(replacer.counts))


def read_by_all() -> Reads:
    """What the meters and eeio read of a machine."""
    files, nodes, programs = list(FILES), list(NODES), list(PROGRAMS)
    for meter in about_all().values():
        files += meter.reads.files
        nodes += meter.reads.nodes
        programs += meter.reads.programs
    return Reads(tuple(files), tuple(nodes), tuple(programs))


def _without_folders(text: str) -> str:
    """Where programs of profiles are installed names folders of the user."""
    for folder, shown in ((install_root(), "INSTALLED"), (Path.home(), "~")):
        text = text.replace(json.dumps(f"{folder}/")[1:-1], f"{shown}/")
    return text


def write(capture: MachineRecording, path: Path) -> None:
    """Writes FILE.tar.gz, which must be new. Raises RejectedError, OSError."""
    check_name(path)
    text = json.dumps(capture.description.to_json(), indent=1, ensure_ascii=False) + "\n"
    data = text.encode()
    try:
        if len(data) > inputs.MACHINE_BYTES:
            raise LimitError(f"longer than {inputs.size(inputs.MACHINE_BYTES)}")
        description.parse(text, True)  # never one that --replay would refuse
    except LimitError as error:
        raise RejectedError(f"{path}: this machine makes no capture: {error}") from error
    member = tarfile.TarInfo(_MEMBERS[0])
    member.size = len(data)
    member.mode = 0o644
    try:
        with (
            path.open("xb") as file,
            gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed,
            tarfile.open(fileobj=packed, mode="w") as archive,
        ):
            archive.addfile(member, io.BytesIO(data))
    except FileExistsError as error:
        raise RejectedError(f"{path} exists; choose another file") from error


def check_name(path: Path) -> None:
    """Raises RejectedError for a name that is taken, or of another kind of file, and for root if
    another user could replace the folder."""
    if not path.name.endswith((".tar.gz", ".tgz")):
        raise RejectedError(f"{path}: a capture is an archive: name it .tar.gz")
    check_output_folder(path.parent)
    if os.path.lexists(path):
        raise RejectedError(f"{path} exists; choose another file")


def load(path: Path) -> Description:
    """A capture, or the description itself (.json, .yaml). RejectedError, in one line."""
    if path.suffix in description.SUFFIXES:
        return description.load(path)
    try:
        name, data = _only_member(_unpacked(inputs.read_bytes(path, inputs.MACHINE_BYTES)))
        return description.parse(inputs.decode(data), name.endswith(".json"))
    except OSError as error:
        raise RejectedError(f"{path}: {error.strerror or error}") from error
    except LimitError as error:
        raise RejectedError(f"{path}: {error}") from error


# ---- the archive ----


def _unpacked(data: bytes) -> bytes:
    """Raises LimitError. Unpacks no more than a description may have, whatever is in it."""
    most = inputs.MACHINE_BYTES + _AROUND_BYTES
    unpacker = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    try:
        tar = unpacker.decompress(data, most + 1)
    except zlib.error as error:
        raise LimitError(f"no capture: not packed by gzip ({error})") from None
    if len(tar) > most:
        raise LimitError(f"longer than {inputs.size(inputs.MACHINE_BYTES)} unpacked")
    if not unpacker.eof:
        raise LimitError("cut off: the packed data have no end; get the file again")
    return tar


def _only_member(data: bytes) -> tuple[str, bytes]:
    """Raises LimitError for an archive with anything but one plain file of a description."""
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            first = archive.next()
            if first is None:
                raise LimitError("not a capture: the archive is empty")
            plain = first.type in (tarfile.REGTYPE, tarfile.AREGTYPE) and not first.issparse()
            if first.name not in _MEMBERS or not plain:
                raise LimitError(
                    f"no capture: one plain file {_MEMBERS[0]} is wanted in it, not {first.name!a}"
                )
            file = archive.extractfile(first)
            text = b""
            if file:
                text = file.read(inputs.MACHINE_BYTES + 1)
            if len(text) != first.size:
                raise LimitError("cut off: the archive ends within its file; get it again")
            if archive.next() is not None:
                raise LimitError(f"no capture: there is more in it than {first.name}")
            return first.name, text
    except LimitError:
        raise
    except (tarfile.TarError, EOFError, OSError, ValueError, OverflowError) as error:
        raise LimitError(f"not a capture: not a valid tar archive ({error!s:.100})") from None


# ---- reading ----


def _matches(root: Path, pattern: str) -> list[Path]:
    try:
        return sorted(root.glob(pattern))
    except OSError:
        return []


class _Gathering:
    """Files by their real paths, and the links that lead there."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.tree: dict[str, str] = {}
        self.links: dict[str, str] = {}
        self.refused: dict[str, str] = {}

    def file(self, path: Path) -> None:
        """A file with its text, or why it cannot be read; folders and missing files are skipped."""
        name = self.where(str(path.relative_to(self._root)))
        if name is None or name in self.tree:
            return
        try:
            if not path.is_file():
                return
            with path.open("rb") as file:
                data = file.read(inputs.SYSFS_BYTES)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR):
                self.refused[name] = errno.errorcode.get(error.errno or 0, "EIO")
            return
        text = data.decode("utf-8", errors="backslashreplace")
        text = _FILTERS.get(name, str)(text)
        self.tree[name] = text.removesuffix("\n")

    def node(self, path: Path) -> None:
        """A device's node: that it is there, and whether it may be read."""
        if not os.path.lexists(path):
            return
        name = self.where(str(path.relative_to(self._root)))
        if name is None or name in self.tree or (self._root / name).is_dir():
            return
        if os.access(path, os.R_OK):
            self.tree[name] = ""
        else:
            self.refused[name] = "EACCES"

    def where(self, name: str) -> str | None:
        """Where a path leads, with the links on the way noted; None for one that leads nowhere."""
        left, done, hops = deque(name.split("/")), "", 0
        while left:
            here = f"{done}/{left.popleft()}".lstrip("/")
            # Its number is this process's.
            if here == "proc/self" or not (self._root / here).is_symlink():
                done = here
                continue
            hops += 1
            target = (self._root / here).readlink()
            aim = os.path.normpath(Path(here).parent / target).lstrip("/")
            if hops > _MOST_LINKS or aim.startswith(".."):
                return None
            self.links[here] = os.path.relpath(aim, Path(here).parent)
            left.extendleft(reversed(aim.split("/")))
            done = ""
        return done


def _about(root: Path) -> str:
    """The machine's kind, as reported by its firmware."""

    def text(name: str) -> str:
        with suppress(OSError):
            return (root / name).read_text(encoding="utf-8", errors="replace").strip("\0\n ")
        return ""

    made = " ".join(
        filter(None, map(text, ("sys/class/dmi/id/sys_vendor", "sys/class/dmi/id/product_name")))
    )
    model = re.search(r"^model name\s*:\s*(.+)$", text("proc/cpuinfo"), re.MULTILINE)
    texts = [made or text("proc/device-tree/model"), model[1] if model else ""]
    return ", ".join(filter(None, texts))[:400] or "an unidentified machine"


def _requested(root: Path) -> list[Command]:
    """Answers of programs to the commands that eeio runs; all of them only read."""
    answers = []
    for question in _questions(root):
        if which(question[0], root) is not None:
            answers += _answer(question)
    for listed in answers.copy():
        if listed.run[-3:] == ("sdr", "elist", "full"):
            answers += _sensor_answers(listed)
    return answers


def _questions(root: Path) -> Iterator[list[str]]:
    """Of the drives, the BMC and the Raspberry Pi of a machine."""
    disks = [path.name for path in _matches(root, "sys/block/*")]
    for name in disks:
        if name.startswith(("sd", "hd")):
            yield ["hdparm", "-C", f"/dev/{name}"]
    for name in disks:
        if re.fullmatch(r"nvme\d+n\d+", name):
            yield ["nvme", "get-feature", f"/dev/{name}", "-f", "6"]
    if any((root / name).exists() for name in ("dev/ipmi0", "dev/ipmi/0", "dev/ipmidev/0")):
        local = ["ipmitool", "-I", "open", "-c"]
        yield [*local, *DCMI_POWER_READING.split()]
        yield [*local, "sdr", "elist", "full"]
    if (root / "dev/vcio").exists():
        yield ["vcgencmd", "pmic_read_adc"]


def _sensor_answers(listed: Command) -> list[Command]:
    """The values of the BMC's sensors in watts, which are requested by name."""
    answers = []
    lines = listed.prints.splitlines()
    for line in lines:
        name, _, rest = line.partition(",")
        if ",Watts," in rest:
            answers += _answer([*listed.run[:-3], "sdr", "get", name])
    # If supplies are added up, all are requested at once.
    together = complete_system(watt_sensors(lines)).sensors
    if len(together) > 1:
        answers += _answer([*listed.run[:-3], "sdr", "get", *together])
    return answers


def _answer(command: Sequence[str]) -> list[Command]:
    """None from a program that does not start, or does not end in time."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    prints, errors = (
        data[: inputs.ANSWER_BYTES].decode("utf-8", errors="backslashreplace").replace("\0", "")
        for data in (done.stdout, done.stderr)
    )
    return [Command(tuple(command), done.returncode & 0xFF, prints, errors)]


# ---- excerpts of texts that contain more than eeio reads ----


def _processors(text: str) -> str:
    """The first of processors that are alike, and no serial number (`Serial` of boards)."""
    seen: set[str] = set()
    lines = []
    for line in text.splitlines():
        key = line.partition(":")[0].strip()
        if key in _CPU_KEYS and line not in seen and (key != "processor" or not seen):
            seen.add(line)
            lines.append(line)
    return "\n".join(lines)


def _mounts(text: str) -> str:
    """Mounts that could be a target. Options about the mode are included, those about contents or
    users are not, nor the address of a server or program."""
    lines, shares = [], 0
    for line in text.splitlines():
        left, _, right = line.partition(" - ")
        fields, kind = left.split(" "), right.split(" ")
        if len(fields) < 6 or len(kind) < 3 or kind[0] in _OF_NO_DISK:
            continue
        options = []
        for word in kind[2].split(","):
            if "=" not in word or word.partition("=")[0] in _MOUNT_OPTIONS:
                options.append(word)
        source = kind[1]
        if _REMOTE.match(kind[0]):
            shares += 1
            source = f"server:/share{shares}"
        # The folder within the file system is nobody's business; ids and numbers stay.
        head = [*fields[:3], "/", *fields[4:6]]
        lines.append(f"{' '.join(head)} - {kind[0]} {source} {','.join(options)}")
    return "\n".join(lines)


def _status(text: str) -> str:
    return "\n".join(match[0] for match in _STATUS.finditer(text))


def _memory(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if line.startswith("MemTotal:"))


def _times(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if line.startswith("cpu"))


_FILTERS = {
    "proc/cpuinfo": _processors,
    "proc/self/mountinfo": _mounts,
    "proc/self/status": _status,
    "proc/meminfo": _memory,
    "proc/stat": _times,
}


# ---- shared data ----


def _anonymous(found: Description, replacer: Replacer) -> Description:
    def texts(part: Mapping[str, str]) -> dict[str, str]:
        texts = {}
        for name, text in part.items():
            texts[replacer(name)] = replacer(text, addresses=not _VERSIONS.search(name))
        return texts

    return replace(
        found,
        about=replacer(found.about),
        tree=texts(found.tree),
        links={replacer(name): replacer(target) for name, target in found.links.items()},
        refused={replacer(name): reason for name, reason in found.refused.items()},
        commands=tuple(
            Command(tuple(map(replacer, c.run)), c.exit, replacer(c.prints), replacer(c.errors))
            for c in found.commands
        ),
        readings=tuple(
            replace(
                r,
                meter=replacer(r.meter),
                channels={replacer(name): values for name, values in r.channels.items()},
            )
            for r in found.readings
        ),
    )


def _listed(found: Description) -> Iterable[str]:
    """Folders that differ only in numbers are in one line."""
    folders: dict[str, set[str]] = defaultdict(set)
    files: dict[str, set[str]] = defaultdict(set)
    for name in [*found.tree, *found.links, *found.refused]:
        folder, _, file = name.rpartition("/")
        alike = re.sub(r"\d+", "N", folder)
        folders[alike].add(folder)
        files[alike].add(re.sub(r"\d+", "N", file))
    for alike, names in folders.items():
        several = ""
        if len(names) > 1:
            several = f" ({len(names)} folders)"
        yield f"  /{alike if several else next(iter(names))}{several}: " + " ".join(
            sorted(files[alike])
        )
    for command in found.commands:
        yield f"  $ {' '.join(command.run)}"
    for readings in found.readings:
        yield f"  {len(readings.times_s)} readings of {' '.join(readings.channels)}"
    # Names given by people are the only text in it that may reveal too much.
    mounts = found.tree.get("proc/self/mountinfo", "").splitlines()
    named = [line.split(" ")[4] for line in mounts]
    named += [text for name, text in found.tree.items() if name.endswith("/dm/name")]
    yield f"  names that people gave: {' '.join(dict.fromkeys(named)) or 'none'}"
