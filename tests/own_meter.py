"""A meter that is no part of eeio, as somebody may have it in a folder of EEIO_METERS: 7.5 W."""

BENCH = """
from dataclasses import dataclass
from eeio_power.meters import Channel, Detected
OPTIONS = {"port": "where it is"}
ARGUMENT = "port"
@dataclass(frozen=True)
class Bench:
    spec: str
    name: str
    kind: str = "measured"
    native_period_s: float = 0.05
    channels: tuple = (Channel("bench:system", "system", "power_w", accuracy_relative=0.01),)
    def read(self): return [7.5]
    def close(self): pass
def open_meter(spec, options, root): return Bench(spec, options.get("name", "bench"))
def find(root): return Detected("bench", "measured", ("system",), True)
"""
