"""Each tool has a folder with its parser, its README and tests; no list names the tools."""

from pathlib import Path

import pytest
from tests.plugin import PARSERS

from eeio_parsers import formats

FOLDERS = sorted(path.parent for path in PARSERS.glob("*/report.py"))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_tool_s_folder_is_complete(folder: Path) -> None:
    readme = (folder / "README.md").read_text()
    assert "| form | versions |" in readme and "## Ignored" in readme
    tests = list((folder / "tests").glob("test_*.py"))
    assert tests, f"{folder.name} has no tests"


def test_every_format_is_found_by_its_folder() -> None:
    tools = {form.tool for form in formats.every()}
    assert {"fio", "ior", "mdtest", "io500", "dd", "darshan", "vdbench"} <= tools
    assert tools <= set(formats.rules())
