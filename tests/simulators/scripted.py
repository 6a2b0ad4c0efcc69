"""A meter that answers what a function says, and can be made to stall or fail."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from eeio_power.meters import Channel
from eeio_power.reading import Kind


@dataclass
class ScriptedMeter:
    """One or more channels whose values `answer()` gives; it may raise what a meter would raise.

    While `flowing` is cleared, `read` hangs, as a meter does whose cable was pulled.
    """

    channels: Sequence[Channel]
    answer: Callable[[], Sequence[float | None]]
    name: str = "scripted"
    spec: str = "scripted"
    kind: Kind = "measured"
    native_period_s: float = 0.01
    flowing: threading.Event = field(default_factory=threading.Event)
    entered: threading.Event = field(default_factory=threading.Event)
    """Set as soon as a read begins."""
    closed: bool = False

    def __post_init__(self) -> None:
        self.flowing.set()

    def read(self) -> Sequence[float | None]:
        """What `answer` gives, once the meter flows."""
        self.entered.set()
        self.flowing.wait()
        return self.answer()

    def close(self) -> None:
        """Remembers that it was closed."""
        self.closed = True
