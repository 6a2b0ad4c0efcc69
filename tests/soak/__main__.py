"""`python -m tests.soak`: campaigns for hours, with faults at moments that a seed gives.

The campaigns have short runs on an ext4 image of their own, and a simulated RAPL of known power.
Faults: the tool or eeio is stopped for a while, the meter cannot be read, the wall clock is set;
less often eeio is interrupted or killed, or its results' disk is full, and the campaign is resumed.
A standard run takes about half a minute, so 2,880 runs are 24 hours of campaigns. Needs root.
"""

import argparse
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from eeio.record.run import Run
from eeio.record.store import load
from tests.clock import Clock
from tests.kill.harness import Target
from tests.profiles import programs
from tests.simulators import FakeRapl

POWER_W = 100.0
EXPERIMENTS = 3
_SOFT_S, _HARD_S = 5.0, 150.0
"""Mean times between faults that a campaign survives, and between those that end it."""
_SOFT = {"tool stopped": 3, "eeio stopped": 2, "meter fails": 3, "clock set": 3}
_HARD = {"killed": 2, "interrupted": 2, "disk full": 1}
_LIVED_RUNS = 250
"""Runs that a process must have stored before its memory is judged."""
_MOST_GROWTH = 0.05
_ENDED = {0: "all valid", 3: "some invalid"}


@dataclass
class Life:
    """One process of eeio: resident memory and open files, sampled while it lived."""

    resident_kib: list[int] = field(default_factory=list)
    files: list[int] = field(default_factory=list)
    runs: int = 0

    def sample(self, pid: int) -> None:
        with suppress(OSError, ValueError, StopIteration):
            status = Path(f"/proc/{pid}/status").read_text()
            line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
            files = len(list(Path(f"/proc/{pid}/fd").iterdir()))
            self.resident_kib.append(int(line.split()[1]))
            self.files.append(files)

    @property
    def growth(self) -> float | None:
        """Of the median resident memory from the second fifth to the last; None if too short."""
        fifth = len(self.resident_kib) // 5
        if self.runs < _LIVED_RUNS or fifth < 5:
            return None
        early = statistics.median(self.resident_kib[fifth : 2 * fifth])
        return statistics.median(self.resident_kib[-fifth:]) / early - 1

    @property
    def more_files(self) -> int:
        fifth = max(1, len(self.files) // 5)
        return max(self.files[-fifth:], default=0) - max(self.files[fifth : 2 * fifth], default=0)


class Soaked(Target):
    """Campaigns on an ext4 image; their results are on a small disk of their own."""

    def __init__(self, home: Path, repetitions: int, seed: int) -> None:
        super().__init__(home)
        presets = home / "profiles/eeio-dummy-1.0.0/presets.conf"
        presets.write_text(presets.read_text().replace("sleep_s=0.02", "sleep_s=0.15"))
        self.repetitions = repetitions
        self.random = random.Random(seed)
        self.clock = Clock(home)
        self.rapl = FakeRapl(home / "powercap", power_w=lambda _: POWER_W)
        self.faults: Counter[str] = Counter()
        self.lives: list[Life] = []
        self.wrong: list[str] = []
        self.invalid: Counter[str] = Counter()
        self.runs_done = self.campaigns = self.readings = 0

    def typed(self, name: str) -> list[str]:
        if (self.results / name / "campaign.json").exists():
            return ["resume", name]
        return [
            "run", "dummy-suite", "--name", name, "--meter", f"rapl,root={self.rapl.root}",
            "--directory", str(self.home / "target"), "--filesystem", "ext4", "--seed",
            str(self.random.randrange(1000)), "--repetitions", str(self.repetitions),
        ]  # fmt: skip

    def campaign(self, name: str, until_s: float) -> None:
        """One campaign to its end, however often it has to be resumed; None of it if the time is
        over."""
        for _ in range(200):
            code = self.process(name, until_s)
            if code in _ENDED:
                self.judge(name)
                return
            if time.monotonic() > until_s:
                return
        self.wrong.append(f"{name}: 200 processes did not complete it")

    def process(self, name: str, until_s: float) -> int:
        """A process of the campaign, with faults; its status."""
        before = self.stored_runs(name)
        with (self.home / "log").open("wb") as log:
            arguments = [sys.executable, "-m", "eeio", *self.typed(name)]
            environment = {**self.environment, **self.clock.environment}
            process = subprocess.Popen(
                arguments, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        life, hard = Life(), None
        now_s = time.monotonic()
        soft_s, hard_s = (now_s + self.random.expovariate(1 / mean) for mean in (_SOFT_S, _HARD_S))
        while process.poll() is None:
            time.sleep(0.2)
            life.sample(process.pid)
            now_s = time.monotonic()
            if now_s > until_s:
                process.send_signal(signal.SIGTERM)
                process.wait(120)
                hard = "interrupted"
            elif now_s > hard_s and hard is None:
                hard = self._chosen(_HARD)
                self._hard(hard, process)
            elif now_s > soft_s:
                self._soft(self._chosen(_SOFT), process)
                soft_s = time.monotonic() + self.random.expovariate(1 / _SOFT_S)
        life.runs = self.stored_runs(name) - before
        self.lives.append(life)
        if (life.growth or 0.0) > _MOST_GROWTH:
            self.wrong.append(f"{name}: memory grew by {100 * (life.growth or 0):.1f} %")
        if life.growth is not None and life.more_files > 2:
            self.wrong.append(f"{name}: {life.more_files} more files are open")
        if process.returncode not in _ENDED and hard is None:
            text = (self.home / "log").read_text(errors="replace")[-800:]
            self.wrong.append(f"{name}: status {process.returncode} without a reason: {text}")
        return process.returncode

    def _chosen(self, weights: Mapping[str, int]) -> str:
        (name,) = self.random.choices(list(weights), list(weights.values()))
        self.faults[name] += 1
        return name

    def _soft(self, fault: str, process: "subprocess.Popen[bytes]") -> None:
        lasts_s = self.random.uniform(0.1, 2.0)
        if fault == "clock set":
            self.clock.set(self.random.choice([0, 2, -2, 3600, -86400]))
            return
        if fault == "meter fails":
            zone = self.random.choice(self.rapl.zones).folder
            self.rapl.fail(zone)
            time.sleep(lasts_s)
            self.rapl.recover(zone)
            return
        pids = [process.pid] if fault == "eeio stopped" else list(_below(process.pid))
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        time.sleep(lasts_s)
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def _hard(self, fault: str, process: "subprocess.Popen[bytes]") -> None:
        if fault == "killed":
            process.kill()
            return
        if fault == "interrupted":
            process.send_signal(self.random.choice([signal.SIGINT, signal.SIGTERM, signal.SIGHUP]))
            return
        filler = self.results / ".filler"
        with suppress(OSError), filler.open("wb", buffering=0) as file:
            while file.write(bytes(1 << 16)):
                pass
        with suppress(subprocess.TimeoutExpired):
            process.wait(30)
        filler.unlink(missing_ok=True)

    def stored_runs(self, name: str) -> int:
        path = self.results / name / "runs.jsonl"
        return path.read_bytes().count(b"\n") if path.exists() else 0

    def judge(self, name: str) -> None:
        """The records of a campaign that has ended, and what is left of it."""
        self.campaigns += 1
        campaign = load(self.results / name)
        self.runs_done += len(campaign.runs)
        order = sorted(run.order_index for run in campaign.runs)
        if order != list(range(self.repetitions * EXPERIMENTS)):
            self.wrong.append(f"{name}: {len(order)} runs of {self.repetitions * EXPERIMENTS}")
        for run in campaign.runs:
            self.wrong += (f"{name} run {run.order_index}: {why}" for why in self._of_run(run))
        self.wrong += (f"{name}: left: {message}" for message in (*self.restore(), *self.left()))
        shutil.rmtree(self.results / name)

    def _of_run(self, run: Run) -> Iterator[str]:
        if run.validity:
            self.invalid[run.validity[0][:60]] += 1
            return
        if not run.phases:
            yield "valid, but without a phase"
        for phase in run.phases:
            watts = 0.0
            for reading in phase.energy:
                if reading.power_w is None or not reading.valid:
                    if not reading.reasons:
                        yield f"{reading.domain}: no power and no reason"
                    break
                watts += reading.power_w
            else:
                self.readings += 1
                gap_s = max(r.largest_gap_s or 0.0 for r in phase.energy)
                lasted_s = (phase.end_s or 0.0) - (phase.start_s or 0.0)
                late_s = self.rapl.largest_lag_s + 2 * gap_s
                share = max(0.1, 0.03 + late_s / lasted_s)
                if abs(watts - POWER_W) > share * POWER_W:
                    yield f"{watts:.1f} W, but {POWER_W:g} W were drawn"

    def left(self) -> Iterator[str]:
        own = f" {self.results} "  # the small disk
        yield from (message for message in super().left() if own not in message)


def _below(pid: int) -> Iterator[int]:
    """The processes that this one and its children started."""
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, task.read_text().split()):
                yield child
                yield from _below(child)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=120.0)
    parser.add_argument("--repetitions", type=int, default=250, help="of the three experiments")
    parser.add_argument("--seed", type=int, default=1, help="repeats the schedule of faults")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    until_s = time.monotonic() + 60 * arguments.minutes
    with tempfile.TemporaryDirectory(prefix="eeio-soak-", dir="/var/tmp") as folder:
        home = Path(folder).resolve() / "home"
        home.mkdir()
        (home / "data/eeio").mkdir(parents=True)
        soaked = Soaked(home, arguments.repetitions, arguments.seed)
        with programs.memory_disk(home / "data/eeio/results", "size=256m"), soaked.rapl:
            number = 0
            while time.monotonic() < until_s:
                number += 1
                soaked.campaign(f"soak{number}", until_s)
                print(_line(soaked), flush=True)
            soaked.wrong += (f"left: {message}" for message in (*soaked.restore(), *soaked.left()))
    for message in soaked.wrong:
        print(f"  {message}", file=sys.stderr)
    for reason, count in soaked.invalid.most_common(12):
        print(f"  {count} runs invalid: {reason}")
    return 1 if soaked.wrong else 0


def _line(soaked: Soaked) -> str:
    growths = [life.growth for life in soaked.lives if life.growth is not None]
    most = f"at most {100 * max(growths):+.1f} % in {len(growths)} processes" if growths else "-"
    faults = ", ".join(f"{count} {name}" for name, count in sorted(soaked.faults.items()))
    return (
        f"{soaked.campaigns} campaigns, {soaked.runs_done} runs, {sum(soaked.invalid.values())} "
        f"invalid, {soaked.readings} powers compared; memory {most}; {faults}; "
        f"{len(soaked.wrong)} wrong"
    )


if __name__ == "__main__":
    sys.exit(main())
