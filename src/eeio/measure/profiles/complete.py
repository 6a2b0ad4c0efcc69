"""Complete profiles: a profile's own files, and the shared ones that its file `common` lists.

A folder without such a file is complete. The reasons are in
docs/decisions/0042-shared-profile-files.md.
"""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from eeio.errors import LimitError, RejectedError
from eeio.files import inputs
from eeio.paths import shipped, temporary_folder

_LIST = "common"
WITH = {
    "factors.sh": (
        "factors.awk",
        "checks.sh",
        "scratch.sh",
        "owners.sh",
        "trust.sh",
        "repairs.sh",
        "contents.sh",
    ),
    "install.sh": ("programs.sh", "owners.sh", "trust.sh", "repairs.sh"),
    "mpi.sh": ("open-mpi.sh",),
}
"""What shared files read; a list need not name it."""


def files(folder: Path) -> Mapping[str, Path]:
    """Name -> path of each file of the complete profile. A file of the profile replaces a shared
    one of the same name. Raises RejectedError for a list that names no shared file."""
    own = {path.name: path for path in sorted(folder.iterdir()) if path.is_file()}
    listing = own.pop(_LIST, None)
    if listing is None:
        return own
    try:
        names = inputs.read_text(listing, inputs.DEFINITION_BYTES).split()
    except (OSError, LimitError) as error:
        raise RejectedError(f"{listing}: {error}") from error
    names += [read for name in names for read in WITH.get(name, ())]
    shared = {path.name: path for path in (_shared(name, listing) for name in names)}
    return {**shared, **own}


def file(folder: Path, name: str) -> Path:
    """One of those files; its place in the profile's folder if there is none."""
    if folder.is_dir():
        return files(folder).get(name, folder / name)
    return folder / name


@contextmanager
def folder_of(folder: Path) -> Iterator[Path]:
    """The folder of a complete profile, for programs that read it while this is open: the profile's
    own, or one of links."""
    if not (folder / _LIST).is_file():
        yield folder.resolve()
        return
    with tempfile.TemporaryDirectory(prefix="eeio-profile-", dir=temporary_folder()) as made:
        complete = Path(made) / folder.name
        complete.mkdir()
        folders = {path.name: path for path in folder.iterdir() if path.is_dir()}
        folders.pop("__pycache__", None)
        for name, path in {**folders, **files(folder)}.items():
            (complete / name).symlink_to(path.resolve())
        yield complete


def _shared(name: str, listing: Path) -> Path:
    root = shipped("test-profiles") / "common"
    path = root / name
    if ".." in Path(name).parts or not path.is_relative_to(root) or not path.is_file():
        raise RejectedError(f"{listing}: no file {name!r:.100} in {root}")
    return path
