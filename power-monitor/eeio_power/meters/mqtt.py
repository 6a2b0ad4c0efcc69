"""Power that a device publishes over MQTT, such as Zigbee2MQTT, Tasmota, Shelly or Home Assistant.

`mqtt:HOST[:PORT],topic=TOPIC[,key=KEY.KEY]`: each message is a number, or JSON with a number at
`key`. A reading is one message, at the time when it arrives, and the device sets the pace:
`period_s` is its reporting interval. Without a message in 2.5 intervals the reading is missing.

A retained message is what the broker stored earlier, at an unknown time. It is no reading. QoS 0
and a clean session keep the broker from storing more.

Accuracy differs from device to device: 5 % and 1 W are used.
"""

import queue
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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
from eeio_power.reading import DOMAINS, UNKNOWN, WALL, Kind

OPTIONS = {
    "host": "address of the broker, HOST or HOST:PORT",
    "topic": "topic of the device, without + and #",
    "key": "where the power is in messages of JSON, such as ENERGY.Power",
    "unit": "W, mW or kW (default W)",
    "domain": f"power domain: {', '.join(DOMAINS)} (default system)",
    "accuracy": "uncertainty as a share (default 0.05)",
    "period_s": "how often the device publishes, s (default 10)",
    "user": "user of the broker",
    "password_file": http_json.OPTIONS["password_file"],
    "tls": "yes: encrypt (port 8883)",
    "cafile": "certificate to trust, with tls=yes",
    "insecure": "yes: do not check the broker's certificate",
    "timeout_s": "how long the broker may take to answer, s (default 5)",
}
ARGUMENT = "host"

KIND: Kind = "measured"
VERIFIED_ON: Verified = "simulator"
_PERIOD_S, _TIMEOUT_S, _ACCURACY, _INTERVALS = 10.0, 5.0, 0.05, 2.5
DELAY = PLUG
_MOST_W = 16 * 250.0
# A message that waited longer, as between two recordings, is not of now.
_FRESH_S = 0.5
_MOST_WAITING = 100
_UNITS = {"W": 1.0, "mW": 1e-3, "kW": 1e3}
_TOPIC = re.compile(r"[^+#\0]{1,500}")


@dataclass
class MqttMeter:
    """One topic."""

    spec: str
    name: str
    place: str
    topic: str
    keys: Sequence[str]
    factor: float
    native_period_s: float
    channels: Sequence[Channel]
    client: Any = field(repr=False)
    kind: Kind = KIND
    paces_itself: bool = True
    problem: str = "no answer"
    """Why no message can come; empty while subscribed."""
    _messages: "queue.Queue[tuple[float, bytes]]" = field(
        default_factory=lambda: queue.Queue(_MOST_WAITING)
    )
    _answered: "queue.SimpleQueue[None]" = field(default_factory=queue.SimpleQueue)

    def connect(self, host: str, port: int, timeout_s: float) -> None:
        """Connect and subscribe. Raises PowerError if the broker refuses."""
        self.client.on_connect = self._connected
        self.client.on_subscribe = self._subscribed
        self.client.on_disconnect = self._disconnected
        self.client.on_message = self._arrived
        self.client.connect_timeout = timeout_s
        try:
            self.client.connect(host, port)
        except (OSError, ValueError) as error:  # also those of TLS
            raise PowerError(f"{self.place}: {error}; check address, port and tls=") from error
        self.client.loop_start()
        with suppress(queue.Empty):
            self._answered.get(timeout=timeout_s)
        if self.problem:
            raise PowerError(f"{self.place}: {self.problem}; check user= and the password, or tls=")

    def _connected(self, client: Any, _1: Any, _2: Any, reason: Any, _3: Any) -> None:
        if reason.is_failure:
            self._finish(f"the broker refuses: {reason}")
        else:
            client.subscribe(self.topic, qos=0)

    def _subscribed(self, _client: Any, _1: Any, _2: Any, reasons: Any, _3: Any) -> None:
        rejected = [reason for reason in reasons if reason.is_failure]
        self._finish(f"the broker refuses topic {self.topic}: {rejected[0]}" if rejected else "")

    def _disconnected(self, _client: Any, _1: Any, _2: Any, reason: Any, _3: Any) -> None:
        # A refusal is followed by a less clear one.
        if not self.problem:
            self.problem = f"the connection was lost: {reason}"

    def _finish(self, problem: str) -> None:
        self.problem = problem
        self._answered.put(None)

    def _arrived(self, _client: Any, _data: Any, message: Any) -> None:
        if not message.retain and not self._messages.full():
            self._messages.put((time.monotonic(), message.payload))

    def read(self) -> Sequence[float | None]:
        """W of the next message. Raises PowerError if none comes, or it is no power."""
        begun_s = time.monotonic()
        end_s = begun_s + _INTERVALS * self.native_period_s
        arrived_s = -1.0
        while arrived_s < begun_s - _FRESH_S:
            try:
                arrived_s, payload = self._messages.get(timeout=max(0.0, end_s - time.monotonic()))
            except queue.Empty:
                raise PowerError(
                    f"{self.place}: {self.topic}: "
                    + (self.problem or f"no new message in {end_s - begun_s:g} s")
                    + "; a retained message is no reading; set period_s= to the device's interval"
                ) from None
        return [self._power_w(payload)]

    def _power_w(self, payload: bytes) -> float:
        try:
            value = inputs.parse_json(payload, inputs.ANSWER_BYTES)
        except LimitError:
            value = None
        power = http_json.number_at(value, *self.keys)
        if power is None:
            where = "no number is"
            if self.keys:
                where = f"no number at {'.'.join(self.keys)} in"
            raise PowerError(
                f"{self.place}: {self.topic}: {where} {payload[:60]!r}; name it with key="
            )
        return power * self.factor

    def close(self) -> None:
        """Disconnect, and end the thread that receives."""
        self.client.disconnect()
        self.client.loop_stop()


def open_meter(spec: str, options: Mapping[str, str], root: Path) -> MqttMeter:
    """Wait for a first message. Raises PowerError if none comes."""
    topic, tls = options.get("topic", ""), options.get("tls") == "yes"
    default_port = 1883
    if tls:
        default_port = 8883
    host, port = host_and_port(spec, options.get("host", ""), default_port)
    domain, unit = domain_option(spec, options), options.get("unit", "W")
    if _TOPIC.fullmatch(topic) is None or unit not in _UNITS:
        raise PowerError(
            f"meter '{spec}': give the topic of one device, such as "
            f"topic=zigbee2mqtt/plug,key=power, and unit={', '.join(_UNITS)}"
        )
    accuracy = number_option(spec, options, "accuracy")
    timeout_s = number_option(spec, options, "timeout_s", above_zero=True) or _TIMEOUT_S
    name = options.get("name", "mqtt")
    paho = library(spec, "paho.mqtt.client", "mqtt")
    client = paho.Client(paho.CallbackAPIVersion.VERSION2)
    if "user" in options:
        client.username_pw_set(options["user"], http_json.password(spec, options))
    if tls:
        client.tls_set_context(http_json.tls_context(spec, options))
    if accuracy is None:
        accuracy = _ACCURACY
    contents = UNKNOWN
    if domain == "system":
        contents = WALL
    keys: Sequence[str] = ()
    if "key" in options:
        keys = options["key"].split(".")
    meter = MqttMeter(
        spec=spec,
        name=name,
        place=options["host"],
        topic=topic,
        keys=keys,
        factor=_UNITS[unit],
        native_period_s=number_option(spec, options, "period_s", above_zero=True) or _PERIOD_S,
        channels=(
            Channel(
                name=f"{name}:{domain}",
                domain=domain,
                quantity="power_w",
                accuracy_relative=accuracy,
                # 1 W either way.
                resolution=2.0,
                max_power_w=_MOST_W,
                contents=contents,
                remark=f"{topic}, published over MQTT",
            ),
        ),
        client=client,
    )
    try:
        meter.connect(host, port, timeout_s)
    except PowerError as error:
        meter.close()
        raise PowerError(f"meter '{spec}': {error}") from error
    return first_reading(meter)


def find(root: Path) -> Detected:
    """Which topic is of this machine's plug is unknown."""
    return Detected(
        "mqtt",
        KIND,
        ("system",),
        False,
        "eeio does not search the network for brokers",
        "name it: --meter mqtt:BROKER,topic=TOPIC,key=KEY",
    )
