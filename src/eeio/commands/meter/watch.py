"""`eeio meter watch`: a live view of the meters, with a chart of the readings."""

import shutil
import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from eeio.commands.meter.meters import marks, meter_option, opened, rate_option, seconds
from eeio.errors import EXIT_DONE
from eeio.options import Command, option
from eeio.units.external_text import shown
from eeio.units.terminal import raw
from eeio_power.reading import EnergyReading
from eeio_power.sampler import NOWHERE, Sampler

_BARS = "\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"
# Where the terminal cannot show those.
_ASCII_BARS = "_.-=*%#@"
_MISSING = " "
# As many values as the widest terminal shows.
_KEPT = 500
Key = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class WatchRequest:
    """`eeio meter watch`."""

    meter: tuple[str, ...] = meter_option()
    rate: float = rate_option()
    interval: float = option(
        "--interval",
        value="S",
        help="time between values (default: 1)",
        parse=seconds,
        default=1.0,
    )
    count: int | None = option(
        "--count",
        value="N",
        help="end after N lines per meter",
        parse=int,
    )


@dataclass
class Observed:
    """The values of one meter and domain so far, W; None where there was none."""

    last: deque[float | None] = field(default_factory=lambda: deque(maxlen=_KEPT))
    count: int = 0
    least_w: float = float("inf")
    most_w: float = float("-inf")
    sum_w: float = 0.0

    def add(self, power_w: float | None) -> None:
        self.last.append(power_w)
        if power_w is None:
            return
        self.count += 1
        self.sum_w += power_w
        self.least_w = min(self.least_w, power_w)
        self.most_w = max(self.most_w, power_w)

    def text(self) -> str:
        """`min 4.10  mean 5.02  max 7.33 W`; nothing without a value."""
        if not self.count:
            return ""
        mean_w = self.sum_w / self.count
        return f"min {self.least_w:.2f}  mean {mean_w:.2f}  max {self.most_w:.2f} W"


def chart(values: Sequence[float | None], bars: str, width: int) -> str:
    """The last `width` values as bars from 0 to the most of them; a gap where one is missing."""
    values = list(values)[-width:] if width > 0 else []
    most = max((value for value in values if value is not None), default=0.0)

    def bar(value: float | None) -> str:
        if value is None:
            return _MISSING
        share = 0.0
        if most > 0:
            share = max(0.0, value) / most
        return bars[min(len(bars) - 1, int(len(bars) * share))]

    return "".join(map(bar, values))


def watch(request: WatchRequest) -> int:
    live = sys.stdout.isatty()
    with opened(request.meter) as meters:
        slowest_s = max(meter.native_period_s for meter in meters)
        # A window needs at least two readings.
        window_s = max(2.0 * slowest_s, request.interval)
        keep_s = 10.0 * window_s
        with Sampler(meters, NOWHERE, request.rate, keep_s=keep_s) as sampler:
            observed: dict[Key, Observed] = {}
            try:
                _watch(sampler, window_s, request.interval, request.count, live, observed)
            except KeyboardInterrupt:
                print()
    for (meter, domain), of_domain in observed.items():
        if of_domain.count:
            plural = ""
            if of_domain.count > 1:
                plural = "s"
            values = f"{of_domain.count} value{plural}"
            print(f"{meter:12}{domain:8}  {of_domain.text()} of {values}", file=sys.stderr)
    return EXIT_DONE


def _watch(
    sampler: Sampler,
    window_s: float,
    interval_s: float,
    count: int | None,
    live: bool,
    observed: dict[Key, Observed],
) -> None:
    written = 0
    number = 0
    while count is None or number < count:
        number += 1
        time.sleep(interval_s)
        now_s = time.monotonic()
        readings = sampler.energy(now_s - window_s, now_s, wait=False)
        lines = []
        for reading in readings:
            of_domain = observed.setdefault((reading.meter, reading.domain), Observed())
            of_domain.add(reading.power_w)
            lines.append(_watch_line(reading))
            if live:
                lines.append(_live_line(of_domain))
        if live:
            width = shutil.get_terminal_size().columns
            if written:
                raw(sys.stdout).write(f"\x1b[{written}A\x1b[J")
            # A line that wraps would be two to go back over.
            lines = [shown(line)[: width - 1] for line in lines]
        for line in lines:
            print(line, flush=True)
        written = len(lines)


def _live_line(of_domain: Observed) -> str:
    text = of_domain.text()
    bars = _ASCII_BARS
    if _shows(sys.stdout.encoding):
        bars = _BARS
    room = shutil.get_terminal_size().columns - len(text) - 14
    return f"{'':10}{text}  {chart(of_domain.last, bars, room)}"


def _shows(encoding: str | None) -> bool:
    """Whether bars can be written in it."""
    try:
        _BARS.encode(encoding or "ascii")
    except (UnicodeError, LookupError):
        return False
    return True


def _watch_line(reading: EnergyReading) -> str:
    head = f"{time.strftime('%H:%M:%S')}  {reading.meter:12}{reading.domain:7} "
    if reading.power_w is None:
        return f"{head}{'-':>11}    {'; '.join(reading.reasons)[:90]}"
    return f"{head}{reading.power_w:11.2f} W{marks(reading)}"


COMMAND = Command(
    "watch",
    WatchRequest,
    watch,
    help="show live power",
    description="Shows power until Ctrl-C, on a terminal with a chart of the last values. "
    "At the end it prints the minimum, mean and maximum of the shown values.",
)
