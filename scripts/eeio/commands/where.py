"""`--where FACTOR=LEVEL`: which experiments of campaigns a command looks at."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from eeio.arguments import OptionGroup
from eeio.errors import RejectedError

if TYPE_CHECKING:
    from eeio_results.comparison.cells import Cell

FACTORS = (
    "machine",
    "device",
    "type",
    "operation",
    "spatiality",
    "size",
    "buffer",
    "disk",
    "flush",
    "frequency",
    "smt",
    "turbo",
    "level",
)


def add_where(options: OptionGroup) -> None:
    options.add(
        "--where", metavar="FACTOR=LEVEL", action="append", default=[],
        help="only these experiments, e.g. 'size=32 KiB'; repeatable",
    )  # fmt: skip


def wanted(words: Sequence[str], cells: "Sequence[Cell]") -> dict[str, str]:
    """Factor -> level. Raises RejectedError for one that no experiment has."""
    found = {}
    for word in words:
        name, equals, level = word.partition("=")
        if not equals or name not in FACTORS:
            raise RejectedError(
                f"--where {word}: it is FACTOR=LEVEL with one of {', '.join(FACTORS)}"
            )
        known = sorted({cell.factors[name] for cell in cells})
        if level not in known:
            raise RejectedError(f"--where {word}: no experiment; there is {', '.join(known)}")
        found[name] = level
    return found
