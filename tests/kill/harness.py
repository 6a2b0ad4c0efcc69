"""Kills a campaign at random moments and looks at what is left of it."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from eeio.errors import EeioError
from eeio.machine.owner import start_ticks
from eeio.record.store import load, read_design
from eeio_power.suspension import STOPPED
from tests.cpufreq import bytes_of, pstate_tree
from tests.profiles.conftest import is_present

DATA = Path(__file__).parents[1] / "data"
PROFILES = Path(__file__).parents[2] / "test-profiles"
COMPOSITE = DATA / "pts/10.8.6/native.xml"
CAMPAIGN = "killed"
# Kernels let go of a loop device, and end a process that was killed, a little later.
_PATIENCE_S = 20.0
_COMMAND_S = 120.0
_STOPPED_S = 10.0
_TRIES = 100


def environment_of(home: Path) -> dict[str, str]:
    """A user with a home of the harness's own, and the dummy profile on the search path."""
    return {
        **os.environ,
        "XDG_DATA_HOME": str(home / "data"),
        "XDG_STATE_HOME": str(home / "state"),
        "EEIO_LOCKS": str(home / "locks"),
        "EEIO_TEST_PROFILES": str(home / "profiles"),
        "EEIO_SUITES": str(DATA / "suites"),
    }


def start(
    *arguments: str, environment: Mapping[str, str] | None = None, before: Sequence[str] = ()
) -> "subprocess.Popen[bytes]":
    """An eeio whose output is not read; `before` is a program that runs it."""
    return subprocess.Popen(
        [*before, sys.executable, "-m", "eeio", *arguments],
        env=None if environment is None else dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def stored(home: Path, campaign: str = CAMPAIGN) -> list[int]:
    """Order indices of the runs that are stored whole, in the order of the file."""
    path = home / "data/eeio/results" / campaign / "runs.jsonl"
    lines = path.read_bytes().split(b"\n") if path.exists() else [b""]
    return [json.loads(line)["order_index"] for line in lines[:-1]]


def drop_last_runs(home: Path, count: int, campaign: str = CAMPAIGN) -> None:
    path = home / "data/eeio/results" / campaign / "runs.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-count]))


@dataclass
class Outcome:
    """What one target came to: kills, runs stored by whole campaigns, and everything wrong."""

    target: str
    kills: int = 0
    runs: int = 0
    campaigns: int = 0
    looked_at: int = 0
    wrong: list[str] = field(default_factory=list)

    @property
    def line(self) -> str:
        left = "nothing lost, doubled or left" if not self.wrong else f"{len(self.wrong)} WRONG"
        compared = f"{self.looked_at} changes of living campaigns compared, "
        return (
            f"{self.target}: {self.kills} kills, {self.campaigns} campaigns with {self.runs} runs, "
            f"{compared if self.looked_at else ''}{left}"
        )


class UnavailableError(Exception):
    """The machine does not allow what a target needs."""


class Target:
    """Something that is killed over and over: here a campaign over a directory."""

    name = "directory"
    repetitions = 2
    experiments = 3

    def __init__(self, home: Path) -> None:
        self.home = home
        self.environment = environment_of(home)
        for folder in ("target", "locks"):
            (home / folder).mkdir(parents=True, exist_ok=True)
        shutil.copytree(DATA / "profiles", home / "profiles", dirs_exist_ok=True)
        presets = home / "profiles/eeio-dummy-1.0.0/presets.conf"
        presets.write_text(presets.read_text().replace("sleep_s=0.1", "sleep_s=0.02"))

    @property
    def options(self) -> Sequence[str]:
        return ("--directory", str(self.home / "target"))

    @property
    def suite(self) -> str:
        return "dummy-suite"

    @property
    def results(self) -> Path:
        return self.home / "data/eeio/results"

    @property
    def runs(self) -> int:
        return self.repetitions * self.experiments

    def arguments(self) -> Sequence[str]:
        """What is typed now: to begin, or to go on."""
        if (self.results / CAMPAIGN).exists():
            return ("resume", CAMPAIGN)
        return (
            "run", self.suite, "--name", CAMPAIGN, "--meter", "none", "--seed", "7",
            "--repetitions", str(self.repetitions), *self.options,
        )  # fmt: skip

    before: Sequence[str] = ()
    """A program that runs eeio: in a container, say."""

    def prepare(self) -> None:
        """Before a campaign begins."""

    others_killed = 0
    """Kills of other processes."""
    share = 1.0
    """Of the time of a campaign, in which it is killed, counted from `disturb`."""
    codes: Sequence[int] = (0, 3)
    """Exit codes of a campaign that nobody killed. 3: it was stopped to look at what it changes, so
    that a run is invalid; `wrong_at_end` allows no other reason."""
    looked_at = 0
    """Mounts, loop devices, files and journals of living campaigns that were compared before and
    after another process acted."""
    kept = b""
    """Records that were stored when the last process was killed."""

    def victim(self, process: "subprocess.Popen[bytes]") -> int:
        """The process to kill."""
        return process.pid

    def disturb(
        self, process: "subprocess.Popen[bytes]", moments: random.Random, length_s: float
    ) -> Iterator[str]:
        """What happens while a campaign runs, once it has begun; yields what went wrong."""
        yield from ()

    def killed(self, moments: random.Random) -> Iterator[str]:
        """What happens after each kill; yields what went wrong."""
        yield from ()

    def restore(self) -> Iterator[str]:
        """After it nothing may be left."""
        arguments = [*self.before, sys.executable, "-m", "eeio", "doctor", "restore"]
        done = _run(arguments, self.environment)
        if done.returncode != 0:
            yield f"restore ended with {done.returncode}: {done.stderr.strip()[-500:]}"

    def wrong_at_end(self) -> Iterator[str]:
        """Of a campaign that ended by itself: every run once, in its order."""
        order = stored(self.home)
        if order != list(range(self.runs)):
            yield f"runs {order} are stored, wanted each of {self.runs} once"
        if (self.results / CAMPAIGN / "runs.jsonl").exists():
            lines = (self.results / CAMPAIGN / "runs.jsonl").read_text().splitlines()
            records = [json.loads(line) for line in lines]
            if len({(r["experiment_id"], r["repetition"]) for r in records}) != len(records):
                yield "a repetition of an experiment is stored twice"
            reasons = [[why for why in r["validity"] if why != STOPPED] for r in records]
            yield from (f"invalid: {of_run}" for of_run in reasons if of_run)

    def left(self) -> Iterator[str]:
        """What should be gone after `eeio doctor restore`."""
        home = str(self.home)
        mountinfo = Path("/proc/self/mountinfo").read_bytes()
        yield from (f"mount: {line!r}" for line in mountinfo.splitlines() if home.encode() in line)
        for backing in Path("/sys/block").glob("loop*/loop/backing_file"):
            name = os.fsdecode(backing.read_bytes()) if backing.exists() else ""
            if name.startswith(f"{home}/target/"):
                yield f"loop device over {name.strip()}"
        for process in Path("/proc").glob("[0-9]*"):
            if self._is_ours(process):
                yield f"process {process.name}"
        for folder in (self.home / "target", self.home / "state/eeio/undo"):
            yield from (f"file {path}" for path in folder.glob("*"))
        yield from (f"file {path}" for path in self.results.glob(".*"))
        yield from (f"folder {path}" for path in self.results.glob("*/eeio-*"))

    def _is_ours(self, process: Path) -> bool:
        home = os.fsencode(self.home)
        try:
            text = (process / "cmdline").read_bytes()
            return home in text or bytes((process / "cwd").readlink()).startswith(home)
        except OSError:
            return False

    def close(self) -> None:
        """Takes away what the harness itself made."""
        shutil.rmtree(self.home, ignore_errors=True)


class Filesystems(Target):
    """File systems on loop images."""

    name = "loop"
    repetitions = 1
    experiments = 6
    filesystems = "ext4,xfs"

    @property
    def options(self) -> Sequence[str]:
        return (*super().options, "--filesystem", self.filesystems)


class Layers(Filesystems):
    """A folder encrypted by fscrypt, and overlayfs, each on a loop image."""

    name = "layers"
    filesystems = "ext4+fscrypt,ext4+overlay"


@dataclass(frozen=True)
class Act:
    """What another process of eeio did: its exit code, None if it was killed."""

    arguments: Sequence[str]
    code: int | None
    stderr: str

    def wrong(self, *codes: int) -> Iterator[str]:
        """Yields what is wrong if it ended by itself with another exit code."""
        if self.code is not None and self.code not in codes:
            yield f"`eeio {' '.join(self.arguments)}` ended with {self.code}: {self.stderr[-500:]}"


OTHER = "other"
"""The campaign of the other process."""


class TwoProcesses(Target):
    """On an ext4 of its own, next to another process of eeio, which restores, resumes or runs, and
    may be killed too."""

    share = 0.5
    codes = (0, 2, 3)  # 2: the other one was faster
    other_before: Sequence[str] = ()

    @property
    def options(self) -> Sequence[str]:
        return (*super().options, "--filesystem", "ext4")

    @property
    def other_environment(self) -> Mapping[str, str]:
        return self.environment

    def acts(self) -> Mapping[str, Sequence[str]]:
        """What the other one may do."""
        (self.home / "other-target").mkdir(exist_ok=True)
        return {
            "restore": ("doctor", "restore",),
            "resume": ("resume", CAMPAIGN),
            "run": (
                "run", "dummy-suite", "--name", OTHER, "--meter", "none", "--repetitions", "1",
                "--directory", str(self.home / "other-target"),
            ),
        }  # fmt: skip

    _other: "tuple[Sequence[str], subprocess.Popen[bytes]] | None" = None

    def begin(self, name: str) -> None:
        """Starts the other one."""
        arguments = self.acts()[name]
        shutil.rmtree(self.results / OTHER, ignore_errors=True)
        with (self.home / "other.log").open("wb") as log:
            process = subprocess.Popen(
                [*self.other_before, sys.executable, "-m", "eeio", *arguments],
                env=dict(self.other_environment), stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=log,
            )  # fmt: skip
        self._other = (arguments, process)

    def end(self, kill_after_s: float | None = None) -> Act | None:
        """Waits for the other one; None if there is none."""
        if self._other is None:
            return None
        (arguments, process), self._other = self._other, None
        if kill_after_s is not None and _killed(process, kill_after_s):
            self.others_killed += 1
        code = process.wait(_COMMAND_S)
        log = (self.home / "other.log").read_text(errors="replace")
        return Act(arguments, None if code == -signal.SIGKILL else code, log)

    def disturb(
        self, process: "subprocess.Popen[bytes]", moments: random.Random, length_s: float
    ) -> Iterator[str]:
        time.sleep(moments.uniform(0, 0.5 * length_s))
        name = moments.choice(list(self.acts()))
        if moments.random() < 0.5:
            self.begin(name)  # `killed` or `wrong_at_end` waits for it
            return
        # Stopped meanwhile, so that the other one did whatever has changed afterwards. Not for
        # long: the other one may wait for a lock.
        with _stopped(self.victim(process)) as continued:
            before = self.changed(process)
            self.begin(name)
            act = self.end(moments.uniform(0, length_s) if moments.random() < 1 / 3 else None)
            gone = set() if continued.is_set() else before - self.changed(process)
        self.looked_at += len(before)
        yield from self.judge(act)
        yield from (f"another eeio {name} undid {each}" for each in sorted(gone))

    def killed(self, moments: random.Random) -> Iterator[str]:
        yield from self.judge(self.end(moments.random() if moments.random() < 1 / 3 else None))
        self.begin(moments.choice(list(self.acts())))
        yield from self.judge(self.end())

    def wrong_at_end(self) -> Iterator[str]:
        yield from self.judge(self.end())
        yield from super().wrong_at_end()

    def judge(self, act: Act | None) -> Iterator[str]:
        """What is wrong about what the other one did."""
        if act is not None:
            yield from act.wrong(0, 2, 3)  # 2: it was locked out

    def changed(self, process: "subprocess.Popen[bytes]") -> set[str]:
        """What the living process notes in its journal and is so now."""
        try:
            eeio = Path(f"/proc/{self.victim(process)}")
            number = re.search(r"^NSpid:.*?([0-9]+)$", (eeio / "status").read_text(), re.MULTILINE)
            ticks = (eeio / "stat").read_text().rpartition(")")[2].split()[19]
            mounted = (eeio / "mountinfo").read_text()
            assert number is not None
            folder = self.home / "state/eeio/undo"
            (path,) = folder.glob(f"{number[1]}-{ticks}-*.json")
            entries = json.loads(path.read_text())["entries"]
        except (OSError, ValueError):
            return set()
        found = {f"journal {path.name}"}
        for entry in entries:
            kind, subject = entry["kind"], entry["subject"]
            backing = Path("/sys/block") / Path(subject).name / "loop/backing_file"
            if (
                (kind == "mount" and f" {subject} " in mounted)
                or (kind in ("file", "directory") and os.path.lexists(subject))
                or (kind == "loop" and backing.exists()
                    and backing.read_text().strip() == entry["value"])
            ):  # fmt: skip
                found.add(f"{kind} {subject}")
        return found


class Container(TwoProcesses):
    """Next to a container with the same home. Now the campaign is in it, now the other process."""

    name = "container"
    _INSIDE = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self._starts = 0

    def prepare(self) -> None:
        if _run([*self._INSIDE, "true"]).returncode != 0:
            raise UnavailableError("no PID namespaces here")

    @property
    def _is_inside(self) -> bool:
        return self._starts % 2 == 1

    @property
    def before(self) -> Sequence[str]:  # type: ignore[override]
        return self._INSIDE if self._is_inside else ()

    @property
    def other_before(self) -> Sequence[str]:  # type: ignore[override]
        return () if self._is_inside else self._INSIDE

    def victim(self, process: "subprocess.Popen[bytes]") -> int:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        with suppress(OSError, ValueError, IndexError):
            return int(children.read_text().split()[0]) if self._is_inside else process.pid
        return process.pid

    def judge(self, act: Act | None) -> Iterator[str]:
        if act is None:
            return
        yield from act.wrong(0, 1, 2)  # 1: it left another's journal alone
        if act.code is None and self._is_inside:
            # What the killed one itself left on the host is restored there.
            _run([sys.executable, "-m", "eeio", "doctor", "restore"], self.environment)
        if "after a killed campaign" in act.stderr:
            yield f"`eeio {' '.join(act.arguments)}` restored what is another's: {act.stderr}"

    def killed(self, moments: random.Random) -> Iterator[str]:
        yield from super().killed(moments)
        yield from self.restore()
        self._starts += 1

    def restore(self) -> Iterator[str]:
        """Of both; what a killed container left is restored by name."""
        _run([sys.executable, "-m", "eeio", "doctor", "restore"], self.environment)
        for journal in sorted((self.home / "state/eeio/undo").glob("*.json")):
            arguments = [sys.executable, "-m", "eeio", "doctor", "restore", str(journal)]
            done = _run(arguments, self.environment)
            if done.returncode != 0:
                yield f"restore {journal.name} ended with {done.returncode}: {done.stderr}"
        done = _run([sys.executable, "-m", "eeio", "doctor", "restore"], self.environment)
        if done.returncode != 0:
            yield f"restore ended with {done.returncode}: {done.stderr}"


class Reboot(TwoProcesses):
    """A machine that loses its processes, mounts and loop devices at each kill, and comes back with
    another boot id."""

    name = "reboot"

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self._boots = 0
        (home / "machine-id").write_text("0123456789abcdef0123456789abcdef\n")
        self._boot()
        # Its mounts end with it.
        binds = " && ".join(
            f"mount --bind {home}/{name} {place}"
            for name, place in (
                ("boot_id", "/proc/sys/kernel/random/boot_id"), ("machine-id", "/etc/machine-id")
            )
        )  # fmt: skip
        self.before = ("unshare", "--mount", "sh", "-c", f'{binds} && exec "$@"', "sh")
        self.other_before = self.before
        Path("/etc/machine-id").touch()

    def _boot(self) -> None:
        self._boots += 1
        (self.home / "boot_id").write_text(f"{self._boots:08x}-0000-4000-8000-000000000000\n")

    def prepare(self) -> None:
        if _run([*self.before, "true"]).returncode != 0:
            raise UnavailableError("no mount namespaces here")

    def killed(self, moments: random.Random) -> Iterator[str]:
        deadline_s = time.monotonic() + _PATIENCE_S
        # Until they have ended: a killed losetup may still attach a device.
        while (ours := list(filter(self._is_ours, Path("/proc").glob("[0-9]*")))) and (
            time.monotonic() < deadline_s
        ):
            for process in ours:
                with suppress(OSError):
                    os.kill(int(process.name), signal.SIGKILL)
            time.sleep(0.01)
        for backing in Path("/sys/block").glob("loop*/loop/backing_file"):
            with suppress(OSError):
                if os.fsencode(self.home) in backing.read_bytes():
                    _run(["losetup", "--detach", f"/dev/{backing.parts[3]}"])
        self.end()
        self._boot()
        # Number and start, in ticks after boot, of a process group of the last boot are another's.
        bystander = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        try:
            self._give_number_to(bystander.pid)
            name = moments.choice(list(self.acts()))
            there = (self.results / CAMPAIGN).exists()
            self.begin(name)
            if (act := self.end()) is not None:
                yield from act.wrong(*((0, 3) if there or name != "resume" else (2,)))
            if bystander.poll() is not None:
                yield "a process of this boot was ended"
        finally:
            bystander.kill()
            bystander.wait()

    def _give_number_to(self, pid: int) -> None:
        for path in (self.home / "state/eeio/undo").glob("*.json"):
            body = json.loads(path.read_text())
            for entry in body["entries"]:
                if entry["kind"] == "process":
                    entry |= {"subject": str(pid), "value": str(start_ticks(pid))}
            path.write_text(json.dumps(body))


class Checkouts(TwoProcesses):
    """Next to another checkout with the same home, whose version of the profile fails."""

    name = "checkouts"
    options = Target.options

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        shutil.copytree(home / "profiles", home / "other")
        self._count = 0

    @property
    def other_environment(self) -> Mapping[str, str]:
        return {**self.environment, "EEIO_TEST_PROFILES": str(self.home / "other")}

    def acts(self) -> Mapping[str, Sequence[str]]:
        self._count += 1
        script = self.home / "other/eeio-dummy-1.0.0/eeio-dummy.sh"
        script.write_text(f"#!/bin/sh\n# {self._count}\nexit 9\n")
        acts = {**super().acts(), "install": ("profile", "install", "eeio-dummy-1.0.0")}
        if not (self.results / CAMPAIGN / "machine.json").exists():
            del acts["resume"]  # else the campaign would become the other's
        return acts

    def judge(self, act: Act | None) -> Iterator[str]:
        if act is not None:
            # 3: all of its own runs failed.
            yield from act.wrong(2, 3 if act.arguments[0] == "run" else 0)


class Resumes(TwoProcesses):
    """Two processes that resume the same campaign at once; either may be killed."""

    name = "resumes"
    options = Target.options

    @property
    def other_environment(self) -> Mapping[str, str]:
        # Without the locks of the machine, as on another node with the same results.
        (self.home / "other-locks").mkdir(exist_ok=True)
        return {**self.environment, "EEIO_LOCKS": str(self.home / "other-locks")}

    def acts(self) -> Mapping[str, Sequence[str]]:
        return {"resume": ("resume", CAMPAIGN)}


class Applications(Target):
    """The programs of eeio-applications, with the servers that are installed and whose users can
    pass every folder above the harness's, on a file system of the campaign's own."""

    name = "applications"
    repetitions = 1

    @property
    def programs(self) -> Mapping[str, str]:
        return {
            tool: f"level=application buffer=on {message}"
            for tool, message in _APPLICATIONS.items()
        }

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.environment["EEIO_TEST_PROFILES"] = str(PROFILES)
        home.parent.chmod(0o755)
        is_open = all(folder.stat().st_mode & 0o001 for folder in home.parents)
        here = {
            tool: factors
            for tool, factors in self.programs.items()
            if is_present(tool) and (is_open or tool not in _SERVERS)
        }
        if not here:
            raise UnavailableError("no program of it is installed")
        self.experiments = len(here)
        self._suite = home / "suites/applications"
        self._suite.mkdir(parents=True)
        (self._suite / "protocol.yaml").write_text(
            "presets:\n  quick: {repetitions: 1, settle_s: 0, idle_s: 0, is_measurement: false}\n"
        )
        entries = "".join(
            f"<Execute><Test>local/eeio-{tool}-1.0.0</Test><Arguments>{factors}</Arguments>"
            f"<Description>{tool}</Description></Execute>"
            for tool, factors in here.items()
        )
        (self._suite / "suite-definition.xml").write_text(
            "<PhoronixTestSuite><SuiteInformation><Title>made</Title></SuiteInformation>"
            f"{entries}</PhoronixTestSuite>"
        )

    @property
    def suite(self) -> str:
        return str(self._suite)

    @property
    def options(self) -> Sequence[str]:
        return (*super().options, "--preset", "quick", "--filesystem", "ext4")


_SERVERS = ("postgresql", "mariadb")
# A run of each of a second or two.
_APPLICATIONS = {
    "sqlite": "operation=mixed journal=wal synchronous=full flush=each rows=2000 "
    "transactions=100000 runtime_s=1",
    "archive": "operation=mixed action=untar flush=none files=300",
    "postgresql": "operation=mixed scale=1 runtime_s=1 flush=each",
    "mariadb": "operation=mixed workload=write_only rows=1000 runtime_s=1 flush=each",
    "rocksdb": "operation=mixed workload=fillrandom sync=on flush=each keys=1000 "
    "operations=100000 runtime_s=1",
    "varmail": "operation=mixed processes=4 fsync=on flush=each files=200 loops=100000 runtime_s=1",
    "checkpoint": "operation=write spatiality=sequential processes=2 fsync=on flush=each size=1m "
    "interval_s=1 checkpoints=3",
}


class Workloads(Applications):
    """Requests of AI servers, an object store, IO500 and DLIO, if EEIO_S3_SERVER, EEIO_IO500 and
    EEIO_DLIO name them."""

    name = "workloads"
    codes = (0, 3)  # so few requests are no valid measurement

    def wrong_at_end(self) -> Iterator[str]:
        yield from (wrong for wrong in super().wrong_at_end() if not wrong.startswith("invalid: "))

    @property
    def programs(self) -> Mapping[str, str]:
        fio = "level=filesystem operation=read spatiality=random request_size=64k buffer=off"
        found = {"fio": f"{fio} workload=kv_cache latency_ms=50 file_size=64m runtime_s=1"}
        if "EEIO_S3_SERVER" in os.environ:
            found["s3"] = "level=application buffer=on request_size=4k processes=4 objects=300"
        if "EEIO_IO500" in os.environ:
            found["io500"] = (
                "level=application operation=mixed spatiality=mixed buffer=on processes=2 "
                "flush=end stonewall_s=1 data=2m files=50"
            )
        if "EEIO_DLIO" in os.environ:
            found["dlio"] = (
                "level=application operation=mixed spatiality=sequential buffer=on flush=each "
                "workload=checkpoint checkpoint_size=7m checkpoints=2"
            )
        return found


class Study(Target):
    """File systems on loop images, traced, with frequencies set in a tree of files."""

    name = "settings"
    repetitions = 1
    experiments = 2

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self._suite = home / "suites/study"
        self._suite.mkdir(parents=True)
        (self._suite / "protocol.yaml").write_text(
            "study: {variants: [ext4], frequencies: [lowest, highest], window_us: "
            "{dummy: 500}, max_resets: 64, flush_first: true, half_width: null, "
            "most_repetitions: 3}\npresets:\n  standard: {repetitions: 1, settle_s: 0, idle_s: 0, "
            "is_measurement: true}\n"
        )
        (self._suite / "suite-definition.xml").write_text(
            "<PhoronixTestSuite><SuiteInformation><Title>made</Title></SuiteInformation><Execute>"
            "<Test>local/eeio-dummy-1.0.0</Test><Arguments>level=filesystem operation=read "
            "spatiality=sequential</Arguments><Description>one</Description></Execute>"
            "</PhoronixTestSuite>"
        )
        self._tree = pstate_tree(home / "tree")
        self._before = bytes_of(self._tree)

    @property
    def suite(self) -> str:
        return str(self._suite)

    @property
    def options(self) -> Sequence[str]:
        return (*super().options, "--sysfs-root", str(self._tree))

    def left(self) -> Iterator[str]:
        yield from super().left()
        now = bytes_of(self._tree)
        yield from (f"setting {name}" for name in now if now[name] != self._before.get(name))
        for instance in Path("/sys/kernel/tracing/instances").glob("eeio*"):
            # Of a process that lives it is another's who measures on this machine.
            if not Path("/proc", instance.name.split("-")[1]).exists():
                yield f"folder {instance}"


class Adaptive(Target):
    """Rounds that follow from the runs before them: the same order as of one that nobody kills."""

    name = "adaptive"
    repetitions = 3

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self._suite = home / "suites/rounds"
        shutil.copytree(DATA / "suites/dummy-suite", self._suite)
        (self._suite / "protocol.yaml").write_text(
            "presets:\n  quick: {repetitions: 3, settle_s: 0, idle_s: 0, is_measurement: false}\n"
            "  standard: {like: quick, repetitions: 3, settle_s: 0, idle_s: 0, is_measurement: "
            "false, adaptive: {settle_least_s: 0, settle_most_s: 0, most_whole: 6}}\n"
        )
        definition = self._suite / "suite-definition.xml"
        noisy = "operation=read spatiality=sequential cell=4 mode=noisy"
        entry = f"<Execute><Test>local/eeio-dummy-1.0.0</Test><Arguments>level=filesystem {noisy}"
        entry += "</Arguments><Description>noisy</Description></Execute></PhoronixTestSuite>"
        text = definition.read_text().replace("</PhoronixTestSuite>", entry)
        definition.write_text(text)
        self._first: list[tuple[str, int]] | None = None

    @property
    def suite(self) -> str:
        return str(self._suite)

    @property
    def runs(self) -> int:
        return len(self._first or ())

    def wrong_at_end(self) -> Iterator[str]:
        lines = (self.results / CAMPAIGN / "runs.jsonl").read_text().splitlines()
        records = [json.loads(line) for line in lines]
        order = [(record["experiment_id"], record["repetition"]) for record in records]
        if self._first is None:
            self._first = order  # of the campaign that nobody killed
        if order != self._first:
            yield f"the order is {order}, of one that nobody killed {self._first}"
        yield from super().wrong_at_end()


class Extend(Target):
    """More repetitions for an open question of an adaptive campaign that has ended."""

    name = "extend"
    repetitions = 3

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self._suite = home / "suites/question"
        shutil.copytree(DATA / "suites/dummy-suite", self._suite)
        (self._suite / "protocol.yaml").write_text(
            "presets:\n  quick: {repetitions: 3, settle_s: 0, idle_s: 0, is_measurement: false}\n"
            "  standard: {like: quick, repetitions: 3, settle_s: 0, idle_s: 0, is_measurement: "
            "false, adaptive: {settle_least_s: 0, settle_most_s: 0, most_whole: 6}}\n"
        )
        definition = self._suite / "suite-definition.xml"
        entries = "".join(
            "<Execute><Test>local/eeio-dummy-1.0.0</Test><Arguments>level=filesystem operation=read"
            f" spatiality={way} cell=9 mode=noisy</Arguments><Description>noisy</Description>"
            "</Execute>"
            for way in ("sequential", "random")
        )
        end = "</PhoronixTestSuite>"
        definition.write_text(definition.read_text().replace(end, f"{entries}{end}"))
        arguments = [sys.executable, "-m", "eeio", *super().arguments()]
        done = _run(arguments, self.environment)
        assert done.returncode == 0, done.stderr
        (self.results / CAMPAIGN).rename(home / "ended")
        self._ended = (home / "ended/runs.jsonl").read_bytes()

    @property
    def suite(self) -> str:
        return str(self._suite)

    def prepare(self) -> None:
        shutil.copytree(self.home / "ended", self.results / CAMPAIGN)

    def arguments(self) -> Sequence[str]:
        if read_design(self.results / CAMPAIGN).extensions:
            return ("resume", CAMPAIGN)
        return ("resume", "--extend", CAMPAIGN, "--most", "500")

    @property
    def runs(self) -> int:
        return len(stored(self.home))

    def wrong_at_end(self) -> Iterator[str]:
        yield from super().wrong_at_end()
        content = (self.results / CAMPAIGN / "runs.jsonl").read_bytes()
        if not content.startswith(self._ended):
            yield "runs of before the extension are gone"
        campaign = load(self.results / CAMPAIGN)
        count = [run.experiment.id for run in campaign.runs].count
        if campaign.design.extensions != 1 or not campaign.design.targets:
            yield f"extended {campaign.design.extensions} times to {campaign.design.targets}"
        for id, many in campaign.design.targets.items():
            if count(id) < many:
                yield f"{id} has {count(id)} repetitions of {many}"


class Device(Target):
    """File systems on a loop device of the harness's own that was named with --erase."""

    name = "device"
    repetitions = 1
    experiments = 6
    node = ""

    @property
    def options(self) -> Sequence[str]:
        return (
            *super().options, "--device", self.node, "--erase", self.node,
            "--lose", "data", "--filesystem", "ext4,btrfs",
        )  # fmt: skip

    def prepare(self) -> None:
        image = self.home / "device.img"
        if not self.node:
            with image.open("wb") as file:
                file.truncate(128 << 20)
            done = _run(["losetup", "--find", "--show", "--direct-io=on", str(image)])
            if done.returncode != 0:
                raise UnavailableError(f"no loop device: {done.stderr.strip()}")
            self.node = done.stdout.strip()
        done = _run(["wipefs", "--all", "--quiet", self.node])
        assert done.returncode == 0, done.stderr

    def left(self) -> Iterator[str]:
        yield from super().left()
        try:
            os.close(os.open(self.node, os.O_RDONLY | os.O_EXCL))
        except OSError as error:
            yield f"{self.node}: {error.strerror}"

    def close(self) -> None:
        if self.node:
            _run(["losetup", "--detach", self.node])
        super().close()


class Import(Target):
    """A PTS result file: the campaign is there whole, or not at all."""

    name = "import"

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        done = self._import("whole")
        assert done.returncode == 0, done.stderr
        self._complete = (self.results / "whole/runs.jsonl").read_bytes()
        # A second import of the same file adds nothing.
        shutil.rmtree(self.results / "whole")

    @property
    def runs(self) -> int:
        return self._complete.count(b"\n")

    def _import(self, name: str) -> "subprocess.CompletedProcess[str]":
        arguments = [sys.executable, "-m", "eeio", "import", str(COMPOSITE), "--name", name]
        return _run(arguments, self.environment)

    def arguments(self) -> Sequence[str]:
        return ("import", str(COMPOSITE), "--name", CAMPAIGN)

    def wrong_at_end(self) -> Iterator[str]:
        path = self.results / CAMPAIGN / "runs.jsonl"
        if not path.exists() or path.read_bytes() != self._complete:
            yield "the import is not what one that nobody killed gives"

    def left(self) -> Iterator[str]:
        yield from super().left()
        if (self.results / CAMPAIGN).exists():
            yield from self.wrong_at_end()


ROOT = ("loop", "layers", "settings", "device", "applications", "workloads", "container", "reboot")
TARGETS = {
    kind.name: kind
    for kind in (
        Target, Filesystems, Layers, Study, Import, Adaptive, Extend, Device, Applications,
        Workloads, Container, Reboot, Checkouts, Resumes,
    )
}  # fmt: skip


def kill_over_and_over(target: Target, kills: int, seed: int) -> Outcome:
    """At least `kills` SIGKILLs, at moments that the seed draws, of `run`, `resume`, `import` and
    now and then of `restore`; after each is looked at what is left."""
    moments = random.Random(f"{seed}-{target.name}")
    outcome = Outcome(target.name)
    length_s = _length_s(target)
    while outcome.kills < kills:
        with _campaign(target):
            ended, tries = False, 0
            while not ended and not outcome.wrong:
                tries += 1
                if tries > _TRIES:
                    outcome.wrong.append(f"not ended after {tries - 1} starts")
                    break
                # Longer each time: one that takes longer than the first must end, too.
                longer_s = length_s * (1 + tries / 20)
                ended = _kill_one(target, moments, longer_s, outcome, kills)
            outcome.wrong += target.wrong_at_end() if not outcome.wrong else ()
            outcome.wrong += _after_restore(target)
            outcome.runs += target.runs
            outcome.campaigns += 1
            outcome.looked_at = target.looked_at
        if outcome.wrong:
            break
    return outcome


@contextmanager
def _campaign(target: Target) -> Iterator[None]:
    shutil.rmtree(target.results / CAMPAIGN, ignore_errors=True)
    target.prepare()
    target.kept = b""
    yield


def _length_s(target: Target) -> float:
    """How long a campaign takes that nobody kills: the moments lie within."""
    with _campaign(target):
        began_s = time.monotonic()
        process = start(*target.arguments(), environment=target.environment, before=target.before)
        code = process.wait(_COMMAND_S)
        length_s = time.monotonic() - began_s
        wrong = [*target.wrong_at_end(), *_after_restore(target)]
        if code not in target.codes or wrong:
            raise AssertionError(f"{target.name}: code {code} before any kill: {wrong}")
    return length_s


def _kill_one(
    target: Target, moments: random.Random, length_s: float, outcome: Outcome, kills: int
) -> bool:
    """Whether the campaign ended by itself."""
    if isinstance(target, Import) and (target.results / CAMPAIGN).exists():
        return True  # killed after it was in its place
    process = start(*target.arguments(), environment=target.environment, before=target.before)
    outcome.wrong += target.disturb(process, moments, length_s)
    outcome.kills += target.others_killed
    target.others_killed = 0
    if outcome.kills >= kills:
        code = process.wait(_COMMAND_S)
    elif _killed(process, moments.uniform(0, target.share * length_s), target):
        outcome.kills += 1
        outcome.wrong += target.killed(moments)
        outcome.wrong += _lost(target)
        choice = moments.random()
        if choice < 0.2:
            # The one that cleans up is killed too.
            restore = start(
                "doctor", "restore", environment=target.environment, before=target.before
            )
            outcome.kills += _killed(restore, moments.uniform(0, 0.6))
        if choice < 0.7:
            outcome.wrong += _after_restore(target)
        outcome.wrong += _lost(target)
        return False
    else:
        code = process.returncode
    if code not in target.codes:
        outcome.wrong.append(f"`eeio {' '.join(target.arguments())}` ended with code {code}")
    return code in (0, 3) or bool(outcome.wrong)


def _lost(target: Target) -> Iterator[str]:
    """Records that are gone since the last process was killed; what cannot be read."""
    folder = target.results / CAMPAIGN
    content = (folder / "runs.jsonl").read_bytes() if (folder / "runs.jsonl").exists() else b""
    if not content.startswith(target.kept):
        yield f"stored records are gone: {target.kept!r:.300} became {content!r:.300}"
    target.kept = content[: content.rfind(b"\n") + 1]
    if (folder / "machine.json").exists():
        try:
            load(folder)
        except EeioError as error:
            yield f"it cannot be read: {error}"


def _killed(
    process: "subprocess.Popen[bytes]", after_s: float, target: Target | None = None
) -> bool:
    """Whether it still ran then; it ends either way."""
    try:
        process.wait(after_s)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.kill(process.pid if target is None else target.victim(process), signal.SIGKILL)
        process.wait()
        return True
    return False


@contextmanager
def _stopped(pid: int) -> Iterator[threading.Event]:
    """A process that does not go on, when its children have ended, for some seconds at most. The
    event tells that it did go on."""
    continued = threading.Event()

    def go_on() -> None:
        continued.set()
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)

    timer = threading.Timer(_STOPPED_S, go_on)
    try:
        os.kill(pid, signal.SIGSTOP)
        timer.start()
        while _children(pid) and not continued.wait(0.01):
            pass
        yield continued
    finally:
        timer.cancel()
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def _children(pid: int) -> list[Path]:
    """Those that run, in /proc."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            fields = (path / "stat").read_text(errors="replace").rpartition(")")[2].split()
            if int(fields[1]) == pid and fields[0] != "Z":
                found.append(path)
    return found


def _after_restore(target: Target) -> list[str]:
    """What `eeio doctor restore` left."""
    if wrong := list(target.restore()):
        return wrong
    deadline_s = time.monotonic() + _PATIENCE_S
    while (left := list(target.left())) and time.monotonic() < deadline_s:
        time.sleep(0.05)
    return left


def _run(
    arguments: Sequence[str], environment: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        arguments, env=None if environment is None else dict(environment), stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=_COMMAND_S, check=False,
    )  # fmt: skip
