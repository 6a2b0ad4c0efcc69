"""Chang et al. 2014, "How processor speedups can slow down I/O performance".

Runs on the system under test when a campaign repeats until its figure is known: only `figures`
needs a scientific library, which is imported when a figure is drawn.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from eeio.record.publication import stamp_of
from eeio.studies import Chapter, JournalFigures, Printed, Study
from eeio.studies.chang2014.cells import THE_FIGURE, cells_of, figure_of_merit
from eeio.studies.chang2014.claims import statements
from eeio.studies.chang2014.journal_model import LABELS, metrics, with_ratio

if TYPE_CHECKING:
    from eeio.record.store import Campaign
    from eeio.traces.jbd2 import JournalTrace


def _chapter(campaigns: "Sequence[Campaign]") -> Chapter | None:
    of_campaigns = []
    for campaign in campaigns:
        of_campaigns.extend(cells_of(campaign))
    if not of_campaigns:
        return None
    from eeio.studies.chang2014 import paper_figures, tables

    stamped = stamp_of(campaigns)
    return Chapter(
        tables=tuple(tables.tables(of_campaigns)),
        plots=tuple(tables.plots(of_campaigns, stamped)),
        body={"cells": [cell.to_json() for cell in of_campaigns]},
        paper=paper_figures.PAPER,
        beside=paper_figures.compared(of_campaigns),
        apart=paper_figures.APART,
    )


def _of_trace(trace: "JournalTrace", includes_sync: bool) -> dict[str, float]:
    return metrics(trace, includes_sync=includes_sync)


STUDY = Study(
    chapter=_chapter,
    figure_of_merit=figure_of_merit,
    printed=Printed("Chang et al. 2014", statements),
    journal=JournalFigures(frozenset(THE_FIGURE), _of_trace, with_ratio, LABELS),
)
