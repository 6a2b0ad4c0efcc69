"""docs/reference/commands.md and factors.md are current."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(("name", "function"), [("commands", "page"), ("factors", "factors_page")])
def test_a_generated_page_is_current(name: str, function: str) -> None:
    """`ci/reference` writes it again."""
    page = (ROOT / f"docs/reference/{name}.md").read_text(encoding="utf-8")
    assert page == runpy.run_path(str(ROOT / "ci/reference"))[function]()
