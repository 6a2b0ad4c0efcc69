"""The power states of an ATA drive, through hdparm: asked, and brought into standby."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Literal

from eeio_results.errors import EeioError

State = Literal["active/idle", "standby", "sleeping"]

_TIMEOUT_S = 60
_PATH = ":/usr/sbin:/sbin"


def state_of(node: Path) -> State:
    """What the drive says (hdparm -C). EeioError when it knows no power states."""
    said = _hdparm("-C", node)
    match = re.search(r"drive state is:\s*(active/idle|standby|sleeping)", said)
    if match is None:
        last = said.strip().splitlines()[-1] if said.strip() else "nothing"
        raise EeioError(f"{node} tells no power state (hdparm -C said: {last})")
    return match[1]  # type: ignore[return-value]


def put_into_standby(node: Path) -> None:
    """Spins the drive down (hdparm -y), proved by asking. The next access wakes it."""
    _hdparm("-y", node)
    found = state_of(node)
    if found != "standby":
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
    return done.stdout
