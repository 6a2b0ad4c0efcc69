"""Copies of a stored campaign, as `ci/outputs` makes them: nights of one machine, and nodes."""

import runpy
from pathlib import Path

_OUTPUTS = runpy.run_path(str(Path(__file__).parents[2] / "ci/outputs"))
COUNT: int = _OUTPUTS["NIGHTS"]


def make(folder: Path) -> None:
    """Campaigns in `.data/eeio/results` and nodes in `nodes.d`, below that folder."""
    _OUTPUTS["nights"](folder)
