"""`eeio import PATHS`: campaigns from result files that other people made, without a map.

Each file is recognized by its content. One row is one direction of one group of one report of one
file: groups, reports and files are never joined. Runs with equal observed factors are repetitions,
ordered by their time, else by path. Factors are folders, the file's name without dates and numbers
that count the files, the text above a report, and each option in which runs of a tool differ.
"""

import codecs
import csv
import hashlib
import itertools
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, overload

from eeio import paths
from eeio.errors import RejectedError
from eeio.importing.imported import Imported, store
from eeio.importing.outputs import recorded
from eeio.importing.power_of_results import UsedLog, add_power
from eeio.pts import read as pts
from eeio_limits import LimitError, inputs
from eeio_limits.number_text import number
from eeio_parsers import formats
from eeio_parsers.darshan import report as darshan
from eeio_parsers.format import Format
from eeio_parsers.found import FoundPhase, FoundReport
from eeio_parsers.rules import FoundFile
from eeio_results.errors import EeioError
from eeio_results.record import CacheLayers, Experiment, Machine, Run, mark
from eeio_results.report.columns import NONE
from eeio_results.report.parts import Table
from eeio_results.units import MB

MOST_FILES = 100_000
_NO_DEVICE = "imported: nothing was counted at the device"
_OPERATIONS = ("read", "write", "mixed", "metadata")


def found(arguments: Sequence[Path]) -> list[FoundFile]:
    """All files of the arguments, read. Raises RejectedError for a path that does not exist."""
    made: list[FoundFile] = []
    seen: dict[str, Path] = {}
    for path, place in _files(arguments):
        one, *further = _read(path, place)
        if one.sha256 and (first := seen.setdefault(one.sha256, path)) != path:
            one, further = replace(one, reports=[], rejected=f"the same content as {first}"), []
        made += (one, *further)
    for rules in formats.rules().values():
        rules.reject_repeated(made)
    return made


def _files(arguments: Sequence[Path]) -> Iterator[tuple[Path, tuple[str, ...]]]:
    count = 0
    for argument in arguments:
        if not argument.exists():
            raise RejectedError(f"{argument}: no such file or folder")
        if not argument.is_dir():
            yield argument, ()
            continue
        for folder, folders, names in os.walk(argument):
            folders.sort()
            for name in sorted(names):
                if name.startswith("."):
                    continue
                count += 1
                if count > MOST_FILES:
                    raise RejectedError(f"{argument}: more than {MOST_FILES} files; import parts")
                yield Path(folder, name), Path(folder).relative_to(argument).parts


def _read(path: Path, place: tuple[str, ...]) -> list[FoundFile]:
    """One for each tool whose output is in the file."""
    one, further = FoundFile(path, place), list[FoundFile]()
    try:
        if path.is_symlink() and not path.exists():
            raise EeioError("a link to a file that does not exist")
        if not path.is_file():
            raise EeioError("no regular file")
        if (size := path.stat().st_size) > inputs.TOOL_FILE_BYTES:
            raise EeioError(f"{size} bytes; eeio reads result files up to {inputs.TOOL_FILE_BYTES}")
        body = path.read_bytes()
        one.sha256 = hashlib.sha256(body).hexdigest()
        if body[8:16] in darshan.MAGIC:
            one.tool, one.form = "darshan", "log"
            _take(one, darshan.read_log(path))
            return [one]
        if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            # As `>` of PowerShell 5 writes it.
            body = body.decode("utf-16", errors="replace").encode()
        if _is_binary(body[:4096]):
            raise EeioError("binary: unpack an archive first")
        body = body.replace(b"\0", b"")
        text = body.decode("utf-8", errors="replace").replace("\r\n", "\n")
        if not text.strip():
            raise EeioError("empty")
        if "<PhoronixTestSuite>" in text[: formats.HEAD_CHARACTERS]:
            one.tool, one.form = "pts", "xml"
            one.parsed = pts.read_file(path)
            one.reports = list(_pts_reports(one.parsed))
            return [one]
        if not text.lstrip().startswith(("{", "[")):
            inputs.check_lines(text)
        text = formats.unlabelled(text)
        form = formats.format_of(text, path)
        if (tool := formats.in_json_string(text, form)) is not None:
            raise EeioError(
                f"the output of {tool} is inside a string of JSON: write it to a file of its own"
            )
        if form is None:
            raise EeioError("no result of a known tool in it (docs/how-to/import-results.md)")
        _read_by(form, text, one)
        begins = [of.begins_at for of in one.reports if of.begins_at is not None]
        one.above = "" if form.keys else text[: min(begins, default=0)]
        for other in formats.others_in(text, form):
            part = FoundFile(path, place, one.sha256)
            _read_by(other, text, part)
            further.append(part)
    except _DAMAGED as error:
        one.rejected, one.reports = _why(error), []
    return [one, *further]


def _is_binary(head: bytes) -> bool:
    """Of a file's beginning. Programs print a few NUL bytes into text by mistake; binary files have
    more of them, or bytes that are no characters."""
    nuls = head.count(0)
    return nuls > 0 and (nuls > 16 or head.decode("utf-8", "replace").count("\ufffd") > nuls)


def _read_by(form: Format, text: str, one: FoundFile) -> None:
    one.tool, one.form = form.tool, form.name
    try:
        _take(one, form.reports(text))
        if not any(report.phases for report in one.reports):
            notes = [note for report in one.reports for note in report.notes]
            raise EeioError(": ".join(["no result in it", *notes[:1]]))
    except _DAMAGED as error:
        why = _why(error)
        is_named = form.tool.lower() in why.lower()
        one.rejected, one.reports = why if is_named else f"{form.tool}: {why}", []


_DAMAGED = (
    OSError, EeioError, LimitError, csv.Error, ValueError, KeyError, TypeError, IndexError,
    AttributeError, OverflowError, ZeroDivisionError, RecursionError,
)  # fmt: skip
"""What readers raise for files that are cut off, damaged or of another form."""


def _why(error: BaseException) -> str:
    if isinstance(error, RecursionError):
        return "objects and lists are nested too deeply"
    known = isinstance(error, OSError | EeioError | LimitError | csv.Error)
    return str(error) if known else f"not understood: {error!r:.150}"


def _take(one: FoundFile, reports: Iterator[FoundReport]) -> None:
    for report in reports:
        phases = (replace(p.checked(), options=_shared(p.options)) for p in report.phases)
        one.reports.append(replace(report, phases=tuple(phases)))


def _shared(options: Mapping[str, str]) -> Mapping[str, str]:
    """The same object for equal options, of which a campaign has very many."""
    return _of_items(tuple(options.items()))


@lru_cache(maxsize=10_000)
def _of_items(items: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    return dict(items)


def _pts_reports(file: pts.PtsFile) -> Iterator[FoundReport]:
    """One report for each system, with the phases of all trials."""
    for system, tests in file.systems:
        phases = []
        for test in tests:
            for trial in range(test.trials):
                measured, run = test.trial(trial), pts.run_of(test, trial, system)
                for phase in run.phases:
                    found = FoundPhase(
                        name=f"{test.profile} {phase.name}",
                        operation=phase.operation,
                        access_pattern=phase.spatiality,
                        group=f"{test.experiment.id} {trial + 1}",
                        request_bytes=phase.request_size_bytes,
                        jobs=run.experiment.processes,
                        bandwidth_bytes_per_s=phase.bandwidth_bytes_per_s,
                        iops=phase.metrics.get("operations_per_s", phase.metrics.get("iops")),
                        bytes=phase.bytes_moved,
                        runtime_s=phase.lasted_s,
                        started_utc=measured.started_utc if measured else None,
                        time_source="the trial's start" if measured else None,
                        metrics=phase.metrics,
                        options=test.factors,
                        error="; ".join((*run.validity, *phase.validity)) or None,
                        energy=phase.energy,
                    )
                    phases.append(found.checked())
        yield FoundReport(tuple(phases), system.client_version or None, system.identifier)


# ---- campaigns ----


def slug(text: str) -> str:
    """A campaign's name made of any text."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.")[:80] or "results"


@dataclass(frozen=True)
class _Row:
    """One run: the phases of one group of one report."""

    file: FoundFile
    number: int
    report: FoundReport
    phases: tuple[FoundPhase, ...]


def _rows(files: Sequence[FoundFile]) -> Iterator[_Row]:
    for one in files:
        for place, report in enumerate(one.reports):
            of_group: dict[str, list[FoundPhase]] = {}
            for index, phase in enumerate(report.phases):
                at_once = formats.rules_of(one.tool).groups_at_once
                group = phase.group if at_once else f"{phase.group} {index}"
                of_group.setdefault(group, []).append(phase)
            for phases in of_group.values():
                yield _Row(one, place, report, tuple(phases))


_SHOWN = (
    "rw", "readwrite", "bs", "blocksize", "direct", "buffered", "iodepth", "numjobs", "ioengine",
    "engine", "group_reporting", "name", "description", "api", "clients", "tasks", "nodes",
    "numtasks", "xfersize",
)  # fmt: skip
"""Options that a row has as fields, or that name no setting."""
_LOGS = ("write_", "log_", "output", "eta", "randseed", "status-interval")
"""How options of fio's own output begin."""


_VERSION = "version of the tool"


def _varying(rows: Sequence[_Row]) -> dict[str, set[str]]:
    """Tool -> the options in which its rows differ: factors of this import."""
    found_values: dict[str, dict[str, set[str | None]]] = {}
    rows_of = Counter(row.file.tool or "" for row in rows)
    given: Counter[tuple[str, str]] = Counter()
    for row in rows:
        tool = row.file.tool or ""
        options = {**row.phases[0].options, _VERSION: row.report.version or "-"}
        for name, value in options.items():
            if name not in _SHOWN and not name.startswith(_LOGS):
                found_values.setdefault(tool, {}).setdefault(name, set()).add(value)
                given[tool, name] += 1
    return {
        tool: {n for n, values in of.items() if len(values) > 1 or given[tool, n] < rows_of[tool]}
        for tool, of in found_values.items()
    }


_THING = re.compile(
    r"(?:node|host|login|server|client|disk|drive|volume|worker|machine|instance|cluster|thread|kernel"
    r"|(?<![a-z])(?:vm|pod|osd|ssd|hdd|nvme|lun|vol|board|pi|raid|qd|depth|threads|jobs?|numa|cpu"
    r"|core|gen|pool|rank|user))[-_ ]?$", re.I,
)  # fmt: skip
"""Behind it, a number is of one of several, and does not count runs."""


_LEADING = re.compile(r"\d+[-_ .]*(?!run|rep|iter|trial|round|pass)[a-z]", re.I)
"""`0_finish`, `1_finish`: the first number of a name may be of a variant that no file explains."""


def _is_of_thing(number: re.Match[str]) -> bool:
    return _THING.search(number.string[: number.start()]) is not None


_DATE = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T_ -]\d\d[:h-]?\d\d(?:[:m-]?\d\d)?)?|\d{8,}(?:[T_-]?\d{4,6})?"
)


def _file_names(rows: Sequence[_Row]) -> dict[Path, str]:
    """The name of each file as a factor: without dates, and without numbers that count the files
    (1, 2, 3). Others (100, 200, 400), those of things (node1, node2), and those before a word
    (1_mode, 2_mode) may be a setting that the tool does not report. So may the text above the
    reports: files in which it differs are no repetitions."""
    stems: dict[tuple[tuple[str, ...], str], dict[Path, str]] = {}
    for row in rows:
        stem = _DATE.sub("#", row.file.path.stem)
        same = stems.setdefault((row.file.place, re.sub(r"\d+", "\0", stem)), {})
        same[row.file.path] = stem
    names: dict[Path, str] = {}
    texts = {row.file.path: row.file.above for row in rows}
    for of_paths in stems.values():
        if len({texts[path] for path in of_paths}) > 1:
            names |= of_paths
            continue
        numbers = {path: re.findall(r"\d+", stem) for path, stem in of_paths.items()}
        columns = [
            {int(number) for number in column} for column in zip(*numbers.values(), strict=True)
        ]
        counted = [max(column) - min(column) == len(column) - 1 for column in columns]
        for path, stem in of_paths.items():
            shown = iter(zip(numbers[path], counted, strict=True))

            def one(found: re.Match[str], shown: Iterator[tuple[str, bool]] = shown) -> str:
                number, is_count = next(shown)
                around = found.string[max(0, found.start() - 1) : found.end() + 2]
                is_version = re.fullmatch(r"\..*|.*\.\d", around) is not None
                is_count = is_count and not is_version and not _is_of_thing(found)
                is_count = is_count and not (found.start() == 0 and _LEADING.match(found.string))
                return "#" if is_count else number

            names[path] = re.sub(r"\d+", one, stem)
    return names


def _experiment(
    row: _Row, varying: Mapping[str, set[str]], names: Mapping[Path, str]
) -> Experiment:
    first = row.phases[0]
    operations = {phase.operation for phase in row.phases}
    operation = first.operation if len(operations) == 1 else "mixed"
    arguments = {
        "file": names[row.file.path],
        **{f"path_{place}": name for place, name in enumerate(row.file.place, start=1)},
        "phase": first.name,
    }
    for name, value in first.options.items():
        if name in varying.get(row.file.tool or "", ()):
            arguments[name.replace(" ", "_")] = value
    if row.report.version and _VERSION in varying.get(row.file.tool or "", ()):
        arguments["tool_version"] = row.report.version
    if not first.options and first.request_bytes is None:
        # No setting is reported, so nothing shows that another report is a repetition.
        arguments["report"] = f"{row.file.sha256[:12]} {row.number} {first.group}"
    for name in ("iodepth", "jobs", "nodes", "engine"):
        if (value := getattr(first, name)) is not None:
            arguments[name] = str(value)
    rules = formats.rules_of(row.file.tool)
    return Experiment(
        level=rules.level,
        tool=row.file.tool or "unknown",
        operation=operation if operation in _OPERATIONS else None,
        spatiality=first.access_pattern,
        request_size_bytes=first.request_bytes,
        cache=CacheLayers({True: "off", False: "on", None: None}[first.direct], None),
        api=(first.engine or "posix").lower()[:40] if rules.engine_is_api else "posix",
        processes=first.jobs or 1,
        arguments=tuple(sorted((k, v[:200]) for k, v in arguments.items() if v)),
    )


class _Runs(Sequence[Run]):
    """The runs of rows; each is made when it is used, as there may be very many."""

    def __init__(self, rows: Sequence[_Row]) -> None:
        self._rows = rows
        self._experiments: list[Experiment] = []
        self._repetitions: list[int] = []
        counts: Counter[Experiment] = Counter()
        equal: dict[Experiment, Experiment] = {}
        varying, names = _varying(rows), _file_names(rows)
        made = [equal.setdefault(e, e) for e in (_experiment(row, varying, names) for row in rows)]
        in_file = Counter(zip(made, (row.file.sha256 for row in rows), strict=True))
        # A file with several of them is no repetition of another one.
        sets = {experiment for (experiment, _), runs in in_file.items() if runs > 1}
        for row, experiment in zip(rows, made, strict=True):
            if experiment in sets:
                # Whether reports of one file are repetitions is not in the file.
                named = {"file": row.file.path.stem[:200], "report": str(row.number)}
                arguments = tuple(sorted({**dict(experiment.arguments), **named}.items()))
                other = replace(experiment, arguments=arguments)
                experiment = equal.setdefault(other, other)
            counts[experiment] += 1
            self._experiments.append(experiment)
            self._repetitions.append(counts[experiment])

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, place: int) -> Run: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Run]: ...
    def __getitem__(self, place: int | slice) -> Run | Sequence[Run]:
        if isinstance(place, slice):
            return [self[k] for k in range(*place.indices(len(self)))]
        row = self._rows[place]
        first = row.phases[0]
        return Run(
            experiment=self._experiments[place],
            repetition=self._repetitions[place],
            order_index=place,
            preset="imported",
            started_utc=first.started_utc or "",
            started_monotonic_s=0.0,
            duration_s=max((p.runtime_s or 0.0 for p in row.phases), default=0.0),
            exit_code=0,
            phases=tuple(recorded(phase, row.file.tool) for phase in row.phases),
            raw="",
            device_reason=_NO_DEVICE,
            notes=(
                f"imported from {row.file.path}, report {row.number}, group {first.group}, "
                f"SHA-256 {row.file.sha256}",
                *([first.time_source] if first.time_source else []),
                *row.report.notes,
            ),
        )


def _names(files: Sequence[FoundFile], name: str) -> dict[str, str]:
    """Host that the files name, or `unknown` -> the name of its campaign."""
    hosts = dict.fromkeys(
        report.host or "unknown" for one in files for report in one.reports if report.phases
    )
    return {host: slug(name if host == "unknown" else f"{name}-{host}") for host in hosts}


def campaigns(files: Sequence[FoundFile], name: str) -> list[Imported]:
    """One campaign for each host that the files name, and one for files that name none."""
    of_host: dict[str, list[_Row]] = {}
    for row in _rows(files):
        of_host.setdefault(row.report.host or "unknown", []).append(row)
    names = _names(files, name)
    return [_campaign(host, rows, files, names[host]) for host, rows in of_host.items()]


def _campaign(host: str, rows: Sequence[_Row], files: Sequence[FoundFile], name: str) -> Imported:
    rows = sorted(rows, key=lambda row: (row.phases[0].started_utc or "", str(row.file.path)))
    remarks = [f"{one.path}: rejected: {one.rejected}" for one in files if one.rejected]
    missing = dict.fromkeys(_UNKNOWN, "imported: the file does not report it")
    unknown: dict[str, Any] = dict.fromkeys(_UNKNOWN)
    machine = Machine(
        hostname=host, architecture="unknown", kernel="unknown", missing=missing, **unknown
    )
    return Imported(
        name=name,
        title=f"results of {', '.join(sorted({row.file.tool or '' for row in rows}))}",
        machine=machine, runs=_Runs(rows), idle=(), remarks=tuple(remarks),
    )  # fmt: skip


_UNKNOWN = (
    "cpu_model", "logical_cpus", "governor", "frequency_min_hz", "frequency_max_hz", "memory_bytes",
    "distribution", "virtualization", "device", "device_model", "device_firmware",
    "device_size_bytes", "device_rotational", "device_write_cache", "scheduler", "filesystem",
    "mount_options", "mkfs_options",
)  # fmt: skip


_SOURCE = re.compile(rb"imported from [^\n]{1,5000}?SHA-256 ([0-9a-f]{64})")


def stored_before() -> dict[str, str]:
    """SHA-256 of each file that a stored campaign was imported from -> the campaign's name."""
    known: dict[str, str] = {}
    for name, folder in paths.campaigns().items():
        try:
            if b'"suite": "imported"' in (folder / "campaign.json").read_bytes():
                for file in ("campaign.json", "runs.jsonl"):
                    with (folder / file).open("rb") as lines:
                        for match in filter(None, map(_SOURCE.search, lines)):
                            known[match[1].decode()] = name
        except OSError:
            continue  # `eeio list` reports it
    return known


def free_name(wanted: str, others: Sequence[str] = ()) -> str:
    """The name, or the first of NAME-2, NAME-3 ... that no campaign has, and none of `others`."""
    taken = [*paths.campaigns(), *others]
    names = (wanted if k == 1 else f"{wanted}-{k}" for k in itertools.count(1))
    return next(
        name for name in names
        if not any(one == name or one.startswith(f"{name}-") for one in taken)
    )  # fmt: skip


# ---- the command ----


@dataclass(frozen=True)
class Taken:
    """The files of one import. `names` are the campaigns that contain them, `stored` the new ones
    with folder and number of runs, and `before` is SHA-256 -> campaign of files that had been
    imported earlier. `logs` are power logs."""

    files: Sequence[FoundFile]
    names: Sequence[str]
    stored: Sequence[tuple[str, Path, int]]
    before: Mapping[str, str]
    logs: Sequence[UsedLog] = ()

    @property
    def rejected(self) -> int:
        logs = sum(used.log.rejected is not None for used in self.logs)
        return logs + sum(one.rejected is not None for one in self.files)


def take(
    arguments: Sequence[Path], name: str | None, dry_run: bool,
    power: Sequence[Path] = (), power_offset_s: float | None = None,
) -> Taken:  # fmt: skip
    """Reads the files and stores those that no campaign has. `power` are logs whose clocks are
    ahead by `power_offset_s`, if that is known. Raises RejectedError if there is no file, if a
    campaign has the name, and if a log cannot be used: a file is stored once, and its energy cannot
    be added later."""
    files, before = found(arguments), stored_before()
    if not files:
        raise RejectedError(f"{arguments[0]}: no file in it")
    logs: list[UsedLog] = []
    if power:
        # PTS's results have the energy that eeio's module measured, if any.
        measured = [one for one in files if one.tool != "pts"]
        reports = [report for one in measured for report in one.reports]
        made_reports, logs = add_power(reports, power, power_offset_s)
        for log in (used.log for used in logs if used.log.rejected and not dry_run):
            raise RejectedError(
                f"{log.path}: {log.rejected}. No result was stored: correct --power, or omit it"
            )
        following = iter(made_reports)
        for one in measured:
            one.reports = [next(following) for _ in one.reports]
    new = [one for one in files if one.reports and one.sha256 not in before]
    of_pts = [one for one in new if one.tool == "pts"]
    others = [one for one in new if one.tool != "pts"]
    # Several files of PTS may have one title.
    pts_names = list[str]()
    for one in of_pts:
        wanted = one.parsed.title if name is None else name
        is_first = name is not None and not pts_names
        pts_names.append(wanted if is_first else free_name(wanted, pts_names))
    prefix = name or free_name(slug(arguments[0].resolve().stem))
    names = dict.fromkeys(before[one.sha256] for one in files if one.sha256 in before)
    if dry_run:
        names |= dict.fromkeys(_names(others, prefix).values())
        for one, wanted in zip(of_pts, pts_names, strict=True):
            names |= dict.fromkeys(one.parsed.names(wanted))
        return Taken(files, list(names), (), before, logs)
    stored = store(campaigns(others, prefix), "")
    for one, wanted in zip(of_pts, pts_names, strict=True):
        try:
            stored += pts.store(one.parsed, wanted)
        except EeioError as error:
            one.rejected = str(error)
    return Taken(files, [*names, *(name for name, *_ in stored)], stored, before, logs)


def remarks(taken: Taken) -> Iterator[str]:
    """Notes on the files and power logs, then the rejected ones with their reasons."""
    files = taken.files
    for used in taken.logs:
        log, alignment = used.log, used.alignment
        if log.rejected:
            yield f"{log.path}: rejected: {log.rejected}"
            continue
        if alignment.ahead_s is None:
            yield f"{log.path}: no energy from it: {alignment.source}"
        else:
            ahead = f"its clock is ahead by {alignment.ahead_s:+.2f} s"
            yield f"{log.path}: {ahead}: {alignment.source}"
        yield from (f"{log.path}: {note}" for note in (*log.notes, alignment.doubt) if note)
        if old := [one for one in files if one.sha256 in taken.before]:
            names = ", ".join(dict.fromkeys(taken.before[one.sha256] for one in old))
            yield (
                f"{log.path}: adds no energy to {len(old)} files that were imported before; to "
                f"import them with it, delete the campaign first: `eeio rm {names}`"
            )
    for one in files:
        for note in dict.fromkeys(note for report in one.reports for note in report.notes):
            yield f"{one.path}: {note}"
        if equal := _equal_reports(one):
            yield (
                f"{one.path}: reports {', '.join(map(str, equal))} have equal settings: they are "
                "separate experiments. To name them, or to state that they are repetitions, use a "
                "map (docs/how-to/import-results.md)"
            )
    for one in files:
        if one.rejected is not None:
            yield f"{one.path}: rejected: {one.rejected}"


def _equal_reports(one: FoundFile) -> list[int]:
    """The numbers of the first reports of a file that no setting tells apart."""
    numbers: dict[tuple[object, ...], list[int]] = {}
    for index, report in enumerate(one.reports):
        settings = tuple(
            (phase.name, phase.operation, phase.access_pattern, phase.request_bytes, phase.direct,
             phase.iodepth, phase.jobs, phase.engine, *sorted(phase.options.items()))
            for phase in report.phases
        )  # fmt: skip
        numbers.setdefault(settings, []).append(index)
    return next((of[:5] for of in numbers.values() if len(of) > 1), [])


def table(taken: Taken) -> Table | None:
    """One line per row of the files; None if there is none."""
    rows = tuple(
        (
            str(one.path),
            f"{one.tool} {report.version or ''}".strip(),
            str(place),
            phase.group,
            phase.operation or NONE,
            phase.access_pattern or NONE,
            _cell(phase.request_bytes),
            {True: "yes", False: "no", None: NONE}[phase.direct],
            _cell(phase.iodepth),
            _cell(phase.jobs),
            _cell(phase.bandwidth_bytes_per_s, MB),
            _cell(phase.iops),
            taken.before.get(one.sha256, ""),
        )
        for one in taken.files
        for place, report in enumerate(one.reports)
        for phase in report.phases
    )
    if not rows:
        return None
    header = (
        "File", "Tool", "Report", "Group", "Operation", "Pattern", "Request (B)", "Direct",
        "Depth", "Jobs", "MB/s", "IOPS", "Already in",
    )  # fmt: skip
    note = f"one row per direction of a group of a report; {NONE}: not reported"
    return Table("Results", header, rows, frozenset({2, 6, 8, 9, 10, 11}), note)


_ENERGY = "± J: uncertainty; doubtful readings are not ranked"


def energy_table(taken: Taken) -> Table | None:
    """One line per reading of power; None if there is none."""
    rows = tuple(
        (
            str(one.path), str(place), phase.group, phase.operation or NONE,
            f"{mark(reading.kind)}{reading.domain}", reading.meter,
            _cell(reading.power_w), _cell(reading.energy_j), _cell(reading.uncertainty_j),
            number(100 * reading.coverage),
            ("doubtful: " if reading.doubtful else "") + "; ".join(reading.reasons),
        )
        for one in taken.files
        for place, report in enumerate(one.reports)
        for phase in report.phases
        for reading in phase.energy
    )  # fmt: skip
    header = (
        "File", "Report", "Group", "Operation", "Domain", "Meter", "W", "J", "± J", "Coverage (%)",
        "Reasons",
    )  # fmt: skip
    return Table("Energy", header, rows, frozenset({1, 6, 7, 8, 9}), _ENERGY) if rows else None


def _cell(value: float | None, unit: float = 1.0) -> str:
    if value is None:
        return NONE
    return str(value) if isinstance(value, int) and unit == 1.0 else number(value / unit)
