"""One observation: a phase of a run, in its window, by one source of power.

A figure of an observation is a number, or `Missing` with the reason. Each figure is computed here
and nowhere else; a summary over repetitions takes the values and keeps the reasons.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from eeio_limits.quantities import FIGURE
from eeio_limits.reasons import NO_COST_OF_ACCELERATOR, partial_operations
from eeio_results.record import LEAST_IO_SHARE, EnergyReading, Experiment, Phase
from eeio_results.windows import GB, Window, window_of

Key = tuple[str, str, str]
"""A source: (domain, meter, kind)"""

NOT_READ = "the meter was not read"
NO_READING = "no valid reading"
NO_WORK = "the record has neither bytes nor bandwidth"
_NOT_COUNTED = "the tool counts no operations"


@dataclass(frozen=True, slots=True)
class Missing:
    """Why a figure is not there."""

    reason: str


Value = float | Missing


def known(value: Value) -> float | None:
    """The number; None if it is missing."""
    return None if isinstance(value, Missing) else value


@dataclass(frozen=True, slots=True)
class Observation:
    """`reading` is that of one source; None if the source was not read, or for figures that need
    none."""

    phase: Phase
    window: Window
    reading: EnergyReading | None = None

    def by(self, source: Key) -> "Observation":
        """The same phase by a source."""
        readings = (reading for reading in self.window.energy if reading.key == source)
        return Observation(self.phase, self.window, next(readings, None))

    @property
    def power_w(self) -> Value:
        """Mean power of the window, W."""
        reading = self.reading
        if reading is None:
            return Missing(NOT_READ)
        if not reading.valid or reading.power_w is None:
            return Missing(next(iter(reading.reasons), NO_READING))
        return reading.power_w

    @property
    def why_no_cost(self) -> str | None:
        """Why the energy is not compared with others as the cost of the I/O; None if it is."""
        reading = self.reading
        if reading is None or not reading.valid:
            return NO_READING
        if reading.domain not in self.window.cost_domains:
            return NO_COST_OF_ACCELERATOR
        return reading.why_not_ranked

    @property
    def is_costed(self) -> bool:
        """Whether its energy is compared with others as the cost of the I/O."""
        return self.why_no_cost is None

    @property
    def j_per_gb(self) -> Value:
        """Energy of the window over its bytes, in J per 10^9 bytes."""
        if isinstance(self.power_w, Missing):
            return Missing(self.why_no_work or self.power_w.reason)
        return self.j_per_gb_of(self.power_w)

    def j_per_gb_of(self, power_w: float) -> Value:
        """The same of another mean power, such as that above idle."""
        reading = self.reading
        why = self.why_no_work or self.why_no_cost
        if why is not None or reading is None:
            return Missing(why or NO_READING)
        joules = self.window.j_per_gb(reading, power_w)
        return Missing(NO_READING) if joules is None else joules

    @property
    def bytes_per_j(self) -> Value:
        """The reciprocal of J/GB, in bytes per J."""
        joules = self.j_per_gb
        if isinstance(joules, Missing):
            return joules
        efficiency = GB / joules if joules > 0 else None
        if efficiency is None or not FIGURE.contains(efficiency):
            return Missing("its energy is next to 0 J")
        return efficiency

    @property
    def why_no_work(self) -> str | None:
        """Why there is no figure of a GB, whatever the power was."""
        window = self.window
        if window.why_no_efficiency is not None:
            return window.why_no_efficiency
        return None if window.bytes_moved or window.bandwidth_bytes_per_s else NO_WORK

    @property
    def uncertainty_relative(self) -> Value:
        """The uncertainty of the energy as a share of it."""
        reading = self.reading
        share = None if reading is None or not reading.valid else reading.uncertainty_relative
        return Missing("the meter states no uncertainty") if share is None else share

    @property
    def iops(self) -> float | None:
        """Requests per second over the window; the tool's figure is over its time."""
        return self._over_window("iops")

    @property
    def operations_per_s(self) -> float | None:
        """Operations that the tool counts (files, transactions) per second of the window."""
        return self._over_window("operations_per_s")

    def _over_window(self, name: str) -> float | None:
        reported, scale = self.phase.metrics.get(name), self.window.rate_scale
        return None if reported is None or scale is None else reported * scale

    @property
    def why_operations_unpowered(self) -> str | None:
        """Why the mean power of the window is not that of the operations; None if it is."""
        span_s, lasted_s = self.phase.metrics.get("span_s"), self.window.duration_s
        if span_s is None or not lasted_s or span_s / lasted_s >= LEAST_IO_SHARE:
            return self.window.why_no_efficiency
        return partial_operations(span_s / lasted_s)

    @property
    def j_per_operation(self) -> Value:
        """Mean power over operations per second."""
        rate = self.operations_per_s
        if not rate:
            return Missing(_NOT_COUNTED)
        why = self.why_operations_unpowered or self.why_no_cost
        if why is not None:
            return Missing(why)
        return self.power_w if isinstance(self.power_w, Missing) else self.power_w / rate

    @property
    def iops_per_w(self) -> Value:
        """Requests per second over mean power."""
        if not self.iops:
            return Missing("the tool reports no requests per second")
        if not self.is_costed or isinstance(self.power_w, Missing):
            return Missing(self.why_no_cost or NO_READING)
        return self.iops / self.power_w if self.power_w else Missing(NO_READING)


def observed(experiment: Experiment, phase: Phase) -> Observation:
    """A phase of such an experiment, without a source."""
    return Observation(phase, window_of(experiment, phase))


@dataclass(frozen=True)
class Summary:
    """A figure over the repetitions: the values, and the reasons of those without one."""

    values: tuple[float, ...]
    reasons: tuple[str, ...]

    @property
    def reason(self) -> str | None:
        """The first reason; None if every repetition has a value."""
        return next(iter(self.reasons), None)


def summarize(
    observations: Iterable[Observation], figure: Callable[[Observation], Value]
) -> Summary:
    """Of one figure, in the order of the observations."""
    found = [figure(observation) for observation in observations]
    return Summary(
        tuple(value for value in found if not isinstance(value, Missing)),
        tuple(value.reason for value in found if isinstance(value, Missing)),
    )


def sources(observations: Sequence[Observation]) -> list[Key]:
    """Every source that was read in one of them, in the order of the records."""
    readings = (reading for observation in observations for reading in observation.window.energy)
    return list(dict.fromkeys(reading.key for reading in readings))
