"""A short PATH of the same programs.

As root, each script of a profile checks every folder of PATH but the system's, with several
programs for each of them. With the PATH of a developer that takes longer than the scripts.
"""

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

_SYSTEM = ("/usr/sbin", "/usr/bin", "/sbin", "/bin")
_before: list[tuple[str, str]] = []


def shorten() -> None:
    """Puts one folder of links in the place of the other folders of PATH, as root. Each name leads
    to the program that it led to before. Processes that this one starts inherit the short PATH."""
    from eeio.files.trust import why_untrusted

    before = os.environ.get("PATH", os.defpath)
    folders = list(dict.fromkeys(before.split(os.pathsep)))
    others = [folder for folder in folders if folder not in _SYSTEM]
    if os.geteuid() != 0 or len(others) < 2 or not all(map(os.path.isabs, others)):
        return
    # eeio searches those that another user can write to in no case, and says so.
    if any(Path(folder).is_dir() and why_untrusted(Path(folder)) for folder in others):
        return
    links = Path(tempfile.mkdtemp(prefix="eeio-programs-"))
    links.chmod(0o755)
    if why_untrusted(links) is not None:
        links.rmdir()
        return
    known: set[str] = set()
    for folder in folders:
        names = set[str]()
        with suppress(OSError):
            names = {entry.name for entry in os.scandir(folder) if _is_program(entry.path)} - known
        for name in names if folder in others else ():
            (links / name).symlink_to(Path(folder) / name)
        known |= names
    system = [folder for folder in folders if folder in _SYSTEM]
    os.environ["PATH"] = os.pathsep.join([str(links), *system])
    _before.append((before, str(links)))


def restore() -> None:
    """In the process that has shortened it."""
    while _before:
        os.environ["PATH"], links = _before.pop()
        shutil.rmtree(links, ignore_errors=True)


def _is_program(path: str) -> bool:
    return Path(path).is_file() and os.access(path, os.X_OK)
