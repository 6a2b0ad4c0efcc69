"""How far a log's clock is ahead: pulses of load, and where the log shows them."""

import time
from itertools import pairwise
from pathlib import Path

from eeio.errors import LimitError, RejectedError
from eeio.files import inputs
from eeio.units.quantities import TIMESTAMP
from eeio_power import alignment
from eeio_power.meters import LoggedMeter


def offset(meter: LoggedMeter, pulses: list[alignment.Pulse], search_s: float) -> alignment.Offset:
    """Of the log's clock to this machine's. Raises PowerError if the pulses are not in the log."""
    times_s, (values,) = meter.logged()
    # The pulses are on the wall clock, the log's times on the monotonic one.
    shift_s = time.monotonic() - time.time()
    known = [(t, v) for t, v in zip(times_s, values, strict=True) if v == v]
    return alignment.find_offset(
        [t for t, _ in known],
        [v for _, v in known],
        [alignment.Pulse(p.start_s + shift_s, p.end_s + shift_s) for p in pulses],
        search_s,
    )


def load_pulses(path: Path) -> list[alignment.Pulse]:
    try:
        pulses = [
            alignment.Pulse(TIMESTAMP.checked(a, "a pulse"), TIMESTAMP.checked(b, "a pulse"))
            for a, b in inputs.read_json(path)["pulses_unix_s"]
        ]
        if not all(p.start_s < p.end_s for p in pulses) or not all(
            before.end_s < after.start_s for before, after in pairwise(pulses)
        ):
            raise LimitError("pulses that overlap, or end before they start")
        return pulses
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RejectedError(f"{path}: no pulses that --save wrote ({error})") from error
