"""Shelly plugs and switches with power metering, second generation and later, on the network.

`shelly:HOST[,switch=0]`: `/rpc/Switch.GetStatus?id=0` -> `apower`, W, and `aenergy.total`, Wh,
which is recorded as a counter and not added, for it moves in lumps. An older plug (first
generation) answers `/status` -> `meters[0].power`.

Accuracy: Shelly states none for most models; its chips are specified at 1 %, so 2 % and 0.1 W are
used. A reading is made about once a second.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eeio_power import http_json
from eeio_power.errors import PowerError
from eeio_power.meters import Channel, Finding, number_option
from eeio_power.reading import WALL, Kind

OPTIONS = {
    "host": "the plug's address",
    "switch": "number of the switch (default 0)",
    "period_s": "how often the plug takes a new reading, s (default 1)",
    **http_json.OPTIONS,
}
ARGUMENT = "host"

KIND: Kind = "measured"
NATIVE_PERIOD_S = 1.0
ACCURACY = 0.02
MAX_POWER_W = 16 * 250.0
J_PER_WH = 3600.0

POWER = Channel(
    name="shelly:system",
    domain="system",
    quantity="power_w",
    accuracy_relative=ACCURACY,
    resolution=0.2,
    max_power_w=MAX_POWER_W,
    contents=WALL,
)
ENERGY = Channel(
    name="shelly:counter",
    domain="system",
    quantity="energy_j",
    accuracy_relative=ACCURACY,
    resolution=0.001 * J_PER_WH,
    in_domain_total=False,
    contents=WALL,
)


@dataclass(frozen=True)
class ShellyMeter:
    """One switch of one plug."""

    spec: str
    name: str
    client: http_json.JsonClient
    switch: int
    first_generation: bool
    native_period_s: float = NATIVE_PERIOD_S
    kind: Kind = KIND

    @property
    def channels(self) -> Sequence[Channel]:
        return (POWER,) if self.first_generation else (POWER, ENERGY)

    def read(self) -> Sequence[float | None]:
        """W, and J since the plug was new. Raises PowerError without a power reading."""
        if self.first_generation:
            answer = self.client.get("/status")
            power_w = http_json.number_at(answer, "meters", self.switch, "power")
            if power_w is not None and not _is_valid(answer, self.switch):
                raise PowerError(
                    f"{self.client.host}: switch {self.switch}: the plug's own check of the meter "
                    "failed"
                )
            values: list[float | None] = [power_w]
        else:
            answer = self.client.get(f"/rpc/Switch.GetStatus?id={self.switch}")
            power_w = http_json.number_at(answer, "apower")
            energy_wh = http_json.number_at(answer, "aenergy", "total")
            values = [power_w, None if energy_wh is None else energy_wh * J_PER_WH]
        if power_w is None:
            raise PowerError(f"{self.client.host}: switch {self.switch} gives no power")
        return values

    def close(self) -> None:
        """Drop the connection."""
        self.client.close()


def open_meter(spec: str, options: Mapping[str, str], root: Path) -> ShellyMeter:
    """Take a first reading, by either generation's way. Raises PowerError if there is none."""
    host = options.get("host")
    if host is None:
        raise PowerError(f"meter '{spec}': which plug? Such as shelly:192.168.1.20")
    client = http_json.client(spec, options, host)
    switch = int(number_option(spec, options, "switch") or 0)
    period_s = number_option(spec, options, "period_s", above_zero=True) or NATIVE_PERIOD_S
    problem: PowerError | None = None
    for first_generation in (False, True):
        name = options.get("name", "shelly")
        meter = ShellyMeter(spec, name, client, switch, first_generation, period_s)
        try:
            meter.read()
        except PowerError as error:
            problem = problem or error
        else:
            return meter
    client.close()
    raise PowerError(f"meter '{spec}': {problem}; check the address, and that it meters power")


def find(root: Path) -> Finding:
    """Nobody can tell from here which plug feeds this machine."""
    return Finding(
        "shelly", KIND, ("system",), False, "plugs on the network are not searched for",
        "name it: --meter shelly:ADDRESS",
    )  # fmt: skip


def _is_valid(answer: Any, switch: int) -> bool:
    """What a plug of the first generation says of its own meter (`is_valid`), if it does."""
    return answer["meters"][switch].get("is_valid", True) is not False
