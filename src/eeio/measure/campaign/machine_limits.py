"""What limits and throttles this machine during a run."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from eeio.machine import limits
from eeio.machine.device_limits import PERIOD_S, Sample, device_limits, reached_by
from eeio.machine.filesystem import BlockDevice
from eeio.measure.campaign.probes import Sampling
from eeio.record.run import LIMIT, STOLEN, THROTTLED, Run


class MachineLimits(Sampling):
    """Limits of the control group that a run reached, stolen processor time, and throttling."""

    def __init__(self, devices: Sequence[BlockDevice], root: Path = Path("/")) -> None:
        super().__init__(PERIOD_S)
        self._root = root
        self._limits = limits.Limits(devices, root)
        self._of_devices = device_limits(devices, root)
        self._moved: list[Sample] = []
        self._before: limits.Watched | None = None
        self._after: limits.Watched | None = None
        self._throttled: str | None = None

    def start(self) -> None:
        self._before = self._limits.watched()
        if self._of_devices:
            super().start()

    def stop(self, ended_s: float | None) -> None:
        super().stop(ended_s)
        self._after = self._limits.watched()
        self._throttled = limits.throttled_now(self._root)

    def _begin(self) -> None:
        self._sample()

    def _sample(self) -> None:
        moved = tuple(limit.moved() for limit in self._of_devices)
        self._moved.append(Sample(time.monotonic() - self._start_s, moved))

    def add_to(self, run: Run) -> Run:
        if self._before is None or self._after is None:
            return run
        both = (self._before, self._after)
        reached = reached_by(self._of_devices, self._moved, run.phases)
        reached += limits.groups_limits_reached(*both, run.duration_s)
        remarks = {}
        if reached:
            remarks = {LIMIT: "; ".join(reached)}
        if (share := limits.stolen_share(*both, run.duration_s)) is not None:
            remarks[STOLEN] = f"the host used {share:.0%} of the processors' time"
        events = limits.throttled(*both)
        if events:
            remarks[THROTTLED] = f"processors or drive were throttled {events} times"
        elif self._throttled is not None:
            remarks[THROTTLED] = self._throttled
        return replace(
            run,
            remarks={**run.remarks, **remarks},
            stolen_s=limits.stolen_s(*both),
            throttle_events=events,
        )
