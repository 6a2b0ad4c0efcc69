"""Imported outputs of ior."""

import re
from pathlib import Path

import pytest
from tests.eeio.importing.importer import Importer
from tests.eeio.importing.read import read_one, why_rejected

from eeio.exchange.importing import results

OUTPUTS = Path(__file__).parents[1] / "outputs"


def test_the_means_below_a_table_of_ior_are_no_second_result(tmp_path: Path) -> None:
    """As IO500's IOR 2.10.3 prints them."""
    text = (
        "IOR-2.10.3: MPI Coordinated Test of Parallel I/O\n\nSummary:\n"
        "\tclients            = 16 (8 per node)\n\txfersize           = 2 MiB\n\n"
        "access    bw(MiB/s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s) total(s)  iter\n"
        "------    ---------  ---------- ---------  --------   --------   -------- --------  ----\n"
        "write     5645       20971520   2048.00    0.019049   362.66     0.096078 362.78     0\n"
        "Operation  Max (MiB)  Min (MiB)  Mean (MiB)   Std Dev  Max (OPs)  Mean (s)\n"
        "---------  ---------  ---------  ----------   -------  ---------  --------\n"
        "write        5645.32    5645.32     5645.32      0.00    2822.66 362.77869   16 8 1 1\n\n"
        "Max Write: 5645.32 MiB/sec (5919.54 MB/sec)\n\nRun finished: Mon Oct 16 2017\n"
    )
    ((phase,),) = [r.phases for r in read_one(tmp_path, text).reports]
    assert (phase.group, phase.bandwidth_bytes_per_s) == ("0", 5645 << 20)


def test_an_option_of_ior_without_a_value_hides_no_other(tmp_path: Path) -> None:
    """`Options: ` and `apiVersion : ` end with a blank; HDF5 and MPIIO are no repetitions."""
    text = (OUTPUTS / "ior-3.2.1.txt").read_text()
    assert re.search(r"^Options: *\napi  ", text, re.M)
    made = [
        re.sub(r"^api ( *): \S+", rf"api \1: {api}", text, flags=re.M).replace(
            "Options:", "Options: "
        )
        for api in ("HDF5", "MPIIO")
    ]
    path = tmp_path / "ior.txt"
    path.write_text("\n".join(made))
    (one,) = results.found([path])
    assert {phase.engine for report in one.reports for phase in report.phases} == {"HDF5", "MPIIO"}
    (campaign,) = results.campaigns([one], "x")
    assert len({run.experiment.id for run in campaign.runs if run.experiment.api == "hdf5"}) > 0
    assert {run.experiment.api for run in campaign.runs} == {"hdf5", "mpiio"}


@pytest.mark.parametrize("version", ["3.0.1", "3.2.1", "4.0.0"])
def test_the_summary_of_ior_alone(tmp_path: Path, version: str) -> None:
    """As notes quote it: without the beginning."""
    full = (OUTPUTS / f"ior-{version}.txt").read_text()
    text = full[full.index("Summary of all tests:") :]
    (report,) = read_one(tmp_path, text).reports
    assert "means of the repetitions" in report.notes[0]
    (complete,) = read_one(tmp_path, full).reports
    for phase in report.phases:
        all_of = [p for p in complete.phases if p.operation == phase.operation]
        mean = sum(p.bandwidth_bytes_per_s or 0.0 for p in all_of) / len(all_of)
        assert len(all_of) == 2 and phase.bandwidth_bytes_per_s == pytest.approx(mean, rel=1e-3)
        assert (phase.request_bytes, phase.jobs, phase.bytes) == (256 << 10, 2, 8 << 20)
        assert (phase.options["repetitions"], phase.engine) == ("2", "POSIX")
        assert phase.direct is None and phase.access_pattern is None
    assert "cut off" in why_rejected(tmp_path, text[: text.index("POSIX")])


IOR_TABLE = (
    "access    bw(MiB/s)  IOPS       Latency(s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   "
    "close(s)   total(s)   iter\n"
    "------    ---------  ----       ----------  ---------- ---------  --------   --------   "
    "--------   --------   ----\n"
    "Commencing write performance test: \n"
)


IOR_SUMMARY = (
    "Operation   Max(MiB)   Min(MiB)  Mean(MiB)     StdDev   Max(OPs)   Min(OPs)  Mean(OPs)     "
    "StdDev    Mean(s) Stonewall(s) Stonewall(MiB) Test# #Tasks "
    "tPN reps fPP reord reordoff reordrand seed segcnt   blksiz    xsize aggs(MiB)   API RefNum\n"
)


def ior_result(tasks: int, *rates: float, mean: float | None = None) -> str:
    """As a document quotes it: without the first line. A task writes 100 MiB."""
    rows = "".join(
        f"write     {rate:.2f}     {rate + 1:.2f}     0.01    1024.00    1024.00    0.000479   "
        f"{tasks * 100 / (rate + 1):.2f}      0.000387   {tasks * 100 / rate:.2f}      {place}   \n"
        for place, rate in enumerate(rates)
    )
    mean = sum(rates) / len(rates) if mean is None else mean
    figures = f"{max(rates):.2f} {min(rates):.2f} {mean:.2f}       0.00"
    return (
        f"threads={tasks}\n\nResults: \n\n{IOR_TABLE}{rows}"
        f"Max Write: {max(rates):.2f} MiB/sec (1.00 MB/sec)\n\nSummary of all tests:\n{IOR_SUMMARY}"
        f"write   {figures}   {figures}    0.74         NA            NA     0      {tasks}   1"
        f"    {len(rates)}   1     0        1         0    0  100  1048576  1048576    "
        f"{tasks * 100}.0 POSIX      0\n----\n+\n"
    )


def test_a_table_that_is_not_of_the_summary_below_it_is_left_out(tmp_path: Path) -> None:
    (report,) = read_one(tmp_path, ior_result(2, 310.0, 330.0, mean=350.0)).reports
    assert [(p.bandwidth_bytes_per_s, p.iops) for p in report.phases] == [(350 << 20, 350.0)]
    assert "means of the repetitions" in report.notes[0]
    # Rates below the decimals of the table are not known, and not 0.
    small = ior_result(1, 310.0).replace("310.00     311.00", "0.00     0.00")
    (report,) = read_one(tmp_path, small.replace("310.00", "0.00")).reports
    assert [(p.bandwidth_bytes_per_s, p.iops, p.operation) for p in report.phases] == [
        (None, None, "write")]  # fmt: skip
    # A deadline ended it.
    ended = ior_result(2, 310.0).replace("  100  1048576", "  900  1048576")
    (report,) = read_one(tmp_path, ended).reports
    assert [(p.bandwidth_bytes_per_s, p.bytes) for p in report.phases] == [(310 << 20, None)]


@pytest.mark.parametrize("broken", [("PO", "PO\n"), ("aggs(", "aggs\n("), ("POSIX      0", "PO")])
def test_a_summary_of_ior_broken_inside_a_word_is_rejected(
    tmp_path: Path, broken: tuple[str, str]
) -> None:
    text = ior_result(2, 310.0).replace(*broken)
    assert "cut off, or broken inside a word" in why_rejected(tmp_path, text)


@pytest.mark.parametrize(
    ("change", "iops"),
    [
        (("", ""), 2048.0),
        (("0.048", "9.048"), None),  # the time to close, which only the total has
        (("0     16  16    1", "0     16  16    2"), None),
        (("   8.00       0.00", "   9.00       0.00"), None),
    ],
)
def test_iops_of_older_ior_are_in_its_summary(
    tmp_path: Path, change: tuple[str, str], iops: float | None
) -> None:
    close_s = 9.048 if change[1] == "9.048" else 0.048
    text = (
        "IOR-3.2.0: MPI Coordinated Test of Parallel I/O\n"
        "Command line        : ior -t 4096 -b 4096 -s 1024 -w\n\nOptions: \n"
        "xfersize            : 4096 bytes\nblocksize           : 4096 bytes\n\nResults: \n\n"
        "access    bw(MiB/s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   "
        f"iter\nwrite     8.00       4.00       4.00       0.000107   8.00       {close_s}   "
        f"{8 + close_s - 0.048:.2f}       0   \nMax Write: 8.00 MiB/sec (8.39 MB/sec)\n\n"
        "Summary of all tests:\n"
        "Operation   Max(MiB)   Min(MiB)  Mean(MiB)     StdDev   Max(OPs)   Min(OPs)  Mean(OPs)  "
        "   StdDev    Mean(s) Test# #Tasks tPN reps fPP reord reordoff reordrand seed segcnt   "
        "blksiz    xsize aggs(MiB)   API RefNum\n"
        "write           8.00       8.00       8.00       0.00    2048.00    2048.00    2048.00  "
        "     0.00    8.00000     0     16  16    1   0     0        1         0    0   1024     "
        "4096     4096      64.0 POSIX      0\nFinished            : Fri Mar  8 14:35:14 2019\n"
    ).replace(*change)
    assert [p.iops for r in read_one(tmp_path, text).reports for p in r.phases] == [iops]


def test_ior_prints_the_header_of_its_tables_once(tmp_path: Path, imported: Importer) -> None:
    def test(access: str, rows: str) -> str:
        return (
            "IOR-2.10.1: MPI Coordinated Test of Parallel I/O\n\n"
            "Run began: Mon Mar  2 10:00:00 2020\nCommand line used: ./IOR -f two.ior\n"
            f"Machine: Linux n1\n\nSummary:\n\tapi                = POSIX\n"
            f"\taccess             = {access}\n\tclients            = 8 (4 per node)\n"
            "\trepetitions        = 1\n\txfersize           = 1 MiB\n"
            f"\tblocksize          = 64 MiB\n\taggregate filesize = 512 MiB\n\n{rows}\n"
            "Max Write: 1.00 MiB/sec (1.05 MB/sec)\n\n"
        )

    header = (
        "access    bw(MiB/s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   iter\n"
        "------    ---------  ---------- ---------  --------   --------   --------   ----\n"
    )
    rows = (
        "write     {}     65536      1024       0.010000   2.00       0.010000   0   \n"
        "read      {}     65536      1024       0.010000   1.00       0.010000   0   \n"
    )
    (tmp_path / "a.txt").write_text(
        test("single-shared-file", header + rows.format(256.00, 512.00))
        + test("file-per-process", rows.format(320.00, 640.00))
    )
    (file,) = imported(tmp_path / "a.txt", "--dry-run")["files"]
    assert [
        (phase["options"]["access"], phase["operation"], phase["bandwidth_bytes_per_s"] / (1 << 20))
        for report in file["reports"] for phase in report["phases"]
    ] == [
        ("single-shared-file", "write", 256), ("single-shared-file", "read", 512),
        ("file-per-process", "write", 320), ("file-per-process", "read", 640),
    ]  # fmt: skip


def test_complete_runs_of_ior_are_read_next_to_one_that_is_cut_off(tmp_path: Path) -> None:
    one = (OUTPUTS / "ior-3.2.1.txt").read_text()
    (plain,) = read_one(tmp_path, one).reports
    cut_off = one[: one.index("\n", one.index("access    bw(MiB/s)")) + 1]
    found = read_one(tmp_path, one + one + cut_off).reports
    assert [report.phases for report in found] == [plain.phases] * 2
    assert all("1 other reports of the file are not read" in r.notes[0] for r in found)
    assert why_rejected(tmp_path, cut_off) == "IOR: its table of results has no row"


@pytest.mark.parametrize("name", ["4.0.0/other/strided.txt", "ior-4.0.0.json"])
def test_the_least_mean_of_ior_s_tasks_is_no_latency(name: str, tmp_path: Path) -> None:
    """With two segments, IOR 4.0.0 prints twice the time of a request, or more."""
    text = (OUTPUTS / name).read_text()
    assert "atency" in text
    phases = [phase for report in read_one(tmp_path, text).reports for phase in report.phases]
    assert phases and all("transfer_s" in phase.metrics for phase in phases)
    assert not any(metric.startswith("latency") for phase in phases for metric in phase.metrics)


def test_an_interface_with_its_version_in_brackets_is_read(home: Path, tmp_path: Path) -> None:
    """As parallel-netCDF and MPI-IO state theirs in IOR 3.0."""
    text = (
        "IOR-3.0.1: MPI Coordinated Test of Parallel I/O\n\nSummary:\n"
        "\tapi                = NCMPI (version = 1.3.1 of 24 Sep 2012)\n"
        "\tclients            = 4 (4 per node)\n\trepetitions        = 1\n"
        "\txfersize           = 1 MiB\n\tblocksize          = 1 MiB\n\n"
        "access    bw(MiB/s)  block(KiB) xfer(KiB)  open(s)  wr/rd(s)  close(s)  total(s)  iter\n"
        "------    ---------  ---------- ---------  -------  --------  --------  --------  ----\n"
        "write     400.00     1024.00    1024.00    0.001    0.009     0.000     0.010     0\n\n"
        "Max Write: 400.00 MiB/sec (419.43 MB/sec)\n"
    )
    file = read_one(tmp_path, text)
    assert file.reports[0].phases[0].engine == "NCMPI"
    assert file.reports[0].notes == ()
    marked = text.replace("0.010     0\n", "0.010     0    XXCEL\n")
    assert read_one(tmp_path, marked).reports == file.reports
    empty = "Summary of all tests:\nOperation   Max(MiB)   Min(MiB)  Mean(MiB)\n\nFinished: x\n"
    notes = read_one(tmp_path, f"{text}\n{empty}").reports[0].notes
    assert notes == ("the summary of all tests has no row",)
    (campaign,) = results.campaigns([file], "x")
    assert campaign.runs[0].experiment.api == "ncmpi"


def test_each_row_has_the_bytes_that_ior_states_above_it(tmp_path: Path) -> None:
    """It was ended by its stonewall (-D), after another number of bytes in each repetition."""
    warning = "WARNING: Using actual aggregate bytes moved = {}.\n"
    row = "read      {:.2f}     1024.00    1024.00    0.001    1.000    0.000    1.000     {}\n"
    head = (
        "IOR-3.0.1: MPI Coordinated Test of Parallel I/O\n\nSummary:\n"
        "\tapi                = POSIX\n\tclients            = 4 (4 per node)\n"
        "\trepetitions        = 3\n\txfersize           = 1 MiB\n\n"
        "access    bw(MiB/s)  block(KiB) xfer(KiB)  open(s)  wr/rd(s)  close(s)  total(s)  iter\n"
        "------    ---------  ---------- ---------  -------  --------  --------  --------  ----\n"
    )
    moved = [100 << 20, 120 << 20, 150 << 20]
    above = [warning.format(one) + row.format(one / 2**20, n) for n, one in enumerate(moved)]
    first = [warning.format(one) for one in moved]
    rows = [row.format(one / 2**20, n) for n, one in enumerate(moved)]
    end = "\nMax Read:  150.00 MiB/sec (157.29 MB/sec)\n"
    for lines in (above, first + rows):
        (report,) = read_one(tmp_path, head + "".join(lines) + end).reports
        assert [phase.bytes for phase in report.phases] == moved
