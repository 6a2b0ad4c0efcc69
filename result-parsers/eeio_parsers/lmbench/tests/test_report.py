"""Imported outputs of lmbench."""

import re
from pathlib import Path

from tests.eeio.importing.importer import Importer
from tests.eeio.importing.read import read_one, why_rejected

from eeio.exchange.importing import results


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


def test_sizes_that_lmbench_failed_with_are_named(tmp_path: Path) -> None:
    """As in a public result whose program lost its file."""
    text = (
        "[lmbench3.0 results for Linux h1 6.6.0 aarch64]\n[ALL: 512 1k 2k]\n"
        '"read bandwidth\n0.000512 10.0\n0.001024 20.0\n0.002048 30.0\n\n'
        '"Mmap read bandwidth\n0.000512 40.0\nx: No such file or directory\n'
        "x: No such file or directory\n\n"
    )
    (report,) = read_one(tmp_path, text, "h1.0").reports
    assert [phase.bytes for phase in report.phases] == [512, 1024, 2048, 512]
    assert report.notes == (
        "Mmap read bandwidth: 2 of 3 sizes have no result: 'x: No such file or directory'",
    )
    cut_off = text.replace("0.002048 30.0\n", "")
    assert "2 lines of 3 sizes" in why_rejected(tmp_path, cut_off, "h1.0")


def test_results_of_another_file_or_kernel_are_no_repetitions(tmp_path: Path) -> None:
    settings = set()
    for file, kernel in (("/root/f", "6.6.0"), ("/mnt/nfs/f", "6.6.0"), ("/root/f", "6.1.0")):
        text = (
            f"[lmbench3.0 results for Linux h1 x]\n[ENOUGH: 5000]\n[FILE: {file}]\n"
            f'[RELEASE: {kernel}]\n"read bandwidth\n0.000512 10.0\n\n'
        )
        (report,) = read_one(tmp_path, text, "h1.0").reports
        settings.add(tuple(sorted(report.phases[0].options.items())))
    assert len(settings) == 3
