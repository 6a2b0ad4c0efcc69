"""IO500: its lines on the screen, `result.txt`, and the reports of IOR.

IO500 prints the line of a phase as soon as the phase has ended, with its time, and writes the time
with four decimals into result.txt (`t_delta`). A window therefore ends when the line arrived, and
begins `t_delta` before. IO500's own stamps (`t_start`, `t_end`: local time in whole seconds) limit
it: a line that arrived too late for them moves the window to the latest time that they permit.

The time of a phase includes opening and closing; IO500's bandwidth is over IOR's time
(`total_s`). Bytes are those that IOR reports, or its plan, if they agree with its bandwidth and
time; else they are not known. Write phases of IOR flush (-e), within IOR's time. Operations of
mdtest and of find are files; their rates are over mdtest's and find's times (`span_s`), and mdtest
waits for a second before it begins.

A score with [INVALID], or with a stonewall below 300 s, is a debug run's: it has another name
(`io500_debug_score`), and a note says that it is not a valid IO500 run. Units: score without one,
bandwidth in bytes/s, operations in 1/s.
"""

import calendar
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from eeio.errors import ToolOutputError
from eeio.record.run import ContextValue
from eeio.record.tools._arrivals import Arrivals
from eeio.record.tools.capture import Capture, PhaseResult, ToolResult, naming
from eeio.units import quantities as q
from eeio.units.sizes import parse_size

OUTPUT_FILE = "stdout.txt"
FOLDER = "io500"
GIB = float(1 << 30)
VALID_STONEWALL_S = 300
NOT_VALID = "not a valid IO500 run"
SCORE, DEBUG_SCORE = "io500_score", "io500_debug_score"
SCORED = (
    "ior-easy-write",
    "mdtest-easy-write",
    "ior-hard-write",
    "mdtest-hard-write",
    "find",
    "ior-easy-read",
    "mdtest-easy-stat",
    "ior-hard-read",
    "mdtest-hard-stat",
    "mdtest-easy-delete",
    "mdtest-hard-read",
    "mdtest-hard-delete",
)
"""The phases of which the score is made."""

RESULT = re.compile(
    r"^(?P<label>[^\[\n]{0,40})\[(?P<kind>RESULT[\w-]{0,80}| {6})\]\s{1,99}"
    r"(?:(?:BW|IOPS)\s{1,99}phase\s{1,99}\d{1,20}\s{1,99})?(?P<name>[\w-]{1,80})\s{1,99}"
    r"(?P<rate>[\d.]{1,30})\s{1,99}(?P<unit>GiB/s|GB/s|kIOPS|kiops)\s{0,99}:\s{0,99}"
    r"time\s{1,99}(?P<seconds>[\d.]{1,30})(?:[ \t]{1,9}seconds)?(?P<mark>[ \t]{0,9}\[INVALID\])?",
    re.M,
)
"""A phase on the screen and in result_summary.txt, of IO500 since 2019; `[      ]`: no score."""

_PAIR = re.compile(r"^([\w-]{1,80}) *= ?(.*)$")
_ROW = re.compile(r"^(?:write|read) +((?:[\d.]+|-)(?: +(?:[\d.]+|-)){9}) *\n", re.M)
_ACTUAL = re.compile(r"Using actual aggregate bytes moved *= *(\d{1,19})$", re.M)
_FOUND = re.compile(r"^runtime: ([\d.]+) rate: [\d.]+\n")
_TOTAL_COLUMN = 8
_AGREES = 0.02
_NOTHING_S = 0.01
_ZONE_S = 900
"""Zones differ from UTC by multiples of a quarter of an hour."""
_WINDOW = "the arrival of IO500's line less its time (t_delta), within its stamps"
_MOVED = "IO500's stamps: its line arrived after the second of t_end; less its time (t_delta)"
_NO_WINDOW = "none: a stored report contains no times of its lines"


@dataclass(frozen=True)
class _Section:
    """A phase in result.txt."""

    name: str
    values: Mapping[str, str]

    @property
    def lasted_s(self) -> float:
        return q.DURATION.of_text(self.values.get("t_delta", ""), f"{self.name}: t_delta")

    @property
    def score(self) -> float:
        return q.RATE.of_text(self.values.get("score", ""), f"{self.name}: score")


def parse(capture: Capture) -> ToolResult:
    """The phases of one run, its score and what makes the run a debug run."""
    source = str(capture.directory / FOLDER / "result.txt")
    text = capture.text(f"{FOLDER}/result.txt")
    with naming(source):
        sections, errors = _sections(text, source)
        config_text = capture.text(f"{FOLDER}/config.ini")
        if not re.search(r"^stonewall-time = \d+\n", config_text, re.M):
            raise ToolOutputError(f"{capture.directory / FOLDER}/config.ini: cut off")
        config, _ = _sections(config_text, "")
        phases = _phases(capture, sections, re.findall(r"^; END (.*)$", text, re.M)[-1])
        return ToolResult(phases, *_run(sections, config, errors))


def _sections(text: str, source: str) -> tuple[dict[str, _Section], list[str]]:
    """The sections of an ini file, and IO500's errors; checks that result.txt is complete."""
    found: dict[str, dict[str, str]] = {}
    values: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("["):
            values = found.setdefault(line.strip().strip("[]"), {})
        elif pair := _PAIR.match(line):
            values[pair[1]] = pair[2].strip()
    errors = re.findall(r"^; ERROR (?:INVALID )?(.*)$", text, re.M)
    if source and (
        not {"run", "SCORE"} <= set(found)
        or not {"MD", "BW", "SCORE", "hash"} <= set(found["SCORE"])
        or not re.search(r"^; END .*\n", text, re.M)
    ):
        last = ""
        if errors:
            last = f": {errors[-1]}"
        raise ToolOutputError(f"{source}: IO500 stopped before its score, or it is cut off{last}")
    return {name: _Section(name, values) for name, values in found.items()}, errors


def _phases(
    capture: Capture, sections: Mapping[str, _Section], stopped: str
) -> tuple[PhaseResult, ...]:
    source = f"{capture.directory / OUTPUT_FILE}"
    text = capture.text(OUTPUT_FILE)
    arrivals = Arrivals(capture, "stdout", text)
    lines = {}
    for line in RESULT.finditer(text):
        if "\n" in text[line.end() :][:99]:
            lines[line["name"]] = line
    # `timestamp` is no I/O; a phase with run = FALSE has no score and takes no time.
    ran = []
    for s in sections.values():
        if "score" in s.values and (s.score > 0 or s.lasted_s > _NOTHING_S):
            ran.append(s)
    if missing := [section.name for section in ran if section.name not in lines]:
        raise ToolOutputError(f"{source}: cut off: no line of {', '.join(missing)}")
    if not ran:
        raise ToolOutputError(f"{source}: IO500 ran no phase")
    ends_s = [arrivals.of(lines[section.name].end()) for section in ran]
    windows = _windows(capture, ran, ends_s, stopped)
    processes = int(q.COUNT.of_text(sections["run"].values.get("procs", ""), "procs"))
    phases = []
    for section, window in zip(ran, windows, strict=True):
        phases.append(_phase(capture, section, lines[section.name]["unit"], window, processes))
    return tuple(phases)


@dataclass(frozen=True)
class _Window:
    start_s: float | None
    end_s: float | None
    source: str
    unsure_s: float | None = None


def _windows(
    capture: Capture, ran: Sequence[_Section], ends_s: Sequence[float | None], stopped: str
) -> list[_Window]:
    """The windows of the phases, in their order; none overlaps the one before. `stopped` is IO500's
    last stamp, right before its end: how far it is from the end of the run is the local zone."""
    last_stamp_s = _stamp(stopped)
    lasts_s = capture.ended_monotonic_s - capture.started_monotonic_s
    zone_s = 0.0
    if last_stamp_s is not None:
        apart_s = capture.since_start_s(last_stamp_s) - lasts_s
        zone_s = round(apart_s / _ZONE_S) * _ZONE_S
    windows: list[_Window] = []
    last_s = 0.0
    for section, arrived_s in zip(ran, ends_s, strict=True):
        if arrived_s is None:
            windows.append(_Window(None, None, _NO_WINDOW))
            continue
        lasted_s = section.lasted_s
        stamps = [_stamp(section.values.get(key, "")) for key in ("t_start", "t_end")]
        end_s, source, unsure_s = arrived_s, _WINDOW, None
        if stamps[0] is not None and stamps[1] is not None:
            began_s, ended_s = (capture.since_start_s(stamp) for stamp in stamps if stamp)
            earliest_s = max(began_s + lasted_s, ended_s) - zone_s
            latest_s = min(began_s + lasted_s, ended_s) + 1.0 - zone_s
            if arrived_s > latest_s >= earliest_s:
                end_s, source, unsure_s = latest_s, _MOVED, 2 * (latest_s - earliest_s)
        start_s = max(end_s - lasted_s, last_s)
        if start_s >= end_s:
            windows.append(_Window(None, None, "none: its line arrived together with that before"))
        else:
            windows.append(_Window(start_s, end_s, source, unsure_s))
            last_s = end_s
    return windows


def _stamp(text: str) -> float | None:
    """A local time as seconds since 1970, as if it were UTC; None if it is none."""
    try:
        return float(calendar.timegm(time.strptime(text, "%Y-%m-%d %H:%M:%S")))
    except ValueError:
        return None


def _phase(
    capture: Capture, section: _Section, unit: str, window: _Window, processes: int
) -> PhaseResult:
    name, score = section.name, section.score
    invalid = () if score > 0 else (f"IO500's result of {name} is 0",)
    if unit != "GiB/s":
        moves = name in ("mdtest-hard-write", "mdtest-hard-read")
        return PhaseResult(
            name=name,
            operation="metadata",
            spatiality="none",
            request_size_bytes=None,
            bytes_moved=None if moves else 0,
            bandwidth_bytes_per_s=None,
            start_s=window.start_s,
            end_s=window.end_s,
            window_source=window.source,
            metrics=_rates(capture, name, 1000 * score) if score > 0 else {},
            invalid=invalid,
            edges_unsure_s=window.unsure_s,
        )
    report = capture.text(f"{FOLDER}/{name}.txt")
    row = _ROW.search(report)
    if row is None:
        raise ToolOutputError(f"{capture.directory / FOLDER / name}.txt: no result of IOR: cut off")
    total_s = q.DURATION.of_text(row[1].split()[_TOTAL_COLUMN], "IOR's total time")
    options = dict(pairwise(re.split(r"[ =]+", section.values.get("exe", ""))))
    bandwidth = score * GIB
    moved = _moved(report, options, processes)
    if moved is not None and abs(moved - bandwidth * total_s) > _AGREES * moved:
        moved = None
    return PhaseResult(
        name=name,
        operation="write" if name.endswith("write") else "read",
        spatiality=_spatiality(name),
        request_size_bytes=parse_size(options["-t"]) if "-t" in options else None,
        bytes_moved=moved,
        bandwidth_bytes_per_s=bandwidth if score > 0 else None,
        start_s=window.start_s,
        end_s=window.end_s,
        window_source=window.source,
        metrics={"total_s": total_s},
        invalid=invalid,
        edges_unsure_s=window.unsure_s,
    ).flushed("IOR's flush (-e)")


def _spatiality(name: str) -> str:
    if "rnd" in name:
        return "random"
    if "hard" in name:
        return "strided"
    return "sequential"


def _rates(capture: Capture, name: str, per_s: float) -> dict[str, float]:
    """The rate of a metadata phase, and the time that it is of; older IO500 do not report that."""
    file = f"{FOLDER}/{name}.csv"
    if not (capture.directory / file).is_file():
        return {"operations_per_s": per_s}
    text = capture.text(file)
    if match := _FOUND.match(text):
        span = match[1]
    else:
        lines = [line.split(",") for line in text.splitlines()]
        if len(lines) < 2 or len(lines[0]) != len(lines[1]) or not text.endswith("\n"):
            raise ToolOutputError(
                f"{capture.directory / file}: not a summary of all ranks: cut off"
            )
        row = dict(zip(lines[0], lines[1], strict=True))
        span = next((row[key] for key in row if key.startswith("time-File") and row[key]), "")
    return {"operations_per_s": per_s, "span_s": q.DURATION.of_text(span, f"{name}: its time")}


def _moved(report: str, options: Mapping[str, str], processes: int) -> int | None:
    """Bytes that IOR reports, or those of its options; a stonewall may end it before these."""
    if actual := _ACTUAL.search(report):
        return int(actual[1])
    if "-b" not in options:
        return None
    segments = int(q.COUNT.of_text(options.get("-s", "1"), "IOR's -s"))
    return processes * segments * parse_size(options["-b"])


def _run(
    sections: Mapping[str, _Section], config: Mapping[str, _Section], errors: Sequence[str]
) -> tuple[tuple[ContextValue, ...], tuple[str, ...]]:
    """Figures of the complete run, and notes on it."""
    scores, run = sections["SCORE"].values, sections["run"].values
    score, _, mark = scores["SCORE"].partition(" ")
    option = {}
    for s in config.values():
        for key, value in s.values.items():
            option[f"{s.name}.{key}"] = value
    stonewall = option.get("debug.stonewall-time", "0")
    short = int(stonewall) < VALID_STONEWALL_S
    hashes = f"config hash {run.get('config-hash', '-')}, score hash {scores['hash']}"
    notes = [f"IO500 {run.get('version', '(version unknown)')}, {hashes}"]
    if mark or short:
        least = f"stonewall {stonewall} s, a valid run has {VALID_STONEWALL_S} s"
        reasons = []
        if short:
            reasons = [least]
        for error in dict.fromkeys(errors):
            if "stonewall-time" not in error:
                reasons.append(error)
        notes.insert(0, f"{NOT_VALID}: {'; '.join(reasons[:3]) or 'IO500 marks it [INVALID]'}")
    if option.get("global.drop-caches") != "TRUE":
        notes.append("IO500 did not drop the page cache between its phases")
    name = SCORE
    if mark or short:
        name = DEBUG_SCORE
    figures = (
        (name, score, 1.0, "1"),
        (f"{name}_bandwidth", scores["BW"], GIB, "B/s"),
        (f"{name}_metadata", scores["MD"], 1e3, "1/s"),
    )
    return tuple(
        ContextValue(name, factor * q.FIGURE.of_text(value, name), unit)
        for name, value, factor, unit in figures
    ), tuple(notes)
