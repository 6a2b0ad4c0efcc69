"""Labels tell all experiments of a campaign apart."""

from collections import Counter
from pathlib import Path

import pytest

from eeio.analysis.characterization import characterize
from eeio.comparison.cells import cells_of
from eeio.comparison.changes import PLACE
from eeio.measure.profiles import suite as suites
from eeio.record import store
from eeio.record.run import CacheLayers, Experiment
from eeio.record.tool_label import details

ROOT = Path(__file__).parents[2]
CAMPAIGNS = sorted((ROOT / "tests/data/campaigns").glob("*/campaign.json"))


@pytest.mark.parametrize("path", CAMPAIGNS, ids=lambda path: path.parent.name)
def test_no_two_rows_or_cells_of_a_campaign_have_one_label(path: Path) -> None:
    campaign = store.load(path.parent)
    labels = Counter(cell.label(PLACE, tool=True) for cell in cells_of(campaign))
    assert set(labels.values()) == {1}
    rows = Counter(
        (row.level, row.operation_label, row.spatiality, row.request_size_bytes, row.cache,
         row.flush, row.tool_label, row.experiment.target,
         dict(row.experiment.arguments).get("load"))
        for row in characterize(campaign)
        if row.experiment is not None
    )  # fmt: skip
    assert set(rows.values()) == {1}


@pytest.mark.parametrize("suite", sorted(path.name for path in (ROOT / "suites").glob("eeio*")))
def test_no_two_experiments_of_a_suite_have_one_label(suite: str) -> None:
    entries = suites.load(ROOT / "suites" / suite).entries
    every = {
        suites.experiment_of(
            entry.profile.split("-")[1], dict(entry.factors), "file", entry.factors.get("disk")
        )
        for entry in entries
    }
    details_of = details([(experiment, None) for experiment in every])
    found = Counter(
        (one.level, one.tool, one.operation, one.spatiality, one.request_size_bytes, one.cache,
         one.flush, dict(one.arguments).get("load"), details_of[one.id])
        for one in every
    )  # fmt: skip
    assert set(found.values()) == {1}


def experiment(**arguments: str) -> Experiment:
    return Experiment(
        "filesystem", "fio", "read", "random", 4096, CacheLayers("off", None),
        arguments=tuple(sorted(arguments.items())),
    )  # fmt: skip


def test_the_arguments_of_a_sweep_are_in_the_label() -> None:
    sweep = [
        experiment(engine=engine, file_size=size)
        for engine in ("psync", "libaio")
        for size in ("64m", "1g")
    ]
    found = details([(one, None) for one in sweep])
    assert list(found.values()) == [
        ("engine=psync", "file_size=64m"), ("engine=psync", "file_size=1g"),
        ("engine=libaio", "file_size=64m"), ("engine=libaio", "file_size=1g"),
    ]  # fmt: skip
    # Without a sweep the size of the files is that of all.
    assert details([(sweep[0], None), (sweep[2], None)]) == {
        sweep[0].id: ("engine=psync",), sweep[2].id: ("engine=libaio",),
    }  # fmt: skip


def test_the_work_that_a_pilot_chose_is_not_in_the_label() -> None:
    two = [experiment(loops=loops, mode=mode) for loops, mode in (("10", "a"), ("20", "b"))]
    assert list(details([(one, "loops") for one in two]).values()) == [("mode=a",), ("mode=b",)]


def test_settings_of_processors_are_not_details() -> None:
    two = [experiment(frequency_hz=hz) for hz in ("1000000000", "2000000000")]
    assert set(details([(one, None) for one in two]).values()) == {()}
