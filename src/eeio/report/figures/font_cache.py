"""Where matplotlib keeps its list of fonts."""

import atexit
import contextlib
import importlib
import os
import shutil
import tempfile
from pathlib import Path

from eeio.files.trust import make_folder, risk_of_folder
from eeio.paths import temporary_folder

_VARIABLE = "MPLCONFIGDIR"
_HOMES = (_VARIABLE, "HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")
_FOLDERS = (("XDG_CACHE_HOME", ".cache"), ("XDG_CONFIG_HOME", ".config"))


def keep_from_others() -> None:
    """Root writes no list of fonts, and reads no settings, where another user could put a link: a
    temporary folder is used instead. To be called before matplotlib is imported."""
    if os.geteuid() != 0:
        return
    if all(risk_of_folder(home) is None for home in _homes()) and all(map(_is_trusted, _used())):
        return
    own = tempfile.mkdtemp(prefix="eeio-fonts-", dir=temporary_folder())
    atexit.register(shutil.rmtree, own, ignore_errors=True)
    before = {name: os.environ.get(name) for name in _HOMES}
    try:
        # The list is made when this is imported, by `fc-list`, which has settings of its own.
        os.environ |= dict.fromkeys(_HOMES, own)
        importlib.import_module("matplotlib.font_manager")
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name)
            else:
                os.environ[name] = value
        os.environ[_VARIABLE] = own


def _homes() -> list[Path]:
    """The folders below which `fc-list` has its settings and fonts."""
    named = [Path(os.environ[name]) for name in _HOMES if os.environ.get(name)]
    return [Path.home(), *named]


def _is_trusted(folder: Path) -> bool:
    """Makes it where it does not exist, so that nobody else can."""
    if risk_of_folder(folder) is not None:
        return False
    with contextlib.suppress(OSError):
        make_folder(folder, 0o700)
    return risk_of_folder(folder, must_exist=True) is None


def _used() -> list[Path]:
    """The folders that matplotlib makes, or uses if they exist."""
    if os.environ.get(_VARIABLE):
        return [Path(os.environ[_VARIABLE])]
    folders = []
    for variable, usual in _FOLDERS:
        parent = Path(os.environ.get(variable) or Path.home() / usual)
        folders.append(parent / "matplotlib")
    return folders
