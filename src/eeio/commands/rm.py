"""`eeio rm`: deletes stored campaigns."""

import sys
from dataclasses import dataclass
from pathlib import Path

from eeio import paths
from eeio.commands.campaign_folders import campaign_folder
from eeio.errors import EXIT_DONE, EeioError, LimitError, RejectedError
from eeio.measure.campaign.runner import store_lock
from eeio.measure.campaign.safety import left_files
from eeio.options import Command, argument, switch
from eeio.record.store import delete, progress, read_design
from eeio.units.names import campaign_name


@dataclass(frozen=True, kw_only=True)
class RmRequest:
    """`eeio rm`."""

    names: tuple[str, ...] = argument(
        "NAME",
        help="campaign name (see `eeio list`)",
        count="+",
    )
    yes: bool = switch(
        "--yes",
        help="skip the confirmation",
    )


def remove(request: RmRequest) -> int:
    folders = list(dict.fromkeys(map(_stored, request.names)))
    for folder in folders:
        # It could be replaced by another folder before it is deleted.
        paths.check_campaign_to_change(folder, "deleted")
        print(f"{folder}: {_summary(folder)}", file=sys.stderr)
    if not request.yes:
        _ask(len(folders))
    for folder in folders:
        left = _left_files(folder)
        with store_lock(folder):
            delete(folder)
        print(f"deleted {folder}")
        if left is not None:
            print(f"{left}: delete that folder with rm -r if no other campaign uses it")
    return EXIT_DONE


def _stored(name: str) -> Path:
    """Only folders among the stored campaigns, so that no other program's folder is deleted; each
    by its own name, or by a path that ends in it."""
    folder = campaign_folder(name)
    root = paths.results_root()
    try:
        campaign_name(name.rstrip("/").rpartition("/")[2])
    except LimitError as error:
        raise RejectedError(str(error)) from error
    if folder.is_symlink() or folder.parent.resolve() != root.resolve():
        raise RejectedError(
            f"{folder} is not in {root}, so eeio does not delete it. Delete it with rm -r"
        )
    return root / folder.resolve().name


def _summary(folder: Path) -> str:
    moved = sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_symlink())
    size = f"{moved / 1e6:.1f} MB"
    try:
        extent = progress(folder)
    except (EeioError, OSError, ValueError) as error:
        return f"{size}, unreadable: {error}"
    return f"{extent.suite}, {extent.stored_runs} of {extent.planned_runs} runs, {size}"


def _left_files(folder: Path) -> str | None:
    """Test files of a campaign that was not finished."""
    try:
        extent = progress(folder)
        if extent.stored_runs >= extent.planned_runs:
            return None
        return left_files(read_design(folder).options.directory)
    except (EeioError, OSError, ValueError):
        return None


def _ask(count: int) -> None:
    if not sys.stdin.isatty():
        raise RejectedError(
            "no campaign was deleted: there is no terminal for the confirmation; give --yes"
        )
    print(
        f"Delete {count} campaign{'s' * (count > 1)}? [y/N] ", end="", file=sys.stderr, flush=True
    )
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise RejectedError("no campaign was deleted")


COMMAND = Command(
    "rm",
    RmRequest,
    remove,
    help="delete stored campaigns",
    description="Deletes campaigns with all their runs and samples. Asks for confirmation "
    "on a terminal.",
)
