"""Questions that papers ask of run records: one module or package a study, found by its name.

eeio's studies are here, those of a user in the folders of EEIO_STUDIES
(docs/how-to/adding-a-study.md). Each module has

    STUDY = Study(...)

with what it offers; what it does not offer it leaves out. The runner asks studies when to stop, on
machines without scientific Python: a study imports that within its functions, when it is called.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from eeio_limits import LimitError
from eeio_limits.modules import Modules
from eeio_results.errors import EeioError
from eeio_results.printed import Statement, Verdict
from eeio_results.record import Run

if TYPE_CHECKING:
    from eeio_results.report.document import Document
    from eeio_results.report.parts import Plot, Table
    from eeio_results.store import Campaign
    from eeio_results.traces.jbd2 import JournalTrace

FORMATS = ("table", "json", "markdown")
"""Formats of a study that returns text; one that returns a `Document` has all formats."""

_MODULES = Modules("study", __name__, "EEIO_STUDIES")


@dataclass(frozen=True)
class PaperFigure:
    """A figure that a paper prints, and what one campaign has in its place.

    `unit` says what both are: `W`; `x`, a ratio; `change`, a share more or less (0.79 is +79 %).
    `source` is where the paper prints it, `of` the system that it prints it of. `ours` is None
    where the campaign has no counterpart, with the reason in `remark`; else that says what ours is
    of, and how it differs. `topic` is what stands in one table and drawing.
    """

    campaign: str
    topic: str
    what: str
    unit: Literal["W", "x", "change"]
    printed: float
    source: str
    of: str
    ours: float | None
    remark: str

    @property
    def ratio(self) -> float | None:
        """Ours over the paper's; of changes, of the factors that they are (1.79 for +79 %)."""
        if self.ours is None:
            return None
        add = 1.0 if self.unit == "change" else 0.0
        return (add + self.ours) / (add + self.printed)


@dataclass(frozen=True)
class Chapter:
    """What a study adds to the report of some campaigns: tables, which stand before all others;
    plots, which stand after them; members of the body of `--format json`; and what the paper, which
    `paper` names (Pavan et al. 2018), prints `beside` the campaigns' own figures, of which the
    report makes tables and plots. `apart` says how the campaigns differ from the paper in all."""

    tables: "tuple[Table, ...]" = ()
    plots: "tuple[Plot, ...]" = ()
    body: Mapping[str, Any] = field(default_factory=dict)
    paper: str = ""
    beside: tuple[PaperFigure, ...] = ()
    apart: str = ""


def beside_campaigns(
    campaigns: "Sequence[Campaign]",
    suite: str,
    figures: "Callable[[Campaign], Sequence[PaperFigure]]",
    paper: str,
    apart: str,
) -> Chapter | None:
    """The chapter of a paper whose suite that is: its figures beside each campaign of it; None
    where none is."""
    own = [campaign for campaign in campaigns if campaign.design.suite == suite]
    found = tuple(figure for campaign in own for figure in figures(campaign))
    return Chapter(paper=paper, beside=found, apart=apart) if found else None


@dataclass(frozen=True)
class JournalFigures:
    """What a study makes of a trace of ext4's journal.

    `of_trace(trace, includes_sync)` gives figures under names with their units (`includes_sync`:
    the tool times a thread's fsync with its writes); none where the trace has no ground for them.
    In a run they join the metrics of its phases called one of `phases`; `joined` may then add what
    follows from both. `labels` is how `eeio record journal` names a figure, and the factor to the
    unit it shows.
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
    """A paper's own data, of which `eeio study replicate` recomputes what the paper prints.

    `import_map` is how they are read: the name of a map of ours, or the path of one
    (docs/how-to/import-results.md). `answer` gives the outcome in one of FORMATS; `figures` what
    the paper draws, file name -> SVG. For the list of all papers: what `paper` names (Pavan et al.
    2018), and how many claims come out how, of no sources all `no`.
    """

    import_map: str | Path
    answer: "Callable[[Sequence[Source], str], Document | str]"
    figures: Callable[[Sequence[Source]], Mapping[str, str]] = lambda sources: {}
    paper: str = ""
    counts: Callable[[Sequence[Source]], Mapping[Verdict, int]] | None = None


@dataclass(frozen=True)
class Printed:
    """What a paper without published data prints, which `eeio study replicate NAME` recomputes
    from what else it prints."""

    paper: str
    statements: Callable[[], Sequence[Statement]]


@dataclass(frozen=True)
class References:
    """How `eeio study reference` holds an application against the characterization: in one of
    FORMATS, or None where the campaigns hold no application; `suite` is one that measures it."""

    answer: "Callable[[Sequence[Campaign], str], Document | str | None]"
    suite: str


@dataclass(frozen=True)
class Study:
    """What a study offers.

    `chapter` is given all campaigns of a report and says by itself which are its own; None if none
    is. `figure_of_merit` is what repetitions go on for until its mean is known: of a run, None
    where the run has none.
    """

    chapter: "Callable[[Sequence[Campaign]], Chapter | None] | None" = None
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
            f"the study {name!r} ({module.__file__}) has no STUDY, a Study of eeio_results.studies"
        )
    return study


def every() -> dict[str, Study]:
    """Name -> study of all of them. Raises EeioError for one that cannot be used."""
    return {name: find(name) for name in names()}


def offering(part: str) -> list[str]:
    """The studies that offer a part such as `published`, for a help; those that cannot be used are
    passed over, and so are all of the user's own where EEIO_STUDIES cannot be."""
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
    """The study that a suite names; all where it names none, each of which then says by itself
    whether a run is one of its own. Raises EeioError."""
    return list(every().values()) if name is None else [find(name)]


def figure_of_merit(studies: Sequence[Study], run: Run) -> float | None:
    """Of the first that has one for this run."""
    for study in studies:
        if study.figure_of_merit is not None:
            found = study.figure_of_merit(run)
            if found is not None:
                return found
    return None


def chapters(campaigns: "Sequence[Campaign]") -> tuple[Chapter, ...]:
    """What the studies add to a report of these campaigns. Raises EeioError for a study that fails,
    and where two add the same member to its body."""
    found: dict[str, Chapter] = {}
    for name, study in every().items():
        if study.chapter is None:
            continue
        try:
            chapter = study.chapter(campaigns)
        except EeioError:
            raise
        except Exception as error:
            raise EeioError(
                f"the study {name!r} failed on these campaigns: {error!r:.300}"
            ) from error
        if chapter is None:
            continue
        for other, theirs in found.items():
            if both := sorted(theirs.body.keys() & chapter.body.keys()):
                raise EeioError(
                    f"the studies {other!r} and {name!r} both add {both[0]!r} to a report's JSON"
                )
        found[name] = chapter
    return tuple(found.values())
