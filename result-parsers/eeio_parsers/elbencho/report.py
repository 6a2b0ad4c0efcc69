"""elbencho's text, CSV and JSON."""

import csv
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from eeio.errors import ToolOutputError
from eeio_parsers.format import Format
from eeio_parsers.found import (
    MIB,
    FoundPhase,
    FoundReport,
    complete,
    count,
    figure,
    none_found,
    number,
    size,
)
from eeio_parsers.rules import Rules

_MOVES = {"WRITE": "write", "READ": "read"}
_PASSED_OVER = ("SYNC", "DROPCACHE", "DROPCACHES")
"""Phases without I/O."""
_METADATA = (
    "MKDIRS",
    "MKBUCKETS",
    "RMFILES",
    "RMOBJECTS",
    "RMDIRS",
    "RMBUCKETS",
    "STAT",
    "HEADOBJ",
    "STATDIRS",
    "LISTOBJ",
    "LISTOBJ_P",
    "MULTIDEL",
    "PUTOBJACL",
    "GETOBJACL",
    "PUTBACL",
    "GETBACL",
    "MPUCOMPL",
    "GETOBJMD",
    "PUTOBJMD",
    "DELOBJMD",
    "GETBUCKETMD",
    "PUTBUCKETMD",
    "DELBUCKETMD",
)
"""The names of elbencho's other phases (source/Common.h of 3.1)."""


def read_csv(text: str) -> Iterator[FoundReport]:
    """One report for each line: `--csvfile` appends lines, also of other settings."""
    for row in csv.DictReader(text.splitlines()):
        row = {str(name).lower(): str(value) for name, value in row.items()}
        # The columns before the operation are settings; their names differ from version to version.
        columns = itertools.takewhile(lambda name: name != "operation", row)
        settings = {}
        for name in columns:
            if name != "iso date":
                settings[name.replace("io depth", "iodepth")] = row[name]
        values = {
            "rate": _sum_of_directions(row, "mib/s [last]", MIB),
            "entries": _sum_of_directions(row, "entries/s [last]"),
            "iops": _sum_of_directions(row, "iops [last]"),
            "moved": _sum_of_directions(row, "mib [last]", MIB),
            "runtime_s": _scaled(row.get("time ms [last]"), 1e-3),
        }
        yield from _elbencho(row.get("operation", ""), values, settings, row.get("iso date"))


_READS_OF_A_MIX = "rwmix read "
"""In front of the columns of the reads of a mixed phase; the others are its writes."""


def _sum_of_directions(row: Mapping[str, str], column: str, unit: float = 1.0) -> float | None:
    """A figure of a phase. Of a mixed phase that of both directions: none if one is missing."""
    figures = [_scaled(row.get(column), unit)]
    is_mixed = row.get("operation", "").upper().startswith("RWMIX")
    if is_mixed and figures[0] is not None:
        if _READS_OF_A_MIX + column not in row:
            raise none_found(
                "elbencho", f"a mixed phase without its column {_READS_OF_A_MIX}{column}"
            )
        figures.append(_scaled(row[_READS_OF_A_MIX + column], unit))
    known = [value for value in figures if value is not None]
    if len(known) == len(figures):
        return sum(known)
    return None


def _scaled(text: object, unit: float) -> float | None:
    value = number(str(text))
    if value is None:
        return None
    return value * unit


def _elbencho(
    kind: str,
    values: Mapping[str, float | None],
    settings: Mapping[str, str],
    date: str | None = None,
) -> Iterator[FoundReport]:
    """A phase with its settings, as the columns of the CSV are called; none for one that moves
    nothing."""
    if kind in _PASSED_OVER:
        return
    operation = _operation(kind)
    threads, hosts = (count(settings.get(name, "")) for name in ("threads", "hosts"))
    phase = FoundPhase(
        name=kind.lower(),
        operation="metadata",
        jobs=None if threads is None else threads * max(1, hosts or 1),
        nodes=hosts or None,
        iops=values["entries"],
        access_pattern="none",
        runtime_s=values["runtime_s"],
        options=settings,
    )
    # Without milliseconds it is the time when an older elbencho printed the line.
    if (started := _iso(date)) is not None and "." in started:
        phase = replace(
            phase,
            started_utc=started,
            time_source="elbencho's start of the phase",
            starts_within_s=0.01,
        )
    # Files without contents: what it counts are files.
    if operation != "metadata" and (values["rate"] is not None or values["iops"] is not None):
        phase = _of_data(replace(phase, operation=operation), values, settings)
    if phase.bandwidth_bytes_per_s is not None or phase.iops is not None:
        yield FoundReport((phase,))


def _operation(kind: str) -> str:
    """Raises ToolOutputError for a phase of another name."""
    base = kind.partition("-")[0].upper()
    if base.startswith("RWMIX"):
        return "mixed"
    if base not in _MOVES and base not in _METADATA:
        raise none_found("elbencho", f"a phase {kind[:40]!r}, which eeio does not know")
    return _MOVES.get(base, "metadata")


def _of_data(
    phase: FoundPhase, values: Mapping[str, float | None], settings: Mapping[str, str]
) -> FoundPhase:
    random, moved = _YES_OR_NO.get(settings.get("random", "")), values["moved"]
    return replace(
        phase,
        access_pattern={True: "random", False: "sequential", None: None}[random],
        request_bytes=size(settings.get("block size", "")) or None,
        direct=_YES_OR_NO.get(settings.get("direct io", "")),
        iodepth=count(settings.get("iodepth", "")),
        iops=values["iops"],
        bandwidth_bytes_per_s=values["rate"],
        bytes=None if moved is None else round(moved),
        metrics={} if (files := values["entries"]) is None else {"operations_per_s": files},
    )


_YES_OR_NO = {"1": True, "true": True, "0": False, "false": False}


def _iso(text: str | None) -> str | None:
    match = re.match(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,20})?(?:[+-]\d\d:?\d\d|Z)?", text or ""
    )
    if match is None:
        return None
    return re.sub(r"([+-]\d\d)(\d\d)$", r"\1:\2", match[0])


_JSON_NAMES = {
    "block_size": "block size",
    "random_offsets": "random",
    "direct_io": "direct io",
    "io_depth": "iodepth",
}
"""Settings in the JSON that have another name in the CSV."""


def read_json(text: str) -> Iterator[FoundReport]:
    """`--jsonfile`: an object a line, numbers as text. Reads of a mixed phase are apart."""
    for index, line in enumerate(filter(str.strip, text.splitlines()), start=1):
        try:
            body = json.loads(line)
            done = body["last_done"]
            is_mix = body["phase_type"].startswith("RWMIX")
            directions = (done, done["rwmix_read"]) if is_mix else (done,)
            sums = {}
            for name in ("bytes/s", "iops", "bytes"):
                if name in done:
                    sums[name] = sum(figure(direction[name]) for direction in directions)
            values = {
                "rate": sums.get("bytes/s"),
                "iops": sums.get("iops"),
                "moved": sums.get("bytes"),
                "entries": figure(done["entries/s"]) if "entries/s" in done else None,
                # Whole milliseconds: 0 is not a time that is known.
                "runtime_s": figure(done["elapsed_time_ms"]) * 1e-3 or None,
            }
            settings = {_JSON_NAMES.get(k, k): str(v) for k, v in body["config"].items()}
            kind = body["phase_type"]
            date = body.get("iso_start_date", body.get("iso_date"))
            found = list(_elbencho(kind, values, settings, date))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise none_found(
                "elbencho", f"line {index}: damaged or cut off: {error!r:.80}"
            ) from error
        yield from found


TEXT = re.compile(r"^OPERATION\s{1,99}RESULT TYPE\s{1,99}FIRST DONE\s{1,99}LAST DONE", re.M)
_LINE = re.compile(
    rf"(?P<header>{TEXT.pattern})"
    r"|^(?P<phase>[A-Z]+\d*)\s{1,99}Elapsed (?:time|ms)\s{0,99}:"
    r"\s{0,99}\S{1,99}[ \t]{1,99}(?P<elapsed>\S{1,99})"
    r"|^(?P<end>---)[ \t]{0,99}$"
    r"|^[ \t]{1,99}(?P<name>\w{1,40}/s|IOPS|Throughput Mi?B/s|Total \w{1,40}|\w{1,40} total)"
    r"[ \t]{0,99}:[ \t]{0,99}\S{1,99}[ \t]{1,99}(?P<last>\S{1,99})[ \t]{0,99}$",
    re.M,
)
_SERVICES = re.compile(r"^Service now listening\b", re.M)
_OF_SERVICES = (
    "services of elbencho printed into this file too: a result may be that of one host, and a part "
    "of another result"
)


def read_text(text: str) -> Iterator[FoundReport]:
    """The tables on a terminal: whole MiB/s and IOPS of the last finisher."""
    found, damaged = list[FoundReport](), list[ToolOutputError]()
    lines = list(_LINE.finditer(text))
    has_ends = any(line["end"] for line in lines)
    for block in _blocks(lines, has_ends):
        try:
            _check_separate(block, has_ends)
        except ToolOutputError as error:
            damaged.append(error)
        else:
            found += _of_block(block)
    if _SERVICES.search(text):
        found = [replace(report, notes=(_OF_SERVICES,)) for report in found]
    yield from complete(found, damaged)


def _blocks(lines: Sequence[re.Match[str]], has_ends: bool) -> list[list[re.Match[str]]]:
    """The lines of each block: from the time of a phase to `---`, which old versions do not print.
    Processes that share a file print into each other's blocks, and a figure does not show its
    process: a block then continues until there were as many `---` as phases."""
    blocks, unfinished = list[list[re.Match[str]]](), 0
    for line in lines:
        if line["header"]:
            unfinished = 0
            blocks.append([])
        elif line["phase"]:
            if not unfinished or not has_ends:
                blocks.append([])
            unfinished += 1
            blocks[-1].append(line)
        elif line["name"] and blocks:
            # Behind the end of a block it is another's, and so may be those before it.
            blocks[-1].append(line)
        elif line["end"] and unfinished:
            unfinished -= 1
            blocks[-1].append(line)
    return list(filter(None, blocks))


def _check_separate(block: Sequence[re.Match[str]], has_ends: bool) -> None:
    """Raises ToolOutputError for lines that may be of several blocks, or of one that is cut off."""
    first, names, is_ended = block[0], set[str](), False
    for line in block:
        if line["phase"] and line is not first:
            raise _error(line, f"interrupts the block of line {_number(first)}")
        if line["name"] and (is_ended or not first["phase"]):
            raise _error(line, "is in no block")
        if line["name"] in names:
            raise _error(line, "is the second one in its block")
        if line["name"]:
            names.add(line["name"])
        is_ended = is_ended or bool(line["end"])
    if has_ends and not is_ended:
        raise none_found("elbencho", f"cut off: no `---` ends the block of line {_number(first)}")


def _error(line: re.Match[str], what: str) -> ToolOutputError:
    text = " ".join(line[0].split())
    return none_found("elbencho", f"line {_number(line)}: {text!r:.80} {what}")


def _number(line: re.Match[str]) -> int:
    return line.string.count("\n", 0, line.start()) + 1


def _of_block(block: Sequence[re.Match[str]]) -> Iterator[FoundReport]:
    phase = block[0]["phase"]
    if phase.startswith("RWMIX"):
        raise none_found("elbencho", f"{phase}: import its CSV or JSON: its text is not known")
    last = {line["name"]: number(line["last"]) for line in block if line["name"]}
    entries = [last[name] for name in ("Files/s", "Dirs/s", "Entries/s") if name in last]
    rate, moved = last.get("Throughput MiB/s"), last.get("Total MiB")
    runtime_s = _duration_s(block[0]["elapsed"])
    if moved and runtime_s and rate and abs(moved / runtime_s - rate) <= 1:
        rate = moved / runtime_s  # it prints whole MiB/s
    values = {
        "rate": None if rate is None else rate * MIB,
        "iops": last.get("IOPS"),
        "entries": entries[0] if entries else None,
        "moved": None if moved is None else moved * MIB,
        "runtime_s": runtime_s,
    }
    yield from _elbencho(phase, values, {})


def _duration_s(text: str) -> float | None:
    """`1m2.345s`, `345ms`, or whole ms."""
    units = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6}
    spans = re.findall(r"([\d.]{1,30})(ms|us|h|m|s)", text)
    if spans:
        return sum(figure(value) * units[unit] for value, unit in spans)
    value = number(text)
    if value is None:
        return None
    return value / 1000


RULES = {"elbencho": Rules()}
FORMATS = (
    Format("elbencho", "json", read_json, keys=("phase_type", "last_done")),
    Format("elbencho", "csv", read_csv, begins=re.compile(r"^ISO date,label,path type", re.M)),
    Format("elbencho", "text", read_text, begins=TEXT),
)
