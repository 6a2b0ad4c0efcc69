"""What tests of imported reports share."""

from pathlib import Path

from tests.plugin import PARSERS as PARSERS

from eeio.exchange.importing import results

KIB = 1024


def read_one(folder: Path, text: str) -> results.FoundFile:
    (folder / "a.txt").write_text(text)
    (one,) = results.found([folder / "a.txt"])
    assert one.rejected is None, one.rejected
    return one


def why_rejected(folder: Path, text: str) -> str:
    (folder / "a.txt").write_text(text)
    (one,) = results.found([folder / "a.txt"])
    return str(one.rejected)
