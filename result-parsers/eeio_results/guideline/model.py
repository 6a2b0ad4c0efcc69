"""When low-power servers pay: the rule of Pavan et al. (2018, section 7), with intervals.

For a workload mix and two systems' repetitions: how many low-power servers carry what one
traditional server carries (B_ts / B_lp), what that does to power, to the bandwidth of each
experiment and to the bill. Pure functions; docs/method.md has the formulas and worked examples.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast, get_args

import numpy as np
import yaml

from eeio_limits import LimitError, inputs
from eeio_limits import quantities as q
from eeio_results import documents
from eeio_results.errors import EeioError
from eeio_results.record import Switch
from eeio_results.statistics.bootstrap import (
    RESAMPLES,
    SEED,
    Estimate,
    Floats,
    percentile_interval,
    resample_rows,
    too_few_for_interval,
)
from eeio_results.units import format_size, parse_size

ShareOf = Literal["bytes", "time"]
Choice = Literal["medians", "best-worst"]
DeploymentKind = Literal["fractional", "whole", "asked"]
Outcome = Literal["pays-back", "never", "at-once", "until"]

_OPERATIONS = ("read", "write")
_SPATIALITIES = ("sequential", "random", "strided")
# kWh per watt drawn for a year of 365.25 days.
KWH_PER_W_YEAR = 24 * 365.25 / 1000

COMBINATIONS: Mapping[ShareOf, str] = {
    "bytes": (
        "harmonic mean of the experiments' bandwidths, weighted by share of bytes; "
        "power weighted by the time each share takes"
    ),
    "time": (
        "shares of the traditional system's time, turned into shares of bytes by its bandwidths; "
        "then the harmonic mean weighted by bytes, power weighted by time"
    ),
}
CHOICES: Mapping[Choice, str] = {
    "medians": "medians of the one variant of each system",
    "best-worst": (
        "the traditional system's variant of highest median bandwidth against the low-power "
        "system's of lowest, each with its own power (Pavan et al. 2018, footnote 6)"
    ),
}


# Input ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CellKey:
    """The factors by which experiments of two systems are joined; `disk` None is "whatever"."""

    operation: str
    spatiality: str
    request_size_bytes: int
    buffer: Switch | None
    disk: Switch | None = None

    @property
    def label(self) -> str:
        """`sequential read 32 KiB, buffer off`."""
        size = format_size(self.request_size_bytes)
        words = f"{self.spatiality} {self.operation} {size}, buffer {self.buffer or 'not stated'}"
        return f"{words}, disk cache {self.disk}" if self.disk else words

    def covers(self, other: "CellKey") -> bool:
        """Whether the other has these factors; a disk cache that is not stated covers any."""
        return replace(other, disk=self.disk) == self and self.disk in (None, other.disk)


@dataclass(frozen=True)
class CellValues:
    """The valid repetitions of one experiment on one system.

    Values at the same place belong to the same repetition: bandwidth and power of one run are of
    the same work. `variant` tells alternatives of one system apart (its devices: HDD1, HDD2),
    `left_out` how many repetitions had but one of the two. Raises EeioError for tuples of two
    lengths.
    """

    key: CellKey
    bandwidth_bytes_per_s: tuple[float, ...]
    power_w: tuple[float, ...]
    variant: str = ""
    left_out: int = 0

    def __post_init__(self) -> None:
        if len(self.bandwidth_bytes_per_s) != len(self.power_w):
            raise EeioError(
                f"{self.key.label}: {len(self.bandwidth_bytes_per_s)} bandwidth and "
                f"{len(self.power_w)} power values; give those of the same repetitions"
            )


@dataclass(frozen=True)
class System:
    """A kind of server. Prices are per server and per device, in any one currency."""

    name: str
    cells: tuple[CellValues, ...]
    idle_power_w: float | None = None
    server_price: float | None = None
    device_price: float | None = None
    devices: int = 1

    @property
    def price(self) -> float | None:
        """One server with its devices; None when a price is not known."""
        if self.server_price is None or (self.device_price is None and self.devices):
            return None
        return self.server_price + self.devices * (self.device_price or 0.0)


@dataclass(frozen=True)
class WorkloadEntry:
    """One experiment of a mix and its share, 0 to 1."""

    key: CellKey
    share: float


@dataclass(frozen=True)
class Workload:
    """A mix whose shares sum to 1; `messages` says what was changed to make them."""

    name: str
    entries: tuple[WorkloadEntry, ...]
    share_of: ShareOf = "bytes"
    messages: tuple[str, ...] = ()


@dataclass(frozen=True)
class Costs:
    """What electricity costs and for how long.

    `pue` multiplies both systems' energy. `busy_share` is the part of the time in which the
    traditional server is busy (the rest it idles); None compares both at busy power all the time,
    as the paper's rule does.
    """

    price_per_kwh: float
    years: float
    pue: float = 1.0
    busy_share: float | None = None
    currency: str = ""


def make_workload(
    name: str, entries: Sequence[WorkloadEntry], share_of: ShareOf = "bytes"
) -> Workload:
    """A workload with its shares normalised. Raises EeioError for what makes no mix."""
    if share_of not in get_args(ShareOf):
        raise EeioError(f"share_of {share_of!r}: choose bytes or time")
    if not entries:
        raise EeioError(f"workload {name!r} has no entries; list one experiment at least")
    for index, entry in enumerate(entries):
        if not (math.isfinite(entry.share) and entry.share > 0):
            raise EeioError(
                f"workload {name!r}, {entry.key.label}: share {entry.share} is not positive; "
                "leave the entry out if it has none"
            )
        for other in entries[:index]:
            if entry.key.covers(other.key) or other.key.covers(entry.key):
                raise EeioError(f"workload {name!r} names {entry.key.label} twice")
    total = math.fsum(entry.share for entry in entries)
    if abs(total - 1.0) <= 1e-9:
        return Workload(name, tuple(entries), share_of)
    made = tuple(replace(entry, share=entry.share / total) for entry in entries)
    message = f"the shares of workload {name!r} sum to {total:.6g}; they were divided by it"
    return Workload(name, made, share_of, (message,))


def load_workload(path: Path) -> Workload:
    """A workload from YAML (docs/method.md shows one).

    Raises EeioError, with file, line and key, for anything that is not known or not a mix.
    """
    try:
        text = inputs.read_text(path, inputs.DEFINITION_BYTES)
        documents.check_flow_depth(text)
    except (OSError, LimitError) as error:
        raise EeioError(f"{path}: cannot be read as a workload: {error}") from error
    try:
        loader = yaml.SafeLoader(text)
    except yaml.YAMLError as error:  # a character that YAML cannot hold
        raise EeioError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    try:
        node = loader.get_single_node()
        if node is None:
            raise EeioError(f"{path}: empty; a workload needs the key `workload`")
        return _Reader(path, loader).workload(node)
    except RecursionError as error:
        raise EeioError(f"{path}: nested deeper than {inputs.DEPTH}") from error
    except yaml.YAMLError as error:
        raise EeioError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    finally:
        loader.dispose()


class _Reader:
    """Walks YAML nodes, which still know their lines."""

    def __init__(self, path: Path, loader: yaml.SafeLoader) -> None:
        self._path = path
        self._loader = loader

    def workload(self, node: yaml.Node) -> Workload:
        body = self._mapping(node, {"workload"}, {"name", "share_of"})
        name, share_of = self._path.stem, "bytes"
        if "name" in body:
            name = self._scalar(body["name"])
            if not isinstance(name, str) or not name:
                raise self._error(body["name"], "name must be a word")
        if "share_of" in body:
            share_of = self._one_of(body["share_of"], "share_of", get_args(ShareOf))
        listed = body["workload"]
        if not isinstance(listed, yaml.SequenceNode) or not listed.value:
            raise self._error(listed, "workload must be a list of one entry or more")
        entries = [self._entry(item) for item in listed.value]
        try:
            return make_workload(name, entries, cast(ShareOf, share_of))
        except EeioError as error:
            raise EeioError(f"{self._path}: {error}") from error

    def _entry(self, node: yaml.Node) -> WorkloadEntry:
        body = self._mapping(
            node, {"operation", "spatiality", "request_size_bytes", "cache", "share"}, set()
        )
        cache = self._mapping(body["cache"], {"buffer"}, {"disk"})
        key = CellKey(
            self._one_of(body["operation"], "operation", _OPERATIONS),
            self._one_of(body["spatiality"], "spatiality", _SPATIALITIES),
            self._size(body["request_size_bytes"]),
            self._switch(cache["buffer"], "cache.buffer"),
            self._switch(cache["disk"], "cache.disk") if "disk" in cache else None,
        )
        share = self._scalar(body["share"])
        if isinstance(share, bool) or not isinstance(share, int | float):
            raise self._error(body["share"], f"share must be a number, not {share!r:.60}")
        if not (q.FRACTION.holds(share) and share > 0):
            raise self._error(
                body["share"],
                f"share {q.shortened(share)} is not positive, or too large; leave the "
                "entry out if it has none",
            )
        return WorkloadEntry(key, float(share))

    def _mapping(
        self, node: yaml.Node, required: set[str], optional: set[str]
    ) -> dict[str, yaml.Node]:
        known = ", ".join(sorted(required | optional))
        if not isinstance(node, yaml.MappingNode):
            raise self._error(node, f"expected keys ({known})")
        found: dict[str, yaml.Node] = {}
        for key_node, value in node.value:
            key = self._scalar(key_node)
            if key not in required | optional:
                raise self._error(key_node, f"unknown key {key!r}; known are {known}")
            if key in found:
                raise self._error(key_node, f"key {key!r} stands twice")
            found[key] = value
        if missing := sorted(required - set(found)):
            raise self._error(node, f"missing key {', '.join(map(repr, missing))}")
        return found

    def _scalar(self, node: yaml.Node) -> Any:
        if not isinstance(node, yaml.ScalarNode):
            raise self._error(node, "expected one value, not a list or keys")
        try:
            return self._loader.construct_object(node)
        except yaml.YAMLError:
            raise
        except Exception as error:  # a date 2001-99-99, a tag that does not fit
            raise self._error(node, f"not YAML: {error!r:.200}") from error

    def _one_of(self, node: yaml.Node, name: str, known: Sequence[str]) -> str:
        value = self._scalar(node)
        if value not in known:
            raise self._error(node, f"{name} {value!r} is not one of {', '.join(known)}")
        return cast(str, value)

    def _switch(self, node: yaml.Node, name: str) -> Switch:
        value = self._scalar(node)
        # YAML 1.1 reads a bare on or off as a truth value.
        value = {True: "on", False: "off"}.get(value, value) if isinstance(value, bool) else value
        if value not in get_args(Switch):
            raise self._error(node, f"{name} {value!r} is not one of on, off")
        return cast(Switch, value)

    def _size(self, node: yaml.Node) -> int:
        value = self._scalar(node)
        if isinstance(value, str):
            try:
                value = parse_size(value)
            except EeioError as error:
                raise self._error(node, f"request_size_bytes: {error}") from error
        if not isinstance(value, int) or not q.REQUEST_SIZE.holds(value):
            shown = q.shortened(value)
            raise self._error(node, f"request_size_bytes {shown} is not a positive whole number")
        return value

    def _error(self, node: yaml.Node, words: str) -> EeioError:
        return EeioError(f"{self._path}, line {node.start_mark.line + 1}: {words}")


# Output ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SystemFigures:
    """One system under the mix, one server."""

    name: str
    bandwidth_bytes_per_s: Estimate
    power_w: Estimate
    energy_j_per_byte: Estimate
    idle_power_w: float | None
    price: float | None


@dataclass(frozen=True)
class ExperimentComparison:
    """One experiment on both systems, or the reason why it cannot be compared.

    `share` is None outside the mix. `saves` is whether (B_ts / B_lp) P_lp < P_ts: None when the
    interval of the product holds 1 or there is none.
    """

    key: CellKey
    share: float | None
    traditional_variant: str | None
    low_power_variant: str | None
    bandwidth_ratio: Estimate
    power_ratio: Estimate
    energy_per_byte_change: Estimate
    saves: bool | None
    reason: str | None

    @property
    def label(self) -> str:
        return self.key.label


@dataclass(frozen=True)
class Change:
    """Relative bandwidth change of one experiment or operation; 0.25 is 25 % more."""

    label: str
    in_mix: bool
    change: Estimate


@dataclass(frozen=True)
class Money:
    """What a deployment costs against the traditional server, in the currency of `Costs`.

    `outcome`: pays-back (dearer to buy, cheaper to run: `break_even_years`), at-once (cheaper in
    both: 0 years), until (cheaper to buy, dearer to run: cheaper only until `break_even_years`),
    never. `break_even_price_per_kwh` and `break_even_server_price` make both cost the same after
    the `years` of `Costs`.
    """

    purchase_difference: Estimate
    energy_saving_kwh_per_year: Estimate
    running_saving_per_year: Estimate
    saving_after_years: Estimate
    outcome: Outcome | None
    break_even_years: Estimate
    break_even_price_per_kwh: Estimate
    break_even_server_price: Estimate


@dataclass(frozen=True)
class Deployment:
    """A number of low-power servers in place of one traditional server.

    `power_change` compares busy power, P = servers x P_lp against P_ts: -0.2 is 20 % less.
    """

    kind: DeploymentKind
    servers: Estimate
    power_change: Estimate
    bandwidth_change: Estimate
    operations: tuple[Change, ...]
    experiments: tuple[Change, ...]
    money: Money | None


@dataclass(frozen=True)
class Guideline:
    """The answer. `ratio` is B_ts / B_lp; without it `reason` says what is missing."""

    workload: Workload
    costs: Costs | None
    choice: Choice
    combination: str
    confidence: float
    resamples: int
    seed: int
    traditional: SystemFigures
    low_power: SystemFigures
    ratio: Estimate
    power_ratio: Estimate
    energy_per_byte_change: Estimate
    saves: bool | None
    deployments: tuple[Deployment, ...]
    experiments: tuple[ExperimentComparison, ...]
    messages: tuple[str, ...]
    reason: str | None


# Replicates -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Replicates:
    """Place 0 is the figure from the medians, the others are its bootstrap replicates.

    One formula then serves both. `n` are the sample sizes behind it.
    """

    values: Floats
    n: tuple[int, ...]


@dataclass(frozen=True)
class _Cell:
    bandwidth: Floats
    power: Floats
    n: tuple[int, ...]
    variant: str


@dataclass(frozen=True)
class _Bootstrap:
    confidence: float
    resamples: int
    seed: int

    def estimate(self, made: _Replicates) -> Estimate:
        value = float(made.values[0])
        if not math.isfinite(value):
            return Estimate(None, None, made.n, "the figure is too large for a number")
        if reason := too_few_for_interval(made.n, self.confidence):
            return Estimate(value, None, made.n, reason)
        if not np.all(np.isfinite(made.values)):
            reason = "no interval: the figure is too large for a number in some resamples"
            return Estimate(value, None, made.n, reason)
        return Estimate(value, percentile_interval(made.values[1:], self.confidence), made.n)

    def medians(self, values: Sequence[float], stream: int) -> Floats:
        array = np.asarray(values, dtype=np.float64)
        rows = resample_rows(len(array), self.resamples, self.seed, stream)
        return np.concatenate(([np.median(array)], np.median(array[rows], axis=1)))


def _none(reason: str) -> Estimate:
    return Estimate(None, None, (), reason)


def _unusable(values: Sequence[float], unit: str) -> str | None:
    if not values:
        return f"no {unit} value"
    for index, value in enumerate(values):
        if not (math.isfinite(value) and value > 0):
            return f"{unit} of repetition {index + 1} is {value:g}"
    return None


def _pick(system: System, key: CellKey, choice: Choice, best: bool) -> CellValues | str:
    """The cell of a system that stands for a key, or why there is none."""
    cells = [cell for cell in system.cells if key.covers(cell.key)]
    if not cells:
        return f"{system.name} has no such experiment"
    if len({cell.key.disk for cell in cells}) > 1:
        return f"{system.name} has it with the disk cache on and off: state cache.disk"
    usable = []
    reasons = []
    for cell in cells:
        name = f"{system.name} {cell.variant}".strip()
        why = _unusable(cell.bandwidth_bytes_per_s, "bandwidth")
        why = why or _unusable(cell.power_w, "power")
        if why:
            reasons.append(f"{name}: {why}")
        else:
            usable.append(cell)
    if reasons:
        # The best or worst variant could be the one that cannot be used.
        return "; ".join(reasons)
    if len(usable) > 1 and choice == "medians":
        variants = ", ".join(cell.variant or "(unnamed)" for cell in usable)
        return f"{system.name} has several variants ({variants}): give one, or choose best-worst"
    pick = max if best else min
    return pick(usable, key=lambda cell: float(np.median(cell.bandwidth_bytes_per_s)))


def _replicate(cell: CellValues, bootstrap: _Bootstrap, stream: int) -> _Cell:
    # Bandwidth and power of one run belong together and are drawn together.
    return _Cell(
        bootstrap.medians(cell.bandwidth_bytes_per_s, stream),
        bootstrap.medians(cell.power_w, stream),
        (len(cell.power_w),),
        cell.variant,
    )


# The answer -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Pair:
    """An experiment on both systems with the share of bytes it has, as replicates."""

    key: CellKey
    share: float | None
    traditional: _Cell
    low_power: _Cell

    @property
    def n(self) -> tuple[int, ...]:
        return self.traditional.n + self.low_power.n


@dataclass(frozen=True)
class _Mix:
    """Both systems under a mix, one server each."""

    b_ts: Floats
    b_lp: Floats
    p_ts: Floats
    p_lp: Floats
    n: tuple[int, ...]
    n_ts: tuple[int, ...]
    n_lp: tuple[int, ...]


def guideline(
    workload: Workload,
    traditional: System,
    low_power: System,
    costs: Costs | None = None,
    *,
    choice: Choice = "medians",
    counts: Sequence[float] = (),
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Guideline:
    """The replacement rule of Pavan et al. (2018, section 7) for a mix, with bootstrap intervals.

    `counts` are further numbers of low-power servers to judge beside B_ts / B_lp and the next whole
    number. An experiment of the mix that one system lacks leaves the mix without an answer, with
    the reason. Raises EeioError for contradictory input.
    """
    _check(traditional, low_power, costs, choice, counts, confidence, resamples)
    bootstrap = _Bootstrap(confidence, resamples, seed)
    pairs, comparisons = _compare(workload, traditional, low_power, choice, bootstrap)
    messages = [*workload.messages, *_messages(traditional, low_power, choice)]
    missing = [row for row in comparisons if row.reason]
    messages += [
        f"{row.label}{'' if row.share is None else ' (in the mix)'}: {row.reason}"
        for row in missing
    ]
    of_mix = [pair for pair in pairs if pair.share is not None]
    lacking = [row.label for row in missing if row.share is not None]
    reason = None
    if lacking:
        reason = f"no answer for the mix: not comparable: {'; '.join(lacking)}"
    none = _none(reason or "")
    unanswered = Guideline(
        workload=workload,
        costs=costs,
        choice=choice,
        combination=COMBINATIONS[workload.share_of],
        confidence=confidence,
        resamples=resamples,
        seed=seed,
        traditional=_no_figures(traditional, none),
        low_power=_no_figures(low_power, none),
        ratio=none,
        power_ratio=none,
        energy_per_byte_change=none,
        saves=None,
        deployments=(),
        experiments=comparisons,
        messages=tuple(messages),
        reason=reason,
    )
    if lacking:
        return unanswered
    mix = _mix(of_mix, workload.share_of)
    ratio = _Replicates(mix.b_ts / mix.b_lp, mix.n)
    whole = float(max(1, math.ceil(float(ratio.values[0]) - 1e-9)))
    plans: list[tuple[DeploymentKind, Floats]] = [
        ("fractional", ratio.values),
        ("whole", np.full_like(ratio.values, whole)),
    ]
    plans += [("asked", np.full_like(ratio.values, float(count))) for count in counts]
    change = _Replicates(ratio.values * mix.p_lp / mix.p_ts - 1.0, mix.n)
    energy_change = bootstrap.estimate(change)
    return replace(
        unanswered,
        traditional=_figures(traditional, mix.b_ts, mix.p_ts, mix.n_ts, bootstrap),
        low_power=_figures(low_power, mix.b_lp, mix.p_lp, mix.n_lp, bootstrap),
        ratio=bootstrap.estimate(ratio),
        power_ratio=bootstrap.estimate(_Replicates(mix.p_lp / mix.p_ts, mix.n)),
        energy_per_byte_change=energy_change,
        saves=_saves(energy_change),
        deployments=tuple(
            _deployment(
                kind, servers, mix, pairs, workload, (traditional, low_power), costs, bootstrap
            )
            for kind, servers in plans
        ),
    )


def _check(
    traditional: System,
    low_power: System,
    costs: Costs | None,
    choice: str,
    counts: Sequence[float],
    confidence: float,
    resamples: int,
) -> None:
    if choice not in get_args(Choice):
        raise EeioError(f"choice {choice!r}: take medians or best-worst")
    if not 0 < confidence < 1 or resamples < 100:
        raise EeioError(f"confidence {confidence} must lie in 0 to 1, resamples be 100 or more")
    for count in counts:
        if not (math.isfinite(count) and count > 0):
            raise EeioError(f"{count} low-power servers: the number must be positive")
    for system in (traditional, low_power):
        seen = set()
        for cell in system.cells:
            place = (cell.key, cell.variant)
            if place in seen:
                raise EeioError(f"{system.name} has {cell.key.label} {cell.variant} twice")
            seen.add(place)
        for name in ("idle_power_w", "server_price", "device_price", "devices"):
            value = getattr(system, name)
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise EeioError(f"{system.name}: {name} is {value}; it cannot be negative")
    if costs is None:
        return
    for name in ("price_per_kwh", "years", "pue"):
        value = getattr(costs, name)
        if not (math.isfinite(value) and value > 0):
            raise EeioError(f"costs: {name} is {value}; it must be positive")
    if costs.pue < 1:
        raise EeioError(f"costs: pue is {costs.pue}; whole-site energy is never below the servers'")
    if costs.busy_share is not None and not 0 < costs.busy_share <= 1:
        raise EeioError(f"costs: busy_share is {costs.busy_share}; it lies above 0, at most 1")


def _messages(traditional: System, low_power: System, choice: Choice) -> list[str]:
    found = []
    for system in (traditional, low_power):
        found += [
            f"{system.name}, {cell.key.label}: {cell.left_out} of "
            f"{cell.left_out + len(cell.power_w)} repetitions have no bandwidth or no power; they "
            "are left out"
            for cell in system.cells
            if cell.left_out
        ]
    single = all(
        len({cell.variant for cell in system.cells}) < 2 for system in (traditional, low_power)
    )
    if choice == "best-worst" and single:
        found.append("each system has one variant, so best against worst is the same as medians")
    return found


def _compare(
    workload: Workload,
    traditional: System,
    low_power: System,
    choice: Choice,
    bootstrap: _Bootstrap,
) -> tuple[list[_Pair], tuple[ExperimentComparison, ...]]:
    """The mix's experiments in its order, then every other that either system has."""
    shares: dict[CellKey, float | None] = {entry.key: entry.share for entry in workload.entries}
    for cell in (*traditional.cells, *low_power.cells):
        if not any(key.covers(cell.key) for key in shares):
            shares[replace(cell.key, disk=None)] = None
    pairs = []
    rows = []
    for index, (key, share) in enumerate(shares.items()):
        picked = (
            _pick(traditional, key, choice, best=True),
            _pick(low_power, key, choice, best=False),
        )
        if isinstance(picked[0], str) or isinstance(picked[1], str):
            reason = "; ".join(item for item in picked if isinstance(item, str))
            none = _none(reason)
            rows.append(
                ExperimentComparison(key, share, None, None, none, none, none, None, reason)
            )
            continue
        # Four streams an experiment: every sample of either system is drawn on its own.
        pair = _Pair(
            key,
            share,
            _replicate(picked[0], bootstrap, 4 * index),
            _replicate(picked[1], bootstrap, 4 * index + 2),
        )
        pairs.append(pair)
        rows.append(_comparison(pair, bootstrap))
    return pairs, tuple(rows)


def _comparison(pair: _Pair, bootstrap: _Bootstrap) -> ExperimentComparison:
    ts, lp = pair.traditional, pair.low_power
    ratio, power = ts.bandwidth / lp.bandwidth, lp.power / ts.power
    change = bootstrap.estimate(_Replicates(ratio * power - 1.0, pair.n))
    return ExperimentComparison(
        pair.key,
        pair.share,
        ts.variant,
        lp.variant,
        bootstrap.estimate(_Replicates(ratio, pair.n)),
        bootstrap.estimate(_Replicates(power, pair.n)),
        change,
        _saves(change),
        None,
    )


def _saves(change: Estimate) -> bool | None:
    if change.interval is None or change.interval.low <= 0.0 <= change.interval.high:
        return None
    return change.interval.high < 0.0


def _mix(pairs: Sequence[_Pair], share_of: ShareOf) -> _Mix:
    """One server of each system under the bytes of the mix."""
    bytes_shares = []
    for pair in pairs:
        assert pair.share is not None
        scale = pair.traditional.bandwidth if share_of == "time" else 1.0
        bytes_shares.append(pair.share * scale)
    total = sum(bytes_shares[1:], start=bytes_shares[0])

    def together(cells: Sequence[_Cell]) -> tuple[Floats, Floats]:
        times = [
            share / total / cell.bandwidth for share, cell in zip(bytes_shares, cells, strict=True)
        ]
        time = np.sum(times, axis=0)
        energy = np.sum([t * cell.power for t, cell in zip(times, cells, strict=True)], axis=0)
        return 1.0 / time, energy / time

    b_ts, p_ts = together([pair.traditional for pair in pairs])
    b_lp, p_lp = together([pair.low_power for pair in pairs])
    n_ts = tuple(n for pair in pairs for n in pair.traditional.n)
    n_lp = tuple(n for pair in pairs for n in pair.low_power.n)
    return _Mix(b_ts, b_lp, p_ts, p_lp, n_ts + n_lp, n_ts, n_lp)


def _figures(
    system: System, bandwidth: Floats, power: Floats, n: tuple[int, ...], bootstrap: _Bootstrap
) -> SystemFigures:
    return SystemFigures(
        system.name,
        bootstrap.estimate(_Replicates(bandwidth, n)),
        bootstrap.estimate(_Replicates(power, n)),
        bootstrap.estimate(_Replicates(power / bandwidth, n)),
        system.idle_power_w,
        system.price,
    )


def _no_figures(system: System, none: Estimate) -> SystemFigures:
    return SystemFigures(system.name, none, none, none, system.idle_power_w, system.price)


def _deployment(
    kind: DeploymentKind,
    servers: Floats,
    mix: _Mix,
    pairs: Sequence[_Pair],
    workload: Workload,
    systems: tuple[System, System],
    costs: Costs | None,
    bootstrap: _Bootstrap,
) -> Deployment:
    def change(ours: Floats, theirs: Floats, n: tuple[int, ...]) -> Estimate:
        return bootstrap.estimate(_Replicates(servers * ours / theirs - 1.0, n))

    of_mix = [pair for pair in pairs if pair.share is not None]
    operations = []
    for operation in dict.fromkeys(pair.key.operation for pair in of_mix):
        part = _mix([p for p in of_mix if p.key.operation == operation], workload.share_of)
        # The number of servers rests on the whole mix, unless it is given.
        n = mix.n if kind == "fractional" else part.n
        operations.append(Change(operation, True, change(part.b_lp, part.b_ts, n)))
    count = _Replicates(servers, mix.n)
    return Deployment(
        kind,
        bootstrap.estimate(count)
        if kind == "fractional"
        else Estimate(float(servers[0]), None, (), "a given number has no interval"),
        change(mix.p_lp, mix.p_ts, mix.n),
        Estimate(0.0, None, mix.n, "0 by definition: the servers keep the mix's bandwidth")
        if kind == "fractional"
        else change(mix.b_lp, mix.b_ts, mix.n),
        tuple(operations),
        tuple(
            Change(
                pair.key.label,
                pair.share is not None,
                change(
                    pair.low_power.bandwidth,
                    pair.traditional.bandwidth,
                    mix.n + pair.n if kind == "fractional" else pair.n,
                ),
            )
            for pair in pairs
        ),
        _money(servers, mix, systems, costs, bootstrap) if costs else None,
    )


# Money ----------------------------------------------------------------------------------------


def _saved_w(servers: Floats, mix: _Mix, systems: tuple[System, System], costs: Costs) -> Any:
    """Mean power saved in place of one traditional server, or why it is not known."""
    busy = costs.busy_share
    if busy is None:
        return mix.p_ts - servers * mix.p_lp
    needed = busy * mix.b_ts / (servers * mix.b_lp)
    if needed[0] > 1.0 + 1e-9:
        return (
            f"{servers[0]:.4g} servers cannot carry the load: they would be busy "
            f"{100 * needed[0]:.4g} % of the time"
        )
    needed = np.minimum(needed, 1.0)
    idles = []
    for system, share in zip(systems, (busy, float(needed[0])), strict=True):
        if system.idle_power_w is None and share < 1.0 - 1e-9:
            return f"the idle power of {system.name} is not known, and it idles part of the time"
        idles.append(system.idle_power_w)
    # At full load a missing idle power counts nothing; its weight is 0 but for rounding.
    idle_ts, idle_lp = (0.0 if idle is None else idle for idle in idles)
    p_ts = busy * mix.p_ts + (1.0 - busy) * idle_ts
    p_lp = needed * mix.p_lp + (1.0 - needed) * idle_lp
    return p_ts - servers * p_lp


def _money(
    servers: Floats,
    mix: _Mix,
    systems: tuple[System, System],
    costs: Costs,
    bootstrap: _Bootstrap,
) -> Money:
    def figure(values: Floats) -> Estimate:
        return bootstrap.estimate(_Replicates(values, mix.n))

    traditional, low_power = systems
    unpriced = [system.name for system in systems if system.price is None]
    no_price = f"the price of {' and '.join(unpriced)} is not known" if unpriced else None
    saved_w = _saved_w(servers, mix, systems, costs)
    if isinstance(saved_w, str):
        none = _none(saved_w)
        purchase = _none(no_price or "")
        if traditional.price is not None and low_power.price is not None:
            purchase = figure(servers * low_power.price - traditional.price)
        return Money(purchase, none, none, none, None, none, none, none)
    kwh = saved_w * costs.pue * KWH_PER_W_YEAR
    running = kwh * costs.price_per_kwh
    if no_price is not None or traditional.price is None or low_power.price is None:
        none = _none(no_price or "")
        return Money(none, figure(kwh), figure(running), none, None, none, none, none)
    bought = servers * low_power.price - traditional.price
    outcomes = _outcomes(bought, running)
    outcome = outcomes[0]
    server_price = (traditional.price + running * costs.years) / servers - (
        low_power.price - (low_power.server_price or 0.0)
    )
    allowed = figure(server_price)
    if allowed.value is not None and allowed.value < 0:
        allowed = replace(allowed, reason="negative: not even servers given away would pay back")
    return Money(
        figure(bought),
        figure(kwh),
        figure(running),
        figure(running * costs.years - bought),
        outcome,
        _crossing(outcomes, bought, running, mix.n, bootstrap),
        _crossing(outcomes, bought, kwh * costs.years, mix.n, bootstrap, price=True),
        allowed,
    )


def _outcomes(bought: Floats, saved: Floats) -> list[Outcome]:
    dearer, saving = bought > 0, saved > 0
    until = (bought < 0) & (saved < 0)
    at_once = ~dearer & (saved >= 0)
    words = np.select([dearer & saving, until, at_once], ["pays-back", "until", "at-once"], "never")
    return cast(list[Outcome], words.tolist())


def _crossing(
    outcomes: Sequence[Outcome],
    bought: Floats,
    saved: Floats,
    n: tuple[int, ...],
    bootstrap: _Bootstrap,
    price: bool = False,
) -> Estimate:
    """bought / saved where that is a break-even: years, or (`price`) the price of a kWh."""
    outcome = outcomes[0]
    if outcome == "never":
        return _none("never: not cheaper to buy, and no energy is saved")
    if outcome == "at-once" and price:
        return _none("any price: cheaper to buy and no dearer to run")
    if outcome == "at-once":
        values: Floats = np.zeros_like(bought)
    else:
        with np.errstate(divide="ignore", invalid="ignore"):
            values = bought / saved
    others = sum(word != outcome for word in outcomes[1:])
    if others:
        share = 100.0 * others / (len(outcomes) - 1)
        reason = f"no interval: in {share:.3g} % of the resamples the outcome is not {outcome!r}"
        too_few = too_few_for_interval(n, bootstrap.confidence)
        return Estimate(float(values[0]), None, n, too_few or reason)
    return bootstrap.estimate(_Replicates(values, n))
