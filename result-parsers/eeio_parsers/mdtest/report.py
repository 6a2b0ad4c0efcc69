"""mdtest on a terminal: the rates of its operations on files and directories."""

import re
from collections.abc import Iterator
from dataclasses import replace

from eeio.errors import ToolOutputError
from eeio_parsers.format import Format
from eeio_parsers.found import (
    FoundPhase,
    FoundReport,
    complete,
    count,
    figure,
    first_group,
    none_found,
    parts,
)
from eeio_parsers.rules import Rules

_LAUNCHED = r"mdtest-(\S{1,300}) was launched"
_BEGIN = re.compile(rf"^(?:-- started at[^\n]*\n+)?{_LAUNCHED}", re.M)
_LAUNCH = re.compile(rf"{_LAUNCHED} with (\d{{1,20}}) total task\S* on (\d{{1,20}}) node")
_TABLE = re.compile(
    # From 4.1 on a second table has the times of the same operations.
    r"^SUMMARY(?! time)[^\n]{0,99}\(of (?P<iterations>\d{1,20}) iterations?\)[^\n]*\n"
    r"[ \t]{1,99}Operation[^\n]*\n[ \t]{1,99}-[ \t-]*\n"
    r"(?P<rows>(?:[ \t]{1,99}(?:Directory|File|Tree) [^\n]*(?:\n|\Z))*)",
    re.M,
)
_SUMMARY = re.compile(r"^SUMMARY[^\n]*\n[ \t]{1,99}Operation ", re.M)
# With -v, a line above the running times begins with "Operation Duration".
_HEADER = re.compile(r"^[ \t]{1,99}Operation[ \t]{1,99}Max", re.M)
_ROW = re.compile(
    r"^[ \t]{1,99}((?:Directory|File|Tree) [a-z]{1,20})[ \t]{0,99}:?"
    r"((?:[ \t]{1,99}[\d.]{1,30}){4})[ \t]*$"
)
_UNTIL_STONEWALL = re.compile(
    r"^[ \t]{1,99}(?:Directory|File) [a-z]{1,20} \(stonewall\)[ \t]{0,99}:"
    r"[ \t]{1,99}NA[ \t]{1,99}NA[ \t]{1,99}[\d.]{1,30}[ \t]{1,99}NA[ \t]*$"
)
"""The rate until the time limit of -W. The row of the operation has that of all items."""
_STARTED = re.compile(r"started at (\d{1,20})/(\d{1,20})/(\d{4}) (\S{1,300})")
_COMMAND = re.compile(r"^Command line used\s{0,99}:\s{0,99}\S{1,999}(.*)$", re.M)
_LAST = "Tree removal"


def read_text(text: str) -> Iterator[FoundReport]:
    """The mean rate of each operation over the iterations; 0 is one that was not requested. Notes
    may contain a summary alone, without the settings. Raises ToolOutputError."""
    launched = _BEGIN.search(text)
    above = text
    if launched is not None:
        above = text[: launched.start()]
    found, lost = list[FoundReport](), list[ToolOutputError]()
    for part, begin in (*parts(above, _TABLE), *parts(text, _BEGIN)):
        try:
            found.append(replace(_run(part), begins_at=begin))
        except ToolOutputError as error:
            lost.append(error)
    yield from complete(found, lost)


def _run(part: str) -> FoundReport:
    table = _TABLE.search(part)
    if table is None:
        raise none_found("mdtest", "no summary of rates: it failed, or was ended before")
    if len(_HEADER.findall(part)) != len(_SUMMARY.findall(part)):
        raise none_found("mdtest", "a table without the line SUMMARY above it")
    means = _means(table["rows"])
    # Notes may lack the last line; the tree's removal is the last operation.
    if "-- finished at" not in part[table.end() :] and _LAST not in means:
        raise none_found("mdtest", "cut off before mdtest was finished")
    launch, command = _LAUNCH.search(part), _COMMAND.search(part)
    started = _started(part)
    # Without the first lines no setting is known, so that nothing is a repetition.
    options = {}
    if launch:
        options = {"iterations": table["iterations"]}
    if launch and command:
        options["command"] = command[1].strip()[:500]
    phases = tuple(
        FoundPhase(
            name=name.lower(),
            operation="metadata",
            access_pattern="none",
            jobs=count(launch[2]) if launch else None,
            nodes=count(launch[3]) if launch else None,
            iops=mean,
            started_utc=started,
            time_source="mdtest's local time, zone not reported" if started else None,
            options=options,
        )
        for name, mean in means.items()
        if mean > 0
    )
    if not phases:
        raise none_found("mdtest", "no operation has a rate")
    return FoundReport(phases, first_group(launch))


def _started(part: str) -> str | None:
    date = _STARTED.search(part)
    if date:
        return f"{date[3]}-{date[1]}-{date[2]}T{date[4]}"
    return None


def _means(rows: str) -> dict[str, float]:
    """Operation -> the mean of its rate, 1/s."""
    means: dict[str, float] = {}
    for line in rows.splitlines():
        if _UNTIL_STONEWALL.match(line):
            continue
        row = _ROW.match(line)
        if row is None:
            raise none_found("mdtest", f"a line of its summary is not understood: {line:.80}")
        if row[1] in means:
            raise none_found("mdtest", f"{row[1]} is listed twice")
        means[row[1]] = figure(row[2].split()[2])
    return means


RULES = {"mdtest": Rules(formats=("io500",))}
FORMATS = (
    Format("mdtest", "text", read_text, begins=_BEGIN),
    Format("mdtest", "text", read_text, begins=_TABLE),
)
