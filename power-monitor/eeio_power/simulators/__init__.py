"""Stand-ins for meters at the interface that the real ones have: files, in sysfs' own format."""

from eeio_power.simulators.hwmon import FakeHwmon
from eeio_power.simulators.powercap import FakeRapl, FakeZone, default_zones
from eeio_power.simulators.scripted import ScriptedMeter

__all__ = ["FakeHwmon", "FakeRapl", "FakeZone", "ScriptedMeter", "default_zones"]
