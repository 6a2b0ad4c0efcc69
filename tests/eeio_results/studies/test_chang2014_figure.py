"""The figure that Chang et al. compare, and that repetitions go on for."""

from dataclasses import replace

import pytest
from tests.eeio_results.made import phase, run

from eeio.studies.chang2014.cells import figure_of_merit


@pytest.mark.parametrize(
    ("name", "metrics", "figure"),
    [
        # Metarates' own rate, not that of the wall, which several processes share.
        ("create", {"rate_eq9_per_s": 40.0, "operations_per_s": 150.0}, 40.0),
        ("create", {"operations_per_s": 150.0}, None),
        ("write", {"children_bandwidth_bytes_per_s": 8e6}, 8e6),
        ("write", {}, 1e6),
    ],
)
def test_the_figure_of_a_run(name: str, metrics: dict[str, float], figure: float | None) -> None:
    bandwidth = 1e6 if name == "write" else None
    one = replace(phase(bandwidth), name=name, operation=name, metrics=metrics)
    assert figure_of_merit(run(0, (one,))) == figure
