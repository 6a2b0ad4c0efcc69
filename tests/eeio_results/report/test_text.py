"""Tables in the width of a terminal."""

import pytest

from eeio.report.table_and_plot import Table
from eeio.report.text import render_table

ROWS = tuple(
    (
        "write (rewrite)", "sequential", f"{4 << n} KiB", "off", "end, not durable", "fio",
        f"{100.5 + n} [{99.5 + n} - {101.5 + n}]", f"{10 + n} [{9 + n} - {11 + n}]", "system",
    )
    for n in range(3)
)  # fmt: skip
WIDE = Table(
    "Level: filesystem",
    (
        "Operation",
        "Spatiality",
        "Request",
        "Buffer",
        "Flush",
        "Tool",
        "MB/s",
        "Power (W)",
        "Domain",
    ),
    ROWS,
    frozenset({2, 6, 7}),
    "a note that is long enough to be wrapped on every terminal that anybody ever called narrow",
)


@pytest.mark.parametrize("width", [40, 60, 80, 100, 132])
def test_every_line_fits_and_no_word_is_lost(width: int) -> None:
    text = render_table(WIDE, width)
    assert max(map(len, text.splitlines())) <= width
    fields = text.split()
    for row in ROWS:
        for cell in row:
            assert all(word in fields or f"{word};" in fields for word in cell.split())


def test_no_number_is_broken_at_80() -> None:
    text = render_table(WIDE, 80)
    assert "101.5 [100.5 - 102.5]" in text and "12 [11 - 13]" in text


def test_what_is_the_same_in_every_row_is_reported_once() -> None:
    text = render_table(WIDE, 80)
    assert text.count("sequential") == 1 and "in every row: Operation: write (rewrite)" in text


def test_rows_of_a_table_in_parts_are_recognized_by_numbers() -> None:
    header = tuple(f"column{n} of many (unit)" for n in range(12))
    rows = tuple(tuple(f"{row}.{n:08}" for n in range(12)) for row in range(2))
    text = render_table(Table("Wide", header, rows, frozenset(range(12))), 60)
    heads = [line for line in text.splitlines() if line.startswith("#")]
    assert len(heads) >= 2
    assert max(map(len, text.splitlines())) <= 60
    assert all(text.count(cell) == 1 for row in rows for cell in row)


def test_without_a_width_nothing_is_wrapped() -> None:
    lines = render_table(WIDE).splitlines()
    assert len(lines) == 2 + 2 + 3 + 1 and max(map(len, lines)) > 100


def test_a_word_longer_than_the_terminal_is_broken_and_kept() -> None:
    hash_ = "ab" * 60
    text = render_table(Table("Machine", ("", ""), (("fio", hash_), ("kernel", "6.1"))), 50)
    assert max(map(len, text.splitlines())) <= 50
    assert hash_ in text.replace("\n", "").replace(" ", "")


def test_a_remark_that_all_figures_have_is_reported_once() -> None:
    rows = tuple((f"pattern {n} of many that there are", f"{n}.5 [1 - 2] (without drives)", "-")
                 for n in range(3))  # fmt: skip
    table = Table("t", ("Pattern", "MB/J", "J/GB"), rows, frozenset({1, 2}))
    text = render_table(table, 60)
    assert text.count("without drives") == 1 and "MB/J: without drives" in text
    assert render_table(table).count("without drives") == 3
    mixed = (*rows, ("pattern", "4.5 [1 - 2]", "-"))
    assert render_table(Table("t", table.header, mixed, table.numeric), 50).count("drives") == 3


def test_a_figure_and_its_quartiles_stay_together() -> None:
    for width in (60, 80):
        text = render_table(WIDE, width)
        assert "101.5 [100.5 - 102.5]" in text and "12 [11 - 13]" in text
