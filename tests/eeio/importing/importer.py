"""`eeio import` as the tests of what it reads use it."""

import json
from pathlib import Path
from typing import Any

from tests.plugin import InProcess


def phases(body: dict[str, Any], place: int = 0) -> list[dict[str, Any]]:
    """Those of a report of the only file."""
    (file,) = body["files"]
    assert file["rejected"] is None
    found: list[dict[str, Any]] = file["reports"][place]["phases"]
    return found


class Importer:
    """What the command prints as JSON; own files are in `folder`."""

    def __init__(self, folder: Path, in_process: InProcess) -> None:
        self.folder = folder
        self._in_process = in_process

    def __call__(self, *arguments: object, code: int = 0) -> dict[str, Any]:
        words = ("import", *map(str, arguments), "--format", "json")
        body: dict[str, Any] = json.loads(self._in_process(*words, code=code).out)
        return body

    def phases(self, source: Path | str) -> list[dict[str, Any]]:
        return phases(self(source, "--dry-run"))

    def phases_of(self, text: str, name: str = "a.txt") -> list[dict[str, Any]]:
        """Of a file with this text."""
        (self.folder / name).write_text(text)
        return self.phases(self.folder / name)

    def rows(self, name: str) -> list[dict[str, Any]]:
        """The report's, of that campaign."""
        report = json.loads(self._in_process("report", name, "--format", "json").out)
        return [row for row in report["characterization"] if row["tool"]]
