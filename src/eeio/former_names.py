"""Former names of modules, which plug-ins and notebooks import: `eeio_limits` and `eeio_results`.

A former module is the same object as the module of today, so that types stay equal.
"""

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_NOW = {
    "eeio_limits.contradictions": "eeio.record.contradictions",
    "eeio_limits.inputs": "eeio.files.inputs",
    "eeio_limits.modules": "eeio.files.modules",
    "eeio_limits.mounts": "eeio.files.mounts",
    "eeio_limits.names": "eeio.units.names",
    "eeio_limits.number_text": "eeio.units.number_text",
    "eeio_limits.quantities": "eeio.units.quantities",
    "eeio_limits.reading": "eeio.record.energy_reading",
    "eeio_limits.reasons": "eeio.record.reasons",
    "eeio_limits.text": "eeio.units.external_text",
    "eeio_limits.trust": "eeio.files.trust",
    "eeio_results.campaign": "eeio.record.design",
    "eeio_results.characterization": "eeio.analysis.characterization",
    "eeio_results.comparison": "eeio.comparison",
    "eeio_results.errors": "eeio.errors",
    "eeio_results.guideline": "eeio.guideline",
    "eeio_results.guideline.model": "eeio.guideline.replacement_rule",
    "eeio_results.io_label": "eeio.analysis.io_label",
    "eeio_results.metrics": "eeio.analysis.metrics",
    "eeio_results.observation": "eeio.analysis.observation",
    "eeio_results.record": "eeio.record.run",
    "eeio_results.report": "eeio.report",
    "eeio_results.report.columns": "eeio.report.campaign.columns",
    "eeio_results.report.contents": "eeio.report.campaign.contents",
    "eeio_results.report.drawing": "eeio.report.figures.drawing",
    "eeio_results.report.lines": "eeio.report.figures.panels_of_lines",
    "eeio_results.report.model": "eeio.report.campaign.characterized",
    "eeio_results.report.parts": "eeio.report.table_and_plot",
    "eeio_results.report.plots": "eeio.report.figures.plots",
    "eeio_results.report.tables": "eeio.report.campaign.tables",
    "eeio_results.rows": "eeio.analysis.rows",
    "eeio_results.selection": "eeio.analysis.selection",
    "eeio_results.statistics": "eeio.statistics",
    "eeio_results.store": "eeio.record.store",
    "eeio_results.studies": "eeio.studies",
    "eeio_results.summary": "eeio.analysis.summary",
    "eeio_results.tool_label": "eeio.record.tool_label",
    "eeio_results.tools": "eeio.record.tools",
    "eeio_results.traces": "eeio.traces",
    "eeio_results.units": "eeio.units.sizes",
    "eeio_results.windows": "eeio.record.windows",
}


def now(former: str) -> str | None:
    """The name of today: that of the module itself, or below that of its package."""
    name, below = former, ""
    while name:
        if name in _NOW:
            return _NOW[name] + below
        name, _, last = name.rpartition(".")
        below = f".{last}{below}"
    return None


def install() -> None:
    """Finds the former names from here on, after all others."""
    if not any(isinstance(finder, _FormerNames) for finder in sys.meta_path):
        sys.meta_path.append(_FormerNames())


class _FormerNames(MetaPathFinder, Loader):
    def __init__(self) -> None:
        self._specs: dict[str, ModuleSpec | None] = {}
        """Of the modules of today, by their former names."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return None if now(fullname) is None else ModuleSpec(fullname, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        name = now(spec.name)
        assert name is not None
        module = importlib.import_module(name)
        if hasattr(module, "__path__"):
            return _FormerPackage(spec.name, module)
        self._specs[spec.name] = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The import system has replaced it by that of the former name.
        if not isinstance(module, _FormerPackage) and module.__spec__ is not None:
            module.__spec__ = self._specs.pop(module.__spec__.name)


class _FormerPackage(ModuleType):
    """Its modules may be in several packages of today."""

    def __init__(self, former: str, package: ModuleType) -> None:
        super().__init__(former, package.__doc__)
        self.__path__: list[str] = []
        self._package = package

    def __getattr__(self, name: str) -> object:
        if hasattr(self._package, name):
            return getattr(self._package, name)
        try:
            return importlib.import_module(f"{self.__name__}.{name}")
        except ModuleNotFoundError as error:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}") from error
