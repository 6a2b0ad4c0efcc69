"""What a trial's output tells: kept with the times it came, read, and taken from result files."""

import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from tests.simulators.powercap import FakeRapl

from eeio.analysis.observation import Missing
from eeio.errors import EeioError, SchemaError
from eeio.pts import trial as pts_trial
from eeio.pts.composite import ResultEntry
from eeio.pts.entry import Values, own_of
from eeio.pts.session import bytes_per_j, measured
from eeio.record.run import CacheLayers, Experiment, Run
from eeio.record.tools.capture import Capture
from eeio_power.errors import PowerError
from eeio_power.session import OutputFolder, reported

# As a tool writes: a piece, a pause, another piece; then the file of its own that says it all.
TOOL = """
import sys, time
from pathlib import Path
folder = Path(sys.argv[1])
with (folder / "stderr.txt").open("w") as words:
    for word in ("Writing intelligently...", "done\\n"):
        words.write(word)
        words.flush()
        time.sleep(0.3)
"""


def test_output_is_stamped_as_it_comes(tmp_path: Path) -> None:
    output = OutputFolder(tmp_path / "now")
    output.begin()
    start_s = time.monotonic()
    subprocess.run([sys.executable, "-c", TOOL, str(tmp_path / "now")], check=True, timeout=300)
    end_s = time.monotonic()
    kept = output.keep("00003", {"buffer": "off"}, start_s, end_s, time.time() - 1)
    capture = Capture.load(kept)
    assert kept == tmp_path / "00003" and not (tmp_path / "now").exists()
    assert capture.factors == {"buffer": "off"}
    assert [(s.stream, s.end_offset) for s in capture.stamps] == [("stderr", 24), ("stderr", 29)]
    first_s, second_s = (stamp.monotonic_s for stamp in capture.stamps)
    assert start_s < first_s < second_s < end_s
    assert second_s - first_s == pytest.approx(0.3, abs=0.1)
    output.begin()
    assert list((tmp_path / "now").iterdir()) == []
    output.end()
    output.end()


def test_a_command_that_fails_is_reported_with_its_last_message(tmp_path: Path) -> None:
    say = [sys.executable, "-c"]
    assert reported([*say, "print('{\"phases\": []}')"], tmp_path) == {"phases": []}
    with pytest.raises(PowerError, match="no such thing"):
        reported([*say, "raise SystemExit('no such thing')"], tmp_path)
    with pytest.raises(PowerError, match="exit code 0"):
        reported([*say, "print('[]')"], tmp_path)
    with pytest.raises(PowerError, match="not one label for each phase"):
        reported([*say, 'print(\'{"phases": [], "labels": [1]}\')'], tmp_path)
    with pytest.raises(PowerError, match="Expecting value"):
        reported([*say, "print('rubbish')"], tmp_path)
    with pytest.raises(PowerError, match="nowhere"):
        reported(["/nowhere/python"], tmp_path)


REPORT_SCRIPT = """
import json, sys
from pathlib import Path
capture = json.loads((Path(sys.argv[1]) / "capture.json").read_text())
print(json.dumps({"phases": [{"name": "x", "start_s": 0.1, "end_s": 0.4},
                             {"name": "y", "start_s": None, "end_s": None}],
                  "labels": ["X", "Y"],
                  "factors": capture["factors"]}))
"""


def test_the_session_gives_each_phase_its_energy(tmp_path: Path) -> None:
    with (
        FakeRapl(tmp_path / "rapl", power_w=lambda _: 50.0),
        subprocess.Popen(
            [sys.executable, "-m", "eeio_power.session", "--samples", str(tmp_path / "s.gz"),
             "--meter", f"rapl,root={tmp_path}/rapl"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        ) as process,
    ):  # fmt: skip
        assert process.stdin is not None and process.stdout is not None

        def ask(request: object) -> dict[str, Any]:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            return dict(json.loads(process.stdout.readline()))

        process.stdout.readline()
        now = str(tmp_path / "now")
        answers = []
        for tell in ([sys.executable, "-c", REPORT_SCRIPT], ["/nowhere/eeio"]):
            assert ask({"do": "begin", "output": now, "arguments": "a=1 'b=2 3' c"}) == {}
            start_s = time.monotonic()
            with subprocess.Popen(["sleep", "0.6"]) as tool:
                ask({"do": "watch", "pid": tool.pid, "start_s": start_s})
            answers.append(ask({"do": "end", "keep": "00000", "tell": tell}))
        process.stdin.close()
        assert process.wait(20) == 0
    good, bad = answers
    x, y = good["told"]["phases"]
    assert good["told"]["factors"] == {"a": "1", "b": "2 3"}
    assert sum(reading["energy_j"] for reading in x["energy"]) == pytest.approx(15, rel=0.2)
    assert y["energy"] == [] and "labels" not in good["told"]
    assert good["labels"] == ["X", "Y"]
    assert "told" not in bad and "/nowhere/eeio" in bad["not_told"]
    assert bad["readings"], "the energy of the whole trial is there all the same"


def test_a_real_output_reports_its_phases_and_the_drive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """IOzone's own report (its numbers are made up; the form is that of 3.489)."""
    monkeypatch.delenv("EEIO_DIRECTORY", raising=False)
    # Without the second test of each kind (-+n).
    row = "  " + "131072".rjust(14) + "4096".rjust(8) + "1310720".rjust(9) + "0".rjust(9)
    (tmp_path / "stdout.txt").write_text(
        "\tIozone: Performance Test of File I/O\n\tInclude fsync in write timing\n"
        "\tCommand line used: iozone -i 0 -+n\n\tOutput is in kBytes/sec\n"
        "              kB  reclen    write  rewrite    read    reread    read     write     read   "
        "rewrite      read   fwrite frewrite    fread  freread\n"
        f"{row}\n\niozone test complete.\n"
    )
    Capture(tmp_path, {"level": "filesystem", "operation": "write"}, 0, 10.0, 12.0, 0.0).save()
    arguments = ["local/eeio-iozone-1.0.0", "quick", str(tmp_path), str(tmp_path)]
    assert pts_trial.main(arguments) == 0
    body = json.loads(capsys.readouterr().out)
    (phase,) = body["phases"]
    assert (phase["name"], phase["bytes_moved"]) == ("write", 131072 * 1024)
    assert phase["end_s"] - phase["start_s"] == pytest.approx(0.1)
    assert body["disk_cache_found"] in ("on", "off", None)
    assert body["device"] or body["device_reason"]
    assert body["labels"] == ["Write"]
    assert body["experiment"]["tool"] == "iozone"
    (tmp_path / "stdout.txt").write_text("")
    assert pts_trial.main(arguments) == 1
    assert "empty" in capsys.readouterr().err
    with pytest.raises(EeioError, match="no test profile"):
        pts_trial.tell("local/nobody-1.0.0", "quick", tmp_path, tmp_path)


def efficiencies(*phases: dict[str, Any]) -> list[tuple[str, float | str]]:
    """Domain, and MB/J or why there is none, of each reading of these phases."""
    labels = [f"Read {place}" for place in range(len(phases))]
    answer = {
        "readings": [], "told": {"phases": list(phases)}, "labels": labels,
        "experiment": EXPERIMENT.to_json(),
    }  # fmt: skip
    known = measured(json.loads(json.dumps(answer))).phases or {}
    values = [
        (reading.domain, bytes_per_j(known[label], reading.key))
        for label in labels
        for reading in known[label].window.energy
    ]
    return [
        (domain, value.reason if isinstance(value, Missing) else value / 1e6)
        for domain, value in values
    ]


def test_the_efficiency_of_a_phase_is_that_of_the_run_record() -> None:
    read = {**PHASE, "end_s": 2.5, "bytes_moved": 2_000_000}
    assert efficiencies(PHASE) == [("package", pytest.approx(1 / 80))]
    ((_, partial),) = efficiencies({**read, "bandwidth_bytes_per_s": 2e6})
    assert "I/O covers 50% of the power window" in str(partial)
    assert efficiencies({**PHASE, "invalid": ["too short", "no"]}) == [("package", "too short; no")]
    missing = measured(
        {"told": {"phases": [{**PHASE, "energy": []}]}, "labels": ["Read"],
         "experiment": EXPERIMENT.to_json()}
    )  # fmt: skip
    assert missing.phases is not None
    assert bytes_per_j(missing.phases["Read"], ("package", "rapl", "measured")) == Missing(
        "no power of read: told"
    )


def test_the_efficiency_of_a_phase_is_its_bytes_over_its_own_energy() -> None:
    good = {**READING, "power_w": 20.0}
    none = {
        **READING, "domain": "dram", "power_w": None, "energy_j": None, "uncertainty_j": None,
        "valid": False, "reasons": ["silent"],
    }  # fmt: skip
    still = {**READING, "domain": "device", "power_w": 0.0}
    unseen = {**READING, "domain": "module", "coverage": 0.3}
    unknown = {**READING, "domain": "system", "uncertainty_j": 41.0}
    # 4 s at 20 W.
    phase = {**PHASE, "end_s": 4.5, "bandwidth_bytes_per_s": 6e7, "bytes_moved": 240_000_000}
    until = {
        "end_s": 6.5, "source": "fsync", "bandwidth_bytes_per_s": 4e7,
        "energy": [{**good, "energy_j": 120.0}],
    }  # fmt: skip
    written = {**phase, "operation": "write", "until_durable": until}
    rate_only = {**phase, "bytes_moved": None, "energy": [good]}
    values = efficiencies({**phase, "energy": [good, none, still, unseen, unknown]}, rate_only,
                          written)  # fmt: skip
    assert values == [
        ("package", pytest.approx(3.0)),
        ("dram", "silent"),
        ("device", "rapl: the mean power of 0 W is not above 0: not ranked and not compared"),
        ("module",
         "rapl: readings cover 30% of the window, less than 50%: not ranked and not compared"),
        ("system", "the energy is known only to ±51 %: the window is too short for this meter"),
        ("package", pytest.approx(3.0)),
        ("package", pytest.approx(2.0)),
    ]  # fmt: skip


EXPERIMENT = Experiment("filesystem", "fio", "read", "random", 4096, CacheLayers("off"))


def run_of(**changes: Any) -> Run:
    complete: dict[str, Any] = {
        "experiment": EXPERIMENT, "repetition": 1, "order_index": 0, "preset": "quick",
        "started_utc": "2024-01-01T00:00:00+00:00", "started_monotonic_s": 1.0, "duration_s": 2.0,
        "exit_code": 0, "phases": (), "raw": "",
    }  # fmt: skip
    return Run(**{**complete, **changes})


READING = {"domain": "package", "meter": "rapl", "kind": "measured", "power_w": 80.0,
           "energy_j": 80.0, "uncertainty_j": 4.0, "coverage": 1.0, "largest_gap_s": 0.1,
           "samples": 10, "lost": 0, "valid": True, "reasons": []}  # fmt: skip
PHASE = {"name": "read", "operation": "read", "spatiality": "random", "request_size_bytes": 4096,
         "bytes_moved": 1_000_000, "bandwidth_bytes_per_s": 1e6, "start_s": 0.5, "end_s": 1.5,
         "window_source": "told", "metrics": {}, "invalid": [], "energy": [READING]}  # fmt: skip
REPORTED = {"phases": [PHASE], "context": [{"name": "x", "value": 1.0, "unit": "us"}],
            "notes": ["n"], "device": "vda", "device_reason": None,
            "disk_cache_found": "on"}  # fmt: skip


def test_a_record_takes_what_was_reported_and_reports_it_again() -> None:
    own = {"trial-of-value": [1], "trials": 2, "told": [None, REPORTED]}
    values = own_of(ResultEntry("here", "1", json={"eeio": own}))
    assert isinstance(values, Values)
    assert values.reported_of(0) is values.reported_of(5) is None
    reported_body = values.reported_of(1)
    run = pts_trial.with_reported(run_of(), reported_body)
    assert (run.device, run.disk_cache_found, run.notes) == ("vda", "on", ("n",))
    assert run.phases[0].energy[0].energy_j == 80.0
    reported_again = json.loads(json.dumps(pts_trial.telling(run)))
    (reading,) = reported_again["phases"][0]["energy"]
    # What an older record does not say is empty, and then it is as it was.
    later_of_reading = ("includes", "leaves_out", "doubtful", "rule")
    assert [reading.pop(key) for key in later_of_reading] == [[], [], False, None]
    (phase,) = reported_again["phases"]
    assert phase.pop("includes_flush") is False and phase.pop("stretches") == []
    observed = ("spatiality_seen", "spatiality_seen_by", "spatiality_seen_reason")
    later = ("until_durable", "durable_reason", "edges_unsure_s", *observed)
    assert [phase.pop(key) for key in later] == [None] * 6
    assert reported_again == REPORTED
    failed = run_of(validity=("the trial failed under PTS",))
    assert pts_trial.with_reported(failed, reported_body) == failed
    assert pts_trial.telling(failed) is None
    assert pts_trial.with_reported(run_of(), None) == run_of()


@pytest.mark.parametrize(
    "damage",
    [{"phases": None}, {"phases": [{}]}, {"phases": ["x"]}, {"context": [{"name": "x"}]},
     {"phases": [{**PHASE, "energy": [{"domain": "package"}]}]}, {"notes": None}],
)  # fmt: skip
def test_damaged_text_is_rejected(damage: dict[str, Any]) -> None:
    with pytest.raises(SchemaError, match="damaged"):
        pts_trial.with_reported(run_of(), {**REPORTED, **damage})


def test_figures_that_contradict_each_other_make_the_trial_invalid() -> None:
    reported_body: Any = {**REPORTED, "phases": [{**PHASE, "bandwidth_bytes_per_s": 1e7}]}
    run = pts_trial.with_reported(run_of(), reported_body)
    assert run.phases == ()
    (reason,) = run.validity
    assert "read: 1000000 bytes at 1e+07 bytes/s take 0.1 s, but its window is 1 s" in reason
    marked: Any = {
        **REPORTED,
        "phases": [{**reported_body["phases"][0], "invalid": ["it was stopped"]}],
    }
    assert pts_trial.with_reported(run_of(), marked).phases[0].validity == ("it was stopped",)


def test_no_thread_is_left(tmp_path: Path) -> None:
    before = threading.active_count()
    output = OutputFolder(tmp_path / "now")
    output.begin()
    output.end()
    assert threading.active_count() == before
