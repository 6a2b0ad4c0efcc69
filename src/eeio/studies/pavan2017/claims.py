"""Results that Pavan et al. 2017 print, compared with their table 3.

Table 3 (mean W of the system at idle and during the tests) contains the only printed numbers that
others follow from: the efficiencies and times are drawn (figures 3 to 5) without numbers. By the
paper's definition (section 4.2) energy is mean power times time, and efficiency the same 2 GB over
that. So the board is ahead by the ratio of the powers times that of the times, and at most by the
ratio of the powers if it is not faster.
"""

from collections.abc import Sequence

from eeio.analysis.printed_figures import Statement

_IDLE = {
    "MPSoC": {"HDD1": "13.9", "HDD2": "10.4", "SSD1": "5.3", "SSD2": "6.0"},
    "PC": {"HDD1": "56.4", "HDD2": "55.5", "SSD1": "54.3", "SSD2": "54.8"},
}
_BUSY = {
    "MPSoC": {"HDD1": "16.1", "HDD2": "13.5", "SSD1": "8.6", "SSD2": "10.6"},
    "PC": {"HDD1": "57.8", "HDD2": "56.9", "SSD1": "58.8", "SSD2": "58.9"},
}
DRIVES = ("HDD1", "HDD2", "SSD1", "SSD2")
_DRAWN = "drawn without numbers (figures 3 and 4), and its data are not published"

TABLE_3 = tuple(
    (f"{machine}, {drive}", float(_IDLE[machine][drive]), float(_BUSY[machine][drive]))
    for machine in ("MPSoC", "PC")
    for drive in DRIVES
)
"""System and drive, idle (W), during the experiments (W)."""


def statements() -> Sequence[Statement]:
    """All of them, in the paper's order."""
    return (*_design(), *_power(), *_efficiency(), *_sizes_and_order(), *_servers(), *_ends())


def _design() -> list[Statement]:
    return [
        Statement(
            "3-tests",
            "section 3",
            "tests of one configuration",
            "16",
            "tests",
            formula=lambda: 2 * 4 * 2,
            remark="with and without cache, four patterns, two request sizes",
        ),
        Statement(
            "3-experiments",
            "section 3",
            "experiments in all",
            "128",
            "experiments",
            ("16",),
            lambda tests: 4 * 2 * tests,
            "four drives in two machines",
        ),
        Statement(
            "3-configurations",
            "section 3",
            "configurations",
            "8",
            "configurations",
            formula=lambda: 4 * 2,
            remark="four drives in two machines (written as a word)",
        ),
    ]


def _power() -> list[Statement]:
    statements = [
        Statement(
            "4.1-cache",
            "section 4.1",
            "cache: more power, at most",
            "17.7",
            remark="figure 1 is drawn without numbers; table 3 has means of both",
        ),
    ]
    for machine, kind, printed, remark in (
        ("PC", "HDD", "3.7", ""),
        ("PC", "SSD", "6.4", ""),
        ("MPSoC", "HDD", "2.6", "the mean of both drives' rises is 22.8 %; misprinted"),
        ("MPSoC", "SSD", "68.4", "the mean of both drives' rises is 69.5 %"),
    ):
        first, second = f"{kind}1", f"{kind}2"
        statements.append(
            Statement(
                f"4.2-rise-{machine.lower()}-{kind.lower()}",
                "section 4.2, table 3",
                f"{machine} with {kind}s: power during the tests over idle",
                printed,
                inputs=(
                    _IDLE[machine][first],
                    _IDLE[machine][second],
                    _BUSY[machine][first],
                    _BUSY[machine][second],
                ),
                formula=lambda i1, i2, b1, b2: 100 * ((b1 + b2) / (i1 + i2) - 1),
                remark=remark,
            )
        )
    statements += [
        Statement(
            f"4.2-less-{kind.lower()}",
            "section 4.2, table 3",
            f"MPSoC below PC, {kind}s",
            printed,
            inputs=(*_pair("MPSoC", kind), *_pair("PC", kind)),
            formula=lambda m1, m2, p1, p2: 100 * (1 - (m1 + m2) / (p1 + p2)),
        )
        for kind, printed in (("HDD", "74.2"), ("SSD", "83.7"))
    ]
    statements += [
        Statement(
            id_,
            place,
            "PC over MPSoC, at most",
            "6.7",
            "times",
            (_BUSY["PC"]["SSD1"], _BUSY["MPSoC"]["SSD1"]),
            lambda pc, board: pc / board,
            "the largest on one drive, SSD1",
            "PC with HDDs (57.35 W) over MPSoC with SSD1 has 6.67; on one drive more is there",
        )
        for id_, place in (("0-power", "abstract"), ("5-power", "section 5"))
    ]
    return statements


def _pair(machine: str, kind: str) -> tuple[str, str]:
    return _BUSY[machine][f"{kind}1"], _BUSY[machine][f"{kind}2"]


def _efficiency() -> list[Statement]:
    statements = []
    for id_, place, of, kind, printed in (
        ("4.2-hdd-write-sequential", "section 4.2, figure 3(a)", "sequential writes", "HDD", "2"),
        ("4.2-hdd-write-random", "section 4.2, figure 3(b)", "random writes", "HDD", "4.2"),
        ("4.2-hdd-read-sequential", "section 4.2, figure 4(a)", "sequential reads", "HDD", "4.3"),
        ("4.2-hdd-read-random", "section 4.2, figure 4(b)", "random reads", "HDD", "4.4"),
        ("4.2-ssd-read-sequential", "section 4.2, figure 4(a)", "sequential reads", "SSD", "8.4"),
        ("4.2-ssd-read-random", "section 4.2, figure 4(b)", "random reads", "SSD", "136"),
        ("4.2-ssd1-write-small", "section 4.2, figure 3", "32 KB writes on SSD1", "SSD", "39"),
        ("5-hdd", "section 5", "any, at most", "HDD", "4.4"),
        ("5-ssd-read", "section 5", "reads, at most", "SSD", "136"),
        ("0-efficiency", "abstract", "any, at most", "SSD", "136"),
    ):
        bound = 6.84
        if kind == "HDD":
            bound = 4.21
        remark = (
            f"{_DRAWN}; table 3 (means over all tests) allows {bound} times where the board is not "
            "faster than the PC"
        )
        if float(printed) > bound:
            faster = float(printed) / bound
            remark += f", and section 5 calls it slower: it was to be {faster:.3g} times as fast"
        statements.append(
            Statement(id_, place, f"MPSoC over PC, {kind}s, {of}", printed, "times", remark=remark)
        )
    statements.append(
        Statement(
            "4.2-ssd2-write-large",
            "section 4.2, figure 3",
            "PC over MPSoC, 4 MB writes on SSD2",
            "1.3",
            "times",
            remark=_DRAWN,
        )
    )
    return statements


def _sizes_and_order() -> list[Statement]:
    return [
        Statement(id_, place, of, printed, "times", remark=_DRAWN)
        for id_, place, of, printed in (
            (
                "4.2-size-ws",
                "section 4.2, figure 3(a)",
                "4 MB over 32 KB, sequential writes",
                "2.6",
            ),
            ("4.2-size-wr", "section 4.2, figure 3(b)", "4 MB over 32 KB, random writes", "41.5"),
            ("4.2-size-rs", "section 4.2, figure 4(a)", "4 MB over 32 KB, sequential reads", "2.1"),
            ("4.2-size-rr", "section 4.2, figure 4(b)", "4 MB over 32 KB, random reads", "60.8"),
            ("4.2-order-w", "section 4.2, figure 3", "sequential over random writes, HDDs", "16.7"),
            ("4.2-order-r", "section 4.2, figure 4", "sequential over random reads, HDDs", "22.8"),
        )
    ]


def _servers() -> list[Statement]:
    return [
        Statement(
            f"4.2-servers-{boards}",
            "section 4.2, table 3",
            f"{boards} MPSoC with SSD1 for a PC with an HDD ({of}): less power",
            printed,
            inputs=(_BUSY["MPSoC"]["SSD1"], *_pair("PC", "HDD")),
            formula=lambda board, p1, p2, boards=boards: 100 * (1 - boards * board / (p1 + p2) * 2),
            remark="how many boards it takes is drawn only (figure 5)",
        )
        for boards, of, printed in (
            (3, "sequential writes", "55"),
            (2, "random writes", "70"),
            (1, "reads", "85"),
        )
    ]


def _ends() -> list[Statement]:
    return [
        Statement(
            id_,
            place,
            "MPSoC with SSD1 for a PC with an HDD: less power, at most",
            "85",
            inputs=(_BUSY["MPSoC"]["SSD1"], *_pair("PC", "HDD")),
            formula=lambda board, p1, p2: 100 * (1 - 2 * board / (p1 + p2)),
        )
        for id_, place in (("0-servers", "abstract"), ("5-servers", "section 5"))
    ]
