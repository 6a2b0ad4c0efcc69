"""A run that ended in one line of the log: what it moved, and what that cost."""

from eeio_results.campaign import PlannedRun
from eeio_results.record import DOMAINS, MARKS, EnergyReading, Experiment, Phase, Run
from eeio_results.record import mark as mark_of
from eeio_results.report.columns import WITHOUT_DRIVES, number
from eeio_results.units import MB, percent
from eeio_results.windows import Window, window_of

ESTIMATE = "ESTIMATE"


def words_of_run(planned: PlannedRun, run: Run) -> str:
    """`fio read 4 KiB #2: read 120.3 MB/s, system 12.3 W ±1.2 %, 9.78 MB/J ±1.2 %`."""
    words = f"{run.experiment.tool} {planned.experiment.description}"
    if planned.experiment.volume:
        words += f" on {planned.experiment.volume}"
    results = ", ".join(filter(None, (_of_phase(run.experiment, phase) for phase in run.phases)))
    reasons = [*run.validity, *(reason for phase in run.phases for reason in phase.validity)]
    invalid = f" INVALID: {reasons[0]}" if reasons else ""
    return f"{words} #{run.repetition}: {results or 'done'}{invalid}"


def cost_of_run(run: Run) -> str:
    """Power and MB/J of its last phase that has any, for a bar; nothing where none was measured."""
    for phase in reversed(run.phases):
        if (cost := _cost(window_of(run.experiment, phase))) is not None:
            return cost
    return ""


def _of_phase(experiment: Experiment, phase: Phase) -> str | None:
    window = window_of(experiment, phase)
    found = []
    if window.bandwidth_bytes_per_s is not None:
        found.append(f"{phase.operation} {window.bandwidth_bytes_per_s / MB:.1f} MB/s")
    if (cost := _cost(window)) is not None:
        found.append(cost)
    return ", ".join(found)


def _cost(window: Window) -> str | None:
    """Of the widest domain that a meter saw, each figure with its limit of error where there is
    one; of modelled power only where nothing was measured, and marked. None without power."""
    seen = [reading for reading in window.energy if reading.valid and reading.power_w is not None]
    if not seen:
        return None
    reading = min(seen, key=lambda r: (r.kind in MARKS, DOMAINS.index(r.domain)))
    limit = _limit(reading)
    mark = mark_of(reading.kind)
    words = f"{mark}{reading.domain} {number(reading.power_w or 0.0)} W{limit}"
    words += " (doubtful)" if reading.doubtful else ""
    efficiency = window.efficiency_bytes_per_j(reading)
    if efficiency is not None and reading.why_not_ranked is None:
        words += f", {mark}{number(efficiency / MB)} MB/J{limit}"
        if reading.leaves_drives_out:
            words += f" ({WITHOUT_DRIVES})"
    return words


def _limit(reading: EnergyReading) -> str:
    share = reading.uncertainty_relative
    return "" if share is None else f" ±{percent(share)} %"
