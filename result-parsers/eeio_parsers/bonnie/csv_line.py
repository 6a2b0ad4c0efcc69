"""Bonnie++'s line of CSV, of 1.03 and later."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from eeio_parsers.found import none_found

BEGIN = re.compile(
    r"^(?:(?:1\.9\d\w?|2\.\d{1,20}\w?),(?:1\.9\d\w?|2\.\d{1,20}\w?),[^,\n]*,\d{1,20},"
    # 1.03 has neither versions nor latencies.
    r"|(?=[^,\s][^,\n]{0,200},\d{1,12}[KMGT](?::\w{1,20})?(?:,[\d.+:/]{0,40}){25}[ \r]*$))",
    re.M,
)
TESTS = ("character write", "write", "rewrite", "character read", "read", "seeks")
FILE_TESTS = (
    "sequential create",
    "sequential stat",
    "sequential delete",
    "random create",
    "random stat",
    "random delete",
)
TOO_FAST = "+++++"
"""In place of a rate: the test was over in less than half a second."""
_FIRST_RATE = {48: 7, 50: 9}
"""Number of fields -> the first rate. From format 1.98 on the number of seeks and of their
processes stand before it."""
_SETTINGS_OF_FILES = 5
_FIELDS_OF_1_03 = 27


@dataclass(frozen=True)
class Figures:
    """Of one test, as they are written: KiB/s or 1/s, % of a processor, and the largest latency."""

    rate: str
    cpu: str
    latency: str


@dataclass(frozen=True)
class Line:
    """`start` and `end` are its places in the text. It is complete if a line follows it."""

    start: int
    end: int
    is_complete: bool
    version: str
    host: str
    processes: str
    file_size: str
    chunk_size: str
    seeks: str
    files: str
    """The number of files, in units of 1024, and their settings."""
    tests: Mapping[str, Figures]


def lines(text: str) -> Iterator[Line]:
    """Raises ToolOutputError for a line with another number of fields."""
    for begin in BEGIN.finditer(text):
        end = text.find("\n", begin.start())
        is_complete = end >= 0
        if not is_complete:
            end = len(text)
        fields = text[begin.start() : end].strip().split(",")
        if len(fields) == _FIELDS_OF_1_03:
            yield _line_of_1_03(fields, begin.start(), end, is_complete)
            continue
        first = _FIRST_RATE.get(len(fields))
        if first is None:
            raise none_found(
                "Bonnie++",
                f"a CSV line of {len(fields)} fields, and not 48 or 50: cut off, or of another "
                "version",
            )
        files = first + 2 * len(TESTS) + _SETTINGS_OF_FILES
        latencies = files + 2 * len(FILE_TESTS)
        places = {name: first + 2 * index for index, name in enumerate(TESTS)}
        places |= {name: files + 2 * index for index, name in enumerate(FILE_TESTS)}
        yield Line(
            start=begin.start(),
            end=end,
            is_complete=is_complete,
            version=fields[1],
            host=fields[2],
            processes=fields[3],
            file_size=fields[5],
            chunk_size=fields[6],
            seeks=fields[7] if first == _FIRST_RATE[50] else "",
            files=":".join(filter(None, fields[files - _SETTINGS_OF_FILES : files])),
            tests={
                name: Figures(fields[rate], fields[rate + 1], fields[latencies + index])
                for index, (name, rate) in enumerate(places.items())
            },
        )


def _line_of_1_03(fields: Sequence[str], start: int, end: int, is_complete: bool) -> Line:
    """Host, size, the tests of one file, the number of files, and their tests."""
    file_size, _, chunk_size = fields[1].partition(":")
    first_of_files = 3 + 2 * len(TESTS)
    places = {name: 2 + 2 * index for index, name in enumerate(TESTS)}
    places |= {name: first_of_files + 2 * index for index, name in enumerate(FILE_TESTS)}
    return Line(
        start=start,
        end=end,
        is_complete=is_complete,
        version="1.03",
        host=fields[0],
        processes="",
        file_size=file_size,
        chunk_size=chunk_size or "8k",
        seeks="",
        files=fields[2 + 2 * len(TESTS)],
        tests={name: Figures(fields[rate], fields[rate + 1], "") for name, rate in places.items()},
    )
