"""A guideline's result: figures with intervals, deployments, money; each None with its reason."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from eeio.guideline.cost_inputs import CostInputs
from eeio.guideline.servers import Costs
from eeio.guideline.workload import CellKey, Workload
from eeio.statistics.bootstrap import Estimate

Choice = Literal["medians", "best-worst"]
DeploymentKind = Literal["fractional", "whole", "asked"]
Outcome = Literal["pays-back", "never", "at-once", "until"]

CHOICES: Mapping[Choice, str] = {
    "medians": "medians of the one variant of each system",
    "best-worst": (
        "the traditional system's variant of highest median bandwidth against the low-power "
        "system's of lowest, each with its variant's power "
        "(docs/explanation/guideline-and-cost.md)"
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
    interval of the product contains 1 or there is none.
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
    """The cost of a deployment compared with the traditional server, in the currency of `Costs`.

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


STEP = 0.1
"""Of the sensitivities: each input 10 % larger."""


@dataclass(frozen=True)
class Sensitivity:
    """The relative change of an answer where one input is 10 % larger: 0.04 is 4 % more. None with
    its reason where the larger input cannot be."""

    answer: str
    input: str
    change: float | None
    reason: str | None = None


@dataclass(frozen=True)
class CostPart:
    """A part of an answer; the parts of one answer add up to it."""

    answer: str
    name: str
    value: float


@dataclass(frozen=True)
class CostAtDuty:
    """The answers if the machine moves bytes in that share of the time; None without an input."""

    duty: float
    kwh_per_tb: float | None
    money_per_tb: float | None
    g_co2e_per_tb: float | None


@dataclass(frozen=True)
class ShareOfWork:
    """An experiment of the mix: its share, and its J/GB while it is busy."""

    label: str
    share: float
    bandwidth_bytes_per_s: Estimate
    power_w: Estimate
    j_per_gb: Estimate


@dataclass(frozen=True)
class Cost:
    """The answers. `j_per_gb` is of the machine itself, including idle time between; the kWh
    include PUE. `money_per_tb` and `g_co2e_per_tb` are the sums of the parts below them; parts that
    were not requested are None with their reason. Figures in `_tb_year` are for storage."""

    system: str
    workload: str
    combination: str
    inputs: CostInputs
    confidence: float
    resamples: int
    seed: int
    idle_power_w: float | None
    mix: tuple[ShareOfWork, ...]
    j_per_gb: Estimate
    kwh_per_tb: Estimate
    money_per_tb: Estimate
    electricity_per_tb: Estimate
    purchase_per_tb: Estimate
    g_co2e_per_tb: Estimate
    g_co2e_operation_per_tb: Estimate
    g_co2e_embodied_per_tb: Estimate
    kwh_per_tb_year: Estimate
    money_per_tb_year: Estimate
    g_co2e_per_tb_year: Estimate
    sensitivities: tuple[Sensitivity, ...] = ()
    messages: tuple[str, ...] = field(default=())
    parts: tuple[CostPart, ...] = ()
    by_duty: tuple[CostAtDuty, ...] = ()
    """From a duty cycle of 1 % to 100 %; empty without idle power."""


ANSWERS = (
    "j_per_gb",
    "kwh_per_tb",
    "money_per_tb",
    "electricity_per_tb",
    "purchase_per_tb",
    "g_co2e_per_tb",
    "g_co2e_operation_per_tb",
    "g_co2e_embodied_per_tb",
    "kwh_per_tb_year",
    "money_per_tb_year",
    "g_co2e_per_tb_year",
)
MOVED = ("kwh_per_tb", "money_per_tb", "g_co2e_per_tb")
"""Answers for a moved TB that have parts, and a value for each duty cycle."""
HEADLINES = (
    "j_per_gb",
    "kwh_per_tb",
    "money_per_tb",
    "g_co2e_per_tb",
    "kwh_per_tb_year",
    "money_per_tb_year",
    "g_co2e_per_tb_year",
)
"""Answers with sensitivities: the others are their parts."""


@dataclass(frozen=True)
class LessPerTb:
    """Which of two systems costs less per TB. `ratio` is the second's kWh (`kwh_per_tb`) or money
    (`money_per_tb`) over the first's; `less` is the name of the one that costs less, None where the
    interval of the ratio contains 1, or there is none."""

    answer: str
    first: str
    second: str
    ratio: Estimate
    less: str | None


@dataclass(frozen=True)
class Guideline:
    """The answer. `ratio` is B_ts / B_lp; without it `reason` is what is missing."""

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
    per_tb: tuple[Cost, ...] = ()
    less_per_tb: tuple[LessPerTb, ...] = ()
    """The cost of a TB on either system, the traditional one first; empty if not requested."""
