"""Campaigns with a dummy tool: what is stored, what is said, what is invalid."""

import gzip
import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests import dummy
from tests.campaigns import records
from tests.dummy import suite as _suite
from tests.mounts import attached, unmount
from tests.plugin import Eeio
from tests.simulators.powercap import FakeRapl

from eeio.machine.owner import start_ticks
from eeio.measure.campaign.runner import store_lock
from eeio.schemas.published import FOLDER as SCHEMAS
from eeio_power.samples import SCHEMA_VERSION


def _run(home: Path, eeio: Eeio, suite: str, *arguments: str, expected: int = 0) -> dict[str, Any]:
    """Runs a campaign `c` and gives its report, checked against the published schema."""
    eeio.run(suite, "--name", "c", *arguments, code=expected)
    body: dict[str, Any] = eeio.json("report", "c")
    jsonschema.validate(body, json.loads((SCHEMAS / "report.schema.json").read_text()))
    return body


def _rows(report: dict[str, Any]) -> list[dict[str, Any]]:
    return [row for row in report["characterization"] if row["tool"]]


def test_measured_energy_reaches_the_table(home: Path, eeio: Eeio) -> None:
    factors = "level=filesystem operation=read spatiality=sequential sleep_s=0.5 bytes_moved=500000"
    suite = _suite(home, factors)
    with FakeRapl(home / "powercap", power_w=lambda time_s: 20.0):
        report = _run(
            home, eeio, suite, "--meter", f"rapl,root={home / 'powercap'}", "--idle", "0.5"
        )
    (row,) = _rows(report)
    assert row["energy_kind"] == "measured"
    assert row["power_domain"] == "package"
    domains = {d["power_domain"]: d for d in row["domains"]}
    package = domains["package"]
    assert package["energy_j"]["median"] == pytest.approx(
        package["power_w"]["median"] * row["duration_s"]["median"], rel=0.1
    )
    # On a busy machine the program takes longer than it sleeps, so its rate is not 1 MB/s.
    assert row["efficiency_bytes_per_j"]["median"] == pytest.approx(
        row["bandwidth_bytes_per_s"]["median"] / package["power_w"]["median"], rel=0.1
    )
    idle = {r["domain"]: r for r in report["campaigns"][0]["idle"]["readings"]}
    assert idle["package"]["kind"] == "measured"
    if idle["package"]["valid"]:
        assert idle["package"]["power_median_w"] > 0
    # The samples are on disk, readable by anyone.
    samples = sorted((home / "data/eeio/results/c/samples").glob("*.csv.gz"))
    header, first, *_ = gzip.decompress(samples[0].read_bytes()).decode().splitlines()
    assert json.loads(header)["schema_version"] == SCHEMA_VERSION
    assert len(first.split(",")) == 3


def test_without_a_meter_quick_estimates_and_is_reported(home: Path, eeio: Eeio) -> None:
    suite = _suite(home, "level=filesystem operation=read spatiality=sequential sleep_s=0.3")
    (home / "no-meters").mkdir()
    report = _run(home, eeio, suite, "--preset", "quick", "--meter", "modelled")
    (row,) = _rows(report)
    assert row["energy_kind"] == "modelled"
    assert row["power_w"] is None and row["efficiency_bytes_per_j"] is None
    assert row["reasons"]["power_w"]
    (estimate,) = row["estimates"]
    assert estimate["power_w"]["median"] > 0
    band = estimate["energy_uncertainty_j"]["median"] / estimate["energy_j"]["median"]
    assert band >= 0.2
    for form in ("table", "markdown", "html", "csv"):
        text = eeio("report", "c", "--format", form).stdout
        assert "ESTIMATE" in text, form
    assert "QUICK: not a measurement" in eeio("report", "c").stdout


def test_without_a_meter_standard_has_no_energy_but_a_reason(home: Path, eeio: Eeio) -> None:
    suite = _suite(home, "level=filesystem operation=read spatiality=sequential")
    report = _run(home, eeio, suite, "--meter", "none")
    (row,) = _rows(report)
    assert row["energy_kind"] is None and row["estimates"] == []
    for figure in ("power_w", "energy_j", "efficiency_bytes_per_j"):
        assert row[figure] is None
        assert "--meter none" in row["reasons"][figure]
    assert row["bandwidth_bytes_per_s"]["median"] == 1e6


def test_levels_without_a_profile_say_not_measured(home: Path, eeio: Eeio) -> None:
    suite = _suite(home, "level=filesystem operation=read spatiality=sequential")
    report = _run(home, eeio, suite, "--meter", "none")
    missing = {r["level"]: r["reason"] for r in report["characterization"] if not r["tool"]}
    assert set(missing) == {"device", "library", "application"}
    assert all("not measured" in reason for reason in missing.values())


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("fail", "exit code 7: dummy: cannot do it"),
        ("garbage", "eeio.json"),
        ("empty", "eeio.json"),
    ],
)
def test_a_failing_tool_is_recorded_and_the_campaign_goes_on(
    home: Path, eeio: Eeio, mode: str, reason: str
) -> None:
    suite = _suite(
        home,
        f"level=filesystem operation=read spatiality=sequential mode={mode}",
        "level=filesystem operation=read spatiality=random",
    )
    report = _run(home, eeio, suite, "--meter", "none", expected=3)
    good, bad = sorted(_rows(report), key=lambda row: -row["n"])
    assert good["n"] == 2 and good["invalid_runs"] == 0
    assert bad["n"] == 0 and bad["invalid_runs"] == 2
    assert bad["bandwidth_bytes_per_s"] is None
    assert reason in bad["reason"]
    failed = [record for record in records(home) if record["validity"]]
    assert len(failed) == 2
    folder = home / "data/eeio/results/c" / failed[0]["raw"]
    assert (folder / "stderr.txt").exists() and (folder / "capture.json").exists()


def test_what_the_device_did_not_see_is_invalid(home: Path, eeio: Eeio) -> None:
    from eeio.machine.filesystem import backing_device

    if backing_device(home)[0] is None:
        pytest.skip("no block device lies behind the temporary directory")
    suite = _suite(
        home,
        "level=filesystem operation=read spatiality=random buffer=off bytes_moved=4000000000 "
        "mode=unread",
    )
    report = _run(home, eeio, suite, "--meter", "none", expected=3)
    (row,) = _rows(report)
    assert row["n"] == 0 and row["invalid_runs"] == 2
    assert "the device moved" in row["reason"]
    # Stored all the same, with the claim.
    assert records(home)[0]["phases"][0]["bandwidth_bytes_per_s"] > 1e9


def test_no_process_outlives_its_run(home: Path, eeio: Eeio) -> None:
    suite = _suite(home, "level=filesystem operation=read spatiality=random mode=orphan")
    _run(home, eeio, suite, "--meter", "none")
    for record in records(home):
        orphan = (home / "data/eeio/results/c" / record["raw"] / "orphan").read_text().strip()
        stat = Path(f"/proc/{orphan}/stat")
        assert not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z"


def test_a_profile_that_cannot_be_installed(home: Path, eeio: Eeio) -> None:
    profile = home / "profiles" / "eeio-dummy-1.0.0"
    profile.mkdir(parents=True)
    source = Path(os.environ["EEIO_TEST_PROFILES"]) / "eeio-dummy-1.0.0"
    for file in source.iterdir():
        (profile / file.name).write_bytes(file.read_bytes())
    (profile / "install.sh").write_text("echo 'dummy: install the package dummy'; exit 1\n")
    done = eeio.run(
        "dummy-suite", "--meter", "none",
        environment={"EEIO_TEST_PROFILES": str(home / "profiles")}, code=3,
    )  # fmt: skip
    assert "install the package dummy" in done.stdout


def test_the_seed_repeats_the_order(home: Path, eeio: Eeio) -> None:
    def order(name: str, seed: str) -> list[str]:
        eeio.run("dummy-suite", "--meter", "none", "--seed", seed, "--name", name)
        body = json.loads((home / f"data/eeio/results/{name}/campaign.json").read_text())
        runs = records(home, name)
        assert len(body["order"]) == len(runs) == 6
        return [f"{r['experiment_id']}-{r['repetition']}" for r in runs]

    first, same, other = order("a", "1"), order("b", "1"), order("c", "2")
    assert first == same
    assert first != other and sorted(first) == sorted(other)
    # All repetitions of all experiments in one order: not one experiment after the other.
    assert [pair.split("-")[0] for pair in other] != sorted(pair.split("-")[0] for pair in other)


def test_records_follow_the_published_schema(home: Path, eeio: Eeio) -> None:
    _run(home, eeio, "dummy-suite", "--meter", "modelled")
    schema = json.loads((SCHEMAS / "run.schema.json").read_text())
    for record in records(home):
        jsonschema.validate(record, schema)


def test_memory_filesystems_give_only_invalid_runs(home: Path, eeio: Eeio) -> None:
    shm = Path("/dev/shm")
    if not os.access(shm, os.W_OK):
        pytest.skip("no writable /dev/shm")
    arguments = ("run", "dummy-suite", "--directory", str(shm), "--meter", "none")
    eeio(*arguments, code=2)
    done = eeio(*arguments, "--allow-memory-filesystem", code=3)
    assert "no storage device was measured" in done.stdout


@pytest.mark.root
def test_a_device_may_be_named_in_two_ways(home: Path, eeio: Eeio) -> None:
    """Profiles compare EEIO_ERASE with EEIO_DEVICE as words, and refuse to write otherwise."""
    profile = home / "profiles" / "eeio-dummy-1.0.0"
    shutil.copytree(Path(os.environ["EEIO_TEST_PROFILES"]) / profile.name, profile)
    script = profile / "eeio-dummy.sh"
    check = '[ "$EEIO_ERASE" = "$EEIO_DEVICE" ] || { echo "would erase" >&2; exit 2; }\n'
    script.write_text(script.read_text().replace("set -eu\n", f"set -eu\n{check}"))
    (home / "image").write_bytes(bytes(1 << 20))
    with attached(home / "image") as node:
        (home / "by-id").symlink_to(node)
        suite = _suite(home, "level=device operation=write spatiality=sequential")
        eeio("run", suite, "--name", "c", "--device", str(home / "by-id"), "--erase", str(node),
             "--meter", "none",
             environment={"EEIO_TEST_PROFILES": str(profile.parent)})  # fmt: skip


@pytest.mark.root
def test_a_full_results_disk_stops_the_campaign_and_keeps_what_it_has(
    home: Path, eeio: Eeio
) -> None:
    """The record that does not fit is not half there, and resume goes on once there is room."""
    results = home / "data"
    results.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "eeio-test", str(results)], check=False
    )
    if mounted.returncode != 0:
        pytest.skip("mount is not permitted here")
    try:
        done = eeio.run(
            "dummy-suite", "--meter", "none", "--name", "c", "--repetitions", "20", code=1,
        )  # fmt: skip
        assert "no space left" in done.stderr and "eeio resume c" in done.stderr
        subprocess.run(["mount", "-o", "remount,size=64m", str(results)], check=True)
        eeio("resume", "c")
        assert [record["order_index"] for record in records(home)] == list(range(60))
    finally:
        unmount(results)


def test_plan_touches_nothing(home: Path, eeio: Eeio) -> None:
    done = eeio.plan("dummy-suite")
    assert "3 experiments x 2 repetitions = 6 runs" in done.stdout
    assert list((home / "target").iterdir()) == []
    assert not (home / "data").exists() and not (home / "state").exists()


def test_doctor_reports_the_cost_of_what_is_missing(eeio: Eeio) -> None:
    body = eeio.json("doctor")
    kinds = {finding["kind"] for finding in body["findings"]}
    assert {"tool", "meter", "privilege", "device", "file system"} <= kinds
    for finding in body["findings"]:
        assert finding["found"] or (finding["cost"] and finding["remedy"]), finding
    dummy = next(f for f in body["findings"] if f["name"] == "dummy")
    assert not dummy["found"]


def test_completion_and_help_come_from_the_parser(eeio: Eeio) -> None:
    assert "eeio" in eeio("completion", "bash").stdout
    text = eeio("--help").stdout
    for command in ("run", "plan", "resume", "restore", "report", "list", "doctor"):
        assert command in text
    assert "exit codes" in text


def test_experiments_of_a_tool_that_is_not_here_are_named(home: Path, eeio: Eeio) -> None:
    suite = Path(_suite(home, "level=filesystem operation=read spatiality=sequential"))
    protocol = suite / "protocol.yaml"
    protocol.write_text(
        protocol.read_text()
        + """
optional:
  - command: no-such-tool
    variable: EEIO_MADE_UP_TOOL
    otherwise: the tool is not here, name it by EEIO_MADE_UP_TOOL
    experiments:
      - profile: eeio-dummy-1.0.0
        factors: {level: library, operation: write, spatiality: sequential, api: mpiio}
        description: with the tool
"""
    )
    report = _run(home, eeio, str(suite), "--meter", "none")
    rows = {row["level"]: row for row in _rows(report)}
    assert rows["filesystem"]["n"] > 0
    assert (rows["library"]["n"], rows["library"]["api"]) == (0, "mpiio")
    assert "name it by EEIO_MADE_UP_TOOL" in rows["library"]["reason"]
    found = eeio.plan(str(suite), environment={"EEIO_MADE_UP_TOOL": "sh"})
    assert "2 experiments" in found.stdout


def test_a_command_that_leaves_a_child_with_its_output_delays_nothing(
    home: Path, eeio: Eeio
) -> None:
    """--drop-caches-by 'sleep 33 & true' waited for the child in every run."""
    suite = _suite(home, "level=filesystem operation=read spatiality=sequential")
    done = eeio.run(
        suite, "--meter", "none", "--name", "c", "--drop-caches-by",
        f"sleep 1000 & echo $! >>{home}/left",
    )  # fmt: skip
    left = [int(word) for word in (home / "left").read_text().split()]
    for pid in left:
        os.kill(pid, signal.SIGKILL)  # they are still there
    assert left, done.stderr


@pytest.mark.parametrize("mode", ["orphan", "daemon"])
def test_what_a_tool_leaves_running_is_ended(
    home: Path, eeio: Eeio, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    script = f'setsid sleep 1000 & echo $! >"{home}/daemon"' if mode == "daemon" else ":"
    monkeypatch.setenv("EEIO_TEST_PROFILES", str(dummy.profile(home, script)))
    tool = "good" if mode == "daemon" else "orphan"
    suite = _suite(home, f"level=filesystem operation=read spatiality=sequential mode={tool}")
    eeio.run(suite, "--meter", "none", "--name", "c", "--repetitions", "1")
    (raw,) = (home / "data/eeio/results/c/raw").iterdir()
    pid = int(((raw / "orphan") if mode == "orphan" else (home / "daemon")).read_text())
    assert start_ticks(pid) is None
    left = json.loads((raw / "capture.json").read_text())["left_running"]
    assert left == (1 if mode == "daemon" else 0)  # the group of a tool is killed before


def test_test_files_are_open_to_a_server_s_user_whatever_the_umask(home: Path, eeio: Eeio) -> None:
    script = 'mkdir -p "$EEIO_DIRECTORY/eeio-scratch"; touch "$EEIO_DIRECTORY/eeio-scratch/file"\n'
    folder = dummy.profile(home, "", before=script)
    eeio.run(
        "dummy-suite", "--meter", "none", "--name", "c", "--repetitions", "1",
        before=["sh", "-c", 'umask 077; exec "$@"', "sh"],
        environment={"EEIO_TEST_PROFILES": str(folder)},
    )  # fmt: skip
    scratch = home / "target/eeio-scratch"
    assert scratch.stat().st_mode & 0o777 == 0o755
    assert (scratch / "file").stat().st_mode & 0o777 == 0o644
    # Results are the user's own business.
    assert (home / "data/eeio/results/c/runs.jsonl").stat().st_mode & 0o077 == 0


def test_a_campaign_may_have_any_name(home: Path, eeio: Eeio) -> None:
    eeio.run("dummy-suite", "--meter", "none", "--name", "lock")


def test_two_processes_cannot_write_one_campaign(home: Path, eeio: Eeio) -> None:
    arguments = ("run", "dummy-suite", "--directory", str(home / "target"), "--meter", "none")
    eeio(*arguments, "--name", "c")
    folder = home / "data/eeio/results/c"
    with store_lock(folder):
        done = eeio("resume", "c", environment={"EEIO_LOCKS": str(home)}, code=2)
    assert f"campaign c is in use by process {os.getpid()}" in done.stderr


def test_resume_overwrites_no_samples_where_a_file_is_missing(home: Path, eeio: Eeio) -> None:
    arguments = ("run", "dummy-suite", "--directory", str(home / "target"), "--meter", "modelled")
    eeio(*arguments, "--name", "c", "--allow-estimates")
    folder = home / "data/eeio/results/c"
    samples = folder / "samples"
    (samples / "power-0001.csv.gz").rename(samples / "power-0003.csv.gz")
    before = (samples / "power-0003.csv.gz").read_bytes()
    runs = folder / "runs.jsonl"
    runs.write_text("".join(runs.read_text().splitlines(keepends=True)[:-1]))
    eeio("resume", "c")
    assert sorted(path.name for path in samples.glob("*.gz")) == [
        "power-0003.csv.gz", "power-0004.csv.gz",
    ]  # fmt: skip
    assert (samples / "power-0003.csv.gz").read_bytes() == before
