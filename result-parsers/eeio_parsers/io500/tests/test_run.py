"""IO500: what a debug run of two processes wrote (`command` is next to the files)."""

import calendar
import re
import shutil
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from eeio.errors import ToolOutputError
from eeio.record.tools import parse
from eeio.record.tools.capture import Capture, Stamp
from eeio_parsers.io500 import run as io500

(DATA,) = (Path(__file__).parents[1] / "outputs").glob("io500-*/debug")
READ_AND_WRITTEN = ("ior-easy-write", "ior-hard-write", "ior-easy-read", "ior-hard-read")


def copied(folder: Path) -> Path:
    shutil.copytree(DATA, folder)
    return folder


def edited(folder: Path, file: str, *changes: tuple[str, str]) -> Capture:
    path = copied(folder) / file
    text = path.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)
    return Capture.load(folder)


def value(section: str, key: str) -> float:
    """As it is in result.txt."""
    text = (DATA / "io500/result.txt").read_text().partition(f"[{section}]\n")[2]
    found = re.search(rf"^{key} *= ([\d.]+)", text, re.M)
    assert found
    return float(found[1])


def test_each_phase_has_its_figures() -> None:
    result = parse("io500", Capture.load(DATA))
    assert [phase.name for phase in result.phases] == [*io500.SCORED, "ior-rnd4K-easy-read"]
    for phase in result.phases:
        assert phase.start_s is not None and phase.end_s is not None and not phase.invalid
        lasted_s = value(phase.name, "t_delta")
        assert phase.end_s - phase.start_s == pytest.approx(lasted_s, abs=1e-9)
        score = value(phase.name, "score")
        if phase.name.startswith("ior"):
            assert phase.bandwidth_bytes_per_s == score * 2**30
            assert phase.metrics["total_s"] <= lasted_s
        else:
            assert phase.operation == "metadata" and phase.bandwidth_bytes_per_s is None
            assert phase.metrics["operations_per_s"] == 1000 * score
            assert phase.metrics["span_s"] < lasted_s
    moved = {phase.name: phase.bytes_moved for phase in result.phases}
    segments = (32 << 20) // 47008
    assert [moved[name] for name in READ_AND_WRITTEN] == [64 << 20, 2 * segments * 47008] * 2
    assert moved["mdtest-hard-write"] is None and moved["mdtest-easy-write"] == 0
    for name in ("ior-easy-write", "ior-hard-write"):
        phase = next(phase for phase in result.phases if phase.name == name)
        assert phase.includes_flush and phase.until_durable is not None
        assert phase.until_durable.end_s == phase.end_s


def test_a_debug_run_has_no_io500_score() -> None:
    result = parse("io500", Capture.load(DATA))
    figures = {one.name: one.value for one in result.context}
    assert figures == {
        "io500_debug_score": value("SCORE", "SCORE"),
        "io500_debug_score_bandwidth": value("SCORE", "BW") * 2**30,
        "io500_debug_score_metadata": value("SCORE", "MD") * 1000,
    }
    assert result.notes[0].startswith("not a valid IO500 run: stonewall 1 s, a valid run has 300 s")


@pytest.mark.parametrize(
    ("stonewall", "mark", "is_valid"),
    [("300", "", True), ("300", " [INVALID]", False), ("30", "", False)],
)
def test_a_valid_run_has_one(tmp_path: Path, stonewall: str, mark: str, is_valid: bool) -> None:
    """A stonewall of 30 s without a mark is that of student clusters."""
    folder = tmp_path / "run"
    edited(folder, "io500/result.txt", (" [INVALID]", mark))
    config = folder / "io500/config.ini"
    config.write_text(config.read_text().replace("= 1\n", f"= {stonewall}\n"))
    result = parse("io500", Capture.load(folder))
    assert {one.name.replace("debug_", "") == one.name for one in result.context} == {is_valid}
    assert result.notes[0].startswith("not a valid IO500 run") is not is_valid


def test_the_edges_agree_with_io500_s_stamps() -> None:
    """Which are whole seconds of local time, of a zone that nothing names."""
    capture = Capture.load(DATA)
    result = parse("io500", capture)
    text = (DATA / "io500/result.txt").read_text()
    zones = set()
    for phase in result.phases:
        part = text.partition(f"[{phase.name}]\n")[2]
        for key, edge_s in (("t_start", phase.start_s), ("t_end", phase.end_s)):
            stamp = re.search(rf"^{key} *= (.*)$", part, re.M)
            assert stamp and edge_s is not None
            at_s = calendar.timegm(time.strptime(stamp[1], "%Y-%m-%d %H:%M:%S"))
            apart_s = capture.since_start_s(at_s) - edge_s
            zones.add(round(apart_s / 900))
            assert abs(apart_s - 900 * round(apart_s / 900)) < 1.01, (phase.name, key)
    assert len(zones) == 1


@pytest.mark.parametrize("zone_h", [-5.0, 0.0, 5.75])
def test_a_line_that_came_late_is_no_later_than_its_stamp(tmp_path: Path, zone_h: float) -> None:
    folder = copied(tmp_path / "run")
    path = folder / "io500/result.txt"

    def shifted(stamp: re.Match[str]) -> str:
        at_s = calendar.timegm(time.strptime(stamp[0], "%Y-%m-%d %H:%M:%S")) + 3600 * zone_h
        return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(at_s))

    path.write_text(re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", shifted, path.read_text()))
    capture = Capture.load(folder)
    found = {phase.name: phase for phase in parse("io500", capture).phases}
    text = (folder / "stdout.txt").read_text()
    offset = text.index("mdtest-hard-stat")
    late = replace(capture, stamps=tuple(
        replace(one, monotonic_s=one.monotonic_s + 2.5) if one.end_offset > offset else one
        for one in capture.stamps
    ), ended_monotonic_s=capture.ended_monotonic_s + 2.5)  # fmt: skip
    for phase in parse("io500", late).phases:
        before = found[phase.name]
        assert phase.end_s is not None and before.end_s is not None
        assert before.end_s - 1e-9 <= phase.end_s < before.end_s + 1.0
        moved = "stamps: its line arrived after" in phase.window_source
        assert (phase.edges_unsure_s is not None) == moved
        assert moved or phase.end_s == before.end_s
    assert found["find"].edges_unsure_s is None


def test_without_times_of_its_lines_there_is_no_window() -> None:
    result = parse("io500", replace(Capture.load(DATA), stamps=()))
    assert {(p.start_s, p.end_s) for p in result.phases} == {(None, None)}
    assert {p.window_source for p in result.phases} == {
        "none: a stored report contains no times of its lines"
    }


def test_lines_that_arrived_together_are_within_a_second_of_their_stamps() -> None:
    """As of an MPI that stores the output until the end."""
    capture = Capture.load(DATA)
    size = (DATA / "stdout.txt").stat().st_size
    end_s = capture.ended_monotonic_s
    result = parse("io500", replace(capture, stamps=(Stamp("stdout", size, end_s),)))
    known = [phase for phase in result.phases if phase.start_s is not None]
    windows = {phase.name: phase for phase in parse("io500", capture).phases}
    for phase in known:
        true_s = windows[phase.name].end_s
        assert phase.end_s is not None and true_s is not None and phase.end_s - true_s < 1.0
    for before, after in pairwise(known):
        assert before.end_s is not None and after.start_s is not None
        assert before.end_s <= after.start_s


FILES = sorted(
    str(path.relative_to(DATA)) for path in [DATA / "stdout.txt", *(DATA / "io500").iterdir()]
    if not path.name.startswith("mdtest") or path.suffix == ".csv"
)  # fmt: skip


@pytest.mark.parametrize("file", FILES)
def test_truncated_output_fails_or_is_right(tmp_path: Path, file: str) -> None:
    folder = copied(tmp_path / "run")
    content = (folder / file).read_bytes()
    complete = parse("io500", Capture.load(folder))
    for end in range(0, len(content), max(1, len(content) // 150)):
        (folder / file).write_bytes(content[:end])
        try:
            result = parse("io500", Capture.load(folder))
        except ToolOutputError as error:
            assert "failed with" not in str(error)
            continue
        assert result == complete, end


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("io500/result.txt", "[SCORE]", "[TOTAL]", "stopped before its score"),
        ("io500/result.txt", "t_delta ", "t_none ", "t_delta"),
        ("io500/result.txt", "score           = 0.", "score           = -0.", "score"),
        ("stdout.txt", "ior-hard-read", "ior-hard-road", "no line of ior-hard-read"),
        ("io500/ior-easy-read.txt", "read  ", "road  ", "no result of IOR"),
    ],
)
def test_other_output_is_rejected(
    tmp_path: Path, file: str, old: str, new: str, message: str
) -> None:
    with pytest.raises(ToolOutputError, match=message):
        parse("io500", edited(tmp_path / "run", file, (old, new)))


def test_a_phase_without_its_time_is_rejected(tmp_path: Path) -> None:
    """Of one phase only: of all the others it is there."""
    path = copied(tmp_path / "run") / "io500/result.txt"
    before, mark, after = path.read_text().partition("t_delta ")
    path.write_text(f"{before}{after.partition(chr(10))[2]}" if mark else before)
    with pytest.raises(ToolOutputError, match="t_delta"):
        parse("io500", Capture.load(tmp_path / "run"))


@pytest.mark.parametrize("name", ["find", "ior-hard-read"])
def test_a_phase_that_failed_is_invalid(tmp_path: Path, name: str) -> None:
    text = (DATA / "io500/result.txt").read_text()
    score = re.search(rf"\[{name}\]\n(?:.*\n)*?(score +=) ([\d.]+)", text)
    assert score
    capture = edited(tmp_path / "run", "io500/result.txt", (score[2], "0.000000"))
    (found,) = [phase for phase in parse("io500", capture).phases if phase.name == name]
    assert found.invalid == (f"IO500's result of {name} is 0",)
    assert found.bandwidth_bytes_per_s is None and "operations_per_s" not in found.metrics


def test_bytes_that_contradict_the_bandwidth_are_not_known(tmp_path: Path) -> None:
    capture = edited(tmp_path / "run", "io500/result.txt", ("-b 33554432 -F -w", "-b 1g -F -w"))
    (write,) = [p for p in parse("io500", capture).phases if p.name == "ior-easy-write"]
    assert write.bytes_moved is None and write.bandwidth_bytes_per_s is not None
