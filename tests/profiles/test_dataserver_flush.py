"""When what the data servers wrote is on the device: what they flush, and both times they tell."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from eeio.record import tools
from tests.profiles import programs
from tests.profiles.harness import Installer
from tests.profiles.programs import Program

PROGRAM = "dataserver"

pytestmark = pytest.mark.tools

# Two servers of four requests each.
WRITES = ("operation=write", "clients=2", "request=65536", "stripe=65536", "client_bytes=262144")

SLOW = """#define _GNU_SOURCE
#include <time.h>
int fsync(int file)
{
	(void)file;
	return nanosleep(&(struct timespec){.tv_nsec = 400000000}, 0);
}
"""


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """With an fsync that takes 0.4 s."""

    def make(folder: Path) -> Program:
        (folder / "slow.c").write_text(SLOW)
        return programs.plain("dataserver", folder, str(folder / "slow.c"))

    return programs.shared(tmp_path_factory, "slow-dataserver", make)


def calls(program: Program, folder: Path, *options: str) -> list[str]:
    """w for a write and f for a flush of the files, in the order of one server after the other."""
    programs.need("strace")
    before = ["strace", "-ff", "-y", "-s0", "-e", "trace=pwrite64,fsync", "-o", f"{folder}/strace"]
    program.good(2, *WRITES, *options, f"directory={folder}", before=before)
    found = []
    for path in sorted(folder.glob("strace.*")):
        lines = [line for line in path.read_text().splitlines() if "eeio-dataserver." in line]
        if lines:
            found.append("".join("f" if line.startswith("fsync") else "w" for line in lines))
    return found


@pytest.mark.parametrize("api", ["posix", "mpiio"])
@pytest.mark.parametrize(
    ("flush", "made"), [("none", "wwww"), ("end", "wwwwf"), ("each", "wfwfwfwf")]
)
def test_what_is_flushed(program: Program, tmp_path: Path, api: str, flush: str, made: str) -> None:
    assert calls(program, tmp_path, f"flush={flush}", f"api={api}") == [made, made]


def test_a_shared_file_is_flushed_by_all(program: Program, tmp_path: Path) -> None:
    assert calls(program, tmp_path, "flush=end", "file=shared") == ["wwwwf", "wwwwf"]


def reported(
    program: Program, folder: Path, *options: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The phase of eeio.json and dataserver.json."""
    out, eeio = folder / "out.json", folder / "eeio.json"
    program.good(2, *WRITES, *options, f"directory={folder}", f"json={out}", f"eeio={eeio}")
    (phase,) = json.loads(eeio.read_text())["phases"]
    return phase, json.loads(out.read_text())


def test_both_times_of_a_flush_at_the_end(slow: Program, tmp_path: Path) -> None:
    phase, body = reported(slow, tmp_path, "flush=end")
    returned_s = phase["end_monotonic_s"] - phase["start_monotonic_s"]
    durable_s = phase["durable_monotonic_s"] - phase["start_monotonic_s"]
    assert durable_s > returned_s + 0.39
    assert phase["bandwidth_bytes_per_s"] == pytest.approx(524_288 / returned_s, rel=1e-3)
    assert (phase["includes_flush"], phase["durable_source"]) == (False, "the program's own fsync")
    assert body["aggregate"]["seconds"] == pytest.approx(durable_s, abs=1e-6)
    assert body["aggregate"]["returned_seconds"] == pytest.approx(returned_s, abs=1e-6)


def test_a_flush_of_each_request_is_in_the_time_of_the_calls(slow: Program, tmp_path: Path) -> None:
    phase, body = reported(slow, tmp_path, "flush=each")
    assert phase["includes_flush"] is True
    assert phase["durable_source"] == "the program's own fsync of each request"
    # Four flushes of each server, one after the other.
    assert phase["end_monotonic_s"] - phase["start_monotonic_s"] > 4 * 0.39
    assert body["latency_s"]["p50"] > 0.39


def test_nothing_is_reported_of_what_is_not_flushed(slow: Program, tmp_path: Path) -> None:
    phase, body = reported(slow, tmp_path, "flush=none")
    assert not [key for key in phase if key.startswith("durable")]
    assert body["aggregate"]["seconds"] < 0.39


def test_a_limit_of_time_ends_collective_calls_on_all_ranks(slow: Program, tmp_path: Path) -> None:
    _, body = reported(
        slow, tmp_path, "flush=each", "file=shared", "api=mpiio", "collective=on", "runtime_s=1"
    )
    assert body["stopped_early"]
    first, second = (rank["requests"] for rank in body["ranks"])
    assert first == second < 4


@pytest.mark.fast_variants(1)
@pytest.mark.parametrize("flush", ["none", "end", "each"])
def test_the_profile_reports_the_rate_until_durable(
    installed: Installer, tmp_path: Path, flush: str
) -> None:
    profile = installed("dataserver")
    factors = {"operation": "write", "file_size": "4m", "request_size": "64k", "flush": flush}
    given = [f"{key}={value}" for key, value in factors.items()]
    profile.script("pre.sh", *given)
    (phase,) = tools.parse("dataserver", profile.capture(tmp_path / "out", factors)).phases
    assert (phase.until_durable is not None) == (flush != "none")
    assert phase.includes_flush == (flush == "each")
    log = tmp_path / "log"
    profile.run(*given, LOG_FILE=str(log), EEIO_OUTPUT_DIR=str(tmp_path / "out"))
    match = re.search(r"^EEIO write bandwidth: ([0-9.]+) MB/s$", log.read_text(), re.M)
    body = json.loads((tmp_path / "out/dataserver.json").read_text())["aggregate"]
    assert match and float(match[1]) * 1e6 == pytest.approx(body["bandwidth_bytes_per_s"], rel=1e-3)
    assert body["bandwidth_bytes_per_s"] == pytest.approx((4 << 20) / body["seconds"], rel=1e-3)


def test_the_former_arguments_are_understood(installed: Installer, tmp_path: Path) -> None:
    profile = installed("dataserver")
    for old, new in (("on", "end"), ("off", "none")):
        factors = {"operation": "write", "file_size": "1m", "request_size": "64k", "fsync": old}
        profile.script("pre.sh", *(f"{key}={value}" for key, value in factors.items()))
        profile.capture(tmp_path / old, factors)
        assert json.loads((tmp_path / old / "dataserver.json").read_text())["flush"] == new
