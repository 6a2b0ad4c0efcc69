"""Files of results, and what the importer has to know of a tool beyond its grammar.

A reader's module has `RULES`: the name of each of its tools with its rules.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eeio.record.run import Level
from eeio_parsers.found import FoundReport, to_json


@dataclass
class FoundFile:
    """A file, its reports, and why it was rejected."""

    path: Path
    place: tuple[str, ...]
    """The folders below the argument that it was found in."""
    sha256: str = ""
    tool: str | None = None
    form: str | None = None
    reports: list[FoundReport] = field(default_factory=list)
    rejected: str | None = None
    parsed: Any = None
    """A result file of PTS, which is stored without another reading."""
    above: str = ""
    """The text above its first report; none of JSON, which contains its settings."""
    is_part: bool = False
    """Whether it is a part of another file's results, and has none of its own."""

    @property
    def version(self) -> str | None:
        for report in self.reports:
            if report.version:
                return report.version
        return None

    def reject(self, why: str) -> None:
        self.reports, self.rejected = [], why

    def to_json(self) -> dict[str, Any]:
        return {
            "path": str(self.path),
            "sha256": self.sha256,
            "tool": self.tool,
            "tool_version": self.version,
            "format": self.form,
            "reports": [to_json(report, index) for index, report in enumerate(self.reports)],
            "rejected": self.rejected,
        }


def _never(options: Mapping[str, str]) -> bool:
    return False


def _none(files: Sequence[FoundFile]) -> None:
    pass


def _nothing(file: FoundFile) -> None:
    pass


@dataclass(frozen=True)
class Rules:
    """The rules of one tool."""

    level: Level = "filesystem"
    engine_is_api: bool = False
    """Whether the engine of a phase is the API of its experiment."""
    groups_at_once: bool = False
    """Whether the phases of one group ran at the same time; otherwise one after the other."""
    flushes: Callable[[Mapping[str, str]], bool] = _never
    """Whether the time of writes with these options includes their flush."""
    formats: tuple[str, ...] = ()
    """Further names in a map (`format:`) of this tool's output."""
    reject_repeated: Callable[[Sequence[FoundFile]], None] = _none
    """Rejects, of all files, those of this tool that repeat results of others, or marks them as
    parts of these."""
    remarks: Mapping[str, str] = field(default_factory=dict)
    """On each of its rows in reports, by kind."""
    complete: Callable[[FoundFile], None] = _nothing
    """Adds to the reports of a file what the tool stored in other files next to it. Raises
    ToolOutputError if these contradict it."""
