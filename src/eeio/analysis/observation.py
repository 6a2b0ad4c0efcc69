"""One observation: a phase of a run, in its window, by one source of power.

A figure of an observation is a number, or `Missing` with the reason. Each figure is computed here
and nowhere else; a summary over repetitions takes the values and keeps the reasons.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from eeio.record.reasons import NO_COST_OF_ACCELERATOR, partial_operations
from eeio.record.run import LEAST_IO_SHARE, EnergyReading, Experiment, Phase
from eeio.record.windows import GB, Window, page_cache_bandwidth, window_of
from eeio.units.quantities import FIGURE

Key = tuple[str, str, str]
"""A source: (domain, meter, kind)"""


@dataclass(frozen=True, slots=True)
class Missing:
    """Why a figure is not there."""

    reason: str


_T = TypeVar("_T")
Value = float | Missing

NOT_READ = Missing("the meter was not read")
NO_READING = Missing("no valid reading")
NO_COST = Missing(NO_COST_OF_ACCELERATOR)
NO_BASELINE = Missing("idle power was not measured by this meter in this domain")
NO_DUTY_CYCLE = Missing("no duty cycle was given (--duty-cycle)")
NO_UNCERTAINTY = Missing("the meter states no uncertainty")
NO_ENERGY = Missing("its energy is next to 0 J")
NO_BYTES = Missing("the number of bytes is unknown, and therefore the bandwidth")
NO_COUNT_OF_BYTES = Missing("the record has no count of bytes")
NO_BANDWIDTH = Missing("the tool reported no bandwidth for this phase")
NO_DATA = Missing("metadata operations move no data")
NOT_REPORTED = Missing("the tool reports none")
NO_REQUESTS = Missing("the tool reports no requests per second")
NO_OPERATIONS = Missing("the tool counts no operations")


def known(value: _T | Missing) -> _T | None:
    """The number or text; None if it is missing."""
    if isinstance(value, Missing):
        return None
    return value


@dataclass(frozen=True, slots=True)
class Baseline:
    """Idle power of a source, in W, or why there is none. `busy` is the share of the time in which
    the system is in use (0 to 1), None if it is not given."""

    power_w: Value = NO_BASELINE
    busy: float | None = None


NO_SOURCE = Baseline()


@dataclass(frozen=True)
class Observation:
    """`reading` is that of one source; None if the source was not read (`why_not_read`), or for
    figures that need none. Figures that others are computed from are kept: several metrics read
    each."""

    experiment: Experiment
    phase: Phase
    window: Window
    reading: EnergyReading | None = None
    baseline: Baseline = NO_SOURCE
    why_not_read: Missing = NOT_READ

    def by(self, source: Key, baseline: Baseline = NO_SOURCE) -> "Observation":
        """The same phase by a source."""
        for reading in self.window.energy:
            if reading.key == source:
                return self.of(reading, baseline)
        return self.of(None, baseline)

    def of(self, reading: EnergyReading | None, baseline: Baseline = NO_SOURCE) -> "Observation":
        """The same phase by the source of that reading."""
        return Observation(self.experiment, self.phase, self.window, reading, baseline)

    def not_read(self, reason: Missing) -> "Observation":
        """The same phase without a source."""
        return Observation(self.experiment, self.phase, self.window, why_not_read=reason)

    @property
    def duration_s(self) -> Value:
        """The length of the window."""
        if self.window.duration_s is not None:
            return self.window.duration_s
        return Missing(self.phase.window_source or "the tool does not report the time of its I/O")

    @property
    def bytes_moved(self) -> Value:
        moved = self.window.bytes_moved
        if moved is None:
            return NO_COUNT_OF_BYTES
        return float(moved)

    @property
    def bandwidth_bytes_per_s(self) -> Value:
        """Over the window."""
        if self.window.bandwidth_bytes_per_s is not None:
            return self.window.bandwidth_bytes_per_s
        if self.phase.operation == "metadata":
            return NO_DATA
        if self.phase.bytes_moved is None:
            return NO_BYTES
        return NO_BANDWIDTH

    @property
    def page_cache_bandwidth_bytes_per_s(self) -> Value:
        """Of a write that returned before its bytes were on the device."""
        rate, reason = page_cache_bandwidth(self.experiment, self.phase)
        if rate is None:
            return Missing(str(reason))
        return rate

    @cached_property
    def power_w(self) -> Value:
        """Mean power of the window, W."""
        reading = self.reading
        if reading is None:
            return self.why_not_read
        if reading.valid and reading.power_w is not None:
            return reading.power_w
        if reading.reasons:
            return Missing(reading.reasons[0])
        return NO_READING

    @property
    def energy_j(self) -> Value:
        """Of the window, J."""
        if isinstance(self.power_w, Missing):
            return self.power_w
        joules = None
        if self.reading is not None:
            joules = self.reading.energy_j
        if joules is None:
            return NO_READING
        return joules

    @cached_property
    def why_no_cost(self) -> Missing | None:
        """Why the energy is not compared with others as the cost of the I/O; None if it is."""
        reading = self.reading
        if reading is None:
            return self.why_not_read
        if not reading.valid:
            return NO_READING
        if reading.domain not in self.window.cost_domains:
            return NO_COST
        reason = reading.why_not_ranked
        if reason is None:
            return None
        return Missing(reason)

    @property
    def is_costed(self) -> bool:
        """Whether its energy is compared with others as the cost of the I/O."""
        return self.why_no_cost is None

    @cached_property
    def why_no_work(self) -> Missing | None:
        """Why there is no figure of a GB, whatever the power was."""
        window = self.window
        if window.why_no_efficiency is not None:
            return Missing(window.why_no_efficiency)
        bandwidth = self.bandwidth_bytes_per_s
        if window.bytes_moved or known(bandwidth):
            return None
        if isinstance(bandwidth, Missing):
            return bandwidth
        return NO_BANDWIDTH

    @cached_property
    def j_per_gb(self) -> Value:
        """Energy of the window over its bytes, in J per 10^9 bytes."""
        return self._j_per_gb_of(self.power_w)

    def _j_per_gb_of(self, power_w: Value) -> Value:
        """The same of another mean power, such as that above idle."""
        reason = self.why_no_work
        if reason is not None:
            return reason
        if isinstance(power_w, Missing):
            return power_w
        reading = self.reading
        if reading is None or self.why_no_cost is not None:
            return self.why_no_cost or NO_READING
        joules = self.window.j_per_gb(reading, power_w)
        if joules is None:
            return NO_READING
        return joules

    @property
    def bytes_per_j(self) -> Value:
        """The reciprocal of J/GB, in bytes per J."""
        return _bytes_per_j(self.j_per_gb)

    @cached_property
    def marginal_power_w(self) -> Value:
        """Power above the idle power of the same source."""
        power_w, idle_w = self.power_w, self.baseline.power_w
        if isinstance(power_w, Missing):
            return power_w
        if isinstance(idle_w, Missing):
            return idle_w
        return self.why_no_cost or power_w - idle_w

    @property
    def is_above_idle(self) -> bool:
        """Whether its power is above idle power by more than its uncertainty: within that, it may
        as well be zero or less."""
        above_w, reading = self.marginal_power_w, self.reading
        if isinstance(above_w, Missing) or reading is None or not reading.power_w:
            return False
        share = reading.uncertainty_relative
        return above_w > (0.0 if share is None else abs(reading.power_w) * share)

    @property
    def marginal_j_per_gb(self) -> Value:
        """J/GB of the power above idle."""
        return self._j_per_gb_of(self.marginal_power_w)

    @property
    def marginal_bytes_per_j(self) -> Value:
        return _bytes_per_j(self.marginal_j_per_gb)

    @property
    def busy_j_per_gb(self) -> Value:
        """J/GB of a system that is in use for the share b of the time and idle for the rest:
        (P t + P_idle t (1 - b) / b) per GB (docs/explanation/energy-and-uncertainty.md)."""
        busy, idle_w, power_w = self.baseline.busy, self.baseline.power_w, self.power_w
        if busy is None:
            return NO_DUTY_CYCLE
        if isinstance(idle_w, Missing):
            return idle_w
        if isinstance(power_w, Missing):
            return power_w
        return self._j_per_gb_of(power_w + idle_w * (1 - busy) / busy)

    @property
    def uncertainty_relative(self) -> Value:
        """The uncertainty of the energy as a share of it."""
        if isinstance(self.power_w, Missing):
            return self.power_w
        share = None
        if self.reading is not None:
            share = self.reading.uncertainty_relative
        if share is None:
            return NO_UNCERTAINTY
        return share

    @property
    def iops(self) -> Value:
        """Requests per second over the window; the tool's figure is over its time."""
        return self._over_window("iops", NOT_REPORTED)

    @property
    def operations_per_s(self) -> Value:
        """Operations that the tool counts (files, transactions) per second of the window."""
        return self._over_window("operations_per_s", NO_OPERATIONS)

    def _over_window(self, name: str, why_none: Missing) -> Value:
        reported, scale = self.phase.metrics.get(name), self.window.rate_scale
        if reported is None or scale is None:
            return why_none
        return reported * scale

    @property
    def why_operations_unpowered(self) -> Missing | None:
        """Why the mean power of the window is not that of the operations; None if it is."""
        span_s, lasted_s = self.phase.metrics.get("span_s"), self.window.duration_s
        if span_s is not None and lasted_s and span_s / lasted_s < LEAST_IO_SHARE:
            return Missing(partial_operations(span_s / lasted_s))
        reason = self.window.why_no_efficiency
        if reason is None:
            return None
        return Missing(reason)

    @property
    def j_per_operation(self) -> Value:
        """Mean power over operations per second."""
        rate, power_w = self.operations_per_s, self.power_w
        if isinstance(rate, Missing) or not rate:
            return NO_OPERATIONS
        reason = self.why_operations_unpowered or self.why_no_cost
        if reason is not None:
            return reason
        if isinstance(power_w, Missing):
            return power_w
        return power_w / rate

    @property
    def iops_per_w(self) -> Value:
        """Requests per second over mean power."""
        rate, power_w = self.iops, self.power_w
        if isinstance(rate, Missing) or not rate:
            return NO_REQUESTS
        if isinstance(power_w, Missing):
            return power_w
        return self.why_no_cost or (rate / power_w if power_w else NO_READING)


def _bytes_per_j(joules: Value) -> Value:
    if isinstance(joules, Missing):
        return joules
    efficiency = None
    if joules > 0:
        efficiency = GB / joules
    if efficiency is None or not FIGURE.contains(efficiency):
        return NO_ENERGY
    return efficiency


def observed(experiment: Experiment, phase: Phase) -> Observation:
    """A phase of such an experiment, without a source."""
    return Observation(experiment, phase, window_of(experiment, phase))


def sources(observations: Sequence[Observation]) -> list[Key]:
    """Every source that was read in one of them, in the order of the records."""
    readings = (reading for observation in observations for reading in observation.window.energy)
    return list(dict.fromkeys(reading.key for reading in readings))
