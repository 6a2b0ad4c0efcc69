"""The charts of the other pages: SVG of one width each, which the page places side by side.

A panel is as wide as a phone. The page shows as many next to each other as fit, so the text has
about its nominal size on every screen. No panel needs the script.
"""

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import log10

from markupsafe import Markup

from eeio.report.page.scale import linear_ticks, plain, steps
from eeio.units.external_text import shown
from eeio.units.number_text import page_number

_WIDTH = 420
_LETTER = 6.6
"""Of the label's text, on average."""
_BAR_ROW, _BAR_HEIGHT, _SMALL_LINE, _FOREST_ROW = 40, 14, 15, 48
_TOP = 24
_LEFT, _RIGHT, _PLOT_HEIGHT, _BELOW = 52, 12, 170, 34


@dataclass(frozen=True)
class Part:
    """A segment of a bar."""

    name: str
    value: float


@dataclass(frozen=True)
class Bar:
    """A figure from 0: its label, its text, and its interval or its parts if it has some. A figure
    that is missing has no parts, and its text is the reason."""

    label: str
    text: str
    parts: tuple[Part, ...] = ()
    interval: tuple[float, float] | None = None

    @property
    def value(self) -> float:
        return sum(part.value for part in self.parts)

    @property
    def most(self) -> float:
        return max(self.value, *(self.interval or (0.0,)))


@dataclass(frozen=True)
class Panel:
    """A chart with its heading."""

    title: str
    svg: Markup
    note: str = ""


def bars(title: str, rows: Sequence[Bar], stamp: str = "", note: str = "") -> Panel:
    """Horizontal bars on one scale from 0. Each part has its own shade, and is named below."""
    most = max((row.most for row in rows), default=0.0) or 1.0
    names = list(dict.fromkeys(part.name for row in rows for part in row.parts))
    pieces: list[Markup] = []
    y = 4.0
    for row in rows:
        pieces += _bar(row, y, (_WIDTH - 8) / most, names)
        y += _BAR_ROW + _SMALL_LINE * len(_named_parts(row))
    return replace(_panel(title, _described(rows), y, pieces, stamp), note=note)


def _described(rows: "Sequence[Bar | Difference]") -> str:
    """For who cannot see them."""
    return "; ".join(f"{row.label}: {row.text}" for row in rows)


def _bar(row: Bar, y: float, scale: float, names: Sequence[str]) -> Iterator[Markup]:
    if not row.parts:
        yield _text(4, y + 12, "title", _cut(row.label, _WIDTH - 8))
        yield _text(4, y + 28, "small", _cut(row.text, _WIDTH - 8))
        return
    yield _text(4, y + 12, "title", _cut(row.label, _WIDTH - _LETTER * len(row.text) - 20))
    yield _text(_WIDTH - 4, y + 12, "value end", row.text)
    x = 4.0
    for part in row.parts:
        width = part.value * scale
        yield Markup(
            '<rect class="part{}" x="{:.1f}" y="{:.0f}" width="{:.1f}" height="{}">'
            "<title>{}: {}</title></rect>"
        ).format(
            names.index(part.name) % 4,
            x,
            y + 18,
            max(width, 0.5),
            _BAR_HEIGHT,
            part.name,
            page_number(part.value),
        )
        x += width
    if row.interval is not None:
        low, high = (4 + end * scale for end in row.interval)
        middle = y + 18 + _BAR_HEIGHT / 2
        yield Markup(
            '<path class="whisker" d="M{0:.1f} {2:.0f}H{1:.1f}M{0:.1f} {3:.0f}v8M{1:.1f} {3:.0f}v8"'
            "/>"
        ).format(low, high, middle, middle - 4)
    for number, (place, text) in enumerate(_named_parts(row)):
        line = y + 18 + _BAR_HEIGHT + 12 + _SMALL_LINE * number
        kind = names.index(row.parts[place].name) % 4
        yield Markup('<rect class="part{}" x="4" y="{:.0f}" width="9" height="9"/>').format(
            kind, line - 8
        )
        yield _text(18, line, "small", text)


def _named_parts(row: Bar) -> list[tuple[int, str]]:
    """A line for each part of a bar that has several."""
    if len(row.parts) < 2:
        return []
    return [(n, f"{part.name}: {page_number(part.value)}") for n, part in enumerate(row.parts)]


@dataclass(frozen=True)
class Line:
    """Points from the left to the right. `marks` are the places of those that have a dot."""

    label: str
    points: tuple[tuple[float, float], ...]
    marks: tuple[int, ...] = ()
    is_joined: bool = True


@dataclass(frozen=True)
class Axes:
    """The titles of both axes; `x_ticks` are positions with their text. `rule` is a horizontal line
    at that value, `upright` vertical ones with their text."""

    y_title: str
    x_title: str
    x_ticks: tuple[tuple[float, str], ...]
    rule: float | None = None
    upright: tuple[tuple[float, str], ...] = ()
    is_logarithmic: bool = False
    is_x_logarithmic: bool = False


@dataclass(frozen=True)
class _Area:
    """From values to pixels: x from `left` to `right`, y from `low` to `high`, or of logarithms."""

    left: float
    right: float
    low: float
    high: float
    is_logarithmic: bool
    is_x_logarithmic: bool

    def across(self, x: float) -> float:
        place = x
        if self.is_x_logarithmic:
            place = log10(x)
        span = self.right - self.left
        share = 0.5
        if span:
            share = (place - self.left) / span
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def up(self, y: float) -> float:
        height = y
        if self.is_logarithmic:
            height = log10(y)
        return _TOP + (self.high - height) / (self.high - self.low) * _PLOT_HEIGHT

    def ticks(self) -> list[float]:
        if not self.is_logarithmic:
            return linear_ticks(self.low, self.high)
        every = (1, 2, 5) if self.high - self.low < 1.5 else (1,)
        low = 10**self.low
        return [value for value in steps(low, 10**self.high, every) if value >= low]


def _area(series: Sequence[Line], axes: Axes) -> _Area:
    """That contains all values, with a margin."""
    points: list[tuple[float, float]] = []
    for line in series:
        points.extend(line.points)
    across, up = map(list, zip(*points, strict=True))
    if axes.rule is not None:
        up.append(axes.rule)
    left, right, low, high = min(across), max(across), min(up), max(up)
    if axes.is_x_logarithmic:
        left, right = log10(left), log10(right)
    if axes.is_logarithmic:
        low, high = log10(low), log10(high)
    margin = 0.08 * (high - low) or 0.08 * abs(high) or 1.0
    room = (1.0 + 2.0 * bool(axes.upright)) * margin  # for the texts of upright lines
    return _Area(left, right, low - margin, high + room, axes.is_logarithmic, axes.is_x_logarithmic)


def lines(title: str, series: Sequence[Line], axes: Axes, note: str = "", stamp: str = "") -> Panel:
    """Values over something, as lines with their marks. `note` says in words what they show."""
    area = _area(series, axes)
    bottom = _TOP + _PLOT_HEIGHT
    pieces = [_text(4, 12, "title", axes.y_title)]
    for value in area.ticks():
        pieces.append(_path("grid", f"M{_LEFT} {area.up(value):.1f}H{_WIDTH - _RIGHT}"))
        pieces.append(_text(_LEFT - 6, area.up(value) + 4, "end", plain(value)))
    if axes.rule is not None:
        pieces.append(_path("idle", f"M{_LEFT} {area.up(axes.rule):.1f}H{_WIDTH - _RIGHT}"))
    pieces += _x_axis(axes, area, bottom)
    for number, line in enumerate(series):
        points = [(area.across(x), area.up(y)) for x, y in line.points]
        if line.is_joined:
            way = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
            pieces.append(_path(f"curve s{number % 4}", f"M{way}"))
        for place in line.marks:
            pieces.append(_dot(*points[place], number))
    height = bottom + _BELOW
    if len(series) > 1:
        for number, line in enumerate(series):
            height += _SMALL_LINE
            sample = _dot(_LEFT + 11, height - 4, number)
            if line.is_joined:
                sample = _path(f"curve s{number % 4}", f"M{_LEFT} {height - 4}h22")
            pieces.append(sample)
            pieces.append(_text(_LEFT + 28, height, "small", line.label))
    return replace(_panel(title, note, height + 6, pieces, stamp), note=note)


def _dot(x: float, y: float, number: int) -> Markup:
    return Markup('<circle class="dot s{}" cx="{:.1f}" cy="{:.1f}" r="3.5"/>').format(
        number % 4, x, y
    )


@dataclass(frozen=True)
class Difference:
    """A relative change: 0.05 is 5 % more. `is_sure` where the test decided; then it is filled."""

    label: str
    text: str
    change: float
    interval: tuple[float, float] | None
    is_sure: bool


def forest(title: str, rows: Sequence[Difference], span: float, stamp: str = "") -> Panel:
    """Changes with their intervals, on an axis from -span to +span. Ends beyond it stop there."""
    middle, half = _WIDTH / 2, _WIDTH / 2 - 14
    height = 20 + _FOREST_ROW * len(rows)
    pieces = [_path("grid", f"M{middle:.0f} 16V{height}")]
    for share, kind in ((-span, ""), (0.0, "middle"), (span, "end")):
        x = middle + share / span * (_WIDTH / 2 - 4)
        pieces.append(_text(x, 12, kind, f"{100 * share:+.0f} %" if share else "0"))

    def at(change: float) -> float:
        return middle + max(-1.0, min(1.0, change / span)) * half

    for number, row in enumerate(rows):
        top = 20 + _FOREST_ROW * number
        pieces.append(_text(4, top + 12, "title", _cut(row.label, _WIDTH - 8)))
        pieces.append(_text(4, top + 26, "small", row.text))
        if row.interval is not None:
            low, high = map(at, row.interval)
            pieces.append(_path("whisker", f"M{low:.1f} {top + 36}H{high:.1f}"))
        kind = "dot hollow"
        if row.is_sure:
            kind = "dot s0"
        pieces.append(
            Markup('<circle class="{}" cx="{:.1f}" cy="{}" r="4.5"/>').format(
                kind, at(row.change), top + 36
            )
        )
    return _panel(title, _described(rows), height, pieces, stamp)


def _x_axis(axes: Axes, area: _Area, bottom: float) -> Iterator[Markup]:
    end = 0.0
    for x, text in axes.x_ticks:
        yield _path("grid", f"M{area.across(x):.1f} {_TOP}V{bottom}")
        # Labels that would overprint their neighbour are left out.
        half = _LETTER * len(text) / 2
        if area.across(x) - half < end:
            continue
        middle = min(area.across(x), _WIDTH - 4 - half)
        yield _text(middle, bottom + 15, "middle", text)
        end = middle + half + 6
    yield _text(_LEFT, bottom + 30, "title", axes.x_title)
    for index, (x, text) in enumerate(axes.upright):
        yield _path("change", f"M{area.across(x):.1f} {_TOP}V{bottom}")
        is_right = area.across(x) > _WIDTH / 2
        yield _text(
            area.across(x) + (-4 if is_right else 4),
            _TOP + 10 + _SMALL_LINE * (index % 3),
            "small end" if is_right else "small",
            text,
        )


def crossing(
    ours: Sequence[tuple[float, float]], theirs: Sequence[tuple[float, float]]
) -> list[float]:
    """Where two lines over the same places cross, interpolated."""
    crossings = []
    for (before, after), (other_before, other_after) in zip(
        pairwise(ours), pairwise(theirs), strict=True
    ):
        first, second = before[1] - other_before[1], after[1] - other_after[1]
        if first * second < 0:
            share = first / (first - second)
            crossings.append(before[0] + share * (after[0] - before[0]))
    return crossings


def _panel(
    title: str, described: str, height: float, pieces: Sequence[Markup], stamp: str
) -> Panel:
    opening = Markup(
        '<svg class="chart panel" viewBox="0 0 {} {:.0f}" role="img" aria-label="{}">'
    ).format(_WIDTH, height, shown(f"{title}. {described}"))
    marks = []
    if stamp:
        marks.append(
            Markup('<text class="stamp" x="{}" y="{:.0f}">{}</text>').format(
                _WIDTH / 2, height / 2 + 10, stamp
            )
        )
    svg = Markup("").join([opening, *pieces, *marks, Markup("</svg>")])
    return Panel(title, svg)


def _text(x: float, y: float, kind: str, content: str) -> Markup:
    return Markup('<text x="{:.0f}" y="{:.0f}" class="{}">{}</text>').format(
        x, y, kind, shown(content)
    )


def _path(kind: str, steps: str) -> Markup:
    return Markup('<path class="{}" d="{}"/>').format(kind, steps)


def _cut(label: str, width: float) -> str:
    """A label in one line of that width."""
    characters = max(12, int(width / _LETTER))
    if len(label) <= characters:
        return label
    if " " in label[:characters]:
        return textwrap.shorten(label, characters, placeholder="…")
    return f"{label[: characters - 1]}…"
