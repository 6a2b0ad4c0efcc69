"""`ci/check-legibility` counts what it is for, and holds its limits."""

import ast
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CHECK = runpy.run_path(str(ROOT / "ci/check-legibility"), run_name="check_legibility")

SOURCE = '''
"""A docstring is no code."""

def chosen(found, rows):
    # Nor is a comment.
    if rows and found:
        why = 1 if rows else (2 if found else 3)
    return [row for row in rows if row]  # fmt: skip
'''


def counts_of(path: Path, text: str) -> dict[str, float]:
    path.write_text(text)
    counts = CHECK["Counts"]()
    CHECK["count_file"](path, counts)
    figures: dict[str, float] = counts.figures()
    assert counts.lines == 4
    return figures


def test_it_counts_what_a_reader_must_decode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(CHECK["count_file"].__globals__, "ROOT", tmp_path)
    figures = counts_of(tmp_path / "sample.py", SOURCE)
    assert figures["conditional expressions per 1,000 lines"] == 2 / 4 * 1000
    assert figures["nested conditional expressions"] == 1
    assert figures["comprehensions per 1,000 lines"] == 1 / 4 * 1000
    assert figures["fmt: skip per 1,000 lines"] == 1 / 4 * 1000
    assert figures["weak nouns among assigned names, %"] == 50


def test_branches_are_those_of_radon() -> None:
    (function,) = [
        node for node in ast.walk(ast.parse(SOURCE)) if isinstance(node, ast.FunctionDef)
    ]
    # 1, `if`, `and`, two conditional expressions, a comprehension with a condition.
    assert CHECK["branches"](function) == 7


def test_every_limit_has_a_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CHECK["count_file"].__globals__, "ROOT", tmp_path)
    assert set(counts_of(tmp_path / "sample.py", SOURCE)) == set(CHECK["LIMITS"])
