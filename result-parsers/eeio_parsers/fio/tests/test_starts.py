"""The start of fio's writes before 3.36: fio closes its files between the I/O and its end."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.eeio.importing.read import read_one

from eeio_parsers.found import FoundPhase

RUN_S = 6.637
DRIVE = [{"name": "sda", "read_ios": 1, "write_ios": 2}]


def written(elapsed_s: int | None, drives: list[dict[str, Any]], **options: str) -> str:
    """As fio 3.33 reports 200 MiB in 6.637 s; with `rw=readwrite` the same of reads."""
    side = {
        "io_bytes": 209715200, "io_kbytes": 204800, "bw_bytes": 31597890, "bw": 30857,
        "iops": 30.134, "runtime": 6637, "total_ios": 200,
    }  # fmt: skip
    job = {"jobname": "w", "groupid": 0, "error": 0, "job_runtime": 6636}
    job |= {"job options": {"rw": "write", "bs": "1m", **options}, "write": side}
    if options.get("rw") == "readwrite":
        job["read"] = side
    if elapsed_s is not None:
        job["elapsed"] = elapsed_s
    body = {"fio version": "fio-3.33", "timestamp": 1795826178, "timestamp_ms": 1795826178380}
    return json.dumps({**body, "jobs": [job], "disk_util": drives})


def phases(folder: Path, text: str) -> tuple[FoundPhase, ...]:
    (report,) = read_one(folder, text).reports
    return report.phases


@pytest.mark.parametrize(
    ("elapsed_s", "drives", "options", "within_s"),
    [
        (7, DRIVE, {}, 0.1),
        (None, DRIVE, {}, 0.1),
        (12, DRIVE, {"ramp_time": "5"}, 0.1),
        # Another process made close() wait for 12 s.
        (20, DRIVE, {}, None),
        (10, DRIVE, {}, 0.1 + 10 - RUN_S),
        # No drive: NFS, CIFS, FUSE, and file systems of several drives.
        (7, [], {}, 0.1 + 7 - RUN_S),
        (20, [], {}, None),
        (None, [], {}, None),
        (None, [], {"direct": "0"}, None),
        (None, [], {"sync": "none"}, None),
        (None, [], {"direct": "1"}, 0.1),
        (None, [], {"buffered": "0"}, 0.1),
        (None, [], {"sync": "1"}, 0.1),
        (None, [], {"end_fsync": "1"}, 0.1),
        (20, [], {"fsync_on_close": "1"}, 0.1),
        # The files of a job that reads, too, are made before its I/O.
        (20, DRIVE, {"rw": "readwrite"}, 0.1),
        (20, [], {"rw": "readwrite"}, None),
    ],
)
def test_the_start_of_writes_is_known_as_well_as_the_time_of_close(
    tmp_path: Path, elapsed_s: int | None, drives: list[dict[str, Any]], options: dict[str, str],
    within_s: float | None,
) -> None:  # fmt: skip
    for phase in phases(tmp_path, written(elapsed_s, drives, **options)):
        assert phase.starts_within_s == (
            None if within_s is None else pytest.approx(within_s, abs=1e-6)
        )


def test_reads_do_not_wait_in_close(tmp_path: Path) -> None:
    text = written(None, [], rw="read").replace('"write": {', '"read": {')
    (phase,) = phases(tmp_path, text)
    assert (phase.operation, phase.starts_within_s) == ("read", 0.1)


TEXT = """\
w: (g=0): rw=write, bs=(R) 1024KiB-1024KiB, (W) 1024KiB-1024KiB, \
(T) 1024KiB-1024KiB, ioengine=psync, iodepth=1
fio-3.33
Starting 1 process

w: (groupid=0, jobs=1): err= 0: pid=2: Sat Nov 28 00:36:37 2026
  write: IOPS=30, BW=30.1MiB/s (31.6MB/s)(200MiB/6636msec); 0 zone resets
  cpu          : usr=0.00%, sys=4.87%, ctx=201, majf=0, minf=12
     issued rwts: total=0,200,0,0 short=0,0,0,0 dropped=0,0,0,0

Run status group 0 (all jobs):
  WRITE: bw=30.1MiB/s (31.6MB/s), 30.1MiB/s-30.1MiB/s (31.6MB/s-31.6MB/s), \
io=200MiB (210MB), run=6636-6636msec
"""
DISK_STATS = """
Disk stats (read/write):
  sda: ios=0/2, merge=0/4, ticks=0/1, in_queue=2, util=0.00%
"""


@pytest.mark.parametrize(("after", "within_s"), [("", None), (DISK_STATS, 1.0)])
def test_the_start_of_writes_in_text_is_known_on_a_drive(
    tmp_path: Path, after: str, within_s: float | None
) -> None:
    (phase,) = phases(tmp_path, TEXT + after)
    assert phase.starts_within_s == within_s and phase.started_utc is not None


def test_the_start_of_reads_in_text_needs_no_drive(tmp_path: Path) -> None:
    text = TEXT.replace("  write:", "  read:").replace("; 0 zone resets", "")
    text = text.replace("WRITE:", "READ:").replace("total=0,200", "total=200,0")
    (phase,) = phases(tmp_path, text)
    assert (phase.operation, phase.starts_within_s) == ("read", 1.0)


OUTPUTS = Path(__file__).parents[1] / "outputs"


def test_a_verification_is_after_the_writes(tmp_path: Path) -> None:
    """Real output: `rw=write size=3G verify=crc32c end_fsync=1`. Both were one row of 651 MB/s."""
    (report,) = read_one(tmp_path, (OUTPUTS / "verify/3.42.json").read_text()).reports
    read, write = report.phases
    assert report.mixed == () and read.group != write.group
    assert (read.runtime_s, write.runtime_s) == (7.073, 9.891)
    starts = [phase.started_utc for phase in (write, read)]
    assert starts == ["2026-11-28T21:10:18.402+00:00", "2026-11-28T21:10:28.293+00:00"]
    assert [phase.starts_within_s for phase in (write, read)] == [pytest.approx(0.102)] * 2
    assert "group 0: fio read and wrote at other times" in report.notes[0]


@pytest.mark.parametrize(
    "options",
    [
        {"verify_backlog": "1024"},
        {"loops": "2"},
        {"numjobs": "1", "group_reporting": "1"},
        {"rw": "randrw"},
    ],
)
def test_a_verification_between_the_writes_has_no_known_start(
    tmp_path: Path, options: dict[str, str]
) -> None:
    body = json.loads((OUTPUTS / "verify/3.42.json").read_text())
    body["jobs"][0]["job options"] |= options
    (report,) = read_one(tmp_path, json.dumps(body)).reports
    assert report.mixed == ()
    assert [phase.starts_within_s for phase in report.phases] == [None, None]


def test_a_verification_in_text_has_no_known_start(tmp_path: Path) -> None:
    """Text states neither `verify` nor `verify_backlog`, but `rw=write`, and the run times."""
    text = (OUTPUTS / "verify/3.33.txt").read_text()
    for each in (text, text.replace("rw=write", "rw=randrw")):
        (report,) = read_one(tmp_path, each).reports
        read, write = report.phases
        assert report.mixed == () and read.group != write.group
        assert (read.starts_within_s, write.starts_within_s) == (None, None)
        # fio ended at 21:08:07. It read for 4.344 s, and wrote for 4.744 s before that.
        assert read.started_utc == "2026-11-28T21:08:02.656"
        assert write.started_utc == "2026-11-28T21:07:57.912"


def test_sums_and_rates_of_a_verification_are_not_of_one_time(tmp_path: Path) -> None:
    text = (OUTPUTS / "verify/3.33.txt").read_text()
    sums = text[text.index("Run status") :]
    rates = "".join(line for line in text.splitlines(keepends=True) if "msec)" in line[:90])
    for each in (sums, rates):
        (report,) = read_one(tmp_path, each).reports
        assert report.mixed == () and len({phase.group for phase in report.phases}) == 2


def test_reads_and_writes_at_one_time_are_one_row(tmp_path: Path) -> None:
    for name in ("mix-30.json", "jobs-3.41.txt", "jobs-2.1.json"):
        (report,) = read_one(tmp_path, (OUTPUTS / name).read_text()).reports
        (mixed,) = report.mixed
        assert mixed.operation == "mixed"
