"""Supplies that the kernel watches: the mains input of a board (Cubietruck's AXP209), a battery.

`power_supply[,root=DIR]`, where DIR is the folder that holds `axp20x-ac`.

The system's power is that of all `Mains` and `USB` supplies that are online and show a voltage and
a current (`voltage_now` x `current_now`, uV and uA): the board's input, on the direct-current side,
with what charges its battery. Where no such supply has a sensor, it is a battery's
(`power_now`, uW, or voltage x current), and only while it is discharging: on the mains a battery
says nothing about the system, and the reading is missing.

USB-C ports (`ucsi-source-psy-*`, `tcpm-source-psy-*`) are left out: their `voltage_now` and
`current_now` are what the charger and the machine agreed on, not what flows.

AXP209: 12-bit converters, 0.625 mA and 1.7 mV a count, 25 conversions a second; its accuracy is
not stated, 5 % is used.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from eeio_power.errors import PowerError
from eeio_power.meters import Channel, Finding
from eeio_power.reading import Kind
from eeio_power.sysfs import by_number, read_int, read_optional_int, read_optional_text

OPTIONS = {"root": "the folder of supplies, instead of /sys/class/power_supply"}

SUPPLIES = Path("sys/class/power_supply")
KIND: Kind = "measured"
NATIVE_PERIOD_S = 0.1
BATTERY_PERIOD_S = 1.0
ACCURACY = 0.05
RESOLUTION_W = 0.005
MAX_POWER_W = 500.0

# linux' drivers/usb/typec/ucsi/psy.c and tcpm/tcpm.c: the contract's current, not a measured one.
_CONTRACTS = ("ucsi-source-psy-", "tcpm-source-psy-")

_UNSEEN = "the battery is not discharging: the mains feeds the system, unseen"
_ABSENT_REMEDY = "this board's supply has no current sensor: use another meter"


@dataclass(frozen=True)
class _Supply:
    folder: Path
    battery: bool

    def read(self) -> float | None:
        """W; None if the supply does not say, or (a battery) does not feed the system.

        An external supply that is not plugged in gives 0 W: that is known, not missing.
        """
        try:
            if self.battery:
                if read_optional_text(self.folder / "status") != "Discharging":
                    return None
            elif read_int(self.folder / "online") == 0:
                return 0.0
            if (self.folder / "power_now").exists():
                return abs(read_int(self.folder / "power_now")) / 1e6
            voltage_uv = read_int(self.folder / "voltage_now")
            current_ua = read_int(self.folder / "current_now")
        except (OSError, ValueError):
            return None
        # Drivers do not agree on the sign of a battery's current.
        return voltage_uv * (abs(current_ua) if self.battery else current_ua) / 1e12


@dataclass(frozen=True)
class PowerSupplyMeter:
    """The supplies that feed this machine."""

    spec: str
    name: str
    supplies: tuple[_Supply, ...]
    kind: Kind = KIND

    @property
    def native_period_s(self) -> float:
        """A battery's gauge is slower than a board's converter."""
        return BATTERY_PERIOD_S if self.supplies[0].battery else NATIVE_PERIOD_S

    @property
    def channels(self) -> Sequence[Channel]:
        return (
            Channel(
                name="power_supply:battery" if self.supplies[0].battery else "power_supply:input",
                domain="system",
                quantity="power_w",
                accuracy_relative=ACCURACY,
                resolution=RESOLUTION_W,
                max_power_w=MAX_POWER_W,
            ),
        )

    @property
    def complaint(self) -> str | None:
        """What a missing value means."""
        return _UNSEEN if self.supplies[0].battery else "a supply that is in use gives no value"

    def read(self) -> Sequence[float | None]:
        """W of all supplies together; None if one of them does not say."""
        return [_total_w(self.supplies)]

    def close(self) -> None:
        """Nothing is held open."""


def open_meter(spec: str, options: Mapping[str, str], root: Path) -> PowerSupplyMeter:
    """Open the supplies. Raises PowerError if none has a current sensor."""
    folder = Path(options["root"]) if "root" in options else root / SUPPLIES
    supplies = _choose(folder)
    if not supplies:
        raise PowerError(f"meter '{spec}': {folder} has no supply with a sensor; {_ABSENT_REMEDY}")
    return PowerSupplyMeter(spec, options.get("name", "power_supply"), supplies)


def find(root: Path) -> Finding:
    """Whether a supply has a sensor and feeds the system now."""
    folder = root / SUPPLIES
    supplies = _choose(folder)
    if not supplies:
        reason = f"{folder} has no supply with a sensor"
        return Finding("power_supply", KIND, ("system",), False, reason, _ABSENT_REMEDY)
    if not _total_w(supplies):
        reason = _UNSEEN if supplies[0].battery else "no supply with a sensor is in use"
        remedy = "unplug the mains, or use another meter"
        return Finding("power_supply", KIND, ("system",), False, reason, remedy)
    return Finding("power_supply", KIND, ("system",), True)


def _total_w(supplies: Sequence[_Supply]) -> float | None:
    total_w = 0.0
    for supply in supplies:
        power_w = supply.read()
        if power_w is None:
            return None
        total_w += power_w
    return total_w


def _choose(folder: Path) -> tuple[_Supply, ...]:
    """All external supplies with a sensor, else the batteries with one."""
    if not folder.is_dir():
        return ()
    external, batteries = [], []
    for supply in sorted(folder.iterdir(), key=by_number):
        kind = read_optional_text(supply / "type") or ""
        # `scope` Device: the battery of a mouse.
        if not _has_sensor(supply) or read_optional_text(supply / "scope") == "Device":
            continue
        if supply.name.startswith(_CONTRACTS):
            continue
        if kind == "Battery":
            batteries.append(_Supply(supply, battery=True))
        elif kind == "Mains" or kind.startswith("USB"):
            external.append(_Supply(supply, battery=False))
    return tuple(external or batteries)


def _has_sensor(supply: Path) -> bool:
    # A fuel gauge may refuse to speak while its battery is away: a number is what counts.
    return read_optional_int(supply / "power_now") is not None or (
        read_optional_int(supply / "voltage_now") is not None
        and read_optional_int(supply / "current_now") is not None
    )
