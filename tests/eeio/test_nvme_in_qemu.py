"""An NVMe controller of QEMU's, asked through a kernel's own driver: neither how our commands are
taken nor the bytes of its answers are ours to choose there."""

import json
import re
from pathlib import Path

import pytest
from tests.qemu import guest

import eeio
import eeio_limits
import eeio_power
import eeio_results
from eeio.system import counters

MODULES = (
    "crct10dif_common", "crct10dif_generic", "crc-t10dif", "crc64", "crc64_rocksoft_generic",
    "crc64-rocksoft", "t10-pi", "nvme-core", "nvme",
)  # fmt: skip
GUEST = guest(MODULES, ())
pytestmark = [
    # A guest without KVM takes a minute of a processor.
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.root,
    pytest.mark.skipif(isinstance(GUEST, str), reason=str(GUEST)),
]

SCRIPT = """
import json, time
from dataclasses import asdict
from pathlib import Path
from eeio.system import drive
from eeio.system.nvme_power import controller_of
from eeio.system.power_saving import settings
from eeio_results.errors import EeioError

disk = Path("/sys/block/nvme0n1")
for _ in range(100):
    if disk.exists():
        break
    time.sleep(0.1)
controller = controller_of(disk)

def ask(what):
    try:
        return what()
    except EeioError as error:
        return str(error)

print("told", json.dumps({
    "node": str(controller.node),
    "states": ask(lambda: [asdict(state) for state in controller.states()]),
    "state": ask(controller.state),
    "autonomous": ask(controller.is_autonomous),
    "too deep": ask(lambda: controller.set_state(7)),
    "used": drive.percentage_used(disk),
    "settings": {one.name: one.value for one in settings(disk)},
}), flush=True)
"""


PASSTHROUGH = """
import json, subprocess, time
from pathlib import Path
from eeio.system import counters
from eeio.system.filesystem import block_device

for _ in range(100):
    if Path("/dev/ng0n1").exists():
        break
    time.sleep(0.1)
device = block_device(Path("/dev/nvme0n1"))
bytes_of = {"drive": counters.read_by_drive, "block layer": counters.read_counters}
before = {name: read(device).read_bytes for name, read in bytes_of.items()}
done = subprocess.run(
    ["fio", "--name=x", "--filename=/dev/ng0n1", "--ioengine=io_uring_cmd", "--cmd_type=nvme",
     "--rw=randread", "--bs=4096", "--iodepth=32", "--size=12m", "--readonly", "--direct=0",
     "--output-format=json", "--output=/run/fio.json"],
    capture_output=True, text=True)
after = {name: read(device).read_bytes for name, read in bytes_of.items()}
job = json.loads(Path("/run/fio.json").read_text())["jobs"][0] if not done.returncode else {}
print("told", json.dumps({
    "status": done.returncode, "error": done.stderr[-500:],
    "fio": job.get("read", {}).get("io_bytes"),
    **{name: after[name] - before[name] for name in before},
}), flush=True)
"""
WITH_FIO = guest(MODULES, ("fio",))


@pytest.mark.skipif(isinstance(WITH_FIO, str), reason=str(WITH_FIO))
def test_a_drive_counts_what_passes_by_the_block_layer(tmp_path: Path) -> None:
    assert not isinstance(WITH_FIO, str)
    disk = tmp_path / "disk"
    disk.write_bytes(bytes(range(256)) * (16 << 12))
    said = WITH_FIO.run(
        tmp_path / "guest", PASSTHROUGH, modules=MODULES, programs=("fio",),
        packages=[
            Path(str(one.__file__)).parent for one in (eeio, eeio_limits, eeio_power, eeio_results)
        ],
        devices=["-drive", f"file={disk},format=raw,if=none,id=d", "-device",
                 "nvme,serial=eeio,drive=d"],
    )  # fmt: skip
    found = re.search(r"told (\{.*\})", said)
    assert found is not None, said
    told = json.loads(found[1])
    assert (told["status"], told["fio"]) == (0, 12 << 20), told
    assert told["block layer"] == 0
    assert abs(told["drive"] - (12 << 20)) <= 2 * counters.DATA_UNIT_BYTES


def test_what_an_emulated_drive_says_of_its_states(tmp_path: Path) -> None:
    assert not isinstance(GUEST, str)
    disk = tmp_path / "disk"
    with disk.open("wb") as file:
        file.truncate(16 << 20)
    said = GUEST.run(
        tmp_path, SCRIPT, modules=MODULES, programs=(),
        packages=[
            Path(str(one.__file__)).parent for one in (eeio, eeio_limits, eeio_power, eeio_results)
        ],
        devices=["-drive", f"file={disk},format=raw,if=none,id=d", "-device",
                 "nvme,serial=eeio,drive=d"],
    )  # fmt: skip
    found = re.search(r"told (\{.*\})", said)
    assert found is not None, said
    told = json.loads(found[1])
    assert told["node"] == "/dev/nvme0"
    # QEMU describes one state: 25 W (0x9c4 in units of 10 mW), 16 us in, 4 us out.
    (state,) = told["states"]
    assert state["most_w"] == pytest.approx(25.0) and state["is_operational"]
    assert (state["enter_s"], state["leave_s"]) == pytest.approx((16e-6, 4e-6))
    assert told["state"] == 0 and told["autonomous"] is None
    assert "/dev/nvme0: the drive refuses Set Features 0x2" in told["too deep"]
    assert told["used"] == 0
    assert told["settings"]["runtime power management of the controller"] in ("on", "auto")
