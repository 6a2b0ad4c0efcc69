"""Paths: files that eeio ships, and files that it writes for the user (XDG base directories)."""

import errno
import os
import shlex
import stat
from pathlib import Path

from eeio.errors import RejectedError
from eeio.files.trust import TEMPORARY, make_folder, risk_of_folder, why_untrusted
from eeio.record.results_folder import results_root as results_root

_SHARED = Path("/tmp")  # noqa: S108 # checked before it is used


def _xdg(variable: str, default: str) -> Path:
    return Path(os.environ.get(variable) or Path.home() / default) / "eeio"


def new_campaign_folder(name: str) -> Path:
    """The folder of a new campaign; RejectedError for root if another user could change it."""
    root = results_root()
    reason = why_untrusted(root)
    if os.geteuid() == 0 and not root.exists():
        # In a sticky folder such as /tmp root may make a new one.
        risk = risk_of_folder(next(folder for folder in root.parents if folder.exists()))
        reason = None
        if risk is not None:
            reason = risk.reason
    if reason is not None:
        raise RejectedError(
            f"{root}: no results are written there as root: {reason}. Repair: sudo -H eeio ..., "
            "or set XDG_DATA_HOME to a folder of root"
        )
    return root / name


def check_campaign_to_change(folder: Path, done: str) -> None:
    """RejectedError for root if another user could change a stored campaign: it contains commands
    and names of files, and files are written there. `done` is what is not done then: `resumed`."""
    for path in (folder, folder / "campaign.json"):
        if (reason := why_untrusted(path)) is not None:
            raise RejectedError(
                f"{path}: not {done} as root: {reason}. Use eeio as the user who owns it: "
                "sudo -u USER eeio ..."
            )


def check_output_folder(folder: Path) -> None:
    """RejectedError for root if another user could put links into `folder`, or replace it."""
    if os.geteuid() == 0 and (risk := risk_of_folder(folder)) is not None:
        raise RejectedError(f"no output is written there as root: {risk.text}")


def make_output_folder(folder: Path) -> None:
    """Makes the folder of an output unless it exists. Raises RejectedError, OSError."""
    check_output_folder(folder)
    make_folder(folder)
    if not folder.is_dir():
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(folder))


def make_trace_folder(folder: Path) -> None:
    """Like make_output_folder, for a program that follows links in the folder. Rejects as root also
    a sticky folder, in which every user may put them."""
    make_output_folder(folder)
    if os.geteuid() == 0 and folder.stat().st_mode & stat.S_ISVTX:
        raise RejectedError(f"{folder}: other users may add links there; choose another with -o")


def campaigns() -> dict[str, Path]:
    """Name -> folder of every stored campaign, by name; not read yet."""
    return {folder.name: folder for folder in sorted(results_root().glob("*/"))}


def install_root() -> Path:
    """One folder an installed profile: the executable and what install.sh recorded."""
    return _xdg("XDG_DATA_HOME", ".local/share") / "installed"


def state_root() -> Path:
    """Settings to restore after a crash."""
    return _xdg("XDG_STATE_HOME", ".local/state")


def temporary_folder() -> Path:
    """Where temporary files are made. For root the first that no other user could replace: that of
    TMPDIR, /tmp, or one of eeio's state."""
    if os.geteuid() != 0:
        import tempfile

        return Path(tempfile.gettempdir())
    named = [Path(os.environ[name]) for name in TEMPORARY if os.environ.get(name)]
    for folder in (*named, _SHARED):
        if folder.is_dir() and risk_of_folder(folder) is None:
            return folder.absolute()
    folder = state_root() / "temporary"
    make_folder(folder, 0o700)
    return folder


def saved_figures_root() -> Path:
    """Figures of large campaigns, from one command to the next."""
    return _xdg("XDG_CACHE_HOME", ".cache") / "figures"


def shipped(kind: str) -> Path:
    """The folder `test-profiles` or `suites` of this checkout, or of the installed package."""
    package = Path(__file__).resolve().parent
    for candidate in (package.parents[1] / kind, package / "share" / kind):
        if candidate.is_dir():
            return candidate
    raise RejectedError(f"{kind}/ is missing next to the eeio package in {package}; reinstall eeio")


def search_path(kind: str) -> list[Path]:
    """Folders searched for profiles or suites: the user's own (EEIO_TEST_PROFILES,
    EEIO_SUITES, colon-separated), then ours."""
    variable = "EEIO_" + kind.upper().replace("-", "_")
    own = [Path(entry).absolute() for entry in os.environ.get(variable, "").split(":") if entry]
    return [*own, *shipped_paths(kind)]


def check_definition(folder: Path) -> None:
    """RejectedError for root if another user could change a profile or suite: its files name
    programs, and the profile's scripts are run. Those that are part of eeio are not checked."""
    shipped_folders = (*shipped_paths("test-profiles"), *shipped_paths("suites"))
    # By its name: behind a link of another user, or a .. after one, may be another folder the next
    # time.
    is_shipped = ".." not in folder.parts and folder.absolute().parent in shipped_folders
    if os.geteuid() != 0 or is_shipped:
        return
    for path in (folder, *sorted(folder.rglob("*"))):
        if (reason := why_untrusted(path)) is not None:
            raise RejectedError(
                f"{folder}: not used as root: {reason}. Repair: cp -r "
                f"{shlex.quote(str(folder))} into a folder of root, and name that one"
            )


def shipped_paths(kind: str) -> list[Path]:
    """Folders of profiles or suites that are part of eeio."""
    # PTS has no use for the profile that `eeio bench` runs commands with.
    bench = [Path(__file__).resolve().parent / "measure/bench"] if kind == "test-profiles" else []
    return [shipped(kind), *bench]
