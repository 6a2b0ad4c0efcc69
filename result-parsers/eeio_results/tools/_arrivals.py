"""When a word of a tool's output arrived, by the stamps the runner took of it."""

from eeio_results.tools.capture import Capture


def arrival_s(capture: Capture, stream: str, end_offset: int) -> float | None:
    """Seconds from the start of the invocation until the first `end_offset` bytes of `stream`
    (`stdout` or `stderr`) had arrived; None when the runner took no stamp that late."""
    return min(
        (
            stamp.monotonic_s - capture.started_monotonic_s
            for stamp in capture.stamps
            if stamp.stream == stream and stamp.end_offset >= end_offset
        ),
        default=None,
    )


def byte_offset(text: str, index: int) -> int:
    """The byte at which the character `text[index]` begins."""
    return len(text[:index].encode("utf-8"))
