"""The text above each report of a file: headings, sentences and commands of its author."""

import re
from collections.abc import Iterator, Sequence

_HEADING = re.compile(
    r"^[ \t]{0,3}(#{1,6}|//+|\*\*+|==+|--+|>>+|\+\++)[ \t]{0,99}"
    r"(?=[^\n]{0,99}[^\W\d_])([^\n]{1,200})$",
    re.M,
)
_TIME = re.compile(r"\d:\d\d")
_NO_HEADING = re.compile(r"\d:\d\d|\s--?\w|\w=\S")
"""A line with a time of day, or a command behind a prompt."""
_RUN_NUMBER = re.compile(
    r"\b(run|r[ée]plica|iteration|repetition|repeat|round|pass|loop|try|test|no)\W{0,3}\d{1,9}\b"
    # `Run 8 threads` is no number of a run.
    r"(?!\s{0,9}(?:threads?|jobs?|clients?|users?|process(?:es)?|workers?|nodes?|files?|streams?"
    r"|queues?|[kKmMgGtT]i?[bB]?\b|%))"
    # A line that contains only `1 iteration` or `2nd run`.
    r"|^\W{0,9}\d{1,3}(?:[a-z]{2})? (run|iteration|repetition|attempt)\W{0,9}$",
    re.I,
)
_NO_LABEL = re.compile(
    r"^`{3}|^\S{1,80}@\S{1,80}[^\n]{0,80}[#$>]$|\(g=\d|\brecords (?:in|out)\b|\.\.\.done"
    r"|^start 'em|^Jobs: |^[\W\d_]*$"
)
"""Lines above a report that describe no experiment: of tools, marks of code, without a word."""
_OWN = re.compile(
    r"^(?:READ|WRITE|TRIM|MIXED|Run status|Disk stats|bw|[cs]?lat|cpu|IO depths|latency)\b"
    r"|: ios=\d|\b(?:bw|BW)=|\d [kKMGT]?B/s$|bytes/sec"
    # What sysbench prints when it prepares its files.
    r"|^Creating files?\b|bytes written in|^\d{1,9} files, \d|^Extra file open flags|^Removing "
    r"|total file size|^sysbench \d|^WARNING\b"
    # Bonnie++'s table and its line of CSV.
    r"|^Latency\b|%CP|\+{3}|-(?:Create|Read|Delete|Per Chr|Block|Rewrite|Seeks)-|^[\d.]+,[\d.]+,"
    # hdparm, and what others print with a time and a rate.
    r"|\bin {1,9}[\d.]+ (?:s|sec|seconds)\b|\bseconds? ="
)
"""Lines of the tools whose figures differ from run to run."""
_TRACE = re.compile(r"^\+{1,3} \S[^\n]{0,400}$", re.M)
_LABEL_LINES, _OWN_LINES, _LABEL_CHARACTERS = 4, 3, 4000


def headings(text: str, places: Sequence[int], ends: Sequence[int] = ()) -> Iterator[str | None]:
    """What the author of a note or of a script wrote above the report at each place: the headings
    of Markdown that it is below, and the lines between it and the report before, which ends at that
    of `ends` where those are known. Numbers of repetitions and lines with a time of day are left
    out. None where there is nothing."""
    last = places[-1] if places else 0
    title = _title(text[: places[0]]) if places else None
    own = {_without_figures(line) for line in text[last:].splitlines()}
    start, label = 0, list[str]()
    for place, end, heading in zip(places, ends or places, _markdown(text, places), strict=True):
        lines, passed = list[str](), 0
        for line in reversed(text[max(start, place - _LABEL_CHARACTERS) : place].splitlines()):
            stripped = line.strip()
            if (
                not stripped
                or _NO_LABEL.search(stripped)
                or _is_heading(line)
                or _TIME.search(stripped)
            ):
                continue
            # A warning of the tool, or the end of the report before: the last report has it, too.
            if _OWN.search(stripped) or _without_figures(line) in own:
                passed += 1
                if passed == _OWN_LINES:
                    break
                continue
            if len(lines) == _LABEL_LINES:
                break
            lines.insert(0, _without_run_number(stripped)[:200])
        # The commands that a shell prints (`set -x`), also those that are far above.
        traced = [
            line.strip()[:200]
            for line in _TRACE.findall(text[start:place])
            if line.strip() not in lines and not _TIME.search(line)
        ]
        lines = [*traced[:_LABEL_LINES], *lines]
        # Fewer lines than before: the first ones of those are still above it.
        start, label = max(place, end), label[: max(0, len(label) - len(lines))] + lines
        above = [title] if title is not None and title not in label else []
        yield " / ".join([*([heading] if heading else []), *above, *label]) or None


def _title(text: str) -> str | None:
    """The first line of a file, if it is far above its first report."""
    lines = [line.strip() for line in text[:_LABEL_CHARACTERS].splitlines() if line.strip()]
    first = lines[0] if len(lines) > 2 * _LABEL_LINES else ""
    return None if _NO_LABEL.search(first) or _OWN.search(first) else label(first)


def label(text: str) -> str | None:
    """What an author wrote before a result on its line, without the number of a repetition."""
    text = " ".join(text.split())
    if _TIME.search(text) or not re.search(r"[^\W\d_]", text):
        return None
    return _without_run_number(text)[:200]


def _without_run_number(line: str) -> str:
    return _RUN_NUMBER.sub(r"\1\2", line)


def _is_heading(line: str) -> bool:
    return bool(_HEADING.match(line)) and not _NO_HEADING.search(line)


def _without_figures(line: str) -> str:
    return re.sub(r"\d[\d.]*", "#", " ".join(line.split()))


def _markdown(text: str, places: Sequence[int]) -> Iterator[str | None]:
    lines = _HEADING.finditer(text)
    line = next(lines, None)
    above: list[tuple[int, str]] = []
    for place in places:
        while line is not None and line.start() < place:
            level = len(line[1]) if line[1].startswith("#") else 7
            heading = _without_run_number(line[2]).strip(" \t*=-#>+/")
            if heading and not _NO_HEADING.search(line[2]):
                above = [one for one in above if one[0] < level] + [(level, heading)]
            line = next(lines, None)
        yield " / ".join(heading for _, heading in above) or None
