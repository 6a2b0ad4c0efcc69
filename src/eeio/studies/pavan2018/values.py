"""The published data, by the paper's names of its parts, and each figure of the paper that is no
difference between two experiments, computed anew."""

import statistics as descriptive
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from eeio.comparison.cells import (
    BANDWIDTH,
    EFFICIENCY,
    J_PER_GB,
    POWER,
    Cell,
    Measured,
    cells_of,
    fits,
)
from eeio.comparison.differences import Difference, differences, largest
from eeio.comparison.pairing import pairs
from eeio.statistics.rank_tests import mann_whitney
from eeio.studies import Source
from eeio.units.sizes import KIB, MIB, format_size

PC, MPSOC = "PC", "MPSoC"


class Data:
    """The published data, by the paper's names of its parts.

    Campaigns are known by their names in the import (`pc-hdd1`, `experiment2-mpsoc-ssd2`, ...);
    stored names may have a prefix.
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        self.main: dict[tuple[str, str], Source] = {}
        self.others: dict[str, Source] = {}
        for source in sources:
            campaign = source.campaign
            name = campaign.name
            machine, device = campaign.machine.hostname, campaign.machine.device or ""
            if "experiment" in name or "lmbench" in name:
                at = name.find("experiment") if "experiment" in name else name.find("lmbench")
                self.others[name[at:]] = source
            elif name.endswith(f"{machine}-{device}".lower()):
                self.main[machine, device] = source

    @cached_property
    def cells(self) -> list[Cell]:
        """The 96 experiments, with efficiencies by the paper's definition."""
        sources = self.main.values()
        cells = []
        for s in sources:
            for cell in cells_of(s.campaign):
                cells.append(with_paper_efficiency(cell))
        return cells

    def missing(self) -> list[str]:
        """Configurations that the paper has and the data does not."""
        devices = ("HDD1", "HDD2", "SSD1", "SSD2")
        return [
            f"{machine} with {device}"
            for machine in (PC, MPSOC)
            for device in devices
            if (machine, device) not in self.main
        ]

    def cell(self, **levels: str) -> Cell:
        """The one cell with these levels."""
        fitting = [cell for cell in self.cells if fits(cell, levels)]
        if len(fitting) != 1:
            raise KeyError(f"{len(fitting)} experiments with {levels}")
        return fitting[0]

    def idle(self, machine: str, device: str, domain: str) -> float:
        """Median of the idle samples, W (section 5)."""
        return descriptive.median(self.main[machine, device].idle_watts[domain])

    def busy(self, machine: str, device: str, metric: str) -> Cell:
        """The experiment without cache that takes most (figure 6)."""
        chosen = []
        for cell in self.cells:
            if fits(cell, {"machine": machine, "device": device, "buffer": "off"}):
                chosen.append(cell)
        return max(chosen, key=lambda cell: cell.median(metric))


def with_paper_efficiency(cell: Cell) -> Cell:
    """The efficiency of each run is its bandwidth over its mean power (section 3), and that of the
    experiment their median. Elsewhere eeio divides the bytes by the energy of the window, which
    contains the start and end of a run, too, and takes the reciprocal of the median J/GB."""
    of_runs, _ = cell.together(BANDWIDTH, POWER["system"])
    values = tuple(bandwidth / watts for bandwidth, watts in of_runs)
    if not values:
        return cell
    figures = {}
    for name, figure in cell.figures.items():
        if name != J_PER_GB:
            figures[name] = figure
    return replace(cell, figures={**figures, EFFICIENCY: Measured(values)})


_SYSTEM, _DEVICE = POWER["system"], POWER["device"]
_UNNAMED = "the paper does not say which experiments it takes; "


@dataclass(frozen=True)
class Value:
    """A figure with a specific computation."""

    value: float | None
    cells: tuple[str, ...] = ()
    reason: str | None = None
    p: float | None = None


def names_of(difference: Difference) -> tuple[str, str]:
    return difference.higher.label(), difference.lower.label()


def _experiments(data: Data) -> Value:
    return Value(float(len(data.cells)))


def _configurations(data: Data) -> Value:
    return Value(float(len(data.main)))


def _repetitions(data: Data) -> Value:
    counts = {cell.n(BANDWIDTH) for cell in data.cells}
    if len(counts) != 1:
        return Value(None, reason=f"unequal: {sorted(counts)}")
    return Value(float(counts.pop()))


def _sample_period(data: Data) -> Value:
    """The log of experiment 0 has times: a run's duration over its samples."""
    periods = []
    for name, source in data.others.items():
        if name.startswith("experiment0"):
            for run in source.campaign.runs:
                for phase in run.phases:
                    for reading in phase.energy:
                        if reading.samples:
                            periods.append(run.duration_s / reading.samples)
    return Value(1e3 * descriptive.median(periods), ("experiment 0",))


def _idle_duration(data: Data) -> Value:
    durations = {}
    for place, source in data.main.items():
        for reading in source.campaign.idle:
            if reading.domain == "system" and reading.energy_j and reading.power_w:
                durations[" with ".join(place)] = reading.energy_j / reading.power_w
    shortest = min(durations, key=lambda place: durations[place])
    return Value(durations[shortest], (shortest,))


def _durations(data: Data) -> dict[str, float]:
    """Median duration of each experiment, s."""
    return _of_experiments(data, "duration_s")


def _of_experiments(data: Data, name: Literal["duration_s", "bytes_moved"]) -> dict[str, float]:
    by_experiment: dict[str, list[float]] = {}
    for (machine, device), source in data.main.items():
        for run in source.campaign.runs:
            experiment = run.experiment
            label = (
                f"{machine} {device}: {experiment.spatiality} {experiment.operation}, "
                f"{format_size(experiment.request_size_bytes or 0)}, "
                f"buffer {experiment.cache.buffer}"
            )
            value: float | None = run.duration_s
            if name != "duration_s":
                value = run.phases[0].bytes_moved
            if value is not None:
                by_experiment.setdefault(label, []).append(value)
    return {label: descriptive.median(values) for label, values in by_experiment.items()}


def _usual_duration(data: Data) -> Value:
    return Value(descriptive.median(_durations(data).values()))


def _shortest_duration(data: Data) -> Value:
    durations = _durations(data)
    longest = min(durations, key=lambda name: durations[name])
    return Value(durations[longest], (longest,))


def _least_megabytes(data: Data) -> Value:
    moved = _of_experiments(data, "bytes_moved")
    least = min(moved, key=lambda name: moved[name])
    return Value(moved[least] / MIB, (least,), "in units of 2^20 bytes")


def _mpsoc_most_cpu(data: Data) -> Value:
    peaks: dict[str, float] = {}
    for name, source in data.others.items():
        if name.startswith("experiment2-mpsoc"):
            uses = []
            for run in source.campaign.runs:
                if run.processor is not None:
                    for use in run.processor.use:
                        if use is not None:
                            uses.append(use)
            peaks[name] = 100 * max(uses)
    highest = max(peaks, key=lambda name: peaks[name])
    others = ", ".join(f"{name} {peak:.3g} %" for name, peak in peaks.items())
    return Value(peaks[highest], (highest,), f"highest samples: {others}")


def _mpsoc_memory_write(data: Data) -> Value:
    runs = data.others["lmbench-mpsoc"].campaign.runs
    values = []
    for run in runs:
        for f in run.context:
            if f.name == "memory_write_bandwidth":
                values.append(f.value)
    return Value(descriptive.median(values) / 1e6, ("lmbench-mpsoc, largest block",))


def _busiest_device(data: Data) -> Value:
    best = Value(None, reason="no drive takes more in the PC")
    for device in ("HDD1", "HDD2", "SSD1", "SSD2"):
        high = data.busy(PC, device, _DEVICE)
        low = data.busy(MPSOC, device, _DEVICE)
        percent = 100 * (high.median(_DEVICE) / low.median(_DEVICE) - 1)
        test = mann_whitney(high.values(_DEVICE), low.values(_DEVICE))
        if test.significant and (best.value is None or percent > best.value):
            best = Value(percent, (high.label(), low.label()), p=test.p)
    return best


def _rises(data: Data) -> dict[tuple[str, str], float]:
    """Drive power, busiest over idle, W, by configuration."""
    rises = {}
    for place in data.main:
        rises[place] = data.busy(*place, _DEVICE).median(_DEVICE) - data.idle(*place, "device")
    return rises


def _is_pc_ssd(place: tuple[str, str]) -> bool:
    return place[0] == PC and place[1].startswith("SSD")


def _middle(watts: Sequence[float]) -> Value:
    reason = f"from {min(watts):.3f} to {max(watts):.3f} W"
    return Value(descriptive.median(watts), reason=reason)


def _usual_rise(data: Data) -> Value:
    return _middle([rise for place, rise in _rises(data).items() if not _is_pc_ssd(place)])


def _pc_ssd_rise(data: Data) -> Value:
    return _middle([rise for place, rise in _rises(data).items() if _is_pc_ssd(place)])


def _usual_device_power(data: Data) -> Value:
    return _middle([data.busy(*place, _DEVICE).median(_DEVICE) for place in data.main])


def _device_share(machine: str) -> Callable[[Data], Value]:
    def share(data: Data) -> Value:
        shares = []
        for place in data.main:
            if place[0] == machine:
                shares.append(
                    100
                    * data.busy(*place, _DEVICE).median(_DEVICE)
                    / data.busy(*place, _SYSTEM).median(_SYSTEM)
                )
        reason = f"drive over system, both when busiest: {min(shares):.2f} to {max(shares):.2f} %"
        return Value(descriptive.median(shares), reason=reason)

    return share


def _draco_idle(domain: str) -> Callable[[Data], Value]:
    def idle(data: Data) -> Value:
        samples = data.others["experiment4-draco-1"].idle_watts[domain]
        return Value(descriptive.median(samples), (f"median of {len(samples)} samples",))

    return idle


def _draco_busy(domain: str) -> Callable[[Data], Value]:
    def busy(data: Data) -> Value:
        means = []
        for run in data.others["experiment4-draco-1"].campaign.runs:
            for phase in run.phases:
                for reading in phase.energy:
                    if reading.domain == domain and reading.power_w is not None:
                        means.append(reading.power_w)
        return Value(descriptive.median(means), (f"median of {len(means)} runs",))

    return busy


def _draco_rise(domain: str) -> Callable[[Data], Value]:
    def rise(data: Data) -> Value:
        busy, idle = _draco_busy(domain)(data).value, _draco_idle(domain)(data).value
        assert busy is not None and idle is not None
        return Value(busy - idle)

    return rise


def _largest_power_difference(data: Data) -> Value:
    found = []
    for factor in ("size", "spatiality", "operation", "buffer"):
        levels = sorted({cell.factors[factor] for cell in data.cells})
        for high in levels:
            for low in levels:
                if high != low:
                    both = pairs(data.cells, {factor: high}, {factor: low})
                    found += differences(both, _SYSTEM)
    best = largest(found)
    if best is None:
        return Value(None, reason="no difference is confirmed")
    return Value(best.percent, names_of(best), p=best.p)


# --- section 7. Footnote 6: the best results of the PC against the worst of the MPSoC.

_SMALL, _LARGE = format_size(32 * KIB), format_size(4 * MIB)


def _extreme(data: Data, machine: str, kind: str, best: bool) -> Cell:
    """Sequential reads with small requests: the drive of a kind with most or least bandwidth."""
    where = {
        "machine": machine,
        "type": kind,
        "operation": "read",
        "spatiality": "sequential",
        "size": _SMALL,
    }
    chosen = [cell for cell in data.cells if fits(cell, where)]
    pick = min
    if best:
        pick = max
    return pick(chosen, key=lambda cell: cell.median(BANDWIDTH))


def _replacement(data: Data, kind: str) -> tuple[Cell, Cell, float]:
    """(PC with an HDD, MPSoC, B_ts / B_lp) for sequential reads with small requests."""
    ts = _extreme(data, PC, "HDD", best=True)
    lp = _extreme(data, MPSOC, kind, best=False)
    return ts, lp, ts.median(BANDWIDTH) / lp.median(BANDWIDTH)


def _servers(kind: str) -> Callable[[Data], Value]:
    def servers(data: Data) -> Value:
        ts, lp, ratio = _replacement(data, kind)
        reason = f"B_ts / B_lp = {ratio:.4f}"
        return Value(ratio, (ts.label(), lp.label()), reason)

    return servers


def _power_saved(kind: str, printed_servers: float | None) -> Callable[[Data], Value]:
    def saved(data: Data) -> Value:
        ts, lp, ratio = _replacement(data, kind)
        servers = printed_servers or ratio
        percent = 100 * (1 - servers * lp.median(_SYSTEM) / ts.median(_SYSTEM))
        old_w, new_w = ts.median(_SYSTEM), lp.median(_SYSTEM)
        reason = f"{servers:.4g} servers of {new_w:.2f} W for {old_w:.2f} W"
        if printed_servers is None:
            reason = f"{_UNNAMED}these are the ones that give the number of servers: {reason}"
        return Value(percent, (ts.label(), lp.label()), reason)

    return saved


def _read_gain(kind: str, spatiality: str) -> Callable[[Data], Value]:
    """More bandwidth of that many servers with the same drives. Sequential reads with large
    requests, random reads with either; a pair that the test does not distinguish counts as equal
    (section 3)."""

    def gain(data: Data) -> Value:
        of_pc, of_mpsoc, ratio = _replacement(data, kind)
        servers = _PRINTED_SERVERS
        if kind == "SSD":
            servers = round(ratio, 1)
        best = Value(None)
        for size in (_LARGE,) if spatiality == "sequential" else (_SMALL, _LARGE):
            levels = {"operation": "read", "spatiality": spatiality, "size": size}
            ts = data.cell(machine=PC, device=of_pc.factors["device"], **levels)
            lp = data.cell(machine=MPSOC, device=of_mpsoc.factors["device"], **levels)
            test = mann_whitney(lp.values(BANDWIDTH), ts.values(BANDWIDTH))
            share = 1.0
            if test.significant:
                share = lp.median(BANDWIDTH) / ts.median(BANDWIDTH)
            percent = 100 * (servers * share - 1)
            if best.value is None or percent > best.value:
                remark = f"{servers:g} servers" + ("" if test.significant else ", no difference")
                best = Value(percent, (lp.label(), ts.label()), remark, test.p)
        if kind == "SSD":
            best = Value(best.value, best.cells, f"{_UNNAMED}{best.reason}", best.p)
        return best

    return gain


# The paper rounds 2.135 up, and computes with that.
_PRINTED_SERVERS = 2.2

VALUES: Mapping[str, Callable[[Data], Value]] = {
    "experiments": _experiments,
    "configurations": _configurations,
    "repetitions": _repetitions,
    "sample_period_ms": _sample_period,
    "idle_duration_s": _idle_duration,
    "usual_duration_s": _usual_duration,
    "shortest_duration_s": _shortest_duration,
    "least_megabytes": _least_megabytes,
    "mpsoc_most_cpu_percent": _mpsoc_most_cpu,
    "mpsoc_memory_write_mb_per_s": _mpsoc_memory_write,
    "busiest_device_pc_over_mpsoc_percent": _busiest_device,
    "usual_device_rise_w": _usual_rise,
    "pc_ssd_device_rise_w": _pc_ssd_rise,
    "usual_device_power_w": _usual_device_power,
    "mpsoc_device_share_percent": _device_share(MPSOC),
    "pc_device_share_percent": _device_share(PC),
    **{
        f"draco_{name}_{domain}_w": of(domain)
        for name, of in (("idle", _draco_idle), ("busy", _draco_busy), ("rise", _draco_rise))
        for domain in ("system", "package", "dram")
    },
    "largest_power_difference_percent": _largest_power_difference,
    "servers_hdd_ssd": _servers("SSD"),
    "power_saved_hdd_ssd_percent": _power_saved("SSD", None),
    "sequential_read_gain_hdd_ssd_percent": _read_gain("SSD", "sequential"),
    "random_read_gain_hdd_ssd_percent": _read_gain("SSD", "random"),
    "servers_hdd_hdd": _servers("HDD"),
    "power_saved_hdd_hdd_percent": _power_saved("HDD", _PRINTED_SERVERS),
    "random_read_gain_hdd_hdd_percent": _read_gain("HDD", "random"),
}
