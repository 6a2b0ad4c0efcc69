"""Darshan's counters: of darshan-parser's output, and of logs by PyDarshan."""

import sys
from pathlib import Path

import pytest
from tests.eeio.importing.importer import Importer, phases
from tests.processes import ran

from eeio_parsers.darshan import report as darshan

KIB, MIB = 1024, 1 << 20


def line(module: str, rank: int, counter: str, value: float, file: str) -> str:
    return f"{module}\t{rank}\t{abs(hash(file)) % 97}\t{counter}\t{value}\t{file}\t/\text4\n"


def counters(module: str, rank: int, file: str, **values: float) -> str:
    prefix = module.replace("-", "")
    return "".join(line(module, rank, f"{prefix}_{k}", v, file) for k, v in values.items())


TEXT = (
    "# darshan log version: 3.41\n# compression method: ZLIB\n# exe: ./app\n# uid: 1000\n"
    "# jobid: 7\n# start_time: 1764000000\n# start_time_asci: x\n# nprocs: 4\n"
    "# metadata: lib_ver = 3.4.1\n\n"
    + counters("POSIX", 0, "/d/own", READS=0, WRITES=16, BYTES_READ=0, BYTES_WRITTEN=16 * MIB,
               ACCESS1_ACCESS=MIB, ACCESS1_COUNT=16, F_WRITE_TIME=0.5,
               F_WRITE_START_TIMESTAMP=2.25, F_READ_TIME=0)
    + counters("POSIX", -1, "/d/shared", READS=8, WRITES=8, BYTES_READ=8 * KIB,
               BYTES_WRITTEN=8 * MIB, ACCESS1_ACCESS=MIB, ACCESS1_COUNT=8, ACCESS2_ACCESS=KIB,
               ACCESS2_COUNT=8, F_READ_TIME=0.25, F_WRITE_TIME=2.0)
    + counters("MPI-IO", -1, "/d/shared", INDEP_WRITES=2, COLL_WRITES=6, BYTES_WRITTEN=8 * MIB,
               F_WRITE_TIME=2.5)
    + counters("STDIO", 1, "/d/unused", READS=0, WRITES=0, BYTES_READ=0, BYTES_WRITTEN=0)
)  # fmt: skip


def test_each_file_and_api_has_its_counters(tmp_path: Path, imported: Importer) -> None:
    path = tmp_path / "log.txt"
    path.write_text(TEXT)
    body = imported(path, "--dry-run")
    assert body["files"][0]["tool_version"] == "3.4.1"
    own, read, written, mpi = phases(body)
    assert (own["engine"], own["operation"], own["name"]) == ("POSIX", "write", "/d/own")
    assert (own["bytes"], own["request_bytes"], own["jobs"]) == (16 * MIB, MIB, 1)
    assert (own["bandwidth_bytes_per_s"], own["iops"], own["runtime_s"]) == (32 * MIB, 32, 0.5)
    assert own["started_utc"] == "2025-11-24T16:00:02.250+00:00"
    # The time of a shared file is a sum over its processes: its rate is not known.
    for one in (read, written, mpi):
        assert one["bandwidth_bytes_per_s"] is one["iops"] is one["runtime_s"] is None
        assert one["jobs"] == 4 and one["request_bytes"] is None
    assert (read["bytes"], written["bytes"], mpi["bytes"]) == (8 * KIB, 8 * MIB, 8 * MIB)
    assert read["metrics"] == {"read_calls": 8, "read_time_all_processes_s": 0.25}
    assert written["options"] == {
        "command": "./app", "access sizes": f"{MIB} x 8, {KIB} x 8"
    }  # fmt: skip
    assert mpi["engine"] == "MPI-IO" and mpi["metrics"]["write_calls"] == 8


def test_a_log_without_a_reader_reports_what_to_install(
    tmp_path: Path, imported: Importer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    path = tmp_path / "a.darshan"
    path.write_bytes(b"3.41\0\0\0\0" + darshan.MAGIC[0] + b"\0" * 500)
    monkeypatch.setattr("shutil.which", lambda name: None)
    no_module = tmp_path / "darshan.py"
    no_module.write_text("raise ImportError")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (file,) = imported(path, code=2)["files"]
    assert "pip install darshan" in file["rejected"] and "darshan-parser" in file["rejected"]


def test_logs_by_pydarshan(
    tmp_path: Path, imported: Importer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """The sums of PyDarshan's own example, and damaged copies of it, which must not end eeio."""
    pytest.importorskip("darshan", reason="PyDarshan is not installed")
    monkeypatch.setattr("shutil.which", lambda name: None)
    script = (
        "import darshan, pathlib\n"
        "for p in pathlib.Path(darshan.__file__).parent.rglob('ior_hdf5_example.darshan'):\n"
        "    r = darshan.DarshanReport(str(p), read_all=True)\n"
        "    c = r.records['POSIX'].to_df()['counters']\n"
        "    print(p, c.POSIX_BYTES_READ.sum(), c.POSIX_BYTES_WRITTEN.sum())\n"
    )
    paths = ran([sys.executable, "-c", script]).stdout.split()
    if not paths:
        pytest.skip("this PyDarshan has no example logs")
    found = [p for p in imported.phases(paths[0]) if p["engine"] == "POSIX"]
    for operation, wanted in zip(("read", "write"), map(int, paths[1:]), strict=True):
        assert sum(p["bytes"] for p in found if p["operation"] == operation) == wanted > 0
    complete = Path(paths[0]).read_bytes()
    for place, cut in enumerate((complete[:700], complete[:400] + b"\x99" * 40 + complete[440:])):
        path = tmp_path / f"{place}.darshan"
        path.write_bytes(cut)
        (file,) = imported(path, "--dry-run", code=2)["files"]
        assert "cannot read it" in file["rejected"] and path.exists()


def test_sums_over_years_and_sizes_that_cannot_be(tmp_path: Path, imported: Importer) -> None:
    """A million processes need more than a year together; Darshan 3.2 may print any size."""
    path = tmp_path / "log.txt"
    path.write_text(
        TEXT.replace("F_WRITE_TIME\t2.0\t", "F_WRITE_TIME\t4e7\t").replace(
            f"ACCESS2_ACCESS\t{KIB}\t", "ACCESS2_ACCESS\t4576131523236855808\t"
        )
    )
    written = imported.phases(path)[2]
    assert written["bytes"] == 8 * MIB and written["metrics"] == {"write_calls": 8}
    assert written["options"] == {"command": "./app", "access sizes": f"{MIB} x 8"}


def test_the_output_of_the_dxt_parser_is_rejected_by_name(
    tmp_path: Path, imported: Importer
) -> None:
    path = tmp_path / "log.txt"
    path.write_text(TEXT.partition("\n\n")[0] + "\n\n# DXT, file_id: 9, file_name: /d/own\n")
    (file,) = imported(path, "--dry-run", code=2)["files"]
    assert "darshan-dxt-parser" in file["rejected"]
