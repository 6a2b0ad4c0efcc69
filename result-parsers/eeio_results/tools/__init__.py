"""One file a benchmark: what the tool wrote -> metrics in SI units.

A profile `eeio-NAME-x.y.z` is read by the module `eeio_results.tools.NAME`, found by that name;
a profile without a module of its own writes `eeio.json` and is read by `native`. Each module has

    def parse(capture: Capture) -> ToolResult

and raises ToolOutputError when the output is not whole or not this tool's.
"""

import importlib
import importlib.util
from typing import Protocol, cast

from eeio_results.errors import EeioError, ToolOutputError
from eeio_results.tools.capture import Capture, ToolResult, naming


class _Parser(Protocol):
    def parse(self, capture: Capture) -> ToolResult: ...


def parse(tool: str, capture: Capture) -> ToolResult:
    """The metrics of one invocation of `tool`, from what was kept of it.

    Raises ToolOutputError, also for what no parser expected: one output must not end a campaign.
    """
    name = f"{__name__}.{tool}"
    if importlib.util.find_spec(name) is None:
        name = f"{__name__}.native"
    parser = cast(_Parser, importlib.import_module(name))
    try:
        with naming(str(capture.directory)):
            return parser.parse(capture)
    except EeioError:
        raise
    except Exception as error:  # whatever it is, the raw output is kept and can be read again
        raise ToolOutputError(
            f"{capture.directory}: the parser of {tool} failed with {error!r:.200}; the tool's "
            "output is kept there: please report it with this message"
        ) from error
