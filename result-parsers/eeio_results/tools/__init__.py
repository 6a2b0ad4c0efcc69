"""One file a benchmark: what the tool wrote -> metrics in SI units.

A profile `eeio-NAME-x.y.z` is read by the module `eeio_results.tools.NAME`, found by that name;
a profile without a module of its own writes `eeio.json` and is read by `native`. Each module has

    def parse(capture: Capture) -> ToolResult

and raises ToolOutputError when the output is not whole or not this tool's.
"""

import importlib
import importlib.util
from typing import Protocol, cast

from eeio_results.tools.capture import Capture, ToolResult


class _Parser(Protocol):
    def parse(self, capture: Capture) -> ToolResult: ...


def parse(tool: str, capture: Capture) -> ToolResult:
    """The metrics of one invocation of `tool`, from what was kept of it."""
    name = f"{__name__}.{tool}"
    if importlib.util.find_spec(name) is None:
        name = f"{__name__}.native"
    return cast(_Parser, importlib.import_module(name)).parse(capture)
