"""The examined machine: this one at `/`, or a described one below `root`."""

import os
import re
import shutil
from pathlib import Path

from eeio.files.inputs import whole_number

HERE = Path("/")

FOLDERS = ("usr/local/sbin", "usr/local/bin", "usr/sbin", "usr/bin", "sbin", "bin")
"""Where programs of another machine are looked for; their files are empty there."""


def which(name: str, root: Path = HERE) -> str | None:
    """Where a program is, None where it is not."""
    if root == HERE:
        return shutil.which(name)
    for folder in FOLDERS:
        if (root / folder / name).exists():
            return f"/{folder}/{name}"
    return None


def user_id(root: Path = HERE) -> int:
    """The effective user id; of another machine root's, unless its /proc/self/status tells one."""
    if root == HERE:
        return os.geteuid()
    try:
        text = (root / "proc/self/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    match = re.search(r"^Uid:\s+\d+\s+(\d+)", text, re.MULTILINE)
    return (whole_number(match[1]) if match else None) or 0


def memory_bytes(root: Path = HERE) -> int:
    """Physical memory; 0 if another machine's /proc/meminfo does not contain it."""
    if root == HERE:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        text = (root / "proc/meminfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    match = re.search(r"^MemTotal:\s+(\d+) kB$", text, re.MULTILINE)
    return 1024 * ((whole_number(match[1]) if match else None) or 0)
