"""Whether what was read can be: types and ranges of records, beyond what their schema says.

Everything that makes a record of what others wrote (parsers, loaders, importers) goes through
here. The ranges are those of `eeio_limits.quantities`; refusals are LimitErrors, to which who
called adds the file and the line.
"""

import types
from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from eeio_limits import LimitError
from eeio_limits import quantities as q
from eeio_results.record import (
    DOMAINS,
    ContextValue,
    EnergyReading,
    Experiment,
    Machine,
    Phase,
    Run,
    Tool,
)

_FACTORS: Mapping[str, tuple[str | None, ...]] = types.MappingProxyType(
    {
        "level": ("device", "filesystem", "library", "application", "context"),
        "operation": ("read", "write", "mixed", "metadata", None),
        "spatiality": ("sequential", "random", "strided", "mixed", "none", None),
    }
)
_KINDS = ("measured", "device-reported", "modelled")


def check_run(run: Run) -> None:
    """Raises LimitError for the first value that cannot be."""
    q.COUNT.checked(run.order_index, "order_index")
    q.COUNT.checked(run.repetition, "repetition")
    q.TIMESTAMP.checked(run.started_monotonic_s, "started_monotonic_s")
    q.DURATION.checked(run.duration_s, "duration_s")
    q.EXIT_CODE.checked(run.exit_code, "exit_code")
    for name, value in (("prepare_s", run.prepare_s), ("sync_s", run.sync_s)):
        _if_there(q.DURATION, value, name)
    for counters in (run.device_before, run.device_after):
        if counters is not None:
            q.SIZE.checked(counters.read_bytes, "bytes read of the device")
            q.SIZE.checked(counters.written_bytes, "bytes written of the device")
    check_experiment(run.experiment)
    for phase in run.phases:
        check_phase(phase)
    for figure in run.context:
        check_context(figure)
    if run.processor is not None:
        series = run.processor
        if not len(series.times_s) == len(series.use) == len(series.frequency_hz):
            raise LimitError("processor: columns of different lengths")
        for time_s in series.times_s:
            if not q.OFFSET.holds(time_s):
                raise LimitError(q.OFFSET.refusal(time_s, "processor: times_s"))
        for quantity, column in ((q.SHARE, series.use), (q.FREQUENCY, series.frequency_hz)):
            for item in column:
                if item is not None and not quantity.holds(item):
                    raise LimitError(quantity.refusal(item, "processor"))


def check_experiment(experiment: Experiment) -> None:
    """Raises LimitError for a factor that cannot be."""
    for name, known in _FACTORS.items():
        if getattr(experiment, name) not in known:
            raise LimitError(f"{name}: {q.shortened(getattr(experiment, name))} is not known")
    check_types(experiment.cache)
    q.REQUEST_SIZE.checked(experiment.processes, "processes")
    _if_there(q.REQUEST_SIZE, experiment.request_size_bytes, "request_size_bytes")


def check_phase(phase: Phase) -> None:
    """Raises LimitError for a figure, a window or a reading that cannot be."""
    check_figures(
        phase.name,
        phase.request_size_bytes,
        phase.bytes_moved,
        phase.bandwidth_bytes_per_s,
        phase.start_s,
        phase.end_s,
        phase.metrics,
    )
    for reading in phase.energy:
        check_reading(reading)


def check_figures(
    name: str,
    request_size_bytes: object,
    bytes_moved: object,
    bandwidth_bytes_per_s: object,
    start_s: float | None,
    end_s: float | None,
    metrics: Mapping[str, object],
) -> None:
    """What a tool, or a record, tells of a phase. Raises LimitError."""
    _if_there(q.REQUEST_SIZE, request_size_bytes, f"{name}: request_size_bytes")
    _if_there(q.SIZE, bytes_moved, f"{name}: bytes_moved")
    _if_there(q.BANDWIDTH, bandwidth_bytes_per_s, f"{name}: bandwidth_bytes_per_s")
    _if_there(q.OFFSET, start_s, f"{name}: start_s")
    _if_there(q.OFFSET, end_s, f"{name}: end_s")
    if start_s is not None and end_s is not None and end_s < start_s:
        raise LimitError(f"{name}: it ends at {end_s} s, before its start at {start_s} s")
    for key, value in metrics.items():
        q.of_name(key).checked(value, f"{name}: {key}")


def check_context(value: ContextValue) -> None:
    """Raises LimitError for a figure of the machine that cannot be."""
    check_types(value)
    q.of_unit(value.unit).checked(value.value, value.name)


def check_reading(reading: EnergyReading) -> None:
    """Raises LimitError for a reading of power that cannot be, or says less than it must."""
    check_types(reading)
    where = f"{reading.meter} {reading.domain}"
    if reading.domain not in DOMAINS or reading.kind not in _KINDS:
        raise LimitError(f"{q.shortened(where)}: not a power domain or kind ({reading.kind!r})")
    _if_there(q.POWER, reading.power_w, f"{where}: power_w")
    _if_there(q.ENERGY, reading.energy_j, f"{where}: energy_j")
    _if_there(q.ENERGY, reading.uncertainty_j, f"{where}: uncertainty_j")
    _if_there(q.DURATION, reading.largest_gap_s, f"{where}: largest_gap_s")
    q.SHARE.checked(reading.coverage, f"{where}: coverage")
    q.COUNT.checked(reading.samples, f"{where}: samples")
    q.COUNT.checked(reading.lost, f"{where}: lost")


def check_machine(machine: Machine) -> None:
    """Raises LimitError for a machine whose description has other types than it must."""
    check_types(machine)
    for tool in machine.tools:
        if not isinstance(tool, Tool):
            raise LimitError("tools: not a list of tools")
        check_types(tool)
    q.COUNT.checked(machine.logical_cpus, "logical_cpus")
    for name in ("frequency_min_hz", "frequency_max_hz"):
        _if_there(q.FREQUENCY, getattr(machine, name), name)
    for name in ("memory_bytes", "device_size_bytes"):
        _if_there(q.SIZE, getattr(machine, name), name)


def check_body(body: Mapping[str, Any]) -> None:
    """Ranges, dates and factors in a campaign.json that follows its schema. Raises LimitError."""
    check_date(body["created_utc"] or "1970-01-01")
    protocol = body["protocol"]
    for name, quantity in (
        ("repetitions", q.COUNT), ("settle_s", q.PAUSE), ("idle_s", q.PAUSE),
    ):  # fmt: skip
        quantity.checked(protocol[name], f"protocol: {name}")
    if study := protocol.get("study"):
        _if_there(q.FRACTION, study["half_width"], "protocol: half_width")
    for item in (*body["experiments"], *body["not_measured"]):
        try:
            experiment = Experiment.from_json(item["experiment"])
        except (KeyError, TypeError, AttributeError) as error:
            raise LimitError(f"an experiment is damaged: {error!r}") from error
        check_types(experiment)
        check_experiment(experiment)
    for item in body["experiments"]:
        q.SIZE.checked(item["file_bytes"], "file_bytes")
        _if_there(q.FREQUENCY, item.get("frequency_hz"), "frequency_hz")
    known = {item["experiment_id"] for item in body["experiments"]}
    for place, repetition, seed in body["order"]:
        # What is imported has the experiment's id in place of its place.
        for number in (repetition, seed) if isinstance(place, str) else (place, repetition, seed):
            q.COUNT.checked(number, "order")
            if not isinstance(number, int):  # to JSON 1.0 is a whole number
                raise LimitError(f"order: {q.shortened(str(number))} is no whole number")
        if place not in known if isinstance(place, str) else place >= len(body["experiments"]):
            raise LimitError(f"order: there is no experiment {q.shortened(str(place))}")


def check_date(text: str) -> None:
    """Raises LimitError for what is no date and time by ISO 8601."""
    try:
        datetime.fromisoformat(text)
    except ValueError as error:
        raise LimitError(f"{q.shortened(text)} is no date: {error}") from None


def check_types(value: Any) -> None:
    """Whether each field of a dataclass has a type that it is declared with. Raises LimitError.

    Tuples and mappings are looked into for texts alone.
    """
    kind: Any = type(value)
    for name, allowed in _types(kind).items():
        item = getattr(value, name)
        if not any(_is(item, one) for one in allowed):
            raise LimitError(f"{name}: {q.shortened(item)} is no {_words(allowed)}")


@cache
def _types(kind: Any) -> dict[str, tuple[Any, ...]]:
    hints = get_type_hints(kind)
    return {item.name: tuple(_parts(hints[item.name])) for item in fields(kind)}


def _parts(hint: Any) -> list[Any]:
    if get_origin(hint) in (Union, types.UnionType):
        return [part for one in get_args(hint) for part in _parts(one)]
    return [hint]


def _is(item: object, kind: Any) -> bool:
    origin = get_origin(kind)
    if origin is Literal:
        return isinstance(item, str) and item in get_args(kind)
    if origin is tuple:
        of = get_args(kind)[0]
        looked_into = of is str or get_origin(of) is tuple
        return isinstance(item, tuple) and (not looked_into or all(_is(i, of) for i in item))
    if origin is not None:  # mappings of texts
        if not isinstance(item, Mapping):
            return False
        of = get_args(kind)[1]
        return all(isinstance(k, str) and _is(v, of) for k, v in item.items())
    if kind is float:
        return isinstance(item, int | float) and not isinstance(item, bool)
    if kind is int:
        return isinstance(item, int) and not isinstance(item, bool)
    return isinstance(item, kind)


def _words(allowed: tuple[Any, ...]) -> str:
    return " or ".join(
        "null" if one is type(None) else getattr(one, "__name__", str(one)) for one in allowed
    )


def _if_there(quantity: q.Quantity, value: object, what: str) -> None:
    if value is not None:
        quantity.checked(value, what)
