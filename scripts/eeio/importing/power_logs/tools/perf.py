"""`perf stat -I -x,`."""

import math
import re

from eeio.importing.power_logs.format import LogFormat
from eeio.importing.power_logs.series import PUNCTUAL, ReadLog, series_of
from eeio.importing.power_logs.times import time_of
from eeio_parsers.found import number

_PERF = re.compile(
    r"^\s{0,40}(\d{1,12}\.\d{1,9}),(?:[SDN]\d[\w-]{0,20},\d{1,4},)?"
    r"(<[\w ]{1,40}>|[\d.]{1,30}),Joules,power/energy-(\w{1,20})/", re.M,
)  # fmt: skip


def _perf(text: str) -> ReadLog:
    """`perf stat -I -x,`: the energy of each interval; `# started on` is local time."""
    found = ReadLog(clock="start")
    start_s = 0.0
    if started := re.search(r"^# started on (.{1,60})$", text, re.M):
        # Cut to whole seconds.
        start_s, found.clock = time_of(started[1])
        start_s, found.unsure_s = start_s + 0.5, 0.5
    joules: dict[str, dict[float, float]] = {}
    for time, reported, event in _PERF.findall(text):
        of = joules.setdefault(event, {})
        value = number(reported)
        of[float(time)] = of.get(float(time), 0.0) + (math.nan if value is None else value)
    for event, of in joules.items():
        domain = {"pkg": "package", "ram": "dram"}.get(event)
        if domain is None:
            found.notes.append(f"energy-{event} is a part of another domain: not used")
            continue
        ends = list(of)
        steps = zip([0.0, *ends], ends, strict=False)
        rows = [(start_s + end, of[end] / (end - begin)) for begin, end in steps if end > begin]
        found.series.append(series_of("perf", domain, "measured", "mean", rows, PUNCTUAL))
    return found


LOGS = (LogFormat("perf", _PERF, _perf),)
