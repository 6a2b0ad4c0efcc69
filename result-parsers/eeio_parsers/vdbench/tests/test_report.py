"""Imported outputs of vdbench."""

import re
from collections import defaultdict
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from tests.eeio.importing.importer import Importer
from tests.eeio.importing.read import KIB, read_one, why_rejected

from eeio import paths
from eeio.exchange.importing import results
from eeio.record.store import load


def test_parts_of_a_vdbench_run_are_no_repetitions(tmp_path: Path, imported: Importer) -> None:
    """Its folder has the run once more for each host, slave and volume."""
    text = (
        "{0:%H:%M:%S}.001 Starting RD=rd1; I/O rate: 100; elapsed=5; For loops: None\n\n"
        "{0:%b %d, %Y}    interval        i/o   MB/sec   bytes   read     resp\n"
        "                               rate  1024**2     i/o    pct     time\n"
        "{0:%H:%M:%S}.104           1    {1}.0     {2}    4096  100.00    0.011\n"
        "{0:%H:%M:%S}.424     avg_2-5    {1}.0     {2}    4096  100.00    0.012\n"
    )
    for folder, at in (("a", datetime(2026, 3, 4, 5, 6, 7)), ("b", datetime(2026, 3, 5, 5, 6, 7))):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "summary.html").write_text(text.format(at, 512, 2.0))
        for host in ("n1", "n2"):
            body = f"{folder} {host}\n" + text.format(at, 256, 1.0)
            (tmp_path / folder / f"{host}.html").write_text(body)
    # Two runs of one definition that are next to each other stay two.
    again = text.format(datetime(2026, 3, 4, 6, 6, 7), 500, 1.95)
    (tmp_path / "a/stdout2.txt").write_text(again)
    files = imported(tmp_path, "--dry-run", code=3)["files"]
    used = {f["path"].partition(f"{tmp_path}/")[2]: f for f in files if not f["rejected"]}
    assert set(used) == {"a/summary.html", "b/summary.html", "a/stdout2.txt"}
    assert sum("repeats the runs of summary.html" in (f["rejected"] or "") for f in files) == 4
    (phase,) = used["a/summary.html"]["reports"][0]["phases"]
    assert (phase["name"], phase["iops"], phase["bandwidth_bytes_per_s"]) == ("rd1", 512, 2 << 20)
    assert phase["started_utc"] == "2026-03-04T05:06:07.001"


FILE_SYSTEM = (
    "{time}.001 Starting RD={name}; elapsed={elapsed}; For loops: {loops}\n\n"
    "{date} ..Interval.. .ReqstdOps... ...cpu%...  read ....read..... ....write.... ..mb/sec... "
    "mb/sec .xfer.. ...mkdir....\n"
    "                            rate   resp total  sys   pct   rate   resp   rate   resp  read "
    "write  total    size  rate   resp\n"
    "{rows}"
    "{end}.104      avg_2-5  900.0  1.500   9.6 7.89  66.7  600.0  1.000  300.0  2.500 75.00 "
    "37.50 112.50  131072   0.0  0.000   0.0  0.000   3.0  2.642   3.0  0.081\n"
    "{end}.104      std_2-5   90.0  0.500                    60.0  0.500   30.0  0.500\n"
)


INTERVAL = (
    "900.0  1.500   9.6 7.89  66.7  600.0  1.000  300.0  2.500 75.00 37.50 112.50  131072   0.0  "
    "0.000\n"
)


def test_vdbench_with_file_systems(tmp_path: Path, imported: Importer) -> None:
    """Their columns are others than those of volumes, in all files of the folder."""
    (tmp_path / "run").mkdir()
    values = {"time": "23:50:00", "end": "00:10:02", "elapsed": 1202, "loops": "threads=4"}
    first = "23:50:02.114            1 491694  0.099   7.0 4.41\n" + "".join(
        f"23:50:{second}.114            {second - 2} {INTERVAL}" for second in (12, 22, 32)
    )
    summary = FILE_SYSTEM.format(name="rd1", date="Mar 04, 2026", rows=first, **values)
    for file, text in (
        ("summary.html", f"<title>Vdbench</title><pre>\n{summary}"),
        # The totals have their header behind the run, with the date of its end.
        ("totals.html", FILE_SYSTEM.format(name="rd1", date="Mar 05, 2026", rows="", **values)),
        ("logfile.html", f"23:49:00.000 Vdbench distribution: vdbench50407\n{summary}"),
        # A slave has fewer columns of other operations.
        ("n1-0.html", re.sub(r"   0.0  0.000.*", "", summary.replace("112.50", "56.25"))),
        (
            "flatfile.html",
            "* Run : Name of run\n  tod timestamp Run Interval Xfersize Threads Reqrate Rate "
            "MB/sec Read_rate Write_rate\n00:10:02 03/05/2026-00:10:02-CET rd1 avg_2-5 131072 4 "
            "9999988 900 112.5 600 300\n",
        ),
    ):
        (tmp_path / "run" / file).write_text(text)
    files = imported(tmp_path, "--dry-run", code=3)["files"]
    (used,) = [f for f in files if not f["rejected"]]
    (phase,) = used["reports"][0]["phases"]
    assert len(files) == 5 and used["path"].endswith("summary.html")
    assert all("repeats the runs of summary.html" in f["rejected"] for f in files if f != used)
    for name in ("totals.html", "logfile.html", "flatfile.html"):
        (tmp_path / name).write_bytes((tmp_path / "run" / name).read_bytes())
        (row,) = imported.phases(tmp_path / name)
        assert row["bandwidth_bytes_per_s"] == phase["bandwidth_bytes_per_s"] == 112.5 * KIB**2
        # Without intervals, nothing shows that the mean is the size of each transfer.
        size = 131072 if name == "logfile.html" else None
        assert (row["iops"], row["request_bytes"], row["operation"]) == (900, size, "mixed")
        assert row["metrics"] == {"transfer_mean_bytes": 131072}
        if name != "flatfile.html":
            assert row["started_utc"] == phase["started_utc"] == "2026-03-04T23:50:00.001"


def test_the_header_of_an_older_vdbench_has_one_dot_less(tmp_path: Path) -> None:
    """As vdbench 5.04.06 prints it."""
    text = FILE_SYSTEM.format(
        name="rd1",
        date="Mar 04, 2026",
        time="23:50:00",
        end="23:51:02",
        elapsed=60,
        rows="",
        loops="",
    ).replace("..Interval.. .", ".Interval. .")
    (report,) = read_one(tmp_path, text).reports
    (phase,) = report.phases
    assert (phase.iops, phase.request_bytes, phase.operation) == (900, None, "mixed")
    assert phase.started_utc == "2026-03-04T23:50:00.001"
    cut_off = text[: text.index("23:51:02")]
    assert "no line `avg_`" in why_rejected(tmp_path, cut_off)
    assert "cut off in the average of 'rd1'" in why_rejected(tmp_path, text[: text.index("37.50")])


def test_runs_of_vdbench_in_loops_are_no_repetitions(tmp_path: Path, imported: Importer) -> None:
    """One run definition with several thread counts has one name."""
    row = "05:06:{:02}.000     avg_2-5    {}.0     2.00    4096  100.00    0.012\n"
    start = "05:06:{:02}.000 Starting RD=rd1; I/O rate: 9; elapsed=5; For loops: threads={}\n"
    text = "".join(
        start.format(at, threads) + row.format(at + 5, 512 + at)
        for at, threads in ((0, 1), (10, 8), (20, 8))
    )
    (tmp_path / "a.txt").write_text(text)
    # Only the average lines, as grep finds them.
    (tmp_path / "b.txt").write_text("".join(re.findall(r".*avg_.*\n", text)[:1]))
    flat = "tod Run Interval reqrate rate MB/sec bytes/io read% xfersize threads\n" + "".join(
        f"05:06:00 rd1 avg_2-5 9 {rate} 2.0 4096 100 4096 {threads}\n"
        for rate, threads in ((512, 1), (522, 8), (532, 8))
    )
    (tmp_path / "c").mkdir()
    (tmp_path / "c/flatfile.html").write_text(flat)
    files = imported(tmp_path)["files"]
    assert [len(file["reports"][0]["phases"]) for file in files] == [3, 1, 3]
    sets: dict[Any, list[float]] = defaultdict(list)
    for run in load(paths.campaigns().popitem()[1]).runs:
        sets[run.experiment].append(run.phases[0].metrics["iops"])
    assert sorted(map(sorted, sets.values())) == [[512], [512], [512], [522, 532], [522, 532]]


def test_a_vdbench_that_was_ended_before_its_first_run(tmp_path: Path) -> None:
    """The beginning of its summary, with links only."""
    text = (
        "<title>Vdbench out/summary.html</title><pre>\nCopyright (c) 2000, 2018, Oracle.\n"
        "Vdbench summary report, created 16:12:16 Mar 08 2019 ICT (09:12:16 Mar 08 2019 UTC)\n\n"
        'Link to logfile:                 <A HREF="logfile.html">logfile</A>\n'
    )
    wanted = "vdbench: no line `avg_`: it was ended before its first run was done"
    assert why_rejected(tmp_path, text) == wanted
    # As in a public totals.html.
    empty = "15:07:29.078      avg_2-1    NaN  0.000   NaN  NaN   0.0    NaN  0.000    NaN  0.000\n"
    wanted = "vdbench: its averages are NaN: it was ended before its second interval"
    assert why_rejected(tmp_path, text + empty) == wanted


_ENDED_EARLY = "no line `avg_`, or one without numbers: the run was ended early"


def test_a_run_of_vdbench_that_was_ended_early_is_named(tmp_path: Path) -> None:
    """The others of its file are complete."""
    begun = "16:24:{}.004 Starting RD={}; I/O rate: 50; elapsed=60; For loops: None\n"
    head = "Mar 04, 2026  interval  i/o  MB/sec  bytes  read  resp\n"
    interval = "16:24:30.181  1  512.0  2.00  4096  100.00  3.475\n"
    average = "16:24:31.181  avg_2-60  512.0  2.00  4096  100.00  3.475\n"
    complete = begun.format(20, "one") + head + interval + average
    cut = begun.format(40, "two") + head + interval
    for text in (complete + cut, cut + complete):
        (report,) = read_one(tmp_path, f"Vdbench distribution: vdbench50407\n{text}").reports
        assert [phase.name for phase in report.phases] == ["one"]
        assert report.notes == (f"no row of two: {_ENDED_EARLY}",)
    head = "tod Run Interval reqrate rate MB/sec read% rdpct bytes/io xfersize\n"
    row = "18:12:38.025 {} {} 50 100 1 50.7 50 4096 4096\n"
    complete = row.format("one", 1) + row.format("one", "avg_2-60")
    for text in (complete + row.format("one", 1), row.format("one", 1) + complete):
        (report,) = read_one(tmp_path, head + text).reports
        assert len(report.phases) == 1
        assert report.notes == (f"no row of one: {_ENDED_EARLY}",)


@pytest.mark.parametrize(
    "title",
    [
        "Slave summary report for slave=n1-0",
        "Host summary report(s) for host=n1",
        "Workload Report for wd=wd35",
        "SD report for sd=sd1",
        "Report for fsd fsd1",
    ],
)
def test_a_file_of_one_slave_or_workload_has_a_note(title: str, tmp_path: Path) -> None:
    (report,) = read_one(tmp_path, f"<pre>\n{title}\n\n{_volumes([], 4096)}").reports
    assert report.notes == (f"may be a part of a run: {title!r}",)
    (report,) = read_one(tmp_path, f"<pre>\nRun totals\n\n{_volumes([], 4096)}").reports
    assert report.notes == ()


def test_a_vdbench_run_without_io_is_invalid(home: Path, tmp_path: Path) -> None:
    row = "16:24:30.181     avg_2-1  0.0     0.00       0   0.00    0.000    0.000\n"
    start = "16:24:29.004 Starting RD=SD_format; I/O rate: MAX; elapsed=(none); For loops: None\n"
    one = read_one(tmp_path, f"Vdbench distribution: vdbench50407\n{start}{row}")
    assert one.reports[0].phases[0].error == "vdbench counted no I/O in it"
    (campaign,) = results.campaigns([one], "x")
    assert all(run.validity or run.phases[0].validity for run in campaign.runs)


def test_a_rate_that_vdbench_rounds_is_computed_from_its_requests(
    home: Path, tmp_path: Path
) -> None:
    """0.00 stands for up to 5243 bytes/s, and 0.01 for 5243 to 15729."""
    line = "16:24:30.181  avg_2-60  {} {} {}  75.00    3.475    3.475\n"
    start = "16:24:29.004 Starting RD=rd{}; I/O rate: 50; elapsed=60; For loops: None\n"
    averages = (
        ("0.14", "0.00", "4096"),
        ("1.46", "0.01", "4096"),
        ("9584.20", "71.46", "7817"),
        ("100.00", "0.00", "4096"),
    )
    lines = (start.format(k) + line.format(*average) for k, average in enumerate(averages))
    one = read_one(tmp_path, "Vdbench distribution: vdbench50407\n" + "".join(lines))
    (report,) = one.reports
    requested = {"requested i/o rate": "50", "requested elapsed": "60"}
    assert all(requested.items() <= phase.options.items() for phase in report.phases)
    assert [phase.bandwidth_bytes_per_s for phase in report.phases] == pytest.approx(
        [0.14 * 4096, 1.46 * 4096, 71.46 * KIB**2, 0]
    )
    why = "100.00 transfers/s of 4096 bytes are 409600 bytes/s, but its bandwidth is 0.00 MiB/s"
    assert [phase.error for phase in report.phases] == [None, None, None, why]
    (campaign,) = results.campaigns([one], "x")
    assert [bool(run.phases[0].validity) for run in campaign.runs] == [False, False, False, True]


def _volumes(means: list[int], mean: int, loops: str = "threads=2") -> str:
    """A run with the mean sizes of its intervals, and that of their average line."""
    start = f"13:49:00.011 Starting RD=rd1; I/O rate: 50; elapsed=60; For loops: {loops}\n"
    row = "13:49:{:02}.254  {}  9584.20    71.46    {}   49.71    1.665    0.000    1.665\n"
    intervals = [row.format(k, k, size) for k, size in enumerate(means, start=1)]
    return "".join((start, *intervals, row.format(59, "avg_2-60", mean)))


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (_volumes([4096, 0, 4096, 4096], 4096), 4096),
        (_volumes([], 4096, loops="xfersize=4k threads=2"), 4096),
        (_volumes([], 4093, loops="xfersize=4k threads=2"), None),
        (_volumes([4099, 4093, 4096], 4096), None),
        (_volumes([4096, 4096], 4096), None),
        # Files whose last transfers are short.
        (_volumes([4093, 4093, 4093], 4093), None),
        (_volumes([], 7817), None),
    ],
)
def test_a_mean_of_vdbench_is_no_request_size(text: str, size: int | None, tmp_path: Path) -> None:
    (report,) = read_one(tmp_path, text).reports
    assert report.phases[0].request_bytes == size
    assert report.phases[0].options["read_share"] == "50 %"


@pytest.mark.parametrize(
    ("row", "size"),
    [("4096 4096", 4096), ("7814 512", None), ("4093 4096", None), ("512 n/a", None)],
)
def test_the_request_size_of_a_flatfile_is_the_requested_one(
    row: str, size: int | None, tmp_path: Path
) -> None:
    head = "tod Run Interval reqrate rate MB/sec read% rdpct bytes/io xfersize\n"
    text = f"{head}18:12:38.025 rd1 avg_2-60 50 100 1 50.7 50 {row}\n"
    (report,) = read_one(tmp_path, text).reports
    assert report.phases[0].request_bytes == size
    assert report.phases[0].options["read_share"] == "50 %"


def test_runs_of_vdbench_with_another_mean_are_repetitions(home: Path, tmp_path: Path) -> None:
    for run, mean in ((1, 7814), (2, 7817)):
        (tmp_path / f"run-{run}.txt").write_text(_volumes([7810, 7820, 7811], mean))
    (campaign,) = results.campaigns(results.found([tmp_path]), "x")
    assert [run.repetition for run in campaign.runs] == [1, 2]


def test_a_share_of_reads_from_two_rates_is_rounded(tmp_path: Path) -> None:
    """100 * 25773.9167 / 25773.9167 is not 100."""
    text = (
        "* Run : Name of run\n  tod timestamp Run Interval Xfersize Threads Reqrate Rate "
        "MB/sec Read_rate Write_rate\n00:10:02 03/05/2026-00:10:02-CET rd1 avg_2-5 1048576 4 "
        "9999988 25773.9167 21124.9067 25773.9167 0\n"
    )
    (report,) = read_one(tmp_path, text).reports
    (phase,) = report.phases
    assert (phase.operation, phase.options["read_share"]) == ("read", "100 %")


def test_vdbench_s_flatfile_as_csv(tmp_path: Path, imported: Importer) -> None:
    head = ["date", "Run", "Interval", "reqrate", "rate", "MB/sec", "bytes/io", "read%", "threads"]
    made = [
        ["10:00:01.000", "one", "1", "max", "999.0", "9.0", "4096", "100.0", "8"],
        ["10:00:05.000", "one", "avg_2-5", "max", "512.0", "2.0", "4096", "100.0", "8"],
        ["10:01:05.000", "two", "avg_2-5", "max", "256.0", "1.0", "4096", "0.0", "8"],
    ]  # fmt: skip
    table = "".join(",".join(f'"{cell}"' for cell in row) + "\n" for row in [head, *made])
    rows = imported.phases_of(table, "flatfile.csv")
    assert [(row["name"], row["operation"], row["iops"]) for row in rows] == [
        ("one", "read", 512), ("two", "write", 256)
    ]  # fmt: skip
    assert [row["bandwidth_bytes_per_s"] for row in rows] == [2 << 20, 1 << 20]
    (tmp_path / "flatfile.html").write_text(
        "\n".join(" ".join(["tod" if cell == "date" else cell for cell in row])
                  for row in [head, *made])
    )  # fmt: skip
    files = imported(tmp_path, "--dry-run", code=3)["files"]
    assert [bool(file["reports"]) for file in files] == [True, False]
    assert files[1]["rejected"] == "repeats the runs of flatfile.csv, or a part"
    (tmp_path / "flatfile.html").unlink()
    (tmp_path / "later.csv").write_text(table.replace("512.0", "640.0").replace("2.0", "2.5"))
    files = imported(tmp_path, "--dry-run")["files"]
    assert [len(file["reports"]) for file in files] == [1, 1]
    (tmp_path / "flatfile.csv").write_text(table[: table.rindex(",")])
    assert "cut off" in imported(tmp_path, "--dry-run", code=3)["files"][0]["rejected"]
