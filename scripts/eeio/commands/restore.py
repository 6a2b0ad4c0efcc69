"""`eeio restore`: puts back what a killed campaign had changed."""

import argparse
import sys

from eeio import paths
from eeio.errors import EXIT_DONE, EXIT_FAILED
from eeio.system.undo import orphans
from eeio_results.errors import EeioError
from eeio_results.store import half_made, remove_half_made


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "restore",
        help="put back what a killed campaign had changed",
        description="Puts back settings, mounts, images and processes of a killed campaign.",
    )
    parser.set_defaults(action=restore)


def restore(arguments: argparse.Namespace) -> int:
    try:
        journals, aside = restore_orphans()
    except EeioError as error:
        print(f"eeio: {error}", file=sys.stderr)
        return EXIT_FAILED
    if not journals and not aside:
        print("nothing to put back", file=sys.stderr)
    return EXIT_FAILED if aside else EXIT_DONE


def restore_orphans() -> tuple[int, int]:
    """How many journals were put back, and how many files set aside that are none; EeioError names
    what could not be put back."""
    failures: list[str] = []
    with orphans() as (found, aside):
        for journal in found:
            for entry in reversed(journal.entries):
                print(f"eeio: after a killed campaign: {entry.text}", file=sys.stderr)
            failures += journal.undo_all()
    for folder in half_made(paths.results_root()):
        if remove_half_made(folder):
            print(f"eeio: deleted what was left of making a campaign: {folder}", file=sys.stderr)
    # Said, and no reason to stop: it is out of the way, and nobody knows what it would put back.
    for words in aside:
        print(f"eeio: {words}", file=sys.stderr)
    if failures:
        raise EeioError("could not put back: " + "; ".join(failures))
    return len(found), len(aside)
