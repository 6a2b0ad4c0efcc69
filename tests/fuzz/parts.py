"""Complete reports of benchmark tools of which a part is missing, doubled, moved or new.

The result has to be equal, missing (a value, a row, or all of it, with a reason), or rejected. It
never has another value, and no new row.
"""

import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from eeio.errors import EeioError, LimitError
from eeio_parsers import formats
from eeio_parsers.format import Format
from eeio_parsers.found import FoundPhase

PARSERS = Path(__file__).parents[2] / "result-parsers/eeio_parsers"
_REJECTED = (
    OSError, EeioError, LimitError, ValueError, KeyError, TypeError, IndexError, AttributeError,
    ArithmeticError, RecursionError,
)  # fmt: skip
_FIELDS = (
    "operation", "access_pattern", "request_bytes", "direct", "iodepth", "jobs", "nodes", "engine",
    "bandwidth_bytes_per_s", "iops", "bytes", "runtime_s",
)  # fmt: skip
_ROUNDED = 0.005
"""A figure may be in a report twice, with fewer digits."""
_TRIVIA = re.compile(r"^[\s\d.:/=-]*$")
_MOST_BYTES = 200_000

UNSTATED = frozenset(
    (
        # Options are there only if they were given.
        "job options", "global options", "numjobs", "rw", "readwrite", "bs", "blocksize",
        "ioengine", "iodepth", "direct",
    )
)  # fmt: skip
"""Keys of JSON without which a report is a complete one of other settings."""
WITHOUT_COUNTS = ("fio/outputs/jobs-2.1.json", "fio/outputs/3.33/other/two-jobs.json")
"""Reports that do not state the number of their jobs: fio 2.1, and one of two jobs, which may be
both with group_reporting."""


@cache
def samples() -> dict[str, tuple[str, Format]]:
    """The real outputs that are read: path below the parsers -> text and format."""
    made = {}
    for path in sorted(PARSERS.glob("*/outputs/**/*")):
        if not path.is_file() or "cases" in path.parts or path.stat().st_size > _MOST_BYTES:
            continue
        text = path.read_bytes().decode("utf-8", "replace").replace("\r\n", "\n")
        form = formats.format_of(text, path)
        if form is not None and _phases(form, text):
            made[str(path.relative_to(PARSERS))] = text, form
    return made


def _phases(form: Format | None, text: str) -> list[FoundPhase] | None:
    """None if the text is rejected."""
    if form is None:
        return None
    try:
        return [phase for report in form.reports(text) for phase in report.phases]
    except _REJECTED:
        return None


def changed(name: str, draw: random.Random) -> tuple[str, str]:
    """What was done, and the text."""
    text, form = samples()[name]
    # elbencho writes an object a line.
    if form.keys and form.tool != "elbencho" and draw.random() < 0.9:
        return _changed_json(name, text, draw)
    return _changed_lines(form.tool, text, draw)


_WITHOUT_NAMES = ("dd",)
"""A copy does not say which command it is of, nor a command what it has done."""


def _changed_lines(tool: str, text: str, draw: random.Random) -> tuple[str, str]:
    lines = text.splitlines(keepends=True)
    index = draw.randrange(len(lines))
    kinds = ["double", "add", "cut"]
    if tool not in _WITHOUT_NAMES:
        kinds += ["delete", "delete", "move", "cell"]
    kind = draw.choice(kinds)
    shown = f"{kind} line {index + 1}: {lines[index].strip()[:80]!r}"
    if kind == "delete":
        del lines[index : index + draw.choice((1, 1, 1, 2, 5))]
    elif kind == "double":
        lines.insert(index, lines[index])
    elif kind == "add":
        lines.insert(index, draw.choice(("WARNING: something happened\n", "# a note: 42 MB/s\n")))
    elif kind == "move":
        lines.insert(draw.randrange(len(lines)), lines.pop(index))
    elif kind == "cut":
        del lines[index:]
    else:
        lines[index] = _without_cell(lines[index], draw)
    return shown, "".join(lines)


def _without_cell(line: str, draw: random.Random) -> str:
    separator = next((each for each in (";", ",", "\t", " ") if each in line.strip()), " ")
    cells = line.split(separator)
    del cells[draw.randrange(len(cells))]
    return separator.join(cells)


def _changed_json(name: str, text: str, draw: random.Random) -> tuple[str, str]:
    body = json.loads(text[text.index("{") :])
    inner = [place for place in _inner(body) if place[0]]
    holder, path = draw.choice(inner)
    key = draw.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
    where = f"{'.'.join(path)}.{key}"
    is_list = isinstance(holder, list)
    if is_list and name in WITHOUT_COUNTS:
        return f"nothing: {where}", text
    if is_list and draw.random() < 0.5:
        holder.insert(key, holder[key])
        return f"double {where}", json.dumps(body)
    if UNSTATED.isdisjoint((*path, str(key))):
        del holder[key]
    return f"delete {where}", json.dumps(body)


def _inner(body: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[Any, tuple[str, ...]]]:
    """The objects and lists of a document, and where they are."""
    if isinstance(body, dict | list):
        yield body, path
        items = body.items() if isinstance(body, dict) else enumerate(body)
        for key, value in items:
            yield from _inner(value, (*path, str(key)))


def difference(name: str, text: str) -> str | None:
    """The first figure that the changed text has, and the report does not; None without one."""
    complete, form = samples()[name]
    before, after = _phases(form, complete) or [], _phases(form, text)
    left = list(before)
    for phase in after or ():
        same = next((old for old in left if _is_part(phase, old)), None)
        if same is None and not any(_is_part(phase, old) for old in before):
            return f"{phase.name!r}: {_shown(phase)} is none of the report"
        if same is not None:
            left.remove(same)
    return None


def _is_part(phase: FoundPhase, old: FoundPhase) -> bool:
    """Whether the phase has no figure that the old one does not have."""
    if phase.error is not None:
        return True
    pairs = [(getattr(phase, name), getattr(old, name)) for name in _FIELDS]
    pairs += [(value, old.metrics.get(name)) for name, value in phase.metrics.items()]
    return all(new is None or former is None or _equal(new, former) for new, former in pairs)


def _equal(new: Any, former: Any) -> bool:
    if isinstance(new, bool | str) or isinstance(former, bool | str):
        return bool(new == former)
    return abs(new - former) <= _ROUNDED * abs(former)


def _shown(phase: FoundPhase) -> str:
    values = {name: getattr(phase, name) for name in _FIELDS}
    return ", ".join(f"{name}={value}" for name, value in values.items() if value is not None)


def tried(seed: int, number: int) -> tuple[Counter[str], list[str]]:
    """How many inputs of each tool were rejected, and the findings."""
    draw, names = random.Random(seed), list(samples())
    counts, findings = Counter[str](), list[str]()
    for _ in range(number):
        name = draw.choice(names)
        action, text = changed(name, draw)
        counts[f"{name.partition('/')[0]} tried"] += 1
        if (found := difference(name, text)) is not None:
            findings.append(f"{name}: {action}: {found}")
        elif _phases(samples()[name][1], text) is None:
            counts[f"{name.partition('/')[0]} rejected"] += 1
    return counts, findings


def tallied(seed: int, number: int, jobs: int) -> tuple[Counter[str], Sequence[str]]:
    """Of several processes."""
    shares = [(seed * 1000 + job, -(-number // jobs)) for job in range(jobs)]
    with get_context("spawn").Pool(jobs) as pool:
        results = pool.starmap(tried, shares)
    counts = Counter[str]()
    for of_job, _ in results:
        counts += of_job
    return counts, [finding for _, findings in results for finding in findings]
