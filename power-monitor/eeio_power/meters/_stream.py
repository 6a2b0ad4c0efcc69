"""What the batches of meters with fast streams share: a thread that reads until the last fetch."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class StreamThread:
    """A stream that goes on by itself while its means are fetched now and then."""

    ended: bool = field(default=False, init=False)
    _finishes: bool = field(default=False, init=False)
    _stop: threading.Event = field(default_factory=threading.Event, init=False)
    _thread: threading.Thread | None = field(default=None, init=False)

    def begin(self, meter: str, run: Callable[[], None]) -> None:
        """Run a function in a thread, until `_stop` is set."""
        name = f"eeio-power-{meter}-stream"
        self._thread = threading.Thread(target=run, name=name, daemon=True)
        self._thread.start()

    def sample_now(self) -> None:
        """The stream goes on by itself."""

    def finish(self) -> None:
        """The next fetch is the last one."""
        self._finishes = True

    def kill(self) -> None:
        """End the thread."""
        self.ended = True
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
