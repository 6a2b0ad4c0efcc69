"""The formulas' numbers: each an array whose first element is the figure from the medians, the
others its bootstrap replicates, so that one formula serves both."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from eeio.guideline.answer import Choice
from eeio.guideline.servers import CellValues, Server
from eeio.guideline.workload import CellKey, ShareOf
from eeio.statistics.bootstrap import (
    FEWEST_FOR_T,
    Estimate,
    Floats,
    percentile_interval,
    resample_rows,
    smallest_n_for_interval,
    student_replicates,
    too_few_for_interval,
)


@dataclass(frozen=True)
class Replicates:
    """Place 0 is the figure from the medians, the others are its bootstrap replicates.

    One formula then serves both. `n` are the sample sizes behind it.
    """

    values: Floats
    n: tuple[int, ...]


@dataclass(frozen=True)
class CellReplicates:
    bandwidth: Floats
    power: Floats
    j_per_byte: Floats
    n: tuple[int, ...]
    variant: str


@dataclass(frozen=True)
class Bootstrap:
    confidence: float
    resamples: int
    seed: int

    def estimate(self, made: Replicates) -> Estimate:
        value = float(made.values[0])
        if not math.isfinite(value):
            return Estimate(None, None, made.n, "the figure is too large for a number")
        if reason := self.too_few(made.n):
            return Estimate(value, None, made.n, reason)
        if not np.all(np.isfinite(made.values)):
            reason = "no interval: the figure is too large for a number in some resamples"
            return Estimate(value, None, made.n, reason)
        interval = percentile_interval(made.values[1:], self.confidence)
        return Estimate(value, interval, made.n, self._how(made.n))

    def too_few(self, n: Sequence[int]) -> str | None:
        """Why samples of these sizes have no interval, not even by Student's t; or None."""
        if min(n, default=0) < FEWEST_FOR_T:
            return too_few_for_interval(n, self.confidence)
        return None

    def _how(self, n: Sequence[int]) -> str | None:
        """The method of the interval if it is not only the bootstrap's."""
        few = min(n)
        if few >= smallest_n_for_interval(self.confidence):
            return None
        return f"n = {few}: interval by Student's t of the logarithms, too few for a bootstrap"

    def medians(self, values: Sequence[float], stream: int) -> Floats:
        array = np.asarray(values, dtype=np.float64)
        if FEWEST_FOR_T <= len(array) < smallest_n_for_interval(self.confidence):
            replicates = student_replicates(values, self.resamples, self.seed, stream)
            return np.concatenate(([np.median(array)], replicates))
        rows = resample_rows(len(array), self.resamples, self.seed, stream)
        return np.concatenate(([np.median(array)], np.median(array[rows], axis=1)))


def none_because(reason: str) -> Estimate:
    return Estimate(None, None, (), reason)


def _unusable(values: Sequence[float], unit: str) -> str | None:
    if not values:
        return f"no {unit} value"
    for index, value in enumerate(values):
        if not (math.isfinite(value) and value > 0):
            return f"{unit} of repetition {index + 1} is {value:g}"
    return None


def _unusable_variants(system: Server, cells: Iterable[CellValues]) -> Iterator[str]:
    for cell in cells:
        name = f"{system.name} {cell.variant}".strip()
        reason = _unusable(cell.bandwidth_bytes_per_s, "bandwidth")
        reason = reason or _unusable(cell.power_w, "power")
        if reason:
            yield f"{name}: {reason}"


def _ambiguous(system: Server, cells: Sequence[CellValues]) -> str | None:
    """A factor that the key does not state and in which the cells differ."""
    if len({cell.key.buffer for cell in cells}) > 1:
        return f"{system.name} has it with the page cache on and off: state cache.buffer"
    if len({cell.key.disk for cell in cells}) > 1:
        return f"{system.name} has it with the disk cache on and off: state cache.disk"
    if len(flushed := dict.fromkeys(cell.flushed for cell in cells)) > 1:
        return f"{system.name} has it with {' and '.join(flushed)}: state flush"
    return None


def pick(system: Server, key: CellKey, choice: Choice, best: bool) -> CellValues | str:
    """The cell of a system for a key, or why there is none."""
    cells = [cell for cell in system.cells if key.covers(cell.key)]
    if not cells:
        return f"{system.name} has no such experiment"
    if (reason := _ambiguous(system, cells)) is not None:
        return reason
    reasons = list(_unusable_variants(system, cells))
    if reasons:
        # The best or worst variant could be the one that cannot be used.
        return "; ".join(reasons)
    if len(cells) > 1 and choice == "medians":
        variants = ", ".join(cell.variant or "(unnamed)" for cell in cells)
        return f"{system.name} has several variants ({variants}): give one, or choose best-worst"
    pick = min
    if best:
        pick = max
    return pick(cells, key=lambda cell: float(np.median(cell.bandwidth_bytes_per_s)))


def why_not_equal(traditional: CellValues, low_power: CellValues) -> str | None:
    """Why two writes cannot be compared: they end at different moments."""
    ours, theirs = traditional, low_power
    if (ours.key.flush, ours.durable) == (theirs.key.flush, theirs.durable):
        return None
    return f"{ours.flushed} against {theirs.flushed}: only equals are compared"


def replicate(cell: CellValues, bootstrap: Bootstrap, stream: int) -> CellReplicates:
    # Bandwidth and power of one run belong together and are drawn together.
    bandwidth = bootstrap.medians(cell.bandwidth_bytes_per_s, stream)
    power = bootstrap.medians(cell.power_w, stream)
    energies = cell.energy_j_per_gb
    joules = bootstrap.medians(energies, stream) / 1e9 if energies else power / bandwidth
    return CellReplicates(bandwidth, power, joules, (len(cell.power_w),), cell.variant)


@dataclass(frozen=True)
class Pair:
    """An experiment on both systems with the share of bytes it has, as replicates."""

    key: CellKey
    share: float | None
    traditional: CellReplicates
    low_power: CellReplicates

    @property
    def n(self) -> tuple[int, ...]:
        return self.traditional.n + self.low_power.n


@dataclass(frozen=True)
class Mix:
    """Both systems under a mix, one server each."""

    b_ts: Floats
    b_lp: Floats
    p_ts: Floats
    p_lp: Floats
    n: tuple[int, ...]
    n_ts: tuple[int, ...]
    n_lp: tuple[int, ...]


def mix_of(pairs: Sequence[Pair], share_of: ShareOf) -> Mix:
    """One server of each system under the bytes of the mix."""
    bytes_shares = []
    for pair in pairs:
        assert pair.share is not None
        scale = pair.traditional.bandwidth if share_of == "time" else 1.0
        bytes_shares.append(pair.share * scale)
    b_ts, p_ts = together(bytes_shares, [pair.traditional for pair in pairs])
    b_lp, p_lp = together(bytes_shares, [pair.low_power for pair in pairs])
    n_ts = tuple(n for pair in pairs for n in pair.traditional.n)
    n_lp = tuple(n for pair in pairs for n in pair.low_power.n)
    return Mix(b_ts, b_lp, p_ts, p_lp, n_ts + n_lp, n_ts, n_lp)


def together(
    bytes_shares: Sequence[Floats | float], cells: Sequence[CellReplicates]
) -> tuple[Floats, Floats]:
    """Bandwidth and power of one system under a mix of these shares of bytes, of any sum. The power
    is the energy of the mix over its time."""
    total = sum(bytes_shares[1:], start=bytes_shares[0])
    shares = [share / total for share in bytes_shares]
    time = np.sum([s / cell.bandwidth for s, cell in zip(shares, cells, strict=True)], axis=0)
    energy = np.sum([s * cell.j_per_byte for s, cell in zip(shares, cells, strict=True)], axis=0)
    return 1.0 / time, energy / time
