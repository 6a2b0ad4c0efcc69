"""Text of others, where it leaves: terminal, CSV, Markdown, XML."""

import csv
import io
import unicodedata
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eeio.units import external_text

ESCAPE = "\x1b]0;owned\x07\x1b[2Jname\r\n\u202egnp.exe\u2028\ud800\x9b31m"


def test_a_terminal_gets_no_control_characters() -> None:
    assert external_text.shown(ESCAPE) == (
        r"\x1b]0;owned\x07\x1b[2Jname\x0d\x0a\u202egnp.exe\u2028\ud800\x9b31m"
    )
    assert external_text.shown_lines("a\tb\nc\x1b") == "a\tb\nc\\x1b"
    assert external_text.shown("µ ± 10 %, 測定 🙂") == "µ ± 10 %, 測定 🙂"


@given(st.text(alphabet=st.characters(), max_size=200))
def test_nothing_hidden_is_left(given_text: str) -> None:
    for character in external_text.shown(given_text):
        assert unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Zl", "Zp")
    assert external_text.shown(external_text.shown(given_text)) == external_text.shown(given_text)


@pytest.mark.parametrize(
    ("cell", "reported"),
    [
        ("=cmd|'/c calc'!A0", "'=cmd|'/c calc'!A0"), ("@SUM(1)", "'@SUM(1)"), ("+1+2", "'+1+2"),
        ("--meter none was given", "'--meter none was given"), ("\t=1", r"'\x09=1"),
        ("-12.5", "-12.5"), ("+3e-7", "+3e-7"), ("read", "read"), ("", ""),
    ],
)  # fmt: skip
def test_a_spreadsheet_runs_no_cell(cell: str, reported: str) -> None:
    assert external_text.csv_cell(cell) == reported


@given(st.text(alphabet=st.characters(), max_size=50))
def test_every_cell_is_one_harmless_cell(cell: str) -> None:
    out = io.StringIO()
    csv.writer(out).writerow([external_text.csv_cell(cell), "next"])
    ((first, second),) = csv.reader(io.StringIO(out.getvalue()))
    assert second == "next"
    assert not first.startswith(("=", "@", "\t", "\r"))


@pytest.mark.parametrize(
    ("line", "reported"),
    [
        ("<script>alert(1)</script>", "&lt;script>alert(1)&lt;/script>"),
        ("a|b", r"a\|b"), ("![x](y)", r"![x\](y)"), ("[ref]: y", r"[ref\]: y"),
        ("[341.8 - 364.9]", "[341.8 - 364.9]"), ("&lt;b", "&amp;lt;b"),
        ("AT&T R & D", "AT&amp;T R & D"),
        ("**bold**", r"\*\*bold\*\*"), ("io_uring", "io_uring"), ("a\nb", r"a\\x0ab"),
    ],
)  # fmt: skip
def test_markdown_is_text(line: str, reported: str) -> None:
    assert external_text.markdown(line) == reported


@given(st.text(alphabet=st.characters(), max_size=100))
def test_xml_takes_it(given_text: str) -> None:
    allowed = external_text.xml(given_text).replace("&", "&amp;").replace("<", "&lt;")
    element = ET.fromstring(f"<a>{allowed}</a>")  # written on the line before
    assert "\x1b" not in (element.text or "")
