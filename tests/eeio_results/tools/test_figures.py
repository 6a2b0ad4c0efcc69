"""What a program of a user's own printed, by regular expressions (figures.json)."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eeio.errors import ToolOutputError
from eeio.record import tools
from eeio.record.tools import figures
from eeio.record.tools.capture import Capture, PhaseResult, Stamp

DD = "3+1 records in\n16777216 bytes (17 MB, 16 MiB) copied, 0.5 s, 33.6 MB/s\n"
BYTES = {"pattern": "^([0-9]+) bytes"}
BEGINS, ENDS = "# eeio: begins 7.50\n", "# eeio: ends 8.50\n"


def _capture(folder: Path, printed: str, *, split: bool = True, **definition: Any) -> Capture:
    """A run of 2 s whose command began at 0.5 s and ended at 1.5 s."""
    body = {
        "schema_version": 1, "operation": "read", "spatiality": "sequential", "factors": {},
        "figure": None, "bytes": None, **definition,
    }  # fmt: skip
    (folder / "figures.json").write_text(json.dumps(body))
    (folder / "stdout.txt").write_text("")
    text = f"{BEGINS}{printed}{ENDS}" if split else printed
    (folder / "stderr.txt").write_text(text)
    stamps = (
        Stamp("stderr", len(BEGINS), 100.5),
        Stamp("stderr", len(text.encode()), 101.5),
    )
    return Capture(folder, {"size": "16m"}, 0, 100.0, 102.0, 0.0, stamps if split else ())


def _phase(capture: Capture) -> PhaseResult:
    (phase,) = tools.parse("mine", capture).phases
    return phase


def test_time_and_nothing_else_where_nothing_was_requested(tmp_path: Path) -> None:
    phase = _phase(_capture(tmp_path, DD))
    assert (phase.start_s, phase.end_s) == (0.5, 1.5)
    assert phase.bytes_moved is None and phase.bandwidth_bytes_per_s is None
    assert phase.metrics == {} and phase.invalid == ()


@pytest.mark.parametrize(
    ("times", "start_s"),
    [((" 7.50", " 8.50"), 0.51), ((" 7.50", " 8.20"), 0.7), (("", ""), 0.7)],
)
def test_a_first_line_that_was_read_late_does_not_shorten_the_window(
    tmp_path: Path, times: tuple[str, str], start_s: float
) -> None:
    capture = _capture(tmp_path, DD)
    begins, ends = (
        f"# eeio: {word}{time}\n" for word, time in zip(("begins", "ends"), times, strict=True)
    )
    text = f"{begins}{DD}no end of line{ends}"
    (tmp_path / "stderr.txt").write_text(text)
    stamps = (Stamp("stderr", len(begins), 100.7), Stamp("stderr", len(text), 101.5))
    phase = _phase(replace(capture, stamps=stamps))
    assert (phase.start_s, phase.end_s) == (pytest.approx(start_s), 1.5)


def test_lines_that_arrive_together_give_no_window_of_rounding_errors(tmp_path: Path) -> None:
    """The difference of two uptimes 10 ms apart is not 0.01."""
    capture = _capture(tmp_path, DD, bytes=BYTES)
    for begins, ends in (
        ("25000.01", "25000.02"),
        ("25000.03", "25000.04"),
        ("25000.05", "25000.06"),
    ):
        text = f"# eeio: begins {begins}\n{DD}# eeio: ends {ends}\n"
        (tmp_path / "stderr.txt").write_text(text)
        stamps = (Stamp("stderr", len(text), 101.5),)
        phase = _phase(replace(capture, stamps=stamps))
        assert (phase.start_s, phase.end_s) == (0.0, 2.0)
        assert "complete run" in phase.window_source


def test_bytes_over_the_time_of_the_command(tmp_path: Path) -> None:
    seconds = {"pattern": "copied, ([0-9.]+) s", "unit": "s"}
    phase = _phase(_capture(tmp_path, DD, figure=seconds, bytes=BYTES))
    assert phase.bytes_moved == phase.bandwidth_bytes_per_s == 16777216
    assert phase.metrics == {"told_s": 0.5}


@pytest.mark.parametrize(
    ("pattern", "unit"),
    # A unit in the group is taken for what it is.
    [("([0-9.]+) MB/s", "MB/s"), ("([0-9.]+ MB/s)", "MB/s"), ("([0-9.]+ MB/s)", "GiB/s")],
)
def test_the_program_s_own_bandwidth(tmp_path: Path, pattern: str, unit: str) -> None:
    figure = {"pattern": pattern, "unit": unit}
    phase = _phase(_capture(tmp_path, DD, figure=figure, bytes=BYTES))
    assert phase.bandwidth_bytes_per_s == pytest.approx(33.6e6)
    alone = _phase(_capture(tmp_path, DD, figure=figure))
    assert alone.bandwidth_bytes_per_s is None, "of bytes that nobody counted"
    assert alone.metrics["told_bandwidth_bytes_per_s"] == pytest.approx(33.6e6)


@pytest.mark.parametrize(
    ("unit", "metric"), [("IOPS", "iops"), ("operations/s", "operations_per_s"),
                         ("transactions/s", "operations_per_s")],
)  # fmt: skip
def test_rates_have_names_of_their_own(tmp_path: Path, unit: str, metric: str) -> None:
    figure = {"pattern": "rate=([0-9.e+]+)", "unit": unit}
    assert _phase(_capture(tmp_path, "rate=1.5e+3\n", figure=figure)).metrics == {metric: 1500.0}


@pytest.mark.parametrize(
    ("size", "count"), [("64k", 65536), ("{size}", 16 << 20), ("1.5 GB", 1_500_000_000)]
)
def test_bytes_may_be_a_size_or_a_factor(tmp_path: Path, size: str, count: int) -> None:
    assert (
        _phase(_capture(tmp_path, DD, factors={"size": "4m"}, bytes={"size": size})).bytes_moved
        == count
    )


@pytest.mark.parametrize(("flush", "includes"), [("none", False), ("end", True), ("each", True)])
def test_a_command_that_flushes_reports_no_bandwidth_of_the_page_cache(
    tmp_path: Path, flush: str, includes: bool
) -> None:
    capture = _capture(tmp_path, DD, operation="write", bytes=BYTES)
    assert _phase(replace(capture, factors={"flush": flush})).includes_flush == includes


def test_a_figure_that_cannot_be_of_those_bytes_is_invalid(tmp_path: Path) -> None:
    """A unit that was mistaken: at 33.6 kB/s they take 499 s, and it ran for one."""
    figure = {"pattern": "([0-9.]+) MB/s", "unit": "kB/s"}
    phase = _phase(_capture(tmp_path, DD, figure=figure, bytes=BYTES))
    (why,) = phase.invalid
    assert "499 s" in why and "1 s" in why


@pytest.mark.parametrize(
    ("pattern", "printed", "message"),
    [
        ("([0-9.]+) GB/s", DD, "matches 0 times"),
        ("([0-9]+)", DD, "matches 9 times"),
        (r"(\S+) records", DD, r"'3\+1' is not a number"),
        ("rate ([0-9.]+|nan)", "rate nan\n", "'nan' is not a number"),
        ("rate (.*)", "rate 12 furlongs\n", "furlongs behind the number"),
        ("rate ([0-9]+)", f"rate {'9' * 18}\n", "is not a number"),
        ("rate ([0-9]+)", f"{'x' * 70000}\nrate 1\n", "a line of 70000 characters"),
    ],
)
def test_what_does_not_fit_once_is_reported(
    tmp_path: Path, pattern: str, printed: str, message: str
) -> None:
    with pytest.raises(ToolOutputError, match=message):
        _phase(_capture(tmp_path, printed, figure={"pattern": pattern, "unit": "MB/s"}))


def test_a_pattern_that_takes_for_ever_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "PATTERN_TIMEOUT_S", 0.5)
    capture = _capture(tmp_path, f"{'a' * 200}\n", figure={"pattern": "^(a+)+b", "unit": "MB/s"})
    with pytest.raises(ToolOutputError, match="took longer"):
        _phase(capture)


def test_a_progress_bar_ends_its_lines_by_carriage_returns(tmp_path: Path) -> None:
    figure = {"pattern": "^done ([0-9]+)", "unit": "s"}
    assert _phase(_capture(tmp_path, "10 %\rdone 3\n", figure=figure)).metrics == {"told_s": 3.0}


def test_without_the_lines_around_it_the_complete_run_is_the_window(tmp_path: Path) -> None:
    phase = _phase(_capture(tmp_path, DD, split=False))
    assert (phase.start_s, phase.end_s) == (0.0, 2.0)
    assert "is unknown" in phase.window_source


@pytest.mark.parametrize("body", ["", "{", "[]", '{"schema_version": 2}', '{"schema_version": 1}'])
def test_a_damaged_definition_is_reported(tmp_path: Path, body: str) -> None:
    capture = _capture(tmp_path, DD)
    (tmp_path / "figures.json").write_text(body)
    with pytest.raises(ToolOutputError, match=r"figures\.json|KeyError"):
        _phase(capture)
