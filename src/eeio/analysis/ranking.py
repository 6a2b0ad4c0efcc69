"""Which MB/J may be ranked: those of complete work, known precisely, without contradictions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from eeio.analysis.domain_figures import DomainFigures
from eeio.analysis.meter_agreement import Agreement
from eeio.analysis.repetitions import Repetitions
from eeio.record.reasons import FLUSH_UNKNOWN, imprecise_energy
from eeio.record.run import MARKS
from eeio.units.quantities import MOST_UNCERTAIN


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


def why_figures_unsure(figures: DomainFigures | None) -> str | None:
    """As `why_unsure`, of the median uncertainty over the repetitions; None without figures."""
    if figures is None:
        return None
    uncertainty = figures["uncertainty_relative"]
    if uncertainty is None:
        return why_unsure(figures.doubts, None)
    return why_unsure(figures.doubts, uncertainty.median)


@dataclass(frozen=True)
class Judgement:
    """How the rows of a campaign are judged: by options of the reader, by the contradictions of its
    meters over the complete campaign, and by the least length of windows that was requested."""

    rules: Rules
    agreement: Agreement
    least_s: float | None

    def of(
        self, figures: DomainFigures, repetitions: Repetitions, cached: str | None
    ) -> DomainFigures:
        """With its doubts, and the first reason why its MB/J is not ranked. `cached` is the reason
        if the page cache of an image served the I/O."""
        doubts = (*figures.doubts, *self.agreement.doubts(figures.key))
        doubted = replace(figures, doubts=doubts)
        why_not = cached or self._why_not_ranked(doubted, repetitions)
        return replace(doubted, ranked_reason=why_not)

    def _why_not_ranked(self, figures: DomainFigures, repetitions: Repetitions) -> str | None:
        """Short windows precede the uncertainty, which they increase."""
        if figures.energy_kind in MARKS:
            return f"{figures.energy_kind} power is not ranked"
        if figures["efficiency_bytes_per_j"] is None:
            return figures.reason or figures.why("efficiency_bytes_per_j") or "it has no MB/J"
        why_not_durable = repetitions.why_not_durable
        if repetitions.durable is False:
            unknown = why_not_durable == FLUSH_UNKNOWN
            if unknown:
                return FLUSH_UNKNOWN
            return f"not durable: {why_not_durable}"
        if figures.doubts:
            return f"doubtful: {figures.doubts[0]}"
        lasted_s, uncertainty = repetitions.duration_s, figures["uncertainty_relative"]
        if lasted_s is not None and self.least_s is not None and lasted_s < self.least_s:
            return f"lasted {lasted_s:.2g} s, shorter than the requested {self.least_s:g} s"
        most = self.rules.most_uncertain
        if uncertainty is not None and uncertainty.median > most:
            limit = f"the ranking limit is {100 * most:g} %"
            return f"{imprecise_energy(uncertainty.median)}; {limit}"
        return None
