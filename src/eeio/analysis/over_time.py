"""Power and bandwidth over the time of a campaign, as its meters and fio stored them."""

import math
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from operator import mul, sub
from pathlib import Path

from eeio.analysis.observation import Key
from eeio.errors import LimitError
from eeio.files import inputs

_BW_LOGS = "*_bw.*.log"
_BW_FILES = 64
_KIB_PER_MB = 1024 / 1e6


@dataclass(frozen=True)
class PowerSeries:
    """Readings of one domain by one meter in one stretch of a campaign: `watts[i]` is the mean
    power from `times_s[i - 1]` to `times_s[i]`, NaN if not read. Monotonic seconds, rising."""

    key: Key
    times_s: Sequence[float]
    watts: Sequence[float]

    @cached_property
    def _known_s(self) -> Sequence[float]:
        """The time up to each moment in which power was read, s, from any origin."""
        if self._complete:
            return self.times_s
        steps = map(sub, self.times_s[1:], self.times_s)
        known = (step if w == w else 0.0 for step, w in zip(steps, self.watts[1:], strict=True))
        return array("d", accumulate(known, initial=0.0))

    @cached_property
    def _joules(self) -> Sequence[float]:
        """The energy up to each moment, as far as power was read. For a complete campaign, doubles
        are precise to better than a microjoule."""
        steps: Iterable[float] = map(mul, self.watts[1:], map(sub, self.times_s[1:], self.times_s))
        if not self._complete:
            steps = (joules if joules == joules else 0.0 for joules in steps)
        return array("d", accumulate(steps, initial=0.0))

    @cached_property
    def _complete(self) -> bool:
        return not math.isnan(sum(self.watts[1:]))

    def mean_w(self, first: int, last: int) -> float | None:
        """Mean power between two moments, by their places, over the time in which it was read."""
        seconds = self._known_s[last] - self._known_s[first]
        if seconds > 0:
            return (self._joules[last] - self._joules[first]) / seconds
        return None

    def mean_between(self, begin_s: float, end_s: float) -> float | None:
        """Mean power between two moments; None if power was not read in all of that time."""
        if not self.times_s[0] <= begin_s < end_s <= self.times_s[-1]:
            return None
        first, last = bisect_left(self.times_s, begin_s), bisect_left(self.times_s, end_s)
        if not math.isfinite(sum(self.watts[max(1, first) : last + 1])):
            return None
        return (self._joules_at(end_s) - self._joules_at(begin_s)) / (end_s - begin_s)

    def _joules_at(self, at_s: float) -> float:
        """The energy up to a moment within the series."""
        after = max(1, bisect_left(self.times_s, at_s))
        return self._joules[after - 1] + self.watts[after] * (at_s - self.times_s[after - 1])


def bandwidth_log(raw: Path) -> list[tuple[float, float]]:
    """Times since the start of the I/O, s, and MB/s before them, of fio's bandwidth log, reads and
    writes together; empty if there is none, or it is incomplete."""
    moments: dict[float, float] = {}
    try:
        for path in sorted(raw.glob(_BW_LOGS))[:_BW_FILES]:
            for line in inputs.read_text(path, inputs.TOOL_FILE_BYTES).splitlines():
                at_ms, kib_per_s, _ = line.split(",", 2)
                at_s = int(at_ms) / 1000
                moments[at_s] = moments.get(at_s, 0.0) + int(kib_per_s) * _KIB_PER_MB
    except (OSError, LimitError, ValueError):
        # A truncated log covers a part of the run, which would look like the complete run.
        return []
    if len(moments) > 1:
        return sorted(moments.items())
    return []
