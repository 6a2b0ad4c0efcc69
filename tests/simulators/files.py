"""Writing a simulated sysfs file."""

import os
from pathlib import Path


def write_atomically(path: Path, text: str) -> None:
    """Replace the file's content so that a reader sees the old or the new text, never half."""
    new = path.with_name(f".{path.name}.new")
    new.write_text(f"{text}\n", encoding="ascii")
    new.replace(path)


def write_in_place(path: Path, text: str, width: int = 20) -> None:
    """Write a number into the same file, for readers that keep it open as they may in sysfs.

    One write of a fixed width, blanks behind the number, so that no shorter text leaves digits.
    """
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        os.pwrite(file, f"{text:<{width}}\n".encode("ascii"), 0)
    finally:
        os.close(file)
