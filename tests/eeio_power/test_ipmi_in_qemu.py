"""The machine's own BMC: /dev/ipmi0 of a guest kernel, read by the meter inside the guest.

QEMU (TCG is enough) emulates a KCS interface, behind which OpenIPMI's `ipmi_sim` plays the BMC with
DCMI. `scripts/setup --test` installs what it takes and fetches a kernel. EEIO_QEMU names another
folder that holds boot/vmlinuz-* and lib/modules: `/`, or where a kernel's package was unpacked (the
cloud kernels lack the IPMI drivers).
"""

import os
import re
import shutil
import socket
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import eeio_limits
import eeio_power
from eeio_power.simulators import ipmi_sim
from eeio_power.simulators.ipmi_sim import IpmiSim

LIMIT_S = 240.0
PROGRAMS = ("qemu-system-x86_64", "busybox", "cpio")
MODULES = ("ipmi_msghandler", "ipmi_devintf", "ipmi_si")

INIT = """#!/busybox sh
/busybox mkdir -p /proc /sys /tmp
/busybox mount -t proc none /proc; /busybox mount -t sysfs none /sys
/busybox mount -t devtmpfs none /dev
for module in {modules}; do /busybox insmod /modules/$module.ko; done
export PATH=/usr/bin LD_LIBRARY_PATH=/lib:/lib64 PYTHONPATH=/eeio PYTHONDONTWRITEBYTECODE=1
k=0; while [ ! -e /dev/ipmi0 ] && [ $k -lt 50 ]; do /busybox sleep 0.2; k=$((k+1)); done
/busybox cat /sys/class/ipmi/ipmi0/device/uevent 2>/dev/null
{python} /read.py
echo "ended with $?"
/busybox poweroff -f
"""

READ = """
import time
from pathlib import Path
from eeio_power.meters import discover, open_meters
from eeio_power.sampler import Sampler

(found,) = [f for f in discover() if f.spec == "ipmi"]
print("found:", found.available, found.reason)
for spec in ("ipmi,period_s=0.1", "ipmi,period_s=0.1,reader=no"):
    (meter,) = open_meters([spec])
    with Sampler([meter], Path("/tmp/s.gz"), 10.0) as sampler:
        start_s = time.monotonic()
        time.sleep(5.0)
        (reading,) = sampler.energy(start_s, time.monotonic())
    rate = sampler.rates()[0]
    print("reading:", type(sampler._loops[0]).__name__, meter.channels[0].name, reading.power_w,
          reading.valid, reading.samples, rate.failed_reads, rate.last_error)
    meter.close()
"""


def kernel() -> tuple[Path, Path] | str:
    """(vmlinuz, its folder of modules), or why there is none."""
    lacking = [name for name in PROGRAMS if shutil.which(name) is None]
    if lacking or ipmi_sim.missing():
        return f"not installed: {', '.join(lacking)} {ipmi_sim.missing() or ''}"
    fetched = Path(__file__).parents[2] / ".venv/share/kernel"
    folder = Path(os.environ.get("EEIO_QEMU", fetched))
    for image in sorted(folder.glob("boot/vmlinuz-*"), reverse=True):
        modules = folder / "lib/modules" / image.name.removeprefix("vmlinuz-")
        if any(modules.rglob("ipmi_si.ko")):
            return image, modules
    return f"{folder}: no kernel with ipmi_si.ko (scripts/setup --test fetches one)"


KERNEL = kernel()
pytestmark = pytest.mark.skipif(isinstance(KERNEL, str), reason=str(KERNEL))


def libraries(program: Path) -> set[Path]:
    """The shared libraries that a program or an extension loads."""
    done = subprocess.run(
        ["ldd", str(program)], capture_output=True, text=True, timeout=20, check=False
    )
    return {Path(word) for word in re.findall(r"(/\S+) \(0x", done.stdout)}


def initramfs(folder: Path, modules: Path) -> Path:
    """Busybox, ipmitool, Python and this package, as the kernel unpacks them."""
    root = folder / "root"
    for name in ("dev", "lib", "lib64", "modules", "usr/bin"):
        (root / name).mkdir(parents=True)
    shutil.copy(str(shutil.which("busybox")), root / "busybox")
    python = Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
    needed: set[Path] = set()
    for program in (Path(str(shutil.which("ipmitool"))), Path(str(shutil.which("stdbuf")))):
        shutil.copy(program, root / "usr/bin")
        needed |= libraries(program)
    _place(root, python)
    standard = Path(sysconfig.get_path("stdlib", vars={"installed_base": sys.base_prefix}))
    unwanted = ("test", "tests", "__pycache__", "site-packages", "dist-packages", "config-*",
                "idlelib", "ensurepip", "lib2to3", "pydoc_data", "tkinter")  # fmt: skip
    shutil.copytree(
        standard, root / standard.relative_to("/"), ignore=shutil.ignore_patterns(*unwanted)
    )
    needed |= libraries(python)
    for extension in (standard / "lib-dynload").glob("*.so"):
        needed |= libraries(extension)
    for stdbuf in Path("/usr/libexec/coreutils").glob("libstdbuf.so"):
        _place(root, stdbuf)
    for library in needed:
        shutil.copy(library, root / ("lib64" if "ld-linux" in library.name else "lib"))
    package = Path(eeio_power.__file__).parent
    for folder_of in (package, Path(eeio_limits.__file__).parent):
        shutil.copytree(
            folder_of, root / "eeio" / folder_of.name, ignore=shutil.ignore_patterns("__pycache__")
        )
    reader = root / "usr/local/libexec/eeio-ipmi-reader"
    reader.parent.mkdir(parents=True)
    source = package / "helper/eeio-ipmi-reader.c"
    subprocess.run(
        ["cc", "-std=c11", "-O2", "-o", str(reader), str(source)], check=True, timeout=60
    )
    for name in MODULES:
        shutil.copy(next(modules.rglob(f"{name}.ko")), root / "modules")
    (root / "read.py").write_text(READ)
    (root / "init").write_text(INIT.format(modules=" ".join(MODULES), python=python))
    (root / "init").chmod(0o755)
    archive = folder / "initramfs"
    with archive.open("wb") as out:
        names = "\n".join(str(p.relative_to(root)) for p in sorted(root.rglob("*")))
        subprocess.run(
            ["cpio", "--quiet", "-o", "-H", "newc"], cwd=root, input=names.encode(), stdout=out,
            timeout=60, check=True,
        )  # fmt: skip
    return archive


def _place(root: Path, file: Path) -> None:
    target = root / file.relative_to("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(file, target)


def test_the_meter_reads_the_machine_s_own_bmc(tmp_path: Path) -> None:
    assert not isinstance(KERNEL, str)
    image, modules = KERNEL
    archive = initramfs(tmp_path, modules)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    command = [
        "qemu-system-x86_64", "-M", "pc", "-m", "1024", "-nographic", "-no-reboot", "-nodefaults",
        "-serial", "stdio", "-kernel", str(image), "-initrd", str(archive),
        "-append", "console=ttyS0 quiet panic=-1",
        "-chardev", f"socket,id=sim,host=127.0.0.1,port={port},reconnect=1",
        "-device", "ipmi-bmc-extern,id=bmc0,chardev=sim", "-device", "isa-ipmi-kcs,bmc=bmc0",
    ]  # fmt: skip
    with IpmiSim(tmp_path, kcs_port=port) as bmc:
        bmc.power(287)
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            timeout=LIMIT_S, check=False,
        )  # fmt: skip
    said = done.stdout[-4000:] + done.stderr[-2000:]
    print(said)
    assert "found: True None" in said
    for loop in ("BatchLoop", "MeterLoop"):
        (line,) = [line for line in said.splitlines() if line.startswith(f"reading: {loop} ")]
        _, _, channel, power_w, valid, samples, failed, _ = line.split()
        assert (channel, float(power_w), valid, failed) == ("ipmi:dcmi", 287.0, "True", "0")
        assert int(samples) > 10, line
    assert "ended with 0" in said
