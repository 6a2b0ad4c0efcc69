"""The SSD measurements that the authors of PowerSensor3 publish (ISPASS 2025).

Workloads: powersensor3-results (commit 8a7568e9, 2025-03-17), SSD-measurements; drive: Samsung 980
PRO. The values are read from the vector drawings there, because the text of the paper prints none.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

PAPER = "PowerSensor3 2025"
DRIVE = "Samsung 980 PRO"


@dataclass(frozen=True)
class Point:
    """Mean power in W, bandwidth in MiB/s, and MiB/J."""

    power_w: float
    mib_per_s: float
    mib_per_j: float


READS_BY_KIB: Mapping[int, Point] = MappingProxyType(
    {
        1: Point(2.50, 15, 6),
        8: Point(2.54, 68, 27),
        16: Point(2.57, 127, 50),
        32: Point(2.59, 222, 86),
        64: Point(2.76, 429, 156),
        128: Point(2.97, 812, 273),
        256: Point(3.42, 1466, 428),
        512: Point(3.87, 2234, 577),
        1024: Point(3.97, 2483, 626),
        2048: Point(4.28, 2869, 671),
        3072: Point(4.37, 2992, 684),
        4096: Point(4.39, 2992, 681),
    }
)
"""Random reads at depth 1, by request size in KiB."""

LOWEST_W, HIGHEST_W = 2.50, 4.45
LOWEST_MIB_PER_S, HIGHEST_MIB_PER_S = 15.0, 3027.0
FACTOR_BY_SIZE = 110.0
"""Energy per byte: the smallest requests over the largest."""

BEFORE_W, AFTER_W = 3.19, 5.57
CHANGE_S = 282.0
"""About 4.7 min."""
FACTOR_OVER_TIME = 4.0
"""Energy per byte: after the change over before it."""
