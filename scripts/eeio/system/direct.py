"""Reading a block device past the page cache."""

import mmap
import os
import time
from pathlib import Path

CHUNK_BYTES = 1 << 20


def read(node: Path, length: int | None, offset: int = 0, end_s: float = float("inf")) -> int:
    """Reads `length` bytes, or to the end of the device (None), until that time on the monotonic
    clock at the latest; how many it read. Length and offset are whole sectors."""
    descriptor = os.open(node, os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC)
    left = float("inf") if length is None else length
    begun = offset
    # O_DIRECT needs aligned memory, which a mapping is.
    with mmap.mmap(-1, CHUNK_BYTES) as buffer:
        whole = memoryview(buffer)
        try:
            while left > 0 and time.monotonic() < end_s:
                with whole[: int(min(CHUNK_BYTES, left))] as view:
                    moved = os.preadv(descriptor, [view], offset)
                    short = moved < len(view)
                offset += moved
                left -= moved
                if short:
                    break
        finally:
            whole.release()
            os.close(descriptor)
    return offset - begun
