"""Output of a running campaign: a bar, and a line for each run.

Progress on stderr: one line per run, and on a terminal a bar with the ETA.

A finished run is one line of the log: its bytes and their energy.
"""

import os
import shutil
import sys
import time
from typing import Any

from eeio.analysis.observation import Missing, Observation, observed
from eeio.analysis.selection import main_reading
from eeio.record.design import PlannedRun
from eeio.record.run import EnergyReading, Experiment, Phase, Run
from eeio.record.run import mark as mark_of
from eeio.report.campaign.columns import WITHOUT_DRIVES
from eeio.units.external_text import shown, shown_lines
from eeio.units.number_text import number
from eeio.units.sizes import MB, percent
from eeio.units.terminal import raw

ESTIMATE = "ESTIMATE"


def run_text(planned: PlannedRun, run: Run) -> str:
    """`fio read 4 KiB #2: read 120.3 MB/s, system 12.3 W ±1.2 %, 9.78 MB/J ±1.2 %`."""
    text = f"{run.experiment.tool} {planned.experiment.description}"
    if planned.experiment.volume:
        text += f" on {planned.experiment.volume}"
    results = ", ".join(filter(None, (_of_phase(run.experiment, phase) for phase in run.phases)))
    reasons = [*run.validity, *(reason for phase in run.phases for reason in phase.validity)]
    invalid = ""
    if reasons:
        invalid = f" INVALID: {reasons[0]}"
    return f"{text} #{run.repetition}: {results or 'done'}{invalid}"


def cost_of_run(run: Run) -> str:
    """Power and MB/J of its last phase that has any, for a bar; empty without a measurement."""
    for phase in reversed(run.phases):
        if (cost := _cost(observed(run.experiment, phase))) is not None:
            return cost
    return ""


def _of_phase(experiment: Experiment, phase: Phase) -> str | None:
    observation = observed(experiment, phase)
    bandwidth = observation.window.bandwidth_bytes_per_s
    figures = []
    if bandwidth is not None:
        figures.append(f"{phase.operation} {bandwidth / MB:.1f} MB/s")
    if (cost := _cost(observation)) is not None:
        figures.append(cost)
    return ", ".join(figures)


def _cost(observation: Observation) -> str | None:
    """Of the main source, each figure with its uncertainty where there is one; of modelled power
    only where nothing was measured, and marked. None without power."""
    reading = main_reading(observation.window)
    if reading is None:
        return None
    if reading.kind == "modelled" and (reading.uncertainty_relative or 0.0) > 1.0:
        return None  # an estimate that may be 0 W says nothing
    limit = _limit(reading)
    mark = mark_of(reading.kind)
    text = f"{mark}{reading.domain} {number(reading.power_w or 0.0)} W{limit}"
    if reading.doubtful:
        text += " (doubtful)"
    efficiency = observation.by(reading.key).bytes_per_j
    if not isinstance(efficiency, Missing):
        text += f", {mark}{number(efficiency / MB)} MB/J{limit}"
        if reading.leaves_drives_out:
            text += f" ({WITHOUT_DRIVES})"
    return text


def _limit(reading: EnergyReading) -> str:
    share = reading.uncertainty_relative
    if share is None:
        return ""
    return f" ±{percent(share)} %"


def format_duration(seconds: float) -> str:
    """`1:02:03` or `2:03`."""
    rounded_s = round(seconds)
    hours, rest = divmod(rounded_s, 3600)
    minutes, second = divmod(rest, 60)
    if hours:
        return f"{hours}:{minutes:02}:{second:02}"
    return f"{minutes}:{second:02}"


def duration_text(seconds: float) -> str:
    """`40 s`, `7 min` or `3 h 40 min`."""
    if seconds < 90:
        return f"{round(seconds)} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min"


def one_line(line: str, columns: int) -> str:
    """`[1/9] fio sequential… #2: read 1.2 MB/s`: the line of a run in that many columns, with a
    shorter name of the experiment. The reason of an invalid run is never cut."""
    named, colon, results = line.partition(": ")
    name, number_sign, repetition = named.rpartition(" #")
    room = columns - len(f"…{number_sign}{repetition}{colon}{results}")
    if len(line) <= columns or not number_sign or " INVALID: " in line:
        return line
    kept = name[: max(room, len("[999/999] fio"))]
    return f"{kept}…{number_sign}{repetition}{colon}{results}"[:columns]


_FORECAST_RUNS = 10


class Progress:
    """Counts runs. rich draws the bar where it is installed and stderr is a terminal."""

    def __init__(self, total: int, done: int, expected_s: float) -> None:
        self._total = total
        self._done = done
        self._first = done
        self._expected_s = expected_s
        self._started_s = time.monotonic()
        self._bar: Any = None
        self._task: Any = None
        if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
            try:
                from rich.console import Console
                from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
                from rich.progress import Progress as RichProgress
            except ImportError:
                return
            self._bar = RichProgress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("ETA {task.fields[eta]}"),
                TextColumn("{task.fields[last]}", markup=False),
                console=Console(file=raw(sys.stderr)),
                transient=True,
            )
            self._task = self._bar.add_task(
                "runs", total=total, completed=done, eta=format_duration(expected_s), last=""
            )

    def __enter__(self) -> "Progress":
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def say(self, text: str) -> None:
        """One line that stays."""
        if self._bar is not None:
            self._bar.console.print(shown_lines(text), markup=False, highlight=False)
        else:
            print(text, file=sys.stderr, flush=True)

    def runs_done(self, count: int, text: str, cost: str = "") -> None:
        """Counts runs and prints the result of the last one; a bar also shows its energy."""
        self._done += count
        eta = format_duration(self.eta_s())
        line = f"[{self._done}/{self._total}] {text}" + ("" if self._bar else f" (ETA {eta})")
        if sys.stderr.isatty():
            line = one_line(line, shutil.get_terminal_size().columns)
        self.say(line)
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done, eta=eta, last=shown(cost))

    def add(self, runs: int) -> None:
        """More runs than were planned at the start."""
        self._total += runs
        if self._bar is not None:
            self._bar.update(self._task, total=self._total)

    def eta_s(self) -> float:
        """Seconds to go, from the runs of this start and the plan's forecast, which counts as ten
        runs: the first ones also take the time of test files and pilots."""
        ended = self._done - self._first
        if ended == 0:
            return self._expected_s
        elapsed_s = time.monotonic() - self._started_s
        planned_s = self._expected_s / max(1, self._total - self._first)
        each_s = (elapsed_s + _FORECAST_RUNS * planned_s) / (ended + _FORECAST_RUNS)
        return each_s * (self._total - self._done)
