"""The page in a real browser: what a reader can ask of it, by mouse, keyboard, paper and eye."""

import base64
import csv
import json
import shutil
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from eeio.comparison.cells import J_PER_GB, Cell
from eeio.comparison.changes import Changes, ExperimentChange, MetricChange, Verdict, change_metrics
from eeio.guideline.replacement_rule import guideline
from eeio.guideline.servers import CellValues, Server
from eeio.guideline.workload import CellKey, WorkloadEntry, make_workload
from eeio.report import page
from eeio.report.campaign.characterized import build
from eeio.report.page import guideline as guideline_page
from eeio.statistics.decision import Change, Rule
from tests.page.conftest import Reader, Write
from tests.page.made import campaign, power
from tests.processes import ran

AXE = Path(__file__).parents[2] / "ci/page/node_modules/axe-core/axe.min.js"
ESTIMATED = (("system", "modelled"),)


@pytest.fixture(scope="module")
def two() -> str:
    """Two campaigns, 8 experiments each, with power over time."""
    fast = campaign(name="B", scale=1.3)
    return page.render(build([campaign(name="A"), fast]), power=power)


def _experiment(
    label: str, verdict: Verdict, ratio: float | None, interval: tuple[float, float] | None
) -> ExperimentChange:
    cell = Cell({"level": "device", "tool": "fio", "target": "file"}, {}, command=label)
    change = Change("open", ratio, interval, None, None, (6, 6))
    metrics = {
        metric: MetricChange(
            metric, "not compared", replace(change, ratio=None), (None, None), "few"
        )
        for metric in change_metrics()
    }
    metrics[J_PER_GB] = MetricChange(J_PER_GB, verdict, change, (20.0, 21.0), "few")
    return ExperimentChange(cell, cell, metrics)


@pytest.fixture(scope="module")
def compared() -> str:
    """Two campaigns, and their changes."""
    experiments = (
        _experiment("random read", "better", 0.75, (0.7, 0.8)),
        _experiment("random write", "open", 1.05, (0.9, 1.2)),
        _experiment("<b>", "not compared", None, None),
    )
    changes = Changes("A", "B", Rule(), J_PER_GB, experiments, (), ())
    return page.render(build([campaign(name="A"), campaign(name="B", scale=1.3)]), [changes])


def test_a_comparison_answers_on_top_and_draws_its_intervals(
    reader: Reader, write: Write, compared: str
) -> None:
    reader.open(write("compared", compared))
    answers = reader.run("return [...document.querySelectorAll('.answer')].map((a) => a.innerText)")
    assert answers[0].startswith("B against A: J/GB is better by more than 1 % in 1 of 2")
    rows = reader.run(
        "return [...document.querySelectorAll('.forest')].map((f) => f.parentNode.parentNode)"
        ".map((row) => row.innerText)"
    )
    assert len(rows) == 2 and "-25.0 %" in rows[0] and "-30.0 to -20.0 %" in rows[0]
    assert reader.run("return document.querySelectorAll('.forest .sure').length") == 2
    reader.run("document.querySelector('#delta-title').scrollIntoView()")
    reader.keep("compared-1400")


@pytest.fixture(scope="module")
def one() -> str:
    return page.render(build([campaign(measurement=False)]), power=power)


def test_the_first_screen_answers_and_the_chart_carries_its_stamp(
    reader: Reader, write: Write, one: str
) -> None:
    reader.open(write("one", one))
    answer = reader.run("return document.querySelector('.answer').innerText")
    assert answer.startswith("Moving 1 GB past the page cache costs ")
    assert "±2 %" in answer and " idle and " in answer
    assert reader.run("return document.querySelectorAll('.tile').length") == 6
    assert reader.run("return document.querySelector('#chart .stamp').textContent") == "QUICK"
    assert reader.run("return document.querySelectorAll('#chart g.mark').length") == 8
    reader.keep("one-1400")


def test_a_column_is_sorted_and_filters_leave_what_they_ask_for(
    reader: Reader, write: Write, two: str
) -> None:
    reader.open(write("two", two))
    assert len(reader.names()) == 16
    reader.press("th[data-key=bandwidth_bytes_per_s] button")
    rates = [float(row[2].split("|")[1].split("\n")[0]) for row in reader.cells()]
    assert rates == sorted(rates, reverse=True)
    assert (
        reader.run("return document.querySelector('th[data-key=bandwidth_bytes_per_s]').ariaSort")
        == "descending"
    )
    reader.press("th[data-key=bandwidth_bytes_per_s] button")
    rates = [float(row[2].split("|")[1].split("\n")[0]) for row in reader.cells()]
    assert rates == sorted(rates)
    reader.choose("Operation", "write")
    assert len(reader.names()) == 8 and all("write" in name for name in reader.names())
    reader.choose("Campaign", "B")
    assert reader.run("return document.querySelector('output').textContent") == (
        "4 of 16 experiments"
    )
    reader.until("return document.querySelectorAll('#chart g.mark').length === 4")
    reader.press("#filters input")
    reader.run("document.querySelector('#filters input').focus()")
    reader.keys(*"random")
    assert all(name.startswith("random write") for name in reader.names())
    assert len(reader.names()) == 2


def test_other_columns_are_chosen_and_back(reader: Reader, write: Write, two: str) -> None:
    reader.open(write("two", two))
    before = reader.cells()
    reader.press("[data-value=energy]")
    assert reader.cells() != before
    assert "Why not ranked" in reader.run("return document.querySelector('thead').innerText")
    reader.press("[data-value=essential]")
    assert reader.cells() == before


def test_another_power_domain_changes_the_figures(reader: Reader, write: Write, one: str) -> None:
    reader.open(write("one", one))
    before = [row[2] for row in reader.cells()]
    reader.choose("Power of", "package (meter)")
    after = [row[2] for row in reader.cells()]
    assert all(a != b for a, b in zip(before, after, strict=True))
    assert "without drives" in reader.run("return document.querySelector('tbody').innerText")


def test_a_row_opens_its_repetitions(reader: Reader, write: Write, one: str) -> None:
    reader.open(write("one", one))
    reader.press("tbody th button")
    reader.until("return document.querySelectorAll('.detail .card').length === 4")
    message = reader.run("return document.querySelector('.detail').innerText")
    assert "Repetition 3" in message and "raw/" in message and " ± " in message
    # A curve a domain in each of three cards, the window shaded, and a line of latencies each.
    assert reader.run("return document.querySelectorAll('.detail .shade').length") == 3
    assert reader.run("return document.querySelectorAll('.detail .curve').length") == 3 * 2 + 3
    reader.keep("one-drilldown")
    reader.press("tbody th button")
    assert reader.run("return document.querySelectorAll('.detail').length") == 0


def test_the_curve_is_of_the_samples(reader: Reader, write: Write, one: str) -> None:
    reader.open(write("one", one))
    runs = reader.driver.execute_async_script(
        """
        const done = arguments[0];
        const text = document.getElementById("runs").textContent.trim();
        const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
        const packed = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
        new Response(packed).json().then(done);
        """
    )
    ends, watts = runs[0][0]["power"][0]
    assert len(watts) <= 122 and watts[0] is None
    # 12 % of the window of 5 to 65 s on both sides.
    assert -2.4 < ends["from"] <= -2.2 and 72.2 <= ends["to"] < 72.4
    assert all(45 <= watt <= 49 for watt in watts[1:])


def test_all_of_it_can_be_had_by_keyboard(reader: Reader, write: Write, one: str) -> None:
    from selenium.webdriver.common.keys import Keys

    reader.open(write("one", one))
    reader.keys(Keys.TAB)
    assert reader.run("return document.activeElement.className") == "skip"
    reader.keys("/")
    assert reader.run("return document.activeElement.type") == "search"
    # From the search, the last control before it, the chart is one stop, and arrows walk its marks.
    reader.keys(Keys.TAB)
    assert reader.run("return document.activeElement.getAttribute('class')") == "chart"
    assert reader.until("return !document.querySelector('.tip').hidden")
    first = reader.run("return document.querySelector('.tip').innerText")
    reader.keys(Keys.ARROW_RIGHT)
    assert reader.run("return document.querySelector('.tip').innerText") != first
    assert "J/GB" in reader.run("return document.activeElement.getAttribute('aria-label')")
    reader.keys(Keys.ESCAPE)
    assert reader.run("return document.querySelector('.tip').hidden")
    reader.keys(Keys.END, Keys.ENTER)
    reader.until("return document.querySelectorAll('.detail .card').length === 4")
    assert reader.run("return document.activeElement.ariaExpanded") == "true"
    reader.keys(Keys.ENTER)
    assert reader.run("return document.querySelectorAll('.detail').length") == 0


def test_the_repetitions_are_drawn_for_any_figure(reader: Reader, write: Write, two: str) -> None:
    reader.open(write("two", two))
    reader.press("[data-value=dots]")
    reader.until("return document.querySelectorAll('#chart circle').length === 16 * 3")
    title = reader.run("return document.querySelector('#chart .title').textContent")
    assert title == "J/GB (logarithmic), system (meter)"
    reader.choose("of", "p99 latency, ms")
    reader.until("return document.querySelector('#chart .title').textContent.startsWith('p99')")
    reader.keep("two-repetitions")


def test_no_estimate_is_ranked(reader: Reader, write: Write) -> None:
    reader.open(write("estimate", page.render(build([campaign(kinds=ESTIMATED)]))))
    assert reader.run("return document.querySelector('.answer').innerText").startswith(
        "Energy: not measured."
    )
    assert reader.run("return document.querySelector('#chart .stamp').textContent") == "ESTIMATE"
    before = reader.names()
    for _ in range(2):
        reader.press("th[data-key=efficiency_bytes_per_j] button")
        assert reader.names() == before
    assert reader.run("return document.querySelectorAll('td.estimate').length") == 4 * len(before)
    assert all("ESTIMATE" in cell for row in reader.cells() for cell in row[2:5])
    reader.press("th[data-key=bandwidth_bytes_per_s] button")
    assert reader.names() != before
    reader.keep("estimate-1400")


@pytest.mark.parametrize("width", [400, 800, 1400])
def test_the_page_never_scrolls_sideways(
    reader: Reader, write: Write, two: str, width: int
) -> None:
    reader.open(write("two", two), width=width)
    wide = "return document.documentElement.scrollWidth <= innerWidth"
    assert reader.run(wide)
    reader.press("tbody th button")
    reader.until("return document.querySelectorAll('.detail .card').length === 4")
    reader.press("[data-value=all]")
    reader.press("[data-value=dots]")
    reader.until("return document.querySelectorAll('#chart circle').length > 0")
    assert reader.run(wide)
    assert reader.run("return document.querySelector('#chart svg').clientWidth <= innerWidth")
    reader.keep(f"two-{width}")


@pytest.mark.parametrize("which", ["two", "unranked"])
def test_the_efficiency_is_in_view_at_800_pixels(
    reader: Reader, write: Write, request: pytest.FixtureRequest, which: str
) -> None:
    """`unranked` has marks below each figure."""
    text = (
        page.render(build([campaign(name=name, kinds=(("package", "demo"),)) for name in "AB"]))
        if which == "unranked"
        else request.getfixturevalue(which)
    )
    reader.open(write(which, text), width=800)
    outside = reader.run(
        """
        const edge = document.querySelector("#table").getBoundingClientRect().right;
        const head = document.querySelector("th[data-key=efficiency_bytes_per_j]");
        const rows = [...document.querySelectorAll("#experiments tbody > tr")];
        return [head, ...rows.map((row) => row.cells[head.cellIndex])]
          .filter((cell) => cell.getBoundingClientRect().right > edge)
          .map((cell) => cell.innerText);
        """
    )
    assert outside == []


def test_nothing_is_fetched(reader: Reader, write: Write, one: str) -> None:
    reader.driver.get_log("performance")
    reader.open(write("one", one))
    urls = [
        message["params"]["request"]["url"]
        for entry in reader.driver.get_log("performance")
        if (message := json.loads(entry["message"])["message"])["method"]
        == "Network.requestWillBeSent"
    ]
    assert all(url.startswith("file:") for url in urls) and len(urls) == 1


def test_what_is_shown_can_be_taken_along(
    reader: Reader, write: Write, one: str, downloads: Path
) -> None:
    reader.open(write("one", one))
    reader.choose("Operation", "read")
    for message in ("CSV", "Save as SVG"):
        # A real click: a browser takes a second file that nobody asked for as an attack.
        button = reader.driver.find_element("xpath", f"//button[text()='{message}']")
        reader.run("arguments[0].scrollIntoView({block: 'center'})", button)
        button.click()
    table, picture = downloads / "eeio.csv", downloads / "eeio.svg"
    end_s = time.monotonic() + 60
    while not (table.exists() and picture.exists()) and time.monotonic() < end_s:
        time.sleep(0.05)
    with table.open(newline="") as file:
        rows = list(csv.reader(file))
    assert len(rows) == 1 + 4 and rows[0][3].startswith("W")
    assert picture.read_text().count("<path") > 8 and "QUICK" in picture.read_text()


def test_without_scripts_tables_and_a_still_chart_stay(
    reader_without_scripts: Reader, write: Write, two: str
) -> None:
    reader = reader_without_scripts
    reader.driver.get(write("two", two).as_uri())
    from selenium.webdriver.common.by import By

    find = reader.driver.find_elements
    assert len(find(By.CSS_SELECTOR, "#chart svg g.mark")) == 16
    assert len(find(By.CSS_SELECTOR, "#experiments tbody tr")) == 16
    assert find(By.CSS_SELECTOR, ".answer")[0].is_displayed()
    assert not any(one.is_displayed() for one in find(By.CSS_SELECTOR, ".needs-script"))
    # The same figures as with them.
    cells = [row.text for row in find(By.CSS_SELECTOR, "#experiments tbody tr")]
    assert all("MB" not in row and "±2.00 %" in row for row in cells)


def test_on_paper_the_colours_are_light_and_the_table_is_complete(
    reader: Reader, write: Write, one: str
) -> None:
    reader.open(write("one", one), dark=True)
    back = "return getComputedStyle(document.body).backgroundColor"
    assert reader.run(back) != "rgb(255, 255, 255)"
    reader.media(dark=True, kind="print")
    assert reader.run(back) == "rgb(255, 255, 255)"
    assert reader.run("return getComputedStyle(document.querySelector('form')).display") == "none"
    assert len(_printed(reader)) > 10_000


def _printed(reader: Reader) -> bytes:
    pdf = reader.driver.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})
    return base64.b64decode(pdf["data"])


@pytest.mark.parametrize(("which", "heads"), [
    ("one", ["What does this", "All experiments"]),
    ("two", ["What does this", "All experiments", "Tables, machine"]),
])  # fmt: skip
def test_on_paper_no_heading_is_alone_and_no_page_nearly_empty(
    reader: Reader, write: Write, request: pytest.FixtureRequest, tmp_path: Path, which: str,
    heads: list[str],
) -> None:  # fmt: skip
    """The chart below the answer, then the table from its head on."""
    if shutil.which("pdftotext") is None:
        pytest.skip("needs pdftotext (poppler-utils)")
    reader.open(write(which, request.getfixturevalue(which)))
    (tmp_path / "page.pdf").write_bytes(_printed(reader))
    done = ran(["pdftotext", "-layout", tmp_path / "page.pdf", "-"])
    sheets = [
        [line for line in sheet.splitlines() if line.strip()]
        for sheet in done.stdout.removesuffix("\f").split("\f")
    ]
    assert all(len(lines) > 5 for lines in sheets), sheets[-1]
    first = [lines[0].strip() for lines in sheets]
    assert all(line.startswith(head) for line, head in zip(first, heads, strict=True)), first
    assert not any(lines[-1].startswith(("All exp", "Tables,")) for lines in sheets)
    assert "Bandwidth (MB/s" in "\n".join(sheets[0]), "the chart is below the answer"


@pytest.mark.fast_variants(2)
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("which", ["one", "two", "estimate", "compared"])
def test_axe_finds_no_violation(
    reader: Reader, write: Write, request: pytest.FixtureRequest, which: str, dark: bool
) -> None:
    if not AXE.exists():
        pytest.skip("needs axe-core: ci/page/fetch")
    text = (
        page.render(build([campaign(kinds=ESTIMATED)]))
        if which == "estimate"
        else request.getfixturevalue(which)
    )
    reader.open(write(which, text), dark=dark)
    reader.press("tbody th button")
    reader.until("return document.querySelectorAll('.detail .card').length > 0")
    reader.run("document.querySelectorAll('details').forEach((one) => (one.open = true))")
    reader.keep(f"axe-{which}-{'dark' if dark else 'light'}")
    assert_accessible(reader)


def assert_accessible(reader: Reader) -> None:
    reader.run(AXE.read_text())
    found = reader.driver.execute_async_script(
        """
        const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
        const options = { runOnly: { type: "tag", values: tags } };
        axe.run(document, options).then(arguments[0], (error) => arguments[0](String(error)));
        """
    )
    reported = [
        (violation["id"], [node["html"][:160] for node in violation["nodes"][:4]])
        for violation in found["violations"]
    ]
    assert reported == [] and len(found["passes"]) > 20


@pytest.fixture(scope="module")
def guided() -> str:
    """Whether a board should replace a PC: three points and the mix."""
    keys = [CellKey("read", "sequential", size, "off") for size in (4096, 32768)]
    keys.append(CellKey("write", "random", 4096, "on"))

    def server(name: str, bandwidth: float, power: float) -> Server:
        cells = []
        for place, key in enumerate(keys):
            values = tuple(bandwidth * (1 + place) * (1 + n / 50) for n in range(8))
            powers = tuple(power * (1 + place / 4) * (1 + n / 80) for n in range(8))
            cells.append(CellValues(key, values, powers))
        return Server(name, tuple(cells))

    mix = make_workload("mix", [WorkloadEntry(keys[0], 0.5), WorkloadEntry(keys[2], 0.5)])
    made = guideline(mix, server("PC", 100e6, 40.0), server("board", 40e6, 12.0), counts=[3.0])
    return guideline_page.render(made, ("PC", "board"))


@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_no_violation_in_a_guideline(
    reader: Reader, write: Write, guided: str, dark: bool
) -> None:
    if not AXE.exists():
        pytest.skip("needs axe-core: ci/page/fetch")
    reader.open(write("guideline", guided), dark=dark)
    reader.keep(f"guideline-{'dark' if dark else 'light'}")
    assert_accessible(reader)


def test_a_guidelines_map_is_walked_and_leads_to_its_rows(
    reader: Reader, write: Write, guided: str
) -> None:
    reader.open(write("guideline", guided))
    reader.run("document.querySelector('#map svg').focus()")
    reader.keys("\ue014")  # arrow right: the second point
    text = reader.run("return document.querySelector('#map .tip').innerText")
    assert text.startswith("2: random write 4 KiB") and "B_ts / B_lp" in text
    label = reader.run("return document.querySelector('#map svg').getAttribute('aria-label')")
    assert label.startswith("2: random write 4 KiB")
    reader.keys("\ue007")  # Enter
    assert reader.run("return document.activeElement.id") == "p1"
    for width in (400, 800, 1400):
        reader.resize(width)
        assert reader.run("return document.documentElement.scrollWidth") <= width


def test_without_scripts_a_guidelines_map_and_tables_stay(
    reader_without_scripts: Reader, write: Write, guided: str
) -> None:
    reader = reader_without_scripts
    reader.driver.get(write("guideline", guided).as_uri())
    found = reader.driver.find_elements
    assert len(found("css selector", "#map g.mark title")) == 4
    assert len(found("css selector", "#points tbody tr")) == 4


def test_a_long_page_is_drawn_and_its_rows_open(reader: Reader, write: Write) -> None:
    """More than a screen, and packed: 800 experiments."""
    reader.open(write("long", page.render(build([campaign(800, 1)]), power=power)))
    assert len(reader.names()) == 800
    assert reader.run("return document.getElementById('model').type") == "application/gzip"
    reader.press("tbody tr:nth-child(300) th button")
    reader.until("return document.querySelectorAll('.detail .card').length === 2")


def test_a_pdf_is_made_without_anyone_at_the_screen(
    write: Write, one: str, tmp_path: Path, browser: object
) -> None:
    """As `chromium --print-to-pdf` makes it, without anyone at the screen."""
    made = tmp_path / "page.pdf"
    subprocess.run(
        ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer",
         f"--print-to-pdf={made}", write("one", one).as_uri()],
        check=True, timeout=300, capture_output=True,
    )  # fmt: skip
    assert made.read_bytes().startswith(b"%PDF-") and made.stat().st_size > 20_000
