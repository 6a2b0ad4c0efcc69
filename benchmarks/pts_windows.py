"""What the PTS module sees of a trial, against PTS's own clock, a known truth, and PTS's own
monitoring; and what PTS takes for itself per trial, against `eeio run`.

    python -m benchmarks.pts_windows windows --trials 50
    python -m benchmarks.pts_windows truth --trials 10
    python -m benchmarks.pts_windows harness --trials 10
    python -m benchmarks.pts_windows cost --trials 2

Needs PTS (PTS_DIR or PATH) and, for `truth` and `cost`, root: the simulated meter is mounted over
/sys/class in a mount namespace, where PTS's sys.power sensor and our hwmon meter both find it: the
same ACPI power meter, which gives a mean power and an energy counter. The figures are in
benchmarks/README.md.
"""

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from eeio.pts import composite
from eeio.pts.composite import ResultFile

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.pts.harness import ROOT, TRIVIAL, PtsHome, make_trivial_profile
from tests.simulators.hwmon import FakeHwmon

STEP_S = 0.002
# The meter shows the mean of its last second, as ACPI meters do, ten times a second.
MEAN_S = 1.0
SHOWN_EVERY_S = 0.1


def true_energy_j(t_s: float) -> float:
    """Energy since 0 of 60 W with 140 W for 0.45 s in every 1.3 s, exactly."""
    complete, rest_s = divmod(t_s, 1.3)
    return 60.0 * t_s + 80.0 * (0.45 * complete + min(rest_s, 0.45))


class Meter(threading.Thread):
    """An ACPI power meter in real time."""

    def __init__(self, root: Path) -> None:
        super().__init__(daemon=True)
        self._fake = FakeHwmon(root)
        zero = {"power1_average": 90_000_000, "energy1_input": 0}
        self._chip = self._fake.add_chip("power_meter", zero)
        (self._chip / "device").mkdir()
        self._fake.set(self._chip, "device/name", "power_meter")
        self._fake.set(self._chip, "device/power1_average", 90_000_000)
        self._begun_s = time.monotonic()
        self._ended = threading.Event()

    def run(self) -> None:
        shown_s = 0.0
        while not self._ended.wait(STEP_S):
            now_s = time.monotonic() - self._begun_s
            self._fake.set(self._chip, "energy1_input", round(true_energy_j(now_s) * 1e6))
            if now_s > shown_s + SHOWN_EVERY_S and now_s > MEAN_S:
                shown_s = now_s
                mean_w = (true_energy_j(now_s) - true_energy_j(now_s - MEAN_S)) / MEAN_S
                for file in ("power1_average", "device/power1_average"):
                    self._fake.set(self._chip, file, round(mean_w * 1e6))

    def energy_j(self, start_s: float, end_s: float) -> float:
        """The truth between two monotonic times."""
        return true_energy_j(end_s - self._begun_s) - true_energy_j(start_s - self._begun_s)

    def stop(self) -> None:
        self._ended.set()
        self.join()


def benchmark(home: PtsHome, trials: int, sleep_s: float, environment: dict[str, str],
              before: tuple[str, ...] = ()) -> tuple[ResultFile, float]:  # fmt: skip
    """One test of `trials` trials; the result file and the wall time, s."""
    factors = f"level=filesystem operation=read sleep_s={sleep_s}"
    home.add_suite("eeio-figures", [(TRIVIAL, factors, "Trivial")])
    settings = {
        "TEST_RESULTS_NAME": "figures",
        "FORCE_TIMES_TO_RUN": str(trials),
        "EEIO_PRESET": "quick",
        "EEIO_IDLE_S": "0",
    }
    home.run("profile", "install", "eeio-figures", timeout_s=60)
    begun_s = time.monotonic()
    done = home.run("run", "eeio-figures", environment=settings | environment,
                    timeout_s=60 + trials * (sleep_s + 10), before=before)  # fmt: skip
    wall_s = time.monotonic() - begun_s
    if not home.result("figures").is_file():
        raise SystemExit(f"PTS gave no result file:\n{done.output[-2000:]}")
    return composite.read(home.result("figures")), wall_s


def trials_of(file: ResultFile) -> list[dict[str, float]]:
    """Windows and energies as the module wrote them."""
    for result in file.results:
        own = result.entries[0].own
        if own.get("quantity") == "energy_j":
            return [
                {
                    "start_s": t["start_s"],
                    "duration_s": t["duration_s"],
                    "energy_j": t["reading"]["energy_j"],
                    "uncertainty_j": t["reading"]["uncertainty_j"],
                }
                for t in own["trials"]
            ]
    raise SystemExit("no energy in the result file")


def windows(folder: Path, trials: int) -> None:
    """The module's windows against PTS's own run times, which it rounds to 0.01 s."""
    home = PtsHome(folder / "pts")
    home.add_profile(make_trivial_profile(folder))
    file, wall_s = benchmark(home, trials, 0.5, {"EEIO_METER": "modelled"})
    ours = [t["duration_s"] for t in trials_of(file)]
    bandwidth = next(r for r in file.results if r.scale == "MB/s")
    theirs = bandwidth.entries[0].run_times_s
    differences = [b - a for a, b in zip(ours, theirs, strict=True)]
    print(f"{len(ours)} trials; PTS's run time minus our window, s: "
          f"smallest {min(differences):+.4f}, largest {max(differences):+.4f}, "
          f"mean {sum(differences) / len(differences):+.4f}")  # fmt: skip
    print(f"wall time {wall_s:.1f} s, trials {sum(theirs):.1f} s: "
          f"{(wall_s - sum(theirs)) / trials:.2f} s of PTS a trial")  # fmt: skip


def truth(folder: Path, trials: int) -> None:
    """Our energy and PTS's own mean power on one meter, in one session."""
    home = PtsHome(folder / "pts")
    home.add_profile(make_trivial_profile(folder))
    (folder / "class").mkdir()
    meter = Meter(folder / "class" / "hwmon")
    meter.start()
    # The profile sleeps 2 s and claims a bandwidth; what matters is the meter.
    mount = f'mount --bind {folder}/class /sys/class && exec "$@"'
    file, _ = benchmark(
        home, trials, 2.0,
        {"EEIO_METER": "hwmon", "MONITOR": "sys.power", "PERFORMANCE_PER_SENSOR": "sys.power",
         "PTS_MODULES": "eeio_power,system_monitor"},
        before=("sh", "-c", mount, "sh"),
    )  # fmt: skip
    meter.stop()
    rows = trials_of(file)
    errors, sure = [], []
    for row in rows:
        true_j = meter.energy_j(row["start_s"], row["start_s"] + row["duration_s"])
        errors.append(row["energy_j"] / true_j - 1)
        sure.append(row["uncertainty_j"] / true_j)
    true_w = [
        meter.energy_j(r["start_s"], r["start_s"] + r["duration_s"]) / r["duration_s"] for r in rows
    ]
    print(f"{len(rows)} trials of 2 s; true mean power of a trial {min(true_w):.1f} to "
          f"{max(true_w):.1f} W")  # fmt: skip
    print(f"ours: error of a trial's energy {min(errors):+.2%} to {max(errors):+.2%}, "
          f"uncertainty given {min(sure):.2%} to {max(sure):.2%}")  # fmt: skip
    for result in file.results:
        text = f"{result.title} {result.description}"
        if "eeio" in result.entries[0].json or result.scale in ("MB/s", "J"):
            continue
        values = [v for word in result.entries[0].value.split(",") for v in [float(word)]]
        print(f"theirs: {text.strip()} [{result.scale}]: {len(values)} values, "
              f"mean {sum(values) / len(values):.2f}")  # fmt: skip


def harness(folder: Path, trials: int) -> None:
    """Wall time beyond the tool's own, `eeio run` on the suite that PTS runs in `windows`."""
    profile = make_trivial_profile(folder / "profiles")
    suite = folder / "suites" / "eeio-figures"
    suite.mkdir(parents=True)
    rows = f"<Execute><Test>local/{profile.name}</Test><Arguments>level=filesystem operation=read \
sleep_s=0.5</Arguments><Description>Trivial</Description></Execute>"
    (suite / "suite-definition.xml").write_text(
        f"<PhoronixTestSuite><SuiteInformation><Title>f</Title></SuiteInformation>{rows}"
        "</PhoronixTestSuite>"
    )
    (suite / "protocol.yaml").write_text(
        "presets:\n  quick: {repetitions: 1, settle_s: 0, idle_s: 0, is_measurement: false}\n"
    )
    (folder / "data").mkdir()
    environment = {**os.environ, "XDG_DATA_HOME": str(folder / "xdg"),
                   "EEIO_TEST_PROFILES": str(folder / "profiles")}  # fmt: skip
    begun_s = time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "eeio", "run", str(suite), "--preset", "quick", "--name", "figures",
         "--directory", str(folder / "data"), "--meter", "modelled", "--repetitions", str(trials)],
        env=environment, cwd=ROOT, timeout=600, check=False, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    wall_s = time.monotonic() - begun_s
    from eeio.record.store import load

    runs = load(folder / "xdg" / "eeio" / "results" / "figures").runs
    spent_s = sum(run.duration_s for run in runs)
    print(f"{len(runs)} runs: wall time {wall_s:.1f} s, runs {spent_s:.1f} s: "
          f"{(wall_s - spent_s) / len(runs):.2f} s of eeio a trial, report included")  # fmt: skip


class Usage(threading.Thread):
    """CPU time of all processes below this one, every 5 s; the median tells of the sleep."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._shares: list[float] = []
        self._ended = threading.Event()

    def __enter__(self) -> "Usage":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self.join()

    def run(self) -> None:
        before, before_s = _used_ns(), time.monotonic()
        while not self._ended.wait(5.0):
            now, now_s = _used_ns(), time.monotonic()
            used_ns = sum(now[pid] - before[pid] for pid in now.keys() & before.keys())
            self._shares.append(used_ns / 1e9 / (now_s - before_s))
            before, before_s = now, now_s

    def percent(self) -> float:
        return 100 * statistics.median(self._shares)


def _used_ns() -> dict[int, int]:
    """Of every process below this one, as the scheduler counts it."""
    parents, used = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            pid = int(folder.name)
            parents[pid] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            tasks = [task.read_text() for task in folder.glob("task/*/schedstat")]
            used[pid] = sum(int(text.split()[0]) for text in tasks)

    def is_below(pid: int) -> bool:
        while pid in parents:
            pid = parents[pid]
            if pid == os.getpid():
                return True
        return False

    return {pid: used_ns for pid, used_ns in used.items() if is_below(pid)}


def cost(folder: Path, trials: int) -> None:
    """CPU time of PTS, its monitoring and ours, while a test only sleeps for 60 s."""
    (folder / "class").mkdir()
    meter = Meter(folder / "class" / "hwmon")
    meter.start()
    mount = f'mount --bind {folder}/class /sys/class && exec "$@"'
    profile = make_trivial_profile(folder)
    for name, settings in (
        ("without power", {"EEIO_METER": "none"}),
        ("system_monitor", {"EEIO_METER": "none", "MONITOR": "sys.power",
                            "PTS_MODULES": "eeio_power,system_monitor"}),
        ("eeio_power, 10 Hz", {"EEIO_METER": "hwmon"}),
    ):  # fmt: skip
        home = PtsHome(folder / name.replace(" ", "-"))
        home.add_profile(profile)
        with Usage() as usage:
            file, _ = benchmark(home, trials, 60.0, settings, before=("sh", "-c", mount, "sh"))
        print(f"{name}: {usage.percent():.3f} % of a core while the test sleeps; "
              f"{len(file.results)} results", flush=True)  # fmt: skip
    meter.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("figure", choices=("windows", "truth", "harness", "cost"))
    parser.add_argument("--trials", type=int, default=10)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/var/tmp", ignore_cleanup_errors=True) as folder:
        figure = {"windows": windows, "truth": truth, "harness": harness, "cost": cost}[
            arguments.figure
        ]
        figure(Path(folder), arguments.trials)


if __name__ == "__main__":
    main()
