"""Pavan et al. 2018, "Energy Efficiency and I/O Performance of Low-Power Architectures"."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from eeio.analysis.printed_figures import VERDICTS, Verdict
from eeio.record.publication import stamp_of
from eeio.studies import Chapter, PublishedData, Source, Study, next_to_campaigns

if TYPE_CHECKING:
    from eeio.record.store import Campaign
    from eeio.report.document import Document

_DRAWN = tuple(
    f"{machine}-{drive}"
    for machine in ("pc", "mpsoc")
    for drive in ("hdd1", "hdd2", "ssd1", "ssd2")
)
"""Campaigns that the paper's figures of bandwidth, power and efficiency show."""

_WATCHED = ("experiment0-", "experiment2-")
"""Those in which the processors were watched (figures 7 and 8)."""


def _answer(sources: Sequence[Source], form: str) -> "Document":
    from eeio.studies.pavan2018 import claims

    return claims.document(claims.replicate(sources))


def _figures(sources: Sequence[Source]) -> Mapping[str, str]:
    from eeio.comparison.cells import machine_names
    from eeio.report.figures.drawing import SCREEN, svg_of
    from eeio.report.figures.machines_and_drives import drawn
    from eeio.report.figures.run_figures import processors

    campaigns = [source.campaign for source in sources]
    watched = [c for c in campaigns if c.name.startswith(_WATCHED)]
    drawings = drawn([c for c in campaigns if c.name in _DRAWN])
    drawings |= processors(watched, machine_names(watched), stamp_of(watched), SCREEN)
    return {f"{name}.svg": svg_of(drawing) for name, drawing in drawings.items()}


def _chapter(campaigns: "Sequence[Campaign]") -> Chapter | None:
    from eeio.studies.pavan2018 import paper_figures

    return next_to_campaigns(
        campaigns,
        paper_figures.SUITE,
        paper_figures.figures,
        paper_figures.PAPER,
        paper_figures.APART,
    )


def _counts(sources: Sequence[Source]) -> Mapping[Verdict, int]:
    from eeio.studies.pavan2018 import claims

    replicate = claims.replicate(sources)
    return {verdict: replicate.count(verdict) for verdict in VERDICTS}


STUDY = Study(
    chapter=_chapter,
    published=PublishedData(
        "ccpe2017", _answer, paper="Pavan et al. 2018", counts=_counts, figures=_figures
    ),
)
