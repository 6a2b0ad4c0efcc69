"""Runs that share a process: short commands of `eeio bench` without a meter.

The start of a process of a run, and the checks around it, take a hundred times as long as a short
command. Without a meter nothing is read between two executions. So one process executes a command
for all runs of it that follow each other, with one check around them, and each execution is a run
of the records.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

from eeio.errors import ToolOutputError
from eeio.files import inputs
from eeio.record.design import PlannedRun
from eeio.record.run import Phase, Run
from eeio.units import quantities as q

FACTOR = "process"
SHARED = "shared"
"""Value of the factor: the runs of the experiment may share a process."""
_MEANS = (
    "asked_bytes",
    "bytes_read",
    "bytes_written",
    "context_switches",
    "instructions",
    "cycles",
    "user_instructions",
    "user_cycles",
)
"""Metrics that the process counts of all executions."""
_LONGEST_S = 1.0
"""Of an execution: only commands that take much less share a process."""
ONE_FLUSH = "it shared a process with other runs, after which there was one flush"


def groups(runs: Sequence[PlannedRun]) -> list[list[PlannedRun]]:
    """The runs in their order; those that share a process are in one list."""
    made: list[list[PlannedRun]] = []
    for _, following in groupby(runs, key=lambda run: run.experiment.experiment.id):
        group = list(following)
        if group[0].experiment.factors.get(FACTOR) == SHARED:
            made.append(group)
        else:
            made.extend([run] for run in group)
    return made


def joined(group: Sequence[PlannedRun]) -> PlannedRun:
    """One run that executes the command as often as all runs of the group."""
    first = group[0]
    factors = dict(first.experiment.factors)
    factors["count"] = str(len(group))
    factors["timeout_s"] = f"{float(factors['timeout_s']) + len(group) * _LONGEST_S:g}"
    return replace(first, experiment=replace(first.experiment, factors=factors))


def separated(run: Run, group: Sequence[PlannedRun], raw: Path) -> list[Run]:
    """A run for each of the group, from the one that executed all; `raw` has its output.

    Bytes and counts of an execution are the mean of all. If the run cannot be used, so can none of
    the group.
    """
    if not run.phases:
        return [_of(run, planned) for planned in group]
    (phase,) = run.phases
    executions = _executions(raw)
    if len(executions) != len(group):
        reason = f"{len(executions)} of {len(group)} executions were recorded"
        return [replace(_of(run, planned), phases=(), validity=(reason,)) for planned in group]
    # Samples of the processors, and times of all processes, are not of one execution.
    common = replace(run, processor=None, stolen_s=None, throttle_events=None)
    separate = []
    for planned, execution in zip(group, executions, strict=True):
        separate.append(_with_execution(_of(common, planned), phase, execution, len(group)))
    return separate


@dataclass(frozen=True)
class _Execution:
    """One execution, of command.json. Times are CLOCK_MONOTONIC, s."""

    start_s: float
    end_s: float
    user_s: float
    system_s: float
    peak_bytes: int
    code: int


def _executions(raw: Path) -> list[_Execution]:
    """Raises ToolOutputError."""
    path = raw / "command.json"
    try:
        body = inputs.parse_json(path.read_bytes(), inputs.TOOL_FILE_BYTES)
        return [_execution(values) for values in body["each"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ToolOutputError(f"{path}: not a command's record: {error!r}") from error


def _execution(values: Any) -> _Execution:
    start_s, end_s, user_s, system_s, peak_bytes, code = values
    return _Execution(
        q.TIMESTAMP.checked(start_s, "start"),
        q.TIMESTAMP.checked(end_s, "end"),
        q.DURATION.checked(user_s, "user_s"),
        q.DURATION.checked(system_s, "system_s"),
        q.SIZE.whole_number(peak_bytes, "memory"),
        q.EXIT_CODE.whole_number(code, "exit code"),
    )


def _of(run: Run, planned: PlannedRun) -> Run:
    return replace(run, repetition=planned.repetition, order_index=planned.order_index)


def _with_execution(run: Run, phase: Phase, execution: _Execution, count: int) -> Run:
    """The run of that execution, which was one of `count`."""
    lasted_s = execution.end_s - execution.start_s
    metrics = {
        "executions": 1.0,
        "user_s": execution.user_s,
        "system_s": execution.system_s,
        "processor_s": execution.user_s + execution.system_s,
        "executed_s": lasted_s,
        f"exit_code_{execution.code}": 1.0,
    }
    if "memory_peak_bytes" in phase.metrics:
        metrics["memory_peak_bytes"] = float(execution.peak_bytes)
    else:
        metrics["memory_most_bytes"] = phase.metrics["memory_most_bytes"]
    for name in _MEANS:
        if name in phase.metrics:
            metrics[name] = phase.metrics[name] / count
    moved = None
    if phase.bytes_moved is not None:
        moved = phase.bytes_moved // count
    rate = None
    if moved and lasted_s > 0:
        rate = moved / lasted_s
    durable_reason = phase.durable_reason
    if phase.until_durable is not None:
        durable_reason = ONE_FLUSH
    offset_s = execution.start_s - run.started_monotonic_s
    return replace(
        run,
        started_utc=_later(run.started_utc, offset_s),
        started_monotonic_s=execution.start_s,
        duration_s=lasted_s,
        phases=(
            replace(
                phase,
                metrics=metrics,
                bytes_moved=moved,
                bandwidth_bytes_per_s=rate,
                start_s=0.0,
                end_s=lasted_s,
                until_durable=None,
                durable_reason=durable_reason,
            ),
        ),
    )


def _later(utc: str, seconds: float) -> str:
    moved = datetime.fromisoformat(utc) + timedelta(seconds=seconds)
    return moved.isoformat(timespec="milliseconds")
