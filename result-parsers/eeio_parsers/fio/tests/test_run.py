"""fio: what the parser says against what stands in fio's own output."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eeio.errors import ToolOutputError
from eeio.record.tools import parse
from eeio.record.tools.capture import Capture
from eeio_parsers.fio import run as fio

DATA = Path(__file__).parents[1] / "outputs/3.33"
OTHER = DATA / "other"


def kept(case: str) -> Capture:
    return Capture.load(DATA / case)


def with_file(case: str, folder: Path, name: str, content: str | None) -> Capture:
    """The invocation with one of its files replaced, or left out."""
    shutil.copytree(DATA / case, folder / case)
    if content is None:
        (folder / case / name).unlink()
    else:
        (folder / case / name).write_text(content)
    return Capture.load(folder / case)


def test_sequential_read() -> None:
    capture = kept("read")
    (phase,) = parse("fio", capture).phases
    job = json.loads((DATA / "read" / "fio.json").read_text())["jobs"][0]
    assert (phase.operation, phase.spatiality) == ("read", "sequential")
    assert phase.request_size_bytes == 128 << 10
    assert phase.bytes_moved == job["read"]["io_bytes"] == 64 << 20
    assert phase.bandwidth_bytes_per_s == pytest.approx(job["read"]["bw_bytes"], rel=1e-6)
    assert phase.metrics["iops"] == pytest.approx(job["read"]["iops"], rel=1e-6)
    assert phase.metrics["runtime_s"] == job["read"]["runtime"] / 1000
    percentiles = job["read"]["lat_ns"]["percentile"]
    assert phase.metrics["latency_p50_s"] == percentiles["50.000000"] / 1e9
    assert phase.metrics["latency_p95_s"] == percentiles["95.000000"] / 1e9
    assert phase.metrics["latency_p99_s"] == percentiles["99.000000"] / 1e9
    assert phase.metrics["latency_p999_s"] == percentiles["99.900000"] / 1e9
    assert phase.metrics["latency_mean_s"] == job["read"]["lat_ns"]["mean"] / 1e9
    assert phase.metrics["latency_max_s"] == job["read"]["lat_ns"]["max"] / 1e9
    assert phase.metrics["cpu_system_fraction"] == job["sys_cpu"] / 100
    assert phase.invalid == ()


def test_a_ten_thousandth_is_reported_of_ten_thousand_requests_alone(tmp_path: Path) -> None:
    """fio tells the slowest request as 99.99th percentile of however few."""
    body = json.loads((DATA / "read" / "fio.json").read_text())
    for requests, is_known in ((512, False), (9_999, False), (10_000, True)):
        body["jobs"][0]["read"]["lat_ns"]["N"] = requests
        capture = with_file("read", tmp_path / str(requests), "fio.json", json.dumps(body))
        (phase,) = parse("fio", capture).phases
        assert ("latency_p9999_s" in phase.metrics) is is_known
        assert "latency_p999_s" in phase.metrics


@pytest.mark.parametrize("case", ["read", "random-write", "mixed", "strided", "two-processes"])
def test_window_is_fio_s_own_run_time_inside_the_invocation(case: str) -> None:
    capture = kept(case)
    (phase,) = parse("fio", capture).phases
    assert phase.start_s is not None and phase.end_s is not None
    assert 0 < phase.start_s < phase.end_s
    assert phase.end_s < capture.ended_monotonic_s - capture.started_monotonic_s
    spread_s = 0.001 if case == "two-processes" else 1e-6  # both processes, which began one by one
    assert phase.end_s - phase.start_s == pytest.approx(phase.metrics["runtime_s"], abs=spread_s)
    assert phase.window_source == "fio exec_prerun and run time"


@pytest.mark.parametrize(
    ("case", "late_s", "window_s", "unsure_s"),
    [
        # The second stamp is late, as on a busy machine: the window does not grow with it.
        ("read", [0.4], 0.0, 0.401),
        # It cannot end after the second stamp, nor be uncertain by less than fio's ms.
        ("read", [-0.004], 0.0, 0.001),
        # Processes that begin 0.1 s apart: either may have run for the longest time.
        ("two-processes", [0.1, 0.15], 0.1, 0.151),
        ("two-processes", [0.06, 0.02], 0.06, 0.061),
    ],
)
def test_the_window_ends_with_the_run_time_not_with_a_late_stamp(
    tmp_path: Path, case: str, late_s: list[float], window_s: float, unsure_s: float
) -> None:
    """`window_s` is by how much the window is longer than the run time."""
    runtime_s = parse("fio", kept(case)).phases[0].metrics["runtime_s"]
    begun = float(kept(case).text(fio.START_FILE).split()[0])
    starts = [begun, begun + 0.1][: len(late_s)]
    folder = tmp_path / case
    shutil.copytree(DATA / case, folder)
    ends = [begun + runtime_s + late for late in late_s]
    for name, stamps in ((fio.START_FILE, starts), (fio.END_FILE, ends)):
        (folder / name).write_text("".join(f"{stamp:.9f}\n" for stamp in stamps))
    capture = Capture.load(folder)
    # As long an invocation as the stamps need.
    capture = replace(capture, ended_monotonic_s=capture.ended_monotonic_s + 1)
    (phase,) = parse("fio", capture).phases
    assert phase.start_s is not None and phase.end_s is not None
    assert phase.start_s == pytest.approx(begun - capture.started_utc_s, abs=1e-6)
    assert phase.end_s - phase.start_s == pytest.approx(runtime_s + window_s, abs=1e-5)
    assert phase.edges_unsure_s == pytest.approx(unsure_s, abs=1e-5)


@pytest.mark.parametrize("shift_s", [0.3, -0.2])
def test_the_window_is_within_the_process_though_the_clock_was_set(
    tmp_path: Path, shift_s: float
) -> None:
    """The window ended up to 0.5 s after fio, and so contained idle power."""
    runtime_s = parse("fio", kept("read")).phases[0].metrics["runtime_s"]
    folder = tmp_path / "read"
    shutil.copytree(DATA / "read", folder)
    for name in (fio.START_FILE, fio.END_FILE):
        stamp = float((folder / name).read_text()) + shift_s
        (folder / name).write_text(f"{stamp:.9f}\n")
    capture = Capture.load(folder)
    (phase,) = parse("fio", capture).phases
    assert phase.start_s is not None and phase.end_s is not None
    lasted_s = capture.ended_monotonic_s - capture.started_monotonic_s
    assert 0 <= phase.start_s < phase.end_s <= lasted_s
    assert phase.end_s - phase.start_s == pytest.approx(runtime_s, abs=1e-6)
    # The shift is more than the time before, or after, the I/O by so much.
    assert phase.edges_unsure_s is not None
    assert phase.edges_unsure_s >= abs(shift_s) - (lasted_s - runtime_s)


def test_one_phase_for_reads_and_writes_at_once() -> None:
    (phase,) = parse("fio", kept("mixed")).phases
    job = json.loads((DATA / "mixed" / "fio.json").read_text())["jobs"][0]
    assert (phase.operation, phase.spatiality) == ("mixed", "random")
    assert phase.bytes_moved == 16 << 20
    assert phase.metrics["bytes_read"] == job["read"]["io_bytes"]
    assert phase.metrics["bytes_written"] == job["write"]["io_bytes"]
    assert phase.metrics["read_latency_mean_s"] == job["read"]["lat_ns"]["mean"] / 1e9
    assert "latency_mean_s" not in phase.metrics


def test_strides_touch_each_block_once() -> None:
    (phase,) = parse("fio", kept("strided")).phases
    assert phase.spatiality == "strided"
    assert phase.bytes_moved == (64 << 20) // (17 * 65536) * 65536


def test_without_stamps_the_end_of_the_process_serves(tmp_path: Path) -> None:
    capture = with_file("read", tmp_path, fio.START_FILE, None)
    (phase,) = parse("fio", capture).phases
    assert phase.end_s == capture.ended_monotonic_s - capture.started_monotonic_s
    assert phase.window_source == "end of process minus fio's run time"
    assert phase.edges_unsure_s is None


def test_a_clock_that_was_set_is_noticed(tmp_path: Path) -> None:
    capture = with_file("read", tmp_path, fio.START_FILE, "1500000000.000000000\n")
    (phase,) = parse("fio", capture).phases
    assert "the clock was set" in phase.window_source
    assert phase.end_s == capture.ended_monotonic_s - capture.started_monotonic_s


def test_a_clock_that_was_set_back_during_the_run_is_noticed(tmp_path: Path) -> None:
    """Both stamps lie inside the invocation, but fio ran for longer than between them."""
    runtime_s = parse("fio", kept("two-processes")).phases[0].metrics["runtime_s"]
    begun = float(kept("two-processes").text(fio.START_FILE).split()[0])
    ends = f"{begun + runtime_s / 4:.9f}\n" * 2
    capture = with_file("two-processes", tmp_path, fio.END_FILE, ends)
    (phase,) = parse("fio", capture).phases
    assert "the clock was set" in phase.window_source
    assert phase.start_s is not None and phase.end_s is not None
    assert phase.end_s - phase.start_s == pytest.approx(runtime_s)


def test_warnings_around_the_json_do_not_matter(tmp_path: Path) -> None:
    text = (DATA / "read" / fio.OUTPUT_FILE).read_text()
    noisy = "fio: file hash not empty on exit {\nnote: both iodepth >= 1\n" + text + "fio: end\n"
    capture = with_file("read", tmp_path, fio.OUTPUT_FILE, noisy)
    assert parse("fio", capture) == parse("fio", kept("read"))


def test_an_error_of_fio_is_an_error(tmp_path: Path) -> None:
    text = (OTHER / "no-space.json").read_text()
    capture = with_file("read", tmp_path, fio.OUTPUT_FILE, text)
    with pytest.raises(ToolOutputError, match=r"fio.json: fio stopped with error 28"):
        parse("fio", capture)


def test_jobs_that_were_not_grouped_are_rejected(tmp_path: Path) -> None:
    text = (OTHER / "two-jobs.json").read_text()
    capture = with_file("read", tmp_path, fio.OUTPUT_FILE, text)
    with pytest.raises(ToolOutputError, match="--group_reporting"):
        parse("fio", capture)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("", "empty"),
        ("hello", "no JSON"),
        ('{"a": 1}', "no JSON of fio"),
        ('{"fio version": "fio-3.33", "jobs": [{}]}', "without 'jobname'"),
        ('{"fio version": "fio-3.33", "jobs": 7}', "TypeError"),
    ],
)
def test_foreign_output_is_named(tmp_path: Path, content: str, found: str) -> None:
    capture = with_file("read", tmp_path, fio.OUTPUT_FILE, content)
    with pytest.raises(ToolOutputError, match=rf"fio\.json: .*{found}"):
        parse("fio", capture)


@pytest.mark.parametrize("name", [fio.OUTPUT_FILE, fio.START_FILE, fio.END_FILE])
@given(cut=st.floats(0, 1))
def test_truncated_output_never_gives_a_wrong_number(
    tmp_path_factory: pytest.TempPathFactory, name: str, cut: float
) -> None:
    text = (DATA / "two-processes" / name).read_text()
    folder = tmp_path_factory.mktemp("cut")
    capture = with_file("two-processes", folder, name, text[: int(cut * len(text))])
    try:
        result = parse("fio", capture)
    except ToolOutputError:
        return
    assert result == parse("fio", kept("two-processes"))


# --- counters of perf -----------------------------------------------------------------------------

# perf-stat(1), CSV FORMAT: count, unit, event, run time of the counter, share of the time in which
# it counted, then figures that perf derives.
COUNTED = """# started on Sun Nov 29 01:15:12 2026

8123456789,,instructions,2001234567,100.00,1.24,insn per cycle
6551174830,,cycles,2001234567,100.00,,
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (COUNTED, {"instructions": 8123456789.0, "cycles": 6551174830.0}),
        (
            COUNTED.replace("instructions,", "instructions:u,").replace("cycles,", "cycles:u,"),
            {"user_instructions": 8123456789.0, "user_cycles": 6551174830.0},
        ),
        (COUNTED.replace("100.00", "49.87"), {}),
        (COUNTED.replace("8123456789", "<not supported>"), {"cycles": 6551174830.0}),
        (COUNTED.replace("8123456789", "<not counted>"), {"cycles": 6551174830.0}),
        ("", {}),
    ],
)
def test_counters_that_counted_all_the_time_are_figures(
    tmp_path: Path, text: str, expected: dict[str, float]
) -> None:
    (phase,) = parse("fio", with_file("read", tmp_path, "perf.csv", text)).phases
    counters = {"instructions", "cycles", "user_instructions", "user_cycles"}
    found = {name: value for name, value in phase.metrics.items() if name in counters}
    assert found == expected


def test_without_perf_nothing_is_counted() -> None:
    (phase,) = parse("fio", kept("read")).phases
    assert not {"instructions", "cycles"} & phase.metrics.keys()
