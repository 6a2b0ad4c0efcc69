"""`ci/check-prose` finds what it is for, and `ci/site` builds the site."""

import importlib.util
import runpy
import sys
from pathlib import Path

import pytest

from tests.processes import ran

ROOT = Path(__file__).parents[1]
CHECK = runpy.run_path(str(ROOT / "ci/check-prose"), run_name="check_prose")


def test_long_sentences_broken_links_and_unusual_words_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    long = " ".join(["word"] * 36)
    page.write_text(
        f"# Title\n\nA list:\n\n* {long}.\n* Short `a long command line {long}`.\n\n"
        "See [this](gone.md), [here](#title), [there](#gone) and [the web](https://a.b/c).\n\n"
        f"```sh\n{long} [x](not-a-link.md)\n```\n"
    )
    for function in ("long_sentences", "broken_links"):
        monkeypatch.setitem(CHECK[function].__globals__, "ROOT", tmp_path)
    # One page with one long sentence also has too many above 30 words.
    first, *more = CHECK["long_sentences"]([page])
    assert "page.md: 36 words" in first and len(more) == 1
    assert [line.rpartition(" ")[2] for line in CHECK["broken_links"]([page])] == [
        "gone.md", "#gone",
    ]  # fmt: skip
    plain = [("a", "The drive reports its power.")]
    assert list(CHECK["unusual_words"]("program", plain, False)) == []
    odd = [("a", "Nobody told what the drive holds alone.")]
    assert len(list(CHECK["unusual_words"]("program", odd, False))) == 1


def test_docstrings_are_no_messages() -> None:
    source = '"""What it is."""\ndef f():\n    """Whose it is."""\n    return "no device found"\n'
    assert list(CHECK["messages"](source)) == [(4, "no device found")]


@pytest.mark.slow
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    if importlib.util.find_spec("mkdocs") is None:
        pytest.skip("mkdocs-material is missing: pip install .[site]")
    done = ran([sys.executable, ROOT / "ci/site", tmp_path])
    assert not done.stdout + done.stderr
    index = (tmp_path / "site/index.html").read_text()
    assert "eeio: the energy cost of I/O" in index and "fonts.googleapis" not in index
    for page in ("gallery", "docs/reference/commands", "quick-before", "docs/how-to/index"):
        assert (tmp_path / f"site/{page}.html").is_file(), page
