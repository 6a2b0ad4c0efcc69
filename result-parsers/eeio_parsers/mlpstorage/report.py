"""MLPerf Storage: the `summary.json` of a run of `mlpstorage`, which its benchmark DLIO writes.

A summary has means over epochs or checkpoints, and the start and the end of the run. The times of
the epochs, and the settings, are in files next to it (`Rules.complete`).
"""

import math
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from eeio.files import inputs
from eeio_parsers.format import Format
from eeio_parsers.found import (
    MIB,
    FoundPhase,
    FoundReport,
    count,
    figure,
    json_of,
    none_found,
)
from eeio_parsers.rules import FoundFile, Rules

_GIB = 1 << 30
_TOOL = "mlpstorage"
_NOT_MLPERF = "the result of a run of MLPerf Storage's programs, not a result of MLPerf"
_CACHED = "DLIO: the data fit into the memory of a host, so that reads may be of a cache"
_EVALUATION = "its evaluation (eval_...) is not read"
_UNKNOWN = "these metrics are not known and not read: "

_METRICS = re.compile(
    r"(?:train|eval)_(?:au|throughput|io)_\w{1,60}|(?:save|load)_checkpoint_\w{1,60}"
    r"|checkpoint_size_GB"
)
"""Names of metrics. Deviations (`_stdev_`) are not read: means of several runs have their own."""

_LEAST_SHARE = 0.9
"""Of the time from start to end in which samples were read: with less, the mean power is not that
of the reads."""
_SAME = 1e-3
_STARTS_WITHIN_S = 0.01


def read_summary(text: str) -> Iterator[FoundReport]:
    """One report: training, checkpoints saved, checkpoints loaded."""
    try:
        body = json_of(text)
        metric = body["metric"]
        phases = tuple(_phases(body, metric))
        notes = tuple(_notes(body, metric))
        host = str(body["hostname"])[:200]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise none_found(_TOOL, f"summary.json: damaged or cut off: {error!r:.80}") from error
    if not phases:
        raise none_found(
            _TOOL, "summary.json has neither training nor checkpoints: the run was ended early"
        )
    yield FoundReport(phases, host=host, notes=notes)


def _phases(body: Mapping[str, Any], metric: Mapping[str, Any]) -> Iterator[FoundPhase]:
    common = FoundPhase(
        name="",
        operation=None,
        jobs=_whole(body, "num_accelerators"),
        nodes=_whole(body, "num_hosts"),
        options={
            "accelerators": str(body["num_accelerators"]),
            "files": str(body["num_files_train"]),
            "samples per file": str(body["num_samples_per_file"]),
        },
    )
    if "train_throughput_samples_per_second" in metric:
        yield _training(common, body, metric)
    for name, operation in (("save", "write"), ("load", "read")):
        rate = metric.get(f"{name}_checkpoint_io_mean_GB_per_second")
        # DLIO writes NaN for the mean of no checkpoints.
        if rate is None or (isinstance(rate, float) and math.isnan(rate)):
            continue
        seconds = figure(metric[f"{name}_checkpoint_duration_mean_seconds"])
        yield replace(
            common,
            name=f"checkpoint {name}",
            operation=operation,
            group=name,
            bandwidth_bytes_per_s=figure(rate) * _GIB,
            metrics={"operations_per_s": 1 / seconds},
        )


def _whole(body: Mapping[str, Any], key: str) -> int:
    """Raises ValueError."""
    number = count(body[key])
    if not number:
        raise ValueError(f"{key} is no number of 1 or more")
    return number


def _training(common: FoundPhase, body: Mapping[str, Any], metric: Mapping[str, Any]) -> FoundPhase:
    """The mean of its epochs, in the time of the complete run."""
    rates = list(map(figure, metric["train_throughput_samples_per_second"]))
    epochs, mean = count(body["epochs"]), figure(metric["train_throughput_mean_samples_per_second"])
    if not rates or len(rates) != epochs or len(metric["train_au_percentage"]) != epochs:
        raise none_found(_TOOL, f"summary.json lists {len(rates)} epochs and states {epochs}")
    if not math.isclose(statistics.fmean(rates), mean, rel_tol=_SAME):
        raise none_found(_TOOL, "summary.json: the mean samples/s is not that of its epochs")
    used = figure(metric["train_au_mean_percentage"]) / 100
    phase = replace(
        common,
        name="training",
        operation="read",
        group="train",
        bandwidth_bytes_per_s=figure(metric["train_io_mean_MB_per_second"]) * MIB,
        metrics={"operations_per_s": mean, "accelerator_utilization_ratio": used},
        error=_failure(metric.get("train_au_meet_expectation"), used),
    )
    if "end" not in body:
        return phase
    start = datetime.fromisoformat(body["start"])
    lasted_s = (datetime.fromisoformat(body["end"]) - start).total_seconds()
    samples = figure(body["num_files_train"]) * figure(body["num_samples_per_file"])
    is_covered = math.fsum(samples / rate for rate in rates) >= _LEAST_SHARE * lasted_s
    return replace(
        phase,
        started_utc=start.isoformat(),
        runtime_s=lasted_s,
        time_source="start and end of the run",
        starts_within_s=_STARTS_WITHIN_S if is_covered else None,
    )


def _failure(verdict: object, used: float) -> str | None:
    """Why a training does not count; None if DLIO states its success."""
    if verdict == "success":
        return None
    if verdict is None:
        return "the summary does not state whether the run succeeded (train_au_meet_expectation)"
    return (
        f"the accelerators were used {used:.1%} of the time, less than the workload requires "
        f"(train_au_meet_expectation: {str(verdict)[:40]})"
    )


def _notes(body: Mapping[str, Any], metric: Mapping[str, Any]) -> Iterator[str]:
    yield _NOT_MLPERF
    if 1 in body.get("potential_caching", ()):
        yield _CACHED
    if any(name.startswith("eval_") for name in metric):
        yield _EVALUATION
    unknown = [name[:60] for name in metric if not _METRICS.fullmatch(name)]
    if unknown:
        yield _UNKNOWN + ", ".join(unknown[:5])


# ---- files next to the summary ----

_STATS = ("per_epoch_stats.json", "0_per_epoch_stats.json")
"""The times of the epochs, of the first process."""
_CONFIGS = ("configs/config.yaml", "dlio_config/config.yaml")
_SETTINGS = ("configs", "dlio_config", "collector-staging")
"""Folders of a run without results."""
_KINDS = {"training": "block", "checkpoint save": "save_ckpt", "checkpoint load": "load_ckpt"}
"""Phase -> how its parts of an epoch are called, with a number behind it. Other parts of an epoch
(`eval`, `ckpt`: a checkpoint of a training) are not read."""
_RUN_FOLDER = re.compile(r"\d{8}_\d{6}|run\W?\d{1,4}", re.I)
"""The folder of one run: no setting."""


@dataclass(frozen=True)
class _Planned:
    """What the settings of a run request; None is not stated."""

    options: Mapping[str, str]
    amounts: Mapping[str, int | None]


def _complete(file: FoundFile) -> None:
    """Adds the times of epochs and checkpoints, and the settings. Raises ToolOutputError for files
    that contradict the summary."""
    folder = file.path.parent
    parts, planned = _parts(folder), _planned(folder)
    file.place = tuple(name for name in file.place if not _RUN_FOLDER.fullmatch(name))
    file.reports = [
        replace(report, phases=tuple(_completed(phase, parts, planned) for phase in report.phases))
        for report in file.reports
    ]


def _parts(folder: Path) -> Mapping[str, Sequence[tuple[str, float]]] | None:
    """Phase -> start and duration of each of its parts; None without the file."""
    path = next((folder / name for name in _STATS if (folder / name).is_file()), None)
    if path is None:
        return None
    try:
        epochs = json_of(inputs.read_text(path, inputs.TOOL_FILE_BYTES))
        return {
            name: [
                _part(part)
                for epoch in epochs.values()
                for key, part in epoch.items()
                if re.fullmatch(rf"{begin}\d{{1,9}}", key)
            ]
            for name, begin in _KINDS.items()
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise none_found(_TOOL, f"{path.name}: damaged or cut off: {error!r:.80}") from error


def _part(part: Mapping[str, str]) -> tuple[str, float]:
    start = datetime.fromisoformat(part["start"])
    lasted_s = (datetime.fromisoformat(part["end"]) - start).total_seconds()
    if lasted_s <= 0:
        raise ValueError(f"a part ends at its start: {part['start']:.40}")
    return start.isoformat(), lasted_s


def _planned(folder: Path) -> _Planned:
    path = next((folder / name for name in _CONFIGS if (folder / name).is_file()), None)
    if path is None:
        return _Planned({}, {})
    text = inputs.read_text(path, inputs.TOOL_FILE_BYTES)
    options = {
        "model": _setting(text, "model", "name") or _setting(text, "model"),
        "framework": _setting(text, "framework"),
        "format": _setting(text, "dataset", "format"),
        "record length": _setting(text, "dataset", "record_length"),
        "batch size": _setting(text, "reader", "batch_size"),
        "read threads": _setting(text, "reader", "read_threads"),
        "fsync": _setting(text, "checkpoint", "fsync"),
    }
    amounts = {
        "training": _setting(text, "train", "epochs"),
        "checkpoint save": _setting(text, "checkpoint", "num_checkpoints_write"),
        "checkpoint load": _setting(text, "checkpoint", "num_checkpoints_read"),
    }
    return _Planned(
        {name: value for name, value in options.items() if value},
        {name: count(value) for name, value in amounts.items() if value},
    )


def _setting(text: str, section: str, key: str = "") -> str | None:
    """Of the workload in the YAML that DLIO's Hydra writes: two blanks for each level."""
    pattern = rf"^  {section}: (\S[^\n]{{0,199}})$"
    if key:
        pattern = rf"^  {section}:\n(?:    [^\n]{{0,999}}\n){{0,99}}?    {key}: (\S[^\n]{{0,199}})$"
    match = re.search(pattern, text, re.M)
    if match is None:
        return None
    return match[1]


def _completed(
    phase: FoundPhase,
    parts: Mapping[str, Sequence[tuple[str, float]]] | None,
    planned: _Planned,
) -> FoundPhase:
    phase = replace(phase, options={**phase.options, **planned.options})
    amount = planned.amounts.get(phase.name)
    if parts is None:
        return phase
    of_phase = parts[phase.name]
    if not of_phase:
        raise none_found(_TOOL, f"the times of epochs next to summary.json have no {phase.name}")
    if amount and len(of_phase) < amount:
        unit = {"training": "epochs"}.get(phase.name, "checkpoints")
        error = f"aborted: {len(of_phase)} of {amount} planned {unit} were completed"
        phase = replace(phase, error=phase.error or error)
    first, (last, last_s) = of_phase[0][0], of_phase[-1]
    until = datetime.fromisoformat(last) - datetime.fromisoformat(first)
    return replace(
        phase,
        started_utc=first,
        runtime_s=until.total_seconds() + last_s,
        stretches=tuple(of_phase),
        time_source="the times of its epochs or checkpoints",
        starts_within_s=_STARTS_WITHIN_S,
    )


# ---- files that are no results ----

_NO_RESULT = "no result: import the summary.json next to it"


def read_other(text: str) -> Iterator[FoundReport]:
    """The settings of a run, the times of its epochs and its log."""
    raise none_found(_TOOL, _NO_RESULT)


def _reject_aborted(files: Sequence[FoundFile]) -> None:
    """Marks the other files in the folder of a run as its parts; without a summary it has no
    result."""
    folders = {file.path.parent for file in files if file.tool == _TOOL and file.form == "json"}
    for file in files:
        is_other = file.tool is None or file.form == "other"
        folder = file.path.parent
        if folder.name in _SETTINGS:
            folder = folder.parent
        if is_other and folder in folders:
            file.is_part = True
        elif file.form == "other" and not (file.path.parent / "summary.json").is_file():
            file.reject(
                f"{_TOOL}: no summary.json next to it: the run was aborted, or only prepared "
                "data; import the folder of a complete run"
            )


def _flushes(options: Mapping[str, str]) -> bool:
    return options.get("fsync") == "true"


RULES = {
    _TOOL: Rules(
        level="application",
        flushes=_flushes,
        reject_repeated=_reject_aborted,
        remarks={"no result of MLPerf": _NOT_MLPERF},
        complete=_complete,
    )
}
FORMATS = (
    Format(
        _TOOL, "json", read_summary, keys=("num_accelerators", "metric", "data_size_per_host_GB")
    ),
    Format(_TOOL, "other", read_other, keys=("benchmark_type", "run_datetime")),
    *(
        Format(_TOOL, "other", read_other, keys=(f"{begin}1", "start", "duration"))
        for begin in _KINDS.values()
    ),
    Format(
        _TOOL,
        "other",
        read_other,
        begins=re.compile(r"^\[(?:INFO|OUTPUT)\] \d{4}-\S{1,40} Running DLIO ", re.M),
    ),
)
