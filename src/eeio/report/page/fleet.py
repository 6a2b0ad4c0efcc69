"""The charts of the fleet page: every node against the others of its kind, with the outliers."""

from eeio.comparison.fleet import Fleet
from eeio.report.page.panels import Axes, Line, Panel, lines

_NAMED = 6
"""Of outliers in a note; the table has all."""


def charts(found: Fleet, stamp: str) -> list[Panel]:
    """A panel for each metric: the nodes in order of their ratio to the median of their kind."""
    panels = []
    for metric in found.metrics:
        nodes = [node for node in found.nodes if metric in node.ratios]
        if nodes:
            ratios = sorted((node.ratios[metric], node.name) for node in nodes)
            panels.append(_panel(found, metric, ratios, stamp))
    return panels


def _panel(found: Fleet, metric: str, ratios: list[tuple[float, str]], stamp: str) -> Panel:
    outliers = {outlier.node for outlier in found.outliers if outlier.metric == metric}
    points, marked, named = [], [], []
    for index, (ratio, name) in enumerate(ratios, 1):
        point = (float(index), 100 * (ratio - 1))
        points.append(point)
        if name in outliers:
            marked.append(point)
            named.append(f"{name} {point[1]:+.1f} %")
    series = [_dots("nodes", points), *([_dots("outliers", marked)] if marked else [])]
    last = len(ratios)
    ticks = tuple((float(n), str(n)) for n in dict.fromkeys((1, -(-last // 2), last)))
    axes = Axes(f"{metric}: difference (%)", "Nodes, in order of the difference", ticks, rule=0.0)
    more = ""
    if len(named) > _NAMED:
        more = f" and {len(named) - _NAMED} more"
    note = "No outlier."
    if named:
        note = f"Outliers: {', '.join(named[:_NAMED])}{more}."
    title = f"{metric} of {len(ratios)} nodes, against the median of their kind"
    return lines(title, series, axes, note, stamp)


def _dots(label: str, points: list[tuple[float, float]]) -> Line:
    return Line(label, tuple(points), tuple(range(len(points))), is_joined=False)
