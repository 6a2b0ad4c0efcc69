"""Reasons why an energy or a MB/J is missing or not ranked, if several packages report them.

Each problem has one sentence here, so that tables, JSON, CSV, the page and PTS show the same text.
"""

from collections.abc import Sequence

from eeio.units.quantities import LEAST_COVERAGE, percent

FLUSH_UNKNOWN = "flush: unknown: the record does not show whether its bytes were on the device"
WROTE_NOTHING = "it wrote no data"
"""Of a command, whose energy ends when it returned, therefore."""
CALIBRATED = "calibrated against "
"""The beginning of the remark on a reading that a calibration changed."""
NO_DURABLE_TIME = "the record has no time until its bytes were on the device"
NO_DURABLE_POWER = "power was read until the tool returned, not until the bytes were on the device"
NO_COST_OF_ACCELERATOR = (
    "the program does not use the accelerator: its energy is no cost of the I/O"
)


def low_coverage(share: float) -> str:
    """Readings cover less than `LEAST_COVERAGE` of the window."""
    return (
        f"readings cover {share:.0%} of the window, less than {LEAST_COVERAGE:.0%}: not ranked and "
        "not compared"
    )


def no_positive_power(power_w: float) -> str:
    """The mean power is 0 or negative."""
    return f"the mean power of {power_w:.3g} W is not above 0: not ranked and not compared"


def imprecise_energy(share: float) -> str:
    """The uncertainty is `share` of the energy, which is too much for a comparison."""
    return f"the energy is known only to ±{percent(share)} %"


def unknown_delays(meters: Sequence[str]) -> list[str]:
    """The remark on meters whose delay nobody states; none without such a meter."""
    if not meters:
        return []
    return [
        f"{', '.join(meters)}: delay unknown, so energies may be wrong by more than their "
        "uncertainty: state lag_s= and averages_s=, or measure them with `eeio meter calibrate`"
    ]


def unknown_energy(share: float) -> str:
    """The uncertainty is `share` of the energy, so that it is not shown."""
    return f"{imprecise_energy(share)}: the window is too short for this meter"


def partial_io(share: float) -> str:
    """Bandwidth and mean power cover different times: `share` of the window has I/O."""
    return (
        f"I/O covers {share:.0%} of the power window; the record contains the bytes and energy of "
        "the complete window"
    )


def partial_operations(share: float) -> str:
    """Operation rate and mean power cover different times."""
    return f"operations cover {share:.0%} of the power window"
