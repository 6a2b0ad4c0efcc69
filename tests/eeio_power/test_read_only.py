"""No meter makes the sampler write anywhere but to its samples file (and, serial, its line)."""

import os
import sys
from pathlib import Path

import pytest
from tests.processes import ran
from tests.simulators import FakeHwmon, FakeRapl
from tests.simulators.tree import cubietruck, write_tree

# Runs the meters under an audit hook, which sees every file that is opened and every change of a
# file system, whoever asks for it.
WATCHED = """
import os, sys
from pathlib import Path

root, samples, specs = Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
written = []
CHANGES = ("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.chmod", "os.chown", "os.truncate",
           "os.link", "os.symlink", "os.utime", "subprocess.Popen", "os.system", "socket.connect")

def watch(event, arguments):
    if event == "open":
        path, mode, flags = arguments
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC):
            written.append(str(path))
    elif event in CHANGES:
        written.append(f"{event} {arguments[0]}")

from eeio_power.meters import open_meters
from eeio_power.sampler import Sampler

sys.dont_write_bytecode = True
sys.addaudithook(watch)
meters = open_meters(specs, root)
with Sampler(meters, Path(samples), 100.0) as sampler:
    import time
    start_s = time.monotonic()
    while time.monotonic() < start_s + 0.2:
        pass
    sampler.energy(start_s, time.monotonic())
for meter in meters:
    meter.close()
print("\\n".join(written))
"""


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A root with every meter that is made of files."""
    root = tmp_path / "root"
    FakeRapl(root / "sys/class/powercap")
    FakeHwmon(root / "sys/class/hwmon").add_chip("power_meter", {"power1_average": 90_000_000})
    cubietruck(root / "sys/class/power_supply")
    write_tree(
        root / "sys/bus/iio/devices",
        {"iio:device0/name": "ina226", "iio:device0/in_power2_input": 480},
    )
    write_tree(root / "proc", {"stat": "cpu  1 0 1 1 0 0 0 0 0 0\ncpu0 1 0 1 1 0 0 0 0 0 0"})
    write_tree(root, {"log.csv": "Time,Watts\n1769860800,100\n1769860801,100\n1769860802,100"})
    return root


def test_only_the_samples_file_is_opened_for_writing(machine: Path, tmp_path: Path) -> None:
    samples = tmp_path / "s.csv.gz"
    before = {path: path.stat().st_mtime_ns for path in machine.rglob("*")}
    # RAPL's helper is a process of its own: it opens nothing for writing (test_reader.py).
    specs = ["rapl,reader=no", "hwmon", "power_supply", "iio", "modelled"]
    specs.append(f"csv:{machine / 'log.csv'},map=time:Time+power_w:Watts")
    done = ran(
        [sys.executable, "-B", "-c", WATCHED, str(machine), str(samples), *specs],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stdout.split() == [str(samples)], done.stderr
    assert {path: path.stat().st_mtime_ns for path in machine.rglob("*")} == before


def test_the_hook_would_see_a_meter_that_writes(machine: Path, tmp_path: Path) -> None:
    writing = WATCHED.replace(
        "meters = open_meters(specs, root)",
        "meters = open_meters(specs, root); open(root / 'proc/stat', 'a').close()",
    )
    done = ran(
        [sys.executable, "-B", "-c", writing, str(machine), str(tmp_path / "s.gz"), "rapl"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert str(machine / "proc/stat") in done.stdout
