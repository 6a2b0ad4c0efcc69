"""Sequences of power readings with a known truth, through the sampler's own code.

    tests/fuzz/run --sequences 20000

A sequence draws a machine's power over time, a meter that reads it, a fault, and a window. No time
passes: the clock is simulated. The energy of the window must lie within its uncertainty, or the
reading must be invalid or doubtful. Of sequences without a fault at most 1 % may be either.

Some faults leave nothing to be seen: a meter that drifts without a second one beside it, or one of
coarse steps that repeats a value for a while. Such sequences are counted on their own
(`Outcome.unobservable`), and each rule is written down here, apart from the code under test.
"""

import math
import multiprocessing
import random
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Literal

from eeio.units.quantities import LEAST_COVERAGE
from eeio_power.energy import ChannelEnergy, channel_energy
from eeio_power.meters import Batch, Channel
from eeio_power.meters.modelled import CpuTicks
from eeio_power.reading import Domain, EnergyReading
from eeio_power.sampler import LoadWatch, Sampler
from eeio_power.samples import MeterInfo
from eeio_power.sampling_loops import BatchLoop, LoggedLoop, Loop, MeterLoop, next_deadline
from tests.simulators.scripted import ScriptedMeter

MOST_CLEAN = 0.01
"""Share of the sequences without a fault that may be marked, and that may be off by more than the
stated uncertainty, which is a root of a sum of squares."""

Fault = Literal[
    "none", "reset", "reset in a gap", "wraps", "wrap in a gap", "wraps in a gap", "jump", "freeze",
    "gap", "below zero", "far below zero", "same time", "out of order", "outlier", "unit change",
    "drift", "clock stands still",
]  # fmt: skip


class Truth:
    """Power in steps, with noise and a slow drift; its integral is exact."""

    def __init__(
        self,
        draw: random.Random,
        levels_w: tuple[float, float],
        until_s: float,
        grain_s: float,
    ) -> None:
        self.low_w, self.high_w = levels_w
        self.times_s, self.joules = [0.0], [0.0]
        self.watts: list[float] = []
        noise = draw.choice((0.002, 0.01, 0.03))
        drift = draw.uniform(-0.05, 0.05) / until_s
        longest_s = draw.choice((2.0, 10.0, 60.0))
        now_s = 0.0
        while now_s < until_s:
            level_w, end_s = draw.uniform(*levels_w), now_s + draw.uniform(0.3, longest_s)
            while now_s < end_s:
                length_s = grain_s * draw.uniform(0.5, 1.5)
                watts = level_w * (1 + drift * now_s) * max(0.2, draw.gauss(1.0, noise))
                now_s += length_s
                self.times_s.append(now_s)
                self.joules.append(self.joules[-1] + watts * length_s)
                self.watts.append(watts)

    def energy_j(self, time_s: float) -> float:
        k = max(0, min(bisect_right(self.times_s, time_s), len(self.watts)) - 1)
        return self.joules[k] + self.watts[k] * (time_s - self.times_s[k])

    def mean_w(self, from_s: float, to_s: float) -> float:
        return (self.energy_j(to_s) - self.energy_j(from_s)) / (to_s - from_s)


@dataclass(frozen=True)
class Kind:
    """A kind of meter, as eeio's own meters describe themselves."""

    name: str
    domain: Domain
    quantity: Literal["power_w", "energy_j"]
    native_s: float
    accuracy: float
    resolution: float
    """What the meter states."""
    step: float
    """What it shows."""
    power_w: tuple[float, float]
    max_w: float | None = None
    range_j: float | None = None
    rates_hz: tuple[float, ...] = (10.0,)
    beats: bool = True
    """It takes a value on a beat of its own; else when it is read."""
    way: Literal["read", "batch", "log"] = "read"

    def channel(self) -> Channel:
        return Channel(
            f"{self.name}:sum", self.domain, self.quantity, self.range_j, self.accuracy,
            self.resolution, max_power_w=self.max_w,
        )  # fmt: skip


_RAPL = Kind(
    "rapl", "package", "energy_j", 0.001, 0.05, 2.0**-14, 2.0**-14, (15.0, 150.0), max_w=500.0,
    range_j=262_143.0, rates_hz=(10.0, 100.0),
)  # fmt: skip
COUNTERS = (
    _RAPL,
    replace(_RAPL, name="reader", power_w=(5.0, 60.0), range_j=65_532.0, way="batch"),
    replace(
        _RAPL, name="small", accuracy=0.01, power_w=(20.0, 90.0), max_w=120.0, range_j=1_000.0,
        rates_hz=(10.0,),
    ),
    replace(_RAPL, name="perf", step=2.0**-32, range_j=None),
    Kind("energy1", "system", "energy_j", 0.1, 0.02, 1e-6, 1e-6, (3.0, 12.0)),
    Kind("ranged", "system", "energy_j", 0.1, 0.02, 1e-3, 1e-3, (30.0, 120.0), range_j=20_000.0),
    Kind("node", "system", "energy_j", 0.1, 0.05, 1.0, 1.0, (150.0, 700.0), max_w=20e3),
    Kind("display", "system", "energy_j", 1.0, 0.02, 3.6, 3.6, (60.0, 200.0), way="log"),
)  # fmt: skip
POWERS = (
    Kind("wattsup", "system", "power_w", 1.0, 0.015, 0.3, 0.1, (40.0, 160.0), 2000.0, beats=False),
    Kind("bmc", "system", "power_w", 1.0, 0.05, 1.0, 1.0, (60.0, 240.0), 32_767.0),
    Kind("acpi", "system", "power_w", 1.0, 0.05, 1.0, 0.001, (50.0, 200.0)),
    Kind("ina", "system", "power_w", 0.1, 0.02, 0.025, 0.025, (2.0, 8.0), beats=False),
    Kind("plug", "system", "power_w", 1.0, 0.02, 0.2, 0.1, (30.0, 120.0), 4000.0),
    Kind("bench", "system", "power_w", 0.5, 0.002, 0.001, 0.001, (60.0, 200.0)),
    Kind("drive", "device", "power_w", 1.0, 0.1, 0.01, 0.01, (2.0, 9.0), 100.0),
    Kind("scope", "system", "power_w", 0.2, 0.05, 0.001, 0.001, (20.0, 80.0), way="log"),
    Kind("untold", "system", "power_w", 0.5, 0.05, 0.0, 1e-6, (20.0, 80.0), way="log"),
)
RANGED = tuple(kind for kind in COUNTERS if kind.range_j is not None)
IDLE = tuple(kind for kind in POWERS if kind.name in ("ina", "plug", "drive", "bench"))
FAULTS: dict[Fault, tuple[Kind, ...]] = {
    "none": (*COUNTERS, *POWERS),
    "reset": COUNTERS,
    "reset in a gap": COUNTERS,
    "wraps": RANGED,
    "wrap in a gap": RANGED,
    "wraps in a gap": RANGED,
    "jump": COUNTERS,
    "freeze": (*COUNTERS, *POWERS),
    "gap": (*COUNTERS, *POWERS),
    "below zero": IDLE,
    "far below zero": POWERS,
    "same time": (*COUNTERS, *POWERS),
    "out of order": (*COUNTERS, *POWERS),
    "outlier": (*COUNTERS, *POWERS),
    "unit change": POWERS,
    "drift": POWERS,
    "clock stands still": (*COUNTERS, *POWERS),
}
CLEAN_SHARE = 0.3


class Clock:
    """The machine's clock, which may be wrong; `real_s` is the time that goes by."""

    def __init__(self) -> None:
        self.real_s = 0.0
        self.shown: Callable[[float], float] = lambda real_s: real_s

    def __call__(self) -> float:
        return self.shown(self.real_s)


class Processors:
    """Ticks of a machine whose load follows its power."""

    def __init__(self, truth: Truth, clock: Clock) -> None:
        self._truth, self._clock = truth, clock

    def load(self, from_s: float, to_s: float) -> float:
        span_w = self._truth.high_w - self._truth.low_w
        share = (self._truth.mean_w(from_s, to_s) - self._truth.low_w) / span_w
        return min(1.0, max(0.0, share))

    def __call__(self) -> CpuTicks:
        now_s = self._clock.real_s
        busy_s = now_s * self.load(0.0, now_s) if now_s > 0 else 0.0
        return CpuTicks(round(1e4 * busy_s), round(1e4 * now_s), 8)


Distortion = Callable[[float, float], float | None]
"""What a fault makes of a value that is read at a time; None: no value."""


class Device:
    """What a meter shows at a time."""

    def __init__(self, kind: Kind, truth: Callable[[float], float], draw: random.Random) -> None:
        self.kind = kind
        self._energy_j = truth
        # A class is a share of the reading, not of the truth.
        self.gain = 1.0 / (1.0 - draw.uniform(-0.98, 0.98) * kind.accuracy)
        self._beat_s = draw.uniform(0.0, kind.native_s)
        self.offset_j = draw.uniform(0.0, kind.range_j or 1e6)
        self.reset_s: float | None = None
        self.extra: Distortion = lambda time_s, value: value
        self.shown: Distortion = lambda time_s, value: value

    def value(self, time_s: float) -> float | None:
        kind, at_s = self.kind, time_s
        if kind.beats:
            beats = math.floor((time_s - self._beat_s) / kind.native_s)
            at_s = beats * kind.native_s + self._beat_s
        if kind.quantity == "energy_j":
            raw = self.offset_j + self.gain * self._energy_j(at_s)
            if self.reset_s is not None and at_s >= self.reset_s:
                raw = self.gain * (self._energy_j(at_s) - self._energy_j(self.reset_s))
        else:
            used_j = self._energy_j(at_s) - self._energy_j(at_s - kind.native_s)
            raw = self.gain * used_j / kind.native_s
        value = self.extra(at_s, raw)
        if value is None:
            return None
        if kind.quantity == "energy_j":
            value = math.floor(value / kind.step) * kind.step
            if kind.range_j is not None:
                value %= kind.range_j
        else:
            value = round(value / kind.step) * kind.step
        return self.shown(time_s, value)


class Reader:
    """A meter's loop, fed by a device."""

    def __init__(self, device: Device, clock: Clock, rate_hz: float, draw: random.Random) -> None:
        kind = device.kind
        self.period_s = max(1.0 / rate_hz, kind.native_s)
        if kind.way == "log":
            self.period_s = kind.native_s
        info_s = self.period_s if kind.quantity == "power_w" else max(0.1, kind.native_s)
        if kind.way == "log":
            info_s = kind.native_s
        self._device, self._clock, self._draw = device, clock, draw
        self.info = MeterInfo(
            kind.name, kind.name, "measured", kind.native_s, info_s, (kind.channel(),)
        )
        self._batch: list[tuple[float, float, float]] = []
        self._log: list[tuple[float, float]] = []
        self.loop: Loop
        if kind.way == "batch":
            self.loop = BatchLoop(self, self.info, clock)
        elif kind.way == "log":
            self.loop = LoggedLoop(self, self.info, clock)  # type: ignore[arg-type]
            self.loop.start()
        else:
            meter = ScriptedMeter(
                self.info.channels, self._answer, kind.name, native_period_s=kind.native_s
            )
            self.loop = MeterLoop(meter, self.info, clock)
        self._value_s: float | None = None

    def read(self, value_s: float | None = None) -> None:
        """One reading now; of the device at `value_s` if that is given."""
        self._value_s = value_s
        if isinstance(self.loop, MeterLoop):
            self.loop._read_once()
            return
        begun_s = self._clock()
        (value,) = self._answer()
        shown = math.nan if value is None else value
        if isinstance(self.loop, BatchLoop):
            self._batch.append((begun_s, self._clock(), shown))
        else:
            self._log.append((self._clock(), shown))

    def _answer(self) -> Sequence[float | None]:
        taken_s = self._draw.uniform(5e-5, 5e-4)
        self._clock.real_s += taken_s / 2
        value = self._device.value(self._clock.real_s if self._value_s is None else self._value_s)
        self._clock.real_s += taken_s / 2
        return [value]

    # What a helper process offers.
    def fetch(self) -> Batch:
        rows, self._batch = self._batch, []
        return Batch([r[0] for r in rows], [r[1] for r in rows], ([r[2] for r in rows],))

    def start(self) -> None: ...
    def wait(self, limit_s: float) -> None: ...
    def sample_now(self) -> None: ...
    def finish(self) -> None: ...
    def kill(self) -> None: ...
    @property
    def ended(self) -> bool:
        return True

    # What a log offers.
    def logged(self) -> tuple[Sequence[float], tuple[Sequence[float], ...]]:
        return [r[0] for r in self._log], ([r[1] for r in self._log],)


@dataclass(frozen=True)
class Outcome:
    """What became of a sequence."""

    kind: str
    fault: Fault
    marked: bool
    """Invalid or doubtful."""
    observable: bool
    """Whether the fault could be seen at all."""
    error_j: float
    limit_j: float
    """Stated: the root of the sum of squares of its parts."""
    sum_j: float
    """The plain sum of the parts, which no error may exceed."""
    true_j: float
    reasons: tuple[str, ...]

    @property
    def within(self) -> bool:
        return self.error_j <= self.limit_j * (1 + 1e-9) + 1e-9

    @property
    def violated(self) -> bool:
        return self.observable and not self.marked and self.error_j > self.sum_j * (1 + 1e-9) + 1e-9


class Scene:
    """A sequence while it is made: the truth, the meters, and the window."""

    def __init__(self, draw: random.Random, kind: Kind, fault: Fault) -> None:
        self.draw, self.fault = draw, fault
        rate_hz = draw.choice(kind.rates_hz)
        period_s = kind.native_s if kind.way == "log" else max(1.0 / rate_hz, kind.native_s)
        self.period_s = period_s
        # Some periods are too few for a window that is to be compared.
        self.length_s = period_s * math.exp(draw.uniform(math.log(8), math.log(120)))
        self.start_s = period_s * draw.uniform(12, 80) + 3.0
        self.end_s = self.start_s + self.length_s
        self.until_s = self.end_s + period_s * draw.choice((1.5, 12.0))
        levels_w = (0.0, 2.0 * kind.resolution) if fault == "below zero" else kind.power_w
        self.truth = Truth(draw, levels_w, self.until_s + 1.0, max(kind.native_s / 3, 0.02))
        self.clock = Clock()
        self.kind = kind
        self.device = Device(kind, self.truth.energy_j, draw)
        self.rate_hz = rate_hz
        self.observable = True
        self.lost: tuple[float, float] = (math.inf, math.inf)
        self.swapped_s: float | None = None
        self.beside: list[Reader] = []
        self.has_load = False
        self.jitter = draw.choice((0.0, 0.003, 0.03))

    def inside(self, margin: float = 0.02) -> float:
        """A time in the window."""
        return self.start_s + self.length_s * self.draw.uniform(margin, 1.0 - margin)

    def span(self, least: float, most: float) -> tuple[float, float]:
        """A stretch of so many periods that has a part in the window."""
        length_s = self.period_s * self.draw.uniform(least, most)
        begin_s = self.draw.uniform(self.start_s - 0.5 * length_s, self.end_s - 0.5 * length_s)
        return begin_s, begin_s + length_s

    def gap(self, least_s: float, most_s: float) -> tuple[float, float]:
        length_s = min(self.draw.uniform(least_s, most_s), 0.8 * self.length_s)
        begin_s = self.draw.uniform(self.start_s, self.end_s - length_s)
        return begin_s, begin_s + length_s

    def run(self) -> Outcome:
        """Reads the meters until the window is over, and judges its energy."""
        _FAULTS[self.fault](self)
        sampler = Sampler([], Path("unused"), clock=self.clock)
        reader = Reader(self.device, self.clock, self.rate_hz, self.draw)
        if self.has_load:
            processors = Processors(self.truth, self.clock)
            sampler._load = LoadWatch([], processors, [reader.info.name])
        readers = [reader, *self.beside]
        sampler._loops = [one.loop for one in readers]
        live = self.draw.random() < 0.5
        self._read(readers, sampler, self.end_s if live else self.until_s)
        if live:
            # The sampler asks for one more reading; one that pushes has it when it comes.
            for one in readers:
                if one.info.channels[0].quantity == "energy_j" or self.draw.random() < 0.7:
                    self.clock.real_s = max(self.clock.real_s, self.end_s)
                    one.read()
        start_s, end_s = self.clock.shown(self.start_s), self.clock.shown(self.end_s)
        # A clock that stands still may show no window at all.
        end_s = max(end_s, start_s + 1e-3)
        (reading, *_) = sampler.energy(start_s, end_s)
        (channel,), kept = reader.info.channels, reader.loop.snapshot(start_s, end_s)
        assert kept.earlier is not None
        parts = channel_energy(
            channel, kept.times_s, kept.values[0], reader.info.period_s, self.kind.native_s,
            start_s, end_s, kept.earlier[0],
        )  # fmt: skip
        return self._judged(reading, parts)

    def _read(self, readers: Sequence["Reader"], sampler: Sampler, until_s: float) -> None:
        next_s = [self.draw.uniform(0.0, one.period_s) for one in readers]
        beats_s = list(next_s)
        noted_s = 0.0
        while min(next_s) < until_s:
            k = next_s.index(min(next_s))
            period_s = readers[k].period_s
            now_s = self.clock.real_s = max(self.clock.real_s, next_s[k])
            if k == 0 and self.swapped_s is not None and now_s >= self.swapped_s:
                # The later reading arrives first.
                shown = self.clock.shown
                self.clock.shown = partial(_shown_later, shown, period_s)
                readers[0].read(now_s + period_s)
                self.clock.shown = shown
                readers[0].read(now_s)
                beats_s[0] += period_s
                self.swapped_s = None
            else:
                readers[k].read()
            # Beats that are missed are skipped, and each read is a little late.
            beats_s[k] = next_deadline(beats_s[k], self.clock.real_s, period_s)
            next_s[k] = beats_s[k] + period_s * self.draw.uniform(0.0, self.jitter)
            if now_s - noted_s > 2.0:
                noted_s = now_s
                sampler._load.note(self.clock())

    def _judged(self, reading: EnergyReading, parts: ChannelEnergy) -> Outcome:
        true_j = self.truth.energy_j(self.end_s) - self.truth.energy_j(self.start_s)
        error_j = limit_j = 0.0
        if reading.energy_j is not None and reading.uncertainty_j is not None:
            error_j, limit_j = abs(reading.energy_j - true_j), reading.uncertainty_j
        sum_j = math.fsum(
            (parts.accuracy_j, parts.unsure_j, parts.quantisation_j, parts.edges_j, parts.gaps_j)
        )
        marked = not reading.valid or reading.doubtful or reading.coverage < LEAST_COVERAGE
        return Outcome(
            self.kind.name, self.fault, marked, self.observable, error_j, limit_j, sum_j, true_j,
            reading.reasons,
        )  # fmt: skip


def _shown_later(shown: Callable[[float], float], by_s: float, real_s: float) -> float:
    return shown(real_s + by_s)


# --- faults ---------------------------------------------------------------------------------------


def _none(scene: Scene) -> None:
    pass


def _reset(scene: Scene) -> None:
    scene.device.reset_s = scene.inside()


def _lose(scene: Scene, gap: tuple[float, float]) -> None:
    scene.device.shown = lambda t, value: None if gap[0] < t < gap[1] else value


def _reset_in_gap(scene: Scene) -> None:
    gap = scene.gap(2 * scene.period_s, 30.0)
    _lose(scene, gap)
    scene.device.reset_s = scene.draw.uniform(*gap)
    # A counter that began not long ago, or is about to wrap, hides a reset best.
    if scene.draw.random() < 0.7:
        used_j = scene.device.gain * scene.truth.energy_j(scene.device.reset_s)
        complete_j = scene.kind.range_j or 0.0
        scene.device.offset_j = (
            complete_j
            - used_j
            + scene.draw.uniform(-0.5, 1.5)
            * (scene.truth.energy_j(gap[1]) - scene.truth.energy_j(gap[0]))
        )


def _of_range(scene: Scene, range_j: float) -> None:
    scene.kind = replace(scene.kind, range_j=range_j)
    scene.device.kind = scene.kind
    scene.device.offset_j = scene.draw.uniform(0.0, range_j)


def _wraps(scene: Scene) -> None:
    used_j = scene.truth.energy_j(scene.end_s) - scene.truth.energy_j(scene.start_s)
    # It may not wrap between two readings.
    least_j = 4.0 * (scene.kind.max_w or 5 * scene.truth.high_w) * scene.period_s
    _of_range(scene, max(used_j / scene.draw.uniform(0.5, 6.0), least_j))


def _wrap_in_gap(scene: Scene) -> None:
    gap = scene.gap(2 * scene.period_s, 30.0)
    _lose(scene, gap)
    at_j = scene.device.gain * scene.truth.energy_j(scene.draw.uniform(*gap))
    scene.device.offset_j = (scene.kind.range_j or 0.0) - at_j


def _wraps_in_gap(scene: Scene) -> None:
    gap = scene.gap(4 * scene.period_s, 60.0)
    _lose(scene, gap)
    used_j = scene.truth.energy_j(gap[1]) - scene.truth.energy_j(gap[0])
    _of_range(scene, used_j / scene.draw.uniform(1.2, 6.0))


def _jump(scene: Scene) -> None:
    """By more than a burst may be: less cannot be told from one."""
    at_s = scene.inside()
    most_w = scene.kind.max_w or 10 * scene.truth.high_w
    least_j = 3.1 * most_w * (scene.period_s + scene.kind.native_s) + 3 * scene.kind.resolution
    extra_j = least_j * 10 ** scene.draw.uniform(0.0, 4.0)
    if scene.kind.range_j is not None:
        extra_j = min(extra_j, 0.9 * scene.kind.range_j)
    scene.device.extra = lambda t, value: value + extra_j if t >= at_s else value


def _freeze(scene: Scene) -> None:
    draw, kind = scene.draw, scene.kind
    begin_s, end_s = scene.span(4, 60)
    constant: list[float] = []
    lost_j = [0.0]
    catches_up = draw.random() < 0.5

    def frozen(t: float, value: float) -> float:
        if t < begin_s or (t >= end_s and not constant):
            return value
        if not constant:
            constant.append(value)
        if t < end_s:
            lost_j[0] = value - constant[0]
            return constant[0]
        return value if catches_up or kind.quantity == "power_w" else value - lost_j[0]

    scene.device.extra = frozen
    if kind.quantity == "energy_j":
        # What it counted before tells that it should move.
        scene.observable = begin_s > 4 * scene.period_s
        return
    if kind.domain == "system" and draw.random() < 0.5:
        scene.has_load = True
    elif kind.domain == "system":
        _part_beside(scene)
    shown_w = scene.truth.mean_w(max(0.0, begin_s - kind.native_s), begin_s + 1e-3)
    until_s = min(end_s, scene.end_s)
    scene.observable = _fine_enough(kind, shown_w, until_s - begin_s) or (
        (scene.has_load or bool(scene.beside)) and _moves(scene, begin_s, until_s)
    )


def _fine_enough(kind: Kind, shown_w: float, lasted_s: float) -> bool:
    """Whether no machine is so steady: docs/reference/meters.md."""
    if not kind.resolution:
        return False  # its own readings tell it, if they are many
    share = kind.resolution / shown_w
    periods = lasted_s / kind.native_s - 2
    return periods >= max(4.0, 150_000 * share) and (share <= 2e-4 or lasted_s >= 600.0)


def _moves(scene: Scene, begin_s: float, end_s: float) -> bool:
    """Whether the power moves by half of its range between two stretches of a freeze, each long
    enough to be seen by who looks every two seconds."""
    length_s = max(5.0, 5 * scene.kind.native_s) + 4.5
    means, at_s = [], begin_s
    while at_s + length_s <= end_s:
        means.append(scene.truth.mean_w(at_s, at_s + length_s))
        at_s += 0.5
    return bool(means) and max(means) - min(means) > 0.6 * (scene.truth.high_w - scene.truth.low_w)


def _part_beside(scene: Scene) -> None:
    """The packages of the same machine, which take half of what is above its least."""
    low_w = scene.truth.low_w

    def energy_j(time_s: float) -> float:
        return 0.6 * (scene.truth.energy_j(time_s) - 0.8 * low_w * time_s)

    device = Device(COUNTERS[0], energy_j, scene.draw)
    scene.beside.append(Reader(device, scene.clock, 10.0, scene.draw))


def _gap(scene: Scene) -> None:
    gap = scene.span(1.2, 30)
    _lose(scene, gap)
    if gap[0] < scene.end_s < gap[1] or gap[0] < scene.start_s < gap[1]:
        # At an edge of the window power that was not seen before stays unseen.
        observed_s = scene.start_s - 8 * scene.period_s, min(gap[0], scene.end_s)
        unseen_s = max(gap[0], scene.start_s), min(gap[1], scene.end_s)
        scene.observable = _highest_w(scene, unseen_s) <= _highest_w(scene, observed_s)


def _highest_w(scene: Scene, span_s: tuple[float, float]) -> float:
    """The highest mean power of a period in a time."""
    count = max(1, math.ceil((span_s[1] - span_s[0]) / scene.period_s))
    length_s = max(1e-6, (span_s[1] - span_s[0]) / count)
    return max(
        scene.truth.mean_w(span_s[0] + k * length_s, span_s[0] + (k + 1) * length_s)
        for k in range(count)
    )


def _below_zero(scene: Scene) -> None:
    """An idle sensor whose offset is below zero."""
    step = scene.kind.resolution
    offset_w, noise_w = -step * scene.draw.uniform(1.0, 7.0), step * scene.draw.uniform(0.1, 0.6)
    scene.device.extra = lambda t, value: value + offset_w + scene.draw.gauss(0.0, noise_w)
    # It shows where a reading is below zero.
    mean_w = scene.truth.mean_w(scene.start_s, scene.end_s)
    scene.observable = mean_w + offset_w < -noise_w - 0.5 * scene.kind.step


def _far_below_zero(scene: Scene) -> None:
    share = scene.draw.choice((0.02, 0.2, 1.0))
    scene.device.shown = lambda t, value: (
        -value if value is not None and scene.draw.random() < share else value
    )


def _same_time(scene: Scene) -> None:
    begin_s = scene.inside()
    end_s = begin_s + scene.period_s * scene.draw.choice((1.5, 3.5))
    # A window that ends meanwhile ends at another time than it seems to.
    scene.observable = not begin_s <= scene.end_s < end_s
    scene.clock.shown = lambda real_s: begin_s if begin_s <= real_s < end_s else real_s


def _out_of_order(scene: Scene) -> None:
    scene.swapped_s = scene.inside(0.1)


def _outlier(scene: Scene) -> None:
    kind, draw = scene.kind, scene.draw
    left = [draw.choice((1, 1, 2))]
    after_s = scene.inside()
    factor = draw.choice((10 ** draw.uniform(0.8, 4.0), 0.0, 0.1))

    def wrong(t: float, value: float | None) -> float | None:
        if value is None or t < after_s or not left[0] or draw.random() < 0.5:
            return value
        left[0] -= 1
        if kind.quantity == "power_w":
            # A reading that is not far from those next to it may be a burst, or a pause.
            around_w = [
                scene.truth.mean_w(t + k * scene.period_s, t + (k + 1) * scene.period_s)
                for k in range(-6, 5)
            ]
            ratio = value * factor / (max(around_w) if factor > 1 else min(around_w))
            scene.observable &= ratio > 6.0 or ratio < 1 / 6.0
        return value * factor

    scene.device.shown = wrong


def _unit_change(scene: Scene) -> None:
    at_s = scene.inside() - scene.draw.choice((0.0, 0.0, 1.0)) * scene.length_s
    factor = scene.draw.choice((1e-3, 1e3))
    if at_s < max(5 * scene.period_s, 0.2 * scene.start_s):
        at_s = scene.inside()  # of the time before, a tenth at least shows the other unit
    scene.device.extra = lambda t, value: value * factor if t >= at_s else value
    scene.observable = scene.kind.domain != "device" or factor > 1.0


def _drift(scene: Scene) -> None:
    """A second meter of the same domain sees it, where it is beyond what both may be wrong by."""
    begin_s = scene.draw.uniform(0.0, scene.start_s)
    slope = scene.draw.uniform(-0.8, 0.8) / (scene.end_s - begin_s)
    scene.device.extra = lambda t, value: value * (1 + slope * max(0.0, t - begin_s))
    second = replace(
        scene.draw.choice(POWERS[:2]), name="second", power_w=scene.kind.power_w,
        domain=scene.kind.domain,
    )  # fmt: skip
    device = Device(second, scene.truth.energy_j, scene.draw)
    scene.beside.append(Reader(device, scene.clock, 10.0, scene.draw))
    drifted = abs(slope * (0.5 * (scene.start_s + scene.end_s) - begin_s))
    mean_w = scene.truth.mean_w(scene.start_s, scene.end_s)
    kinds = (scene.kind, second)
    # Each may be wrong by its class, by its step, and by a period at either edge.
    edges = sum(2 * kind.native_s for kind in kinds) * scene.truth.high_w / mean_w / scene.length_s
    steps = sum(kind.resolution for kind in kinds) / mean_w
    allowed = 2 * sum(kind.accuracy for kind in kinds) * (1 + drifted) + edges + steps
    scene.observable = drifted > allowed and scene.kind.domain != "device"


def _clock_stands_still(scene: Scene) -> None:
    begin_s, end_s = scene.span(2.5, 30)
    lost_s = end_s - begin_s

    def shown(real_s: float) -> float:
        return real_s if real_s < begin_s else max(begin_s, real_s - lost_s)

    scene.clock.shown = shown


_FAULTS: dict[Fault, Callable[[Scene], None]] = {
    "none": _none, "reset": _reset, "reset in a gap": _reset_in_gap, "wraps": _wraps,
    "wrap in a gap": _wrap_in_gap, "wraps in a gap": _wraps_in_gap, "jump": _jump,
    "freeze": _freeze, "gap": _gap, "below zero": _below_zero, "far below zero": _far_below_zero,
    "same time": _same_time, "out of order": _out_of_order, "outlier": _outlier,
    "unit change": _unit_change, "drift": _drift, "clock stands still": _clock_stands_still,
}  # fmt: skip


# --- many of them ---------------------------------------------------------------------------------


def tried(seed: int, index: int) -> Outcome:
    """The sequence of that number."""
    draw = random.Random(f"{seed}:sequence:{index}")
    fault: Fault = "none"
    if draw.random() >= CLEAN_SHARE:
        fault = draw.choice([fault for fault in FAULTS if fault != "none"])
    return Scene(draw, draw.choice(FAULTS[fault]), fault).run()


@dataclass
class Tally:
    """What became of the sequences of one fault."""

    sequences: int = 0
    marked: int = 0
    beyond: int = 0
    """Not marked, and off by more than the stated uncertainty; by no more than its sum."""
    unobservable: int = 0
    hidden: int = 0
    """Of those: not marked, and off by more than the stated limit."""
    violations: list[tuple[int, Outcome]] = field(default_factory=list)

    def add(self, index: int, outcome: Outcome) -> None:
        self.sequences += 1
        self.marked += outcome.marked
        self.unobservable += not outcome.observable
        off = not outcome.marked and not outcome.within
        self.hidden += off and not outcome.observable
        if outcome.violated:
            self.violations.append((index, outcome))
        else:
            self.beyond += off and outcome.observable


def tallied(seed: int, count: int, jobs: int = 1) -> dict[Fault, Tally]:
    """Tries so many sequences, in so many processes."""
    tallies = {fault: Tally() for fault in FAULTS}
    if jobs == 1:
        outcomes = map(partial(tried, seed), range(count))
        for index, outcome in enumerate(outcomes):
            tallies[outcome.fault].add(index, outcome)
        return tallies
    with multiprocessing.get_context("fork").Pool(jobs) as pool:
        for index, outcome in enumerate(pool.imap(partial(tried, seed), range(count), 100)):
            tallies[outcome.fault].add(index, outcome)
    return tallies


def problems(tallies: Mapping[Fault, Tally]) -> list[str]:
    """What must not be."""
    found = [
        f"{fault}, sequence {index}: {outcome.kind} is off by {outcome.error_j:.4g} J, more than "
        f"{outcome.sum_j:.4g} J, of {outcome.true_j:.4g} J"
        for fault, tally in tallies.items()
        for index, outcome in tally.violations
    ]
    clean = tallies["none"]
    for what, number in (("marked", clean.marked), ("beyond the stated limit", clean.beyond)):
        if number > MOST_CLEAN * clean.sequences:
            found.append(f"{number} of {clean.sequences} sequences without a fault are {what}")
    return found


def show(tallies: Mapping[Fault, Tally]) -> None:
    """A line a fault, and the sum."""
    columns = ("sequences", "marked", "beyond", "violated", "unseen", "of these off")
    print(f"{'fault':20}" + "".join(f"{name:>14}" for name in columns))
    rows = {
        fault: (t.sequences, t.marked, t.beyond, len(t.violations), t.unobservable, t.hidden)
        for fault, t in tallies.items()
    }
    for fault, row in {**rows, "all": tuple(map(sum, zip(*rows.values(), strict=True)))}.items():
        print(f"{fault:20}" + "".join(f"{number:14}" for number in row))
