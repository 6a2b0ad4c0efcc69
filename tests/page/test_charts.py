"""The pages of the other commands in a real browser: a chart on the first screen, which fits."""

from collections.abc import Callable
from pathlib import Path

import pytest

from eeio.cli import main
from tests.page import nights
from tests.page.conftest import Reader
from tests.page.test_browser import AXE, assert_accessible

CAMPAIGNS = Path(__file__).parents[1] / "data/campaigns"
PRICES = (
    "--price-per-kwh", "0.3", "--years", "5", "--grid-g-per-kwh", "350", "--duty-cycle", "10%",
    "--price", "900,740", "--embodied-kg", "900,100", "--currency", "EUR",
)  # fmt: skip
PAGES = {
    "cost": (
        "cost", CAMPAIGNS / "server", CAMPAIGNS / "board", "--workload",
        CAMPAIGNS / "workload.yaml", *PRICES,
    ),
    "compare": ("compare", CAMPAIGNS / "quick-before", CAMPAIGNS / "quick-after"),
    "report": ("report", CAMPAIGNS / "quick-before"),
    "bench": ("report", CAMPAIGNS / "bench"),
    "history": ("history", "nightly", "--metric", "MB/s"),
    "fleet": ("fleet", "collect", "nodes.d"),
}  # fmt: skip
LEAST_SHOWN_PX = 120
"""Of the height of the first chart above the fold, or all of a smaller one."""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The page of a command, made once."""
    folder = tmp_path_factory.mktemp("pages")
    nights.make(folder)

    def made(name: str) -> Path:
        path = folder / f"{name}.html"
        if not path.exists():
            with pytest.MonkeyPatch.context() as patch:
                patch.chdir(folder)
                patch.setenv("XDG_DATA_HOME", str(folder / ".data"))
                assert main([*map(str, PAGES[name]), "-o", str(path)]) == 0
        return path

    return made


@pytest.mark.parametrize("width", [1400, 400])
@pytest.mark.parametrize("name", PAGES)
def test_a_chart_is_on_the_first_screen(
    reader: Reader, page: Callable[[str], Path], name: str, width: int
) -> None:
    reader.open(page(name), width=width)
    reader.keep(f"{name}-first-{width}")
    assert reader.run("return document.documentElement.scrollWidth") <= width
    top, height, text = reader.run(
        """
        const chart = document.querySelector("figure svg");
        const box = chart.getBoundingClientRect();
        const sizes = [...chart.querySelectorAll("text:not(.stamp)")]
          .map((text) => parseFloat(getComputedStyle(text).fontSize));
        const scale = box.width / chart.viewBox.baseVal.width;
        return [box.top, box.height, Math.min(...sizes) * scale];
        """
    )
    assert top + min(height, LEAST_SHOWN_PX) <= 900
    assert text >= 9, "text of the chart is too small to be read"


@pytest.mark.parametrize("width", [1400, 400])
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_no_violation(
    reader: Reader, page: Callable[[str], Path], name: str, width: int
) -> None:
    if not AXE.exists():
        pytest.skip("needs axe-core: ci/page/fetch")
    reader.open(page(name), width=width, dark=width == 400)
    assert_accessible(reader)


@pytest.mark.parametrize("name", PAGES)
def test_texts_of_a_chart_do_not_overprint(
    reader: Reader, page: Callable[[str], Path], name: str
) -> None:
    reader.open(page(name))
    found = reader.run(
        """
        const overprinted = [];
        for (const chart of document.querySelectorAll("figure svg")) {
          const texts = [...chart.querySelectorAll("text:not(.stamp)")]
            .map((text) => [text.textContent, text.getBoundingClientRect()]);
          for (const [n, [text, a]] of texts.entries())
            for (const [other, b] of texts.slice(n + 1)) {
              const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
              const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
              if (across > 1 && down > 5) overprinted.push(`${text} / ${other}`);
            }
        }
        return overprinted;
        """
    )
    assert found == []


def test_the_cost_by_part_adds_up_to_the_answer(
    reader: Reader, page: Callable[[str], Path]
) -> None:
    reader.open(page("cost"))
    sections = reader.run(
        """
        return [...document.querySelectorAll(".panels section")].map((section) => [
          section.querySelector("h2").textContent,
          [...section.querySelectorAll("text")].map((text) => text.textContent),
        ]);
        """
    )
    titles = [title for title, _ in sections]
    assert titles == [
        "Energy per TB (kWh/TB)", "Money per TB (EUR/TB)", "Carbon per TB (g CO2e/TB)",
        "Energy per TB by duty cycle (kWh/TB)", "Money per TB by duty cycle (EUR/TB)",
        "Carbon per TB by duty cycle (g CO2e/TB)",
    ]  # fmt: skip
    _, texts = sections[1]
    total = float(texts[texts.index("vm vda disk") + 1].removesuffix(" EUR/TB"))
    parts = [float(text.partition(": ")[2]) for text in texts[2:5]]
    assert [text.partition(":")[0] for text in texts[2:5]] == [
        "energy, moving", "energy, idle", "purchase",
    ]  # fmt: skip
    assert total == pytest.approx(sum(parts), rel=0.01)


def test_the_cost_page_shows_the_duty_cycle_of_equal_money(
    reader: Reader, page: Callable[[str], Path]
) -> None:
    reader.open(page("cost"))
    panels = reader.run(
        """
        return [...document.querySelectorAll(".panels section")].map((section) => [
          section.querySelector("h2").textContent, section.textContent,
        ]);
        """
    )
    texts = dict(panels)
    money = texts["Money per TB by duty cycle (EUR/TB)"]
    # 900 and 740 EUR: the second is cheaper to buy and dearer to run.
    assert "equal: 31.8 %" in money and "Break-even at 31.8 %" in money
    assert "costs less at every duty cycle" in texts["Energy per TB by duty cycle (kWh/TB)"]


def test_the_page_of_a_bench_begins_with_the_time_and_names_each_command_once(
    reader: Reader, page: Callable[[str], Path]
) -> None:
    reader.open(page("bench"))
    heads, names = reader.run(
        """
        const table = document.querySelector("table");
        return [
          [...table.querySelectorAll("thead th")].map((cell) => cell.textContent),
          [...table.querySelectorAll("tbody tr")].map((row) => row.cells[0].textContent),
        ];
        """
    )
    assert heads[:4] == ["Command", "Time", "W", "J"] and names == ["copy", "dd"]
    assert reader.run("return document.querySelector('.panels h2').textContent") == "Time (ms)"
    text = reader.run("return document.body.textContent")
    assert "mixed (run)" not in text and "words=" not in text
    answer = reader.run("return document.querySelector('.answer').textContent")
    assert answer.endswith(" times the time of dd; not decided")


def test_a_history_draws_its_changes(reader: Reader, page: Callable[[str], Path]) -> None:
    reader.open(page("history"))
    changes = reader.run(
        "return [...document.querySelectorAll('.panel')]"
        ".map((one) => [one.querySelectorAll('.change').length,"
        " one.querySelectorAll('.dot').length])"
    )
    assert len(changes) == 12
    assert changes[0] == [1, nights.COUNT]
    note = reader.run("return document.querySelector('.panels .note').textContent")
    assert "2026-11-09, night-08: -" in note


def test_a_fleet_draws_its_outlier(reader: Reader, page: Callable[[str], Path]) -> None:
    reader.open(page("fleet"))
    notes = reader.run(
        "return [...document.querySelectorAll('.panels .note')].map((one) => one.textContent)"
    )
    assert any("Outliers: node-5 -" in note for note in notes)
    assert reader.run("return document.querySelectorAll('.panel .dot.s1').length") > 0


def test_rows_of_the_cost_page_are_not_tall_on_a_phone(
    reader: Reader, page: Callable[[str], Path]
) -> None:
    reader.open(page("cost"), width=400)
    rows = reader.run(
        "return [...document.querySelectorAll('.plain tbody tr')]"
        ".map((row) => [row.cells[0].textContent, row.getBoundingClientRect().height])"
    )
    assert len(rows) > 20 and [row for row in rows if row[1] > 100] == []


def test_tables_with_rows_are_open(reader: Reader, page: Callable[[str], Path]) -> None:
    """A suite without experiments of a level has an empty table of it."""
    reader.open(page("report"))
    tables = reader.run(
        "return [...document.querySelectorAll('details:not(#filter-box)')]"
        ".map((one) => [one.open, one.querySelectorAll('tbody tr').length > 0])"
    )
    assert [True, True] in tables and [False, False] in tables
    assert all(is_open == has_rows for is_open, has_rows in tables)
