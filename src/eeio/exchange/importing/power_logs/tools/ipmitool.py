"""Loops of ipmitool."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from eeio.exchange.importing.power_logs.format import LogFormat
from eeio.exchange.importing.power_logs.log_lines import explain
from eeio.exchange.importing.power_logs.readings import grouped
from eeio.exchange.importing.power_logs.sensors import of_sensors
from eeio.exchange.importing.power_logs.series import ReadLog
from eeio.exchange.importing.power_logs.times import STAMP, LogTimes
from eeio_power.errors import PowerError

_DCMI = re.compile(r"\s*Instantaneous power reading\s{0,40}:\s{0,40}(\d{1,6}) Watts")
_STATE = re.compile(r"\s*Power reading state is\s{0,40}:\s{0,40}(\w{1,40})")
_STATISTICS = re.compile(
    r"\s*(?:(?:Minimum|Maximum) during sampling period|Average power reading over sample period"
    r"|IPMI timestamp|Sampling period|Statistics reporting time period)\s{0,40}:"
)
_WATTS = re.compile(
    r"([^|,\n]{1,60}?)\s{0,40}[|,][^\n]{0,80}?\b(\d{1,6}(?:\.\d{1,6})?)\s{0,40}[|,]?\s{0,40}Watts\b"
)
_SENSOR = re.compile(r"[^|,\n]{1,60}[|,]")
"""A line of `sdr` or `sensor` with another unit, or without a reading."""
_FAILURE = re.compile(
    r"\s*(?:Error|Unable to|Could not|Failed|Get \w|DCMI request failed|Close Session|No response|"
    r"Activate Session|Authentication|ipmitool: )",
    re.I,
)
_DCMI_NAME = "System Power"


@dataclass
class _Answer:
    """The sensors of one answer of the controller, and whether it marks its reading as valid."""

    time_s: float
    sensors: dict[str, float | None] = field(default_factory=dict)
    state: str | None = None

    def values(self, needs_state: bool) -> dict[str, float | None]:
        is_active = self.state == "activated" or (self.state is None and not needs_state)
        if _DCMI_NAME in self.sensors and not is_active:
            return {**self.sensors, _DCMI_NAME: math.nan}
        return self.sensors


class _Answers:
    """The rules of the lines, and what they explain."""

    def __init__(self) -> None:
        self.answers: list[_Answer] = []
        self.times = LogTimes()

    def line(self, line: str) -> bool:
        if _STATISTICS.match(line) or line.startswith("#"):
            return True
        stamp = STAMP.match(line)
        if stamp is not None:
            time_s = self.times.read(stamp[1])
            line = line[stamp.end() :].lstrip(" ,;:|]\t")
            self._begin(time_s, is_alone=not line)
            if not line or _STATISTICS.match(line):
                return True
        return self._power(line, None if stamp is None else time_s) or self._without_power(line)

    def _begin(self, time_s: float, is_alone: bool) -> None:
        """A new answer: a time on a line of its own begins one, also within the same second."""
        last = None
        if self.answers:
            last = self.answers[-1]
        if last is None or time_s != last.time_s or (is_alone and last.sensors):
            self.answers.append(_Answer(time_s))

    def _power(self, line: str, time_s: float | None) -> bool:
        """`time_s` is the time on the same line."""
        dcmi, sensor = _DCMI.match(line), _WATTS.match(line)
        if dcmi is None and sensor is None:
            return False
        if not self.answers:
            raise PowerError("no time before the first reading: add `date +%s` to the loop")
        name, value = _DCMI_NAME, ""
        if dcmi is not None:
            value = dcmi[1]
        elif sensor is not None:
            name, value = sensor[1].strip(), sensor[2]
        if name in self.answers[-1].sensors:
            if time_s is None:
                raise PowerError("readings without a time between them: add `date +%s` to the loop")
            self.answers.append(_Answer(time_s))
        self.answers[-1].sensors[name] = float(value)
        return True

    def _without_power(self, line: str) -> bool:
        if state := _STATE.match(line):
            if self.answers:
                self.answers[-1].state = state[1].lower()
            return True
        return _FAILURE.match(line) is not None or _SENSOR.match(line) is not None


def _read(text: str) -> ReadLog:
    """A loop of `ipmitool dcmi power reading` or `ipmitool sdr`, with a time before each answer."""
    rules = _Answers()
    explain(text, rules.line)
    log = ReadLog(same_machine=False, clock=rules.times.clock)
    states = {answer.state for answer in rules.answers if _DCMI_NAME in answer.sensors}
    if states and "activated" not in states and states != {None}:
        named = ", ".join(sorted(state for state in states if state))
        raise PowerError(f"no reading is valid: `Power reading state is: {named}`")
    if states == {None}:
        log.notes.append("the log has no `Power reading state`: its readings are taken as valid")
    rounds = [
        (answer.time_s, answer.values(needs_state=states != {None})) for answer in rules.answers
    ]
    log.series.append(of_sensors("ipmi", _together(rounds)))
    return log


_Round = tuple[float, Mapping[str, float | None]]


def _together(rounds: Sequence[_Round]) -> list[_Round]:
    """The answers; sensors with times of their own are put together to readings."""
    values = [
        (time_s, name, math.nan if value is None else value)
        for time_s, sensors in rounds
        for name, value in sensors.items()
    ]
    names = {name for _, name, _ in values}
    are_single = len(names) > 1 and all(len(sensors) == 1 for _, sensors in rounds)
    if not are_single:
        return list(rounds)
    return [(reading.time_s, reading.parts) for reading in grouped("ipmi", values)]


LOGS = (
    LogFormat(
        "ipmitool",
        re.compile(r"Instantaneous power reading|\d[|,\s]{1,40}Watts\b", re.M),
        _read,
    ),
)
