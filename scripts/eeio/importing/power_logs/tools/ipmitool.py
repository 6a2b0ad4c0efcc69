"""Loops of ipmitool."""

import re

from eeio.importing.power_logs.format import LogFormat
from eeio.importing.power_logs.sensors import of_sensors
from eeio.importing.power_logs.series import ReadLog
from eeio.importing.power_logs.times import STAMP, time_of
from eeio_power.errors import PowerError

_DCMI = re.compile(r"Instantaneous power reading\s{0,40}:\s{0,40}(\d{1,6}) Watts")


_SENSOR = re.compile(r"^([^|,\n]{1,60}?)\s{0,40}[|,][^\n]{0,80}?\b(\d{1,6}(?:\.\d{1,6})?)\s{0,40}"
                     r"[|,]?\s{0,40}Watts\b")  # fmt: skip


def _ipmi(text: str) -> ReadLog:
    """A loop of `ipmitool dcmi power reading` or `ipmitool sdr`, with a time before each answer."""
    found = ReadLog(same_machine=False)
    rounds: list[tuple[float, dict[str, float | None]]] = []
    for line in text.splitlines():
        stamp = None if "timestamp" in line else STAMP.match(line)
        rest = line
        if stamp is not None:
            time_s, found.clock = time_of(stamp[1])
            rest = line[stamp.end() :].lstrip(" ,;:|]\t")
            if not rounds or time_s != rounds[-1][0]:
                rounds.append((time_s, {}))
        dcmi, sensor = _DCMI.search(rest), _SENSOR.match(rest)
        if dcmi is None and sensor is None:
            continue
        if not rounds:
            raise PowerError("no time before the first reading: add `date +%s` to the loop")
        if dcmi is not None:
            name, value = "System Power", dcmi[1]
        else:
            assert sensor is not None
            name, value = sensor[1].strip(), sensor[2]
        if name in rounds[-1][1] and stamp is None:
            raise PowerError("readings without a time between them: add `date +%s` to the loop")
        rounds[-1][1][name] = float(value)
    found.series.append(of_sensors("ipmi", rounds))
    return found


LOGS = (
    LogFormat(
        "ipmitool",
        re.compile(r"Instantaneous power reading|\d[|,\s]{1,40}Watts\b", re.M),
        _ipmi,
    ),
)
