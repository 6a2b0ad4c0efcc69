"""Supplies that the kernel watches: the mains input of a board (Cubietruck's AXP209), a battery.

`power_supply[,root=DIR]`, where DIR is the folder with `axp20x-ac`.

The system's power is that of all `Mains` and `USB` supplies that are online and show a voltage and
a current (`voltage_now` x `current_now`, uV and uA): the board's input, on the direct-current side,
less what flows into a charging battery. If the battery's current is unknown, or more than half of
the power flows into it, the reading is missing. While a battery also discharges, or a plug without
a sensor is online, they are not the only supply of the system, and the reading is missing. If no
such supply has a sensor, or all are unplugged and a battery discharges, it is the power of the
discharging batteries (`power_now`, uW, or voltage x current), and only while no supply is plugged
in (`online`, with or without a sensor): a charger that is too weak feeds the system together with
the battery, so 3 W of the battery are not the machine's power. A battery set to discharge on the
mains (`charge_behaviour`: force-discharge) is the machine's only supply. Else the reading is
missing. Plugged-in supplies are looked up at each reading: docks, chargers and batteries come and
go.

USB-C ports (`ucsi-source-psy-*`, `tcpm-source-psy-*`) are left out: their `voltage_now` and
`current_now` are the negotiated limits of charger and machine, not measured values.

AXP209: 12-bit converters, 0.625 mA and 1.7 mV a count, 25 conversions a second; its accuracy is
not stated, 5 % is used.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from eeio_power.errors import PowerError
from eeio_power.meters import Channel, Detected, Measured, Reads, Verified
from eeio_power.reading import BEHIND_SUPPLY, Contents, Domain, Kind
from eeio_power.sysfs import by_number, read_int, read_optional_int, read_optional_text
from eeio_power.system_sensor.feeds import (
    BATTERIES,
    INPUTS,
    Feed,
    FeedPower,
    are_batteries,
    is_known,
    system_power,
)

OPTIONS = {"root": "the folder of supplies, instead of /sys/class/power_supply"}

SUPPLIES = Path("sys/class/power_supply")
KIND: Kind = "measured"
VERIFIED_ON: Verified = "simulator"
MEASURES: Measured = "this machine"
READS = Reads(
    files=(
        (
            "sys/class/power_supply/*",
            "type,scope,status,online,present,power_now,voltage_now,current_now,usb_type,"
            "charge_behaviour,charge_type,energy_now,capacity",
        ),
    )
)
NATIVE_PERIOD_S = 0.1
BATTERY_PERIOD_S = 1.0
ACCURACY = 0.05
# 5 % of the input and 5 % of half of it, of the other half.
_CHARGING_ACCURACY = 0.15
RESOLUTION_W = 0.005
MAX_POWER_W = 500.0

# linux' drivers/usb/typec/ucsi/psy.c and tcpm/tcpm.c: the contract's current, not a measured one.
_CONTRACTS = ("ucsi-source-psy-", "tcpm-source-psy-")
_ABSENT_REMEDY = "this board's supply has no current sensor: use another meter"


@dataclass(frozen=True)
class PowerSupplyMeter:
    """The supplies that feed this machine."""

    spec: str
    name: str
    folder: Path
    by_battery: bool
    may_charge: bool
    kind: Kind = KIND

    @property
    def native_period_s(self) -> float:
        """A battery's gauge is slower than a board's converter."""
        if self.by_battery:
            return BATTERY_PERIOD_S
        return NATIVE_PERIOD_S

    @property
    def channels(self) -> Sequence[Channel]:
        name = "power_supply:input"
        rule = INPUTS
        if self.by_battery:
            name = "power_supply:battery"
            rule = BATTERIES
        accuracy = ACCURACY
        if self.may_charge:
            accuracy = _CHARGING_ACCURACY
        return (
            Channel(
                name=name,
                domain="system",
                quantity="power_w",
                accuracy_relative=accuracy,
                resolution=RESOLUTION_W,
                max_power_w=MAX_POWER_W,
                contents=BEHIND_SUPPLY,
                rule=rule,
            ),
        )

    def _now(self) -> FeedPower:
        """The machine's supplies may have changed since the meter was opened."""
        feeds = _feeds(self.folder)
        power = system_power(feeds, RESOLUTION_W)
        if is_known(feeds) and are_batteries(feeds) == self.by_battery:
            return power
        changed = "other supplies feed the machine than when the meter was opened"
        return FeedPower(None, power.rule, changed)

    @property
    def complaint(self) -> str | None:
        """The meaning of a missing value."""
        return self._now().reason

    def read(self) -> Sequence[float | None]:
        """W of all supplies together; None if one of them does not say."""
        return [self._now().power_w]

    def close(self) -> None:
        """No file stays open."""


def open_meter(spec: str, options: Mapping[str, str], root: Path) -> PowerSupplyMeter:
    """Open the supplies. Raises PowerError if none has a current sensor."""
    folder = root / SUPPLIES
    if "root" in options:
        folder = Path(options["root"])
    feeds = _feeds(folder)
    if not is_known(feeds):
        raise PowerError(f"meter '{spec}': {folder} has no supply with a sensor; {_ABSENT_REMEDY}")
    name = options.get("name", "power_supply")
    by_battery = are_batteries(feeds)
    may_charge = not by_battery and any(feed.role == "battery" for feed in feeds)
    return PowerSupplyMeter(spec, name, folder, by_battery, may_charge)


def find(root: Path) -> Detected:
    """Whether a supply has a sensor and feeds the system now."""
    folder = root / SUPPLIES
    feeds = _feeds(folder)
    if not is_known(feeds):
        names = [feed.name for feed in feeds if feed.state == "discharging"]
        silent = ""
        if names:
            silent = f" ({', '.join(names)} discharges and reports no power)"
        reason = f"{folder} has no supply with a sensor{silent}"
        return Detected("power_supply", KIND, ("system",), False, reason, _ABSENT_REMEDY)
    power = system_power(feeds, RESOLUTION_W)
    if not power.power_w:
        names = [feed.name for feed in feeds if feed.role == "battery"]
        shows = "the supplies in use show"
        if are_batteries(feeds):
            shows = f"{', '.join(names)} shows"
        reason = power.reason or f"{shows} 0 W for a running machine"
        is_plugged = any(feed.role == "input" and feed.is_on is not False for feed in feeds)
        remedy = "use another meter"
        if is_plugged:
            remedy = "unplug the mains, or use another meter"
        return Detected("power_supply", KIND, ("system",), False, reason, remedy)
    contents: Mapping[Domain, Contents] = {"system": BEHIND_SUPPLY}
    return Detected("power_supply", KIND, ("system",), True, contents=contents, rule=power.rule)


def _feeds(folder: Path) -> list[Feed]:
    """All supplies that matter, as they are now."""
    feeds = []
    for supply in sorted(folder.iterdir(), key=by_number) if folder.is_dir() else []:
        kind = read_optional_text(supply / "type") or ""
        # `scope` Device: the battery of a mouse.
        if read_optional_text(supply / "scope") == "Device":
            continue
        if kind == "Battery" and read_optional_int(supply / "present") != 0:
            feeds.append(_battery(supply))
        elif kind in ("Mains", "Wireless") or kind.startswith("USB"):
            feeds.append(_input(supply))
    measured = any(feed.role == "input" and feed.has_sensor for feed in feeds)
    if measured:
        # A contract is reported for the port that one of the inputs is plugged into.
        feeds = [feed for feed in feeds if not feed.name.startswith(_CONTRACTS)]
    return feeds


def _battery(supply: Path) -> Feed:
    behaviour = read_optional_text(supply / "charge_behaviour") or ""
    power_w = _power_w(supply)
    if power_w is not None:
        power_w = abs(power_w)
    return Feed(
        supply.name,
        "battery",
        _has_sensor(supply),
        power_w,
        state=(read_optional_text(supply / "status") or "Unknown").lower(),
        # `auto inhibit-charge [force-discharge]`
        is_forced="[force-discharge]" in behaviour,
    )


def _input(supply: Path) -> Feed:
    online = read_optional_int(supply / "online")
    has_sensor = _has_sensor(supply) and not supply.name.startswith(_CONTRACTS)
    is_on = None
    if online is not None:
        is_on = online != 0
    return Feed(supply.name, "input", has_sensor, _power_w(supply), is_on=is_on)


def _power_w(supply: Path) -> float | None:
    """W; None if the supply does not say."""
    try:
        if (supply / "power_now").exists():
            return abs(read_int(supply / "power_now")) / 1e6
        return read_int(supply / "voltage_now") * read_int(supply / "current_now") / 1e12
    except (OSError, ValueError):
        return None


def _has_sensor(supply: Path) -> bool:
    # A fuel gauge may not answer while its battery is removed: only a number counts.
    return read_optional_int(supply / "power_now") is not None or (
        read_optional_int(supply / "voltage_now") is not None
        and read_optional_int(supply / "current_now") is not None
    )
