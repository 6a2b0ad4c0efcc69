"""Run records of a folder, by its map."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from eeio.errors import EeioError, LimitError, RejectedError
from eeio.exchange.importing import outputs
from eeio.exchange.importing.imported import Imported
from eeio.exchange.importing.mapping import Key, Labels, Map
from eeio.exchange.importing.power import MappedPower, read_power
from eeio.exchange.importing.processor import read_processor
from eeio.exchange.importing.tables import read_table
from eeio.exchange.importing.testlog import Span
from eeio.exchange.importing.testlog import read as read_log
from eeio.files import inputs, typed
from eeio.measure.profiles.suite import experiment_of
from eeio.record.consistency import disagreement
from eeio.record.run import (
    ContextValue,
    EnergyReading,
    Experiment,
    Machine,
    Phase,
    ProcessorSeries,
    Run,
)
from eeio.units import quantities as q
from eeio.units.sizes import parse_size
from eeio_power.csv_log import zone_of

# A table's columns; each is above 0.
_VALUES = {
    "bandwidth_bytes_per_s": q.BANDWIDTH,
    "bytes_moved": replace(q.SIZE, whole=False),
    "duration_s": q.DURATION,
}
_NO_DEVICE = "imported: no device counters were recorded"
# With fewer repetitions no difference is significant at the 95 % level.
_FEW = 5


@dataclass(frozen=True)
class _Found:
    """A source's data on one run."""

    phases: tuple[Phase, ...]
    duration_s: float
    source: str
    context: tuple[ContextValue, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass
class _Collected:
    """Runs of one campaign as they are read; a duplicate key is stored as a clash."""

    runs: dict[Key, _Found] = field(default_factory=dict)
    failed: dict[Key, str] = field(default_factory=dict)
    names: dict[Key, str] = field(default_factory=dict)
    spans: dict[Key, Span] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)

    def add(self, key: Key, found: _Found, where: str) -> None:
        before = self.runs.get(key)
        if before is None:
            self.runs[key] = found
        elif before.phases == found.phases:
            self.remarks.append(f"{where}: duplicate run with the same values; used once")
        else:
            self.failed[key] = f"there are two of this run, with different values ({where})"
            self.remarks.append(f"{where}: {_label(key)}: {self.failed[key]}; neither is used")


@dataclass(frozen=True)
class Folder:
    """The campaigns of a folder of results, and remarks on the complete folder."""

    campaigns: list[Imported]
    remarks: list[str]


def read(mapping: Map, folder: Path) -> Folder:
    """The campaigns of a folder; one with missing files is left out with a remark.

    Raises RejectedError if there is none, EeioError for files that do not match the map.
    """
    if not folder.is_dir():
        raise RejectedError(f"{folder}: no such folder")
    found: list[Imported] = []
    absent = []
    for body in mapping.campaigns:
        source = next(body["runs"][k] for k in ("table", "outputs", "spans") if k in body["runs"])
        if not _glob(folder, source):
            absent.append(f"{body['name']}: {source} is missing")
            continue
        campaign = _campaign(mapping, body, folder)
        # Named relative to the folder.
        remarks = tuple(remark.replace(f"{folder}/", "") for remark in campaign.remarks)
        found.append(replace(campaign, remarks=remarks))
    if not found:
        raise RejectedError(
            f"{folder} contains none of the files of {mapping.path.name}: {absent[0]}"
        )
    absent += [
        f"{path.relative_to(folder)}: not imported: {item['reason']}"
        for item in mapping.not_imported
        for path in _glob(folder, item["files"])
    ]
    return Folder(found, absent)


def _glob(folder: Path, pattern: str) -> list[Path]:
    """Files of the folder, sorted. Raises RejectedError for an invalid pattern of its files."""
    try:
        return sorted(folder.glob(pattern))
    except (ValueError, NotImplementedError, OSError) as error:
        raise RejectedError(
            f"{pattern!r:.100}: no pattern of files in {folder}: {error}"
        ) from error


def _campaign(mapping: Map, body: Mapping[str, Any], folder: Path) -> Imported:
    labels = mapping.labels(body)
    collected = _read_runs(body, folder, labels)
    if not collected.runs and not collected.failed:
        reasons = "; ".join(collected.remarks) or "no row of it is a run"
        raise EeioError(f"{body['name']}: no run in it: {reasons}")
    if "log" in body:
        _read_spans(body["log"], folder, labels, collected)
    columns = body["runs"].get("columns", {})
    sources = []
    for item in body.get("power", ()):
        source = read_power(item, folder, labels, columns, collected.spans, collected.names)
        collected.remarks += source.remarks
        sources.append(source)
    series: Mapping[Key, ProcessorSeries] = {}
    if "processor" in body:
        series, remarks = read_processor(
            body["processor"], folder, labels, columns, collected.spans
        )
        collected.remarks += remarks
    keys = _left(body, collected)
    shift = 0
    if any(repetition == 0 for _, repetition in keys):
        shift = 1
    if shift:
        collected.remarks.append("repetitions are numbered from 0 in the files, from 1 here")
    keys.sort(key=lambda key: collected.spans[key].start_s if key in collected.spans else math.inf)
    experiments = {
        factors: experiment_of(body.get("tool", "unknown"), dict(factors), "file", None)
        for factors, _ in keys
    }
    runs = tuple(
        _run(key, order, shift, experiments[key[0]], collected, sources, series.get(key))
        for order, key in enumerate(keys)
    )
    runs = tuple(_possible(run, collected.remarks) for run in runs)
    _judge_repetitions(runs, collected.remarks)
    return Imported(
        name=body["name"],
        title=body.get("title", mapping.title),
        machine=_machine(body["machine"], mapping),
        runs=runs,
        idle=tuple(reading for source in sources if (reading := source.idle()) is not None),
        idle_watts={s.body["domain"]: s.idle_watts for s in sources if s.idle_watts},
        remarks=tuple(collected.remarks),
    )


def _left(body: Mapping[str, Any], collected: _Collected) -> list[Key]:
    """Runs without those that the map leaves out; their number is a remark."""
    keys = list(dict.fromkeys([*collected.runs, *collected.failed]))
    for item in body.get("leave_out", ()):
        wanted = item["factors"].items()
        out = [key for key in keys if wanted <= dict(key[0]).items()]
        if out:
            text = " ".join(f"{k}={v}" for k, v in item["factors"].items())
            collected.remarks.append(f"{len(out)} runs with {text} left out: {item['reason']}")
            keys = [key for key in keys if key not in set(out)]
    return keys


def _label(key: Key) -> str:
    return " ".join(f"{name}={value}" for name, value in key[0]) + f" #{key[1]}"


def _read_runs(body: Mapping[str, Any], folder: Path, labels: Labels) -> _Collected:
    source = body["runs"]
    if "table" in source:
        return _from_table(source, folder, labels)
    if "outputs" in source:
        return _from_outputs(source, folder, labels)
    return _from_spans(source, folder, labels)


def _from_table(source: Mapping[str, Any], folder: Path, labels: Labels) -> _Collected:
    """A table with one row a run."""
    collected = _Collected()
    table = read_table(folder / source["table"])
    places = {group: table.place(column) for group, column in source["columns"].items()}
    values = {name: table.place(column) for name, column in source["values"].items()}
    for line, cells in table.rows:
        where = f"{table.path}:{line}"
        try:
            key = labels.key({group: cells[place] for group, place in places.items()})
        except ValueError as error:
            collected.remarks.append(f"{where}: left out: {error}")
            continue
        numbers = {name: table.number(cells[place]) for name, place in values.items()}
        phase = _of_row(key, numbers)
        why = _why_impossible(numbers) or disagreement(phase)
        if why is not None:
            _fail(collected, key, f"{where}: {why}")
            continue
        duration_s = numbers.get("duration_s", math.nan)
        found = _Found((phase,), 0.0 if math.isnan(duration_s) else duration_s, where)
        collected.add(key, found, where)
    return collected


def _of_row(key: Key, numbers: Mapping[str, float]) -> Phase:
    duration_s = numbers.get("duration_s", math.nan)
    moved = numbers.get("bytes_moved", math.nan)
    return _reported(
        key,
        "the complete run: a table contains its duration",
        duration_s if math.isfinite(duration_s) else None,
        numbers["bandwidth_bytes_per_s"],
        round(moved) if math.isfinite(moved) else None,
    )


def _why_impossible(numbers: Mapping[str, float]) -> str | None:
    """The figure of a row that cannot be; a duration and bytes may be missing."""
    if math.isnan(numbers["bandwidth_bytes_per_s"]):
        return f"a bandwidth of {numbers['bandwidth_bytes_per_s']:g}"
    for name, quantity in _VALUES.items():
        number = numbers.get(name, math.nan)
        if not math.isnan(number) and not (quantity.contains(number) and number > 0):
            return f"a {name.removesuffix('_bytes_per_s')} of {number:g}"
    return None


def _from_outputs(source: Mapping[str, Any], folder: Path, labels: Labels) -> _Collected:
    """The tool's output, one file per run; or files whose reports the map names."""
    collected = _Collected()
    form = source.get("format", "")
    counts: Counter[tuple[tuple[str, str], ...]] = Counter()
    for path in _glob(folder, source["outputs"]):
        if "reports" in source:
            _named_reports(source, path, labels, collected, counts)
            continue
        name = path.name if form == "lmbench" else path.stem
        try:
            key = labels.key_of_name(source.get("name", r".*?(?P<repetition>\d+)"), name)
        except ValueError as error:
            collected.remarks.append(f"{path}: left out: {error}")
            continue
        collected.names[key] = name
        try:
            result = outputs.read(form, _text(path), str(path), dict(key[0]))
        except (OSError, EeioError, LimitError) as error:
            _fail(
                collected, key, str(error) if isinstance(error, EeioError) else f"{path}: {error}"
            )
            continue
        _add_output(collected, key, result, path)
    return collected


def _text(path: Path) -> str:
    """Raises EeioError for an empty file, OSError and LimitError."""
    text = inputs.read_text(path, inputs.TOOL_FILE_BYTES, errors="replace")
    if not text.strip():
        raise EeioError(f"{path}: empty")
    return text


def _fail(collected: _Collected, key: Key, message: str) -> None:
    collected.failed[key] = message
    collected.remarks.append(f"{message}: the run is invalid")


def _add_output(collected: _Collected, key: Key, result: outputs.Output, path: Path) -> None:
    if (why := _contradiction(dict(key[0]), result.phases)) is not None:
        _fail(collected, key, f"{path}: {why}")
        return
    found = _Found(result.phases, result.duration_s, str(path), result.context, result.notes)
    collected.add(key, found, str(path))


def _named_reports(
    source: Mapping[str, Any],
    path: Path,
    labels: Labels,
    collected: _Collected,
    counts: Counter[tuple[tuple[str, str], ...]],
) -> None:
    """The reports of a file as runs. Those with equal factors are repetitions, numbered in the
    order of files and reports."""
    try:
        text = _text(path)
        reports = outputs.read_each(source.get("format", ""), text, str(path))
    except (OSError, EeioError, LimitError) as error:
        collected.remarks.append(f"{path}: left out: {error}")
        return
    for number, (report, result) in enumerate(reports):
        factors = _factors_of_report(source["reports"], number, text, report.begins_at)
        if factors is None:
            collected.remarks.append(f"{path}: report {number}: left out: the map does not name it")
            continue
        try:
            named, _ = labels.key_of_name(source.get("name", ".*"), path.stem, repetition="0")
        except ValueError as error:
            collected.remarks.append(f"{path}: left out: {error}")
            return
        of_run = tuple(sorted({**dict(named), **factors}.items()))
        counts[of_run] += 1
        key = of_run, counts[of_run]
        collected.names[key] = path.stem
        _add_output(collected, key, result, path)


def _factors_of_report(
    names: Sequence[Mapping[str, Any]], number: int, text: str, begins_at: int | None
) -> Mapping[str, str] | None:
    """Of the report with that number, else of the one below the nearest line with a text that the
    map names; None for a report without a name."""
    nearest: tuple[int, Mapping[str, str]] | None = None
    for name in names:
        if name.get("number") == number:
            return cast(Mapping[str, str], name["factors"])
        place = -1
        if "below" in name and begins_at is not None:
            place = text.rfind(name["below"], 0, begins_at)
        if place >= 0 and (nearest is None or place > nearest[0]):
            nearest = place, name["factors"]
    if nearest is None:
        return None
    return nearest[1]


def _contradiction(factors: Mapping[str, str], phases: Sequence[Phase]) -> str | None:
    """A factor of the map that the only phase of a file does not have."""
    if len(phases) != 1:
        return None
    (phase,) = phases
    size = factors.get("request_size")
    for name, wanted, found in (
        ("operation", factors.get("operation"), phase.operation),
        ("spatiality", factors.get("spatiality"), phase.spatiality),
        ("request_size", None if size is None else parse_size(size), phase.request_size_bytes),
    ):
        if wanted is not None and found is not None and wanted != found:
            return f"{name} is {wanted} in the map and {found} in the file"
    return None


def _from_spans(source: Mapping[str, Any], folder: Path, labels: Labels) -> _Collected:
    """A log of samples with the name of the run that each belongs to; no tool's output."""
    collected = _Collected()
    table = read_table(folder / source["spans"])
    zone = None
    if "tz" in source:
        zone = zone_of(source["tz"])
    run, time = table.place(source["run"]), table.place(source["time"])
    for line, cells in table.rows:
        try:
            key = labels.key_of_name(source["name"], cells[run])
            moment = datetime.fromisoformat(cells[time])
            if moment.tzinfo is None:
                moment = moment.replace(tzinfo=zone)
            at_s = q.TIMESTAMP.checked(moment.timestamp(), "a time")
        except (ValueError, OverflowError) as error:
            collected.remarks.append(f"{table.path}:{line}: left out: {error}")
            continue
        span = collected.spans.get(key, Span(cells[run], at_s, at_s))
        span = Span(span.name, min(span.start_s, at_s), max(span.end_s, at_s))
        collected.spans[key] = span
        window_source = "from the first to the last sample that bears the run's name"
        phase = _reported(key, window_source, span.end_s - span.start_s)
        collected.runs[key] = _Found((phase,), span.end_s - span.start_s, str(table.path))
    return collected


def _read_spans(
    source: Mapping[str, Any], folder: Path, labels: Labels, collected: _Collected
) -> None:
    path = folder / source["file"]
    offset_s = float(source.get("offset_s", 0.0))
    for span in read_log(path):
        try:
            key = labels.key_of_name(source["name"], span.name)
        except ValueError as error:
            collected.remarks.append(f"{path}: left out: {error}")
            continue
        if key in collected.spans:
            collected.remarks.append(f"{path}: {span.name} is repeated; the last one is used")
        collected.spans[key] = replace(
            span, start_s=span.start_s + offset_s, end_s=span.end_s + offset_s
        )
        if key not in collected.runs and key not in collected.failed:
            collected.failed[key] = f"{path} names {span.name}, but there is no result of it"
            collected.remarks.append(collected.failed[key])


def _run(
    key: Key,
    order: int,
    shift: int,
    experiment: Experiment,
    collected: _Collected,
    sources: list[MappedPower],
    series: ProcessorSeries | None,
) -> Run:
    found = collected.runs.get(key)
    failed = collected.failed.get(key)
    span = collected.spans.get(key)
    duration_s = 0.0
    if found is not None:
        duration_s = found.duration_s
    if span is not None:
        duration_s = span.end_s - span.start_s
    phases: tuple[Phase, ...] = ()
    if found is not None and failed is None:
        phases = tuple(
            _phase(phase, experiment, span, tuple(s.reading(key, duration_s) for s in sources))
            for phase in found.phases
        )
    return Run(
        experiment=experiment,
        repetition=key[1] + shift,
        order_index=order,
        preset="imported",
        started_utc=_utc(span.start_s if span else 0.0),
        started_monotonic_s=span.start_s if span else 0.0,
        duration_s=duration_s,
        exit_code=0 if failed is None else 1,
        phases=phases,
        raw="",
        context=found.context if found else (),
        device_reason=_NO_DEVICE,
        processor=series,
        validity=() if failed is None else (failed,),
        notes=(f"imported from {found.source}", *found.notes) if found else (),
    )


def _possible(run: Run, remarks: list[str]) -> Run:
    """The run, without its figures and with the reason where one of them cannot be."""
    try:
        typed.check(run)
    except LimitError as error:
        remarks.append(f"{run.notes[0] if run.notes else run.order_index}: {error}: invalid")
        duration_s = 0.0
        if q.DURATION.contains(run.duration_s):
            duration_s = run.duration_s
        return replace(
            run,
            phases=(),
            context=(),
            processor=None,
            duration_s=duration_s,
            exit_code=1,
            validity=(*run.validity, str(error)),
        )
    return run


def _reported(
    key: Key,
    window_source: str,
    duration_s: float | None,
    bandwidth_bytes_per_s: float | None = None,
    bytes_moved: int | None = None,
) -> Phase:
    """The one phase of a run that no tool's output describes."""
    factors = dict(key[0])
    operation = factors.get("operation", "mixed")
    return Phase(
        name=operation,
        operation=operation,
        spatiality=factors.get("spatiality"),
        request_size_bytes=None,
        bytes_moved=bytes_moved,
        bandwidth_bytes_per_s=bandwidth_bytes_per_s,
        start_s=None if duration_s is None else 0.0,
        end_s=duration_s,
        window_source=window_source,
    )


def _phase(
    phase: Phase, experiment: Experiment, span: Span | None, energy: tuple[EnergyReading, ...]
) -> Phase:
    """With its energy, and the window of the log where there is one."""
    phase = replace(
        phase,
        request_size_bytes=phase.request_size_bytes or experiment.request_size_bytes,
        energy=energy,
    )
    if span is None:
        return phase
    source = "the log's start and end of the run"
    return replace(phase, start_s=0.0, end_s=span.end_s - span.start_s, window_source=source)


def _judge_repetitions(runs: tuple[Run, ...], remarks: list[str]) -> None:
    """Names experiments with few or unequal repetitions."""
    counts = Counter(run.experiment for run in runs if not run.validity)
    usual = max(counts.values(), default=0)
    for experiment, count in counts.items():
        label = f"{experiment.tool} {experiment.spatiality or ''} {experiment.operation or ''}"
        if experiment.request_size_bytes:
            label += f" {experiment.request_size_bytes} B, buffer {experiment.cache.buffer}"
        label = re.sub(r" +", " ", label)
        if count != usual:
            remarks.append(f"{label}: {count} repetitions where others have {usual}")
        elif count < _FEW:
            remarks.append(f"{label}: only {count} repetitions; no test can be sure with so few")


def _machine(body: Mapping[str, Any], mapping: Map) -> Machine:
    """A machine from the map's data on it; the rest is missing, with that reason."""
    known = {item.name for item in fields(Machine)} - {"tools", "programs", "limits", "missing"}
    if unknown := set(body) - known:
        raise RejectedError(
            f"{mapping.path}: machine: {', '.join(sorted(unknown))}: not known; there are "
            f"{', '.join(sorted(known))}"
        )
    values: dict[str, Any] = {name: body.get(name) for name in known}
    missing = {name: "not in the map" for name, value in values.items() if value is None}
    values["raid_members"] = tuple(values["raid_members"] or ())
    machine = Machine(**values, missing=missing)
    try:
        typed.check(machine)
    except LimitError as error:
        raise RejectedError(f"{mapping.path}: machine: {error}") from error
    return machine


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
