"""Types of fields against the published schemas, and each kind of field by itself."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import jsonschema
import pytest

from eeio.errors import LimitError
from eeio.files import typed
from eeio.files.typed import LATER
from eeio.record.design import Design, NotMeasured, StudyProtocol
from eeio.record.run import ContextValue, ProcessorSeries, Run
from eeio.record.tools.capture import Capture, Stamp, StoredCapture
from eeio.schemas import from_types
from eeio.schemas.published import FOLDER, published
from eeio.units import quantities as q
from eeio_power.session import OutputFolder
from tests.eeio_results import made

OTHERS: tuple[Any, ...] = (None, True, -1, 0, 1, 1.5, "", "x", [], [5], {}, {"x": 5})

Key = str | int


def schema(name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json.loads((FOLDER / name).read_text()))


def run_body() -> Any:
    run = replace(
        made.run(0, (made.phase(1e6, (made.energy(5.0),), ("reason",)),)),
        context=(ContextValue("memory", 1e9, "B/s"),),
        processor=ProcessorSeries("/proc/stat", (0.0, 1.0), (0.5, None), (None, 1e9), {"x": "y"}),
        notes=("note",),
    )
    return json.loads(json.dumps(run.to_json()))


def design_body() -> Any:
    design = made.design("c", 2)
    study = StudyProtocol(("ext4",), ("all",), {"iozone": 500}, 64, True, 0.05, 30)
    return json.loads(
        json.dumps(
            replace(
                design,
                protocol=replace(design.protocol, study=study),
                not_measured=(NotMeasured(made.EXPERIMENT, "no device"),),
                disks={"device": "sda"},
                remarks=("remark",),
                eeio_version="1.0.0",
            ).to_json()
        )
    )


def places(body: Any, at: tuple[Key, ...] = ()) -> Iterator[tuple[Key, ...]]:
    """The way to every value of a JSON body."""
    items = body.items() if isinstance(body, dict) else enumerate(body)
    for key, value in items:
        yield (*at, key)
        if isinstance(value, dict | list):
            yield from places(value, (*at, key))


def changed(body: Any, at: tuple[Key, ...], value: Any = None, gone: bool = False) -> Any:
    copy = json.loads(json.dumps(body))
    part = copy
    for key in at[:-1]:
        part = part[key]
    if gone:
        del part[at[-1]]
    else:
        part[at[-1]] = value
    return copy


def damaged(body: Any) -> Iterator[Any]:
    """The body with each value of another kind, or gone, and with a key that nobody knows."""
    for at in places(body):
        for other in OTHERS:
            yield changed(body, at, other)
        yield changed(body, at, gone=True)
    yield {**body, "surprise": 1}


def taken(read: Any, body: Any) -> bool:
    try:
        read(body)
    except LimitError:
        return False
    return True


@pytest.mark.parametrize("name", published())
def test_a_published_schema_is_that_of_the_types(name: str) -> None:
    made = from_types.text(published()[name])
    assert (FOLDER / name).read_text() == made, "run python -m eeio.schemas"
    jsonschema.Draft202012Validator.check_schema(json.loads(made))


CAPTURE = {
    "factors": {"a": "b"}, "exit_code": 0, "started_monotonic_s": 1.0, "ended_monotonic_s": 2.0,
    "started_utc_s": 3.0, "stamps": [["stdout", 5, 1.5]], "left_out": {"stdout": 1},
    "left_running": 0,
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "read", "body"),
    [
        ("capture.schema.json", partial(typed.read, StoredCapture), CAPTURE),
        ("run.schema.json", Run.from_json, run_body()),
        ("campaign.schema.json", Design.from_json, design_body()),
    ],
)
def test_what_the_types_take_the_published_schema_takes(name: str, read: Any, body: Any) -> None:
    form = schema(name)
    assert form.is_valid(body) and taken(read, body)
    rejected = 0
    for other in damaged(body):
        # The version is looked at before anything else is.
        version = other.get("schema_version")
        if "schema_version" in body and (version != 2 or type(version) is not int):
            continue
        if taken(read, other):
            assert form.is_valid(other), other
        else:
            rejected += 1
    assert rejected > 140


def test_a_capture_follows_its_schema(tmp_path: Path) -> None:
    capture = Capture(tmp_path, {"a": "b"}, 0, 1.0, 2.0, 3.0, (Stamp("stdout", 5, 1.5),), {"x": 1})
    capture.save()
    body = json.loads((tmp_path / "capture.json").read_text())
    assert schema("capture.schema.json").is_valid(body)
    assert Capture.load(tmp_path) == capture


def test_a_capture_of_the_power_session_follows_it_too(tmp_path: Path) -> None:
    output = OutputFolder(tmp_path / "trial")
    output.begin()
    (tmp_path / "trial/stdout.txt").write_text("words")
    kept = output.keep("kept", {"a": "b"}, 1.0, 2.0, 3.0)
    body = json.loads((kept / "capture.json").read_text())
    assert body["stamps"]
    assert schema("capture.schema.json").is_valid(body)
    assert Capture.load(kept).factors == {"a": "b"}


def test_a_campaign_and_a_run_come_back_as_they_were() -> None:
    assert Design.from_json(design_body()).to_json() == design_body()
    assert json.loads(json.dumps(Run.from_json(run_body()).to_json())) == run_body()


@dataclass(frozen=True)
class Part:
    share: Annotated[float, q.SHARE]
    words: tuple[str, ...] = field(default=("as before",), metadata=LATER)

    def impossible(self) -> str | None:
        return "a half is not allowed" if self.share == 0.5 else None


@dataclass(frozen=True)
class Complete:
    count: Annotated[int, q.COUNT]
    kind: Annotated[str, ("a", "b")] | None
    parts: tuple[Part, ...]
    series: tuple[Annotated[float, q.SHARE] | None, ...]
    place: int | str
    pair: tuple[str, int]


GOOD = {
    "count": 3, "kind": "a", "parts": [{"share": 0.25, "words": ["x"]}], "series": [0, 0.5, None],
    "place": "id", "pair": ["x", 1],
}  # fmt: skip


def test_a_dataclass_is_read_with_what_is_in_it() -> None:
    complete = typed.read(Complete, GOOD)
    assert complete == Complete(3, "a", (Part(0.25, ("x",)),), (0, 0.5, None), "id", ("x", 1))
    typed.check(complete)
    assert typed.read(Part, {"share": 1}).words == ("as before",)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("count", 3.0, "count: 3.0 is not an integer"),
        ("count", -1, "count: count: -1 is not an integer from 0 to"),
        ("count", True, "count: count: True is not a number"),
        ("kind", "c", "kind: 'c' is not one of a, b"),
        ("parts", {}, "parts: a dict is not a list"),
        ("parts", [{"share": 2}], "parts/0/share: share: 2 is not a number from 0 to 1"),
        ("parts", [{"share": 0.5}], "parts/0: a half is not allowed"),
        ("parts", [{"share": 0}, {}], "parts/1: share is missing"),
        ("parts", [{"share": 0, "part": 1}], "parts/0: 'part' is not known"),
        ("series", [0.5, 2], "series/1: share: 2 is not a number from 0 to 1"),
        ("series", [0.5, True], "series/1: share: True is not a number"),
        ("place", 1.5, "place: 1.5 is not an integer, and 1.5 is not text"),
        ("pair", ["x"], "pair: a list is not a list of 2"),
    ],
)
def test_what_cannot_be_is_named(key: str, value: Any, message: str) -> None:
    with pytest.raises(LimitError) as error:
        typed.read(Complete, {**GOOD, key: value})
    assert str(error.value).startswith(message)


def test_what_is_made_here_is_checked_alike() -> None:
    complete = typed.read(Complete, GOOD)
    for wrong, message in (
        (replace(complete, parts=(Part(3.0),)), "parts/0/share: "),
        (replace(complete, series=(float("nan"),)), "series/0: share: nan"),
        (replace(complete, parts=[Part(0.1)]), "parts: a list is not a list"),
        (replace(complete, count=float("inf")), "count: inf is not an integer"),
    ):
        with pytest.raises(LimitError, match=message):
            typed.check(wrong)
