"""Pavan et al. 2017, table 3: power at idle and during the experiments, next to a campaign's.

The paper's figures are of the system, means over the tests (IOzone on 2 GiB, both request sizes).
Ours are the idle baseline and the mean over the experiments of their median power.
"""

import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

from eeio.studies import Chapter, PaperFigure, Printed, Study, next_to_campaigns
from eeio.studies.pavan2017.claims import TABLE_3, statements

if TYPE_CHECKING:
    from eeio.comparison.cells import Cell
    from eeio.record.store import Campaign

_SUITE = "eeio-pavan2017"
_APART = (
    "The paper's machines: a PC (Core 2 Duo E8400) and an MPSoC (Allwinner A20, Cortex-A7). "
    "During the experiments: the campaign's value is the mean of all experiments' median system "
    "power."
)


def _chapter(campaigns: "Sequence[Campaign]") -> Chapter | None:
    return next_to_campaigns(campaigns, _SUITE, _figures, "Pavan et al. 2017", _APART)


def _figures(campaign: "Campaign") -> list[PaperFigure]:
    from eeio.comparison.cells import cells_of

    cells = cells_of(campaign)
    kind = "unknown"
    if cells:
        kind = cells[0].factors["type"]
    figures = []
    for index, (what, ours, remark) in enumerate((_idle(campaign), _during_experiments(cells))):
        for of, *printed in TABLE_3:
            if kind == "unknown" or kind in of:
                figure = PaperFigure(
                    campaign=campaign.name,
                    topic="power of the system",
                    what=what,
                    unit="W",
                    printed=printed[index],
                    source="table 3",
                    of=of,
                    ours=ours,
                    remark=remark,
                )
                figures.append(figure)
    return figures


def _idle(campaign: "Campaign") -> tuple[str, float | None, str]:
    """What it is, W, and a remark."""
    idle_w = campaign.idle_power_w("system")
    remark = "idle baseline"
    if idle_w is None:
        remark = campaign.idle_reason or "idle was not measured in the domain system"
    return "idle", idle_w, remark


def _during_experiments(cells: "Sequence[Cell]") -> tuple[str, float | None, str]:
    """What it is, W, and a remark."""
    from eeio.comparison.cells import POWER

    # The paper's writes end without a flush, where the campaign has such.
    if any(cell.factors["flush"] == "none" for cell in cells):
        cells = [cell for cell in cells if cell.factors["flush"] != "end"]
    metric = POWER["system"]
    busy = []
    for cell in cells:
        if cell.n(metric):
            busy.append(cell.median(metric))
    name = "during the experiments"
    if busy:
        remark = f"mean of {len(busy)} of {len(cells)} experiments"
        return name, statistics.fmean(busy), remark
    reasons = filter(None, (cell.why(metric) for cell in cells))
    return name, None, next(reasons, "not measured")


STUDY = Study(chapter=_chapter, printed=Printed("Pavan et al. 2017", statements))
