"""Studies of the journal as campaigns: variants, made-up frequencies, repeating, killing."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.campaigns import records
from tests.cpufreq import bytes_of, pstate_tree
from tests.eeio_results import made
from tests.plugin import Eeio, InProcess
from tests.waiting import until

from eeio.cli import main
from eeio.errors import RejectedError
from eeio.machine import frequency
from eeio.machine.lock import drive_lock
from eeio.measure.campaign import rounds
from eeio.measure.campaign.plan import of_design
from eeio.measure.campaign.variants import study_settings
from eeio.measure.journal import delayjc
from eeio.record.design import Design, Protocol, StudyProtocol
from eeio.schemas.published import FOLDER as SCHEMAS

PROFILES = Path(__file__).parents[3] / "test-profiles"
SCHEMA = SCHEMAS / "report.schema.json"
QUICK = "{repetitions: 2, settle_s: 0, idle_s: 0, is_measurement: false}"


def _suite(home: Path, test: str, study: str) -> str:
    folder = home / "suites/made"
    folder.mkdir(parents=True)
    (folder / "protocol.yaml").write_text(
        "study: {variants: [ext4], frequencies: [all], window_us: {metadata: 500, dummy: 500}, "
        "max_resets: 64, flush_first: true, half_width: null, most_repetitions: 3}\n"
        f"presets:\n  quick: {{{QUICK[1:-1]}, {study}}}\n"
    )
    profile, _, factors = test.partition(" ")
    (folder / "suite-definition.xml").write_text(
        "<PhoronixTestSuite><SuiteInformation><Title>made</Title></SuiteInformation><Execute>"
        f"<Test>local/{profile}</Test><Arguments>{factors}</Arguments>"
        f"<Description>made: {factors}</Description></Execute></PhoronixTestSuite>"
    )
    return str(folder)


def _arguments(home: Path, suite: str, *more: str) -> list[str]:
    return [
        "run", suite, "--preset", "quick", "--directory", str(home / "target"), "--name", "c",
        "--meter", "none", *more,
    ]  # fmt: skip


def _cells(eeio: Eeio) -> list[dict[str, Any]]:
    body = eeio.json("report", "c")
    jsonschema.validate(body, json.loads(SCHEMA.read_text()))
    cells: list[dict[str, Any]] = body["cells"]
    return cells


METADATA = (
    "eeio-metadata-1.0.0 level=filesystem operation=metadata buffer=on processes=2 files=1 "
    "rounds=3 mode=fork"
)


@pytest.mark.root
def test_variants_and_frequencies_until_the_cap(
    home: Path, eeio: Eeio, monkeypatch: pytest.MonkeyPatch
) -> None:
    if delayjc.find_library() is None:
        pytest.skip("libdelayjc.so is not compiled (scripts/setup, with a C compiler)")
    monkeypatch.setenv("EEIO_TEST_PROFILES", str(PROFILES))
    tree = pstate_tree(home / "tree")
    before = bytes_of(tree)
    # No mean is ever known that well: two repetitions of each, then a third, and no fourth.
    suite = _suite(
        home, METADATA,
        "variants: [ext4, nojc, delayjc], frequencies: [lowest, highest], half_width: 1.0e-9",
    )  # fmt: skip
    eeio(*_arguments(home, suite, "--sysfs-root", str(tree)))
    assert bytes_of(tree) == before
    assert not list((home / "target").iterdir())
    cells = _cells(eeio)
    assert [(c["variant"], c["frequency_hz"]) for c in cells] == [
        (variant, hz) for variant in ("ext4", "nojc", "delayjc") for hz in (800000000, 2400000000)
    ]
    for cell in cells:
        assert (cell["n"], cell["invalid_runs"], cell["converged"]) == (3, 0, False)
        assert cell["creates_per_s"] > 0 and cell["speedup"] > 0 and cell["ratio_to_ext4"] > 0
        assert cell["children_bytes_per_s"] is None
        assert (cell["delayjc_held_mean_s"] is not None) == (cell["variant"] == "delayjc")
    runs = records(home)
    assert [run["order_index"] for run in runs] == list(range(18))
    notes = [note for run in runs for note in run["notes"] if note.startswith("frequency")]
    assert len(notes) == 18
    assert all("unverified" in note and str(tree) in note for note in notes)
    done = eeio("report", "c", "--plots", str(home / "plots"))
    assert "Journal: file creation" in done.stdout and "not converged" in done.stdout
    assert "frequency (GHz)" in (home / "plots/journal-creation.svg").read_text()
    if all(cell["commits"] is None for cell in cells):
        pytest.skip(f"journal not traced here: {cells[0]['reasons']['commits']}")
    by_variant = {cell["variant"]: cell["commits"] for cell in cells}
    assert by_variant["nojc"] == 0 and by_variant["ext4"] >= 1
    # Three rounds of two creations, which share a commit; the journal's timer may add others.
    assert by_variant["delayjc"] < 6


@pytest.mark.root
@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGKILL])
def test_killed_in_the_middle_of_a_run(home: Path, eeio: Eeio, signum: signal.Signals) -> None:
    tree = pstate_tree(home / "tree")
    before = bytes_of(tree)
    suite = _suite(
        home,
        "eeio-dummy-1.0.0 level=filesystem operation=write spatiality=sequential sleep_s=60",
        "frequencies: [1.6GHz]",
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "eeio", *_arguments(home, suite, "--sysfs-root", str(tree))],
        env=dict(os.environ), stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    limit = tree / "sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq"
    # The setting is made before the tool starts, and the tool sleeps.
    until(lambda: limit.read_text().strip() == "1600000", process)
    process.send_signal(signum)
    assert process.wait(60) == (-signum if signum == signal.SIGKILL else 128 + signum)
    if signum == signal.SIGKILL:
        assert bytes_of(tree) != before
        eeio("doctor", "restore")
    assert bytes_of(tree) == before
    assert not list((home / "target").iterdir())


@pytest.mark.slow
@pytest.mark.root
def test_fewer_repetitions_than_requested_are_not_converged(home: Path, eeio: Eeio) -> None:
    """Of three repetitions the last is taken away, as a kill would; the others agree by chance."""
    suite = _suite(home, METADATA, "repetitions: 3, half_width: 1.0e+6")
    suite_file = Path(suite) / "protocol.yaml"
    suite_file.write_text(suite_file.read_text().replace("repetitions: 2, ", ""))
    eeio(*_arguments(home, suite), environment={"EEIO_TEST_PROFILES": str(PROFILES)})
    assert [(cell["n"], cell["converged"]) for cell in _cells(eeio)] == [(3, True)]
    runs = home / "data/eeio/results/c/runs.jsonl"
    runs.write_text("".join(runs.read_text().splitlines(keepends=True)[:2]))
    assert [(cell["n"], cell["converged"]) for cell in _cells(eeio)] == [(2, False)]


@pytest.mark.root
def test_two_campaigns_on_two_disks_do_not_set_the_frequency_at_once(
    home: Path, eeio: Eeio
) -> None:
    """The second took what the first had set for the beginning, and each ran at the other's."""
    tree = pstate_tree(home / "tree")
    suite = _suite(
        home,
        "eeio-dummy-1.0.0 level=filesystem operation=write spatiality=sequential",
        "frequencies: [lowest]",
    )
    with drive_lock(frequency.lock_name(tree)):
        done = eeio(*_arguments(home, suite, "--sysfs-root", str(tree)), code=2)
        assert "processor-frequency" in done.stderr
        arguments = (
            "record",
            "frequency",
            "--sysfs-root",
            str(tree),
            "--set",
            "lowest",
            "--",
            "true",
        )
        eeio(*arguments, code=2)
    eeio(*arguments)


@pytest.mark.root
def test_a_frequency_that_is_not_reached_has_no_figures(
    home: Path, eeio: Eeio, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel took 2.4 GHz and the processor ran at 1.8: what was measured is neither's."""
    tree = pstate_tree(home / "tree")
    suite = _suite(
        home,
        "eeio-dummy-1.0.0 level=filesystem operation=write spatiality=sequential",
        "frequencies: [lowest, highest]",
    )
    monkeypatch.setattr(
        frequency,
        "verify",
        lambda hz, root: (
            frequency.Achieved(hz, 0.8e9, None)
            if hz == 800000000
            else frequency.Achieved(hz, 1.8e9, "not reached: -25.0%")
        ),
    )
    assert main(_arguments(home, suite, "--sysfs-root", str(tree))) == 3
    slow, fast = _cells(eeio)
    assert (slow["n"], slow["invalid_runs"]) == (2, 0)
    assert (fast["n"], fast["invalid_runs"]) == (0, 2)
    assert "1.8 GHz under load, not reached" in fast["reasons"]["n"]


@pytest.mark.root
def test_a_tool_that_is_not_delayed_is_no_delayjc(home: Path, eeio: Eeio) -> None:
    """The dummy never calls fsync, as a static program's calls would not be seen: its runs on
    plain ext4 count, those on delayjc do not, and the campaign goes on."""
    if delayjc.find_library() is None:
        pytest.skip("libdelayjc.so is not compiled (scripts/setup, with a C compiler)")
    suite = _suite(
        home,
        "eeio-dummy-1.0.0 level=filesystem operation=write spatiality=sequential sleep_s=0.1",
        "variants: [ext4, delayjc]",
    )
    eeio(*_arguments(home, suite), code=3)
    plain, delayed = _cells(eeio)
    assert (plain["n"], plain["invalid_runs"]) == (2, 0)
    assert (delayed["n"], delayed["invalid_runs"]) == (0, 2)
    assert "libdelayjc.so delayed no call" in delayed["reasons"]["n"]
    # Without cpufreq, and without a call to join a commit with, there is a reason and no figure.
    assert plain["frequency_hz"] is None and "frequency_hz" in plain["reasons"]
    assert plain["commits"] is None and plain["reasons"]["commits"].startswith("journal not traced")


@pytest.mark.slow
@pytest.mark.root
def test_panels_of_two_campaigns_name_theirs(home: Path, eeio: Eeio) -> None:
    suite = _suite(
        home,
        "eeio-dummy-1.0.0 level=filesystem operation=write spatiality=sequential",
        "variants: [ext4]",
    )
    for name in ("here", "there"):
        arguments = [name if word == "c" else word for word in _arguments(home, suite)]
        eeio(*arguments)
    eeio("report", "here", "there", "--plots", str(home / "plots"))
    drawn = (home / "plots/journal-throughput.svg").read_text()
    assert all(f">{name}</" in drawn for name in ("here", "there"))


@pytest.mark.root
def test_another_tree_is_found_again_from_elsewhere(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`eeio doctor restore` in another folder could put nothing back: the notes said
    `tree/sys/...`."""
    tree = pstate_tree(home / "tree")
    suite = _suite(
        home,
        "eeio-dummy-1.0.0 level=filesystem operation=write spatiality=sequential",
        "frequencies: [lowest]",
    )
    monkeypatch.chdir(home)
    roots = []
    monkeypatch.setattr(frequency, "prepare", lambda journal, root: roots.append(root))
    assert main(_arguments(home, suite, "--sysfs-root", "tree")) == 0
    assert set(roots) == {tree}


def test_without_root_it_is_rejected_before_anything_is_touched(
    home: Path, monkeypatch: pytest.MonkeyPatch, in_process: InProcess
) -> None:
    suite = _suite(home, METADATA, "variants: [nojc]")
    monkeypatch.setenv("EEIO_TEST_PROFILES", str(PROFILES))
    monkeypatch.setattr(os, "geteuid", lambda: 65534)
    done = in_process(*_arguments(home, suite), code=2)
    assert "making file systems (ext4+nojc) needs root" in done.err
    done = in_process("record", "journal", "--directory", str(home), "--", "true", code=2)
    assert "tracing the journal needs root" in done.err


def test_no_cpufreq_is_a_reason_or_a_rejection(tmp_path: Path) -> None:
    study = StudyProtocol(("ext4",), ("all",), {}, 64, True, None, 3)
    cells, reason = study_settings(study, (), (), tmp_path)
    assert [cell.frequency_hz for cell in cells] == [None]
    assert reason is not None and "no cpufreq" in reason
    with pytest.raises(RejectedError, match="no cpufreq"):
        study_settings(study, (), ("lowest",), tmp_path)


def test_frequencies_and_variants_that_are_not_there(tmp_path: Path) -> None:
    study = StudyProtocol(("ext4",), ("all",), {}, 64, True, None, 3)
    tree = pstate_tree(tmp_path)
    with pytest.raises(RejectedError, match="9 GHz cannot be reached"):
        study_settings(study, (), ("9GHz",), tree)
    with pytest.raises(RejectedError, match="no frequency"):
        study_settings(study, (), ("fast",), tree)
    with pytest.raises(RejectedError, match="variant 'xfs'"):
        study_settings(study, ("xfs",), (), tree)
    with pytest.raises(RejectedError, match="belongs to suites"):
        study_settings(None, ("ext4",), (), tree)
    cells, reason = study_settings(study, ("nojc", "ext4"), ("lowest", "1.6GHz"), tree)
    assert reason is None
    assert [(cell.variant, cell.frequency_hz) for cell in cells] == [
        ("nojc", 800_000_000), ("nojc", 1_600_000_000),
        ("ext4", 800_000_000), ("ext4", 1_600_000_000),
    ]  # fmt: skip


def test_a_fixed_number_needs_no_round() -> None:
    study = StudyProtocol(("ext4",), (), {}, 64, True, None, 300)
    protocol = Protocol(2, 0.0, 0.0, False, study=study)
    design = replace(made.design("c", 0), protocol=protocol, experiments=())
    assert rounds.without_known_mean(of_design(design), ()) == ()
    assert Design.from_json(json.loads(json.dumps(design.to_json()))) == design
