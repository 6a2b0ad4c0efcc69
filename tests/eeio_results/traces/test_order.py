"""The order of requests, by the rules of eeio-dataserver's own log (test_dataserver_order.py)."""

import random

import pytest

from eeio.traces.order import Request, describe

R = 65536


def at(*places: int, length: int = R) -> list[Request]:
    return [Request(place * R, length) for place in places]


def in_pieces(requests: list[Request], piece: int) -> list[Request]:
    return [
        Request(offset + begin, piece)
        for offset, length in requests
        for begin in range(0, length, piece)
    ]


SHUFFLED = random.Random(1).sample(range(0, 4096, 2), 64)


@pytest.mark.parametrize(
    ("requests", "processes", "reported"),
    [
        (at(*range(24)), 1, "sequential"),
        (at(*range(0, 72, 3)), 1, f"strided by {3 * R} bytes"),
        (at(*range(72, 0, -3)), 1, f"strided by {-3 * R} bytes"),
        (at(*SHUFFLED), 1, "random"),
        # Four clients in their parts, in lock-step.
        (at(*(client * 100 + turn for turn in range(24) for client in range(4))), 4,
         "mixed of 4 streams, each sequential"),
        (at(*(client * 100 + turn for turn in range(24) for client in range(16))), 16,
         "mixed of 16 streams, each sequential"),
        # The same places by one process: a stride that goes through the file again and again.
        (at(*(client * 100 + turn for turn in range(24) for client in range(16))), 1,
         f"strided by {100 * R} bytes"),
        # One fifth of other requests between them changes nothing.
        (at(*range(50), 9000, *range(50, 90)), 1, "sequential"),
    ],
)  # fmt: skip
def test_patterns(requests: list[Request], processes: int, reported: str) -> None:
    assert describe(requests, R, processes) == reported
    # What the kernel cut into pieces counts once.
    assert describe(in_pieces(requests, R // 4), R, processes) == reported


def test_pieces_of_requests_that_were_under_way_together() -> None:
    """Queue depth 2: the pieces of two requests come in turn."""
    complete = at(*SHUFFLED)
    pieces: list[Request] = []
    for one, other in zip(complete[::2], complete[1::2], strict=True):
        for pair in zip(in_pieces([one], 4096), in_pieces([other], 4096), strict=True):
            pieces += pair
    assert describe(pieces, R) == "random"


def test_what_the_kernel_requested_at_once() -> None:
    """Read-ahead and write-back join what the program asked for."""
    joined = at(*range(0, 24, 2), length=2 * R)
    assert describe(joined, 4096) == describe(joined, None) == "sequential"


def test_too_few_show_nothing() -> None:
    assert describe(at(*range(7)), R) is None
    assert describe(in_pieces(at(*range(7)), 4096), R) is None
    assert describe([], R) is None
