"""Records a campaign, cuts the power at many places, and looks at what can be read afterwards."""

import os
import pickle
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from eeio.errors import EeioError
from eeio.record.store import Campaign, Store, half_made, load, remove_half_made
from tests.kill.harness import CAMPAIGN, environment_of
from tests.power_cuts.operations import Op
from tests.power_cuts.replay import rebuild

DATA = Path(__file__).parents[1] / "data"
_TIMEOUT_S = 300
_HALF = b'{"schema_version":1,"order_index":'


@dataclass
class Recording:
    """One command's operations; `begin` is where it began, the rest is what it found."""

    name: str
    home: Path
    begin: int
    ops: list[Op]
    complete: Campaign

    @property
    def environment(self) -> Mapping[str, str]:
        return environment_of(self.home)


@dataclass
class Outcome:
    """What the cuts came to."""

    cuts: int = 0
    none: int = 0
    """No campaign under its name: it was not begun."""
    lost: int = 0
    """A run was written and not yet reported as stored."""
    resumed: int = 0
    """By a real `eeio resume`."""
    wrong: list[str] = field(default_factory=list)


def record(home: Path) -> list[Recording]:
    """A campaign from its beginning, and the same resumed after three of its runs and a part of a
    record."""
    results = home / "data/eeio/results"
    for folder in (results, home / "target", home / "locks"):
        folder.mkdir(parents=True)
    shutil.copytree(DATA / "profiles", home / "profiles")
    presets = home / "profiles/eeio-dummy-1.0.0/presets.conf"
    presets.write_text(presets.read_text().replace("sleep_s=0.1", "sleep_s=0.01"))
    run = (
        "run", "dummy-suite", "--name", CAMPAIGN, "--meter", "demo", "--repetitions", "2",
        "--directory", str(home / "target"), "--yes",
    )  # fmt: skip
    found = [_recorded("run", home, run)]
    records = results / CAMPAIGN / "runs.jsonl"
    lines = records.read_bytes().splitlines(keepends=True)
    records.write_bytes(b"".join(lines[:3]) + _HALF)
    found.append(_recorded("resume", home, ("resume", CAMPAIGN)))
    return found


def _recorded(name: str, home: Path, arguments: Sequence[str]) -> Recording:
    results, log = home / "data/eeio/results", home / f"{name}.pickle"
    done = subprocess.run(
        [sys.executable, "-m", "tests.power_cuts.recorder", str(results), str(log), *arguments],
        env=environment_of(home), stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=_TIMEOUT_S, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(arguments)}: {done.returncode}: {done.stderr}")
    begin, ops = pickle.loads(log.read_bytes())
    return Recording(name, home, begin, ops, load(results / CAMPAIGN))


def cut_over_and_over(
    recordings: Sequence[Recording], cuts: int, seed: int, resumes: int = 0
) -> Outcome:
    """So many power cuts, the places of which go evenly through each recording; after `resumes` of
    them a real `eeio resume` completes the campaign."""
    outcome = Outcome()
    shared = Path("/dev/shm")
    for number in range(cuts):
        recording = recordings[number % len(recordings)]
        draw = random.Random(f"{seed}:{number}")
        length = len(recording.ops) - recording.begin
        of_all = (number // len(recordings)) / max(1, cuts // len(recordings))
        cut = recording.begin + min(length, round((of_all + draw.uniform(0, 0.02)) * length))
        real = resumes > 0 and number % max(1, cuts // resumes) == 0
        with tempfile.TemporaryDirectory(dir=None if real or not shared.is_dir() else shared) as at:
            results = Path(at) / "data/eeio/results"
            results.mkdir(parents=True)
            rebuild(recording.ops, cut, results, draw)
            outcome.cuts += 1
            where = f"{recording.name}, cut {number} at operation {cut}"
            try:
                _check(recording, cut, results, outcome, Path(at) if real else None)
            except (EeioError, OSError, AssertionError) as error:
                outcome.wrong.append(f"{where}: {type(error).__name__}: {error}")
    return outcome


def _check(
    recording: Recording, cut: int, results: Path, outcome: Outcome, home: Path | None
) -> None:
    stored = {index for op in recording.ops[:cut] for index in op.runs}
    kept = results / CAMPAIGN
    if recording.name == "resume":
        stored |= {run.order_index for run in recording.complete.runs[:3]}
    for aside in half_made(results):
        assert remove_half_made(aside), f"{aside} stays"
    if not kept.exists():
        assert not stored, f"the campaign is gone, runs {sorted(stored)} were stored"
        outcome.none += 1
        return
    store = Store(kept)
    done = store.done_indices()
    assert stored <= done, f"runs {sorted(stored - done)} were stored and are lost"
    written = {index for op in recording.ops[: cut + 40] for index in op.runs} - stored
    assert len(done - stored) <= 1, f"runs {sorted(done - stored)} of {sorted(written)}"
    if not (kept / "machine.json").exists():
        assert not done, "runs without the machine that they ran on"
    else:
        load(kept)
    if home is not None:
        _resume(recording, home)
        outcome.resumed += 1
        found = {run.order_index for run in load(kept).runs}
        assert found == {run.order_index for run in recording.complete.runs}
        return
    outcome.lost += _go_on(recording, store, done)


def _go_on(recording: Recording, store: Store, done: set[int]) -> bool:
    """As a resumed campaign writes: whether a part of a record was dropped."""
    before = store.runs_path.stat().st_size if store.runs_path.exists() else 0
    store.drop_partial_line()
    after = store.runs_path.stat().st_size if store.runs_path.exists() else 0
    complete = recording.complete
    if store.machine() is None:
        store.write_machine(complete.machine)
    if not store.has_idle():
        store.write_idle(complete.idle, complete.idle_reason)
    left = [run for run in complete.runs if run.order_index not in done]
    store.append_all(left)
    found = [run.order_index for run in load(store.folder).runs]
    assert sorted(found) == sorted(run.order_index for run in complete.runs), found
    return after < before


def _resume(recording: Recording, home: Path) -> None:
    """The real one, in a home of its own, with the programs of the recording."""
    environment = {**environment_of(home), "EEIO_TEST_PROFILES": str(recording.home / "profiles")}
    (home / "locks").mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "eeio", "resume", CAMPAIGN], env={**os.environ, **environment},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"resume ended with {done.returncode}: {done.stderr[-500:]}"
