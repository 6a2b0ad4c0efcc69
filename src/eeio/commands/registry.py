"""The list of all commands, by groups of the help; each is imported when it is called.

Each file offers `add_parser(subparsers)`. A new command becomes a sub-command of one of these: a
file in the command's folder and an entry here (docs/decisions/0041-fourteen-commands.md).
"""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse


@dataclass(frozen=True)
class Family:
    """A command that consists of sub-commands."""

    help: str
    commands: Mapping[str, str]
    """The file of each sub-command, in the order of the help."""


GROUPS: dict[str, dict[str, str | Family]] = {
    "Measure": {
        "run": "run",
        "resume": "resume",
        "bench": "bench",
        "record": Family(
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
        "study": Family(
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
        "export": Family(
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
        "meter": Family(
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
        "drive": Family("power states of a drive", {"states": "drive.states"}),
    },
}
"""The commands in the order of `eeio --help`: the file of each, or its sub-commands."""

FURTHER: dict[str, str | Family] = {
    "plan": "plan",
    "rm": "rm",
    "profile": Family(
        "install a test profile or make one",
        {"install": "profile.install", "new": "profile.new"},
    ),
    "completion": "completion",
}
"""Commands that `eeio --help` mentions next to another one, or in its last lines."""

NEXT_TO = {"run": "plan", "list": "rm"}
"""The further command that `eeio --help` shows in the line of another one."""

COMMANDS = {name: of for group in (*GROUPS.values(), FURTHER) for name, of in group.items()}


def add(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str) -> None:
    """Adds a command. Raises KeyError for one that there is not."""
    of = COMMANDS[name]
    if isinstance(of, str):
        _imported(of).add_parser(subparsers)
        return
    parser = subparsers.add_parser(
        name, help=of.help, description=f"{of.help[0].upper()}{of.help[1:]}."
    )
    actions = parser.add_subparsers(dest=f"{name}_command", metavar="COMMAND", required=True)
    for file in of.commands.values():
        _imported(file).add_parser(actions)


def import_all() -> None:
    """Imports the file of every command."""
    for of in COMMANDS.values():
        for file in [of] if isinstance(of, str) else of.commands.values():
            _imported(file)


def _imported(name: str) -> ModuleType:
    return importlib.import_module(f"eeio.commands.{name}")
