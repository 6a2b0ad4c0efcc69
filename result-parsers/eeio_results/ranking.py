"""Which MB/J may be ranked: those of complete work, known precisely, without contradictions."""

from collections.abc import Sequence
from dataclasses import dataclass

from eeio_limits.quantities import MOST_UNCERTAIN
from eeio_limits.reasons import FLUSH_UNKNOWN, imprecise_energy
from eeio_results.domains import DomainFigures
from eeio_results.record import MARKS


@dataclass(frozen=True)
class Rules:
    """Options of the reader: `most_uncertain` is the largest uncertainty of a ranked figure, as a
    share of the energy; `busy` the share of the time in which the system is in use, for J/GB with
    the idle energy shared out (None: not requested)."""

    most_uncertain: float = MOST_UNCERTAIN
    busy: float | None = None


RULES = Rules()


def why_unsure(
    doubts: Sequence[str], uncertainty_relative: float | None, most: float = MOST_UNCERTAIN
) -> str | None:
    """Why an energy is compared with no other: its doubts, or its uncertainty as a share."""
    if doubts:
        return f"doubtful: {doubts[0]}"
    if uncertainty_relative is not None and uncertainty_relative > most:
        return imprecise_energy(uncertainty_relative)
    return None


def why_too_short(duration_s: float | None, requested_s: float | None) -> str | None:
    """Why windows of that median duration are not ranked if longer ones were requested."""
    if duration_s is None or requested_s is None or duration_s >= requested_s:
        return None
    return f"lasted {duration_s:.2g} s, shorter than the requested {requested_s:g} s"


def why_not_ranked(
    figures: DomainFigures,
    durable: bool | None,
    durable_reason: str | None,
    rules: Rules,
    too_short: str | None = None,
) -> str | None:
    """The first reason why its MB/J is not ranked; None if it is. `too_short` is the result of
    `why_too_short`: it precedes the uncertainty, which it increases."""
    if figures.energy_kind in MARKS:
        return f"{figures.energy_kind} power is not ranked"
    if figures["efficiency_bytes_per_j"] is None:
        return figures.reason or figures.why("efficiency_bytes_per_j") or "it has no MB/J"
    if durable is False:
        unknown = durable_reason == FLUSH_UNKNOWN
        return FLUSH_UNKNOWN if unknown else f"not durable: {durable_reason}"
    if figures.doubts:
        return f"doubtful: {figures.doubts[0]}"
    if too_short is not None:
        return too_short
    known = figures["uncertainty_relative"]
    if known is not None and known.median > rules.most_uncertain:
        return (
            f"{imprecise_energy(known.median)}; the ranking limit is "
            f"{100 * rules.most_uncertain:g} %"
        )
    return None
