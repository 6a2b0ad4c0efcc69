"""The pause before a run: until the machine has settled, not for a fixed time."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from eeio.system.counters import read_counters
from eeio.system.filesystem import BlockDevice
from eeio_power.monitor import PowerMonitor
from eeio_results.campaign import AdaptiveProtocol

# Power is the mean of this long; a drive that moved nothing for as long as STILL_S stands still.
_MEAN_S = 2.0
STILL_S = 1.0
_STEP_S = 0.1
# That much still moves on a drive with a mounted file system when nothing runs.
_STILL_BYTES = 256 * 1024


@dataclass(frozen=True)
class Settled:
    """How long it took, s, and in words what ended it."""

    after_s: float
    reason: str


def settle(
    rule: AdaptiveProtocol,
    power: PowerMonitor,
    idle_w: Mapping[tuple[str, str], float],
    device: BlockDevice | None,
    fixed_s: float,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Settled:
    """Waits `settle_least_s` at least, until power is back at idle and the drive stands still;
    `settle_most_s` at most. `idle_w` are the baselines by meter and domain. Without a power that
    says so a fixed pause must do (`fixed_s`, at most `settle_most_s`), and the drive's counters."""
    began_s = clock()
    still_since_s, moved = began_s, _moved(device)
    while True:
        sleep(_STEP_S)
        now_s = clock()
        past_s = now_s - began_s
        now_moved = _moved(device)
        if now_moved - moved > _STILL_BYTES:
            still_since_s, moved = now_s, now_moved
        is_still = device is None or now_s - still_since_s >= STILL_S
        share = _share_of_idle(power, idle_w, now_s)
        if share is None:
            if past_s >= min(fixed_s, rule.settle_most_s) and is_still:
                return Settled(past_s, "a fixed pause: no power tells when it is idle")
        elif past_s >= rule.settle_least_s and is_still and abs(share - 1) <= rule.settle_power:
            return Settled(past_s, "power is back at idle and the drive stands still")
        if past_s >= rule.settle_most_s:
            what = "the drive moves still" if not is_still else f"power is {share or 0:.2f} of idle"
            return Settled(past_s, f"not settled after the most there is: {what}")


def _share_of_idle(
    power: PowerMonitor, idle_w: Mapping[tuple[str, str], float], now_s: float
) -> float | None:
    """Of the first meter and domain that tell the last seconds and have an idle baseline."""
    if not idle_w:
        return None
    for reading in power.energy(now_s - _MEAN_S, now_s):
        idle = idle_w.get((reading.meter, reading.domain))
        if reading.power_w is not None and idle is not None and idle > 0.0:
            return reading.power_w / idle
    return None


def _moved(device: BlockDevice | None) -> int:
    if device is None:
        return 0
    counted = read_counters(device)
    return counted.read_bytes + counted.written_bytes
