"""Maps: what is refused, and where the fault is said to be."""

import copy
from pathlib import Path
from typing import Any

import pytest
from tests.eeio.importing import made

from eeio.errors import RejectedError
from eeio.exchange.importing import mapping


def test_every_map_that_is_shipped_is_sound() -> None:
    assert set(mapping.shipped()) == {"ccpe2017"}
    for path in mapping.shipped().values():
        assert mapping.load(path).campaigns


def _faulty(change: str, value: Any) -> dict[str, Any]:
    body = copy.deepcopy(made.MAP)
    node: Any = body
    *way, last = change.split("/")
    for step in way:
        node = node[int(step)] if step.isdigit() else node[step]
    node[last] = value
    return body


@pytest.mark.parametrize(
    ("change", "value", "message"),
    [
        ("campaign", [], "'campaign' is not known"),
        ("campaigns", [], "campaigns"),
        ("campaigns/0/name", "a b", "campaigns/0: campaign name 'a b'"),
        ("campaigns/0/log", None, "campaigns/0/log: None is not an object"),
        ("campaigns/0/runs/tabel", "x", "campaigns/0/runs"),
        ("campaigns/0/power/0/domain", "wall", "campaigns/0/power/0/domain"),
        ("campaigns/0/power/0/watts", [], "campaigns/0/power/0: table needs watts"),
        ("campaigns/0/power/0/accuracy", -1, "campaigns/0/power/0/accuracy"),
        ("campaigns/0/log", {"file": "x", "name": "("}, "not a pattern"),
    ],
)
def test_a_fault_is_rejected_with_its_place(
    tmp_path: Path, change: str, value: Any, message: str
) -> None:
    with pytest.raises(RejectedError, match=message):
        mapping.load(made.write(tmp_path, _faulty(change, value)))


def test_two_campaigns_of_one_name(tmp_path: Path) -> None:
    body = copy.deepcopy(made.MAP)
    body["campaigns"] *= 2
    with pytest.raises(RejectedError, match="two campaigns are called board"):
        mapping.load(made.write(tmp_path, body))


def test_no_map(tmp_path: Path) -> None:
    with pytest.raises(RejectedError, match="--map"):
        mapping.load(tmp_path / "none.yaml")
    (tmp_path / "bad.yaml").write_text("a: [")
    with pytest.raises(RejectedError, match="not YAML"):
        mapping.load(tmp_path / "bad.yaml")


def test_names_of_files_become_factors() -> None:
    labels = mapping.Labels(made.MAP["words"], {"level": "filesystem"})
    pattern = r"(?P<operation>[a-z]+)-(?P<size>\d+)(-c(?P<cache>\d))?-(?P<repetition>\d+)"
    key = labels.key_of_name(pattern, "randread-32-7")
    assert key == (
        (("level", "filesystem"), ("operation", "read"), ("request_size", "32k"),
         ("spatiality", "random")),
        7,
    )  # fmt: skip
    with pytest.raises(ValueError, match="does not fit"):
        labels.key_of_name(pattern, "randread")
    with pytest.raises(ValueError, match="'64' is not in the map"):
        labels.key_of_name(pattern, "read-64-1")
    with pytest.raises(ValueError, match="repetition"):
        labels.key({"operation": "read"})
    with pytest.raises(ValueError, match="colour"):
        labels.key({"colour": "red", "repetition": "1"})
