"""What one can type: a file a group of commands, imported when one of them is called.

Each file offers `add_parser(subparsers)`. A new command is a file and a line here.
"""

import importlib
from types import ModuleType

GROUPS = {
    "Measure": {
        "run": "run",
        "plan": "plan",
        "resume": "run",
        "extend": "extend",
        "bench": "bench",
        "trace": "trace",
        "journal": "journal",
        "frequency": "frequency",
    },
    "Analyse": {
        "report": "report",
        "compare": "compare",
        "cost": "cost",
        "guideline": "guideline",
        "figures": "figures",
        "replicate": "replicate",
        "reference": "reference",
    },
    "Data": {
        "list": "listing",
        "rm": "rm",
        "import": "importing",
        "export": "exporting",
        "bundle": "bundle",
    },
    "System": {
        "doctor": "doctor",
        "power": "power",
        "states": "states",
        "restore": "restore",
        "install": "install",
        "new-profile": "new_profile",
        "completion": "completion",
    },
}
"""The file of each command, in the order of `eeio --help`."""
MODULES = {command: name for group in GROUPS.values() for command, name in group.items()}


def module(command: str) -> ModuleType:
    """The file of a command. Raises KeyError for one that there is not."""
    return _imported(MODULES[command])


def modules() -> list[ModuleType]:
    """All of them, each once."""
    return [_imported(name) for name in dict.fromkeys(MODULES.values())]


def _imported(name: str) -> ModuleType:
    return importlib.import_module(f"{__name__}.{name}")
