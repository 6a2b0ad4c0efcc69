"""Size limits of every input, and readers that enforce them.

The limits are here and in docs/reference/limits.md, which a test compares. They are far above
normal output of tools, meters and people, and low enough that no input takes a machine's memory or
hours.
"""

import errno
import json
import os
import stat
from collections.abc import Callable, Iterator
from io import BufferedReader
from pathlib import Path
from typing import Any, NoReturn, Protocol

from eeio.errors import LimitError
from eeio.units.quantities import MOST_DIGITS

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

JSON_BYTES = 64 * MIB
"""One of eeio's files: campaign.json, machine.json, idle.json, capture.json, a node's recording."""
RECORDS_BYTES = 4 * GIB
"""runs.jsonl."""
RECORD_BYTES = 64 * MIB
"""One line of it."""
SAMPLES_BYTES = 4 * GIB
"""A samples file, unpacked."""
SAMPLE_BYTES = 256
"""A line of it, but the header."""
HEADER_BYTES = 1 * MIB
"""The header of a samples file."""
DEFINITION_BYTES = 128 * KIB
"""A file that people write: a protocol, a preset file, a map, a workload."""
XML_BYTES = 64 * MIB
"""A result file of PTS."""
XML_ELEMENTS = 500_000
XML_DEPTH = 16
TABLE_BYTES = 256 * MIB
"""A table or a log of power that is imported."""
CELL_CHARACTERS = 64 * KIB
"""A line of a table or log, and so each cell of it."""
TOOL_FILE_BYTES = 64 * MIB
"""A file that a tool or a profile wrote, as a parser reads it."""
TOOL_LINE_CHARACTERS = 64 * KIB
"""A line of a tool's text report; JSON has no lines."""
TRACE_BYTES = 64 * GIB
TRACE_LINE_BYTES = 64 * KIB
KEPT_HEAD_BYTES = 8 * MIB
"""The first bytes stored of a tool's stdout, and of its stderr ..."""
KEPT_TAIL_BYTES = 8 * MIB
"""... and the last ones; of those between only the number."""
STAMPS = 100_000
"""Arrival times of pieces of a tool's output: only the first so many are stored."""
ANSWER_BYTES = 1 * MIB
"""A meter's answer over HTTP, or a request to the power session."""
DEPTH = 32
"""Objects and lists of JSON and YAML in each other."""
YAML_VALUES = 100_000
"""Including values that aliases repeat."""
SYSFS_BYTES = 4 * MIB
"""A file of the kernel's that a meter reads."""
MACHINE_BYTES = 16 * MIB
"""A machine's description in JSON, unpacked; in YAML it is a definition."""
MACHINE_FILES = 50_000
"""In its tree."""
CPUS = 65536
CHASSIS = 512
"""Members of a BMC's list, such as its chassis or the sensors of one."""

_CHUNK = 1 << 16


class BinaryLines(Protocol):
    """An open binary file, packed or not."""

    def readline(self, size: int, /) -> bytes: ...


def open_file(path: Path) -> BufferedReader:
    """A plain file, to be read. Raises OSError, and LimitError for a pipe, a device or a socket:
    one of those may keep whoever opens it waiting for good."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise LimitError("a pipe or a device instead of a file: copy its data into a file")


def read_bytes(path: Path, most_bytes: int) -> bytes:
    """The file. Raises OSError, and LimitError for one that is longer, or is no plain file."""
    data = bytearray()
    # In chunks: `read` takes the memory for all that it may read.
    with open_file(path) as file:
        while chunk := file.read(_CHUNK):
            data += chunk
            if len(data) > most_bytes:
                raise LimitError(f"longer than {size(most_bytes)}")
    return bytes(data)


def read_text(path: Path, most_bytes: int, errors: str = "strict") -> str:
    """The file as UTF-8, a byte order mark taken away, line ends as they are in Python.

    Raises OSError, and LimitError for a file that is longer or not UTF-8 (with its line).
    """
    return decode(read_bytes(path, most_bytes), errors)


def decode(data: bytes, errors: str = "strict") -> str:
    """Bytes as UTF-8. Raises LimitError with the line of invalid bytes."""
    try:
        text = data.decode("utf-8-sig", errors)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise LimitError(f"line {line}: not UTF-8 (byte {data[error.start]:#04x})") from None
    if "\r" in text:
        return text.replace("\r\n", "\n").replace("\r", "\n")
    return text


def read_json(path: Path, most_bytes: int = JSON_BYTES, typed: bool = False) -> Any:
    """The content of a JSON file. Raises OSError, and LimitError as `parse_json` does."""
    return parse_json(read_text(path, most_bytes), typed=typed)


def parse_json(text: str | bytes, most_bytes: int = JSON_BYTES, typed: bool = False) -> Any:
    """JSON of limited length, depth and numbers; NaN and infinities are invalid.

    With `typed`, the caller reads all of it by types (eeio.files.typed), which limit numbers and
    depth. Raises LimitError.
    """
    return _parsed(text, most_bytes, (_QUICK if typed else _CAREFUL).decode, typed)


def parse_json_at(text: str, start: int, most_bytes: int = TOOL_FILE_BYTES) -> Any:
    """The JSON value that begins at `text[start]`; other text may follow. Raises LimitError."""
    return _parsed(text, most_bytes, lambda text: _CAREFUL.raw_decode(text, start)[0], False)


def _parsed(text: str | bytes, most_bytes: int, parse: Callable[[str], Any], typed: bool) -> Any:
    if len(text) > most_bytes:
        raise LimitError(f"longer than {size(most_bytes)}")
    if isinstance(text, bytes):
        text = decode(text)
    try:
        body = parse(text)
    except RecursionError:
        raise LimitError(f"nested deeper than {DEPTH}") from None
    except LimitError:
        raise
    except ValueError as error:
        raise LimitError(f"not JSON: {error}") from error
    if not typed and text.count("[") + text.count("{") > DEPTH:
        check_depth(body)
    return body


def check_depth(body: object, most_values: int | None = None) -> None:
    """Raises LimitError for objects and lists deeper than DEPTH in each other, or with more values
    than that in all."""
    level, depth, values = [body], 0, 0
    while level := [part for part in level if isinstance(part, dict | list)]:
        depth += 1
        if depth > DEPTH:
            raise LimitError(f"nested deeper than {DEPTH}")
        values += sum(map(len, level))
        if most_values is not None and values > most_values:
            raise LimitError(f"more than {most_values} values")
        level = [
            value
            for part in level
            for value in (part.values() if isinstance(part, dict) else part)
            if isinstance(value, dict | list)
        ]


_INF = float("inf")


def _no_constant(word: str) -> NoReturn:
    raise LimitError(f"{word} is not a number")


def _int(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise LimitError(f"a number of {len(text)} digits")
    return int(text)


def _float(text: str) -> float:
    value = float(text) if len(text) <= MOST_DIGITS else _INF
    if value == _INF or value == -_INF:
        raise LimitError(f"{text[:24]} is too large for a number")
    return value


_QUICK = json.JSONDecoder(parse_constant=_no_constant)
_CAREFUL = json.JSONDecoder(parse_constant=_no_constant, parse_float=_float, parse_int=_int)


def whole_number(text: str) -> int | None:
    """The number that a text of ASCII digits writes, 18 at most; None for any other text."""
    if len(text) <= 18 and text.isascii() and text.isdecimal():
        return int(text)
    return None


def lines(
    file: BinaryLines, most_line_bytes: int, most_bytes: int, errors: str = "replace"
) -> Iterator[str]:
    """The lines of an open binary file, as UTF-8, with their ends (the last one may have none).

    Raises LimitError for a longer line, or more of them, with the line's number; OSError.
    """
    number, total = 0, 0
    while line := file.readline(most_line_bytes + 1):
        number += 1
        total += len(line)
        if len(line) > most_line_bytes:
            raise LimitError(f"line {number} is longer than {size(most_line_bytes)}")
        if total > most_bytes:
            raise LimitError(f"longer than {size(most_bytes)}, at line {number}")
        try:
            yield line.decode("utf-8", errors)
        except UnicodeDecodeError as error:
            byte = line[error.start]
            raise LimitError(f"line {number}: not UTF-8 (byte {byte:#04x})") from None


def trace_lines(file: BinaryLines) -> Iterator[str]:
    """The lines of a trace. Raises LimitError, OSError."""
    return lines(file, TRACE_LINE_BYTES, TRACE_BYTES)


def check_lines(text: str, most_characters: int = TOOL_LINE_CHARACTERS) -> None:
    """Raises LimitError for a line that is longer, with its number."""
    begin, number = 0, 1
    # No line of a text that is short can be long.
    while len(text) - begin > most_characters:
        end = text.find("\n", begin, begin + most_characters + 1)
        if end < 0:
            raise LimitError(f"line {number} is longer than {most_characters} characters")
        begin, number = end + 1, number + 1


def size(count: int) -> str:
    """Bytes as text: 64 MiB."""
    for unit, factor in (("GiB", GIB), ("MiB", MIB), ("KiB", KIB)):
        if count >= factor:
            return f"{count // factor} {unit}"
    return f"{count} bytes"
