"""Imported outputs of dd."""

from pathlib import Path

import pytest
from tests.eeio.importing.importer import Importer
from tests.eeio.importing.read import read_one

from eeio.exchange.importing import results


def _repetitions(path: Path) -> list[int]:
    """Of each report's first row."""
    (campaign,) = results.campaigns(results.found([path]), "x")
    found = {}
    for run in campaign.runs:
        report = int(run.notes[0].partition(", report ")[2].partition(",")[0])
        found.setdefault(report, run.repetition)
    return [found[report] for report in sorted(found)]


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


def test_dd_behind_the_name_of_a_drive(tmp_path: Path) -> None:
    text = (
        "/dev/md1 419430400 bytes (419 MB, 400 MiB) copied, 1.58549 s, 265 MB/s\n"
        "/dev/md2 419430400 bytes (419 MB, 400 MiB) copied, 1.75172 s, 239 MB/s\n"
    )
    rows = [p for r in read_one(tmp_path, text).reports for p in r.phases]
    assert [p.runtime_s for p in rows] == [1.58549, 1.75172]


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
    notes = [report["notes"] for report in file["reports"]]
    assert notes == [
        [],
        ["no line `records in` above it: it may be dd's progress, and not its end"],
    ]
    # A smaller copy below is another one, also if its command is not in the file.
    smaller = "1+0 records in\n1+0 records out\n1048576 bytes (1.0 MB) copied, 3 s, 0.3 MB/s\n"
    (tmp_path / "b.txt").write_text(f"{command}{progress}\n{smaller}")
    (file,) = imported(tmp_path / "b.txt", "--dry-run")["files"]
    assert [report["phases"][0]["bytes"] for report in file["reports"]] == [2 << 20, 1 << 20]


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


def test_all_copies_of_a_loop_have_its_settings(tmp_path: Path, imported: Importer) -> None:
    loop = "for i in {1..2}; do dd if=/dev/zero bs=1M count=2 of=/mnt/zero.$i; done\n\n"
    copy = "2+0 records in\n2+0 records out\n2097152 bytes (2.1 MB) copied, 0.5 s, 4.2 MB/s\n"
    (tmp_path / "dd.txt").write_text(f"    {loop}{copy}{copy}And another one:\n{copy}")
    (file,) = imported(tmp_path / "dd.txt", "--dry-run")["files"]
    rows = [report["phases"][0] for report in file["reports"]]
    settings = [(row["operation"], row["request_bytes"]) for row in rows]
    assert settings == [("write", 1 << 20), ("write", 1 << 20), (None, None)]
