"""The break-even of pauses, by meters that are late: `eeio.measure.drives.gap.saved`."""

import random
from bisect import bisect_right
from dataclasses import replace

import pytest

from eeio.measure.drives.gap import GapReading, accuracies, saved
from eeio.statistics.break_even import BreakEven
from eeio_power.delay import BMC, PLUG, Delay
from eeio_power.energy import meter_energy, wait_s
from eeio_power.meters import Channel
from eeio_power.reading import WALL
from eeio_power.samples import MeterInfo

# A drive of 5 W, 1 W in standby, 22 W for 7 s when it spins up.
_IDLE_W, _STANDBY_W, _SPIN_UP_W, _SPIN_UP_S = 5.0, 1.0, 22.0, 7.0
_GAPS_S = (10.0, 60.0, 300.0)


class _Machine:
    """Its power over time, in steps."""

    def __init__(self, base_w: float) -> None:
        self.base_w = base_w
        self._times_s, self._watts, self._joules = [0.0], [base_w + _IDLE_W], [0.0]

    def step(self, time_s: float, drive_w: float) -> None:
        self._joules.append(self.energy_j(time_s))
        self._times_s.append(time_s)
        self._watts.append(self.base_w + drive_w)

    def energy_j(self, until_s: float) -> float:
        place = bisect_right(self._times_s, until_s) - 1
        return self._joules[place] + self._watts[place] * (until_s - self._times_s[place])


def _break_evens(assumed: Delay, real: Delay, base_w: float) -> tuple[BreakEven, BreakEven]:
    """Of the true energies, and of those of a meter that is late."""
    draw = random.Random(1)
    machine = _Machine(base_w)
    channel = Channel(
        "m", "system", "power_w", accuracy_relative=0.05, contents=WALL, delay=assumed
    )
    info = MeterInfo("m", "m", "measured", 1.0, 1.0, (channel,))
    windows, time_s = [], 100.0
    for gap_s, repetition in ((g, r) for g in _GAPS_S for r in range(1, 6)):
        for saving in (False, True):
            start_s, end_s = time_s + 1.0, time_s + 1.1 + gap_s
            if saving:
                machine.step(start_s, _STANDBY_W)
                machine.step(start_s + gap_s, _SPIN_UP_W)
                end_s = start_s + gap_s + _SPIN_UP_S
                machine.step(end_s, _IDLE_W)
            windows.append((gap_s, repetition, saving, start_s, end_s))
            time_s = end_s + wait_s(channel, 1.0, 1.0) + draw.uniform(1.0, 2.0)
    times_s = [float(second) for second in range(20, int(time_s) + 20)]
    values = []
    for second in times_s:
        until_s, mean_s = second - real.lag_s, max(real.averages_s, 1e-3)
        mean_w = (machine.energy_j(until_s) - machine.energy_j(until_s - mean_s)) / mean_s
        values.append(mean_w + draw.gauss(0.0, 0.5))
    true, late = [], []
    for gap_s, repetition, saving, start_s, end_s in windows:
        (reading,) = meter_energy(
            meter="m", kind="measured", channels=[channel], native_period_s=1.0, period_s=1.0,
            times_s=times_s, values=[values], start_s=start_s, end_s=end_s,
        )  # fmt: skip
        gap = GapReading(gap_s, repetition, saving, 0.1, end_s - start_s, (reading,), None)
        late.append(gap)
        exact_j = machine.energy_j(end_s) - machine.energy_j(start_s)
        true.append(replace(gap, energy=(replace(reading, energy_j=exact_j, uncertainty_j=0.0),)))
    (of_true,), (of_late,) = saved(true), saved(late, accuracies([info]))
    return of_true.found, of_late.found


@pytest.mark.parametrize(
    ("assumed", "real", "base_w"),
    [
        (PLUG, Delay(2.0, 1.0), 40.0),
        (PLUG, Delay(0.3, 0.2), 40.0),
        (BMC, Delay(5.0, 5.0), 100.0),
        (BMC, Delay(1.0, 0.5), 100.0),
    ],
)
def test_the_interval_contains_the_break_even_whatever_the_delay_is(
    assumed: Delay, real: Delay, base_w: float
) -> None:
    true, found = _break_evens(assumed, real, base_w)
    assert true.pause_s is not None
    assert found.low_s is not None and found.high_s is not None
    assert found.low_s < true.pause_s < found.high_s


def test_a_known_delay_makes_the_interval_narrow() -> None:
    _, unsure = _break_evens(PLUG, Delay(1.0, 0.5), 40.0)
    true, known = _break_evens(Delay(1.0, 0.5), Delay(1.0, 0.5), 40.0)
    assert known.low_s is not None and known.high_s is not None and true.pause_s is not None
    assert known.low_s < true.pause_s < known.high_s
    assert unsure.low_s is not None and unsure.high_s is not None
    assert known.high_s - known.low_s < 0.7 * (unsure.high_s - unsure.low_s)


def test_a_break_even_within_the_uncertainty_of_the_meter_is_withheld() -> None:
    slow = replace(BMC, averages_s=15.0, averages_within_s=5.0)
    _, found = _break_evens(slow, Delay(1.0, 10.0), 300.0)
    assert found.pause_s is found.low_s is found.high_s is None
    assert found.reason is not None and "eeio meter calibrate" in found.reason
