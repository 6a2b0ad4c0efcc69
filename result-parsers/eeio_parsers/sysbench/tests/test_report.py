"""Imported outputs of sysbench."""

from pathlib import Path

import pytest
from tests.eeio.importing.importer import Importer
from tests.eeio.importing.read import read_one, why_rejected

from eeio.exchange.importing import results

OUTPUTS = Path(__file__).parents[1] / "outputs"

SYSBENCH_RUN = (
    "sysbench {version}{colon} (using bundled LuaJIT 2.1.0)\n\nNumber of threads: 2\n"
    "Extra file open flags: 0\nBlock size 16Kb\nDoing random r/w test\nThreads started!\n{end}"
)


def test_sysbench_of_all_versions(tmp_path: Path, imported: Importer) -> None:
    new = (
        "Throughput:\n         read:  IOPS=4800.00 75.00 MiB/s (78.64 MB/s)\n"
        "         write: IOPS=3200.00 50.00 MiB/s (52.43 MB/s)\n         fsync: IOPS=10.0\n"
    )
    old = (
        "Operations performed:  48000 reads, 32000 writes, 0 Other = 80000 Total\n"
        "Read 750Mb  Written 500Mb  Total transferred 1250Mb  (125Mb/sec)\n"
        "    total time:                          10.0000s\n"
    )
    prepare = "sysbench 1.1.0 (using x)\n\n2 files, 2Kb each\nExtra file open flags: 0\n"
    other = "sysbench 1.1.0 (using x)\n\nCPU speed:\n    events per second: 9.5\n"
    first, second = (
        SYSBENCH_RUN.format(version=version, colon=colon, end=end)
        for version, colon, end in (("1.1.0", "", new), ("0.5", ":", old))
    )
    (tmp_path / "a.txt").write_text(prepare + first + other + second)
    (file,) = imported(tmp_path / "a.txt", "--dry-run")["files"]
    assert len(file["reports"]) == 2
    for report in file["reports"]:
        read, write = report["phases"]
        assert (read["bandwidth_bytes_per_s"], read["iops"]) == (75 << 20, 4800)
        assert (write["bandwidth_bytes_per_s"], write["iops"]) == (50 << 20, 3200)
    ended_early = SYSBENCH_RUN.format(version="1", colon="", end="")
    (tmp_path / "b.txt").write_text(ended_early)
    (file,) = imported(tmp_path / "b.txt", "--dry-run", code=2)["files"]
    assert "cut off" in file["rejected"]
    (tmp_path / "c.txt").write_text(first + ended_early)
    (file,) = imported(tmp_path / "c.txt", "--dry-run")["files"]
    (report,) = file["reports"]
    assert len(report["phases"]) == 2 and "1 other tests" in report["notes"][0]


@pytest.mark.parametrize(
    ("printed", "bytes_per_s"),
    [
        ("read:  IOPS=4.96 0.08 MiB/s (0.08 MB/s)", 4.96 * 16384),
        ("read:  IOPS=0.16 0.00 MiB/s (0.00 MB/s)", 0.16 * 16384),
        # Of requests that are not of 16 KiB.
        ("read:  IOPS=4.96 0.16 MiB/s (0.16 MB/s)", 0.16 * (1 << 20)),
    ],
)
def test_small_rates_of_sysbench_are_computed_from_its_requests(
    printed: str, bytes_per_s: float, imported: Importer
) -> None:
    text = SYSBENCH_RUN.format(version="1.1.0", colon="", end=f"Throughput:\n         {printed}\n")
    (read,) = imported.phases_of(text)
    assert read["bandwidth_bytes_per_s"] == pytest.approx(bytes_per_s)


def test_a_test_of_sysbench_without_requests_is_not_cut_off(tmp_path: Path) -> None:
    """As sysbench 0.4.12 ends where its files are missing, and later ones without any request."""
    fatal = "FATAL: Failed to read file! file: 12 pos: 12578816 errno = 0 ()"
    none = "Operations performed:  0 Read, 0 Write, 0 Other = 0 Total\nRead 0b  Written 0b\n"
    failed = SYSBENCH_RUN.format(version="0.4.12", colon=":", end=f"{fatal}\nDone.\n\n{none}")
    wanted = f"0 requests; {fatal}"
    assert why_rejected(tmp_path, failed) == f"sysbench: no throughput of file I/O: {wanted}"
    zero = "Throughput:\n    read, MiB/s:     0.00\n    total number of events:   0\n"
    newer = SYSBENCH_RUN.format(version="1.0.20", colon="", end=zero)
    assert why_rejected(tmp_path, newer) == "sysbench: no throughput of file I/O: 0 requests"
    newer = SYSBENCH_RUN.format(version="1.0.20", colon="", end=f"{fatal}\n")
    assert why_rejected(tmp_path, newer) == f"sysbench: no throughput of file I/O: {fatal}"
    whole = "Throughput:\n         read:  IOPS=4800.00 75.00 MiB/s (78.64 MB/s)\n"
    text = SYSBENCH_RUN.format(version="1.1.0", colon="", end=whole) + failed
    (report,) = read_one(tmp_path, text).reports
    note = f"1 other tests of file I/O have no throughput, the first: {wanted}"
    assert report.notes == (note,)


def test_sysbench_s_runs_without_the_beginning_of_their_output(
    tmp_path: Path, imported: Importer
) -> None:
    """Scripts keep a part of each run: with the settings, or only its results."""
    text = (OUTPUTS / "sysbench.txt").read_text()
    other = text.replace("Block size 16KiB", "Block size 64KiB").replace("95.53", "80.25")
    results_only = text[text.index("File operations:") :].replace("95.53", "70.5")
    settings = other[other.index("Extra file open flags") :]
    (tmp_path / "a.txt").write_text(results_only + text + settings + results_only)
    (file,) = imported(tmp_path / "a.txt", "--dry-run")["files"]
    reads = [report["phases"][0] for report in file["reports"]]
    assert [read["request_bytes"] for read in reads] == [None, 16384, 65536, None]
    # With a known size, the rate of requests has more digits.
    rates = [read["bandwidth_bytes_per_s"] / (1 << 20) for read in reads]
    assert rates == pytest.approx([70.5, 95.52547, 80.25, 70.5], rel=1e-6)
    (campaign,) = results.campaigns(results.found([tmp_path / "a.txt"]), "x")
    # Nothing shows that those without settings are repetitions.
    assert [run.repetition for run in campaign.runs] == [1] * 8


def test_sysbench_s_modes_keep_rows_apart(tmp_path: Path, imported: Importer) -> None:
    end = "Throughput:\n         write: IOPS=320.00 5.00 MiB/s (5.24 MB/s)\n"
    run = SYSBENCH_RUN.format(version="1.1.0", colon="", end=end)
    settings = "Extra file open flags: {}\nUsing {} I/O mode\nDoing {} test"
    old = "Extra file open flags: 0\nBlock size 16Kb\nDoing random r/w test"
    made = [
        ("(none)", "synchronous", "random r/w"), ("directio", "synchronous", "random r/w"),
        ("(none)", "asynchronous", "random r/w"), ("(none)", "synchronous", "sequential rewrite"),
        ("(none)", "synchronous", "sequential write (creation)"),
    ]  # fmt: skip
    assert old in run
    (tmp_path / "a.txt").write_text(
        "".join(run.replace(old, "Block size 16KiB\n" + settings.format(*one)) for one in made)
    )
    (file,) = imported(tmp_path / "a.txt", "--dry-run")["files"]
    found = [phase for report in file["reports"] for phase in report["phases"]]
    assert [phase["direct"] for phase in found] == [False, True, False, False, False]
    (campaign,) = results.campaigns(results.found([tmp_path / "a.txt"]), "x")
    assert [run.repetition for run in campaign.runs] == [1] * 5
