"""`eeio rm` deletes campaigns and nothing else."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from tests.eeio_results.made import energy, phase, run, stored
from tests.plugin import Eeio
from tests.processes import ran

from eeio.measure.campaign.runner import store_lock


@pytest.fixture
def results(home: Path) -> Path:
    made = home / "data/eeio/results"
    for name in ("one", "two"):
        stored(made / name, [run(0, (phase(1e6, (energy(5.0),)),))])
    return made


def test_a_campaign_is_deleted(results: Path, eeio: Eeio) -> None:
    done = eeio("rm", "one", "one", "--yes")
    assert done.stdout == f"deleted {results / 'one'}\n"
    assert "one: " in done.stderr and ", 1 of 1 runs, " in done.stderr
    assert [path.name for path in results.iterdir()] == ["two"]


def test_without_a_terminal_and_yes_nothing_is_deleted(results: Path, eeio: Eeio) -> None:
    assert "give --yes" in eeio("rm", "one", code=2).stderr
    assert (results / "one/runs.jsonl").exists()


@pytest.mark.parametrize(("answer", "left"), [("y", ["two"]), ("", ["one", "two"])])
def test_a_terminal_is_queried(results: Path, home: Path, answer: str, left: list[str]) -> None:
    terminal, other = pty.openpty()
    try:
        os.write(terminal, f"{answer}\n".encode())
        done = ran([sys.executable, "-m", "eeio", "rm", "one"], stdin=other, code=None)
    finally:
        os.close(terminal)
        os.close(other)
    assert "Delete 1 campaign? [y/N]" in done.stderr
    assert sorted(path.name for path in results.iterdir()) == left


def test_a_running_campaign_stays(results: Path, eeio: Eeio) -> None:
    with store_lock(results / "one"):
        done = eeio("rm", "one", "--yes", code=2)
    assert "in use" in done.stderr
    assert (results / "one/runs.jsonl").exists()


def test_other_folders_stay(results: Path, home: Path, eeio: Eeio) -> None:
    """Also where a link among the campaigns points to them."""
    other = home / "other"
    (results / "one").rename(other)
    (results / "link").symlink_to(other)
    for name in (str(other), "link", "no-such", "..", "."):
        eeio("rm", name, "two", "--yes", code=2)
    assert (other / "runs.jsonl").exists()
    assert (results / "two/runs.jsonl").exists()


def test_a_damaged_campaign_is_deleted(results: Path, eeio: Eeio) -> None:
    (results / "one/campaign.json").write_text("{")
    assert "unreadable" in eeio("rm", "one", "--yes").stderr
    assert not (results / "one").exists()


@pytest.mark.root
@pytest.mark.parametrize("owned", ["results", "one", "one/campaign.json"])
def test_root_deletes_no_campaign_that_another_user_could_replace(
    results: Path, home: Path, eeio: Eeio, owned: str
) -> None:
    """That user could put a link in the place of the folder while root answers the question."""
    path = results.parent / owned if owned == "results" else results / owned
    os.chown(path, 65534, 65534)
    assert "not deleted as root" in eeio("rm", "one", "--yes", code=2).stderr
    assert (results / "one/runs.jsonl").exists()


@pytest.mark.root
def test_what_is_mounted_in_a_campaign_is_not_deleted(
    results: Path, home: Path, eeio: Eeio
) -> None:
    kept = home / "of-somebody"
    kept.mkdir()
    (kept / "file").write_text("precious")
    point = results / "one/raw/mounted"
    point.mkdir(parents=True)
    subprocess.run(["mount", "--bind", str(kept), str(point)], check=True, timeout=30)
    try:
        assert f"Repair: umount {point}" in eeio("rm", "one", "--yes", code=1).stderr
        assert (kept / "file").exists() and (results / "one/runs.jsonl").exists()
    finally:
        subprocess.run(["umount", str(point)], check=True, timeout=30)
    eeio("rm", "one", "--yes")
    assert (kept / "file").exists()


@pytest.mark.root
def test_root_opens_no_lock_below_a_folder_of_another_user(
    results: Path, home: Path, eeio: Eeio
) -> None:
    """The lock of an incomplete campaign can be a link to a file that root would make."""
    half_made = results / ".x.new"
    half_made.mkdir()
    (half_made / ".lock").symlink_to(home / "made-by-root")
    os.chown(results, 65534, 65534)
    eeio("doctor", "restore", code=None)
    assert half_made.exists() and not (home / "made-by-root").exists()
    os.chown(results, 0, 0)
    (half_made / ".lock").unlink()
    eeio("doctor", "restore")
    assert not half_made.exists()


@pytest.mark.parametrize("name", [".", "..", "./", "one/..", "./."])
def test_a_dot_is_no_name_of_a_campaign(
    results: Path, eeio: Eeio, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One may have the name of the current folder."""
    stored(results / "results", [run(0, (phase(1e6, (energy(5.0),)),))])
    stored(results / "eeio", [run(0, (phase(1e6, (energy(5.0),)),))])
    for folder in (results, results / "results", results / "results/samples"):
        folder.mkdir(exist_ok=True)
        monkeypatch.chdir(folder)
        assert "campaign name" in eeio("rm", name, "--yes", code=2).stderr
    assert {"eeio", "results", "one"} <= {path.name for path in results.iterdir()}
