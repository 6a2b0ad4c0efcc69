"""A campaign on QEMU's zoned NVMe drive: sequential writes are measured, random ones are not."""

import json
import re
from typing import Any

import pytest
from tests.eeio.test_nvme_in_qemu import MODULES
from tests.qemu import PACKAGES, PROFILES_RUN, guest, marks
from tests.suites import written

from eeio.paths import shipped

PROGRAMS = ("fio", "bash", "dash", "date", "lsblk", "stat", "wipefs", "blkid", "blkzone")
GUEST = guest(MODULES, PROGRAMS)
pytestmark = [*marks(GUEST), pytest.mark.root]

MIB = 1 << 20
# A zone's addresses, and how much of it can be written: drives have such gaps.
ZONE, CAPACITY, FILE_SIZE = 16 * MIB, 12 * MIB, 40 * MIB
ZONES = 3
"""FILE_SIZE in whole zones."""

EXPERIMENTS = (
    ("write", "sequential", "1m", "flush=end"),
    ("read", "sequential", "64k", ""),
    ("read", "random", "64k", "engine=libaio iodepth=4"),
    ("write", "random", "64k", "flush=end"),
    ("mixed", "random", "64k", "flush=end"),
    ("mixed", "sequential", "64k", "flush=end"),
    ("read", "strided", "64k", ""),
)
SCRIPT = """
import json, os, sys
Path("/run/home").mkdir()
settings = {**os.environ, "HOME": "/run/home"}
words = ["--preset", "quick", "--device", "/dev/nvme0n1", "--meter", "demo"]
words += ["--sweep", "file_size=FILE_SIZE", "--sweep", "runtime_s=0"]
erased = ["--erase", "/dev/nvme0n1", "--yes"]
again = [*erased, "--lose", "data"]
for name, more in (("read", []), ("erased", erased), ("again", again), ("filled", []),
                   ("finished", [])):
    if name == "finished":  # full, but never written
        subprocess.run("blkzone reset /dev/nvme0n1 && blkzone finish /dev/nvme0n1",
                       shell=True, check=True)
    if name == "again":  # as a write that ended in the middle of the second zone leaves it
        subprocess.run("blkzone reset -o $((ZONE)) -l $((ZONE)) /dev/nvme0n1 && "
                       "dd if=/dev/zero of=/dev/nvme0n1 bs=64k count=3 seek=$((ZONE / 128)) "
                       "oflag=direct", shell=True, check=True)
    done = subprocess.run([sys.executable, "-m", "eeio", "run", "/zones", "--name", name,
                           *words, *more], env=settings, capture_output=True, text=True)
    folder = Path("/run/home/.local/share/eeio/results", name)
    runs = folder / "runs.jsonl"
    lines = runs.read_text().splitlines() if runs.exists() else []
    said = done.stdout + done.stderr
    left = json.loads((folder / "campaign.json").read_text())["not_measured"]
    messages = [file.read_text() for file in sorted(folder.glob("raw/*/stderr.txt"))]
    print(name, json.dumps({"status": done.returncode, "said": said[-1500:], "messages": messages,
                            "left": [one["reason"] for one in left], "runs": [
        {"words": [one["experiment"][key] for key in ("spatiality", "operation")],
         "validity": one["validity"] + sum((p["validity"] for p in one["phases"]), []),
         "phases": [phase["bytes_moved"] for phase in one["phases"]],
         "drive": one["device_after"] and [one["device_after"][key] - one["device_before"][key]
                                           for key in ("read_bytes", "written_bytes")]}
        for one in map(json.loads, lines)]}), flush=True)
""".replace("FILE_SIZE", str(FILE_SIZE)).replace("ZONE", str(ZONE // 512))


@pytest.fixture(scope="module")
def campaigns(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """By name: empty, not to be erased; erased; partly written; full; full, but never written."""
    assert not isinstance(GUEST, str)
    folder = tmp_path_factory.mktemp("zones")
    entries = [
        ("fio", f"level=device operation={operation} spatiality={spatiality} request_size={size} "
         f"buffer=off {more}", f"{operation} {spatiality} {size}")
        for operation, spatiality, size, more in EXPERIMENTS
    ]  # fmt: skip
    suite = written(folder / "zones", entries)
    files = [(path, f"zones/{path.name}") for path in suite.iterdir()]
    profiles = shipped("test-profiles")
    for name in ("eeio-fio-1.0.0", "common"):
        files += [
            (path, f"eeio/eeio/share/test-profiles/{path.relative_to(profiles)}")
            for path in (profiles / name).rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        ]
    disk = folder / "disk"
    with disk.open("wb") as file:
        file.truncate(8 * ZONE)
    message = GUEST.run(
        folder / "guest", PROFILES_RUN + SCRIPT, modules=MODULES, programs=PROGRAMS, files=files,
        packages=PACKAGES,
        devices=["-drive", f"file={disk},format=raw,if=none,id=d",
                 "-device", "nvme,id=n,serial=eeio,ioeventfd=off",
                 "-device", f"nvme-ns,drive=d,bus=n,zoned=true,zoned.zone_size={ZONE},"
                 f"zoned.zone_capacity={CAPACITY}"],
    )  # fmt: skip
    named = re.findall(r"(read|erased|again|filled|finished) (\{\"status.*\})", message)
    return {name: json.loads(text) for name, text in named}


@pytest.mark.parametrize("name", ["erased", "again"])
def test_sequential_writes_are_measured_and_random_ones_are_not(
    campaigns: dict[str, Any], name: str
) -> None:
    found = campaigns[name]
    assert found["status"] == 0, found["said"]
    drive = "/dev/nvme0n1 is a zoned drive (host-managed): "
    assert found["left"] == [
        f"{drive}it accepts only sequential writes in each zone",
        f"{drive}it accepts only sequential writes in each zone",
        f"{drive}the writes would reset the zones that are read",
        f"{drive}a stride would meet the gaps at the ends of its zones",
    ]
    assert len(found["runs"]) == 3 and not any(run["validity"] for run in found["runs"])
    for run in found["runs"]:
        (moved,), (read, written) = run["phases"], run["drive"]
        if run["words"] == ["random", "read"]:
            # fio reads another block instead of one in a gap.
            assert moved == ZONES * ZONE == read
        elif run["words"] == ["sequential", "read"]:
            assert moved == ZONES * CAPACITY == read
        else:
            assert run["words"] == ["sequential", "write"]
            assert moved == ZONES * CAPACITY == written


def test_zones_that_others_have_filled_are_read(campaigns: dict[str, Any]) -> None:
    """The gaps at the ends of zones are no data that was never written."""
    found = campaigns["filled"]
    assert found["status"] == 0, found["said"]
    assert [run["words"][1] for run in found["runs"]] == ["read", "read"]
    assert not any(run["validity"] for run in found["runs"])


@pytest.mark.parametrize("name", ["read", "finished"])
def test_zones_without_data_have_nothing_to_read(campaigns: dict[str, Any], name: str) -> None:
    found = campaigns[name]
    assert found["status"] == 3, "some runs are invalid"
    assert len(found["left"]) == 5 and "is only read" in found["left"][0]
    assert len(found["runs"]) == 2
    if name == "read":
        assert all("moved no bytes" in str(run["validity"]) for run in found["runs"])
        message = "no zone of /dev/nvme0n1 was written before: nothing can be read"
        assert all(message in text for text in found["messages"])
    else:
        for run in found["runs"]:
            assert "read as zeros: never written" in str(run["validity"])
