"""Papers' figures next to the campaigns' figures: a table and a plot for each topic.

Studies provide the contents (`Chapter.beside`); this module depends on no paper.
"""

import textwrap
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict

from eeio.record.publication import stamp_of
from eeio.report.campaign.columns import NONE
from eeio.report.table_and_plot import Plot, Table
from eeio.studies import Chapter, PaperFigure, Unit
from eeio.units.number_text import number

if TYPE_CHECKING:
    from eeio.record.store import Campaign
    from eeio.report.figures.drawing import Drawing, Look


_SCREEN_INCHES = 9.5
_LINE_INCHES = 0.13
_ROW_INCHES = 0.11
_AXES = {"x": "ratio", "change": "ratio of the two that are compared (1.79: +79 %)"}
_MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")


def stamped(chapter: Chapter, campaigns: "Sequence[Campaign]") -> str:
    """The mark of the campaigns that are shown with the paper; empty if they are measurements."""
    shown = {figure.campaign for figure in chapter.beside}
    return stamp_of(campaign for campaign in campaigns if campaign.name in shown)


def tables(chapter: Chapter, mark: str) -> list[Table]:
    """One per topic, with a row for each figure that has an equivalent in the campaigns. The note
    counts the others by their reason; that of the first describes how all differ from the paper.
    `mark` is the result of `stamped`."""
    return [
        _table(_title(chapter, topic, mark), chapter, found, "" if index else chapter.apart)
        for index, (topic, found) in enumerate(_topics(chapter.beside))
    ]


def plots(chapter: Chapter, mark: str) -> list[Plot]:
    """One a topic that has a figure of both."""
    made = []
    for topic, figures in _topics(chapter.beside):
        both = [figure for figure in figures if figure.ours is not None]
        if both:
            title = _title(chapter, topic, mark)
            name = "-".join(f"paper {chapter.paper} {topic}".replace(".", "").split()).lower()
            made.append(Plot(f"{name}.svg", title, drawing=partial(_drawing, both, title, mark)))
    return made


class PaperFigureBody(TypedDict):
    paper: str
    campaign: str
    topic: str
    figure: str
    unit: Unit
    """Of both values; change: a share more or less (0.79 is +79 %)."""
    source: str
    """Its place in the paper."""
    of: str
    """The paper's system."""
    paper_value: float
    campaign_value: float | None
    """Null if the campaign has no equivalent result; remark has the reason."""
    ratio: float | None
    """The campaign's value over the paper's; of changes, of their factors."""
    remark: str


def to_json(chapter: Chapter) -> list[dict[str, Any]]:
    """`beside_papers` of `eeio report --format json`."""
    return [
        {
            "paper": chapter.paper,
            "campaign": figure.campaign,
            "topic": figure.topic,
            "figure": figure.what,
            "unit": figure.unit,
            "source": figure.source,
            "of": figure.of,
            "paper_value": figure.printed,
            "campaign_value": figure.ours,
            "ratio": figure.ratio,
            "remark": figure.remark,
        }
        for figure in chapter.beside
    ]


def value(figure: PaperFigure, found: float | None) -> str:
    """As papers print it: `+79 %`, `3.65 x`, `56.4 W`."""
    if found is None:
        return NONE
    if figure.unit == "change":
        return f"{'+' if found >= 0 else ''}{number(round(100 * found, 10))} %"
    return f"{number(found)} {figure.unit}"


def _title(chapter: Chapter, topic: str, mark: str) -> str:
    title = f"{chapter.paper} compared with this report: {topic}"
    if mark:
        return f"{title} - {mark}"
    return title


def _topics(found: Sequence[PaperFigure]) -> Iterator[tuple[str, list[PaperFigure]]]:
    for topic in dict.fromkeys(figure.topic for figure in found):
        yield topic, [figure for figure in found if figure.topic == topic]


def _table(title: str, chapter: Chapter, found: Sequence[PaperFigure], apart: str) -> Table:
    several = len({figure.campaign for figure in chapter.beside}) > 1
    missing: dict[str, int] = {}
    for figure in found:
        if figure.ours is None:
            missing[figure.remark] = missing.get(figure.remark, 0) + 1
    notes = [apart]
    for reason, count in missing.items():
        notes.append(f"{count} of the paper's figures without a counterpart here: {reason}")
    return Table(
        title=title,
        header=(
            *(("Campaign",) if several else ()),
            "Figure",
            "Paper",
            "Result",
            "Result / paper",
            "Paper's system",
            "Where",
            "Experiments",
        ),
        rows=tuple(
            (
                *((figure.campaign,) if several else ()),
                figure.what,
                value(figure, figure.printed),
                value(figure, figure.ours),
                number(figure.ratio),
                figure.of,
                figure.source,
                figure.remark,
            )
            for figure in found
            if figure.ours is not None and figure.ratio is not None
        ),
        numeric=frozenset(place + several for place in (1, 2, 3)),
        note="\n".join(filter(None, notes)),
    )


def _drawing(found: Sequence[PaperFigure], title: str, stamped: str, look: "Look") -> "Drawing":
    """A paper's figures (hollow) and the campaigns' figures (filled) of one topic, a line each, in
    the unit of the first; each has a value of the campaign."""
    from matplotlib.lines import Line2D
    from matplotlib.ticker import FuncFormatter

    from eeio.report.figures.drawing import GREY, finished, foreign, is_logarithmic, sheet, stamp

    unit = found[0].unit
    width = look.width_inches or _SCREEN_INCHES
    campaigns = list(dict.fromkeys(figure.campaign for figure in found))
    characters = int(0.45 * width / 0.058)
    labels = [textwrap.fill(foreign(f"{f.what} ({f.of})"), characters) for f in found]
    heights = {label: height for height, label in enumerate(reversed(dict.fromkeys(labels)))}
    height = sum(_ROW_INCHES + _LINE_INCHES * (label.count("\n") + 1) for label in heights)
    legend = ["paper", *(f"this campaign: {foreign(name)}" for name in campaigns)]
    figure = sheet(width, height + 1.1, legend)
    axis = figure.subplots()
    styles = _styles(len(campaigns))
    every = []
    for paper_figure, label in zip(found, labels, strict=True):
        printed, ours = _drawn_values(paper_figure, unit)
        every += [printed, ours]
        at = heights[label]
        style = styles[campaigns.index(paper_figure.campaign)]
        axis.plot([printed, ours], [at, at], color="#999999", linewidth=0.8, zorder=1)
        axis.plot(printed, at, "o", mfc="white", mec=GREY, ms=7, zorder=2)
        axis.plot(ours, at, ls="", ms=5, zorder=3, **style)
    scale = ""
    if is_logarithmic(every):
        scale = ", logarithmic scale"
        axis.set_xscale("log")
        axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    if unit in _AXES:
        axis.axvline(1.0, color="#999999", linewidth=0.8, linestyle=":", zorder=0)
    axis.set_yticks(list(heights.values()), list(heights), fontsize=7)
    axis.set_ylim(-0.7, len(heights) - 0.3)
    axis.tick_params(axis="x", labelsize=7)
    axis.grid(axis="x", alpha=0.3)
    label = _AXES.get(unit, unit) + scale
    axis.set_xlabel(textwrap.fill(label, int(0.5 * width / 0.066)), fontsize=8)
    if stamped:
        stamp(axis, stamped, 0.5 * width)
    handles = [Line2D([], [], marker="o", linestyle="", mfc="white", mec=GREY)]
    handles += [Line2D([], [], linestyle="", **style) for style in styles]
    description = (
        f"{len(found)} figures of the paper (hollow), each next to the campaign's (filled); "
        f"from {min(every):.4g} to {max(every):.4g} ({label}). The table has every value."
    )
    return finished(figure, title, list(zip(handles, legend, strict=True)), description)


def _styles(count: int) -> list[dict[str, Any]]:
    """The mark and colour of each campaign; grey is the paper's."""
    from eeio.report.figures.drawing import BLUE, COLOURS, GREY

    colours = (BLUE, *(c for c in COLOURS if c not in (BLUE, GREY)))
    styles = []
    for n in range(count):
        styles.append({"marker": _MARKS[n % len(_MARKS)], "color": colours[n % len(colours)]})
    return styles


def _drawn_values(figure: PaperFigure, unit: str) -> tuple[float, float]:
    """The printed value and the campaign's; a change as a ratio."""
    assert figure.ours is not None
    if unit == "change":
        return 1.0 + figure.printed, 1.0 + figure.ours
    return figure.printed, figure.ours
