"""What a machine draws by its inputs and batteries, which come and go while it runs.

The inputs of a machine feed it and charge its batteries: its power is theirs less what flows into
the batteries. A battery is its only supply while it discharges and nothing is plugged in.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from eeio_power.window_readings import noise_w

INPUTS = "the inputs in use, less what charges batteries"
BATTERIES = "the batteries that discharge"
MOST_CHARGING = 0.5
"""Above it the system's power would be the difference of two similar readings."""
_MAINS = "the mains feeds the system, without a sensor"
# States of a battery that neither charges nor discharges. Some report Unknown while idle.
_RESTING = ("not charging", "full", "unknown")


@dataclass(frozen=True)
class Feed:
    """An input or a battery, as it is now."""

    name: str
    role: Literal["input", "battery"]
    has_sensor: bool
    power_w: float | None
    """W; None if it does not say. A battery's is a magnitude: drivers do not agree on the sign."""
    is_on: bool | None = True
    """Whether an input is plugged in; None if it does not say."""
    state: str = ""
    """Of a battery: charging, discharging, full, not charging, unknown."""
    is_forced: bool = False
    """A battery that is set to discharge on the mains."""


@dataclass(frozen=True)
class FeedPower:
    """The system's power by its feeds, or why it is unknown."""

    power_w: float | None
    rule: str
    reason: str | None = None


def is_known(feeds: Sequence[Feed]) -> bool:
    """Whether a feed has a sensor at all."""
    return any(feed.has_sensor for feed in feeds)


def are_batteries(feeds: Sequence[Feed]) -> bool:
    """Whether the batteries are the supply: no input has a sensor, or all inputs are unplugged and
    a battery discharges."""
    inputs = [feed for feed in feeds if feed.role == "input" and feed.has_sensor]
    unplugged = all(feed.is_on is False for feed in inputs)
    return not inputs or (unplugged and any(map(_discharges_by_sensor, _batteries(feeds))))


def system_power(feeds: Sequence[Feed], resolution_w: float) -> FeedPower:
    """What the machine draws now, W."""
    if are_batteries(feeds):
        return _by_batteries(feeds)
    return _by_inputs(feeds, resolution_w)


def _batteries(feeds: Sequence[Feed]) -> list[Feed]:
    return [feed for feed in feeds if feed.role == "battery"]


def _discharges_by_sensor(battery: Feed) -> bool:
    return battery.state == "discharging" and battery.has_sensor


def _by_inputs(feeds: Sequence[Feed], resolution_w: float) -> FeedPower:
    reason = _of_inputs(feeds, resolution_w) or _of_batteries(feeds)
    if reason is not None:
        return FeedPower(None, INPUTS, reason)
    charging = [battery for battery in _batteries(feeds) if battery.state == "charging"]
    charging_w = math.fsum(battery.power_w or 0.0 for battery in charging)
    total_w = math.fsum(feed.power_w or 0.0 for feed in _used_inputs(feeds))
    if charging_w > MOST_CHARGING * total_w:
        reason = f"{charging_w:.1f} W of the input's {total_w:.1f} W flow into the battery"
        return FeedPower(None, INPUTS, reason)
    return FeedPower(total_w - charging_w, INPUTS)


def _used_inputs(feeds: Sequence[Feed]) -> list[Feed]:
    return [f for f in feeds if f.role == "input" and f.has_sensor and f.is_on is not False]


def _of_inputs(feeds: Sequence[Feed], resolution_w: float) -> str | None:
    """Why the inputs' power is unknown, or not all that feeds the system."""
    used = _used_inputs(feeds)
    for feed in used:
        # Some chargers show the current into their battery, with its sign.
        if feed.is_on is None or feed.power_w is None or feed.power_w < -noise_w(resolution_w):
            return f"{feed.name}, a supply in use, gives no value"
    for feed in feeds:
        if feed.role == "input" and not feed.has_sensor and feed.is_on is not False:
            return f"{feed.name} also feeds the system, besides the supplies with a sensor"
    if used:
        return None
    return "no supply with a sensor is in use"


def _of_batteries(feeds: Sequence[Feed]) -> str | None:
    """Why it is unknown what the batteries take or give while an input feeds the system."""
    for battery in _batteries(feeds):
        if battery.state == "charging" and battery.power_w is None:
            return f"{battery.name} is charging, and how much flows into it is unknown"
        if battery.state == "discharging" and battery.power_w != 0.0:
            return f"{battery.name} also feeds the system, besides the supplies with a sensor"
    return None


def _by_batteries(feeds: Sequence[Feed]) -> FeedPower:
    batteries = _batteries(feeds)
    discharging = [battery for battery in batteries if battery.state == "discharging"]
    if not discharging:
        states = ", ".join(f"{battery.name} is {battery.state}" for battery in batteries)
        return FeedPower(None, BATTERIES, f"no battery is discharging ({states}): {_MAINS}")
    plugged = next((f.name for f in feeds if f.role == "input" and f.is_on is not False), None)
    if plugged is not None and not all(battery.is_forced for battery in discharging):
        reason = f"{plugged} is plugged in together with {discharging[0].name}: {_MAINS}"
        return FeedPower(None, BATTERIES, reason)
    total_w = 0.0
    for battery in batteries:
        if _rests(battery):
            continue
        if battery.state != "discharging" or battery.power_w is None:
            return FeedPower(None, BATTERIES, _unclear(battery))
        total_w += battery.power_w
    return FeedPower(total_w, BATTERIES)


def _unclear(battery: Feed) -> str:
    if battery.state == "discharging":
        return f"{battery.name} discharges and gives no value"
    shown = "no power"
    if battery.power_w is not None:
        shown = f"{battery.power_w:.1f} W"
    return f"{battery.name} is {battery.state} and shows {shown}: in or out?"


def _rests(battery: Feed) -> bool:
    if battery.state not in _RESTING:
        return False
    return battery.power_w == 0.0 or (battery.power_w is None and battery.state != "unknown")
