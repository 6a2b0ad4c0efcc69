"""mdtest's report (3.x and 4.x): the mean rate of each metadata operation."""

import re

from eeio_limits import inputs
from eeio_limits import quantities as q
from eeio_results.errors import ToolOutputError
from eeio_results.tools.capture import PhaseResult, ToolResult, naming

_LAUNCHED = re.compile(r"^mdtest-\S{1,40} was launched with (\d{1,9}) total task", re.M)
_SUMMARY = re.compile(r"^SUMMARY rate[^\n]{0,40}\(of (\d{1,9}) iterations\)", re.M)
# From 4.1 on the times of an operation follow the rates, in a table of the same rows.
_NEXT_TABLE = re.compile(r"^SUMMARY ", re.M)
_FINISHED = re.compile(r"^-- finished at ", re.M)
_OPERATION = re.compile(r"(Directory|File|Tree) [a-z]{1,20}")
_NO_WINDOW = "imported: mdtest's report contains no times of its operations"


def parse_text(text: str, source: str = "mdtest's report") -> ToolResult:
    """The phases of a report, one for each operation that was tried. Raises ToolOutputError when it
    is cut off, or is not mdtest's."""
    with naming(source):
        inputs.check_lines(text)
        launched = _LAUNCHED.search(text)
        if launched is None:
            raise ToolOutputError(f"{source}: not mdtest's report, it begins {text[:60]!r}")
        summary = _SUMMARY.search(text)
        if summary is None or _FINISHED.search(text, summary.end()) is None:
            raise ToolOutputError(f"{source}: cut off before mdtest was finished")
        following = _NEXT_TABLE.search(text, summary.end())
        table = text[summary.end() : following.start() if following else None]
        rates = dict(filter(None, map(_rate, table.splitlines())))
        # mdtest prints 0 for an operation that was not requested.
        tried = {name: rate for name, rate in rates.items() if rate > 0}
        if not tried:
            raise ToolOutputError(f"{source}: no operation with a rate in it")
        return ToolResult(
            phases=tuple(_phase(name, rate) for name, rate in tried.items()),
            notes=(f"mdtest: mean of {summary[1]} iterations, {launched[1]} tasks",),
        )


def _rate(line: str) -> tuple[str, float] | None:
    """Operation and mean rate of a row: operation, the most, the least, the mean, the deviation;
    with a colon after the operation in older ones. None for another line."""
    words = line.replace(":", " ").split()
    name = " ".join(words[:2])
    if len(words) != 6 or _OPERATION.fullmatch(name) is None:
        return None
    return name.lower(), q.RATE.of_text(words[4], name)


def _phase(name: str, rate: float) -> PhaseResult:
    return PhaseResult(
        name=name,
        operation="metadata",
        spatiality="none",
        request_size_bytes=None,
        bytes_moved=0,
        bandwidth_bytes_per_s=None,
        start_s=None,
        end_s=None,
        window_source=_NO_WINDOW,
        metrics={"operations_per_s": rate},
    )
