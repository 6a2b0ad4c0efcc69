"""Power of imported runs: samples that a table splits by run, or a log with times."""

import itertools
import math
import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from eeio.importing.mapping import Key, Labels
from eeio.importing.tables import Watts, read_table
from eeio.importing.testlog import Span
from eeio_limits import quantities as q
from eeio_limits.reasons import low_coverage
from eeio_power.csv_log import (
    DELIMITERS,
    Layout,
    parse_log,
    parse_map,
    read_bytes,
    zone_of,
)
from eeio_power.errors import PowerError
from eeio_results.errors import EeioError
from eeio_results.record import EnergyReading

_NO_ACCURACY = "the accuracy of this meter is not stated, so no uncertainty is given"


@dataclass(frozen=True)
class MappedPower:
    """One meter's samples, by run; `idle_watts` those of the idle baseline."""

    body: Mapping[str, Any]
    watts: Mapping[Key, Sequence[float]]
    period_s: float
    lost: Mapping[Key, int]
    means_w: Mapping[Key, float] = field(default_factory=dict)
    """Means over time if the map requests them; else the mean of the samples."""
    gaps_s: Mapping[Key, float] = field(default_factory=dict)
    idle_watts: Sequence[float] = ()
    remarks: Sequence[str] = ()

    def reading(self, key: Key, duration_s: float) -> EnergyReading:
        """Mean power of a run's samples, and the energy of its duration."""
        samples, lost = self.watts.get(key, ()), self.lost.get(key, 0)
        if not samples:
            return self._invalid(f"no sample of this run in {self._where()}", lost)
        mean_w = self.means_w.get(key, statistics.fmean(samples))
        if mean_w <= 0 or not q.POWER.contains(mean_w):
            return self._invalid(f"{mean_w:g} W: no machine runs on that; see its scale", lost)
        return self._reading(mean_w, duration_s, len(samples), lost, self.gaps_s.get(key))

    def idle(self) -> EnergyReading | None:
        """The idle baseline, if the files hold one."""
        if not self.idle_watts:
            return None
        count = len(self.idle_watts)
        mean_w = statistics.fmean(self.idle_watts)
        if not q.POWER.contains(mean_w):
            return self._invalid(f"{mean_w:g} W: no machine idles on that; see its scale", 0)
        return self._reading(mean_w, count * self.period_s, count, 0, None)

    def _where(self) -> str:
        return str(next(self.body[k] for k in ("table", "csv", "csv_of_run") if k in self.body))

    def _reading(
        self, mean_w: float, duration_s: float, samples: int, lost: int, gap_s: float | None
    ) -> EnergyReading:
        accuracy = self.body.get("accuracy")
        energy_j = mean_w * duration_s
        coverage = min(1.0, samples * self.period_s / duration_s) if duration_s > 0 else 0.0
        reasons = () if accuracy is not None else (_NO_ACCURACY,)
        if coverage < q.LEAST_COVERAGE:
            reasons = (*reasons, low_coverage(coverage))
        return EnergyReading(
            domain=self.body["domain"],
            meter=self.body["meter"],
            kind=self.body.get("kind", "measured"),
            power_w=mean_w,
            energy_j=energy_j,
            uncertainty_j=None if accuracy is None else accuracy * energy_j,
            coverage=coverage,
            largest_gap_s=gap_s,
            samples=samples,
            lost=lost,
            valid=True,
            reasons=reasons,
        )

    def _invalid(self, reason: str, lost: int) -> EnergyReading:
        return EnergyReading(
            domain=self.body["domain"],
            meter=self.body["meter"],
            kind=self.body.get("kind", "measured"),
            power_w=None,
            energy_j=None,
            uncertainty_j=None,
            coverage=0.0,
            largest_gap_s=None,
            samples=0,
            lost=lost,
            valid=False,
            reasons=(reason,),
        )


def read_power(
    body: Mapping[str, Any],
    folder: Path,
    labels: Labels,
    columns: Mapping[str, str],
    spans: Mapping[Key, Span],
    names: Mapping[Key, str],
) -> MappedPower:
    """The source that one entry of a campaign's `power` describes.

    `columns` is the run table's, used where the entry gives none; `spans` says when each run went
    on, `names` what its output file is called. Raises EeioError.
    """
    try:
        if "table" in body:
            return _of_table(body, folder, labels, body.get("columns", columns))
        if "csv_of_run" in body:
            return _of_runs(body, folder, names)
        return _of_log(body, folder, spans)
    except PowerError as error:
        raise EeioError(str(error)) from error


def _of_table(
    body: Mapping[str, Any], folder: Path, labels: Labels, columns: Mapping[str, str]
) -> MappedPower:
    table = read_table(folder / body["table"])
    places = {group: table.place(column) for group, column in columns.items()}
    if lacking := set(body.get("idle", {})) - set(columns):
        raise EeioError(f"{table.path}: idle: the map names no column of {', '.join(lacking)}")
    idle_labels = {
        table.place(columns[group]): label for group, label in body.get("idle", {}).items()
    }
    found: dict[Key, list[float]] = {}
    lost: dict[Key, int] = {}
    idle: list[float] = []
    unknown: dict[str, int] = {}
    keys: dict[tuple[str, ...], Key] = {}
    missing = 0
    for line, cells, watts in Watts.of(body["watts"], folder).of_rows(table):
        if idle_labels and all(cells[place] == label for place, label in idle_labels.items()):
            if not math.isnan(watts):
                idle.append(watts)
            continue
        row_labels = tuple(cells[place] for place in places.values())
        key = keys.get(row_labels)
        if key is None:
            try:
                key = labels.key(dict(zip(places, row_labels, strict=True)))
            except ValueError as error:
                unknown.setdefault(f"{error} (first in line {line})", 0)
                unknown[next(reversed(unknown))] += 1
                continue
            keys[row_labels] = key
        if math.isnan(watts):
            missing += 1
            lost[key] = lost.get(key, 0) + 1
        else:
            found.setdefault(key, []).append(watts)
    remarks = [f"{table.path}: {count} rows: {why}" for why, count in unknown.items()]
    if missing:
        remarks.append(
            f"{table.path}: {missing} samples of {body['domain']} power without a value left out"
        )
    return MappedPower(
        body, found, body.get("period_s", 1.0), lost, idle_watts=idle, remarks=remarks
    )


def _layout(body: Mapping[str, Any], columns: str) -> Layout:
    return Layout(
        columns=parse_map(columns),
        zone=zone_of(body["tz"]) if "tz" in body else None,
        time_format=body.get("format"),
        delimiter=DELIMITERS[body["delimiter"]] if "delimiter" in body else None,
        decimal_comma=None if "decimal" not in body else body["decimal"] == "comma",
        encoding=body.get("encoding"),
    )


def _read_log(path: Path, layout: Layout) -> tuple[list[float], list[float]]:
    try:
        # This log is complete, so a last line without a line end is complete, too.
        log = parse_log(read_bytes(path) + b"\n", layout)
    except OSError as error:
        raise EeioError(f"{path}: {error.strerror}") from error
    except PowerError as error:
        raise EeioError(f"{path}: {error}") from error
    return log.times_s, log.values


def _usual_s(times_s: Sequence[float]) -> float:
    gaps = [b - a for a, b in itertools.pairwise(times_s)]
    return statistics.median(gaps) if gaps else 1.0


def _of_log(body: Mapping[str, Any], folder: Path, spans: Mapping[Key, Span]) -> MappedPower:
    """One log of all runs; `spans` cut it. Its clock may be ahead by `offset_s`."""
    path = folder / body["csv"]
    times_s, values = _read_log(path, _layout(body, body["map"]))
    offset_s = float(body.get("offset_s", 0.0))
    times_s = [t - offset_s for t in times_s]
    found, lost, means, gaps = {}, {}, {}, {}
    for key, span in spans.items():
        first, last = bisect_left(times_s, span.start_s), bisect_right(times_s, span.end_s)
        window = values[first:last]
        good = [(t, v) for t, v in zip(times_s[first:last], window, strict=True) if v == v]
        found[key] = [v for _, v in good]
        lost[key] = len(window) - len(good)
        if good and span.end_s > span.start_s:
            moments = [span.start_s, *(t for t, _ in good), span.end_s]
            gaps[key] = max(b - a for a, b in itertools.pairwise(moments))
            if body.get("mean") == "time":
                means[key] = _step_mean(good, span)
    remarks = [f"{path}: no sample during {spans[key].name}" for key in spans if not found[key]]
    if total := sum(lost.values()):
        remarks.append(f"{path}: {total} samples of {body['domain']} power without a value")
    idle: list[float] = []
    if "idle_until" in body:
        try:
            moment = datetime.fromisoformat(body["idle_until"])
            if moment.tzinfo is None and "tz" in body:
                moment = moment.replace(tzinfo=zone_of(body["tz"]))
            until_s = moment.timestamp()
        except (ValueError, OverflowError) as error:
            raise EeioError(f"idle_until: {body['idle_until']!r:.60}: {error}") from error
        last = bisect_right(times_s, until_s)
        idle = [v for v in values[:last] if v == v]
    idle += _idle_of_csv(body, folder)
    return MappedPower(body, found, _usual_s(times_s), lost, means, gaps, idle, remarks)


def _step_mean(samples: Sequence[tuple[float, float]], span: Span) -> float:
    """Each value applies from its time to the next; the first one from the span's start."""
    times = [span.start_s, *(t for t, _ in samples[1:]), span.end_s]
    energy_j = sum(
        watts * (end - start)
        for (_, watts), start, end in zip(samples, times, times[1:], strict=False)
    )
    return energy_j / (span.end_s - span.start_s)


def _idle_of_csv(body: Mapping[str, Any], folder: Path) -> list[float]:
    """The idle baseline in a log of its own."""
    if "idle_csv" not in body:
        return []
    layout = _layout(body, body.get("idle_map", body["map"]))
    return [v for v in _read_log(folder / body["idle_csv"], layout)[1] if v == v]


def _of_runs(body: Mapping[str, Any], folder: Path, names: Mapping[Key, str]) -> MappedPower:
    """A log of its own for each run: every sample in it is the run's."""
    found, lost, periods, remarks = {}, {}, [], []
    for key, name in names.items():
        path = folder / body["csv_of_run"].replace("{run}", name)
        try:
            times_s, values = _read_log(path, _layout(body, body["map"]))
        except EeioError as error:
            remarks.append(str(error))
            continue
        found[key] = [v for v in values if v == v]
        lost[key] = len(values) - len(found[key])
        periods.append(_usual_s(times_s))
    idle = _idle_of_csv(body, folder)
    period_s = statistics.median(periods) if periods else 1.0
    return MappedPower(body, found, period_s, lost, idle_watts=idle, remarks=remarks)
