"""What of a machine a power domain holds, beside the energy that a meter says of a window."""

from dataclasses import dataclass
from typing import Literal

from eeio_limits.reading import DOMAINS as DOMAINS
from eeio_limits.reading import KINDS as KINDS
from eeio_limits.reading import Domain as Domain
from eeio_limits.reading import EnergyReading as EnergyReading
from eeio_limits.reading import Kind as Kind

Content = Literal["processor", "memory", "gpu", "board", "drives", "network", "fans", "supply"]

CONTENTS: tuple[Content, ...] = (
    "processor", "memory", "gpu", "board", "drives", "network", "fans", "supply",
)  # fmt: skip
"""`supply`: the losses of the power supply; `gpu`: accelerators on cards or modules of their own;
`board`: voltage regulators, chip sets and what else stands on the main board."""


@dataclass(frozen=True)
class Contents:
    """What of a machine a power domain holds, as its meter knows it.

    What stands in neither list is not known, or not there on every machine.
    """

    includes: tuple[Content, ...] = ()
    leaves_out: tuple[Content, ...] = ()

    def text(self) -> str:
        """`processor, memory; without drives`; empty where nothing is known."""
        parts = [", ".join(self.includes)] if self.includes else []
        parts += [f"without {', '.join(self.leaves_out)}"] if self.leaves_out else []
        return "; ".join(parts)


UNKNOWN = Contents()


def only(*includes: Content) -> Contents:
    """A domain that holds these and nothing else."""
    return Contents(includes, tuple(c for c in CONTENTS if c not in includes))


def all_but(*leaves_out: Content, unknown: tuple[Content, ...] = ()) -> Contents:
    """A domain that holds everything but these; nobody knows about `unknown`."""
    told = tuple(c for c in CONTENTS if c not in leaves_out and c not in unknown)
    return Contents(told, leaves_out)


WALL = all_but()
"""Between the wall and the machine's supply."""
MACHINE = all_but(unknown=("supply",))
"""A whole machine by its own sensors: whether before or behind the supply, they do not tell."""
BEHIND_SUPPLY = all_but("supply")
"""A whole machine, on the direct-current side."""
MODULE = Contents(("processor", "memory"), ("drives", "fans", "supply"))


def joined(parts: tuple[Contents, ...]) -> Contents:
    """Of a sum: what every part leaves out is left out; what any part holds is in it."""
    return Contents(
        tuple(c for c in CONTENTS if any(c in part.includes for part in parts)),
        tuple(c for c in CONTENTS if parts and all(c in part.leaves_out for part in parts)),
    )
