"""The lines of a log: a rule of its program's grammar explains each, or the log is rejected."""

import csv
import re
from collections.abc import Callable, Iterator

from eeio_power.errors import PowerError


def unexplained(number: int, line: str, hint: str = "") -> PowerError:
    """The error of a line that no rule explains."""
    text = line.strip()
    shortened = text if len(text) <= 80 else f"{text[:77]}..."
    return PowerError(f"line {number}: not understood: {shortened!r}{hint and f' ({hint})'}")


def lines_of(text: str) -> Iterator[tuple[int, str]]:
    """The lines with a text, and their numbers. One without a line end may be cut off inside a
    number, and is left out."""
    lines = text.split("\n")
    for number, line in enumerate(lines[:-1], start=1):
        if line.strip():
            yield number, line.rstrip("\r")


def explain(text: str, *rules: Callable[[str], bool]) -> None:
    """Gives each line to the rules, until one of them explains it. Raises PowerError."""
    for number, line in lines_of(text):
        if not explained(number, line, *rules):
            raise unexplained(number, line)


def explained(number: int, line: str, *rules: Callable[[str], bool]) -> bool:
    """Whether one of the rules explains a line. Their errors get its number."""
    try:
        return any(rule(line) for rule in rules)
    except PowerError as error:
        raise PowerError(f"line {number}: {error}") from error


def matching(pattern: str) -> Callable[[str], bool]:
    """The rule of lines that have no power."""
    compiled = re.compile(pattern)
    return lambda line: compiled.match(line) is not None


def table(
    text: str, needed: tuple[str, ...], is_failure: Callable[[str], bool] | None = None
) -> Iterator[dict[str, str]]:
    """The rows of a table by the names of their columns, in any order. A header may be repeated,
    also with another order. `is_failure` is the rule of messages in it. Raises PowerError."""
    header: list[str] = []
    for number, line in lines_of(text):
        cells = [cell.strip() for cell in next(csv.reader([line], skipinitialspace=True))]
        if set(needed).issubset(cells):
            header = cells
        elif header and len(cells) == len(header):
            yield dict(zip(header, cells, strict=True))
        elif is_failure is None or not is_failure(line):
            lacking = ", ".join(name for name in needed if name not in cells)
            hint = f"{len(header)} columns are expected" if header else f"no column {lacking}"
            raise unexplained(number, line, hint)
