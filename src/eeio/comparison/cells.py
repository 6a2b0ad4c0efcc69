"""Cells: each experiment on one machine and device, with the values of its repetitions."""

import statistics as descriptive
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from eeio.analysis.domain_figures import mixed_calibrations
from eeio.analysis.io_label import io_label
from eeio.analysis.meter_agreement import agreement
from eeio.analysis.metrics import METRICS, Metric, in_cells
from eeio.analysis.observation import Key, Missing, Observation, Value
from eeio.analysis.ranking import why_unsure
from eeio.analysis.repetitions import Repetitions, repetitions_of
from eeio.analysis.selection import (
    is_compared,
    main_source,
    repetitions_by_source,
    source_by_domain,
)
from eeio.errors import EeioError
from eeio.record.design import PlannedExperiment
from eeio.record.run import DEMO, DOMAINS, EnergyReading, Experiment, Phase
from eeio.record.store import Campaign, once
from eeio.record.windows import GB, Window, flush_of, request_size_of
from eeio.units.quantities import MOST_UNCERTAIN
from eeio.units.sizes import format_size

BANDWIDTH, EFFICIENCY = "bandwidth_bytes_per_s", "efficiency_bytes_per_j"
POWER = {domain: f"power_{domain}_w" for domain in DOMAINS}
TESTED = (BANDWIDTH, *POWER.values(), EFFICIENCY)
"""Metrics in which the effects of factors are tested."""
P99 = "latency_p99_s"
"""The 99th percentile of the latency of single requests: stored, but not compared by itself."""
J_PER_GB, S_PER_GB = "energy_j_per_gb", "seconds_per_gb"
"""Energy and time of 10^9 bytes, of the power domain that the efficiency is of: for layers."""
J_PER_GB_OF = {domain: f"energy_{domain}_j_per_gb" for domain in DOMAINS}
OF_EFFICIENCY = frozenset(metric.key for metric in METRICS if metric.of_domain)
"""Those of the widest power domain."""
OF_POWER = OF_EFFICIENCY.union(POWER.values(), J_PER_GB_OF.values())
"""All that depend on a power meter."""
EXECUTION_S = "execution_s"
"""The time of one execution of a command (`eeio bench`)."""
COMMAND = "command"
"""The tool of `eeio bench`."""
IOPS, TIME = "iops", "time_s"
"""Requests a second; and the time of one execution, of 10^9 bytes or of one operation."""
UNCERTAINTY = "uncertainty_relative"
"""The uncertainty of that energy, as a share of it."""

Where = Mapping[str, str | Sequence[str]]
"""Factor -> the level, or the levels of which one is wanted."""

UNKNOWN = "unknown"
_PROCESSORS = ("frequency_hz", "smt", "turbo")
_NOT_MODELLED = Missing("only a modelled power, which no comparison uses")
NOT_MEASURED = Missing("not measured")


@dataclass(frozen=True)
class Measured:
    """A metric of a cell: `values` of the repetitions, and `runs`, the places of these in the
    campaign's order. For an adaptive campaign, `levelled` are the values without the effect of
    their round (`without_drift`), for tests inside the campaign; medians are of `values`."""

    values: tuple[float, ...]
    runs: tuple[int, ...] = ()
    levelled: tuple[float, ...] = ()


@dataclass(frozen=True)
class Cell:
    """One experiment on one machine and device.

    `factors` are its levels by name (`machine`, `device`, `type`, `operation`, `spatiality`,
    `size`, `buffer`, `flush`, ...); `durable` is, for writes, whether bandwidth and power run until
    the bytes are on the device (`yes`, `no`, `unknown` in records of version 1). `figures` are the
    metrics.
    """

    factors: Mapping[str, str]
    figures: Mapping[str, Measured | Missing]
    left_out: str | None = None
    """Why some of the valid repetitions are not used."""
    invalid_runs: int = 0
    efficiency_of: tuple[str, ...] = ()
    """The power domain to which its MB/J applies."""
    meters: Mapping[str, str] = field(default_factory=dict)
    """The meter of each power domain."""
    doubts: tuple[str, ...] = ()
    """Which of its powers another meter contradicts, and how."""
    request_size_bytes: int | None = None
    """The bytes of the level `size`; None if there is no single size."""
    experiment_id: str = ""
    work_bytes: int | None = None
    """The bytes that each repetition moved, if all moved the same number; None otherwise."""
    command: str = ""
    """Of `eeio bench`: the command's text, or the name that it was given."""
    is_direction: bool = False
    """One direction of an experiment that reads and writes at the same time: its bytes and its
    energy are those of another cell."""
    details: tuple[str, ...] = ()
    """How it differs from other experiments of its tool, but for its factors of their own."""

    @cached_property
    def measured(self) -> dict[str, Measured]:
        """The metrics that have values."""
        return {
            metric: figure
            for metric, figure in self.figures.items()
            if not isinstance(figure, Missing)
        }

    def values(self, metric: str) -> tuple[float, ...]:
        """Of the repetitions; none of a metric that was not measured."""
        measured = self.measured.get(metric)
        if measured is None:
            return ()
        return measured.values

    def why(self, metric: str) -> str | None:
        """Why it was not measured; None if it was, or if no reason is known."""
        figure = self.figures.get(metric)
        if isinstance(figure, Missing):
            return figure.reason
        return None

    def tested(self, metric: str) -> tuple[float, ...]:
        """The values for a test against another cell of the same campaign."""
        measured = self.measured.get(metric)
        if measured is None:
            return ()
        return measured.levelled or measured.values

    @cached_property
    def _counts(self) -> dict[str, int]:
        return {metric: len(measured.values) for metric, measured in self.measured.items()}

    def n(self, metric: str) -> int:
        return self._counts.get(metric, 0)

    def together(self, *metrics: str) -> tuple[list[tuple[float, ...]], int]:
        """The values of each run that has all these metrics, in the order of the runs; and how
        many runs lack one of them."""
        measured = []
        for metric in metrics:
            if metric in self.measured:
                measured.append(self.measured[metric])
        of_run = [dict(zip(each.runs, each.values, strict=True)) for each in measured]
        every = set().union(*of_run)
        complete = []
        if len(of_run) == len(metrics):
            complete = sorted(every.intersection(*of_run))
        both = [tuple(by_run[run] for by_run in of_run) for run in complete]
        return both, len(every) - len(complete)

    @cached_property
    def _medians(self) -> dict[str, float]:
        medians = {}
        for name, measured in self.measured.items():
            medians[name] = descriptive.median(measured.values)
        # The median of an even number of reciprocals is another one.
        if EFFICIENCY in medians and self.n(EFFICIENCY) == self.n(J_PER_GB):
            medians[EFFICIENCY] = GB / medians[J_PER_GB]
        return medians

    def median(self, metric: str) -> float:
        """Raises KeyError for a metric that was not measured."""
        return self._medians[metric]

    def known(self, metric: str) -> float | None:
        """The median; None for a metric that was not measured."""
        return self._medians.get(metric)

    def label(self, without: Iterable[str] = (), tool: bool = False) -> str:
        """The cell in one line: `PC HDD1: sequential write, 32 KiB, buffer off`; with its level,
        tool, details and target when `tool` is true. Omits factors left as found. For a command of
        `eeio bench`, its name or its text."""
        left = {}
        for name, level in self.factors.items():
            if name not in set(without) and level != "as found":
                left[name] = level
        place = " ".join(left[k] for k in ("machine", "device") if k in left)
        names = self._tool(left) if tool else self.details
        parts = list(filter(None, (_kind(left), *_settings(left, without), *names)))
        text = self.command or ", ".join(parts)
        if place:
            return f"{place}: {text}"
        return text

    def _tool(self, levels: Mapping[str, str]) -> list[str]:
        """Its level, tool with details, and target."""
        tool = ""
        if "tool" in levels:
            tool = " ".join((levels["tool"], *self.details))
        return list(filter(None, (levels.get("level"), tool, levels.get("target"))))


def _kind(levels: Mapping[str, str]) -> str:
    if "operation" in levels:
        return io_label(levels["operation"], levels.get("spatiality"), levels.get("phase"))
    phase = ""
    if "phase" in levels:
        phase = f"({levels['phase']})"
    return f"{levels.get('spatiality', '')} {phase}".strip()


def _settings(levels: Mapping[str, str], without: Iterable[str]) -> list[str]:
    """`32 KiB`, `buffer off`, `load 50 %`, `flush end`."""
    texts = []
    if "size" in levels:
        texts = [levels["size"]]
    for name in ("buffer", "disk"):
        if name in levels:
            texts.append(f"{name} {levels[name]}")
    if "load" not in without:
        arguments = [text.partition("=") for text in levels.get("arguments", "").split()]
        texts += [f"load {value} %" for name, _, value in arguments if name == "load"]
    if "frequency" in levels:
        texts.append(levels["frequency"])
    texts += [f"{name} {levels[name]}" for name in ("smt", "turbo") if name in levels]
    if levels.get("flush", UNKNOWN) != UNKNOWN:
        texts.append(f"flush {levels['flush']}")
    if levels.get("durable") == "no":
        return [*texts, "not durable"]
    return texts


def size_label(size_bytes: int | None) -> str:
    if size_bytes is None:
        return "any"
    return format_size(size_bytes)


def machine_names(campaigns: Sequence[Campaign]) -> list[str]:
    """The name of each campaign's machine: its host name, or the campaign's name if two campaigns
    ran on the same drive of the same machine or the host is not known. Raises EeioError if two
    drives of a machine have one label."""
    ids: dict[tuple[str, str], str] = {}
    for campaign in campaigns:
        machine = campaign.machine
        if machine.drive_label is None or machine.drive_id is None:
            continue
        other = ids.setdefault((machine.hostname, machine.drive_label), machine.drive_id)
        if other != machine.drive_id:
            raise EeioError(
                f"two drives of {machine.hostname} have the label {machine.drive_label!r} "
                f"({other} and {machine.drive_id}): give them different ones with --drive-label"
            )
    places = [(c.machine.hostname, c.machine.drive_name) for c in campaigns]
    return [
        place[0] if places.count(place) == 1 and place[0] != UNKNOWN else campaign.name
        for campaign, place in zip(campaigns, places, strict=True)
    ]


def cells_of(campaign: Campaign, machine_name: str | None = None) -> list[Cell]:
    """The cells of one campaign. Invalid runs and phases are counted but not used."""
    cells = once(campaign, "cells", _cells_of, tuple[Cell, ...])
    if machine_name in (None, campaign.machine.hostname):
        return list(cells)
    return [replace(cell, factors={**cell.factors, "machine": str(machine_name)}) for cell in cells]


def _cells_of(campaign: Campaign) -> tuple[Cell, ...]:
    machine = campaign.machine
    kind = {True: "HDD", False: "SSD", None: "unknown"}[machine.device_rotational]
    place = {
        "machine": machine.hostname,
        "device": machine.drive_name,
        "type": kind,
    }
    # Each machine's pilot finds its size; comparisons are per byte and per second. A run that a
    # pilot shortened represents the full run, as the pilot proved.
    planned = {planned.experiment.id: planned for planned in campaign.design.experiments}
    cells = []
    for id, of_experiment in repetitions_of(campaign).items():
        for repetitions in of_experiment:
            if repetitions.experiment.level != "context":
                cells.append(
                    replace(
                        _cell(place, repetitions, planned.get(id)),
                        details=campaign.details.get(id, ()),
                    )
                )
    doubts = tuple(message for _, message in agreement(campaign).contradictions)
    if doubts:
        cells = [
            replace(cell, doubts=(*cell.doubts, *doubts))
            if any(map(cell.n, POWER.values()))
            else cell
            for cell in cells
        ]
    return tuple(cells)


@dataclass(frozen=True)
class _Collected:
    """Values by metric and place of the run in the campaign, and why others are missing."""

    metrics: Sequence[Metric] = field(default_factory=in_cells)
    values: dict[str, dict[int, float]] = field(default_factory=dict)
    missing: dict[str, Missing] = field(default_factory=dict)
    efficiency_of: dict[str, None] = field(default_factory=dict)
    doubts: dict[str, None] = field(default_factory=dict)
    readings: dict[str, list[EnergyReading]] = field(default_factory=dict)
    """Of each power domain."""

    def add(self, metric: str, place: int, value: Value) -> None:
        if not isinstance(value, Missing):
            self.values.setdefault(metric, {}).setdefault(place, value)
        elif self.missing.get(metric, NOT_MEASURED) is NOT_MEASURED:
            self.missing[metric] = value

    def add_all(self, metric: str, places: Sequence[int], values: Sequence[Value]) -> None:
        for place, value in zip(places, values, strict=True):
            self.add(metric, place, value)

    def meter(self, domain: str, name: str) -> str:
        """Its name with its calibration, which changes its powers."""
        calibrations = {each.calibration for each in self.readings.get(domain, ())}
        if len(calibrations) == 1 and (calibration := calibrations.pop()) is not None:
            return f"{name}, {calibration}"
        return name

    def figures(self) -> dict[str, Measured | Missing]:
        measured = {}
        for metric, of_run in self.values.items():
            measured[metric] = Measured(tuple(of_run.values()), tuple(of_run))
        return {**self.missing, **measured}


def _cell(
    place: Mapping[str, str], repetitions: Repetitions, planned: PlannedExperiment | None
) -> Cell:
    experiment, first = repetitions.experiment, repetitions.first
    used, left_out = repetitions.judged
    run_of = repetitions.run_of
    collected = _Collected()
    windows = [observation.window for observation in used]
    by_source = repetitions_by_source([window.energy for window in windows], is_compared)
    meters = source_by_domain(by_source)
    main = main_source(by_source, experiment.cost_domains)
    places = [run_of[id(observation.phase)].order_index for observation in used]
    of_main = []
    for place_of_run, observation in zip(places, used, strict=True):
        of_main.append(_collect_powers(collected, place_of_run, observation, meters, main))
    for compared in collected.metrics:
        collected.add_all(compared.key, places, list(map(compared.value, of_main)))
    for readings in collected.readings.values():
        if (mixed := mixed_calibrations(readings)) is not None:
            collected.doubts[mixed] = None
    for metric in (BANDWIDTH, EFFICIENCY, *POWER.values()):
        collected.missing.setdefault(metric, NOT_MEASURED)
    moved = {observation.phase.bytes_moved for observation in used}
    arguments = dict(experiment.arguments)
    return Cell(
        {**place, **_factors(experiment, first, planned, windows)},
        collected.figures(),
        left_out,
        len(repetitions.runs) - len(repetitions.good),
        tuple(collected.efficiency_of),
        {domain: collected.meter(domain, meter) for domain, (_, meter, _) in meters.items()},
        tuple(collected.doubts),
        request_size_of(experiment, first),
        experiment.id,
        moved.pop() if len(moved) == 1 else None,
        arguments.get("words", "") if experiment.tool == COMMAND else "",
        repetitions.is_direction,
    )


def _collect_powers(
    collected: _Collected,
    place: int,
    observation: Observation,
    meters: Mapping[str, Key],
    main: Key | None,
) -> Observation:
    """Adds the powers of one repetition; returns it by `main`, the source of its MB/J."""
    window = observation.window
    of_main = observation.not_read(NOT_MEASURED)
    for domain, power in POWER.items():
        reading = _reading(window.energy, domain, meters.get(domain))
        if isinstance(reading, Missing):
            collected.add(power, place, reading)
            if domain in window.cost_domains and of_main.why_not_read is NOT_MEASURED:
                of_main = observation.not_read(reading)
            continue
        by_domain = observation.of(reading)
        collected.readings.setdefault(domain, []).append(reading)
        collected.add(power, place, by_domain.power_w)
        collected.add(J_PER_GB_OF[domain], place, by_domain.j_per_gb)
        if reading.key == main:
            of_main = by_domain
        if reading.doubtful:
            collected.doubts.update(dict.fromkeys(reading.reasons))
    s_per_gb = window.seconds_per_gb(window.duration_s)
    if s_per_gb is not None:
        collected.add(S_PER_GB, place, s_per_gb)
    widest = of_main.reading
    if widest is not None and not isinstance(of_main.bytes_per_j, Missing):
        collected.efficiency_of.setdefault(_described_domain(widest))
    return of_main


def _described_domain(reading: EnergyReading) -> str:
    """Such as `system without drives (demo)`."""
    without = ""
    if reading.leaves_drives_out:
        without = " without drives"
    demo = ""
    if reading.kind == DEMO:
        demo = " (demo)"
    return f"{reading.domain}{without}{demo}"


def _factors(
    experiment: Experiment,
    first: Phase,
    planned: PlannedExperiment | None,
    windows: Sequence[Window],
) -> dict[str, str]:
    """Factor -> level, of everything but the machine and the drive."""
    arguments = dict(experiment.arguments)
    own = {}
    for key, value in arguments.items():
        if key not in _PROCESSORS:
            own[key] = value
    return {
        "level": experiment.level,
        "tool": experiment.tool,
        "target": experiment.target,
        "operation": first.operation,
        "spatiality": first.spatiality or "unknown",
        "size": size_label(request_size_of(experiment, first)),
        "buffer": experiment.cache.buffer or "as found",
        "disk": experiment.cache.disk or "as found",
        "flush": flush_of(experiment, first.operation) or "as found",
        "durable": _durable(experiment, windows),
        "api": experiment.api,
        "processes": str(experiment.processes),
        "phase": first.name,
        **_processors(arguments),
        "arguments": " ".join(f"{key}={_argument(key, own[key], planned)}" for key in own),
    }


def _processors(arguments: Mapping[str, str]) -> dict[str, str]:
    """The processor settings of the experiment."""
    hz = arguments.get("frequency_hz")
    return {
        "frequency": "as found" if hz is None else f"{int(hz) / 1e9:g} GHz",
        "smt": arguments.get("smt", "as found"),
        "turbo": arguments.get("turbo", "as found"),
    }


def _argument(name: str, value: str, planned: PlannedExperiment | None) -> str:
    """The value as comparisons show it: pilot results may differ between machines."""
    if planned is None:
        return value
    if name == planned.sized:
        return "as-sized"
    if name == "runtime_s":
        return planned.cut_from or value
    return value


def _durable(experiment: Experiment, windows: Sequence[Window]) -> str:
    """`as found` for experiments that write no data, and if there is no measurement."""
    if not windows or windows[0].durable is None:
        return "as found"
    if windows[0].durable:
        return "yes"
    if experiment.flush is None:
        return UNKNOWN
    return "no"


def _reading(
    energy: Sequence[EnergyReading], domain: str, key: Key | None
) -> EnergyReading | Missing:
    """The usable reading of a domain by the meter `key`, or why there is none."""
    missing = NOT_MEASURED
    for reading in energy:
        if reading.domain != domain:
            continue
        if is_compared(reading):
            if reading.key == key:
                return reading
        elif missing is NOT_MEASURED:
            missing = _why_unused(reading)
    return missing


def _why_unused(reading: EnergyReading) -> Missing:
    if reading.kind == "modelled":
        return _NOT_MODELLED
    reason = reading.why_not_ranked or next(iter(reading.reasons), None)
    if reason is None:
        return NOT_MEASURED
    return Missing(reason)


def largest_uncertainty(*cells: Cell) -> float:
    """Of their energies, as a share; 0 where no meter states one."""
    return max((cell.known(UNCERTAINTY) or 0.0 for cell in cells), default=0.0)


def why_energy_unsure(*cells: Cell, most: float = MOST_UNCERTAIN) -> str | None:
    """Why their powers and energies are compared with no other; None if they are."""
    doubts = list[str]()
    for cell in cells:
        doubts.extend(cell.doubts)
    return why_unsure(doubts, largest_uncertainty(*cells), most)


def without_unsure_energy(cell: Cell, most: float = MOST_UNCERTAIN) -> Cell:
    """The cell, with the reason in place of powers and energies that are compared with no other."""
    reason = why_energy_unsure(cell, most=most)
    if reason is None:
        return cell
    unsure = dict.fromkeys(OF_POWER.intersection(cell.measured), Missing(reason))
    return replace(cell, figures={**cell.figures, **unsure})


def fits(cell: Cell, where: Where) -> bool:
    """Whether the cell has each named level; a list means any of its levels."""
    for name, wanted in where.items():
        level = cell.factors.get(name)
        if level != wanted and (isinstance(wanted, str) or level not in wanted):
            return False
    return True


def why_too_slow(cell: Cell, max_p99_s: float | None) -> str | None:
    """Why a cell exceeds a median p99 latency of that many seconds. None if it does not, or if
    there is no limit."""
    if max_p99_s is None:
        return None
    if not cell.n(P99):
        return "its tool reports no p99 latency"
    median_s = cell.median(P99)
    if median_s <= max_p99_s:
        return None
    return f"its p99 latency is {1e3 * median_s:.4g} ms, above {1e3 * max_p99_s:.4g} ms"
