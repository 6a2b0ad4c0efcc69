"""Figures of one phase that contradict each other are rejected; those of real outputs agree."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eeio.errors import EeioError, LimitError, ToolOutputError
from eeio.exchange.importing import outputs
from eeio.record import tools
from eeio.record.consistency import disagreement
from eeio.record.run import Durable
from eeio.record.tools.capture import CAPTURE_FILE, Capture, PhaseResult, ToolResult

PARSERS = Path(__file__).parents[2] / "result-parsers/eeio_parsers"
CAPTURES = sorted(path.parent for path in PARSERS.glob(f"*/outputs/**/{CAPTURE_FILE}"))
STORED = {
    "fio": "fio/outputs/*/other/*.txt", "fio-json": "fio/outputs/*/**/fio.json",
    "ior": "ior/outputs/*/other/*.txt",
    "iozone": "iozone/outputs/*/other/*.txt", "bonnie": "bonnie/outputs/*/*/stdout.txt",
    "io500": "io500/outputs/*/*.txt",
    "elbencho": "elbencho/outputs/*/*.json",
}  # fmt: skip

PHASE = PhaseResult(
    name="dump", operation="write", spatiality="sequential", request_size_bytes=1000,
    bytes_moved=10_000_000, bandwidth_bytes_per_s=1e6, start_s=5.0, end_s=15.0,
    window_source="its own clock", metrics={"iops": 1000.0},
)  # fmt: skip
"""10 MB in 10 s."""


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"end_s": 40.0}, "its window is 35 s"),
        ({"end_s": 8.0}, "its window is 3 s"),
        ({"bytes_moved": 40_000_000}, "its window is 10 s"),
        ({"bandwidth_bytes_per_s": 0.0}, "take inf s"),
        ({"start_s": None, "end_s": None, "metrics": {"runtime_s": 31.0}}, "runtime_s is 31 s"),
        ({"metrics": {"total_s": 3.0}}, "total_s is 3 s"),
        ({"metrics": {"io_time_s": 10.0}, "end_s": 8.0}, "its window is 3 s"),
        ({"metrics": {"iops": 3100.0}}, "3.1e+06 bytes/s, but its bandwidth is 1e+06"),
        ({"metrics": {"iops": 300.0}}, "300000 bytes/s, but its bandwidth is 1e+06"),
        ({"metrics": {"iops": 1000.0, "transfer_s": 1.0}}, "transfer_s is 1 s"),
        (
            {"until_durable": Durable(60.0, 1e6, "fsync")},
            "the time until it is durable is 55 s",
        ),
    ],
)  # fmt: skip
def test_a_contradiction_is_rejected(changes: Mapping[str, Any], message: str) -> None:
    with pytest.raises(LimitError, match=r"^dump: .* contradict") as error:
        replace(PHASE, **changes)
    assert message in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    "changes",
    [
        {"bytes_moved": 0},
        {"bytes_moved": None},
        {"bandwidth_bytes_per_s": None},
        {"end_s": 34.0},
        # It computes in between, and reports the time of its I/O.
        {"end_s": 900.0, "metrics": {"io_time_s": 10.0}},
        # Requests are counted over the transfers, the bandwidth includes a slow open and close.
        {"metrics": {"iops": 10_000.0, "transfer_s": 1.0, "total_s": 10.0}},
        # 100 files of 10 bytes a second, each of them read by one request.
        {"bandwidth_bytes_per_s": 1e3, "bytes_moved": 10_000,
         "metrics": {"iops": 100.0, "operations_per_s": 100.0}},
        # Rounded to a millisecond.
        {"bandwidth_bytes_per_s": 2.5e10, "start_s": None, "end_s": None,
         "metrics": {"runtime_s": 0.002}},
        {"bandwidth_bytes_per_s": 1e9, "end_s": 5.1, "metrics": {}},
        {"until_durable": Durable(25.0, 5e5, "fsync")},
        {"request_size_bytes": None, "metrics": {"iops": 1.0}},
    ],
)  # fmt: skip
def test_what_may_differ_is_accepted(changes: Mapping[str, Any]) -> None:
    assert disagreement(replace(PHASE, **changes)) is None


def test_a_phase_that_is_invalid_already_keeps_its_own_reason() -> None:
    assert replace(PHASE, end_s=90.0, invalid=("it was stopped",)).invalid == ("it was stopped",)


def test_the_error_of_a_run_names_the_file_and_the_phase(tmp_path: Path) -> None:
    row = {
        "name": "dump", "operation": "read", "spatiality": "random", "request_size_bytes": 4096,
        "bytes_moved": 4096, "start_monotonic_s": 1.0, "end_monotonic_s": 2.0,
        "bandwidth_bytes_per_s": 4.096e6,
    }  # fmt: skip
    (tmp_path / "eeio.json").write_text(json.dumps({"schema_version": 1, "phases": [row]}))
    with pytest.raises(ToolOutputError) as error:
        tools.parse("native", Capture(tmp_path, {}, 0, 0.0, 3.0, 0.0))
    for message in (str(tmp_path), "dump: 4096 bytes at 4.096e+06 bytes/s", "window is 1 s"):
        assert message in str(error.value)


def _accepted(result: ToolResult) -> int:
    found = [(phase, disagreement(phase)) for phase in result.phases]
    assert [why for _, why in found if why] == []
    return len(found)


def test_the_figures_of_all_runs_in_the_test_data_agree() -> None:
    phases = 0
    for folder in CAPTURES:
        tool = folder.relative_to(PARSERS).parts[0]
        try:
            phases += _accepted(tools.parse(tool, Capture.load(folder)))
        except EeioError as error:
            assert "contradict" not in str(error)
    assert phases > 25


@pytest.mark.parametrize("form", STORED)
def test_the_figures_of_all_stored_outputs_in_the_test_data_agree(form: str) -> None:
    phases = 0
    for path in PARSERS.glob(STORED[form]):
        try:
            phases += _accepted(outputs.read(form, path.read_text(), str(path)))
        except EeioError as error:
            assert "contradict" not in str(error)
    assert phases > 0
