"""The bytes that a drive moves, over time: its counters, read beside a run."""

import threading
import time
from types import TracebackType
from typing import Self

from eeio.campaign.run_length import MovedBytes
from eeio.system.counters import read_counters
from eeio.system.filesystem import BlockDevice

_STEP_S = 0.02


class DriveBytes:
    """Reads what the drive counted of reads and writes until the `with` ends."""

    def __init__(self, device: BlockDevice) -> None:
        self._device = device
        self._times_s: list[float] = []
        self._counted: list[int] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="drive bytes", daemon=True)

    def __enter__(self) -> Self:
        self._read()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join()

    def moved(self) -> MovedBytes:
        """After the end: all that was read."""
        return MovedBytes(self._times_s, self._counted)

    def _watch(self) -> None:
        while not self._ended.wait(_STEP_S):
            self._read()
        self._read()

    def _read(self) -> None:
        before_s = time.monotonic()
        try:
            found = read_counters(self._device)
        except OSError:
            return  # the drive is gone, which the run itself tells
        self._times_s.append((before_s + time.monotonic()) / 2)
        self._counted.append(found.read_bytes + found.written_bytes)
