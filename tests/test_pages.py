"""The pages for who reads the repository: what they state about the code."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import eeio.record.run
import eeio_power.reading
from eeio.record.run import LEVELS
from eeio.report.campaign.terms import TERMS
from eeio_power.reading import DOMAINS

ROOT = Path(__file__).parents[1]
ARCHITECTURE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")


def test_the_readme_leads_to_every_guide() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    pages = [path.name for path in (ROOT / "docs/how-to").glob("adding-a-*.md")]
    for page in ("CONTRIBUTING.md", "architecture.md", *pages):
        assert page in readme or (page in ARCHITECTURE and "architecture.md" in readme), page


def test_the_readme_names_every_folder() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    table = readme.partition("## Folders")[2].partition("## Documentation")[0]
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    if tracked.returncode != 0:
        pytest.skip("no checkout of git")
    folders = {line.partition("/")[0] for line in tracked.stdout.splitlines() if "/" in line}
    visible = {folder for folder in folders if not folder.startswith(".")}
    assert visible == set(re.findall(r"`([\w-]+)/`", table))


def test_the_packages_are_those_of_the_architecture() -> None:
    """Every package is in the table, and every folder and module that the table names exists."""
    table = ARCHITECTURE.partition("## Packages")[2].partition("## Import rules")[0]
    named: dict[str, list[str]] = {}
    for row in re.findall(r"^\| (`.+?) \| (.+) \|$", table, flags=re.MULTILINE):
        for folder in re.findall(r"`([^`]+)`", row[0]):
            named[folder] = re.findall(r"`([\w/]+)`", row[1])
    for folder, parts in named.items():
        assert (ROOT / folder).exists(), folder
        for part in parts:
            if folder.count("/") == 2 or folder.startswith(("scripts/", "src/eeio/")):
                path = ROOT / folder / part
                assert path.exists() or path.with_suffix(".py").exists(), f"{folder}{part}"
    packages = {path.parent.name for path in (ROOT / "src/eeio").glob("*/__init__.py")}
    assert {f"src/eeio/{package}/" for package in packages} <= set(named)
    for package in ("power-monitor/eeio_power/", "src/eeio/measure/"):
        folders = {path.parent.name for path in (ROOT / package).glob("*/__init__.py")}
        assert folders <= {part.rstrip("/") for part in named[package]}


def test_the_page_defines_terms_as_the_glossary_does() -> None:
    glossary = (ROOT / "docs/reference/glossary.md").read_text(encoding="utf-8")
    for term, meaning in TERMS:
        assert f"| **{term}** | {meaning} |" in glossary


def test_the_glossary_has_the_values_of_the_code() -> None:
    assert eeio.record.run.DOMAINS == DOMAINS
    assert ", ".join(f"`{domain}`" for domain in DOMAINS) in ARCHITECTURE
    assert "`{}`, `{}`, `{}` or `{}`".format(*LEVELS) in ARCHITECTURE
    kinds = eeio_power.reading.KINDS
    assert "`{}`, `{}`, `{}` or `{}`".format(*kinds) in ARCHITECTURE


def test_the_commands_of_contributing_are_there() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    commands = re.findall(r"^    ((?:ci|scripts|tests)/\S+)", page, flags=re.MULTILINE)
    assert commands
    assert [command for command in commands if not (ROOT / command).is_file()] == []


def test_each_profile_that_uses_the_network_is_in_the_table_of_security() -> None:
    """A program that listens on a loopback address, or a store elsewhere."""
    security = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    table = security.partition("Network access:")[2].partition("Anyone who")[0]
    users = {
        path.parent.name.rpartition("-")[0]
        for path in (ROOT / "test-profiles").glob("eeio-*/*.*")
        if path.suffix in (".py", ".sh")
        and re.search(r"127\.0\.0\.1|_ENDPOINT", path.read_text(encoding="utf-8"))
    }
    assert users == {"eeio-s3"}
    for name in users:
        rows = [line.split("|")[1].strip() for line in table.splitlines() if f"`{name}`" in line]
        assert rows == ["listens", "connects"], name
