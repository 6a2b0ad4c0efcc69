"""`--wait [TIME]`: of commands that lock the machine, a drive or a campaign."""

import math
from typing import Any

from eeio.errors import LimitError
from eeio.options import option
from eeio.units import quantities as q

_UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0}


def wait_option(group: str | None = None) -> Any:
    """The field `wait: float | None`: seconds, infinite without a time."""
    return option(
        "--wait",
        value="TIME",
        count="?",
        parse=_time,
        without_value=math.inf,
        help="if another campaign runs, wait until it ends, or TIME at most, e.g. --wait=30m",
        group=group,
    )


def _time(text: str) -> float:
    """`90s`, `30m` or `2h` in s. Raises LimitError."""
    written, unit = text[:-1], text[-1:]
    if unit not in _UNITS_S:
        raise LimitError(
            f"{text!r} is not a time such as 90s, 30m or 2h; without a time give --wait last"
        )
    try:
        return q.DURATION.of_text(written) * _UNITS_S[unit]
    except LimitError as error:
        raise LimitError(f"{text!r}: {error}") from error
