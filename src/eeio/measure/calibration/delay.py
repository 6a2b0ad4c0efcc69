"""How late a live meter is and over how long it averages: steps of load, and a fit to its readings.

All processors are loaded and left idle in turn, for times that follow no rhythm. A meter that lags
by L and averages A reads a + b f(t), with f the share of the time from t - L - A to t - L that was
loaded. L and A are those with the smallest sum of squares, and their uncertainty is the range in
which that sum is not larger by more than chance (profile likelihood: Bates and Watts, Nonlinear
Regression Analysis, 1988, chapter 6).
"""

import math
import statistics
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import accumulate, pairwise

from eeio.errors import EeioError
from eeio_power.alignment import Pulse
from eeio_power.delay import Delay
from eeio_power.errors import PowerError
from eeio_power.meters import Meter

LONGEST_S = 12.0
"""The longest lag and the longest mean that are searched."""
SPACINGS_S = (0.5, 0.1, 0.02)
"""Of the grids, each around the best place of the one before."""
POLLS_PER_PERIOD = 5
FASTEST_S = 0.02
MOST_READINGS = 600
LEAST_EXPLAINED = 0.8
"""Share of the variance of the readings that the load must explain."""
LEAST_WITHIN_S = 0.05
LEAST_CHANGES = 3
"""Changes of the value per step of load that show how often it is updated."""
_FISHER = 3.0
"""F(2, n) at 95 %, for n above 60."""


@dataclass(frozen=True)
class Readings:
    """What one channel read, at monotonic times, s."""

    times_s: Sequence[float]
    values: Sequence[float]


@dataclass(frozen=True)
class Fit:
    """The delay, and what it was found from."""

    delay: Delay
    changes_every_s: float
    """Median time between two changes of the value."""
    change_w: float
    """By which the load changes the power."""


def poll(
    meter: Meter,
    load: Callable[[], Sequence[Pulse]],
    clock: Callable[[], float] = time.monotonic,
) -> tuple[Readings, Sequence[Pulse]]:
    """Reads the power of a meter, faster than it has new values, while `load` runs.

    Counters give the mean power between two reads. Raises EeioError if no read succeeds.
    """
    period_s = max(FASTEST_S, meter.native_period_s / POLLS_PER_PERIOD)
    times_s: list[float] = []
    totals: list[float] = []
    ended = threading.Event()
    counted = [c for c in meter.channels if c.in_domain_total]
    domain = counted[0].domain
    places = [k for k, c in enumerate(meter.channels) if c.in_domain_total and c.domain == domain]

    def run() -> None:
        while not ended.is_set():
            begun_s = clock()
            try:
                values = meter.read()
            except (OSError, PowerError):
                values = []
            known = [v for k in places if k < len(values) and (v := values[k]) is not None]
            if len(known) == len(places):
                times_s.append((begun_s + clock()) / 2.0)
                totals.append(math.fsum(known))
            ended.wait(max(0.0, begun_s + period_s - clock()))

    thread = threading.Thread(target=run, name="eeio-delay", daemon=True)
    thread.start()
    try:
        pulses = load()
    finally:
        ended.set()
        thread.join()
    if len(times_s) < 2:
        raise EeioError(f"{meter.spec}: it gave no power during the load; check the meter")
    if counted[0].quantity == "energy_j":
        steps = pairwise(zip(times_s, totals, strict=True))
        powers_w = [(after - before) / (t - since) for (since, before), (t, after) in steps]
        return Readings(times_s[1:], powers_w), pulses
    return Readings(times_s, totals), pulses


def fitted(readings: Readings, pulses: Sequence[Pulse], native_period_s: float, meter: str) -> Fit:
    """Lag and averaging time of the readings. Raises EeioError if they do not follow the load."""
    updates, period_s, poll_s = _updates(readings, native_period_s, 2 * len(pulses))
    loaded = _Loaded(pulses)
    lag_s = averages_s = LONGEST_S / 2.0
    reach_s = LONGEST_S / 2.0
    sums: dict[tuple[float, float], float] = {}
    for spacing_s in SPACINGS_S:
        for candidate in _grid(lag_s, averages_s, reach_s, spacing_s):
            if candidate not in sums:
                sums[candidate] = _line(loaded, updates, *candidate)[0]
        lag_s, averages_s = min(sums, key=lambda pair: sums[pair])
        reach_s = 2.0 * spacing_s
    least, change_w = _line(loaded, updates, lag_s, averages_s)
    mean_w = statistics.fmean(updates.values)
    total = math.fsum((value - mean_w) ** 2 for value in updates.values)
    if total <= 0.0 or least > (1.0 - LEAST_EXPLAINED) * total:
        raise EeioError(
            f"{meter}: its readings do not follow the load of the processors; does it measure this "
            "machine? If it has new values more slowly than each "
            f"{native_period_s:g} s (`eeio meter list` shows how often), give its period, as in "
            "period_s=5. Else end other programs, and give --count for more steps"
        )
    # A fit without noise is still no better than the time between two polls.
    noise = max(least, 1e-4 * total) / max(1, len(updates.times_s) - 4)
    limit = least + 2.0 * _FISHER * noise
    near = [pair for pair, value in sums.items() if value <= limit]
    if max(max(pair) for pair in near) >= LONGEST_S:
        raise EeioError(
            f"{meter}: its readings fit a lag or a mean of {LONGEST_S:g} s or more, and longer "
            "ones are not searched. Do not use this meter for short runs; if its maker states both "
            "times, give them: lag_s= and averages_s="
        )
    lags_s, means_s = [lag for lag, _ in near], [mean for _, mean in near]
    today = datetime.now(UTC).date().isoformat()
    delay = Delay(
        round((min(lags_s) + max(lags_s)) / 2.0, 3),
        round((min(means_s) + max(means_s)) / 2.0, 3),
        round(max(LEAST_WITHIN_S, (max(lags_s) - min(lags_s)) / 2.0 + poll_s / 2.0), 3),
        round(max(LEAST_WITHIN_S, (max(means_s) - min(means_s)) / 2.0 + poll_s / 2.0), 3),
        f"measured by {len(pulses)} steps of load on {today}",
    )
    return Fit(delay, period_s, change_w)


def _grid(
    lag_s: float, averages_s: float, reach_s: float, spacing_s: float
) -> list[tuple[float, float]]:
    steps = round(reach_s / spacing_s)
    offsets_s = [k * spacing_s for k in range(-steps, steps + 1)]
    return [
        (round(lag_s + a, 6), round(averages_s + b, 6))
        for a in offsets_s
        for b in offsets_s
        if lag_s + a >= 0.0 and averages_s + b >= 0.0
    ]


def _updates(
    readings: Readings, native_period_s: float, edges: int
) -> tuple[Readings, float, float]:
    """The readings at which the meter had a new value, the time between two, and between two polls.

    A value that stays the same is updated, too, and does not show it.
    """
    times_s, values = readings.times_s, readings.values
    poll_s = statistics.median(after - before for before, after in pairwise(times_s))
    changes = [k for k in range(1, len(values)) if values[k] != values[k - 1]]
    if len(changes) < 2:
        raise EeioError("the readings did not change during the load: the meter is stuck")
    spacings_s = sorted(times_s[b] - times_s[a] for a, b in pairwise(changes))
    # A mean changes with every update while it follows a step: the shortest times are the period.
    period_s = spacings_s[len(spacings_s) // 10]
    if len(changes) < LEAST_CHANGES * edges:
        period_s = min(period_s, native_period_s)
    period_s = max(poll_s, period_s)
    found_s: list[float] = []
    updates: list[float] = []
    for k, following in pairwise([*changes, len(values) - 1]):
        # It changed at some time after the poll before.
        updated_s = times_s[k] - poll_s / 2.0
        until_s = times_s[following] - poll_s - period_s / 2.0
        count = max(0, math.floor((until_s - updated_s) / period_s))
        found_s += [updated_s + n * period_s for n in range(count + 1)]
        updates += [values[k]] * (count + 1)
    step = max(1, len(updates) // MOST_READINGS)
    return Readings(found_s[::step], updates[::step]), period_s, poll_s


class _Loaded:
    """The time that was loaded, as a function of the time."""

    def __init__(self, pulses: Sequence[Pulse]) -> None:
        self._edges_s = [edge_s for pulse in pulses for edge_s in (pulse.start_s, pulse.end_s)]
        self._until_s = [0.0, *accumulate(pulse.end_s - pulse.start_s for pulse in pulses)]

    def until_s(self, time_s: float) -> float:
        """The loaded seconds before it."""
        edges = bisect_right(self._edges_s, time_s)
        done_s = self._until_s[edges // 2]
        return done_s + (time_s - self._edges_s[edges - 1] if edges % 2 else 0.0)

    def share(self, end_s: float, averages_s: float) -> float:
        """Of the time up to `end_s`."""
        if averages_s < 1e-6:
            return float(bisect_right(self._edges_s, end_s) % 2)
        return (self.until_s(end_s) - self.until_s(end_s - averages_s)) / averages_s


def _line(
    loaded: _Loaded, updates: Readings, lag_s: float, averages_s: float
) -> tuple[float, float]:
    """The smallest sum of squares of the readings around a line of the load, and its slope, W."""
    shares = [loaded.share(time_s - lag_s, averages_s) for time_s in updates.times_s]
    mean_share, mean_w = statistics.fmean(shares), statistics.fmean(updates.values)
    s_xx = math.fsum((x - mean_share) ** 2 for x in shares)
    s_xy = math.fsum(
        (x - mean_share) * (y - mean_w) for x, y in zip(shares, updates.values, strict=True)
    )
    s_yy = math.fsum((y - mean_w) ** 2 for y in updates.values)
    if s_xx <= 0.0 or s_xy <= 0.0:
        return s_yy, 0.0
    return max(0.0, s_yy - s_xy**2 / s_xx), s_xy / s_xx
