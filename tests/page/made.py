"""Campaigns of any size for the page, as a machine would have stored them."""

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from eeio.analysis.over_time import PowerSeries
from eeio.record.design import Design, Options, PlannedExperiment, PlannedRun, Protocol
from eeio.record.run import CacheLayers, EnergyReading, Experiment, Phase, Run
from eeio.record.store import Campaign
from tests.eeio_results.made import MACHINE

_RUN_S = 70.0
_WINDOW_S = (5.0, 65.0)


def experiments(count: int) -> list[Experiment]:
    """Operation, spatiality and buffer cache vary first, then the request size."""
    patterns = [
        (operation, spatiality, buffer)
        for operation in ("read", "write")
        for spatiality in ("sequential", "random")
        for buffer in ("off", "on")
    ]
    found = []
    for number in range(count):
        operation, spatiality, buffer = patterns[number % len(patterns)]
        found.append(
            Experiment(
                "filesystem", "fio", operation, spatiality, 4096 * (1 + number // len(patterns)),
                CacheLayers("off" if buffer == "off" else "on", None),
                flush="end" if operation == "write" else None,
            )
        )  # fmt: skip
    return found


def campaign(
    count: int = 8,
    repetitions: int = 3,
    *,
    name: str = "made",
    kinds: Sequence[tuple[str, str]] = (("system", "measured"), ("package", "measured")),
    measurement: bool = True,
    folder: Path = Path("made"),
    scale: float = 1.0,
) -> Campaign:
    """`count` experiments, each repeated, of a minute a run; `kinds` are domains and kinds of
    power, and `scale` is how much faster this machine is."""
    planned = [PlannedExperiment(one, "eeio-fio-1.0.0") for one in experiments(count)]
    order = [
        PlannedRun(number, planned[number % count], number // count + 1, number)
        for number in range(count * repetitions)
    ]
    design = Design(
        name=name, suite="eeio-suite", suite_title="Made campaigns",
        created_utc="2026-01-01T00:00:00+00:00", options=Options(seed=1),
        protocol=Protocol(repetitions, 0.0, 0.0, measurement), experiments=tuple(planned),
        not_measured=(), runs=tuple(order),
    )  # fmt: skip
    rng = random.Random(1)
    runs = tuple(_run(one, kinds, rng, scale) for one in order)
    idle = tuple(_reading(domain, kind, 30.0 / (1 + place), 60.0)
                 for place, (domain, kind) in enumerate(kinds))  # fmt: skip
    return Campaign(folder, design, replace(MACHINE, drive_label="disk"), idle, None, runs)


def _reading(domain: str, kind: str, power_w: float, lasts_s: float) -> EnergyReading:
    energy_j = power_w * lasts_s
    return EnergyReading(
        domain, "meter", kind, power_w, energy_j, 0.02 * energy_j, 1.0, 0.1,
        round(10 * lasts_s), 0, True,
    )  # fmt: skip


def _run(
    planned: PlannedRun, kinds: Sequence[tuple[str, str]], rng: random.Random, scale: float
) -> Run:
    experiment = planned.experiment.experiment
    size = experiment.request_size_bytes or 4096
    rate = scale * 2e8 * (1 + math.log2(size / 4096)) * (2 if experiment.operation == "read" else 1)
    rate *= rng.uniform(0.95, 1.05) * (1 if experiment.cache.buffer == "off" else 1.7)
    lasts_s = _WINDOW_S[1] - _WINDOW_S[0]
    power_w = 40 + 10 * rng.random() + rate / 1e8
    latency = size / rate
    metrics = {"iops": rate / size} | {
        f"latency_{name}_s": latency * factor
        for name, factor in (("p50", 0.9), ("p95", 1.4), ("p99", 2.0), ("p999", 4.0), ("max", 9.0))
    }
    operation, spatiality = experiment.operation or "read", experiment.spatiality or "random"
    phase = Phase(
        operation, operation, spatiality, size, round(rate * lasts_s), rate, *_WINDOW_S, "fio",
        metrics,
        tuple(_reading(domain, kind, power_w / (1 + place), lasts_s)
              for place, (domain, kind) in enumerate(kinds)),
        includes_flush=operation == "write",
    )  # fmt: skip
    return Run(
        experiment, planned.repetition, planned.order_index, "standard",
        "2026-01-01T00:00:00.000+00:00", _RUN_S * planned.order_index, _RUN_S, 0, (phase,),
        f"raw/{planned.order_index:05}", device="sda", device_reason="made", disk_cache_found="on",
    )  # fmt: skip


def power(of: Campaign) -> list[PowerSeries]:
    """Ten readings a second of every domain, with noise."""
    rng = random.Random(2)
    times = [0.1 * n for n in range(round(10 * _RUN_S * len(of.runs)))]
    keys = dict.fromkeys((r.domain, r.meter, r.kind) for r in of.idle)
    return [
        PowerSeries(key, times, [45 / (1 + place) + 4 * rng.random() for _ in times])
        for place, key in enumerate(keys)
    ]
