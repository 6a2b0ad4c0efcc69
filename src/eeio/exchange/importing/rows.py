"""Rows of result files as runs of campaigns: what is a setting, and what is a repetition."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, overload

from eeio.exchange.importing.file_names import file_names
from eeio.exchange.importing.imported import Imported
from eeio.exchange.importing.outputs import recorded
from eeio.record.run import OPERATIONS, CacheLayers, Experiment, Machine, Run
from eeio_parsers import formats
from eeio_parsers.found import FoundPhase, FoundReport
from eeio_parsers.rules import FoundFile

_NO_DEVICE = "imported: nothing was counted at the device"
_SOURCE = re.compile(
    r"imported from (.+), report (\d{1,9}), group (.*), SHA-256 ([0-9a-f]{64})", re.DOTALL
)


@dataclass(frozen=True)
class RowSource:
    """The place of a run in the file that it was imported from, wherever that is now."""

    sha256: str
    report: str
    group: str


def source_of(run: Run) -> tuple[Path, RowSource] | None:
    """The file that a run was imported from; None if its notes name none."""
    match = next(filter(None, map(_SOURCE.fullmatch, run.notes)), None)
    if match is None:
        return None
    return Path(match[1]), RowSource(sha256=match[4], report=match[2], group=match[3])


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
    for file in files:
        for place, report in enumerate(file.reports):
            of_group: dict[str, list[FoundPhase]] = {}
            # Both directions of a group at the same time are one phase.
            for index, phase in enumerate(report.work):
                at_once = formats.rules_of(file.tool).groups_at_once
                group = phase.group if at_once else f"{phase.group} {index}"
                of_group.setdefault(group, []).append(phase)
            for phases in of_group.values():
                yield _Row(file, place, report, tuple(phases))


_SHOWN = (
    "rw",
    "readwrite",
    "bs",
    "blocksize",
    "direct",
    "buffered",
    "iodepth",
    "numjobs",
    "ioengine",
    "engine",
    "group_reporting",
    "name",
    "description",
    "api",
    "clients",
    "tasks",
    "nodes",
    "numtasks",
    "xfersize",
)
"""Options that a row has as fields, or that name no setting."""
_LOGS = ("write_", "log_", "output", "eta", "randseed", "status-interval")
"""How options of fio's own output begin."""
_PLACES = ("filename", "directory", "disks", "if", "of", "name", "description")
"""Options that name a place or the job: they differ from machine to machine."""


def _files(rows: Sequence[_Row]) -> list[FoundFile]:
    return list({row.file.path: row.file for row in rows}.values())


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


def _arguments(
    row: _Row, varying: Mapping[str, set[str]], names: Mapping[Path, str]
) -> dict[str, str]:
    """The settings of an experiment that it has no field for."""
    first, of_tool = row.phases[0], varying.get(row.file.tool or "", set())
    arguments = {
        "file": names[row.file.path],
        **{f"path_{level}": name for level, name in enumerate(row.file.place, start=1)},
        "phase": first.name,
    }
    for name, value in first.options.items():
        if name in of_tool:
            arguments[name.replace(" ", "_")] = value
    if row.report.version and _VERSION in of_tool:
        arguments["tool_version"] = row.report.version
    if not first.options and first.request_bytes is None:
        # No setting is reported, so nothing shows that another report is a repetition.
        arguments["report"] = f"{row.file.sha256[:12]} {row.number} {first.group}"
    for name in ("iodepth", "jobs", "nodes", "engine"):
        if (value := getattr(first, name)) is not None:
            arguments[name] = str(value)
    return arguments


def _experiment(
    row: _Row, varying: Mapping[str, set[str]], names: Mapping[Path, str]
) -> Experiment:
    first = row.phases[0]
    operations = {phase.operation for phase in row.phases}
    operation = first.operation if len(operations) == 1 else "mixed"
    arguments = _arguments(row, varying, names)
    rules = formats.rules_of(row.file.tool)
    return Experiment(
        level=rules.level,
        tool=row.file.tool or "unknown",
        operation=operation if operation in OPERATIONS else None,
        spatiality=first.access_pattern,
        request_size_bytes=first.request_bytes,
        cache=CacheLayers({True: "off", False: "on", None: None}[first.direct], None),
        api=(first.engine or "posix").lower()[:40] if rules.engine_is_api else "posix",
        processes=first.jobs or 1,
        arguments=tuple(sorted((k, v[:200]) for k, v in arguments.items() if v)),
    )


def _settings(row: _Row) -> dict[str, str]:
    found = {}
    for name, value in sorted(row.phases[0].options.items()):
        if value and name not in _PLACES and not name.startswith(_LOGS):
            found[name[:200]] = value[:200]
    if row.report.version:
        found[_VERSION] = row.report.version[:200]
    return found


class _Runs(Sequence[Run]):
    """The runs of rows; each is made when it is used, as there may be very many."""

    def __init__(self, rows: Sequence[_Row]) -> None:
        self._rows = rows
        self._experiments: list[Experiment] = []
        self._repetitions: list[int] = []
        counts: Counter[Experiment] = Counter()
        equal: dict[Experiment, Experiment] = {}
        varying = _varying(rows)
        names = file_names(_files(rows)).of_path
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

    @property
    def settings(self) -> dict[str, dict[str, str]]:
        """Those of each experiment by its id: also those that all runs have."""
        found: dict[str, dict[str, str]] = {}
        for row, experiment in zip(self._rows, self._experiments, strict=True):
            if experiment.id not in found:
                found[experiment.id] = _settings(row)
        return found

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
            remarks=formats.rules_of(row.file.tool).remarks,
        )


def names_of(files: Sequence[FoundFile], name: str) -> dict[str, str]:
    """Host that the files name, or `unknown` -> the name of its campaign."""
    hosts = dict.fromkeys(
        report.host or "unknown" for file in files for report in file.reports if report.phases
    )
    return {host: slug(name if host == "unknown" else f"{name}-{host}") for host in hosts}


def campaigns(files: Sequence[FoundFile], name: str) -> list[Imported]:
    """One campaign for each host that the files name, and one for files that name none."""
    of_host: dict[str, list[_Row]] = {}
    for row in _rows(files):
        of_host.setdefault(row.report.host or "unknown", []).append(row)
    names = names_of(files, name)
    return [_campaign(host, rows, files, names[host]) for host, rows in of_host.items()]


def _campaign(host: str, rows: Sequence[_Row], files: Sequence[FoundFile], name: str) -> Imported:
    rows = sorted(rows, key=lambda row: (row.phases[0].started_utc or "", str(row.file.path)))
    remarks = [f"{file.path}: rejected: {file.rejected}" for file in files if file.rejected]
    remarks += file_names(_files(rows)).notes
    missing = dict.fromkeys(_UNKNOWN, "imported: the file does not report it")
    unknown: dict[str, Any] = dict.fromkeys(_UNKNOWN)
    machine = Machine(
        hostname=host, architecture="unknown", kernel="unknown", missing=missing, **unknown
    )
    runs = _Runs(rows)
    return Imported(
        name=name,
        title=f"results of {', '.join(sorted({row.file.tool or '' for row in rows}))}",
        machine=machine,
        runs=runs,
        idle=(),
        remarks=tuple(remarks),
        settings=runs.settings,
    )


_UNKNOWN = (
    "cpu_model",
    "logical_cpus",
    "governor",
    "frequency_min_hz",
    "frequency_max_hz",
    "memory_bytes",
    "distribution",
    "virtualization",
    "device",
    "device_model",
    "device_firmware",
    "device_size_bytes",
    "device_rotational",
    "device_write_cache",
    "scheduler",
    "filesystem",
    "mount_options",
    "mkfs_options",
)
