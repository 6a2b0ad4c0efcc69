"""The timeline of a traced program."""

from itertools import combinations

import pytest
from matplotlib.text import Annotation

from eeio.report.figures.timeline import drawing
from eeio.traces.events import TracePhase


def _phase(start_s: float, lasts_s: float) -> TracePhase:
    return TracePhase(
        "write", "sequential", start_s, start_s + lasts_s, 20, 0, 20 << 16, 65536, 1.0, 65536,
        65536, 1, ("f",), lasts_s,
    )  # fmt: skip


@pytest.mark.parametrize("gap_s", [0.01, 0.2, 1.0])
def test_names_of_short_phases_do_not_overprint(gap_s: float) -> None:
    """Twelve phases in a tenth of the time, and one at the end."""
    phases = [*(_phase(gap_s * n, gap_s / 2) for n in range(12)), _phase(120 * gap_s, gap_s)]
    figure = drawing([], phases, {}).figure
    figure.draw_without_rendering()
    panel = figure.axes[0]
    names = [one for one in panel.texts if isinstance(one, Annotation)]
    assert names[0].get_text() == "1: write, 64 KiB" and names[-1].get_text().startswith("13")
    boxes = [(one.get_text(), one.get_window_extent()) for one in names]
    assert [(a, b) for (a, one), (b, other) in combinations(boxes, 2) if one.overlaps(other)] == []
    assert all(box.x1 <= panel.bbox.x1 + 1 for _, box in boxes)
