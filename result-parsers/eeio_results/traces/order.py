"""The order in which requests arrived, in words.

Method: docs/explanation/caches-and-validity.md, "The order that the target sees".

The same rules and words as eeio-dataserver's own log of its requests (its `describe`), for those
that a drive was given. Nobody knows there which process a request is of.
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
    """The order of `requests`, which come by time; None where they are too few to show one.

    What the kernel cut a request of `request_size_bytes` into counts once. A stride that goes
    through a file again and again is K streams in lock-step too, each sequential: it is called so
    where as many processes as that were at work.
    """
    whole = _joined(requests, request_size_bytes or 0)
    if len(whole) < LEAST_REQUESTS:
        return None
    steps = Counter(late.offset - early.offset for early, late in pairwise(whole))
    behind = sum(late.offset == early.offset + early.length for early, late in pairwise(whole))
    if 5 * behind >= 4 * (len(whole) - 1):
        return "sequential"
    streams = _streams(whole)
    step, times = steps.most_common(1)[0]
    if 5 * times >= 4 * (len(whole) - 1) and streams > processes:
        return f"strided by {step} bytes"
    # Each place of a small file, taken at random, lies behind an earlier one half of the time.
    if 4 * streams <= len(whole):
        return f"mixed of {streams} streams, each sequential" if streams > 1 else "sequential"
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
    """Sequences of requests each of which lies behind one of before."""
    streams = 0
    ends: Counter[int] = Counter()
    for offset, length in requests:
        if ends[offset] > 0:
            ends[offset] -= 1
        else:
            streams += 1
        ends[offset + length] += 1
    return streams
