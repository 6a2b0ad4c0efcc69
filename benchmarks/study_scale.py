"""What the analysis of a study costs: the published data, and synthetic campaigns that grow.

Usage: study_scale.py [--study NAME --data DIR]

With --study NAME --data DIR (its published data, docs/studies/): seconds and peak memory of import
and all claims. Then campaigns of 25 000, 50 000 and 100 000 runs in memory: characterization and
all pairwise tests of one factor on three metrics; the growth is the ratio of the times. Then what
`eeio compare` makes of 5, 10, 20 and 40 campaigns of machines of their own, 60 experiments each,
without reading them: all effects and their text.
"""

import argparse
import resource
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from eeio.analysis.characterization import characterize
from eeio.comparison.campaigns import compare, named_cells
from eeio.comparison.cells import BANDWIDTH, EFFICIENCY, POWER, cells_of
from eeio.comparison.effects import effects
from eeio.record.design import PlannedExperiment
from eeio.record.imported_design import imported
from eeio.record.run import CacheLayers, EnergyReading, Experiment, Machine, Phase, Run
from eeio.record.store import Campaign
from eeio.report.document import render_terminal
from eeio.report.documents.comparison import document

REPETITIONS = 10
MACHINE = Machine(
    hostname="synthetic", architecture="x86_64", cpu_model=None, logical_cpus=2, governor=None,
    frequency_min_hz=None, frequency_max_hz=None, memory_bytes=None, kernel="none",
    distribution=None, virtualization=None, device="none", device_model=None,
    device_firmware=None, device_size_bytes=None, device_rotational=None,
    device_write_cache=None, scheduler=None, filesystem=None, mount_options=None,
    mkfs_options=None,
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--study")
    parser.add_argument("--data", type=Path)
    arguments = parser.parse_args()
    if arguments.data is not None:
        claims(arguments.study, arguments.data)
    before_s = None
    for count in (25_000, 50_000, 100_000):
        campaign = synthetic(count)
        start_s = time.perf_counter()
        rows = characterize(campaign)
        middle_s = time.perf_counter()
        cells = cells_of(campaign)
        metrics = (BANDWIDTH, POWER["system"], EFFICIENCY)
        found = effects(cells, factors=("buffer",), metrics=metrics)
        end_s = time.perf_counter()
        tests = sum(f.pairs for f in found) // 2
        took_s = end_s - start_s
        growth = f", x {took_s / before_s:.2f}" if before_s else ""
        before_s = took_s
        print(
            f"{count} runs: {len(rows)} rows in {middle_s - start_s:.2f} s, {tests} tests in "
            f"{end_s - middle_s:.2f} s; together {took_s:.2f} s{growth}"
        )
    for count in (5, 10, 20, 40):
        compared(count)


def compared(count: int) -> None:
    campaigns = [
        replace(
            synthetic(600, 1 + 0.07 * number),
            machine=replace(MACHINE, hostname=f"machine{number}"),
        )
        for number in range(count)
    ]
    start_s = time.perf_counter()
    found = compare(campaigns, named_cells(campaigns))
    assert found is not None
    lines = len(render_terminal(document(found)).splitlines())
    pairs = sum(effect.pairs for group in found.groups for effect in group.effects)
    took_s = time.perf_counter() - start_s
    print(
        f"{count} campaigns: {took_s:.2f} s, {lines} lines, {pairs} pairs, "
        f"{1e6 * took_s / pairs:.1f} us a pair"
    )


def claims(study: str, data: Path) -> None:
    """A fresh process, so that its peak memory is its own."""
    script = (
        "import sys; from eeio.cli import main; "
        "sys.exit(main(['replicate', *sys.argv[1:3], '-o', sys.argv[3]]))"
    )
    start_s = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", script, study, str(data), "/dev/null"],
        check=True, timeout=120, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    took_s = time.perf_counter() - start_s
    peak_mb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 / 1e6
    print(f"import and all claims: {took_s:.1f} s, peak memory {peak_mb:.0f} MB")


def synthetic(count: int, speed: float = 1.0) -> Campaign:
    """`count` runs: experiments with the cache on and off, ten repetitions each."""
    runs = []
    for number in range(count // REPETITIONS):
        buffer = "on" if number % 2 else "off"
        experiment = Experiment(
            level="filesystem", tool="fio", operation="write", spatiality="sequential",
            request_size_bytes=4096 * (1 + number // 2), cache=CacheLayers(buffer, None),
        )  # fmt: skip
        for repetition in range(REPETITIONS):
            # Distinct, spread by some percent, without a generator's cost.
            wobble = 1 + ((number * 7919 + repetition * 104_729) % 9973) / 99_730
            bandwidth = speed * (1.05 if buffer == "on" else 1.0) * 1e8 * wobble
            runs.append(_run(experiment, repetition + 1, len(runs), bandwidth, 40.0 * wobble**0.3))
    planned = [PlannedExperiment(run.experiment, "synthetic") for run in runs[::REPETITIONS]]
    design = imported("synthetic", "synthetic", "", planned, runs, preset="standard")
    return Campaign(Path("synthetic"), design, MACHINE, (), "synthetic", tuple(runs))


def _run(
    experiment: Experiment, repetition: int, order: int, bandwidth: float, power_w: float
) -> Run:
    energy = EnergyReading(
        "system", "synthetic", "measured", power_w, 60 * power_w, 1.0, 1.0, 0.1, 600, 0, True
    )
    phase = Phase(
        "write", "write", "sequential", experiment.request_size_bytes, int(60 * bandwidth),
        bandwidth, 0.0, 60.0, "synthetic", {}, (energy,),
    )  # fmt: skip
    return Run(
        experiment, repetition, order, "standard", "2026-01-01T00:00:00+00:00", 0.0, 60.0, 0,
        (phase,), "",
    )  # fmt: skip


if __name__ == "__main__":
    main()
