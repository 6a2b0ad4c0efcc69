"""Outlets of a power distribution unit (PDU), by SNMP v2c or v3 (pysnmp).

`snmp:HOST[:PORT],outlets=N[+N...]` reads watts and the energy counter of each outlet. The PDU's
`sysObjectID` selects one of these tables, whose objects and units the makers' MIBs define:

- APC / Schneider: PowerNet-MIB, rPDU2OutletMeteredStatusPower (no unit stated; the objects of
  peak power and LibreNMS take W) and ...Energy (0.1 kWh). Its outlets report 0 W below 0.3 A to
  0.5 A (Schneider's FAQ FA156074), so that 0 W of an outlet that is on is no measured value. The
  same FAQ states 3 % and 0.1 A; 23 W (0.1 A at 230 V) are used.
- Raritan: PDU2-MIB, measurementsOutletSensorValue of activePower(5) and activeEnergy(8), scaled by
  outletSensorDecimalDigits; outletSensorUnits must be watt(3) and wattHour(5).
- Server Technology: Sentry4-MIB, st4OutletActivePower (W) and st4OutletEnergy (Wh).
- Eaton: EATON-EPDU-MIB, outletWatts (W) and outletWh (Wh).

Others are read with `oid=OID,unit=W` (or `0.1W`, `mW`). Apparent power (VA) is no power.

A negative value means "not available" in all of these. Counters move in steps of 1 Wh or more, can
be reset by users, and are recorded, not added. For makers without a figure that eeio's authors
could read, 5 % is used, as Eaton states for its first managed ePDU; set `accuracy=` by the data
sheet.
"""

import asyncio
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from eeio_power import http_json
from eeio_power.delay import unknown_up_to
from eeio_power.errors import PowerError
from eeio_power.meters import (
    Channel,
    Detected,
    Verified,
    first_reading,
    host_and_port,
    library,
    number_option,
)
from eeio_power.reading import WALL, Kind

_PRIVACY_VARIABLE, _LEAST_KEY = "EEIO_METER_PRIVACY", 8
OPTIONS = {
    "host": "address of the PDU, HOST or HOST:PORT",
    "outlets": "numbers of the outlets that feed this machine, N+N; U.N in a chain of units",
    "oid": "of a PDU without a table: object of the outlets' power, without their numbers",
    "unit": "with oid: W, 0.1W or mW",
    "user": "user of SNMP v3 (default: v2c)",
    "auth": "authentication of v3: SHA, SHA256, SHA512 or MD5 (default SHA)",
    "privacy": "encryption of v3: AES, AES256, DES or none (default AES)",
    "password_file": "file with the community (default public), or of v3 the authentication key, "
    f"and in line 2 the privacy key; default: ${http_json.PASSWORD_VARIABLE}, ${_PRIVACY_VARIABLE}",
    "accuracy": "uncertainty as a share",
    "period_s": "how often the PDU takes a new reading, s (default 3)",
    "timeout_s": "longest wait for an answer, s (default 2)",
}
ARGUMENT = "host"

KIND: Kind = "measured"
VERIFIED_ON: Verified = "simulator"
_PERIOD_S, _TIMEOUT_S, _ACCURACY = 3.0, 2.0, 0.05
DELAY = unknown_up_to(5.0, 5.0, "assumed of a PDU: up to 5 s late, means of up to 5 s")
# Outlets of racks are rated at 10 A to 20 A and at most 250 V.
_MOST_W = 5000.0
_WH, _SYSTEM = 3600.0, "1.3.6.1.2.1.1.2.0"
_OUTLET = re.compile(r"\d{1,4}(\.\d{1,4}){0,2}")
_OID = re.compile(r"\d{1,10}(\.\d{1,10}){2,60}")
_NOTHING = ("NoSuchInstance", "NoSuchObject", "EndOfMibView", "Null")
_WATT, _WATT_HOUR = 3, 5
_UNITS = {"W": 1.0, "0.1W": 0.1, "mW": 1e-3}
_AUTH = {"SHA": "96_SHA", "SHA256": "192_SHA256", "SHA512": "384_SHA512", "MD5": "96_MD5"}
_PRIVACY = {"AES": "CFB128_AES", "AES256": "CFB256_AES", "DES": "CBC56_DES", "none": "NONE"}


@dataclass(frozen=True)
class Table:
    """Objects of a maker's outlets. `{}` is the outlet's index."""

    maker: str
    system: str
    """How its sysObjectID begins."""
    power: str
    power_w: float = 1.0
    """W of one count."""
    energy: str | None = None
    energy_j: float = _WH
    """J of one count."""
    counts: float = 2.0**31
    """Counts after which the counter starts again."""
    state: str | None = None
    """The switch of the outlet."""
    off: int = 0
    prefix: str = ""
    """Of the index of an outlet of the first unit."""
    accuracy: float = _ACCURACY
    limit_w: float = 1.0
    """Further uncertainty, W."""
    zero_is_small: bool = False
    """0 W is what it reports below its least current."""
    sensors: str | None = None
    """Where units and decimal digits are: the object of sensors of PDU2-MIB."""
    status: str | None = None
    """The status of the power's sensor; -1 if it has no reading."""


_APC, _RARITAN = "1.3.6.1.4.1.318.1.1.26.9", "1.3.6.1.4.1.13742.6"
_SENTRY4, _EATON = "1.3.6.1.4.1.1718.4", "1.3.6.1.4.1.534.6.6.7"
_OUTLETS = f"{_SENTRY4}.1.8.3.1"
TABLES = (
    Table(
        "APC", "1.3.6.1.4.1.318.1.3.4.", f"{_APC}.4.3.1.7.{{}}", energy=f"{_APC}.4.3.1.11.{{}}",
        energy_j=100 * _WH, state=f"{_APC}.2.3.1.5.{{}}", off=1, accuracy=0.03, limit_w=23.0,
        zero_is_small=True,
    ),
    Table(
        "Raritan", f"{_RARITAN}.", f"{_RARITAN}.5.4.3.1.4.{{}}.5",
        energy=f"{_RARITAN}.5.4.3.1.4.{{}}.8", counts=2.0**32, state=f"{_RARITAN}.4.1.2.1.3.{{}}",
        off=8, prefix="1.", sensors=f"{_RARITAN}.3.5.4.1", status=f"{_RARITAN}.5.4.3.1.3.{{}}.5",
    ),
    Table(
        "Server Technology", f"{_SENTRY4}.", f"{_OUTLETS}.7.{{}}", energy=f"{_OUTLETS}.14.{{}}",
        state=f"{_OUTLETS}.1.{{}}", off=2, prefix="1.1.",
    ),
    Table(
        "Eaton", f"{_EATON}.", f"{_EATON}.6.5.1.3.{{}}", energy=f"{_EATON}.6.5.1.4.{{}}",
        counts=2.0**32, state=f"{_EATON}.6.6.1.2.{{}}", prefix="0.",
    ),
)  # fmt: skip


class Agent:
    """GETs of one SNMP agent with pysnmp. No text of it shows a community or a key."""

    def __init__(self, spec: str, options: Mapping[str, str]) -> None:
        self._spec, self.host = spec, options.get("host", "")
        self._address = host_and_port(spec, self.host, 161)
        self._pysnmp = library(spec, "pysnmp.hlapi.v3arch.asyncio", "snmp")
        self._errors = (OSError, library(spec, "pysnmp.error", "snmp").PySnmpError)
        self._rights = self._user(options) if "user" in options else self._community(options)
        self._timeout_s = number_option(spec, options, "timeout_s", above_zero=True) or _TIMEOUT_S
        self._runner = asyncio.Runner()
        self._engine: Any = None
        self._target: Any = None

    def _community(self, options: Mapping[str, str]) -> Any:
        for key in ("auth", "privacy"):
            if key in options:
                raise PowerError(f"meter '{self._spec}': {key}= is for v3; give user=NAME too")
        given = "password_file" in options or http_json.PASSWORD_VARIABLE in os.environ
        word = "public"
        if given:
            word = http_json.password(self._spec, options)
        return self._pysnmp.CommunityData(word)

    def _user(self, options: Mapping[str, str]) -> Any:
        auth, privacy = options.get("auth", "SHA"), options.get("privacy", "AES")
        if auth not in _AUTH or privacy not in _PRIVACY:
            raise PowerError(
                f"meter '{self._spec}': auth is one of {', '.join(_AUTH)}, and privacy one of "
                f"{', '.join(_PRIVACY)}"
            )
        keys = [http_json.password(self._spec, options)]
        if privacy != "none":
            keys.append(http_json.password(self._spec, options, 1, _PRIVACY_VARIABLE))
        if any(len(key) < _LEAST_KEY for key in keys):
            raise PowerError(
                f"meter '{self._spec}': a key of v3 has at least {_LEAST_KEY} characters; the "
                "privacy key is in line 2 of password_file, or give privacy=none"
            )
        protocols = (f"USM_AUTH_HMAC{_AUTH[auth]}", f"USM_PRIV_{_PRIVACY[privacy]}")
        auth_protocol, privacy_protocol = (getattr(self._pysnmp, name) for name in protocols)
        return self._pysnmp.UsmUserData(
            options["user"], *keys, authProtocol=auth_protocol, privProtocol=privacy_protocol
        )

    def get(self, oids: Sequence[str]) -> list[Any]:
        """The values, None where the agent has no such object. Raises PowerError without an
        answer."""
        try:
            problem, status, place, bindings = self._runner.run(self._get(oids))
        except self._errors as error:
            raise PowerError(f"{self.host}: {error}") from error
        if problem is not None:
            raise PowerError(f"{self.host}: {problem}{self._remedy(type(problem).__name__)}")
        if status:
            at = "the request"
            if 0 < int(place) <= len(oids):
                at = oids[int(place) - 1]
            raise PowerError(f"{self.host}: {at}: {status.prettyPrint()}; check the user's rights")
        return [None if type(value).__name__ in _NOTHING else value for _, value in bindings]

    async def _get(self, oids: Sequence[str]) -> Any:
        if self._engine is None:
            transport = "UdpTransportTarget"
            if ":" in self._address[0]:
                transport = "Udp6TransportTarget"
            create = getattr(self._pysnmp, transport).create
            # UDP may lose a datagram: one repetition within the time limit.
            self._target = await create(self._address, timeout=self._timeout_s / 2, retries=1)
            self._engine = self._pysnmp.SnmpEngine()
        objects = [self._pysnmp.ObjectType(self._pysnmp.ObjectIdentity(oid)) for oid in oids]
        return await self._pysnmp.get_cmd(
            self._engine,
            self._rights,
            self._target,
            self._pysnmp.ContextData(),
            *objects,
            lookupMib=False,
        )

    def _remedy(self, problem: str) -> str:
        if problem == "RequestTimedOut":
            return (
                "; check the address, that the PDU allows SNMP from this host, and the community "
                "or keys (a PDU does not answer wrong ones)"
            )
        return "; check user, keys, auth= and privacy="

    def close(self) -> None:
        """Close the socket."""
        if self._engine is not None:
            self._engine.close_dispatcher()
            self._engine = None
        self._runner.close()


@dataclass(frozen=True)
class SnmpMeter:
    """Outlets of one PDU."""

    spec: str
    name: str
    agent: Agent
    table: Table
    outlets: Sequence[str]
    """Their indices in the table."""
    factors: Sequence[tuple[float, float]]
    """W and J of one count of each outlet."""
    native_period_s: float
    channels: Sequence[Channel] = ()
    kind: Kind = KIND

    def read(self) -> Sequence[float | None]:
        """W of all outlets, and J of each counter. Raises PowerError if one has no power."""
        columns = (self.table.power, self.table.state, self.table.status, self.table.energy)
        wanted = [(oid, index) for oid in columns if oid for index in self.outlets]
        values = self.agent.get([oid.format(index) for oid, index in wanted])
        answered = dict(zip(wanted, values, strict=True))
        powers_w, energies_j = [], []
        for index, (watt, joule) in zip(self.outlets, self.factors, strict=True):
            power, state, status, energy = (
                _number(answered.get((oid, index))) if oid else None for oid in columns
            )
            powers_w.append(self._power_w(index, power, state, status) * watt)
            unknown = energy is None or energy < 0 or not joule
            energy_j = None
            if not unknown:
                energy_j = (energy or 0) * joule
            energies_j.append(energy_j)
        return [sum(powers_w), *(energies_j if self.table.energy else ())]

    def _power_w(self, index: str, power: int | None, state: int | None, status: int | None) -> int:
        where = f"{self.agent.host}: outlet {index}"
        if power is None:
            raise PowerError(
                f"{where} has no power ({self.table.power.format(index)}): check its number, and "
                "that this PDU measures each outlet"
            )
        if power < 0 or status == -1:
            raise PowerError(f"{where}: the PDU has no reading of its power now")
        if power == 0 and self.table.zero_is_small and state != self.table.off:
            raise PowerError(
                f"{where} is not off and reports 0 W, as this PDU does for any load below its "
                "least current (0.5 A); use another meter for so small a load"
            )
        return power

    def off(self) -> list[str]:
        """The outlets that are off."""
        if self.table.state is None:
            return []
        states = self.agent.get(list(map(self.table.state.format, self.outlets)))
        return [
            index
            for index, state in zip(self.outlets, states, strict=True)
            if _number(state) == self.table.off
        ]

    def close(self) -> None:
        """Close the socket."""
        self.agent.close()


def _number(value: Any) -> int | None:
    try:
        if value is None:
            return None
        return int(value)
    except (TypeError, ValueError):
        return None


def open_meter(spec: str, options: Mapping[str, str], root: Path) -> SnmpMeter:
    """Take a first reading. Raises PowerError if there is none."""
    names = options.get("outlets", "").split("+")
    if not all(map(_OUTLET.fullmatch, names)) or len(set(names)) < len(names) or len(names) > 16:
        raise PowerError(
            f"meter '{spec}': name each outlet that feeds this machine once, such as outlets=3+4"
        )
    agent = Agent(spec, options)
    try:
        meter = _meter(spec, options, agent, names)
    except PowerError as error:
        agent.close()
        message = str(error)
        if spec not in message:
            message = f"meter '{spec}': {message}"
        raise PowerError(message) from error
    return first_reading(meter)


def _meter(spec: str, options: Mapping[str, str], agent: Agent, names: Sequence[str]) -> SnmpMeter:
    table = _table(spec, options, agent)
    accuracy = number_option(spec, options, "accuracy")
    if accuracy is not None:
        table = replace(table, accuracy=accuracy, limit_w=table.power_w)
    outlets = [name if "." in name else f"{table.prefix}{name}" for name in names]
    if table.energy is not None:
        counts = map(_number, agent.get(list(map(table.energy.format, outlets))))
        if any(count is None or count < 0 for count in counts):
            table = replace(table, energy=None)  # this PDU has no counters
    meter = SnmpMeter(
        spec=spec,
        name=options.get("name", "snmp"),
        agent=agent,
        table=table,
        outlets=outlets,
        factors=[_factors(table, agent, index) for index in outlets],
        native_period_s=number_option(spec, options, "period_s", above_zero=True) or _PERIOD_S,
    )
    return replace(meter, channels=_channels(meter))


def _table(spec: str, options: Mapping[str, str], agent: Agent) -> Table:
    if "oid" in options:
        oid, unit = options["oid"].strip("."), options.get("unit", "")
        if _OID.fullmatch(oid) is None or unit not in _UNITS:
            raise PowerError(
                f"meter '{spec}': give oid= as numbers and unit={', '.join(_UNITS)} by the PDU's "
                "MIB; apparent power (VA) and current (A) are no power"
            )
        return Table("oid", "", f"{oid}.{{}}", power_w=_UNITS[unit])
    (system,) = agent.get([_SYSTEM])
    for table in TABLES:
        if f"{system}.".startswith(table.system):
            return table
    makers = ", ".join(table.maker for table in TABLES)
    raise PowerError(
        f"{agent.host}: its sysObjectID {system} is of none of: {makers}; give oid= and unit= by "
        "its MIB"
    )


def _factors(table: Table, agent: Agent, index: str) -> tuple[float, float]:
    """W and J of one count, 0 J for an unknown unit. Raises PowerError for power in another."""
    if table.sensors is None:
        return table.power_w, table.energy_j
    oids = []
    for kind in (5, 8):
        for column in (6, 7):
            oids.append(f"{table.sensors}.{column}.{index}.{kind}")
    unit, digits, energy_unit, energy_digits = map(_number, agent.get(oids))
    if unit != _WATT or digits is None or not 0 <= digits <= 6:
        raise PowerError(
            f"{agent.host}: outlet {index} reports no watts (unit {unit}, digits {digits}): check "
            "its number, and that this PDU measures each outlet"
        )
    if energy_unit != _WATT_HOUR or energy_digits is None or not 0 <= energy_digits <= 6:
        return 10.0**-digits, 0.0
    return 10.0**-digits, _WH * 10.0**-energy_digits


def _channels(meter: SnmpMeter) -> Sequence[Channel]:
    table, off = meter.table, meter.off()
    names = " + ".join(meter.outlets)
    doubt = None
    if off:
        doubt = f"outlet {', '.join(off)} of {meter.agent.host} is off"
    power = Channel(
        name=f"{meter.name}:system",
        domain="system",
        quantity="power_w",
        accuracy_relative=table.accuracy,
        # The limit is either way: the quantum is double that.
        resolution=2 * table.limit_w * len(meter.outlets),
        max_power_w=_MOST_W * len(meter.outlets),
        contents=WALL,
        remark=f"outlet {names} of {table.maker}",
        doubt=doubt,
    )
    if table.energy is None:
        return [power]
    return [
        power,
        *(
            Channel(
                name=f"{meter.name}:outlet-{index}",
                domain="system",
                quantity="energy_j",
                range_j=table.counts * joule or None,
                accuracy_relative=table.accuracy,
                resolution=joule,
                in_domain_total=False,
                contents=WALL,
            )
            for index, (_, joule) in zip(meter.outlets, meter.factors, strict=True)
        ),
    ]


def find(root: Path) -> Detected:
    """Which outlets feed this machine is unknown."""
    return Detected(
        "snmp",
        KIND,
        ("system",),
        False,
        "eeio does not search the network for PDUs",
        "name it: --meter snmp:ADDRESS,outlets=N, with all outlets that feed this machine",
    )
