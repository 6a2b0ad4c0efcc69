"""`eeio doctor restore`: restores the settings that a killed campaign had changed."""

import sys
from dataclasses import dataclass
from pathlib import Path

from eeio import paths
from eeio.errors import EXIT_DONE, EXIT_FAILED, EeioError
from eeio.machine.undo import orphans
from eeio.options import Command, argument
from eeio.record.store import half_made, remove_half_made


@dataclass(frozen=True, kw_only=True)
class RestoreRequest:
    """`eeio restore`."""

    journal: Path | None = argument(
        "FILE",
        help="undo journal of an ended process of another container or machine",
        parse=Path,
        count="?",
    )


def restore(request: RestoreRequest) -> int:
    restored, others = restore_orphans(request.journal)
    if not restored and not others:
        print("no settings to restore", file=sys.stderr)
    if others:
        return EXIT_FAILED
    return EXIT_DONE


def restore_orphans(journal: Path | None = None) -> tuple[int, int]:
    """Restores what killed processes left, or only what `journal` lists. Returns how many journals
    were restored and how many were not; EeioError names what could not be restored."""
    failures: list[str] = []
    with orphans(journal) as left:
        for orphan in left.journals:
            for entry in reversed(orphan.entries):
                print(f"eeio: after a killed campaign: {entry.text}", file=sys.stderr)
            failures += orphan.undo_all()
    if journal is None:
        for folder in half_made(paths.results_root()):
            if remove_half_made(folder):
                print(f"eeio: deleted an incomplete campaign: {folder}", file=sys.stderr)
    # No reason to stop: what they list is not of this campaign.
    others = [*left.bad, *left.elsewhere]
    for message in others:
        print(f"eeio: {message}", file=sys.stderr)
    if failures:
        raise EeioError("could not restore: " + "; ".join(failures))
    return len(left.journals), len(others)


COMMAND = Command(
    "restore",
    RestoreRequest,
    restore,
    help="restore settings after a crash",
    description="Restores the changes of a killed campaign: settings, mounts, images, processes.",
)
