"""Stand-ins for meters at the interface that the real ones have: files in sysfs' own format, a
serial line on a pseudo terminal, an HTTP server, `ipmitool shell` on its pipes, an ioctl."""

from tests.simulators.hwmon import FakeHwmon
from tests.simulators.powercap import FakeRapl, FakeZone, default_zones
from tests.simulators.scripted import ScriptedMeter
from tests.simulators.wattsup import FakeWattsUp

__all__ = ["FakeHwmon", "FakeRapl", "FakeWattsUp", "FakeZone", "ScriptedMeter", "default_zones"]
