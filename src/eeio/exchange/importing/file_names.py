"""Names of result files as a factor: which of their numbers count repetitions.

A name does not explain its numbers. Those that may be settings keep files apart, because a pooled
median of two settings is wrong, and a row of one run is only short.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from eeio_parsers.rules import FoundFile

_COUNTED = re.compile(
    r"\w*run|runs|rep|reps|repeat|repetition|iter|iteration|trial|test|sample|attempt|try|take|round"
    r"|pass|result|results|report|output|out|log|measurement",
    re.I,
)
"""Behind it, a number counts the files."""
_THING = re.compile(
    r"(?:node|host|login|server|client|disk|drive|volume|worker|machine|instance|cluster|thread|kernel"
    r"|(?<![a-z])(?:vm|pod|osd|ssd|hdd|nvme|lun|vol|board|pi|raid|qd|depth|threads|jobs?|numa|cpu"
    r"|core|gen|pool|rank|user))[-_ ]?$",
    re.I,
)
"""Behind it, a number is of one of several, and does not count runs."""
_LEADING = re.compile(r"\d+[-_ .]*(?!run|rep|iter|trial|round|pass)[a-z]", re.I)
"""`0_finish`, `1_finish`: the first number of a name may be of a variant that no file explains."""
_WORD = re.compile(r"([^\W\d_]+)((?:(?!#)[\W_])*)$")
"""The word before a number, and the separator between them."""
_UNIT = re.compile(r"[^\W\d_]")
"""Directly behind a number: `1m`, `2m`."""
_DATE = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T_ -]\d\d[:h-]?\d\d(?:[:m-]?\d\d)?)?|\d{8,}(?:[T_-]?\d{4,6})?"
)
_SWITCH = {0, 1}
_EXAMPLES = 3

_Meaning = Literal["count", "setting", "perhaps a count", "perhaps a setting"]


@dataclass(frozen=True)
class FileNames:
    """The names of files without their dates and without the numbers that count them."""

    of_path: dict[Path, str]
    notes: tuple[str, ...]
    """On numbers of which a name does not show whether they count."""


def file_names(files: Sequence[FoundFile]) -> FileNames:
    """Numbers count the files if they are consecutive (1, 2, 3) and behind a word that counts
    (`run1`), behind a separator (`mix-1`), or alone. Those that belong to another word (ext3, ext4)
    may be a setting that the tool does not report, and so may the text above the reports: files in
    which it differs are no repetitions."""
    stems: dict[tuple[tuple[str, ...], str], dict[Path, str]] = {}
    for file in files:
        stem = file.path.stem
        if file.path.suffix[1:].isdecimal():  # `test.6`: a number, and no type of file
            stem += f"-{file.path.suffix[1:]}"
        stem = _DATE.sub("#", stem)
        stems.setdefault((file.place, re.sub(r"\d+", "\0", stem)), {})[file.path] = stem
    above = {file.path: file.above for file in files}
    tools = {file.path: file.tool or "" for file in files}
    names: dict[Path, str] = {}
    counts, settings = set[str](), set[str]()
    for of_paths in stems.values():
        if len({above[path] for path in of_paths}) > 1:
            names |= of_paths
            continue
        meanings = _meanings(of_paths, {tools[path] for path in of_paths})
        shown = {path: _shown(stem, meanings) for path, stem in of_paths.items()}
        names |= shown
        if "perhaps a count" in meanings:
            counts |= set(shown.values())
        if "perhaps a setting" in meanings:
            settings |= set(shown.values())
    return FileNames(names, tuple(_notes(counts, settings)))


def _meanings(of_paths: dict[Path, str], tools: Collection[str]) -> list[_Meaning]:
    """Of each number of names that differ in numbers only."""
    stem = next(iter(of_paths.values()))
    columns = zip(*(re.findall(r"\d+", stem) for stem in of_paths.values()), strict=True)
    return [
        _meaning(number, {int(value) for value in column}, tools)
        for number, column in zip(re.finditer(r"\d+", stem), columns, strict=True)
    ]


def _meaning(number: re.Match[str], values: set[int], tools: Collection[str]) -> _Meaning:
    before, after = number.string[: number.start()], number.string[number.end() :]
    is_version = before.endswith(".") or re.match(r"\.\d", after) is not None
    if max(values) - min(values) != len(values) - 1 or is_version or _THING.search(before):
        return "setting"
    if not before and _LEADING.match(number.string):
        return "setting"
    if len(values) == 1:  # It tells no files apart.
        return "count"
    word = _WORD.search(before)
    if word is not None and _is_counted(word[1], tools):
        return "count"
    if _UNIT.match(after):
        return "setting"
    if word is None:
        return "count"
    if not word[2] or values == _SWITCH:
        return "perhaps a setting"
    return "perhaps a count"


def _is_counted(word: str, tools: Collection[str]) -> bool:
    last = re.split(r"(?<=[a-z])(?=[A-Z])", word)[-1]
    return _COUNTED.fullmatch(last) is not None or last.casefold() in tools


def _shown(stem: str, meanings: Sequence[_Meaning]) -> str:
    order = iter(meanings)

    def replaced(number: re.Match[str]) -> str:
        if next(order) in ("count", "perhaps a count"):
            return "#"
        return number[0]

    return re.sub(r"\d+", replaced, stem)


def _notes(counts: Collection[str], settings: Collection[str]) -> Iterator[str]:
    """On names of which a number counts perhaps, and on those of which one is perhaps a setting."""
    if settings:
        yield (
            f"files {_listed(settings)}: the numbers may be settings, so these are separate "
            "experiments; if they are repetitions, rename the files: run1, run2"
        )
    if counts:
        yield (
            f"files {_listed(counts)}: the numbers (#) are taken for those of repetitions; if they "
            "are settings, put the files into folders"
        )


def _listed(names: Collection[str]) -> str:
    examples = sorted(names)[:_EXAMPLES]
    more = len(names) - len(examples)
    if more:
        return f"{', '.join(examples)} and {more} more"
    return ", ".join(examples)
