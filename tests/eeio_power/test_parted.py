"""The energy of a phase in stretches is that of its stretches, and of nothing between them."""

from dataclasses import replace

import pytest

from eeio_power.energy import energy_in_parts
from eeio_power.reading import EnergyReading

STRETCHES = ((101.0, 102.0), (105.0, 108.0))


def reading(start_s: float, end_s: float, meter: str = "rapl") -> EnergyReading:
    """Of a machine that takes 10 W until second 104, and 30 W from then on."""
    energy_j = 10.0 * (end_s - start_s) if end_s <= 104 else 30.0 * (end_s - start_s)
    return EnergyReading(
        "package", meter, "measured", energy_j / (end_s - start_s), energy_j, 0.5, 0.9, 0.1, 7, 1,
        True, (), includes=("processor",),
    )  # fmt: skip


def test_energies_and_limits_add_up_and_power_is_of_the_stretches() -> None:
    (found,) = energy_in_parts(lambda a, b: (reading(a, b),), STRETCHES)
    assert found.energy_j == pytest.approx(10 + 90)
    assert found.power_w == pytest.approx(100 / 4)
    assert found.uncertainty_j == pytest.approx(1.0)
    assert (found.samples, found.lost, found.coverage) == (14, 2, pytest.approx(0.9))
    assert found.valid and found.includes == ("processor",) and found.largest_gap_s == 0.1


def test_one_stretch_without_energy_leaves_none_with_its_reason() -> None:
    def energy(start_s: float, end_s: float) -> tuple[EnergyReading, ...]:
        if start_s < 104:
            return (reading(start_s, end_s),)
        return (
            replace(
                reading(start_s, end_s), power_w=None, energy_j=None, uncertainty_j=None,
                valid=False, reasons=("silent",),
            ),
        )  # fmt: skip

    (found,) = energy_in_parts(energy, STRETCHES)
    assert (found.power_w, found.energy_j, found.uncertainty_j, found.valid) == (
        None, None, None, False,
    )  # fmt: skip
    assert found.reasons == ("silent",)


def test_meters_are_not_mixed_and_a_limit_that_is_not_known_stays_so() -> None:
    def energy(start_s: float, end_s: float) -> tuple[EnergyReading, ...]:
        other = replace(reading(start_s, end_s, "hwmon"), uncertainty_j=None, energy_j=1.0)
        ones = (reading(start_s, end_s), other)
        return ones if start_s < 104 else ones[::-1]

    found = {one.meter: one for one in energy_in_parts(energy, STRETCHES)}
    assert found["rapl"].energy_j == pytest.approx(100)
    assert (found["hwmon"].energy_j, found["hwmon"].uncertainty_j) == (2.0, None)
    assert energy_in_parts(lambda a, b: (), STRETCHES) == ()
