"""Energy meters that speak Modbus, over TCP or a serial line (RTU).

`modbus:HOST[:PORT],model=sdm120` or `modbus:/dev/ttyUSB0,model=sdm630[,baud=9600][,device_id=1]`:
the active power of Eastron's SDM meters, input registers of 32-bit floats in W (Eastron, SDM230 and
SDM630 Modbus protocols). Their energy (0x0156) moves in steps of at least 36 kJ and is not used.

Any other device: `register=,type=` and `unit=` (W, or a counter in Wh or J), with the register's
address as it is sent: what a manual calls 30013 or 40013 is 12.

A request that fails drops the connection. A late answer would else be taken for the next one: RTU
has no numbers to tell them apart.

Accuracy of the SDM meters: class 1 (IEC 62053-21), which is 1.5 % below a tenth of the base
current; 1 W is added. Eastron states no lag.
"""

import inspect
import logging
import math
import os
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eeio.units.quantities import FIGURE
from eeio_power.delay import unknown_up_to
from eeio_power.errors import PowerError
from eeio_power.meters import (
    Channel,
    Detected,
    Quantity,
    Verified,
    choice_option,
    domain_option,
    first_reading,
    host_and_port,
    library,
    number_option,
)
from eeio_power.reading import DOMAINS, UNKNOWN, WALL, Kind
from eeio_power.window_readings import absurdity

KIND: Kind = "measured"
VERIFIED_ON: Verified = "simulator"
PORT = 502
NATIVE_PERIOD_S = 1.0
_TIMEOUT_S, _MOST_TIMEOUT_S = 1.0, 60.0
_ACCURACY = 0.05
# Of an unknown device: 16 A of three phases are less.
_MOST_W = 20_000.0
_MOST_COUNTER_W = 100_000.0


@dataclass(frozen=True)
class Model:
    """A meter of Eastron's SDM family."""

    register: int
    """Of its total active power."""
    most_w: float
    """By its highest current, at 250 V."""
    baud: int
    """As delivered."""
    phases: int = 1
    accuracy: float = 0.01
    resolution_w: float = 2.0
    """1 W either way."""


MODELS: Mapping[str, Model] = {
    "sdm72": Model(0x0034, 3 * 100 * 250.0, 9600, phases=3),
    "sdm120": Model(0x000C, 45 * 250.0, 2400),
    "sdm220": Model(0x000C, 65 * 250.0, 2400),
    "sdm230": Model(0x000C, 100 * 250.0, 2400),
    "sdm630": Model(0x0034, 3 * 100 * 250.0, 9600, phases=3),
}
_PHASE_1, _PHASE_STEP = 0x000C, 2
SDM_DELAY = unknown_up_to(2.0, 1.0, "assumed: an SDM renews its values each 0.2 to 1 s")

# Layouts of `struct`.
TYPES: Mapping[str, str] = {
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "uint64": "Q",
    "float32": "f",
    "float64": "d",
}
UNITS_W: Mapping[str, float] = {"W": 1.0, "mW": 1e-3, "kW": 1e3}
UNITS_J: Mapping[str, float] = {"J": 1.0, "kJ": 1e3, "Wh": 3600.0, "kWh": 3.6e6, "MWh": 3.6e9}
# Function of the request, and pymodbus' name of it.
TABLES: Mapping[str, tuple[int, str]] = {
    "input": (4, "read_input_registers"),
    "holding": (3, "read_holding_registers"),
}
WORD_ORDERS = ("big", "little")
PARITIES = {"none": "N", "even": "E", "odd": "O"}

OPTIONS = {
    "address": "HOST, HOST:PORT, or a serial device such as /dev/ttyUSB0",
    "model": f"{', '.join(MODELS)}; of another device give register=, type= and unit=",
    "phase": "1, 2 or 3 of a three-phase model (default: the total)",
    "register": "address of the first register, from 0 (12 or 0x000C)",
    "type": f"{', '.join(TYPES)} (default float32)",
    "word_order": "big or little: which register of a number is first (default big)",
    "table": "input or holding (default input)",
    "unit": f"{', '.join([*UNITS_W, *UNITS_J])}: Wh and J are of counters (default W)",
    "scale": "factor of the number, such as 0.1 (default 1)",
    "device_id": "Modbus number of the device (default 1)",
    "baud": "baud rate of the serial line (default: as the model is delivered, else 9600)",
    "parity": "none, even or odd (default none)",
    "stop_bits": "1 or 2 (default 1)",
    "domain": f"power domain: {', '.join(DOMAINS)} (default system)",
    "accuracy": "uncertainty as a share (default: 0.01 of a model, else 0.05)",
    "resolution": "step of the number, W or J (required for a counter of type float)",
    "max_w": "highest power that can be true, W",
    "period_s": "how often the device has a new value, s (default 1)",
    "timeout_s": "how long an answer may take, s (default 1)",
}
ARGUMENT = "address"


@dataclass(frozen=True)
class Number:
    """A number in consecutive registers."""

    register: int
    type: str = "float32"
    table: str = "input"
    little_words: bool = False
    factor: float = 1.0
    """W or J of one count."""

    @property
    def registers(self) -> int:
        """How many it takes."""
        return struct.calcsize(TYPES[self.type]) // 2

    def of(self, registers: Sequence[int]) -> float:
        """W or J. Raises PowerError for registers that hold no value."""
        if len(registers) != self.registers:
            raise PowerError(f"{len(registers)} registers instead of {self.registers}")
        words = registers
        if self.little_words:
            words = tuple(reversed(registers))
        raw = struct.pack(f">{len(words)}H", *words)
        (value,) = struct.unpack(f">{TYPES[self.type]}", raw)
        if self.type.startswith("float"):
            if not math.isfinite(value):
                raise PowerError(f"register {self.register} has no number ({value})")
        elif value == _NO_VALUE[self.type]:
            # As SunSpec and most makers mark a value that does not exist.
            raise PowerError(f"register {self.register} has no value ({value:#x})")
        if not FIGURE.contains(value * self.factor):
            raise PowerError(
                f"register {self.register}: {value:g} cannot be true; check type= and word_order="
            )
        return float(value * self.factor)


_NO_VALUE = {
    **{f"uint{bits}": (1 << bits) - 1 for bits in (16, 32, 64)},
    **{f"int{bits}": -(1 << (bits - 1)) for bits in (16, 32, 64)},
}


class Line:
    """pymodbus' synchronous client of one device, from version 3.0 on."""

    def __init__(self, address: str, device_id: int, client: Any, timeout_s: float) -> None:
        self.address = address
        self._client = client
        if hasattr(client, "params"):
            # Version 3.0 takes whole seconds: 0.5 would be no time at all.
            client.params.timeout = timeout_s
        # `slave` until 3.9: later versions reject that name, earlier ones ignore the other.
        named = inspect.signature(client.read_input_registers).parameters
        self._device: Mapping[str, int] = {
            "device_id" if "device_id" in named else "slave": device_id
        }
        self._is_open = False

    def registers(self, table: str, register: int, count: int) -> Sequence[int]:
        """Of one request. Raises PowerError, and then the next request has a new connection."""
        self._open()
        function, method = TABLES[table]
        try:
            read = getattr(self._client, method)
            answer = read(register, count=count, **self._device)
        except Exception as error:
            # pymodbus' decoders raise errors of all kinds for what is no Modbus.
            self.close()
            raise PowerError(
                f"{self.address}: no answer: {error or type(error).__name__}"
            ) from error
        if not hasattr(answer, "registers") or answer.isError():
            self.close()
            raise PowerError(f"{self.address}: {_refusal(answer, table, register)}")
        if answer.function_code != function:
            self.close()
            raise PowerError(f"{self.address}: it answers function {answer.function_code} instead")
        return list(map(int, answer.registers))

    def _open(self) -> None:
        if self._is_open:
            return
        path = Path(self.address)
        if path.is_absolute() and not os.access(path, os.R_OK | os.W_OK):
            reason = "is not there"
            if path.exists():
                reason = "may not be read"
            raise PowerError(f"{self.address} {reason}; check the cable, and group dialout")
        remedy = "check HOST:PORT"
        if path.is_absolute():
            remedy = "does another program use it?"
        try:
            self._is_open = bool(self._client.connect())
            if self._is_open and path.is_absolute():
                # Two programs on one line get each other's answers. Version 3.0 allows it.
                self._client.socket.exclusive = True
        except OSError as error:
            self.close()
            raise PowerError(f"{self.address}: {error}; {remedy}") from error
        if not self._is_open:
            self.close()
            raise PowerError(f"{self.address}: no connection; {remedy}")

    def close(self) -> None:
        """Drop the connection; the next request makes a new one."""
        self._is_open = False
        self._client.close()


def _refusal(answer: Any, table: str, register: int) -> str:
    code = getattr(answer, "exception_code", None)
    if code is None:
        return f"no answer: {answer}"
    known = {
        1: "it has no such table; try the other table=",
        2: f"it has no {table} register {register}; check register= or model=",
        3: "it rejects the number of registers; check type=",
        4: "it failed",
        6: "it is busy",
        10: "its gateway cannot reach it",
        11: "it does not answer its gateway; check device_id=",
    }
    return f"Modbus exception {code}: {known.get(code, 'see the manual of the device')}"


@dataclass(frozen=True)
class ModbusMeter:
    """One number of one device."""

    spec: str
    name: str
    line: Line = field(repr=False)
    number: Number
    native_period_s: float
    channels: Sequence[Channel]
    kind: Kind = KIND

    def read(self) -> Sequence[float | None]:
        """W, or J of a counter. Raises PowerError without a value that can be true."""
        number = self.number
        registers = self.line.registers(number.table, number.register, number.registers)
        try:
            value = number.of(registers)
        except PowerError as error:
            raise PowerError(f"{self.line.address}: {error}") from error
        if (reason := absurdity(self.channels[0], value)) is not None:
            raise PowerError(f"{self.line.address}: {reason}")
        return [value]

    def close(self) -> None:
        """Drop the connection."""
        self.line.close()


def open_meter(spec: str, options: Mapping[str, str], root: Path) -> ModbusMeter:
    """Take a first reading. Raises PowerError if there is none."""
    if "address" not in options:
        raise PowerError(
            f"meter '{spec}': which device? Such as modbus:192.168.1.40,model=sdm120 or "
            "modbus:/dev/ttyUSB0,model=sdm630"
        )
    name = options.get("name", "modbus")
    model = _model(spec, options)
    if model is not None:
        number, channel = _of_model(spec, options, name, model)
        baud = model.baud
    else:
        number, channel = _of_registers(spec, options, name)
        baud = 9600
    meter = ModbusMeter(
        spec=spec,
        name=name,
        line=_line(spec, options, baud),
        number=number,
        native_period_s=number_option(spec, options, "period_s", above_zero=True)
        or NATIVE_PERIOD_S,
        channels=(channel,),
    )
    return first_reading(meter)


def find(root: Path) -> Detected:
    """Requests to unknown devices of a bus may disturb them."""
    return Detected(
        "modbus",
        KIND,
        ("system",),
        False,
        "eeio does not search lines and networks for meters",
        "name it: --meter modbus:HOST,model=sdm120 or modbus:/dev/ttyUSB0,model=sdm630",
    )


def _model(spec: str, options: Mapping[str, str]) -> Model | None:
    """None if registers are named instead. Raises PowerError for neither and for both."""
    text = options.get("model")
    if text is None:
        if "register" not in options:
            raise PowerError(
                f"meter '{spec}': give model={', '.join(MODELS)}, or register= with type= and unit="
            )
        if "phase" in options:
            raise PowerError(f"meter '{spec}': phase= is of a model; give that phase's register=")
        return None
    if text not in MODELS:
        raise PowerError(
            f"meter '{spec}': model={text} is not one of {', '.join(MODELS)}; give register=, "
            "type= and unit= of another device"
        )
    own = []
    for key in ("register", "type", "word_order", "table", "unit", "scale"):
        if key in options:
            own.append(key)
    if own:
        raise PowerError(f"meter '{spec}': model={text} has its own {own[0]}; leave {own[0]}= out")
    return MODELS[text]


def _of_model(
    spec: str, options: Mapping[str, str], name: str, model: Model
) -> tuple[Number, Channel]:
    register, most_w = model.register, model.most_w
    remark = f"Eastron {options['model'].upper()}"
    if "phase" in options:
        phase = choice_option(spec, options, "phase", ("1", "2", "3"), "1")
        if model.phases == 1:
            raise PowerError(
                f"meter '{spec}': a {options['model']} has one phase; leave out phase="
            )
        register = _PHASE_1 + _PHASE_STEP * (int(phase) - 1)
        most_w /= model.phases
        remark += f", phase {phase}"
    domain = domain_option(spec, options)
    accuracy = number_option(spec, options, "accuracy")
    resolution = number_option(spec, options, "resolution")
    contents = UNKNOWN
    if domain == "system":
        contents = WALL
    if accuracy is None:
        accuracy = model.accuracy
    if resolution is None:
        resolution = model.resolution_w
    return Number(register), Channel(
        name=f"{name}:{domain}",
        domain=domain,
        quantity="power_w",
        accuracy_relative=accuracy,
        resolution=resolution,
        max_power_w=number_option(spec, options, "max_w", above_zero=True) or most_w,
        contents=contents,
        remark=remark,
        delay=SDM_DELAY,
    )


def _of_registers(spec: str, options: Mapping[str, str], name: str) -> tuple[Number, Channel]:
    kind = choice_option(spec, options, "type", TYPES, "float32")
    unit = options.get("unit", "W")
    if unit.isdigit():
        raise PowerError(f"meter '{spec}': unit={unit}: the device's number is device_id={unit}")
    unit = choice_option(spec, options, "unit", [*UNITS_W, *UNITS_J], "W")
    is_counter = unit in UNITS_J
    factor = (UNITS_J if is_counter else UNITS_W)[unit] * (
        number_option(spec, options, "scale", above_zero=True) or 1.0
    )
    number = Number(
        register=_whole(spec, options, "register", 0, 0xFFFF, 0),
        type=kind,
        table=choice_option(spec, options, "table", tuple(TABLES), "input"),
        little_words=choice_option(spec, options, "word_order", WORD_ORDERS, "big") == "little",
        factor=factor,
    )
    resolution = number_option(spec, options, "resolution")
    if resolution is None and is_counter and kind.startswith("float"):
        raise PowerError(
            f"meter '{spec}': give the counter's step, J, as resolution=, such as 36000 for a "
            "display of 0.01 kWh"
        )
    if resolution is None:
        resolution = factor
        if kind.startswith("float"):
            resolution = 0.0
    domain = domain_option(spec, options)
    accuracy = number_option(spec, options, "accuracy")
    if accuracy is None:
        accuracy = _ACCURACY
    contents = UNKNOWN
    if domain == "system":
        contents = WALL
    quantity: Quantity = "power_w"
    most_w = _MOST_W
    if is_counter:
        quantity = "energy_j"
        most_w = _MOST_COUNTER_W
    return number, Channel(
        name=f"{name}:{domain}",
        domain=domain,
        quantity=quantity,
        accuracy_relative=accuracy,
        resolution=resolution,
        max_power_w=number_option(spec, options, "max_w", above_zero=True) or most_w,
        contents=contents,
        remark=f"{number.table} register {number.register}",
    )


def _line(spec: str, options: Mapping[str, str], baud: int) -> Line:
    """A client that is not yet connected. Raises PowerError for options that do not fit."""
    address = options["address"]
    timeout_s = number_option(spec, options, "timeout_s", above_zero=True, most=_MOST_TIMEOUT_S)
    timeout_s = timeout_s or _TIMEOUT_S
    device_id = _whole(spec, options, "device_id", 0, 255, 1)
    is_serial = address.startswith("/")
    serial_only = [key for key in ("baud", "parity", "stop_bits") if key in options]
    if serial_only and not is_serial:
        raise PowerError(f"meter '{spec}': {serial_only[0]}= is of a serial line; leave it out")
    clients = library(spec, "pymodbus.client", "modbus")
    # It prints what it raises or returns, too.
    logging.getLogger("pymodbus").addHandler(logging.NullHandler())
    if not is_serial:
        host, port = host_and_port(spec, address, PORT)
        client = clients.ModbusTcpClient(host, port=port, timeout=timeout_s, retries=0)
        return Line(f"{host}:{port}", device_id, client, timeout_s)
    library(spec, "serial", "modbus")
    client = clients.ModbusSerialClient(
        address,
        baudrate=_whole(spec, options, "baud", 300, 4_000_000, baud),
        parity=PARITIES[choice_option(spec, options, "parity", tuple(PARITIES), "none")],
        stopbits=_whole(spec, options, "stop_bits", 1, 2, 1),
        timeout=timeout_s,
        retries=0,
    )
    return Line(address, device_id, client, timeout_s)


def _whole(
    spec: str, options: Mapping[str, str], key: str, least: int, most: int, default: int
) -> int:
    """The option as a whole number, decimal or hexadecimal (0x...). Raises PowerError."""
    text = options.get(key, str(default))
    try:
        value = -1
        if len(text) <= 10:
            value = int(text, 0)
    except ValueError:
        value = -1
    if not least <= value <= most:
        raise PowerError(f"meter '{spec}': {key}={text} is not a number of {least} to {most}")
    return value
