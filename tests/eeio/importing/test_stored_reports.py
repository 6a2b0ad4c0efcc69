"""Text reports of fio and IOR against what stands in them, cut off at any place."""

import csv
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.plugin import PARSERS
from tests.published import PUBLISHED, needs_published

from eeio.errors import LimitError, ToolOutputError
from eeio.exchange.importing import outputs
from eeio.files import inputs
from eeio.record.run import Phase
from eeio_parsers.found import FoundPhase

FIO = PARSERS / "fio/outputs/3.33/other"
IOR = ("3.3.0", "4.0.0")


def phases(form: str, text: str) -> tuple[Phase, ...]:
    return outputs.read(form, text, "report.txt").phases


def ior_text(version: str, name: str) -> str:
    return (PARSERS / "ior/outputs" / version / "other" / name).read_text()


def test_fio_3_33() -> None:
    text = (FIO / "normal.txt").read_text()
    (phase,) = phases("fio", text)
    (runtime_ms,) = re.findall(r"run=\d+-(\d+)msec", text)
    assert phase.bytes_moved == 8 << 20
    assert (phase.operation, phase.spatiality, phase.request_size_bytes) == ("read", "random", 4096)
    assert phase.metrics["runtime_s"] == int(runtime_ms) / 1000
    (mean,) = re.findall(r"^ +lat \(usec\):.*avg=([\d.]+)", text, re.M)
    assert phase.metrics["latency_total_mean_s"] == pytest.approx(float(mean) * 1e-6)
    (p999,) = re.findall(r"99\.90th=\[ *(\d+)\]", text)
    assert phase.metrics["latency_p999_s"] == pytest.approx(int(p999) * 1e-6)
    assert phase.start_s is None


def test_two_jobs_of_a_group_are_added() -> None:
    """Both directions of each job happen at the same time: one phase, with the rates of each."""
    text = (FIO / "normal-two-jobs.txt").read_text()
    issued = re.findall(r"issued rwts: total=(\d+),(\d+),", text)
    (phase,) = phases("fio", text)
    read, written = (4096 * sum(int(each[side]) for each in issued) for side in (0, 1))
    assert (phase.operation, phase.bytes_moved) == ("mixed", read + written)
    share = phase.metrics["read_bandwidth_bytes_per_s"] / (phase.bandwidth_bytes_per_s or 1)
    assert share == pytest.approx(read / (read + written), rel=0.01)


@pytest.mark.parametrize("name", ["normal.txt", "normal-two-jobs.txt"])
def test_fio_cut_off_anywhere(name: str) -> None:
    text = (FIO / name).read_text()
    complete = phases("fio", text)
    for end in range(len(text)):
        try:
            assert phases("fio", text[:end]) == complete
        except ToolOutputError:
            continue


@needs_published
def test_fio_2_2_10() -> None:
    """Hand-checked: 55774 requests of 32 KiB in 60.009 s; latencies as printed."""
    path = PUBLISHED / "experiment0_aug2017" / "PC+HDD1" / "write_pc+hdd1_32kreq_semcache_1.out"
    (phase,) = phases("fio", path.read_text())
    assert (phase.operation, phase.spatiality) == ("write", "sequential")
    assert phase.bytes_moved == 55774 * 32768
    assert phase.bandwidth_bytes_per_s == pytest.approx(55774 * 32768 / 60.009)
    assert phase.metrics["latency_total_mean_s"] == pytest.approx(1075.22e-6)
    assert phase.metrics["latency_p99_s"] == pytest.approx(2096e-6)
    assert phase.metrics["cpu_system_fraction"] == pytest.approx(0.0049)


@needs_published
@pytest.mark.parametrize(
    ("folder", "table"),
    [
        ("experiment0_aug2017/PC+HDD1", "experiment0_aug2017/tempo_PC+HDD1.csv"),
        ("experiment0_aug2017/PC+SSD2", "experiment0_aug2017/tempo_PC+SSD2.csv"),
        ("experiment5_aug2017/draco1+ssd", "experiment5_aug2017/tempo_draco1+ssd.csv"),
        (
            "experiment5_aug2017/draco1-powersave+ssd",
            "experiment5_aug2017/tempo_draco1-powersave+ssd.csv",
        ),
    ],
)
def test_the_authors_own_table(folder: str, table: str) -> None:
    """Their table has fio's rounded figures, ours the exact ones: 0.05 % apart at most."""
    with (PUBLISHED / table).open() as file:
        rows = {
            (r["operation"], r["reqsize"], r["cache"], r["repetition"]): r
            for r in csv.DictReader(file, delimiter=";")
        }
    compared = 0
    for path in sorted((PUBLISHED / folder).glob("*cache_*.out")):
        name = re.search(r"^([a-z]+)_.*?_+(\d+)[km]req_(sem|com)cache_(\d+)", path.name)
        assert name is not None, path
        size = {"32": "32", "4": "4096"}[name[2]]
        row = rows.get((name[1], size, "0" if name[3] == "sem" else "1", name[4])) or rows.get(
            (name[1], name[2], "0" if name[3] == "sem" else "1", name[4])
        )
        if row is None:
            continue
        (phase,) = phases("fio", path.read_text())
        assert phase.bytes_moved == pytest.approx(float(row["dataamount"]), rel=5e-4)
        assert phase.bandwidth_bytes_per_s == pytest.approx(float(row["bandwidth"]), rel=5e-4)
        compared += 1
    assert compared >= 20


@pytest.mark.parametrize("piece", [": (g=0): rw=", "a-", " lat (", "("])
def test_a_long_line_of_fios_text_takes_no_time(piece: str) -> None:
    """Quadratic: 140 KB took more than 25 s."""
    text = (FIO / "normal.txt").read_text()
    with pytest.raises(ToolOutputError, match="longer than"):
        phases(
            "fio",
            text.replace(": (g=0): rw=", piece * (140_000 // len(piece)) + ": (g=0): rw=", 1),
        )
    fitting = piece * ((inputs.TOOL_LINE_CHARACTERS - 500) // len(piece))
    try:
        phases("fio", text.replace(": (g=0): rw=", fitting + ": (g=0): rw=", 1))
    except ToolOutputError as error:
        assert "report.txt" in str(error)


@pytest.mark.parametrize("version", IOR)
def test_iterations_of_ior(version: str) -> None:
    text = ior_text(version, "collective.txt")
    found = phases("ior", text)
    assert [p.name for p in found] == ["write 0", "read 0", "write 1", "read 1"]
    for phase in found:
        assert phase.bytes_moved == 2 * 2 * (4 << 20)
        assert (phase.request_size_bytes, phase.spatiality) == (1 << 20, "sequential")
    rows = [line.split() for line in text.split("Summary")[0].splitlines()]
    first, second = (row for row in rows if row[:1] == ["write"] and len(row) == 11)
    assert found[0].bandwidth_bytes_per_s == float(first[1]) * (1 << 20)
    assert found[2].metrics["runtime_s"] == float(second[9])


@pytest.mark.parametrize("version", IOR)
def test_patterns_of_ior(version: str) -> None:
    strided = phases("ior", ior_text(version, "strided.txt"))
    assert {p.spatiality for p in strided} == {"strided"}
    assert {p.bytes_moved for p in strided} == {2 * 32 * (128 << 10)}
    random = phases("ior", ior_text(version, "random-direct.txt"))
    assert {(p.spatiality, p.request_size_bytes) for p in random} == {("random", 64 << 10)}


@pytest.mark.parametrize("version", IOR)
def test_an_error_of_ior_is_reported(version: str) -> None:
    with pytest.raises(ToolOutputError, match=r"IOR: it stopped: (cannot open|open)"):
        phases("ior", ior_text(version, "no-directory.txt"))


@pytest.mark.parametrize("version", IOR)
@pytest.mark.parametrize(("option", "flushed"), [("-e", True), ("-Y", True), ("-C", False)])
def test_a_write_of_ior_that_was_flushed(version: str, option: str, flushed: bool) -> None:
    text = ior_text(version, "strided.txt")
    (command,) = re.findall(r"^Command line.*", text, re.M)
    assert " -e " in command and " -Y " not in command
    write, read = phases("ior", text.replace(command, command.replace(" -e ", f" {option} ")))
    assert (write.includes_flush, read.includes_flush) == (flushed, False)
    assert (write.durable_reason is None) == flushed and read.durable_reason is None


@pytest.mark.parametrize("version", IOR)
def test_json_of_ior(version: str) -> None:
    found = phases("ior", ior_text(version, "two-iterations.json"))
    assert [p.name for p in found] == ["write 0", "read 0", "write 1", "read 1"]
    assert {p.bytes_moved for p in found} == {2 * 2 * (4 << 20)}
    assert all((p.bandwidth_bytes_per_s or 0) > 1e8 for p in found)
    # Requests per second are of the transfer alone, without opening and closing.
    (write, _) = phases("ior", (PARSERS / "ior/outputs/ior-4.0.0.json").read_text())
    assert not write.validity and write.metrics["transfer_s"] == 0.0009


def test_hdf5_of_ior() -> None:
    write, read = phases("ior", ior_text("4.1.0-dev", "hdf5-strided.txt"))
    assert (write.operation, read.operation) == ("write", "read")
    assert {p.spatiality for p in (write, read)} == {"strided"}
    assert {p.bytes_moved for p in (write, read)} == {2 * 16 << 20}
    found = phases("ior", ior_text("4.1.0-dev", "hdf5.json"))
    assert [(p.name, p.bytes_moved) for p in found] == [("write", 16 << 20), ("read", 16 << 20)]


@given(st.data())
def test_a_report_of_ior_that_is_cut_off_is_rejected_or_complete(data: st.DataObject) -> None:
    text = ior_text(data.draw(st.sampled_from(IOR)), "collective.txt")
    try:
        found = phases("ior", text[: data.draw(st.integers(0, len(text)))])
    except ToolOutputError:
        return
    assert [p.bytes_moved for p in found] == [16 << 20] * 4


@pytest.mark.parametrize(
    ("options", "wanted"), [("-w", 1), ("-wk -e", 1), ("-r -w", 2), ("-k", 2), (None, 1)]
)
def test_results_that_a_killed_ior_lacks_are_counted(options: str | None, wanted: int) -> None:
    """Without its summary, the command line shows how many results there should be."""
    text = (PARSERS / "io500/outputs/02091cf/ior-easy-write.txt").read_text()
    (line,) = re.findall(r"^Command line.*\n", text, re.M)
    text = text.replace(line, f"Command line        : ior {options} -o x\n" if options else "")
    if wanted == 1:
        assert len(phases("ior", text)) == 1
    else:
        with pytest.raises(ToolOutputError, match="cut off: 1 of 2 results"):
            phases("ior", text)


@pytest.mark.parametrize("word", ["-5", "nan", "inf", "1e999"])
def test_a_bandwidth_of_ior_that_cannot_be(word: str) -> None:
    lines = ior_text("4.0.0", "collective.txt").splitlines(keepends=True)
    place = next(n for n, line in enumerate(lines) if line.startswith("write ") and line[10] != "-")
    lines[place] = lines[place].replace(lines[place].split()[1], word, 1)
    with pytest.raises(ToolOutputError, match="not a number of 0 or more"):
        phases("ior", "".join(lines))


def test_iozone_reports_0_for_a_test_that_did_not_run() -> None:
    """-+n leaves the rewrite out."""
    (write,) = phases("iozone", (PARSERS / "iozone/outputs/3.489/write/stdout.txt").read_text())
    assert (write.name, write.bandwidth_bytes_per_s) == ("write", 1444985 * 1024)


def test_bytes_of_iozones_processes_are_known_if_the_slowest_has_finished() -> None:
    text = (PARSERS / "iozone/outputs/3.489/two-processes/stdout.txt").read_text()
    assert {p.bytes_moved for p in phases("iozone", text)} == {2 * 32768 * 1024}
    fewer = text.replace("Min xfer \t\t\t\t\t=   32768.00", "Min xfer \t\t\t\t\t=   30000.00", 1)
    assert fewer != text
    assert [p.bytes_moved for p in phases("iozone", fewer)] == [None, 2 * 32768 * 1024]


def test_dds_megabytes_are_decimal(tmp_path: Path) -> None:
    text = "+ dd if=/dev/zero of=/mnt/f bs={} count=4\n{} bytes (x) copied, 1 s, 4 MB/s\n"
    for word, request in (("1M", 1 << 20), ("1MB", 10**6), ("512", 512)):
        (phase,) = phases("dd", text.format(word, 4 * request))
        assert (phase.request_size_bytes, phase.bytes_moved) == (request, 4 * request)


def test_a_rate_among_the_metrics_is_no_time() -> None:
    """PTS's mixed phases have the bandwidth of each direction."""
    found = FoundPhase("m", "mixed", metrics={"read_bandwidth_bytes_per_s": 3e8, "latency_s": 1.0})
    assert found.checked() is found
    with pytest.raises(LimitError, match="latency_s"):
        FoundPhase("m", "mixed", metrics={"latency_s": 3e8}).checked()
