"""Records the campaigns of tests/data/campaigns that need meters of their own:

    python -m tests.data.record_campaigns DIRECTORY [NAME ...]      (as root; minutes)

DIRECTORY is a folder on a drive that nothing else uses, for the test files: a loop device with
direct I/O is one. Raw output and pages are left out.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.cpufreq import acpi_tree
from tests.suites import written

CAMPAIGNS = Path(__file__).parent / "campaigns"

METER = '''
"""Meters of a machine that is not there: W over the seconds of the monotonic clock."""

import math
import time
from dataclasses import dataclass

from eeio_power.delay import Delay
from eeio_power.errors import PowerError
from eeio_power.meters import Channel, Detected
from eeio_power.reading import all_but, only

OPTIONS = {"part": "wall, package, gpu, rail, above or broken"}
ARGUMENT = "part"
LATE = Delay(0.3, 0.2, 0.02, 0.02, "the author of this meter")
PARTS = {
    "wall": (Channel("wall", "system", "power_w", accuracy_relative=0.01, resolution=0.1,
                     contents=all_but(), delay=LATE), "measured"),
    "broken": (Channel("broken", "system", "power_w", accuracy_relative=0.01), "measured"),
    "package": (Channel("package", "package", "energy_j", accuracy_relative=0.01,
                        resolution=1e-4, contents=only("processor")), "measured"),
    "above": (Channel("above", "package", "power_w", accuracy_relative=0.01), "measured"),
    "gpu": (Channel("gpu", "accelerator", "power_w", accuracy_relative=0.05), "device-reported"),
    "rail": (Channel("rail", "device", "power_w", resolution=0.001), "measured"),
}
WATTS = {"wall": 60.0, "broken": 45.0, "package": 15.0, "above": 90.0, "gpu": 30.0, "rail": -0.01}


@dataclass
class Part:
    spec: str
    name: str
    part: str
    native_period_s: float = 0.05

    def __post_init__(self):
        channel, self.kind = PARTS[self.part]
        self.channels = (channel,)
        self.begun_s = time.monotonic()

    def read(self):
        now_s = time.monotonic()
        lasted_s = now_s - self.begun_s
        if self.part == "broken" and lasted_s % 12.0 > 8.0:
            raise PowerError("the meter does not answer")
        watts = WATTS[self.part]
        if self.channels[0].quantity == "energy_j":
            return [watts * lasted_s]
        if self.part == "wall":
            lasted_s -= LATE.lag_s
        return [watts * (1.0 + 0.1 * math.sin(lasted_s))]

    def close(self):
        pass


def open_meter(spec, options, root):
    return Part(spec, options.get("name", options["part"]), options["part"])


def find(root):
    return Detected("parts", "measured", ("system",), False, "made by hand", in_auto=False)
'''

QUICK = """presets:
  quick: {repetitions: 3, settle_s: 0, idle_s: 3, is_measurement: false}
"""
ADAPTIVE = """presets:
  quick:
    repetitions: 3
    settle_s: 0
    idle_s: 3
    is_measurement: false
    adaptive: {most_repetitions: 5, most_whole: 5, precision: 0.02, indifference: 0.05, floor: 0.02,
               settle_least_s: 0.5, settle_most_s: 1.5, settle_power: 0.02, lengths_s: [1],
               pilot: none}
"""
SMALL = "file_size=512m runtime_s=2"
READ = ("fio", f"level=filesystem operation=read spatiality=random request_size=4k {SMALL}", "r")
WRITE = (
    "fio", "level=filesystem operation=write spatiality=sequential request_size=4k buffer=on "
    f"flush=none {SMALL}", "w",
)  # fmt: skip
MIXED = (
    ("fio", "level=filesystem operation=mixed spatiality=random request_size=4k read_share=70 "
     f"{SMALL}", "70 % reads"),
    ("fio", "level=filesystem operation=mixed spatiality=random request_size=4k read_share=30 "
     f"buffer=on {SMALL}", "30 % reads, cached"),
    ("iozone", "level=filesystem operation=mixed spatiality=random request_size=64k "
     "file_size=16m", "IOzone"),
    ("lmbench", "tests=syscall repetitions=1", "machine"),
)  # fmt: skip
DEVICES = "parts:wall parts:package parts:gpu,name=gpu0 parts:gpu,name=gpu1 parts:rail"
RECORDED = {
    # name: experiments, protocol, meters, options
    "mixed": (MIXED, QUICK, "demo", ""),
    "meters": ((READ, WRITE), QUICK, DEVICES, ""),
    "doubtful": ((READ, WRITE), QUICK, "parts:wall parts:above", ""),
    "lost": ((READ, WRITE), QUICK, "parts:broken parts:package", "--repetitions 4"),
    "ended": ((READ, WRITE), QUICK, "demo", "--repetitions 4 --max-written 2G"),
    "adaptive": ((READ, WRITE), ADAPTIVE, "demo", "--adaptive"),
    "filesystems": (
        (READ, WRITE), QUICK, "demo",
        "--filesystem ext4,xfs --repetitions 2 --see-order --trace-journal",
    ),
    "frequency": ((READ, WRITE), QUICK, "demo", "--repetitions 2 --frequency 1.2GHz,2.4GHz"),
}  # fmt: skip


def record(directory: Path, name: str) -> None:
    """In place of the campaign of before. Its seed is always the same."""
    experiments, protocol, meters, options = RECORDED[name]
    with tempfile.TemporaryDirectory() as home:
        written(Path(home, "suites", f"{name}-suite"), experiments, protocol)
        Path(home, "meters").mkdir()
        Path(home, "meters/parts.py").write_text(METER)
        words = ["run", f"{name}-suite", "--directory", str(directory), "--preset", "quick",
                 "--name", name, "--seed", "1", *options.split()]  # fmt: skip
        for meter in meters.split():
            words += ["--meter", meter]
        if name == "frequency":
            tree = Path(home, "tree")
            acpi_tree(tree)
            words += ["--sysfs-root", str(tree)]
        environment = {
            "EEIO_SUITES": f"{home}/suites", "EEIO_METERS": f"{home}/meters",
            "XDG_DATA_HOME": home, "XDG_STATE_HOME": f"{home}/state",
        }  # fmt: skip
        subprocess.run(
            [sys.executable, "-m", "eeio", *words],
            env={**os.environ, **environment}, stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
        made = Path(home, "eeio/results", name)
        shutil.rmtree(made / "raw", ignore_errors=True)
        (made / "report.html").unlink(missing_ok=True)
        shutil.rmtree(CAMPAIGNS / name, ignore_errors=True)
        shutil.move(made, CAMPAIGNS / name)


if __name__ == "__main__":
    for requested in sys.argv[2:] or RECORDED:
        record(Path(sys.argv[1]), requested)
