"""Numbers as tables print them."""

import pytest

from eeio.units.sizes import prefixed


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (26648670000.0, "B/s", (1e9, "GB/s")),
        (999.0, "B/s", (1.0, "B/s")),
        (25276502016, "B", (1e9, "GB")),
        (1.9e9, "Hz", (1e9, "GHz")),
        (2.5e-6, "s", (1e-6, "us")),
        (5000.0, "s", (1.0, "s")),
        (0.0, "B/s", (1.0, "B/s")),
        (12345.0, "1/s", (1.0, "1/s")),
        (-2e6, "W", (1e6, "MW")),
    ],
)
def test_si_prefixes(value: float, unit: str, shown: tuple[float, str]) -> None:
    assert prefixed(value, unit) == shown
