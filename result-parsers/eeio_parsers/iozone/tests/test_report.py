"""Imported outputs of iozone."""

import re
from pathlib import Path

import pytest
from tests.eeio.importing.importer import Importer
from tests.eeio.importing.read import KIB, read_one, why_rejected
from tests.plugin import InProcess

from eeio.exchange.importing import results

OUTPUTS = Path(__file__).parents[1] / "outputs"


def test_iozone_s_table_has_a_row_for_each_cell(imported: Importer) -> None:
    text = (OUTPUTS / "iozone-auto.txt").read_text()
    (row,) = re.findall(r"^ +8192 +1024 +(\d.*)$", text, re.M)
    found = [p for p in imported.phases(OUTPUTS / "iozone-auto.txt")
             if p["request_bytes"] == KIB**2]  # fmt: skip
    assert [round(p["bandwidth_bytes_per_s"] / KIB) for p in found] == list(map(int, row.split()))
    assert [p["name"] for p in found] == [
        "write", "rewrite", "read", "reread", "random read", "random write", "backward read",
        "record rewrite", "strided read", "fwrite", "frewrite", "fread", "freread",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("3.489/random", ["random read", "random write"]),
        ("3.489/read", ["read"]),
        ("3.489/strided", ["strided read"]),
        ("3.507/other/mixed-tests", ["random read", "random write", "strided read"]),
        ("3.507/other/read", ["read"]),
    ],
)
def test_iozone_leaves_columns_of_other_tests_blank(
    name: str, wanted: list[str], imported: Importer
) -> None:
    # The second figure of `read` is 0: -+n.
    path = OUTPUTS / (f"{name}.txt" if "other" in name else f"{name}/stdout.txt")
    assert [p["name"] for p in imported.phases(path)] == wanted


def test_streams_of_the_c_library_are_not_direct(tmp_path: Path) -> None:
    table = (
        "\tO_DIRECT feature enabled\n\tCommand line used: iozone -a -I\n"
        "              kB  reclen    write  rewrite    read    reread    read     write     read   "
        "rewrite      read   fwrite frewrite    fread  freread\n"
    )
    rates = [538, 540, 600, 601, 500, 510, 400, 450, 440, 1143223, 1200000, 1300000, 1400000]
    # As IOzone 3.489 prints them.
    widths = [9] * 7 + [10] * 2 + [9] * 4
    cells = "".join(f"{rate:{width}}" for rate, width in zip(rates, widths, strict=True))
    table += f"{64:16}{4:8}{cells}\n"
    phases = read_one(tmp_path, table).reports[0].phases
    assert {p.name for p in phases if p.direct is False} == {
        "fwrite", "frewrite", "fread", "freread",
    }  # fmt: skip
    assert sum(p.direct is True for p in phases) == len(phases) - 4


def test_a_rate_of_0_is_an_error_of_iozone(tmp_path: Path) -> None:
    table = (
        "     kB  reclen    write  rewrite    read    reread\n"
        "  81920       4    10696    12957   14985         0\n"
    )
    phases = read_one(tmp_path, table).reports[0].phases
    assert [p.error for p in phases] == [None] * 3 + ["IOzone printed a rate of 0"]
    command = f"\tCommand line used: iozone -i 0 -i 1 -+n\n{table}"
    (report,) = read_one(tmp_path, command).reports
    assert [p.name for p in report.phases] == ["write", "rewrite", "read"]


def test_iozone_without_its_first_lines_reports_nothing_of_direct_io(tmp_path: Path) -> None:
    table = (
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
    assert [report.phases[0].direct for report in found.reports] == [None, None, None]
    (tmp_path / "a.txt").write_text(f"{banner}{table.format(2)}   4096       8   1000")
    (cut,) = results.found([tmp_path / "a.txt"])
    assert "write and rewrite are of one test" in str(cut.rejected)


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


def test_the_stride_is_a_setting(tmp_path: Path) -> None:
    line = "\tFile stride size set to 17 * record size.\n        KB"
    text = IOZONE_SETTINGS.format(4).replace("        KB", line)
    (report,) = read_one(tmp_path, "\tIozone: Performance Test of File I/O\n" + text).reports
    assert report.phases[0].options["stride"] == "17 * record size."


@pytest.mark.parametrize(
    "unit",
    ["operations per second.", "microseconds per operation.", "ops/sec"],
)
def test_a_report_in_another_unit_is_rejected(
    unit: str, in_process: InProcess, tmp_path: Path
) -> None:
    """IOzone 3.489 writes the first line with -O, and the second with -N."""
    text = (OUTPUTS / "iozone-auto.txt").read_text()
    assert "Output is in kBytes/sec" in text
    (tmp_path / "iozone.txt").write_text(text.replace("kBytes/sec", unit))
    done = in_process("import", str(tmp_path / "iozone.txt"), "--dry-run", code=2)
    assert "not kBytes/sec" in done.err


def test_iozone_s_tables_for_spreadsheets(tmp_path: Path) -> None:
    """IOzone 3.489, `-a -R -n 16m -g 32m -y 16k -q 64k`: the tables behind its other output."""
    text = (OUTPUTS / "iozone-excel.txt").read_text()
    (report,) = read_one(tmp_path, text).reports
    assert len(report.phases) == 13 * 2 * 3
    figures = re.findall(r"(?<= )\d+(?= )", text)
    found = [round((phase.bandwidth_bytes_per_s or 0) / KIB) for phase in report.phases]
    assert found == [int(figure) for figure in figures]
    first = report.phases[0]
    assert (first.name, first.request_bytes, first.bytes) == ("write", 16 * KIB, 16 * KIB**2)
    assert "do not state their unit" in report.notes[0] and len(report.notes) == 1
    # Below IOzone's other output, they repeat it.
    table = "     kB  reclen    write  rewrite\n  16384      16   111111   222222\n"
    (alone,) = read_one(tmp_path, f"{table}\n{text}").reports
    assert [phase.name for phase in alone.phases] == ["write", "rewrite"]
    assert len(read_one(tmp_path, text + text.replace(" 1", " 2")).reports) == 2


EXCEL = """"Writer report"
        "4"  "8"  "128"
"64"   581273  743988
"128"   0  805138  877518

"Re-writer report"
        "4"  "8"  "128"
"64"   681273  843988
"128"   0  905138  977518
"""


def test_cells_of_spreadsheets_that_did_not_run(tmp_path: Path) -> None:
    (report,) = read_one(tmp_path, EXCEL).reports
    cells = [
        (phase.group, round((phase.bandwidth_bytes_per_s or 0) / KIB)) for phase in report.phases
    ]
    assert cells[:4] == [
        ("64 kB 4", 581273),
        ("64 kB 8", 743988),
        ("128 kB 8", 805138),
        ("128 kB 128", 877518),
    ]
    writer = EXCEL[: EXCEL.index("\n\n") + 1]
    (report,) = read_one(tmp_path, writer).reports
    assert "a part of IOzone's tables: without rewrite" in report.notes
    for end in range(EXCEL.index("Re-writer report") + 60, len(EXCEL)):
        assert why_rejected(tmp_path, EXCEL[:end]) != "None"
    cpu = EXCEL.replace('report"', 'CPU utilization report (Zero values should be ignored)"')
    assert len(read_one(tmp_path, EXCEL + cpu).reports[0].phases) == 8
    assert "1 of 2 figures" in why_rejected(tmp_path, EXCEL.replace("581273  743988", "581273"))
    assert "another name: 'Mixer'" in why_rejected(tmp_path, EXCEL.replace("Writer", "Mixer"))
