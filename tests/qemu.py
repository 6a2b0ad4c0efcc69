"""A guest of QEMU (TCG is enough) with a kernel of its own, Python, and our packages.

For what this machine's kernel has not: a BMC, disks with partitions, RAID, device mapper.
`scripts/setup --test` installs what it takes and unpacks a kernel into .venv/; EEIO_QEMU names
another folder that holds boot/vmlinuz-* and lib/modules: `/`, or where a kernel's package was
unpacked (the cloud kernels lack drivers).
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

import eeio
import eeio_parsers
import eeio_power
from tests.executables import executable

LIMIT_S = 400.0
_PATH = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"
_PROGRAMS = ("qemu-system-x86_64", "busybox", "cpio", "ldd")

PACKAGES = tuple(Path(str(one.__file__)).parent for one in (eeio, eeio_parsers, eeio_power, yaml))
"""Ours, and what they import."""
PROFILES_RUN = """
import subprocess, time
from pathlib import Path

subprocess.run(["/busybox", "--install", "-s", "/usr/bin"], check=True)
# The shell of busybox prefers its own date, which has no nanoseconds.
Path("/bin/sh").unlink()
Path("/bin/sh").symlink_to("/usr/bin/dash")
for _ in range(100):
    if Path("/dev/nvme0n1").exists() and Path("/dev/ng0n1").exists():
        break
    time.sleep(0.1)
"""
"""The beginning of a script that runs a profile on an NVMe drive: it needs dash and date."""

_INIT = """#!/busybox sh
/busybox mkdir -p /proc /sys /tmp /run /mnt
/busybox mount -t proc none /proc; /busybox mount -t sysfs none /sys
/busybox mount -t devtmpfs none /dev; /busybox mount -t tmpfs none /run
for module in {modules}; do /busybox insmod /modules/$module.ko; done
export PATH=/usr/bin:/bin LD_LIBRARY_PATH=/lib:/lib64 PYTHONPATH=/eeio PYTHONDONTWRITEBYTECODE=1
{python} /script.py
echo "ended with $?"
/busybox poweroff -f
"""


@dataclass(frozen=True)
class Guest:
    """A kernel's image and the folder of its modules."""

    image: Path
    modules: Path

    def run(
        self,
        folder: Path,
        script: str,
        *,
        modules: Sequence[str],
        programs: Sequence[str],
        packages: Sequence[Path],
        files: Sequence[tuple[Path, str]] = (),
        devices: Sequence[str] = (),
    ) -> str:
        """What the guest printed that ran the Python `script` with these kernel modules (in this
        order), programs of this machine, packages of ours and files; `devices` are QEMU's words."""
        archive = self._initramfs(folder, script, modules, programs, packages, files)
        done = subprocess.run(
            ["qemu-system-x86_64", "-M", "pc", "-m", "1024", "-nographic", "-no-reboot",
             "-nodefaults", "-serial", "stdio", "-kernel", str(self.image), "-initrd", str(archive),
             "-append", "console=ttyS0 quiet panic=-1", *devices],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            timeout=LIMIT_S, check=False,
        )  # fmt: skip
        output = done.stdout[-20_000:] + done.stderr[-2_000:]
        print(output)
        return output

    def _initramfs(
        self,
        folder: Path,
        script: str,
        modules: Sequence[str],
        programs: Sequence[str],
        packages: Sequence[Path],
        files: Sequence[tuple[Path, str]],
    ) -> Path:
        root = folder / "root"
        for name in ("dev", "lib", "lib64", "modules", "usr/bin", "bin", "eeio"):
            (root / name).mkdir(parents=True)
        shutil.copy(str(shutil.which("busybox")), root / "busybox")
        (root / "bin/sh").symlink_to("/busybox")
        python = (
            Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
        )
        needed: set[Path] = set()
        for name in programs:
            program = Path(str(shutil.which(name, path=_PATH)))
            shutil.copy(program, root / "usr/bin")
            needed |= _libraries(program)
        _place(root, python)
        standard = Path(sysconfig.get_path("stdlib", vars={"installed_base": sys.base_prefix}))
        unwanted = ("test", "tests", "__pycache__", "site-packages", "dist-packages", "config-*",
                    "idlelib", "ensurepip", "lib2to3", "pydoc_data", "tkinter")  # fmt: skip
        shutil.copytree(
            standard, root / standard.relative_to("/"), ignore=shutil.ignore_patterns(*unwanted)
        )
        needed |= _libraries(python)
        for extension in (standard / "lib-dynload").glob("*.so"):
            needed |= _libraries(extension)
        for library in needed:
            shutil.copy(library, root / ("lib64" if "ld-linux" in library.name else "lib"))
        for package in packages:
            shutil.copytree(
                package, root / "eeio" / package.name, ignore=shutil.ignore_patterns("__pycache__")
            )
        for file, name in files:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, root / name)
        for name in modules:
            shutil.copy(next(self.modules.rglob(f"{name}.ko")), root / "modules")
        (root / "script.py").write_text(script)
        executable(root / "init", _INIT.format(modules=" ".join(modules), python=python))
        archive = folder / "initramfs"
        with archive.open("wb") as out:
            names = "\n".join(str(p.relative_to(root)) for p in sorted(root.rglob("*")))
            subprocess.run(
                ["cpio", "--quiet", "-o", "-H", "newc"], cwd=root, input=names.encode(),
                stdout=out, timeout=300, check=True,
            )  # fmt: skip
        return archive


def marks(machine: Guest | str) -> list[pytest.MarkDecorator]:
    """Those of a test with this guest, or with why there is none."""
    return [
        # A guest without KVM takes a minute of a processor.
        pytest.mark.slow,
        pytest.mark.timeout(600),
        pytest.mark.skipif(isinstance(machine, str), reason=str(machine)),
    ]


def guest(modules: Sequence[str], programs: Sequence[str]) -> Guest | str:
    """A kernel with these modules, on a machine with these programs; or why there is none."""
    lacking = [name for name in (*_PROGRAMS, *programs) if shutil.which(name, path=_PATH) is None]
    if lacking:
        return f"not installed: {', '.join(lacking)}"
    fetched = Path(__file__).parents[1] / ".venv/share/kernel"
    folder = Path(os.environ.get("EEIO_QEMU", fetched))
    for image in sorted(folder.glob("boot/vmlinuz-*"), reverse=True):
        found = folder / "lib/modules" / image.name.removeprefix("vmlinuz-")
        if all(any(found.rglob(f"{name}.ko")) for name in modules):
            return Guest(image, found)
    return f"{folder}: no kernel with {', '.join(modules)} (scripts/setup --test fetches one)"


def _libraries(program: Path) -> set[Path]:
    """The shared libraries that a program or an extension loads."""
    done = subprocess.run(
        ["ldd", str(program)], capture_output=True, text=True, timeout=300, check=False
    )
    return {Path(word) for word in re.findall(r"(/\S+) \(0x", done.stdout)}


def _place(root: Path, file: Path) -> None:
    target = root / file.relative_to("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(file, target)
