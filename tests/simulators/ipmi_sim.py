"""A whole BMC: OpenIPMI's `ipmi_sim` (Debian's package openipmi), taught DCMI's power reading.

    with IpmiSim(folder) as bmc:         # raises PowerError with what is missing
        bmc.power(301)
        open_meters([bmc.spec])          # lanplus on loopback; `environment` has the password

With a `kcs_port` it also listens for QEMU's `ipmi-bmc-extern`, whose guest sees it as /dev/ipmi0.
"""

import shutil
import socket
import subprocess
from pathlib import Path
from typing import Self

from eeio_power.errors import PowerError
from tests.waiting import free_port

USER, PASSWORD = "admin", "password"
SOURCE = Path(__file__).parent / "ipmi_sim_dcmi.c"

_CONFIGURATION = """name "eeio"
set_working_mc 0x20
  loadlib "{library}" "{watts}"
  startlan 1
    addr 127.0.0.1 {port}
    priv_limit admin
    allowed_auths_admin none md2 md5 straight
    guid a123456789abcdefa123456789abcdef
  endlan
{kcs}  user 2 true "{user}" "{password}" admin 10 none md2 md5 straight
"""
_EMULATION = """mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr
sel_enable 0x20 1000 0x0a
mc_enable 0x20
"""
_COMPILE_S = 60.0
_END_S = 10.0


def missing() -> str | None:
    """Which program is not there."""
    programs = {"ipmi_sim": "openipmi", "ipmitool": "ipmitool", "cc": "gcc"}
    lacking = [package for name, package in programs.items() if shutil.which(name) is None]
    return f"not installed: {', '.join(lacking)}" if lacking else None


class IpmiSim:
    """One `ipmi_sim`; its files lie in `folder`, which must be an absolute path."""

    def __init__(self, folder: Path, kcs_port: int | None = None) -> None:
        problem = missing()
        if problem is not None:
            raise PowerError(problem)
        self._folder = folder
        self._watts = folder / "watts"
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port(socket.SOCK_DGRAM)
        self.environment = {"IPMI_PASSWORD": PASSWORD}
        library = folder / "dcmi.so"
        compiling = ["cc", "-Wall", "-Wextra", "-shared", "-fPIC", "-o", str(library), str(SOURCE)]
        subprocess.run(compiling, check=True, timeout=_COMPILE_S)
        self.power(301)
        (folder / "state").mkdir(exist_ok=True)
        kcs = "" if kcs_port is None else f"  serial kcs 127.0.0.1 {kcs_port} codec VM\n"
        (folder / "lan.conf").write_text(
            _CONFIGURATION.format(
                library=library, watts=self._watts, port=self.port, kcs=kcs, user=USER,
                password=PASSWORD,
            )
        )  # fmt: skip
        (folder / "sim.emu").write_text(_EMULATION)

    @property
    def spec(self) -> str:
        return f"ipmi:lanplus,host=127.0.0.1,port={self.port},user={USER}"

    def power(self, watts: int) -> None:
        """What it says from now on."""
        new = self._watts.with_suffix(".new")
        new.write_text(f"{watts}\n")
        new.replace(self._watts)

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            ["ipmi_sim", "-c", "lan.conf", "-f", "sim.emu", "-s", "state", "-n"],
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(_END_S)
