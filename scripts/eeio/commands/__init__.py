"""What one can type: a file a group of commands, imported when one of them is called.

Each file offers `add_parser(subparsers)`. A new command is a file and a line here.
"""

import importlib
from types import ModuleType

MODULES = {
    "run": "run",
    "resume": "run",
    "extend": "extend",
    "bench": "bench",
    "plan": "plan",
    "report": "report",
    "compare": "compare",
    "figures": "figures",
    "bundle": "bundle",
    "guideline": "guideline",
    "cost": "cost",
    "reference": "reference",
    "replicate": "replicate",
    "export": "exporting",
    "import": "importing",
    "list": "listing",
    "rm": "rm",
    "trace": "trace",
    "journal": "journal",
    "states": "states",
    "frequency": "frequency",
    "install": "install",
    "new-profile": "new_profile",
    "restore": "restore",
    "doctor": "doctor",
    "power": "power",
    "completion": "completion",
}
"""The file of each command, in the order of `eeio --help`."""


def module(command: str) -> ModuleType:
    """The file of a command. Raises KeyError for one that there is not."""
    return _imported(MODULES[command])


def modules() -> list[ModuleType]:
    """All of them, each once."""
    return [_imported(name) for name in dict.fromkeys(MODULES.values())]


def _imported(name: str) -> ModuleType:
    return importlib.import_module(f"{__name__}.{name}")
