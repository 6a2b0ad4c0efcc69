"""An NVMe controller of QEMU's, asked through a kernel's own driver: neither how our commands are
taken nor the bytes of its answers are ours to choose there."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.qemu import PACKAGES, PROFILES_RUN, Guest, guest, marks

from eeio.machine import counters
from eeio.measure.profiles import complete

MODULES = (
    "crct10dif_common", "crct10dif_generic", "crc-t10dif", "crc64", "crc64_rocksoft_generic",
    "crc64-rocksoft", "t10-pi", "nvme-core", "nvme",
)  # fmt: skip
GUEST = guest(MODULES, ())
pytestmark = [*marks(GUEST), pytest.mark.root]

SCRIPT = """
import json, time
from dataclasses import asdict
from pathlib import Path
from eeio.machine import drive
from eeio.machine.nvme_power import controller_of
from eeio.machine.power_saving import settings
from eeio.errors import EeioError

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
import json, os
from eeio.measure.profiles import complete
from eeio.machine import counters
from eeio.machine.filesystem import block_device

device = block_device(Path("/dev/nvme0n1"))
bytes_of = {"drive": counters.read_by_drive, "block layer": counters.read_counters}
Path("/profile/tool.conf").write_text("path=/usr/bin/fio\\n")
settings = {**os.environ, "HOME": "/profile", "EEIO_PRESET": "quick", "EEIO_DIRECTORY": "/run",
            "EEIO_OUTPUT_DIR": "/run/out", "EEIO_DEVICE": "/dev/nvme0n1",
            "EEIO_ERASE": "/dev/nvme0n1"}
words = ["level=device", "operation=read", "spatiality=random", "request_size=4k", "buffer=off",
         "file_size=12m", "runtime_s=0", "engine=io_uring_cmd", "iodepth=32"]
done = []
for script in ("pre.sh", "eeio-fio.sh"):
    before = {name: read(device) for name, read in bytes_of.items()}
    done.append(subprocess.run(["dash", f"/profile/{script}", *words], env=settings, cwd="/run",
                               capture_output=True, text=True))
    after = {name: read(device) for name, read in bytes_of.items()}
    moved = {name: (after[name].read_bytes - before[name].read_bytes,
                    after[name].written_bytes - before[name].written_bytes) for name in before}
    print(script, json.dumps({"status": done[-1].returncode, "error": done[-1].stderr[-500:],
                              **moved}), flush=True)
job = json.loads(Path("/run/out/fio.json").read_text())["jobs"][0]
print("fio", json.dumps(job["read"]["io_bytes"]), flush=True)
"""
PROGRAMS = ("fio", "dash", "date", "lsblk")
WITH_FIO = guest(MODULES, PROGRAMS)
PROFILE = Path(__file__).parents[2] / "test-profiles/eeio-fio-1.0.0"


@pytest.mark.skipif(isinstance(WITH_FIO, str), reason=str(WITH_FIO))
def test_a_drive_counts_what_passes_by_the_block_layer(tmp_path: Path) -> None:
    """The profile fills the drive through the block layer, and reads it past that."""
    files = [(path, f"profile/{name}") for name, path in complete.files(PROFILE).items()]
    message = answers(WITH_FIO, tmp_path, PROFILES_RUN + PASSTHROUGH, PROGRAMS, files)
    prefill, run = json.loads(message["pre.sh"]), json.loads(message["eeio-fio.sh"])
    assert (prefill["status"], run["status"]) == (0, 0), (prefill, run)
    moved, unit = 12 << 20, counters.DATA_UNIT_BYTES
    assert prefill["block layer"][1] == int(message["fio"]) == moved
    assert abs(prefill["drive"][1] - moved) <= 2 * unit
    assert run["block layer"] == [0, 0]
    assert abs(run["drive"][0] - moved) <= 2 * unit


def answers(
    machine: Guest | str, folder: Path, script: str, programs: Sequence[str] = (),
    files: Sequence[tuple[Path, str]] = (),
) -> dict[str, str]:  # fmt: skip
    """Of a script in a guest with an NVMe drive of 16 MiB: JSON by the word in front of it."""
    assert not isinstance(machine, str)
    disk = folder / "disk"
    with disk.open("wb") as file:
        file.truncate(16 << 20)
    message = machine.run(
        folder / "guest", script, modules=MODULES, programs=programs, files=files,
        packages=PACKAGES,
        # With its ioeventfd QEMU 7.2 loses requests at depth 32, which then time out.
        devices=["-drive", f"file={disk},format=raw,if=none,id=d", "-device",
                 "nvme,serial=eeio,drive=d,ioeventfd=off"],
    )  # fmt: skip
    return dict(re.findall(r"(told|pre\.sh|eeio-fio\.sh|fio) (\{.*\}|\d+)", message))


def test_what_an_emulated_drive_reports_of_its_states(tmp_path: Path) -> None:
    reported = json.loads(answers(GUEST, tmp_path, SCRIPT)["told"])
    assert reported["node"] == "/dev/nvme0"
    # QEMU describes one state: 25 W (0x9c4 in units of 10 mW), 16 us in, 4 us out.
    (state,) = reported["states"]
    assert state["most_w"] == pytest.approx(25.0) and state["is_operational"]
    assert (state["enter_s"], state["leave_s"]) == pytest.approx((16e-6, 4e-6))
    assert reported["state"] == 0 and reported["autonomous"] is None
    assert "/dev/nvme0: the drive refuses Set Features 0x2" in reported["too deep"]
    assert reported["used"] == 0
    assert reported["settings"]["runtime power management of the controller"] in ("on", "auto")
