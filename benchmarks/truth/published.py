"""The world of the published data of Pavan et al. 2018 (doi 10.1002/cpe.4948): its runs, their
power at 2 Hz, the drift over a configuration's hours, and the pauses of its experiment 0."""

import csv
import math
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import numpy as np

from eeio.errors import EeioError
from eeio.exchange.importing import testlog
from eeio.measure.campaign.measurement import settle
from eeio.record.design import AdaptiveProtocol
from eeio.statistics.stopping import LENGTHS_S
from eeio_power.monitor import PowerMonitor
from eeio_power.reading import EnergyReading

from .world import METRICS, Draws, Experiment, Floats, Site, within_runs

PAUSE_S = 20.0
_DRIVES = ("HDD1", "HDD2", "SSD1", "SSD2")
_PERIOD_S = 0.5
# Power follows the log by up to 2 s.
_LAG = 4
# Smoothed bootstrap: the deviation of what is added to a drawn run, in that of its experiment.
_SMOOTH = 0.3
# Neighbours in the order of which the drift at a run is the median.
_NEIGHBOURS = 12
_SENTINEL = 1e30

Key = tuple[str, str, str, str]


def published_world(data: Path) -> list[Site]:
    """Raises EeioError where the data is not there."""
    tables = data / "initial_experiments" / "csv"
    if not tables.is_dir():
        raise EeioError(f"{tables} is missing: give the folder of the published data by --data")
    settled = settled_pauses(data)
    with (tables / "rms3_baseline.csv").open() as file:
        zero = float(np.median([float(row["rms3"]) for row in csv.DictReader(file, delimiter=";")]))
    return [
        _site(tables, machine, drive, zero, settled)
        for machine in ("PC", "CUBIE")
        for drive in _DRIVES
    ]


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig") as file:
        return list(csv.DictReader(file, delimiter=";"))


def _key(row: dict[str, str]) -> Key:
    return row["operation"], row["reqsize"], row["cache"], row["repetition"]


def _site(tables: Path, machine: str, drive: str, zero: float, settled: Sequence[float]) -> Site:
    of_run = {_key(row): row for row in _rows(tables / f"tempo_{machine}+{drive}.csv")}
    # In the order in which they were run.
    traces: dict[Key, list[tuple[float, float]]] = {}
    for row in _rows(tables / f"energia_{machine}+{drive}.csv"):
        rms = [float(row[f"rms{n}"]) for n in (1, 2, 3)]
        if _key(row) in of_run and max(rms) < _SENTINEL:
            watts = rms[0] * 500 * rms[1] / 5, 5 * (rms[2] - zero) / 0.66
            traces.setdefault(_key(row), []).append(watts)
    keys = [key for key in traces if not (key[0].endswith("read") and key[2] == "1")]
    names = sorted({key[:3] for key in keys})
    groups = [[key for key in keys if key[:3] == name] for name in names]
    experiments = tuple(
        _experiment(name, float(np.median([float(of_run[k]["tempo"]) for k in group])))
        for name, group in zip(names, groups, strict=True)
    )
    logs = {
        key: np.array(
            [math.log(float(of_run[key]["bandwidth"])), *np.log(_mean(traces[key], None))]
        )
        for key in keys
    }
    hours = _hours(of_run, list(traces))
    drift_at, drift = _drift(keys, logs, hours)
    for key, off in drift_at.items():
        logs[key] = logs[key] - off
    level = np.array([np.mean([logs[k] for k in group], axis=0) for group in groups])
    middle = np.array([np.median([logs[k] for k in group], axis=0) for group in groups])
    cuts = {key: _cut(traces[key]) for key in keys}
    deviation = np.array([np.std([logs[k][0] for k in group], ddof=1) for group in groups])

    def draw(rng: np.random.Generator, runs: int) -> Draws:
        complete = np.empty((len(groups), runs, len(METRICS)))
        cut = np.zeros((len(groups), runs, len(LENGTHS_S), len(METRICS)))
        for place, group in enumerate(groups):
            found = np.array([logs[k] for k in group])
            n = len(group)
            picked = rng.integers(0, n, runs)
            spread = found.std(axis=0, ddof=1)
            noise = rng.standard_normal((runs, len(METRICS)))
            apart = (found[picked] - level[place]) * math.sqrt(n / (n - 1))
            apart = (apart + _SMOOTH * spread * noise) / math.sqrt(1 + _SMOOTH**2)
            complete[place] = level[place] + apart
            cut[place, :, :, 1:] = np.array([cuts[k] for k in group])[picked]
        lasts = [e.complete_s for e in experiments]
        cut[..., 0] = within_runs(rng, deviation, lasts, runs)
        return Draws(complete, cut)

    return Site(
        f"{machine} {drive}", machine, drive, experiments, level, middle, draw, drift,
        max(hours.values()) - 1.2, settled,
    )  # fmt: skip


def _experiment(name: tuple[str, str, str], complete_s: float) -> Experiment:
    operation, size, cache = name
    buffer = "on" if cache == "1" else "off"
    return Experiment(
        "-".join(name),
        operation.removeprefix("rand"),
        "random" if operation.startswith("rand") else "sequential",
        int(size) << 10,
        buffer,
        complete_s,
        buffer == "off",
    )


def _mean(trace: Sequence[tuple[float, float]], length_s: float | None) -> Floats:
    """Watts of system and drive over the first seconds, without the lag; None: all."""
    kept = np.array(trace[_LAG:])
    if length_s is not None:
        kept = kept[: round(length_s / _PERIOD_S)]
    found: Floats = np.maximum(kept.mean(axis=0), 1e-3)
    return found


def _cut(trace: Sequence[tuple[float, float]]) -> Floats:
    """What the first seconds are off the whole, by length and power."""
    complete = np.log(_mean(trace, None))
    found: Floats = np.array([np.log(_mean(trace, s)) - complete for s in LENGTHS_S])
    return found


def _hours(of_run: dict[Key, dict[str, str]], order: Sequence[Key]) -> dict[Key, float]:
    """When each run began."""
    found, now_s = {}, 0.0
    for key in order:
        found[key] = now_s / 3600
        now_s += float(of_run[key]["tempo"]) + PAUSE_S
    return found


def _drift(
    keys: Sequence[Key], logs: dict[Key, Floats], hours: dict[Key, float]
) -> tuple[dict[Key, Floats], "_Drift"]:
    """Of the powers: the median, over the neighbours in the order, of what a run is off the median
    of its experiment."""
    medians = {
        name: np.median([logs[k] for k in keys if k[:3] == name], axis=0)
        for name in {key[:3] for key in keys}
    }
    rest = np.array([logs[k] - medians[k[:3]] for k in keys])
    smooth = np.array(
        [
            np.median(rest[max(0, n - _NEIGHBOURS) : n + _NEIGHBOURS + 1], axis=0)
            for n in range(len(keys))
        ]
    )
    smooth[:, 0] = 0.0
    smooth -= smooth.mean(axis=0)
    drift = _Drift(np.array([hours[k] for k in keys]), smooth)
    return dict(zip(keys, smooth, strict=True)), drift


class _Drift:
    def __init__(self, hours: Floats, smooth: Floats) -> None:
        self._hours, self._smooth = hours, smooth

    def __call__(self, hour: float) -> Floats:
        return np.array(
            [np.interp(hour, self._hours, self._smooth[:, m]) for m in range(len(METRICS))]
        )


# --- the pauses ----------------------------------------------------------------------------------


def settled_pauses(data: Path) -> list[float]:
    """How long the product's rule waits after each run of experiment 0, whose power was sampled
    through its pauses (PC, HDD1 and SSD2). That the drive stands still is not published: assumed.
    """
    found = []
    for folder in sorted((data / "experiment0_aug2017").glob("PC+*")):
        times, watts = _scope(next(folder.glob("pc+*.csv")))
        spans = testlog.read(next(folder.glob("log_testes_*.txt")))
        ends = [span.end_s for span in spans]
        idle = float(np.median(_last_of_pauses(times, watts, ends)))
        for end_s in ends[:-1]:
            # The scope's clock follows the log's.
            trace = _Trace(times, watts, end_s + _LAG * _PERIOD_S)
            settled = settle(
                AdaptiveProtocol(), trace, {("scope", "system"): idle}, (), PAUSE_S,
                sleep=trace.sleep, clock=trace.clock,
            )  # fmt: skip
            found.append(settled.after_s)
    return found


def _last_of_pauses(times: Floats, watts: Floats, ends: Sequence[float]) -> Floats:
    """The last 8 s of the pauses."""
    kept = np.zeros(len(times), dtype=bool)
    for end_s in ends[:-1]:
        kept |= (times >= end_s + 10) & (times <= end_s + 18)
    return watts[kept]


def _scope(path: Path) -> tuple[Floats, Floats]:
    """Unix seconds and watts; local time of Brazil, decimal commas."""
    times, watts = [], []
    for line in path.read_text(encoding="utf-8-sig").splitlines():
        parts = line.replace(",", ".").split(";")
        if len(parts) == 3 and parts[0][:2] == "20":
            values = float(parts[1]), float(parts[2])
            if max(values) < _SENTINEL:
                times.append(datetime.fromisoformat(f"{parts[0]}-03:00").timestamp())
                watts.append(values[0] * values[1])
    return np.array(times), np.array(watts)


class _Trace(PowerMonitor):
    """A meter that gives what was sampled, and a clock that begins with the pause."""

    def __init__(self, times: Floats, watts: Floats, start_s: float) -> None:
        self._times, self._watts, self._now_s = times, watts, start_s

    def clock(self) -> float:
        return self._now_s

    def sleep(self, seconds: float) -> None:
        self._now_s += seconds

    def energy(
        self, start_s: float, end_s: float, *, wait: bool = True
    ) -> tuple[EnergyReading, ...]:
        first, last = np.searchsorted(self._times, (start_s, end_s))
        watts = float(self._watts[first:last].mean())
        seconds = end_s - start_s
        return (
            EnergyReading(
                domain="system", meter="scope", kind="measured", power_w=watts,
                energy_j=watts * seconds, uncertainty_j=None, coverage=1.0, largest_gap_s=0.5,
                samples=int(last - first), lost=0, valid=True, reasons=(),
            ),
        )  # fmt: skip
