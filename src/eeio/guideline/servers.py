"""The data on two kinds of server, and the price of electricity."""

from dataclasses import dataclass

from eeio.errors import EeioError
from eeio.guideline.workload import CellKey


@dataclass(frozen=True)
class CellValues:
    """The valid repetitions of one experiment on one system.

    Values at the same place belong to the same repetition: bandwidth and power of one run are of
    the same work. `variant` distinguishes alternatives of one system (its devices: HDD1, HDD2);
    `left_out` is how many repetitions had only one of the two. `durable` is, for writes, whether
    both run until the bytes are on the device; None for reads, and if not known. Raises EeioError
    for tuples of two lengths.
    """

    key: CellKey
    bandwidth_bytes_per_s: tuple[float, ...]
    power_w: tuple[float, ...]
    variant: str = ""
    left_out: int = 0
    durable: bool | None = None
    energy_j_per_gb: tuple[float, ...] = ()
    """Energy over bytes; empty where only bandwidth and power are known."""

    @property
    def why_fewer(self) -> str:
        """How many repetitions are left out."""
        return (
            f"{self.left_out} of {self.left_out + len(self.power_w)} repetitions have no bandwidth "
            "or no power; they are left out"
        )

    @property
    def flushed(self) -> str:
        """As text: the requested flush, and whether it is durable."""
        flush = self.key.flush or "unknown"
        if self.durable is False:
            return f"flush {flush}, not durable"
        return f"flush {flush}"

    def __post_init__(self) -> None:
        if len(self.bandwidth_bytes_per_s) != len(self.power_w):
            raise EeioError(
                f"{self.key.label}: {len(self.bandwidth_bytes_per_s)} bandwidth and "
                f"{len(self.power_w)} power values; give those of the same repetitions"
            )


@dataclass(frozen=True)
class Server:
    """A kind of server. Prices are per server and per device, in any one currency."""

    name: str
    cells: tuple[CellValues, ...]
    idle_power_w: float | None = None
    server_price: float | None = None
    device_price: float | None = None
    devices: int = 1

    @property
    def price(self) -> float | None:
        """One server with its devices; None when a price is not known."""
        if self.server_price is None or (self.device_price is None and self.devices):
            return None
        return self.server_price + self.devices * (self.device_price or 0.0)

    @property
    def why_no_price(self) -> str:
        """The missing part of its price, as text; empty if the price is known."""
        if self.price is not None:
            return ""
        parts = []
        if self.server_price is None:
            parts = ["the server itself"]
        if self.device_price is None and self.devices:
            parts.append("a drive in it (0 if the server's price includes the drives)")
        return f"the price of {self.name} is not known: {' and '.join(parts)}"


@dataclass(frozen=True)
class Costs:
    """The price of electricity, and the period.

    `pue` multiplies both systems' energy. `busy_share` is the part of the time in which the
    traditional server is busy (the rest it idles); None compares both at busy power all the time,
    as the paper's rule does.
    """

    price_per_kwh: float
    years: float
    pue: float = 1.0
    busy_share: float | None = None
    currency: str = ""
