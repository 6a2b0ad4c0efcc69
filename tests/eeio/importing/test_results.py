"""`eeio import` of files: what the tools wrote is read as they meant it, or rejected by name."""

import json
import re
import shutil
import textwrap
import tracemalloc
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import InProcess
from tests.eeio.importing.importer import Importer, phases

from eeio import paths
from eeio.cli import main
from eeio.importing import results
from eeio_parsers.elbencho import report as elbencho
from eeio_parsers.found import FoundReport
from eeio_parsers.ior import report as ior
from eeio_results.errors import EeioError
from eeio_results.store import load

DATA = Path(__file__).parents[2] / "data/imports"
OTHERS = Path(__file__).parents[2] / "data"
KIB = 1024


@pytest.mark.parametrize("path", sorted((DATA / "fio").glob("*.json")), ids=lambda path: path.stem)
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
        if "timestamp" not in body:
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


@pytest.mark.parametrize("path", sorted((DATA / "fio").glob("*.txt")), ids=lambda path: path.stem)
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
        assert rows["1", "read"]["started_utc"].startswith("2026-11-24T09:4")


def test_appended_reports_and_noise(tmp_path: Path, imported: Importer) -> None:
    for suffix in ("json", "txt"):
        both = tmp_path / f"both.{suffix}"
        parts = [(DATA / f"fio/jobs-{v}.{suffix}").read_text() for v in ("3.1", "3.41")]
        both.write_text("fio: this is noise\n" + parts[0] + "\n" + parts[1])
        (file,) = imported(both, "--dry-run")["files"]
        assert [report["report"] for report in file["reports"]] == [0, 1]
        assert [len(report["phases"]) for report in file["reports"]] == [4, 4]
        alone = imported.phases(DATA / f"fio/jobs-3.41.{suffix}")
        assert file["reports"][1]["phases"] == alone


EXPECTED = {
    # File: (tool, number of rows, some rows by name and group: bandwidth in bytes/s, IOPS)
    "ior/ior-4.0.0.txt": ("ior", 4, {("write", "0"): (4044.6 * KIB**2, 16529)}),
    "ior/ior-3.0.1.txt": ("ior", 4, {("read", "1"): (17152 * KIB**2, None)}),
    "ior/ior-2.10.3.txt": ("ior", 2, {("write", "0"): (3282.20 * KIB**2, 13128.80)}),
    "ior/mdtest-4.0.0.txt": ("mdtest", 10, {("file creation", "0"): (None, 31755.772)}),
    "ior/mdtest-3.2.1.txt": ("mdtest", 9, {("file read", "0"): (None, 663349.9)}),
    "others/bonnie-2.csv": ("bonnie", 2, {("write by characters", "0"): (918 * KIB, None)}),
    "others/bonnie-2.txt": ("bonnie", 2, {("read by characters", "0"): (1326 * KIB, None)}),
    "others/dd.txt": ("dd", 2, {("dd", "0"): (16777216 / 0.0780849, None)}),
    "others/hyperfine.json": ("hyperfine", 2, {}),
    "others/hyperfine.md": ("hyperfine", 2, {}),
    "others/hyperfine.csv": ("hyperfine", 2, {}),
    "others/sysbench.txt": ("sysbench", 2, {}),
    "others/iozone-auto.txt": ("iozone", 26, {}),
    "others/iozone-throughput.txt": ("iozone", 13, {}),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_outputs_of_other_tools(name: str, imported: Importer) -> None:
    tool, count, wanted = EXPECTED[name]
    body = imported(DATA / name, "--dry-run")
    found = [p for report in body["files"][0]["reports"] for p in report["phases"]]
    assert body["files"][0]["tool"] == tool and len(found) == count
    rows = {(p["name"], p["group"]): p for p in found}
    for key, (bandwidth, iops) in wanted.items():
        assert rows[key]["bandwidth_bytes_per_s"] == (
            bandwidth and pytest.approx(bandwidth, rel=1e-3)
        )
        assert rows[key]["iops"] == (iops and pytest.approx(iops, rel=1e-3))


def test_numbers_that_are_no_json(tmp_path: Path, imported: Importer) -> None:
    """fio prints -nan for the mean of nothing; a noise line may contain a brace."""
    text = (DATA / "fio/jobs-2.1.json").read_text()
    path = tmp_path / "a.json"
    path.write_text("set() {\n }\n" + re.sub(r'"bw_dev" : [\d.]+', '"bw_dev" : -nan', text))
    wanted = imported.phases(DATA / "fio/jobs-2.1.json")
    assert "-nan" in path.read_text()
    assert imported.phases(path) == wanted


def test_iozone_s_table_has_a_row_for_each_cell(imported: Importer) -> None:
    text = (DATA / "others/iozone-auto.txt").read_text()
    (row,) = re.findall(r"^ +8192 +1024 +(\d.*)$", text, re.M)
    found = [p for p in imported.phases(DATA / "others/iozone-auto.txt")
             if p["request_bytes"] == KIB**2]  # fmt: skip
    assert [round(p["bandwidth_bytes_per_s"] / KIB) for p in found] == list(map(int, row.split()))
    assert [p["name"] for p in found] == [
        "write", "rewrite", "read", "reread", "random read", "random write", "bkwd read",
        "record rewrite", "stride read", "fwrite", "frewrite", "fread", "freread",
    ]  # fmt: skip


def test_all_is_stored_once_and_reported(
    home: Path, tmp_path: Path, imported: Importer, in_process: InProcess
) -> None:
    source = tmp_path / "old"
    for disk in ("hdd", "ssd"):
        (source / disk).mkdir(parents=True)
        for run in (1, 2, 3):
            # The same file twice would be one result.
            text = (DATA / "fio/jobs-3.12.json").read_text()
            (source / disk / f"run{run}.json").write_text(f"{disk} {run}\n{text}")
    (source / "notes.txt").write_text("it rained\n")
    body = imported(source, "--dry-run", code=3)
    assert not list((home / "data/eeio").glob("results/*"))
    (note,) = [file for file in body["files"] if file["rejected"]]
    assert note["path"].endswith("notes.txt") and "no result of a known tool" in note["rejected"]
    assert imported(source, code=3)["campaigns"] == ["old"]
    assert imported(source, code=3)["campaigns"] == ["old"]  # nothing is added
    assert [path.name for path in (home / "data/eeio/results").iterdir()] == ["old"]
    rows = json.loads(in_process("report", "old", "--format", "json").out)["characterization"]
    reads = [
        row for row in rows if row["operation"] == "read" and row["request_size_bytes"] == 4096
    ]
    # Two disks are two experiments of three repetitions: they are never joined.
    assert [row["n"] for row in reads] == [3, 3]


def test_the_same_content_counts_once(tmp_path: Path, imported: Importer) -> None:
    for name in ("a", "b"):
        shutil.copy(DATA / "others/dd.txt", tmp_path / name)
    first, second = imported(tmp_path, code=3)["files"]
    assert first["rejected"] is None and "the same content as" in second["rejected"]


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("cut.json", (DATA / "fio/jobs-3.41.json").read_bytes()[:9000], "damaged or cut off"),
        ("cut.txt", (DATA / "fio/jobs-3.41.txt").read_bytes()[:900], "results of 1 of 6 jobs"),
        ("empty", b"", "empty"),
        ("binary.tar", b"fio" + bytes(100), "binary"),
        ("binary.gz", b"\x1f\x8b\x08\0\xfe\xca", "binary"),
        ("failed.json", b'{"fio version": "fio-3.33", "jobs": [{"jobname": "x", "error": 5}]}',
         "no result in it: all jobs failed, the first with fio's error 5"),
        ("ior.csv", (DATA / "ior/ior-3.2.1.csv").read_bytes(), "no table of results"),
        ("nan.json", (DATA / "fio/jobs-3.41.json").read_bytes().replace(
            b'"iops" : ', b'"iops" : -'), "is not a number of 0 or more"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_rejected_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], imported: Importer, in_process: InProcess,
    name: str, content: bytes, why: str,
) -> None:  # fmt: skip
    (tmp_path / name).write_bytes(content)
    (file,) = imported(tmp_path / name, code=2)["files"]
    assert why in file["rejected"] and file["reports"] == []
    capsys.readouterr()
    assert f"{name}: rejected: " in in_process("import", str(tmp_path / name), code=2).err
    assert main(["import", str(tmp_path / "gone")]) == 2


def test_each_tool_in_one_file_is_read(tmp_path: Path, imported: Importer) -> None:
    texts = {
        "fio": DATA / "fio/jobs-3.1.txt", "dd": DATA / "others/dd.txt",
        "ior": DATA / "ior/ior-3.2.1.txt", "mdtest": DATA / "ior/mdtest-4.0.0.txt",
        "sysbench": DATA / "others/sysbench.txt", "iozone": DATA / "others/iozone-auto.txt",
        "bonnie": DATA / "others/bonnie-2.txt",
    }  # fmt: skip
    alone = {}
    for tool, path in texts.items():
        (file,) = imported(path, "--dry-run")["files"]
        alone[tool] = file["reports"]
        assert file["tool"] == tool and file["reports"]
    for order in (list(texts), list(reversed(texts))):
        log = tmp_path / f"{order[0]}.log"
        log.write_text("\n".join(f"$ ./run {tool}\n{texts[tool].read_text()}" for tool in order))
        files = imported(log, "--dry-run")["files"]
        assert {file["tool"]: file["reports"] for file in files} == alone
        assert len(files) == len(texts) and len({file["sha256"] for file in files}) == 1
    assert main(["import", str(log), "--name", "log"]) == 0
    stored = [load(folder) for name, folder in paths.campaigns().items() if "log" in name]
    runs = [run for campaign in stored for run in campaign.runs]
    assert {run.experiment.tool for run in runs} == set(texts)
    assert len(runs) == sum(
        len({phase["group"] for phase in report["phases"]}) if tool == "fio"
        else len(report["phases"])
        for tool, reports in alone.items() for report in reports
    )  # fmt: skip
    assert main(["import", str(log)]) == 0
    assert len(paths.campaigns()) == len(stored)


def test_what_cannot_be_read_of_one_of_two_tools_is_named(
    tmp_path: Path, imported: Importer
) -> None:
    both = tmp_path / "log.txt"
    cut = (DATA / "fio/jobs-3.41.txt").read_text()[:900]
    both.write_text((DATA / "ior/ior-3.2.1.txt").read_text() + cut)
    files = imported(both, code=3)["files"]
    assert [file["tool"] for file in files] == ["ior", "fio"]
    assert files[0]["reports"] and not files[1]["reports"]
    assert "results of 1 of 6 jobs" in files[1]["rejected"]


def test_settings_of_fio_reports_in_one_text_are_their_own(
    tmp_path: Path, imported: Importer
) -> None:
    """The settings of the next report are above its version, right below the report before."""
    text = (DATA / "fio/jobs-3.41.txt").read_text()
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


def _repetitions(path: Path) -> list[int]:
    """Of each report's first row."""
    (campaign,) = results.campaigns(results.found([path]), "x")
    found = {}
    for run in campaign.runs:
        report = int(run.notes[0].partition(", report ")[2].partition(",")[0])
        found.setdefault(report, run.repetition)
    return [found[report] for report in sorted(found)]


@pytest.mark.parametrize(
    ("names", "repetitions"),
    [
        (("run-1", "run-2", "run-3"), [1, 2, 3]),
        (("rate-100000", "rate-200000", "rate-300000"), [1, 1, 1]),
        (("rate-100-1", "rate-100-2", "rate-400-1"), [1, 2, 1]),
        (("fio-2026-01-31_10-00", "fio-2026-02-01_10-15", "fio-2026-02-07_09-00"), [1, 2, 3]),
        (("fio-20260131", "fio-20260201", "fio-20260207"), [1, 2, 3]),
        (("0_finish_3jobs", "1_finish_3jobs", "2_finish_3jobs"), [1, 1, 1]),
        (("1_run", "2_run", "3_run"), [1, 2, 3]),
        (("login01", "login02"), [1, 1]),
    ],
)
def test_numbers_in_names_may_be_settings(
    home: Path, tmp_path: Path, names: tuple[str, ...], repetitions: list[int]
) -> None:
    """Numbers that count the files are repetitions; others are what the tool does not report."""
    text = (DATA / "fio/mix-30.json").read_text()
    for place, name in enumerate(names):
        (tmp_path / f"{name}.json").write_text(text + "\n" * place)
    files = [tmp_path / f"{name}.json" for name in names]
    (campaign,) = results.campaigns(results.found(files), "x")
    of_file: dict[str, set[int]] = {}
    for run in campaign.runs:
        of_file.setdefault(run.notes[0].partition(", report")[0], set()).add(run.repetition)
    found = {Path(name.removeprefix("imported from ")).stem: n for name, n in of_file.items()}
    assert sorted(map(sorted, found.values())) == sorted([k] for k in repetitions)


def test_fio_text_names_its_drives_and_may_lack_leading_blanks(
    tmp_path: Path, imported: Importer
) -> None:
    text = (DATA / "fio/jobs-3.41.txt").read_text()
    wanted = imported.phases(DATA / "fio/jobs-3.41.txt")
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


def test_results_of_io500_of_2017(tmp_path: Path, imported: Importer) -> None:
    line = "[RESULT] BW   phase 1   ior_easy_write   0.500 GB/s : time 300.00 seconds\n"
    (phase,) = imported.phases_of(line + line)
    assert phase["bandwidth_bytes_per_s"] == 512 << 20
    (tmp_path / "b.txt").write_text(line + line.replace("0.500", "0.750"))
    (campaign,) = results.campaigns(results.found([tmp_path / "b.txt"]), "x")
    # Runs of which no setting is known.
    assert [run.repetition for run in campaign.runs] == [1, 1]


def test_an_empty_folder_is_rejected(home: Path, tmp_path: Path, in_process: InProcess) -> None:
    assert "no file in it" in in_process("import", str(tmp_path), code=2).err


def test_settings_that_differ_keep_rows_apart(
    tmp_path: Path, imported: Importer, in_process: InProcess
) -> None:
    """Sizes of a file in IOzone's table, and an option of fio that no column shows."""
    shutil.copy(DATA / "others/iozone-two-sizes.txt", tmp_path / "a.txt")
    imported(tmp_path / "a.txt", "--name", "sizes")
    rows = imported.rows("sizes")
    assert len(rows) == 8 and {row["n"] for row in rows} == {1}
    for share in (30, 70):
        text = (DATA / f"fio/mix-{share}.json").read_text()
        for run in (1, 2, 3):
            number = run + (share == 70) * 3  # only the digits of the names differ
            (tmp_path / f"mix{number}.json").write_text(text + "\n" * run)
    imported(*sorted(tmp_path.glob("mix*.json")), "--name", "mix")
    found = [(row["operation"], row["n"]) for row in imported.rows("mix")]
    assert sorted(found) == [("read", 3), ("read", 3), ("write", 3), ("write", 3)]
    shown = in_process("report", "mix").out
    assert "rwmixread=30" in shown and "rwmixread=70" in shown


def test_reports_without_settings_are_no_repetitions(
    home: Path, tmp_path: Path, imported: Importer
) -> None:
    """elbencho's tables do not report the size of a request: two of them may differ in all."""
    table = (
        "OPERATION   RESULT TYPE         FIRST DONE  LAST DONE\n"
        "=========== ================    ==========  =========\n"
        "WRITE       Elapsed time     :      1.002s     1.004s\n"
        "            IOPS             :       {0}        {0}\n"
        "            Throughput MiB/s :       {0}        {0}\n"
        "            Total MiB        :       {0}        {0}\n"
    )
    path = tmp_path / "log.txt"
    path.write_text(table.format(100) + table.format(900))
    imported(path, "--name", "tables")
    runs = load(home / "data/eeio/results/tables").runs
    assert len({run.experiment.id for run in runs}) == len(runs) == 2


def test_memory_of_an_import_is_bounded(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """100,000 phases need less than 500 MB: 5 kB for each, of which the options are shared."""
    body = json.loads((DATA / "fio/jobs-3.41.json").read_text())
    job = body["jobs"][0]
    for number in range(20):
        body["jobs"] = [{**job, "groupid": group} for group in range(100)]
        (tmp_path / f"{number}.json").write_text(json.dumps({**body, "time": number}))
    phases = len([1 for one in ("read", "write") if job[one]["io_bytes"]]) * 2000
    tracemalloc.start()
    taken = results.take([tmp_path], "many", dry_run=False)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sum(count for *_, count in taken.stored) == 2000
    assert most / phases < 5000


def test_lmbench_counts_in_powers_of_ten(imported: Importer) -> None:
    """Its source says so; sizes above 1 MB are printed with two decimals."""
    found = imported.phases_of(
        "[lmbench3.0 results for Linux h1 6.1.0 x86_64 GNU/Linux]\n"
        "File /var/tmp/XXX write bandwidth: 345678 KB/sec\n\n"
        '"read bandwidth\n0.000512 210.50\n1.05 9000.00\n134.22 8000.00\n3.00 7000.00\n',
        "host.0",
    )
    assert [p["bandwidth_bytes_per_s"] for p in found] == [345678e3, 210.5e6, 9e9, 8e9, 7e9]
    assert [p["bytes"] for p in found] == [None, 512, 1 << 20, 1 << 27, None]


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


def test_a_phase_of_elbencho_without_a_figure_is_no_row(tmp_path: Path, imported: Importer) -> None:
    path = tmp_path / "log.txt"
    path.write_text(
        "OPERATION   RESULT TYPE         FIRST DONE  LAST DONE\n"
        "=========== ================    ==========  =========\n"
        "MKDIRS      Elapsed ms       :           0          0\n"
        "WRITE       Elapsed ms       :         990       1001\n"
        "            Throughput MiB/s :         250        251\n"
    )
    (report,) = imported(path, "--dry-run")["files"][0]["reports"]
    assert [p["name"] for p in report["phases"]] == ["write"]


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


def test_vdbench_with_file_systems(tmp_path: Path, imported: Importer) -> None:
    """Their columns are others than those of volumes, in all files of the folder."""
    (tmp_path / "run").mkdir()
    values = {"time": "23:50:00", "end": "00:10:02", "elapsed": 1202, "loops": "threads=4"}
    first = "23:50:02.114            1 491694  0.099   7.0 4.41\n"
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
        assert (row["iops"], row["request_bytes"], row["operation"]) == (900, 131072, "mixed")
        if name != "flatfile.html":
            assert row["started_utc"] == phase["started_utc"] == "2026-03-04T23:50:00.001"


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
    text = (DATA / "fio/jobs-3.41.json").read_text()
    (tmp_path / "a.json").write_text(f"> {text}")
    wanted = imported.phases(DATA / "fio/jobs-3.41.json")
    assert imported.phases(tmp_path / "a.json") == wanted
    (row,) = imported.phases_of("0, 36128, 1, 4096, 0", "a_lat.1.log")
    assert (row["operation"], row["request_bytes"]) == ("write", 4096)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("3.489/random", ["random read", "random write"]),
        ("3.489/read", ["read"]),
        ("3.489/strided", ["stride read"]),
        ("3.507/other/mixed-tests", ["random read", "random write", "stride read"]),
        ("3.507/other/read", ["read"]),
    ],
)
def test_iozone_leaves_columns_of_other_tests_blank(
    name: str, wanted: list[str], imported: Importer
) -> None:
    # The second figure of `read` is 0: -+n.
    path = OTHERS / "iozone" / (f"{name}.txt" if "other" in name else f"{name}/stdout.txt")
    assert [p["name"] for p in imported.phases(path)] == wanted


def test_bonnie_without_characters_has_blank_columns(tmp_path: Path, imported: Importer) -> None:
    """With -f. The line of CSV has more digits than the table."""
    csv = "1.98,2.00a,box,1,9,512M,,4,5,,,57873,46,216859,90,,,1572864,85,9216,99" + 29 * ","
    both = (
        "Version 2.00a       ------Sequential Output------ --Sequential Input- --Random-\n"
        "                    -Per Chr- --Block-- -Rewrite- -Per Chr- --Block-- --Seeks--\n"
        "Name:Size etc        /sec %CP  /sec %CP  /sec %CP  /sec %CP  /sec %CP  /sec %CP\n"
        "box         512M:4k           56.5m  46  212m  90            1.5g  85  9216  99\n"
    )
    found = imported.phases_of(both)
    assert [(p["name"], p["bandwidth_bytes_per_s"], p["iops"]) for p in found] == [
        ("write", 56.5 * KIB**2, None),
        ("rewrite", 212 * KIB**2, None),
        ("read", 1.5 * KIB**3, None),
        ("seeks", None, 9216),
    ]
    (tmp_path / "b.txt").write_text(f"{both}\n{csv}\n")
    (tmp_path / "c.txt").write_text(f"{csv}\n")
    one, other = (imported.phases(tmp_path / n) for n in ("b.txt", "c.txt"))
    assert one == other != found and one[0]["bandwidth_bytes_per_s"] == 57873 * KIB


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


def test_sysbench_s_runs_without_the_beginning_of_their_output(
    tmp_path: Path, imported: Importer
) -> None:
    """Scripts keep a part of each run: with the settings, or only its results."""
    text = (DATA / "others/sysbench.txt").read_text()
    other = text.replace("Block size 16KiB", "Block size 64KiB").replace("95.53", "80.25")
    results_only = text[text.index("File operations:") :].replace("95.53", "70.5")
    settings = other[other.index("Extra file open flags") :]
    (tmp_path / "a.txt").write_text(results_only + text + settings + results_only)
    (file,) = imported(tmp_path / "a.txt", "--dry-run")["files"]
    reads = [report["phases"][0] for report in file["reports"]]
    assert [(p["request_bytes"], p["bandwidth_bytes_per_s"] / (1 << 20)) for p in reads] == [
        (None, 70.5), (16384, 95.53), (65536, 80.25), (None, 70.5),
    ]  # fmt: skip
    (campaign,) = results.campaigns(results.found([tmp_path / "a.txt"]), "x")
    # Nothing shows that those without settings are repetitions.
    assert [run.repetition for run in campaign.runs] == [1] * 8


DD_COPY = (
    "$ dd if=/dev/zero of=out bs=1M count=64 oflag=direct\n64+0 records in\n64+0 records out\n"
    "67108864 bytes (67 MB, 64 MiB) copied, 0.{0} s, 99 MB/s\n"
)


@pytest.mark.parametrize(
    ("command", "operation", "options"),
    [
        ("for i in 0 1; do dd if=/dev/zero of=$i bs=1M count=2 oflag=direct; done", "write",
         {"oflag": "direct", "count": "2"}),
        ("(time dd if=/dev/random of=\"$d\"/x bs='1M' count=2)", "write", {"of": "$d/x",
                                                                        "count": "2"}),
        ("dd if=/dev/urandom of=x bs=1M count=2|| exit", "write", {"count": "2"}),
        ("dd if=/dev/zero of=/dev/null bs=1M count=2", None, {}),
        ("dd if=/dev/sdx of=/dev/null bs=1M count=2;sync", "read", {"count": "2"}),
        ("dd if=/dev/zero bs=1M count=2 | md5sum", None, {"count": "2"}),
    ],
)  # fmt: skip
def test_direction_and_options_of_a_command_of_dd(
    tmp_path: Path, command: str, operation: str | None, options: dict[str, str]
) -> None:
    text = f"$ {command}\n2+0 records in\n2+0 records out\n2097152 bytes (2.1 MB) copied, 0.5 s\n"
    (row,) = [p for r in read_one(tmp_path, text).reports for p in r.phases]
    assert (row.operation, row.request_bytes) == (operation, 1 << 20)
    assert options.items() <= row.options.items()


def read_one(folder: Path, text: str) -> results.FoundFile:
    (folder / "a.txt").write_text(text)
    (one,) = results.found([folder / "a.txt"])
    assert one.rejected is None, one.rejected
    return one


def test_iozone_without_its_first_lines_reports_nothing_of_direct_io(tmp_path: Path) -> None:
    table = (
        "        random    random\n"
        "     kB  reclen    write  rewrite    read    reread\n"
        "   4096       4   100000   200000   300000   400000\n"
    )
    phases = read_one(tmp_path, f"# zfs\n{table}").reports[0].phases
    assert [(p.bandwidth_bytes_per_s, p.direct) for p in phases] == [
        (n * 1e5 * KIB, None) for n in (1, 2, 3, 4)
    ]
    tests = "Children see throughput for {} {} = 18427.04 kB/sec\n"
    text = "".join(tests.format(4, kind) for kind in ("readers", "random readers"))
    (report,) = read_one(tmp_path, text).reports
    assert [(p.jobs, p.operation, p.access_pattern, p.direct) for p in report.phases] == [
        (4, "read", "sequential", None), (4, "read", "random", None),
    ]  # fmt: skip
    twice = "".join(tests.format(1, kind) for kind in (" initial writers", "rewriters")) * 2
    assert len(read_one(tmp_path, twice).reports) == 2


def test_fio_s_json_inside_a_scripts_own_is_read(tmp_path: Path) -> None:
    body = json.loads((DATA / "fio/jobs-3.19.json").read_text())
    (tmp_path / "plain.json").write_text(json.dumps(body))
    wrapped = {"data": [body, body], "metadata": {"nodes": 2}, "command": "fio"}
    (tmp_path / "wrapped.json").write_text(json.dumps(wrapped))
    plain, found = results.found([tmp_path])
    assert [r.phases for r in found.reports] == [plain.reports[0].phases] * 2


def test_tables_of_iozone_above_and_below_a_banner(tmp_path: Path) -> None:
    table = (
        "     kB  reclen    write  rewrite    read    reread\n"
        "   4096       4   {0}00000   200000   300000   400000\n"
    )
    banner = "\tIozone: Performance Test of File I/O\n\tVersion $Revision: 3.492 $\n\n"
    text = f"eMMC\n{table.format(1)}\nNVMe\n{banner}{table.format(2)}\nUSB\n{table.format(3)}\nend"
    found = read_one(tmp_path, text)
    firsts = [report.phases[0].bandwidth_bytes_per_s for report in found.reports]
    assert firsts == [1e5 * KIB, 2e5 * KIB, 3e5 * KIB]
    assert [report.phases[0].direct for report in found.reports] == [None, False, None]
    (tmp_path / "a.txt").write_text(f"{banner}{table.format(2)}   4096       8   1000")
    (cut,) = results.found([tmp_path / "a.txt"])
    assert "cut off in its last line" in str(cut.rejected)


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
    body = json.loads((DATA / f"terse/v{version}.json").read_text())
    wanted = [
        (job["jobname"], str(job["groupid"]), direction, job[direction])
        for job in body["jobs"]
        for direction in ("read", "write")
        if job[direction]["io_bytes"]
    ]
    path = DATA / f"terse/v{version}.txt"
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
    first, second = (DATA / "terse/v4.txt").read_text().splitlines()
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


def test_elbencho_s_table_of_files_and_of_whole_mebibytes(tmp_path: Path) -> None:
    head = "OPERATION   RESULT TYPE         FIRST DONE   LAST DONE\n"
    text = (
        f"{head}WRITE       Elapsed time     :     30.140s     30.196s\n"
        "            Throughput MiB/s :          36          36\n"
        "            Total MiB        :        1101        1101\n"
        f"{head}WRITE       Elapsed time     :       586ms       588ms\n"
        "            Files/s          :       16962       16978\n"
    )
    phases = [p for r in read_one(tmp_path, text).reports for p in r.phases]
    assert phases[0].bandwidth_bytes_per_s == pytest.approx(1101 * (1 << 20) / 30.196)
    assert (phases[1].operation, phases[1].iops) == ("metadata", 16978)


def test_a_vdbench_run_without_io_is_invalid(home: Path, tmp_path: Path) -> None:
    row = "16:24:30.181     avg_2-1  0.0     0.00       0   0.00    0.000    0.000\n"
    start = "16:24:29.004 Starting RD=SD_format; I/O rate: MAX; elapsed=(none); For loops: None\n"
    one = read_one(tmp_path, f"Vdbench distribution: vdbench50407\n{start}{row}")
    assert one.reports[0].phases[0].error == "vdbench counted no I/O in it"
    (campaign,) = results.campaigns([one], "x")
    assert all(run.validity or run.phases[0].validity for run in campaign.runs)


def test_hyperfine_on_a_terminal(tmp_path: Path) -> None:
    text = (
        "$ hyperfine 'cp a b' true\nBenchmark 1: cp a b\n"
        "  Time (mean ± σ):     543.0 ms ±  20.3 ms    [User: 616.2 ms, System: 58.8 ms]\n"
        "  Range (min … max):   521.0 ms … 577.9 ms    10 runs\n\n"
        "Benchmark 2: true\n"
        "  Time (mean ± σ):   902.1 µs ± 8.0 µs    [User: 0.4 ms, System: 0.3 ms]\n"
        "  Range (min … max):   800.0 µs …  1.2 ms    99 runs\n"
    )
    phases = [p for r in read_one(tmp_path, text).reports for p in r.phases]
    assert [(p.name, p.runtime_s) for p in phases] == [
        ("cp a b", pytest.approx(0.543)), ("true", pytest.approx(902.1e-6)),
    ]  # fmt: skip
    assert phases[0].metrics == {
        "time_mean_s": pytest.approx(0.543), "time_stddev_s": pytest.approx(0.0203),
        "time_user_s": pytest.approx(0.6162), "time_system_s": pytest.approx(0.0588),
        "time_min_s": pytest.approx(0.521), "time_max_s": pytest.approx(0.5779),
    }  # fmt: skip


def test_several_exports_of_one_run_of_hyperfine(tmp_path: Path) -> None:
    for suffix in ("md", "csv"):
        (tmp_path / f"a.{suffix}").write_bytes((DATA / f"others/hyperfine.{suffix}").read_bytes())
        (tmp_path / f"other-{suffix}.{suffix}").write_bytes(
            (DATA / f"others/hyperfine.{suffix}").read_bytes() + b"\n"
        )
    found = {one.path.name: one.rejected for one in results.found([tmp_path])}
    assert found == {
        "a.csv": None, "a.md": "repeats the results of a.csv", "other-csv.csv": None,
        "other-md.md": None,
    }  # fmt: skip


def why_rejected(folder: Path, text: str) -> str:
    (folder / "a.txt").write_text(text)
    (one,) = results.found([folder / "a.txt"])
    return str(one.rejected)


def test_tables_that_hyperfine_exports(tmp_path: Path) -> None:
    piped = "sh -c 'sleep 0.02 | cat'"
    complete = (DATA / "others/hyperfine.csv").read_text()
    table = (DATA / "others/hyperfine.md").read_text()
    for text in (complete, f"# Notes\n\n{table}\nDone.\n"):
        (report,) = read_one(tmp_path, text).reports
        names = [phase.name for phase in report.phases]
        assert names == ["sleep 0.01", piped]
        # The CSV has all digits, the table one decimal of a millisecond.
        times = report.phases[1].metrics
        assert report.phases[1].runtime_s == pytest.approx(0.023554432, abs=5e-5)
        assert times["time_stddev_s"] == pytest.approx(0.0012152, abs=5e-5)
        assert times["time_max_s"] == pytest.approx(0.024825842, abs=5e-5)
    table = (
        "| Command | threads | Mean [s] | Min [s] | Max [s] | Relative |\n"
        "|:---|---:|---:|---:|---:|---:|\n| `x` | 4 | 1.102 ± 0.001 | 1.101 | 1.103 | 1.00 |\n"
        "| `x` | 8 | 0.9 | 0.9 | 0.9 | 1.22 |\n"
    )
    (report,) = read_one(tmp_path, table).reports
    assert [(p.options, p.runtime_s) for p in report.phases] == [
        ({"threads": "4"}, 1.102), ({"threads": "8"}, 0.9)]  # fmt: skip
    assert "time_stddev_s" not in report.phases[1].metrics
    assert "cut off" in why_rejected(tmp_path, complete[:-40])


def test_tables_of_hyperfine_that_a_formatter_aligned(tmp_path: Path) -> None:
    table = (
        "| Command          | _N_  |      Mean [ms] | Min [ms] | Max [ms] |    Relative |\n"
        "| :--------------- | ---- | -------------: | -------: | -------: | ----------: |\n"
        "| `a \\| b`         | 1    |   11.5 ±   0.2 |     11.2 |     12.0 |        1.00 |\n"
        "| `c`              | 2    |   99.0 ±   1.0 |     97.0 |    101.0 | 8.61 ± 0.17 |\n"
    )
    separated = (
        "command ,mean  ,stddev ,median ,user ,system ,min   ,max\n"
        "a | b   ,0.0115,0.0002 ,0.0114 ,0.01 ,0.001  ,0.0112,0.0120\n"
        "c       ,0.0990,0.0010 ,0.0990 ,0.09 ,0.001  ,0.0970,0.1010\n"
    )
    for text in (table, separated):
        (report,) = read_one(tmp_path, text).reports
        assert [(p.name, p.runtime_s) for p in report.phases] == [
            ("a | b", pytest.approx(0.0115)), ("c", pytest.approx(0.099))]  # fmt: skip
        times = report.phases[1].metrics
        assert (times["time_stddev_s"], times["time_min_s"], times["time_max_s"]) == pytest.approx(
            (0.001, 0.097, 0.101)
        )


def test_least_and_most_in_one_column_of_an_older_hyperfine(tmp_path: Path) -> None:
    table = (
        "| Command | Mean [s] | Min…Max [s] |\n|:---|---:|---:|\n"
        "| `slow` | 2.500 ± 0.010 | 2.400…2.600 |\n| `fast` | **0.750 ± 0.004** | 0.740…0.760 |\n"
    )
    (report,) = read_one(tmp_path, table).reports
    assert [(p.name, p.runtime_s, p.metrics["time_min_s"], p.metrics["time_max_s"], p.options)
            for p in report.phases] == [
        ("slow", 2.5, 2.4, 2.6, {}), ("fast", 0.75, 0.74, 0.76, {})]  # fmt: skip


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_text_in_utf_16(tmp_path: Path, encoding: str) -> None:
    """As `>` of PowerShell 5 writes it."""
    complete = (DATA / "fio/jobs-3.41.txt").read_text()
    path = tmp_path / "fio.txt"
    path.write_bytes(("\ufeff" + complete.replace("\n", "\r\n")).encode(encoding))
    (one,) = results.found([path])
    assert one.reports == read_one(tmp_path, complete).reports
    path.write_bytes(b"\xff\xfe\0\0" + complete.encode("utf-32-le"))
    assert "binary" in str(results.found([path])[0].rejected)


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


def test_thousands_of_iops_that_fio_printed_wrongly(tmp_path: Path) -> None:
    """fio 3.16 prints 24.0k for 24.99k; the count of requests and the bandwidth are right."""
    text = (
        "job: (g=0): rw=randread, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, "
        "ioengine=libaio, iodepth=64\nfio-3.16\nStarting 1 process\n\n"
        "job: (groupid=0, jobs=1): err= 0: pid=9: Fri Mar 20 10:00:00 2020\n"
        "  read: IOPS=24.0k, BW=97.6MiB/s (102MB/s)(1952MiB/20000msec)\n"
        "     issued rwts: total=499712,0,0,0 short=0,0,0,0 dropped=0,0,0,0\n\n"
        "Run status group 0 (all jobs):\n"
    )
    (report,) = read_one(tmp_path, text).reports
    assert report.phases[0].iops == pytest.approx(499712 / 20, rel=1e-6)


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


def test_runs_of_elbencho_with_another_depth_are_no_repetitions(tmp_path: Path) -> None:
    """The column is called `IO depth`."""
    header = (
        "ISO date,label,path type,paths,hosts,threads,dirs,files,file size,block size,direct IO,"
        "random,random aligned,IO depth,shared paths,truncate,operation,time ms [first],"
        "time ms [last],IOPS [first],IOPS [last],MiB/s [first],MiB/s [last],MiB [last]\n"
    )
    for run, depth in enumerate((1, 32)):
        (tmp_path / f"run-{run}.csv").write_text(
            f"{header}2026-01-02T03:04:0{run}-0400,,file,1,1,4,,,10737418240,1048576,1,0,0,{depth},"
            "1,0,READ,9000,10000,1030,1024,1030,1024,10240\n"
        )
    files = results.found([tmp_path])
    phases = [phase for one in files for report in one.reports for phase in report.phases]
    assert [(p.iodepth, p.request_bytes, p.jobs, p.bandwidth_bytes_per_s) for p in phases] == [
        (1, 1 << 20, 4, 1 << 30), (32, 1 << 20, 4, 1 << 30),
    ]  # fmt: skip
    (campaign,) = results.campaigns(files, "x")
    assert {run.repetition for run in campaign.runs} == {1}


def test_an_option_of_ior_without_a_value_hides_no_other(tmp_path: Path) -> None:
    """`Options: ` and `apiVersion : ` end with a blank; HDF5 and MPIIO are no repetitions."""
    text = (DATA / "ior/ior-3.2.1.txt").read_text()
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


def test_nul_bytes_that_a_program_printed_into_text(tmp_path: Path) -> None:
    complete = (DATA / "fio/jobs-3.41.txt").read_text()
    path = tmp_path / "fio.txt"
    path.write_bytes(b"weka status\n\0\n=====\n" + complete.encode())
    (one,) = results.found([path])
    expected = read_one(tmp_path, complete).reports
    assert [report.phases for report in one.reports] == [report.phases for report in expected]


def test_json_below_a_long_log(tmp_path: Path) -> None:
    text = "a line of a log\n" * 5000 + (DATA / "fio/jobs-3.41.json").read_text()
    assert read_one(tmp_path, text).form == "json"


def test_times_of_hyperfine_below_text(tmp_path: Path) -> None:
    line = "  Time (mean ± σ):     {} s ±  0.4 s   [User: 360.2 s, System: 0.9 s]"
    text = f"Vanilla:\n{line.format('362.309')}\n\nAfter:\n{line.format('20.880')}\n"
    reports = read_one(tmp_path, text).reports
    assert [r.phases[0].runtime_s for r in reports] == [
        pytest.approx(362.309), pytest.approx(20.88)]  # fmt: skip


def test_dd_behind_the_name_of_a_drive(tmp_path: Path) -> None:
    text = (
        "/dev/md1 419430400 bytes (419 MB, 400 MiB) copied, 1.58549 s, 265 MB/s\n"
        "/dev/md2 419430400 bytes (419 MB, 400 MiB) copied, 1.75172 s, 239 MB/s\n"
    )
    rows = [p for r in read_one(tmp_path, text).reports for p in r.phases]
    assert [p.runtime_s for p in rows] == [1.58549, 1.75172]


def test_commands_that_a_shell_traced_are_settings(home: Path, tmp_path: Path) -> None:
    """They may be far above the report: `set -x`."""
    report = (DATA / "fio/jobs-3.41.txt").read_text()
    noise = "".join(f"device {n} is registered\n" for n in "abcdefghij")
    (tmp_path / "log.txt").write_text(
        "".join(
            f"+ insmod bcache.ko nowait={nowait}\n{noise}+ fio job.fio\n{report}"
            for nowait in ("on", "off")
        )
    )
    one = results.found([tmp_path / "log.txt"])
    experiments = [
        run.experiment for c in results.campaigns(one, "x") for run in c.runs
    ]  # fmt: skip
    assert len(experiments) == len(set(experiments)) > 0


@pytest.mark.parametrize("version", ["3.0.1", "3.2.1", "4.0.0"])
def test_the_summary_of_ior_alone(tmp_path: Path, version: str) -> None:
    """As notes quote it: without the beginning."""
    full = (DATA / f"ior/ior-{version}.txt").read_text()
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


def test_versions_of_a_tool_are_no_repetitions_of_each_other(home: Path, tmp_path: Path) -> None:
    for run, version in enumerate(("3.12", "3.12", "3.19"), start=1):
        text = (DATA / f"fio/jobs-{version}.json").read_text()
        (tmp_path / f"run{run}.json").write_text(f"{run}\n{text}")
    (campaign,) = results.campaigns(results.found([tmp_path]), "x")
    counts = Counter(run.experiment.id for run in campaign.runs)
    assert set(counts.values()) == {1, 2}


@pytest.mark.parametrize("printed", [1, 1.85])
def test_requests_of_older_fio_are_those_that_it_counted(tmp_path: Path, printed: float) -> None:
    """Its rates are whole numbers or have two decimals, which matters for slow drives."""
    body = json.loads((DATA / "fio/jobs-2.21.json").read_text())
    jobs = body["jobs"]
    for job in jobs:
        for direction in ("read", "write"):
            if job[direction]["total_ios"]:
                job[direction] |= {"total_ios": 1664, "runtime": 901_257, "iops": printed}
    (tmp_path / "a.json").write_text(json.dumps(body))
    (one,) = results.found([tmp_path / "a.json"])
    for phase in one.reports[0].phases:
        assert phase.iops == pytest.approx((phase.jobs or 1) * 1664 / 901.257, rel=1e-9)


@pytest.mark.parametrize(
    "line",
    [
        "4194304 Bytes (4,2 MB, 4,0 MiB) kopiert, 0,5 s, 8,4 MB/s",
        "4194304 octets (4,2 MB, 4,0 MiB) copiés, 0,5 s, 8,4 MB/s",
        "4194304 bytes (4,2 MB, 4,0 MiB) copiados, 0,5 s, 8,4 MB/s",
        "4194304字节（4.2 MB，4.0 MiB）已复制，0.5 s，8.4 MB/s",
        "4194304 bytes (4.2 MB, 4.0 MiB) copied, 0.5 s, 8.4 MB/s",
        "4194304 bytes transferred in 0.5 secs (8388608 bytes/sec)",
    ],
)
def test_dd_in_other_languages(line: str, imported: Importer) -> None:
    (row,) = imported.phases_of(f"4+0 x\n4+0 x\n{line}\n")
    assert (row["bytes"], row["bandwidth_bytes_per_s"]) == (4 << 20, 8 << 20)


def test_dd_before_another_tool_is_not_what_the_file_is_of(
    tmp_path: Path, imported: Importer
) -> None:
    text = (DATA / "others/dd.txt").read_text() + (DATA / "others/iozone-auto.txt").read_text()
    (tmp_path / "a.txt").write_text(text)
    file, dd = imported(tmp_path / "a.txt", "--dry-run")["files"]
    (report,) = file["reports"]
    assert file["tool"] == "iozone" and not report["notes"]
    assert dd["tool"] == "dd" and len(dd["reports"]) == 2


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


def test_files_with_repetitions_of_their_own_are_not_joined(
    tmp_path: Path, imported: Importer
) -> None:
    """`take2.txt` and `take3.txt` with one report each are repetitions. Of two each, the files do
    not say whether they are."""
    text = (DATA / "others/sysbench.txt").read_text()
    for count, sizes in ((2, [1, 1, 1, 1]), (1, [2])):
        folder = tmp_path / str(count)
        folder.mkdir()
        for name in ("take2", "take3"):
            (folder / f"{name}.txt").write_text(text * count + f"{name}\n")
        imported(folder, "--name", f"x{count}")
        sets: dict[Any, int] = defaultdict(int)
        for run in load(paths.campaigns()[f"x{count}"]).runs:
            sets[run.experiment] += 1
        assert sorted(sets.values()) == sorted(sizes * 2)


def test_noise_before_an_output_may_be_long(tmp_path: Path, imported: Importer) -> None:
    """A line of each of thousands of processes."""
    noise = "".join(f"rank {rank}: library loaded\n" for rank in range(10_000))
    for name in ("ior/ior-3.2.1.txt", "ior/mdtest-3.2.1.txt"):
        (tmp_path / "a.txt").write_text(noise + (DATA / name).read_text())
        wanted = imported.phases(DATA / name)
        assert imported.phases(tmp_path / "a.txt") == wanted


def test_fio_json_as_a_list_on_one_long_line(tmp_path: Path, imported: Importer) -> None:
    path = DATA / "fio/jobs-3.41.json"
    body = json.loads(path.read_text())
    (tmp_path / "a.json").write_text(json.dumps([body] * 9))
    assert len((tmp_path / "a.json").read_text()) > 1 << 16
    wanted = imported.phases(path)
    (file,) = imported(tmp_path / "a.json", "--dry-run")["files"]
    assert [report["phases"] for report in file["reports"]] == [wanted] * 9


def test_fio_s_complete_reports_are_read_next_to_one_that_is_cut_off(
    tmp_path: Path, imported: Importer
) -> None:
    path = DATA / "fio/jobs-3.41.txt"
    text, wanted = path.read_text(), imported.phases(path)
    failed = "fio-3.41\nfio: the disk is full\n"
    (tmp_path / "a.txt").write_text(failed + text + text[: len(text) // 2])
    (file,) = imported(tmp_path / "a.txt", "--dry-run")["files"]
    (report,) = file["reports"]
    assert report["phases"] == wanted
    assert "2 other reports of the file are not read" in report["notes"][0]


@pytest.mark.parametrize("label", ["stdout[0] ", "[1,0]<stdout>:", "0: "])
@pytest.mark.parametrize("name", ["ior-3.2.1", "ior-2.10.3", "mdtest-4.0.0"])
def test_labels_of_processes_before_each_line(
    tmp_path: Path, imported: Importer, label: str, name: str
) -> None:
    path = DATA / f"ior/{name}.txt"
    (tmp_path / path.name).write_text(
        "".join(f"{label}{line}" for line in path.read_text().splitlines(keepends=True))
    )
    (wanted,), (file,) = (
        imported(one, "--dry-run")["files"] for one in (path, tmp_path / path.name)
    )
    assert file["reports"] == wanted["reports"] and file["reports"]


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


@pytest.mark.parametrize("before", ["  ", "W: ", "stderr: ", '"', "> ", "# ", "// "])
def test_dd_behind_a_label(before: str, imported: Importer) -> None:
    line = "4194304 bytes (4.2 MB, 4.0 MiB) copied, 0.5 s, 8.4 MB/s"
    (row,) = imported.phases_of(f"notes\n{before}{line}\n")
    assert (row["bytes"], row["bandwidth_bytes_per_s"]) == (4 << 20, 8 << 20)


def test_dd_s_progress_is_no_other_copy(tmp_path: Path, imported: Importer) -> None:
    command = "# dd if=/dev/zero of=x bs=1M status=progress\n"
    progress = "2097152 bytes (2.1 MB, 2.0 MiB) copied, 1 s, 2.1 MB/s"
    complete = "4+0 records in\n4+0 records out\n4194304 bytes (4.2 MB) copied, 2 s, 2.1 MB/s\n"
    (tmp_path / "a.txt").write_text(f"{command}{progress}^C\n{complete}{command}{progress}\n")
    (file,) = imported(tmp_path / "a.txt", "--dry-run")["files"]
    rows = [report["phases"][0] for report in file["reports"]]
    assert [(row["bytes"], row["operation"]) for row in rows] == [
        (4 << 20, "write"), (2 << 20, "write")
    ]  # fmt: skip
    # A smaller copy below is another one, also if its command is not in the file.
    smaller = "1+0 records in\n1+0 records out\n1048576 bytes (1.0 MB) copied, 3 s, 0.3 MB/s\n"
    (tmp_path / "b.txt").write_text(f"{command}{progress}\n{smaller}")
    (file,) = imported(tmp_path / "b.txt", "--dry-run")["files"]
    assert [report["phases"][0]["bytes"] for report in file["reports"]] == [2 << 20, 1 << 20]


LMBENCH_SUMMARY = """\

                 L M B E N C H  3 . 0   S U M M A R Y
                 ------------------------------------

*Local* Communication bandwidths in MB/s - bigger is better
-----------------------------------------------------------------------------
Host                OS  Pipe AF    TCP  File   Mmap  Bcopy  Bcopy  Mem   Mem
                             UNIX      reread reread (libc) (hand) read write
--------- ------------- ---- ---- ---- ------ ------ ------ ------ ---- -----
host-a    Linux 5.10.0- 1500 4000 3000 2500.5  11.5K 6000.0 5000.0 9000 7000.
host-b    Linux 5.10.0- 1500           3000.0        6000.0 5000.0 9000 7000.

Memory latencies in nanoseconds - smaller is better
"""


def test_lmbench_s_summary_is_read_unless_its_results_are(
    tmp_path: Path, imported: Importer
) -> None:
    (tmp_path / "summary.out").write_text(LMBENCH_SUMMARY)
    (file,) = imported(tmp_path, "--dry-run")["files"]
    rates = {
        (report["host"], phase["name"]): phase["bandwidth_bytes_per_s"]
        for report in file["reports"] for phase in report["phases"]
    }  # fmt: skip
    assert rates == {
        ("host-a", "File reread"): 2500.5e6, ("host-a", "Mmap reread"): 11.5e9,
        ("host-b", "File reread"): 3e9,
    }  # fmt: skip
    (tmp_path / "a.0").write_text(
        '[lmbench3.0 results for Linux host-a 5.10.0 x86_64]\n"read bandwidth\n1.05 2500.50\n\n'
    )
    summary = imported(tmp_path, "--dry-run")["files"][1]
    assert [report["host"] for report in summary["reports"]] == ["host-b"]
    (tmp_path / "summary.out").write_text(LMBENCH_SUMMARY.replace("File   Mmap", "Disk   Mmap"))
    assert imported(tmp_path, "--dry-run", code=3)["files"][1]["rejected"]


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


_WIDE = (
    "randread: (g=0): rw=randread, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, "
    "ioengine=libaio, iodepth=16"
)


def test_text_inside_a_string_of_json_is_named(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A script may store a tool's whole text, and such a file has no lines of it."""
    text = (DATA / "fio" / "fio-client.txt").read_text()
    (tmp_path / "a.json").write_text(json.dumps({"node": 1, "out": [text, text]}))
    (one,) = results.found([tmp_path / "a.json"])
    assert one.rejected is not None and "the output of fio is inside a string" in one.rejected
    (tmp_path / "b.json").write_text(json.dumps({"node": 1, "out": "nothing"}))
    (one,) = results.found([tmp_path / "b.json"])
    assert one.rejected is not None and "no result of a known tool" in one.rejected


@pytest.mark.parametrize(
    ("names", "above", "repetitions"),
    [
        (("run1", "run2"), ("a run", "a run"), 2),
        (("a-1", "a-2"), ("take 1 of many", "take 2 of many"), 1),
        (("a-1", "a-2"), ("on pod 1", "on pod 2"), 1),
        (
            ("a-1", "a-2"),
            ("on pod 1" + "\nan option" * 12, "on pod 2" + "\nan option" * 12),
            1,
        ),
        (("a-1", "a-2"), ("with a cache", "without a cache"), 1),
        (("node1", "node2"), ("", ""), 1),
        (("disk_1", "disk_2"), ("", ""), 1),
    ],
)
def test_files_of_several_things_are_no_repetitions(
    names: tuple[str, str], above: tuple[str, str], repetitions: int, home: Path, tmp_path: Path
) -> None:
    text = (DATA / "fio" / "jobs-3.1.txt").read_text()
    for name, line in zip(names, above, strict=True):
        (tmp_path / f"{name}.txt").write_text(f"{line}\n{text}{name}\n")
    (campaign,) = results.campaigns(results.found([tmp_path]), "x")
    runs: dict[Any, int] = defaultdict(int)
    for run in campaign.runs:
        runs[run.experiment] += 1
    assert set(runs.values()) == {repetitions}


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
    body = json.loads((DATA / "fio" / "jobs-3.1.json").read_text())
    texts = []
    for second in (1, 2, 2.1):
        later = json.loads(json.dumps(body))
        later["timestamp"] += int(second)
        later["timestamp_ms"] += round(1000 * second)
        for one in later["jobs"]:
            for direction in ("read", "write"):
                one[direction]["runtime"] += round(1000 * second)
                one[direction]["io_bytes"] += round(1000 * second)
        texts.append(json.dumps(later, indent=1))
    (tmp_path / "a.json").write_text("\n".join(texts))
    (one,) = results.found([tmp_path / "a.json"])
    assert len(one.reports) == 1 and any("--status-interval" in n for n in one.reports[0].notes)
    assert one.reports[0].phases[0].runtime_s == pytest.approx(
        json.loads(texts[-1])["jobs"][0]["read"]["runtime"] / 1000, rel=0.5
    )


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


def test_bonnie_s_chunks_are_request_sizes(home: Path, tmp_path: Path) -> None:
    text = (DATA / "others/bonnie-2.txt").read_text()
    assert "vm              64M" in text
    for name, chunk in (("a-1", "32k"), ("a-2", "64k")):
        part = text.replace("vm              64M", f"vm          64M:{chunk}", 1)
        part = part.replace("+++++ +++", "9999k  50", 1)
        (tmp_path / f"{name}.txt").write_text(part)
    files = results.found([tmp_path])
    sizes = {p.request_bytes for one in files for p in one.reports[0].phases if p.request_bytes}
    assert {32 * KIB, 64 * KIB} <= sizes, [one.rejected for one in files]


def test_bonnie_s_lines_below_their_authors_text(home: Path, tmp_path: Path) -> None:
    text = (DATA / "others/bonnie-2.csv").read_text().splitlines()[-1]
    noise = "Writing a byte at a time...done\nWriting intelligently...done\nRewriting...done\n" * 3
    (tmp_path / "a.txt").write_text(
        "".join(f"$ bonnie++ -u 0 -d {fs}/\n{noise}{text}\n" for fs in ("ext4", "xfs"))
    )
    (campaign,) = results.campaigns(results.found([tmp_path]), "x")
    assert {run.repetition for run in campaign.runs} == {1}


def test_the_table_shows_whole_bytes_in_mb(
    home: Path, tmp_path: Path, in_process: InProcess
) -> None:
    """A rate in bytes per second may be a whole number."""
    line = "[RESULT] BW   phase 1   ior_easy_write   0.500 GB/s : time 300.00 seconds\n"
    (tmp_path / "a.txt").write_text("    " + line)
    shown = in_process("import", str(tmp_path / "a.txt"), "--dry-run").out
    assert "536.9" in shown and "536870912" not in shown


def test_versions_in_names_do_not_count_files(home: Path, tmp_path: Path) -> None:
    text = (DATA / "fio" / "jobs-3.1.txt").read_text()
    for version in ("3.0.0", "3.1.0", "3.2.0"):
        (tmp_path / f"tool-{version}.txt").write_text(f"{text}{version}\n")
    (campaign,) = results.campaigns(results.found([tmp_path]), "x")
    assert {run.repetition for run in campaign.runs} == {1}


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


def test_a_table_of_bonnie_without_version_and_machine(tmp_path: Path) -> None:
    table = (
        "For the VIM3:\n"
        "     ------Sequential Output------ --Sequential Input- --Random-\n"
        "     -Per Chr- --Block-- -Rewrite- -Per Chr- --Block-- --Seeks--\n"
        "Size K/sec %CP K/sec %CP K/sec %CP K/sec %CP K/sec %CP /sec %CP\n"
        "  4G 93865  99 312837  96 194487  23 102808  97 415501 21 +++++ +++\n"
    )
    (report,) = read_one(tmp_path, table).reports
    rates = {(p.operation, p.name): p.bandwidth_bytes_per_s for p in report.phases}
    assert sorted(rate / KIB for rate in rates.values() if rate) == [
        93865, 102808, 194487, 312837, 415501]  # fmt: skip
    assert {p.options["file size"] for p in report.phases} == {"4G"}
    assert (report.version, report.host) == (None, None)


def test_results_of_io500_behind_labels(tmp_path: Path) -> None:
    text = "Write:\n" + "".join(
        f"{label}: [RESULT]      ior-easy-write     {rate} GiB/s : time {seconds} seconds\n"
        for label, rate, seconds in (("O_DIRECT", 420.5, 869.65), ("CACHED", 368.25, 413.6))
    )
    (report,) = read_one(tmp_path, text).reports
    assert [(p.name, p.bandwidth_bytes_per_s) for p in report.phases] == [
        ("O_DIRECT ior-easy-write", 420.5 * 2**30), ("CACHED ior-easy-write", 368.25 * 2**30),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"timestamp": 10**12, "timestamp_ms": 10**15}, "time stamp 1e+12 s is out of range"),
        ({"jobs": 10**14}, "jobs: "),
    ],
)
def test_impossible_numbers_of_fio_are_named(
    tmp_path: Path, change: dict[str, Any], why: str
) -> None:
    body = json.loads((DATA / "fio/jobs-3.41.json").read_text())
    for job in body["jobs"]:
        job.pop("job_start", None)
        if "jobs" in change:
            job["job options"] = {**job.get("job options", {}), "group_reporting": "1",
                                  "numjobs": str(change["jobs"])}  # fmt: skip
    body |= {name: value for name, value in change.items() if name != "jobs"}
    assert why in why_rejected(tmp_path, json.dumps(body))


def test_complete_runs_of_ior_are_read_next_to_one_that_is_cut_off(tmp_path: Path) -> None:
    one = (DATA / "ior/ior-3.2.1.txt").read_text()
    (plain,) = read_one(tmp_path, one).reports
    cut_off = one[: one.index("\n", one.index("access    bw(MiB/s)")) + 1]
    found = read_one(tmp_path, one + one + cut_off).reports
    assert [report.phases for report in found] == [plain.phases] * 2
    assert all("1 other reports of the file are not read" in r.notes[0] for r in found)
    assert why_rejected(tmp_path, cut_off) == "IOR: its table of results has no row"


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


def test_lmbench_s_columns_behind_a_long_name_of_the_host(tmp_path: Path) -> None:
    text = LMBENCH_SUMMARY.replace("host-a   ", "host-a-long").replace("host-b   ", "host-b-long")
    found = {r.host: [p.bandwidth_bytes_per_s for p in r.phases]
             for r in read_one(tmp_path, text).reports}  # fmt: skip
    assert found == {"host-a-long": [2500.5e6, 11.5e9], "host-b-long": [3e9]}
    (tmp_path / "b.0").write_text(
        "[lmbench3.0 results for Linux host-b-long 5.10.0 x86_64]\n"
        '"read bandwidth\n1.05 2500.50\n\n'
    )
    (one, _) = results.found([tmp_path / "a.txt", tmp_path / "b.0"])
    assert [report.host for report in one.reports] == ["host-a-long"]
    # Shifted by something else: 11.5K is not 11.5.
    shifted = re.sub(r"^(host-\w) +Linux", r"\1     Linux", LMBENCH_SUMMARY, flags=re.M)
    assert "no bandwidth" in why_rejected(tmp_path, shifted)


def test_io500_s_phases_without_a_score(tmp_path: Path) -> None:
    text = (
        "[RESULT]       ior-easy-write        1.250000 GiB/s : time 31.000 seconds\n"
        "[      ]            timestamp        0.000000 kIOPS : time 0.000 seconds\n"
        "[      ]  ior-rnd4K-easy-read        0.500000 GiB/s : time 30.500 seconds\n"
    )
    (report,) = read_one(tmp_path, text).reports
    assert [
        (p.name, p.operation, p.access_pattern, p.bandwidth_bytes_per_s) for p in report.phases
    ] == [
        ("ior-easy-write", "write", "sequential", 1.25 * 2**30),
        ("ior-rnd4K-easy-read", "read", "random", 2**29),
    ]  # fmt: skip
    assert report.notes == ("IO500 measured these phases without a score: ior-rnd4K-easy-read",)


def test_copies_of_dd_without_a_command_are_no_repetitions(home: Path, tmp_path: Path) -> None:
    copy = "2+0 records in\n2+0 records out\n2097152 bytes (2.1 MB) copied, {} s, 4.2 MB/s\n"
    (tmp_path / "dd.txt").write_text("".join(copy.format(time) for time in (0.5, 3.5)))
    assert _repetitions(tmp_path / "dd.txt") == [1, 1]
    # Files of one copy each may have their settings in their names.
    for number in (1, 2):
        (tmp_path / f"read-4M-{number}.log").write_text(copy.format(number))
    files = results.found(sorted(tmp_path.glob("read*")))
    (campaign,) = results.campaigns(files, "x")
    assert [run.repetition for run in campaign.runs] == [1, 2]


IOZONE_SETTINGS = """\
\tRun began: Sun Mar  1 10:00:00 2020

\tO_DIRECT feature enabled
\tRecord Size {0} KB
\tCommand line used: iozone -I -r {0} -s 8M -i 0
\tOutput is in Kbytes/sec
        KB  reclen   write rewrite    read    reread
      8192       {0}   11111   22222   33333   44444
"""


@pytest.mark.parametrize("banner", ["", "\tIozone: Performance Test of File I/O\n"])
def test_settings_above_each_table_of_iozone(tmp_path: Path, banner: str) -> None:
    plain = IOZONE_SETTINGS.format(4)[IOZONE_SETTINGS.index("        KB") :]
    parts = [plain] * (not banner) + [banner + IOZONE_SETTINGS.format(4), IOZONE_SETTINGS.format(8)]
    rows = [r.phases[0] for r in read_one(tmp_path, "\n\nText\n".join(parts)).reports]
    wanted = [(direct, command) for direct, command in (
        (True, "-I -r 4 -s 8M -i 0"), (True, "-I -r 8 -s 8M -i 0"))]  # fmt: skip
    assert [(p.direct, p.options.get("command")) for p in rows] == [
        *([(None, None)] if not banner else []), *wanted,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "begin", "end"),
    [
        ("ior.json", '{"Version": "IOR-4.0.0", "Began": "x", "tests": ', "}"),
        ("elbencho.json", '{"phase_type": "WRITE", "config": {}, "last_done": ', "}"),
    ],
)
def test_json_that_is_nested_too_deeply_is_rejected(
    tmp_path: Path, in_process: InProcess, name: str, begin: str, end: str
) -> None:
    file = tmp_path / name
    file.write_text(begin + "[" * 100_000 + "]" * 100_000 + end)
    error = in_process("import", str(file), "--dry-run", code=2).err
    assert "Traceback" not in error and str(file) in error


@pytest.mark.parametrize("reader", [elbencho.read_json, ior.read_json])
def test_readers_of_json_name_what_is_nested_too_deeply(
    reader: Callable[[str], Iterator[FoundReport]],
) -> None:
    with pytest.raises(EeioError, match="damaged or cut off"):
        list(reader('{"tests": ' + "[" * 100_000 + "]" * 100_000 + "}"))
