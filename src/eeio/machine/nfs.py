"""A folder of this machine served to this machine by NFS, over a cable of stated speed and length.

Server and client are two network namespaces with one virtual cable between them. The server is the
kernel's if available, else NFS-Ganesha; the protocol is NFS 4.2 over TCP, and a commit is answered
when the bytes are on the server's device (`sync`).
"""

import os
import platform
import re
import selectors
import shutil
import subprocess
import time
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from eeio.errors import EeioError, RejectedError
from eeio.machine.owner import start_ticks
from eeio.machine.undo import UndoEntry, UndoJournal, mark, run_command

# The storage behind the export.
SERVED = "ext4"
SERVER, _CLIENT, _NET = "10.231.8.1", "10.231.8.2", "10.231.8.0/24"
_CABLE = "eeio0"
_MOUNT_OPTIONS = "vers=4.2,proto=tcp,sec=sys,hard"
# Debian's server has as many.
_THREADS = 8
_READY_S = 30.0
_PATTERN = re.compile(r"nfs(?:@([0-9a-z.+]+))?")
_RATE = re.compile(r"[1-9][0-9]{0,3}[mg]bit")
_DELAY = re.compile(r"((?:0|[1-9][0-9]{0,3})(?:\.[0-9]{1,3})?)(us|ms)")
PROGRAMS = {
    "ip": "iproute2",
    "tc": "iproute2",
    "nsenter": "util-linux",
    "unshare": "util-linux",
    "mount.nfs4": "nfs-common",
}
KERNEL_PROGRAMS = ("rpc.nfsd", "rpc.mountd", "exportfs")
GANESHA = ("ganesha.nfsd", "ss")

# Started in the server's network namespace and in a private mount namespace, so that the machine's
# exports and its /var/lib/nfs are hidden, and the folder has a name without quotes. It waits until
# it has been noted in the journal, and reports when clients may connect.
_BEGIN = """
read -r noted || exit 0
set -e
mount -t tmpfs -o mode=755 tmpfs /var/lib/nfs
mkdir /var/lib/nfs/served /var/lib/nfs/ganesha
mount --bind "$1" /var/lib/nfs/served
log=/var/lib/nfs/log server=
: >$log
trap 'exit 0' TERM INT HUP
"""
_KERNEL_SERVER = """
: >/var/lib/nfs/etab
: >/var/lib/nfs/rmtab
mount -t nfsd nfsd /proc/fs/nfsd
trap 'tail -n 1 $log; rpc.nfsd 0; [ -z "$server" ] || kill "$server"' EXIT
exportfs -i -o rw,sync,no_root_squash,no_subtree_check,insecure,fsid=0 "$2:/var/lib/nfs/served"
rpc.mountd --foreground --no-nfs-version 2 --no-nfs-version 3 >$log 2>&1 & server=$!
rpc.nfsd --no-nfs-version 3 --grace-time 10 "$3"
# No client has an earlier lock. A kernel without an account of clients waits all the same.
echo Y 2>/dev/null >/proc/fs/nfsd/v4_end_grace || sleep 10
echo ready
wait "$server"
"""
_GANESHA_SERVER = """
cat >/var/lib/nfs/ganesha.conf <<CONF
NFS_CORE_PARAM { Protocols = 4; Enable_NLM = false; Enable_RQUOTA = false; }
NFSv4 { Graceless = true; RecoveryRoot = /var/lib/nfs/ganesha; }
EXPORT { Export_Id = 1; Path = /var/lib/nfs/served; Pseudo = "/";
  Access_Type = RW; Squash = No_Root_Squash;
  SecType = sys; Protocols = 4; Transports = TCP; FSAL { Name = VFS; } }
CONF
trap 'tail -n 1 $log; [ -z "$server" ] || { kill "$server"; wait "$server"; }' EXIT
ganesha.nfsd -F -f /var/lib/nfs/ganesha.conf -L $log -N WARN -p /var/lib/nfs/ganesha.pid & server=$!
until ss -ltn | grep -q :2049; do kill -0 "$server"; sleep 0.05; done
echo ready
wait "$server"
"""


@dataclass(frozen=True)
class Link:
    """The cable: `rate` in tc's notation in each direction, and the round trip's delay, s; None: as
    fast as the machine is."""

    rate: str | None
    delay_s: float | None

    @property
    def text(self) -> str:
        parts = [self.rate or "an unlimited rate"]
        parts.append(
            f"{1e3 * self.delay_s:g} ms a round trip" if self.delay_s else "no delay added"
        )
        return ", ".join(parts)


def is_nfs(filesystem: str) -> bool:
    """Whether the value of `--filesystem` means this module."""
    return filesystem.partition("@")[0] == "nfs"


def link_of(filesystem: str) -> Link:
    """`nfs`, `nfs@1gbit`, `nfs@0.5ms`, `nfs@1gbit+0.5ms`; RejectedError for anything else."""
    match = _PATTERN.fullmatch(filesystem)
    rate = delay_s = None
    parts: list[str] = []
    if match and match[1]:
        parts = match[1].split("+")
    for part in parts:
        delay = _DELAY.fullmatch(part)
        if _RATE.fullmatch(part) and rate is None and delay_s is None:
            rate = part
        elif delay and delay_s is None and float(delay[1]) > 0:
            delay_s = float(delay[1]) * (1e-6 if delay[2] == "us" else 1e-3)
        else:
            match = None
    if match is None:
        raise RejectedError(
            f"--filesystem {filesystem[:60]}: nfs, nfs@RATE, nfs@DELAY or nfs@RATE+DELAY, as "
            "nfs@1gbit+0.5ms: mbit or gbit, and the delay of a round trip in us or ms"
        )
    return Link(rate, delay_s)


def check(filesystem: str) -> None:
    """Rejects unsupported setups on this machine, before any change."""
    link_of(filesystem)
    if os.geteuid() != 0:
        raise RejectedError(f"--filesystem {filesystem}: making it needs root")
    for program, package in PROGRAMS.items():
        if shutil.which(program) is None:
            raise RejectedError(f"--filesystem {filesystem}: {program} is missing ({package})")
    if not _kernel_has("nfs4", "nfsv4"):
        raise RejectedError(
            f"--filesystem {filesystem}: this kernel has no NFS client (nfs4 in /proc/filesystems)"
        )
    server()


def server() -> str:
    """`kernel` or `ganesha`: the value of EEIO_NFS_SERVER, else the first that is available."""
    requested = os.environ.get("EEIO_NFS_SERVER", "")
    if requested not in ("", "kernel", "ganesha"):
        raise RejectedError(f"EEIO_NFS_SERVER={requested[:40]}: kernel or ganesha")
    why_not = []
    if requested != "ganesha":
        missing = [name for name in KERNEL_PROGRAMS if shutil.which(name) is None]
        if not missing and _kernel_has("nfsd", "nfsd"):
            return "kernel"
        what = "it has no nfsd"
        if missing:
            what = f"{missing[0]} is missing (nfs-kernel-server)"
        why_not.append(f"Linux server: {what}")
    if requested != "kernel":
        missing = [name for name in GANESHA if shutil.which(name) is None]
        if not missing:
            return "ganesha"
        why_not.append(f"NFS-Ganesha: {missing[0]} is missing (nfs-ganesha-vfs, iproute2)")
    raise RejectedError(f"no NFS server: {'; '.join(why_not)}")


def _kernel_has(filesystem: str, module: str) -> bool:
    known = Path("/proc/filesystems")
    if filesystem not in known.read_text(encoding="ascii").split():
        with suppress(EeioError):
            run_command(["modprobe", module])
    return filesystem in known.read_text(encoding="ascii").split()


def described(filesystem: str) -> str:
    """How it is made, for the record, after the served file system."""
    kind = server()
    version = f"Linux {platform.release()}" if kind == "kernel" else _ganesha_version()
    return (
        f"served by {version} as NFS ({_MOUNT_OPTIONS}; exported with sync) to a client on the "
        f"same machine, so the power includes both; the link: {link_of(filesystem).text}"
    )


def _ganesha_version() -> str:
    match = re.search(r"V?([0-9]+(?:\.[0-9]+)+)", run_command(["ganesha.nfsd", "-v"]))
    return f"NFS-Ganesha {match[1] if match else 'of an unknown version'}"


def export(filesystem: str, served: Path, kind: str, journal: UndoJournal) -> str:
    """Exports the folder `served` by a server of that kind; returns the network namespace of its
    client, which reaches it at the other end of the cable."""
    name = f"eeio-{os.getpid()}-{zlib.crc32(os.fsencode(served)):08x}"
    at_server, at_client = f"{name}-s", f"{name}-c"
    for namespace in (at_server, at_client):
        journal.add(UndoEntry("namespace", namespace))
        run_command(["ip", "netns", "add", namespace])
    _lay_cable(at_server, at_client, link_of(filesystem))
    _start(kind, at_server, served, journal)
    return at_client


def serve(filesystem: str, served: Path, mount_point: Path, journal: UndoJournal) -> None:
    """Exports the folder `served` and mounts it at `mount_point`, which is there. All of it is
    taken away through the journal: the mount, the server, the namespaces. EeioError when it cannot
    be made."""
    at_client = export(filesystem, served, server(), journal)
    # By force if necessary: unwritten data belongs to a file system that is removed anyway.
    journal.add(UndoEntry("mount", str(mount_point), "--force"))
    run_command(
        [
            "nsenter",
            f"--net=/run/netns/{at_client}",
            "mount",
            "-t",
            "nfs4",
            "-o",
            _MOUNT_OPTIONS,
            f"{SERVER}:/",
            str(mount_point),
        ]
    )


def _lay_cable(at_server: str, at_client: str, link: Link) -> None:
    run_command(
        [
            "ip",
            "link",
            "add",
            _CABLE,
            "netns",
            at_server,
            "type",
            "veth",
            "peer",
            "name",
            _CABLE,
            "netns",
            at_client,
        ]
    )
    for namespace, address in ((at_server, SERVER), (at_client, _CLIENT)):
        run_command(["ip", "-n", namespace, "addr", "add", f"{address}/24", "dev", _CABLE])
        for device in ("lo", _CABLE):
            run_command(["ip", "-n", namespace, "link", "set", device, "up"])
        if shape := shaping(link):
            run_command(["tc", "-n", namespace, "qdisc", "add", "dev", _CABLE, "root", *shape])


def shaping(link: Link) -> Sequence[str]:
    """tc's arguments for each end of the cable: half of the round trip's delay, and the rate."""
    if link.delay_s is not None:
        # Long enough for the fastest cable's packets that are on their way.
        arguments = ["netem", "limit", "1000000", "delay", f"{round(1e6 * link.delay_s / 2)}us"]
        return arguments + (["rate", link.rate] if link.rate else [])
    if link.rate is not None:
        # A bucket for the bytes of one tick of a slow clock at 10 Gbit/s; packets wait 50 ms at
        # most.
        return ["tbf", "rate", link.rate, "burst", "256kb", "latency", "50ms"]
    return []


def _start(kind: str, namespace: str, served: Path, journal: UndoJournal) -> None:
    script = _BEGIN + (_KERNEL_SERVER if kind == "kernel" else _GANESHA_SERVER)
    command = [
        "nsenter",
        f"--net=/run/netns/{namespace}",
        "unshare",
        "--mount",
        "--propagation",
        "private",
        "sh",
        "-c",
        script,
        "eeio-nfs",
        str(served),
        _NET,
        str(_THREADS),
    ]
    # Without eeio's mark: `restore` ends marked processes first, and a client without server hangs.
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        env={**os.environ, **mark()},
    )
    journal.add(UndoEntry("process", str(process.pid), str(start_ticks(process.pid) or 0)))
    assert process.stdin is not None and process.stdout is not None
    with process.stdin as stdin, suppress(BrokenPipeError):
        stdin.write(b"noted\n")
    output = b""
    deadline_s = time.monotonic() + _READY_S
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while not output.endswith(b"ready\n"):
            left_s = deadline_s - time.monotonic()
            chunk = b""
            if left_s > 0 and selector.select(left_s):
                chunk = os.read(process.stdout.fileno(), 4096)
            if not chunk:
                raise EeioError(f"the NFS server ({kind}) did not start: {_last_line(output)}")
            output += chunk


def _last_line(output: bytes) -> str:
    lines = output.decode(errors="backslashreplace").strip().splitlines()
    if lines:
        return lines[-1][:300]
    return f"it printed no message within {_READY_S:g} s"
