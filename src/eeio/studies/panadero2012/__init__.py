"""Panadero et al. 2012: an application compared with the characterization of its machine."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from eeio.record.publication import stamp_of
from eeio.studies import Chapter, PaperFigure, Printed, References, Study
from eeio.studies.panadero2012.claims import statements

if TYPE_CHECKING:
    from eeio.record.store import Campaign
    from eeio.report.document import Document
    from eeio.report.table_and_plot import Plot
    from eeio.studies.panadero2012.references import Reference


def _references(campaigns: "Sequence[Campaign]", form: str) -> "Document | None":
    from eeio.comparison.cells import cells_of
    from eeio.studies.panadero2012.references import document, references

    cells = []
    for campaign in campaigns:
        cells.extend(cells_of(campaign))
    of_cells = references(cells)
    if of_cells:
        return document(of_cells)
    return None


_PRINTED = (
    ("work station", 0.03, 0.07),
    ("cluster, RAID 1", 0.006, 0.008),
    ("cluster, RAID 5", 0.0, 0.005),
)
"""Table I: how far the power of BT-IO's writes and of its reads lay from the reference."""
_APART = (
    "Power of the system of a phase of BT-IO against its reference value, either way; `eeio "
    "study reference` has both values and the experiment for each phase. The paper's machines "
    "are a work station, and the I/O nodes only of a cluster, once a second by a Watts up? Pro."
)


_SUITE = "eeio-panadero2012"


def _remark(item: "Reference", percent: float | None) -> str:
    """What the deviation is of, or why there is none."""
    from eeio.comparison.cells import POWER

    if item.reference is None:
        return item.reason or "no reference"
    if percent is None:
        cells = (item.application, item.reference)
        reasons = (cell.why(POWER["system"]) for cell in cells)
        return next(filter(None, reasons), "not measured")
    factors = item.application.factors
    remark = f"{factors['phase']} {factors['arguments']}".strip()
    if item.differs:
        return f"{remark}; reference differs in {', '.join(item.differs)}"
    return remark


def _chapter(campaigns: "Sequence[Campaign]") -> Chapter | None:
    """Table I next to the figures of each campaign with BT-IO."""
    from eeio.comparison.cells import POWER, cells_of
    from eeio.studies.panadero2012.references import references

    of_campaigns = []
    for campaign in campaigns:
        if "btio" not in campaign.tools:
            continue
        for item in references(cells_of(campaign)):
            factors = item.application.factors
            if factors["tool"] != "btio" or factors["operation"] not in ("write", "read"):
                continue
            percent = item.deviation_percent(POWER["system"])
            remark = _remark(item, percent)
            for system, write, read in _PRINTED:
                of_campaigns.append(
                    PaperFigure(
                        campaign=campaign.name,
                        topic="an application against its reference values",
                        what=f"power of BT-IO's {factors['operation']}s, from its reference",
                        unit="change",
                        printed=write if factors["operation"] == "write" else read,
                        source="table I",
                        of=system,
                        ours=None if percent is None else abs(percent) / 100.0,
                        remark=remark,
                    )
                )
    # Other suites have BT-IO, too: there, figures without an equivalent are not mentioned.
    follows = any(Path(campaign.design.suite).name == _SUITE for campaign in campaigns)
    if not follows and all(figure.ours is None for figure in of_campaigns):
        return None
    return Chapter(
        plots=_plots(campaigns),
        paper="Panadero et al. 2012",
        beside=tuple(of_campaigns),
        apart=_APART,
    )


def _plots(campaigns: "Sequence[Campaign]") -> "tuple[Plot, ...]":
    """For campaigns of its suite; others have other request sizes, and different figures."""
    from eeio.comparison.cells import cells_of
    from eeio.studies.panadero2012.plots import plots

    mine = [campaign for campaign in campaigns if Path(campaign.design.suite).name == _SUITE]
    return tuple(
        plot
        for one in mine
        for plot in plots(cells_of(one), one.name if len(mine) > 1 else "", stamp_of([one]))
    )


STUDY = Study(
    chapter=_chapter,
    printed=Printed("Panadero et al. 2012", statements),
    references=References(_references, suite="eeio-panadero2012"),
)
