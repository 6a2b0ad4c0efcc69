"""Each dependency of an extra is in NOTICE.md, and citation files agree with the version."""

import json
import re
import tomllib
from pathlib import Path

import yaml

from eeio import __version__

ROOT = Path(__file__).parents[1]
OF_DEVELOPERS = ("test", "site", "release")


def test_notices_name_every_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    needed = {("required", one) for one in project["dependencies"]} | {
        (f"`{extra}`", one)
        for extra, packages in extras.items()
        if extra not in OF_DEVELOPERS
        for one in packages
    }
    wanted = {
        (name, extra)
        for extra, one in needed
        if (name := re.split(r"[^\w-]", one)[0]) != "eeio"  # an extra that names others
    }
    notice = (ROOT / "NOTICE.md").read_text()
    assert set(re.findall(r"^\| ([\w-]+) \| (required|`\w+`) \| \w", notice, re.M)) == wanted


def test_citations_agree() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    archive = json.loads((ROOT / ".zenodo.json").read_text())
    assert citation["version"] == __version__
    assert citation["title"] == archive["title"]
    assert citation["license"] == archive["license"]
    assert citation["keywords"] == archive["keywords"]
