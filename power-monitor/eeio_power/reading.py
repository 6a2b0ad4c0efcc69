"""What a meter says about one window: energy with its uncertainty, or the reason why not."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

Kind = Literal["measured", "device-reported", "modelled", "demo"]
Domain = Literal["system", "module", "package", "dram", "device"]
Content = Literal["processor", "memory", "gpu", "board", "drives", "network", "fans", "supply"]

KINDS: tuple[Kind, ...] = ("measured", "device-reported", "modelled", "demo")
DOMAINS: tuple[Domain, ...] = ("system", "module", "package", "dram", "device")
"""The widest first. `module`: processors and memory on a board of their own (Jetson, Grace Hopper,
the rails of a Raspberry Pi 5), without the drives and the supply of the system around it."""

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


@dataclass(frozen=True)
class EnergyReading:
    """The energy of one power domain over one window, as one meter saw it.

    An invalid reading has no power, energy or uncertainty (they are None, never 0) and says why
    in `reasons`. A valid reading may carry reasons too: they are remarks.
    """

    domain: Domain
    meter: str
    kind: Kind
    power_w: float | None
    """Mean power over the window, W."""
    energy_j: float | None
    """Energy of the window, J."""
    uncertainty_j: float | None
    """Limit of error of `energy_j`, J: see `eeio_power.energy`."""
    coverage: float
    """Share of the window that readings account for, 0 to 1."""
    largest_gap_s: float | None
    """Longest time between two readings that touches the window, s; None without readings."""
    samples: int
    """Readings inside the window."""
    lost: int
    """Readings that the meter's period promised and that did not come."""
    valid: bool
    reasons: tuple[str, ...]
    includes: tuple[Content, ...] = ()
    """What of the machine is in it: `Contents`."""
    leaves_out: tuple[Content, ...] = ()
    doubtful: bool = False
    """Another meter contradicts it, or it contradicts itself: `reasons` say which and how."""

    def to_json(self) -> dict[str, Any]:
        """The reading as plain JSON types, one key a field."""
        return {
            **asdict(self),
            "reasons": list(self.reasons),
            "includes": list(self.includes),
            "leaves_out": list(self.leaves_out),
        }
