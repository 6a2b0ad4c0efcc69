"""Captures: what is in them, what is replaced, that a replay finds the same, and bad ones."""

import io
import json
import os
import tarfile
import threading
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.plugin import Eeio, InProcess
from tests.simulators.files import write_in_place

from eeio.cli import main
from eeio.errors import LimitError, RejectedError
from eeio.machine.as_data import capture, description, readings
from eeio.machine.as_data.anonymous import Replacer, own_serials
from eeio.machine.as_data.description import Command, Description
from eeio.machine.as_data.replay import replayed
from eeio.machine.as_data.root import user_id, which
from eeio.measure import doctor as examination
from eeio_power.meters import discover

NO_OUTPUT = json.dumps({"findings": []})
SENSORS = "Pwr Consumption,88.0,Watts,ok\nFan1,3000,RPM,ok\n"
IPMI = ("ipmitool", "-I", "open", "-c")
SERVER = Description(
    about="a server",
    tree={
        "sys/devices/virtual/powercap/intel-rapl/intel-rapl:0/name": "package-0",
        "sys/devices/virtual/powercap/intel-rapl/intel-rapl:0/max_energy_range_uj": "262143328850",
        "sys/devices/virtual/powercap/intel-rapl/intel-rapl:1/name": "package-1",
        "sys/devices/virtual/powercap/intel-rapl/intel-rapl:1/max_energy_range_uj": "262143328850",
        "sys/devices/virtual/powercap/intel-rapl/intel-rapl:1/energy_uj": "90125",
        "sys/devices/pci0000:00/0000:00:01.0/nvme/nvme0/nvme0n1/dev": "259:0",
        "sys/devices/pci0000:00/0000:00:01.0/nvme/nvme0/nvme0n1/size": "1953525168",
        "sys/devices/pci0000:00/0000:00:01.0/nvme/nvme0/nvme0n1/stat": "1 0 8 0 1 0 8 0 0 0 0",
        "sys/devices/pci0000:00/0000:00:01.0/nvme/nvme0/nvme0n1/queue/write_cache": "write back",
        "sys/devices/pci0000:00/0000:00:01.0/nvme/nvme0/model": "SAMSUNG MZVL21T0HCLR",
        "dev/nvme0n1": "",
        "dev/ipmi0": "",
        "dev/loop-control": "",
        "proc/filesystems": "nodev\tsysfs\n\text4",
        "proc/meminfo": "MemTotal:       16384000 kB",
        "proc/self/mountinfo": (
            "26 1 259:0 / / rw,relatime - ext4 /dev/nvme0n1 rw\n"
            "30 26 0:26 / /tmp rw - tmpfs tmpfs rw"
        ),
        "proc/self/status": "Uid:\t1000\t1000\t1000\t1000",
        "usr/sbin/nvme": "",
        "usr/sbin/mkfs.ext4": "",
        "usr/bin/ipmitool": "",
    },
    links={
        "sys/class/powercap/intel-rapl:0": "../../devices/virtual/powercap/intel-rapl/intel-rapl:0",
        "sys/class/powercap/intel-rapl:1": "../../devices/virtual/powercap/intel-rapl/intel-rapl:1",
        "sys/class/block/nvme0n1": "../../devices/pci0000:00/0000:00:01.0/nvme/nvme0/nvme0n1",
        "sys/block/nvme0n1": "../devices/pci0000:00/0000:00:01.0/nvme/nvme0/nvme0n1",
        "sys/devices/pci0000:00/0000:00:01.0/nvme/nvme0/nvme0n1/device": "..",
    },
    commands=(
        Command(("nvme", "get-feature", "/dev/nvme0n1", "-f", "6"), 0,
                "get-feature:0x06 (Volatile Write Cache), Current value:0x00000001\n"),
        Command((*IPMI, "raw", "0x2c", "2", "0xdc", "1", "0", "0"), 1, "",
                "Unable to send RAW command (channel=0x0 netfn=0x2c lun=0x0 cmd=0x2 rsp=0xc1)\n"),
        Command((*IPMI, "sdr", "elist", "full"), 0, SENSORS),
        Command((*IPMI, "sdr", "get", "Pwr Consumption"), 0, "Pwr Consumption,88.0,Watts,ok\n"),
    ),
)  # fmt: skip


@pytest.fixture
def server(tmp_path: Path) -> Path:
    path = tmp_path / "server.json"
    description.save(SERVER, path)
    return path


# ---- what a replay finds ----


def _of_machine(body: dict[str, object]) -> list[object]:
    """Without loop devices, which other tests may make at any time, and without what may bear this
    machine's name or its user's, which are replaced."""
    findings = body["findings"]
    assert isinstance(findings, list)
    return [
        found for found in findings
        if not found["name"].startswith("/dev/loop") and found["kind"] not in ("tool", "name")
    ]  # fmt: skip


def test_a_replay_finds_what_was_found_on_the_machine(
    tmp_path: Path, eeio: Eeio, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A capture has the kernel's file, not another that the tests name.
    monkeypatch.delenv("EEIO_DROP_CACHES", raising=False)
    file = str(tmp_path / "machine.tar.gz")
    assert "would hold of this machine" in eeio("doctor", "--capture", file, "--yes").stdout
    here, there = (eeio.json("doctor", *arguments)
                   for arguments in ((), ("--replay", file)))  # fmt: skip
    assert _of_machine(there) == _of_machine(here)
    here, there = (eeio.json("meter", "list", *arguments)
                   for arguments in ((), ("--replay", file)))  # fmt: skip
    for meter in (*here["meters"], *there["meters"]):
        # The power now, and why a capture has none, differ.
        assert meter.pop("readings") == [] or meter["available"]
        if meter["available"]:
            meter.pop("reason")
    assert there == here
    required = eeio("doctor", "--replay", file, "--require", "csv", code=1)
    first, remedy = required.stderr.splitlines()
    assert first == "eeio: missing: csv" and remedy.startswith("eeio: csv: name it: --meter csv:")


def test_a_capture_of_a_described_machine_is_that_machine(server: Path) -> None:
    """What meters, doctor and plan read of it is all in the capture: they find the same."""
    with replayed(server) as replay:
        taken = capture.take(NO_OUTPUT, replay.root, Replacer([], [])).description
        found, meters = examination.examine_replay(replay), discover(replay.root)
        # The processes of this machine are not the described one's.
        assert {c.run: c for c in SERVER.commands} == {
            c.run: c for c in taken.commands if c.run[0] != "eeio"
        }
    assert taken.tree.items() >= SERVER.tree.items()
    assert (taken.links, taken.refused) == (SERVER.links, {})
    again = server.with_name("again.json")
    description.save(taken, again)
    with replayed(again) as replay:
        assert examination.examine_replay(replay) == found
        assert [(m.spec, m.available) for m in discover(replay.root)] == [
            (m.spec, m.available) for m in meters
        ]


def test_readings_of_ten_seconds_give_counters_a_power(
    tmp_path: Path, in_process: InProcess
) -> None:
    zone = "sys/class/powercap/intel-rapl:0"
    files = {"name": "package-1", "max_energy_range_uj": "262143328850", "energy_uj": "90125"}
    tree = {f"{zone}/{name}": text for name, text in files.items()}
    description.save(Description("a server", tree=tree), tmp_path / "machine.json")
    with replayed(tmp_path / "machine.json") as replay:
        counter = replay.root / zone / "energy_uj"

        def wait(length_s: float) -> None:
            assert length_s == 10.0
            threading.Event().wait(0.2)
            # The sampler reads a last time when it stops.
            write_in_place(counter, "6090125")

        taken = readings.record(replay.root, wait)
        made = capture.take(NO_OUTPUT, replay.root, Replacer([], []), taken)
        secret = replace(taken[0], meter="kestrel", channels={"of kestrel": taken[0].times_s})
        hidden = capture.take(NO_OUTPUT, replay.root, Replacer(["kestrel"], []), [secret])
    assert "kestrel" not in json.dumps(hidden.description.to_json())
    (rapl,) = (each for each in taken if each.meter == "rapl")
    assert rapl.times_s[0] == 0.0 and rapl.channels["rapl:package-1"][0] == 0.090125
    assert any("readings of rapl:package-1" in line for line in made.listed())
    path = tmp_path / "machine.tar.gz"
    capture.write(made, path)
    done = in_process("meter", "list", "--replay", str(path), "--json")
    listed = {m["spec"]: m for m in json.loads(done.out)["meters"]}
    (reading,) = listed["rapl"]["readings"]
    assert reading["channels"] == ["rapl:package-1"]
    assert reading["power_w"] == pytest.approx(6.0 / rapl.times_s[-1])
    assert (reading["doubts"], reading["calibration"]) == ([], None)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"times_s": [], "channels": {}}, "times_s: 0 readings"),
        ({"times_s": [0.0, 0.0], "channels": {}}, "the time does not increase"),
        ({"times_s": [0.0], "channels": {"a": [1.0, 2.0]}}, "'a': 2 values at 1 times"),
        ({"times_s": [0.0], "channels": {"a": ["x"]}}, "readings/0/channels"),
    ],
)
def test_readings_that_cannot_be(body: dict[str, object], message: str) -> None:
    with pytest.raises(LimitError, match=message):
        description.of_body({"machine": 1, "about": "x", "readings": [{"meter": "m", **body}]})


def test_what_cannot_be_read_is_noted_as_such(tmp_path: Path) -> None:
    nobodys = Path("/proc/sys/vm/compact_memory")
    if not nobodys.exists():
        pytest.skip(f"no {nobodys}, which nobody may read")
    gathering = capture._Gathering(Path("/"))
    gathering.file(nobodys)
    gathering.file(Path("/proc/self/mem"))
    gathering.file(tmp_path / "none")
    assert gathering.refused == {str(nobodys)[1:]: "EACCES", "proc/self/mem": "EIO"}
    assert gathering.tree == {}


def test_doctor_finds_the_described_machine_not_this_one(server: Path) -> None:
    with replayed(server) as replay:
        found = {(f.kind, f.name): f for f in examination.examine_replay(replay)}
        assert user_id(replay.root) == 1000
        assert which("nvme", replay.root) == "/usr/sbin/nvme"
    assert found["privilege", "root"].detail == "user id 1000"
    assert found["device", "/dev/nvme0n1"].detail == (
        "1000.2 GB, SAMSUNG MZVL21T0HCLR, write cache on"
    )
    assert [name for kind, name in found if kind == "device"] == ["/dev/nvme0n1"]
    assert found["program", "nvme"].detail == "/usr/sbin/nvme"
    assert not found["program", "hdparm"].found
    assert found["file system", "ext4"].detail == "mkfs.ext4 found, kernel support loaded"
    assert not found["file system", "xfs"].found
    assert not any(kind in ("tool", "library", "name") for kind, _ in found)
    reported = "".join(f.detail + (f.remedy or "") for f in found.values())
    assert str(replay.root) not in reported


def test_no_program_of_this_machine_answers_for_another(server: Path, tmp_path: Path) -> None:
    body = SERVER.to_json()
    body["commands"] = [c for c in body["commands"] if c["run"][0] != "ipmitool"]
    without = tmp_path / "without.json"
    without.write_text(json.dumps(body))
    before = os.environ["PATH"]
    with replayed(without) as replay:
        ipmi = next(m for m in discover(replay.root) if m.spec == "ipmi")
    assert "ipmitool is missing" in str(ipmi.reason)
    assert os.environ["PATH"] == before


# ---- plan ----


def test_a_plan_for_a_described_machine(server: Path, eeio: Eeio) -> None:
    arguments = ("plan", "dummy-suite", "--directory", "/srv/data", "--replay", str(server))
    done = eeio(*arguments, "--disk-cache", "off")
    assert "/srv/data: ext4 on /dev/nvme0n1" in done.stdout
    # Of a user who is not root there; whoever replays it may be.
    assert "the write cache of /dev/nvme0n1 can only be switched as root" in done.stdout


def test_a_plan_for_a_described_machine_as_json(server: Path, eeio: Eeio) -> None:
    arguments = ("plan", "dummy-suite", "--directory", "/srv/data", "--replay", str(server))
    body = eeio.json(*arguments)
    assert body["runs"] == 6 and len(body["experiments"]) == 3
    assert body["machine"] in eeio(*arguments).stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--directory", "/tmp"), "is on tmpfs"),
        (("--directory", "/srv", "--device", "/dev/sda"), "/dev/sda: No such file"),
        (("--directory", "/srv", "--device", "/dev/ipmi0"), "/dev/ipmi0 is not a block device"),
        (("--device", "/dev/nvme0n1", "--erase", "/dev/nvme0n1"), "--erase: a machine description"),
        ((), "give --directory DIR"),
    ],
)
def test_what_no_campaign_could_use_there_is_rejected(
    server: Path, eeio: Eeio, arguments: tuple[str, ...], message: str
) -> None:
    done = eeio("plan", "dummy-suite", "--replay", str(server), *arguments, code=2)
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_description_without_mounts_has_no_plan(tmp_path: Path, eeio: Eeio) -> None:
    path = tmp_path / "bare.yaml"
    path.write_text("machine: 1\nabout: a board\n")
    eeio("doctor", "--replay", str(path))
    done = eeio("plan", "dummy-suite", "--replay", str(path), "--directory", "/data", code=2)
    reason = "/proc/self/mountinfo: No such file or directory, which a plan needs"
    assert done.stderr == f"eeio: {path}: {reason}\n"


# ---- what is replaced ----

SECRETS = {
    "hosts": ("kestrel.example.org", "kestrel"),
    "users": ("annabel",),
    "others": (
        "4c4c4544-0042-4810-8053-b4c04f4d3332", "A10KNXYZ", "00:1b:21:ab:cd:ef", "10.20.30.40",
        "fe80::21b:21ff:feab:cdef", "nvme.144d-533439304e4a-53414d-00000001",
        "0x5000c500a1b2c3d4", "eui.002538b581b12345", "10000000deadbeef",
    ),
}  # fmt: skip


def _reported_all(folder: Path) -> Path:
    return description.lay_out(
        Description(
            about="x",
            tree={
                "proc/cpuinfo": "processor\t: 0\nmodel name\t: A\nprocessor\t: 1\nmodel name\t: A\n"
                                "Serial\t\t: 10000000deadbeef",
                "proc/self/status": "Name:\tpython\nUid:\t0\t0\t0\t0\nPid:\t5",
                "proc/self/mountinfo":
                    "1 0 8:1 /home/annabel /home/annabel rw - ext4 /dev/sda1 rw,"
                    "uuid=4c4c4544-0042-4810-8053-b4c04f4d3332\n"
                    "2 1 0:5 / /mnt rw - nfs4 kestrel.example.org:/secret rw,addr=10.20.30.40\n"
                    "3 1 0:6 / /m2 rw - nfs4 [fe80::21b:21ff:feab:cdef]:/secret rw,vers=4.2\n"
                    "4 1 0:7 / /m3 rw - cifs //kestrel/annabel rw,username=annabel",
                "sys/fs/btrfs/4c4c4544-0042-4810-8053-b4c04f4d3332/devices/sda1": "",
                "dev/serial/by-id/usb-FTDI_FT232R_USB_UART_A10KNXYZ-if00-port0": "",
                "sys/class/hwmon/hwmon0/power1_label": "0x5000c500a1b2c3d4 of kestrel",
                "sys/class/hwmon/hwmon1/power1_label": "eui.002538b581b12345 on kestrel",
                "sys/class/hwmon/hwmon1/name": "nvme.144d-533439304e4a-53414d-00000001",
                "sys/class/hwmon/hwmon2/name": "00:1b:21:ab:cd:ef",
                "sys/class/hwmon/hwmon0/power1_input": "1234567890123456",
                "sys/class/dmi/id/product_serial": "A10KNXYZ",
                "proc/sys/kernel/osrelease": "5.15.167.4-microsoft-standard-WSL2",
            },
        ),
        folder,
    )[0]  # fmt: skip


def test_what_identifies_a_machine_is_replaced(tmp_path: Path) -> None:
    root = _reported_all(tmp_path / "machine")
    message = json.dumps({"findings": [], "by": "/home/annabel on kestrel.example.org, 127.0.0.1"})
    taken = capture.take(message, root, Replacer(SECRETS["hosts"], SECRETS["users"]))
    capture.write(taken, tmp_path / "c.tar.gz")
    with tarfile.open(tmp_path / "c.tar.gz") as archive:
        (member,) = archive.getmembers()
        assert (member.name, member.uid, member.uname) == ("machine.json", 0, "")
        file = archive.extractfile(member)
        assert file is not None
        text = file.read().decode()
    for secret in (secret for secrets in SECRETS.values() for secret in secrets):
        assert secret.lower() not in text.lower(), secret
    body = json.loads(text)
    assert body["tree"]["proc/sys/kernel/osrelease"] == "5.15.167.4-microsoft-standard-WSL2"
    assert body["tree"]["sys/class/hwmon/hwmon0/power1_input"] == "1234567890123456"
    assert "127.0.0.1" in text
    mounts = body["tree"]["proc/self/mountinfo"].splitlines()
    assert mounts[0] == "1 0 8:1 / /home/user1 rw - ext4 /dev/sda1 rw"
    assert mounts[1] == "2 1 0:5 / /mnt rw - nfs4 server:/share1 rw"
    # The same name is the same in all places, and another one another.
    labels = [body["tree"][f"sys/class/hwmon/hwmon{n}/power1_label"].split() for n in (0, 1)]
    assert [label[-1] for label in labels] == ["host1", "host1"]
    assert len({label[0] for label in labels}) == 2
    listed = "\n".join(taken.listed())
    assert "user name: 1 replaced" in listed
    assert "names that people gave: /home/user1 /mnt /m2 /m3" in listed


def test_serial_numbers_are_replaced_wherever_they_stand(tmp_path: Path) -> None:
    """Of this machine and its drives they are known; others by what they look like."""
    multipath, namespace = "36001405a1b2c3d4e5f60718293a4b5c6", "0025388b91d0f00e0025388b91d0f00e"
    root, _ = description.lay_out(
        Description(
            about="x",
            tree={
                "sys/class/nvme/nvme0/serial": "S4EWNX0R123456      ",
                "sys/class/nvme/nvme0/model": "S4EWNX0R123456 of 00:1b:21:ab:cd:ef",
                "sys/class/nvme/nvme0/firmware_rev": "1.2.3.4",
                "sys/class/dmi/id/product_serial": "ZK83H2A7",
                "sys/class/dmi/id/board_serial": "Default string",
                "sys/class/dmi/id/bios_version": "Default string",
                "sys/class/dmi/id/product_name": "Server ZK83H2A7",
                "sys/class/block/dm-0/dm/name": multipath,
                "sys/class/block/dm-1/dm/name": f"ns-{namespace}",
                "sys/class/hwmon/hwmon0/energy1_input": "30000000000000000",
            },
        ),
        tmp_path / "machine",
    )
    taken = capture.take(NO_OUTPUT, root, Replacer([], [], own_serials(root)))
    text = json.dumps(taken.description.to_json())
    for secret in ("S4EWNX0R123456", "ZK83H2A7", multipath, namespace, "00:1b:21:ab:cd:ef"):
        assert secret not in text, secret
    tree = taken.description.tree
    assert tree["sys/class/nvme/nvme0/firmware_rev"] == "1.2.3.4", "a version is no address"
    assert tree["sys/class/dmi/id/bios_version"] == "Default string"
    assert tree["sys/class/hwmon/hwmon0/energy1_input"] == "30000000000000000"
    assert tree["sys/class/block/dm-0/dm/name"] != tree["sys/class/block/dm-1/dm/name"]


def test_names_that_are_everybodys_stay() -> None:
    replacer = Replacer(["debian", "vm"], ["pi", "root"])
    assert replacer("ID=debian, /root, pi, vm") == "ID=debian, /root, pi, vm"
    assert replacer("0000:00:1f.2 2:0:0:0 intel-rapl:0:0 ::1 0.0.0.0") == (
        "0000:00:1f.2 2:0:0:0 intel-rapl:0:0 ::1 0.0.0.0"
    )


# ---- before it is written ----


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "written"), [("y\n", True), ("n\n", False), ("\n", False)])
def test_on_a_terminal_it_prompts_first(
    home: Path, monkeypatch: pytest.MonkeyPatch, answer: str, written: bool
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    path = home / "c.tar.gz"
    assert main(["doctor", "--capture", str(path)]) == (0 if written else 2)
    assert path.exists() == written


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("there.tar.gz", "--yes"), "exists; choose"),
        (("capture.json", "--yes"), "name it .tar.gz"),
        (("new.tar.gz",), "without a terminal give --yes"),
        (("new.tar.gz", "--yes", "--replay", "x"), "one of them"),
    ],
)
def test_a_capture_that_is_not_written(
    home: Path, eeio: Eeio, arguments: tuple[str, ...], message: str
) -> None:
    (home / "there.tar.gz").touch()
    done = eeio("doctor", "--capture", str(home / arguments[0]), *arguments[1:], code=2)
    assert message in done.stderr, done.stderr
    assert not (home / "new.tar.gz").exists()


# ---- bad ones ----

GOOD = b'{"machine": 1, "about": "x"}\n'


def _packed(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=31)
    return packer.compress(data) + packer.flush()


def _tar(*members: tuple[str, bytes, bytes], link: str = "") -> bytes:
    """(name, kind, content) of each."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name, kind, content in members:
            member = tarfile.TarInfo(name)
            member.type, member.size, member.linkname = kind, len(content), link
            archive.addfile(member, io.BytesIO(content))
    return file.getvalue()


def _bomb() -> bytes:
    """10 GiB of zeros in 10 MB: one flushed block of 1 MiB over and over."""
    packer = zlib.compressobj(9, wbits=-15)
    block = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    return b"\x1f\x8b\x08\0\0\0\0\0\0\3" + block * 10240


REGULAR = tarfile.REGTYPE
BAD: dict[str, tuple[Callable[[], bytes], str]] = {
    "cut": (lambda: _packed(_tar(("machine.json", REGULAR, GOOD)))[:-20], "cut off"),
    "cut within": (
        lambda: _packed(_tar(("machine.json", REGULAR, GOOD * 100))[:1024]), "unexpected end"),
    "newer": (
        lambda: _packed(_tar(("machine.json", REGULAR, b'{"machine": 2, "watts": 5}'))),
        "version 2"),
    "link out": (
        lambda: _packed(_tar(("machine.json", REGULAR,
            b'{"machine": 1, "about": "x", "links": {"sys/a": "../../etc/shadow"}}'))),
        "leads out of the tree"),
    "10 GB": (_bomb, "longer than 16 MiB unpacked"),
    "device": (lambda: _packed(_tar(("machine.json", tarfile.BLKTYPE, b""))), "one plain file"),
    "link": (
        lambda: _packed(_tar(("machine.json", tarfile.SYMTYPE, b""), link="/etc/passwd")),
        "one plain file"),
    "sparse": (
        lambda: _packed(_tar(("machine.json", tarfile.GNUTYPE_SPARSE, b""))), "no capture"),
    "elsewhere": (lambda: _packed(_tar(("../machine.json", REGULAR, GOOD))), "one plain file"),
    "two": (
        lambda: _packed(_tar(("machine.json", REGULAR, GOOD), ("dev/sda", REGULAR, b""))),
        "more in it"),
    "a device beside it": (
        lambda: _packed(_tar(("machine.json", REGULAR, GOOD), ("sda", tarfile.BLKTYPE, b""))),
        "more in it"),
    "nothing": (lambda: _packed(_tar()), "the archive is empty"),
    "no archive": (lambda: _packed(b"watts" * 1000), "not a valid tar archive"),
    "not packed": (lambda: _tar(("machine.json", REGULAR, GOOD)), "not packed by gzip"),
    "empty": (lambda: b"", "cut off"),
    "not JSON": (lambda: _packed(_tar(("machine.json", REGULAR, b"{"))), "not JSON"),
    "not UTF-8": (lambda: _packed(_tar(("machine.json", REGULAR, b"\xff"))), "not UTF-8"),
}  # fmt: skip


@pytest.mark.parametrize("name", list(BAD))
def test_a_bad_capture_is_rejected_in_one_line(
    tmp_path: Path, name: str, in_process: InProcess
) -> None:
    path = tmp_path / "machine.tar.gz"
    make, message = BAD[name]
    path.write_bytes(make())
    for command in (("doctor",), ("meter", "list"), ("plan", "eeio-suite")):
        output = in_process(*command, "--replay", str(path), code=2).err
        assert output.startswith(f"eeio: {path}: ")
        assert message in output
        assert len(output.splitlines()) == 1


def test_a_file_of_10_gb_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "machine.tar.gz"
    with path.open("wb") as file:
        file.truncate(10 << 30)
    with pytest.raises(RejectedError, match="longer than 16 MiB"):
        capture.load(path)
    with pytest.raises(RejectedError, match="No such file"):
        capture.load(tmp_path / "none.tar.gz")


def test_what_doctor_reported_must_be_sound(server: Path) -> None:
    wrong = '{"kind": "tool", "name": 5, "found": true, "detail": ""}'
    for message in ("{", "[]", '{"findings": [5]}', f'{{"findings": [{wrong}]}}'):
        body = SERVER.to_json()
        body["commands"] = [{"run": ["eeio", "doctor", "--json"], "prints": message}]
        server.write_text(json.dumps(body))
        with replayed(server) as replay, pytest.raises(RejectedError, match="not valid"):
            examination.examine_replay(replay)


def test_folders_of_installed_profiles_are_not_in_a_capture(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "project-x"))
    monkeypatch.setenv("HOME", str(tmp_path / "alice"))
    doctor = json.dumps({"findings": [
        {"detail": f"1.0 ({tmp_path}/project-x/eeio/installed/eeio-btio-1.0.0.1/btio, built)"},
        {"detail": f"({tmp_path}/alice/bin/fio, system)"},
    ]})  # fmt: skip
    (command, *_) = capture.take(doctor, tmp_path).description.commands
    assert "project-x" not in command.prints and "alice" not in command.prints
    assert "(INSTALLED/eeio-btio-" in command.prints
    assert "(~/bin/fio, system)" in command.prints
