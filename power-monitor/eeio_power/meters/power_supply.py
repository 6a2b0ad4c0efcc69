"""Supplies that the kernel watches: the mains input of a board (Cubietruck's AXP209), a battery.

`power_supply[,root=DIR]`, where DIR is the folder with `axp20x-ac`.

The system's power is that of all `Mains` and `USB` supplies that are online and show a voltage and
a current (`voltage_now` x `current_now`, uV and uA): the board's input, on the direct-current side,
including battery charging. While a battery also discharges, or a plug without a sensor is online,
they are not the only supply of the system, and the reading is missing. If no such supply has a
sensor, or all are unplugged and a battery discharges, it is the power of the discharging batteries
(`power_now`, uW, or voltage x current), and only while no supply is plugged in (`online`, with or
without a sensor): a charger that is too weak feeds the system together with the battery, so 3 W of
the battery are not the machine's power. A battery set to discharge on the mains
(`charge_behaviour`: force-discharge) is the machine's only supply. Else the reading is missing.
Plugged-in supplies are looked up at each reading: docks, chargers and batteries come and go.

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
from eeio_power.reading import BEHIND_SUPPLY, Kind
from eeio_power.stretches import noise_w
from eeio_power.sysfs import by_number, read_int, read_optional_int, read_optional_text

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
RESOLUTION_W = 0.005
MAX_POWER_W = 500.0

# linux' drivers/usb/typec/ucsi/psy.c and tcpm/tcpm.c: the contract's current, not a measured one.
_CONTRACTS = ("ucsi-source-psy-", "tcpm-source-psy-")

# States of a battery that neither charges nor discharges. Some report Unknown while idle.
_RESTING = ("Not charging", "Full", "Unknown")

_UNSEEN = "the mains feeds the system, without a sensor"
_ABSENT_REMEDY = "this board's supply has no current sensor: use another meter"


@dataclass(frozen=True)
class _Supply:
    folder: Path

    def read(self, *, magnitude: bool = False) -> float | None:
        """W; None if the supply does not say."""
        try:
            if (self.folder / "power_now").exists():
                return abs(read_int(self.folder / "power_now")) / 1e6
            voltage_uv = read_int(self.folder / "voltage_now")
            current_ua = read_int(self.folder / "current_now")
        except (OSError, ValueError):
            return None
        return voltage_uv * (abs(current_ua) if magnitude else current_ua) / 1e12


@dataclass(frozen=True)
class _Power:
    """The present supplies of the system, or why they are unknown."""

    power_w: float | None
    reason: str | None = None


@dataclass(frozen=True)
class _Feed:
    """The supplies of a machine that matter: its inputs with a sensor, else its batteries."""

    folder: Path
    inputs: tuple[_Supply, ...]
    batteries: tuple[_Supply, ...]
    plugs: tuple[Path, ...]
    """Every mains and USB supply, with a sensor or without."""

    @property
    def by_battery(self) -> bool:
        return not self.inputs

    def read(self) -> _Power:
        """The system's power, W."""
        # The machine's supplies may have changed since the meter was opened.
        now = _feed(self.folder)
        if now is None or now.by_battery != self.by_battery:
            return _Power(None, "other supplies feed the machine than when the meter was opened")
        return now._batteries() if now.by_battery else now._inputs()

    def _inputs(self) -> _Power:
        total_w, used = 0.0, 0
        for supply in self.inputs:
            online = read_optional_int(supply.folder / "online")
            if online == 0:
                continue  # a supply without output is a value, not missing
            power_w = None if online is None else supply.read()
            # Some chargers show the current into their battery, with its sign.
            if power_w is None or power_w < -noise_w(RESOLUTION_W):
                return _Power(None, f"{supply.folder.name}, a supply in use, gives no value")
            total_w += power_w
            used += 1
        unmeasured = self._unmeasured_input()
        if unmeasured is not None:
            return _Power(
                None, f"{unmeasured} also feeds the system, besides the supplies with a sensor"
            )
        return _Power(total_w) if used else _Power(None, "no supply with a sensor is in use")

    def _unmeasured_input(self) -> str | None:
        """A battery that discharges, or an unmeasured plug in use."""
        for battery in self.batteries:
            state = read_optional_text(battery.folder / "status")
            if state == "Discharging" and battery.read(magnitude=True) != 0.0:
                return battery.folder.name
        measured = {supply.folder for supply in self.inputs}
        for plug in self.plugs:
            # A contract is reported for the port that one of the inputs is plugged into.
            if plug in measured or plug.name.startswith(_CONTRACTS):
                continue
            if read_optional_int(plug / "online") != 0:
                return plug.name
        return None

    def _batteries(self) -> _Power:
        states = [read_optional_text(b.folder / "status") or "Unknown" for b in self.batteries]
        discharging = [
            b for b, state in zip(self.batteries, states, strict=True) if state == "Discharging"
        ]
        if not discharging:
            reported = ", ".join(
                f"{b.folder.name} is {state.lower()}"
                for b, state in zip(self.batteries, states, strict=True)
            )
            return _Power(None, f"no battery is discharging ({reported}): {_UNSEEN}")
        plugged = next((p.name for p in self.plugs if read_optional_int(p / "online") != 0), None)
        if plugged is not None and not all(map(_is_forced, discharging)):
            name = discharging[0].folder.name
            return _Power(None, f"{plugged} is plugged in together with {name}: {_UNSEEN}")
        total_w = 0.0
        for battery, state in zip(self.batteries, states, strict=True):
            name = battery.folder.name
            # Drivers do not agree on the sign of a battery's current.
            power_w = battery.read(magnitude=True)
            if state in _RESTING and not power_w and (power_w == 0.0 or state != "Unknown"):
                continue
            if state != "Discharging":
                what = "no power" if power_w is None else f"{power_w:.1f} W"
                return _Power(None, f"{name} is {state.lower()} and shows {what}: in or out?")
            if power_w is None:
                return _Power(None, f"{name} discharges and gives no value")
            total_w += power_w
        return _Power(total_w)


def _is_forced(battery: _Supply) -> bool:
    """Set to discharge on the mains: `auto inhibit-charge [force-discharge]`."""
    behaviour = read_optional_text(battery.folder / "charge_behaviour") or ""
    return "[force-discharge]" in behaviour


@dataclass(frozen=True)
class PowerSupplyMeter:
    """The supplies that feed this machine."""

    spec: str
    name: str
    feed: _Feed
    kind: Kind = KIND

    @property
    def native_period_s(self) -> float:
        """A battery's gauge is slower than a board's converter."""
        return BATTERY_PERIOD_S if self.feed.by_battery else NATIVE_PERIOD_S

    @property
    def channels(self) -> Sequence[Channel]:
        return (
            Channel(
                name="power_supply:battery" if self.feed.by_battery else "power_supply:input",
                domain="system",
                quantity="power_w",
                accuracy_relative=ACCURACY,
                resolution=RESOLUTION_W,
                max_power_w=MAX_POWER_W,
                contents=BEHIND_SUPPLY,
            ),
        )

    @property
    def complaint(self) -> str | None:
        """The meaning of a missing value."""
        return self.feed.read().reason

    def read(self) -> Sequence[float | None]:
        """W of all supplies together; None if one of them does not say."""
        return [self.feed.read().power_w]

    def close(self) -> None:
        """No file stays open."""


def open_meter(spec: str, options: Mapping[str, str], root: Path) -> PowerSupplyMeter:
    """Open the supplies. Raises PowerError if none has a current sensor."""
    folder = Path(options["root"]) if "root" in options else root / SUPPLIES
    feed = _feed(folder)
    if feed is None:
        raise PowerError(f"meter '{spec}': {folder} has no supply with a sensor; {_ABSENT_REMEDY}")
    return PowerSupplyMeter(spec, options.get("name", "power_supply"), feed)


def find(root: Path) -> Detected:
    """Whether a supply has a sensor and feeds the system now."""
    folder = root / SUPPLIES
    feed = _feed(folder)
    if feed is None:
        reason = f"{folder} has no supply with a sensor{_without_sensor(folder)}"
        return Detected("power_supply", KIND, ("system",), False, reason, _ABSENT_REMEDY)
    now = feed.read()
    if not now.power_w:
        names = ", ".join(battery.folder.name for battery in feed.batteries)
        shows = f"{names} shows 0 W" if feed.by_battery else "the supplies in use show 0 W"
        reason = now.reason or f"{shows} for a running machine"
        remedy = "use another meter"
        if any(read_optional_int(plug / "online") != 0 for plug in feed.plugs):
            remedy = "unplug the mains, or use another meter"
        return Detected("power_supply", KIND, ("system",), False, reason, remedy)
    return Detected(
        "power_supply", KIND, ("system",), True, contents={"system": BEHIND_SUPPLY}
    )  # fmt: skip


def _feed(folder: Path) -> _Feed | None:
    """All supplies that matter; None if no supply has a sensor."""
    if not folder.is_dir():
        return None
    inputs, batteries, plugs = [], [], []
    for supply in sorted(folder.iterdir(), key=by_number):
        kind = read_optional_text(supply / "type") or ""
        # `scope` Device: the battery of a mouse.
        if read_optional_text(supply / "scope") == "Device":
            continue
        if kind == "Battery" and read_optional_int(supply / "present") == 0:
            continue  # an empty bay
        if kind == "Battery":
            # One without a sensor may feed the machine too: it is checked, and then missing.
            batteries.append(_Supply(supply))
        elif kind in ("Mains", "Wireless") or kind.startswith("USB"):
            plugs.append(supply)
            if _has_sensor(supply) and not supply.name.startswith(_CONTRACTS):
                inputs.append(_Supply(supply))
    # Unplugged inputs feed nothing: a discharging battery is the supply.
    unplugged = all(read_optional_int(supply.folder / "online") == 0 for supply in inputs)
    if unplugged and any(map(_discharges, batteries)):
        inputs = []
    if not inputs and not any(_has_sensor(battery.folder) for battery in batteries):
        return None
    return _Feed(folder, tuple(inputs), tuple(batteries), tuple(plugs))


def _without_sensor(folder: Path) -> str:
    """The batteries that discharge, of which the power is not known."""
    names = [
        supply.name
        for supply in (sorted(folder.iterdir(), key=by_number) if folder.is_dir() else [])
        if read_optional_text(supply / "type") == "Battery"
        and read_optional_text(supply / "status") == "Discharging"
        and read_optional_text(supply / "scope") != "Device"
    ]
    return f" ({', '.join(names)} discharges and reports no power)" if names else ""


def _discharges(battery: _Supply) -> bool:
    is_discharging = read_optional_text(battery.folder / "status") == "Discharging"
    return is_discharging and _has_sensor(battery.folder)


def _has_sensor(supply: Path) -> bool:
    # A fuel gauge may not answer while its battery is removed: only a number counts.
    return read_optional_int(supply / "power_now") is not None or (
        read_optional_int(supply / "voltage_now") is not None
        and read_optional_int(supply / "current_now") is not None
    )
