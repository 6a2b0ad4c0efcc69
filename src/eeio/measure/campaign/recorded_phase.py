"""A phase of a run as it is recorded: with its energy, its durability, and why not to use it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from eeio.machine import caches, counters
from eeio.machine.filesystem import BlockDevice
from eeio.measure.campaign.preparation import Prepared, remarks_of_caches
from eeio.measure.campaign.probes import Probe
from eeio.measure.campaign.server_power import Energy
from eeio.measure.campaign.volumes import Volume
from eeio.record.design import PlannedExperiment
from eeio.record.energy_reading import EnergyReading
from eeio.record.reasons import WROTE_NOTHING
from eeio.record.run import MEMORY_CACHE, Durable, Phase, Run
from eeio.record.tools.capture import Capture, PhaseResult, ToolResult
from eeio_power.energy import energy_in_parts

# Operations with bytes that must reach the device before they count.
_WRITES = ("write", "mixed")
_HOW_TO_BYPASS = "; for a loop device, `losetup --direct-io=on DEVICE` bypasses it"


@dataclass(frozen=True)
class Observed:
    """What a tool that has ended has left, and the state in which it started. `energy` is a
    function of start and end."""

    planned: PlannedExperiment
    capture: Capture
    prepared: Prepared
    volume: Volume
    device: BlockDevice | None
    probes: Sequence[Probe]
    energy: Energy
    flushed: caches.Sync


def recorded_phase(
    phase: PhaseResult, run: Run, observed: Observed, result: ToolResult, memory: str | None
) -> Phase:
    """A parsed phase with its energy and every reason not to use it. `memory`: why no storage
    device was measured."""
    readings = _energy_of_window(phase, run, observed)
    durable, reason = until_durable(
        phase,
        result.phases,
        observed.flushed,
        run.started_monotonic_s,
        observed.prepared.never_durable,
        is_command=run.experiment.is_command,
    )
    if durable is not None and phase.start_s is not None:
        energy = readings
        if durable.end_s != phase.end_s:
            began_s = run.started_monotonic_s
            energy = observed.energy(began_s + phase.start_s, began_s + durable.end_s)
        durable = replace(durable, energy=energy)
    if phase.edges_unsure_s:
        readings = with_edges(readings, phase.edges_unsure_s)
        if durable is not None:
            durable = replace(durable, energy=with_edges(durable.energy, phase.edges_unsure_s))
    validity = (*phase.invalid, *_reasons(phase, run, observed, memory))
    recorded = phase.recorded(readings, validity)
    return replace(recorded, until_durable=durable, durable_reason=reason)


def _energy_of_window(
    phase: PhaseResult, run: Run, observed: Observed
) -> tuple[EnergyReading, ...]:
    began_s = run.started_monotonic_s
    if phase.stretches:
        parts = [(began_s + part.start_s, began_s + part.end_s) for part in phase.stretches]
        return energy_in_parts(observed.energy, parts)
    if phase.start_s is None or phase.end_s is None:
        return ()
    return observed.energy(began_s + phase.start_s, began_s + phase.end_s)


def _reasons(phase: PhaseResult, run: Run, observed: Observed, memory: str | None) -> Iterator[str]:
    """Why the phase does not measure the drive."""
    experiment, prepared = run.experiment, observed.prepared
    # Direct I/O of a client does not go past its server's cache.
    uses_cache = experiment.cache.buffer == "on" or experiment.target == "device"
    uses_cache = uses_cache or observed.volume.served is not None
    # Where reads may be of a phase's own writes, the drive's counters do not prove the cache empty.
    is_unproven = counters.read_back_bytes(experiment, [phase]) > 0
    read_reason = prepared.dropped.read_reason
    if uses_cache and (phase.operation == "read" or is_unproven) and read_reason:
        yield read_reason
    if memory is not None:
        yield f"no storage device was measured: {memory}"
    below_reason = prepared.dropped.below_reason
    if phase.operation in ("read", "mixed") and below_reason is not None:
        yield below_reason
    through = remarks_of_caches(prepared.caches).get(MEMORY_CACHE)
    if experiment.level == "device" and through is not None:
        yield f"no device was measured: {through}{_HOW_TO_BYPASS}"


def with_edges(readings: tuple[EnergyReading, ...], unsure_s: float) -> tuple[EnergyReading, ...]:
    """Readings with the energy of the time by which the window's edges may be off, added to their
    uncertainty."""
    return tuple(
        reading
        if reading.power_w is None or reading.uncertainty_j is None
        else replace(reading, uncertainty_j=reading.uncertainty_j + abs(reading.power_w) * unsure_s)
        for reading in readings
    )


def until_durable(
    phase: PhaseResult,
    all_phases: Sequence[PhaseResult],
    synced: caches.Sync,
    began_s: float,
    never: str | None = None,
    *,
    is_command: bool = False,
) -> tuple[Durable | None, str | None]:
    """When the phase's bytes were on the device, or why that is unknown: by the tool's flush if it
    reported one, else by the flush right after it, which is the last write's. `never`: why no
    flush shows it. For a write, `never` comes first, then what the tool said, then the flush."""
    if phase.operation not in _WRITES:
        return phase.until_durable, phase.durable_reason
    if never is not None:
        is_nothing = phase.durable_reason == WROTE_NOTHING
        if is_nothing:
            return None, WROTE_NOTHING
        return None, never
    # A phase in several stretches includes its flush: the time from its start includes other work.
    has_flush = bool(phase.stretches and phase.includes_flush)
    if phase.until_durable or phase.durable_reason or has_flush:
        return phase.until_durable, phase.durable_reason
    reason = _why_no_end(phase, all_phases, is_command)
    if reason is None and synced.error is not None:
        reason = f"not flushed: {synced.error}"
    if reason is not None:
        return None, reason
    assert phase.start_s is not None
    end_s = synced.end_s - began_s
    lasted_s = end_s - phase.start_s
    rate = None
    if phase.bytes_moved is not None:
        rate = phase.bytes_moved / lasted_s
    return Durable(end_s, rate, synced.source), None


def _why_no_end(
    phase: PhaseResult, all_phases: Sequence[PhaseResult], is_command: bool
) -> str | None:
    """Why the flush after the tool does not end this phase's writes; None if it does."""
    if phase.stretches:
        return "its I/O has several intervals, so the time of durability is unknown"
    # A command may change a file system without bytes in its account: its parser and its probe
    # decide whether it wrote. The bytes that it read may be another drive's.
    written = phase.metrics.get("bytes_written", phase.bytes_moved)
    if written is None and not is_command:
        return "the number of written bytes is unknown"
    if phase.start_s is None or phase.end_s is None or not (written or is_command):
        return f"when it wrote is not known: {phase.window_source}"
    if any((other.end_s or 0.0) > phase.end_s for other in all_phases):
        return "other I/O of the same run followed before its bytes were flushed"
    return None
