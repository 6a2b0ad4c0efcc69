"""Papers' figures next to the campaigns' figures: a table and a plot for each topic.

Studies provide the contents (`Chapter.beside`); this module depends on no paper.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from eeio_results.report.columns import NONE, number
from eeio_results.report.parts import Plot, Table
from eeio_results.stamps import stamp_of
from eeio_results.studies import Chapter, PaperFigure

if TYPE_CHECKING:
    from eeio_results.report.drawing import Drawing, Look
    from eeio_results.store import Campaign


def stamped(chapter: Chapter, campaigns: "Sequence[Campaign]") -> str:
    """The mark of the campaigns that are shown with the paper; empty if they are measurements."""
    shown = {figure.campaign for figure in chapter.beside}
    return stamp_of(campaign for campaign in campaigns if campaign.name in shown)


def tables(chapter: Chapter, mark: str) -> list[Table]:
    """One per topic, with a row for each figure that has an equivalent in the campaigns. The note
    counts the others by their reason; that of the first describes how all differ from the paper.
    `mark` is the result of `stamped`."""
    return [
        _table(_title(chapter, topic, mark), chapter, found, "" if place else chapter.apart)
        for place, (topic, found) in enumerate(_topics(chapter.beside))
    ]


def plots(chapter: Chapter, mark: str) -> list[Plot]:
    """One a topic that has a figure of both."""
    found = []
    for topic, figures in _topics(chapter.beside):
        both = [figure for figure in figures if figure.ours is not None]
        if both:
            title = _title(chapter, topic, mark)
            name = "-".join(f"paper {chapter.paper} {topic}".replace(".", "").split()).lower()
            drawing = partial(_drawing, both, title, mark)
            found.append(Plot(f"{name}.svg", title, partial(_svg, drawing), drawing))
    return found


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
    words = f"{chapter.paper} compared with this report: {topic}"
    return f"{words} - {mark}" if mark else words


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
    notes += [
        f"{count} of the paper's figures without a counterpart here: {why}"
        for why, count in missing.items()
    ]
    return Table(
        title=title,
        header=(
            *(("Campaign",) if several else ()),
            "Figure", "Paper", "Result", "Result / paper", "Paper's system", "Where", "Experiments",
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
    )  # fmt: skip


def _drawing(found: Sequence[PaperFigure], title: str, mark: str, look: "Look") -> "Drawing":
    from eeio_results.report import beside_figures

    return beside_figures.draw(found, title, mark, look)


def _svg(drawing: "partial[Drawing]") -> str:
    from eeio_results.report.drawing import SCREEN, svg_of

    found = drawing(SCREEN)
    return svg_of(found.figure, found.title, found.description)
