"""What sampling costs: CPU time and memory of the sampler at 10 Hz, alone in a process; of counters
at 100 Hz, too, as while a tool runs.

    python benchmarks/power_cost.py [SECONDS] [--peer PYTHON]

RAPL with 6 zones (three packages with DRAM, counters of a simulated tree in memory), by the helper
and without it, and IPMI at 10 Hz by a stand-in of ipmitool, likewise. The time of child processes
(helper, ipmitool) counts. Where OpenIPMI's ipmi_sim is installed, it plays a BMC with DCMI, which
the real ipmitool asks over the network. --meter SPEC measures another meter. With --peer, a Python
that has codecarbon is measured beside it, reading every second.

Goals: 0.1 % of one core for RAPL, 0.5 % for IPMI, 40 MB.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from eeio_power.monitor import COUNTER_RATE_HZ

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.simulators import FakeRapl, ipmi_sim
from tests.simulators.ipmi_sim import IpmiSim
from tests.simulators.ipmitool import install_fake_ipmitool
from tests.simulators.powercap import default_zones
from tests.simulators.tree import write_tree

CHILD = """
import os, resource, sys, time
from pathlib import Path
from eeio_power.meters import open_meters
from eeio_power.sampler import Sampler

def children_s():
    # CPU time of the helper and of ipmitool, as the scheduler counts it (ns).
    used_ns = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if int((folder / "stat").read_text().rpartition(")")[2].split()[1]) == os.getpid():
                used_ns += int((folder / "schedstat").read_text().split()[0])
        except OSError:
            pass  # a process that ended meanwhile
    return used_ns / 1e9

spec, root, samples, seconds = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), float(sys.argv[4])
meters = open_meters([spec], root)
counters_hz = float(sys.argv[5])
with Sampler(meters, samples, 10.0) as sampler:
    sampler.read_counters(counters_hz or None)
    time.sleep(2.0)
    others, before, begun_s = children_s(), time.process_time(), time.monotonic()
    time.sleep(seconds)
    used_s, took_s = time.process_time() - before, time.monotonic() - begun_s
    others_s = children_s() - others
    rate = sampler.rates()[0]
for meter in meters:
    meter.close()
peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(f"{100 * (used_s + others_s) / took_s:.3f} % of a core ({100 * others_s / took_s:.3f} % in "
      f"its child), {peak_mb:.1f} MB, {rate.achieved_hz:.2f} Hz, "
      f"{rate.failed_reads} failed")
"""

PEER = """
import logging, resource, sys, time
logging.disable(logging.CRITICAL)
from codecarbon import OfflineEmissionsTracker
tracker = OfflineEmissionsTracker(country_iso_code="ESP", measure_power_secs=1, save_to_file=False,
                                  allow_multiple_runs=True)
tracker.start()
time.sleep(3.0)
before, begun_s = time.process_time(), time.monotonic()
time.sleep(float(sys.argv[1]))
used_s, took_s = time.process_time() - before, time.monotonic() - begun_s
tracker.stop()
peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(f"{100 * used_s / took_s:.3f} % of a core, {peak_mb:.1f} MB, 1 Hz")
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("seconds", nargs="?", type=float, default=30.0)
    parser.add_argument("--peer", help="a Python that has codecarbon")
    parser.add_argument("--meter", help="only this meter, such as a BMC with the real ipmitool")
    arguments = parser.parse_args()
    if arguments.meter:
        with tempfile.TemporaryDirectory() as folder:
            options = [arguments.meter, "/", f"{folder}/samples.gz", str(arguments.seconds), "0"]
            print(_run([sys.executable, "-c", CHILD, *options], Path(folder)))
        return 0
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        root = Path(folder)
        FakeRapl(root / "sys/class/powercap", default_zones(packages=3))
        write_tree(root, {"dev/ipmi0": "", "watts": "301"})
        install_fake_ipmitool(root / "bin", root / "watts")
        for name, spec, counters_hz in (
            ("rapl, 6 zones", "rapl", 0.0),
            ("at 100 Hz", "rapl", COUNTER_RATE_HZ),
            ("without helper", "rapl,reader=no", 0.0),
            ("at 100 Hz", "rapl,reader=no", COUNTER_RATE_HZ),
            ("ipmi", "ipmi,period_s=0.1", 0.0),
            ("without helper", "ipmi,period_s=0.1,reader=no", 0.0),
        ):
            options = [spec, str(root), str(root / "samples.gz"), str(arguments.seconds)]
            options.append(str(counters_hz))
            print(f"{name:15}{_run([sys.executable, '-c', CHILD, *options], root / 'bin')}")
        problem = ipmi_sim.missing()
        if problem is not None:
            print(f"{'ipmi, lanplus':15}{problem}")
        else:
            (root / "bmc").mkdir()
            with IpmiSim(root / "bmc") as bmc:
                os.environ.update(bmc.environment)
                for name, more in (("ipmi, lanplus", ""), ("without helper", ",reader=no")):
                    spec = f"{bmc.spec},period_s=0.1{more}"
                    options = [spec, "/", str(root / "samples.gz"), str(arguments.seconds), "0"]
                    print(f"{name:15}{_run([sys.executable, '-c', CHILD, *options], Path('/bin'))}")
        if arguments.peer:
            options = [arguments.peer, "-c", PEER, str(arguments.seconds)]
            print(f"{'codecarbon':15}{_run(options, root / 'bin')}")
    return 0


def _run(command: list[str], folder: Path) -> str:
    environment = {"PATH": f"{folder}:/usr/bin:/bin:/usr/sbin", "PYTHONPATH": ":".join(sys.path)}
    if "IPMI_PASSWORD" in os.environ:
        environment["IPMI_PASSWORD"] = os.environ["IPMI_PASSWORD"]
    if command[1] == "-c" and command[0] != sys.executable:
        environment.pop("PYTHONPATH")
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    return done.stdout.strip() or f"failed: {done.stderr.strip()[-300:]}"


if __name__ == "__main__":
    sys.exit(main())
