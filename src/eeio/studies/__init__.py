"""Studies of papers on run records: one module or package per study, found by its name.

eeio's studies are here; a user's are in the folders of EEIO_STUDIES
(docs/how-to/adding-a-study.md). Each module has

    STUDY = Study(...)

with the parts that it offers; it omits the others. The runner asks studies when to stop, on
machines without scientific Python: a study imports that within its functions, when it is called.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from eeio.analysis.printed_figures import Statement, Verdict
from eeio.errors import EeioError, LimitError
from eeio.files.modules import Modules
from eeio.record.run import Run

if TYPE_CHECKING:
    from eeio.analysis.over_time import PowerSeries
    from eeio.record.store import Campaign
    from eeio.report.document import Document
    from eeio.report.table_and_plot import Plot, Table
    from eeio.traces.jbd2 import JournalTrace

FORMATS = ("table", "json", "markdown")
"""Formats of a study that returns text; one that returns a `Document` has all formats."""

Unit = Literal["W", "x", "change", "MiB/s", "MiB/J", "s", "%"]
Readings = Callable[["Campaign"], Sequence["PowerSeries"]]
"""The stored readings of a campaign's meters."""

_MODULES = Modules("study", __name__, "EEIO_STUDIES")


@dataclass(frozen=True)
class PaperFigure:
    """A figure that a paper prints, and one campaign's equivalent.

    `unit` is the unit of both; `x` is a ratio, `change` a share more or less (0.79 is +79 %).
    `source` is where the paper prints it, `of` the system that it describes. `ours` is None if the
    campaign has no equivalent, with the reason in `remark`. Otherwise `remark` says what `ours`
    describes, and how it differs. Figures of one `topic` share a table and a drawing.
    """

    campaign: str
    topic: str
    what: str
    unit: Unit
    printed: float
    source: str
    of: str
    ours: float | None
    remark: str

    @property
    def ratio(self) -> float | None:
        """`ours` over the paper's figure; for changes, of the factors (1.79 for +79 %)."""
        if self.ours is None:
            return None
        add = 0.0
        if self.unit == "change":
            add = 1.0
        return (add + self.ours) / (add + self.printed)


@dataclass(frozen=True)
class Chapter:
    """What a study adds to the report of some campaigns: `tables`, before all others; `plots`,
    after all others; members of the body of `--format json`; and figures of the paper (`paper`,
    such as Pavan et al. 2018) with the campaigns' figures (`beside`), from which the report makes
    tables and plots. `apart` describes how the campaigns differ from the paper overall."""

    tables: "tuple[Table, ...]" = ()
    plots: "tuple[Plot, ...]" = ()
    body: Mapping[str, Any] = field(default_factory=dict)
    paper: str = ""
    beside: tuple[PaperFigure, ...] = ()
    apart: str = ""


def next_to_campaigns(
    campaigns: "Sequence[Campaign]",
    suite: str,
    figures: "Callable[[Campaign], Sequence[PaperFigure]]",
    paper: str,
    apart: str,
) -> Chapter | None:
    """The chapter of the paper that has this suite: its figures with those of each campaign of the
    suite. None if there is no such campaign."""
    own = [campaign for campaign in campaigns if campaign.design.suite == suite]
    beside_campaigns = tuple(figure for campaign in own for figure in figures(campaign))
    if beside_campaigns:
        return Chapter(paper=paper, beside=beside_campaigns, apart=apart)
    return None


@dataclass(frozen=True)
class JournalFigures:
    """How a study evaluates a trace of ext4's journal.

    `of_trace(trace, includes_sync)` returns figures by names that contain their units
    (`includes_sync`: the tool times a thread's fsync with its writes); none if the trace does not
    support them. In a run they join the metrics of its phases named in `phases`; `joined` may then
    add figures that follow from both. `labels` contains each figure's name in `eeio record
    journal`, and the factor to the unit shown there.
    """

    phases: frozenset[str]
    of_trace: "Callable[[JournalTrace, bool], Mapping[str, float]]"
    joined: Callable[[Mapping[str, float]], Mapping[str, float]]
    labels: Mapping[str, tuple[str, float]]


@dataclass(frozen=True)
class Source:
    """One campaign of published data; `idle_watts` are the samples of its idle baseline by
    domain."""

    campaign: "Campaign"
    idle_watts: Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class PublishedData:
    """A paper's published data, from which `eeio study replicate` recomputes its printed figures.

    `import_map` defines how to read them: the name of one of our maps, or the path of one
    (docs/how-to/import-results.md). `answer` returns the outcome in one of FORMATS; `figures` the
    paper's drawings, file name -> SVG. For the list of all papers: the paper's name (`paper`, such
    as Pavan et al. 2018), and how many claims have which outcome; without sources all are `no`.
    """

    import_map: str | Path
    answer: "Callable[[Sequence[Source], str], Document | str]"
    figures: Callable[[Sequence[Source]], Mapping[str, str]] = lambda sources: {}
    paper: str = ""
    counts: Callable[[Sequence[Source]], Mapping[Verdict, int]] | None = None


@dataclass(frozen=True)
class Printed:
    """A paper without published data. `eeio study replicate NAME` recomputes its figures from other
    figures that it prints."""

    paper: str
    statements: Callable[[], Sequence[Statement]]


@dataclass(frozen=True)
class References:
    """How `eeio study reference` compares an application with the characterization: in one of
    FORMATS, or None if the campaigns contain no application; `suite` is one that measures it."""

    answer: "Callable[[Sequence[Campaign], str], Document | str | None]"
    suite: str


@dataclass(frozen=True)
class Study:
    """The parts that a study offers.

    `chapter` receives all campaigns of a report and selects those of the study; None if there are
    none. `over_time` does the same with the campaigns' stored readings. `figure_of_merit` is the
    figure of a run that is repeated until its mean is known; None if the run has none.
    """

    chapter: "Callable[[Sequence[Campaign]], Chapter | None] | None" = None
    over_time: "Callable[[Sequence[Campaign], Readings], Chapter | None] | None" = None
    figure_of_merit: Callable[[Run], float | None] | None = None
    journal: JournalFigures | None = None
    published: PublishedData | None = None
    printed: Printed | None = None
    references: References | None = None


def names() -> list[str]:
    """All studies, by name. Raises EeioError for a folder in EEIO_STUDIES that cannot be used."""
    try:
        return _MODULES.names()
    except LimitError as error:
        raise EeioError(str(error)) from error


def find(name: str) -> Study:
    """The study of that name. Raises EeioError if there is none, or if it cannot be used."""
    try:
        module = _MODULES.load(name)
    except LimitError as error:
        raise EeioError(str(error)) from error
    if module is None:
        raise EeioError(f"no study {name!r}; there are {', '.join(names())}")
    study = getattr(module, "STUDY", None)
    if not isinstance(study, Study):
        raise EeioError(
            f"the study {name!r} ({module.__file__}) has no STUDY, a Study of eeio.studies"
        )
    return study


def every() -> dict[str, Study]:
    """Name -> study of all of them. Raises EeioError for one that cannot be used."""
    return {name: find(name) for name in names()}


def offering(part: str) -> list[str]:
    """The studies that offer a part such as `published`, for a help text. Skips those that cannot
    be used, and all of the user's if EEIO_STUDIES cannot be read."""
    try:
        known = names()
    except EeioError:
        known = _MODULES.ours()
    return [name for name in known if _offers(name, part)]


def _offers(name: str, part: str) -> bool:
    try:
        return getattr(find(name), part) is not None
    except EeioError:
        return False


def of_campaign(name: str | None) -> list[Study]:
    """The study that a suite names. If it names none, all studies: each then decides whether a run
    belongs to it. Raises EeioError."""
    if name is None:
        return list(every().values())
    return [find(name)]


def figure_of_merit(studies: Sequence[Study], run: Run) -> float | None:
    """Of the first that has one for this run."""
    for study in studies:
        if study.figure_of_merit is not None:
            figure = study.figure_of_merit(run)
            if figure is not None:
                return figure
    return None


def no_readings(campaign: "Campaign") -> "Sequence[PowerSeries]":
    """For campaigns whose samples are not read."""
    return ()


def chapter(study: Study, campaigns: "Sequence[Campaign]", readings: Readings) -> Chapter | None:
    """The study's chapter for a report of these campaigns; None if it has none."""
    if study.over_time is not None:
        return study.over_time(campaigns, readings)
    if study.chapter is not None:
        return study.chapter(campaigns)
    return None


def chapters(
    campaigns: "Sequence[Campaign]", readings: Readings = no_readings
) -> tuple[Chapter, ...]:
    """The studies' chapters for a report of these campaigns. Raises EeioError for a study that
    fails, and if two add the same member to its body."""
    by_name: dict[str, Chapter] = {}
    for name, study in every().items():
        try:
            of_study = chapter(study, campaigns, readings)
        except EeioError:
            raise
        except Exception as error:
            raise EeioError(
                f"the study {name!r} failed on these campaigns: {error!r:.300}"
            ) from error
        if of_study is None:
            continue
        for other, theirs in by_name.items():
            if both := sorted(theirs.body.keys() & of_study.body.keys()):
                raise EeioError(
                    f"the studies {other!r} and {name!r} both add {both[0]!r} to a report's JSON"
                )
        by_name[name] = of_study
    return tuple(by_name.values())
