"""A short run of the fuzzer, and that it sees what it is for. Long runs by hand: tests/fuzz/run."""

import random
import time
from pathlib import Path

import pytest

from eeio.record import consistency
from tests.fuzz import harness
from tests.fuzz.mutate import mutated
from tests.fuzz.sane import insane
from tests.fuzz.targets import Target, all_targets

# The same each time, so that CI does not fail by chance; `tests/fuzz/run --seed N` tries others.
SEED = 20260101


@pytest.mark.parametrize("inputs", [50, pytest.param(400, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", sorted(all_targets()))
def test_no_damaged_input_does_harm(name: str, inputs: int, tmp_path: Path) -> None:
    tally = harness.fuzz([name], SEED, inputs=inputs, seconds=0.0)[name]
    assert tally.tried == inputs
    saved = {finding.save(tmp_path): finding for finding in tally.findings}
    assert not saved, "\n".join(f"{path}: {f.where}\n{f.text}" for path, f in saved.items())


@pytest.mark.parametrize("name", sorted(all_targets()))
def test_the_inputs_to_begin_with_are_taken(name: str, tmp_path: Path) -> None:
    target = all_targets()[name]
    taken = [harness.try_input(target, 0, seed, tmp_path) for seed in target.seeds]
    assert all(finding is None for finding, _ in taken), taken
    assert any(result for _, result in taken), "no seed gives a result: it tries nothing"


def test_the_same_seed_gives_the_same_inputs() -> None:
    target = all_targets()["fio"]
    one = [harness.made_input(target, 7, index) for index in range(50)]
    assert one == [harness.made_input(target, 7, index) for index in range(50)]
    assert one != [harness.made_input(target, 8, index) for index in range(50)]


def _reads(what: str) -> Target:
    def read(folder: Path) -> object:
        size = (folder / "x").stat().st_size
        if what == "exception":
            raise ZeroDivisionError
        if what == "slow":
            begun_s = time.process_time()
            while time.process_time() < begun_s + 60.0:
                size += 1
        if what == "insane":
            return {"bandwidth": [1.0, float("nan")]}
        return size

    return Target(what, [{"x": b"1"}], read)


@pytest.mark.parametrize("what", ["exception", "slow", "insane"])
def test_a_reader_that_does_harm_is_found_and_its_input_kept(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(harness, "LONGEST_S", 0.2)
    work = tmp_path / "work"
    work.mkdir()
    found, _ = harness.try_input(_reads(what), 3, {"x": b"input"}, work)
    assert found is not None and found.kind == what
    path = found.save(tmp_path)
    monkeypatch.setattr(harness, "all_targets", lambda: {what: _reads(what)})
    again = harness.replay(path)
    assert again is not None and again.where == found.where


def test_a_process_that_dies_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def die(folder: Path) -> None:
        import os

        os._exit(9)

    target = Target("dies", [{"x": b"1"}], die)
    monkeypatch.setattr(harness, "all_targets", lambda: {"dies": target})
    (finding,) = harness.fuzz(["dies"], 1, inputs=1, seconds=0.0)["dies"].findings
    assert finding.kind == "died" and finding.index == 0


@pytest.mark.parametrize(
    ("value", "missing", "where"),
    [
        ([1.0, (2, {"a": None, "b": "x"})], False, None),
        ({"a": [float("inf")]}, True, "result[a][0]"),
        ([float("nan")], True, None),
        ((10**400,), False, "result[0]"),
    ],
)
def test_what_is_sane(value: object, missing: bool, where: str | None) -> None:
    assert (insane(value, missing) or "None").partition(" is ")[0] == str(where)


def test_it_sees_figures_that_contradict_each_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without the product's own check each grammar makes contradictions that the harness sees."""
    monkeypatch.setattr(consistency, "disagreement", lambda phase: None)
    for name in ("native", "dataserver", "ior", "ior-text", "bonnie", "elbencho"):
        target = all_targets()[name]
        inputs = (harness.made_input(target, SEED, index) for index in range(200))
        found = [harness.try_input(target, 0, files, tmp_path)[0] for files in inputs]
        assert sum(finding is not None for finding in found) > 3, name


@pytest.mark.parametrize("name", sorted(n for n, t in all_targets().items() if t.made is not None))
def test_a_grammar_makes_outputs_that_are_taken_and_some_that_are_not(
    name: str, tmp_path: Path
) -> None:
    target = all_targets()[name]
    assert target.made is not None
    tried = [
        harness.try_input(target, 0, target.made(random.Random(index)), tmp_path)
        for index in range(100)
    ]
    taken = sum(result for _, result in tried)
    assert [finding for finding, _ in tried if finding is not None] == []
    assert taken > 20, "most outputs of the grammar agree with themselves"


def test_mutations_change_something() -> None:
    draw = random.Random(1)
    files = {"a.json": b'{"a": [1, 2, {"b": "c"}]}', "b.txt": b"one 2 three\n" * 5}
    made = [mutated(files, [files], draw) for _ in range(200)]
    assert sum(each != files for each in made) > 180
