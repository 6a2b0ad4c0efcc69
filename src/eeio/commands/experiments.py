"""Options that choose experiments: of which a rule is computed, and `--where FACTOR=LEVEL`."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from eeio.errors import RejectedError
from eeio.options import option
from eeio.record.run import DOMAINS
from eeio.units.amounts import seconds

if TYPE_CHECKING:
    from eeio.comparison.cells import Cell
    from eeio.guideline.measured import Choice
    from eeio.record.store import Campaign


FACTORS = (
    "machine",
    "device",
    "type",
    "operation",
    "spatiality",
    "size",
    "buffer",
    "disk",
    "flush",
    "frequency",
    "smt",
    "turbo",
    "level",
)


LEVELS = ("device", "filesystem", "library", "application")


class ChoiceRequest(Protocol):
    """Which experiments a cost is computed of."""

    @property
    def tool(self) -> str: ...
    @property
    def level(self) -> str: ...
    @property
    def domain(self) -> str | None: ...
    @property
    def max_p99(self) -> float | None: ...


def max_p99_option(group: str) -> Any:
    """The field `max_p99: float | None`, in s."""
    return option(
        "--max-p99",
        value="TIME",
        parse=seconds,
        help="only experiments with p99 latency up to this, e.g. 250us, 5ms",
        group=group,
        rare=True,
    )


def where_option(group: str) -> Any:
    """The field `where: tuple[str, ...]`."""
    return option(
        "--where",
        value="FACTOR=LEVEL",
        repeat=True,
        help="only these experiments, e.g. 'size=32 KiB'; repeatable",
        group=group,
    )


def choice_of(request: ChoiceRequest) -> "Choice":
    from eeio.guideline.measured import Choice

    return Choice(request.tool, request.level, request.domain, request.max_p99)


def chosen_domain(campaigns: "Sequence[Campaign]", choice: "Choice") -> str:
    """Raises RejectedError where no domain has experiments in every campaign, with what to type."""
    from eeio.guideline.measured import LeftOut, cells, domain_of, why_other_contents

    domain = domain_of(campaigns, choice)
    without = [c for c in campaigns if domain is None or not cells(c, choice, domain, {})]
    if domain is not None and not without:
        reason = why_other_contents(campaigns, choice, domain)
        if reason is not None:
            raise RejectedError(f"{reason}. Compare campaigns whose meters include the same parts")
        return domain
    power = "power"
    if choice.domain:
        power = f"power of the {choice.domain}"
    if domain is None:
        without = [c for c in campaigns if not any(_has(c, choice, d) for d in DOMAINS)] or without
    left_out: LeftOut = {}
    for campaign in without:
        cells(campaign, choice, domain or "system", left_out)
    print_left_out(left_out)
    needed = "what a cost needs, see above"
    if not left_out:
        needed = f"both bandwidth and {power}"
    raise RejectedError(
        f"{', '.join(c.name for c in without)}: no experiment of {choice.tool} at the level "
        f"{choice.level} has {needed}" + _what_there_is(campaigns, choice)
    )


def _has(campaign: "Campaign", choice: "Choice", domain: str) -> bool:
    from eeio.guideline.measured import cells

    return bool(cells(campaign, choice, domain, {}))


def _what_there_is(campaigns: "Sequence[Campaign]", choice: "Choice") -> str:
    """Which other domain, or which other tool, to type: those with all that a cost needs."""
    from eeio.guideline.measured import is_enough, measured_domains

    known = [domain for domain in measured_domains(campaigns) if domain != choice.domain]
    if not known:
        return _how_to_power(campaigns)
    text = f"; measured was {', '.join(known)}"
    if choice.domain is not None:
        for domain in known:
            if is_enough(campaigns, replace(choice, domain=domain)):
                return f"{text}: --domain {domain}"
    others = dict.fromkeys(
        (run.experiment.tool, run.experiment.level)
        for campaign in campaigns
        for run in campaign.runs
        if run.experiment.level != "context"
    )
    usable = [
        f"--tool {tool} --level {level}"
        for tool, level in others
        if is_enough(campaigns, replace(choice, tool=tool, level=level))
    ]
    if usable:
        return f"{text}; there is {', '.join(usable)}"
    return f"{text}; no other tool or level has it"


def _how_to_power(campaigns: "Sequence[Campaign]") -> str:
    if all(campaign.design.suite == "imported" for campaign in campaigns):
        return "; they have no power: `eeio import power NAME LOG` adds that of a power log"
    return "; no power was measured: `eeio doctor` shows the meters' requirements"


def print_left_out(left_out: dict[str, list[str]]) -> None:
    """Prints omitted experiments and the reasons on stderr."""
    for reason, labels in left_out.items():
        more = ""
        if len(labels) > 1:
            more = f" and {len(labels) - 1} more experiments"
        print(f"{labels[0]}{more}: left out: {reason}", file=sys.stderr)


def wanted(arguments: Sequence[str], cells: "Sequence[Cell]") -> dict[str, str]:
    """Factor -> level. Raises RejectedError for one that no experiment has."""
    factors = {}
    for argument in arguments:
        name, equals, level = argument.partition("=")
        if not equals or name not in FACTORS:
            raise RejectedError(
                f"--where {argument}: it is FACTOR=LEVEL with one of {', '.join(FACTORS)}"
            )
        known = sorted({cell.factors[name] for cell in cells})
        if level not in known:
            raise RejectedError(f"--where {argument}: no experiment; there is {', '.join(known)}")
        factors[name] = level
    return factors
