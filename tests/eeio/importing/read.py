"""What tests of imported reports share."""

from pathlib import Path

from tests.plugin import PARSERS as PARSERS

from eeio.exchange.importing import results

KIB = 1024


def read_one(folder: Path, text: str, name: str = "a.txt") -> results.FoundFile:
    (folder / name).write_text(text)
    (one,) = results.found([folder / name])
    assert one.rejected is None, one.rejected
    return one


def why_rejected(folder: Path, text: str, name: str = "a.txt") -> str:
    (folder / name).write_text(text)
    (one,) = results.found([folder / name])
    return str(one.rejected)
