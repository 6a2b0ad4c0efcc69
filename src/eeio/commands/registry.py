"""The list of all commands, by groups of the help; each is imported when it is called.

Each file contains its `COMMAND` (`eeio.options`). A new command becomes a sub-command of one of
these: a file in the command's folder and an entry here (docs/decisions/0041-fourteen-commands.md).
"""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eeio.options import Command, Family


@dataclass(frozen=True)
class SubCommands:
    """A command that consists of sub-commands."""

    help: str
    commands: Mapping[str, str]
    """The file of each sub-command, in the order of the help."""


GROUPS: dict[str, dict[str, str | SubCommands]] = {
    "Measure": {
        "run": "run",
        "resume": "resume",
        "bench": "bench",
        "record": SubCommands(
            "observe one program: power, I/O phases, journal, frequency",
            {
                "power": "record.power",
                "trace": "record.trace",
                "journal": "record.journal",
                "frequency": "record.frequency",
            },
        ),
    },
    "Analyse": {
        "report": "report",
        "compare": "compare",
        "cost": "cost",
        "study": SubCommands(
            "results over time, of many nodes, and published ones",
            {
                "replicate": "study.replicate",
                "reference": "study.reference",
                "history": "study.history",
                "fleet": "study.fleet",
            },
        ),
    },
    "Data": {
        "list": "listing",
        "import": "importing",
        "export": SubCommands(
            "write campaigns for other programs and readers",
            {
                "pts": "export.pts",
                "bundle": "export.bundle",
                "parquet": "export.parquet",
                "query": "export.query",
                "validate": "export.validate",
                "table": "export.table",
            },
        ),
    },
    "System": {
        "doctor": "doctor",
        "meter": SubCommands(
            "list, check, watch and calibrate power meters",
            {
                "list": "meter.list",
                "check": "meter.check",
                "watch": "meter.watch",
                "calibrate": "meter.calibrate",
                "serve": "meter.serve",
                "node": "meter.node",
                "sum": "meter.sum",
            },
        ),
        "drive": SubCommands(
            "power states and review of a drive",
            {"states": "drive.states", "review": "drive.review"},
        ),
    },
}
"""The commands in the order of `eeio --help`: the file of each, or its sub-commands."""

FURTHER: dict[str, str | SubCommands] = {
    "plan": "plan",
    "rm": "rm",
    "profile": SubCommands(
        "install a test profile or make one",
        {"install": "profile.install", "new": "profile.new"},
    ),
    "completion": "completion",
}
"""Commands that `eeio --help` mentions next to another one, or in its last lines."""

NEXT_TO = {"run": "plan", "list": "rm"}
"""The further command that `eeio --help` shows in the line of another one."""

COMMANDS = {name: of for group in (*GROUPS.values(), FURTHER) for name, of in group.items()}


def command(name: str) -> "Command[Any] | Family":
    """A command with its sub-commands. Raises KeyError for one that there is not."""
    files = COMMANDS[name]
    if isinstance(files, str):
        return _imported(files)
    from eeio.options import Family

    return Family(name, files.help, tuple(map(_imported, files.commands.values())))


def import_all() -> None:
    """Imports the file of every command."""
    for name in COMMANDS:
        command(name)


def _imported(file: str) -> "Command[Any] | Family":
    made: Command[Any] | Family = importlib.import_module(f"eeio.commands.{file}").COMMAND
    return made
