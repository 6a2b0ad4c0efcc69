"""Bonnie++, dd, elbencho, hyperfine, IOzone, lmbench, NPB BT-IO, sysbench and vdbench."""

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from eeio.importing.readers.found import (
    KIB,
    MIB,
    FoundPhase,
    FoundReport,
    columns,
    count,
    figure,
    none_found,
    number,
    parts,
    size,
)
from eeio.importing.readers.labels import headings, label

# ---- elbencho ----

_MOVES = {"WRITE": "write", "READ": "read"}
_PASSED_OVER = ("SYNC", "DROPCACHE", "DROPCACHES")
"""Phases that move nothing."""
_METADATA = (
    "MKDIRS", "MKBUCKETS", "RMFILES", "RMOBJECTS", "RMDIRS", "RMBUCKETS", "STAT", "HEADOBJ",
    "STATDIRS", "LISTOBJ", "LISTOBJ_P", "MULTIDEL", "PUTOBJACL", "GETOBJACL", "PUTBACL", "GETBACL",
    "MPUCOMPL", "GETOBJMD", "PUTOBJMD", "DELOBJMD", "GETBUCKETMD", "PUTBUCKETMD", "DELBUCKETMD",
)  # fmt: skip
"""The names of elbencho's other phases (source/Common.h of 3.1)."""


_CSV_SETTINGS = (
    "label", "path type", "paths", "hosts", "threads", "dirs", "files", "file size", "block size",
    "direct io", "random", "random aligned", "iodepth", "shared paths", "truncate",
)  # fmt: skip


def read_elbencho_csv(text: str) -> Iterator[FoundReport]:
    """One report for each line: `--csvfile` appends lines, also of other settings."""
    for row in csv.DictReader(text.splitlines()):
        row = {str(name).lower(): str(value) for name, value in row.items()}
        settings = {name: row[name] for name in _CSV_SETTINGS if name in row}
        values = {
            "rate": _scaled(row.get("mib/s [last]"), MIB),
            "entries": number(row.get("entries/s [last]")),
            "iops": number(row.get("iops [last]")),
            "moved": _scaled(row.get("mib [last]"), MIB),
            "runtime_s": _scaled(row.get("time ms [last]"), 1e-3),
        }
        yield from _elbencho(row.get("operation", ""), values, settings, row.get("iso date"))


def _scaled(text: object, unit: float) -> float | None:
    value = number(str(text))
    return None if value is None else value * unit


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
    base = kind.partition("-")[0].upper()
    operation = _MOVES.get(base) or ("mixed" if base.startswith("RWMIX") else "metadata")
    moves = operation != "metadata"
    if not moves and base not in _METADATA:
        raise none_found("elbencho", f"a phase {kind[:40]!r}, which eeio does not know")
    random = _YES_OR_NO.get(settings.get("random", ""))
    threads, hosts = (count(settings.get(name, "")) for name in ("threads", "hosts"))
    moved, started = values["moved"], _iso(date)
    phase = FoundPhase(
        name=kind.lower(),
        operation=operation,
        jobs=None if threads is None else threads * max(1, hosts or 1),
        nodes=hosts or None,
        iops=values["iops"] if moves else values["entries"],
        access_pattern="none",
        runtime_s=values["runtime_s"],
        started_utc=started,
        time_source=None if started is None else "elbencho's start of the phase",
        starts_within_s=None if started is None else 0.01 if "." in started else 1.0,
        options=settings,
    )
    if moves:
        phase = replace(
            phase,
            access_pattern={True: "random", False: "sequential", None: None}[random],
            request_bytes=size(settings.get("block size", "")) or None,
            direct=_YES_OR_NO.get(settings.get("direct io", "")),
            iodepth=count(settings.get("iodepth", "")),
            bandwidth_bytes_per_s=values["rate"],
            bytes=None if moved is None else round(moved),
            metrics={} if (files := values["entries"]) is None else {"operations_per_s": files},
        )
    if moves and phase.bandwidth_bytes_per_s is None and phase.iops is None:
        # Files without contents: what it counts are files.
        phase = replace(phase, operation="metadata", access_pattern="none",
                        iops=values["entries"], metrics={})  # fmt: skip
    if phase.bandwidth_bytes_per_s is not None or phase.iops is not None:
        yield FoundReport((phase,))


_YES_OR_NO = {"1": True, "true": True, "0": False, "false": False}


def _iso(text: str | None) -> str | None:
    found = re.match(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,20})?(?:[+-]\d\d:?\d\d|Z)?", text or ""
    )
    if found is None:
        return None
    return re.sub(r"([+-]\d\d)(\d\d)$", r"\1:\2", found[0])


_JSON_NAMES = {
    "block_size": "block size", "random_offsets": "random", "direct_io": "direct io",
    "io_depth": "iodepth",
}  # fmt: skip
"""Settings in the JSON that have another name in the CSV."""


def read_elbencho_json(text: str) -> Iterator[FoundReport]:
    """`--jsonfile`: an object a line, numbers as text. Reads of a mixed phase are apart."""
    for place, line in enumerate(filter(str.strip, text.splitlines()), start=1):
        try:
            body = json.loads(line)
            done, mix = body["last_done"], body["last_done"].get("rwmix_read", {})
            sums = {
                name: sum(figure(part[name]) for part in (done, mix) if name in part)
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
            kind, date = body["phase_type"], body.get("iso_date")
            found = list(_elbencho(kind, values, settings, date))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise none_found(
                "elbencho", f"line {place}: damaged or cut off: {error!r:.80}"
            ) from error
        yield from found


ELBENCHO_TEXT = re.compile(
    r"^OPERATION\s{1,99}RESULT TYPE\s{1,99}FIRST DONE\s{1,99}LAST DONE", re.M
)


def read_elbencho_text(text: str) -> Iterator[FoundReport]:
    """The tables on a terminal: whole MiB/s and IOPS of the last finisher."""
    blocks = re.split(r"^(?=[A-Z]+\d*\s{1,99}(?:Elapsed time|Elapsed ms))", text, flags=re.M)
    for block in blocks:
        head = re.match(
            r"([A-Z]+\d*)\s{1,99}Elapsed (?:time|ms)\s{0,99}:\s{0,99}(\S{1,99})\s{1,99}(\S{1,99})",
            block,
        )
        if head is None:
            continue

        def last(name: str, block: str = block) -> float | None:
            found = re.search(
                r"^\s{0,99}" + name + r"\s{0,99}:\s{0,99}\S{1,99}\s{1,99}(\S{1,99})\s{0,99}$",
                block,
                re.M,
            )
            return number(found[1]) if found else None

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
    found = re.findall(r"([\d.]{1,30})(ms|us|h|m|s)", text)
    if found:
        return sum(figure(value) * units[unit] for value, unit in found)
    value = number(text)
    return None if value is None else value / 1000


# ---- IOzone ----

_IOZONE = re.compile(r"^\s{0,99}Iozone: Performance Test of File I/O", re.M)
_IOZONE_TABLE = re.compile(
    r"^(?:[^\n]{0,200}\brandom\b[^\n]{0,200}\n)?[ \t]{1,99}[kK]B[ \t]{1,99}reclen[ \t]{1,99}write",
    re.M,
)
_IOZONE_PART = re.compile(
    rf"{_IOZONE_TABLE.pattern}"
    r"|^[ \t]{0,99}Children see throughput for[ \t]{1,99}\d{1,9}[ \t]{1,99}initial writers", re.M
)  # fmt: skip
_IOZONE_TESTS = re.compile(r"\A(?=[\s\S]*?^[ \t]{0,99}Children see throughput for)", re.M)
IOZONE = re.compile(
    f"{_IOZONE.pattern}|{_IOZONE_PART.pattern}|^[ \\t]{{0,99}}Children see throughput for[ \\t]",
    re.M,
)
_PATTERNS = {"random": "random", "stride": "strided", "strided": "strided"}
_CHILDREN = re.compile(r"^\s{0,99}Children see throughput for\s{1,99}(\d{1,20})\s{1,99}"
                       r"([^=\n]{1,80}?)\s{0,99}=\s{0,99}([\d.]{1,30}) "
                       r"[kK]B(?:ytes)?/sec", re.M)  # fmt: skip


def read_iozone(text: str) -> Iterator[FoundReport]:
    """Tables of sizes and throughput tests. Rates are in KiB/s. Notes may lack the lines above."""
    for part, heading in _iozone_parts(text):
        version = re.search(r"Version \$?Revision: ([\d.]{1,30})", part)
        # Without its first lines, a report says nothing of it.
        direct = (
            True if "O_DIRECT feature enabled" in part else False if _IOZONE.search(part) else None
        )
        command = re.search(r"^\s{0,99}Command line used: \S{1,999}(.*)$", part, re.M)
        options = {"command": command[1].strip()[:500]} if command else {}
        phases = [
            replace(phase, options={**options, **phase.options})
            for phase in (*_iozone_table(part, direct), *_iozone_children(part, direct))
        ]
        if re.search(r"Time Resolution|in microseconds/op|in ops/sec", part) and (
            "Output is in microseconds" in part or "Output is in ops/sec" in part
        ):
            raise none_found(
                "IOzone", "its output is not in kBytes/s (-N or -O): give no such option"
            )
        if not phases:
            raise none_found("IOzone", "no result: it was ended before its first one")
        last = part.rpartition("\n")[2]
        if "iozone test complete" not in part and re.search(r"^[\d\s]+$|Children", last):
            raise none_found("IOzone", "cut off in its last line")
        yield FoundReport(tuple(phases), version[1] if version else None, heading=heading)


def _iozone_parts(text: str) -> Iterator[tuple[str, str | None]]:
    """Each report: from its banner, or from a table that is not the first one below a banner."""
    if not _IOZONE.search(text):
        yield from parts(text, _IOZONE_PART if _IOZONE_PART.search(text) else _IOZONE_TESTS)
        return
    places: list[int] = []
    has_table = True
    for mark in re.finditer(f"(?P<banner>{_IOZONE.pattern})|{_IOZONE_TABLE.pattern}", text, re.M):
        if mark["banner"] or has_table:
            places.append(mark.start())
        has_table = not mark["banner"]
    ends = [*places[1:], len(text)]
    for start, end, heading in zip(places, ends, headings(text, places), strict=True):
        yield text[start:end], heading


def _iozone_table(part: str, direct: bool | None) -> Iterator[FoundPhase]:
    head = re.search(r"^\s{1,99}(?:kB|KB)\s{1,99}reclen\s{1,99}(.*)$", part, re.M)
    if head is None:
        return
    above = part[: head.start()].splitlines()[-1] if part[: head.start()].strip() else ""
    names = _iozone_columns(above, head)
    for place, line in enumerate(part[head.end() :].splitlines()):
        cells = line.split()
        if len(cells) < 3 or not all(re.fullmatch(r"\d{1,20}", cell) for cell in cells):
            if cells and place > 0 and not re.match(r"[\d\s]+$", line):
                break
            continue
        for name, cell in zip(_iozone_names(names, line), cells[2:], strict=True):
            fields = name.split()
            if int(cell) == 0:
                continue  # The test of this column did not run (-+n).
            yield FoundPhase(
                name=name,
                operation="write" if "write" in name else "read",
                access_pattern=_PATTERNS.get(fields[0], "sequential"),
                group=f"{cells[0]} kB {cells[1]}",
                request_bytes=int(cells[1]) * KIB,
                direct=direct,
                jobs=1,
                bandwidth_bytes_per_s=figure(cell) * KIB,
                bytes=int(cells[0]) * KIB,
                options={"file size": f"{cells[0]} kB"},
            )


def _iozone_columns(above: str, head: re.Match[str]) -> list[tuple[str, int]]:
    """The names of the columns, whose first words are in the line above, and where they end behind
    the column `reclen`."""
    below = [(m.start(), m.end(), m[0]) for m in re.finditer(r"\S{1,300}", head[0])][1:]
    firsts = [(m.start(), m.end(), m[0]) for m in re.finditer(r"\S{1,300}", above)]
    names = []
    for start, end, word in below[1:]:
        over = [f for f in firsts if f[0] < end and f[1] > start and f[2] in
                ("random", "bkwd", "record", "stride")]  # fmt: skip
        names.append((f"{over[0][2]} {word}" if over else word, end - below[0][1]))
    return names


_IOZONE_3_507 = 132
"""Where the last column ends in a version whose figures are one wider than the blanks of a test
that did not run."""


def _iozone_names(names: Sequence[tuple[str, int]], row: str) -> Iterator[str]:
    """The column of each figure of a row, by where it ends: other tests are blanks."""
    reclen, *ends = [m.end() for m in re.finditer(r"\S{1,300}", row)][1:]
    if len(ends) > len(names):
        raise none_found("IOzone", f"more figures than columns: {row[:120]!r}")
    wider = names[-1][1] == _IOZONE_3_507
    for column in columns([reclen + end for _, end in names], ends, wider):
        yield names[column][0]


def _iozone_size(part: str, name: str) -> int | None:
    found = re.search(name + r" (\d{1,20}) ([kK]B|MB)", part)
    return None if found is None else int(found[1]) * (MIB if found[2] == "MB" else KIB)


def _iozone_children(part: str, direct: bool | None) -> Iterator[FoundPhase]:
    request = _iozone_size(part, r"Record Size")
    file_size = _iozone_size(part, r"File size set to")
    each = re.search(
        r"Each process writes a (\d{1,20}) K?k?[Bb]yte file in (\d{1,20}) K?k?[Bb]yte records", part
    )
    if each is not None:
        file_size, request = file_size or int(each[1]) * KIB, request or int(each[2]) * KIB
    tests = list(_CHILDREN.finditer(part))
    ends = [*(test.start() for test in tests[1:]), len(part)]
    for test, end in zip(tests, ends, strict=False):
        least = re.search(r"Min xfer\s{1,99}=\s{1,99}([\d.]{1,30}) [kK]B", part[test.end() : end])
        # All children stop when the first one has finished, so only the least is sure.
        is_all = file_size and least and figure(least[1]) * KIB >= file_size
        name = test[2].replace("-", " ").rstrip("s")
        rate = figure(test[3]) * KIB
        yield FoundPhase(
            name=name,
            operation="mixed" if "mixed" in name or ("pread" in name and "pwrite" in name)
            else "write" if "write" in name else "read",
            access_pattern="random" if "random" in name else "strided" if "strid" in name
            else "mixed" if "mixed" in name else "sequential",
            group=name,
            request_bytes=request,
            direct=direct,
            jobs=int(test[1]),
            bandwidth_bytes_per_s=rate,
            bytes=file_size * int(test[1]) if file_size and (is_all or int(test[1]) == 1) else None,
        )  # fmt: skip


# ---- Bonnie++ ----

BONNIE_CSV = re.compile(
    r"^(?:1\.9\d\w?|2\.\d{1,20}\w?),(?:1\.9\d\w?|2\.\d{1,20}\w?),[^,\n]*,\d{1,20},", re.M
)
_BONNIE_1 = ("putc", None, "put_block", None, "rewrite", None, "getc", None, "get_block", None,
             "seeks", None)  # fmt: skip
_FILES_1 = ("seq_create", None, "seq_stat", None, "seq_del", None, "ran_create", None, "ran_stat",
            None, "ran_del", None)  # fmt: skip
_BONNIE_NAMES = {
    "putc": ("write by characters", "write"), "put_block": ("write", "write"),
    "rewrite": ("rewrite", "mixed"), "getc": ("read by characters", "read"),
    "get_block": ("read", "read"), "seeks": ("seeks", "mixed"),
    "seq_create": ("sequential create", "metadata"), "seq_stat": ("sequential stat", "metadata"),
    "seq_del": ("sequential delete", "metadata"), "ran_create": ("random create", "metadata"),
    "ran_stat": ("random stat", "metadata"), "ran_del": ("random delete", "metadata"),
}  # fmt: skip


def read_bonnie_csv(text: str) -> Iterator[FoundReport]:
    """Lines of 1.96 and later, one report each. `+++++` is a test that was too short."""
    lines = list(BONNIE_CSV.finditer(text))
    tables = [match.start() for match in BONNIE_TEXT.finditer(text)]
    # The table of a run is above its line.
    spans = zip([0, *(line.end() for line in lines)], lines, strict=False)
    begins = [
        next((place for place in tables if start <= place < line.start()), line.start())
        for start, line in spans
    ]
    ends = [text.find("\n", line.start()) for line in lines]
    for line, end, heading in zip(lines, ends, headings(text, begins, ends), strict=True):
        cells = text[line.start() : end if end >= 0 else None].strip().split(",")
        # From format 1.98 on seeks and their processes stand after the chunk size: 50 fields.
        begin = 9 if len(cells) >= 50 else 7
        files = begin + 12
        fields = dict(zip(_BONNIE_1, cells[begin:], strict=False))
        # Five settings of the files stand before their rates.
        fields |= dict(zip(_FILES_1, cells[files + 5 :], strict=False))
        if len(cells) < 21:
            raise none_found("Bonnie++", f"a line of {len(cells)} fields is cut off")
        phases = tuple(_bonnie(fields, cells[5], cells[6], count(cells[3])))
        if not phases:
            raise none_found("Bonnie++", "no test has a result")
        yield FoundReport(phases, cells[1], cells[2] or None, heading=heading)


def _bonnie(
    fields: Mapping[str | None, str], file_size: str, chunk: str, jobs: int | None
) -> Iterator[FoundPhase]:
    for field, (name, operation) in _BONNIE_NAMES.items():
        value = number(fields.get(field))
        if not value:
            continue
        rate = field not in ("seeks", *filter(None, _FILES_1))
        moved = size(file_size + "B" if file_size.isdigit() else file_size) if rate else None
        moved = None if moved is None else moved * (MIB if file_size.isdigit() else 1)
        yield FoundPhase(
            name=name,
            operation=operation,
            access_pattern="none" if operation == "metadata" else "random" if field == "seeks"
            else "sequential",
            request_bytes=(size(chunk) if "block" in str(field) or field == "rewrite" else None),
            jobs=jobs,
            bandwidth_bytes_per_s=value * KIB if rate else None,
            iops=None if rate else value,
            bytes=moved,
            options={"file size": file_size, "chunk size": chunk},
        )  # fmt: skip


BONNIE_TEXT = re.compile(
    # Notes may lack the version, and the machine in front of the sizes.
    r"^(?:Version\s{1,99}(?P<version>\S{1,300}))?[ \t]{1,99}-+Sequential Output-+",
    re.M,
)

_BONNIE_SIZES = r"(\d{1,20}[KMGT]?)(?::(\d{1,20}\w{0,80}))?\s{1,99}([^\n]*)$"


def read_bonnie_text(text: str) -> Iterator[FoundReport]:
    """The table on a terminal (1.03 to 2.00): K/sec, with M for MiB from 1.96 on. Its line of CSV,
    if the file has it, has more digits."""
    if len(BONNIE_CSV.findall(text)) == len(BONNIE_TEXT.findall(text)):
        yield from read_bonnie_csv(text)
        return
    for part, heading in parts(text, BONNIE_TEXT):
        version = BONNIE_TEXT.match(part)
        row = re.search(
            rf"^([ \t]*Size[^\n]*)\n()[ \t]*{_BONNIE_SIZES}", part, re.M
        ) or re.search(
            rf"^((?:Machine|Name:Size)[^\n]*)\n(\S+?)?[\s:]+{_BONNIE_SIZES}", part, re.M
        )  # fmt: skip
        if row is None:
            raise none_found("Bonnie++", "its table has no row")
        ends = [m.end() for m in re.finditer(r"/sec|%CP", row[1])]
        cells = list(re.finditer(r"\S{1,300}", row[5]))
        if len(cells) > len(ends) or len(ends) > len(_BONNIE_1):
            raise none_found("Bonnie++", f"its table has another form: {row[0][:120]!r}")
        indent = row.start(5) - row.end(1) - 1
        fields = {
            _BONNIE_1[column]: _bonnie_rate(cell[0])
            for column, cell in zip(
                columns(ends, [indent + cell.end() for cell in cells]), cells, strict=True
            )
        }
        phases = tuple(_bonnie(fields, row[3], row[4] or "8k", None))
        if not phases:
            raise none_found("Bonnie++", "no test has a result")
        reported = version["version"] if version else None
        yield FoundReport(phases, reported, row[2] or None, heading=heading)


def _bonnie_rate(cell: str) -> str:
    found = re.fullmatch(r"([\d.]{1,30})([kmg])", cell, re.I)
    if found is None:
        return cell
    return str(figure(found[1]) * {"k": 1, "m": 1024, "g": 1024**2}[found[2].lower()])


# ---- dd, hyperfine, lmbench, sysbench, vdbench, NPB ----

DD = re.compile(
    # Behind blanks or a label, as in notes and logs.
    r"^(?:[ \t]{0,20}(?:#|//)?[ \t]{0,20}"
    r"|[^\r\n]{0,40}?(?:[:\"'`>|\]]|/dev/[\w/-]{1,40})[ \t]{0,3})"
    r"(\d{1,20}) bytes? (?:\([^)\n]*\) )?(?:copied|transferred)(?: in|,) ([\d.,e-]{1,30}) "
    r"(?:s|secs?|seconds?)\b"
    # In other languages, as coreutils has them: `1048576 Bytes (1,0 MB) kopiert, 0,5 s, 2,1 MB/s`.
    r"|^(\d{1,20}) ?[^\W\d]\w{0,19} ?[(（][^)）\n]*[)）] ?[^\d\n]{1,40}([\d.,e-]{1,30}) "
    r"\w{1,9}[,，] ?[\d.,]{1,30} [kKMGT]?B/\w",
    re.M,
)


_RECORDS = re.compile(r"^\s{0,20}\d{1,20}\+\d{1,20}\s", re.M)
"""dd's records in and out, above the line of a copy that has ended."""


def _dd_amounts(copy: re.Match[str]) -> tuple[int, float]:
    """Bytes and seconds."""
    return int(copy[1] or copy[3]), figure((copy[2] or copy[4]).replace(",", "."))


def _is_progress(below: str, above: str) -> bool:
    """Whether dd's records are below a line and not above it, and no other dd begins below."""
    records = _RECORDS.search(below) and not _RECORDS.search(above)
    return bool(records) and not re.search(r"\bdd\s", below)


def _planned(options: Mapping[str, str]) -> int | None:
    """The bytes that a command copies if nothing ends it; None if it does not say."""
    blocks = count(options.get("count"))
    return None if blocks is None else _in_blocks(options, blocks)


def _in_blocks(options: Mapping[str, str], blocks: int) -> int | None:
    bs = options.get("bs", "512")
    length = size(bs, 1000 if bs[-1:] == "B" else KIB)
    return None if length is None else blocks * length


def _may_be_of(options: Mapping[str, str], moved: int) -> bool:
    """Whether a copy of so many bytes may be of a command with these options."""
    planned = _planned(options)
    return planned is None or moved <= 1.001 * planned


_DD_OPTION = re.compile(r"\b(if|of|bs|count|oflag|iflag|conv)=([^\s;|&<>]{1,300})")
_SHELL_MARKS = re.compile("[\"'`)]")
_ONLY_RECORDS = re.compile(
    r"[^\n]{0,200}\n(?:\s{0,20}\d{1,20}\+\d{1,20} [^\n]{1,80}\n|\s{0,9}\n){0,9}"
)


def read_dd(text: str) -> Iterator[FoundReport]:
    """One report for each copy. dd reports neither direction nor options; its command line, if the
    file has it above, does."""
    start, options = 0, dict[str, str]()
    copies = list(DD.finditer(text))
    above_each = headings(text, [copy.start() for copy in copies])
    for place, (copy, following, heading) in enumerate(
        zip(copies, [*copies[1:], None], above_each, strict=True)
    ):
        above = text[start : copy.start()]
        if following is not None and _is_progress(text[copy.end() : following.start()], above):
            (moved, seconds), (all_bytes, all_s) = _dd_amounts(copy), _dd_amounts(following)
            if moved <= all_bytes and seconds <= all_s:
                continue  # of the same copy, which ends later
        start = copy.end()
        moved, seconds = _dd_amounts(copy)
        command = [
            dict(_DD_OPTION.findall(_SHELL_MARKS.sub("", line)))
            for line in re.findall(r"^.*\bdd\s{1,99}(.*\bof=.*|.*\bif=.*)$", above, re.M)
        ]
        if len(command) > 1:  # such as a list of what was run
            # The blocks that dd has counted exclude commands with blocks of another size.
            if blocks := re.findall(r"^\s{0,20}(\d{1,20})\+0\s", above, re.M):
                command = [c for c in command if _in_blocks(c, int(blocks[-1])) == moved]
            exact = [one for one in command if _planned(one) == moved]
            ends_itself = bool(command) and _planned(command[-1]) is None
            if bool(exact) == ends_itself:
                command = []  # It may be of either, or is of neither.
            else:
                command = exact if len({one.get("of") for one in exact}) == 1 else command[-1:]
            options = {}
        if command:
            options = command[-1]
        elif options and not _ONLY_RECORDS.fullmatch(above):
            options = {}  # else it is the next one of a loop
        command = command or ([options] if options else [])
        amount = copy.start(1 if copy[1] else 3)
        before = label(text[copy.start() : amount].rstrip("\"'` "))
        if not _may_be_of(options, moved):
            command, options = [], {}
        operation = None
        # Without `of` it writes into a pipe, and from such a device to /dev/null it moves nothing.
        made = options.get("if") in ("/dev/zero", "/dev/random", "/dev/urandom")
        if "of" in options and made != (options["of"] == "/dev/null"):
            # Without `if` it reads a pipe: what fills that is not known.
            operation = "write" if made else "read" if "if" in options else None
        bs = options.get("bs", "")
        flags = options.get("oflag", "") + options.get("iflag", "")
        yield FoundReport((FoundPhase(
            name="dd", operation=operation,
            access_pattern="sequential", group=str(place),
            # `1M` is binary, `1MB` is not (dd(1)).
            request_bytes=size(bs, 1000 if bs[-1:] == "B" else KIB) if bs else None,
            direct=("direct" in flags) if command else None,
            jobs=1, bytes=moved, runtime_s=seconds,
            bandwidth_bytes_per_s=moved / seconds if seconds else None,
            options=options | {"bytes": str(moved)} | ({"label": before} if before else {}),
        ),), heading=heading)  # fmt: skip


HYPERFINE = re.compile(r"^[ \t]{0,9}Benchmark (?:#)?\d{1,9}: ([^\n]{1,999})$", re.M)
_SPAN = r"\s{1,9}([\d.]{1,20}) (µs|ms|s|h)"
HYPERFINE_TIMES = re.compile(r"^[ \t]{1,99}Time \((?:mean ± σ|abs ≡)\):", re.M)
_TIME_LINE = re.compile(
    rf"^\s{{1,99}}Time \((?:mean ± σ|abs ≡)\):{_SPAN}(?: ±{_SPAN})?"
    rf"(?:\s{{1,9}}\[User:{_SPAN}, System:{_SPAN}\])?", re.M,
)  # fmt: skip
_RANGE_LINE = re.compile(rf"^\s{{1,99}}Range \(min … max\):{_SPAN} …{_SPAN}", re.M)


def read_hyperfine_text(text: str) -> Iterator[FoundReport]:
    """What it prints on a terminal."""
    units = {"µs": 1e-6, "ms": 1e-3, "s": 1.0, "h": 3600.0}

    def seconds(line: re.Match[str] | None, *names: str) -> dict[str, float]:
        if line is None:
            return {}
        spans = zip(names, line.groups()[::2], line.groups()[1::2], strict=True)
        return {name: figure(value) * units[unit] for name, value, unit in spans if value}

    # Notes may quote only the times, below words of their own.
    named = HYPERFINE.search(text) is not None
    for part, heading in parts(text, HYPERFINE if named else HYPERFINE_TIMES):
        command = HYPERFINE.match(part)
        found = seconds(_TIME_LINE.search(part), "mean", "stddev", "user", "system")
        found |= seconds(_RANGE_LINE.search(part), "min", "max")
        if "mean" not in found:
            raise none_found("hyperfine", "a benchmark without its mean time: it was ended before")
        name = command[1].strip()[:200] if command else "hyperfine"
        phase = FoundPhase(
            name=name, operation=None, runtime_s=found["mean"],
            metrics={f"time_{name}_s": value for name, value in found.items()},
        )  # fmt: skip
        yield FoundReport((phase,), heading=heading)


def read_hyperfine(text: str) -> Iterator[FoundReport]:
    """`--export-json`: the time of commands; they report no bytes."""
    try:
        results = json.loads(text)["results"]
        phases = tuple(
            FoundPhase(
                name=str(one["command"])[:200], operation=None, group=str(place),
                runtime_s=figure(one["mean"]),
                metrics={f"time_{name}_s": figure(one[name]) for name in
                         ("mean", "stddev", "median", "user", "system", "min", "max")
                         if one.get(name) is not None},
            )
            for place, one in enumerate(results)
        )  # fmt: skip
    except (ValueError, KeyError, TypeError) as error:
        raise none_found("hyperfine", f"the JSON is damaged or cut off: {error!r:.80}") from error
    yield FoundReport(phases)


HYPERFINE_MARKDOWN = re.compile(
    # Formatters align the columns with blanks.
    r"^\| {1,99}Command {1,999}\|(?: [^|\n]{1,99} \|){0,9} {1,99}Mean \[(ms|s)\] {1,99}\| {1,99}"
    # Older versions have one column for both.
    r"(?:Min \[\1\] {1,99}\| {1,99}Max|Min…Max) \[\1\] {1,99}\|"
    r"(?: {1,99}Relative {1,99}\|)?[ \t]*$", re.M,
)  # fmt: skip


def read_hyperfine_markdown(text: str) -> Iterator[FoundReport]:
    """`--export-markdown`: a row for each command; columns of parameters are before the times."""
    for part, heading in parts(text, HYPERFINE_MARKDOWN):
        lines = part.splitlines()
        names = _cells(lines[0])
        unit_s = 1e-3 if "Mean [ms]" in names else 1.0
        phases: list[FoundPhase] = []
        for line in lines[2:]:
            cells = _cells(line)
            if len(cells) != len(names):
                break
            row = dict(zip((name.partition(" [")[0] for name in names), cells, strict=True))
            if "Min…Max" in row:
                row["Min"], _, row["Max"] = row.pop("Min…Max").partition("…")
            # Authors print the best in bold.
            row |= {name: row[name].strip("* ") for name in ("Mean", "Min", "Max")}
            mean, _, deviation = row["Mean"].partition(" ± ")
            found = {"mean": mean, "stddev": deviation, "min": row["Min"], "max": row["Max"]}
            known = ("Command", "Mean", "Min", "Max", "Relative")
            phases.append(FoundPhase(
                name=row["Command"].strip("`").replace("\\|", "|")[:200], operation=None,
                group=str(len(phases)), runtime_s=figure(mean) * unit_s,
                metrics={f"time_{k}_s": figure(v) * unit_s for k, v in found.items() if v},
                options={k: v for k, v in row.items() if k not in known},
            ))  # fmt: skip
        if not phases:
            raise none_found("hyperfine", "its table has no row")
        yield FoundReport(tuple(phases), heading=heading)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]


HYPERFINE_CSV = re.compile(
    r"^command {0,999},"
    + " {0,99},".join(("mean", "stddev", "median", "user", "system", "min", "max"))
    + r" {0,99}(?:,|\r?$)", re.M,
)  # fmt: skip


def read_hyperfine_csv(text: str) -> Iterator[FoundReport]:
    """`--export-csv`: seconds, and a column for each parameter."""
    begin = HYPERFINE_CSV.search(text)
    rows = csv.DictReader(io.StringIO(text[begin.start() if begin else 0 :], newline=""))
    times = ("mean", "stddev", "median", "user", "system", "min", "max")
    phases: list[FoundPhase] = []
    for place, cells in enumerate(rows):
        if None in cells or None in cells.values():
            raise none_found("hyperfine", "cut off in a row of its CSV")
        row = {name.strip(): cell.strip() for name, cell in cells.items()}
        phases.append(FoundPhase(
            name=row["command"][:200], operation=None, group=str(place),
            runtime_s=figure(row["mean"]),
            metrics={f"time_{name}_s": figure(row[name]) for name in times if row[name]},
            options={k: v for k, v in row.items() if k not in ("command", *times)},
        ))  # fmt: skip
    if not phases:
        raise none_found("hyperfine", "its CSV has no row")
    yield FoundReport(tuple(phases))


LMBENCH = re.compile(r"^\[lmbench[\d.]{1,30} results for ([^\]]*)\]", re.M)


def read_lmbench(text: str) -> Iterator[FoundReport]:
    """Bandwidth of files through the page cache; the other figures describe the machine. KB is
    1000 bytes, MB is 10^6."""
    head = LMBENCH.search(text)
    phases: list[FoundPhase] = []
    written = re.search(r"^File \S{1,300} write bandwidth:\s{0,99}([\d.]{1,30}) KB/sec", text, re.M)
    if written:
        phases.append(FoundPhase(
            name="write bandwidth", operation="write", access_pattern="sequential",
            bandwidth_bytes_per_s=figure(written[1]) * 1000,
        ))  # fmt: skip
    tables = r'^"([^"\n]*(?:read|Mmap|open2close)[^"\n]*)\n((?:[\d.]{1,30} [\d.]{1,30}\n)+)'
    for title, rows in re.findall(tables, text, re.M):
        for place, (megabytes, rate) in enumerate(re.findall(r"([\d.]{1,30}) ([\d.]{1,30})", rows)):
            # Sizes above 1 MB have two decimals: they are powers of 2, or not known.
            moved: int | None = round(figure(megabytes) * 1e6)
            if "." in megabytes and len(megabytes.partition(".")[2]) < 6:
                moved = next((n for n in map((1).__lshift__, range(20, 50))
                              if f"{n / 1e6:.2f}" == megabytes), None)  # fmt: skip
            phases.append(FoundPhase(
                name=title.strip(), operation="read", access_pattern="sequential",
                group=str(place), bytes=moved, bandwidth_bytes_per_s=figure(rate) * 1e6,
                options={"size": f"{megabytes} MB"},
            ))  # fmt: skip
    if not phases:
        raise none_found("lmbench", "no bandwidth of files in it; its other figures are no I/O")
    version = re.match(r"\[lmbench([\d.]{1,30})", head[0]) if head else None
    names = head[1].split() if head else []
    host = names[1] if len(names) > 1 else None
    yield FoundReport(tuple(phases), version[1] if version else None, host)


LMBENCH_SUMMARY = re.compile(
    r"^\s{0,99}L M B E N C H\s{1,9}(\d) ?\. ?(\d)\s{1,9}S U M M A R Y", re.M
)
_LMBENCH_BANDWIDTHS = re.compile(
    r"^\*Local\* Communication bandwidths in MB/s[^\n]*\n-+\nHost\s{1,99}OS\s{1,99}Pipe AF"
    r"\s{1,99}TCP\s{1,99}File\s{1,99}Mmap[^\n]*\n[^\n]*\n(-[- ]+)\n((?:\S[^\n]*\n?)*)",
    re.M,
)


def read_lmbench_summary(text: str) -> Iterator[FoundReport]:
    """The tables that `make see` prints: for each host, the bandwidth of files that were read
    again. MB is 10^6, and K 1000 of them. They are rounded, without the size of the file."""
    found = False
    version = ".".join(head.groups()) if (head := LMBENCH_SUMMARY.search(text)) else None
    for dashes, rows in _LMBENCH_BANDWIDTHS.findall(text):
        ends = [m.end() for m in re.finditer(r"-+", dashes)]
        for row in rows.splitlines():
            phases = []
            for place, name in ((5, "File reread"), (6, "Mmap reread")):
                cell = row[ends[place - 1] : ends[place]].strip() if len(ends) > place else ""
                rate = re.fullmatch(r"([\d.]{1,30})(K?)", cell)
                if rate is None:
                    continue
                phases.append(FoundPhase(
                    name=name, operation="read", access_pattern="sequential",
                    bandwidth_bytes_per_s=figure(rate[1]) * (1e9 if rate[2] else 1e6),
                ))  # fmt: skip
            if phases:
                found = True
                yield FoundReport(tuple(phases), version, row[: ends[0]].strip() or None)
    if not found:
        raise none_found("lmbench", "no bandwidth of files in its summary")


SYSBENCH = re.compile(
    r"^(?:sysbench (\d\S*?)[:\s]|Extra file open flags: |File operations:$)", re.M
)
_SYSBENCH_BEGINS = re.compile(
    r"^(?:(?P<banner>sysbench \d\S*?[:\s])|(?P<running>Running the test with following options)"
    r"|(?P<settings>Extra file open flags: )|(?P<done>File operations:|Operations performed:)"
    r"|(?P<rates>Throughput:))",
    re.M,
)


_SYSBENCH_1_1 = r"^\s{1,99}%s:\s{1,99}IOPS=([\d.]{1,30})\s{1,99}([\d.]{1,30}) MiB/s"


_SYSBENCH_FLAGS = {"directio": True, "direct": True, "(none)": False, "0": False}
"""Extra file open flags -> whether they bypass the cache. sysbench 0.5 and 1.0 print a number,
which is another one on other processors."""
_SYSBENCH_OPTIONS = {
    "files": r"^(\d{1,9} files, \S{1,20}) each",
    "flags": r"^Extra file open flags: (\S[^\n]{0,80})",
    "mode": r"^Using (\S[^\n]{0,80}) mode",
    "test": r"^Doing (\S[^\n]{0,80}) test",
    "fsync each": r"^Periodic FSYNC enabled, calling fsync\(\) each (\d{1,9}) requests",
    "sync each": r"^Calling (f\w{4,9}\(\)) after each write",
    "fsync at the end": r"^Calling fsync\(\) at the end of test, (\w{1,20})",
    "reads per write": r"^Read/Write ratio for combined random IO test: ([\d.]{1,30})",
}


def read_sysbench(text: str) -> Iterator[FoundReport]:
    """`sysbench fileio` 0.4 to 1.1. Other tests, `prepare` and `cleanup` may be in the file."""
    reports, places, cut_off = list[FoundReport](), list[int](), 0
    for start, end in _sysbench_runs(text):
        part = text[start:end]
        if phases := tuple(_sysbench(part)):
            version = SYSBENCH.match(part)
            reports.append(FoundReport(phases, version[1] if version else None))
            places.append(start)
        elif "Extra file open flags" in part and "Threads started" in part:
            cut_off += 1
    if not reports:
        raise none_found("sysbench", "no throughput of file I/O: not a fileio test, or cut off")
    notes = (f"{cut_off} other tests of file I/O have no throughput: cut off",) if cut_off else ()
    for report, heading in zip(reports, headings(text, places), strict=True):
        yield replace(report, notes=notes, heading=heading)


def _sysbench_runs(text: str) -> Iterator[tuple[int, int]]:
    """Where each run begins and ends: scripts may cut off the beginning of a run, so it also begins
    where its lines are not in their order."""
    order = list(_SYSBENCH_BEGINS.groupindex)
    places, last = list[int](), len(order)
    for match in _SYSBENCH_BEGINS.finditer(text):
        place = order.index(match.lastgroup or "")
        if place <= last:
            places.append(match.start())
        last = place
    yield from zip(places, [*places[1:], len(text)], strict=True)


def _sysbench(part: str) -> Iterator[FoundPhase]:
    block = re.search(r"^Block size (\S{1,300})", part, re.M)
    threads = re.search(r"^Number of threads: (\d{1,20})", part, re.M)
    mode = re.search(r"^Doing (\w{1,80}) (.*) test", part, re.M)
    flags = re.search(r"^Extra file open flags: (\S{1,80})\s{0,9}$", part, re.M)
    total = re.search(r"total time:\s{1,99}([\d.]{1,30})s", part)
    seconds = figure(total[1]) if total else None
    done = re.search(r"(\d{1,20}) reads?, (\d{1,20}) writes?", part, re.I)
    for place, (operation, past) in enumerate((("read", "read"), ("write", "written"))):
        both = re.search(_SYSBENCH_1_1 % operation, part, re.M)
        rate = re.search(rf"^\s{{1,99}}{past}, MiB/s:\s{{1,99}}([\d.]{{1,30}})", part, re.M)
        iops = re.search(rf"^\s{{1,99}}{operation}s/s:\s{{1,99}}([\d.]{{1,30}})", part, re.M)
        old = re.search(rf"\b{past.title()} ([\d.]{{1,30}}\w{{1,80}})", part)
        moved = size(old[1]) if old and not rate and not both else None
        speed = moved / seconds if moved and seconds else None
        if rate or both:
            speed = figure(both[2] if both else rate[1] if rate else 0) * MIB
        per_s = figure(both[1]) if both else figure(iops[1]) if iops else None
        if per_s is None and done and seconds:
            per_s = int(done[1 + place]) / seconds
        if not speed:
            continue
        yield FoundPhase(
            name=operation, operation=operation,
            access_pattern=None if mode is None else "random" if "random" in mode[0]
            else "sequential",
            request_bytes=size(block[1]) if block else None,
            direct=None if flags is None else _SYSBENCH_FLAGS.get(flags[1]),
            jobs=int(threads[1]) if threads else None,
            bandwidth_bytes_per_s=speed, iops=per_s, bytes=moved, runtime_s=seconds,
            options={name: found[1] for name, pattern in _SYSBENCH_OPTIONS.items()
                     if (found := re.search(pattern, part, re.M))},
        )  # fmt: skip


VDBENCH = re.compile(
    r"Vdbench distribution:\s{0,99}\S|\binterval\s{1,99}i/o\s{1,99}MB/sec\s{1,99}bytes"
    r"|\bInterval\.{2,9} \.ReqstdOps|^\d\d:\d\d:\d\d\.\d{3}\s{0,99}avg_\d{1,20}-\d{1,20}\s",
    re.M,
)
VDBENCH_FLATFILE = re.compile(
    r"^\s{0,99}tod\s{1,99}(?:timestamp\s{1,99})?Run\s{1,99}Interval\s", re.M
)


_VDBENCH_LINES = re.compile(
    r"(?P<time>\d\d:\d\d:\d\d\.\d{3}) Starting RD=(?P<name>[^;\s]{1,300});?(?P<rest>[^\n]*)"
    r"|^(?:[\d:.]{12} )?(?P<date>[A-Z][a-z]{2} \d\d, \d{4})\s{1,99}"
    r"(?P<header>interval|\.\.Interval)"
    r"|^(?P<end>\d\d:\d\d:\d\d\.\d{3})\s{0,99}avg_\d{1,20}-\d{1,20}\s{1,99}(?P<row>[^\n]*)$"
    r"|^\d\d:\d\d:\d\d\.\d{3}\s{1,99}(?P<interval>\d{1,20})\s",
    re.M,
)
_VDBENCH_FORMAT = "%b %d, %Y %H:%M:%S.%f"


def _vdbench_start(date: str, time: str, end: str | None, rest: str) -> str | None:
    """When a run began, by the date of its first header. `end` is the time of its only line, if the
    header was printed after the run (totals.html), which took the seconds of `elapsed`."""
    try:
        start = datetime.strptime(f"{date} {time}", _VDBENCH_FORMAT)
        if end is not None:
            last = datetime.strptime(f"{date} {end}", _VDBENCH_FORMAT)
            elapsed = re.search(r"\belapsed=(\d{1,9})", rest)
            over = start - last + timedelta(seconds=int(elapsed[1]) if elapsed else 0)
            start -= timedelta(days=round(over / timedelta(days=1)))
    except (ValueError, OverflowError):
        return None
    return start.isoformat(timespec="milliseconds")


def _vdbench(
    name: str, place: int, rates: tuple[float, float, float, float], rest: str, started: str | None
) -> FoundPhase:
    """`rates` are operations/s, MiB/s, bytes of a request and the share of reads in %."""
    iops, rate, request, reads = rates
    loops = rest.partition("For loops:")[2].strip()
    return FoundPhase(
        error=None if iops or rate else "vdbench counted no I/O in it",
        name=name, operation={100.0: "read", 0.0: "write"}.get(reads, "mixed"),
        group=str(place), request_bytes=round(request) or None,
        bandwidth_bytes_per_s=rate * MIB, iops=iops,
        options={"read_share": f"{reads:g} %"}
        | ({"for loops": loops} if loops not in ("", "None") else {}),
        started_utc=started,
        time_source=None if started is None else "vdbench's local time, zone not reported",
    )  # fmt: skip


def read_vdbench(text: str) -> Iterator[FoundReport]:
    """`summary.html` or its text: the average line of each run definition. File systems have other
    columns than volumes: operations/s, their time, CPU, reads, writes, then MiB/s."""
    version = re.search(r"Vdbench distribution:\s{0,99}vdbench(\S{1,300})", text)
    phases: list[FoundPhase] = []
    name, time, rest, date, started = None, None, "", None, None
    header = None
    for line in _VDBENCH_LINES.finditer(re.sub(r"<[^>\n]*>", "", text)):
        if line["name"]:
            name, time, rest, date, started = line["name"], line["time"], line["rest"], None, None
        elif line["date"]:
            date, header = date or line["date"], line["header"]
        elif date and time and started is None:
            started = _vdbench_start(date, time, line["end"], rest)
        if not line["row"]:
            continue
        cells = [number(cell) for cell in line["row"].split()]
        of_files = header == "..Interval" or (header is None and len(cells) > 14)
        if len(cells) < 4 or None in cells[: 13 if of_files else 4]:
            continue
        known = [cell or 0.0 for cell in cells]
        if of_files:
            reads, writes = known[5], known[7]
            share = 100.0 if not writes else 0.0 if not reads else known[4]
            rates = (known[0], known[11], known[12], share)
        else:
            rates = (known[0], known[1], known[2], known[3])
        # Without the line of its start, nothing shows that another run is a repetition.
        place = len(phases)
        phases.append(_vdbench(name or f"run {place}", place, rates, rest, started))
    if not phases:
        raise none_found("vdbench", "no line `avg_`: it was ended before its first run was done")
    yield FoundReport(tuple(phases), version[1] if version else None)


VDBENCH_FLATFILE_CSV = re.compile(r"^\"?(?:tod|date)\"?,[^\n]{0,99}\bRun\"?,\"?Interval\"?,", re.M)


def read_vdbench_flatfile(text: str) -> Iterator[FoundReport]:
    """`flatfile.html`: the average line of each run, in columns with names."""
    names: list[str] = []
    rows: list[Mapping[str, str]] = []
    for line in text.splitlines():
        cells = line.split()
        if VDBENCH_FLATFILE.match(line):
            names = [name.lower() for name in cells]
            continue
        row = dict(zip(names, cells, strict=False))
        if row.get("interval", "").startswith("avg_"):
            if len(cells) < len(names):
                raise none_found("vdbench", f"cut off in the average of {row['run'][:80]}")
            rows.append(row)
    yield _flatfile(rows)


def read_vdbench_flatfile_csv(text: str) -> Iterator[FoundReport]:
    """The flatfile as `vdbench parseflat` writes it."""
    begin = VDBENCH_FLATFILE_CSV.search(text)
    rows = []
    for cells in csv.DictReader(text[begin.start() if begin else 0 :].splitlines()):
        row = {str(name).lower(): value for name, value in cells.items()}
        if str(row.get("interval")).startswith("avg_"):
            if None in row.values():
                raise none_found("vdbench", f"cut off in the average of {row['run'][:80]}")
            rows.append(row)
    yield _flatfile(rows)


def _flatfile(rows: Sequence[Mapping[str, str]]) -> FoundReport:
    phases: list[FoundPhase] = []
    for row in rows:
        reads = number(row.get("read%"))
        if reads is None:
            read, write = (figure(row[f"{kind}_rate"]) for kind in ("read", "write"))
            reads = 100 * read / (read + write) if read + write else 100.0
        request = number(row.get("bytes/io")) or number(row.get("xfersize")) or 0.0
        rates = (figure(row["rate"]), figure(row["mb/sec"]), request, reads)
        loops = " ".join(f"{key}={row[key]}" for key in ("reqrate", "threads") if key in row)
        phases.append(_vdbench(row["run"], len(phases), rates, f"For loops: {loops}", None))
    if not phases:
        raise none_found("vdbench", "no line `avg_`: it was ended before its first run was done")
    return FoundReport(tuple(phases))


NPB = re.compile(r"NAS Parallel Benchmarks .*BT Benchmark|BTIO -- statistics", re.M)


def read_npb(text: str) -> Iterator[FoundReport]:
    """BT-IO: MB of 10^6 bytes written in the time of its I/O."""
    rate = re.search(r"I/O data rate\s{1,99}\(MB/sec\)\s{0,99}:\s{0,99}([\d.]{1,30})", text)
    seconds = re.search(r"I/O timing in seconds\s{0,99}:\s{0,99}([\d.]{1,30})", text)
    moved = re.search(r"Total data written\s{1,99}\(MB\)\s{0,99}:\s{0,99}([\d.]{1,30})", text)
    if rate is None:
        raise none_found("NPB BT-IO", "no I/O data rate: not a BT-IO build, or cut off")
    processes = re.search(
        r"(?:Number of active processes|Total processes)\s{0,99}[:=]\s{0,99}(\d{1,20})", text
    )
    version = re.search(r"NAS Parallel Benchmarks (\S{1,300})", text)
    kind = re.search(r"^\s{0,99}Class\s{0,99}=\s{0,99}(\w)", text, re.M)
    yield FoundReport(
        (
            FoundPhase(
                name="BT-IO", operation="write",
                options={} if kind is None else {"class": kind[1]}, access_pattern="strided",
                bandwidth_bytes_per_s=figure(rate[1]) * 1e6,
                bytes=round(figure(moved[1]) * 1e6) if moved else None,
                runtime_s=figure(seconds[1]) if seconds else None,
                jobs=int(processes[1]) if processes else None,
            ),
        ),
        version[1] if version else None,
    )  # fmt: skip
