"""Published schemas of the files that eeio writes and reads."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict

from eeio.analysis.characterization import ContextRowBody
from eeio.analysis.rows import RowBody
from eeio.comparison.layer_costs import LayerCostBody
from eeio.comparison.pareto import ParetoPointBody
from eeio.machine.as_data.description import VERSION, Description
from eeio.pts import entry_form
from eeio.record.design import StoredDesign
from eeio.record.run import SCHEMA_VERSION, Run
from eeio.record.tools.capture import StoredCapture
from eeio.report.campaign.answers import AdaptiveBody
from eeio.report.campaign.characterized import CampaignBody
from eeio.report.figures.paper_figures import PaperFigureBody
from eeio.schemas.from_types import one_of, schema
from eeio.studies.adaptive import AdaptivityBody
from eeio.studies.chang2014.cells import JournalCellBody
from eeio.studies.drive import PointBody, SteadyStateBody
from eeio.studies.drive_review.chapter import DriveReviewBody
from eeio.studies.io500 import Points
from eeio.studies.load import ProportionalityBody, Step
from eeio.studies.powersensor3.presentation import SsdPowerBody

FOLDER = Path(__file__).parent
_VERSION = {"schema_version": {"enum": list(range(1, SCHEMA_VERSION + 1))}}
_IDENTITY = {"experiment_id": {"type": "string", "pattern": "^[0-9a-f]{12}$"}}


class ReportBody(TypedDict):
    """Campaigns and their characterization; further parts for some suites."""

    schema_version: Literal[2]
    campaigns: Sequence[CampaignBody]
    characterization: Sequence[RowBody]
    context: Sequence[ContextRowBody]
    cells: NotRequired[Sequence[JournalCellBody]]
    """Only for studies of the journal: one workload on one variant at one frequency."""
    adaptive: Sequence[AdaptiveBody]
    """The time and the decisions of each adaptive campaign."""
    beside_papers: NotRequired[Sequence[PaperFigureBody]]
    """Figures of papers next to those of the campaigns; absent if no campaign belongs to such a
    study."""
    io500: NotRequired[Sequence[Points]]
    """Experiments with IO500: medians over their valid runs; absent if there are none."""
    drive: NotRequired[Sequence[PointBody]]
    """Experiments of a preconditioned drive, or of engines; absent if there are none."""
    steady_state: NotRequired[Sequence[SteadyStateBody]]
    """How the drive came to its steady state."""
    power_adaptivity: NotRequired[Sequence[AdaptivityBody]]
    """Power states and shapes of I/O; absent if no campaign has the suite."""
    drive_review: NotRequired[Sequence[DriveReviewBody]]
    """Ten figures of a drive; absent if no campaign is a review."""
    ssd_power: NotRequired[Sequence[SsdPowerBody]]
    """A drive by request size and over time; absent if no campaign has a suite for it."""
    load_curve: NotRequired[Sequence[Step]]
    """Steps of offered load; absent if no campaign has any."""
    proportionality: NotRequired[ProportionalityBody]
    """Of the only load curve; of several, each is in curves."""
    pareto: Sequence[ParetoPointBody]
    """Every experiment that moves bytes, with its medians, and whether it is Pareto-optimal among
    those of its operation and buffer."""
    layers: Sequence[LayerCostBody]
    """The cost of a layer over the one below: experiments that differ only in it; empty if no two
    do."""


def published() -> dict[str, dict[str, Any]]:
    """File name -> schema."""
    machine = {"machine": {"const": VERSION, "description": "the version of this form"}}
    return {
        "run.schema.json": schema(
            Run, "eeio run record", "One line of runs.jsonl", {**_VERSION, **_IDENTITY}
        ),
        "campaign.schema.json": schema(
            StoredDesign, "eeio campaign", "campaign.json", dict(_VERSION)
        ),
        "capture.schema.json": schema(StoredCapture, "eeio capture", "capture.json"),
        "report.schema.json": schema(ReportBody, "eeio report --format json", "standard output"),
        "machine.schema.json": schema(
            Description, "eeio machine description", "machine.json or machine.yaml", machine
        ),
        "entry.schema.json": one_of(
            (entry_form.Values, entry_form.Quantity, entry_form.Idle),
            "eeio in the JSON of an entry of a PTS result file",
        ),
    }
