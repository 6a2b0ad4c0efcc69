"""IOR 3.3.0, 4.0.0 and, with HDF5, 4.1.0+dev: what they wrote (commands stand beside the files)."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eeio_results.errors import ToolOutputError
from eeio_results.record import Durable
from eeio_results.tools import ior
from eeio_results.tools.capture import Capture, Stamp

DATA = Path(__file__).parents[2] / "data" / "ior"
VERSIONS = ("3.3.0", "4.0.0")


def text(version: str, name: str) -> str:
    return (DATA / version / "other" / name).read_text()


def printed(version: str, name: str, operation: str) -> list[list[str]]:
    """Columns of the results as they stand in the file."""
    rows = [line.split() for line in text(version, name).split("Summary")[0].splitlines()]
    return [row for row in rows if row[:1] == [operation] and len(row) == 11]


@pytest.mark.parametrize("version", VERSIONS)
def test_iterations_of_a_collective_run(version: str) -> None:
    phases = ior.parse_text(text(version, "collective.txt")).phases
    assert [p.name for p in phases] == ["write 0", "read 0", "write 1", "read 1"]
    for phase in phases:
        assert phase.bytes_moved == 2 * 2 * (4 << 20)
        assert (phase.request_size_bytes, phase.spatiality) == (1 << 20, "sequential")
        assert phase.start_s is None
    first, second = printed(version, "collective.txt", "write")
    assert phases[0].bandwidth_bytes_per_s == float(first[1]) * (1 << 20)
    assert phases[2].metrics["total_s"] == float(second[9])


@pytest.mark.parametrize("version", VERSIONS)
def test_patterns(version: str) -> None:
    strided = ior.parse_text(text(version, "strided.txt")).phases
    assert {p.spatiality for p in strided} == {"strided"}
    assert {p.bytes_moved for p in strided} == {2 * 32 * (128 << 10)}
    random = ior.parse_text(text(version, "random-direct.txt")).phases
    assert {p.spatiality for p in random} == {"random"}
    assert {p.request_size_bytes for p in random} == {64 << 10}


@pytest.mark.parametrize("version", VERSIONS)
def test_an_error_is_told(version: str) -> None:
    with pytest.raises(ToolOutputError, match=r"IOR stopped: cannot open|IOR stopped: open"):
        ior.parse_text(text(version, "no-directory.txt"))


@pytest.mark.parametrize("version", VERSIONS)
def test_json(version: str) -> None:
    phases = ior.parse_json(text(version, "two-iterations.json")).phases
    assert [p.name for p in phases] == ["write 0", "read 0", "write 1", "read 1"]
    assert {p.bytes_moved for p in phases} == {2 * 2 * (4 << 20)}
    assert all((p.bandwidth_bytes_per_s or 0) > 1e8 for p in phases)


def test_hdf5() -> None:
    """By a later IOR, built with HDF5."""
    write, read = ior.parse_text(text("4.1.0-dev", "hdf5-strided.txt")).phases
    assert (write.operation, read.operation) == ("write", "read")
    assert {p.spatiality for p in (write, read)} == {"strided"}
    assert {p.bytes_moved for p in (write, read)} == {2 * 16 << 20}
    printed_row = printed("4.1.0-dev", "hdf5-strided.txt", "write")[0]
    assert write.bandwidth_bytes_per_s == float(printed_row[1]) * (1 << 20)
    phases = ior.parse_json(text("4.1.0-dev", "hdf5.json")).phases
    assert [(p.name, p.bytes_moved) for p in phases] == [("write", 16 << 20), ("read", 16 << 20)]
    assert {p.request_size_bytes for p in phases} == {256 << 10}


@pytest.mark.parametrize("version", VERSIONS)
def test_the_window_ends_when_the_line_arrives(version: str, tmp_path: Path) -> None:
    content = text(version, "strided.txt")
    (tmp_path / "stdout.txt").write_text(content)
    end_of_write = content.index("\nread ")
    capture = Capture(
        tmp_path, {}, 0, 100.0, 110.0, 0.0,
        (Stamp("stdout", end_of_write + 1, 105.0), Stamp("stdout", len(content), 109.0)),
    )  # fmt: skip
    write, read = ior.parse(capture).phases
    total_s = float(printed(version, "strided.txt", "write")[0][9])
    assert write.end_s == 5.0
    assert write.start_s == pytest.approx(5.0 - total_s)
    assert read.end_s == 9.0


@pytest.mark.parametrize("version", VERSIONS)
def test_a_write_that_was_flushed_is_durable_when_it_ends(version: str, tmp_path: Path) -> None:
    whole = text(version, "strided.txt")
    (command,) = re.findall(r"^Command line.*", whole, re.M)
    assert " -e " in command and " -Y " not in command
    for word, source in (
        ("-e", "IOR's flush (-e)"),
        ("-Y", "IOR's flush of each request (-Y)"),
        ("-C", None),
    ):
        content = whole.replace(command, command.replace(" -e ", f" {word} "))
        (tmp_path / "stdout.txt").write_text(content)
        stamps = (Stamp("stdout", len(content), 109.0),)
        write, read = ior.parse(Capture(tmp_path, {}, 0, 100.0, 110.0, 0.0, stamps)).phases
        assert (read.includes_flush, read.until_durable, read.durable_reason) == (False, None, None)
        assert write.includes_flush == (source is not None)
        assert write.durable_reason is None
        if source is None:
            assert write.until_durable is None
        else:
            assert write.until_durable == Durable(9.0, write.bandwidth_bytes_per_s or 0, source)
        (write, _) = ior.parse_text(content).phases
        # Its bandwidth is that until durable, whenever that was.
        assert (write.until_durable, write.durable_reason) == (None, None)
        assert write.includes_flush == (source is not None)


@given(st.data())
def test_a_report_that_is_cut_off_is_rejected_or_whole(data: st.DataObject) -> None:
    content = text(data.draw(st.sampled_from(VERSIONS)), "collective.txt")
    cut = data.draw(st.integers(0, len(content)))
    try:
        phases = ior.parse_text(content[:cut]).phases
    except ToolOutputError:
        return
    assert [p.bytes_moved for p in phases] == [16 << 20] * 4


def test_something_else() -> None:
    for parse in (ior.parse_text, ior.parse_json):
        with pytest.raises(ToolOutputError):
            parse("fio-3.33")
        with pytest.raises(ToolOutputError):
            parse("")
