"""Modules by the names that plug-ins and notebooks of earlier versions import."""

import importlib

import pytest

from eeio import errors, former_names
from eeio.former_names import now


@pytest.mark.parametrize("former", former_names._NOW)
def test_a_former_name_gives_the_module_of_today(former: str) -> None:
    module = importlib.import_module(former)
    today = importlib.import_module(str(now(former)))
    for name in vars(today):
        if not name.startswith("__"):
            assert getattr(module, name) is getattr(today, name)
    # The module of today keeps its own name.
    assert today.__spec__ is not None and today.__spec__.name == now(former)


def test_a_plug_in_with_former_imports_sees_the_types_of_today() -> None:
    code = (
        "from eeio_limits import LimitError, inputs, quantities as q\n"
        "from eeio_results.errors import EeioError, ToolOutputError\n"
        "from eeio_results.report.parts import Table\n"
        "from eeio_results.report import tables\n"
        "from eeio_results.studies import Study\n"
        "from eeio_results.tools.capture import Capture, PhaseResult, ToolResult\n"
        "import eeio_results.tools.description as description\n"
    )
    names: dict[str, object] = {}
    exec(compile(code, "plug-in", "exec"), names)
    assert names["LimitError"] is errors.LimitError
    assert names["EeioError"] is errors.EeioError
    assert names["Capture"] is importlib.import_module("eeio.record.tools.capture").Capture
    assert names["tables"] is importlib.import_module("eeio.report.campaign.tables")


def test_a_name_that_never_was_is_reported() -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("eeio_results.nothing")
    with pytest.raises(ImportError):
        exec("from eeio_results.report import nothing", {})
