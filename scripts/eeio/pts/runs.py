"""A trial under PTS as a run record."""

from collections.abc import Mapping
from datetime import UTC, datetime

from eeio.pts.composite import System
from eeio.pts.experiments import PtsExperiment
from eeio.pts.trial import with_told
from eeio_results.record import ContextValue, EnergyReading, Phase, Run

_WHOLE_TRIAL = "the whole trial, from the start of the profile's executable to its end (PTS)"
_NO_WINDOW = "PTS tells only when the whole trial began and ended, not its phases"


def run_of(test: PtsExperiment, trial: int, system: System) -> Run:
    seen = test.trial(trial)
    taken = {
        name: (value, unit)
        for name, (column, unit) in test.phases.items()
        if (value := column.value(trial)) is not None
    }
    figures = [
        (words, scale, value[0])
        for words, scale, column in test.context
        if (value := column.value(trial)) is not None
    ]
    times = [t for (_, t), _ in taken.values() if t is not None]
    duration_s = (seen.duration_s if seen else None) or (times[0] if times else 0.0)
    failed = not taken and not figures
    run = Run(
        experiment=test.experiment,
        repetition=trial + 1,
        order_index=0,
        preset=test.preset,
        started_utc=(seen.started_utc if seen else None) or utc(system.timestamp),
        started_monotonic_s=seen.start_s if seen else 0.0,
        duration_s=duration_s,
        exit_code=1 if failed else 0,
        phases=tuple(_phases(test, trial, taken, duration_s)),
        raw="",
        context=tuple(ContextValue(words.lower(), value, scale) for words, scale, value in figures),
        device_reason="PTS keeps no counters of the device",
        validity=("the trial failed under PTS",) if failed else (),
    )
    words = (column.own.told_of(trial) for column in test.columns if column.own)
    return with_told(run, next((told for told in words if told is not None), None))


def _phases(
    test: PtsExperiment,
    trial: int,
    taken: Mapping[str, tuple[tuple[float, float | None], float | None]],
    duration_s: float,
) -> list[Phase]:
    rates = {name: value for name, ((value, _), unit) in taken.items() if unit is None}
    bandwidths: dict[str, float | None] = {
        name: None if unit is None else value * unit for name, ((value, _), unit) in taken.items()
    }
    metrics: dict[str, float] = {}
    if test.experiment.tool == "fio" and len(bandwidths) == 2:
        # fio reads and writes at once: one phase, for its energy cannot be divided.
        both = {name: value for name, value in bandwidths.items() if value is not None}
        metrics = {f"{name}_bandwidth_bytes_per_s": value for name, value in both.items()}
        bandwidths = {"mixed": sum(both.values())}
    whole = len(bandwidths) == 1 and duration_s > 0
    return [
        Phase(
            name=name,
            operation="metadata" if name in rates else _operation(test, name),
            spatiality="none" if name in rates else _spatiality(test, name),
            # Bonnie++ writes and reads a byte at a time, too.
            request_size_bytes=1
            if name.startswith("character ")
            else test.experiment.request_size_bytes,
            bytes_moved=None,  # PTS keeps no count of bytes
            bandwidth_bytes_per_s=bandwidth,
            start_s=0.0 if whole else None,
            end_s=duration_s if whole else None,
            window_source=_WHOLE_TRIAL if whole else _NO_WINDOW,
            metrics={"operations_per_s": rates[name]} if name in rates else metrics,
            energy=_energy(test, trial, name, whole),
        )
        for name, bandwidth in bandwidths.items()
    ]


def _operation(test: PtsExperiment, phase: str) -> str:
    last = phase.rpartition(" ")[2]
    if phase == "rewrite" and test.experiment.tool == "bonnie":
        return "mixed"
    return {"rewrite": "write", "reread": "read"}.get(last, last)


def _spatiality(test: PtsExperiment, phase: str) -> str:
    first = phase.partition(" ")[0]
    if first in ("random", "strided"):
        return first
    return test.experiment.spatiality or "sequential"


def _energy(test: PtsExperiment, trial: int, phase: str, whole: bool) -> tuple[EnergyReading, ...]:
    """What was seen of exactly this phase: of a trial with several, the trial's is not its own."""
    readings = []
    for of_phase, energy in test.energies:
        if of_phase == phase or (of_phase == "" and whole):
            seen = energy.trials[trial] if trial < len(energy.trials) else None
            if seen is not None and seen.reading is not None:
                readings.append(seen.reading)
    return tuple(readings)


def utc(timestamp: str) -> str:
    """PTS writes local time without a zone; on the measuring machine that is UTC as a rule."""
    try:
        moment = datetime.strptime(timestamp, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
    except ValueError:
        moment = datetime.fromtimestamp(0, UTC)
    return moment.isoformat(timespec="seconds")
