"""What of a window no reading accounts for, and when that makes its energy unusable."""

import math
from collections.abc import Sequence

from eeio_power.meters import Channel
from eeio_power.stretches import Stretches

GAP_PERIODS = 5.0
GAP_FLOOR_S = 2.0
# A counter that could have shown this power and shows none, over this many of its updates, stands
# still.
STILL_POWER_W = 1e-3
STILL_PERIODS = 10.0


def gap_limit_s(period_s: float) -> float:
    """The longest gap that is held over, s: five periods, and never under two seconds."""
    return max(GAP_PERIODS * period_s, GAP_FLOOR_S)


def gap_reasons(
    channel: Channel,
    stretches: Stretches,
    late: Sequence[int],
    period_s: float,
    start_s: float,
    end_s: float,
) -> list[str]:
    """Why stretches that are longer than a gap may be make the energy unusable."""
    limit_s = gap_limit_s(period_s)
    reasons = []
    for k in late:
        length_s = stretches.length_s(k)
        inside = start_s <= stretches.starts_s[k] and stretches.ends_s[k] <= end_s
        whole = k in stretches.inner and inside
        if length_s > limit_s and not (channel.quantity == "energy_j" and whole):
            reasons.append(
                f"{channel.name}: {length_s:.1f} s without a reading, more than the limit of "
                f"{limit_s:.1f} s"
            )
    return reasons


def still_reasons(
    channel: Channel,
    energy_j: float,
    native_period_s: float,
    stretches: Stretches,
    touching: range,
) -> list[str]:
    """Why an energy of 0 J is none: a sensor, or a counter, that does not measure."""
    if energy_j != 0.0:
        return []
    if channel.quantity == "power_w":
        return [f"{channel.name}: every reading is 0 W: the sensor does not measure"]
    # The readings around a short window show what the window itself is too short for.
    watched_s = math.fsum(stretches.length_s(k) for k in touching if k in stretches.inner)
    if watched_s <= STILL_PERIODS * native_period_s:
        return []
    if channel.resolution / watched_s < STILL_POWER_W:
        return [f"{channel.name}: the counter stands still: it does not measure"]
    return []


def unseen_time_s(
    channel: Channel,
    stretches: Stretches,
    late: Sequence[int],
    period_s: float,
    start_s: float,
    end_s: float,
) -> float:
    """Time of the window that no reading accounts for, s."""
    counter = channel.quantity == "energy_j"
    unseen_s = 0.0
    ends = [0] if stretches.head and counter else []
    ends += [len(stretches.starts_s) - 1] if stretches.tail else []
    for k in {*late, *ends}:
        inside_s = stretches.inside_s(k, start_s, end_s)
        if k in ends:
            unseen_s += inside_s
        elif not counter:
            # The reading at its end speaks for one period.
            since_s = max(start_s, stretches.ends_s[k] - period_s)
            unseen_s += inside_s - stretches.inside_s(k, since_s, end_s)
    return unseen_s


def lost_readings(
    stretches: Stretches, k: int, period_s: float, start_s: float, end_s: float
) -> int:
    """Readings that should have come inside the stretch and the window."""
    begin_s, length_s = stretches.starts_s[k], stretches.length_s(k)
    if stretches.tail and k == len(stretches.starts_s) - 1:
        return int(length_s / period_s)
    steps = round(length_s / period_s)
    if steps < 2:
        return 0

    def until(time_s: float) -> int:
        """How many of them should have come at `time_s` or before."""
        count = min(max(math.floor((time_s - begin_s) / length_s * steps), 0), steps - 1)
        # The quotient may be a hair off the time that it stands for.
        while count + 1 < steps and begin_s + length_s * (count + 1) / steps <= time_s:
            count += 1
        while count > 0 and begin_s + length_s * count / steps > time_s:
            count -= 1
        return count

    return max(0, until(end_s) - until(start_s))
