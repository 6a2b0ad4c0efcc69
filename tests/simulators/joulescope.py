"""A stand-in for the module pyjoulescope_driver. It is our own: the package has no simulator.

It has the part of the interface that eeio uses, with the statistics dictionary of version 2.2.12.
`beat` publishes the next statistics, so that a test needs no waiting.
"""

from collections.abc import Callable
from typing import Any

DEVICE = "u/js220/000415"
Callback = Callable[[str, Any], None]


def statistics(
    first: int, end: int, power_w: float, energy_j: float | None, sample_hz: float = 1e6
) -> dict[str, Any]:
    """The dictionary that the driver publishes."""
    volts = 3.3
    duration_s = (end - first) / sample_hz

    def signal(mean: float, unit: str) -> dict[str, Any]:
        parts = {"avg": mean, "std": 0.01, "min": mean, "max": mean, "p2p": 0.0}
        return {name: {"value": value, "units": unit} for name, value in parts.items()}

    value: dict[str, Any] = {
        "time": {
            "samples": {"value": [first, end], "units": "samples"},
            "sample_freq": {"value": sample_hz, "units": "Hz"},
            "range": {"value": [first / sample_hz, end / sample_hz], "units": "s"},
            "delta": {"value": duration_s, "units": "s"},
        },
        "signals": {
            "current": signal(power_w / volts, "A"),
            "voltage": signal(volts, "V"),
            "power": signal(power_w, "W"),
        },
    }
    if energy_j is not None:
        value["accumulators"] = {
            "charge": {"value": energy_j / volts, "int_value": 0, "units": "C"},
            "energy": {"value": energy_j, "int_value": 0, "units": "J"},
        }
    return value


class FakeJoulescope:
    """The device behind the driver, which keeps its counters while no driver is open."""

    def __init__(self, devices: tuple[str, ...] = (DEVICE,), *, has_energy: bool = True) -> None:
        self.devices = devices
        self.has_energy = has_energy
        self.sample_hz = 1e6
        self.power_w = 2.5
        self.energy_j = 0.0
        self.next = 1000
        self.period_s = 0.01
        self.in_use = False
        self.published: list[tuple[str, Any]] = []
        self.modes: list[str | None] = []
        self.callbacks: list[tuple[str, Callback]] = []

    def Driver(self) -> "FakeDriver":  # noqa: N802 - the driver's name
        """As the class of the module."""
        return FakeDriver(self)

    def beat(self, count: int = 1, *, lose: bool = False) -> None:
        """The next statistics; a lost one is counted by the device."""
        for _ in range(count):
            first = self.next
            self.next += round(self.sample_hz * self.period_s)
            self.energy_j += self.power_w * self.period_s
            if lose:
                continue
            energy_j = self.energy_j if self.has_energy else None
            value = statistics(first, self.next, self.power_w, energy_j, self.sample_hz)
            for topic, callback in list(self.callbacks):
                callback(topic, value)

    def unplug(self) -> None:
        self.devices, self.callbacks = (), []

    def plug_in(self, device: str = DEVICE) -> None:
        """Its counters begin again."""
        self.devices, self.next, self.energy_j = (device,), 1000, 0.0


class FakeDriver:
    """`Driver` of the module."""

    def __init__(self, board: FakeJoulescope) -> None:
        self._board = board
        self._open: set[str] = set()

    def device_paths(self, timeout: float | None = None) -> list[str]:
        return list(self._board.devices)

    def open(
        self, device_prefix: str, mode: str | None = None, timeout: float | None = None
    ) -> None:
        if self._board.in_use:
            raise RuntimeError("jsdrv_open failed 14: IN_USE")
        self._board.modes.append(mode)
        self._open.add(device_prefix)

    def publish(self, topic: str, value: Any, timeout: float | None = None) -> None:
        device = topic.partition("/s/")[0]
        if device not in self._open or device not in self._board.devices:
            raise RuntimeError(f"jsdrv_publish {topic} failed")
        self._board.published.append((topic, value))

    def subscribe(self, topic: str, flags: str, fn: Callback, timeout: float | None = None) -> None:
        self._board.callbacks.append((topic, fn))
        # The first statistics come at once, so that no test waits for them.
        self._board.beat()

    def close(self, device_prefix: str, timeout: float | None = None) -> None:
        self._open.discard(device_prefix)

    def finalize(self, timeout: float | None = None) -> None:
        self._board.callbacks = []
