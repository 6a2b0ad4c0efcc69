"""Which share of the machine's work a command was, and of the machine's energy by that.

This is an attribution, no measurement: a processor that works for another program, or for none,
draws power too, and so do drives and memory. The share is the processor time of the command's
processes over the time in which any processor was busy; of the drive, the command's bytes over all
that the drive moved.
"""

from eeio.analysis.observation import Missing, Value
from eeio.record.run import Phase, ProcessorSeries, Run

LEAST_S = 2.0
"""The processors' use is sampled each second."""
_SLACK = 1.05
"""A command has at most all of the busy time; samples and accounts differ by a little."""
_NOT_SAMPLED = Missing("the processors' use was not sampled: short commands share a process")


def processor_share(run: Run, phase: Phase, logical_cpus: int | None) -> Value:
    """0 to 1, of the time in which the machine's processors were busy while the command ran."""
    if run.processor is None:
        return _NOT_SAMPLED
    if logical_cpus is None:
        return Missing("the number of processors is not known")
    if phase.start_s is None or phase.end_s is None or phase.end_s - phase.start_s < LEAST_S:
        return Missing(f"it takes less than {LEAST_S:g} s, in which the processors' use is sampled")
    busy_share = _busy_s(run.processor, phase.start_s, phase.end_s)
    if isinstance(busy_share, Missing):
        return busy_share
    share = phase.metrics["processor_s"] / (busy_share * logical_cpus)
    if share > _SLACK:
        return Missing("the processors' use was sampled too rarely")
    return min(share, 1.0)


def _busy_s(series: ProcessorSeries, start_s: float, end_s: float) -> Value:
    """Mean busy time of a processor, s."""
    busy_s = covered_s = before_s = 0.0
    for at_s, use in zip(series.times_s, series.use, strict=True):
        inside_s = min(at_s, end_s) - max(before_s, start_s)
        before_s = at_s
        if inside_s > 0 and use is not None:
            busy_s += use * inside_s
            covered_s += inside_s
    if covered_s <= 0 or busy_s <= 0:
        return Missing(series.missing.get("use", "the processors' use was not sampled"))
    return busy_s * (end_s - start_s) / covered_s


def drive_share(run: Run, phase: Phase) -> Value:
    """0 to 1, of the bytes that the drive moved."""
    if run.device_before is None or run.device_after is None:
        return Missing(run.device_reason or "the drive's bytes were not counted")
    own = [phase.metrics.get(name) for name in ("bytes_read", "bytes_written")]
    if None in own:
        return Missing("the command's bytes at this drive are not known")
    moved = run.device_after.read_bytes - run.device_before.read_bytes
    moved += run.device_after.written_bytes - run.device_before.written_bytes
    if moved <= 0:
        return Missing("the drive moved no bytes")
    return min(1.0, sum(filter(None, own)) / moved)


def attributed_j(energy_j: Value, share: Value) -> Value:
    """The share of the machine's energy, by processor time."""
    if isinstance(energy_j, Missing):
        return energy_j
    if isinstance(share, Missing):
        return share
    return energy_j * share
