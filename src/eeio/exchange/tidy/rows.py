"""The rows of one campaign in six tables: files, runs, phases, metrics, options, power.

None is a value that is unknown or was not measured. All figures are in SI units; bytes are bytes.
A phase's bandwidth and energy are those of its window, as in `eeio report`.
"""

import hashlib
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from eeio import __version__
from eeio.analysis import metrics
from eeio.analysis.observation import Missing, Observation, known, observed
from eeio.analysis.ranking import why_unsure
from eeio.analysis.selection import main_reading
from eeio.record.run import EnergyReading, Phase, Run
from eeio.record.store import Campaign
from eeio.record.windows import Window
from eeio_power import samples

SCHEMA_VERSION = 1

_TEXT, _INT, _REAL, _BOOL, _TIME = "VARCHAR", "BIGINT", "DOUBLE", "BOOLEAN", "TIMESTAMP"
TABLES: Mapping[str, Mapping[str, str]] = {
    "files": {
        "sha256": _TEXT, "path": _TEXT, "tool": _TEXT, "tool_version": _TEXT, "format": _TEXT,
        "parser_version": _TEXT, "campaign": _TEXT,
    },
    "runs": {
        "run_id": _TEXT, "campaign": _TEXT, "sha256": _TEXT, "report_no": _INT, "host": _TEXT,
        "kernel": _TEXT, "device": _TEXT, "device_model": _TEXT, "filesystem": _TEXT,
        "start_utc": _TIME, "end_utc": _TIME, "time_source": _TEXT, "experiment_id": _TEXT,
        "level": _TEXT, "tool": _TEXT, "api": _TEXT, "processes": _INT, "target": _TEXT,
        "operation": _TEXT, "access_pattern": _TEXT, "request_bytes": _INT, "buffer": _TEXT,
        "disk_cache": _TEXT, "flush": _TEXT, "preset": _TEXT, "repetition": _INT,
        "order_index": _INT, "duration_s": _REAL, "exit_code": _INT, "valid": _BOOL,
        "reason": _TEXT, "remarks": _TEXT,
    },
    "phases": {
        "phase_id": _TEXT, "run_id": _TEXT, "campaign": _TEXT, "group_id": _TEXT, "name": _TEXT,
        "operation": _TEXT, "access_pattern": _TEXT, "request_bytes": _INT, "direct": _BOOL,
        "iodepth": _INT, "jobs": _INT, "nodes": _INT, "api": _TEXT, "sync": _TEXT, "bytes": _INT,
        "start_s": _REAL, "runtime_s": _REAL, "bandwidth_bytes_per_s": _REAL, "iops": _REAL,
        "durable": _BOOL, "domain": _TEXT, "meter": _TEXT, "energy_kind": _TEXT, "power_w": _REAL,
        "energy_j": _REAL, "uncertainty_j": _REAL, "j_per_gb": _REAL, "energy_reason": _TEXT,
        "valid": _BOOL, "error": _TEXT,
    },
    "metrics": {
        "phase_id": _TEXT, "run_id": _TEXT, "campaign": _TEXT, "name": _TEXT, "value": _REAL,
        "unit": _TEXT, "statistic": _TEXT, "latency_kind": _TEXT, "domain": _TEXT, "meter": _TEXT,
        "energy_kind": _TEXT, "energy_reason": _TEXT,
    },
    "options": {
        "run_id": _TEXT, "campaign": _TEXT, "job": _TEXT, "key": _TEXT, "value": _TEXT,
    },
    "power": {
        "campaign": _TEXT, "meter": _TEXT, "domain": _TEXT, "energy_kind": _TEXT, "t_utc": _TIME,
        "t_s": _REAL, "watts": _REAL, "interval_s": _REAL,
    },
}  # fmt: skip
"""Table -> column -> type in DuckDB."""

Row = dict[str, Any]
_IMPORTED = re.compile(
    r"imported from (?P<path>.+?)(?:, report (?P<report>\d+), group (?P<group>.*?)"
    r", SHA-256 (?P<sha256>[0-9a-f]{64}))?"
)


@dataclass(frozen=True)
class _Source:
    """The file that a run was imported from, or the campaign's own records."""

    sha256: str
    path: str
    report: int | None = None
    group: str | None = None


def rows(campaign: Campaign) -> Iterator[tuple[str, Row]]:
    """(table, row) of everything in the campaign, its samples last."""
    own = _own_file(campaign)
    seen: set[str] = set()
    for number, run in enumerate((*campaign.set_aside, *campaign.runs)):
        source = _source(run) or own
        if source.sha256 not in seen:
            seen.add(source.sha256)
            yield "files", _file(campaign, run, source, own)
        run_id = f"{campaign.name}/{number:06d}"
        yield (
            "runs",
            _run(campaign, run, run_id, source, set_aside=number < len(campaign.set_aside)),
        )
        for key, value in run.experiment.arguments:
            yield "options", _row(campaign, run_id=run_id, key=key, value=value)
        for place, phase in enumerate(run.phases):
            yield from _phase(campaign, run, phase, f"{run_id}/{place}", run_id, source)
    yield from _power(campaign)


def _row(campaign: Campaign, **values: Any) -> Row:
    return {"campaign": campaign.name, **values}


def _own_file(campaign: Campaign) -> _Source:
    path = campaign.folder / "runs.jsonl"
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return _Source(digest.hexdigest(), str(path))


def _source(run: Run) -> _Source | None:
    for note in run.notes:
        if (match := _IMPORTED.fullmatch(note)) and match["sha256"]:
            return _Source(match["sha256"], match["path"], int(match["report"]), match["group"])
    return None


def _file(campaign: Campaign, run: Run, source: _Source, own: _Source) -> Row:
    is_own = source is own
    version = next(
        (t.version for t in campaign.machine.tools if t.name == run.experiment.tool), None
    )
    return _row(
        campaign,
        sha256=source.sha256,
        path=source.path,
        tool="eeio" if is_own else run.experiment.tool,
        tool_version=campaign.design.eeio_version or None if is_own else version,
        format="campaign" if is_own else "result file",
        parser_version=__version__,
    )


def _time_source(run: Run, source: _Source) -> str | None:
    """Which clock gave the times of a run; None if its report does not say."""
    if source.report is None:
        return "eeio's clock"
    return next((note for note in run.notes if " time" in note), None)


def _run(campaign: Campaign, run: Run, run_id: str, source: _Source, set_aside: bool) -> Row:
    experiment, machine = run.experiment, campaign.machine
    start = _moment(run.started_utc)
    end = None
    if start is not None:
        end = start + timedelta(seconds=run.duration_s)
    reasons = [*run.validity, *(["not in the steady state yet"] if set_aside else [])]
    return _row(
        campaign,
        run_id=run_id,
        sha256=source.sha256,
        report_no=source.report,
        host=machine.hostname,
        kernel=machine.kernel,
        device=run.device or machine.device,
        device_model=machine.device_model,
        filesystem=machine.filesystem,
        start_utc=_utc_text(start),
        end_utc=_utc_text(end),
        time_source=None if start is None else _time_source(run, source),
        experiment_id=experiment.id,
        level=experiment.level,
        tool=experiment.tool,
        api=experiment.api,
        processes=experiment.processes,
        target=experiment.target,
        operation=experiment.operation,
        access_pattern=experiment.spatiality,
        request_bytes=experiment.request_size_bytes,
        buffer=experiment.cache.buffer,
        disk_cache=experiment.cache.disk,
        flush=experiment.flush,
        preset=run.preset,
        repetition=run.repetition,
        order_index=run.order_index,
        duration_s=run.duration_s,
        exit_code=run.exit_code,
        valid=run.valid and not set_aside,
        reason="; ".join(reasons) or None,
        remarks="; ".join(run.remarks.values()) or None,
    )


def _phase(
    campaign: Campaign, run: Run, phase: Phase, phase_id: str, run_id: str, source: _Source
) -> Iterator[tuple[str, Row]]:
    observation = observed(run.experiment, phase)
    ids = {"phase_id": phase_id, "run_id": run_id}
    yield "phases", _row(campaign, **ids, **_phase_columns(run, phase, observation, source))
    metrics_of_phase = (
        *_metrics_of_tool(phase),
        *_metrics_of_energy(observation),
        *_metrics_of_registry(observation),
    )
    for columns in metrics_of_phase:
        yield "metrics", _row(campaign, **ids, **columns)


def _phase_columns(
    run: Run, phase: Phase, observation: Observation, source: _Source
) -> dict[str, Any]:
    window, experiment = observation.window, run.experiment
    arguments = dict(experiment.arguments)
    buffer = experiment.cache.buffer
    runtime_s = window.duration_s
    if runtime_s is None:
        runtime_s = phase.metrics.get("runtime_s")
    return {
        "group_id": source.group,
        "name": phase.name,
        "operation": phase.operation,
        "access_pattern": phase.spatiality,
        "request_bytes": phase.request_size_bytes,
        "direct": None if buffer is None else buffer == "off",
        "iodepth": _integer(arguments.get("iodepth")),
        "jobs": experiment.processes,
        "nodes": _integer(arguments.get("nodes")),
        "api": experiment.api,
        "sync": experiment.flush,
        "bytes": phase.bytes_moved,
        "start_s": phase.start_s,
        "runtime_s": runtime_s,
        "bandwidth_bytes_per_s": window.bandwidth_bytes_per_s,
        "iops": phase.metrics.get("iops", phase.metrics.get("operations_per_s")),
        "durable": window.durable,
        **_energy_columns(observation),
        "valid": run.valid,
        "error": "; ".join((*run.validity, *phase.validity)) or None,
    }


_OF_READING = ("domain", "meter", "energy_kind", "power_w", "energy_j", "uncertainty_j")


def _energy_columns(observation: Observation) -> dict[str, Any]:
    """Of the main reading, or of the first whose energy is a cost."""
    window = observation.window
    reading = main_reading(window) or next(iter(window.cost_energy), None)
    if reading is None:
        none = dict.fromkeys(_OF_READING)
        return {**none, "j_per_gb": None, "energy_reason": _why_none(window)}
    reason: str | None = _why_none(window)
    if reading.energy_j is not None:
        reason = _why_no_cost(reading) or window.why_no_efficiency
    return {
        "domain": reading.domain,
        "meter": reading.meter,
        "energy_kind": reading.kind,
        "power_w": reading.power_w,
        "energy_j": reading.energy_j,
        "uncertainty_j": reading.uncertainty_j,
        "j_per_gb": _j_per_gb(observation, reading),
        "energy_reason": reason,
    }


def _why_no_cost(reading: EnergyReading) -> str | None:
    """Why the reading is doubtful, or not ranked: as in reports, it is compared with no other."""
    if reading.doubtful:
        return f"doubtful: {'; '.join(reading.reasons)}"
    if reading.why_not_ranked is not None:
        return reading.why_not_ranked
    return why_unsure((), reading.uncertainty_relative)


def _j_per_gb(observation: Observation, reading: EnergyReading) -> float | None:
    if _why_no_cost(reading) is not None:
        return None
    return known(observation.of(reading).j_per_gb)


def _metrics_of_tool(phase: Phase) -> Iterator[dict[str, Any]]:
    for name, value in phase.metrics.items():
        statistic = re.search(r"_(mean|max|min|p\d+)_s$", name)
        kind = re.search(r"latency_(submission|completion|total)_", name)
        yield {
            "name": name,
            "value": value,
            "unit": _unit(name),
            "statistic": statistic[1] if statistic else None,
            "latency_kind": kind[1] if kind else None,
        }


def _metrics_of_energy(observation: Observation) -> Iterator[dict[str, Any]]:
    for reading in observation.window.energy:
        for name, value, unit in (
            ("energy_j", reading.energy_j, "J"),
            ("power_w", reading.power_w, "W"),
            ("uncertainty_j", reading.uncertainty_j, "J"),
            ("j_per_gb", _j_per_gb(observation, reading), "J/GB"),
        ):
            if value is not None:
                yield {"name": name, "value": value, "unit": unit, **_source_columns(reading)}


def _source_columns(reading: EnergyReading) -> dict[str, Any]:
    return {
        "domain": reading.domain,
        "meter": reading.meter,
        "energy_kind": reading.kind,
        "energy_reason": _why_no_cost(reading),
    }


def _metrics_of_registry(observation: Observation) -> Iterator[dict[str, Any]]:
    """Those that neither the record nor a column has, with the reading that they are of."""
    for metric in metrics.further():
        readings = observation.window.cost_energy if metric.of_domain else (None,)
        for reading in readings:
            if reading is not None and _why_no_cost(reading) is not None:
                continue
            value = metric.value(replace(observation, reading=reading))
            if not isinstance(value, Missing):
                columns = {} if reading is None else _source_columns(reading)
                yield {"name": metric.key, "value": value, "unit": None, **columns}


def _why_none(window: Window) -> str:
    reasons = dict.fromkeys(reason for reading in window.energy for reason in reading.reasons)
    return "; ".join(reasons) or "no power was read in this window"


def _unit(name: str) -> str | None:
    for ending, unit in (
        ("_bytes_per_s", "B/s"),
        ("_per_s", "1/s"),
        ("iops", "1/s"),
        ("_s", "s"),
        ("_bytes", "B"),
        ("_fraction", "1"),
        ("_hz", "Hz"),
    ):
        if name.endswith(ending):
            return unit
    return None


def _power(campaign: Campaign) -> Iterator[tuple[str, Row]]:
    """The samples of each meter and domain; those of a counter are means since the one before."""
    for path in sorted((campaign.folder / "samples").glob("power-*.csv.gz")):
        stored = samples.load(path)
        offset_s = _clock_offset_s(path)
        for meter in stored.meters:
            for domain in samples.power_over_time(meter):
                before_s: float | None = None
                for t_s, watts in zip(domain.times_s, domain.watts, strict=True):
                    at = None
                    if offset_s is not None:
                        at = datetime.fromtimestamp(t_s + offset_s, UTC)
                    yield (
                        "power",
                        _row(
                            campaign,
                            meter=meter.info.name,
                            domain=domain.domain,
                            energy_kind=meter.info.kind,
                            t_utc=_utc_text(at),
                            t_s=t_s,
                            watts=None if math.isnan(watts) else watts,
                            interval_s=None if before_s is None else t_s - before_s,
                        ),
                    )
                    before_s = t_s


def _clock_offset_s(path: Path) -> float | None:
    """UTC less the monotonic clock when the sampler began, s."""
    begun = samples.begun(path)
    if begun is None:
        return None
    monotonic_s, utc = begun
    moment = _moment(utc)
    if moment is None:
        return None
    return moment.timestamp() - monotonic_s


def _moment(text: str) -> datetime | None:
    """None without a zone: the file does not report one."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is not None:
        return moment.astimezone(UTC)
    return None


def _utc_text(moment: datetime | None) -> str | None:
    if moment is None:
        return None
    return moment.strftime("%Y-%m-%d %H:%M:%S.%f")


def _integer(text: str | None) -> int | None:
    if text is not None and re.fullmatch(r"\d{1,12}", text):
        return int(text)
    return None
