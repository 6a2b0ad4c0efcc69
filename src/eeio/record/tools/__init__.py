"""One module per benchmark: the tool's output -> metrics in SI units.

A profile `eeio-NAME-x.y.z` is read by the module `eeio_parsers.NAME.run`, found by that name there
or in the folders of EEIO_PARSERS (docs/how-to/adding-a-profile.md); a profile without a module
writes `eeio.json` and is read by `native`, or writes `figures.json` next to its program's output
(`eeio profile new`) and is read by `figures`. Each module has

    def parse(capture: Capture) -> ToolResult

and raises ToolOutputError when the output is incomplete or not this tool's. `ABOUT` says how
reports name its experiments and what its bytes are (`description.About`).
"""

import importlib
import os
from functools import cache
from typing import Protocol, cast

from eeio.errors import EeioError, LimitError, ToolOutputError
from eeio.files.modules import Modules
from eeio.record.tools.capture import Capture, ToolResult, naming
from eeio.record.tools.description import About


class _Parser(Protocol):
    def parse(self, capture: Capture) -> ToolResult: ...


_WITHOUT_MODULE = ("figures", "native")
_MODULES = Modules("parser", "eeio_parsers", "EEIO_PARSERS", _WITHOUT_MODULE, part="run")
_FIGURES = "figures.json"


def check(tool: str) -> None:
    """Raises EeioError if the parser of a tool cannot be imported, or is none."""
    _parser(tool)


def names() -> list[str]:
    """Names of all parsers, including the user's. Raises EeioError."""
    try:
        return sorted([*_MODULES.names(), *_WITHOUT_MODULE])
    except LimitError as error:
        raise EeioError(str(error)) from error


def about(tool: str) -> About:
    """What its module says about a tool; `About()` without a module. Raises EeioError for a module
    that cannot be imported."""
    return _about(tool, os.environ.get(_MODULES.variable, ""))


@cache
def _about(tool: str, folders: str) -> About:
    try:
        module = _MODULES.load(tool)
    except LimitError as error:
        raise EeioError(str(error)) from error
    told = getattr(module, "ABOUT", About())
    if not isinstance(told, About):
        raise EeioError(f"the parser {tool!r}: ABOUT is no About of eeio.record.tools.description")
    return told


def parse(tool: str, capture: Capture) -> ToolResult:
    """The metrics of one invocation of `tool`, from its stored output.

    Raises ToolOutputError, also for unexpected errors: one output must not end a campaign.
    MemoryError is unrelated to the output: the campaign stops, and no run is stored as invalid.
    """
    has_figures = (capture.directory / _FIGURES).is_file()
    parser = _parser(tool, "figures" if has_figures else "native")
    try:
        with naming(str(capture.directory)):
            return parser.parse(capture)
    except (EeioError, MemoryError):
        raise
    except Exception as error:  # any error: the raw output is stored and can be read again
        raise ToolOutputError(
            f"{capture.directory}: the parser of {tool} failed with {error!r:.200}; the tool's "
            "output is stored there: please report it with this message"
        ) from error


def _parser(tool: str, otherwise: str = "native") -> _Parser:
    try:
        module = _MODULES.load(tool)
    except LimitError as error:
        raise EeioError(str(error)) from error
    if module is None:
        module = importlib.import_module(f"{__name__}.{otherwise}")
    if not callable(getattr(module, "parse", None)):
        where = getattr(module, "__file__", tool)
        raise EeioError(f"the parser {tool!r} ({where}) has no function parse(capture)")
    return cast(_Parser, module)
