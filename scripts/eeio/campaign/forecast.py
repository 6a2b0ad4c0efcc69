"""How long a campaign takes, and how much it writes: what `eeio plan` answers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from eeio.campaign.adaptive import most_repetitions
from eeio.campaign.plan import Plan
from eeio.profiles.suite import Suite
from eeio_results.campaign import PlannedRun

# Where between the least and the most an adaptive campaign is forecast to end: nobody knows before
# how much its experiments scatter.
_SHARE_MADE = 1 / 3


@dataclass(frozen=True)
class Forecast:
    """Times in seconds. `least_s` and `most_s` are the same where the protocol is not adaptive, and
    `fixed_s` is that of the same sizes with a fixed number of repetitions. `runs` are the least,
    `bytes_written` the most."""

    runs: int
    expected_s: float
    least_s: float
    most_s: float
    fixed_s: float
    bytes_written: int

    def to_json(self) -> dict[str, float]:
        """The contract of `eeio plan --format json`."""
        return {
            "runs": self.runs,
            "expected_s": self.expected_s,
            "least_s": self.least_s,
            "most_s": self.most_s,
            "fixed_s": self.fixed_s,
            "bytes_written": self.bytes_written,
        }


def forecast(plan: Plan, suite: Suite) -> Forecast:
    """Of a plan that `plan.make` made of the suite."""
    rule = plan.protocol.adaptive
    if rule is None:
        whole = plan.expected_s
        return Forecast(len(plan.runs), whole, whole, whole, whole, plan.bytes_written)
    least_n = plan.protocol.repetitions
    most = _with(plan, [most_repetitions(p, rule, least_n) for p in plan.experiments])
    least_s = _settled(plan, rule.settle_least_s).expected_s
    longer_s = _settled(most, rule.settle_least_s).expected_s
    fixed = suite.protocol(plan.sizes_preset)
    fixed_plan = replace(
        _with(plan, [fixed.repetitions] * len(plan.experiments)),
        protocol=replace(plan.protocol, settle_s=fixed.settle_s, adaptive=None),
    )
    return Forecast(
        runs=len(plan.runs),
        expected_s=least_s + _SHARE_MADE * (longer_s - least_s),
        least_s=least_s,
        most_s=_settled(most, rule.settle_most_s).expected_s,
        fixed_s=fixed_plan.expected_s,
        bytes_written=most.bytes_written,
    )


def _with(plan: Plan, repetitions: Sequence[int]) -> Plan:
    """The plan with so many repetitions of each experiment, in any order."""
    runs = [
        (planned, repetition + 1)
        for planned, many in zip(plan.experiments, repetitions, strict=True)
        for repetition in range(many)
    ]
    return replace(
        plan, runs=tuple(PlannedRun(k, planned, n, 1) for k, (planned, n) in enumerate(runs))
    )


def _settled(plan: Plan, settle_s: float) -> Plan:
    return replace(plan, protocol=replace(plan.protocol, settle_s=settle_s))
