"""Bonnie++: rates from the CSV line, windows from the progress words."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eeio.errors import ToolOutputError
from eeio.record.tools import parse
from eeio.record.tools.capture import Capture

DATA = Path(__file__).parents[1] / "outputs/2.00a"


def kept(case: str) -> Capture:
    return Capture.load(DATA / case)


def csv(case: str) -> list[str]:
    return (DATA / case / "stdout.txt").read_text().splitlines()[-1].split(",")


def as_if_buffered(case: str) -> Capture:
    """The same output under buffer=on, where every phase counts."""
    capture = kept(case)
    return replace(capture, factors={**capture.factors, "buffer": "on"})


def test_phases_and_rates() -> None:
    write, rewrite, read, seeks = parse("bonnie", as_if_buffered("direct")).phases
    fields = csv("direct")
    assert [p.name for p in (write, rewrite, read, seeks)] == ["write", "rewrite", "read", "seeks"]
    assert [p.operation for p in (write, rewrite, read, seeks)] == [
        "write",
        "mixed",
        "read",
        "mixed",
    ]
    assert write.bandwidth_bytes_per_s == int(fields[11]) * 1024
    assert rewrite.bandwidth_bytes_per_s == int(fields[13]) * 1024
    assert write.bytes_moved == read.bytes_moved == 512 << 20
    assert write.request_size_bytes == 4096
    assert rewrite.metrics["bytes_written"] == rewrite.metrics["bytes_read"] == 512 << 20
    assert write.metrics["cpu_fraction"] == int(fields[12]) / 100
    assert seeks.bytes_moved == 8192 * 4096
    assert seeks.spatiality == "random"


def test_a_byte_at_a_time_has_phases_of_its_own() -> None:
    phases = {phase.name: phase for phase in parse("bonnie", kept("characters")).phases}
    names = ["character write", "write", "rewrite", "character read", "read", "seeks"]
    assert list(phases) == names
    fields = csv("characters")
    for name, operation, rate, share in (
        ("character write", "write", 9, 10), ("character read", "read", 15, 16),
    ):  # fmt: skip
        phase = phases[name]
        assert (phase.operation, phase.spatiality) == (operation, "sequential")
        assert (phase.request_size_bytes, phase.bytes_moved) == (1, 4 << 20)
        assert phase.bandwidth_bytes_per_s == int(fields[rate]) * 1024
        assert phase.metrics["iops"] == phase.bandwidth_bytes_per_s
        assert phase.metrics["cpu_fraction"] == int(fields[share]) / 100
        assert 0 < phase.metrics["latency_max_s"] < 10
    assert phases["character write"].until_durable is not None
    assert not phases["character read"].includes_flush
    assert phases["write"].request_size_bytes == 64 << 10


def test_how_much_others_moved_a_byte_at_a_time_is_not_known() -> None:
    """Its output does not tell, so that of who imports it has no such phases."""
    capture = kept("characters")
    factors = {k: v for k, v in capture.factors.items() if k != "characters"}
    phases = parse("bonnie", replace(capture, factors=factors)).phases
    assert [phase.name for phase in phases] == ["write", "rewrite", "read", "seeks"]


def test_windows_hold_what_the_rates_say() -> None:
    for case in ("direct", "buffered", "characters"):
        capture = kept(case)
        end_before_s = 0.0
        for phase in parse("bonnie", capture).phases:
            assert phase.start_s is not None and phase.end_s is not None
            assert end_before_s <= phase.start_s < phase.end_s
            end_before_s = phase.end_s
            if phase.bandwidth_bytes_per_s is not None and phase.bytes_moved is not None:
                assert phase.end_s - phase.start_s == pytest.approx(
                    phase.bytes_moved / phase.bandwidth_bytes_per_s, rel=0.05
                )
        assert end_before_s <= capture.ended_monotonic_s - capture.started_monotonic_s


def test_each_phase_that_wrote_is_durable_when_it_ends() -> None:
    phases = parse("bonnie", as_if_buffered("direct")).phases
    assert [phase.includes_flush for phase in phases] == [True, True, False, True]
    for phase in phases:
        if phase.operation == "read":
            assert phase.until_durable is None and phase.durable_reason is None
            continue
        if phase.bandwidth_bytes_per_s is None:  # +++++
            assert phase.until_durable is None
            continue
        assert phase.until_durable is not None and phase.end_s is not None
        assert phase.until_durable.end_s == phase.end_s
        assert phase.until_durable.bandwidth_bytes_per_s == phase.bandwidth_bytes_per_s
        assert phase.until_durable.source == "Bonnie++'s fsync at the end of the phase"
    each = as_if_buffered("direct")
    each = replace(each, factors={**each.factors, "flush": "each"})
    durable = parse("bonnie", each).phases[0].until_durable
    assert durable is not None and "of each write (-b)" in durable.source
    # It is not known when, but its bandwidth is that until durable all the same.
    (write,) = parse("bonnie", replace(kept("direct"), stamps=())).phases
    assert (write.until_durable, write.durable_reason, write.includes_flush) == (None, None, True)


def test_too_fast_is_no_number() -> None:
    phases = parse("bonnie", kept("buffered")).phases
    assert csv("buffered")[17] == "+++++"
    read = phases[2]
    assert read.bandwidth_bytes_per_s is None
    assert "+++++" in read.invalid[0] and "file_size" in read.invalid[0]


def test_direct_io_that_was_not_is_left_out_and_reported() -> None:
    result = parse("bonnie", kept("direct"))
    (write,) = result.phases
    assert write.name == "write" and write.invalid == ()
    assert write.bandwidth_bytes_per_s == int(csv("direct")[11]) * 1024
    assert "left out" in result.notes[0]
    assert parse("bonnie", kept("buffered")).notes == ()


def test_without_stamps_there_is_no_window() -> None:
    phases = parse("bonnie", replace(kept("direct"), stamps=())).phases
    assert {(p.start_s, p.end_s) for p in phases} == {(None, None)}
    assert phases[0].bandwidth_bytes_per_s is not None


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("", "empty"),
        ("fio-3.33\n", "did not finish"),
        ("1.98,2.00a,eeio,1,2\n", "of 5 fields, and not 48 or 50"),
        ("1.98,2.00a,eeio,1,2,512M,,8192,5,,,fast" + "," * 38 + "\n", "'fast' is not a rate"),
    ],
)
def test_foreign_output_is_named(tmp_path: Path, content: str, found: str) -> None:
    (tmp_path / "stdout.txt").write_text(content)
    with pytest.raises(ToolOutputError, match=rf"stdout\.txt: .*{found}"):
        parse("bonnie", replace(kept("direct"), directory=tmp_path))


@given(cut=st.floats(0, 1))
def test_truncated_output_never_gives_a_wrong_number(
    tmp_path_factory: pytest.TempPathFactory, cut: float
) -> None:
    folder = tmp_path_factory.mktemp("cut") / "direct"
    shutil.copytree(DATA / "direct", folder)
    text = (folder / "stdout.txt").read_text()
    (folder / "stdout.txt").write_text(text[: int(cut * len(text))])
    try:
        result = parse("bonnie", Capture.load(folder))
    except ToolOutputError:
        return
    assert result == parse("bonnie", kept("direct"))
