"""Some power cuts; many by hand: tests/power_cuts/run --cuts 2000."""

from pathlib import Path

import pytest

from eeio.errors import SchemaError
from eeio.record.store import Store, load
from tests.eeio_results import made
from tests.power_cuts.harness import cut_over_and_over, record


def test_what_a_power_cut_leaves_loads_and_goes_on(tmp_path: Path) -> None:
    recordings = record(tmp_path / "home")
    assert all(any(op.runs for op in one.ops[one.begin :]) for one in recordings)
    found = cut_over_and_over(recordings, 100, seed=1)
    assert found.wrong == []
    assert 0 < found.none < 50 and found.lost


def _store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "c")
    store.create(made.design("c", 2))
    store.write_machine(made.MACHINE)
    store.append(made.run(0, (made.phase(1e6, (made.energy(12.5),)),)))
    return store


@pytest.mark.parametrize("tail", [b"\0" * 4096, b"\0" * 4096 + b'"x"}\n', b"\0" * 9 + b"}\n"])
def test_a_record_of_which_a_power_cut_left_zeros_is_run_again(tmp_path: Path, tail: bytes) -> None:
    store = _store(tmp_path)
    with store.runs_path.open("ab") as file:
        file.write(tail)
    assert len(load(store.folder).runs) == 1
    assert store.done_indices() == {0}
    store.drop_partial_line()
    store.append(made.run(1, (made.phase(1e6, (made.energy(12.5),)),)))
    assert store.done_indices() == {0, 1}
    assert len(load(store.folder).runs) == 2


def test_zeros_before_another_record_are_an_error(tmp_path: Path) -> None:
    store = _store(tmp_path)
    store.runs_path.write_bytes(b"\0" * 9 + b"\n" + store.runs_path.read_bytes())
    with pytest.raises(SchemaError, match=r"runs\.jsonl:1"):
        load(store.folder)
