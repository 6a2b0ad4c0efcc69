"""Imported outputs of fio."""

import json
import re
import textwrap
from collections import defaultdict
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from tests.eeio.importing.importer import Importer, phases
from tests.eeio.importing.read import KIB, read_one, why_rejected

from eeio.exchange.importing import results
from eeio_parsers.found import with_mixed

OUTPUTS = Path(__file__).parents[1] / "outputs"


@pytest.mark.parametrize("path", sorted(OUTPUTS.glob("*.json")), ids=lambda path: path.stem)
def test_fio_json_has_one_row_for_each_group_and_direction(path: Path, imported: Importer) -> None:
    """Compared with another reading of the same file: sums over groups, during the longest job."""
    body = json.loads(path.read_text())
    wanted: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0, 0.0])
    for job in body.get("jobs") or body["client_stats"]:
        for direction in ("read", "write"):
            one = job[direction]
            if job["jobname"] != "All clients" and one["io_bytes"]:
                sums = wanted[str(job["groupid"]), direction]
                old = "io_kbytes" not in one
                sums[0] += (one.get("bw_bytes") or one["bw"] * KIB) * one["runtime"]
                sums[1] += one["iops"] * one["runtime"]
                sums[2] += one["io_bytes"] * (KIB if old else 1)
                sums[3] = max(sums[3], one["runtime"])
    found = imported(path, "--dry-run")
    rows = {(p["group"], p["operation"]): p for p in phases(found)}
    assert rows.keys() == wanted.keys() and len(rows) == len(phases(found))
    for key, (bandwidth, iops, moved, longest) in wanted.items():
        assert rows[key]["bandwidth_bytes_per_s"] == pytest.approx(bandwidth / longest, rel=1e-3)
        assert rows[key]["iops"] == pytest.approx(iops / longest, rel=1e-3)
        assert rows[key]["bytes"] == moved
    assert found["files"][0]["tool_version"] == body["fio version"].removeprefix("fio-")
    for row in rows.values():
        reports_starts = all("job_start" in job for job in body.get("jobs", ()))
        if "timestamp" not in body or (
            len({group for group, _ in rows}) > 1 and not reports_starts
        ):
            assert row["started_utc"] is None
        else:
            started = datetime.fromisoformat(row["started_utc"]).timestamp()
            assert abs(started - body["timestamp"]) <= 60
    first = (body.get("jobs") or body["client_stats"])[0]
    if "job options" in first and path.stem.startswith(("jobs", "grouped")):
        random = rows["1", "read"]
        assert (random["access_pattern"], random["request_bytes"]) == ("random", 4096)
        assert random["jobs"] == 4 and random["engine"] == "psync"
        assert rows["2", "write"]["direct"] is True and rows["0", "write"]["direct"] is None
        assert rows["2", "write"]["iodepth"] == 4 and rows["0", "write"]["iodepth"] is None


def _number(text: str) -> float:
    found = re.fullmatch(r"([\d.]+)([kM]?)", text)
    assert found is not None
    return float(found[1]) * {"": 1, "k": 1e3, "M": 1e6}[found[2]]


@pytest.mark.parametrize("path", sorted(OUTPUTS.glob("*.txt")), ids=lambda path: path.stem)
def test_fio_text_of_every_version(path: Path, imported: Importer) -> None:
    text = path.read_text().partition("All clients")[0]
    requests: dict[tuple[str, str], float] = defaultdict(float)
    longest: dict[tuple[str, str], float] = defaultdict(float)
    group = ""
    for line in text.splitlines():
        if entry := re.search(r"\(groupid=(\d+)", line):
            group = entry[1]
        if figure := re.match(
            r"\s+(read|write)\s*:.*iops=\s*([\d.]+[kM]?).*[ /](\d+) ?msec", line, re.I
        ):
            lasted = float(figure[3])
            requests[group, figure[1]] += _number(figure[2]) * lasted
            longest[group, figure[1]] = max(longest[group, figure[1]], lasted)
    iops = {key: value / longest[key] for key, value in requests.items()}
    rows = {(p["group"], p["operation"]): p for p in imported.phases(path)}
    assert rows.keys() == iops.keys()
    for key, wanted in iops.items():
        row = rows[key]
        assert row["iops"] == pytest.approx(wanted, rel=1e-9)
        assert row["bandwidth_bytes_per_s"] == pytest.approx(
            wanted * row["request_bytes"], rel=0.01
        )
        assert row["access_pattern"] == {"0": "sequential"}.get(key[0], "random")
    if "client" not in path.stem:
        assert [rows[key]["jobs"] for key in sorted(rows)] == [1, 4, 1, 1]
        assert {row["started_utc"] for row in rows.values()} == {None}  # of several groups


def test_numbers_that_are_no_json(tmp_path: Path, imported: Importer) -> None:
    """fio prints -nan for the mean of nothing; a noise line may contain a brace."""
    text = (OUTPUTS / "jobs-2.1.json").read_text()
    path = tmp_path / "a.json"
    path.write_text("set() {\n }\n" + re.sub(r'"bw_dev" : [\d.]+', '"bw_dev" : -nan', text))
    wanted = imported.phases(OUTPUTS / "jobs-2.1.json")
    assert "-nan" in path.read_text()
    assert imported.phases(path) == wanted


def test_settings_of_fio_reports_in_one_text_are_their_own(
    tmp_path: Path, imported: Importer
) -> None:
    """The settings of the next report are above its version, right below the report before."""
    text = (OUTPUTS / "jobs-3.41.txt").read_text()
    texts = [text, re.sub(r"(?<=B-)4096B|(?<=\) )4096B", "8192B", text), text]
    assert texts[1] != text
    alone = []
    for number, one in enumerate(texts):
        (tmp_path / f"{number}.txt").write_text(one)
        body = imported(tmp_path / f"{number}.txt", "--dry-run")
        alone += [report["phases"] for report in body["files"][0]["reports"]]
    assert len({phase["request_bytes"] for phases in alone for phase in phases}) > 1
    (tmp_path / "all.txt").write_text("\n".join(texts))
    body = imported(tmp_path / "all.txt", "--dry-run")
    assert [report["phases"] for report in body["files"][0]["reports"]] == alone


def test_fio_text_names_its_drives_and_may_lack_leading_blanks(
    tmp_path: Path, imported: Importer
) -> None:
    text = (OUTPUTS / "jobs-3.41.txt").read_text()
    wanted = imported.phases(OUTPUTS / "jobs-3.41.txt")
    found = imported.phases_of(re.sub(r"^[ \t]+", "", text, flags=re.M), "notes.md")
    assert [p["bandwidth_bytes_per_s"] for p in found] == [
        p["bandwidth_bytes_per_s"] for p in wanted
    ]
    for number in (3, 4):
        disk = f"\nDisk stats (read/write):\n  nvme{number}n1: ios=1/2, merge=0/0\n"
        (tmp_path / f"row_{number}.txt").write_text(text.partition("\nDisk stats")[0] + disk)
    rows = [tmp_path / f"row_{number}.txt" for number in (3, 4)]
    (campaign,) = results.campaigns(results.found(rows), "x")
    assert {run.repetition for run in campaign.runs} == {1}
    assert "nvme3n1" in str([run.experiment.arguments for run in campaign.runs])


def test_fio_s_bits_of_networks(imported: Importer) -> None:
    (phase,) = imported.phases_of(
        "r: (g=0): rw=read, bs=64K-64K/64K-64K/64K-64K, ioengine=net, iodepth=8\nfio-2.8\n"
        "r: (groupid=0, jobs=1): err= 0: pid=1: Mon Dec 31 19:52:46 2007\n"
        "  read : io=8000.0MB, bw=8388.6Mbit/s, iops=16000, runt=  8000msec\n"
        "Run status group 0 (all jobs):\n",
        "net.log",
    )
    assert phase["bandwidth_bytes_per_s"] == pytest.approx(1000 * KIB**2, rel=1e-3)


def test_fio_with_less_than_a_kibibyte_a_second(imported: Importer) -> None:
    """fio 2.0 prints a blank before the unit B."""
    (row,) = imported.phases_of(
        "tiny: (g=0): rw=randread, bs=7-7/7-7/7-7, ioengine=sync, iodepth=1\nfio-2.0.13\n"
        "Starting 1 process\n\ntiny: (groupid=0, jobs=1): err= 0: pid=9: Mon Sep 16 22:13:14 2013\n"
        "  read : io=70000 B, bw=700 B/s, iops=100 , runt=100000msec\n\n"
        "Run status group 0 (all jobs):\n"
    )
    assert (row["bandwidth_bytes_per_s"], row["iops"], row["bytes"]) == (700, 100, 70000)


def test_fio_s_kb_is_binary_if_its_iops_fit_neither(imported: Importer) -> None:
    """The IOPS of 32 jobs that ended at different times are 7 % too small for their bandwidth."""
    (row,) = imported.phases_of(
        "big: (g=0): rw=read, bs=512K-512K/512K-512K/512K-512K, ioengine=libaio, iodepth=128\n...\n"
        "fio-2.2.10\nStarting 32 processes\n\n"
        "big: (groupid=0, jobs=32): err= 0: pid=9: Fri Feb  9 12:56:50 2018\n"
        "  read : io=24000MB, bw=409600KB/s, iops=745, runt= 60000msec\n\n"
        "Run status group 0 (all jobs):\n"
    )
    assert row["bandwidth_bytes_per_s"] == 409600 * KIB


def test_fio_json_behind_a_character_and_a_log_of_one_line(
    tmp_path: Path, imported: Importer
) -> None:
    text = (OUTPUTS / "jobs-3.41.json").read_text()
    (tmp_path / "a.json").write_text(f"> {text}")
    wanted = imported.phases(OUTPUTS / "jobs-3.41.json")
    assert imported.phases(tmp_path / "a.json") == wanted
    (row,) = imported.phases_of("0, 36128, 1, 4096, 0", "a_lat.1.log")
    assert (row["operation"], row["request_bytes"]) == ("write", 4096)


def test_fio_s_json_inside_a_scripts_own_is_read(tmp_path: Path) -> None:
    body = json.loads((OUTPUTS / "jobs-3.19.json").read_text())
    (tmp_path / "plain.json").write_text(json.dumps(body))
    later = {**body, "timestamp_ms": body["timestamp_ms"] + 60_000}
    wrapped = {"data": [body, later], "metadata": {"nodes": 2}, "command": "fio"}
    (tmp_path / "wrapped.json").write_text(json.dumps(wrapped))
    plain, found = results.found([tmp_path])
    assert [r.phases for r in found.reports] == [plain.reports[0].phases] * 2


def test_a_report_of_fio_that_the_file_contains_twice_counts_once(tmp_path: Path) -> None:
    text = (OUTPUTS / "jobs-3.19.json").read_text()
    found = read_one(tmp_path, text + text)
    (report,) = found.reports
    assert "a report that the file contains twice counts once" in report.notes


def test_a_run_of_fio_that_somebody_stopped_has_a_note(tmp_path: Path) -> None:
    line = "fio: terminating on signal 2\n"
    text = (OUTPUTS / "jobs-3.41.txt").read_text()
    for stopped in (
        line + (OUTPUTS / "jobs-3.19.json").read_text(),
        re.sub(r"^(?=\S+: \(groupid)", line, text, count=1, flags=re.M),
    ):
        (report,) = read_one(tmp_path, stopped).reports
        assert "fio was stopped before its end: fio: terminating on signal 2" in report.notes


def test_sums_of_fio_without_its_jobs(tmp_path: Path) -> None:
    old = (
        "Run status group {} (all jobs):\n  WRITE: io=3200.0MB, aggrb=13095KB/s, "
        "minb=3273KB/s, maxb=3284KB/s, mint=249447msec, maxt=250214msec\n"
    )
    new = (
        "Run status group {} (all jobs):\n   READ: bw=242MiB/s (254MB/s), 242MiB/s-242MiB/s "
        "(254MB/s-254MB/s), io=4096MiB (4295MB), run=16912-16912msec\n"
    )
    found = read_one(tmp_path, old.format(0) + new.format(1) + old.format(0))
    assert [
        [(p.group, p.operation, p.bandwidth_bytes_per_s, p.bytes, p.runtime_s) for p in r.phases]
        for r in found.reports
    ] == [
        [
            ("0", "write", 13095 * KIB, 3200 << 20, 250.214),
            ("1", "read", 242 << 20, 4 << 30, 16.912),
        ],
        [("0", "write", 13095 * KIB, 3200 << 20, 250.214)],
    ]
    assert "neither jobs nor settings" in found.reports[0].notes[0]


def test_sums_of_fio_without_the_line_of_their_group(tmp_path: Path) -> None:
    """Sums that do not follow each other are of different runs."""
    total = (
        "{}: bw={}MiB/s (99.9MB/s), {}MiB/s-{}MiB/s (99.9MB/s-99.9MB/s), "
        "io=4096MiB (4295MB), run=16912-16912msec\n"
    )
    read, write = (total.format(name, *3 * [rate]) for name, rate in (("READ", 11), ("WRITE", 22)))
    one = read_one(
        tmp_path,
        f"on the host\n```\n{read}{write}```\non the guest\n{read}\nafter a reboot\n  {write}"
        f"{write}Run status group 0 (all jobs):\n{read}Run status group 1 (all jobs):\n{write}",
    )
    rows = [
        [(p.group, p.operation, p.bandwidth_bytes_per_s) for p in r.phases] for r in one.reports
    ]
    assert rows == [
        [("-", "read", 11 << 20), ("-", "write", 22 << 20)], [("-", "read", 11 << 20)],
        [("-", "write", 22 << 20)], [("-", "write", 22 << 20)],
        [("0", "read", 11 << 20), ("1", "write", 22 << 20)],
    ]  # fmt: skip


@pytest.mark.parametrize("version", ["2", "3", "4", "5"])
def test_fio_s_terse_output_is_that_of_its_json(home: Path, tmp_path: Path, version: str) -> None:
    """Both of one run; terse output has no decimals of IOPS, and whole KiB."""
    body = json.loads((OUTPUTS / f"terse/v{version}.json").read_text())
    wanted = [
        (job["jobname"], str(job["groupid"]), direction, job[direction])
        for job in body["jobs"]
        for direction in ("read", "write")
        if job[direction]["io_bytes"]
    ]
    path = OUTPUTS / f"terse/v{version}.txt"
    (one,) = results.found([path])
    rows = [p for r in one.reports for p in r.phases]
    assert (one.form, one.version) == ("terse", None if version == "2" else "3.33")
    assert [(p.name, p.group, p.operation) for p in rows] == [row[:3] for row in wanted]
    assert len(rows) == 3
    for row, (*_, of) in zip(rows, wanted, strict=True):
        assert row.bandwidth_bytes_per_s == pytest.approx(of["bw_bytes"], rel=1e-4)
        assert (row.bytes, row.runtime_s) == (of["io_bytes"], of["runtime"] / 1000)
        assert row.iops == (int(of["iops"]) if of["iops"] > 100 else None)
        for kind, name in (("completion", "clat"), ("total", "lat")):
            mean = of[f"{name}_ns"]["mean"] / 1e9
            assert row.metrics[f"latency_{kind}_mean_s"] == pytest.approx(mean, abs=1e-9)
        assert not [name for name in row.metrics if "_p" in name]
    (tmp_path / "again.txt").write_text("\n" + path.read_text())
    (campaign,) = results.campaigns(results.found([path, tmp_path]), "x")
    assert len({run.experiment.id for run in campaign.runs}) == len(campaign.runs) == 4


def test_terse_output_of_fio_that_cannot_be_used_is_rejected(tmp_path: Path) -> None:
    first, second = (OUTPUTS / "terse/v4.txt").read_text().splitlines()
    cells = second.split(";")
    assert "terse output of slow is cut off" in why_rejected(
        tmp_path, f"{first}\n{';'.join(cells[:150])}"
    )
    assert "or of another form" in why_rejected(tmp_path, ";".join([*cells[:20], *cells[21:]]))
    assert "or of another form" in why_rejected(tmp_path, first.replace(";11984;", ";1198.4;"))
    # The rate is not that of the bytes and the time.
    cells = first.split(";")
    cells[6] = "7000"
    (report,) = read_one(tmp_path, ";".join(cells)).reports
    rates = [p.bandwidth_bytes_per_s for p in report.phases]
    assert rates[0] is None and rates[1] is not None


def test_only_the_sum_of_a_clients_servers(tmp_path: Path) -> None:
    text = (
        "    All clients: (groupid=0, jobs=6): err= 0: pid=0: Tue Dec  3 05:33:42 2024\n"
        "      read: IOPS=968, BW=121Mi (127M)(60.0GiB/507636msec); 0 zone resets\n"
    )
    ((phase,),) = [r.phases for r in read_one(tmp_path, text).reports]
    assert (phase.operation, phase.jobs, phase.iops) == ("read", 6, 968)
    assert phase.bandwidth_bytes_per_s == pytest.approx((60 << 30) / 507.636, rel=0.005)


def test_rates_of_fio_without_anything_else(tmp_path: Path) -> None:
    """As a script's `egrep 'read|write'` leaves them."""
    path = tmp_path / "ext4.txt"
    path.write_text(
        "sync to disk\n  read : io=2000.0MB, bw=20480KB/s, iops=5120, runt=100000msec\n"
        "  write: io=1000.0MB, bw=10240KB/s, iops=2560, runt=100000msec\n"
        "\n  read : io=4000.0MB, bw=40960KB/s, iops=10240, runt=100000msec\n"
        "  write: IOPS=512, BW=2048KiB/s (2097kB/s)(200MiB/100000msec)\n"
    )
    (one,) = results.found([path])
    assert [
        [(p.operation, p.bandwidth_bytes_per_s, p.iops) for p in report.phases]
        for report in one.reports
    ] == [
        [("read", 20480 << 10, 5120), ("write", 10240 << 10, 2560)],
        [("read", 40960 << 10, 10240), ("write", 2048 << 10, 512)],
    ]
    (campaign,) = results.campaigns([one], "x")
    assert {run.repetition for run in campaign.runs} == {1}


@pytest.mark.parametrize(
    ("size", "rates", "issued", "iops"),
    [
        # fio 3.16 prints 24.0k for 24.99k.
        (4096, "IOPS=24.0k, BW=97.6MiB/s (102MB/s)(1952MiB/20000msec)", 499712, 499712 / 20),
        # From a public report of fio 3.7, which prints 13.0k for 13.96k, 7 % less.
        (16384, "IOPS=13.0k, BW=218MiB/s (229MB/s)(5120MiB/23466msec)", 327680, 327680 / 23.466),
    ],
)
def test_thousands_of_iops_that_fio_printed_wrongly(
    tmp_path: Path, size: int, rates: str, issued: int, iops: float
) -> None:
    """The count of requests and the bandwidth are right."""
    sizes = f"(R) {size}B-{size}B, (W) {size}B-{size}B, (T) {size}B-{size}B"
    text = (
        f"job: (g=0): rw=randread, bs={sizes}, ioengine=libaio, iodepth=64\nfio-3.16\n"
        "Starting 1 process\n\n"
        "job: (groupid=0, jobs=1): err= 0: pid=9: Fri Mar 20 10:00:00 2020\n"
        f"  read: {rates}\n"
        f"     issued rwts: total={issued},0,0,0 short=0,0,0,0 dropped=0,0,0,0\n\n"
        "Run status group 0 (all jobs):\n"
    )
    (report,) = read_one(tmp_path, text).reports
    assert report.phases[0].iops == pytest.approx(iops, rel=1e-6)


def test_progress_that_fio_printed_over_itself_is_no_long_line(tmp_path: Path) -> None:
    progress = "".join(f"Jobs: 1 (f=1): [r(1)][{k % 100}.0%][r=97MiB/s]\r" for k in range(3000))
    text = (
        "job: (g=0): rw=randread, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, "
        f"ioengine=libaio, iodepth=64\nfio-3.16\nStarting 1 process\n{progress}\n"
        "job: (groupid=0, jobs=1): err= 0: pid=9: Fri Mar 20 10:00:00 2020\n"
        "  read: IOPS=25.0k, BW=97.6MiB/s (102MB/s)(1952MiB/20000msec)\n"
        "     issued rwts: total=499712,0,0,0 short=0,0,0,0 dropped=0,0,0,0\n\n"
        "Run status group 0 (all jobs):\n"
    )
    (report,) = read_one(tmp_path, text).reports
    assert report.phases[0].bytes == 499712 * 4096


def test_a_group_of_several_jobs_has_all_of_them(tmp_path: Path) -> None:
    """One job writes, two read, and one does both: four together."""
    jobs = []
    for name, read, write in (
        ("bgwriter", 0, 40), ("query-a", 80, 0), ("query-b", 60, 0), ("bgupdater", 20, 20)
    ):  # fmt: skip
        both = {}
        for direction, moved in (("read", read), ("write", write)):
            both[direction] = {
                "io_bytes": moved << 20, "bw": moved << 10, "iops": moved * 256.0, "runtime": 1000,
                "total_ios": moved * 256,
            }  # fmt: skip
        jobs.append({"jobname": name, "groupid": 0, "error": 0, **both})
    body = {"fio version": "fio-3.33", "timestamp": 1770000000, "jobs": jobs}
    (report,) = read_one(tmp_path, json.dumps(body), "fio.json").reports
    (mixed,) = with_mixed(report).mixed
    assert (mixed.jobs, mixed.name) == (4, "bgwriter, bgupdater, query-a, query-b")
    assert {phase.operation: phase.jobs for phase in report.phases} == {"read": 3, "write": 2}


def test_a_log_of_latencies_says_that_it_has_no_rate(tmp_path: Path) -> None:
    text = "".join(f"{1000 * k}, {900 + k}, 0, 0\n" for k in range(1, 9))
    (report,) = read_one(tmp_path, text, "randread_clat.1.log").reports
    assert report.notes == ("a log of latencies has no rate; use fio's report",)


def test_both_rates_of_fio_may_be_cut(tmp_path: Path) -> None:
    """fio 3.19 prints 20.0MiB/s (21.0MB/s) for 20.97 MiB/s: the bytes and the IOPS are right."""
    text = (
        "job: (g=0): rw=randread, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, "
        "ioengine=libaio, iodepth=32\nfio-3.19\nStarting 1 process\n\n"
        "job: (groupid=0, jobs=1): err= 0: pid=9: Fri Mar 20 10:00:00 2020\n"
        "  read: IOPS=5368, BW=20.0MiB/s (21.0MB/s)(1258MiB/60000msec)\n\n"
        "Run status group 0 (all jobs):\n"
    )
    (report,) = read_one(tmp_path, text).reports
    assert report.phases[0].bandwidth_bytes_per_s == pytest.approx(1258 * 2**20 / 60, rel=1e-4)


@pytest.mark.parametrize("printed", [1, 1.85])
def test_requests_of_older_fio_are_those_that_it_counted(tmp_path: Path, printed: float) -> None:
    """Its rates are whole numbers or have two decimals, which matters for slow drives."""
    body = json.loads((OUTPUTS / "jobs-2.21.json").read_text())
    jobs = body["jobs"]
    for job in jobs:
        for direction in ("read", "write"):
            if job[direction]["total_ios"]:
                rate = job[direction]["io_bytes"] / 901_257
                job[direction] |= {"total_ios": 1664, "runtime": 901_257, "iops": printed}
                job[direction]["bw"] = round(1000 / 1024 * rate)
    (tmp_path / "a.json").write_text(json.dumps(body))
    (one,) = results.found([tmp_path / "a.json"])
    for phase in one.reports[0].phases:
        assert phase.iops == pytest.approx((phase.jobs or 1) * 1664 / 901.257, rel=1e-9)


def test_fio_s_requests_that_did_not_end_in_time_are_not_counted(imported: Importer) -> None:
    """128 jobs with a request each: the count is 1.3 % above the bytes that fio prints."""
    (row,) = imported.phases_of(
        "slow: (g=0): rw=randread, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, "
        "ioengine=psync, iodepth=1\nfio-3.12\n"
        "slow: (groupid=0, jobs=128): err= 0: pid=9: Tue Aug 11 23:54:11 2020\n"
        "   read: IOPS=333, BW=1317KiB/s (1349kB/s)(38.6MiB/30000msec)\n"
        "     issued rwts: total=10005,0,0,0 short=0,0,0,0 dropped=0,0,0,0\n\n"
        "Run status group 0 (all jobs):\n"
    )
    assert row["bandwidth_bytes_per_s"] == pytest.approx(1317 * KIB, rel=2e-3)
    assert row["bytes"] == pytest.approx(38.6 * KIB**2, rel=1e-3)


def test_fio_json_as_a_list_on_one_long_line(tmp_path: Path, imported: Importer) -> None:
    path = OUTPUTS / "jobs-3.41.json"
    body = json.loads(path.read_text())
    bodies = [{**body, "timestamp_ms": body["timestamp_ms"] + 60_000 * n} for n in range(9)]
    (tmp_path / "a.json").write_text(json.dumps(bodies))
    assert len((tmp_path / "a.json").read_text()) > 1 << 16
    wanted = imported.phases(path)
    (file,) = imported(tmp_path / "a.json", "--dry-run")["files"]
    assert [report["phases"] for report in file["reports"]] == [wanted] * 9


def test_fio_s_complete_reports_are_read_next_to_one_that_is_cut_off(
    tmp_path: Path, imported: Importer
) -> None:
    path = OUTPUTS / "jobs-3.41.txt"
    text, wanted = path.read_text(), imported.phases(path)
    failed = "fio-3.41\nfio: the disk is full\n"
    (tmp_path / "a.txt").write_text(failed + text + text[: len(text) // 2])
    (file,) = imported(tmp_path / "a.txt", "--dry-run")["files"]
    (report,) = file["reports"]
    assert report["phases"] == wanted
    assert "2 other reports of the file are not read" in report["notes"][0]


def test_fio_reports_without_their_version_are_apart(tmp_path: Path, imported: Importer) -> None:
    """Notes often have only what is below `fio-3.1`; some have no line `Run status`."""

    def job(pid: int, mib_s: int, seconds: int = 10, jobs: int = 4) -> str:
        return (
            f"rread: (groupid=0, jobs={jobs}): err= 0: pid={pid}: Fri May  7 04:33:{seconds} 2021\n"
            f"  read: IOPS={mib_s * 64}, BW={mib_s}.0MiB/s ({mib_s * 1.048576:.1f}MB/s)"
            f"({mib_s * seconds}MiB/{seconds * 1000}msec)\n"
        )

    end = "\nRun status group 0 (all jobs):\n   READ: bw=1MiB/s\n\n"
    path = tmp_path / "a.txt"
    path.write_text("".join(f"# Drive {k}\n{job(k, 40 + k)}{end}" for k in range(3)))
    (one,) = results.found([path])
    rates = [round((r.phases[0].bandwidth_bytes_per_s or 0) / KIB**2) for r in one.reports]
    assert rates == [40, 41, 42]
    # A group of which all jobs are one entry ends where it begins again.
    path.write_text(job(1, 40) + job(2, 41) + end)
    (one,) = results.found([path])
    rates = [round((r.phases[0].bandwidth_bytes_per_s or 0) / KIB**2) for r in one.reports]
    assert rates[-1] == 41 and 81 not in rates
    # One job each: they are of one group, and are added.
    path.write_text(job(1, 40, jobs=1) + job(2, 41, jobs=1) + end)
    (row,) = imported.phases(path)
    assert round(row["bandwidth_bytes_per_s"] / KIB**2) == 81
    # --status-interval: the same process, later.
    path.write_text(job(1, 40, 10) + end + job(1, 42, 20) + end)
    (row,) = imported.phases(path)
    assert round(row["bandwidth_bytes_per_s"] / KIB**2) == 42


def test_fio_json_of_a_status_interval_is_one_run(home: Path, tmp_path: Path) -> None:
    body = json.loads((OUTPUTS / "jobs-3.1.json").read_text())
    texts = []
    for second in (1, 2, 2.1):
        later = json.loads(json.dumps(body))
        later["timestamp"] += int(second)
        later["timestamp_ms"] += round(1000 * second)
        for one in later["jobs"]:
            for direction in ("read", "write"):
                one[direction]["runtime"] += round(1000 * second)
                one[direction]["io_bytes"] += round(1000 * second)
                rate = one[direction]["io_bytes"] / one[direction]["runtime"]
                one[direction]["bw"] = round(1000 / 1024 * rate)
        texts.append(json.dumps(later, indent=1))
    (tmp_path / "a.json").write_text("\n".join(texts))
    (one,) = results.found([tmp_path / "a.json"])
    assert len(one.reports) == 1 and any("--status-interval" in n for n in one.reports[0].notes)
    assert one.reports[0].phases[0].runtime_s == pytest.approx(
        json.loads(texts[-1])["jobs"][0]["read"]["runtime"] / 1000, rel=0.5
    )


def test_fio_json_of_a_status_interval_over_groups_is_one_run(tmp_path: Path) -> None:
    """As fio 3.33 prints: the second group (stonewall) begins after some reports."""
    name = "jobs-3.19.json"
    job = json.loads((OUTPUTS / name).read_text())["jobs"][0]

    def report(ended_ms: int, runtimes_ms: tuple[int, int]) -> str:
        jobs = []
        for group, runtime_ms in enumerate(runtimes_ms):
            side = {
                "io_bytes": 2048 * runtime_ms,
                "io_kbytes": 2 * runtime_ms,
                "bw": 2000,
                "bw_bytes": 2_048_000,
                "runtime": runtime_ms,
                "total_ios": runtime_ms,
            }
            empty = dict.fromkeys(side, 0)
            jobs.append({**job, "jobname": "ab"[group], "groupid": group, "job options": {},
                         "read": empty, "trim": empty, "write": side})  # fmt: skip
        return json.dumps({"fio version": "fio-3.33", "timestamp_ms": ended_ms, "jobs": jobs})

    begin_ms = 1_764_000_000_000
    interim = [(1000, (886, 0)), (2000, (1885, 0)), (4000, (3001, 680)), (6000, (3001, 2680))]
    last = (6338, (3001, 3001))
    texts = [report(begin_ms + after_ms, runtimes) for after_ms, runtimes in (*interim, last)]
    (only,) = read_one(tmp_path, "\n".join(texts)).reports
    assert [p.runtime_s for p in only.phases] == [3.001, 3.001]
    # A further run of the same jobs begins after the end of the first one.
    again = report(begin_ms + 12_900, (3001, 3002))
    assert len(read_one(tmp_path, "\n".join([*texts, again])).reports) == 2


def test_fio_s_small_iops_have_the_digits_of_its_counts(home: Path, tmp_path: Path) -> None:
    """fio prints 3 for 3.98 requests a second."""
    path = tmp_path / "a.txt"
    path.write_text(
        "big: (g=0): rw=read, bs=(R) 64.0MiB-64.0MiB, ioengine=psync, iodepth=1\nfio-3.12\n"
        + "".join(
            f"big: (groupid=0, jobs=1): err= 0: pid={pid}: Fri Feb  9 12:56:50 2018\n"
            "  read: IOPS=3, BW=254MiB/s (267MB/s)(2547MiB/10000msec)\n"
            "     issued rwts: total=39,0,0,0 short=0,0,0,0 dropped=0,0,0,0\n"
            for pid in (1, 2)
        )
        + "Run status group 0 (all jobs):\n"
    )
    (one,) = results.found([path])
    assert one.reports[0].phases[0].iops == pytest.approx(2 * 3.9)


def test_a_sum_of_fio_that_is_rounded_without_a_carry(tmp_path: Path) -> None:
    """fio 3.1 prints 24.0GiB for 24.99 GiB."""
    text = (
        "fio-3.1\nr: (groupid=0, jobs=1): err= 0: pid=9: Fri Feb  9 12:56:50 2018\n"
        "   read: IOPS=109k, BW=426MiB/s (447MB/s)(24.0GiB/60001msec)\n"
        "     issued rwt: total={},0,0, short=0,0,0, dropped=0,0,0\n"
        "Run status group 0 (all jobs):\n"
        "   READ: bw=426MiB/s (447MB/s), io=24.0GiB (26.8GB), run=60001-60001msec\n"
    )
    header = "r: (g=0): rw=randread, bs=(R) 4096B-4096B, ioengine=libaio, iodepth=32\n"
    (report,) = read_one(tmp_path, header + text.format(6550034)).reports
    assert report.phases[0].bytes == 6550034 * 4096
    job, total = text.split("Run status")
    moved = job.replace("24.0GiB", "26.8GiB").replace("426MiB/s (447", "457MiB/s (480")
    lacking = header + moved.format(7025459) + "Run status" + total
    assert "a part of the report is missing" in why_rejected(tmp_path, lacking)


def test_requests_that_did_not_end_in_time_are_no_bytes_of_fio_s_text(tmp_path: Path) -> None:
    """fio 2.2 counted 4,096 of 7.6 million requests less than its bytes: 32 jobs, 128 deep."""
    text = (
        "r: (g=0): rw=randread, bs=4K-4K/4K-4K/4K-4K, ioengine=libaio, iodepth=128\n"
        "fio-2.2.10\nr: (groupid=0, jobs=32): err= 0: pid=9: Fri Feb  9 12:56:50 2018\n"
        "  read : io=29854MB, bw=254727KB/s, iops=63647, runt=120014msec\n"
        "     issued    : total=r=7638626/w=0/d=0, short=r=0/w=0/d=0, drop=r=0/w=0/d=0\n"
        "Run status group 0 (all jobs):\n"
        "   READ: io=29854MB, aggrb=254726KB/s, minb=254726KB/s, maxb=254726KB/s, "
        "mint=120014msec, maxt=120014msec\n"
    )
    (report,) = read_one(tmp_path, text).reports
    assert report.phases[0].bytes == 29854 << 20
    assert report.phases[0].bandwidth_bytes_per_s == pytest.approx(254727 * KIB, rel=2e-5)


def wrapped(text: str, width: int) -> str:
    """As a mail program breaks lines at blanks."""
    return "\n".join(
        part
        for line in text.splitlines()
        for part in (textwrap.wrap(line, width, break_long_words=False,
                                   replace_whitespace=False, subsequent_indent="") or [""])
    )  # fmt: skip


def test_a_sum_below_the_only_job_of_its_direction_has_its_requests(tmp_path: Path) -> None:
    job = "  write: IOPS=39.1k, BW=153MiB/s (160MB/s)(5120MiB/33479msec); 0 zone\nresets\n"
    total = (
        "Run status group 0 (all jobs):\n  WRITE: bw=153MiB/s (160MB/s), 153MiB/s-153MiB/s "
        "(160MB/s-160MB/s), io=5120MiB (5369MB), run=33479-33479msec\n"
    )
    (report,) = read_one(tmp_path, f"{job}\n{total}").reports
    assert [(p.operation, p.iops) for p in report.phases] == [("write", 39100.0)]
    (report,) = read_one(tmp_path, f"{job}{job}\n{total}").reports
    assert [p.iops for p in report.phases] == [None]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"job_start": 10**15}, "time stamp 1e+12 s is out of range"),
        ({"jobs": 10**14}, "jobs: "),
    ],
)
def test_impossible_numbers_of_fio_are_named(
    tmp_path: Path, change: dict[str, Any], why: str
) -> None:
    body = json.loads((OUTPUTS / "jobs-3.41.json").read_text())
    for job in body["jobs"]:
        if "job_start" in change:
            job["job_start"] = change["job_start"]
        if "jobs" in change:
            job["job options"] = {**job.get("job options", {}), "group_reporting": "1",
                                  "numjobs": str(change["jobs"])}  # fmt: skip
    assert why in why_rejected(tmp_path, json.dumps(body))


FIO_UNIFIED = """\
a: (g=0): rw=randrw, bs=(R) 8192B-8192B, (W) 8192B-8192B, (T) 8192B-8192B, ioengine=sync, iodepth=2
fio-3.28
Starting 1 process

a: (groupid=0, jobs=1): err= 0: pid=5: Tue Mar  3 10:00:00 2020
{}
     issued rwts: total={},0,0 short=0,0,0,0 dropped=0,0,0,0

Run status group 0 (all jobs):
{}"""


FIO_RATE = """\
  {}: IOPS={}, BW={}KiB/s ({}kB/s)({}KiB/10000msec)
     lat (usec): min=1, max=9, avg={}, stdev=1.00
"""


FIO_SUM = (
    "  {0}: bw={1}KiB/s ({2}kB/s), {1}KiB/s-{1}KiB/s ({2}kB/s-{2}kB/s), io={3}KiB (1kB), "
    "run=10000-10000msec\n"
)


def test_fio_s_directions_as_one(tmp_path: Path) -> None:
    """unified_rw_reporting: `mixed` is all that is reported, and with `both` a repetition."""
    rates = [("read", 300, 2400, 2458, 24000, "2.50"), ("write", 100, 800, 819, 8000, "3.50")]
    mixed = ("mixed", 400, 3200, 3277, 32000, "2.75")

    def text(*lines: tuple[Any, ...]) -> str:
        sums = "".join(FIO_SUM.format(one[0].upper(), *one[2:5]) for one in lines)
        issued = "4000,0" if lines == (mixed,) else "3000,1000"
        return FIO_UNIFIED.format("".join(FIO_RATE.format(*one) for one in lines), issued, sums)

    (report,) = read_one(tmp_path, text(mixed)).reports
    (phase,) = report.phases
    assert (phase.operation, phase.bytes, phase.iops) == ("mixed", 32000 * KIB, 400.0)
    assert (phase.request_bytes, phase.access_pattern) == (8192, "random")
    (report,) = read_one(
        tmp_path, text(mixed).replace("(W) 8192B-8192B", "(W) 16KiB-16KiB")
    ).reports
    assert report.phases[0].request_bytes is None
    (report,) = read_one(tmp_path, text(*rates, mixed)).reports
    assert [(p.operation, p.metrics["latency_total_mean_s"]) for p in report.phases] == [
        ("read", pytest.approx(2.5e-6)), ("write", pytest.approx(3.5e-6)),
    ]  # fmt: skip
    for lines in ((mixed,), (*rates, mixed)):
        only_sums = text(*lines)[text(*lines).index("Run status") :]
        (report,) = read_one(tmp_path, only_sums).reports
        wanted = ["mixed"] if len(lines) == 1 else ["read", "write"]
        assert [phase.operation for phase in report.phases] == wanted


def test_fio_s_json_of_all_directions_as_one(tmp_path: Path) -> None:
    def job(*names: str) -> str:
        rate = {"io_bytes": 819200, "bw_bytes": 81920, "iops": 20.0, "runtime": 10000,
                "total_ios": 200}  # fmt: skip
        job = {"jobname": "a", "groupid": 0, "error": 0, "job options": {"rw": "rw", "bs": "4k"}}
        return json.dumps({"fio version": "fio-3.28", "jobs": [job | dict.fromkeys(names, rate)]})

    for names, wanted in ((["mixed"], ["mixed"]), (["read", "write", "mixed"], ["read", "write"])):
        (report,) = read_one(tmp_path, job(*names)).reports
        assert [(p.operation, p.request_bytes) for p in report.phases] == [
            (name, 4096) for name in wanted
        ]


def test_a_damaged_sum_of_fio_is_named(tmp_path: Path) -> None:
    total = f"Run status group 0 (all jobs):\n{FIO_SUM}\n".format("WRITE", 900, 922, 9000)
    damaged = total.replace("10000-10000", "10000-100    00")
    (report,) = read_one(tmp_path, f"{total}text\n\n{damaged}").reports
    assert "1 sums of groups are not read, the first: WRITE: bw=900KiB/s" in report.notes[1]
    assert "1 sums of groups are not read" in why_rejected(tmp_path, damaged)


def test_options_of_fio_that_are_given_twice(tmp_path: Path) -> None:
    """fio 3.33 uses all values of `filename`, and the last one of others."""
    text = (OUTPUTS / "jobs-3.41.json").read_text()
    options = text[text.index('"job options"') :]
    first = options[options.index("{") + 1 : options.index("}")].rstrip()
    more = ',\n"filename" : "x",\n"bs" : "4k",\n"filename" : "y",\n"bs" : "8k"'
    (report,) = read_one(tmp_path, text.replace(first, first + more, 1)).reports
    phase = report.phases[0]
    assert (phase.options["filename"], phase.request_bytes) == ("x:y", 8192)
    for key in ("read", "jobname", "io_bytes"):
        place = text.index(f'"{key}"')
        twice = f'{text[:place]}"{key}" : 1, {text[place:]}'
        assert "an object has two values of one key" in why_rejected(tmp_path, twice)


@pytest.mark.parametrize(
    ("name", "seconds"),
    [
        ("fsync", {"completion_p50": 29e-6, "completion_p99": 94e-6}),
        (
            "percentiles",
            {
                "completion_p50": 64e-6,
                "completion_p99": 5211e-6,
                "total_p50": 71e-6,
                "total_p99": 5211e-6,
            },
        ),
    ],
)
def test_percentiles_of_requests_are_apart_from_those_of_submission_and_fsync(
    name: str, seconds: dict[str, float], tmp_path: Path
) -> None:
    text = (OUTPUTS / f"3.33/other/{name}.txt").read_text()
    (phase,) = read_one(tmp_path, text).reports[0].phases
    metrics = {key: phase.metrics.get(f"latency_{key}_s") for key in seconds}
    assert metrics == pytest.approx(seconds)
    table = text.index("sync percentiles" if name == "fsync" else "slat percentiles")
    without = text[:table] + text[table:].replace("|", "", 3)
    assert why_rejected(tmp_path, without) == "fio: percentiles without their table"


def _both_ways(operation: str, moved: int) -> dict[str, Any]:
    both = {}
    for direction in ("read", "write"):
        size = moved * (direction == operation)
        both[direction] = {
            "io_bytes": size << 20, "bw": size << 10, "iops": size * 256.0, "runtime": 1000,
            "total_ios": size * 256,
        }  # fmt: skip
    return both


def test_one_result_of_several_sections_has_no_settings(tmp_path: Path) -> None:
    """With group_reporting fio gives it the name of the first, and the options of the last."""
    options = {"name": "read-iops", "rw": "randread", "bs": "4k", "numjobs": "4", "iodepth": "64",
               "group_reporting": "1", "ioengine": "libaio"}  # fmt: skip
    one_way = {
        "io_bytes": 80 << 20, "bw": 80 << 10, "iops": 10240.0, "runtime": 1000, "total_ios": 10240,
    }  # fmt: skip
    directions = {"read": one_way, "write": one_way}
    job = {"jobname": "write-rate", "groupid": 0, "error": 0, "job options": options, **directions}
    body = {"fio version": "fio-3.29", "timestamp": 1770000000, "jobs": [job]}
    (report,) = read_one(tmp_path, json.dumps(body), "fio.json").reports
    for phase in report.phases:
        settings = (phase.request_bytes, phase.iodepth, phase.jobs, phase.engine)
        assert settings == (None, None, None, None)
        assert phase.access_pattern is None and phase.options == {}
    (note,) = report.notes
    assert "one result of several sections" in note and "'read-iops'" in note
    body["jobs"][0]["jobname"] = "read-iops"
    (report,) = read_one(tmp_path, json.dumps(body), "fio.json").reports
    assert {(phase.request_bytes, phase.jobs) for phase in report.phases} == {(4096, 4)}


def test_a_mixed_row_has_the_settings_of_both_directions(home: Path, tmp_path: Path) -> None:
    jobs = []
    for name, operation in (("receiver", "read"), ("sender", "write")):
        options = {"rw": operation, "bs": "4k"}
        job = {"jobname": name, "groupid": 0, "error": 0, "job options": options}
        jobs.append({**job, **_both_ways(operation, 40)})
    body = {"fio version": "fio-3.33", "timestamp": 1770000000, "jobs": jobs}
    (tmp_path / "fio.json").write_text(json.dumps(body))
    (campaign,) = results.campaigns(results.found([tmp_path]), "x")
    (settings,) = campaign.settings.values()
    assert settings["rw"] == "read + write" and settings["bs"] == "4k"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("kernel: 6.1\nfio-3.28\nior 4.0\n", "fio: a line with fio's version, and no job"),
        (
            "burn: ioengine=cpu, cpuload=50\nfio-2.6\nStarting 1 process\n\n"
            "burn: (groupid=0, jobs=1): err= 0: pid=2330: Wed Mar 16 15:37:19 2016\n"
            "    lat (msec) : 100=100.00%\n"
            "  cpu          : usr=13.08%, sys=36.93%, ctx=808, majf=0, minf=23\n"
            "Run status group 0 (all jobs):\n",
            "fio: no job did I/O (ioengine=cpu does none)",
        ),
    ],
)
def test_why_a_text_of_fio_has_no_result(text: str, reason: str, tmp_path: Path) -> None:
    assert why_rejected(tmp_path, text) == reason
