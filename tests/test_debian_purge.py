"""What a purge of the Debian packages deletes: locks of eeio, and no file of another program."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(("action", "deleted"), [
    ("purge", {"eeio-machine.lock", "eeio-vda.lock"}), ("remove", set()),
])  # fmt: skip
def test_only_locks_are_deleted(tmp_path: Path, action: str, deleted: set[str]) -> None:
    """A user's file of such a name was deleted."""
    text = (ROOT / "debian/eeio-board.postrm").read_text().replace("/tmp/", f"{tmp_path}/")
    files = {
        "eeio-machine.lock": "12-345-dd202ede-4026531836\n",
        "eeio-vda.lock": "",
        "eeio-notes.lock": "a user's text\n",
        "other.lock": "",
    }
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    (tmp_path / "eeio-link.lock").symlink_to(tmp_path / "other.lock")
    subprocess.run(["sh", "-c", text, "postrm", action], check=True)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {*files, "eeio-link.lock"} - deleted
