"""Stand-ins for meters at the interface that the real ones have: files in sysfs' own format, a
serial line on a pseudo terminal, an HTTP server, `ipmitool shell` on its pipes, an ioctl."""

from eeio_power.simulators.hwmon import FakeHwmon
from eeio_power.simulators.powercap import FakeRapl, FakeZone, default_zones
from eeio_power.simulators.scripted import ScriptedMeter
from eeio_power.simulators.wattsup import FakeWattsUp

__all__ = ["FakeHwmon", "FakeRapl", "FakeWattsUp", "FakeZone", "ScriptedMeter", "default_zones"]
