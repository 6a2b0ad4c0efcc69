"""Joulescope JS220 and JS110: analysers of direct current in the supply line of a drive or board.

`joulescope[:u/js220/000415][,rate=100]` reads the statistics that the maker's driver
(pyjoulescope_driver 2.2, Apache-2.0) publishes: `DEVICE/s/stats/value` is a dictionary with

- `accumulators.energy.value`: J since the accumulator began, the counter of this meter;
- `signals.power.avg.value`: W, the mean since the statistics before, read without a counter;
- `time.samples.value`: number of the first sample and of the one behind the last, and
  `time.sample_freq.value`: their rate, Hz.

eeio selects the automatic current range (`s/i/range/mode`, JS110 `s/i/range/select`) and the rate
(`s/stats/scnt`, samples in a statistic: 1,000,000 a second, JS110 2,000,000), and switches the
statistics on (`s/stats/ctrl`; JS110 computes them on this machine from the streams `s/i`, `s/v` and
`s/p`). A JS220 is opened with the settings that it has (`restore`): the defaults may switch the
current off.

Samples are numbered by the device, so values are at the times of its clock, aligned by the fastest
arrivals. No accuracy was at hand: 1 % is used; set `accuracy=` by the data sheet.
"""

import math
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from eeio.units.quantities import COUNTER_SAMPLE, POWER_SAMPLE
from eeio_power.delay import Delay
from eeio_power.errors import PowerError
from eeio_power.meters import (
    Batch,
    Channel,
    Detected,
    Quantity,
    Verified,
    domain_option,
    library,
    number_option,
)
from eeio_power.reading import DOMAINS, UNKNOWN, Kind, only

OPTIONS = {
    "device": "its path in the driver, such as u/js220/000415 (default: the only one)",
    "rate": "statistics per second, Hz, 1 to 1000 (default 100)",
    "domain": f"power domain: {', '.join(DOMAINS)} (default device)",
    "accuracy": "uncertainty as a share (default 0.01)",
    "timeout_s": "longest wait for statistics, s (default 2)",
}
ARGUMENT = "device"

KIND: Kind = "measured"
VERIFIED_ON: Verified = "simulator"
DELAY = Delay(0.01, 0.0, 0.01, 0.0, "assumed: statistics pass the USB within 20 ms")
_RATE_HZ, _MOST_HZ, _ACCURACY, _TIMEOUT_S = 100.0, 1000.0, 0.01, 2.0
_RESOLUTION_J, _RESOLUTION_W = 1e-6, 1e-3
_MOST_W = 60.0
"""15 V and 3 A, with room for a short peak of current."""
_FALL_J = 1e-3
"""An accumulator falls by the offset of an idle input: less than this is no reset."""
_REOPEN_S = 1.0
_LATE_VALUES = 20
"""The clocks are aligned by the fastest of so many seconds."""
_SAMPLES_HZ = {"js220": 1_000_000, "js110": 2_000_000}


@dataclass(frozen=True)
class Statistics:
    """The parts of a dictionary of statistics that are read."""

    first: int
    """The number of its first sample."""
    end: int
    """That of the one behind the last."""
    sample_hz: float
    power_w: float
    energy_j: float | None


def parsed(value: Mapping[str, Any]) -> Statistics:
    """Raises PowerError for a dictionary without the parts, or with values out of range."""
    try:
        first, end = map(int, value["time"]["samples"]["value"])
        sample_hz = float(value["time"]["sample_freq"]["value"])
        power_w = float(value["signals"]["power"]["avg"]["value"])
        energy = (value.get("accumulators") or {}).get("energy")
        energy_j = None
        if energy is not None:
            energy_j = float(energy["value"])
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise PowerError(f"its statistics are not understood: {error!r:.80}") from error
    if not (first < end and 1.0 <= sample_hz <= 1e9 and POWER_SAMPLE.contains(power_w)):
        raise PowerError("its statistics are out of range")
    if energy_j is not None and not COUNTER_SAMPLE.contains(energy_j):
        raise PowerError("its energy is out of range")
    return Statistics(first, end, sample_hz, power_w, energy_j)


@dataclass
class JoulescopeMeter:
    """One device."""

    spec: str
    name: str
    module: Any
    device: str
    rate_hz: float
    timeout_s: float
    channels: Sequence[Channel] = ()
    kind: Kind = KIND
    _driver: Any = field(default=None, repr=False)
    _arrived: deque[tuple[float, Mapping[str, Any]]] = field(
        default_factory=lambda: deque(maxlen=1 << 16), repr=False
    )
    _came: threading.Event = field(default_factory=threading.Event, repr=False)
    _highest_j: float = 0.0

    @property
    def native_period_s(self) -> float:
        return 1.0 / self.rate_hz

    def open(self) -> None:
        """Start the statistics. Raises PowerError if there is no such device or it is in use."""
        self._arrived.clear()
        self._highest_j = 0.0
        try:
            self._driver = driver = self.module.Driver()
            self.device = _chosen(self.device, driver.device_paths())
            model = _model(self.device)
            mode = "defaults"
            if model == "js220":
                mode = "restore"
            driver.open(self.device, mode=mode)
            for topic, value in _settings(model, self.rate_hz):
                driver.publish(f"{self.device}/s/{topic}", value)
            driver.subscribe(f"{self.device}/s/stats/value", "pub", self._take)
        except PowerError:
            self.close()
            raise
        # The binding raises RuntimeError and others.
        except Exception as error:
            self.close()
            raise PowerError(
                f"{self.device or 'joulescope'}: {error!s:.200}; is it plugged in, and does no "
                "other program, such as the Joulescope UI, use it?"
            ) from error

    def _take(self, topic: str, value: Mapping[str, Any]) -> None:
        """Called by the driver's thread."""
        self._arrived.append((time.monotonic(), value))
        self._came.set()

    def next_values(self, limit_s: float) -> list[tuple[float, Statistics]]:
        """The statistics that arrived since the last call; waits for them. Raises PowerError if
        there are none; the next call opens the device again."""
        if self._driver is None:
            self.open()
        if not self._arrived and not self._came.wait(limit_s):
            self.close()
            lasted_s = limit_s or self.timeout_s
            raise PowerError(f"{self.device}: no statistics in {lasted_s:g} s; was it unplugged?")
        self._came.clear()
        values = []
        while self._arrived:
            arrived_s, value = self._arrived.popleft()
            values.append((arrived_s, parsed(value)))
        return values

    def value_of(self, statistics: Statistics) -> float:
        """J or W of the channel; NaN if the accumulator is missing."""
        if self.channels[0].quantity == "power_w":
            return statistics.power_w
        if statistics.energy_j is None:
            return math.nan
        if statistics.energy_j < self._highest_j - _FALL_J:
            self._highest_j = statistics.energy_j  # it began again
        self._highest_j = max(self._highest_j, statistics.energy_j)
        return self._highest_j

    def read(self) -> Sequence[float | None]:
        """The newest J (or W), after a wait for the next statistics. Raises PowerError."""
        newest: list[tuple[float, Statistics]] = []
        while not newest:
            newest = self.next_values(self.timeout_s)
        value = self.value_of(newest[-1][1])
        return [None if math.isnan(value) else value]

    def batches(self, period_s: float) -> "PushedStatistics":
        """The statistics as they arrive, without a thread of eeio's."""
        return PushedStatistics(self)

    def close(self) -> None:
        """Stop the statistics. The current stays on."""
        driver, self._driver = self._driver, None
        self._came.clear()
        if driver is None:
            return
        # The driver raises its errors for a device that is gone.
        for action in (
            lambda: driver.publish(f"{self.device}/s/stats/ctrl", _OFF[_model(self.device)]),
            lambda: driver.close(self.device),
            driver.finalize,
        ):
            with suppress(Exception):
                action()


_OFF: dict[str, Any] = {"js220": 0, "js110": "off"}


def _settings(model: str, rate_hz: float) -> list[tuple[str, Any]]:
    """Topics and values that select the statistics."""
    scnt = round(_SAMPLES_HZ[model] / rate_hz)
    if model == "js220":
        return [("i/range/mode", "auto"), ("stats/scnt", scnt), ("stats/ctrl", 1)]
    streams = [(f"{signal}/ctrl", "on") for signal in "ivp"]
    return [("i/range/select", "auto"), *streams, ("stats/scnt", scnt), ("stats/ctrl", "on")]


def _model(device: str) -> str:
    """`js220` of `u/js220/000415`. Raises PowerError for another model."""
    for model in _SAMPLES_HZ:
        if f"/{model}/" in f"/{device}/":
            return model
    raise PowerError(f"{device}: eeio reads the models {', '.join(_SAMPLES_HZ)}")


def _chosen(wanted: str, found: Sequence[str]) -> str:
    """Raises PowerError if the device is not there, or if it is not the only one."""
    devices = [device for device in found if not wanted or device == wanted]
    if len(devices) != 1:
        listed = ", ".join(found) or "none"
        raise PowerError(
            f"{wanted or 'joulescope'}: the driver has these devices: {listed}; plug it in, or "
            "name one, joulescope:DEVICE"
        )
    return devices[0]


class PushedStatistics:
    """What the driver published since the last fetch."""

    def __init__(self, meter: JoulescopeMeter) -> None:
        self._meter = meter
        seconds = max(2, round(_LATE_VALUES * meter.rate_hz))
        self._delays_s: deque[float] = deque(maxlen=min(seconds, 2000))
        self._next = 0
        """The number of the sample that is due."""
        self._last_s = -math.inf
        self._opened_s = -math.inf
        self._finishes = False
        self.ended = False

    def start(self) -> None:
        """Drop older values."""
        self._meter._arrived.clear()
        self._opened_s = time.monotonic()

    def fetch(self) -> Batch:
        """Values since the last call. Raises PowerError if the device does not answer."""
        self.ended = self._finishes
        meter = self._meter
        if meter._driver is None:
            if time.monotonic() - self._opened_s < _REOPEN_S:
                return Batch([], [], ([],))
            self._opened_s = time.monotonic()
            meter.open()
        if not meter._arrived and time.monotonic() - self._opened_s < meter.timeout_s:
            return Batch([], [], ([],))
        arrived = meter.next_values(0.0)
        self._opened_s = time.monotonic()
        times_s: list[float] = []
        values: list[float] = []
        problems: dict[int, str] = {}
        for arrived_s, statistics in arrived:
            if statistics.first < self._next:
                self._delays_s.clear()  # its clock began again
            elif self._next and statistics.first > self._next and self._is_power:
                problems[len(values)] = f"{meter.device}: statistics are missing"
            self._next = statistics.end
            device_s = statistics.end / statistics.sample_hz
            self._delays_s.append(arrived_s - device_s)
            self._last_s = max(device_s + min(self._delays_s), self._last_s + 2e-6)
            times_s.append(self._last_s)
            values.append(math.nan if len(values) in problems else meter.value_of(statistics))
        return Batch(times_s, times_s, (values,), problems)

    @property
    def _is_power(self) -> bool:
        return self._meter.channels[0].quantity == "power_w"

    def wait(self, limit_s: float) -> None:
        """Until statistics arrive."""
        self._meter._came.wait(limit_s)

    def sample_now(self) -> None:
        """They come by themselves."""

    def finish(self) -> None:
        """The next fetch is the last one."""
        self._finishes = True

    def kill(self) -> None:
        """No process to end."""
        self.ended = True


def open_meter(spec: str, options: Mapping[str, str], root: Path) -> JoulescopeMeter:
    """Start the statistics and take a first reading. Raises PowerError if there is none."""
    rate_hz = number_option(spec, options, "rate", above_zero=True) or _RATE_HZ
    if not 1.0 <= rate_hz <= _MOST_HZ:
        raise PowerError(f"meter '{spec}': rate={rate_hz:g} is not 1 to {_MOST_HZ:g} Hz")
    domain = domain_option(spec, {"domain": "device", **options})
    accuracy = number_option(spec, options, "accuracy")
    timeout_s = number_option(spec, options, "timeout_s", above_zero=True) or _TIMEOUT_S
    module = library(spec, "pyjoulescope_driver", "joulescope")
    name = options.get("name", "joulescope")
    meter = JoulescopeMeter(
        spec, name, module, options.get("device", ""), rate_hz, max(timeout_s, 2.0 / rate_hz)
    )
    try:
        meter.open()
        statistics = meter.next_values(meter.timeout_s)[-1][1]
    except PowerError as error:
        meter.close()
        raise PowerError(f"meter '{spec}': {error}") from error
    has_counter = statistics.energy_j is not None
    quantity: Quantity = "power_w"
    resolution = _RESOLUTION_W
    source = "mean powers"
    delay = replace(DELAY, averages_s=1.0 / rate_hz)
    if has_counter:
        quantity = "energy_j"
        resolution = _RESOLUTION_J
        source = "energy accumulator"
        delay = DELAY
    if accuracy is None:
        accuracy = _ACCURACY
    contents = UNKNOWN
    if domain == "device":
        contents = only("drives")
    meter.channels = (
        Channel(
            name=f"{name}:{domain}",
            domain=domain,
            quantity=quantity,
            accuracy_relative=accuracy,
            resolution=resolution,
            max_power_w=_MOST_W,
            contents=contents,
            remark=f"{meter.device}: {source}",
            delay=delay,
        ),
    )
    return meter


def find(root: Path) -> Detected:
    """What a device is connected to is unknown."""
    return Detected(
        "joulescope",
        KIND,
        ("device",),
        False,
        "eeio does not search for Joulescopes",
        "name it: --meter joulescope, with the drive on its output",
    )
