"""The points of a guideline's map, for the figure and for the page."""

from dataclasses import dataclass

from eeio_limits import text as harmless
from eeio_results.guideline.answer import Guideline
from eeio_results.statistics.bootstrap import Estimate


@dataclass(frozen=True)
class Point:
    """One experiment, or the complete mix: `x` is B_ts / B_lp, `y` P_lp / P_ts, both above 0.
    `saves` is whether replacing saves power there; None if the interval does not decide."""

    number: str
    label: str
    operation: str
    spatiality: str
    in_mix: bool
    x: Estimate
    y: Estimate
    saves: bool | None


def words(point: Point) -> str:
    """The point as text: both ratios with their intervals."""
    mix = "" if point.in_mix else ", not in the mix"
    return harmless.xml(
        f"{point.number}: {point.label}{mix}; B_ts / B_lp {interval(point.x)}; "
        f"P_lp / P_ts {interval(point.y)}"
    )


def interval(figure: Estimate) -> str:
    """`1.43 (1.38 to 1.49)`."""
    between = figure.interval
    told = "no interval" if between is None else f"{between.low:.3g} to {between.high:.3g}"
    return f"{figure.value:.3g} ({told})"


def points(guideline: Guideline) -> list[Point]:
    """Those that have both ratios, in the order of the experiments; the mix is the last."""
    found = [
        Point(
            str(index),
            row.label,
            row.key.operation,
            row.key.spatiality,
            row.share is not None,
            row.bandwidth_ratio,
            row.power_ratio,
            row.saves,
        )
        for index, row in enumerate((r for r in guideline.experiments if not r.reason), start=1)
    ]
    if guideline.reason is None:
        ratios = guideline.ratio, guideline.power_ratio
        found.append(Point("mix", "the complete mix", "mix", "mix", True, *ratios, guideline.saves))
    return [point for point in found if point.x.value and point.y.value]
