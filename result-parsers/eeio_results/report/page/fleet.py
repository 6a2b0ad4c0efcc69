"""The charts of the fleet page: every node against the others of its kind, with the outliers."""

from eeio_results.comparison.fleet import Fleet
from eeio_results.report.page.panels import Axes, Line, Panel, lines

_NAMED = 6
"""Of outliers in a note; the table has all."""


def charts(found: Fleet, stamp: str) -> list[Panel]:
    """A panel for each metric: the nodes in order of their ratio to the median of their kind."""
    panels = []
    for metric in found.metrics:
        ratios = sorted(
            (node.ratios[metric], node.name) for node in found.nodes if metric in node.ratios
        )
        if ratios:
            panels.append(_panel(found, metric, ratios, stamp))
    return panels


def _panel(found: Fleet, metric: str, ratios: list[tuple[float, str]], stamp: str) -> Panel:
    points = tuple((float(n), 100 * (ratio - 1)) for n, (ratio, _) in enumerate(ratios, 1))
    outliers = {one.node for one in found.outliers if one.metric == metric}
    places = [n for n, (_, name) in enumerate(ratios) if name in outliers]
    marked = Line("outliers", tuple(points[n] for n in places), tuple(range(len(places))), False)
    every = Line("nodes", points, tuple(range(len(points))), False)
    series = [every, marked] if places else [every]
    last = len(ratios)
    ticks = tuple((float(n), str(n)) for n in dict.fromkeys((1, -(-last // 2), last)))
    axes = Axes(f"{metric}: difference (%)", "Nodes, in order of the difference", ticks, rule=0.0)
    named = [f"{ratios[n][1]} {100 * (ratios[n][0] - 1):+.1f} %" for n in places]
    more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    note = f"Outliers: {', '.join(named[:_NAMED])}{more}." if named else "No outlier."
    title = f"{metric} of {len(ratios)} nodes, against the median of their kind"
    return lines(title, series, axes, note, stamp)
