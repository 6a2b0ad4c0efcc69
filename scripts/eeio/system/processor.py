"""What the processors do while a tool runs: their use and their frequency, once a second.

The frequency governor answers to how long requests take, and
that decides the power of a system more than its drive does.
"""

import threading
import time
from pathlib import Path
from types import TracebackType

from eeio_results.record import ProcessorSeries

PERIOD_S = 1.0
SOURCE = "/proc/stat and scaling_cur_freq, every 1 s"

# /proc/stat, line `cpu`: user nice system idle iowait irq softirq steal.
_BUSY = (0, 1, 2, 5, 6)
_COUNTED = 8


class ProcessorSampler:
    """Samples in a thread from `with` to its end; `series()` has the result then.

    `root` is another tree than `/`, for tests.
    """

    def __init__(self, root: Path = Path("/"), period_s: float = PERIOD_S) -> None:
        self._stat = root / "proc/stat"
        self._clocks = sorted(
            (root / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_cur_freq")
        )
        self._period_s = period_s
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._times_s: list[float] = []
        self._use: list[float | None] = []
        self._frequency_hz: list[float | None] = []
        self._start_s = 0.0
        self._before: tuple[int, int] | None = None

    def __enter__(self) -> "ProcessorSampler":
        self._start_s = time.monotonic()
        self._before = self._jiffies()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end.set()
        self._thread.join()

    def series(self) -> ProcessorSeries:
        """All samples; a quantity that this machine does not tell is missing, with the reason."""
        missing = {}
        if not any(value is not None for value in self._use):
            missing["use"] = f"{self._stat} tells no times"
        if not any(value is not None for value in self._frequency_hz):
            missing["frequency_hz"] = "this machine shows no frequency (no cpufreq)"
        return ProcessorSeries(
            source=SOURCE,
            times_s=tuple(self._times_s),
            use=tuple(self._use),
            frequency_hz=tuple(self._frequency_hz),
            missing=missing,
        )

    def _sample(self) -> None:
        """One sample a period, and one at the end, so that short runs have one too."""
        due_s = self._start_s
        while True:
            due_s += self._period_s
            ended = self._end.wait(max(0.0, due_s - time.monotonic()))
            now = self._jiffies()
            self._times_s.append(time.monotonic() - self._start_s)
            self._use.append(self._share(now))
            self._frequency_hz.append(self._mean_frequency_hz())
            self._before = now
            if ended:
                return

    def _share(self, now: tuple[int, int] | None) -> float | None:
        if now is None or self._before is None:
            return None
        busy, total = now[0] - self._before[0], now[1] - self._before[1]
        return busy / total if total > 0 else None

    def _jiffies(self) -> tuple[int, int] | None:
        """(busy, all) since boot, of all processors."""
        try:
            with self._stat.open(encoding="ascii") as file:
                words = file.readline().split()
            times = [int(word) for word in words[1 : 1 + _COUNTED]]
        except (OSError, ValueError):
            return None
        if len(times) < _COUNTED or words[0] != "cpu":
            return None
        return sum(times[place] for place in _BUSY), sum(times)

    def _mean_frequency_hz(self) -> float | None:
        found = []
        for path in self._clocks:
            try:
                found.append(int(path.read_text(encoding="ascii")) * 1e3)
            except (OSError, ValueError):
                continue  # a processor that went offline
        return sum(found) / len(found) if found else None
