"""How short a run may be: from one whole run of each experiment that a time ends.

The first seconds of a run tell the same as all of it where bandwidth and power hold still; whether
they do depends on the machine and the drive. So a pilot runs each such experiment whole, and looks
from which length on what has passed is within the floor of what the whole run says. Bandwidth over
time is the drive's own count of bytes, which no tool has to log: past the page cache that is what
the tool moved, which the pilot checks. Runs through the cache stay whole: they begin by filling it.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from eeio_limits.quantities import DURATION
from eeio_power.monitor import PowerMonitor
from eeio_results.campaign import AdaptiveProtocol, PlannedExperiment
from eeio_results.errors import EeioError
from eeio_results.record import Phase, Run
from eeio_results.statistics.lengths import proven_length
from eeio_results.units import percent

BANDWIDTH = "bandwidth"
# What else moved on the drive meanwhile, or did not reach it; and what was on its way at an edge.
_MOST_APART = 0.02
_EDGES_S = 0.1


@dataclass(frozen=True)
class Proof:
    """The run time that a pilot found, s, in the words of a factor; the preset's own where no
    shorter one is proved. `words` say how, `metrics` what was looked at: nothing, where the pilot
    was of no use."""

    runtime_s: str
    words: str
    metrics: tuple[str, ...] = ()


@dataclass(frozen=True)
class MovedBytes:
    """What a drive counted since boot, at times of CLOCK_MONOTONIC."""

    times_s: Sequence[float]
    counted: Sequence[int]

    def between(self, start_s: float, end_s: float) -> float:
        """Bytes, between two counts by a straight line. Raises EeioError outside them."""
        return self._at(end_s) - self._at(start_s)

    def _at(self, time_s: float) -> float:
        place = bisect_right(self.times_s, time_s)
        if not 0 < place < len(self.times_s):
            raise EeioError("the drive was not watched for all of the run")
        before, after = self.times_s[place - 1], self.times_s[place]
        share = (time_s - before) / (after - before)
        first = self.counted[place - 1]
        return first + share * (self.counted[place] - first)


def lengths_to_try(
    planned: PlannedExperiment, rule: AdaptiveProtocol, least_s: float
) -> tuple[float, ...]:
    """Run times shorter than the experiment's own, s, no shorter than a phase has to be; none where
    its runs stay whole: they go through the page cache, or their work ends them."""
    whole_s = DURATION.of_text(planned.factors.get("runtime_s", "0"))
    if rule.pilot == "none" or planned.experiment.cache.buffer != "off":
        return ()
    return tuple(s for s in sorted(rule.lengths_s) if least_s <= s < whole_s)


def cut(planned: PlannedExperiment, runtime_s: str, words: str) -> PlannedExperiment:
    """The experiment with the run time that was proved: another one, by its id, where that is not
    its own."""
    whole = planned.factors["runtime_s"]
    told = words if planned.pilot is None else f"{planned.pilot}; {words}"
    found = replace(planned, pilot=told, cut_from=whole)
    if runtime_s == whole:
        return found
    arguments = {**dict(planned.experiment.arguments), "runtime_s": runtime_s}
    experiment = replace(planned.experiment, arguments=tuple(sorted(arguments.items())))
    return replace(
        found, experiment=experiment, factors={**planned.factors, "runtime_s": runtime_s}
    )


def proof(
    planned: PlannedExperiment,
    run: Run,
    moved: MovedBytes | None,
    power: PowerMonitor,
    rule: AdaptiveProtocol,
    lengths_s: Iterable[float],
) -> Proof:
    """What the pilot's whole run proves. `moved` is None where no drive's counters are there."""
    whole = planned.factors["runtime_s"]

    def stays(why: str, metrics: Iterable[str] = ()) -> Proof:
        return Proof(whole, f"run time {whole} s, whole: {why}", tuple(metrics))

    if run.validity or len(run.phases) != 1 or run.phases[0].validity:
        invalid = (*run.validity, *(why for phase in run.phases for why in phase.validity))
        return stays(f"its pilot is of no use: {next(iter(invalid), 'it is not one phase')}")
    phase = run.phases[0]
    if phase.start_s is None or phase.end_s is None:
        return stays(f"when the pilot moved its bytes is not known: {phase.window_source}")
    if phase.stretches:
        return stays("its pilot did its I/O in stretches")
    if moved is None:
        return stays("no drive's counters tell its bandwidth over time")
    start_s, end_s = (run.started_monotonic_s + s for s in (phase.start_s, phase.end_s))
    try:
        full = _means(moved, power, start_s, end_s)
        why = _disagrees(full[BANDWIDTH] * (end_s - start_s), phase, end_s - start_s)
        if why is not None:
            return stays(why)
        lengths = [s for s in lengths_s if s < end_s - start_s]
        means = {s: _means(moved, power, start_s, start_s + s) for s in lengths}
        found_s = proven_length(means, full, rule.floor)
    except EeioError as error:
        return stays(str(error))
    if found_s is None:
        why = f"no shorter one keeps {' and '.join(full)} within {percent(rule.floor)} %"
        return stays(f"{why}{_worst(means, full)}", full)
    words = (
        f"run time {found_s:g} s of {whole}: from there on {' and '.join(full)} of a whole run "
        f"stayed within {percent(rule.floor)} % of its means"
    )
    return Proof(f"{found_s:g}", words, tuple(full))


def _means(
    moved: MovedBytes, power: PowerMonitor, start_s: float, end_s: float
) -> Mapping[str, float]:
    """Bandwidth in bytes/s, and power in W of each meter and domain that measured it."""
    found = {BANDWIDTH: moved.between(start_s, end_s) / (end_s - start_s)}
    for reading in power.energy(start_s, end_s):
        if reading.kind != "modelled" and reading.power_w:
            found[f"{reading.meter} {reading.domain}"] = reading.power_w
    return found


def _disagrees(moved_bytes: float, phase: Phase, lasted_s: float) -> str | None:
    apart = moved_bytes / phase.bytes_moved - 1 if phase.bytes_moved else None
    if apart is not None and abs(apart) <= _MOST_APART + _EDGES_S / lasted_s:
        return None
    return (
        f"its drive moved {moved_bytes:.4g} bytes and the tool {phase.bytes_moved:.4g} in the "
        "pilot, so the drive's count is not its bandwidth"
    )


def _worst(means: Mapping[float, Mapping[str, float]], whole: Mapping[str, float]) -> str:
    """How far the longest cut is off, in words."""
    if not means:
        return ""
    length_s = max(means)
    off = {
        metric: means[length_s][metric] / value - 1
        for metric, value in whole.items()
        if metric in means[length_s]
    }
    metric = max(off, key=lambda name: abs(off[name]))
    return f" ({metric} of {length_s:g} s is off by {100 * off[metric]:+.2g} %)"
