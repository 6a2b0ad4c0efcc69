"""Numbers as text, the same in tables, on the page, in PTS's files and in messages.

`script/number.mjs` of the page is its twin; both are tested with one list of numbers.
"""

import math

IN_TABLES = 4
"""Significant digits of tables and messages."""
ON_THE_PAGE = 3
"""... of the page, whose rows are narrow."""
IN_PTS = 6
"""... of PTS's files, from which PTS computes."""
_MOST_DECIMALS = 15


def significant(value: float, digits: int, *, keep_zeros: bool = False) -> str:
    """`value` with so many significant digits, all digits before the point, and no exponent.

    `keep_zeros`: 1.2 with 3 digits is `1.20` instead of `1.2`. There are 15 decimals at most, so a
    size below 5 x 10^-16 is `0`.
    """
    rounded = float(f"{value:.{digits - 1}e}")
    if round(rounded, _MOST_DECIMALS) == 0:
        return "0"
    decimals = digits - 1 - math.floor(math.log10(abs(rounded)))
    text = f"{value:.{min(max(decimals, 0), _MOST_DECIMALS)}f}"
    if "." in text and not keep_zeros:
        text = text.rstrip("0").rstrip(".")
    return text


def number(value: float) -> str:
    """As tables print it: 1234.5 is `1234`, 0.012345 is `0.01234`."""
    return significant(value, IN_TABLES)


def page_number(value: float) -> str:
    """As the page shows it: `0.0123`, `1.20`, `12300`. The page's data have five digits, so that
    table and script round the same number."""
    return significant(float(f"{value:.5g}"), ON_THE_PAGE, keep_zeros=True)


def pts_number(value: float) -> str:
    """As PTS's files contain it: PTS computes with this text."""
    return significant(value, IN_PTS, keep_zeros=True)
