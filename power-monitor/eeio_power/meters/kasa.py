"""Plugs and power strips of TP-Link: Kasa and Tapo, on the local network.

`kasa:HOST[,outlet=NAME][,user=NAME,password_file=FILE]`:

- without `user=`, the protocol of the first generation (HS110, KP115, HS300, EP25 v1): TCP 9999,
  four bytes of length, JSON whose bytes are each combined (XOR) with the encrypted byte before, 171
  at first. `{"emeter": {"get_realtime": {}}}` -> `power_mw`, or `power` in W of an HS110 v1;
- with `user=`, the name of the TP-Link account, newer plugs (P110, P115, KP125M) by python-kasa.

TP-Link states no accuracy; 2 % and 0.1 W are used. A plug has a new value about once a second.
"""

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from eeio.errors import LimitError
from eeio.files import inputs
from eeio_power import http_json
from eeio_power.delay import PLUG
from eeio_power.errors import PowerError
from eeio_power.meters import (
    Channel,
    Detected,
    Verified,
    domain_option,
    first_reading,
    host_and_port,
    library,
    number_option,
)
from eeio_power.meters._deadline import Exchange
from eeio_power.reading import DOMAINS, UNKNOWN, WALL, Kind

OPTIONS = {
    "host": "address of the plug, HOST or HOST:PORT",
    "outlet": "name or number (from 1) of an outlet of a power strip",
    "user": "name of the TP-Link account, for newer plugs (Tapo, KP125M)",
    "password_file": http_json.OPTIONS["password_file"],
    "domain": f"power domain: {', '.join(DOMAINS)} (default system)",
    "accuracy": "uncertainty as a share (default 0.02)",
    "period_s": "how often the plug takes a new reading, s (default 1)",
    "timeout_s": "how long an answer may take, s (default 2; newer plugs 10)",
}
ARGUMENT = "host"

KIND: Kind = "measured"
VERIFIED_ON: Verified = "simulator"
NATIVE_PERIOD_S = 1.0
DELAY = PLUG
MAX_POWER_W = 16 * 250.0
PORT = 9999
_ACCURACY, _RESOLUTION_W = 0.02, 0.2
_TIMEOUT_S, _NEW_TIMEOUT_S, _MOST_TIMEOUT_S = 2.0, 10.0, 60.0
_FIRST_KEY = 171
# An answer of a strip with six outlets has less than 4 KiB.
_MOST_BYTES = 1 << 16
_T = TypeVar("_T")


class Plug(Protocol):
    """What a reading needs of either generation."""

    model: str

    def power_w(self) -> float:
        """Raises PowerError."""

    def close(self) -> None: ...


def encrypted(data: bytes) -> bytes:
    """Each byte is combined with the encrypted one before."""
    key, result = _FIRST_KEY, bytearray()
    for byte in data:
        key ^= byte
        result.append(key)
    return bytes(result)


def decrypted(data: bytes) -> bytes:
    """The inverse."""
    keys = bytes([_FIRST_KEY]) + data
    return bytes(key ^ byte for key, byte in zip(keys, data, strict=False))


class FirstGeneration:
    """A plug or an outlet of a strip, by TCP. The connection stays open."""

    def __init__(self, host: str, port: int, timeout_s: float) -> None:
        self._host, self._port, self._timeout_s = host, port, timeout_s
        self._socket: socket.socket | None = None
        self.model = "plug"
        self._context: Mapping[str, Any] = {}

    def select(self, outlet: str | None) -> None:
        """Take the plug, or that outlet of a strip. Raises PowerError."""
        info = self._asked({"system": {"get_sysinfo": {}}}, "system", "get_sysinfo")
        self.model = str(info.get("model", "plug"))[:40]
        try:
            # A child's id may be only the part that is added to the device's.
            outlets = [
                (
                    str(child.get("alias", "")),
                    child["id"] if len(child["id"]) > 2 else info["deviceId"] + child["id"],
                )
                for child in info.get("children", ())
            ]
        except (KeyError, TypeError, AttributeError) as error:
            raise PowerError(f"{self._host}: not the information of a Kasa plug") from error
        number = _outlet(self._host, self.model, [name for name, _ in outlets], outlet)
        if number is not None:
            self._context = {"context": {"child_ids": [outlets[number][1]]}}

    def power_w(self) -> float:
        """Raises PowerError without a power."""
        answer = self._asked(
            {**self._context, "emeter": {"get_realtime": {}}}, "emeter", "get_realtime"
        )
        power_mw = http_json.number_at(answer, "power_mw")
        if power_mw is not None:
            return power_mw / 1e3
        power_w = http_json.number_at(answer, "power")
        if power_w is None:
            raise PowerError(f"{self._host}: the {self.model} gives no power")
        return power_w

    def _asked(self, request: Mapping[str, Any], part: str, command: str) -> Mapping[str, Any]:
        """The answer of one command. Raises PowerError."""
        answer = self._answer(json.dumps(request).encode())
        try:
            result = answer[part]
            result = result.get(command, result)
            code = result.get("err_code", 0)
        except (KeyError, TypeError, AttributeError) as error:
            raise PowerError(f"{self._host}: not an answer of a Kasa plug") from error
        if code != 0:
            reason = str(result.get("err_msg", ""))[:80]
            remedy = ""
            if part == "emeter":
                remedy = "; it may not meter power"
            raise PowerError(f"{self._host}: {part}: error {code!r:.20} {reason}{remedy}")
        return result  # type: ignore[no-any-return]

    def _answer(self, request: bytes) -> Any:
        is_kept = self._socket is not None
        try:
            raw = self._exchanged(request)
        except TimeoutError as error:
            self.close()
            raise PowerError(
                f"{self._host}: no complete answer in {self._timeout_s:g} s"
            ) from error
        except OSError as error:
            self.close()
            # A plug drops idle connections.
            if is_kept:
                return self._answer(request)
            raise PowerError(f"{self._host}:{self._port}: {error}") from error
        try:
            return inputs.parse_json(decrypted(raw), _MOST_BYTES)
        except LimitError as error:
            self.close()
            raise PowerError(f"{self._host}: the answer is {error}") from error

    def _exchanged(self, request: bytes) -> bytes:
        """Raises OSError."""
        if self._socket is None:
            self._socket = socket.create_connection((self._host, self._port), self._timeout_s)
        exchange = Exchange(self._socket, self._timeout_s)
        exchange.send(len(request).to_bytes(4, "big") + encrypted(request))
        size = int.from_bytes(exchange.exactly(4), "big")
        if size > _MOST_BYTES:
            raise OSError(f"an answer of {size} bytes: this is no Kasa plug")
        return exchange.exactly(size)

    def close(self) -> None:
        """Drop the connection; the next request makes a new one."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


class NewGeneration:
    """A plug or an outlet of a strip, by python-kasa; one event loop for all requests."""

    def __init__(
        self, host: str, find: Callable[[], Awaitable[Any]], energy: Any, timeout_s: float
    ) -> None:
        """`find` connects to the device; `energy` is python-kasa's name of the module."""
        self._host, self._energy_module, self._timeout_s = host, energy, timeout_s
        self._loop = asyncio.new_event_loop()
        self._find = find
        self._device: Any = None
        self._energy: Any = None
        self.model = "plug"

    def select(self, outlet: str | None) -> None:
        """Connect, and take the plug, or that outlet of a strip. Raises PowerError."""
        self._device = self._done(self._connected)
        self.model = str(self._device.model)[:40]
        outlets = list(self._device.children)
        names = [str(child.alias or "") for child in outlets]
        number = _outlet(self._host, self.model, names, outlet)
        metered = self._device
        if number is not None:
            metered = outlets[number]
        self._energy = metered.modules.get(self._energy_module)
        if self._energy is None:
            raise PowerError(f"{self._host}: the {self.model} does not meter power")

    async def _connected(self) -> Any:
        device = await self._find()
        await device.update()
        return device

    def power_w(self) -> float:
        """Raises PowerError without a power."""
        status = self._done(self._energy.get_status)
        power_w = http_json.number_at([status.power], 0)
        if power_w is None:
            raise PowerError(f"{self._host}: the {self.model} gives no power")
        return power_w

    def _done(self, request: Callable[[], Awaitable[_T]]) -> _T:
        async def limited() -> _T:
            async with asyncio.timeout(self._timeout_s):
                return await request()

        try:
            return self._loop.run_until_complete(limited())
        except TimeoutError as error:
            raise PowerError(f"{self._host}: no answer in {self._timeout_s:g} s") from error
        except Exception as error:
            # Of python-kasa and the libraries below it; none of them shows the password.
            raise PowerError(
                f"{self._host}: {type(error).__name__}: {error}; check the address, user= and the "
                "password"
            ) from error

    def close(self) -> None:
        """Disconnect."""
        if self._loop.is_closed():
            return
        if self._device is not None:
            # It may be gone already.
            with suppress(PowerError):
                self._done(self._device.disconnect)
        self._loop.close()


def _outlet(host: str, model: str, names: Sequence[str], wanted: str | None) -> int | None:
    """Its place; None for a plug. Raises PowerError with the names if it is not clear."""
    listed = ", ".join(f"{k} {name}" for k, name in enumerate(names, 1))[:200]
    if not names:
        if wanted is not None:
            raise PowerError(f"{host}: a {model} has one outlet; leave out outlet=")
        return None
    if wanted is None:
        raise PowerError(f"{host}: a {model} has several outlets: {listed}; name one with outlet=")
    if wanted.isdecimal() and 1 <= int(wanted[:4]) <= len(names):
        return int(wanted[:4]) - 1
    if names.count(wanted) == 1:
        return names.index(wanted)
    problem = "no outlet"
    if wanted in names:
        problem = "several outlets"
    raise PowerError(f"{host}: {problem} '{wanted}': {listed}; give its number")


@dataclass(frozen=True)
class KasaMeter:
    """One plug, or one outlet of a strip."""

    spec: str
    name: str
    plug: Plug = field(repr=False)
    native_period_s: float
    channels: Sequence[Channel]
    kind: Kind = KIND

    def read(self) -> Sequence[float | None]:
        """W. Raises PowerError if the plug is silent."""
        return [self.plug.power_w()]

    def close(self) -> None:
        """Drop the connection."""
        self.plug.close()


def open_meter(spec: str, options: Mapping[str, str], root: Path) -> KasaMeter:
    """Take a first reading. Raises PowerError if there is none."""
    if "host" not in options:
        raise PowerError(f"meter '{spec}': which plug? Such as kasa:192.168.1.22")
    domain = domain_option(spec, options)
    accuracy = number_option(spec, options, "accuracy")
    period_s = number_option(spec, options, "period_s", above_zero=True) or NATIVE_PERIOD_S
    name = options.get("name", "kasa")
    plug = _plug(spec, options)
    try:
        plug.select(options.get("outlet"))
    except PowerError as error:
        plug.close()
        remedy = "; newer plugs need user= and a password"
        if "user" in options:
            remedy = ""
        raise PowerError(f"meter '{spec}': {error}{remedy}") from error
    if accuracy is None:
        accuracy = _ACCURACY
    contents = UNKNOWN
    if domain == "system":
        contents = WALL
    outlet = ""
    if "outlet" in options:
        outlet = f", outlet {options['outlet']}"
    return first_reading(
        KasaMeter(
            spec=spec,
            name=name,
            plug=plug,
            native_period_s=period_s,
            channels=(
                Channel(
                    name=f"{name}:{domain}",
                    domain=domain,
                    quantity="power_w",
                    accuracy_relative=accuracy,
                    resolution=_RESOLUTION_W,
                    max_power_w=MAX_POWER_W,
                    contents=contents,
                    remark=plug.model + outlet,
                ),
            ),
        )
    )


def _plug(spec: str, options: Mapping[str, str]) -> FirstGeneration | NewGeneration:
    """Not yet connected. Raises PowerError for options that do not fit."""
    is_new = "user" in options
    host, port = host_and_port(spec, options["host"], PORT)
    timeout_s = number_option(spec, options, "timeout_s", above_zero=True, most=_MOST_TIMEOUT_S)
    if not is_new:
        if "password_file" in options:
            raise PowerError(f"meter '{spec}': password_file= needs user=")
        return FirstGeneration(host, port, timeout_s or _TIMEOUT_S)
    if port != PORT:
        raise PowerError(f"meter '{spec}': a plug with user= is found without a port; leave it out")
    word = http_json.password(spec, options)
    kasa = library(spec, "kasa", "kasa")

    async def find() -> Any:
        credentials = kasa.Credentials(options["user"], word)
        return await kasa.Discover.discover_single(host, credentials=credentials)

    return NewGeneration(host, find, kasa.Module.Energy, timeout_s or _NEW_TIMEOUT_S)


def find(root: Path) -> Detected:
    """It is unknown which plug feeds this machine."""
    return Detected(
        "kasa",
        KIND,
        ("system",),
        False,
        "eeio does not search the network for plugs",
        "name it: --meter kasa:ADDRESS",
    )
