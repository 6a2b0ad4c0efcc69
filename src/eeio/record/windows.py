"""The window of a phase: for a write, the time until its bytes are on the device, if known;
otherwise the time until the tool returned (docs/explanation/windows-and-durability.md, "The
window")."""

from dataclasses import dataclass, replace

from eeio.record.reasons import (
    FLUSH_UNKNOWN,
    NO_DURABLE_TIME,
    WROTE_NOTHING,
    partial_io,
    unknown_energy,
)
from eeio.record.run import COST_DOMAINS, LEAST_IO_SHARE, EnergyReading, Experiment, Phase
from eeio.units.quantities import FIGURE, MOST_UNKNOWN

GB = 1_000_000_000
"""Of J/GB: 10^9 bytes."""

_SAME_S = 1e-6
_LARGEST_SHARE = 100.0
"""The largest uncertainty that a reason states, as a share of the energy."""


@dataclass(frozen=True, slots=True)
class Window:
    """One phase and its window.

    `durable` is None for phases that write no data; False with `durable_reason` if the window ends
    when the tool returned. `rate_scale` converts a rate over the tool's time to one over the
    window. `why_no_efficiency` is the reason if bandwidth and mean power do not cover the same
    time.
    """

    bandwidth_bytes_per_s: float | None
    energy: tuple[EnergyReading, ...]
    duration_s: float | None
    bytes_moved: int | None
    durable: bool | None
    durable_reason: str | None
    rate_scale: float | None
    why_no_efficiency: str | None
    cost_domains: tuple[str, ...] = COST_DOMAINS
    """The domains whose energy may be the cost of the I/O."""

    @property
    def cost_energy(self) -> tuple[EnergyReading, ...]:
        """The readings of these domains."""
        return tuple(reading for reading in self.energy if reading.domain in self.cost_domains)

    def j_per_gb(self, reading: EnergyReading, power_w: float | None = None) -> float | None:
        """Energy of the window over its bytes, in J per 10^9 bytes; of `power_w` instead of the
        reading's mean power where that is given (power above idle). None where energy and bytes
        are not both known, or not of the same time."""
        if power_w is None:
            power_w = reading.power_w
        if reading.domain not in self.cost_domains:
            return None
        if power_w is None or not reading.power_w or reading.energy_j is None:
            return None
        seconds = self.seconds_per_gb(reading.energy_j / reading.power_w)
        joules = None
        if seconds is not None:
            joules = power_w * seconds
        if joules is not None and FIGURE.contains(joules):
            return joules
        return None

    def seconds_per_gb(self, lasted_s: float | None) -> float | None:
        """The time for 10^9 bytes, of a window of that length: by the counted bytes, or by the
        bandwidth if there are none. None if the window includes other work."""
        if self.why_no_efficiency:
            return None
        if not self.bytes_moved:
            seconds = None
            if self.bandwidth_bytes_per_s:
                seconds = GB / self.bandwidth_bytes_per_s
        else:
            seconds = None
            if lasted_s and self.bytes_moved:
                seconds = lasted_s / self.bytes_moved * GB
        if seconds is not None and FIGURE.contains(seconds):
            return seconds
        return None


def writes(operation: str | None) -> bool:
    """Whether it has bytes that must come onto the device."""
    return operation in ("write", "mixed")


def flush_of(experiment: Experiment, operation: str | None) -> str | None:
    """none, end or each; `unknown` in records of version 1; None if no data are written."""
    if writes(operation):
        return experiment.flush or "unknown"
    return None


def request_size_of(experiment: Experiment, phase: Phase) -> int | None:
    """Bytes of a request; of a phase on metadata those of the experiment, such as of the objects
    that are listed."""
    if phase.request_size_bytes is None and phase.operation == "metadata":
        return experiment.request_size_bytes
    return phase.request_size_bytes


def window_of(experiment: Experiment, phase: Phase) -> Window:
    """The window that the phase of such an experiment is judged by."""
    durable = phase.until_durable
    if not writes(phase.operation) or durable is None:
        complete = phase.includes_flush and phase.durable_reason is None
        is_written = writes(phase.operation) and phase.durable_reason != WROTE_NOTHING
        return Window(
            phase.bandwidth_bytes_per_s,
            energy_of(phase),
            phase.lasted_s,
            phase.bytes_moved,
            durable=complete if is_written else None,
            durable_reason=None if complete else _why_not_durable(experiment, phase),
            rate_scale=1.0,
            why_no_efficiency=why_no_efficiency(phase),
            cost_domains=experiment.cost_domains,
        )
    reported, rate = phase.bandwidth_bytes_per_s, durable.bandwidth_bytes_per_s
    return Window(
        rate,
        energy_of(phase),
        None if phase.start_s is None else durable.end_s - phase.start_s,
        phase.bytes_moved,
        durable=True,
        durable_reason=None,
        rate_scale=rate / reported if reported and rate is not None else None,
        why_no_efficiency=why_no_efficiency(phase),
        cost_domains=experiment.cost_domains,
    )


def energy_of(phase: Phase) -> tuple[EnergyReading, ...]:
    """The readings over the phase's window; without values if their uncertainty is too large."""
    durable = phase.until_durable
    if durable is None or not writes(phase.operation):
        return tuple(map(known, phase.energy))
    # A tool that flushes within its time: one window, and its readings are stored once.
    same = phase.end_s is not None and abs(durable.end_s - phase.end_s) < _SAME_S
    return tuple(map(known, durable.energy or (phase.energy if same else ())))


def known(reading: EnergyReading) -> EnergyReading:
    """The reading; without values, and with the reason, if its uncertainty is too large."""
    if not reading.valid or reading.energy_j is None or not reading.uncertainty_j:
        return reading
    if reading.kind == "modelled":  # an estimate, which is always marked as one and never ranked
        return reading
    # An energy of 0 J has an uncertainty, too.
    least_j = reading.uncertainty_j / _LARGEST_SHARE
    share = reading.uncertainty_j / max(abs(reading.energy_j), least_j)
    if share <= MOST_UNKNOWN:
        return reading
    return replace(
        reading,
        power_w=None,
        energy_j=None,
        uncertainty_j=None,
        valid=False,
        reasons=(unknown_energy(share), *reading.reasons),
    )


def page_cache_bandwidth(experiment: Experiment, phase: Phase) -> tuple[float | None, str | None]:
    """The rate at which a write came into the page cache, in bytes/s, or why there is none."""
    if not writes(phase.operation):
        return None, "no data are written"
    if experiment.cache.buffer == "off":
        return None, "buffer off: writes pass by the page cache"
    if experiment.flush is None:
        return None, FLUSH_UNKNOWN
    if phase.includes_flush:
        return None, "the tool's time includes its flush"
    return phase.bandwidth_bytes_per_s, "the tool reported no bandwidth for this phase"


def _why_not_durable(experiment: Experiment, phase: Phase) -> str | None:
    if not writes(phase.operation) or phase.durable_reason == WROTE_NOTHING:
        return None
    if phase.durable_reason is None and experiment.flush is None:
        return FLUSH_UNKNOWN
    return phase.durable_reason or NO_DURABLE_TIME


def why_no_efficiency(phase: Phase) -> str | None:
    """The reason where bandwidth and mean power are not of the same time: the rule of the phase
    (Phase.why_no_efficiency), and of the time until durable, in which waiting for the device after
    the tool returned is I/O, too."""
    durable = phase.until_durable
    if durable is None or not writes(phase.operation):
        return phase.why_no_efficiency
    share = phase.io_share
    if share is None or phase.start_s is None or phase.end_s is None:
        return None
    tool_s = phase.end_s - phase.start_s
    complete_s = durable.end_s - phase.start_s
    # If two clocks give the ends, that of the flush may be slightly before the tool's.
    io_s = share * tool_s + max(0.0, complete_s - tool_s)
    if complete_s <= 0 or io_s / complete_s >= LEAST_IO_SHARE:
        return None
    return partial_io(io_s / complete_s)
