"""`eeio cost --format html`: the answer, its map and its tables as one page.

The map is drawn as SVG, with a text description of its points. The script supports pointing at them
and moving between them. The table below the map contains the same figures.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from eeio.guideline.answer import Guideline
from eeio.report.documents import guideline as texts
from eeio.report.documents.guideline import Point, interval, point_text, points
from eeio.report.page.answer import Mark, Part, Tile
from eeio.report.page.document import document
from eeio.report.page.scale import Frame, Scale, text
from eeio.statistics.bootstrap import Estimate
from eeio.units.external_text import shown

_FRAME = Frame(1000, 560, left=62, right=20, top=26, bottom=46)
_SHAPES = {
    "read": "M-6 0a6 6 0 1 0 12 0a6 6 0 1 0 -12 0z",
    "write": "M0 -7L6.5 5.5L-6.5 5.5z",
    "mix": "M0 -10L2.6 -3.4L9.6 -3L4.2 1.4L6 8.2L0 4.4L-6 8.2L-4.2 1.4L-9.6 -3L-2.6 -3.4z",
}
_OTHER = "M0 -7L7 0L0 7L-7 0z"
_SAVES = {True: "saves power", False: "costs more power", None: "not decided"}


@dataclass(frozen=True)
class _Row:
    """A line of the table with the map's figures."""

    number: str
    label: str
    cells: tuple[str, ...]


def render(guideline: Guideline, quick: Sequence[str]) -> str:
    """The page as text; `quick` are the campaigns that are no measurement."""
    of_map = points(guideline)
    stamp = ""
    if quick:
        stamp = "QUICK"
    ts, lp = guideline.traditional.name, guideline.low_power.name
    return document(
        "guideline.html.j2",
        title=f"replace {ts} by {lp}?",
        guideline=guideline,
        ts=ts,
        lp=lp,
        marks=_marks(guideline, quick),
        answer=texts.verdict(guideline),
        tiles=_tiles(guideline),
        chart=_map(of_map, ts, lp, stamp) if of_map else None,
        rows=list(map(_row, of_map)),
        tables=texts.tables(guideline),
        confidence=f"{100 * guideline.confidence:g}",
    )


def _marks(guideline: Guideline, quick: Sequence[str]) -> list[Mark]:
    marks = []
    if quick:
        message = f"not a measurement: {', '.join(quick)} only checked the set-up."
        marks.append(Mark("quick", "QUICK:", f"{message} Publish `standard`."))
    for warning in texts.warnings(guideline):
        # The command's warning about quick campaigns is already above.
        if "QUICK: not a measurement" not in warning:
            marks.append(Mark("incomplete", "NOTE:", warning))
    return marks


def _tiles(guideline: Guideline) -> list[Tile]:
    if guideline.reason is not None:
        return []
    ts, lp = guideline.traditional.name, guideline.low_power.name
    fractional = guideline.deployments[0]
    kind = ""
    if guideline.saves is False:
        kind = "invalid"
    tiles = [
        _tile(f"{lp} for one {ts}", guideline.ratio, "servers", "the same bandwidth"),
        _tile("Power", fractional.power_change, "%", _SAVES[guideline.saves], kind, share=True),
        _tile(
            "Energy per byte",
            guideline.energy_per_byte_change,
            "%",
            "under the workload",
            share=True,
        ),
    ]
    for plan in guideline.deployments[1:]:
        number = texts.estimate(plan.servers)
        tiles.append(
            _tile(
                f"With {number} {lp}",
                plan.power_change,
                "% power",
                f"bandwidth {texts.percent(plan.bandwidth_change)}",
                share=True,
            )
        )
    return tiles


def _tile(
    title: str, figure: Estimate, unit: str, below: str, kind: str = "", *, share: bool = False
) -> Tile:
    if figure.value is None:
        return Tile(title, "none", "", (Part(figure.reason or "not known"),), kind="invalid")
    full = texts.percent(figure) if share else texts.estimate(figure)
    value, _, rest = full.removesuffix(" %").partition(" % [" if share else " [")
    # `-60.5 to -58.2`: another minus between them would be ambiguous.
    interval_text = f"[{rest.replace(' - ', ' to ')}, {below}" if rest else f"{below}; no interval"
    return Tile(title, value, unit, (Part(interval_text),), kind=kind)


def _row(point: Point) -> _Row:
    return _Row(
        point.number,
        point.label,
        (
            "yes" if point.in_mix else "no",
            interval(point.x),
            interval(point.y),
            _SAVES[point.saves],
        ),
    )


def _map(found: Sequence[Point], ts: str, lp: str, stamp: str) -> Markup:
    # The line's height at every point is in the picture as well as the point.
    line = []
    for point in found:
        if point.x.value:
            line.append(1.0 / point.x.value)
    across, up = _FRAME.scales(
        _ends([point.x for point in found]), [*_ends([point.y for point in found]), *line]
    )
    name = (
        f"Map of {len(found)} points by B_ts / B_lp and P_lp / P_ts; below the line replacing "
        f"{ts} by {lp} saves power. The table below contains every point."
    )
    return Markup("").join(
        [
            _FRAME.opening(name),
            *_region(across, up),
            *_FRAME.axes(
                across,
                up,
                f"B_ts / B_lp: number of {lp} for the bandwidth of one {ts} (logarithmic)",
                f"P_lp / P_ts: power of one {lp} over one {ts} (logarithmic)",
            ),
            *([text(_FRAME.width / 2, _FRAME.height / 2, "stamp", stamp)] if stamp else []),
            *(_mark(point, index, across, up) for index, point in enumerate(found)),
            Markup("</svg>"),
        ]
    )


def _ends(figures: Sequence[Estimate]) -> list[float]:
    """All values and ends of intervals that a logarithmic axis can show."""
    ends = []
    for figure in figures:
        ends += [figure.value or 0.0]
        if figure.interval is not None:
            ends += [figure.interval.low, figure.interval.high]
    return [value for value in ends if value > 0]


def _region(across: Scale, up: Scale) -> Iterator[Markup]:
    """Where the product of both ratios is under 1."""
    left, right = max(across.low, 1 / up.high), min(across.high, 1 / up.low)
    bottom, top = up.at(up.low), up.at(up.high)
    if left < right:
        begin = across.at(left), up.at(1 / left)
        end = across.at(right), up.at(1 / right)
        yield Markup(
            '<path class="saves" d="M{:.1f} {:.1f}L{:.1f} {:.1f}L{:.1f} {:.1f}L{:.1f} {:.1f}'
            'L{:.1f} {:.1f}L{:.1f} {:.1f}z"/><path class="limit" d="M{:.1f} {:.1f}L{:.1f} {:.1f}"/>'
        ).format(
            across.at(across.low),
            bottom,
            across.at(across.low),
            begin[1],
            *begin,
            *end,
            end[0],
            bottom,
            across.at(across.low),
            bottom,
            *begin,
            *end,
        )
        yield text(begin[0] + 8, max(top + 14, begin[1] + 16), "iso", "equal power")
    yield text(across.at(across.low) + 8, bottom - 10, "iso", "below the line: saves power")


def _mark(point: Point, place: int, across: Scale, up: Scale) -> Markup:
    x, y = across.at(point.x.value or 0.0), up.at(point.y.value or 0.0)
    kinds = ["mark", {"read": "direct", "write": "buffered"}.get(point.operation, "mix")]
    kinds += [] if point.in_mix else ["other"]
    return Markup(
        '<g class="{}" data-place="{}"><path class="whisker" d="{}"/>'
        '<path d="{}" transform="translate({:.1f} {:.1f})"><title>{}</title></path>{}</g>'
    ).format(
        " ".join(kinds),
        place,
        _whiskers(point, across, up, x, y),
        _SHAPES.get(point.operation, _OTHER),
        x,
        y,
        shown(point_text(point)),
        text(x + 11, y - 9, "number", point.number),
    )


def _whiskers(point: Point, across: Scale, up: Scale, x: float, y: float) -> str:
    parts = []
    if (of_x := point.x.interval) is not None and of_x.low > 0:
        parts.append(f"M{across.at(of_x.low):.1f} {y:.1f}H{across.at(of_x.high):.1f}")
    if (of_y := point.y.interval) is not None and of_y.low > 0:
        parts.append(f"M{x:.1f} {up.at(of_y.low):.1f}V{up.at(of_y.high):.1f}")
    return "".join(parts)
