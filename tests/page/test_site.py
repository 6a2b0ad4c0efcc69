"""The page of `eeio table` in a browser: sorted, filtered, and without overflow."""

import re
from pathlib import Path

import pytest

from eeio.cli import main
from tests.eeio.test_table import bundle, of_tests
from tests.eeio_results.made import energy
from tests.page.conftest import Reader


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five bundles: two may be published, one has a hostile drive."""
    folder = tmp_path_factory.mktemp("bundles")
    made = [
        bundle(folder, "lab-a", (energy(5.0), energy(3.0, domain="device")), drive="Fast SSD"),
        bundle(folder, "lab-b", (energy(9.0), energy(2.0, domain="device")), drive="<b>Disk</b>"),
        of_tests(folder, "server"),
        of_tests(folder, "board"),
        of_tests(folder, "estimates"),
    ]
    arguments = ["table", *map(str, made), "-o", str(folder / "site"), "--price", "Fast SSD=90"]
    assert main(arguments) == 0
    return folder / "site/index.html"


def shown(reader: Reader, column: int) -> list[str]:
    """The cells of a column in all rows that are shown; of a group its title."""
    found: list[str] = reader.run(
        "return [...document.querySelectorAll('#results tbody > tr')].filter((row) => !row.hidden)"
        ".map((row) => (row.cells[arguments[0]] ?? row.cells[0]).firstChild.textContent)",
        column,
    )
    return found


def sort_by(reader: Reader, head: str) -> None:
    reader.run(
        "[...document.querySelectorAll('#results thead button')]"
        ".find((one) => one.textContent === arguments[0]).click()",
        head,
    )


SYSTEM = "Power of system, measured: best MB/J first"
DEVICE = "Power of device, measured: best MB/J first"


def test_rows_are_sorted_within_their_groups(reader: Reader, page: Path) -> None:
    reader.open(page)
    before = shown(reader, 5)
    assert before[:6] == [SYSTEM, "20.0", "11.1", DEVICE, "50.0", "33.3"]
    sort_by(reader, "W")
    after = shown(reader, 4)
    assert after[:6] == [SYSTEM, "9.00", "5.00", DEVICE, "3.00", "2.00"]
    sort_by(reader, "W")
    assert shown(reader, 4)[:6] == [SYSTEM, "5.00", "9.00", DEVICE, "2.00", "3.00"]
    # Groups without a rank keep their order by energy.
    sort_by(reader, "MB/J")
    assert shown(reader, 5)[6:] == before[6:]
    sort_by(reader, "MB/s")
    assert shown(reader, 5)[6:] != before[6:] and sorted(shown(reader, 5)) == sorted(before)
    sort_by(reader, "Drive")
    assert shown(reader, 1)[:3] == [SYSTEM, "<b>Disk</b>", "Fast SSD"]


def test_filters_leave_rows_and_hide_empty_groups(reader: Reader, page: Path) -> None:
    reader.open(page)
    every = reader.run("return document.querySelector('#filters output').textContent")
    total = int(re.fullmatch(r"(\d+) of \1 rows", every)[1])  # type: ignore[index]
    assert total > 20
    reader.choose("Drive", "Fast SSD")
    assert shown(reader, 5) == [SYSTEM, "20.0", DEVICE, "33.3"]
    reader.choose("Power of", "device")
    assert shown(reader, 5) == [DEVICE, "33.3"]
    reader.choose("Level", "device")
    assert shown(reader, 5) == []
    for label in ("Drive", "Power of", "Level"):
        reader.choose(label, "all")
    assert len(shown(reader, 0)) > total
    reader.press("#filters input[type=checkbox]")
    assert shown(reader, 5) == [SYSTEM, "20.0", "11.1", DEVICE, "50.0", "33.3"]
    reader.run(
        "const input = document.querySelector('#filters input[type=number]');"
        "input.value = '89'; input.dispatchEvent(new Event('input'));"
    )
    assert shown(reader, 5) == []
    reader.run(
        "const input = document.querySelector('#filters input[type=number]');"
        "input.value = '90'; input.dispatchEvent(new Event('input'));"
    )
    assert shown(reader, 5) == [SYSTEM, "20.0", DEVICE, "33.3"]


@pytest.mark.parametrize("width", [1400, 400])
@pytest.mark.parametrize("dark", [False, True])
def test_the_page_fits(reader: Reader, page: Path, width: int, dark: bool) -> None:
    reader.open(page, width=width, dark=dark)
    assert reader.run("return document.documentElement.scrollWidth") <= width
    reader.keep(f"site-{width}{'-dark' if dark else ''}")
    reader.run("document.getElementById('bundles-title').scrollIntoView()")
    reader.keep(f"site-{width}{'-dark' if dark else ''}-bundles")


def test_without_scripts_every_row_is_shown(reader_without_scripts: Reader, page: Path) -> None:
    reader_without_scripts.driver.get(page.as_uri())
    found = reader_without_scripts.driver.find_elements("css selector", "#results tbody tr")
    assert len(found) > 20 and all(row.is_displayed() for row in found)
    form = reader_without_scripts.driver.find_element("id", "filters")
    assert not form.is_displayed()
