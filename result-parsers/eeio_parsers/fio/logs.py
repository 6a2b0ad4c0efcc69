"""fio's logs of bandwidth, IOPS and latency."""

import itertools
import re
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from eeio_parsers.fio.jobs import DIRECTIONS
from eeio_parsers.found import KIB, FoundPhase, FoundReport, figure, none_found

_CELL = r"\s{0,99}\d{1,20},"
_REST = r"\s{0,99}\d{1,20}(?:,\s{0,99}\d{1,20})?(?:,\s{0,99}\S{1,300})?\s{0,99}(?:\n|$)"
LOG = re.compile(rf"{_CELL}{_CELL}\s{{0,99}}[012],{_REST}")
LOG_OF_BOTH = re.compile(rf"{_CELL}{_CELL}{_CELL}\s{{0,99}}[012],{_REST}")
"""With log_window_value=both: the mean and the maximum of each interval."""
LOG_KINDS = ("bw", "iops", "lat", "clat", "slat")
_LOG_NAME = re.compile(rf"_({'|'.join(LOG_KINDS)})(?:\.\d{{1,20}})?\.log(?:\.[\w.-]{{1,80}})?$")
"""The logs have no header; their name says whether a value is KiB/s, IOPS or ns. A server's have
the name of the host at the end."""
_SINCE_1970_MS = 10**11
"""Times from here on are not those since fio's start (log_unix_epoch)."""
_SINGLE = "a log of single requests has no mean rate; use fio's report, or log_avg_msec"
_OF_TIMES = "a log of latencies has no rate; use fio's report"
_UNEVEN = "a log without equal intervals has no mean rate; use fio's report"


def is_log(kind: str, head: str, path: Path) -> bool:
    """A log without the usual name is taken as one of latency: its values are no rates."""
    name = _LOG_NAME.search(path.name)
    if name is None:
        return kind == "lat" and LOG.match(head) is not None
    return name[1] == kind and any(form.match(head) for form in (LOG, LOG_OF_BOTH))


def read_log(text: str, kind: str) -> Iterator[FoundReport]:
    """A log of bandwidth (KiB/s), IOPS or latency: time (ms), value, direction, size. The mean over
    equal intervals is a rate; a log of single requests has their sizes, and none."""
    points: dict[int, list[tuple[float, float]]] = {}
    sizes: dict[int, set[int]] = {}
    column = 3
    if LOG.match(text):
        column = 2
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) < column + 2:
            raise none_found("fio", f"a line of a log with {len(cells)} columns: {line[:60]!r}")
        direction = int(cells[column])
        points.setdefault(direction, []).append((int(cells[0]) / 1000, figure(cells[1])))
        sizes.setdefault(direction, set()).add(int(cells[column + 1]))
    notes: dict[str, None] = {}
    phases = []
    for direction, of_direction in points.items():
        phase = _of_log(of_direction, kind)
        if sizes[direction] != {0}:
            notes[_SINGLE] = None
            only = None
            if len(sizes[direction]) == 1:
                only = sizes[direction].pop()
            phase = replace(phase, request_bytes=only, bandwidth_bytes_per_s=None, iops=None)
        elif kind not in ("bw", "iops"):
            notes[_OF_TIMES] = None
        elif not (phase.bandwidth_bytes_per_s or phase.iops):
            notes[_UNEVEN] = None
        phases.append(replace(phase, operation=DIRECTIONS[direction]))
    yield FoundReport(tuple(phases), notes=tuple(notes))


def _of_log(points: Sequence[tuple[float, float]], kind: str) -> FoundPhase:
    """Of one direction, by the mean of its values at times in s."""
    steps_s = [after - before for (before, _), (after, _) in itertools.pairwise(points)]
    is_even = bool(steps_s) and max(steps_s) < 1.2 * min(steps_s) and min(steps_s) > 0
    mean = None
    if is_even:
        mean = sum(value for _, value in points) / len(points)
    first_s, last_s = points[0][0], points[-1][0]
    begun_s = first_s
    if steps_s:
        begun_s = first_s - statistics.median(steps_s)
    is_of_epoch = first_s >= _SINCE_1970_MS / 1000
    return FoundPhase(
        name=f"{kind} log",
        operation=None,
        bandwidth_bytes_per_s=mean * KIB if mean is not None and kind == "bw" else None,
        iops=mean if kind == "iops" else None,
        runtime_s=last_s - begun_s if is_of_epoch else last_s,
    )
