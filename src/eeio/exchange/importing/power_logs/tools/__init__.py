"""One module for each program that logs power: how its log is recognized, and how it is read.

Each has `LOGS`. They are found by their modules, so no list names the programs.
"""

import importlib
import pkgutil
from functools import cache

from eeio.exchange.importing.power_logs.format import LogFormat


@cache
def every() -> tuple[LogFormat, ...]:
    """Of all programs, in the order of their names."""
    modules = (
        importlib.import_module(f"{__name__}.{module.name}")
        for module in pkgutil.iter_modules(__path__)
    )
    return tuple(form for module in modules for form in module.LOGS)
