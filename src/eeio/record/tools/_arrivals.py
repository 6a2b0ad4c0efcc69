"""When a word of a tool's output arrived, by the stamps the runner took of it."""

from bisect import bisect_left

from eeio.record.tools.capture import Capture


class Arrivals:
    """For one stream (`stdout` or `stderr`) with its text; takes time linear in both."""

    def __init__(self, capture: Capture, stream: str, text: str) -> None:
        stamps = sorted(
            (stamp.end_offset, stamp.monotonic_s - capture.started_monotonic_s)
            for stamp in capture.stamps
            if stamp.stream == stream
        )
        self._offsets = [offset for offset, _ in stamps]
        # The earliest time at which so much, or more, had come.
        self._times_s = [time_s for _, time_s in stamps]
        for index in range(len(stamps) - 2, -1, -1):
            self._times_s[index] = min(self._times_s[index], self._times_s[index + 1])
        self._text = text
        self._known = (0, 0)

    def of(self, index: int) -> float | None:
        """Seconds from the start of the invocation until all before the character `text[index]` had
        arrived; None when the runner took no stamp that late."""
        place = bisect_left(self._offsets, self._byte(index))
        if place < len(self._times_s):
            return self._times_s[place]
        return None

    def _byte(self, index: int) -> int:
        """The byte at which a character begins, counted on from the last request."""
        if self._text.isascii():
            return index
        known, byte = self._known if self._known[0] <= index else (0, 0)
        byte += len(self._text[known:index].encode("utf-8", errors="replace"))
        self._known = (index, byte)
        return byte
