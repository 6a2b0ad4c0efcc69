"""Our own C programs, as a test runs them: plain, with sanitizers, under valgrind, dying."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.mounts import unmount
from tests.once import once
from tests.processes import ran
from tests.profiles.harness import PROFILES, Installed
from tests.waiting import until

TIMEOUT_S = 120

SANITIZERS = (
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
    "-fno-omit-frame-pointer",
)
# Open MPI keeps tables and plug-ins to the end on purpose, and unloads the plug-ins, so that no
# suppression can name them: leaks are looked for by valgrind, in what the program itself allocated.
SANITIZER_SETTINGS = {"ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "print_stacktrace=1"}

MPI_SETTINGS = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_io": "romio321",
    "HWLOC_COMPONENTS": "-gl",  # no X displays looked for, as in mpi.sh
}
# The package's file, and what PMIx 4.2 does beyond it: it sends bytes that it never filled.
OPENMPI_SUPPRESSIONS = Path("/usr/share/openmpi/openmpi-valgrind.supp")
PMIX_SUPPRESSION = """{
   bytes that PMIx sends and never filled
   Memcheck:Param
   writev(vector[...])
   ...
   obj:*/libpmix.so*
   ...
}
"""


def need(*commands: str) -> None:
    """Skips the test, with the reason, where a command is missing."""
    for command in commands:
        if shutil.which(command) is None:
            pytest.skip(f"{command} is not installed")


@dataclass
class Program:
    """One of the programs, compiled in one way. Without `mpi` it starts its ranks itself."""

    name: str
    path: Path
    settings: Mapping[str, str] = field(default_factory=dict)
    mpi: bool = True

    def command(self, ranks: int, *options: str, before: Sequence[str] = ()) -> list[str]:
        if not self.mpi:
            return [*before, str(self.path), f"ranks={ranks}", *options]
        launcher = ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", str(ranks)]
        return [*launcher, *before, str(self.path), *options]

    def run(
        self, ranks: int, *options: str, before: Sequence[str] = (), timeout_s: float = TIMEOUT_S
    ) -> "subprocess.CompletedProcess[str]":
        return ran(
            self.command(ranks, *options, before=before), env=environment(self.settings),
            timeout=timeout_s, code=None,
        )  # fmt: skip

    def good(self, ranks: int, *options: str, before: Sequence[str] = ()) -> str:
        """Standard output of a run that must end well."""
        done = self.run(ranks, *options, before=before)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def rejection(self, *options: str) -> str:
        """The one line of a rank, started without mpirun, that must be refused."""
        # Isolated ranks all call themselves job 0: two at once would share a session's folder.
        with tempfile.TemporaryDirectory(prefix="mpi-") as session:
            done = ran(
                [str(self.path), *options],
                env=environment({**self.settings, **alone(session)}),
                code=None,
            )
        assert done.returncode == 2, done.stdout + done.stderr
        (line,) = done.stderr.splitlines()
        assert line.startswith(f"eeio-{self.name}: "), line
        return line.removeprefix(f"eeio-{self.name}: ")

    def all_rejected(self, options: Sequence[tuple[str, str]], *common: str) -> None:
        """Each option in turn, with the words that must be told; two at a time."""

        def one(pair: tuple[str, str]) -> None:
            message = self.rejection(*common, *pair[0].split())
            assert pair[1] in message, message

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(one, options))


def alone(session: str) -> dict[str, str]:
    """Settings of a rank without mpirun, which keeps its session in a folder of its own."""
    return {"OMPI_MCA_ess_singleton_isolated": "1", "OMPI_MCA_orte_tmpdir_base": session}


def environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Without settings of the tests' user, but with the locks of the tests."""
    kept = {
        k: v
        for k, v in os.environ.items()
        if k == "EEIO_LOCKS" or not k.startswith(("EEIO_", "SLURM_"))
    }
    return {**kept, **MPI_SETTINGS, **settings}


def compile_program(
    name: str, folder: Path, *flags: str, settings: Mapping[str, str], mpi: bool = True
) -> Program:
    """Compiled with the flags of install.sh and these. Skips where there is no MPI."""
    if mpi:
        need("mpicc", "mpirun")
    need("cc")
    source = PROFILES / f"eeio-{name}-1.0.0" / f"{name}.c"
    built = folder / name
    if not built.exists():
        subprocess.run(
            ["mpicc" if mpi else "cc", "-std=c11", "-O2", "-g", "-Wall", "-Wextra", "-Werror",
             *flags, f"-I{PROFILES / 'common'}", "-o", str(built), str(source), "-lm"],
            check=True, timeout=TIMEOUT_S,
        )  # fmt: skip
    return Program(name, built, settings, mpi)


def shared(
    temporary: pytest.TempPathFactory, label: str, make: Callable[[Path], Program]
) -> Program:
    """What `make` compiles into a folder, compiled once for all processes of tests. Each has a copy
    of its own, as tests look for processes that still run it."""

    def compiled(folder: Path) -> None:
        make(folder)

    own = temporary.mktemp(label)
    shutil.copytree(once(temporary, label, compiled), own, dirs_exist_ok=True)
    return make(own)


def plain(name: str, folder: Path, *flags: str, mpi: bool = True) -> Program:
    return compile_program(name, folder, *flags, settings={}, mpi=mpi)


def sanitized(name: str, folder: Path, *flags: str, mpi: bool = True) -> Program:
    settings = SANITIZER_SETTINGS
    return compile_program(name, folder, *SANITIZERS, *flags, settings=settings, mpi=mpi)


def check_memory(program: Program, ranks: int, *options: str) -> None:
    """Fails for an error that valgrind sees, and for memory that the program itself lost."""
    need("valgrind")
    # valgrind cannot parse a path with brackets, as pytest's folders have them.
    own = Path(tempfile.mkdtemp(prefix="eeio-valgrind-"))
    try:
        (own / "pmix.supp").write_text(PMIX_SUPPRESSION)
        suppressions = [own / "pmix.supp"]
        if OPENMPI_SUPPRESSIONS.exists():
            suppressions.append(OPENMPI_SUPPRESSIONS)
        done = program.run(
            ranks, *options,
            before=[
                "valgrind", "-q", "--error-exitcode=9", "--leak-check=full",
                "--errors-for-leak-kinds=none",
                *(f"--suppressions={path}" for path in suppressions),
            ],
        )  # fmt: skip
    finally:
        shutil.rmtree(own)
    assert done.returncode == 0, done.stdout + done.stderr
    lost = re.findall(
        rf"definitely lost.*\n.* at .*lloc.*\n.*\({program.name}\.c:\d+\)", done.stderr
    )
    assert lost == [], done.stderr


def running(path: Path) -> list[int]:
    """Processes that run this executable and are no zombies."""
    found = []
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            if (process / "exe").readlink() == path:
                found.append(int(process.name))
        except OSError:
            continue  # it ended meanwhile, or is not ours
    return found


def at_work(path: Path, file: str) -> list[int]:
    """Those of `running` that hold a file of this name open: beyond MPI_Init, during which the
    death of a rank can leave Open MPI 4.1's mpirun waiting for ever."""
    return [pid for pid in running(path) if _has_open(pid, file)]


def all_at_work(path: Path, file: str, ranks: int) -> list[int]:
    """Those ranks of it, once all are."""

    def found() -> list[int]:
        pids = at_work(path, file)
        return pids if len(pids) >= ranks else []

    return until(found)


def _has_open(pid: int, file: str) -> bool:
    try:
        return any(file in str(fd.readlink()) for fd in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False


def parent(pid: int) -> int:
    return int(re.findall(r"^PPid:\s+(\d+)", Path(f"/proc/{pid}/status").read_text(), re.M)[0])


# In mpirun's words, or in the shell's where mpirun locked itself up over it.
DIED = re.compile("signal 9|Killed")


def reported_of_a_death(
    profile: Installed,
    program: Path,
    arguments: Sequence[str],
    ranks: int,
    file: str,
    victim: Callable[[list[int]], int] = max,
    how: int = signal.SIGKILL,
) -> str:
    """Runs the profile, kills one process (`victim` of the ranks) once all ranks hold `file` open,
    and asserts that everything ends, badly, with nothing left running; its standard error."""
    wrapper = subprocess.Popen(
        [str(profile.home / f"eeio-{profile.name}"), *arguments], cwd=profile.home,
        env=profile.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    try:
        found = all_at_work(program, file, ranks)
        os.kill(victim(found), how)
        _, reported = wrapper.communicate(timeout=300)
        assert wrapper.returncode != 0
        until(lambda: running(program) == [])
    finally:
        for rank in running(program):
            os.kill(rank, signal.SIGKILL)
        if wrapper.poll() is None:
            os.killpg(wrapper.pid, signal.SIGKILL)
            wrapper.communicate(timeout=300)
    assert (profile.home / "test-exit-status").read_text() != "0\n"
    return reported.decode()


@contextmanager
def memory_disk(folder: Path, options: str) -> Iterator[Path]:
    """A tmpfs with these mount options. Skips where nothing can be mounted."""
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "eeio", str(folder)],
        capture_output=True, check=False, timeout=300,
    )  # fmt: skip
    if mounted.returncode:
        pytest.skip(f"no mount here: {mounted.stderr.decode().strip()}")
    try:
        yield folder
    finally:
        unmount(folder)
