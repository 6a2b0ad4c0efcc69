"""An offered load: a share of what fio reaches here at whole speed."""

import json
from pathlib import Path

import pytest

from eeio.record import tools
from tests.profiles.harness import Installed, Installer
from tests.throttled import throttled_directory

pytestmark = pytest.mark.tools

FACTORS = "operation=read spatiality=random request_size=64k file_size=64m runtime_s=2"


def _is_reached(fio: Installed, folder: Path) -> bool:
    """Whether each load is within 2 % of the offered one, and the maximum within 5 % of the
    device's."""
    for load in (90, 50, 10):
        fields = [*FACTORS.split(), f"load={load}"]
        fio.script("pre.sh", *fields)
        factors = dict(field.split("=") for field in fields)
        (phase,) = tools.parse("fio", fio.capture(folder / f"out-{load}", factors)).phases
        assert phase.bandwidth_bytes_per_s is not None
        offered = phase.metrics["offered_bytes_per_s"]
        (line,) = (fio.home / "load.max").read_text().splitlines()  # measured once
        maximum = int(line.split()[0])
        assert offered == pytest.approx(maximum * load / 100, rel=0.001)
        if phase.bandwidth_bytes_per_s != pytest.approx(offered, rel=0.02):
            return False
        if maximum != pytest.approx(100e6, rel=0.05):
            return False
    return True


@pytest.mark.root
def test_a_load_is_reached_to_two_per_cent(fio: Installed, tmp_path: Path) -> None:
    """Random reads of 64 KiB, at 10 to 90 % of a device that moves 100 MB/s. A busy machine delays
    fio, so one of five tries is enough."""
    with throttled_directory(tmp_path, 100_000_000, in_memory=True) as directory:
        fio.environment["EEIO_DIRECTORY"] = str(directory)
        for attempt in range(5):
            folder = tmp_path / f"try-{attempt}"
            folder.mkdir()
            if _is_reached(fio, folder):
                return
            fio.script("post.sh")
    pytest.fail("no load was held in five tries")


def test_the_maximum_is_measured_once_for_each_kind_and_forgotten_in_the_end(
    fio: Installed,
) -> None:
    few = FACTORS.replace("runtime_s=2", "runtime_s=1").split()
    for load, size in ((30, "64k"), (80, "64k"), (80, "4k")):
        arguments = [word for word in few if "request_size" not in word] + [f"request_size={size}"]
        fio.script("pre.sh", *arguments, f"load={load}")
    assert len((fio.home / "load.max").read_text().splitlines()) == 2
    fio.script("post.sh")
    assert not (fio.home / "load.max").exists()


def test_arrivals_by_poisson_are_requested_of_fio(fio: Installed) -> None:
    fields = [*FACTORS.replace("runtime_s=2", "runtime_s=1").split(), "load=20", "arrivals=poisson"]
    fio.script("pre.sh", *fields)
    fio.run(*fields)
    options = json.loads((fio.home / "output/fio.json").read_text())
    reported = {**options.get("global options", {}), **options["jobs"][0]["job options"]}
    assert reported["rate_process"] == "poisson" and int(reported["rate"]) > 0


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ("load=101", "load=101: give a whole number from 1 to 100"),
        ("load=0", "load=0: give a whole number from 1 to 100"),
        ("load=50 buffer=on", "past the page cache"),
        ("load=50 operation=mixed", "offered to reads or writes"),
        ("load=50 spatiality=strided", "sequential or random"),
        ("load=50 runtime_s=0", "offered for a time"),
        ("arrivals=poisson", "of an offered load"),
        ("load=50", "no measured maximum of these factors; run pre.sh"),
    ],
)
def test_a_load_that_cannot_be_offered_is_rejected(
    fio: Installed, arguments: str, why: str
) -> None:
    done = fio.run(*arguments.split(), code=2)
    assert why in done.stderr
    assert len(done.stderr.splitlines()) == 1


# --- the emulated data servers --------------------------------------------------------------------

SERVERS = "operation=read request_size=64k file_size=16m runtime_s=2 processes=2"


@pytest.fixture
def servers(installed: Installer) -> Installed:
    return installed("dataserver")


@pytest.mark.slow
@pytest.mark.root
def test_data_servers_keep_a_load_for_the_complete_time(servers: Installed, tmp_path: Path) -> None:
    """Both together, of a device that moves 100 MB/s; their files are read over and over."""
    with throttled_directory(tmp_path, 100_000_000, in_memory=True) as directory:
        servers.environment["EEIO_DIRECTORY"] = str(directory)
        for load in (80, 20):
            fields = [*SERVERS.split(), f"load={load}"]
            servers.script("pre.sh", *fields)
            factors = dict(field.split("=") for field in fields)
            capture = servers.capture(tmp_path / f"out-{load}", factors)
            (phase,) = tools.parse("dataserver", capture).phases
            assert phase.bandwidth_bytes_per_s is not None
            assert phase.start_s is not None and phase.end_s is not None
            offered = phase.metrics["offered_bytes_per_s"]
            assert phase.bandwidth_bytes_per_s == pytest.approx(offered, rel=0.02)
            assert phase.end_s - phase.start_s == pytest.approx(2.0, abs=0.5)
            maximum = int((servers.home / "load.max").read_text().split()[0])
            assert offered == pytest.approx(maximum * load / 100, rel=0.001)
            assert maximum == pytest.approx(100e6, rel=0.1)
    assert len((servers.home / "load.max").read_text().splitlines()) == 1, "it was measured once"
    servers.script("post.sh")
    assert not (servers.home / "load.max").exists()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ("load=101", "load=101: give a whole number from 1 to 100"),
        ("load=50 buffer=on", "past the page cache"),
        ("load=50 pace=free", "without replay, pace and collective"),
        ("load=50 runtime_s=0", "for a time"),
    ],
)
def test_a_load_that_servers_cannot_have_is_rejected(
    servers: Installed, arguments: str, why: str
) -> None:
    done = servers.run(*SERVERS.split(), *arguments.split(), code=2)
    assert why in done.stderr
    assert len(done.stderr.splitlines()) == 1
