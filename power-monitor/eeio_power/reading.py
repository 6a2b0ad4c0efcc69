"""The parts of a machine in a power domain, and a meter's energy of a window."""

from dataclasses import dataclass
from typing import Literal

from eeio.record.energy_reading import DOMAINS as DOMAINS
from eeio.record.energy_reading import KINDS as KINDS
from eeio.record.energy_reading import SEVERAL as SEVERAL
from eeio.record.energy_reading import Domain as Domain
from eeio.record.energy_reading import EnergyReading as EnergyReading
from eeio.record.energy_reading import Kind as Kind

Content = Literal["processor", "memory", "gpu", "board", "drives", "network", "fans", "supply"]

CONTENTS: tuple[Content, ...] = (
    "processor",
    "memory",
    "gpu",
    "board",
    "drives",
    "network",
    "fans",
    "supply",
)
"""`supply`: the losses of the power supply; `gpu`: accelerators on separate cards or modules;
`board`: voltage regulators, chip sets and other parts of the main board."""


@dataclass(frozen=True)
class Contents:
    """The parts of a machine in a power domain, according to its meter.

    Parts in neither list are unknown, or not present on every machine.
    """

    includes: tuple[Content, ...] = ()
    leaves_out: tuple[Content, ...] = ()

    def text(self) -> str:
        """`processor, memory; without drives`; empty if unknown."""
        parts = []
        if self.includes:
            parts = [", ".join(self.includes)]
        if self.leaves_out:
            parts.append(f"without {', '.join(self.leaves_out)}")
        return "; ".join(parts)


UNKNOWN = Contents()


def only(*includes: Content) -> Contents:
    """A domain with only these parts."""
    return Contents(includes, tuple(c for c in CONTENTS if c not in includes))


def all_but(*leaves_out: Content, unknown: tuple[Content, ...] = ()) -> Contents:
    """A domain with all parts except these; `unknown` parts are undetermined."""
    includes = tuple(c for c in CONTENTS if c not in leaves_out and c not in unknown)
    return Contents(includes, leaves_out)


WALL = all_but()
"""Between the wall and the machine's supply."""
MACHINE = all_but(unknown=("supply",))
"""A complete machine by its sensors: before or after the supply is unknown."""
BEHIND_SUPPLY = all_but("supply")
"""A complete machine, on the direct-current side."""
MODULE = Contents(("processor", "memory"), ("drives", "fans", "supply"))


def joined(parts: tuple[Contents, ...]) -> Contents:
    """For a sum: parts that every summand excludes are excluded; parts in any summand are
    included."""
    return Contents(
        tuple(c for c in CONTENTS if any(c in part.includes for part in parts)),
        tuple(c for c in CONTENTS if parts and all(c in part.leaves_out for part in parts)),
    )
