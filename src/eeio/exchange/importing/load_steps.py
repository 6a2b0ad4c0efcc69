"""The steps of load that results make in a power log: how far its readings are later than these.

The offset is where the mean power of the results exceeds that of the pauses most. A clock that
drifts, or that was set, fits the parts of the results at different offsets.
"""

import math
import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise, takewhile
from operator import sub
from typing import Protocol, TypeVar

from eeio.exchange.importing.power_logs import Series
from eeio_power.alignment import FINE_S, SEARCH_S, Energy, Offset, Pulse
from eeio_power.errors import PowerError

DISTINCT_SHARE = 0.8
"""An offset is distinct if no other place within the search reaches this share of its contrast."""
LEAST_CONTRAST = 0.7
"""Of the spread of the readings: less shows that something else changed the power."""
LEAST_SIGMAS = 5.0
LEAST_PULSES = 3
"""Results with pauses between them: one or two fit other work as well."""
MOST_PULSES = 2000
MOST_REPEATED = 0.74
"""The share of the results' time that may lie on results again after a shift."""
LEAST_UNREPEATED = 1.05
"""Of the longest result's time: what must not lie on results again. Less is what one other load can
look like."""
ENOUGH_UNREPEATED = 10.0
"""Of the longest result's time: more than other loads can look like, whatever its share is."""
LEAST_IN_ZONE = 0.4
"""Of the results' time, on results again in another zone: less makes no contrast there."""
MOST_PARTS = 8
"""In which the results are searched for a drift of the clock."""
LEAST_OF_PART = 8
"""Results; two parts may have less."""
_AS_GOOD_SHARE = 0.9
"""Of the best contrast: the results of two days may fit at two offsets."""
QUARTER_HOUR_S = 900.0
"""Zones differ by multiples of it."""
MOST_ZONES_S = 26 * 3600.0
"""From UTC-12 to UTC+14."""
_NEAR_ZONE_S = 15.0
"""A clock of another zone may be off by so much, too."""
_PAUSE_PERIODS, _LEAST_PAUSE_S = 10.0, 30.0
"""A log that has no reading for longer was interrupted: its clock may have been set."""
_EDGE_S, _EDGE_PERIODS = 5.0, 2.5
"""Before and after the begin and the end of a result, where its steps of load are looked at."""
_FITTING_SHARE = 0.75
"""Of the steps at the best offset, where the power rises when results begin and falls when they
end: an offset with smaller steps does not fit."""
_LEAST_SEARCH_STEP_S = 0.5


@dataclass(frozen=True)
class LoadOffset(Offset):
    """The offset of all results. Its uncertainty contains the drift."""

    drift_s: float = 0.0
    """By which the clock drifts during the results: the largest difference of their parts, extended
    to the ends of the first and the last one."""
    drift_unsure_s: float = 0.0


class _HasStart(Protocol):
    @property
    def start_s(self) -> float: ...


Span = TypeVar("Span", bound=_HasStart)


def cut_at(gaps_s: Sequence[float], spans: Sequence[Span], ahead_s: float) -> list[list[Span]]:
    """The spans between the gaps of a log, of which `gaps_s` are the begins. Less than LEAST_PULSES
    show no offset, and stay with those before them."""
    stretches: list[list[Span]] = []
    last = -1
    for span in spans:
        number = bisect_left(gaps_s, span.start_s + ahead_s)
        if number != last and not (stretches and len(stretches[-1]) < LEAST_PULSES):
            stretches.append([])
        stretches[-1].append(span)
        last = number
    if len(stretches) > 1 and len(stretches[-1]) < LEAST_PULSES:
        stretches[-2] += stretches.pop()
    return stretches


def gaps_of(times_s: Sequence[float], period_s: float) -> list[float]:
    """The begins of the times in which the logger was off."""
    longest_s = max(_PAUSE_PERIODS * period_s, _LEAST_PAUSE_S)
    return [before_s for before_s, after_s in pairwise(times_s) if after_s - before_s > longest_s]


def parts_of(spans: Sequence[Span], count: int) -> list[Sequence[Span]]:
    """So many parts of about equal numbers."""
    ends = [round(len(spans) * k / count) for k in range(count + 1)]
    return [spans[begin:end] for begin, end in pairwise(ends)]


class LoadSteps:
    """The power of a series over time. Raises PowerError for too few readings."""

    def __init__(self, series: Series) -> None:
        self.series = series
        times_s, power_w = _powers(series)
        self._energy = Energy(times_s, power_w)
        self._gaps_s = gaps_of(times_s, series.period_s)
        self._step_w: float = statistics.median(map(abs, map(sub, power_w[1:], power_w)))

    def estimated(
        self, spans: Sequence[Pulse], around_s: float, search_s: float = SEARCH_S
    ) -> LoadOffset:
        """How far the readings are later than the results, within `search_s` of `around_s`: the
        offset of the log's clock, and the delay of the meter.

        Raises PowerError if that is not distinct: there are less than LEAST_PULSES results, the
        contrast is below LEAST_CONTRAST of the readings' spread or LEAST_SIGMAS of its noise,
        another place reaches DISTINCT_SHARE of it, some results have less than half of it, the
        place is at an end of the search, or the log does not cover all results there.
        """
        period_s, times_s = self.series.period_s, self._energy.times_s
        pulses = _pulses(spans, 2 * period_s)
        if not LEAST_PULSES <= len(pulses) <= MOST_PULSES:
            raise PowerError(
                f"{len(spans)} results in {len(pulses)} groups with pauses of more than "
                f"{2 * period_s:g} s (two readings) between them, and {LEAST_PULSES} to "
                f"{MOST_PULSES} such groups are needed"
            )
        if times_s[-1] - times_s[0] < pulses[-1].end_s - pulses[0].start_s:
            raise PowerError("the log does not cover all results")
        if _repeats(pulses):
            raise PowerError(_AT_EQUAL_TIMES)
        longest_s = max(pulse.end_s - pulse.start_s for pulse in pulses)
        if longest_s < 3 * period_s:
            raise PowerError(
                f"no result lasts 3 readings of {self.series.meter} ({period_s:g} s each)"
            )
        margin_s = min(longest_s, SEARCH_S)
        around = _with_margins(pulses, pulses[0].start_s - margin_s, pulses[-1].end_s + margin_s)
        contrasts = self._contrasts(around, around_s, search_s)
        best_s = max(contrasts, key=lambda ahead_s: contrasts[ahead_s])
        _check_distinct(list(contrasts.values()), search_s)
        self._check_visible(pulses, best_s, contrasts[best_s])
        self._check_zones(pulses, best_s, contrasts[best_s])
        offset = self._refined(around, best_s)
        return self._with_drift(pulses, offset, search_s)

    def better_zone_s(
        self, spans: Sequence[Pulse], used_s: float, zones_s: Sequence[float]
    ) -> float | None:
        """Of other offsets, from which the clock differs by seconds, the one at which the power
        follows the results best; None if it does not, or does so at `used_s`, too."""
        pulses = _pulses(spans, 2 * self.series.period_s)
        longest_s = max(pulse.end_s - pulse.start_s for pulse in pulses)
        if len(pulses) < LEAST_PULSES or longest_s < 3 * self.series.period_s:
            return None
        margin_s = min(longest_s, SEARCH_S)
        around = _with_margins(pulses, pulses[0].start_s - margin_s, pulses[-1].end_s + margin_s)
        best_w = {
            zone_s: max(
                (contrast_w, ahead_s)
                for ahead_s, contrast_w in self._contrasts(around, zone_s, _NEAR_ZONE_S).items()
            )
            for zone_s in (used_s, *zones_s)
            if zone_s == used_s or self._covers(pulses, zone_s)
        }
        most_w, _ = max(best_w.values())
        if most_w <= 0.0:  # the power falls when the results begin
            return None
        limit_w = _AS_GOOD_SHARE * most_w
        good_s = [zone_s for zone_s, (contrast_w, _) in best_w.items() if contrast_w >= limit_w]
        zone_s = min(good_s, key=lambda zone_s: abs(zone_s - used_s))
        contrast_w, ahead_s = best_w[zone_s]
        if best_w[used_s][0] > contrast_w / 2:
            return None
        try:
            self._check_visible(pulses, ahead_s, contrast_w)
        except PowerError:
            return None
        return zone_s

    def fitting_zone_s(self, spans: Sequence[Pulse], used_s: float) -> float | None:
        """Of results at equal times, another zone of the log's clock in which more of them have a
        step of load than at `used_s`; None if there is none."""
        pulses = _pulses(spans, 2 * self.series.period_s)
        shifts_s = _zones_at_equal_times_s(pulses)
        if len(pulses) < LEAST_PULSES or not shifts_s:
            return None
        contrasts = {
            ahead_s: self._contrast_w(pulses, ahead_s)
            for ahead_s in (used_s, *(used_s + shift_s for shift_s in shifts_s))
            if ahead_s == used_s or self._covers(pulses, ahead_s)
        }
        limit_w = DISTINCT_SHARE * max(contrasts.values())
        without = {
            ahead_s: _count_without_step(self._energy, pulses, ahead_s, contrast_w)
            for ahead_s, contrast_w in contrasts.items()
            if ahead_s == used_s or contrast_w >= limit_w > 0.0
        }
        best_s = min(without, key=lambda ahead_s: (without[ahead_s], abs(ahead_s - used_s)))
        if without[best_s] < without[used_s]:
            return best_s
        return None

    def better_offsets_s(
        self, spans: Sequence[Pulse], used_s: float, unsure_s: float
    ) -> list[float]:
        """The offsets of the clock, the nearest one before and after `used_s`, at which the power
        rises and falls with the results, if it does so much less within `unsure_s` of `used_s`. No
        unique offset is needed.

        Raises PowerError if it does so nowhere within SEARCH_S.
        """
        series = self.series
        pulses = _pulses_with_steps(spans, series)
        late_s = _late_s(series)
        step_s = max(_LEAST_SEARCH_STEP_S, series.period_s / 4)
        within_s = unsure_s + _late_within_s(series) + series.period_s + step_s / 2
        steps = _Steps(self._energy, pulses, _edge_s(series))
        count = math.ceil(SEARCH_S / step_s)
        steps_w = {}
        for k in range(-count, count + 1):
            steps_w[k * step_s] = steps.least_w(used_s + late_s + k * step_s)
        off_s = max(steps_w, key=lambda off_s: steps_w[off_s])
        self._check_visible(pulses, used_s + late_s + off_s, steps_w[off_s], _edge_s(series))
        limit_w = _FITTING_SHARE * steps_w[off_s]
        if any(steps_w[off_s] >= limit_w for off_s in steps_w if abs(off_s) <= within_s):
            return []
        fitting_s = [off_s for off_s in steps_w if steps_w[off_s] >= limit_w]
        groups_s = _groups_of(fitting_s, 1.5 * step_s)
        best_s = [max(group_s, key=lambda off_s: steps_w[off_s]) for group_s in groups_s]
        before_s = [off_s for off_s in best_s if off_s < 0.0]
        after_s = [off_s for off_s in best_s if off_s > 0.0]
        return [used_s + off_s for off_s in (*before_s[-1:], *after_s[:1])]

    def _check_zones(self, pulses: Sequence[Pulse], best_s: float, contrast_w: float) -> None:
        """Raises PowerError if the clock may as well be of another zone: the results follow each
        other at equal times, and not all of them have a step of load, or have one there, too."""
        shifts_s = _zones_at_equal_times_s(pulses)
        if not shifts_s:
            return
        if _count_without_step(self._energy, pulses, best_s, contrast_w):
            raise PowerError(_AT_EQUAL_TIMES)
        for shift_s in shifts_s:
            zone_s = best_s + shift_s
            zone_w = self._contrast_w(pulses, zone_s)
            if not self._covers(pulses, zone_s) or zone_w < DISTINCT_SHARE * contrast_w:
                continue
            if not _count_without_step(self._energy, pulses, zone_s, zone_w):
                raise PowerError(_AT_EQUAL_TIMES)

    def _contrast_w(self, pulses: Sequence[Pulse], ahead_s: float) -> float:
        longest_s = max(pulse.end_s - pulse.start_s for pulse in pulses)
        margin_s = min(longest_s, SEARCH_S)
        around = _with_margins(pulses, pulses[0].start_s - margin_s, pulses[-1].end_s + margin_s)
        return self._energy.contrast_w(around, ahead_s)

    def _covers(self, pulses: Sequence[Pulse], ahead_s: float) -> bool:
        times_s = self._energy.times_s
        begin_s, end_s = pulses[0].start_s + ahead_s, pulses[-1].end_s + ahead_s
        return times_s[0] <= begin_s and end_s <= times_s[-1]

    @property
    def _search_step_s(self) -> float:
        return max(0.05, self.series.period_s / 4)

    def _contrasts(
        self, around: Sequence[Pulse], near_s: float, search_s: float
    ) -> dict[float, float]:
        """The contrast of each offset of a search, W."""
        step_s = self._search_step_s
        count = math.ceil(search_s / step_s)
        return {
            near_s + k * step_s: self._energy.contrast_w(around, near_s + k * step_s)
            for k in range(-count, count + 1)
        }

    def _check_visible(
        self, pulses: Sequence[Pulse], best_s: float, contrast_w: float, margin_s: float = 0.0
    ) -> None:
        """Raises PowerError if the power does not follow the results at that offset. The spread of
        the readings is that from `margin_s` before the results to `margin_s` after them."""
        times_s, power_w = self._energy.times_s, self._energy.power_w
        begin_s = pulses[0].start_s + best_s - margin_s
        end_s = pulses[-1].end_s + best_s + margin_s
        first, last = bisect_left(times_s, begin_s), bisect_right(times_s, end_s)
        near = sorted(power_w[max(0, first - 2) : last + 2])
        spread_w = near[int(0.95 * (len(near) - 1))] - near[int(0.05 * (len(near) - 1))]
        if not contrast_w > max(LEAST_CONTRAST * spread_w, LEAST_SIGMAS * self._noise_w(pulses)):
            raise PowerError("the power does not follow the results")
        if _count_without_step(self._energy, pulses, best_s, contrast_w) > len(pulses) // 10:
            raise PowerError("some results do not change the power")
        if not self._covers(pulses, best_s):
            raise PowerError("the log does not cover all results")

    def _noise_w(self, pulses: Sequence[Pulse]) -> float:
        """The standard error of a contrast, from the differences of neighbouring readings."""
        count = max(1.0, sum(p.end_s - p.start_s for p in pulses) / self.series.period_s)
        return 1.05 * self._step_w * math.sqrt(2 / count)

    def _refined(self, around: Sequence[Pulse], near_s: float) -> LoadOffset:
        """The best place near one, and how far the contrast does not change by more than its
        noise."""
        period_s = self.series.period_s
        fine_s = max(FINE_S, period_s / 50)
        reach = math.ceil(3 * self._search_step_s / fine_s)
        contrasts = {
            k: self._energy.contrast_w(around, near_s + k * fine_s)
            for k in range(-reach, reach + 1)
        }
        best = max(contrasts, key=lambda k: contrasts[k])
        limit_w = contrasts[best] - 3 * self._noise_w(around)
        alike = [k for k, contrast_w in contrasts.items() if contrast_w >= limit_w]
        width_s = (max(alike) - min(alike)) * fine_s / 2
        unsure_s = max(FINE_S, period_s / 2) + width_s
        return LoadOffset(near_s + best * fine_s, unsure_s, contrasts[best])

    def _with_drift(
        self, pulses: Sequence[Pulse], offset: LoadOffset, search_s: float
    ) -> LoadOffset:
        """With the largest difference of the offsets of its parts."""
        parts = self._parts(pulses, offset.offset_s)
        if len(parts) < 2:
            return offset
        reach_s = min(search_s, _half_cycle_s(pulses))
        ends_s = [pulse.end_s for pulse in pulses]
        starts_s = [pulse.start_s for pulse in pulses]
        offsets: list[LoadOffset] = []
        for number, part in zip(accumulate(map(len, parts), initial=0), parts, strict=False):
            after = number + len(part)
            longest_s = max(pulse.end_s - pulse.start_s for pulse in part)
            # The pauses before and after it, up to other results.
            begin_s = max([part[0].start_s - longest_s, *ends_s[:number][-1:]])
            end_s = min([part[-1].end_s + longest_s, *starts_s[after : after + 1]])
            around = _with_margins(part, begin_s, end_s)
            contrasts = self._contrasts(around, offset.offset_s, reach_s)
            best_s = max(contrasts, key=lambda ahead_s: contrasts[ahead_s])
            if contrasts[best_s] < offset.contrast_w / 2:
                raise PowerError(
                    f"the power does not follow {len(part)} of the results, so the log's clock may "
                    "have been set in between"
                )
            offsets.append(self._refined(around, best_s))
        of_parts_s = [part.offset_s for part in offsets]
        drift_s = (max(of_parts_s) - min(of_parts_s)) * len(parts) / (len(parts) - 1)
        return replace(
            offset,
            uncertainty_s=offset.uncertainty_s + drift_s,
            drift_s=drift_s,
            drift_unsure_s=max(part.uncertainty_s for part in offsets),
        )

    def _parts(self, pulses: Sequence[Pulse], ahead_s: float) -> list[Sequence[Pulse]]:
        """Those before and after each pause of the logger, and parts of these."""
        stretches = cut_at(self._gaps_s, pulses, ahead_s)
        parts: list[Sequence[Pulse]] = []
        for stretch in stretches:
            count = max(1, min(MOST_PARTS, len(stretch) // LEAST_OF_PART))
            if len(stretches) == 1 and len(stretch) >= 4:
                count = max(2, count)
            parts += parts_of(stretch, count)
        return parts


class _Steps:
    """The power next to the begin and the end of results, up to `edge_s` away."""

    def __init__(self, energy: Energy, pulses: Sequence[Pulse], edge_s: float) -> None:
        self._energy = energy
        befores_s = [-math.inf, *(pulse.end_s for pulse in pulses)]
        afters_s = [*(pulse.start_s for pulse in pulses[1:]), math.inf]
        self._rises: list[tuple[float, float, float]] = []
        self._falls: list[tuple[float, float, float]] = []
        for pulse, before_s, after_s in zip(pulses, befores_s, afters_s, strict=False):
            begin_s, end_s = pulse.start_s, pulse.end_s
            outside_s, inside_s = max(before_s, begin_s - edge_s), min(end_s, begin_s + edge_s)
            self._rises.append((outside_s, begin_s, inside_s))
            inside_s, outside_s = max(begin_s, end_s - edge_s), min(after_s, end_s + edge_s)
            self._falls.append((inside_s, end_s, outside_s))

    def least_w(self, ahead_s: float) -> float:
        """The rise where results begin or the fall where they end, whichever is less. Both are the
        means of all results, the log `ahead_s`."""
        return min(self._mean_w(self._rises, ahead_s), -self._mean_w(self._falls, ahead_s))

    def _mean_w(self, edges: Sequence[tuple[float, float, float]], ahead_s: float) -> float:
        until_j = self._energy.until_j
        total_w = 0.0
        for begin_s, edge_s, end_s in edges:
            edge_j = until_j(edge_s + ahead_s)
            before_w = (edge_j - until_j(begin_s + ahead_s)) / (edge_s - begin_s)
            total_w += (until_j(end_s + ahead_s) - edge_j) / (end_s - edge_s) - before_w
        return total_w / len(edges)


def _pulses_with_steps(spans: Sequence[Pulse], series: Series) -> list[Pulse]:
    """Raises PowerError for too many, and if the readings cannot show the steps of one."""
    period_s = series.period_s
    pulses = _pulses(spans, 2 * period_s)
    if len(pulses) > MOST_PULSES:
        raise PowerError(f"{len(pulses)} results are more than {MOST_PULSES}")
    if min(pulse.end_s - pulse.start_s for pulse in pulses) < 3 * period_s:
        raise PowerError(
            f"a result lasts less than 3 readings of {series.meter} ({period_s:g} s each)"
        )
    return pulses


def _edge_s(series: Series) -> float:
    """Longer than the readings need for a step of load."""
    averages_s = 0.0
    if series.delay is not None:
        averages_s = series.delay.averages_s + series.delay.averages_within_s
    return max(_EDGE_S, _EDGE_PERIODS * series.period_s) + averages_s


def _groups_of(values: Sequence[float], most: float) -> list[list[float]]:
    """Rising values in groups in which neighbours differ by `most` or less."""
    groups: list[list[float]] = []
    for value in values:
        if groups and value - groups[-1][-1] <= most:
            groups[-1].append(value)
        else:
            groups.append([value])
    return groups


def _half_cycle_s(pulses: Sequence[Pulse]) -> float:
    """Half of the usual time from the begin of a result to that of the next one: a larger offset
    puts a result on another one."""
    cycles_s = [after.start_s - before.start_s for before, after in pairwise(pulses)]
    return statistics.median(cycles_s) / 2


def _with_margins(pulses: Sequence[Pulse], begin_s: float, end_s: float) -> list[Pulse]:
    """With pauses before and after them, between which and the pulses is no load."""
    return [Pulse(begin_s, begin_s), *pulses, Pulse(end_s, end_s)]


def _check_distinct(contrasts_w: Sequence[float], search_s: float) -> None:
    """Raises PowerError if another place of the search fits, or one beyond its ends may."""
    best = contrasts_w.index(max(contrasts_w))
    limit_w = DISTINCT_SHARE * contrasts_w[best]
    low = high = best
    while low > 0 and contrasts_w[low - 1] >= limit_w:
        low -= 1
    while high + 1 < len(contrasts_w) and contrasts_w[high + 1] >= limit_w:
        high += 1
    if sum(contrast_w >= limit_w for contrast_w in contrasts_w) > high - low + 1:
        raise PowerError(
            "several offsets fit, because the results repeat evenly or other work was done"
        )
    if low == 0 or high == len(contrasts_w) - 1:
        raise PowerError(f"the best fit is at an end of the search ({search_s:g} s either way)")


def _repeats(pulses: Sequence[Pulse]) -> bool:
    """Whether all pulses but one, or most of them, lie on pulses again after a shift. One other
    load at an end would make the shifted place look better than the true one."""
    total_s = sum(p.end_s - p.start_s for p in pulses)
    longest_s = max(p.end_s - p.start_s for p in pulses)
    limit_s = min(MOST_REPEATED * total_s, total_s - LEAST_UNREPEATED * longest_s)
    limit_s = max(limit_s, total_s - ENOUGH_UNREPEATED * longest_s)
    near = takewhile(lambda shift_s: shift_s <= 2 * SEARCH_S, _shifts_s(pulses))
    return any(_common_s(pulses, shift_s) > limit_s for shift_s in near)


_AT_EQUAL_TIMES = "the results follow each other at equal times, so that several offsets fit"


def _zones_at_equal_times_s(pulses: Sequence[Pulse]) -> list[float]:
    """The shifts, forwards and back, after which most pulses lie on pulses again, and by which
    clocks of two zones may differ."""
    total_s = sum(p.end_s - p.start_s for p in pulses)
    found: list[float] = []
    for shift_s in takewhile(lambda shift_s: shift_s <= MOST_ZONES_S, _shifts_s(pulses)):
        zone_s = QUARTER_HOUR_S * round(shift_s / QUARTER_HOUR_S)
        is_zone = zone_s > 0.0 and abs(shift_s - zone_s) <= 2 * SEARCH_S
        if is_zone and _common_s(pulses, shift_s) > LEAST_IN_ZONE * total_s:
            found += [shift_s, -shift_s]
    return found


def _shifts_s(pulses: Sequence[Pulse]) -> list[float]:
    """Those that put one of the first two pulses on a later one."""
    return sorted(
        {q.start_s - p.start_s for p in pulses[:2] for q in pulses if q.start_s > p.start_s}
    )


def _common_s(pulses: Sequence[Pulse], shift_s: float) -> float:
    """How long pulses lie on pulses after a shift."""
    common_s, place = 0.0, 0
    for pulse in pulses:
        begin_s, end_s = pulse.start_s + shift_s, pulse.end_s + shift_s
        while place < len(pulses) and pulses[place].end_s <= begin_s:
            place += 1
        for other in pulses[place:]:
            if other.start_s >= end_s:
                break
            common_s += min(end_s, other.end_s) - max(begin_s, other.start_s)
    return common_s


def _count_without_step(
    energy: Energy, pulses: Sequence[Pulse], ahead_s: float, contrast_w: float
) -> int:
    """The number of results that have less than half of the contrast."""
    means_w = []
    for p in pulses:
        means_w.append(
            (energy.until_j(p.end_s + ahead_s) - energy.until_j(p.start_s + ahead_s))
            / (p.end_s - p.start_s)
        )
    # Half of the contrast below the mean of them all.
    limit_w = statistics.fmean(means_w) - contrast_w / 2
    return sum(mean_w < limit_w for mean_w in means_w)


def _powers(series: Series) -> tuple[list[float], list[float]]:
    """Times and mean powers, each of the time since the one before."""
    # Of a meter that eeio recorded: the sum of the domain's channels.
    meter = replace(series, recorded=None).samples(0.0)
    readings = [(t, v) for t, v in zip(meter.times_s, meter.values[0], strict=True) if v == v]
    if series.form == "counter":
        readings = [
            (t, max(0.0, now - before) / (t - t0)) for (t0, before), (t, now) in pairwise(readings)
        ]
    if len(readings) < 3:
        raise PowerError(f"{series.meter}: {len(readings)} readings are too few")
    return [t for t, _ in readings], [v for _, v in readings]


def _pulses(spans: Sequence[Pulse], shortest_s: float) -> list[Pulse]:
    """The spans in order; pauses that the log cannot show are no pauses."""
    pulses: list[Pulse] = []
    for span in sorted(spans, key=lambda span: span.start_s):
        if pulses and span.start_s - pulses[-1].end_s < shortest_s:
            last = pulses.pop()
            pulses.append(Pulse(last.start_s, max(last.end_s, span.end_s)))
        else:
            pulses.append(span)
    return pulses


def clock_by_load(offsets: Sequence[tuple[Series, LoadOffset]]) -> LoadOffset:
    """How far the clock of a log is ahead, by the series with the least unknown delay."""
    series, offset = min(offsets, key=lambda of_series: _late_within_s(of_series[0]))
    return replace(
        offset,
        offset_s=offset.offset_s - _late_s(series),
        uncertainty_s=offset.uncertainty_s + _late_within_s(series),
    )


def _late_s(series: Series) -> float:
    """How much later than the power the readings are, by the delay of the meter."""
    if series.delay is None:
        return 0.0
    return series.delay.shift_s(series.hold_s)


def _late_within_s(series: Series) -> float:
    if series.delay is None:
        return 0.0
    return series.delay.unsure_s
