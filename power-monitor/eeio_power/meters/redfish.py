"""The power reading of a server's management controller (BMC), by Redfish.

`redfish:https://BMC,user=NAME[,chassis=ID][,cafile=FILE | ,insecure=yes]`; the password comes from
`password_file=` or the environment, never from the spec, which is stored with the results.

Read is, of the chassis (named, or the first that has one), what is there first of

- `/redfish/v1/Chassis/ID/EnvironmentMetrics` -> `PowerWatts.Reading` (Redfish 2020.4 on),
- `/redfish/v1/Chassis/ID/Power` -> `PowerControl[0].PowerConsumedWatts`.

BMCs are rarely faster than once a second, many slower (`period_s=`); most give whole watts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eeio_limits.inputs import CHASSIS
from eeio_power import http_json
from eeio_power.errors import PowerError
from eeio_power.meters import Channel, Finding, number_option
from eeio_power.reading import MACHINE, Kind

OPTIONS = {
    "url": "the BMC, such as https://bmc.example",
    "chassis": "the chassis' Id (default: the first one that gives a reading)",
    "period_s": "how often the BMC takes a new reading, s (default 1)",
    **http_json.OPTIONS,
}
ARGUMENT = "url"

KIND: Kind = "measured"
NATIVE_PERIOD_S = 1.0
ACCURACY = 0.05
RESOLUTION_W = 1.0
MAX_POWER_W = 50e3

_CHASSIS = "/redfish/v1/Chassis"
_PLACES: tuple[tuple[str, tuple[str | int, ...]], ...] = (
    ("/EnvironmentMetrics", ("PowerWatts", "Reading")),
    ("/Power", ("PowerControl", 0, "PowerConsumedWatts")),
)


@dataclass(frozen=True)
class RedfishMeter:
    """One chassis of one BMC."""

    spec: str
    name: str
    client: http_json.JsonClient
    path: str
    keys: tuple[str | int, ...]
    native_period_s: float = NATIVE_PERIOD_S
    kind: Kind = KIND
    channels: Sequence[Channel] = (
        Channel(
            name="redfish:system",
            domain="system",
            quantity="power_w",
            accuracy_relative=ACCURACY,
            resolution=RESOLUTION_W,
            max_power_w=MAX_POWER_W,
            contents=MACHINE,
        ),
    )

    def read(self) -> Sequence[float | None]:
        """W. Raises PowerError if the BMC is silent or has no reading now."""
        power_w = http_json.number_at(self.client.get(self.path), *self.keys)
        if power_w is None:
            raise PowerError(f"{self.client.host}{self.path}: no power reading in the answer")
        return [power_w]

    def close(self) -> None:
        """Drop the connection."""
        self.client.close()


def open_meter(spec: str, options: Mapping[str, str], root: Path) -> RedfishMeter:
    """Find the chassis and take a first reading. Raises PowerError."""
    url = options.get("url")
    if url is None:
        raise PowerError(f"meter '{spec}': which BMC? Such as redfish:https://bmc.example,user=me")
    client = http_json.client(spec, options, url)
    period_s = number_option(spec, options, "period_s", above_zero=True) or NATIVE_PERIOD_S
    problem = ""
    try:
        for chassis in _chassis(client, options.get("chassis")):
            for place, keys in _PLACES:
                try:
                    answer = client.get(f"{chassis}{place}")
                except PowerError as error:
                    problem = f": {error}"
                    continue  # a chassis need not have it
                if http_json.number_at(answer, *keys) is not None:
                    name = options.get("name", "redfish")
                    return RedfishMeter(spec, name, client, f"{chassis}{place}", keys, period_s)
    except PowerError as error:
        client.close()
        raise PowerError(f"meter '{spec}': {error}") from error
    client.close()
    raise PowerError(f"meter '{spec}': no chassis of {client.host} gives a power reading{problem}")


def find(root: Path) -> Finding:
    """Nobody can tell from here which BMC there is."""
    return Finding(
        "redfish", KIND, ("system",), False, "a BMC on the network is not searched for",
        "name it: --meter redfish:https://ADDRESS,user=NAME",
    )  # fmt: skip


def _chassis(client: http_json.JsonClient, wanted: str | None) -> list[str]:
    if wanted is not None:
        return [f"{_CHASSIS}/{wanted}"]
    answer: Any = client.get(_CHASSIS)
    try:
        found = [str(member["@odata.id"]) for member in answer["Members"]]
    except (KeyError, TypeError) as error:
        raise PowerError(f"{client.host}{_CHASSIS}: not a list of chassis") from error
    return [path for path in found if path.startswith(f"{_CHASSIS}/")][:CHASSIS]
