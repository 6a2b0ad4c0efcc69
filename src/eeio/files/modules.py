"""Modules found by name: eeio's in a package, and others in folders of the user.

A variable such as EEIO_STUDIES names the folders, separated by colons. A file `NAME.py` or a folder
`NAME` with an `__init__.py` there is imported as a module of our package, so it is written like
eeio's: a module of EEIO_STUDIES is `eeio.studies.NAME`. It runs with the rights of eeio's
user (SECURITY.md). Names that begin with `_` are skipped.
"""

import importlib
import importlib.util
import os
import pkgutil
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

from eeio.errors import LimitError
from eeio.files.trust import why_untrusted


@dataclass(frozen=True)
class Modules:
    """Locations of modules of one kind. `kind` is its name in messages; `reserved` are names with
    another meaning. With a `part`, ours are the folders of the package that have a file of that
    name: `fio/run.py` is `fio`."""

    kind: str
    package: str
    variable: str
    reserved: tuple[str, ...] = ()
    part: str = ""

    def names(self) -> list[str]:
        """All of them, by name. Raises LimitError for a user folder that does not exist, and for a
        name that two modules have."""
        return sorted([*self.ours(), *self.own()])

    def load(self, name: str) -> ModuleType | None:
        """The module of that name; None if there is none. Raises LimitError, too, for one that
        cannot be imported, whatever it is that stops it."""
        where = ".".join(filter(None, (self.package, name, self.part)))
        module, own = where, None
        if name not in self.ours():
            own = self.own().get(name)
            if own is None:
                return None
            where = f"{own}, named by {self.variable}"
        try:
            if own is None:
                return importlib.import_module(module)
            return _read(module, own)
        # Whatever is wrong with it, the others are not.
        except (Exception, SystemExit) as error:
            raise LimitError(
                f"the {self.kind} {name!r} ({where}) cannot be imported: "
                f"{raised(error) if own is None else raised(error, own)}"
            ) from error

    def ours(self) -> list[str]:
        """Those of the package."""
        return list(_ours(tuple(importlib.import_module(self.package).__path__), self.part))

    def own(self) -> dict[str, Path]:
        """Name -> file of each module in the user's folders."""
        modules: dict[str, Path] = {}
        for entry in filter(None, os.environ.get(self.variable, "").split(":")):
            folder = Path(entry)
            try:
                next(folder.iterdir(), None)
            except OSError as error:
                raise LimitError(
                    f"{self.variable}: {folder}: {error.strerror}; make the folder, or take it out "
                    f"of {self.variable}"
                ) from error
            for module in pkgutil.iter_modules([str(folder)]):
                if not _is_public(module.name):
                    continue
                path = (
                    folder / module.name / "__init__.py"
                    if module.ispkg
                    else (folder / f"{module.name}.py")
                )
                self._check_free(module.name, path, modules)
                if (reason := why_untrusted(path)) is not None:
                    raise LimitError(f"{path}, named by {self.variable}: not run as root: {reason}")
                modules[module.name] = path.absolute()
        return modules

    def _check_free(self, name: str, path: Path, found: dict[str, Path]) -> None:
        is_ours = name in self.ours() or name in self.reserved
        holder = "eeio itself" if is_ours else found.get(name)
        if holder is not None:
            raise LimitError(
                f"{path}, named by {self.variable}: {holder} has a {self.kind} {name!r} already; "
                "give yours another name"
            )


def raised(error: BaseException, path: Path | None = None) -> str:
    """An error in one line, with the last line of the file that led to it."""
    line = None
    if isinstance(error, SyntaxError):
        line = error.lineno
    trace = error.__traceback__
    while trace is not None and not isinstance(error, SyntaxError):
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    where = ""
    if path is not None:
        where = f"{path}: " if line is None else f"{path}:{line}: "
    return f"{where}{type(error).__name__}: {str(error)[:300]}"


def _is_public(name: str) -> bool:
    return not name.startswith("_")


def _read(name: str, path: Path) -> ModuleType:
    """The module in a file, imported under that name; once, as `import` does."""
    known = sys.modules.get(name)
    if known is not None and known.__file__ == str(path):
        return known
    folder = [str(path.parent)] if path.name == "__init__.py" else None
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=folder)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


@cache
def _ours(paths: tuple[str, ...], part: str) -> tuple[str, ...]:
    """The modules of a package in these folders, with that part. They do not change while the
    program runs."""
    names = [module.name for module in pkgutil.iter_modules(paths) if _is_public(module.name)]
    if not part:
        return tuple(names)
    return tuple(
        name for name in names if any(Path(path, name, f"{part}.py").exists() for path in paths)
    )
