"""Machado et al. 2017, slides on power demand: writes against reads, compared with a campaign.

The paper prints the demand of its two boards and its PC only as ratios. One of them applies within
one campaign: how much more power writes take than reads. Ours is the median over the experiments'
median power of the system. Comparing boards with the PC takes two campaigns: `eeio compare` and
`eeio cost`.
"""

import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

from eeio.studies import Chapter, PaperFigure, Printed, Study, next_to_campaigns
from eeio.studies.machado2017.claims import statements

if TYPE_CHECKING:
    from eeio.record.store import Campaign

_SUITE = "eeio-machado2017"
_PRINTED = (("PC (i5-4460)", 0.07), ("two Cubietrucks", 0.23))
_APART = (
    "Paper: medians of 5 repetitions, a Samsung 840, a Kill A Watt. Campaign: the median of the "
    "experiments' median power of the system, writes over reads."
)


def _chapter(campaigns: "Sequence[Campaign]") -> Chapter | None:
    return next_to_campaigns(campaigns, _SUITE, _figures, "Machado et al. 2017", _APART)


def _figures(campaign: "Campaign") -> list[PaperFigure]:
    from eeio.comparison.cells import POWER, cells_of

    metric = POWER["system"]
    cells = cells_of(campaign)
    of = {
        operation: [
            cell.median(metric)
            for cell in cells
            # The trace is a separate question.
            if cell.factors["operation"] == operation
            and cell.factors["level"] != "application"
            and cell.n(metric)
        ]
        for operation in ("write", "read")
    }
    ours = None
    remark = next(filter(None, (cell.why(metric) for cell in cells)), "not measured")
    if of["write"] and of["read"]:
        ours = statistics.median(of["write"]) / statistics.median(of["read"]) - 1.0
        remark = f"experiments that write: {len(of['write'])}, that read: {len(of['read'])}"
    figures = []
    for system, printed in _PRINTED:
        figures.append(
            PaperFigure(
                campaign=campaign.name,
                topic="power of the system",
                what="write over read",
                unit="change",
                printed=printed,
                source="slides, power demand",
                of=system,
                ours=ours,
                remark=remark,
            )
        )
    return figures


STUDY = Study(chapter=_chapter, printed=Printed("Machado et al. 2017", statements))
