"""The order in which requests arrived, as text.

Method: docs/explanation/caches-and-validity.md, "The order that the target sees".

The rules and labels are those of eeio-dataserver's log of its requests (its `describe`), applied to
the requests of a drive. There the process of a request is not known.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

LEAST_REQUESTS = 8
"""Fewer show no pattern."""
# Pieces of one request may have those of so many others between them.
_BETWEEN = 64


class Request(NamedTuple):
    """Where it begins and how long it is, in bytes."""

    offset: int
    length: int


def describe(
    requests: Iterable[Request], request_size_bytes: int | None, processes: int = 1
) -> str | None:
    """The order of `requests`, which are sorted by time; None if there are too few.

    The parts into which the kernel split a request of `request_size_bytes` count once. A stride
    that runs through a file repeatedly is also K sequential streams in lock-step: it is called so
    if as many processes were running.
    """
    joined = _joined(requests, request_size_bytes or 0)
    if len(joined) < LEAST_REQUESTS:
        return None
    steps = Counter(late.offset - early.offset for early, late in pairwise(joined))
    behind = sum(late.offset == early.offset + early.length for early, late in pairwise(joined))
    if 5 * behind >= 4 * (len(joined) - 1):
        return "sequential"
    streams = _streams(joined)
    step, times = steps.most_common(1)[0]
    if 5 * times >= 4 * (len(joined) - 1) and streams > processes:
        return f"strided by {step} bytes"
    # Each place of a small file, in random order, comes after an earlier one half of the time.
    if 4 * streams <= len(joined):
        if streams > 1:
            return f"mixed of {streams} streams, each sequential"
        return "sequential"
    return "random"


def _joined(requests: Iterable[Request], largest: int) -> list[Request]:
    found: list[Request] = []
    ends: dict[int, int] = {}  # where a request may go on -> its index
    for request in requests:
        index = ends.pop(request.offset, None)
        if (
            index is not None
            and len(found) - index <= _BETWEEN
            and found[index].length + request.length <= largest
        ):
            found[index] = Request(found[index].offset, found[index].length + request.length)
        else:
            index = len(found)
            found.append(request)
        ends[found[index].offset + found[index].length] = index
    return found


def _streams(requests: Sequence[Request]) -> int:
    """Sequences of requests, each directly after an earlier one."""
    streams = 0
    ends: Counter[int] = Counter()
    for offset, length in requests:
        if ends[offset] > 0:
            ends[offset] -= 1
        else:
            streams += 1
        ends[offset + length] += 1
    return streams
