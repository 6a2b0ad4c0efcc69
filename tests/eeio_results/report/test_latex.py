"""Tables for a paper."""

import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.eeio_results.made import EXPERIMENT, MACHINE, design, energy, phase, run
from tests.page.made import campaign

from eeio.record.store import Campaign
from eeio.report.campaign.characterized import build
from eeio.report.campaign.contents import document
from eeio.report.document import render_latex
from eeio.report.latex import render_table
from eeio.report.table_and_plot import Table
from eeio.units.external_text import latex

HOSTILE = "\\input{/etc/passwd} $x_1^2$ & # % ~ {a} \x1b [x] *"


def test_a_table_of_booktabs() -> None:
    table = Table(
        "Level: 100 %", ("Tool", "MB/s"), (("fio_a", "1 [0.5 - 2]"),), frozenset({1}), "n"
    )
    assert render_table(table).splitlines() == [
        r"\begin{table}", r"\centering", r"\caption{Level: 100 \%. n.}",
        r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
        r"\begin{tabular}{lr}", r"\toprule", r"Tool & MB/s \\", r"\midrule",
        r"fio\_a & 1 {[}0.5 - 2{]} \\", r"\bottomrule", r"\end{tabular}}", r"\end{table}",
    ]  # fmt: skip


def test_an_interval_first_in_a_row_is_no_option_of_the_line_before() -> None:
    table = Table("t", ("a",), (("[1 - 2]",), ("*",)))
    assert r"\\ [" not in render_table(table).replace("\n", " ")
    assert r"\\ *" not in render_table(table).replace("\n", " ")


def test_what_all_rows_have_in_common_stands_in_the_caption() -> None:
    table = Table(
        "t", ("Level", "Tool", "n"), (("a", "fio", "3"), ("b", "fio", "3")), frozenset({2})
    )
    text = render_table(table)
    assert r"\caption{t. In every row: Tool fio.}" in text
    assert r"Level & n \\" in text and r"a & 3 \\" in text


def test_a_long_table_becomes_several_and_a_long_word_may_break() -> None:
    rows = tuple((str(number), "ab" * 32) for number in range(30))
    text = render_table(Table("t", ("Number", "Hash"), (*rows, ("x", "y"))))
    assert text.count(r"\begin{table}") == 3
    assert r"\caption{t (part 2 of 3).}" in text
    assert "ab" * 12 + r"\allowbreak{}" + "ab" * 12 in text and "ab" * 13 not in text


def test_what_pdflatex_cannot_set_stands_as_an_escape() -> None:
    assert latex("é Ł ≤ ±") == r"é Ł $\leq$ $\pm$"
    assert latex("日") == r"\textbackslash{}u65e5"
    assert latex("a--b ---") == "a-{}-b -{}-{}-"


NAMES = (
    HOSTILE, "日本語 \U0001f4be", "\u202eright\u202c to \x1b[31m left",
    "]]> ${x} %s {0} \\end{document}",
    "é Ł ß Å ÷ ≤ ≠ Δ μ …", "--long--option", "x" * 300, "[*]", "\ud800",
)  # fmt: skip


@pytest.fixture
def compiled(tmp_path: Path) -> Callable[[str], str]:
    """Sets a document as somebody would who follows the first line; gives what pdflatex says."""
    if (program := shutil.which("pdflatex")) is None:
        pytest.skip("needs pdflatex (texlive-latex-base, texlive-latex-recommended for booktabs)")

    def set_of(body: str) -> str:
        packages = re.findall(r"\\usepackage(?:\[\w+\])?\{\w+\}", body.partition("\n")[0])
        assert len(packages) == 4
        text = "\n".join(
            [r"\documentclass{article}", *packages, r"\begin{document}", body, r"\end{document}"]
        )
        (tmp_path / "paper.tex").write_text(text, encoding="utf-8")
        done = subprocess.run(
            [program, "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape",
             "paper.tex"],
            cwd=tmp_path, capture_output=True, timeout=300, check=False,
        )  # fmt: skip
        reported = done.stdout.decode("utf-8", errors="replace")
        assert done.returncode == 0, reported[-2000:]
        assert (tmp_path / "paper.pdf").stat().st_size > 1000
        return reported

    return set_of


@pytest.mark.parametrize("name", NAMES)
def test_a_report_with_any_name_is_set(compiled: Callable[[str], str], name: str) -> None:
    machine = replace(MACHINE, hostname=name, drive_label=name, cpu_model=name)
    experiment = replace(EXPERIMENT, tool=name, target=name)
    good = run(0, (phase(1e8, (energy(5.0),)),), experiment=experiment)
    bad = run(1, (), experiment=experiment, validity=(name,))
    made = Campaign(Path("c"), design(name, 2, experiment), machine, (), name, (good, bad))
    compiled(render_latex(document(build([made]))))


def test_no_table_of_a_large_report_is_wider_or_higher_than_a_page(
    compiled: Callable[[str], str],
) -> None:
    reported = compiled(
        render_latex(document(build([campaign(40, 3), campaign(40, 3, name="other", scale=1.2)])))
    )
    assert "Overfull" not in reported and "Float too large" not in reported


def test_nothing_of_others_is_a_command() -> None:
    text = latex(HOSTILE)
    assert "\\input" not in text and "\x1b" not in text
    known = (
        r"\\(textbackslash|textasciicircum|textasciitilde|textbrace(left|right))\{\}|\\[{}$&#%_]"
    )
    left = re.sub(known, "", text)
    assert not re.search(r"[\\$&#%_^~]", left)
