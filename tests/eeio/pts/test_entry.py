"""Our own words in a PTS result file: one form, whoever wrote them."""

import json
from pathlib import Path
from typing import Any, get_args, get_type_hints

import jsonschema
import pytest

from eeio.cli import main
from eeio.errors import SchemaError
from eeio.pts import composite, entry, entry_form
from eeio.pts.composite import ResultEntry
from eeio.pts.entry import Idle, QuantityEntry, Values, own_of
from eeio.record import run
from eeio.schemas.published import published

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests/data/pts/10.8.6"


def own(path: Path) -> list[dict[str, Any]]:
    results = composite.read(path).results
    return [dict(e.own) for result in results for e in result.entries if e.own]


@pytest.mark.parametrize("name", ["native.xml", "random.xml", "metadata.xml"])
def test_what_the_module_wrote_under_pts_has_the_published_form(name: str) -> None:
    bodies = own(DATA / name)
    assert bodies
    for body in bodies:
        entry.check(body)
    kinds = {type(own_of(ResultEntry("x", "1", json={"eeio": body}))) for body in bodies}
    assert kinds == {Values, QuantityEntry, Idle}


@pytest.mark.parametrize("name", ["random.xml", "metadata.xml"])
def test_what_an_export_writes_has_it_too_and_reads_back(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    assert main(["import", str(DATA / name), "--name", "x"]) == 0
    assert main(["export", "x", "--pts", "-o", str(tmp_path / "out")]) == 0
    bodies = own(tmp_path / "out" / "composite.xml")
    assert {"told", "trials", "phase"} <= {key for body in bodies for key in body}
    for body in bodies:
        read = own_of(ResultEntry("x", "1", json={"eeio": body}))
        assert read is not None
        assert json.loads(json.dumps(read.to_json())) == body


@pytest.mark.parametrize("name", ["native.xml", "random.xml", "metadata.xml"])
def test_what_the_module_wrote_follows_the_published_schema(name: str) -> None:
    form = jsonschema.Draft202012Validator(published()["entry.schema.json"])
    assert all(form.is_valid(body) for body in own(DATA / name))


def test_a_phase_is_that_of_the_run_record() -> None:
    ours, theirs = get_type_hints(entry_form.Phase), get_type_hints(run.Phase)
    ours["validity"] = ours.pop("invalid")
    ours["metrics"] = get_args(ours["metrics"])[0]
    assert ours == theirs


def test_a_phase_without_further_figures_comes_back_from_php() -> None:
    """PHP knows no empty object: it makes an empty array of it."""
    (reported,) = [body["told"] for body in own(DATA / "metadata.xml") if "told" in body]
    reported[0]["phases"][0]["metrics"] = []
    values = own_of(
        ResultEntry(
            "x", "1", json={"eeio": {"trial-of-value": [0], "trials": 1, "told": reported[:1]}}
        )
    )
    assert isinstance(values, Values)
    first = values.reported_of(0)
    assert first is not None and first["phases"][0]["metrics"] == {}


def test_plain_pts_reports_nothing() -> None:
    assert own_of(ResultEntry("x", "1")) is None
    assert own_of(ResultEntry("x", "1", json={"eeio": []})) is None


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"trials": 2}, "eeio section is damaged"),
        ({"trial-of-value": [0], "trials": 0}, "trials"),
        ({"trial-of-value": [-1], "trials": 1}, "trial-of-value/0"),
        ({"quantity": "power_w", "meter": "m", "domain": "moon", "kind": "measured"}, "domain"),
        ({"idle": {}}, "idle"),
        ({"idle": {"readings": [{"domain": "system"}]}}, "idle/readings/0"),
        ({"unknown": 1}, "eeio section is damaged"),
    ],
)  # fmt: skip
def test_what_has_another_form_is_rejected(body: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        own_of(ResultEntry("x", "1", json={"eeio": body}))
