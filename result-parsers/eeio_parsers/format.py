"""A form of a tool's output: how it is recognized, who reads it, and what all reports have in
common: no test is listed twice, and every figure is in its range.

A tool's `report.py` has `FORMATS`, and `RULES`: the name of each of its tools with its rules.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from eeio_parsers.found import FoundPhase, FoundReport, none_found

Read = Callable[[str], Iterator[FoundReport]]
_Figures = tuple[tuple[str, float], ...]

_SURE_DIGITS = 6
"""Figures that are equal in so many digits together are no coincidence."""


@dataclass(frozen=True)
class Format:
    """One of `begins`, `keys`, `fits` and `fits_at_last` recognizes it.

    `begins` matches the beginning of a report in a text. The format whose report is the first in a
    file is that of the file. A file with all `keys` in it is JSON of this format. `fits` is asked,
    with the beginning of a file and its path, for those without a line that tells them;
    `fits_at_last`, with all of the text, if no format is recognized.
    """

    tool: str
    name: str
    read: Read
    begins: re.Pattern[str] | None = None
    keys: tuple[str, ...] = ()
    fits: Callable[[str, Path], bool] | None = None
    fits_at_last: Callable[[str], bool] | None = None
    prepares_others: bool = False
    """Its tool often makes the files for others, whose output is then the one that counts."""
    lists_again: bool = False
    """Whether a report may have several results of one test, such as one command timed twice."""

    def reports(self, text: str) -> Iterator[FoundReport]:
        """Those of a text. Raises ToolOutputError for a report that lists one test twice, and
        LimitError for a figure out of range."""
        for report in self.read(text):
            tests = set[tuple[object, ...]]()
            for phase in report.phases:
                figures = _figures(phase.checked())
                # A test that may be timed again is listed twice if its figures are equal.
                test = (phase.name, *figures) if self.lists_again else _test(phase)
                is_sure = not self.lists_again or _digits(figures) >= _SURE_DIGITS
                if test in tests and is_sure:
                    raise none_found(self.tool, f"{phase.name!r:.80} is listed twice in one report")
                tests.add(test)
            yield report


def _test(phase: FoundPhase) -> tuple[object, ...]:
    settings = tuple(sorted(phase.options.items()))
    return (phase.group, phase.name, phase.operation, phase.request_bytes, settings)


def _figures(phase: FoundPhase) -> _Figures:
    """What the tool measured."""
    figures = {
        "runtime_s": phase.runtime_s,
        "iops": phase.iops,
        "rate": phase.bandwidth_bytes_per_s,
        **phase.metrics,
    }
    return tuple(sorted((name, value) for name, value in figures.items() if value))


def _digits(figures: _Figures) -> int:
    # A rate may be computed from the time.
    printed = [value for name, value in figures if name != "rate" or len(figures) == 1]
    return sum(len(f"{value:.6e}".partition("e")[0].rstrip("0")) - 1 for value in printed)
