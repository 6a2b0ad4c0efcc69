"""SIGINT, SIGTERM and SIGHUP as an exception, so that `finally` clauses put things back."""

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from eeio.errors import InterruptedCampaignError


@contextmanager
def signals_raise(
    text: str,
    signals: Sequence[signal.Signals] = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP),
) -> Iterator[None]:
    """SIGINT, SIGTERM and SIGHUP (a terminal that was closed), or those of them that are named,
    raise an InterruptedCampaignError in the block, once; `text` tells the user what is left and how
    to go on. Under nohup SIGHUP stays ignored."""

    def handler(signum: int, frame: FrameType | None) -> None:
        # A second Ctrl-C must not stop the putting-back.
        for each in signals:
            signal.signal(each, signal.SIG_IGN)
        raise InterruptedCampaignError(signum, f"stopped by {signal.Signals(signum).name}; {text}")

    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        signals = [each for each in signals if each != signal.SIGHUP]
    before = {s: signal.signal(s, handler) for s in signals}
    try:
        yield
    finally:
        for signum, old in before.items():
            signal.signal(signum, old)
