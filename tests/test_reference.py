"""docs/reference/commands.md is current."""

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_list_of_commands_is_current() -> None:
    """`ci/reference` writes it again."""
    page = (ROOT / "docs/reference/commands.md").read_text(encoding="utf-8")
    assert page == runpy.run_path(str(ROOT / "ci/reference"))["page"]()
