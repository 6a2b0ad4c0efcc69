"""The pages for who reads the repository: their links, and what they say of the code."""

import re
from pathlib import Path

import pytest

import eeio_power.reading
import eeio_results.record
from eeio_power.reading import DOMAINS
from eeio_results.record import LEVELS

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("*/README.md")])
HOUSE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")


def _anchors(page: Path) -> set[str]:
    """The headings of a page, as GitHub names them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", text.lower()).replace(" ", "-") for text in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, anchor = link.partition("#")
        if ":" in path:
            continue  # the web
        target = page.parent / path if path else page
        assert target.exists(), link
        assert not anchor or anchor in _anchors(target), link


def test_the_readme_leads_to_every_guide() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    pages = [path.name for path in (ROOT / "docs/how-to").glob("adding-a-*.md")]
    for page in ("CONTRIBUTING.md", "architecture.md", *pages):
        assert page in readme or (page in HOUSE and "architecture.md" in readme), page


def test_the_house_has_the_rooms_that_the_page_names() -> None:
    """Every room stands in the table, and every folder and module that the table names is there."""
    table = HOUSE.partition("## The rooms")[2].partition("## The walls")[0]
    named: dict[str, list[str]] = {}
    for row in re.findall(r"^\| (`.+?) \| (.+) \|$", table, flags=re.MULTILINE):
        for room in re.findall(r"`([^`]+)`", row[0]):
            named[room] = re.findall(r"`([\w/]+)`", row[1])
    for room, parts in named.items():
        assert (ROOT / room).exists(), room
        for part in parts:
            if room.count("/") == 2 or room in ("scripts/", "scripts/eeio/"):
                path = ROOT / room / part
                assert path.exists() or path.with_suffix(".py").exists(), f"{room}{part}"
    for package in ("power-monitor/eeio_power/", "result-parsers/eeio_results/", "scripts/eeio/"):
        rooms = {path.parent.name for path in (ROOT / package).glob("*/__init__.py")}
        assert rooms <= {part.rstrip("/") for part in named[package]}


def test_the_words_are_those_of_the_code() -> None:
    assert eeio_results.record.DOMAINS == DOMAINS
    assert ", ".join(f"`{domain}`" for domain in DOMAINS) in HOUSE
    assert "`{}`, `{}`, `{}` or `{}`".format(*LEVELS) in HOUSE
    kinds = eeio_power.reading.KINDS
    assert "`{}`, `{}`, `{}` or `{}`".format(*kinds) in HOUSE


def test_the_commands_of_contributing_are_there() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    commands = re.findall(r"^    ((?:ci|scripts|tests)/\S+)", page, flags=re.MULTILINE)
    assert commands
    assert [command for command in commands if not (ROOT / command).is_file()] == []
