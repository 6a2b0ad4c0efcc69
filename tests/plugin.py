"""Everything a test writes stays in its own temporary folder."""

import gc
import json
import math
import os
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import hypothesis
import pytest
from _pytest.capture import CaptureResult

from tests import limits
from tests.mounts import attached
from tests.processes import Code, Done, check_code, ran
from tests.simulators import FakeRapl
from tests.started import Starter

# A slow or busy machine is no failure.
hypothesis.settings.register_profile(
    "eeio", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("eeio")

DATA = Path(__file__).parent / "data"
PARSERS = Path(__file__).parents[1] / "result-parsers/eeio_parsers"


def pytest_configure() -> None:
    """Tests that run beside each other have no business with each other's campaigns. Each worker
    has locks of its own."""
    folder = tempfile.mkdtemp(prefix="eeio-locks-")
    os.environ["EEIO_LOCKS"] = folder
    # Not the machine's page cache: all programs would be read again after each run of a test. The
    # pages of the test files are dropped in any case.
    os.environ["EEIO_DROP_CACHES"] = str(Path(folder, "drop_caches"))
    Path(folder, "drop_caches").touch()
    # A shell ignores SIGINT for background jobs, and nohup SIGHUP; the programs that are tested
    # would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    limits.measure_machine()


@pytest.fixture(autouse=True, scope="session")
def folder_of_open_mpi() -> Iterator[None]:
    """One for each process of tests: two that make the usual one at a time fail."""
    folder = Path(tempfile.mkdtemp(prefix="ompi-", dir="/tmp"))
    folder.chmod(0o1777)
    os.environ["OMPI_MCA_orte_tmpdir_base"] = str(folder)  # noqa: SIM112, as Open MPI writes it
    yield
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(autouse=True)
def _shared_disk(request: pytest.FixtureRequest) -> Iterator[None]:
    """Other I/O is judged in tests with the marker `other_io` only (tests/shared_disk.py)."""
    # With patches of its own: those of a test must end before its other fixtures do.
    with pytest.MonkeyPatch.context() as patch:
        if request.node.get_closest_marker("other_io") is None:
            from eeio.measure.campaign import command_bytes
            from eeio.measure.campaign.probes import OtherIo
            from eeio_power import idleness
            from tests.shared_disk import unchanged

            patch.setattr(OtherIo, "add_to_result", unchanged)
            patch.setattr(command_bytes, "LEAST_CHANGE_BYTES", math.inf)
            patch.setattr(command_bytes, "SLACK_BYTES", math.inf)
            patch.setattr(idleness, "MOST_BYTES_PER_S", math.inf)
            patch.setattr(idleness, "MOST_PROCESSORS", math.inf)
        yield


@pytest.fixture(autouse=True)
def _same_programs() -> Iterator[None]:
    """A test that changes PATH for the ones after it is named."""
    before = os.environ.get("PATH")
    yield
    after, os.environ["PATH"] = os.environ.get("PATH"), before or os.defpath
    assert after == before, f"the test left PATH={after}"


def pytest_unconfigure(config: pytest.Config) -> None:
    shutil.rmtree(os.environ["EEIO_LOCKS"], ignore_errors=True)
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None and not hasattr(config, "workerinput"):
        _tell_skips(terminal, terminal.stats.get("skipped", []))


def _tell_skips(terminal: pytest.TerminalReporter, reports: Sequence[pytest.TestReport]) -> None:
    """Last of all: what was not tested here, and why."""
    reasons = Counter(
        # (file, line, "Skipped: reason")
        report.longrepr[2].removeprefix("Skipped: ") if isinstance(report.longrepr, tuple) else "?"
        for report in reports
    )
    terminal.write_line(f"{reasons.total()} skipped{', for these reasons:' if reasons else ''}")
    for reason, count in reasons.most_common():
        terminal.write_line(f"  {count:4} {reason}")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Without the search for cycles, which takes a third of the time: nearly all that is made here
    stays to the end. So it is not searched later either."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


# First: pytest selects by marker in the same hook.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    variants: Counter[str] = Counter()
    for item in items:
        if fast := item.get_closest_marker("fast_variants"):
            test = item.nodeid.partition("[")[0]
            variants[test] += 1
            if variants[test] > fast.args[0]:
                item.add_marker(pytest.mark.slow)
        marker = item.get_closest_marker("timeout")
        limit_s = limits.scaled(marker.args[0] if marker else limits.TEST_S)
        item.add_marker(pytest.mark.timeout(limit_s), append=False)
    skip = pytest.mark.skip(reason="needs root: loop devices, mounts, dropping caches")
    for item in items:
        if item.get_closest_marker("root") and os.geteuid() != 0:
            item.add_marker(skip)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """The limit again: pytest-timeout cancels its own when a test fails."""
    marker = item.get_closest_marker("timeout")
    if marker is None or signal.getsignal(signal.SIGALRM) is not signal.SIG_DFL:
        return

    def stop(signum: int, frame: FrameType | None) -> None:
        pytest.fail(f"Timeout (>{marker.args[0]} s) while cleaning up")

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, marker.args[0])


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user with empty XDG folders, and the dummy profile and suite on the search paths."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("EEIO_TEST_PROFILES", str(DATA / "profiles"))
    monkeypatch.setenv("EEIO_SUITES", str(DATA / "suites"))
    (tmp_path / "target").mkdir()
    return tmp_path


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that every user may enter; those of pytest are closed to others."""
    folder = Path(tempfile.mkdtemp(prefix="eeio-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def rapl(tmp_path: Path) -> Iterator[str]:
    """The spec of a simulated RAPL that runs at 150 W."""
    with FakeRapl(tmp_path / "powercap", power_w=lambda _: 150.0) as fake:
        yield f"rapl,root={fake.root}"


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[str]:
    """A loop device of 4 MiB of random data; root alone may make one."""
    image = tmp_path / "drive"
    image.write_bytes(os.urandom(4 << 20))
    with attached(image) as node:
        yield str(node)


def ior_program() -> str | None:
    """The IOR that a profile takes: EEIO_IOR's, that of PATH, or what scripts/setup has built."""
    path = f"{os.environ.get('PATH', os.defpath)}:{Path(sys.prefix) / 'bin'}"
    return shutil.which(os.environ.get("EEIO_IOR") or "ior", path=path)


@pytest.fixture(scope="session")
def starter() -> Iterator[Starter]:
    starter = Starter()
    yield starter
    starter.close()


class Eeio:
    """Runs the command as a user would, and gives what it printed."""

    def __init__(self, home: Path, starter: Starter) -> None:
        self._home = home
        self._starter = starter

    def __call__(
        self, *arguments: str, code: Code = 0, environment: Mapping[str, str] | None = None,
        before: Sequence[str] = (),
    ) -> Done:  # fmt: skip
        """Runs eeio. It must end with the exit code `code`, or with one of several; None: with any.
        `before` are words before the command; with them, and with an environment that changes how
        Python starts, it runs in a new process."""
        merged = {**os.environ, **(environment or {})}
        if before or not self._starter.fits(merged):
            command = [*before, sys.executable, "-m", "eeio", *arguments]
            return ran(command, code, env=merged, timeout=None)
        done = self._starter.run(arguments, merged)
        check_code(done, code)
        return done

    def run(self, suite: str, *arguments: str, **options: Any) -> Done:
        """Runs a suite in the folder `target` of the fixture `home`."""
        return self("run", suite, "--directory", str(self._home / "target"), *arguments, **options)

    def plan(self, suite: str, *arguments: str, **options: Any) -> Done:
        return self("plan", suite, "--directory", str(self._home / "target"), *arguments, **options)

    def json(self, *arguments: str, **options: Any) -> Any:
        """Returns the JSON that the command prints."""
        return json.loads(self(*arguments, "--format", "json", **options).stdout)


@pytest.fixture
def eeio(home: Path, starter: Starter) -> Eeio:
    return Eeio(home, starter)


InProcess = Callable[..., CaptureResult[str]]


@pytest.fixture
def in_process(capsys: pytest.CaptureFixture[str]) -> InProcess:
    """Runs the command in the test's process and returns its output. It must end with `code`."""

    def run(*arguments: str, code: int = 0) -> CaptureResult[str]:
        from eeio.cli import main

        capsys.readouterr()
        try:
            status: object = main([*arguments])
        except SystemExit as end:
            status = end.code
        assert status == code
        return capsys.readouterr()

    return run
