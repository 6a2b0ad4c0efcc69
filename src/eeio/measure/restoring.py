"""Restores the settings that a command changed, however it ends."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from eeio.machine.undo import UndoJournal
from eeio.measure.signals import signals_raise


@contextmanager
def restoring(journal: UndoJournal) -> Iterator[list[str]]:
    """Signals raise in the block, and all that the journal holds is put back after it. The list has
    then what could not be, which is said as well."""
    failures: list[str] = []
    with signals_raise("changed settings are restored"):
        try:
            try:
                yield failures
            finally:
                journal.undo_all()
        finally:
            # A signal raises once: what it kept from being put back is put back here.
            failures += journal.undo_all()
            tell(failures)


def tell(failures: Iterable[str]) -> None:
    """Prints on stderr the settings that could not be restored."""
    for failure in failures:
        print(
            f"eeio: could not restore: {failure}; `eeio doctor restore` tries again",
            file=sys.stderr,
        )
