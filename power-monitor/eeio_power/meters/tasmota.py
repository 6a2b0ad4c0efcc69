"""Plugs with power metering that run the Tasmota firmware, on the network.

`tasmota:HOST[,user=NAME]`: `/cm?cmnd=Status%208` -> `StatusSNS.ENERGY.Power`, W. Tasmota's own
counter (`Total`, kWh in steps of 3.6 kJ) is too coarse for windows of minutes and is not used.

Accuracy depends on the calibration that its owner did: 3 % and 1 W are used. The energy chips give
a value about once a second; Tasmota shows integer watts unless `WattRes` is set.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from eeio_power import http_json
from eeio_power.delay import PLUG
from eeio_power.errors import PowerError
from eeio_power.meters import Channel, Detected, Verified, first_reading, number_option
from eeio_power.reading import WALL, Kind

OPTIONS = {
    "host": "the plug's address",
    "user": "user name of its web page",
    "password_file": http_json.OPTIONS["password_file"],
    "timeout_s": http_json.OPTIONS["timeout_s"],
    "period_s": "how often the plug takes a new reading, s (default 1)",
}
ARGUMENT = "host"

KIND: Kind = "measured"
VERIFIED_ON: Verified = "simulator"
NATIVE_PERIOD_S = 1.0
DELAY = PLUG
MAX_POWER_W = 16 * 250.0


@dataclass(frozen=True)
class TasmotaMeter:
    """One plug."""

    spec: str
    name: str
    client: http_json.JsonClient
    path: str = field(repr=False)
    """May hold the password."""
    native_period_s: float = NATIVE_PERIOD_S
    kind: Kind = KIND
    channels: Sequence[Channel] = (
        Channel(
            name="tasmota:system",
            domain="system",
            quantity="power_w",
            accuracy_relative=0.03,
            resolution=1.0,
            max_power_w=MAX_POWER_W,
            contents=WALL,
        ),
    )

    def read(self) -> Sequence[float | None]:
        """W. Raises PowerError if the plug is silent or does not meter."""
        answer = self.client.get(self.path)
        power_w = http_json.number_at(answer, "StatusSNS", "ENERGY", "Power")
        if power_w is None:
            # A plug with several channels gives a list; its sum is the power of the plug.
            power_w = _sum_of(answer)
        if power_w is None:
            raise PowerError(f"{self.client.host}: no StatusSNS.ENERGY.Power in its Status 8")
        return [power_w]

    def close(self) -> None:
        """Drop the connection."""
        self.client.close()


def open_meter(spec: str, options: Mapping[str, str], root: Path) -> TasmotaMeter:
    """Take a first reading. Raises PowerError if there is none."""
    host = options.get("host")
    if host is None:
        raise PowerError(f"meter '{spec}': which plug? Such as tasmota:192.168.1.21")
    path = "/cm?cmnd=Status%208"
    if "user" in options:
        # Tasmota takes its web password as parameters.
        word = quote(http_json.password(spec, options), safe="")
        path = f"/cm?user={quote(options['user'], safe='')}&password={word}&cmnd=Status%208"
    network = {}
    for key, value in options.items():
        if key != "user":
            network[key] = value
    meter = TasmotaMeter(
        spec=spec,
        name=options.get("name", "tasmota"),
        client=http_json.client(spec, network, host),
        path=path,
        native_period_s=number_option(spec, options, "period_s", above_zero=True)
        or NATIVE_PERIOD_S,
    )
    return first_reading(meter, "; check the address and its password")


def find(root: Path) -> Detected:
    """It is unknown which plug feeds this machine."""
    return Detected(
        "tasmota",
        KIND,
        ("system",),
        False,
        "eeio does not search the network for plugs",
        "name it: --meter tasmota:ADDRESS",
    )


def _sum_of(answer: object) -> float | None:
    """The sum over all channels; None unless each of them gives a number."""
    total_w, k = 0.0, 0
    while (part_w := http_json.number_at(answer, "StatusSNS", "ENERGY", "Power", k)) is not None:
        total_w, k = total_w + part_w, k + 1
    if k and k == _channels(answer):
        return total_w
    return None


def _channels(answer: Any) -> int:
    return len(answer["StatusSNS"]["ENERGY"]["Power"])
