"""Writing a simulated sysfs file."""

from pathlib import Path


def write_atomically(path: Path, text: str) -> None:
    """Replace the file's content so that a reader sees the old or the new text, never half."""
    new = path.with_name(f".{path.name}.new")
    new.write_text(f"{text}\n", encoding="ascii")
    new.replace(path)
