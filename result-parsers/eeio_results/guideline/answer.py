"""What a guideline says: figures with intervals, deployments, money; each None with its reason."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from eeio_results.guideline.servers import Costs
from eeio_results.guideline.workload import CellKey, Workload
from eeio_results.statistics.bootstrap import Estimate

if TYPE_CHECKING:
    from eeio_results.guideline.cost import Cost, LessPerTb

Choice = Literal["medians", "best-worst"]
DeploymentKind = Literal["fractional", "whole", "asked"]
Outcome = Literal["pays-back", "never", "at-once", "until"]

CHOICES: Mapping[Choice, str] = {
    "medians": "medians of the one variant of each system",
    "best-worst": (
        "the traditional system's variant of highest median bandwidth against the low-power "
        "system's of lowest, each with its own power (docs/method.md)"
    ),
}


@dataclass(frozen=True)
class ServerFigures:
    """One system under the mix, one server."""

    name: str
    bandwidth_bytes_per_s: Estimate
    power_w: Estimate
    energy_j_per_byte: Estimate
    idle_power_w: float | None
    price: float | None


@dataclass(frozen=True)
class ExperimentComparison:
    """One experiment on both systems, or the reason why it cannot be compared.

    `share` is None outside the mix. `saves` is whether (B_ts / B_lp) P_lp < P_ts: None when the
    interval of the product holds 1 or there is none.
    """

    key: CellKey
    share: float | None
    traditional_variant: str | None
    low_power_variant: str | None
    bandwidth_ratio: Estimate
    power_ratio: Estimate
    energy_per_byte_change: Estimate
    saves: bool | None
    reason: str | None

    @property
    def label(self) -> str:
        return self.key.label


@dataclass(frozen=True)
class Change:
    """Relative bandwidth change of one experiment or operation; 0.25 is 25 % more."""

    label: str
    in_mix: bool
    change: Estimate


@dataclass(frozen=True)
class Money:
    """What a deployment costs against the traditional server, in the currency of `Costs`.

    `outcome`: pays-back (dearer to buy, cheaper to run: `break_even_years`), at-once (cheaper in
    both: 0 years), until (cheaper to buy, dearer to run: cheaper only until `break_even_years`),
    never. `break_even_price_per_kwh` and `break_even_server_price` make both cost the same after
    the `years` of `Costs`.
    """

    purchase_difference: Estimate
    energy_saving_kwh_per_year: Estimate
    running_saving_per_year: Estimate
    saving_after_years: Estimate
    outcome: Outcome | None
    break_even_years: Estimate
    break_even_price_per_kwh: Estimate
    break_even_server_price: Estimate


@dataclass(frozen=True)
class Deployment:
    """A number of low-power servers in place of one traditional server.

    `power_change` compares busy power, P = servers x P_lp against P_ts: -0.2 is 20 % less.
    """

    kind: DeploymentKind
    servers: Estimate
    power_change: Estimate
    bandwidth_change: Estimate
    operations: tuple[Change, ...]
    experiments: tuple[Change, ...]
    money: Money | None


@dataclass(frozen=True)
class Guideline:
    """The answer. `ratio` is B_ts / B_lp; without it `reason` says what is missing."""

    workload: Workload
    costs: Costs | None
    choice: Choice
    combination: str
    confidence: float
    resamples: int
    seed: int
    traditional: ServerFigures
    low_power: ServerFigures
    ratio: Estimate
    power_ratio: Estimate
    energy_per_byte_change: Estimate
    saves: bool | None
    deployments: tuple[Deployment, ...]
    experiments: tuple[ExperimentComparison, ...]
    messages: tuple[str, ...]
    reason: str | None
    per_tb: "tuple[Cost, ...]" = ()
    less_per_tb: "tuple[LessPerTb, ...]" = ()
    """What a TB costs on either system, the traditional one first; none where nobody asked."""
