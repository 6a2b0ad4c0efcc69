"""Power and energy per byte of a drive by request size and over time, next to PowerSensor3's SSD
measurements (ISPASS 2025)."""

from collections.abc import Sequence

from eeio.analysis.printed_figures import Statement
from eeio.studies import Printed, Study
from eeio.studies.powersensor3 import published
from eeio.studies.powersensor3.chapter import chapter


def _statements() -> Sequence[Statement]:
    """What follows from other values of the drawings."""
    return (
        Statement(
            "size-factor",
            "SSD-measurements, random reads",
            "energy per byte, 1 KiB over the largest requests",
            "110",
            "x",
            ("2.50", "15", "4.45", "3027"),
            lambda low_w, low, high_w, high: (high / high_w) / (low / low_w),
        ),
        Statement(
            "time-factor",
            "SSD-measurements, random writes",
            "energy per byte, after the change over before it",
            "4",
            "x",
            ("107", "26"),
            lambda before, after: before / after,
        ),
        Statement(
            "change",
            "SSD-measurements, random writes",
            "time until power rises and bandwidth falls",
            "4.7",
            "min",
            remark="read from the drawing of power over time",
        ),
    )


STUDY = Study(over_time=chapter, printed=Printed(published.PAPER, _statements))
