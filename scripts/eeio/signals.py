"""SIGINT and SIGTERM as an exception, so that `finally` clauses put things back."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from eeio.errors import InterruptedCampaignError


@contextmanager
def signals_raise(words: str) -> Iterator[None]:
    """SIGINT and SIGTERM raise an InterruptedCampaignError in the block, once; `words` tell the
    user what is left and how to go on."""

    def handler(signum: int, frame: FrameType | None) -> None:
        # A second Ctrl-C must not stop the putting-back.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise InterruptedCampaignError(signum, f"stopped by {signal.Signals(signum).name}; {words}")

    before = {s: signal.signal(s, handler) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for signum, old in before.items():
            signal.signal(signum, old)
