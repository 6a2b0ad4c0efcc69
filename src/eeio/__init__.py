"""The `eeio` command: campaigns over PTS profiles and suites, and the target they run on."""

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eeio.measure.block_energy import energy as energy

__version__ = "1.0.0"

# Before anything that an older Python cannot read: it would fail far from the reason.
if sys.version_info < (3, 11):  # noqa: UP036
    raise SystemExit(
        f"eeio: this is Python {sys.version_info[0]}.{sys.version_info[1]}; eeio requires 3.11 "
        "or newer. Run scripts/setup for instructions"
    )


def __getattr__(name: str) -> Any:
    """`eeio.energy`, which most programs that import eeio do not use."""
    if name == "energy":
        from eeio.measure.block_energy import energy

        return energy
    raise AttributeError(f"module 'eeio' has no attribute {name!r}")
