"""Imported results of MLPerf Storage: published ones, and edited copies of them."""

import json
import shutil
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.eeio.importing.importer import Importer
from tests.plugin import PARSERS, InProcess

from eeio.exchange.importing import results

OUTPUTS = PARSERS / "mlpstorage/outputs"
GIB = 1 << 30


def copied(folder: Path, run: str, **changes: Any) -> Path:
    """A run with other values in its summary; None removes a key, `metric` is updated."""
    shutil.copytree(OUTPUTS / run, folder / "run1")
    path = folder / "run1/summary.json"
    body = json.loads(path.read_text())
    metric = body["metric"] | changes.pop("metric", {})
    body |= {**changes, "metric": {k: v for k, v in metric.items() if v is not None}}
    path.write_text(json.dumps({k: v for k, v in body.items() if v is not None}))
    return folder / "run1"


def only_file(folder: Path) -> results.FoundFile:
    (file,) = results.found([folder])
    return file


def log_of(folder: Path, steps: Sequence[tuple[str, float]], until: str) -> Path:
    """A power log with a sample each second: W from each time on."""
    path, lines = folder / "watts.csv", ["time,power_w"]
    moment = datetime.fromisoformat(steps[0][0])
    while moment < datetime.fromisoformat(until):
        watts = [w for start, w in steps if datetime.fromisoformat(start) <= moment][-1]
        lines.append(f"{moment.isoformat()}+00:00,{watts}")
        moment += timedelta(seconds=1)
    path.write_text("\n".join(lines) + "\n")
    return path


COLUMNS = "map=time:time+power_w:power_w,lag_s=0,averages_s=1"


def with_power(imported: Importer, source: Path, log: Path, *more: object) -> dict[str, Any]:
    arguments = (source, "--power", f"csv:{log},{COLUMNS}", "--power-offset", "0", *more)
    body: dict[str, Any] = imported(*arguments)
    return body


def test_published_runs_are_repetitions_of_one_training() -> None:
    files = results.found([OUTPUTS / "unet3d"])
    assert [(file.tool, file.rejected) for file in files] == [("mlpstorage", None)] * 2
    (campaign,) = results.campaigns(files, "x")
    assert campaign.machine.hostname == "ip-172-26-4-91"
    assert [run.repetition for run in campaign.runs] == [1, 2]
    (phase,) = campaign.runs[0].phases
    # train_io_mean_MB_per_second of run1; DLIO divides by 1024 twice.
    assert phase.bandwidth_bytes_per_s == pytest.approx(5770.200608702833 * (1 << 20))
    assert phase.metrics["operations_per_s"] == 41.27195057766862
    assert phase.metrics["accelerator_utilization_ratio"] == pytest.approx(0.9624700229084856)
    assert campaign.runs[0].valid and campaign.runs[0].experiment.processes == 2
    (settings,) = campaign.settings.values()
    assert (settings["model"], settings["batch size"]) == ("unet3d", "7")


def test_energy_is_of_the_epochs_and_not_of_the_three_minutes_before(
    tmp_path: Path, imported: Importer, in_process: InProcess
) -> None:
    """This run began at 04:15:22, and its first epoch at 04:18:21."""
    log = log_of(
        tmp_path, [("2024-08-17T04:14:00", 200.0), ("2024-08-17T04:18:20", 400.0)],
        "2024-08-17T04:24:00",
    )  # fmt: skip
    with_power(imported, OUTPUTS / "cosmoflow", log, "--drives", "10", "--name", "ai")
    (row,) = imported.rows("ai-client1")
    assert row["power_w"]["median"] == pytest.approx(400.0)
    assert row["energy_j"]["median"] == pytest.approx(400 * 199.537, rel=1e-4)
    assert row["energy_j_per_operation"]["median"] == pytest.approx(400 / 11975.082378032188)
    mb_per_j = 32302.23927985263 * 1.048576 / 400
    assert row["efficiency_bytes_per_j"]["median"] == pytest.approx(mb_per_j * 1e6)
    per_drive = row["metrics"]["efficiency_per_drive_bytes_per_j"]["median"]
    assert per_drive == pytest.approx(mb_per_j * 1e5)
    assert "not a result of MLPerf" in in_process("report", "ai-client1").out


def test_without_the_number_of_drives_the_figure_of_a_drive_is_missing(
    tmp_path: Path, imported: Importer
) -> None:
    log = log_of(tmp_path, [("2024-08-17T04:14:00", 400.0)], "2024-08-17T04:24:00")
    with_power(imported, OUTPUTS / "cosmoflow", log, "--name", "ai")
    (row,) = imported.rows("ai-client1")
    assert "efficiency_per_drive_bytes_per_j" not in row.get("metrics", {})
    reason = row["reasons"]["metrics.efficiency_per_drive_bytes_per_j"]
    assert reason == "the number of drives was not given (eeio import --drives N)"


def test_a_summary_alone_has_the_time_of_its_run_if_its_epochs_fill_it(tmp_path: Path) -> None:
    for name, within_s in (("unet3d", 0.01), ("cosmoflow", None)):
        folder = tmp_path / name
        folder.mkdir()
        (run, *_) = sorted((OUTPUTS / name).iterdir())
        shutil.copy(run / "summary.json", folder)
        (phase,) = only_file(folder).reports[0].phases
        assert (phase.starts_within_s, phase.stretches) == (within_s, ())


def test_a_summary_without_its_end_has_no_energy(tmp_path: Path, imported: Importer) -> None:
    run = copied(tmp_path, "unet3d/run1", end=None)
    (run / "per_epoch_stats.json").unlink()
    log = log_of(tmp_path, [("2024-08-29T12:20:00", 90.0)], "2024-08-29T12:50:00")
    arguments = (run, "--power", f"csv:{log},{COLUMNS}", "--power-offset", "0", "--dry-run")
    body = imported(*arguments, code=3)
    (phase,) = body["files"][0]["reports"][0]["phases"]
    (reading,) = phase["energy"]
    assert reading["power_w"] is None
    assert "reports no start of this phase" in " ".join(reading["reasons"])


def test_local_times_need_the_offset(tmp_path: Path, imported: Importer) -> None:
    log = log_of(tmp_path, [("2024-08-17T04:14:00", 400.0)], "2024-08-17T04:24:00")
    arguments = (OUTPUTS / "cosmoflow", "--power", f"csv:{log},{COLUMNS}", "--dry-run")
    body = imported(*arguments, code=3)
    assert "--power-offset" in body["power"][0]["ahead_source"]


@pytest.mark.parametrize(
    ("verdict", "reason"),
    [("fail", "were used 96.2% of the time, less than"), (None, "does not state whether the run")],
)
def test_a_training_without_success_is_invalid(
    tmp_path: Path, verdict: str | None, reason: str
) -> None:
    run = copied(tmp_path, "unet3d/run1", metric={"train_au_meet_expectation": verdict})
    (campaign,) = results.campaigns([only_file(run)], "x")
    (problem,) = campaign.runs[0].phases[0].validity
    assert reason in problem


def test_a_run_that_stopped_after_three_of_five_epochs_is_invalid(tmp_path: Path) -> None:
    source = json.loads((OUTPUTS / "unet3d/run1/summary.json").read_text())["metric"]
    rates = source["train_throughput_samples_per_second"][:3]
    metric = {
        "train_au_percentage": source["train_au_percentage"][:3],
        "train_throughput_samples_per_second": rates,
        "train_throughput_mean_samples_per_second": sum(rates) / 3,
    }
    run = copied(tmp_path, "unet3d/run1", epochs=3, metric=metric)
    path = run / "per_epoch_stats.json"
    epochs = json.loads(path.read_text())
    path.write_text(json.dumps({number: epochs[number] for number in ("1", "2", "3")}))
    (phase,) = only_file(run).reports[0].phases
    assert phase.error == "aborted: 3 of 5 planned epochs were completed"


@pytest.mark.parametrize("name", ["per_epoch_stats.json", "metadata.json", "dlio.log"])
def test_a_run_without_a_summary_was_aborted(tmp_path: Path, name: str) -> None:
    texts = {
        "per_epoch_stats.json": (OUTPUTS / "unet3d/run1/per_epoch_stats.json").read_text(),
        "metadata.json": '{"benchmark_type": "training", "run_datetime": "20260704_050040"}',
        "dlio.log": "[OUTPUT] 2026-07-04T05:01:06.695869 Running DLIO [Training] with 8 "
        "process(es)\n",
    }
    (tmp_path / name).write_text(texts[name])
    assert only_file(tmp_path).rejected == (
        "mlpstorage: no summary.json next to it: the run was aborted, or only prepared data; "
        "import the folder of a complete run"
    )


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"epochs": 4}, "summary.json lists 5 epochs and states 4"),
        (
            {"metric": {"train_throughput_mean_samples_per_second": 50.0}},
            "the mean samples/s is not that of its epochs",
        ),
        ({"num_hosts": 0}, "num_hosts is no number of 1 or more"),
        ({"metric": {"train_throughput_samples_per_second": None}}, "ended early"),
    ],
)
def test_a_summary_that_contradicts_itself_is_rejected(
    tmp_path: Path, changes: dict[str, Any], reason: str
) -> None:
    file = only_file(copied(tmp_path, "unet3d/run1", **changes))
    assert file.rejected is not None and reason in file.rejected


def checkpoints(folder: Path, fsync: str) -> Path:
    """Saved checkpoints in the form of DLIO 3.0: the keys of its StatsCounter, with values as in
    mlcommons/storage_results_v3.0, TuringData_F9200_2_Clients, llama3-8b, 20260724_060106."""
    summary = {
        "start": "2026-07-24T06:01:28.348124",
        "num_accelerators": 8,
        "num_hosts": 2,
        "hostname": "client-05",
        "metric": {
            "save_checkpoint_io_mean_GB_per_second": 108.7342015896141,
            "save_checkpoint_duration_mean_seconds": 0.9748525000000001,
            "load_checkpoint_io_mean_GB_per_second": float("nan"),
            "checkpoint_size_GB": 104.70452117919922,
        },
        "num_files_train": 8,
        "num_samples_per_file": 1,
        "data_size_per_host_GB": 0.000244140625,
        "epochs": 0,
        "end": "2026-07-24T06:02:28.301699",
    }
    saves = {
        "start": "2026-07-24T06:01:28.370524",
        "save_ckpt1": {
            "start": "2026-07-24T06:01:33.370745",
            "end": "2026-07-24T06:01:34.717739",
            "duration": 1.346994,
        },
        "save_ckpt2": {
            "start": "2026-07-24T06:01:39.741302",
            "end": "2026-07-24T06:01:40.671310",
            "duration": 0.930008,
        },
    }
    (folder / "dlio_config").mkdir()
    (folder / "summary.json").write_text(json.dumps(summary))
    (folder / "0_per_epoch_stats.json").write_text(json.dumps({"1": saves}))
    (folder / "dlio_config/config.yaml").write_text(
        "workload:\n  model:\n    name: llama_8b\n    type: transformer\n  checkpoint:\n"
        f"    time_between_checkpoints: 5\n    num_checkpoints_write: 2\n    fsync: {fsync}\n"
    )
    return folder


def test_checkpoints_have_their_times_without_the_pauses_between_them(tmp_path: Path) -> None:
    (campaign,) = results.campaigns([only_file(checkpoints(tmp_path, "true"))], "x")
    (run,) = campaign.runs
    (phase,) = run.phases
    assert (phase.operation, phase.includes_flush) == ("write", True)
    assert phase.bandwidth_bytes_per_s == pytest.approx(108.7342015896141 * GIB)
    assert phase.metrics["operations_per_s"] == pytest.approx(1 / 0.9748525)
    (read,) = only_file(tmp_path).reports[0].phases
    assert read.nodes == 2 and read.options["model"] == "llama_8b"
    assert [seconds for _, seconds in read.stretches] == pytest.approx([1.346994, 0.930008])


def test_checkpoints_without_fsync_are_not_known_to_be_durable(tmp_path: Path) -> None:
    (campaign,) = results.campaigns([only_file(checkpoints(tmp_path, "false"))], "x")
    (phase,) = campaign.runs[0].phases
    assert not phase.includes_flush and phase.durable_reason
