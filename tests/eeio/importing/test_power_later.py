"""A power log that is copied after the run: `eeio import power NAME LOG`."""

import json
import os
import shutil
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.eeio.importing.test_power_logs import (
    LOW_W,
    RUNS,
    START_S,
    means,
    watts,
    wattsup,
    write_results,
)
from tests.plugin import DATA, InProcess

from eeio import paths
from eeio.record.store import load

IDLE_W, BUSY_W = 60.0, 100.0
Windows = Sequence[tuple[float, float]]
MAP = "map=time:time+power_w:watts,accuracy=0.01,resolution=0.1,lag_s=0,averages_s=0.1"


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("EEIO_LOCKS", str(tmp_path))
    folder = paths.results_root()
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def own(results: Path) -> str:
    """A campaign of eeio's own that had no meter."""
    folder = Path(shutil.copytree(DATA / "campaigns/quick-before", results / "own"))
    design = json.loads((folder / "campaign.json").read_text())
    (folder / "campaign.json").write_text(json.dumps(design | {"name": "own"}))
    lines = []
    for line in (folder / "runs.jsonl").read_text().splitlines():
        run = json.loads(line)
        for phase in run["phases"]:
            phase["energy"] = []
            if phase.get("until_durable"):
                phase["until_durable"]["energy"] = []
        lines.append(json.dumps(run))
    (folder / "runs.jsonl").write_text("".join(f"{line}\n" for line in lines))
    (folder / "idle.json").write_text(
        json.dumps({"schema_version": 2, "readings": [], "reason": "no meter"})
    )
    return "own"


def windows(name: str) -> Windows:
    """Of all phases of the campaign, until durable, Unix s."""
    found = []
    for run in load(paths.results_root() / name).runs:
        begin_s = datetime.fromisoformat(run.started_utc).timestamp()
        for phase in run.phases:
            if phase.start_s is None or phase.end_s is None:
                continue
            end_s = phase.until_durable.end_s if phase.until_durable else phase.end_s
            found.append((begin_s + phase.start_s, begin_s + end_s))
    return found


def table(path: Path, busy: Windows, ahead_s: float = 0.0, around_s: float = 120.0) -> Path:
    """A plain table of time and watts, each 0.1 s, as any program writes it."""
    first_s = min(start_s for start_s, _ in busy) - around_s
    last_s = max(end_s for _, end_s in busy) + around_s
    rows = ["time,watts"]
    for tick in range(round((last_s - first_s) / 0.1)):
        now_s = first_s + 0.1 * tick
        is_busy = any(start_s <= now_s < end_s for start_s, end_s in busy)
        moment = datetime.fromtimestamp(now_s + ahead_s, UTC)
        rows.append(f"{moment.isoformat()},{BUSY_W if is_busy else IDLE_W}")
    path.write_text("\n".join(rows) + "\n")
    return path


def test_the_energy_of_own_runs(own: str, tmp_path: Path, in_process: InProcess) -> None:
    log = table(tmp_path / "watts.csv", windows(own))
    before = (paths.results_root() / own / "runs.jsonl").read_bytes()
    command = ("import", "power", own, f"csv:{log},{MAP}", "--power-offset", "0")
    dry = json.loads(in_process(*command, "--dry-run", "--format", "json").out)
    assert dry["records_before"] is None and dry["phases_with_energy"] > 10
    assert (paths.results_root() / own / "runs.jsonl").read_bytes() == before
    done = in_process(*command)
    first = done.out.splitlines()[0]
    assert first.startswith(f"own: {dry['phases_with_energy']} phases have energy from {log}")
    kept = paths.results_root() / own / "before-power-1"
    assert (kept / "runs.jsonl").read_bytes() == before
    campaign = load(paths.results_root() / own)
    assert any("power added later" in remark for remark in campaign.design.remarks)
    long = [
        reading
        for run in campaign.runs
        for phase in run.phases
        for reading in phase.energy
        if reading.energy_j is not None and phase.lasted_s is not None and phase.lasted_s > 1
    ]
    assert long
    for reading in long:
        assert reading.domain == "system" and reading.power_w == pytest.approx(BUSY_W, rel=0.1)
    shown = in_process("report", own, "--format", "csv").out
    assert "csv" in shown


def test_a_log_is_added_once(own: str, tmp_path: Path, in_process: InProcess) -> None:
    log = table(tmp_path / "watts.csv", windows(own))
    command = ("import", "power", own, f"csv:{log},{MAP}", "--power-offset", "0")
    in_process(*command)
    stored = (paths.results_root() / own / "runs.jsonl").read_bytes()
    again = in_process(*command, code=2)
    assert "has the energy of the meter csv (system) already; --replace replaces it" in again.err
    assert (paths.results_root() / own / "runs.jsonl").read_bytes() == stored
    in_process(*command, "--replace")
    assert (paths.results_root() / own / "before-power-2/runs.jsonl").read_bytes() == stored
    assert (paths.results_root() / own / "runs.jsonl").read_bytes() == stored


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (lambda busy: [(a - 86400, b - 86400) for a, b in busy], "no energy from"),
        (lambda busy: [], "No such file"),
    ],
    ids=["of another day", "not there"],
)
def test_a_log_that_cannot_be_used_stores_nothing(
    own: str,
    tmp_path: Path,
    in_process: InProcess,
    made: Callable[[Windows], Windows],
    why: str,
) -> None:
    busy = made(windows(own))
    log = tmp_path / "watts.csv"
    if busy:
        table(log, busy)
    before = (paths.results_root() / own / "runs.jsonl").read_bytes()
    command = ("import", "power", own, f"csv:{log},{MAP}", "--power-offset", "0")
    done = in_process(*command, code=2)
    assert why in done.err and len(done.err.splitlines()) == 1
    assert (paths.results_root() / own / "runs.jsonl").read_bytes() == before
    assert not (paths.results_root() / own / "before-power-1").exists()


def test_a_log_of_a_part_gives_the_others_their_reason(
    own: str, tmp_path: Path, in_process: InProcess
) -> None:
    busy = windows(own)
    log = table(tmp_path / "watts.csv", busy[:3], around_s=1.0)
    done = in_process("import", "power", own, f"csv:{log},{MAP}", "--power-offset", "0")
    assert "own: " in done.out and "no energy in" in done.out
    phases = [phase for run in load(paths.results_root() / own).runs for phase in run.phases]
    without = [phase for phase in phases if not any(r.energy_j for r in phase.energy)]
    assert without and all(r.reasons for phase in without for r in phase.energy)


def test_unknown_names_and_plain_tables(own: str, tmp_path: Path, in_process: InProcess) -> None:
    log = table(tmp_path / "watts.csv", windows(own))
    assert "no campaign 'nobody'" in in_process("import", "power", "nobody", str(log), code=2).err
    done = in_process("import", "power", own, str(log), code=2)
    assert "csv:FILE,map=time:NAME+power_w:NAME" in done.err
    outside = in_process("import", "power", str(DATA / "campaigns/server"), str(log), code=2)
    assert "not a stored campaign" in outside.err


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    """Result files of RUNS."""
    folder = tmp_path / "old"
    folder.mkdir()
    write_results(folder)
    return folder


def test_the_energy_of_imported_results(
    results: Path, reports: Path, tmp_path: Path, in_process: InProcess
) -> None:
    in_process("import", str(reports), "--name", "old")
    (tmp_path / "w.log").write_text(wattsup())
    command = ("import", "power", "old", str(tmp_path / "w.log"))
    added = json.loads(in_process(*command, "--format", "json").out)
    assert added["phases_with_energy"] == len(RUNS)
    later = load(results / "old")
    shutil.rmtree(results / "old")
    in_process("import", str(reports), "--name", "old", "--power", str(tmp_path / "w.log"))
    at_once = load(results / "old")
    assert [run.phases for run in later.runs] == [run.phases for run in at_once.runs]
    assert later.idle == at_once.idle


def test_the_same_folder_again_with_power_adds_it(
    results: Path, reports: Path, tmp_path: Path, in_process: InProcess
) -> None:
    in_process("import", str(reports), "--name", "old")
    (tmp_path / "w.log").write_text(wattsup())
    moved = Path(shutil.move(reports, tmp_path / "moved"))
    gone = in_process("import", "power", "old", str(tmp_path / "w.log"), code=2)
    assert "Import the folder again with --power" in gone.err
    command = ("import", str(moved), "--power", str(tmp_path / "w.log"))
    assert f"old: {len(RUNS)} phases have energy from" in in_process(*command).out
    stored = (results / "old/runs.jsonl").read_bytes()
    again = in_process(*command)
    assert "has the energy of the meter" in again.err
    assert (results / "old/runs.jsonl").read_bytes() == stored and len(paths.campaigns()) == 1


def test_the_idle_power_is_that_of_the_log_without_a_result(
    results: Path, reports: Path, tmp_path: Path, in_process: InProcess
) -> None:
    (tmp_path / "w.log").write_text(wattsup())
    in_process("import", str(reports), "--name", "old", "--power", str(tmp_path / "w.log"))
    (idle,) = load(results / "old").idle
    assert idle.power_w == pytest.approx(LOW_W, rel=0.02) and idle.domain == "system"
    assert "stretches of the log without a result" in idle.reasons[-1]
    cost = ("cost", "old", "--duty-cycle", "25%")
    body = json.loads(in_process(*cost, "--format", "json").out)
    assert body["idle_power_w"] == pytest.approx(LOW_W, rel=0.02)


def test_other_work_between_the_results_is_no_idle_power(
    results: Path, reports: Path, tmp_path: Path, in_process: InProcess
) -> None:
    """A machine that worked for 50 s after the last result."""
    busy = [*RUNS, (350.0, 400.0)]
    lines = (
        f"{time_s:.1f} #d,-,18,{round(10 * watts(time_s - 0.5, busy))},1201{',_' * 16};\n"
        for time_s, _ in means()
    )
    (tmp_path / "w.log").write_text("".join(lines))
    in_process("import", str(reports), "--name", "old", "--power", str(tmp_path / "w.log"))
    campaign = load(results / "old")
    assert campaign.idle == ()
    readings = [reading for run in campaign.runs for reading in run.phases[0].energy]
    assert all(reading.energy_j is not None for reading in readings)


def logged(power_w: Callable[[float], float]) -> str:
    """A Watts Up log of 420 s, as that of `wattsup`; `power_w` by the seconds since START_S."""
    return "".join(
        f"{time_s:.1f} #d,-,18,{round(10 * power_w(time_s - 0.5 - START_S))},1201{',_' * 16};\n"
        for time_s, _ in means()
    )


def at_rest(rest_w: Callable[[float], float]) -> str:
    """A log of the results with another power between them."""

    def power_w(second: float) -> float:
        is_busy = any(begin_s <= second < end_s for begin_s, end_s in RUNS)
        return watts(START_S + second) if is_busy else rest_w(second)

    return logged(power_w)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        # 20 s of other work in each minute.
        (at_rest(lambda second: 150.0 if second % 60 < 20 else LOW_W), "other work ran"),
        (at_rest(lambda second: 200.0), "is not below that of the results"),
        (at_rest(lambda second: LOW_W).split("\n", 75)[-1], "less than two stretches"),
    ],
    ids=["work that repeats", "above the results", "one stretch"],
)
def test_what_may_not_be_idle_is_no_idle_power(
    results: Path, reports: Path, tmp_path: Path, in_process: InProcess, text: str, why: str
) -> None:
    (tmp_path / "w.log").write_text(text)
    log = str(tmp_path / "w.log")
    in_process("import", str(reports), "--name", "old", "--power", log, "--power-offset", "0")
    campaign = load(results / "old")
    assert campaign.idle == () and why in (campaign.idle_reason or "")
    if "stretches" in why:
        return  # the results have no energy either: the log begins too late
    cost = json.loads(in_process("cost", "old", "--duty-cycle", "25%", "--format", "json").out)
    assert cost["j_per_gb"]["value"] is None
    assert any(why in message for message in cost["messages"])


def test_a_log_that_comes_in_two_parts_is_added_in_two_steps(
    own: str, tmp_path: Path, in_process: InProcess
) -> None:
    """The second part leaves the energy of the first, and its phases are no second energy."""
    runs = paths.results_root() / own / "runs.jsonl"
    before = runs.read_bytes()
    header, *rows = table(tmp_path / "all.csv", windows(own)).read_text().splitlines()
    command = ("import", "power", own, "--power-offset", "0")
    in_process(*command, f"csv:{tmp_path / 'all.csv'},{MAP}")
    of_all = powers(own)
    runs.write_bytes(before)
    middle = len(rows) // 2
    added = []
    for name, part in (("1.csv", rows[:middle]), ("2.csv", rows[middle:])):
        (tmp_path / name).write_text("\n".join([header, *part]) + "\n")
        done = in_process(*command, f"csv:{tmp_path / name},{MAP}", "--format", "json").out
        added.append(json.loads(done)["phases_with_energy"])
    assert min(added) > 0
    assert powers(own) == pytest.approx(of_all)
    again = in_process(*command, f"csv:{tmp_path / '1.csv'},{MAP}", code=2)
    assert "has the energy of the meter csv (system) already" in again.err


def powers(name: str) -> list[float]:
    return [
        reading.power_w
        for run in load(paths.results_root() / name).runs
        for phase in run.phases
        for reading in phase.energy
        if reading.power_w is not None
    ]


def test_a_replaced_log_replaces_the_idle_power(
    results: Path, reports: Path, tmp_path: Path, in_process: InProcess
) -> None:
    (tmp_path / "w.log").write_text(at_rest(lambda second: 140.0))
    in_process("import", str(reports), "--name", "old", "--power", str(tmp_path / "w.log"),
               "--power-offset", "0")  # fmt: skip
    assert load(results / "old").idle[0].power_w == pytest.approx(140.0, rel=0.01)
    (tmp_path / "w.log").write_text(wattsup())
    command = ("import", "power", "old", str(tmp_path / "w.log"), "--power-offset", "0")
    in_process(*command, "--replace")
    assert load(results / "old").idle[0].power_w == pytest.approx(LOW_W, rel=0.01)
    (tmp_path / "w.log").write_text(at_rest(lambda second: 150.0 if second % 60 < 20 else LOW_W))
    assert "other work ran" in in_process(*command, "--replace").out
    assert load(results / "old").idle == ()


@pytest.mark.root
@pytest.mark.parametrize("command", ["power", "files"])
def test_root_changes_no_campaign_of_another_user(
    command: str, results: Path, reports: Path, tmp_path: Path, in_process: InProcess,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """It wrote through links in that folder."""
    monkeypatch.delenv("SUDO_UID", raising=False)
    in_process("import", str(reports), "--name", "theirs")
    folder = results / "theirs"
    log = str(tmp_path / "w.log")
    Path(log).write_text(wattsup())
    victim = tmp_path / "victim"
    (folder / "campaign.new").symlink_to(victim)
    os.chown(folder, 12345, 12345)
    power = ["power", "theirs", log] if command == "power" else [str(reports), "--power", log]
    done = in_process("import", *power, code=2 if command == "power" else 0)
    reason = f"{folder}: not changed as root: {folder} is owned by user 12345. Use eeio as"
    assert reason in done.err
    assert not victim.exists() and not (folder / "before-power-1").exists()


def test_a_link_in_the_place_of_a_temporary_file_is_not_followed(
    own: str, tmp_path: Path, in_process: InProcess
) -> None:
    folder, victim = paths.results_root() / own, tmp_path / "victim"
    victim.write_text("kept")
    for name in ("campaign.new", "idle.new", "runs.new"):
        (folder / name).symlink_to(victim)
    (folder / "before-power-1").symlink_to(tmp_path / "nothing")
    log = table(tmp_path / "watts.csv", windows(own))
    in_process("import", "power", own, f"csv:{log},{MAP}", "--power-offset", "0")
    assert victim.read_text() == "kept" and not (folder / "campaign.json").is_symlink()
    assert (folder / "before-power-2/runs.jsonl").is_file()
