"""`eeio import` of files: what the tools wrote is read as they meant it, or rejected by name."""

import json
import shutil
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.eeio.importing.importer import Importer
from tests.eeio.importing.read import KIB, read_one
from tests.eeio.importing.read import PARSERS as DATA
from tests.plugin import InProcess
from tests.processes import ran

from eeio import paths
from eeio.cli import main
from eeio.errors import EeioError
from eeio.exchange.importing import results
from eeio.record.store import load
from eeio_parsers.elbencho import report as elbencho
from eeio_parsers.found import FoundReport
from eeio_parsers.ior import report as ior

FIO = DATA / "fio/outputs"


def test_appended_reports_and_noise(tmp_path: Path, imported: Importer) -> None:
    for suffix in ("json", "txt"):
        both = tmp_path / f"both.{suffix}"
        parts = [(DATA / f"fio/outputs/jobs-{v}.{suffix}").read_text() for v in ("3.1", "3.41")]
        both.write_text("fio: this is noise\n" + parts[0] + "\n" + parts[1])
        (file,) = imported(both, "--dry-run")["files"]
        assert [report["report"] for report in file["reports"]] == [0, 1]
        assert [len(report["phases"]) for report in file["reports"]] == [4, 4]
        alone = imported.phases(DATA / f"fio/outputs/jobs-3.41.{suffix}")
        assert file["reports"][1]["phases"] == alone


EXPECTED = {
    # File: (tool, number of rows, some rows by name and group: bandwidth in bytes/s, IOPS)
    "ior/outputs/ior-4.0.0.txt": ("ior", 4, {("write", "0"): (4044.6 * KIB**2, 16529)}),
    "ior/outputs/ior-3.0.1.txt": ("ior", 4, {("read", "1"): (17152 * KIB**2, None)}),
    "ior/outputs/ior-2.10.3.txt": ("ior", 2, {("write", "0"): (3282.20 * KIB**2, 13128.80)}),
    "mdtest/outputs/mdtest-4.0.0.txt": ("mdtest", 10, {("file creation", "0"): (None, 31755.772)}),
    "mdtest/outputs/mdtest-3.2.1.txt": ("mdtest", 9, {("file read", "0"): (None, 663349.9)}),
    "bonnie/outputs/bonnie-2.csv": ("bonnie", 2, {("character write", "0"): (918 * KIB, None)}),
    "bonnie/outputs/bonnie-2.txt": ("bonnie", 2, {("character read", "0"): (1326 * KIB, None)}),
    "dd/outputs/dd.txt": ("dd", 2, {("dd", "0"): (16777216 / 0.0780849, None)}),
    "hyperfine/outputs/hyperfine.json": ("hyperfine", 2, {}),
    "hyperfine/outputs/hyperfine.md": ("hyperfine", 2, {}),
    "hyperfine/outputs/hyperfine.csv": ("hyperfine", 2, {}),
    "sysbench/outputs/sysbench.txt": ("sysbench", 2, {}),
    "iozone/outputs/iozone-auto.txt": ("iozone", 26, {}),
    "iozone/outputs/iozone-throughput.txt": ("iozone", 13, {}),
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


def test_all_is_stored_once_and_reported(
    home: Path, tmp_path: Path, imported: Importer, in_process: InProcess
) -> None:
    source = tmp_path / "old"
    for disk in ("hdd", "ssd"):
        (source / disk).mkdir(parents=True)
        for run in (1, 2, 3):
            # The same file twice would be one result.
            text = (DATA / "fio/outputs/jobs-3.12.json").read_text()
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
        shutil.copy(DATA / "dd/outputs/dd.txt", tmp_path / name)
    first, second = imported(tmp_path, code=3)["files"]
    assert first["rejected"] is None and "the same content as" in second["rejected"]


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("cut.json", (FIO / "jobs-3.41.json").read_bytes()[:9000], "damaged or cut off"),
        ("cut.txt", (FIO / "jobs-3.41.txt").read_bytes()[:900], "results of 1 of 6 jobs"),
        ("empty", b"", "empty"),
        ("binary.tar", b"fio" + bytes(100), "binary"),
        ("binary.gz", b"\x1f\x8b\x08\0\xfe\xca", "binary"),
        ("failed.json", b'{"fio version": "fio-3.33", "jobs": [{"jobname": "x", "error": 5}]}',
         "no result in it: all jobs failed, the first with fio's error 5"),
        ("ior.csv", (DATA / "ior/outputs/ior-3.2.1.csv").read_bytes(), "no table of results"),
        ("nan.json", (DATA / "fio/outputs/jobs-3.41.json").read_bytes().replace(
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
        "fio": DATA / "fio/outputs/jobs-3.1.txt", "dd": DATA / "dd/outputs/dd.txt",
        "ior": DATA / "ior/outputs/ior-3.2.1.txt",
        "mdtest": DATA / "mdtest/outputs/mdtest-4.0.0.txt",
        "sysbench": DATA / "sysbench/outputs/sysbench.txt",
        "iozone": DATA / "iozone/outputs/iozone-auto.txt",
        "bonnie": DATA / "bonnie/outputs/bonnie-2.txt",
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
    cut = (DATA / "fio/outputs/jobs-3.41.txt").read_text()[:900]
    both.write_text((DATA / "ior/outputs/ior-3.2.1.txt").read_text() + cut)
    files = imported(both, code=3)["files"]
    assert [file["tool"] for file in files] == ["ior", "fio"]
    assert files[0]["reports"] and not files[1]["reports"]
    assert "results of 1 of 6 jobs" in files[1]["rejected"]


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
        (("run1", "run2"), [1, 2]),
        (("seqTestRun1", "seqTestRun2"), [1, 2]),
        (("fio_1", "fio_2"), [1, 2]),
        (("fio0", "fio1"), [1, 2]),
        (("baseline-1", "baseline-2"), [1, 2]),
        (("ext3-run1", "ext3-run2", "ext4-run1"), [1, 2, 1]),
        (("ext3", "ext4"), [1, 1]),
        (("smt0", "smt1"), [1, 1]),
        (("smt-0", "smt-1"), [1, 1]),
        (("pcie3_read", "pcie4_read"), [1, 1]),
        (("lustre2", "lustre3"), [1, 1]),
        (("bypass0", "bypass1"), [1, 1]),
        (("read-1m", "read-2m"), [1, 1]),
    ],
)
def test_numbers_in_names_may_be_settings(
    home: Path, tmp_path: Path, names: tuple[str, ...], repetitions: list[int]
) -> None:
    """Numbers that count the files are repetitions; others are what the tool does not report."""
    text = (DATA / "fio/outputs/mix-30.json").read_text()
    for place, name in enumerate(names):
        (tmp_path / f"{name}.json").write_text(text + "\n" * place)
    files = [tmp_path / f"{name}.json" for name in names]
    (campaign,) = results.campaigns(results.found(files), "x")
    of_file: dict[str, set[int]] = {}
    for run in campaign.runs:
        of_file.setdefault(run.notes[0].partition(", report")[0], set()).add(run.repetition)
    found = {Path(name.removeprefix("imported from ")).stem: n for name, n in of_file.items()}
    assert sorted(map(sorted, found.values())) == sorted([k] for k in repetitions)


@pytest.mark.parametrize(
    ("names", "note"),
    [
        (("run-1", "run-2"), None),
        (("node1", "node2"), None),
        (("ext3", "ext4"), "files ext3, ext4: the numbers may be settings, so these are separate"),
        (("mix-1", "mix-2"), "files mix-#: the numbers (#) are taken for those of repetitions"),
        (("mix.1", "mix.2"), "files mix-#: the numbers (#) are taken for those of repetitions"),
        (("run.1", "run.2"), None),
    ],
)
def test_numbers_that_a_name_does_not_explain_have_a_note(
    home: Path, names: tuple[str, str], note: str | None, tmp_path: Path, in_process: InProcess
) -> None:
    text = (DATA / "fio/outputs/mix-30.json").read_text()
    for place, name in enumerate(names):
        file = name if "." in name else f"{name}.json"
        (tmp_path / file).write_text(text + "\n" * place)
    printed = in_process("import", str(tmp_path), "--name", "named").err
    (remark,) = load(paths.campaigns()["named"]).design.remarks or ("",)
    if note is None:
        assert "number" not in printed and not remark
    else:
        assert note in printed and note in remark


def _imported_with(folder: Path, name: str, imported: Importer, **options: str) -> None:
    """Six runs of fio with the same options."""
    (folder / name).mkdir()
    body = json.loads((DATA / "fio/outputs/mix-30.json").read_text())
    body["jobs"][0]["job options"] |= options
    for run in range(6):
        body["timestamp"] += 60
        (folder / name / f"run-{run}.json").write_text(json.dumps(body))
    imported(folder / name, "--name", name)


def test_settings_that_differ_between_imports_are_named_by_compare(
    home: Path, tmp_path: Path, imported: Importer, in_process: InProcess
) -> None:
    """Options that all runs of an import have are no factors, so the experiments are the same."""
    _imported_with(tmp_path, "before", imported, size="1G", filename="/mnt/a")
    _imported_with(tmp_path, "after", imported, size="64G", fsync="1", filename="/mnt/b")
    ids = [
        {run.experiment.id for run in load(paths.campaigns()[name]).runs}
        for name in ("before", "after")
    ]
    assert ids[0] == ids[1]
    compared = in_process("compare", "before", "after").out
    note = "settings differ between before and after, and a change may be theirs: "
    assert f"{note}fsync: not set, 1; size: 1G, 64G\n" in compared
    _imported_with(tmp_path, "again", imported, size="1G", filename="/mnt/c")
    assert "settings" not in in_process("compare", "before", "again").out
    stored = paths.campaigns()["after"] / "campaign.json"
    design = json.loads(stored.read_text())
    for experiment in design["experiments"]:
        del experiment["settings"]
    stored.write_text(json.dumps(design))
    compared = in_process("compare", "before", "after").out
    assert "after does not state its settings, so that they are not compared" in compared


def test_an_empty_folder_is_rejected(home: Path, tmp_path: Path, in_process: InProcess) -> None:
    assert "no file in it" in in_process("import", str(tmp_path), code=2).err


def test_settings_that_differ_keep_rows_apart(
    tmp_path: Path, imported: Importer, in_process: InProcess
) -> None:
    """Sizes of a file in IOzone's table, and an option of fio that no column shows."""
    shutil.copy(DATA / "iozone/outputs/iozone-two-sizes.txt", tmp_path / "a.txt")
    imported(tmp_path / "a.txt", "--name", "sizes")
    rows = imported.rows("sizes")
    assert len(rows) == 8 and {row["n"] for row in rows} == {1}
    for share in (30, 70):
        text = (DATA / f"fio/outputs/mix-{share}.json").read_text()
        for run in (1, 2, 3):
            number = run + (share == 70) * 3  # only the digits of the names differ
            (tmp_path / f"mix-{number}.json").write_text(text + "\n" * run)
    imported(*sorted(tmp_path.glob("mix*.json")), "--name", "mix")
    found = [(row["operation"], row["n"]) for row in imported.rows("mix")]
    # Each has a row of both directions, and two with the bandwidth of each.
    assert found == [("mixed", 3)] * 6
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


_MEMORY_OF_AN_IMPORT = """
import sys, tracemalloc
from pathlib import Path
from eeio.exchange.importing import results
tracemalloc.start()
taken = results.take([Path(sys.argv[1])], "many", dry_run=False)
print(sum(count for *_, count in taken.stored), tracemalloc.get_traced_memory()[1])
"""
"""In a process of its own, for threads of other tests may allocate memory meanwhile."""


def test_memory_of_an_import_is_bounded(home: Path, tmp_path: Path) -> None:
    """100,000 phases need less than 500 MB: 5 kB for each, of which the options are shared."""
    body = json.loads((DATA / "fio/outputs/jobs-3.41.json").read_text())
    job = body["jobs"][0]
    for number in range(20):
        body["jobs"] = [{**job, "groupid": group} for group in range(100)]
        (tmp_path / f"{number}.json").write_text(json.dumps({**body, "time": number}))
    phases = len([1 for one in ("read", "write") if job[one]["io_bytes"]]) * 2000
    done = ran([sys.executable, "-c", _MEMORY_OF_AN_IMPORT, str(tmp_path)])
    stored, most = map(int, done.stdout.split()[-2:])
    assert stored == 2000
    assert most / phases < 5000


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_text_in_utf_16(tmp_path: Path, encoding: str) -> None:
    """As `>` of PowerShell 5 writes it."""
    complete = (DATA / "fio/outputs/jobs-3.41.txt").read_text()
    path = tmp_path / "fio.txt"
    path.write_bytes(("\ufeff" + complete.replace("\n", "\r\n")).encode(encoding))
    (one,) = results.found([path])
    assert one.reports == read_one(tmp_path, complete).reports
    path.write_bytes(b"\xff\xfe\0\0" + complete.encode("utf-32-le"))
    assert "binary" in str(results.found([path])[0].rejected)


def test_nul_bytes_that_a_program_printed_into_text(tmp_path: Path) -> None:
    complete = (DATA / "fio/outputs/jobs-3.41.txt").read_text()
    path = tmp_path / "fio.txt"
    path.write_bytes(b"weka status\n\0\n=====\n" + complete.encode())
    (one,) = results.found([path])
    expected = read_one(tmp_path, complete).reports
    assert [report.phases for report in one.reports] == [report.phases for report in expected]


def test_json_below_a_long_log(tmp_path: Path) -> None:
    text = "a line of a log\n" * 5000 + (DATA / "fio/outputs/jobs-3.41.json").read_text()
    assert read_one(tmp_path, text).form == "json"


def test_commands_that_a_shell_traced_are_settings(home: Path, tmp_path: Path) -> None:
    """They may be far above the report: `set -x`."""
    report = (DATA / "fio/outputs/jobs-3.41.txt").read_text()
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


def test_versions_of_a_tool_are_no_repetitions_of_each_other(home: Path, tmp_path: Path) -> None:
    for run, version in enumerate(("3.12", "3.12", "3.19"), start=1):
        text = (DATA / f"fio/outputs/jobs-{version}.json").read_text()
        (tmp_path / f"run{run}.json").write_text(f"{run}\n{text}")
    (campaign,) = results.campaigns(results.found([tmp_path]), "x")
    counts = Counter(run.experiment.id for run in campaign.runs)
    assert set(counts.values()) == {1, 2}


def test_dd_before_another_tool_is_not_what_the_file_is_of(
    tmp_path: Path, imported: Importer
) -> None:
    text = (DATA / "dd/outputs/dd.txt").read_text() + (
        DATA / "iozone/outputs/iozone-auto.txt"
    ).read_text()
    (tmp_path / "a.txt").write_text(text)
    file, dd = imported(tmp_path / "a.txt", "--dry-run")["files"]
    (report,) = file["reports"]
    assert file["tool"] == "iozone" and not report["notes"]
    assert dd["tool"] == "dd" and len(dd["reports"]) == 2


def test_files_with_repetitions_of_their_own_are_not_joined(
    tmp_path: Path, imported: Importer
) -> None:
    """`take2.txt` and `take3.txt` with one report each are repetitions. Of two each, the files do
    not say whether they are."""
    text = (DATA / "sysbench/outputs/sysbench.txt").read_text()
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
    for name in ("ior/outputs/ior-3.2.1.txt", "mdtest/outputs/mdtest-3.2.1.txt"):
        (tmp_path / "a.txt").write_text(noise + (DATA / name).read_text())
        wanted = imported.phases(DATA / name)
        assert imported.phases(tmp_path / "a.txt") == wanted


@pytest.mark.parametrize("label", ["stdout[0] ", "[1,0]<stdout>:", "0: "])
@pytest.mark.parametrize("name", ["ior-3.2.1", "ior-2.10.3", "mdtest-4.0.0"])
def test_labels_of_processes_before_each_line(
    tmp_path: Path, imported: Importer, label: str, name: str
) -> None:
    path = next(DATA.glob(f"*/outputs/{name}.txt"))
    (tmp_path / path.name).write_text(
        "".join(f"{label}{line}" for line in path.read_text().splitlines(keepends=True))
    )
    (wanted,), (file,) = (
        imported(one, "--dry-run")["files"] for one in (path, tmp_path / path.name)
    )
    assert file["reports"] == wanted["reports"] and file["reports"]


def test_text_inside_a_string_of_json_is_named(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A script may store a tool's whole text, and such a file has no lines of it."""
    text = (DATA / "fio/outputs" / "fio-client.txt").read_text()
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
    text = (DATA / "fio/outputs" / "jobs-3.1.txt").read_text()
    for name, line in zip(names, above, strict=True):
        (tmp_path / f"{name}.txt").write_text(f"{line}\n{text}{name}\n")
    (campaign,) = results.campaigns(results.found([tmp_path]), "x")
    runs: dict[Any, int] = defaultdict(int)
    for run in campaign.runs:
        runs[run.experiment] += 1
    assert set(runs.values()) == {repetitions}


def test_the_table_shows_whole_bytes_in_mb(
    home: Path, tmp_path: Path, in_process: InProcess
) -> None:
    """A rate in bytes per second may be a whole number."""
    line = "[RESULT] BW   phase 1   ior_easy_write   0.500 GB/s : time 300.00 seconds\n"
    (tmp_path / "a.txt").write_text("    " + line)
    shown = in_process("import", str(tmp_path / "a.txt"), "--dry-run").out
    assert "536.9" in shown and "536870912" not in shown


def test_versions_in_names_do_not_count_files(home: Path, tmp_path: Path) -> None:
    text = (DATA / "fio/outputs" / "jobs-3.1.txt").read_text()
    for version in ("3.0.0", "3.1.0", "3.2.0"):
        (tmp_path / f"tool-{version}.txt").write_text(f"{text}{version}\n")
    (campaign,) = results.campaigns(results.found([tmp_path]), "x")
    assert {run.repetition for run in campaign.runs} == {1}


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
