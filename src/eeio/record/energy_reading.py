"""The energy of a power domain over a window, as meters report it and records contain it."""

from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, Literal

from eeio.record.reasons import CALIBRATED, low_coverage, no_positive_power
from eeio.units import quantities as q

Kind = Literal["measured", "device-reported", "modelled", "demo"]
Domain = Literal["system", "module", "package", "dram", "device", "accelerator"]

KINDS: tuple[Kind, ...] = ("measured", "device-reported", "modelled", "demo")
DOMAINS: tuple[Domain, ...] = ("system", "module", "package", "dram", "device", "accelerator")
"""The widest first: a value for the complete machine is the most useful. `module`: processors and
memory on a separate board (Jetson, Grace Hopper, the rails of a Raspberry Pi 5), without the drives
and the supply of the system around it. `accelerator`: GPUs, which are the last choice for the
energy of storage."""
DOMAINS_WITHOUT_DRIVES: tuple[Domain, ...] = ("module", "package", "dram", "accelerator")
COST_DOMAINS: tuple[Domain, ...] = tuple(domain for domain in DOMAINS if domain != "accelerator")
"""Domains whose energy may be the cost of I/O. fio and the other profiles do not use a GPU: what it
draws meanwhile is recorded and is no cost of their I/O."""
SEVERAL: tuple[Domain, ...] = ("device", "accelerator")
"""Domains of which a machine may have several, each with a meter; they may be idle for long."""
MARKS = {"modelled": "ESTIMATE", "demo": "DEMO"}
"""Mark of a figure without measured power, by the kind of its readings."""


@dataclass(frozen=True, slots=True)
class EnergyReading:
    """Energy of one power domain over one window, as one meter saw it.

    `kind` is `measured`, `device-reported`, `modelled` or `demo` (fictitious). An invalid reading
    has no power, energy or uncertainty (they are None, never 0) and has the cause in `reasons`. A
    valid one may have reasons too: they are remarks.
    """

    domain: Annotated[str, DOMAINS]
    meter: str
    kind: Annotated[str, KINDS]
    power_w: Annotated[float, q.MEAN_POWER] | None
    """Mean power over the window, W."""
    energy_j: Annotated[float, q.WINDOW_ENERGY] | None
    """Energy of the window, J."""
    uncertainty_j: Annotated[float, q.ENERGY] | None
    """Uncertainty of `energy_j`, J: see `eeio_power.energy`."""
    coverage: Annotated[float, q.SHARE]
    """Share of the window that readings account for, 0 to 1."""
    largest_gap_s: Annotated[float, q.DURATION] | None
    """Longest time between two readings that touches the window, s; None without readings."""
    samples: Annotated[int, q.COUNT]
    """Readings inside the window."""
    lost: Annotated[int, q.COUNT]
    """Readings that the meter's period promised and that did not come."""
    valid: bool
    reasons: tuple[str, ...] = ()
    includes: tuple[str, ...] = field(default=(), metadata={"later": True})
    """Parts of the machine in the domain, by its meter; empty if unknown."""
    leaves_out: tuple[str, ...] = field(default=(), metadata={"later": True})
    doubtful: bool = field(default=False, metadata={"later": True})
    """Another meter contradicts it, or it contradicts itself: `reasons` name both."""
    rule: str | None = field(default=None, metadata={"later": True})
    """Which rule chose which of the meter's sensors, and which it does not count; None if the meter
    has one source."""

    @property
    def key(self) -> tuple[str, str, str]:
        """Its source: domain, meter and kind."""
        return self.domain, self.meter, self.kind

    @property
    def leaves_drives_out(self) -> bool:
        """Whether the power excludes the drives, so that its MB/J is not the storage's."""
        return "drives" in self.leaves_out or self.domain in DOMAINS_WITHOUT_DRIVES

    @property
    def calibration(self) -> str | None:
        """The calibration that changed its power; None without one."""
        for reason in self.reasons:
            if reason.startswith(CALIBRATED):
                return reason
        return None

    @property
    def uncertainty_relative(self) -> float | None:
        """The uncertainty as a share of the energy; None without one, and of 0 J."""
        if self.uncertainty_j is None or not self.energy_j:
            return None
        share = self.uncertainty_j / abs(self.energy_j)
        if q.FIGURE.contains(share):
            return share
        return None

    @property
    def why_not_ranked(self) -> str | None:
        """The reason where too little of the window was seen, or too little power, to compare it
        with others."""
        if not self.valid:
            return None
        if self.power_w is not None and self.power_w <= 0.0:
            return f"{self.meter}: {no_positive_power(self.power_w)}"
        if self.coverage >= q.LEAST_COVERAGE:
            return None
        return f"{self.meter}: {low_coverage(self.coverage)}"

    def to_json(self) -> dict[str, Any]:
        """The reading as plain JSON types, one key a field."""
        return {
            **asdict(self),
            "reasons": list(self.reasons),
            "includes": list(self.includes),
            "leaves_out": list(self.leaves_out),
        }
