"""Records made by hand, small enough to check a table by eye."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from eeio.record.design import Design, Options, PlannedExperiment, PlannedRun, Protocol
from eeio.record.run import (
    CacheLayers,
    DeviceCounters,
    Durable,
    EnergyReading,
    Experiment,
    Machine,
    Phase,
    Run,
    Tool,
)
from eeio.record.store import Store

EXPERIMENT = Experiment(
    level="filesystem",
    tool="fio",
    operation="read",
    spatiality="sequential",
    request_size_bytes=4096,
    cache=CacheLayers("off", None),
    arguments=(("file_size", "1g"),),
)

MACHINE = Machine(
    hostname="board",
    architecture="armv7l",
    cpu_model="Cortex-A7",
    logical_cpus=2,
    governor="ondemand",
    frequency_min_hz=144_000_000,
    frequency_max_hz=960_000_000,
    memory_bytes=2 << 30,
    kernel="6.1",
    distribution=None,
    virtualization=None,
    device="sda",
    device_model="SSD",
    device_firmware="1",
    device_size_bytes=10**11,
    device_rotational=False,
    device_write_cache="write back",
    scheduler="none",
    filesystem="ext4",
    mount_options="rw",
    mkfs_options=None,
    tools=(Tool("fio", "/usr/bin/fio", "fio-3.33", "ab" * 32, "system"),),
    missing={"distribution": "no /etc/os-release"},
)


def energy(
    power_w: float | None,
    kind: str = "measured",
    domain: str = "system",
    reasons: tuple[str, ...] = (),
) -> EnergyReading:
    """A reading over a window of 2 s."""
    return EnergyReading(
        domain=domain,
        meter="meter",
        kind=kind,
        power_w=power_w,
        energy_j=None if power_w is None else 2 * power_w,
        uncertainty_j=None if power_w is None else 0.1,
        coverage=1.0,
        largest_gap_s=0.1,
        samples=20,
        lost=0,
        valid=power_w is not None,
        reasons=reasons,
    )


def phase(
    bandwidth_bytes_per_s: float | None,
    energy: tuple[EnergyReading, ...] = (),
    validity: tuple[str, ...] = (),
) -> Phase:
    return Phase(
        name="read",
        operation="read",
        spatiality="sequential",
        request_size_bytes=4096,
        bytes_moved=round(2 * bandwidth_bytes_per_s) if bandwidth_bytes_per_s else 1000,
        bandwidth_bytes_per_s=bandwidth_bytes_per_s,
        start_s=0.0,
        end_s=2.0,
        window_source="test",
        metrics={"iops": 3.0},
        energy=energy,
        validity=validity,
    )


WRITE = replace(EXPERIMENT, operation="write", cache=CacheLayers("on", None), flush="none")
"""A buffered write that the tool does not flush."""


def written(
    power_w: float | None = 50.0,
    *,
    durable: bool = True,
    flush: float = 2.0,
    includes_flush: bool = False,
    metrics: Mapping[str, float] = MappingProxyType({}),
    uncertainty_j: float = 0.1,
) -> Phase:
    """A buffered write of 1 GB: 2 s at 500 MB/s into the page cache at 80 W, then `flush` more
    seconds until it is on the device; all of that at `power_w`, with that uncertainty."""
    complete_s = 2.0 + flush
    until = None
    if durable:
        reading = energy(power_w)
        if power_w is not None:
            reading = replace(reading, energy_j=complete_s * power_w, uncertainty_j=uncertainty_j)
        until = Durable(complete_s, 1e9 / complete_s, "syncfs", (reading,))
    return replace(
        phase(500e6, (energy(80.0),)),
        name="write",
        operation="write",
        until_durable=until,
        durable_reason=None if durable else "another write of the run came after it",
        includes_flush=includes_flush,
        metrics=dict(metrics),
    )


def run(
    order_index: int,
    phases: tuple[Phase, ...] = (),
    experiment: Experiment = EXPERIMENT,
    validity: tuple[str, ...] = (),
) -> Run:
    return Run(
        experiment=experiment,
        repetition=order_index + 1,
        order_index=order_index,
        preset="standard",
        started_utc="2026-01-01T00:00:00.000+00:00",
        started_monotonic_s=10.0,
        duration_s=2.5,
        exit_code=0,
        phases=phases,
        raw="raw/x",
        device="sda",
        device_before=DeviceCounters(0, 0),
        device_after=DeviceCounters(1000, 0),
        disk_cache_found="on",
        validity=validity,
    )


def design(name: str, runs: int, *experiments: Experiment, measurement: bool = True) -> Design:
    """A campaign of one experiment, or of those given; all runs are of the first."""
    planned = [
        PlannedExperiment(experiment, f"eeio-{experiment.tool}-1.0.0")
        for experiment in experiments or (EXPERIMENT,)
    ]
    return Design(
        name=name,
        suite="suite",
        suite_title="Suite",
        created_utc="2026-01-01T00:00:00+00:00",
        options=Options(seed=1),
        protocol=Protocol(runs, 0.0, 0.0, measurement),
        experiments=tuple(planned),
        not_measured=(),
        runs=tuple(PlannedRun(n, planned[0], n + 1, 0) for n in range(runs)),
    )


def in_turn(plan: Design) -> Design:
    """Its runs are of one experiment after the other, again and again."""
    count = len(plan.experiments)
    runs = (replace(one, experiment=plan.experiments[n % count]) for n, one in enumerate(plan.runs))
    return replace(plan, runs=tuple(runs))


def stored(
    folder: Path,
    runs: Iterable[Run],
    plan: Design | None = None,
    *,
    machine: Machine = MACHINE,
    idle: Sequence[EnergyReading] = (),
    idle_reason: str | None = None,
) -> Path:
    """A campaign of these runs, of one experiment unless there is a plan; its folder."""
    done = list(runs)
    store = Store(folder)
    store.create(plan or design(folder.name, len(done)))
    store.write_machine(machine)
    store.write_idle(idle, idle_reason)
    store.append_all(done)
    return folder
