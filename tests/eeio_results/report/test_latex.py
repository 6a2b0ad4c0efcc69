"""Tables for a paper."""

import re

import pytest

from eeio_limits.text import bibtex, latex
from eeio_results.report.latex import render_table
from eeio_results.report.parts import Table

HOSTILE = "\\input{/etc/passwd} $x_1^2$ & # % ~ {a} \x1b [x] *"


def test_a_table_of_booktabs() -> None:
    table = Table(
        "Level: 100 %", ("Tool", "MB/s"), (("fio_a", "1 [0.5 - 2]"),), frozenset({1}), "n"
    )
    assert render_table(table).splitlines() == [
        r"\begin{table}", r"\centering", r"\caption{Level: 100 \%. n.}",
        r"\begin{tabular}{lr}", r"\toprule", r"Tool & MB/s \\", r"\midrule",
        r"fio\_a & 1 {[}0.5 - 2{]} \\", r"\bottomrule", r"\end{tabular}", r"\end{table}",
    ]  # fmt: skip


def test_an_interval_first_in_a_row_is_no_option_of_the_line_before() -> None:
    table = Table("t", ("a",), (("[1 - 2]",), ("*",)))
    assert r"\\ [" not in render_table(table).replace("\n", " ")
    assert r"\\ *" not in render_table(table).replace("\n", " ")


@pytest.mark.parametrize("escape", [latex, bibtex])
def test_nothing_of_others_is_a_command(escape: "type[str]") -> None:
    text = escape(HOSTILE)
    assert "\\input" not in text and "\x1b" not in text
    known = (
        r"\\(textbackslash|textasciicircum|textasciitilde|textbrace(left|right))\{\}|\\[{}$&#%_]"
    )
    left = re.sub(known, "", text)
    assert not re.search(r"[\\$&#%_^~]", left)


def test_braces_of_bibtex_are_balanced() -> None:
    text = bibtex("}{ \\} {")
    assert text.count("{") == text.count("}")
