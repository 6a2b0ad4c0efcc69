"""Imported outputs of bonnie."""

from pathlib import Path

from tests.eeio.importing.importer import Importer
from tests.eeio.importing.read import KIB, read_one, why_rejected

from eeio.exchange.importing import results

OUTPUTS = Path(__file__).parents[1] / "outputs"


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


def test_bonnie_s_chunks_are_request_sizes(home: Path, tmp_path: Path) -> None:
    text = (OUTPUTS / "bonnie-2.txt").read_text()
    assert "vm              64M" in text
    for name, chunk in (("a-1", "32k"), ("a-2", "64k")):
        part = text.replace("vm              64M", f"vm          64M:{chunk}", 1)
        part = part.replace("+++++ +++", "9999k  50", 1)
        (tmp_path / f"{name}.txt").write_text(part)
    files = results.found([tmp_path])
    sizes = {p.request_bytes for one in files for p in one.reports[0].phases if p.request_bytes}
    assert {32 * KIB, 64 * KIB} <= sizes, [one.rejected for one in files]


def test_bonnie_s_lines_below_their_authors_text(home: Path, tmp_path: Path) -> None:
    text = (OUTPUTS / "bonnie-2.csv").read_text().splitlines()[-1]
    noise = "Writing a byte at a time...done\nWriting intelligently...done\nRewriting...done\n" * 3
    (tmp_path / "a.txt").write_text(
        "".join(f"$ bonnie++ -u 0 -d {fs}/\n{noise}{text}\n" for fs in ("ext4", "xfs"))
    )
    (campaign,) = results.campaigns(results.found([tmp_path]), "x")
    assert {run.repetition for run in campaign.runs} == {1}


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


def test_bonnie_s_csv_of_1_03(tmp_path: Path) -> None:
    line = (
        "box,8096M,38449,67,36403,9,19240,5,47427,74,47958,7,330.6,0,256,216,99,+++++,+++,66339,"
        "55,222,99,+++++,+++,304,35\n"
    )
    (report,) = read_one(tmp_path, line).reports
    rates = {p.name: p.iops or (p.bandwidth_bytes_per_s or 0) / 1024 for p in report.phases}
    assert rates == {
        "character write": 38449, "write": 36403, "rewrite": 19240, "character read": 47427,
        "read": 47958, "seeks": 330.6, "sequential create": 216, "sequential delete": 66339,
        "random create": 222, "random delete": 304,
    }  # fmt: skip
    assert (report.version, report.host) == ("1.03", "box")
    assert report.phases[0].bytes == 8096 << 20
    files = [phase.options.get("files") for phase in report.phases if phase.operation == "metadata"]
    assert set(files) == {"256"}
    # A line with less fields is none.
    assert "no result of a known tool" in why_rejected(tmp_path, line.replace(",304,35", ""))


def test_several_lines_below_one_heading_are_a_report_each(tmp_path: Path) -> None:
    """Who collects results may put them into one table. The columns are those of a real 1.03b."""
    table = (
        "Version 1.03b       ------Sequential Output------ --Sequential Input- --Random-\n"
        "                    -Per Chr- --Block-- -Rewrite- -Per Chr- --Block-- --Seeks--\n"
        "Machine        Size K/sec %CP K/sec %CP K/sec %CP K/sec %CP K/sec %CP  /sec %CP\n"
        "aoesrv          32G           648269  74 138283 18           498077  28 657.3   2\n"
        "aoesrv          32G           112072  14 40958   6           110399   7 471.4   0\n"
        "aoesrv          32G           166892  18 96033  13           487688  30 599.1   1\n"
        "\n"
        "                    ------Sequential Create------ --------Random Create--------\n"
    )
    reports = read_one(tmp_path, table).reports
    writes = [report.phases[0].bandwidth_bytes_per_s for report in reports]
    assert writes == [648269 * KIB, 112072 * KIB, 166892 * KIB]
    assert len({report.begins_at for report in reports}) == 3


def test_bonnie_states_no_request_size(tmp_path: Path) -> None:
    """The older program; Bonnie++ has 8 KiB if its table states nothing else."""
    table = (
        "              -------Sequential Output-------- ---Sequential Input-- --Random--\n"
        "              -Per Char- --Block--- -Rewrite-- -Per Char- --Block--- --Seeks---\n"
        "Machine    MB K/sec %CPU K/sec %CPU K/sec %CPU K/sec %CPU K/sec %CPU  /sec %CPU\n"
        "box      2047 13366 29.2 18486  0.9  7276  0.7 21276 60.7 39466  1.8  86.1  0.0\n"
    )
    (report,) = read_one(tmp_path, table).reports
    blocks = {phase.name: phase for phase in report.phases}
    assert blocks["write"].bandwidth_bytes_per_s == 18486 * KIB
    assert all(phase.request_bytes is None for phase in report.phases)
