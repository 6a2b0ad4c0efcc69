"""A hwmon class folder with chips made of files."""

from collections.abc import Mapping
from pathlib import Path

from tests.simulators.files import write_atomically

Value = int | str


class FakeHwmon:
    """A hwmon class folder at `root`.

    Values stand in the kernel's units: uW in `power1_input`, uJ in `energy1_input`, mV in
    `in1_input`, mA in `curr1_input`.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._count = 0
        root.mkdir(parents=True, exist_ok=True)

    def add_chip(self, name: str, files: Mapping[str, Value]) -> Path:
        """Add `hwmonN` with that name and those files; returns its folder."""
        folder = self.root / f"hwmon{self._count}"
        folder.mkdir()
        self._count += 1
        write_atomically(folder / "name", name)
        for file, value in files.items():
            self.set(folder, file, value)
        return folder

    def set(self, folder: Path, file: str, value: Value) -> None:
        """Give one file a new value."""
        write_atomically(folder / file, str(value))

    def remove(self, folder: Path, file: str) -> None:
        """Take a file away: reading it fails from now on."""
        (folder / file).unlink()
