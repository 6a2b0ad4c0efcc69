"""Outputs of tools as the runs of a map: one file is one run, read by the readers of `eeio import`.

lmbench's results are machine figures too, so its own parser reads them.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from eeio.errors import EeioError, LimitError, ToolOutputError
from eeio.files import inputs
from eeio.record import consistency
from eeio.record.run import NOT_STATED, OPERATIONS, ContextValue, Phase
from eeio.units import quantities
from eeio_parsers import formats
from eeio_parsers.found import FoundPhase, FoundReport, with_mixed
from eeio_parsers.lmbench import run as lmbench

_NO_WINDOW = "imported: eeio did not observe its I/O"
_NOT_DURABLE = "imported: the file does not report when its bytes were on the device"


@dataclass(frozen=True)
class Output:
    """The phases of one run. `duration_s` is 0 if the file reports no time."""

    phases: tuple[Phase, ...]
    duration_s: float
    context: tuple[ContextValue, ...] = ()
    notes: tuple[str, ...] = ()


def read(form: str, text: str, source: str, factors: Mapping[str, str] | None = None) -> Output:
    """The run of one file; `factors` of the map are used where the file does not report them.

    Raises ToolOutputError with the source if a file is cut off, damaged, of another tool than
    `form` names, or reports an error.
    """
    with _named(source):
        if form == "lmbench":
            result = lmbench.parse_results(text, source)
            phases = tuple(phase.recorded() for phase in result.phases)
            return Output(phases, _longest_s(phases), result.context, result.notes)
        tool, reports = _reports(form, text, source)
        return _run(tool, reports, factors or {})


def read_each(form: str, text: str, source: str) -> list[tuple[FoundReport, Output]]:
    """The runs of a file, one for each report. Raises ToolOutputError as `read`."""
    with _named(source):
        tool, reports = _reports(form, text, source)
        return [(report, _run(tool, [report], {})) for report in reports]


@contextmanager
def _named(source: str) -> Iterator[None]:
    """Errors as ToolOutputError with the source."""
    try:
        yield
    except ToolOutputError as error:
        message = str(error)
        raise ToolOutputError(message if source in message else f"{source}: {message}") from error
    except (EeioError, LimitError, ValueError, KeyError, TypeError, ArithmeticError) as error:
        raise ToolOutputError(f"{source}: damaged, or cut off: {error!s:.150}") from error


def _reports(form: str, text: str, source: str) -> tuple[str, list[FoundReport]]:
    """The tool and its reports."""
    if not text.lstrip().startswith(("{", "[")):
        inputs.check_lines(text)
    text = formats.unlabelled(text)
    kind = formats.format_of(text, Path(source))
    if kind is None:
        raise ToolOutputError(f"no result of a known tool; it begins {text[:60]!r}")
    if not formats.is_named(kind.tool, form):
        raise ToolOutputError(f"the map says {form}, but this is an output of {kind.tool}")
    reports = list(kind.reports(text))
    if formats.rules_of(kind.tool).groups_at_once:
        reports = list(map(with_mixed, reports))
    return kind.tool, reports


def _run(tool: str, reports: Sequence[FoundReport], factors: Mapping[str, str]) -> Output:
    found = [phase for report in reports for phase in report.work]
    if error := next((phase.error for phase in found if phase.error), None):
        raise ToolOutputError(error)
    if not found:
        raise ToolOutputError("no result in it")
    phases = tuple(
        replace(recorded(_completed(phase, factors), tool), name=name)
        for phase, name in zip(found, _names(found), strict=True)
    )
    return Output(phases, _longest_s(phases), notes=tuple(_notes(reports)))


def _completed(found: FoundPhase, factors: Mapping[str, str]) -> FoundPhase:
    return replace(
        found,
        operation=found.operation or factors.get("operation"),
        access_pattern=found.access_pattern or factors.get("spatiality"),
    )


def recorded(found: FoundPhase, tool: str | None) -> Phase:
    """As a phase of a run record, with the reasons why it cannot be used."""
    writes = found.operation in ("write", "mixed")
    flushed = writes and formats.rules_of(tool).flushes(found.options)
    phase = Phase(
        name=found.operation or found.name,
        operation=found.operation if found.operation in OPERATIONS else NOT_STATED,
        spatiality=found.access_pattern,
        request_size_bytes=found.request_bytes,
        bytes_moved=found.bytes if found.operation != "metadata" else 0,
        bandwidth_bytes_per_s=found.bandwidth_bytes_per_s,
        start_s=None,
        end_s=None,
        window_source=_NO_WINDOW,
        metrics=_metrics(found),
        energy=found.energy,
        durable_reason=_NOT_DURABLE if writes and not flushed else None,
        includes_flush=flushed,
    )
    return replace(phase, validity=tuple(_why_invalid(found, phase)))


def _metrics(found: FoundPhase) -> dict[str, float]:
    metrics = dict(found.metrics)
    for name in ("mean", "p50", "p95", "p99", "p999", "p9999"):
        # Percentiles in tables are of completion, and so is their mean.
        if (value := metrics.get(f"latency_completion_{name}_s")) is not None:
            metrics[f"latency_{name}_s"] = value
    if found.iops is not None:
        metrics["operations_per_s" if found.operation == "metadata" else "iops"] = found.iops
    if found.runtime_s is not None:
        metrics["runtime_s"] = found.runtime_s
    return metrics


def _why_invalid(found: FoundPhase, phase: Phase) -> Iterator[str]:
    if found.error:
        yield found.error
    if found.operation not in OPERATIONS:
        yield "neither a read nor a write, or the file does not report which"
    if found.bytes == 0 and found.bandwidth_bytes_per_s:
        yield "a bandwidth without bytes"
    if (why := consistency.disagreement(phase)) is not None:
        yield why


def _names(found: Sequence[FoundPhase]) -> Iterator[str]:
    """A name of its own for each phase, so that no two become one row."""
    of_operation = Counter(phase.operation for phase in found)
    names = [
        phase.operation if phase.operation and of_operation[phase.operation] == 1 else phase.name
        for phase in found
    ]
    count = Counter(names)
    seen: Counter[str] = Counter()
    for name in names:
        yield name if count[name] == 1 else f"{name} {seen[name]}"
        seen[name] += 1


def _notes(reports: Sequence[FoundReport]) -> Iterator[str]:
    yield from dict.fromkeys(note for report in reports for note in report.notes)


def _longest_s(phases: Sequence[Phase]) -> float:
    """How long the I/O of a run lasted, as the tool reports it or from bytes and bandwidth; phases
    of groups may have run at the same time."""
    durations = []
    for phase in phases:
        rate, moved = phase.bandwidth_bytes_per_s, phase.bytes_moved
        computed_s = 0.0
        if rate:
            computed_s = (moved or 0) / rate
        durations.append(phase.metrics.get("runtime_s", computed_s))
    return max((one for one in durations if quantities.DURATION.contains(one)), default=0.0)
