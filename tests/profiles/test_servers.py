"""eeio-postgresql and eeio-mariadb: servers of a run's own, what is told of them, and their end."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import uuid
from pathlib import Path

import pytest

from eeio.record import tools
from tests.executables import executable
from tests.mounts import unmount
from tests.processes import ran
from tests.profiles.conftest import is_present
from tests.profiles.harness import PROFILES, Installed, Installer, copy_of
from tests.waiting import until

pytestmark = pytest.mark.tools

SERVERS = ("postgresql", "mariadb")
FEW = {"postgresql": ["scale=1", "runtime_s=1"], "mariadb": ["rows=1000", "runtime_s=1"]}
PROGRAMS = ("postgres", "pgbench", "mariadbd", "sysbench")

Served = Installer


@pytest.fixture
def served(tmp_path: Path, place: Path) -> Served:
    """The profile of a server, installed by its own install.sh; its files go to `place`."""

    def install(tool: str) -> Installed:
        if not is_present(tool):
            pytest.skip(f"{tool} is not installed")
        profile = Installed(tool, tmp_path / f"home-{tool}", place)
        profile.install()
        return profile

    return install


def data(profile: Installed) -> Path:
    return profile.directory / f"eeio-scratch/eeio-{profile.name}.data"


def running(folder: Path) -> list[str]:
    """Servers and clients that work below a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            where = (process / "cwd").readlink()
            name = (process / "comm").read_text(errors="replace").strip()
        except OSError:
            continue
        if where.is_relative_to(folder.resolve()) and name in PROGRAMS:
            found.append(name)
    return found


@pytest.mark.fast_variants(2)
@pytest.mark.parametrize(
    ("tool", "factors", "operation", "message"),
    [
        ("postgresql", "synchronous_commit=on flush=each", "mixed", "no transaction is lost"),
        ("mariadb", "flush=each buffer=on clients=1", "mixed", "no transaction is lost"),
        ("postgresql", "synchronous_commit=off flush=none", "mixed", "may lose the last"),
        ("postgresql", "fsync=off flush=none clients=2", "mixed", "may lose the database"),
        ("mariadb", "workload=read_only operation=read", "read", "O_DIRECT for the data's pages"),
        ("mariadb", "workload=write_only flush_log_at_trx_commit=2", "mixed", "a power loss may"),
        ("mariadb", "workload=write_only flush_log_at_trx_commit=0", "mixed", "a crash of the"),
    ],
)
def test_transactions(
    served: Served, tmp_path: Path, tool: str, factors: str, operation: str, message: str
) -> None:
    profile = served(tool)
    fields = [*factors.split(), *FEW[tool]]
    assert profile.script("pre.sh", *fields).stderr == ""
    capture = profile.capture(tmp_path / "out", dict(field.split("=") for field in fields))
    assert capture.exit_code == 0, capture.text("stderr.txt")
    result = tools.parse(tool, capture)
    (phase,) = result.phases
    assert (phase.name, phase.operation, phase.invalid) == ("transactions", operation, ())
    assert phase.start_s is not None and phase.end_s is not None
    metrics = phase.metrics
    lasted_s = phase.end_s - phase.start_s
    assert lasted_s > 0.9
    assert metrics["operations_per_s"] == pytest.approx(metrics["operations"] / lasted_s, rel=1e-6)
    # The server's start and the client's are outside what the client tells.
    assert metrics["returned_operations_per_s"] > metrics["operations_per_s"]
    assert metrics["failed_operations"] == 0
    places = [metrics[f"latency_{name}_s"] for name in ("p50", "p95", "p99", "p999", "max")]
    assert places == sorted(places) and 0 < places[0] < lasted_s
    moved = metrics["fetched_bytes"]
    if operation == "mixed":
        moved += metrics["dirtied_bytes"]
        # One window: what it tells holds its flush, and no rate into a cache is made of it.
        assert phase.includes_flush and phase.until_durable is not None
        assert phase.until_durable.end_s == phase.end_s
        # A transaction leaves some hundred bytes in the log at least.
        assert metrics["dirtied_bytes"] > 100 * metrics["operations"]
    assert phase.bytes_moved == moved > 0
    assert any(message in note for note in result.notes), result.notes
    version = (profile.home / "tool.conf").read_text().split("version=")[1].splitlines()[0]
    assert version.split()[2] in result.notes[0]
    # What it printed is kept.
    assert {"postgresql": "tps = ", "mariadb": "queries:"}[tool] in capture.text("stdout.txt")
    assert running(profile.directory) == []
    profile.clean_up()


@pytest.mark.slow
def test_pgbench_s_latencies_are_of_every_transaction(served: Served, tmp_path: Path) -> None:
    profile = served("postgresql")
    profile.script("pre.sh", *FEW["postgresql"])
    done = profile.run(*FEW["postgresql"], EEIO_OUTPUT_DIR=str(tmp_path), code=None)
    (phase,) = json.loads((tmp_path / "eeio.json").read_text())["phases"]
    counted = re.search(r"actually processed: (\d+)", done.stdout)
    mean = re.search(r"latency average = ([\d.]+) ms", done.stdout)
    assert counted and mean
    assert phase["metrics"]["operations"] == int(counted[1])
    assert phase["metrics"]["latency_p50_s"] < 3 * float(mean[1]) / 1e3
    assert phase["metrics"]["latency_max_s"] >= float(mean[1]) / 1e3
    # The pipe is gone, and nothing was logged beside the database.
    assert not list((data(profile) / "data").glob("log.*"))


@pytest.mark.fast_variants(1)
@pytest.mark.parametrize("tool", SERVERS)
def test_each_run_begins_with_the_same_rows(served: Served, tmp_path: Path, tool: str) -> None:
    profile = served(tool)
    profile.script("pre.sh", *FEW[tool])
    (data(profile) / "data/left").write_text("of another run")
    other = ["scale=2" if tool == "postgresql" else "rows=2000", "runtime_s=1"]
    assert "run pre.sh with these factors first" in profile.run(*other, code=2).stderr
    assert (data(profile) / "data/left").exists()
    profile.script("interim.sh", *FEW[tool])
    assert not (data(profile) / "data/left").exists()


@pytest.mark.slow
def test_a_server_on_the_default_port_is_not_in_the_way(served: Served, tmp_path: Path) -> None:
    """And nobody comes to it."""
    for tool, port in (("postgresql", 5432), ("mariadb", 3306)):
        profile = served(tool)
        with socket.socket() as other:
            try:
                other.bind(("127.0.0.1", port))
            except OSError as error:
                pytest.skip(f"port {port}: {error}")
            other.listen()
            other.setblocking(False)
            profile.script("pre.sh", *FEW[tool])
            # Settings of the user's for his own server are not ours.
            own = {"PGHOST": "127.0.0.1", "PGPORT": "1", "PGDATABASE": "no", "MYSQL_TCP_PORT": "1"}
            profile.run(*FEW[tool], EEIO_OUTPUT_DIR=str(tmp_path / tool), **own)
            with pytest.raises(BlockingIOError):
                other.accept()


@pytest.mark.parametrize("directory", ["disk", "my disk's #1"])
def test_temporary_tables_of_another_mariadb_stay(
    served: Served, place: Path, directory: str
) -> None:
    """A server that starts deletes all temporary tables in its folder for them, /tmp by default.
    Its installation cuts the path of another one at a blank."""
    profile = served("mariadb")
    profile.directory = place / directory
    profile.directory.mkdir(mode=0o755)
    (place / "my").mkdir(mode=0o777)
    name = f"#sql-temptable-{uuid.uuid4().hex}-1-1"
    folders = (Path("/tmp"), place / "my")
    tables = [folder / f"{name}{suffix}" for folder in folders for suffix in (".MAI", ".MAD")]
    try:
        for table in tables:
            table.touch()
            if os.geteuid() == 0:
                shutil.chown(table, "mysql")
        profile.script("pre.sh", *FEW["mariadb"])
        profile.run(*FEW["mariadb"])
        assert all(table.exists() for table in tables)
    finally:
        for table in tables:
            table.unlink(missing_ok=True)


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("postgresql", "synchronous_commit=local", "give one of: off on"),
        ("postgresql", "flush=none", "fsync=on with synchronous_commit=on is flush=each"),
        ("postgresql", "fsync=off flush=each", "with synchronous_commit=on is flush=none"),
        ("postgresql", "synchronous_commit=off flush=each", "synchronous_commit=off is flush=none"),
        ("postgresql", "buffer=off", "buffer=off: give one of: on"),
        ("postgresql", "clients=91", "clients=91: give a whole number from 1 to 90"),
        ("postgresql", "scale=0", "scale=0: give a whole number from 1 to 100000"),
        ("postgresql", "runtime_s=0", "runtime_s=0"),
        ("postgresql", "port=5432", "unknown factor 'port=5432'"),
        ("mariadb", "workload=tpcc", "give one of: read_only read_write write_only"),
        ("mariadb", "flush_log_at_trx_commit=3", "give one of: 0 1 2"),
        ("mariadb", "flush=none", "with flush_log_at_trx_commit=1 is flush=each"),
        ("mariadb", "flush_log_at_trx_commit=2 flush=each", "at_trx_commit=2 is flush=none"),
        ("mariadb", "workload=read_only flush=each", "is without flush"),
        ("mariadb", "workload=read_only operation=mixed", "workload=read_only is operation=read"),
        ("mariadb", "operation=read", "workload=read_write is operation=mixed"),
        ("mariadb", "rows=-1", "rows=-1"),
    ],
)  # fmt: skip
def test_rejected_factors(served: Served, tool: str, arguments: str, message: str) -> None:
    profile = served(tool)
    profile.rejects(arguments, message)


@pytest.mark.parametrize("tool", SERVERS)
def test_data_that_are_not_ours_stay(served: Served, tmp_path: Path, tool: str) -> None:
    profile = served(tool)
    folder = data(profile)
    folder.mkdir(parents=True)
    (folder / "PG_VERSION").write_text("15\n")
    for what in ("folder", "link", "file"):
        if what != "folder":
            folder.unlink(missing_ok=True)
        if what == "link":
            folder.symlink_to(tmp_path)
        if what == "file":
            folder.write_text("")
        for done in (
            profile.script("pre.sh", *FEW[tool], code=None),
            profile.script("post.sh", code=None),
            profile.run(*FEW[tool], code=None),
        ):
            (line,) = done.stderr.splitlines()
            # A link is rejected by the rule for everything in the folder of the test files.
            problem = " is neither a plain file nor a folder, " if what == "link" else ": "
            assert line.startswith(f"eeio-{tool}: {folder}{problem}"), line
        profile.script("pre.sh", *FEW[tool], code=2 if what == "link" else 1)
        assert os.path.lexists(folder)
        if what == "folder":
            assert (folder / "PG_VERSION").read_text() == "15\n"
            shutil.rmtree(folder)
            folder.touch()
    assert tmp_path.is_dir()


@pytest.mark.root
@pytest.mark.parametrize("tool", SERVERS)
def test_a_folder_that_the_server_s_user_cannot_pass(
    served: Served, place: Path, tool: str
) -> None:
    profile = served(tool)
    closed = place / "closed"
    closed.mkdir(mode=0o700)
    (line,) = profile.script("pre.sh", EEIO_DIRECTORY=str(closed), code=None).stderr.splitlines()
    assert f"{closed}: has mode 0700: the user" in line and "or run as a plain user" in line
    assert list((closed / "eeio-scratch").iterdir()) == []


@pytest.mark.root
@pytest.mark.parametrize("tool", SERVERS)
def test_as_a_plain_user(served: Served, place: Path, tool: str) -> None:
    served(tool)
    if shutil.which("setpriv") is None or not Path("/usr/bin/python3").exists():
        pytest.skip("setpriv or /usr/bin/python3 is missing")
    for folder in (place / "home", place / "disk"):
        folder.mkdir()
        os.chown(folder, 65534, 65534)
    # A checkout below a closed home is nothing that everybody can read.
    profile = copy_of(PROFILES / f"eeio-{tool}-1.0.0", place / "profile")
    arguments = FEW[tool]
    for script in ("install.sh", "pre.sh", "run", "post.sh"):
        command = ["sh", str(profile / script), *arguments]
        if script == "run":
            command = [str(place / f"home/eeio-{tool}"), *arguments]
        ran(
            ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "env", "-i",
             "PATH=/usr/bin:/bin", f"HOME={place}/home", f"EEIO_DIRECTORY={place}/disk",
             "EEIO_PRESET=quick", *command],
            cwd="/",
        )  # fmt: skip
        if script == "run":
            assert "ran as nobody" in (place / "home/output/eeio.json").read_text()
    assert list((place / "disk").iterdir()) == []


@pytest.mark.parametrize("tool", SERVERS)
def test_too_little_room(served: Served, tmp_path: Path, tool: str) -> None:
    """And what is needed fits into the footprint that the plan goes by."""
    profile = served(tool)
    df = executable(tmp_path / "bin/df", "#!/bin/sh\necho head\necho fs 9 9 1 0% /\n")
    presets = (profile.profile / "presets.conf").read_text()
    for preset in ("quick", "standard", "paper"):
        done = profile.script(
            "pre.sh", PATH=f"{df.parent}:{os.environ['PATH']}", EEIO_PRESET=preset, code=2
        )
        needed = re.search(r"eeio-scratch: needs (\d+) bytes, 1024 are free\n$", done.stderr)
        footprint = re.search(rf"^{preset} .*footprint=(\d+)", presets, re.M)
        assert needed and footprint and int(needed[1]) <= int(footprint[1])
    assert list((profile.directory / "eeio-scratch").iterdir()) == []


@pytest.mark.root
@pytest.mark.parametrize("tool", SERVERS)
def test_a_disk_that_fills(
    served: Served, tmp_path: Path, place: Path, tool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the tables are loaded: the disk is smaller than pre.sh is told."""
    profile = served(tool)
    df = tmp_path / "bin/df"
    _script(df, "echo head; echo fs 9 9 999999999 0% /")
    image, disk = place / "image", place / "disk"
    with image.open("wb") as file:
        file.truncate(190 << 20)
    disk.mkdir()
    subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
    if subprocess.run(["mount", "-o", "loop", image, disk], check=False).returncode != 0:
        pytest.skip("cannot mount")
    try:
        arguments = ["scale=20"] if tool == "postgresql" else ["rows=200000"]
        done = profile.script(
            "pre.sh",
            *arguments,
            EEIO_DIRECTORY=str(disk),
            PATH=f"{df.parent}:{os.environ['PATH']}",
            code=1,
        )
        (line,) = done.stderr.splitlines()
        assert re.search(
            r"No space left on device|The table '\w+' is full|error 28|Disk full", line
        )
        assert list((disk / "eeio-scratch").iterdir()) == [] and running(place) == []
    finally:
        unmount(disk)


def _script(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    executable(path, f"#!/bin/sh\n{text}\n")


def _fake(profile: Installed, folder: Path, text: str) -> None:
    """From now on the profile's server is this script."""
    conf = profile.home / "tool.conf"
    reported = dict(line.split("=", 1) for line in conf.read_text().splitlines())
    real = Path(reported["path"])
    folder.mkdir()
    if "programs" in reported:
        for program in Path(reported["programs"]).iterdir():
            (folder / program.name).symlink_to(program)
    _script(folder / real.name, text)
    folder.chmod(0o755)
    reported |= {"path": str(folder / real.name), "programs": str(folder)}
    conf.write_text("".join(f"{key}={value}\n" for key, value in reported.items()))


@pytest.mark.parametrize("tool", SERVERS)
def test_a_server_that_does_not_start(served: Served, place: Path, tool: str) -> None:
    profile = served(tool)
    profile.script("pre.sh", *FEW[tool])
    _fake(profile, place / "fake", "echo 'FATAL:  no memory' >&2; echo 'bye' >&2; exit 3")
    done = profile.run(*FEW[tool], code=None)
    (line,) = done.stderr.splitlines()
    assert done.returncode == 1
    assert line == (
        f"eeio-{tool}: the server ended at its start: the server says: FATAL:  no memory"
    )
    assert not data(profile).exists()


@pytest.mark.parametrize("tool", SERVERS)
def test_a_server_that_does_not_answer(served: Served, place: Path, tool: str) -> None:
    profile = served(tool)
    profile.script("pre.sh", *FEW[tool])
    _fake(profile, place / "fake", "echo waiting; exec sleep 1000")
    limits = profile.home / "server.py"
    limits.write_text(limits.read_text().replace("ANSWER_S = 60 ", "ANSWER_S = 1 "))
    done = profile.run(*FEW[tool], code=None)
    (line,) = done.stderr.splitlines()
    assert done.returncode == 1
    assert "the server does not answer after 1 s: the server says: waiting" in line


@pytest.mark.fast_variants(2)
@pytest.mark.parametrize("tool", SERVERS)
@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGKILL])
def test_a_server_ends_with_whoever_started_it(
    served: Served, place: Path, tool: str, signum: signal.Signals
) -> None:
    profile = served(tool)
    few = [FEW[tool][0], "runtime_s=600"]
    profile.script("pre.sh", *few)
    process = subprocess.Popen(
        [str(profile.home / f"eeio-{tool}"), *few], cwd=profile.home, env=profile.environment,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    client = "pgbench" if tool == "postgresql" else "sysbench"
    until(lambda: client in running(place))
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    (workload,) = map(int, children)
    os.kill(workload, signum)
    assert process.wait(30) == (143 if signum == signal.SIGTERM else 137)
    until(lambda: running(place) == [])
    assert data(profile).exists() is (signum == signal.SIGKILL)
    profile.script("post.sh")
    assert list(place.iterdir()) == []


def test_what_is_missing_or_too_old_is_not_installed(tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    postgresql = Installed("postgresql", tmp_path / "p", tmp_path / "disk")
    done = postgresql.install(EEIO_POSTGRESQL_BIN=str(folder), code=1)
    assert f"{folder}/postgres is missing: install the p" in done.stderr
    for name in ("postgres", "initdb", "pgbench", "psql", "pg_isready"):
        _script(folder / name, "echo 'postgres (PostgreSQL) 11.22 (Debian 11.22-1)'")
    # One in PATH goes before Debian's, and may be a link to its folder.
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked/postgres").symlink_to(folder / "postgres")
    done = postgresql.install(PATH=f"{tmp_path}/linked:{os.environ['PATH']}", code=1)
    assert "linked/postgres: is 'postgres (PostgreSQL) 11.22 (Debian" in done.stderr
    done = postgresql.install(EEIO_POSTGRESQL_BIN=str(folder), code=1)
    assert "install PostgreSQL 12 or newer" in done.stderr
    mariadb = Installed("mariadb", tmp_path / "m", tmp_path / "disk")
    for name in ("mariadb-install-db", "mariadb-admin", "mariadb", "sysbench"):
        _script(folder / name, "exit 0")
    path = f"{folder}:{os.environ['PATH']}"
    for version in ("10.3.39-MariaDB for debian-linux-gnu", "8.0.40 for Linux on x86_64 (MySQL)"):
        _script(folder / "mariadbd", f"echo 'mysqld  Ver {version}'")
        assert "install MariaDB 10.5 or newer" in mariadb.install(PATH=path, code=1).stderr
    # What install.sh itself calls, and nothing else.
    bare = tmp_path / "bare"
    bare.mkdir()
    for name in ("bash", "sh", "cp", "chmod", "python3", "sed"):
        (bare / name).symlink_to(shutil.which(name) or "/nowhere")
    _script(bare / "mariadbd", "exit 0")
    for name in ("mariadb-install-db", "mariadb-admin", "mariadb"):
        _script(bare / name, "exit 0")
    if not Path("/usr/sbin/sysbench").exists():
        done = mariadb.install(PATH=str(bare), code=1)
        assert "sysbench is missing: install the package sysbench" in done.stderr


@pytest.mark.parametrize("tool", SERVERS)
def test_lines_for_pts(served: Served, tmp_path: Path, tool: str) -> None:
    profile = served(tool)
    log = tmp_path / "pts.log"
    profile.script("pre.sh", *FEW[tool])
    profile.run(*FEW[tool], LOG_FILE=str(log))
    labels = [line.partition(":")[0] for line in log.read_text().splitlines() if "EEIO" in line]
    assert {"EEIO transactions rate", "EEIO transactions bandwidth"} <= set(labels)
