"""A paper's figures (hollow) and the campaigns' figures (filled), a line each."""

import textwrap
from collections.abc import Sequence

from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from eeio_results.report.drawing import (
    BLUE,
    COLOURS,
    GREY,
    LOG_SCALE_RATIO,
    Drawing,
    Look,
    foreign,
    set_legend,
    set_title,
    sheet,
    stamp,
)
from eeio_results.studies import PaperFigure

_SCREEN_INCHES = 9.5
_LINE_INCHES = 0.13
_ROW_INCHES = 0.11
_AXES = {"W": "W", "x": "ratio", "change": "ratio of the two that are compared (1.79: +79 %)"}
_MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")


def draw(found: Sequence[PaperFigure], title: str, stamped: str, look: Look) -> Drawing:
    """Figures of one topic, in the unit of the first; each has a value of the campaign."""
    unit = found[0].unit
    width = look.width_inches or _SCREEN_INCHES
    campaigns = list(dict.fromkeys(figure.campaign for figure in found))
    characters = int(0.45 * width / 0.058)
    words = [textwrap.fill(foreign(f"{f.what} ({f.of})"), characters) for f in found]
    places = {label: place for place, label in enumerate(reversed(dict.fromkeys(words)))}
    height = sum(_ROW_INCHES + _LINE_INCHES * (label.count("\n") + 1) for label in places)
    legend = ["paper", *(f"this campaign: {foreign(name)}" for name in campaigns)]
    figure = sheet(width, height + 1.1, legend)
    axis = figure.subplots()
    every = []
    for one, label in zip(found, words, strict=True):
        assert one.ours is not None
        add = 1.0 if unit == "change" else 0.0
        printed, ours = add + one.printed, add + one.ours
        every += [printed, ours]
        at, number = places[label], campaigns.index(one.campaign)
        axis.plot([printed, ours], [at, at], color="#999999", linewidth=0.8, zorder=1)
        axis.plot(printed, at, "o", mfc="white", mec=GREY, ms=7, zorder=2)
        axis.plot(ours, at, _mark(number), color=_colour(number), ms=5, zorder=3)
    logarithmic = min(every) > 0 and max(every) > LOG_SCALE_RATIO * min(every)
    if logarithmic:
        axis.set_xscale("log")
        axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    if unit != "W":
        axis.axvline(1.0, color="#999999", linewidth=0.8, linestyle=":", zorder=0)
    axis.set_yticks(list(places.values()), list(places), fontsize=7)
    axis.set_ylim(-0.7, len(places) - 0.3)
    axis.tick_params(axis="x", labelsize=7)
    axis.grid(axis="x", alpha=0.3)
    label = _AXES[unit] + (", logarithmic scale" if logarithmic else "")
    axis.set_xlabel(textwrap.fill(label, int(0.5 * width / 0.066)), fontsize=8)
    if stamped:
        stamp(axis, stamped, 0.5 * width)
    set_title(figure, foreign(title))
    handles = [Line2D([], [], marker="o", linestyle="", mfc="white", mec=GREY)]
    handles += [
        Line2D([], [], marker=_mark(place), linestyle="", color=_colour(place))
        for place in range(len(campaigns))
    ]
    set_legend(figure, handles, legend)
    description = (
        f"{len(found)} figures of the paper (hollow), each next to the campaign's (filled); "
        f"from {min(every):.4g} to {max(every):.4g} ({label}). The table has every value."
    )
    return Drawing(figure, title, description)


def _mark(campaign: int) -> str:
    return _MARKS[campaign % len(_MARKS)]


def _colour(campaign: int) -> str:
    return (BLUE, *(c for c in COLOURS if c not in (BLUE, GREY)))[campaign % (len(COLOURS) - 1)]
