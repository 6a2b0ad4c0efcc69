"""Campaigns and studies by name, and packages that a board lacks."""

import gc
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from eeio import paths, studies
from eeio.analysis import saved_figures
from eeio.errors import EeioError, LimitError, RejectedError
from eeio.record.store import RUNS, Campaign
from eeio.units.names import campaign_name, similar


@contextmanager
def analysis() -> Iterator[None]:
    """Around imports of scientific Python, which boards that only measure do not have."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise EeioError(
            f"{error.name} is not installed here; copy the campaign's folder to a machine that "
            "has it, and give its path to the command there"
        ) from error
    except ImportError as error:
        # Of numpy a page of advice, the cause in its last line.
        *_, cause = str(error).strip().splitlines()
        raise EeioError(f"a Python package cannot be loaded: {cause}") from error


def named_study(name: str) -> studies.Study:
    """Raises RejectedError for one that there is not, or that cannot be used."""
    try:
        return studies.find(name)
    except EeioError as error:
        raise RejectedError(str(error)) from error


def campaign_folder(name: str) -> Path:
    """The folder of a campaign that was named, or whose path was given: of a stored one before one
    that lies in the working directory, where others may have put it."""
    if "/" in name:
        return Path(name)
    try:
        folder = paths.results_root() / campaign_name(name)
    except LimitError as error:
        folder, message = Path(name), str(error)
    else:
        message = f"no campaign {name!r} in {paths.results_root()}"
        message += f"{similar(name, paths.campaigns())}; `eeio list` shows them"
        if os.geteuid() != 0:
            message += ". Campaigns run with sudo belong to root: use sudo for all commands on them"
    for found in (folder, Path(name)):
        if name and found.is_dir():
            return found
    raise RejectedError(message)


_SELDOM = (100_000, 20, 50)
"""Thresholds of `gc`."""


def load_campaigns(names: Sequence[str]) -> list[Campaign]:
    """The campaigns, in their order. Raises RejectedError for a repeated one, or for a copy."""
    folders = [campaign_folder(name) for name in names]
    real = [folder.resolve() for folder in folders]
    for folder in folders:
        if real.count(folder.resolve()) > 1:
            raise RejectedError(f"{folder} is repeated")
    # Records refer to nothing that refers back: looking through millions of them for circles, again
    # and again while they are made, takes longer than to read them. What is computed of them is
    # looked through seldom, for the same reason.
    gc.disable()
    try:
        found = [saved_figures.load(folder, paths.saved_figures_root()) for folder in folders]
    finally:
        gc.freeze()
        gc.set_threshold(*_SELDOM)
        gc.enable()
    _reject_copies(folders)
    return found


def _reject_copies(folders: Sequence[Path]) -> None:
    """Raises RejectedError for two folders with the same records: their first part tells."""
    known: dict[bytes, Path] = {}
    for folder in folders:
        with suppress(OSError), (folder / RUNS).open("rb") as records:
            part = records.read(1 << 16)
            if part and (first := known.setdefault(part, folder)) is not folder:
                raise RejectedError(f"{folder} is a copy of {first}: name one of them")


def save_figures(campaigns: Sequence[Campaign]) -> None:
    """Saves the figures of large campaigns for the next command."""
    for campaign in campaigns:
        saved_figures.save(campaign, paths.saved_figures_root())


def reject_mixed_demo(campaigns: Sequence[Campaign]) -> None:
    """Raises RejectedError where fictitious power would be compared with any other."""
    demo = [campaign.name for campaign in campaigns if campaign.is_demo]
    others = [campaign.name for campaign in campaigns if not campaign.is_demo]
    if demo and others:
        raise RejectedError(
            f"{', '.join(demo)}: the power is fictitious (meter demo); it is compared with other "
            f"demo campaigns only, not with {', '.join(others)}"
        )
