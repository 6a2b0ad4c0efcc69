"""A described machine, laid out so that doctor, power list and plan can look at it."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from eeio.errors import RejectedError
from eeio.machine.as_data import capture, description
from eeio.machine.as_data.description import Description
from eeio.paths import temporary_folder

DOCTOR = ("eeio", "doctor", "--json")


@dataclass(frozen=True)
class Replay:
    """The description, and the folder that replaces `/`."""

    description: Description
    root: Path

    @property
    def doctor(self) -> str | None:
        """Output of `eeio doctor --json` on the machine itself, if it was stored."""
        for c in self.description.commands:
            if c.run == DOCTOR:
                return c.prints
        return None

    def named(self, text: str) -> str:
        """A text with the machine's own paths for those that they have here."""
        return text.replace(f"{self.root}/", "/")


@contextmanager
def replayed(path: Path) -> Iterator[Replay]:
    """Lays out a capture or a description. While it is there the described programs are all that
    this process, and what it starts, finds on PATH: none of this machine's may answer instead.

    Raises RejectedError.
    """
    captured = capture.load(path)
    before = os.environ.get("PATH")
    with tempfile.TemporaryDirectory(prefix="eeio-machine-", dir=temporary_folder()) as folder:
        try:
            root, programs = description.lay_out(captured, Path(folder).resolve() / "m")
        except OSError as error:
            raise RejectedError(f"{path}: cannot be laid out: {error.strerror}") from error
        os.environ["PATH"] = str(programs)
        try:
            yield Replay(captured, root)
        finally:
            if before is None:
                del os.environ["PATH"]
            else:
                os.environ["PATH"] = before
