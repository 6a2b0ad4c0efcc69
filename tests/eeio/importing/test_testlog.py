"""Logs of measuring scripts, in the language of their machine."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from eeio.errors import EeioError
from eeio.exchange.importing import testlog


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("Qui Ago 17 21:43:09 BRT 2017", "2017-08-18T00:43:09"),
        ("Sáb Set  2 22:58:51 BRT 2017", "2017-09-03T01:58:51"),
        ("Wed Aug 30 19:12:46 CEST 2017", "2017-08-30T17:12:46"),
        ("Sun Feb  1 00:00:00 UTC 2026", "2026-02-01T00:00:00"),
        ("Mi Mär  4 12:00:00 CET 2026", "2026-03-04T11:00:00"),
        ("Fri Dec 31 23:59:59 +0530 2021", "2021-12-31T18:29:59"),
    ],
)
def test_dates(text: str, utc: str) -> None:
    moment = datetime.fromtimestamp(testlog.parse_date(text), UTC)
    assert moment.replace(tzinfo=None).isoformat() == utc


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Thu Aug 17 21:43:09 XYZ 2017", "zone 'XYZ'"),
        ("Thu Foo 17 21:43:09 UTC 2017", "'Foo' is not a month"),
        ("jeu. juil. 17 21:43:09 CEST 2017", "not a month"),
        ("2017-08-17 21:43:09", "not a date"),
        ("Thu Feb 30 00:00:00 UTC 2026", "day"),
    ],
)
def test_dates_that_cannot_be_recognized(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        testlog.parse_date(text)


A, B = "Sun Feb  1 00:00:00 UTC 2026", "Sun Feb  1 00:00:05 UTC 2026"


def test_spans(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(f"one\nstart\n{A}\nend\n{B}\n\ntwo\nstart\n{A}\nend\n{B}\n")
    assert [(s.name, s.end_s - s.start_s) for s in testlog.read(path)] == [("one", 5), ("two", 5)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        (f"one\nstart\n{A}\n", "cut off"),
        (f"one\nstart\n{B}\nend\n{A}\n", "ends before it starts"),
        (f"one\n{A}\nstart\nend\n{B}\n", "not NAME, start"),
        (f"one\nstart\nlater\nend\n{B}\n", "log:1: 'later' is not a date"),
    ],
)
def test_damaged_logs(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "log"
    path.write_text(text)
    with pytest.raises(EeioError, match=message):
        testlog.read(path)
    with pytest.raises(EeioError, match="No such file"):
        testlog.read(tmp_path / "none")
