"""The main chart in the page before its script runs, or without it: SVG.

Bandwidth against power, both axes logarithmic, with lines of equal MB/J, quartiles as whiskers.
`script/scatter.mjs` draws the same to the window's width, with interaction.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from eeio.analysis.summary import Quartiles
from eeio.report.page.page_data import MODELLED, Line, Page, domain_label, figures_of
from eeio.report.page.scale import Frame, Scale, plain, steps, text
from eeio.units.external_text import shown
from eeio.units.number_text import page_number
from eeio.units.sizes import MB

_FRAME = Frame(1000, 480, left=62, right=60, top=26, bottom=46)


_LETTER, _LABELLED = 6, 40
"""Pixels of a letter of a name, and how many names are tried."""
_MANY = 2000
"""More marks than this are drawn without whiskers and labels: they would be indistinguishable."""


@dataclass(frozen=True)
class _Point:
    line: Line
    mbs: Quartiles
    w: Quartiles


def still(page: Page) -> Markup:
    """Empty where no line has both bandwidth and power."""
    points = []
    for line in page.lines:
        if (
            (bandwidth := line.row["bandwidth_bytes_per_s"]) is not None
            and bandwidth.q1 > 0
            and (figures := figures_of(line.row, page.key)) is not None
            and figures["power_w"] is not None
            and figures["power_w"].q1 > 0
        ):
            points.append(_Point(line, bandwidth, figures["power_w"]))
    if not points or page.key is None:
        return Markup()
    across, up = _FRAME.scales(
        [v / MB for p in points for v in (p.mbs.q1, p.mbs.q3)],
        [v for p in points for v in (p.w.q1, p.w.q3)],
    )
    description = (
        f"Bandwidth (MB/s) against power (W), {domain_label(page.key)}: {len(points)} marks"
    )
    draw = _bare_mark
    if len(points) <= _MANY:
        draw = _mark
    parts = [
        _FRAME.opening(description),
        *_FRAME.axes(
            across,
            up,
            "Bandwidth (MB/s, logarithmic)",
            f"Power (W, logarithmic), {domain_label(page.key)}",
        ),
        *_equal(across, up),
        *_stamp(page.stamp),
        *(draw(point, across, up, page.key[2] == MODELLED) for point in points),
        *_labels(points, across, up),
        Markup("</svg>"),
    ]
    return Markup("").join(parts)


def _equal(across: Scale, up: Scale) -> Iterator[Markup]:
    """Lines of equal MB/J: W = (MB/s) / (MB/J)."""
    for value in steps(across.low / up.high, across.high / up.low, (1, 2, 5)):
        x1 = max(across.low, value * up.low)
        x2 = min(across.high, value * up.high)
        if x1 >= x2:
            continue
        begin, end = (across.at(x1), up.at(x1 / value)), (across.at(x2), up.at(x2 / value))
        yield Markup('<path class="equal" d="M{:.0f} {:.0f}L{:.0f} {:.0f}"/>').format(*begin, *end)
        at_top = abs(end[1] - _FRAME.top) < 1
        yield Markup('<text x="{:.0f}" y="{:.0f}" class="iso {}">{} MB/J</text>').format(
            end[0] if at_top else end[0] + 4,
            end[1] - 5 if at_top else end[1] + 4,
            "middle" if at_top else "",
            plain(value),
        )


def _stamp(word: str) -> Iterator[Markup]:
    if word:
        yield Markup('<text class="stamp" x="{}" y="{}">{}</text>').format(
            _FRAME.width / 2, _FRAME.height / 2, word
        )


def _labels(points: Sequence[_Point], across: Scale, up: Scale) -> Iterator[Markup]:
    """Names beside the marks, the best experiments first. A name that would overprint a mark or
    another name is left out."""
    places = [(across.at(p.mbs.median / MB), up.at(p.w.median)) for p in points]
    taken = [(x - 6, y - 6, x + 6, y + 6) for x, y in places]
    for (x, y), point in zip(places[:_LABELLED], points, strict=False):
        name = point.line.full_name
        width = _LETTER * len(name)
        for begin in (x + 9, x - 9 - width):
            box = (begin, y - 15, begin + width, y - 2)
            is_inside = begin > _FRAME.left and begin + width < _FRAME.width - _FRAME.right
            if is_inside and not any(_overlap(box, other) for other in taken):
                taken.append(box)
                yield text(begin, y - 5, "label", shown(name))
                break


def _overlap(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    across = one[0] < other[2] and other[0] < one[2]
    return across and one[1] < other[3] and other[1] < one[3]


_SHAPES = {
    "read": "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0z",
    "write": "M0 -6L5.5 4.5L-5.5 4.5z",
}
_OTHER = "M0 -6L6 0L0 6L-6 0z"


def _kinds(point: _Point, estimate: bool) -> str:
    """Classes of the style."""
    kinds = ["mark", "buffered" if point.line.row.cache.buffer == "on" else "direct"]
    if estimate:
        kinds.append("estimate")
    if point.line.campaign % 2:
        kinds.append("other")
    return " ".join(kinds)


def _bare_mark(point: _Point, across: Scale, up: Scale, estimate: bool) -> Markup:
    shape = _SHAPES.get(point.line.row.operation or "", _OTHER)
    return Markup('<g class="{}"><path d="{}" transform="translate({:.0f} {:.0f})"/></g>').format(
        _kinds(point, estimate), shape, across.at(point.mbs.median / MB), up.at(point.w.median)
    )


def _mark(point: _Point, across: Scale, up: Scale, estimate: bool) -> Markup:
    row = point.line.row
    x, y = across.at(point.mbs.median / MB), up.at(point.w.median)
    label = (
        f"{point.line.full_name}: {page_number(point.mbs.median / MB)} MB/s, "
        f"{page_number(point.w.median)} W, {row.n} runs"
    )
    return Markup(
        '<g class="{}"><path class="whisker" d="M{:.1f} {:.1f}H{:.1f}M{:.1f} {:.1f}V{:.1f}"/>'
        '<path d="{}" transform="translate({:.1f} {:.1f})"><title>{}</title></path></g>'
    ).format(
        _kinds(point, estimate),
        across.at(point.mbs.q1 / MB),
        y,
        across.at(point.mbs.q3 / MB),
        x,
        up.at(point.w.q1),
        up.at(point.w.q3),
        _SHAPES.get(row.operation or "", _OTHER),
        x,
        y,
        escape(shown(label)),
    )
