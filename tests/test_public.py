"""No public interface disappears (docs/reference/stability.md)."""

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def tool() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "ci/public"))


def test_public_interfaces_are_those_recorded(tool: dict[str, Any]) -> None:
    recorded = json.loads(tool["RECORD"].read_text())
    now = tool["public"]()
    assert all(now.values())
    gone = tool["missing"](recorded, now)
    assert not gone, "restore them, or keep their former names: " + "; ".join(gone)
    new = tool["missing"](now, recorded)
    assert not new, "record them with `.venv/bin/python ci/public`: " + "; ".join(new)


def test_a_removal_fails_and_an_addition_is_recorded(
    tool: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = tool["main"].__globals__
    monkeypatch.setitem(names, "RECORD", tmp_path / "record.json")
    monkeypatch.setattr("sys.argv", ["ci/public"])
    monkeypatch.setitem(names, "public", lambda: {"commands": ["eeio a", "eeio b"]})
    assert tool["main"]() == 0
    monkeypatch.setitem(names, "public", lambda: {"commands": ["eeio a", "eeio b", "eeio c"]})
    assert tool["main"]() == 0
    monkeypatch.setitem(names, "public", lambda: {"commands": ["eeio a", "eeio c"]})
    assert tool["main"]() == 1
    assert "eeio b" in (tmp_path / "record.json").read_text()
    monkeypatch.setattr("sys.argv", ["ci/public", "--breaking"])
    assert tool["main"]() == 0
    assert "eeio b" not in (tmp_path / "record.json").read_text()
