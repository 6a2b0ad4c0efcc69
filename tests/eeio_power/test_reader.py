"""The helper that reads RAPL, compiled with sanitizers, and the sampler on top of it."""

import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from array import array
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.eeio_power.compiled import HELPERS, SANITIZERS, compiled, needs_compiler
from tests.eeio_power.one_meter import one_meter
from tests.executables import executable
from tests.simulators import FakeRapl, FakeZone
from tests.waiting import PATIENCE_S, until

from eeio_power import helper_process as reader_module
from eeio_power.errors import PowerError
from eeio_power.helper_process import INSTALLED, EnergyReader, find_reader
from eeio_power.meters import open_meters
from eeio_power.sampler import Sampler
from eeio_power.samples import load
from eeio_power.sampling_loops import BatchLoop, MeterLoop

ZONES = ["intel-rapl:0", "intel-rapl:0:2"]

pytestmark = needs_compiler


@pytest.fixture(scope="module")
def helper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled("eeio-energy-reader", tmp_path_factory.mktemp("helper"), *SANITIZERS)


@pytest.fixture(scope="module")
def plain_helper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled("eeio-energy-reader", tmp_path_factory.mktemp("plain"))


def run(helper: Path, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [str(helper), *arguments], input=stdin, capture_output=True, timeout=PATIENCE_S, check=False
    )


# --- the program -------------------------------------------------------------------------------


def test_a_byte_above_127_sets_the_beat_in_milliseconds_and_128_brings_the_first_one_back(
    helper: Path, tmp_path: Path
) -> None:
    root = FakeRapl(tmp_path / "p").root
    reader = EnergyReader(helper, root, ZONES, 1000.0)
    times_s: list[float] = []

    def readings() -> int:
        times_s.extend(reader.fetch().begun_s)
        return len(times_s)

    reader.start()
    try:
        until(lambda: readings() >= 1)
        reader.set_period(0.002)
        # At its own beat the second one would come after a quarter of an hour.
        until(lambda: readings() >= 20)
        reader.set_period(None)
        reader.sample_now()
    finally:
        reader.finish()
    until(lambda: readings() >= 20 and reader.ended)
    assert times_s == sorted(times_s)


def test_a_helper_that_is_started_again_goes_on_at_its_pace(helper: Path, tmp_path: Path) -> None:
    reader = EnergyReader(helper, FakeRapl(tmp_path / "p").root, ZONES, 1000.0)
    reader.set_period(0.002)
    reader.start()
    count = 0

    def several() -> bool:
        nonlocal count
        count += len(reader.fetch().begun_s)
        return count > 5

    try:
        until(several)
    finally:
        reader.kill()


def test_a_record_contains_both_times_and_a_counter_a_zone(helper: Path, tmp_path: Path) -> None:
    rapl = FakeRapl(tmp_path / "p", power_w=lambda _: 100.0)
    rapl.step(1.0)
    before_ns = time.monotonic_ns()
    done = run(helper, "-r", str(tmp_path / "p"), "1000000", *ZONES)
    assert (done.returncode, done.stderr) == (0, b"")
    numbers = array("q", done.stdout)
    assert len(numbers) == 2 * 4, "one reading at the start, one at the end of its input"
    for begun_ns, done_ns, package_uj, dram_uj in (numbers[:4], numbers[4:]):
        assert before_ns <= begun_ns <= done_ns <= time.monotonic_ns()
        assert (package_uj, dram_uj) == (40_000_000, 10_000_000)


def test_the_eleventh_zone_and_its_memory_have_hexadecimal_names(
    helper: Path, tmp_path: Path
) -> None:
    """powercap_sys.c numbers zones with "%x"."""
    folders = ("intel-rapl:a", "intel-rapl:f:b")
    zones = [FakeZone(name, "package-10", 1.0 + k) for k, name in enumerate(folders)]
    rapl = FakeRapl(tmp_path / "p", zones, power_w=lambda _: 100.0)
    rapl.step(1.0)
    done = run(helper, "-r", str(rapl.root), "1000000", *folders)
    assert (done.returncode, done.stderr) == (0, b"")
    assert array("q", done.stdout)[2:4].tolist() == [100_000_000, 200_000_000]


def test_a_counter_that_cannot_be_read_is_an_error_number(helper: Path, tmp_path: Path) -> None:
    root = FakeRapl(tmp_path / "p").root
    for text in ("", "rubbish", "12x", "-5", "99999999999999999999"):
        (root / "intel-rapl:0/energy_uj").write_text(text)
        numbers = array("q", run(helper, "-r", str(root), "1000", *ZONES).stdout)
        assert numbers[2] < 0, text
        assert numbers[3] == 0, "the other zone is there all the same"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((), "usage"),
        (("1000",), "usage"),
        (("999", "intel-rapl:0"), "the period is"),
        (("1000x", "intel-rapl:0"), "the period is"),
        (("1000", "../../../etc"), "not a zone"),
        (("1000", "intel-rapl:0/../../../../etc/shadow"), "not a zone"),
        (("1000", "intel-rapl:"), "not a zone"),
        (("1000", "intel-rapl:0:"), "not a zone"),
        (("1000", "intel-rapl:0:1:2"), "not a zone"),
        (("1000", "intel-rapl:0123456789012345678"), "not a zone"),
        (("1000", "intel-rapl:g"), "not a zone"),
        (("-r", "/nowhere", "1000", "intel-rapl:0"), "No such file"),
        (("-r", "x" * 5000, "1000", "intel-rapl:0"), "too long"),
    ],
)
def test_anything_but_a_zone_is_rejected(
    helper: Path, arguments: tuple[str, ...], complaint: str
) -> None:
    done = run(helper, *arguments)
    assert (done.returncode, done.stdout) == (2, b"")
    assert complaint in done.stderr.decode()


def test_through_sudo_no_other_folder_is_read(
    helper: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.getuid() != 0:
        pytest.skip("needs root")
    monkeypatch.setenv("SUDO_UID", "1000")
    done = run(helper, "-r", str(FakeRapl(tmp_path / "p").root), "1000", "intel-rapl:0")
    assert done.returncode == 2 and b"without sudo" in done.stderr


def test_its_input_must_be_a_pipe(helper: Path, tmp_path: Path) -> None:
    root = FakeRapl(tmp_path / "p").root
    with Path("/dev/null").open("rb") as null:
        done = subprocess.run(
            [str(helper), "-r", str(root), "1000", "intel-rapl:0"],
            stdin=null, capture_output=True, timeout=PATIENCE_S, check=False,
        )  # fmt: skip
    # Reads once and ends, or refuses: never loops without end.
    assert done.returncode in (0, 2)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """One that every user can read."""
    with tempfile.TemporaryDirectory(prefix="eeio-reader-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_rights_are_given_up(plain_helper: Path, open_folder: Path) -> None:
    """As set-user-ID root, run by a user; and as root, who becomes nobody."""
    if os.getuid() != 0:
        pytest.skip("needs root")
    user = 65533
    root = FakeRapl(open_folder / "p").root
    program = open_folder / "reader"
    shutil.copy(plain_helper, program)
    os.chmod(program, 0o4755)  # noqa: PTH101
    command = [str(program), "-r", str(root), "1000", "intel-rapl:0"]
    for as_user, becomes in (
        ({"user": user, "group": user, "extra_groups": []}, user),
        ({}, 65534),
    ):
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **as_user
        )  # type: ignore[call-overload]
        try:
            assert process.stdout.read(24)
            status = Path(f"/proc/{process.pid}/status").read_text()
            fields = dict(line.split(":\t") for line in status.splitlines() if ":\t" in line)
            assert fields["Uid"].split() == [str(becomes)] * 4
            assert fields["Gid"].split() == [str(becomes)] * 4
            assert int(fields["CapPrm"], 16) == int(fields["CapEff"], 16) == 0
            assert fields["NoNewPrivs"] == "1"
        finally:
            process.stdin.close()
            process.stdout.read()
            assert process.wait(PATIENCE_S) == 0
            process.stdout.close()
    # What the user may not read it does not read for the user from a folder of the user's choice.
    (root / "intel-rapl:0/energy_uj").chmod(0o600)
    done = subprocess.run(
        command, user=user, group=user, extra_groups=[], stdin=subprocess.DEVNULL,
        capture_output=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 2 and b"Permission denied" in done.stderr


# --- under the sampler -------------------------------------------------------------------------


def opened(helper: Path, root: Path) -> Sampler:
    return Sampler(
        open_meters([f"rapl,root={root},reader={helper}"]), root.parent / "s.gz", rate_hz=100.0
    )


def test_the_sampler_gets_the_energy_of_a_window(helper: Path, tmp_path: Path) -> None:
    with FakeRapl(tmp_path / "p", power_w=lambda _: 150.0) as rapl:
        sampler = opened(helper, rapl.root)
        assert isinstance(sampler._loops[0], BatchLoop)
        with sampler:
            # A machine that is busy enough keeps the reader from reading in one window or another.
            for _ in range(20):
                start_s = time.monotonic()
                assert not threading.Event().wait(0.6), "time must go by"
                end_s = time.monotonic()
                readings = sampler.energy(start_s, end_s)
                newest_s = sampler.samples().meters[0].times_s[-1]
                rates = sampler.rates()[0]
                if newest_s >= end_s and all(reading.valid for reading in readings):
                    break
    assert newest_s >= end_s, "the window is clipped by a reading at its end"
    assert all(reading.valid for reading in readings)
    assert sum(r.power_w or 0.0 for r in readings) == pytest.approx(150.0, rel=0.3)
    assert 0.0 < rates.achieved_hz < 120.0, "as asked for, or what a busy machine leaves of it"
    assert rates.distinct_hz is not None and 20.0 < rates.distinct_hz <= 110.0
    assert sampler.errors == {"rapl": 0}
    back = load(sampler.path).meters[0]
    assert list(back.times_s) == list(sampler.samples().meters[0].times_s)
    assert list(back.times_s) == sorted(set(back.times_s))


def test_no_process_is_left(helper: Path, tmp_path: Path) -> None:
    sampler = opened(helper, FakeRapl(tmp_path / "p").root)
    sampler.start()
    loop = sampler._loops[0]
    assert isinstance(loop, BatchLoop) and isinstance(loop._batches, EnergyReader)
    process = loop._batches._process
    assert process is not None
    sampler.stop()
    assert process.returncode == 0
    sampler.stop()


def test_a_helper_that_is_killed_is_reported_and_started_again(
    helper: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader_module, "RESTART_PAUSE_S", 0.1)
    with opened(helper, FakeRapl(tmp_path / "p", power_w=lambda _: 50.0).root) as sampler:
        loop = sampler._loops[0]
        assert isinstance(loop, BatchLoop) and isinstance(loop._batches, EnergyReader)
        first = loop._batches._process
        assert first is not None
        os.kill(first.pid, signal.SIGKILL)
        until(lambda: "ended" in (sampler.rates()[0].last_error or ""))
        batches = loop._batches
        until(lambda: sampler.rates() != [] and batches._process not in (None, first))
        until(lambda: sampler.samples().meters[0].values[0][-1] == 0.0)


def test_a_helper_that_hangs_delays_nothing(helper: Path, tmp_path: Path) -> None:
    sampler = opened(helper, FakeRapl(tmp_path / "p").root)
    sampler.start()
    loop = sampler._loops[0]
    assert isinstance(loop, BatchLoop) and isinstance(loop._batches, EnergyReader)
    process = loop._batches._process
    assert process is not None
    os.kill(process.pid, signal.SIGSTOP)
    now_s = time.monotonic()
    sampler.energy(now_s - 0.1, now_s)
    sampler.stop()
    assert process.poll() is not None, "killed"


def test_a_zone_that_fails_is_a_missing_value(helper: Path, tmp_path: Path) -> None:
    rapl = FakeRapl(tmp_path / "p", power_w=lambda _: 50.0)
    with opened(helper, rapl.root) as sampler:
        rapl.fail("intel-rapl:1")
        until(lambda: sampler.rates()[0].failed_reads > 2)
        last = [column[-1] for column in sampler.samples().meters[0].values]
    assert last[0] == last[0] and last[2] != last[2], "the one is there, the other is missing"
    assert "cannot be read" in (sampler.rates()[0].last_error or "")


def test_without_a_helper_the_meter_reads_by_itself(helper: Path, tmp_path: Path) -> None:
    root = FakeRapl(tmp_path / "p").root
    sampler = Sampler(open_meters([f"rapl,root={root},reader=no"]), tmp_path / "s.gz")
    assert isinstance(sampler._loops[0], MeterLoop)
    with pytest.raises(PowerError, match="cannot be run"):
        open_meters([f"rapl,root={root},reader=/nowhere/reader"])
    # One that was found and does not work is left aside, though it was not asked for.
    broken = tmp_path / "machine" / INSTALLED
    executable(broken, "#!/bin/sh\necho no >&2; exit 2\n")
    FakeRapl(tmp_path / "machine/sys/class/powercap")
    meter = one_meter("rapl", tmp_path / "machine")
    assert find_reader(tmp_path / "machine") == broken
    assert meter.batches(0.1) is None  # type: ignore[attr-defined]


def test_the_helper_opens_files_for_reading_only() -> None:
    source = (HELPERS / "eeio-energy-reader.c").read_text(encoding="ascii")
    assert source.count("open(") == 1 and "open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)" in source
    assert not any(word in source for word in ("fopen", "O_RDWR", "O_CREAT", "unlink", "system("))
