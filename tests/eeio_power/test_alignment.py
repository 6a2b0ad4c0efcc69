"""The offset of a log's clock by load pulses, against logs of known offset."""

import random

import pytest

from eeio_power.alignment import FINE_S, Pulse, find_offset, pulse_lengths_s
from eeio_power.errors import PowerError

IDLE_W, LOADED_W = 40.0, 90.0


def pulses(count: int = 6, begin_s: float = 100.0) -> list[Pulse]:
    made, now_s = [], begin_s
    for loaded_s, idle_s in pulse_lengths_s(count):
        made.append(Pulse(now_s + idle_s, now_s + idle_s + loaded_s))
        now_s += idle_s + loaded_s
    return made


def log(
    of: list[Pulse], ahead_s: float, period_s: float, noise_w: float = 0.0, seed: int = 1
) -> tuple[list[float], list[float]]:
    """Means over each period, as a meter with an own clock writes them, from 30 s before the pulses
    to 30 s after."""
    draw = random.Random(seed)
    begin_s, end_s = of[0].start_s + ahead_s - 30.0, of[-1].end_s + ahead_s + 30.0
    times_s, power_w, now_s = [], [], begin_s
    while now_s < end_s:
        after_s = now_s + period_s
        loaded_s = sum(
            max(0.0, min(after_s, p.end_s + ahead_s) - max(now_s, p.start_s + ahead_s)) for p in of
        )
        mean_w = IDLE_W + (LOADED_W - IDLE_W) * loaded_s / period_s + draw.gauss(0.0, noise_w)
        times_s.append(after_s)
        power_w.append(mean_w)
        now_s = after_s
    return times_s, power_w


@pytest.mark.parametrize("ahead_s", [-7.3, -0.4, 0.0, 2.05, 9.6])
@pytest.mark.parametrize("period_s", [0.1, 1.0])
def test_an_offset_is_found_within_its_uncertainty(ahead_s: float, period_s: float) -> None:
    of = pulses()
    found = find_offset(*log(of, ahead_s, period_s, noise_w=2.0), of, 15.0)
    assert found.uncertainty_s == pytest.approx(max(FINE_S, period_s / 2.0))
    assert abs(found.offset_s - ahead_s) <= found.uncertainty_s
    assert found.contrast_w == pytest.approx(LOADED_W - IDLE_W, rel=0.25)


def test_a_gap_in_the_log_does_not_make_it_less_certain() -> None:
    """The period is the usual one, not that of the longest or shortest step."""
    of = pulses()
    times_s, power_w = log(of, 1.0, 0.5)
    kept = [k for k, t in enumerate(times_s) if not of[-1].end_s + 6.0 < t < of[-1].end_s + 20.0]
    extra_s = times_s[kept[-1]] + 0.001
    found = find_offset(
        [*(times_s[k] for k in kept), extra_s], [*(power_w[k] for k in kept), IDLE_W], of, 10.0
    )
    assert found.uncertainty_s == pytest.approx(0.25)
    assert abs(found.offset_s - 1.0) <= 0.25


@pytest.mark.parametrize("noise_w", [0.0, 5.0])
@pytest.mark.parametrize("seed", range(10))
def test_a_log_of_another_machine_is_rejected(noise_w: float, seed: int) -> None:
    of = pulses()
    times_s, _ = log(of, 0.0, 0.5)
    draw = random.Random(seed)
    power_w = [IDLE_W + draw.gauss(0.0, noise_w) for _ in times_s]
    with pytest.raises(PowerError, match="does not show the load pulses"):
        find_offset(times_s, power_w, of, 10.0)


def test_a_log_that_ends_before_the_last_pulse_is_rejected() -> None:
    of = pulses()
    times_s, power_w = log(of, 0.0, 0.5)
    cut = next(k for k, t in enumerate(times_s) if t > of[3].start_s)
    with pytest.raises(PowerError, match="does not show the load pulses"):
        find_offset(times_s[:cut], power_w[:cut], of, 5.0)


def test_one_step_of_load_is_not_taken_for_the_pulses() -> None:
    """It fits one pulse in many places, and the other half of them in none."""
    of = pulses(8)
    times_s, _ = log(of, 0.0, 0.5)
    power_w = [LOADED_W if of[1].start_s < t < of[1].end_s else IDLE_W for t in times_s]
    with pytest.raises(PowerError, match="does not show the load pulses"):
        find_offset(times_s, power_w, of, 5.0)


def test_two_readings_or_one_pulse_are_too_few() -> None:
    of = pulses()
    for times_s, power_w, some in (
        ([1.0, 2.0], [1.0, 2.0], of),
        ([1.0, 2.0, 3.0], [1.0] * 3, of[:1]),
    ):
        with pytest.raises(PowerError, match="are needed at least"):
            find_offset(times_s, power_w, some)


def test_a_contrast_below_a_share_of_the_spread_is_not_observed() -> None:
    """Of the middle 90 % of the log: 0.3 of it at least. Its period, where steps differ, is the
    middle one."""
    of = pulses()
    times_s, power_w = log(of, 1.0, 0.5)
    first, last = times_s[0], times_s[-1]
    # Other load outside of the pulses, of a tenth of the log's length on either side.
    for many, observed in ((80.0, True), (400.0, False)):
        other_w = [
            w + (many if t < first + 14.0 or t > last - 14.0 else 0.0)
            for t, w in zip(times_s, power_w, strict=True)
        ]
        if observed:
            found = find_offset(times_s, other_w, of, 10.0)
            assert found.offset_s == pytest.approx(1.0, abs=found.uncertainty_s)
        else:
            with pytest.raises(PowerError, match="does not show the load pulses"):
                find_offset(times_s, other_w, of, 10.0)


def test_offsets_up_to_the_limit_of_the_search_are_found() -> None:
    of = pulses()
    for ahead_s in (-4.9, 4.9):
        found = find_offset(*log(of, ahead_s, 0.1), of, 5.0)
        assert found.offset_s == pytest.approx(ahead_s, abs=found.uncertainty_s)
        assert found.uncertainty_s == pytest.approx(max(FINE_S, 0.05))
    with pytest.raises(PowerError):
        find_offset(*log(of, 8.0, 0.1), of, 5.0)
