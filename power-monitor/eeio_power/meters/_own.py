"""Meters of a user's own: modules in the folders that EEIO_METERS names, found by their file names.

They offer what the modules in this folder offer. What is imported runs with the rights of whoever
runs eeio (SECURITY.md).
"""

import importlib.util
import os
import sys
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from eeio_limits.trust import why_untrusted
from eeio_power.errors import PowerError
from eeio_power.reading import DOMAINS, KINDS

VARIABLE = "EEIO_METERS"
_OFFERS = ("OPTIONS", "open_meter", "find")
_NO_METERS = ("auto", "none")


def own_meters(
    ours: Collection[str], environment: Mapping[str, str] = os.environ
) -> dict[str, Path]:
    """Name -> file of every meter in the folders of EEIO_METERS, which colons separate.

    Files that begin with `_` are no meters. Raises PowerError for a folder that is not there, and
    for a name that is taken, by one of `ours` or in another of the folders.
    """
    found: dict[str, Path] = {}
    for folder in filter(None, environment.get(VARIABLE, "").split(":")):
        try:
            files = sorted(path for path in Path(folder).iterdir() if path.suffix == ".py")
        except OSError as error:
            raise PowerError(
                f"{VARIABLE}: {folder}: {error.strerror}; make the folder, or take it out of "
                f"{VARIABLE}"
            ) from error
        for path in files:
            name = path.stem
            if name.startswith("_"):
                continue
            if name in ours or name in _NO_METERS or name in found:
                whose = f"by {found[name]}" if name in found else "by eeio itself"
                raise PowerError(
                    f"{VARIABLE}: {path}: the name '{name}' is taken {whose}; give the file "
                    "another name"
                )
            if not name.isidentifier():
                raise PowerError(
                    f"{VARIABLE}: {path}: '{name}' is no name of a meter: letters, digits and _ "
                    "alone; a file that is no meter begins with _"
                )
            if (why := why_untrusted(path)) is not None:
                raise PowerError(f"{VARIABLE}: {path}: not run as root: {why}")
            found[name] = path
    return found


def load(name: str, path: Path) -> Any:
    """The module of a meter of the user's own; what it raises is told as a PowerError."""
    path = path.resolve()
    key = f"eeio_own_meters.{name}"
    module = sys.modules.get(key)
    if module is None or module.__file__ != str(path):
        module = _imported(name, key, path)
    for offer in _OFFERS:
        if not hasattr(module, offer):
            raise PowerError(
                f"meter '{name}': {path} offers no {offer}; docs/adding-a-meter.md says what a "
                "meter offers"
            )
    return _Guarded(name, path, module)


def _imported(name: str, key: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(key, path)
    if spec is None or spec.loader is None:
        raise PowerError(f"meter '{name}': {path} is no Python module")
    module = importlib.util.module_from_spec(spec)
    # Where dataclasses look for the types of their fields.
    sys.modules[key] = module
    try:
        spec.loader.exec_module(module)
    # Whatever is wrong with it, the other meters are not.
    except (Exception, SystemExit) as error:
        del sys.modules[key]
        raise PowerError(f"meter '{name}' cannot be loaded: {_words(path, error)}") from error
    return module


class _Guarded:
    """A module of others: whatever its functions raise is told as a PowerError."""

    def __init__(self, name: str, path: Path, module: Any) -> None:
        self._name = name
        self._path = path
        self._module = module
        self.OPTIONS = module.OPTIONS
        self.ARGUMENT = getattr(module, "ARGUMENT", None)

    def open_meter(self, spec: str, options: Mapping[str, str], root: Path) -> Any:
        meter = self._called("open_meter", lambda: self._module.open_meter(spec, options, root))
        lacks = [
            word
            for word in ("spec", "name", "kind", "native_period_s", "channels", "read", "close")
            if not hasattr(meter, word)
        ]
        if lacks:
            raise PowerError(
                f"meter '{self._name}': {self._path}: what open_meter gives has no "
                f"{', '.join(lacks)}; docs/adding-a-meter.md says what a meter is"
            )
        domains = {channel.domain for channel in meter.channels}
        if meter.kind not in KINDS or not domains <= set(DOMAINS) or not domains:
            raise PowerError(
                f"meter '{self._name}': {self._path}: its kind is one of {', '.join(KINDS)}, and "
                f"each of its channels has a domain of {', '.join(DOMAINS)}"
            )
        return meter

    def find(self, root: Path) -> Any:
        from eeio_power.meters import Detected

        finding = self._called("find", lambda: self._module.find(root))
        if not isinstance(finding, Detected):
            raise PowerError(f"meter '{self._name}': {self._path}: find gives no Detected")
        return finding

    def _called(self, what: str, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except PowerError:
            raise
        except Exception as error:
            words = _words(self._path, error)
            raise PowerError(f"meter '{self._name}': {what} failed: {words}") from error


def _words(path: Path, error: BaseException) -> str:
    line = error.lineno if isinstance(error, SyntaxError) else _last_line(path, error)
    where = f"{path}:{line}" if line else str(path)
    return f"{where}: {type(error).__name__}: {str(error)[:300]}"


def _last_line(path: Path, error: BaseException) -> int | None:
    """The last line of the file that was on the way to the error."""
    found = None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            found = trace.tb_lineno
        trace = trace.tb_next
    return found
