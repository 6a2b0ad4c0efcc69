"""Common parts of all figures: sizes, colours, legends, stamps, and files.

A figure is drawn for a screen or for one or two columns of a paper (`Look`), at the size that it is
printed in, with text of its nominal size. The same data gives the same file.
"""

import html
import io
import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from eeio.units import external_text as harmless

# The import has read a file `matplotlibrc` of the current folder, which may be of anybody and start
# programs (text.usetex). A figure depends on its data only.
matplotlib.rcdefaults()
for _name in ("timezone", "date.epoch"):  # which that leaves
    matplotlib.rcParams[_name] = matplotlib.rcParamsDefault[_name]

BLUE, VERMILION, GREEN, PURPLE, GREY, WINE, INDIGO, BLACK = (
    "#0072B2",
    "#C04E00",
    "#00785A",
    "#AA3377",
    "#555555",
    "#882255",
    "#332288",
    "#000000",
)
"""Of Okabe and Ito's and of Paul Tol's colour-blind safe palettes, the lighter ones darkened: each
at least 4.5:1 on white (WCAG 2.2 wants 3:1 of graphics, 4.5:1 of text)."""
COLOURS = (BLUE, VERMILION, GREEN, PURPLE, GREY, WINE, INDIGO, BLACK)
_STAMP = "#B00020"

LOG_SCALE_RATIO = 20.0
"""Values that span more than this are drawn on a logarithmic axis."""

_PLACE_DIGITS = 6
_LEGEND_LINE_INCHES = 0.17
_LEGEND_EDGE_INCHES = 0.12
# Of DejaVu Sans at 7 points, on average; and of a handle.
_CHARACTER_INCHES = 0.058
_HANDLE_INCHES = 0.45
_PNG_DPI = 300


def ending(stamped: str) -> str:
    """Of the title of a figure with that stamp."""
    if stamped:
        return f" - {stamped}"
    return ""


@dataclass(frozen=True)
class Look:
    """Where a figure is shown. `width_inches` is that of the complete figure; None: as wide as its
    content needs."""

    width_inches: float | None = None


SCREEN = Look()
WIDTHS: Mapping[str, Look] = MappingProxyType({"one": Look(3.5), "two": Look(7.16)})
"""One and two columns of a paper (those of IEEE and ACM differ by less than 5 mm)."""
FORMATS = ("svg", "pdf", "png")


@dataclass(frozen=True)
class Drawing:
    """A figure with its title and a description of its content, for people who cannot see it."""

    figure: Figure
    title: str
    description: str


class Layout(ConstrainedLayoutEngine):
    """matplotlib's, with places rounded: its solver gives the last of 16 digits by chance, and the
    same data must give the same file."""

    def execute(self, fig: Figure) -> Any:
        solved = super().execute(fig)
        for axis in fig.axes:
            place = axis.get_position(original=True).bounds
            left, bottom, width, height = (round(one, _PLACE_DIGITS) for one in place)
            axis.set_position((left, bottom, width, height), "original")
            axis.set_in_layout(True)
        return solved


def sheet(width: float, height: float, legend: Sequence[str] = ()) -> Figure:
    """A figure of that size in inches, with room for the legend's labels below it.

    loc="outside lower center" would make that room itself, but needs matplotlib 3.7.
    """
    rows = _rows(_wrapped_labels(width, legend), _legend_columns(width, legend))
    lines = sum(max(label.count("\n") + 1 for label in row) for row in rows)
    room = max(1, lines) * _LEGEND_LINE_INCHES + _LEGEND_EDGE_INCHES
    share = room / (height + room)
    return Figure(
        figsize=(width, height + room),
        layout=Layout(rect=(0, share, 1, 1 - share)),
    )


def set_legend(figure: Figure, handles: Sequence[Any], labels: Sequence[str]) -> None:
    """In the room that `sheet` leaves below the panels, in as many columns as fit there."""
    width = figure.get_size_inches()[0]
    figure.legend(
        list(handles),
        _wrapped_labels(width, labels),
        loc="lower center",
        ncols=_legend_columns(width, labels),
        fontsize=7,
        frameon=False,
    )


def _wrapped_labels(width: float, labels: Sequence[str]) -> list[str]:
    characters = max(12, int((width - _HANDLE_INCHES) / _CHARACTER_INCHES))
    return [textwrap.fill(label, characters) for label in labels]


def _legend_columns(width: float, labels: Sequence[str]) -> int:
    longest = max(map(len, labels), default=1)
    fits = int(width / (longest * _CHARACTER_INCHES + _HANDLE_INCHES))
    return max(1, min(len(labels), fits))


def _rows(labels: Sequence[str], columns: int) -> list[Sequence[str]]:
    """As matplotlib sets a legend: column by column."""
    per_column = math.ceil(len(labels) / columns)
    return [labels[row::per_column] for row in range(per_column)]


def is_logarithmic(values: Sequence[float]) -> bool:
    """Whether values span so much that their axis is logarithmic."""
    return bool(values) and min(values) > 0 and max(values) > LOG_SCALE_RATIO * min(values)


def finished(
    figure: Figure,
    title: str,
    legend: Sequence[tuple[Any, str]],
    description: str,
) -> Drawing:
    """The figure with its title and its legend: handles and their labels."""
    set_title(figure, foreign(title))
    set_legend(figure, [handle for handle, _ in legend], [label for _, label in legend])
    return Drawing(figure, title, description)


def set_title(figure: Figure, title: str) -> None:
    """Wrapped where the figure is narrow."""
    width = figure.get_size_inches()[0]
    size = 8
    if width > 5:
        size = 10
    figure.suptitle(textwrap.fill(title, int(width * 120 / size)), fontsize=size)


def stamp(axes: Axes, text: str, inches: float | None = None) -> None:
    """Text across a panel that is at least `inches` wide (default: as the figure would set it): it
    stays when the picture is cropped or shown without its caption."""
    if inches is None:
        inches = axes.bbox.width / axes.figure.dpi
    size = max(5.0, min(15.0, 0.9 * 72 * inches / (0.6 * len(text))))
    axes.text(
        0.5,
        0.5,
        text,
        transform=axes.transAxes,
        ha="center",
        va="center",
        fontsize=size,
        color=_STAMP,
        alpha=0.5,
        zorder=10,
        clip_on=True,
        parse_math=False,
    )


def foreign(name: str) -> str:
    """A name of others for a label: with all its dollars, which matplotlib takes for formulas."""
    return harmless.shown(name).replace("$", r"\$")


def svg_of(drawing: Drawing) -> str:
    """The `<svg>` element, with title and description for who cannot see it. Fixed identifiers and
    no date: the same data gives the same file."""
    out = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "eeio", "svg.fonttype": "none"}):
        drawing.figure.savefig(out, format="svg", metadata={"Date": None})
    text = out.getvalue()
    text = text[text.index("<svg") :]
    end = text.index(">")
    name, about = html.escape(drawing.title), html.escape(drawing.description)
    text = (
        f'{text[:end]} role="img" aria-label="{name}">\n <title>{name}</title><desc>{about}</desc>'
        f"{text[end + 1 :]}"
    )
    # External names may contain characters that XML forbids.
    return harmless.xml(text)


def file_of(drawing: Drawing, form: str) -> bytes:
    """The figure as a file of one of FORMATS."""
    title, description = drawing.title, drawing.description
    if form == "svg":
        return svg_of(drawing).encode("utf-8")
    out = io.BytesIO()
    # Text in both must be valid; neither has a date, because the same data give the same file.
    title, description = harmless.shown(title), harmless.shown(description)
    if form == "pdf":
        with matplotlib.rc_context({"pdf.fonttype": 42}):
            drawing.figure.savefig(
                out,
                format="pdf",
                metadata={"Title": title, "Subject": description, "CreationDate": None},
            )
    else:
        drawing.figure.savefig(
            out, format="png", dpi=_PNG_DPI, metadata={"Title": title, "Description": description}
        )
    return out.getvalue()
