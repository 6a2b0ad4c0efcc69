"""The chapter of a report, with the published figures."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from eeio.record.store import Campaign
from eeio.report.table_and_plot import Plot, Table
from eeio.studies import Chapter
from eeio.studies.powersensor3 import by_size, over_time, presentation, published
from eeio.studies.powersensor3.beside import figures

if TYPE_CHECKING:
    from eeio.studies import Readings

SUITE = "eeio-ssd-power"
_APART = (
    f"The paper's drive is a {published.DRIVE}, measured at its supply with io_uring and fixed "
    "buffers, registered files, polled completions and a polling submission thread (these engine "
    "options: --sweep engine=io_uring_combined). Its values are read from the drawings of its "
    "published measurements."
)


def chapter(campaigns: Sequence[Campaign], readings: "Readings") -> Chapter | None:
    tables: list[Table] = []
    plots: list[Plot] = []
    beside = []
    body: list[presentation.SsdPowerBody] = []
    for campaign in campaigns:
        if campaign.design.suite != SUITE:
            continue
        sizes = by_size.of_sizes(campaign)
        runs = over_time.over_time(campaign, readings)
        tables += presentation.tables_of(campaign, sizes, runs)
        plots += presentation.plots_of(campaign, sizes, runs)
        beside += figures(campaign.name, sizes, runs)
        body.append(presentation.body_of(campaign, sizes, runs))
    if not body:
        return None
    return Chapter(
        tables=tuple(tables),
        plots=tuple(plots),
        body={"ssd_power": list(map(asdict, body))},
        paper=published.PAPER,
        beside=tuple(beside),
        apart=_APART,
    )
