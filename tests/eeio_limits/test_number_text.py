"""Numbers as text, against a list that decimal arithmetic made; the page's script reads it too."""

import json
from pathlib import Path

import pytest

from eeio.units.number_text import number, page_number, pts_number, significant

ROWS = json.loads((Path(__file__).parents[1] / "data/number_texts.json").read_text())


def test_a_thousand_numbers() -> None:
    assert len(ROWS) == 1000
    made = [
        {"value": value, "table": number(value), "page": page_number(value),
         "pts": pts_number(value)}
        for value in (row["value"] for row in ROWS)
    ]  # fmt: skip
    assert made == ROWS


@pytest.mark.parametrize(
    ("value", "text"),
    [(1234.5, "1234"), (0.012345, "0.01235"), (0.00001234, "0.00001234"), (12345678.0, "12345678")],
)
def test_tables_have_four_digits_and_no_exponent(value: float, text: str) -> None:
    """0.00001234 was 1.23e-05."""
    assert number(value) == text


@pytest.mark.parametrize("value", [0.0, -0.0, 1e-16, -1e-16, 4e-16])
def test_what_fifteen_decimals_do_not_show_is_zero(value: float) -> None:
    assert significant(value, 4) == significant(value, 3, keep_zeros=True) == "0"
