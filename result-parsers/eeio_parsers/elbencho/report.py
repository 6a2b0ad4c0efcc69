"""elbencho's text, CSV and JSON."""

import csv
import itertools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from eeio_parsers.format import Format
from eeio_parsers.found import (
    MIB,
    FoundPhase,
    FoundReport,
    count,
    figure,
    none_found,
    number,
    size,
)
from eeio_parsers.rules import Rules

_MOVES = {"WRITE": "write", "READ": "read"}
_PASSED_OVER = ("SYNC", "DROPCACHE", "DROPCACHES")
"""Phases that move nothing."""
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
            sums = {
                name: sum(figure(direction[name]) for direction in directions)
                for name in ("bytes/s", "iops", "bytes")
                if name in done
            }
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


def read_text(text: str) -> Iterator[FoundReport]:
    """The tables on a terminal: whole MiB/s and IOPS of the last finisher."""
    blocks = re.split(r"^(?=[A-Z]+\d*\s{1,99}(?:Elapsed time|Elapsed ms))", text, flags=re.M)
    for block in blocks:
        head = re.match(
            r"([A-Z]+\d*)\s{1,99}Elapsed (?:time|ms)\s{0,99}:\s{0,99}(\S{1,99})\s{1,99}(\S{1,99})",
            block,
        )
        if head is None:
            continue
        if head[1].startswith("RWMIX"):
            raise none_found(
                "elbencho", f"{head[1]}: import its CSV or JSON: its text is not known"
            )

        def last(name: str, block: str = block) -> float | None:
            match = re.search(
                r"^\s{0,99}" + name + r"\s{0,99}:\s{0,99}\S{1,99}\s{1,99}(\S{1,99})\s{0,99}$",
                block,
                re.M,
            )
            if match:
                return number(match[1])
            return None

        values = {
            "rate": _scaled(last(r"Throughput MiB/s"), MIB),
            "iops": last("IOPS"),
            "entries": last(r"(?:Files|Dirs|Entries)/s"),
            "moved": _scaled(last(r"Total MiB"), MIB),
            "runtime_s": _duration_s(head[3]),
        }
        moved, runtime_s, rate = values["moved"], values["runtime_s"], values["rate"]
        if moved and runtime_s and rate and abs(moved / runtime_s - rate) <= MIB:
            values["rate"] = moved / runtime_s  # it prints whole MiB/s
        yield from _elbencho(head[1], values, {})


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
