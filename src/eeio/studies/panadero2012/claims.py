"""Results that Panadero et al. 2012 print, compared with one another.

Bandwidths, powers and energies are drawn (figures 6 to 9, 14) without numbers, so little follows
from the printed text. The size of BT-IO's file follows from the benchmark's definition (NAS
Parallel Benchmarks: five double-precision values a point of the grid, every fifth of 200 steps).
"""

from collections.abc import Sequence

from eeio.analysis.printed_figures import Statement
from eeio.units.sizes import MIB

_DRAWN = "figure 14 is drawn without numbers; `eeio study reference` computes it of a campaign"
_STEPS_WRITTEN = 200 // 5
_POINT_BYTES = 5 * 8
_GIB = 1024 * MIB


def _btio_bytes(grid: int) -> int:
    return grid**3 * _POINT_BYTES * _STEPS_WRITTEN


def statements() -> Sequence[Statement]:
    """All of them, in the paper's order."""
    return (
        Statement(
            "3.E-drive",
            "section III.E",
            "capacity of the work station's drive",
            "80",
            "GB",
            formula=lambda: 40.0,
            remark="the model it names, ST340016A, bears its 40 GB in its name",
        ),
        Statement(
            "3.E-raid1",
            "section III.E",
            "capacity of RAID 1 on two disks",
            "230",
            "GB",
            remark="the size of its disks is not printed",
        ),
        Statement(
            "3.E-raid5",
            "section III.E",
            "capacity of RAID 5 on three disks",
            "917",
            "GB",
            remark="the size of its disks is not printed",
        ),
        Statement(
            "4-class-b",
            "section IV",
            "file of BT-IO, class B",
            "1.5",
            "GB",
            formula=lambda: _btio_bytes(102) / _GIB,
            remark="GiB, of a grid of 102^3; 1.7 GB of 10^9 bytes",
        ),
        Statement(
            "4-class-c",
            "section IV",
            "file of BT-IO, class C",
            "6.5",
            "GB",
            formula=lambda: _btio_bytes(162) / _GIB,
            remark="GiB, of a grid of 162^3; 6.8 GB of 10^9 bytes",
        ),
        Statement(
            "4-phases",
            "section IV, figure 10",
            "phases of BT-IO on the work station",
            "3",
            "phases",
            remark="figure 11 shows 2; figure 12 shows 2 on the cluster",
        ),
        Statement(
            "4-request",
            "section IV, figures 10 and 12",
            "BT-IO's requests",
            "128",
            "KB",
            remark="traced, not computed; `eeio record trace` shows those of your run",
        ),
        *(
            Statement(
                f"4-table-{row}-{operation}",
                "section IV, table I",
                f"{system}: power of {operation}s from its reference",
                printed,
                remark=_DRAWN,
            )
            for row, system, figures in (
                ("work-station", "work station", ("3", "7")),
                ("raid1", "cluster, RAID 1", ("0.6", "0.8")),
                ("raid5", "cluster, RAID 5", ("0", "0.5")),
            )
            for operation, printed in zip(("write", "read"), figures, strict=True)
        ),
    )
