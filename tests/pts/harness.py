"""A Phoronix Test Suite of one's own: its data in a folder that goes away, bounded in time and
output, without a network, whatever the test does to it.

PTS with its input at an end asks some questions for ever (it filled a disk once), so every start
goes through `PtsHome.run`.
"""

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from eeio.measure.profiles import complete

ROOT = Path(__file__).resolve().parents[2]
OUTPUT_LIMIT = 2_000_000
CONFIG = """<?xml version="1.0"?>
<PhoronixTestSuite><Options>
<OpenBenchmarking><AnonymousUsageReporting>FALSE</AnonymousUsageReporting></OpenBenchmarking>
<Modules><AutoLoadModules>eeio_power</AutoLoadModules></Modules>
<Installation><EnvironmentDirectory>{folder}/installed-tests/</EnvironmentDirectory></Installation>
<Testing><SleepTimeBetweenTests>0</SleepTimeBetweenTests>
<ResultsDirectory>{folder}/test-results/</ResultsDirectory></Testing>
<Networking><NoInternetCommunication>{offline}</NoInternetCommunication>{proxy}</Networking>
</Options></PhoronixTestSuite>
"""
PROXY = "<ProxyAddress>127.0.0.1</ProxyAddress><ProxyPort>{}</ProxyPort>"

# For root PTS keeps its configuration in /etc as long as it may write to /var/lib: there it may
# not, in a namespace of its own, and everything stays in the folder we give it. The network has
# nothing but loopback.
_AS_ROOT = """
ip link set lo up || true
mount --bind /var/lib /var/lib && mount -o remount,ro,bind /var/lib || exit 77
exec "$@"
"""


def find_pts() -> Path | None:
    """The launcher in PTS_DIR or PATH."""
    if folder := os.environ.get("PTS_DIR"):
        launcher = Path(folder) / "phoronix-test-suite"
        return launcher if launcher.is_file() else None
    found = shutil.which("phoronix-test-suite")
    return Path(found) if found else None


def why_not() -> str | None:
    """Why PTS cannot be run here; None if it can."""
    if find_pts() is None:
        return "no Phoronix Test Suite: set PTS_DIR to a checkout, or put it into PATH"
    if shutil.which("php") is None:
        return "no php: install php-cli and php-xml"
    if os.geteuid() == 0:
        probe = subprocess.run(
            ["unshare", "-m", "-n", "sh", "-c", _AS_ROOT, "sh", "true"],
            capture_output=True, timeout=300, check=False,
        )  # fmt: skip
        if probe.returncode != 0:
            return "root without the right to make namespaces: PTS would write to /etc"
    return None


@dataclass(frozen=True)
class Done:
    """How a start of PTS ended."""

    returncode: int
    output: str


class PtsHome:
    """PTS's data folder, with our module and the profiles and suites that a test adds."""

    def __init__(
        self, folder: Path, *, proxy_port: int | None = None, module: Path | None = None
    ) -> None:
        self.home = folder
        # PTS's exports (`result-file-to-*`) go to the home that the user database knows, wherever
        # this is: tests keep to commands that write below here.
        self.folder = folder = folder / ".phoronix-test-suite"
        for sub in ("test-profiles/local", "test-suites/local", "modules", "test-results"):
            (folder / sub).mkdir(parents=True, exist_ok=True)
        (folder / "user-config.xml").write_text(
            CONFIG.format(
                folder=folder,
                offline="TRUE" if proxy_port is None else "FALSE",
                proxy="" if proxy_port is None else PROXY.format(proxy_port),
            ),
            encoding="utf-8",
        )
        source = module or ROOT / "power-monitor" / "eeio_power.php"
        (folder / "modules" / "eeio_power.php").symlink_to(source)

    def add_profile(self, profile: Path) -> None:
        """As scripts/pts-link does."""
        folder = self.folder / "test-profiles/local" / profile.name
        folder.mkdir()
        for name, path in complete.files(profile).items():
            (folder / name).symlink_to(path)

    def add_suite(self, name: str, executes: Sequence[tuple[str, str, str]]) -> Path:
        """A suite of (profile, arguments, description)."""
        rows = "".join(
            f"<Execute><Test>local/{test}</Test><Arguments>{arguments}</Arguments>"
            f"<Description>{description}</Description></Execute>"
            for test, arguments, description in executes
        )
        folder = self.folder / "test-suites/local" / name
        folder.mkdir()
        (folder / "suite-definition.xml").write_text(
            '<?xml version="1.0"?><PhoronixTestSuite><SuiteInformation><Title>eeio test</Title>'
            "<Version>1.0.0</Version><TestType>Disk</TestType><Description>Of a test.</Description>"
            f"<Maintainer>eeio</Maintainer></SuiteInformation>{rows}</PhoronixTestSuite>",
            encoding="utf-8",
        )
        return folder

    def result(self, name: str) -> Path:
        return self.folder / "test-results" / name / "composite.xml"

    def run(
        self,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        timeout_s: float = 60,
        before: Sequence[str] = (),
        signal_after_s: float | None = None,
    ) -> Done:
        """Starts PTS; ends it after `timeout_s` or OUTPUT_LIMIT bytes. `before` is a command that
        the launcher is given to (such as a shell line that mounts something first).
        `signal_after_s` sends it SIGINT, as Ctrl-C does, to the whole group."""
        launcher = find_pts()
        assert launcher is not None
        wrapper = ["unshare", "-m", "-n", "sh", "-c", _AS_ROOT, "sh"] if os.geteuid() == 0 else []
        own = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith("EEIO_") or key == "EEIO_LOCKS"
        }
        process = subprocess.Popen(
            [*wrapper, *before, str(launcher), *arguments],
            env={
                **own,
                "PTS_USER_PATH_OVERRIDE": f"{self.folder}/",
                "HOME": str(self.home),
                "NO_EXTERNAL_DEPENDENCIES": "1",
                "EEIO_PYTHON": sys.executable,
                **(environment or {}),
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        kill = threading.Timer(timeout_s, os.killpg, (process.pid, signal.SIGKILL))
        kill.start()
        interrupt = threading.Timer(
            signal_after_s or timeout_s, os.killpg, (process.pid, signal.SIGINT)
        )
        if signal_after_s is not None:
            interrupt.start()
        try:
            assert process.stdout is not None
            content = process.stdout.read(OUTPUT_LIMIT)
            if len(content) == OUTPUT_LIMIT:
                os.killpg(process.pid, signal.SIGKILL)
            return Done(process.wait(), content.decode(errors="replace"))
        finally:
            kill.cancel()
            interrupt.cancel()
            with process:
                pass


TRIVIAL = "eeio-trivial-1.0.0"

_TRIVIAL = r"""#!/bin/sh
# Sleeps, and claims a bandwidth: nobody measures anything here but the time.
sleep_s=1 fail_at=0 value=100
for word; do
	case $word in
	sleep_s=*) sleep_s=${word#*=} ;;
	fail_at=*) fail_at=${word#*=} ;;
	value=*) value=${word#*=} ;;
	esac
done
count=$(($(cat "$HOME/count" 2>/dev/null || echo 0) + 1))
echo "$count" >"$HOME/count"
if [ "$count" = "$fail_at" ]; then
	echo "trial $count fails as told"
	echo 1 >"$HOME/test-exit-status"
	exit 1
fi
start_s=$(cut -d ' ' -f 1 /proc/uptime)
sleep "$sleep_s"
echo 0 >"$HOME/test-exit-status"
if [ -n "${LOG_FILE:-}" ]; then
	echo "EEIO read bandwidth: $((value + count)).5 MB/s" >"$LOG_FILE"
	exit
fi
cat >"$EEIO_OUTPUT_DIR/eeio.json" <<END
{"schema_version": 1, "context": [], "phases": [{"name": "read", "operation": "read",
"spatiality": "sequential", "request_size_bytes": 4096, "bytes_moved": 4096,
"start_monotonic_s": $start_s, "end_monotonic_s": $(cut -d ' ' -f 1 /proc/uptime),
"bandwidth_bytes_per_s": 1000000, "metrics": {}}]}
END
"""

_DEFINITION = """<?xml version="1.0"?>
<PhoronixTestSuite>
<TestInformation><Title>eeio: trivial</Title><AppVersion>1</AppVersion>
<Description>Sleeps.</Description><ResultScale>MB/s</ResultScale><Proportion>HIB</Proportion>
<TimesToRun>3</TimesToRun></TestInformation>
<TestProfile><Version>1.0.0</Version><SupportedPlatforms>Linux</SupportedPlatforms>
<SoftwareType>Utility</SoftwareType><TestType>Disk</TestType><License>Free</License>
<Status>Verified</Status></TestProfile>
</PhoronixTestSuite>
"""

_RESULTS = """<?xml version="1.0"?>
<PhoronixTestSuite><ResultsParser>
<OutputTemplate>EEIO read bandwidth: #_RESULT_# MB/s</OutputTemplate>
<LineHint>EEIO read bandwidth:</LineHint><ResultScale>MB/s</ResultScale>
<ResultProportion>HIB</ResultProportion>
<AppendToArgumentsDescription>Read</AppendToArgumentsDescription>
</ResultsParser></PhoronixTestSuite>
"""


def make_trivial_profile(parent: Path, *, install_exit: int = 0) -> Path:
    """A profile that sleeps `sleep_s=`; its n-th trial has the value `value` + n + 0.5, and the
    `fail_at=`-th fails."""
    folder = parent / TRIVIAL
    folder.mkdir(parents=True)
    (folder / "test-definition.xml").write_text(_DEFINITION, encoding="utf-8")
    (folder / "results-definition.xml").write_text(_RESULTS, encoding="utf-8")
    (folder / "presets.conf").write_text("quick runtime_s=1\n", encoding="utf-8")
    (folder / "eeio-trivial.sh").write_text(_TRIVIAL, encoding="utf-8")
    (folder / "install.sh").write_text(
        '#!/bin/sh\ncp "$(dirname "$0")/eeio-trivial.sh" "$HOME/eeio-trivial"\n'
        'chmod +x "$HOME/eeio-trivial"\n'
        f'echo {install_exit} >"$HOME/install-exit-status"\n',
        encoding="utf-8",
    )
    return folder


@contextmanager
def running(*command: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A process beside the test, ended with it."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.terminate()
