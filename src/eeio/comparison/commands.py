"""The commands of `eeio bench`: figures of one execution, and which command takes more."""

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from eeio.analysis.metrics import METRICS, best_first, named
from eeio.analysis.observation import NOT_READ, Key, Missing, Observation, Value, known, observed
from eeio.analysis.selection import is_powered, main_source, repetitions_by_source
from eeio.analysis.summary import Quartiles, bytes_per_j, quartiles, summarize
from eeio.comparison.attribution import attributed_j, drive_share, processor_share
from eeio.errors import EeioError
from eeio.files import inputs
from eeio.record.run import (
    COMMAND_READ,
    COMMAND_WRITTEN,
    DOMAINS,
    MEMORY_CACHE,
    EnergyReading,
    Phase,
    Run,
)
from eeio.record.store import Campaign
from eeio.record.windows import GB, window_of
from eeio.units.sizes import MB

FIGURES = (
    "duration_s",
    "cpu_s",
    "bytes_device_read",
    "bytes_device_written",
    "bytes_asked",
    "memory_peak_bytes",
    "energy_j",
    "power_w",
    "efficiency_bytes_per_j",
    "durable_s",
    "instructions",
    "cycles",
    "context_switches",
    "processor_share",
    "drive_share",
    "attributed_j",
)
"""Of one execution of a command; power of the time that the energy is of."""
_OF_ENERGY = ("energy_j", "power_w", "efficiency_bytes_per_j")
_COMPARED = ("energy_j", "duration_s", "durable_s", "power_w", "efficiency_bytes_per_j")
# As in hyperfine: a distance from the median of ten standard deviations, estimated by the median
# absolute deviation, which is a standard deviation over 1.4826.
_OUTLIER_DEVIATIONS = 14.826
# With fewer runs an unusual one cannot be identified.
_FEWEST_RUNS = 4
# So many pairs of commands that all are compared; of more, each with the first.
_ALL_PAIRS = 10


@dataclass(frozen=True)
class Bench:
    """One command: the values of each figure, one per run, or why it is missing. `phases` are those
    that count, with their executions. `label` is its name, or its text without one."""

    label: str
    parameters: Mapping[str, str]
    figures: Mapping[str, tuple[float, ...] | Missing]
    n: int
    exit_codes: Mapping[int, int]
    domain: str | None
    meter: str | None
    phases: tuple[Phase, ...] = ()
    doubts: tuple[str, ...] = ()
    """Why its energy may be wrong."""
    kind: str | None = None
    """How the power came about (`eeio.record.run.KINDS`)."""
    not_durable: str | None = None
    """Why its energy ends when it returned, although its bytes may not have been on the drive."""
    remarks: tuple[str, ...] = ()
    """Of its runs, the first of each kind: caches below the drive, limits that were reached, I/O of
    others."""
    text: str = ""
    """The command itself."""

    @property
    def outliers(self) -> tuple[float, ...]:
        """Times of runs that are far from the median of all, s."""
        times = self.values("duration_s")
        if len(times) < _FEWEST_RUNS:
            return ()
        median = statistics.median(times)
        distances = [abs(time - median) for time in times]
        # More than half of the runs took the same time.
        usual = statistics.median(distances) or statistics.fmean(distances)
        outliers = []
        for time, distance in zip(times, distances, strict=True):
            if distance > _OUTLIER_DEVIATIONS * usual:
                outliers.append(time)
        return tuple(outliers)

    @property
    def missing(self) -> dict[str, str]:
        """Figure -> why it is missing."""
        return {
            name: figure.reason
            for name, figure in self.figures.items()
            if isinstance(figure, Missing)
        }

    def values(self, name: str) -> tuple[float, ...]:
        """Of the runs; none of a missing figure."""
        figure = self.figures[name]
        if isinstance(figure, Missing):
            return ()
        return figure

    def quartiles(self, figure: str) -> Quartiles | None:
        """Over the runs."""
        values = self.values(figure)
        if figure == "efficiency_bytes_per_j":
            if values:
                return known(bytes_per_j(summarize(GB / value for value in values)))
            return None
        return quartiles(values)


@dataclass(frozen=True)
class Comparison:
    """`ratio` is of a over b: geometric means, with the 95 % interval of Student's t on logarithms;
    `verdict` is that of the test with three answers (statistics/decision.py)."""

    a: str
    b: str
    metric: str
    ratio: float | None
    interval: tuple[float, float] | None
    verdict: str
    reason: str | None


def benches(campaign: Campaign) -> list[Bench]:
    """The commands of a campaign, in the order of the request."""
    runs = campaign.runs_by_experiment()
    return [
        replace(
            _bench(
                planned.description,
                dict(planned.experiment.arguments),
                runs.get(planned.experiment.id, []),
                campaign.machine.logical_cpus,
            ),
            text=_text(campaign, planned.factors.get("command", '""')),
        )
        for planned in campaign.design.experiments
        if planned.experiment.tool == "command"
    ]


SORTS = tuple(
    metric.name.lower() for metric in METRICS if metric.better is not None and metric.key in FIGURES
)
"""Metrics that commands can be sorted by, with the names of `eeio report --sort`."""


def sorted_by(found: Sequence[Bench], name: str) -> list[Bench]:
    """By the median of one of SORTS, the best first; commands without it are last, in their
    order."""
    metric = named(name)

    def key(of_command: Bench) -> tuple[bool, float]:
        figure = of_command.quartiles(metric.key)
        return best_first(metric, None if figure is None else figure.median)

    return sorted(found, key=key)


def _text(campaign: Campaign, factor: str) -> str:
    """A command as typed, from the profile's factor. Raises EeioError."""
    try:
        call = inputs.parse_json(factor.encode(), inputs.RECORD_BYTES)
        if isinstance(call, str):
            return call
        return " ".join(call)
    except (ValueError, TypeError) as error:
        raise EeioError(
            f"{campaign.folder / 'campaign.json'}: the factor `command` is neither a text nor a "
            f"list of texts: {factor!r:.60}"
        ) from error


def comparisons(found: Sequence[Bench]) -> list[Comparison]:
    """Of each two commands, or of each with the first where they are many. Needs scipy."""
    from eeio.statistics.decision import Rule, change

    pairs = list(combinations(found, 2))
    if len(found) > _ALL_PAIRS:
        pairs = [(changed, found[0]) for changed in found[1:]]
    made = []
    for a, b in pairs:
        for metric in _COMPARED:
            first, second = b.figures[metric], a.figures[metric]
            reason = _why_not_compared(a, b, metric)
            if reason is not None or isinstance(first, Missing) or isinstance(second, Missing):
                made.append(Comparison(a.label, b.label, metric, None, None, "open", reason))
                continue
            changed = change(first, second, Rule())
            made.append(
                Comparison(
                    a.label,
                    b.label,
                    metric,
                    changed.ratio,
                    changed.interval,
                    changed.answer,
                    changed.reason,
                )
            )
    return made


def _why_not_compared(a: Bench, b: Bench, metric: str) -> str | None:
    for each in (a, b):
        figure = each.figures[metric]
        if isinstance(figure, Missing):
            return figure.reason
        if metric in _OF_ENERGY and each.not_durable is not None:
            return f"the energy of {each.label} ends before its bytes were durable"
        if metric in _OF_ENERGY and each.doubts:
            return f"the energy of {each.label} is doubtful: {each.doubts[0]}"
    sources = (a.domain, a.meter, a.kind), (b.domain, b.meter, b.kind)
    if metric in _OF_ENERGY and sources[0] != sources[1]:
        return f"their energies are of two meters: {a.meter} ({a.domain}), {b.meter} ({b.domain})"
    return None


_OF_ALL = (
    "efficiency_bytes_per_j",
    "memory_peak_bytes",
    "durable_s",
    "bytes_device_read",
    "bytes_device_written",
    "bytes_asked",
)
"""A median of some of the repetitions is none of these figures."""

_ANOTHER_DRIVE = Missing(
    "a part of it was another drive's: the drive that is watched moved less than the command "
    "(--directory or --device names it)"
)
_NO_ACCOUNT = Missing("the kernel keeps no account of a process's bytes (/proc/PID/io)")

_OWN = ("command", "cache", "prepare", "conclude", "stdin", "ignore_failure", "words")
"""Arguments of a command that are no parameters."""


def _valid_phase(run: Run) -> Phase | Missing:
    """The phase of a run with its executions, or why it does not count."""
    if not run.phases:
        return Missing(next(iter(run.validity), "the run reported no value"))
    phase = run.phases[0]
    reasons = [*run.validity, *phase.validity]
    if reasons or phase.start_s is None or phase.end_s is None:
        return Missing(next(iter(reasons), "the run reported no value"))
    return phase


def _exit_codes(phases: Sequence[Phase]) -> dict[int, int]:
    """Exit code -> in how many executions."""
    codes: Counter[int] = Counter()
    for phase in phases:
        for name, count in phase.metrics.items():
            if name.startswith("exit_code_"):
                codes[int(name.removeprefix("exit_code_"))] += int(count)
    return dict(codes)


def _of_runs(
    name: str, of_runs: Sequence[Value], of_used: Sequence[Value]
) -> tuple[float, ...] | Missing:
    """The values of a figure, or why it is missing: of the runs, of which `of_used` count."""
    values = tuple(value for value in of_used if not isinstance(value, Missing))
    if not values:
        reasons = (value.reason for value in of_runs if isinstance(value, Missing))
        return Missing(next(reasons, "it was not run"))
    lacking = [value for value in of_used if isinstance(value, Missing)]
    if name in _OF_ALL and lacking:
        counted = f"in {len(lacking)} of {len(of_used)} repetitions"
        return Missing(f"{lacking[0].reason} ({counted})")
    return values


def _bench(
    label: str, arguments: Mapping[str, str], runs: Sequence[Run], logical_cpus: int | None
) -> Bench:
    parameters = {}
    for name, value in arguments.items():
        if name not in _OWN:
            parameters[name] = value
    main = _meter_of(runs)
    executed = [_execution(run, main, logical_cpus) for run in runs]
    used = [each for each in executed if not isinstance(each, Missing)]
    readings = [each.reading for each in used if each.reading is not None]
    domain, meter, power_kind = readings[0].key if readings else (None, None, None)
    phases = tuple(each.phase for each in used)
    return Bench(
        label,
        parameters,
        _figures(executed, used),
        len(used),
        _exit_codes(phases),
        domain,
        meter,
        phases,
        _doubts(readings),
        power_kind,
        next((each.not_durable for each in used if each.not_durable is not None), None),
        tuple(dict.fromkeys(_first_remarks(runs).values())),
    )


def _first_remarks(runs: Sequence[Run]) -> dict[str, str]:
    """Of each kind that of the first run that has one."""
    remarks = {}
    for run in reversed(runs):
        for kind, text in run.remarks.items():
            remarks[kind] = text
    return remarks


def _figures(
    executed: "Sequence[_Execution | Missing]", used: "Sequence[_Execution]"
) -> dict[str, tuple[float, ...] | Missing]:
    """Of all runs, of which `used` count."""
    figures: dict[str, tuple[float, ...] | Missing] = {}
    for name in FIGURES:
        of_runs = [each if isinstance(each, Missing) else each.figures[name] for each in executed]
        figures[name] = _of_runs(name, of_runs, [each.figures[name] for each in used])
    not_durable = [each.not_durable for each in used if each.not_durable is not None]
    if not_durable and any(each.is_durable for each in used):
        counted = f"in {len(not_durable)} of {len(used)} repetitions"
        mixed = Missing(f"its bytes were not durable {counted}: {not_durable[0]}")
        figures |= dict.fromkeys(_OF_ENERGY, mixed)
    return figures


def _doubts(readings: Sequence[EnergyReading]) -> tuple[str, ...]:
    doubtful = [reading for reading in readings if reading.doubtful]
    return tuple(dict.fromkeys(reason for reading in doubtful for reason in reading.reasons))


def _meter_of(runs: Sequence[Run]) -> Key | None:
    """The source that all energies of a command are of."""
    energies = []
    for run in runs:
        if run.valid and run.phases:
            energies.append(window_of(run.experiment, run.phases[0]).energy)
    return main_source(repetitions_by_source(energies, is_powered), DOMAINS)


@dataclass(frozen=True)
class _Execution:
    """A run that counts: its figures, of one execution, and the reading that the energy is of."""

    phase: Phase
    reading: EnergyReading | None
    figures: Mapping[str, Value]
    not_durable: str | None
    """Why its energy ends when it returned, not when its bytes were on the drive."""

    @property
    def is_durable(self) -> bool:
        """Whether it wrote, and its energy includes that."""
        return self.not_durable is None and self.phase.until_durable is not None


def _execution(run: Run, meter: Key | None, logical_cpus: int | None) -> _Execution | Missing:
    """Missing is why the run does not count."""
    phase = _valid_phase(run)
    if isinstance(phase, Missing):
        return phase
    assert phase.start_s is not None and phase.end_s is not None
    many = phase.metrics["executions"] or 1.0
    window = window_of(run.experiment, phase)
    not_durable = None
    if window.durable is False:
        not_durable = window.durable_reason
    reading, reason = _reading(window.energy, meter)
    observation = replace(observed(run.experiment, phase), reading=reading, why_not_read=reason)
    joules = observation.energy_j
    energy_j: Value = joules
    if not isinstance(joules, Missing):
        energy_j = joules / many
    share = processor_share(run, phase, logical_cpus)
    until_durable_s: Value = Missing(phase.durable_reason or "it was not measured")
    if phase.until_durable is not None:
        until_durable_s = (phase.until_durable.end_s - phase.start_s) / many
    figures = {
        "duration_s": phase.metrics.get("executed_s", phase.end_s - phase.start_s) / many,
        "cpu_s": phase.metrics["processor_s"] / many,
        "memory_peak_bytes": _memory_peak(phase),
        "bytes_device_read": _bytes(phase, "bytes_read", many, run.remarks.get(COMMAND_READ)),
        "bytes_device_written": _bytes(
            phase, "bytes_written", many, run.remarks.get(COMMAND_WRITTEN)
        ),
        "bytes_asked": _bytes(phase, "asked_bytes", many),
        "durable_s": until_durable_s,
        "energy_j": energy_j,
        "power_w": observation.power_w,
        "efficiency_bytes_per_j": _efficiency(
            observation, not_durable, run.remarks.get(MEMORY_CACHE)
        ),
        "instructions": _counted(phase, "instructions", many),
        "cycles": _counted(phase, "cycles", many),
        "context_switches": _counted(phase, "context_switches", many),
        "processor_share": share,
        "drive_share": drive_share(run, phase),
        "attributed_j": attributed_j(energy_j, share),
    }
    return _Execution(phase, reading, figures, not_durable)


ATTRIBUTED = ("processor_share", "drive_share", "attributed_j")
"""Figures that attribute the machine's work and energy to a command."""
COUNTS = ("instructions", "cycles")
"""Figures that need the processor's counters."""
_NO_COUNTERS = Missing(
    "the processor's counters could not be read (perf_event_open): a virtual machine may have "
    "none, and kernel.perf_event_paranoid may forbid it. The run's command.json has the kernel's "
    "answer"
)


def _counted(phase: Phase, name: str, executions: float) -> Value:
    """Of the user's mode and the kernel's, or of the user's alone (`is_user_only`)."""
    for key in (name, f"user_{name}"):
        if key in phase.metrics:
            return phase.metrics[key] / executions
    if name in COUNTS:
        return _NO_COUNTERS
    return Missing("the record of the command contains no context switches")


def is_user_only(phases: Sequence[Phase]) -> bool:
    """Whether instructions and cycles exclude those of the kernel."""
    return any("user_instructions" in phase.metrics for phase in phases)


def _memory_peak(phase: Phase) -> Value:
    if "memory_peak_bytes" in phase.metrics:
        return phase.metrics["memory_peak_bytes"]
    most_mb = phase.metrics["memory_most_bytes"] / MB
    return Missing(
        f"below the detection limit of {most_mb:.0f} MB, the memory of the process that starts the "
        "command"
    )


def _bytes(phase: Phase, name: str, executions: float, remark: str | None = None) -> Value:
    """`remark` is on the difference between the account and the drive's count."""
    if name in phase.metrics:
        return phase.metrics[name] / executions
    if "asked_bytes" not in phase.metrics:
        return _NO_ACCOUNT
    if remark is None:
        return _ANOTHER_DRIVE
    return Missing(remark)


def _efficiency(observation: Observation, not_durable: str | None, cache: str | None) -> Value:
    """`cache` is one below the drive, in memory: bytes from it are not the drive's."""
    if isinstance(observation.energy_j, Missing):
        return observation.energy_j
    if cache is not None:
        return Missing(f"no drive was measured: {cache}")
    if not_durable is not None:
        return Missing(f"its energy ends before its bytes were durable: {not_durable}")
    if observation.phase.bytes_moved == 0:
        return Missing("it moved no bytes of the drive")
    if observation.phase.bytes_moved is None:
        return Missing("the drive's number of bytes is unknown")
    return observation.bytes_per_j


def _reading(
    energy: Sequence[EnergyReading], meter: Key | None
) -> tuple[EnergyReading | None, Missing]:
    """The reading of that meter; else why there is none."""
    reason = "no meter was read"
    for reading in energy:
        if meter is not None and reading.key != meter:
            continue
        if is_powered(reading):
            return reading, NOT_READ
        if reading.kind == "modelled":
            reason = "only a modelled power, which is no measurement"
        elif reading.reasons:
            reason = reading.reasons[0]
    return None, Missing(reason)
