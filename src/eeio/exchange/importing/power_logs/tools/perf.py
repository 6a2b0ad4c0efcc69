"""`perf stat -I -x,`."""

import math
import re
import statistics

from eeio.exchange.importing.power_logs.format import LogFormat
from eeio.exchange.importing.power_logs.log_lines import explained, lines_of, matching, unexplained
from eeio.exchange.importing.power_logs.readings import Row, Value, summed
from eeio.exchange.importing.power_logs.series import PUNCTUAL, Clock, ReadLog, series_of
from eeio.exchange.importing.power_logs.times import time_of
from eeio_parsers.found import number
from eeio_power.errors import PowerError

_BEGINS = re.compile(
    r"^\s{0,40}\d{1,12}[.,]\d{9}(?:,[^\n]{0,80},|[;|\t:][^\n]{0,80}[;|\t:])Joules[,;|\t:]power/energy-",
    re.M,
)
_TIME = re.compile(r"\s{0,40}(\d{1,12}[.,]\d{1,9})([,;|\t:])")
_STARTED = re.compile(r"# started on (.{1,60})$")
_PART = re.compile(r"[SDNC]\w{0,20}(?:-[A-Z]\w{0,20}){0,3}$")
"""A socket, die, node or processor, with --per-socket and others."""
_MOST_INTERVALS = 1.5
"""A line is missing if its time is longer than so many intervals."""
_DOMAINS = {"pkg": "package", "ram": "dram"}


class _Run:
    """One start of perf: the energy of each interval of each event."""

    def __init__(self, start_s: float = 0.0, unsure_s: float = 0.0) -> None:
        self.start_s = start_s
        self.unsure_s = unsure_s
        self.joules: dict[str, list[Value]] = {}

    def row(self, line: str) -> bool:
        """Raises PowerError for numbers that cannot be told from their separators."""
        time = _TIME.match(line)
        if time is None:
            return False
        if "," in time[1] and time[2] == ",":
            raise PowerError(
                "decimal commas between separators that are commas: run perf with LC_ALL=C, or -x;"
            )
        cells = [cell.strip() for cell in line[time.end() :].split(time[2])]
        part = ""
        if _PART.match(cells[0]):
            # The number of processors of the part is behind it; -A has none.
            part = cells.pop(0)
            if re.fullmatch(r"\d{1,5}", cells[0]) and cells[1:2] != ["Joules"]:
                cells.pop(0)
        if len(cells) < 3:
            return False
        value, unit, event = cells[:3]
        if unit == "Joules" and (energy := re.match(r"power/energy-(\w{1,20})/", event)):
            text = value.replace(",", ".")
            joules = math.nan if text.startswith("<") else number(text)
            if joules is None:
                return False
            time_s = self.start_s + float(time[1].replace(",", "."))
            self.joules.setdefault(energy[1], []).append((time_s, part, joules))
            return True
        return not re.match(r"power/energy-", event)


def _runs(text: str) -> tuple[list[_Run], Clock]:
    """The starts of perf that have energies; `# started on` is local time, and begins one. Raises
    PowerError."""
    runs = [_Run()]
    clock: Clock = "start"
    is_comment = matching(r"\s*#")
    for number_of_line, line in lines_of(text):
        if started := _STARTED.match(line.strip()):
            start_s, clock = time_of(started[1])
            # Cut to whole seconds.
            runs.append(_Run(start_s + 0.5, 0.5))
        elif not explained(number_of_line, line, is_comment, runs[-1].row):
            raise unexplained(number_of_line, line)
    return [run for run in runs if run.joules], clock


def _powers(run: _Run, event: str) -> list[Row]:
    """The mean power of each interval; missing behind an interval that the log lacks."""
    energies = summed(f"perf energy-{event}", run.joules[event])
    begins_s = [run.start_s, *(end_s for end_s, _ in energies)]
    steps_s = [end_s - begin_s for (end_s, _), begin_s in zip(energies, begins_s, strict=False)]
    longest_s = _MOST_INTERVALS * statistics.median(steps_s[1:] or steps_s)
    return [
        (end_s, joules / step_s if step_s <= longest_s else math.nan)
        for (end_s, joules), step_s in zip(energies, steps_s, strict=True)
        if step_s > 0
    ]


def _read(text: str) -> ReadLog:
    """The energy of each interval, of each start of perf."""
    runs, clock = _runs(text)
    if len({run.unsure_s for run in runs}) > 1:
        raise PowerError("some of its runs have no line `# started on`: import them apart")
    unsure_s = max((run.unsure_s for run in runs), default=0.0)
    log = ReadLog(clock=clock, unsure_s=unsure_s, is_elapsed=True)
    events = dict.fromkeys(event for run in runs for event in run.joules)
    log.notes = [
        f"energy-{event} is a part of another domain: not used"
        for event in events
        if event not in _DOMAINS
    ]
    for run in runs:
        for event in (event for event in run.joules if event in _DOMAINS):
            rows = _powers(run, event)
            log.series.append(
                series_of("perf", _DOMAINS[event], "measured", "mean", rows, PUNCTUAL)
            )
    return log


LOGS = (LogFormat("perf", _BEGINS, _read),)
