"""The power states of an ATA drive, through hdparm: asked, and brought into standby."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from eeio_results.errors import EeioError

_TIMEOUT_S = 60
_PATH = ":/usr/sbin:/sbin"

IDLE = ("active/idle", "idle", "idle_a", "idle_b", "idle_c")
"""The medium turns. Drives with extended power conditions (EPC, ATA ACS-3) tell their idle states
apart, idle_a to idle_c (0x81 to 0x83); `idle` is 0x80, and `active/idle` is 0xff, any of them."""
STANDBY = ("standby", "standby_y", "standby_z")
"""It does not."""
_STATES = (*IDLE, *STANDBY, "sleeping")
# hdparm then shows what stood in its memory, which is 0 and means standby, and ends with 0.
_NO_ANSWER = "bad/missing sense data"


def state_of(node: Path) -> str:
    """What the drive says (hdparm -C), one of IDLE, STANDBY or `sleeping`. EeioError when it tells
    no power state, or what lies before it passes none on."""
    said = _hdparm("-C", node)
    match = re.search(r"drive state is:\s*(\S+)", said)
    if match is None or match[1] not in _STATES:
        last = said.strip().splitlines()[-1] if said.strip() else "nothing"
        raise EeioError(f"{node} tells no power state (hdparm -C said: {last})")
    return match[1]


def put_into_standby(node: Path) -> None:
    """Spins the drive down (hdparm -y), proved by asking. The next access wakes it."""
    _hdparm("-y", node)
    found = state_of(node)
    if found not in STANDBY:
        raise EeioError(f"{node} was told to stand by and is {found}: something uses it")


def _hdparm(option: str, node: Path) -> str:
    program = shutil.which("hdparm", path=os.environ.get("PATH", os.defpath) + _PATH)
    if program is None:
        raise EeioError("hdparm is missing: install the package hdparm")
    try:
        done = subprocess.run(
            [program, option, str(node)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_TIMEOUT_S,
            text=True,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise EeioError(f"{node}: hdparm {option} did not answer in {_TIMEOUT_S} s") from error
    if done.returncode != 0:
        raise EeioError(f"{node}: hdparm {option} failed: {done.stdout.strip()[-200:]}")
    if _NO_ANSWER in done.stdout:
        raise EeioError(
            f"{node}: what the drive answers does not come through (hdparm {option}: SG_IO: "
            f"{_NO_ANSWER}); USB bridges and RAID controllers do that: connect it to a SATA port"
        )
    return done.stdout
