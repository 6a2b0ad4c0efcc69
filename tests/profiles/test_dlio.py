"""eeio-dlio with the real DLIO, if it is installed, and with a stand-in that misbehaves."""

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from eeio.measure.profiles import suite as suites
from eeio.record import tools
from tests.executables import executable
from tests.profiles.harness import PROFILES, Installed, Installer

pytestmark = pytest.mark.tools


FACTORS = {"workload": "unet3d", "files": "14", "record_size": "1m", "accelerator": "a100"}
CHECKPOINT = {"workload": "checkpoint", "checkpoint_size": "7m", "checkpoints": "2"}


def arguments_of(factors: dict[str, str]) -> list[str]:
    return [f"{key}={value}" for key, value in factors.items()]


def test_cycle(installed: Installer, tmp_path: Path) -> None:
    """DLIO's samples/s and ours agree within 1 %, or the row is invalid and says so."""
    profile = installed("dlio")
    profile.script("pre.sh", *arguments_of(FACTORS))
    data = [p for p in profile.directory.rglob("*.npz") if p.is_file()]
    assert len(data) == 14
    capture = profile.capture(tmp_path / "out", FACTORS)
    assert capture.exit_code == 0, capture.text("stderr.txt")
    (phase,) = tools.parse("dlio", capture).phases
    assert (phase.name, phase.operation) == ("train", "read")
    assert phase.bytes_moved == sum(path.stat().st_size for path in data)
    metrics = phase.metrics
    summary = json.loads((tmp_path / "out/dlio/summary.json").read_text())["metric"]
    assert metrics["operations"] == 14
    assert metrics["accelerator_utilization_ratio"] == pytest.approx(
        summary["train_au_mean_percentage"] / 100
    )
    (theirs,) = summary["train_throughput_samples_per_second"]
    assert metrics["dlio_samples_per_s"] == pytest.approx(theirs)
    if not any("DLIO reports" in reason for reason in phase.invalid):
        assert metrics["operations_per_s"] == pytest.approx(theirs, rel=0.01)
    if not any("came from a cache" in reason for reason in phase.invalid):
        assert metrics["fetched_bytes"] >= 0.98 * phase.bytes_moved
    # The data set stays for the next run with the same factors.
    before = {path: path.stat().st_mtime_ns for path in data}
    profile.script("pre.sh", *arguments_of(FACTORS))
    assert {path: path.stat().st_mtime_ns for path in data} == before
    profile.clean_up()


def test_one_step_per_epoch_has_no_utilization(installed: Installer, tmp_path: Path) -> None:
    """DLIO leaves out the first step of an epoch, and reports 0 if there is no other."""
    profile = installed("dlio")
    factors = {"workload": "resnet50", "files": "400", "record_size": "1k"}
    profile.script("pre.sh", *arguments_of(factors))
    capture = profile.capture(tmp_path / "out", factors)
    assert capture.exit_code == 0, capture.text("stderr.txt")
    result = tools.parse("dlio", capture)
    assert "accelerator_utilization_ratio" not in result.phases[0].metrics
    assert any("no accelerator utilization" in note for note in result.notes)
    profile.clean_up()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("factors", "samples"),
    [
        ({"workload": "resnet50", "files": "400", "record_size": "4k", "epochs": "2"}, 800),
        ({"workload": "cosmoflow", "files": "8", "record_size": "1m", "read_threads": "1"}, 8),
    ],
)
def test_other_patterns(
    installed: Installer, tmp_path: Path, factors: dict[str, str], samples: int
) -> None:
    profile = installed("dlio")
    profile.directory = tmp_path / "a 'disk', ="  # Hydra has a grammar of its own
    profile.directory.mkdir()
    profile.environment["EEIO_DIRECTORY"] = str(profile.directory)
    profile.script("pre.sh", *arguments_of(factors))
    capture = profile.capture(tmp_path / "out", factors)
    assert capture.exit_code == 0, capture.text("stderr.txt")
    (phase,) = tools.parse("dlio", capture).phases
    assert phase.metrics["operations"] == samples
    assert len(phase.stretches) == (2 if "epochs" in factors else 0)
    profile.clean_up()


@pytest.mark.slow
def test_checkpoints(installed: Installer, tmp_path: Path) -> None:
    profile = installed("dlio")
    profile.script("pre.sh", *arguments_of(CHECKPOINT))
    capture = profile.capture(tmp_path / "out", CHECKPOINT)
    assert capture.exit_code == 0, capture.text("stderr.txt")
    written, read = tools.parse("dlio", capture).phases
    assert (written.name, written.operation) == ("checkpoint", "write")
    assert (read.name, read.operation) == ("restore", "read")
    assert written.includes_flush and len(written.stretches) == 2
    for phase in (written, read):
        assert phase.bytes_moved == pytest.approx(2 * (7 << 20), rel=0.01)
        assert phase.metrics["operations"] == 2
    files = list(profile.directory.rglob("*.pt"))
    assert len(files) == 4
    assert any(files[0].read_bytes()[1 << 19 :]), "DLIO's own are zeros"
    profile.clean_up()


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["program", "reader"])
def test_nothing_runs_on_when_a_process_dies(
    installed: Installer, tmp_path: Path, victim: str
) -> None:
    profile = installed("dlio")
    factors = {**FACTORS, "epochs": "1000"}
    profile.script("pre.sh", *arguments_of(factors))
    wrapper = subprocess.Popen(
        [str(profile.home / "eeio-dlio"), *arguments_of(factors)], cwd=profile.home,
        env={**profile.environment, "EEIO_OUTPUT_DIR": str(tmp_path / "out")},
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip

    def ours() -> list[int]:
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                text = path.read_text()
            except OSError:
                continue
            if "workload.py" in text and str(profile.directory) in text:
                found.append(int(path.parent.name))
        return sorted(found)

    try:
        deadline_s = time.monotonic() + 60
        while len(found := ours()) < 5 and time.monotonic() < deadline_s:
            time.sleep(0.05)
        parents = {int(Path(f"/proc/{pid}/stat").read_text().split()[3]): pid for pid in found}
        program = next(pid for pid in found if pid in parents)
        os.kill(program if victim == "program" else max(found), signal.SIGKILL)
        _, reported = wrapper.communicate(timeout=300)
        assert wrapper.returncode != 0
        if victim == "reader":
            assert reported.splitlines()[-1].startswith("eeio-dlio: DLIO stopped: RuntimeError: ")
        while ours() and time.monotonic() < deadline_s + 60:
            time.sleep(0.05)
        assert ours() == []
    finally:
        wrapper.kill()
        wrapper.communicate(timeout=300)
    profile.clean_up()


def test_without_dlio_it_reports_what_to_do(tmp_path: Path) -> None:
    profile = Installed("dlio", tmp_path / "home", tmp_path / "disk")
    remedy = "run `eeio setup --ai`, or name the program dlio_benchmark by EEIO_DLIO"
    done = profile.install(EEIO_DLIO="/nowhere/dlio_benchmark", code=1)
    assert f"EEIO_DLIO=/nowhere/dlio_benchmark: no such program; {remedy}" in done.stderr
    executable(tmp_path / "dlio_benchmark", f"#!{sys.executable}\n")
    done = profile.install(EEIO_DLIO=str(tmp_path / "dlio_benchmark"), code=None)
    (line,) = done.stderr.splitlines()
    assert done.returncode == 1 and "cannot be used: eeio-dlio: DLIO cannot be started" in line


def test_the_suite_leaves_it_out_and_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    (optional,) = suites.load(PROFILES.parent / "suites/eeio-ai").optional
    monkeypatch.setenv("EEIO_DLIO", "/nowhere/dlio_benchmark")
    assert not optional.is_found()
    assert "eeio setup --ai" in optional.otherwise
    assert [entry.factors["workload"] for entry in optional.entries] == [
        "unet3d", "resnet50", "cosmoflow", "checkpoint",
    ]  # fmt: skip


STAND_IN = """
import json, os, sys, time, types
from pathlib import Path

class DLIOMPI:
    @staticmethod
    def get_instance():
        return types.SimpleNamespace(initialize=lambda: None, finalize=lambda: None)

class StatsCounter:
    batch_size = 7
    def start_block(self, epoch, block): pass
    def end_block(self, epoch, block, steps): pass
    def batch_processed(self, *words): pass
    def start_ckpt(self, *words): pass
    def end_ckpt(self, *words): pass

def run_benchmark():
    told = dict(word.lstrip("+").split("=", 1) for word in sys.argv[1:])
    case = os.environ["CASE"]
    if case.startswith("raise "):
        raise ValueError(case.removeprefix("raise "))
    if case == "exit":
        sys.exit(-1)
    if case == "memory":
        raise MemoryError
    if told["workload.workflow.generate_data"] == "True":
        data = Path(told["workload.dataset.data_folder"].strip("'"))
        data.mkdir()
        for i in range(int(told["workload.dataset.num_files_train"])):
            (data / f"{i}.npz").write_bytes(b"x" * 65536)
        return
    stats = StatsCounter()
    stats.start_block(1, 1)
    started = time.monotonic()
    stats.batch_processed()
    if case != "short":
        stats.batch_processed()
    stats.end_block(1, 1, 2)
    rate = 14 / (time.monotonic() - started)
    out = Path(told["workload.output.folder"].strip("'"))
    out.mkdir(parents=True)
    metric = {"train_throughput_samples_per_second": [rate * (2 if case == "faster" else 1)],
              "train_au_mean_percentage": 50.0}
    (out / "summary.json").write_text("{" if case == "cut" else json.dumps({"metric": metric}))
"""


@pytest.fixture
def stand_in(tmp_path: Path) -> Installed:
    site = tmp_path / "site"
    package = site / "dlio_benchmark"
    (package / "data_loader").mkdir(parents=True)
    for name in ("__init__.py", "data_loader/__init__.py", "data_loader/torch_data_loader.py"):
        (package / name).touch()
    (package / "main.py").write_text(STAND_IN)
    for name, version in (("dlio_benchmark", "2.0.0"), ("torch", "1")):
        (site / f"{name}-{version}.dist-info").mkdir()
        metadata = site / f"{name}-{version}.dist-info/METADATA"
        metadata.write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    python = executable(
        tmp_path / "python", f'#!/bin/sh\nshift\nPYTHONPATH="{site}" exec {sys.executable} "$@"\n'
    )
    program = executable(tmp_path / "dlio_benchmark", f"#!{python}\n")
    profile = Installed("dlio", tmp_path / "home", tmp_path / "a disk, =")
    profile.environment["CASE"] = "well"
    profile.install(EEIO_DLIO=str(program))
    return profile


@pytest.mark.parametrize(
    ("case", "reported"),
    [
        ("raise Could not override 'workload.x'.\nKey 'x' is not in struct",
         "DLIO stopped: ValueError: Could not override 'workload.x'. Key 'x' is not in struct"),
        ("exit", "DLIO ended with exit code -1"),
        ("memory", "too little memory: give fewer read_threads"),
        ("cut", "summary.json: not a summary of DLIO: JSONDecodeError"),
    ],
)  # fmt: skip
def test_an_error_of_dlio_is_one_line(
    stand_in: Installed, tmp_path: Path, case: str, reported: str
) -> None:
    if case != "cut":
        done = stand_in.script("pre.sh", *arguments_of(FACTORS), CASE=case, code=2)
        (line,) = done.stderr.splitlines()
        assert line.startswith("eeio-dlio: ") and reported in line
    stand_in.script("pre.sh", *arguments_of(FACTORS))
    stand_in.environment["CASE"] = case
    capture = stand_in.capture(tmp_path / "out", FACTORS)
    (line,) = capture.text("stderr.txt").splitlines()
    assert capture.exit_code == 1 and line.startswith("eeio-dlio: ") and reported in line
    stand_in.clean_up()


@pytest.mark.parametrize(
    ("case", "reported"), [("faster", "DLIO reports"), ("short", "DLIO read 7 samples of 14")]
)
def test_what_contradicts_is_invalid(
    stand_in: Installed, tmp_path: Path, case: str, reported: str
) -> None:
    stand_in.script("pre.sh", *arguments_of(FACTORS))
    stand_in.environment["CASE"] = case
    capture = stand_in.capture(tmp_path / "out", FACTORS)
    assert capture.exit_code == 0, capture.text("stderr.txt")
    (phase,) = tools.parse("dlio", capture).phases
    assert any(reported in reason for reason in phase.invalid)
    # The stand-in reads no file.
    assert any("0 of 917504 bytes were fetched from storage" in r for r in phase.invalid)


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (["workload=dlrm"], "workload=dlrm: give one of: unet3d resnet50 cosmoflow checkpoint"),
        (["files=15"], "files=15: give a multiple of 7, which is unet3d's batch"),
        (["unet3d=15"], "files=15: give a multiple of 7"),
        (["cosmoflow=3", "files=many"], "files=many: give a whole number"),
        (["accelerator=tpu"], "accelerator=tpu: give one of: h100 a100"),
        (["workload=checkpoint", "operation=read"], "workload=checkpoint is operation=mixed"),
        (["workload=checkpoint", "files=7"], "not for workload=checkpoint"),
        (["flush=each"], "flush=each: workload=unet3d does not write"),
        (["workload=checkpoint", "checkpoint_size=1000000g"], "bytes of memory, "),
        (["record_size=1g", "read_threads=256"], "give fewer read_threads or a smaller"),
        (["nproc=2"], "unknown factor 'nproc=2'"),
    ],
)
def test_what_cannot_be_is_rejected(
    stand_in: Installed, arguments: list[str], reported: str
) -> None:
    done = stand_in.script("pre.sh", *arguments, code=2)
    assert reported in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_lines_for_pts(stand_in: Installed, tmp_path: Path) -> None:
    stand_in.script("pre.sh", *arguments_of(FACTORS))
    log = tmp_path / "pts.log"
    stand_in.run(*arguments_of(FACTORS), LOG_FILE=str(log))
    labels = [line.partition(":")[0] for line in log.read_text().splitlines() if "EEIO" in line]
    assert sorted(labels) == ["EEIO train bandwidth", "EEIO train rate"]


def test_samples_of_others_are_made_anew(stand_in: Installed) -> None:
    """DLIO reads samples with pickle, which runs their code: those of a drive that somebody else
    has prepared were read, as root."""
    stand_in.script("pre.sh", *arguments_of(FACTORS))
    scratch = stand_in.directory / "eeio-scratch"
    text = (scratch / "eeio-dlio.ready").read_text()
    shutil.rmtree(scratch)
    (scratch / "eeio-dlio.data").mkdir(parents=True)
    (scratch / "eeio-dlio.data/planted.npz").touch()
    (scratch / "eeio-dlio.ready").write_text(text)
    done = stand_in.run(*arguments_of(FACTORS), code=2)
    assert "not prepared for these factors" in done.stderr
    stand_in.script("pre.sh", *arguments_of(FACTORS))
    assert not (scratch / "eeio-dlio.data/planted.npz").exists()
    stand_in.clean_up()


def test_data_of_other_factors_are_not_used(stand_in: Installed) -> None:
    stand_in.script("pre.sh", *arguments_of(FACTORS))
    done = stand_in.run("workload=unet3d", "files=7", "record_size=1m", code=2)
    assert "not prepared for these factors" in done.stderr
    shutil.rmtree(stand_in.directory / "eeio-scratch")


@pytest.mark.parametrize(
    ("got", "invalid", "note"),
    [
        (36_864, "36864 of 40960 bytes were fetched", None),
        (40_960, None, None),
        (41_700, None, None),
        (46_080, None, "12% more bytes were fetched than the files have"),
    ],
)
def test_bytes_that_are_fetched_twice_are_noted(
    tmp_path: Path, got: int, invalid: str | None, note: str | None
) -> None:
    """As where another program drops the page cache, with what was read ahead."""
    spec = importlib.util.spec_from_file_location(
        "workload", PROFILES / "eeio-dlio-1.0.0/workload.py"
    )
    assert spec is not None and spec.loader is not None
    workload = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(workload)
    file = tmp_path / "sample"
    file.write_bytes(bytes(40_900))  # ten pages
    row: dict[str, Any] = {"name": "train", "metrics": {}, "invalid": []}
    notes = workload.check_fetched(row, got, [file])
    assert row["metrics"] == {"fetched_bytes": got}
    for reported, found in ((invalid, row["invalid"]), (note, notes)):
        assert reported in str(found) if reported else found == []
