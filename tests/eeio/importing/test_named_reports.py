"""Reports within a file, named by a map as docs/how-to/import-results.md has it."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.plugin import PARSERS

from eeio.errors import RejectedError
from eeio.exchange.importing import mapping, runs
from eeio.record.run import Run

GUIDE = Path(__file__).parents[3] / "docs/how-to/import-results.md"
REPORT = (PARSERS / "fio/outputs/3.33/other/normal.txt").read_text()


def guide_s_map() -> dict[str, Any]:
    text = GUIDE.read_text().partition("### Name reports")[2]
    example = re.search(r"```yaml\n(.*?)```", text, re.S)
    assert example is not None
    body: dict[str, Any] = yaml.safe_load(example[1])
    return body


def imported(folder: Path, body: dict[str, Any]) -> tuple[list[Run], list[str]]:
    (folder / "map.yaml").write_text(yaml.safe_dump(body))
    (campaign,) = runs.read(mapping.load(folder / "map.yaml"), folder).campaigns
    return list(campaign.runs), list(campaign.remarks)


def drives(made: list[Run]) -> list[tuple[str, int]]:
    return [(dict(run.experiment.arguments)["drive"], run.repetition) for run in made]


def test_reports_below_two_words_are_two_experiments(tmp_path: Path) -> None:
    text = f"SSD, first\n{REPORT}\nHDD\n{REPORT}\nSSD again\n{REPORT}"
    (tmp_path / "notes.txt").write_text(text)
    made, remarks = imported(tmp_path, guide_s_map())
    assert sorted(drives(made)) == [("hdd", 1), ("ssd", 1), ("ssd", 2)]
    assert all(run.phases[0].bandwidth_bytes_per_s for run in made)
    assert not any("left out" in remark for remark in remarks)


def test_reports_by_number_and_one_without_a_name(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text(REPORT * 3)
    body = guide_s_map()
    body["campaigns"][0]["runs"]["reports"] = [
        {"number": 0, "factors": {"drive": "ssd"}}, {"number": 2, "factors": {"drive": "hdd"}},
    ]  # fmt: skip
    made, remarks = imported(tmp_path, body)
    assert sorted(drives(made)) == [("hdd", 1), ("ssd", 1)]
    assert "notes.txt: report 1: left out: the map does not name it" in remarks


@pytest.mark.parametrize("name", [{}, {"number": 0, "below": "SSD"}])
def test_a_name_needs_a_number_or_a_text(tmp_path: Path, name: dict[str, Any]) -> None:
    body = guide_s_map()
    body["campaigns"][0]["runs"]["reports"] = [{"factors": {"drive": "ssd"}, **name}]
    (tmp_path / "map.yaml").write_text(yaml.safe_dump(body))
    with pytest.raises(RejectedError, match="give one of number, below"):
        mapping.load(tmp_path / "map.yaml")
