"""Each contribution to the uncertainty of a window alone, and sums of parts: by hand."""

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from eeio_power.energy import (
    ChannelEnergy,
    channel_energy,
    domain_energy,
    energy_in_parts,
    indices_needed,
    meter_energy,
)
from eeio_power.false_readings import judged
from eeio_power.meters import Channel
from eeio_power.reading import Contents, EnergyReading

POWER = Channel("plug", "system", "power_w", resolution=0.2)
SYSTEM = Channel(
    "total", "system", "power_w", accuracy_relative=0.02,
    contents=Contents(("processor", "supply"), ("drives",)),
)  # fmt: skip


def channel(
    values: Sequence[float], start_s: float, end_s: float, of: Channel = POWER,
    times_s: Sequence[float] | None = None, native_s: float = 1.0,
) -> ChannelEnergy:  # fmt: skip
    times = times_s or [float(t) for t in range(len(values))]
    return channel_energy(of, times, values, 1.0, native_s, start_s, end_s)


# --- contributions --------------------------------------------------------------------------------


def test_below_zero_the_noise_is_the_quantum() -> None:
    noisy = [5.0, -0.5, 5.0, 0.4, 0.6, 0.4, 0.5, 0.4, 0.6]
    # Below zero inside the window: ten quanta of 0.2 W. Only before it: half a quantum.
    assert channel(noisy, 0.0, 5.0).quantisation_j == pytest.approx(2.0 * 5.0)
    assert channel(noisy, 2.0, 7.0).quantisation_j == pytest.approx(0.1 * 5.0)


def test_each_repeated_reading_of_a_fine_meter_is_one_that_was_missed() -> None:
    """Ten different values, and some read twice: each may be off by the spread of 10 W."""
    fine = replace(POWER, resolution=0.001)
    values = [100.0 + w for w in (0.0, 3.1, 7.2, 10.0, 5.5, 1.9, 6.3, 2.8, 9.1, 4.2, 8.7, 3.3)]
    assert channel(values, 1.0, 10.0, fine).gaps_j == 0.0
    once = [*values[:5], *values[4:11]]
    assert channel(once, 1.0, 10.0, fine).gaps_j == pytest.approx(10.0)
    twice = [*once[:9], *once[8:11]]
    assert channel(twice, 1.0, 10.0, fine).gaps_j == pytest.approx(math.sqrt(2.0) * 10.0)
    # A coarse meter shows equal values anyway.
    assert channel(once, 1.0, 10.0, replace(POWER, resolution=1.0)).gaps_j == 0.0


def test_a_lost_reading_counts_with_the_spread_of_those_around() -> None:
    times_s = [0.0, 1.0, 2.0, 3.0, 6.0, 7.0, 8.0, 9.0, 10.0]
    values = [100.0, 104.0, 110.0, 101.0, 102.0, 103.0, 105.0, 100.0, 108.0]
    part = channel(values, 1.0, 9.0, times_s=times_s)
    # The reading at 6 s averages the second before it; the two before that are unknown.
    assert part.gaps_j == pytest.approx(10.0 * 2.0)
    assert part.coverage == pytest.approx(6.0 / 8.0)
    assert (part.lost, part.largest_gap_s) == (2, 3.0)


def test_an_edge_counts_with_the_highest_power_of_its_stretch_and_both_neighbours() -> None:
    """Power of 100 W but for one reading; both edges are in the middle of a second."""

    def edges_j(peak: int) -> float:
        values = [100.0] * 20
        values[peak] = 300.0
        return channel(values, 5.5, 12.5).edges_j

    # The reading at 6 s is of the second that the first edge cuts. Old readings, half a second,
    # cost as much as the shorter part of the cut.
    assert edges_j(3) == edges_j(4) == pytest.approx(50.0 + 50.0)
    assert edges_j(5) == edges_j(6) == edges_j(7) == pytest.approx(150.0 + 150.0)
    assert edges_j(8) == edges_j(11) == pytest.approx(50.0 + 50.0)


def test_after_the_last_reading_only_observed_time_is_covered() -> None:
    part = channel([100.0] * 6, 4.5, 5.3)
    assert part.coverage == pytest.approx(0.5 / 0.8)
    assert part.energy_j == pytest.approx(80.0)


def test_a_window_without_readings_has_none() -> None:
    part = channel([100.0] * 6, 3.0, 3.0)
    assert (part.energy_j, part.samples, part.coverage) == (None, 0, 0.0)
    assert part.quantisation_j == part.edges_j == 0.0
    assert "has no length" in part.reasons[0]


def test_a_meter_slower_than_the_window_is_named() -> None:
    part = channel_energy(POWER, [0.0, 300.0], [130.0, 131.0], 300.0, 300.0, 100.0, 110.0)
    assert part.reasons == ("plug: no reading in the window of 10.000 s; it has one each 300 s",)


def test_a_counter_that_stands_still_has_no_power_of_zero() -> None:
    """Neither in a window of a few of its periods nor in a long one."""
    counter = Channel("c", "system", "energy_j", resolution=1e-6)
    for length_s, has_energy in ((4.0, True), (9.0, True), (11.0, False)):
        part = channel([7.0] * 30, 0.0, length_s, counter)
        assert (part.energy_j is not None) is has_energy
        message = part.doubts if has_energy else part.reasons
        assert any(
            "did not change" in message or "does not change" in message for message in message
        )


def test_a_system_below_any_running_machine_is_doubtful() -> None:
    fine = replace(SYSTEM, resolution=0.001)
    for power_w, doubtful in ((0.017, True), (0.06, False), (5.0, False)):
        (reading,) = judged(meter([fine], [power_w]))
        assert reading.doubtful is doubtful
    (coarse,) = judged(meter([replace(SYSTEM, resolution=1.0)], [0.017]))
    assert not coarse.doubtful


# --- channels of a domain -------------------------------------------------------------------------


def test_one_channel_without_energy_leaves_the_domain_without() -> None:
    complete = ChannelEnergy("a", 100.0, coverage=1.0, samples=5)
    failed = ChannelEnergy("b", None, coverage=0.5, samples=3, lost=2, reasons=("b failed",))
    reading = domain_energy("m", "measured", "system", [complete, failed], 0.0, 2.0)
    assert (reading.energy_j, reading.power_w, reading.valid) == (None, None, False)
    assert (reading.reasons, reading.samples, reading.lost) == (("b failed",), 3, 2)
    # A reason is enough.
    doubted = replace(complete, reasons=("it jumped",))
    reading = domain_energy("m", "measured", "system", [complete, doubted], 0.0, 2.0)
    assert (reading.energy_j, reading.valid) == (None, False)
    both = domain_energy("m", "measured", "system", [complete, complete], 0.0, 2.0)
    assert (both.energy_j, both.power_w, both.valid) == (200.0, 100.0, True)


def meter(channels: Sequence[Channel], powers_w: Sequence[float]) -> list[EnergyReading]:
    """Constant powers for ten seconds; NaN for a channel that fails."""
    return meter_energy(
        meter="m", kind="measured", channels=channels, native_period_s=1.0, period_s=1.0,
        times_s=[float(t) for t in range(13)], values=[[w] * 13 for w in powers_w],
        start_s=1.0, end_s=11.0,
    )  # fmt: skip


def test_a_part_that_draws_more_than_its_total_is_doubtful() -> None:
    package = Channel("cpu", "package", "power_w", in_domain_total=False)
    # 2 % of 1000 J, and 100 W over half a period at either edge of each: 20 and hypot(100, ...).
    for power_w, doubts in ((100.0, 0), (110.0, 0), (140.0, 1)):
        (reading,) = meter([SYSTEM, package], [100.0, power_w])
        assert reading.doubtful == bool(doubts)
    assert (
        "cpu 140.0 W is in system (m) 100.0 W and draws more, by more than both uncertainties"
        in reading.reasons
    )
    (reading,) = meter([SYSTEM, package], [100.0, math.nan])
    assert (reading.doubtful, reading.energy_j) == (False, pytest.approx(1000.0))
    (reading,) = meter([SYSTEM, package], [math.nan, 140.0])
    assert (reading.doubtful, reading.energy_j) == (False, None)


def test_outputs_of_supplies_are_compared_together_with_their_input() -> None:
    """An output leaves out the supply, which the input includes. Others may be anything."""
    outputs = [
        Channel(f"out{n}", "system", "power_w", in_domain_total=False,
                contents=Contents((), ("supply",)))
        for n in (1, 2)
    ]  # fmt: skip
    (reading,) = meter([SYSTEM, *outputs], [100.0, 50.0, 45.0])
    assert not reading.doubtful
    (reading,) = meter([SYSTEM, *outputs], [100.0, 80.0, 60.0])
    assert any("out1 + out2 140.0 W is in system" in reason for reason in reading.reasons)
    (reading,) = meter([SYSTEM, *outputs], [100.0, 80.0, math.nan])
    assert not reading.doubtful
    unknown = [replace(channel, contents=Contents()) for channel in outputs]
    (reading,) = meter([SYSTEM, *unknown], [100.0, 80.0, 60.0])
    assert not reading.doubtful
    # Of another domain that the system does not contain, nothing can be said.
    module = [replace(channel, domain="module") for channel in outputs]
    (reading,) = meter([replace(SYSTEM, domain="package"), *module], [100.0, 80.0, 60.0])
    assert not reading.doubtful


def test_contents_are_reported_with_what_is_left_out() -> None:
    assert Contents(("processor", "memory"), ("drives", "fans")).text() == (
        "processor, memory; without drives, fans"
    )
    assert Contents(("processor",)).text() == "processor"
    assert Contents((), ("supply",)).text() == "without supply"
    assert Contents().text() == ""


# --- what a window needs --------------------------------------------------------------------------


def test_a_window_needs_its_own_length_on_either_side_and_a_few_readings() -> None:
    times_s = [float(t) for t in range(1000)]
    rising = [100.0 + t for t in range(1000)]
    # Eleven readings before it and ten from its end are more than a length of 3 s, or six.
    assert indices_needed([POWER], times_s, [rising], 1.0, 1.0, 500.5, 503.5) == (490, 514)
    assert indices_needed([POWER], times_s, [rising], 1.0, 1.0, 500.5, 530.5) == (471, 561)
    assert indices_needed([POWER], times_s, [rising], 1.0, 1.0, 2.5, 997.5) == (0, 1000)
    constant = [*rising[:300], *[7.0] * 700]
    assert indices_needed([POWER], times_s, [constant], 1.0, 1.0, 500.5, 503.5)[0] <= 300
    counter = Channel("c", "package", "energy_j")
    assert indices_needed([counter], times_s, [rising], 1.0, 1.0, 500.5, 503.5) == (490, 514)


# --- several stretches ----------------------------------------------------------------------------


def reading(power_w: float | None, seconds: float, **values: object) -> EnergyReading:
    energy_j = None if power_w is None else power_w * seconds
    known = EnergyReading(
        domain="system", meter="m", kind="measured", power_w=power_w, energy_j=energy_j,
        uncertainty_j=None if energy_j is None else 1.0, coverage=1.0, largest_gap_s=1.0,
        samples=3, lost=1, valid=energy_j is not None, reasons=(),
    )  # fmt: skip
    return replace(known, **values)  # type: ignore[arg-type]


def test_energies_of_stretches_add_up_and_power_is_of_their_time() -> None:
    lengths_s = [0.1, 0.2, 0.7]
    parts = iter([reading(100.0, s, largest_gap_s=s) for s in lengths_s])
    stretches = [(0.0, 0.1), (1.0, 1.2), (2.0, 2.7)]
    (found,) = energy_in_parts(lambda _start_s, _end_s: [next(parts)], stretches)
    assert found.energy_j == pytest.approx(100.0)
    assert found.power_w == pytest.approx(100.0)
    assert (found.uncertainty_j, found.samples, found.lost) == (3.0, 9, 3)
    assert found.coverage <= 1.0
    assert (found.coverage, found.largest_gap_s) == (pytest.approx(1.0), 0.7)


def test_a_stretch_that_is_not_valid_leaves_none() -> None:
    for bad in (reading(None, 1.0), reading(100.0, 1.0, valid=False, reasons=("it jumped",))):
        parts = iter([reading(100.0, 1.0), bad])
        (found,) = energy_in_parts(lambda _s, _e, p=parts: [next(p)], [(0.0, 1.0), (2.0, 3.0)])  # type: ignore[misc]
        assert (found.energy_j, found.power_w, found.uncertainty_j) == (None, None, None)
        assert not found.valid
