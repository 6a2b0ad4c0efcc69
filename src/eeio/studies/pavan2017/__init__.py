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
    from eeio.comparison.cells import POWER, cells_of

    metric = POWER["system"]
    cells = cells_of(campaign)
    kind = cells[0].factors["type"] if cells else "unknown"
    # The paper's writes end without a flush, where the campaign has such.
    as_printed = [cell for cell in cells if cell.factors["flush"] != "end"]
    if any(cell.factors["flush"] == "none" for cell in cells):
        cells = as_printed
    busy = [cell.median(metric) for cell in cells if cell.n(metric)]
    idle_w = campaign.idle_power_w("system")
    no_idle = campaign.idle_reason or "idle was not measured in the domain system"
    busy_w = statistics.fmean(busy) if busy else None
    of_busy = f"mean of {len(busy)} of {len(cells)} experiments"
    if not busy:
        of_busy = next(filter(None, (cell.why(metric) for cell in cells)), "not measured")
    values = (
        ("idle", idle_w, no_idle if idle_w is None else "idle baseline"),
        ("during the experiments", busy_w, of_busy),
    )
    return [
        PaperFigure(
            campaign=campaign.name,
            topic="power of the system",
            what=what,
            unit="W",
            printed=printed[place],
            source="table 3",
            of=of,
            ours=ours,
            remark=remark,
        )
        for place, (what, ours, remark) in enumerate(values)
        for of, *printed in TABLE_3
        if kind == "unknown" or kind in of
    ]


STUDY = Study(chapter=_chapter, printed=Printed("Pavan et al. 2017", statements))
