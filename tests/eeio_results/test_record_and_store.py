"""Records survive the way to disk and back, and damaged ones are named."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eeio.errors import EeioError, SchemaError
from eeio.record import store
from eeio.record.run import CacheLayers, EnergyReading, Experiment, IdleMedian, Machine, Run
from eeio.units.sizes import format_size, parse_size
from tests.eeio_results.made import EXPERIMENT, MACHINE, design, energy, phase, run


def test_a_run_survives_the_way_through_json() -> None:
    complete = run(0, phases=(phase(1e6, energy=(energy(2.0),)),))
    assert Run.from_json(json.loads(json.dumps(complete.to_json()))) == complete


def test_a_machine_survives_the_way_through_json() -> None:
    assert Machine.from_json(json.loads(json.dumps(MACHINE.to_json()))) == MACHINE


def test_a_drive_is_named_by_what_is_known() -> None:
    unnamed = replace(MACHINE, device=None, device_model=None, drive_id=None, drive_label=None)
    assert unnamed.drive_name == "unknown"
    assert replace(unnamed, drive_id="wwn-0x5000c500aabbcc").drive_name == "drive aabbcc"
    assert (
        replace(unnamed, drive_id="wwn-0x5000c500aabbcc", device="sda").drive_name == "sda aabbcc"
    )
    assert replace(unnamed, drive_id="disk", device_model="SSD").drive_name == "SSD disk"
    assert replace(unnamed, drive_id="disk", drive_label="red").drive_name == "red"


def test_the_id_depends_on_the_factors_alone() -> None:
    assert EXPERIMENT.id == Experiment.from_json(EXPERIMENT.to_json()).id
    others = [
        replace(EXPERIMENT, operation="write"),
        replace(EXPERIMENT, request_size_bytes=8192),
        replace(EXPERIMENT, cache=CacheLayers("on", None)),
        replace(EXPERIMENT, target="file on xfs"),
        replace(EXPERIMENT, arguments=(("file_size", "2g"),)),
    ]
    assert len({EXPERIMENT.id, *(other.id for other in others)}) == len(others) + 1


def _store(tmp_path: Path) -> store.Store:
    made = store.Store(tmp_path / "c")
    made.create(design("c", 3))
    made.write_machine(MACHINE)
    made.write_idle((energy(1.0),), None, (IdleMedian("system", "meter", 0.9),))
    return made


def test_what_is_stored_is_loaded(tmp_path: Path) -> None:
    made = _store(tmp_path)
    runs = (run(1), run(0))
    for item in runs:
        made.append(item)
    campaign = store.load(made.folder)
    assert campaign.runs == runs
    assert campaign.machine == MACHINE
    assert campaign.idle == (energy(1.0),)
    assert campaign.idle_median_w(campaign.idle[0]) == 0.9
    assert campaign.idle_median_w(energy(1.0, domain="package")) is None
    assert made.done_indices() == {0, 1}


def test_a_cut_line_is_passed_over_and_then_dropped(tmp_path: Path) -> None:
    made = _store(tmp_path)
    made.append(run(0))
    complete = made.runs_path.read_bytes()
    made.append(run(1))
    made.runs_path.write_bytes(made.runs_path.read_bytes()[:-5])
    assert [r.order_index for r in store.load(made.folder).runs] == [0]
    made.drop_partial_line()
    assert made.runs_path.read_bytes() == complete


def _damage(text: str, key: str, value: Any) -> str:
    return json.dumps({**json.loads(text), key: value}) + "\n"


@pytest.mark.parametrize(
    ("key", "value", "named"),
    [
        ("schema_version", 99, "schema version 99"),
        ("schema_version", None, "no schema_version"),
        ("repetition", 0, "its repetition differs from"),
        ("phases", "none", "not a run record"),
        ("surprise", 1, "not a run record"),
    ],
)
def test_damaged_records_are_named(tmp_path: Path, key: str, value: Any, named: str) -> None:
    made = _store(tmp_path)
    made.append(run(0))
    made.runs_path.write_text(_damage(made.runs_path.read_text(), key, value))
    with pytest.raises(SchemaError, match=named) as error:
        store.load(made.folder)
    assert f"{made.runs_path}:1" in str(error.value)


def test_a_doubled_run_is_named(tmp_path: Path) -> None:
    made = _store(tmp_path)
    made.append(run(0))
    made.runs_path.write_text(made.runs_path.read_text() * 2)
    with pytest.raises(SchemaError, match="run 0 is repeated"):
        store.load(made.folder)


def test_a_campaign_that_ended_before_its_first_run(tmp_path: Path) -> None:
    made = store.Store(tmp_path / "c")
    made.create(design("c", 3))
    with pytest.raises(EeioError, match="eeio resume c"):
        store.load(made.folder)


def test_a_folder_that_is_no_campaign(tmp_path: Path) -> None:
    with pytest.raises(EeioError, match="is this the folder of a campaign"):
        store.load(tmp_path)


def test_a_name_is_taken_once(tmp_path: Path) -> None:
    made = _store(tmp_path)
    with pytest.raises(EeioError, match="eeio resume c"):
        made.create(design("c", 3))


@given(st.integers(min_value=1, max_value=1 << 50))
def test_sizes_are_written_exactly(size: int) -> None:
    assert parse_size(format_size(size)) == size


@pytest.mark.parametrize("text", ["", "k", "4x", "-1k", "1.5m", "4 k b", "0x10"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(EeioError, match="not a size"):
        parse_size(text)


def test_a_campaign_is_there_complete_or_not_at_all(tmp_path: Path) -> None:
    made = store.Store(tmp_path / "c")
    with pytest.raises(ZeroDivisionError), made.made_complete() as new:
        new.create(design("c", 1))
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []
    with made.made_complete() as new:
        new.create(design("c", 1))
        assert not made.folder.exists()
        # Another that makes the same, or clears what is left of the dead, leaves it alone.
        assert not store.remove_half_made(new.folder.parent)
        with pytest.raises(EeioError, match="exists: continue"), made.made_complete():
            pass
    assert [path.name for path in tmp_path.iterdir()] == ["c"]
    with pytest.raises(EeioError, match="exists: continue"), made.made_complete() as new:
        new.create(design("c", 1))
    assert [path.name for path in tmp_path.iterdir()] == ["c"]


def test_what_a_killed_process_left_of_making_a_campaign_is_in_nobody_s_way(tmp_path: Path) -> None:
    (tmp_path / ".c.new/c/raw").mkdir(parents=True)
    (tmp_path / ".d.new").mkdir()
    assert [path.name for path in store.half_made(tmp_path)] == [".c.new", ".d.new"]
    with store.Store(tmp_path / "c").made_complete() as new:
        new.create(design("c", 1))
    assert store.remove_half_made(tmp_path / ".d.new")
    assert [path.name for path in tmp_path.iterdir()] == ["c"]


def valid(
    power_w: float, energy_j: float, coverage: float = 1.0, samples: int = 10, meter: str = "m"
) -> EnergyReading:
    return replace(
        energy(power_w), power_w=power_w, energy_j=energy_j, coverage=coverage, samples=samples,
        meter=meter,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("readings", "medians", "reason"),
    [
        ([valid(50.0, 1e-308)], [], "energy and power are of"),
        ([valid(50.0, 500.0, coverage=0.0)], [], "10 samples over 0% of the time"),
        ([valid(50.0, 500.0, samples=0)], [], "0 samples over 100% of the time"),
        ([valid(50.0, -500.0)], [], "energy and power are of -10 s"),
        ([valid(50.0, 500.0), valid(20.0, 400.0, meter="n")], [], "of 10 s and of 20 s"),
        ([replace(valid(50.0, 500.0), energy_j=None)], [], "without power or energy"),
        ([valid(50.0, 500.0)], [IdleMedian("system", "m", 2.0)], "median 2 W, mean 50 W"),
    ],
)
def test_an_idle_baseline_that_contradicts_itself_is_rejected(
    tmp_path: Path, readings: list[EnergyReading], medians: list[IdleMedian], reason: str
) -> None:
    made = _store(tmp_path)
    (made.folder / "idle.json").unlink()
    made.write_idle(tuple(readings), None, tuple(medians))
    with pytest.raises(SchemaError, match=reason):
        store.load(made.folder)


def test_an_idle_baseline_may_lack_a_meter_and_have_no_power(tmp_path: Path) -> None:
    made = _store(tmp_path)
    (made.folder / "idle.json").unlink()
    lost = replace(energy(None), meter="lost")
    made.write_idle((valid(0.0, 0.0), valid(-0.01, -0.1, meter="n"), lost), None, ())
    assert len(store.load(made.folder).idle) == 3
