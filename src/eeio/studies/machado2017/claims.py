"""Results that Machado et al. 2017 print on their slides, compared with one another.

The slides have only ratios, of two boards to one PC: efficiency is bandwidth over power, so each
printed ratio of efficiency follows from those of bandwidth and power. Slides bear no numbers; their
titles give the place.
"""

from collections.abc import Sequence

from eeio.analysis.printed_figures import Statement

_POWER, _EFFICIENCY = "slides, Power Demand", "slides, Energy Efficiency"
_BANDWIDTH, _WRITES = "slides, Performance", "slides, Discussion: Write"
_READS, _HOU10NI = "slides, Discussion: Read", "slides, Hou10ni"
_MEASURED = "measured in watts or bytes that no slide prints"


def _efficiency_of(bandwidth_over: float, less_power: float) -> float:
    """In % above the PC's."""
    return 100 * (bandwidth_over / (1 - less_power / 100) - 1)


def statements() -> Sequence[Statement]:
    """All of them, in the slides' order."""
    return (
        Statement("power-pc", _POWER, "PC: writes over reads", "7", remark=_MEASURED),
        Statement("power-boards", _POWER, "boards: writes over reads", "23", remark=_MEASURED),
        Statement(
            "power-reads",
            _POWER,
            "boards below PC, reads",
            "85",
            inputs=("82", "7", "23"),
            formula=lambda less, pc, boards: (
                100 * (1 - (1 - less / 100) * (1 + pc / 100) / (1 + boards / 100))
            ),
            remark="of the writes' 82 %, and of 7 and 23 %",
        ),
        Statement(
            "power-writes",
            _POWER,
            "boards below PC, writes",
            "82",
            inputs=("85", "7", "23"),
            formula=lambda less, pc, boards: (
                100 * (1 - (1 - less / 100) * (1 + boards / 100) / (1 + pc / 100))
            ),
            remark="of the reads' 85 %, and of 7 and 23 %",
        ),
        Statement(
            "bandwidth-reads",
            _BANDWIDTH,
            "boards over PC, reads: higher",
            "240",
            inputs=("1437", "85"),
            formula=lambda more, less: 100 * ((1 + more / 100) * (1 - less / 100) - 1),
            in_part="it is 231 % of the PC's; `doubles` (Discussion) means no 240 % more",
            remark="of 1437 % and 85 %",
        ),
        Statement(
            "bandwidth-writes",
            _BANDWIDTH,
            "boards below PC, writes",
            "37",
            inputs=("287", "82"),
            formula=lambda more, less: 100 * (1 - (1 + more / 100) * (1 - less / 100)),
            remark="of 287 % and 82 %",
        ),
        Statement(
            "efficiency-reads",
            _EFFICIENCY,
            "boards over PC, reads",
            "1437",
            inputs=("240", "85"),
            formula=lambda more, less: _efficiency_of(1 + more / 100, less),
            in_part="240 % of the PC's bandwidth, known to tens, would give 1416 to 1590 %",
            remark="of 240 % and 85 %",
        ),
        Statement(
            "efficiency-writes",
            _EFFICIENCY,
            "boards over PC, writes",
            "287",
            inputs=("37", "82"),
            formula=lambda less, power: _efficiency_of(1 - less / 100, power),
            remark="of 37 % and 82 %; cannot follow, whatever the rounding",
        ),
        Statement(
            "discussion-one-board",
            _READS,
            "one board's read bandwidth over PC's",
            "1",
            "times",
            ("240",),
            lambda of: of / 100 / 2,
            "half of 240 % of the PC's (written `similar`)",
        ),
        Statement(
            "discussion-reads-double",
            _READS,
            "two boards: bandwidth",
            "2",
            "times",
            ("240",),
            lambda of: of / 100,
            "240 % of the PC's (written `doubles`)",
        ),
        Statement(
            "discussion-reads-power",
            _READS,
            "two boards: less power",
            "85",
            inputs=("82", "7", "23"),
            formula=lambda less, pc, boards: (
                100 * (1 - (1 - less / 100) * (1 + pc / 100) / (1 + boards / 100))
            ),
            remark="as on its slide",
        ),
        Statement(
            "discussion-writes-efficiency",
            _WRITES,
            "two boards: more efficient",
            "287",
            inputs=("37", "82"),
            formula=lambda less, power: _efficiency_of(1 - less / 100, power),
            remark="of 37 % and 82 %; cannot follow, whatever the rounding",
        ),
        Statement(
            "discussion-writes-bandwidth",
            _WRITES,
            "two boards: less bandwidth",
            "37",
            inputs=("25",),
            formula=lambda more: 100 * (1 - (1 + more / 100) / 2),
            remark="half of the value for four",
        ),
        Statement(
            "discussion-four-power",
            _WRITES,
            "four boards: less power",
            "64",
            inputs=("82",),
            formula=lambda less: 100 * (1 - 2 * (1 - less / 100)),
        ),
        Statement(
            "discussion-four-bandwidth",
            _WRITES,
            "four boards: more bandwidth",
            "25",
            inputs=("37",),
            formula=lambda less: 100 * (2 * (1 - less / 100) - 1),
        ),
        Statement(
            "hou10ni-power",
            f"{_HOU10NI}: Power Demand",
            "boards below PC",
            "86",
            inputs=("7",),
            formula=lambda times: 100 * (1 - 1 / times),
            remark="of 7 times the efficiency at the same performance",
        ),
        Statement(
            "hou10ni-efficiency",
            f"{_HOU10NI}: Energy Efficiency",
            "boards over PC",
            "7",
            "times",
            ("86",),
            lambda less: 1 / (1 - less / 100),
            "at the same performance",
        ),
    )
