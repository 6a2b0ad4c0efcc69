"""The pause before a run: until the machine has settled, not for a fixed time."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from eeio.machine.counters import read_counters
from eeio.machine.filesystem import BlockDevice
from eeio.record.design import AdaptiveProtocol
from eeio_power.monitor import PowerMonitor

# Power is the mean of this long; a drive without traffic for STILL_S is idle.
_MEAN_S = 2.0
STILL_S = 1.0
_STEP_S = 0.1
# Background traffic of a drive with a mounted file system.
_STILL_BYTES = 256 * 1024


@dataclass(frozen=True)
class Settled:
    """How long it took, s, and as text why it ended."""

    after_s: float
    reason: str


def settle(
    rule: AdaptiveProtocol,
    power: PowerMonitor,
    idle_w: Mapping[tuple[str, str], float],
    devices: Sequence[BlockDevice],
    fixed_s: float,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Settled:
    """Waits `settle_least_s` at least, until power is back at idle and the drives are idle;
    `settle_most_s` at most. `idle_w` are the baselines by meter and domain. Without such a power it
    uses a fixed pause (`fixed_s`, at most `settle_most_s`) and the drive's counters."""
    began_s = clock()
    still_since_s, moved = began_s, _moved(devices)
    while True:
        sleep(_STEP_S)
        now_s = clock()
        past_s = now_s - began_s
        now_moved = _moved(devices)
        if now_moved - moved > _STILL_BYTES:
            still_since_s, moved = now_s, now_moved
        is_still = not devices or now_s - still_since_s >= STILL_S
        share = _share_of_idle(power, idle_w, now_s)
        if share is None:
            if past_s >= min(fixed_s, rule.settle_most_s) and is_still:
                return Settled(past_s, "a fixed pause: no meter shows when it is idle")
        elif past_s >= rule.settle_least_s and is_still and abs(share - 1) <= rule.settle_power:
            return Settled(past_s, "power is back at idle and the drive does no I/O")
        if past_s >= rule.settle_most_s:
            what = "the drive moves still"
            if is_still:
                what = f"power is {share or 0:.2f} of idle"
            return Settled(past_s, f"not settled after the most there is: {what}")


def _share_of_idle(
    power: PowerMonitor, idle_w: Mapping[tuple[str, str], float], now_s: float
) -> float | None:
    """Of the first meter and domain with values of the last seconds and an idle baseline."""
    if not idle_w:
        return None
    for reading in power.energy(now_s - _MEAN_S, now_s, wait=False):
        idle = idle_w.get((reading.meter, reading.domain))
        if reading.power_w is not None and idle is not None and idle > 0.0:
            return reading.power_w / idle
    return None


def _moved(devices: Sequence[BlockDevice]) -> int:
    counted = map(read_counters, devices)
    return sum(each.read_bytes + each.written_bytes for each in counted)
