"""The notebooks run, and the points of their chart are those of the page."""

import json
import sys
from pathlib import Path

import pytest

from eeio.record.store import load
from eeio.report.campaign.characterized import build
from eeio.report.page.page_data import figures_of, page_of
from tests.plugin import DATA

NOTEBOOKS = sorted((Path(__file__).parents[1] / "docs/notebooks").glob("*.ipynb"))
_POINTS = """
with open("points.json", "w") as file:
    file.write(points.write_json())
"""


def test_there_is_a_notebook_without_paths_of_a_machine() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["main-chart"]
    text = NOTEBOOKS[0].read_text(encoding="utf-8")
    assert "/root" not in text and "/home" not in text
    outputs = [one for cell in json.loads(text)["cells"] for one in cell.get("outputs", ())]
    assert sum("image/png" in one.get("data", {}) for one in outputs) == 1


@pytest.mark.parametrize("name", ["quick-before", "server"])
def test_the_notebook_has_the_points_of_the_page(name: str, tmp_path: Path) -> None:
    nbformat, nbclient, *_ = (
        pytest.importorskip(package, reason=f"{package} is not installed (extra `test`)")
        for package in ("nbformat", "nbclient", "ipykernel", "polars", "duckdb")
    )
    notebook = nbformat.read(NOTEBOOKS[0], as_version=4)
    (parameters,) = (
        cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", ())
    )
    parameters.source = f"CAMPAIGN = {str(DATA / 'campaigns' / name)!r}"
    notebook.cells.append(nbformat.v4.new_code_cell(_POINTS))
    client = nbclient.NotebookClient(
        notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}
    )
    client.km = client.create_kernel_manager()
    # The interpreter of the tests, whatever kernels the user has installed.
    client.km.kernel_spec.argv[0] = sys.executable
    client.execute()
    drawn = {
        tuple(
            round(float(row[f"{column}_{part}"]), 6)
            for column in ("bandwidth_bytes_per_s", "power_w")
            for part in ("q1", "median", "q3")
        )
        for row in json.loads((tmp_path / "points.json").read_text())
    }
    page = page_of(build([load(DATA / "campaigns" / name)]))
    expected = set()
    for line in page.lines:
        speed, figures = line.row["bandwidth_bytes_per_s"], figures_of(line.row, page.key)
        if speed is not None and figures is not None and figures["power_w"] is not None:
            power = figures["power_w"]
            expected.add(tuple(
                round(value, 6) for value in (speed.q1 / 1e6, speed.median / 1e6, speed.q3 / 1e6,
                                              power.q1, power.median, power.q3)
            ))  # fmt: skip
    assert len(expected) == 12
    assert drawn == expected
