"""The machine's own BMC: /dev/ipmi0 of a guest kernel, read by the meter inside the guest.

QEMU emulates a KCS interface, behind which OpenIPMI's `ipmi_sim` plays the BMC with DCMI.
"""

import socket
import subprocess
from pathlib import Path

import pytest
from tests.qemu import guest, marks
from tests.simulators import ipmi_sim
from tests.simulators.ipmi_sim import IpmiSim

import eeio
import eeio_power

MODULES = ("ipmi_msghandler", "ipmi_devintf", "ipmi_si")
PROGRAMS = ("ipmitool", "stdbuf")

READ = """
import time
from pathlib import Path
for _ in range(50):
    if Path("/dev/ipmi0").exists():
        break
    time.sleep(0.2)
from eeio_power.meters import discover, open_meters
from eeio_power.sampler import Sampler

(found,) = [f for f in discover() if f.spec == "ipmi"]
print("found:", found.available, found.reason)
for name, spec in (("a", "ipmi,period_s=0.1"), ("b", "ipmi,period_s=0.1,reader=no")):
    (meter,) = open_meters([spec])
    with Sampler([meter], Path(f"/tmp/{name}.gz"), 10.0) as sampler:
        start_s = time.monotonic()
        time.sleep(5.0)
        (reading,) = sampler.energy(start_s, time.monotonic())
    rate = sampler.rates()[0]
    print("reading:", type(sampler._loops[0]).__name__, meter.channels[0].name, reading.power_w,
          reading.valid, reading.samples, rate.failed_reads, rate.last_error)
    meter.close()
"""

GUEST = ipmi_sim.missing() or guest(MODULES, PROGRAMS)
pytestmark = marks(GUEST)


def test_the_meter_reads_the_machine_s_own_bmc(tmp_path: Path) -> None:
    assert not isinstance(GUEST, str)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    package = Path(eeio_power.__file__).parent
    reader = tmp_path / "eeio-ipmi-reader"
    subprocess.run(
        ["cc", "-std=c11", "-O2", "-o", str(reader), str(package / "helper/eeio-ipmi-reader.c")],
        check=True, timeout=300,
    )  # fmt: skip
    preload = [
        (path, str(path.relative_to("/")))
        for path in Path("/usr/libexec/coreutils").glob("libstdbuf.so")
    ]
    with IpmiSim(tmp_path, kcs_port=port) as bmc:
        bmc.power(287)
        message = GUEST.run(
            tmp_path, READ, modules=MODULES, programs=PROGRAMS,
            packages=[package, Path(eeio.__file__).parent],
            files=[(reader, "usr/local/libexec/eeio-ipmi-reader"), *preload],
            devices=[
                "-chardev", f"socket,id=sim,host=127.0.0.1,port={port},reconnect=1",
                "-device", "ipmi-bmc-extern,id=bmc0,chardev=sim",
                "-device", "isa-ipmi-kcs,bmc=bmc0",
            ],
        )  # fmt: skip
    assert "found: True None" in message
    for loop in ("BatchLoop", "MeterLoop"):
        (line,) = [line for line in message.splitlines() if line.startswith(f"reading: {loop} ")]
        _, _, channel, power_w, valid, samples, failed, _ = line.split()
        assert (channel, valid, failed) == ("ipmi:dcmi", "True", "0")
        assert float(power_w) == pytest.approx(287.0)
        assert int(samples) > 10, line
    assert "ended with 0" in message
