"""What a meter says about one window: energy with its uncertainty, or the reason why not."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

Kind = Literal["measured", "device-reported", "modelled"]
Domain = Literal["system", "package", "dram", "device"]

KINDS: tuple[Kind, ...] = ("measured", "device-reported", "modelled")
DOMAINS: tuple[Domain, ...] = ("system", "package", "dram", "device")


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

    def to_json(self) -> dict[str, Any]:
        """The reading as plain JSON types, one key a field."""
        return {**asdict(self), "reasons": list(self.reasons)}
