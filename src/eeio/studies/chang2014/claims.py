"""Results that Chang et al. 2014 print, compared with one another.

Rates are drawn (figures 1 to 3, 7, 8) without numbers, so the terms of a ratio are not printed. The
checks are the places at which one figure is printed twice, and equation (10), by which the rate of
creation is one over the mean time of an fsync.
"""

from collections.abc import Sequence

from eeio.analysis.printed_figures import Statement

_DRAWN = "its two rates are drawn without numbers"
_IV_A, _IV_B = "section IV.A", "section IV.B"


def _same(value: float) -> float:
    return value


def statements() -> Sequence[Statement]:
    """All of them, in the paper's order."""
    return (
        *(
            Statement(id_, place, "IOzone, 3.3 against 1.6 GHz: slower", "47", remark=remark)
            for id_, place, remark in (
                ("0-loss", "abstract", f"as figures 1 and 2; {_DRAWN}"),
                ("1-loss", "section I, figure 1", _DRAWN),
                ("2-loss", "section II, figure 2", _DRAWN),
            )
        ),
        Statement(
            "0-gain",
            "abstract",
            "delayJC over EXT4: more than",
            "3",
            "times",
            ("3.65",),
            _same,
            "of section IV.A's 3.65, which is more (written `3-fold`)",
        ),
        Statement(
            "2-loss-metarates",
            "section II, figure 3",
            "Metarates, 3.1 against 1.6 GHz: slower",
            "20",
            inputs=("18", "25"),
            formula=lambda slow, fast: 100 * (1 - slow / fast),
            remark="equation (10) on the waits of figure 8a, 18 ms (at 1.7 GHz) and 25 ms",
        ),
        Statement(
            "2-rsd-iozone",
            "section II, figure 2",
            "relative standard deviation, IOzone: largest",
            "55",
            remark="drawn without numbers",
        ),
        Statement(
            "2-rsd-metarates",
            "section II, figure 3",
            "relative standard deviation, Metarates: largest",
            "32",
            remark="drawn without numbers",
        ),
        Statement(
            "2-runs",
            "section II",
            "runs of a point, more than",
            "50",
            "runs",
            remark="no half-width is printed; for one of 5 % an RSD of 55 % takes about 460, "
            "11 % takes 19",
        ),
        Statement(
            "2-sweep",
            "section II",
            "a full sweep",
            "1.5",
            "months",
            remark="the levels of its sweep are not printed, but their ends",
        ),
        Statement(
            "2-frequency",
            "section II, figure 3",
            "highest frequency of Nehalem",
            "3.1",
            "GHz",
            ("3.00",),
            _same,
            "from the caption",
        ),
        *(
            Statement(
                id_,
                f"{_IV_A}, figure 7{figure}",
                f"delayJC over EXT4, {of}",
                printed,
                "x",
                remark=_DRAWN,
            )
            for id_, figure, of, printed in (
                ("4-iozone-128", "a", "256 threads, 128 KB, 3.3 GHz", "3.65"),
                ("4-iozone-256", "b", "256 threads, 256 KB, 2.6 GHz", "2.04"),
                ("4-iozone-512", "c", "256 threads, 512 KB, 3.3 GHz", "3.47"),
            )
        ),
        Statement(
            "4-threads-high",
            f"{_IV_A}, figure 7a",
            "threads of 256 not blocked, 3.3 GHz",
            "40",
            "threads",
            remark="drawn",
        ),
        Statement(
            "4-threads-low",
            f"{_IV_A}, figure 7a",
            "threads of 256 not blocked, 1.6 GHz",
            "240",
            "threads",
            remark="drawn",
        ),
        Statement(
            "4-creation-4",
            f"{_IV_B}, figure 8a",
            "delayJC over EXT4, 4 processes, largest",
            "2.57",
            "x",
            ("2.57",),
            _same,
            "the upper end of 1.83 to 2.57",
        ),
        Statement(
            "4-creation-16",
            f"{_IV_B}, figure 8b",
            "delayJC over EXT4, 16 processes, largest",
            "1.82",
            "x",
            remark=_DRAWN,
        ),
        Statement(
            "4-creation-32",
            f"{_IV_B}, figure 8c",
            "delayJC over EXT4, 32 processes, largest",
            "1.49",
            "x",
            ("1.49",),
            _same,
            "the upper end of 1.31 to 1.49",
        ),
        Statement(
            "4-wait-high",
            f"{_IV_B}, figure 8a",
            "wait of a process, EXT4, 3.1 GHz",
            "25",
            "ms",
            remark="drawn; Metarates' 20 % by equation (10) would give 22.5 ms",
        ),
        Statement(
            "4-wait-low",
            f"{_IV_B}, figure 8a",
            "wait of a process, EXT4, 1.7 GHz",
            "18",
            "ms",
            remark="drawn; Metarates' 20 % by equation (10) would give 20 ms",
        ),
        Statement(
            "4-wait-4",
            f"{_IV_B}, figure 8a",
            "wait of 4 processes, delayJC",
            "1",
            "ms",
            remark="drawn; 2.57 at 25 ms by equation (10) would give 9.7 ms",
        ),
        Statement(
            "4-wait-32",
            f"{_IV_B}, figure 8c",
            "wait of 32 processes, delayJC",
            "12",
            "ms",
            remark="drawn; EXT4's of 32 processes is not printed",
        ),
        Statement(
            "6-gain",
            "section VI",
            "delayJC over EXT4, at most",
            "3.65",
            "x",
            ("3.65",),
            _same,
            "section IV.A's, figure 7a",
        ),
    )
