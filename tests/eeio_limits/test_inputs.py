"""How much may come in."""

import io
import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from eeio.errors import LimitError
from eeio.files import inputs


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[NaN]", "NaN"),
        ("[-Infinity]", "Infinity"),
        ("[1e999]", "too large"),
        ("[" + "9" * 400 + "]", "400 digits"),
        ("[" + "9" * 5000 + ".0]", "too large"),
        ("[" * 40 + "]" * 40, "nested deeper"),
        ("[" * 100_000, "nested deeper"),
        ('{"a":' * 100_000, "nested deeper"),
        ("[1,", "not JSON"),
        ("", "not JSON"),
    ],
)
def test_json_that_is_rejected(text: str, message: str) -> None:
    with pytest.raises(LimitError, match=message):
        inputs.parse_json(text)


def test_json_that_is_taken() -> None:
    body = {"a": [1, 2.5, "x" * 100, {"b": None}], "9" * 80: 1.5e-300}
    assert inputs.parse_json(json.dumps(body)) == body
    assert inputs.parse_json_at("fio: warning\n{}tail", 13) == {}


def test_json_of_bytes_that_are_not_utf8() -> None:
    with pytest.raises(LimitError, match="line 2: not UTF-8"):
        inputs.parse_json(b'{"a":\n"\xff"}')


def test_a_file_that_is_longer(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"12345")
    assert inputs.read_text(tmp_path / "x", 5) == "12345"
    with pytest.raises(LimitError, match="longer than 4 bytes"):
        inputs.read_text(tmp_path / "x", 4)


def test_a_file_takes_no_more_memory_than_it_is_long(tmp_path: Path) -> None:
    """It took that of the longest file that is allowed."""
    (tmp_path / "x").write_bytes(b"12345")
    tracemalloc.start()
    try:
        assert inputs.read_bytes(tmp_path / "x", 1 << 30) == b"12345"
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_lines_have_an_end() -> None:
    def lines(data: bytes, most_line: int, most: int = 100) -> list[str]:
        return list(inputs.lines(io.BytesIO(data), most_line, most))

    assert lines(b"a\nbc\nd", 3) == ["a\n", "bc\n", "d"]
    with pytest.raises(LimitError, match="line 2 is longer than 2 bytes"):
        lines(b"a\nbc\nd", 2)
    with pytest.raises(LimitError, match="longer than 4 bytes, at line 2"):
        lines(b"a\nbc\nd", 3, 4)
    with pytest.raises(LimitError, match="line 2: not UTF-8"):
        list(inputs.lines(io.BytesIO(b"a\n\xff\n"), 9, 9, errors="strict"))


def test_a_long_line_of_a_text_is_named() -> None:
    inputs.check_lines("a" * 10 + "\n" + "b" * 10, 10)
    with pytest.raises(LimitError, match="line 2 is longer than 10 characters"):
        inputs.check_lines("a" * 10 + "\n" + "b" * 11 + "\nc", 10)


def test_an_alias_counts_as_all_that_it_repeats() -> None:
    body: Any = ["lol"] * 10
    for _ in range(9):
        body = [body] * 10
    with pytest.raises(LimitError, match="values"):
        inputs.check_depth(body, inputs.YAML_VALUES)


def test_only_plain_files_are_opened(tmp_path: Path) -> None:
    """A pipe that nobody writes to would keep its reader waiting for good."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(LimitError, match="a pipe or a device"):
            inputs.read_bytes(path, 5)
    with pytest.raises(IsADirectoryError) as error:
        inputs.read_bytes(tmp_path, 5)
    assert error.value.filename == str(tmp_path)
