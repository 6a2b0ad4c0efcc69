"""An UPS or PDU that Network UPS Tools serves (upsd, TCP port 3493).

`nut:UPS@HOST[:PORT][,outlet=N]` reads `ups.realpower`, or `outlet.N.realpower`, W, in the protocol
of https://networkupstools.org/docs/developer-guide.chunked/net-protocol.html (`GET VAR`). Apparent
power (`ups.power`, VA) and load in % of a nominal power are not measured watts and are not used.

The figure is the load of the outlets: the machine with its supply, without the losses of the UPS.
Accuracy differs from maker to maker: 5 % and 1 W are used.

A driver renews all values each `pollfreq` seconds, by default 30 (usbhid-ups, nutdrv_qx, snmp-ups),
and upsd repeats them in between. upsd reports `driver.parameter.pollfreq`, but not the default of
snmp-ups. Its `pollinterval` is that of the status: it says nothing about watts.
"""

import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from eeio.units.quantities import POWER
from eeio_power.delay import MOST_S, Delay, unknown_up_to
from eeio_power.errors import PowerError
from eeio_power.meters import Channel, Detected, Verified, first_reading, number_option
from eeio_power.meters._deadline import Exchange
from eeio_power.reading import WALL, Kind

OPTIONS = {
    "ups": "UPS@HOST or UPS@HOST:PORT, as upsc names it",
    "outlet": "number of an outlet (default: the sum of all)",
    "accuracy": "uncertainty as a share (default 0.05)",
    "period_s": "how often the driver renews the value, s (default: its pollfreq, else 30)",
    "timeout_s": "longest wait for an answer, s (default 5)",
}
ARGUMENT = "ups"

KIND: Kind = "measured"
VERIFIED_ON: Verified = "simulator"
_PORT = 3493
_PERIOD_S = 30.0
_DEVICE_S = 5.0
"""How late the UPS itself may be, and how long its means may be."""
_TIMEOUT_S = 5.0
_ACCURACY = 0.05
_ANSWER_BYTES = 1024
_PLACE = re.compile(r"([\w.-]{1,80})@([\w.-]{1,200}|\[[0-9a-fA-F:]{2,45}\])(?::(\d{1,5}))?")


@dataclass
class NutMeter:
    """One UPS, or one outlet of it."""

    spec: str
    name: str
    host: str
    port: int
    ups: str
    variable: str
    timeout_s: float
    native_period_s: float
    channels: Sequence[Channel]
    kind: Kind = KIND
    _connection: socket.socket | None = field(default=None, repr=False)

    def read(self) -> Sequence[float | None]:
        """W. Raises PowerError if upsd is silent, refuses, or the device reports no watts."""
        answer = self._query(f"GET VAR {self.ups} {self.variable}\n")
        match = re.fullmatch(rf'VAR {re.escape(self.ups)} {self.variable} "([^"]*)"', answer)
        if match is None:
            raise PowerError(f"{self.ups}@{self.host}: {self.variable}: {_meaning(answer)}")
        try:
            power_w = float(match[1])
        except ValueError:
            power_w = -1.0
        if not POWER.contains(power_w):
            raise PowerError(f"{self.ups}@{self.host}: {self.variable} is {match[1]!r:.40}, not W")
        return [power_w]

    def renewed_s(self) -> float | None:
        """How often the driver renews all values, s; None if upsd does not report it."""
        variable = "driver.parameter.pollfreq"
        answer = self._query(f"GET VAR {self.ups} {variable}\n")
        match = re.fullmatch(
            rf'VAR {re.escape(self.ups)} {variable} "(\d{{1,9}}(?:\.\d{{1,9}})?)"', answer
        )
        if match:
            return float(match[1]) or None
        return None

    def _query(self, request: str) -> str:
        fresh = self._connection is None
        try:
            return self._answer(request)
        except OSError as error:
            self.close()
            # upsd may have dropped an idle connection.
            if fresh or isinstance(error, TimeoutError):
                raise PowerError(f"{self.host}:{self.port}: {error or 'no answer'}") from error
        try:
            return self._answer(request)
        except OSError as error:
            self.close()
            raise PowerError(f"{self.host}:{self.port}: {error or 'no answer'}") from error

    def _answer(self, request: str) -> str:
        if self._connection is None:
            address = (self.host.strip("[]"), self.port)
            self._connection = socket.create_connection(address, self.timeout_s)
        exchange = Exchange(self._connection, self.timeout_s)
        exchange.send(request.encode("ascii"))
        answer = b""
        while not answer.endswith(b"\n"):
            answer += exchange.part(_ANSWER_BYTES)
            if len(answer) > _ANSWER_BYTES:
                raise ConnectionResetError("the answer is too long for upsd")
        return answer.decode("utf-8", errors="replace").strip()

    def close(self) -> None:
        """Drop the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _meaning(answer: str) -> str:
    meanings = {
        "ERR VAR-NOT-SUPPORTED": "the device does not report watts there; `upsc` lists its "
        "variables, and outlet=N names an outlet",
        "ERR UNKNOWN-UPS": "upsd has no such UPS; `upsc -l HOST` lists them",
        "ERR ACCESS-DENIED": "upsd denies access from this host",
        "ERR DATA-STALE": "upsd lost the device: its data is stale",
        "ERR DRIVER-NOT-CONNECTED": "upsd has no connection to the device's driver",
    }
    return meanings.get(answer, f"not an answer of upsd: {answer[:80]!r}")


def _delay(period_s: float) -> Delay:
    """Of a value that the driver reads each `period_s`."""
    return unknown_up_to(
        period_s + _DEVICE_S,
        _DEVICE_S,
        f"NUT: a new value each {period_s:g} s; assumed of a UPS: up to {_DEVICE_S:g} s late, "
        f"means of up to {_DEVICE_S:g} s",
    )


DELAY = _delay(_PERIOD_S)


def open_meter(spec: str, options: Mapping[str, str], root: Path) -> NutMeter:
    """Take a first reading. Raises PowerError if there is none."""
    place = _PLACE.fullmatch(options.get("ups", ""))
    if place is None or int(place[3] or _PORT) > 65535:
        raise PowerError(f"meter '{spec}': give UPS@HOST, such as nut:rack1@127.0.0.1")
    outlet = options.get("outlet")
    if outlet is not None and re.fullmatch(r"\d{1,4}", outlet) is None:
        raise PowerError(f"meter '{spec}': outlet={outlet} is not a number")
    accuracy = number_option(spec, options, "accuracy")
    name = options.get("name", "nut")
    if accuracy is None:
        accuracy = _ACCURACY
    variable = "ups.realpower"
    if outlet is not None:
        variable = f"outlet.{outlet}.realpower"
    meter = NutMeter(
        spec=spec,
        name=name,
        host=place[2],
        port=int(place[3] or _PORT),
        ups=place[1],
        variable=variable,
        timeout_s=number_option(spec, options, "timeout_s", above_zero=True) or _TIMEOUT_S,
        native_period_s=_PERIOD_S,
        channels=(
            Channel(
                name=f"{name}:system",
                domain="system",
                quantity="power_w",
                accuracy_relative=accuracy,
                resolution=1.0,
                contents=WALL,
            ),
        ),
    )
    first_reading(meter)
    stated_s = number_option(spec, options, "period_s", above_zero=True)
    try:
        period_s = stated_s or meter.renewed_s() or _PERIOD_S
    except PowerError as error:
        meter.close()
        raise PowerError(f"meter '{spec}': {error}") from error
    if period_s > MOST_S:
        meter.close()
        raise PowerError(
            f"meter '{spec}': the driver renews its values each {period_s:g} s: set pollfreq in "
            f"ups.conf to {MOST_S:g} at most"
        )
    meter.native_period_s = period_s
    meter.channels = [replace(channel, delay=_delay(period_s)) for channel in meter.channels]
    return meter


def find(root: Path) -> Detected:
    """Which UPS feeds this machine is unknown, and it may feed others."""
    return Detected(
        "nut",
        KIND,
        ("system",),
        False,
        "eeio does not search for upsd",
        "name it: --meter nut:UPS@HOST, if it feeds this machine only",
    )
