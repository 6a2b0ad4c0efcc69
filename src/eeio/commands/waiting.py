"""`--wait [TIME]`: of commands that lock the machine, a drive or a campaign."""

import argparse
import math

from eeio.commands.arguments import OptionGroup
from eeio.errors import LimitError
from eeio.units import quantities as q

_UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0}


def add_wait(options: OptionGroup) -> None:
    options.add(
        "--wait", metavar="TIME", nargs="?", type=_time, const=math.inf, default=None,
        help="if another campaign runs, wait until it ends, or TIME at most, e.g. --wait=30m",
    )  # fmt: skip


def _time(text: str) -> float:
    """`90s`, `30m` or `2h` in s. Raises argparse.ArgumentTypeError."""
    written, unit = text[:-1], text[-1:]
    if unit not in _UNITS_S:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a time such as 90s, 30m or 2h; without a time give --wait last"
        )
    try:
        return q.DURATION.of_text(written) * _UNITS_S[unit]
    except LimitError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from error
