"""IOzone: figures by their column, windows by their arrival."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eeio.errors import ToolOutputError
from eeio.record.tools import parse
from eeio.record.tools.capture import Capture, ToolResult

DATA = Path(__file__).parents[1] / "outputs/3.489"


def kept(case: str) -> Capture:
    return Capture.load(DATA / case)


def of_text(folder: Path, text: str) -> ToolResult:
    """The result of an invocation that was not stamped."""
    (folder / "stdout.txt").write_text(text)
    return parse("iozone", replace(kept("read"), directory=folder, stamps=()))


def row(case: str) -> list[int]:
    """The figures of the only row, blanks left out."""
    text = (DATA / case / "stdout.txt").read_text()
    return [int(word) for word in text.split("freread\n")[1].split("\n")[0].split()]


@pytest.mark.parametrize(
    ("case", "name", "operation", "spatiality", "request_size_bytes"),
    [
        ("read", "read", "read", "sequential", 65536),
        ("write", "write", "write", "sequential", 1 << 20),
        ("strided", "strided read", "read", "strided", 65536),
    ],
)
def test_one_test(
    case: str, name: str, operation: str, spatiality: str, request_size_bytes: int
) -> None:
    capture = kept(case)
    (phase,) = parse("iozone", capture).phases
    size_kib, record_kib, rate = row(case)[:3]
    assert (phase.name, phase.operation, phase.spatiality) == (name, operation, spatiality)
    assert phase.request_size_bytes == record_kib * 1024 == request_size_bytes
    assert phase.bytes_moved == size_kib * 1024 == 64 << 20
    assert phase.bandwidth_bytes_per_s == rate * 1024
    assert phase.start_s is not None and phase.end_s is not None
    assert phase.end_s - phase.start_s == pytest.approx(size_kib / rate)
    assert phase.start_s > 0
    assert phase.end_s < capture.ended_monotonic_s - capture.started_monotonic_s
    assert "arrival" in phase.window_source


SEQUENTIAL = ["write", "rewrite", "read", "reread"]
RANDOM = ["random read", "random write"]


@pytest.mark.parametrize(
    ("case", "tests"),
    [
        ("all-tests", [*SEQUENTIAL, *RANDOM, "backward read", "record rewrite", "strided read"]),
        ("every-test", [*SEQUENTIAL, *RANDOM, "backward read", "record rewrite", "strided read",
                        "fwrite", "frewrite", "fread", "freread"]),
        ("mixed-tests", [*RANDOM, "strided read"]),
        ("read", ["read"]),
    ],
)  # fmt: skip
def test_the_wider_columns_of_debian_13(tmp_path: Path, case: str, tests: list[str]) -> None:
    """3.507: a figure is one wider than the blank of a test that was left out."""
    text = (DATA.parent / "3.507/other" / f"{case}.txt").read_text()
    figures = [int(word) for word in text.split("freread\n")[1].split("\n")[0].split()][2:]
    phases = of_text(tmp_path, text).phases
    assert [phase.name for phase in phases] == tests
    assert [phase.bandwidth_bytes_per_s for phase in phases] == [
        figure * 1024 for figure in figures if figure
    ]


def test_columns_of_no_known_version_are_rejected(tmp_path: Path) -> None:
    text = (DATA / "other/all-tests.txt").read_text().replace("  freread", "    freread")
    with pytest.raises(ToolOutputError, match="of no known version"):
        of_text(tmp_path, text)


def test_random_reads_come_before_random_writes() -> None:
    reads, writes = parse("iozone", kept("random")).phases
    _, _, read_rate, write_rate = row("random")
    assert (reads.operation, writes.operation) == ("read", "write")
    assert reads.bandwidth_bytes_per_s == read_rate * 1024
    assert writes.bandwidth_bytes_per_s == write_rate * 1024
    assert reads.start_s is not None and reads.end_s is not None and writes.start_s is not None
    assert 0 < reads.start_s < reads.end_s <= writes.start_s


def test_several_processes() -> None:
    reads, writes = parse("iozone", kept("two-processes")).phases
    text = (DATA / "two-processes" / "stdout.txt").read_text()
    parents = [float(x) for x in re.findall(r"Parent sees.*= *([\d.]+) kB/sec", text)]
    children = [float(x) for x in re.findall(r"Children see.*= *([\d.]+) kB/sec", text)]
    assert [p.bandwidth_bytes_per_s for p in (reads, writes)] == [x * 1024 for x in parents]
    assert reads.metrics["children_bandwidth_bytes_per_s"] == children[0] * 1024
    assert reads.metrics["parent_bandwidth_bytes_per_s"] == parents[0] * 1024
    assert reads.bytes_moved == writes.bytes_moved == 64 << 20
    assert reads.invalid == ()
    assert reads.end_s is not None and writes.start_s is not None
    # IOzone waits some seconds between its tests: each is placed by its own figure.
    assert writes.start_s - reads.end_s > 1


def test_all_columns(tmp_path: Path) -> None:
    text = (DATA / "other" / "all-tests.txt").read_text()
    phases = of_text(tmp_path, text).phases
    figures = [int(w) for w in text.split("freread\n")[1].split("\n")[0].split()]
    assert [p.name for p in phases] == [
        "write",
        "rewrite",
        "read",
        "reread",
        "random read",
        "random write",
        "backward read",
        "record rewrite",
        "strided read",
    ]
    assert [p.bandwidth_bytes_per_s for p in phases] == [x * 1024 for x in figures[2:]]


def test_without_stamps_the_end_of_the_process_serves() -> None:
    capture = replace(kept("read"), stamps=())
    (phase,) = parse("iozone", capture).phases
    assert phase.end_s == capture.ended_monotonic_s - capture.started_monotonic_s
    assert "end of the process" in phase.window_source
    # With several processes it sleeps before it ends: no window rather than a wrong one.
    phases = parse("iozone", replace(kept("two-processes"), stamps=())).phases
    assert {(p.start_s, p.end_s) for p in phases} == {(None, None)}


@pytest.mark.parametrize("flushed", [True, False])
def test_64_processes(flushed: bool) -> None:
    case = "64-processes" if flushed else "64-processes-not-flushed"
    result = parse("iozone", kept(case))
    (phase,) = result.phases
    text = (DATA / case / "stdout.txt").read_text()
    figures = dict(re.findall(r"\t(Children|Parent|Min thr|Max thr).*= *([\d.]+) kB/sec", text))
    assert phase.bandwidth_bytes_per_s == float(figures["Parent"]) * 1024
    assert {
        name: phase.metrics[f"{name}_bandwidth_bytes_per_s"]
        for name in ("parent", "children", "slowest_process", "fastest_process")
    } == {
        name: float(figures[message]) * 1024
        for name, message in {
            "parent": "Parent", "children": "Children", "slowest_process": "Min thr",
            "fastest_process": "Max thr",
        }.items()
    }  # fmt: skip
    assert phase.metrics["processes"] == 64
    assert (phase.bytes_moved, phase.request_size_bytes) == (8 << 20, 32 << 10)
    assert phase.invalid == ()
    # The parent waits for the flush that follows a write, so its time places the phase.
    assert phase.start_s is not None and phase.end_s is not None
    assert phase.end_s - phase.start_s == pytest.approx(8192 / float(figures["Parent"]))
    assert len(result.notes) == (0 if flushed else 1)
    if not flushed:
        assert result.notes[0].startswith("the time of a write leaves the flush out (flush=none)")
        # What it tells is the page cache.
        assert phase.metrics["children_bandwidth_bytes_per_s"] > 100 * phase.bandwidth_bytes_per_s


def test_a_write_that_is_flushed_after_its_time_has_no_window() -> None:
    """IOzone writes, takes the time, flushes, and prints: when it wrote is not told."""
    result = parse("iozone", kept("write-not-flushed"))
    (phase,) = result.phases
    assert phase.bandwidth_bytes_per_s == row("write-not-flushed")[2] * 1024
    assert (phase.start_s, phase.end_s) == (None, None)
    assert phase.window_source.startswith("none: the time of a write leaves the flush out")
    assert result.notes == ("the time of a write leaves the flush out (flush=none)",)
    assert parse("iozone", kept("write")).notes == parse("iozone", kept("read")).notes == ()


@pytest.mark.parametrize("name", ["stonewalled.txt", "16-stonewalled.txt"])
def test_processes_that_were_stopped_early_are_marked(tmp_path: Path, name: str) -> None:
    (phase,) = of_text(tmp_path, (DATA / "other" / name).read_text()).phases
    assert phase.invalid and "-x" in phase.invalid[0]


def test_the_least_transfer_alone_does_not_prove_complete_files(tmp_path: Path) -> None:
    """Two of 16 writers had a rate, yet IOzone tells that the least moved its whole file."""
    text = (DATA / "other" / "16-stonewalled.txt").read_text()
    assert re.search(r"Min xfer\s+= +128\.00 kB", text)
    average, fastest = (
        float(re.findall(rf"{word} throughput.*= *([\d.]+)", text)[0]) for word in ("Avg", "Max")
    )
    assert average * 16 < 2 * fastest
    assert of_text(tmp_path, text).phases[0].bytes_moved == 128 << 10


@pytest.mark.parametrize(
    ("name", "found"),
    [("missing-file.txt", "Can not open temporary file nothing"), ("operations.txt", "kBytes/sec")],
)
def test_failures(tmp_path: Path, name: str, found: str) -> None:
    with pytest.raises(ToolOutputError, match=rf"stdout\.txt: .*{found}"):
        of_text(tmp_path, (DATA / "other" / name).read_text())


def test_foreign_and_empty_output(tmp_path: Path) -> None:
    with pytest.raises(ToolOutputError, match=r"stdout\.txt: not IOzone's"):
        of_text(tmp_path, "fio-3.33")
    with pytest.raises(ToolOutputError, match=r"stdout\.txt: empty"):
        of_text(tmp_path, "")


@pytest.mark.parametrize(
    "case", ["read", "write", "random", "strided", "two-processes", "64-processes"]
)
@given(cut=st.floats(0, 1))
def test_truncated_output_never_gives_a_wrong_number(
    tmp_path_factory: pytest.TempPathFactory, case: str, cut: float
) -> None:
    text = (DATA / case / "stdout.txt").read_text()
    folder = tmp_path_factory.mktemp("cut")
    (folder / "stdout.txt").write_text(text[: int(cut * len(text))])
    try:
        result = parse("iozone", replace(kept(case), directory=folder))
    except ToolOutputError:
        return
    assert result == parse("iozone", kept(case))
