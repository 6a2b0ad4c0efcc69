"""Power of imported runs: samples that a table splits by run, or a log with times."""

import itertools
import math
import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from eeio.errors import EeioError
from eeio.exchange.importing.mapping import Key, Labels
from eeio.exchange.importing.power_logs import Form, PowerLog, Series, default_accuracy, described
from eeio.exchange.importing.power_logs.renewals import with_renewals
from eeio.exchange.importing.power_of_results import Alignment, Window, energy_of
from eeio.exchange.importing.tables import Watts, read_table
from eeio.exchange.importing.testlog import Span
from eeio.record.reasons import low_coverage
from eeio.record.run import EnergyReading
from eeio.units import quantities as q
from eeio_power.csv_log import (
    DELIMITERS,
    Layout,
    Log,
    parse_log,
    parse_map,
    quantity_of,
    read_bytes,
    zone_of,
)
from eeio_power.errors import PowerError

_LEAST_S = 1.0
"""The period of a log with one value."""
_ONE_VALUE = (
    "one value of this run: the uncertainty is only the accuracy of the meter, because its delay "
    "and the power at the edges of the run are not known"
)


@dataclass(frozen=True)
class RunPower:
    """The samples of one run, and the readings that its energy is computed from."""

    series: Series
    window: Window
    watts: Sequence[float]
    lost: int
    ahead_s: float = 0.0

    @property
    def is_one_value(self) -> bool:
        """A mean of the run as the user states it."""
        return self.series.form == "mean" and len(self.watts) + self.lost == 1


@dataclass(frozen=True)
class MappedPower:
    """One meter's samples, by run; `idle_watts` those of the idle baseline."""

    body: Mapping[str, Any]
    runs: Mapping[Key, RunPower]
    period_s: float
    idle_watts: Sequence[float] = ()
    remarks: Sequence[str] = ()

    def reading(self, key: Key, duration_s: float) -> EnergyReading:
        """The energy of a run's duration, computed as that of every power log (`energy_of`)."""
        run = self.runs.get(key)
        if run is None or not run.watts:
            lost = 0
            if run is not None:
                lost = run.lost
            return self._invalid(f"no sample of this run in {self._where()}", lost)
        if run.series.form != "counter" and (reason := _impossible(statistics.fmean(run.watts))):
            return self._invalid(reason, run.lost)
        if run.is_one_value:
            return self._mean(run.watts, duration_s, _ONE_VALUE)
        log = PowerLog(Path(self._where()), series=(run.series,))
        (reading,) = energy_of(run.window, [(log, Alignment(run.ahead_s))])
        reading = replace(reading, samples=len(run.watts), lost=run.lost)
        if reading.power_w is None or reading.uncertainty_j is None:
            return reading
        window_s = run.window.end_s - run.window.start_s
        power_w, uncertainty_w = reading.power_w, reading.uncertainty_j / window_s
        if self._is_mean_of_samples:
            mean_w = statistics.fmean(run.watts)
            power_w, uncertainty_w = mean_w, uncertainty_w + abs(mean_w - power_w)
        coverage = reading.coverage * _share(window_s, duration_s)
        reasons = (*reading.reasons, *self._remarks)
        if coverage < q.LEAST_COVERAGE <= reading.coverage:
            reasons = (*reasons, low_coverage(coverage))
        return replace(
            reading,
            power_w=power_w,
            energy_j=power_w * duration_s,
            uncertainty_j=uncertainty_w * duration_s,
            coverage=coverage,
            reasons=reasons,
        )

    def idle(self) -> EnergyReading | None:
        """The idle baseline, if the files hold one: a level, without edges."""
        if not self.idle_watts:
            return None
        mean_w = statistics.fmean(self.idle_watts)
        if not q.POWER.contains(mean_w):
            return self._invalid(f"{mean_w:g} W: no machine idles on that; see its scale", 0)
        return self._mean(self.idle_watts, len(self.idle_watts) * self.period_s)

    def _mean(self, watts: Sequence[float], duration_s: float, *remarks: str) -> EnergyReading:
        """The energy of a level of power, of which only the accuracy is known."""
        mean_w = statistics.fmean(watts)
        energy_j = mean_w * duration_s
        accuracy = self.body.get("accuracy", default_accuracy(self.body["domain"]))
        coverage = _share(len(watts) * self.period_s, duration_s)
        reasons = (*remarks, *self._remarks)
        if coverage < q.LEAST_COVERAGE:
            reasons = (*reasons, low_coverage(coverage))
        return replace(
            self._invalid("", 0),
            power_w=mean_w,
            energy_j=energy_j,
            uncertainty_j=accuracy * energy_j,
            coverage=coverage,
            samples=len(watts),
            valid=True,
            reasons=reasons,
        )

    @property
    def _is_mean_of_samples(self) -> bool:
        return "table" in self.body or self.body.get("mean") == "samples"

    @property
    def _remarks(self) -> tuple[str, ...]:
        if "accuracy" in self.body:
            return ()
        accuracy = default_accuracy(self.body["domain"])
        return (f"the accuracy of this meter is not stated: {accuracy:.0%} is assumed",)

    def _where(self) -> str:
        return str(next(self.body[k] for k in ("table", "csv", "csv_of_run") if k in self.body))

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


def _share(window_s: float, duration_s: float) -> float:
    if duration_s > 0:
        return min(1.0, window_s / duration_s)
    return 0.0


def _impossible(mean_w: float) -> str | None:
    if mean_w > 0 and q.POWER.contains(mean_w):
        return None
    return f"{mean_w:g} W: no machine runs on that; see its scale"


def _series(
    body: Mapping[str, Any],
    form: Form,
    rows: Sequence[tuple[float, float]],
    resolution_w: float,
) -> Series:
    """Raises PowerError."""
    series = described(
        body["meter"],
        body["domain"],
        body.get("kind", "measured"),
        form,
        rows,
        body.get("accuracy"),
        body.get("lag_s"),
        body.get("averages_s"),
    )
    if form == "counter":
        return series
    return replace(series, resolution_w=resolution_w)


def _of_one_run(
    body: Mapping[str, Any],
    form: Form,
    times_s: Sequence[float],
    values: Sequence[float],
    period_s: float,
    resolution_w: float,
) -> RunPower:
    """All of these samples are the run's, each of the time since the one before. Raises
    PowerError."""
    before_s = times_s[0] - period_s
    rows = [(before_s, math.nan), *zip(times_s, values, strict=True)]
    watts = [value for value in values if value == value]
    return RunPower(
        _series(body, form, rows, resolution_w),
        Window(before_s, times_s[-1], 0.0, False),
        watts,
        len(values) - len(watts),
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
    idle: list[float] = []
    unknown: dict[str, int] = {}
    keys: dict[tuple[str, ...], Key] = {}
    missing = 0
    of_columns = Watts.of(body["watts"], folder)
    for line, cells, watts in of_columns.of_rows(table):
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
        missing += math.isnan(watts)
        found.setdefault(key, []).append(watts)
    remarks = [f"{table.path}: {count} rows: {why}" for why, count in unknown.items()]
    if missing:
        remarks.append(
            f"{table.path}: {missing} samples of {body['domain']} power without a value left out"
        )
    period_s = body.get("period_s", 1.0)
    resolution_w = of_columns.resolution_w(table)
    runs = {}
    for key, values in found.items():
        times_s = [k * period_s for k in range(1, len(values) + 1)]
        runs[key] = _of_one_run(body, "mean", times_s, values, period_s, resolution_w)
    return MappedPower(body, runs, period_s, idle, remarks)


def _layout(body: Mapping[str, Any], columns: str) -> Layout:
    return Layout(
        columns=parse_map(columns),
        zone=zone_of(body["tz"]) if "tz" in body else None,
        time_format=body.get("format"),
        delimiter=DELIMITERS[body["delimiter"]] if "delimiter" in body else None,
        decimal_comma=None if "decimal" not in body else body["decimal"] == "comma",
        encoding=body.get("encoding"),
    )


def _read_log(path: Path, layout: Layout) -> Log:
    try:
        # This log is complete, so a last line without a line end is complete, too.
        return parse_log(read_bytes(path) + b"\n", layout)
    except OSError as error:
        raise EeioError(f"{path}: {error.strerror}") from error
    except PowerError as error:
        raise EeioError(f"{path}: {error}") from error


def _usual_s(times_s: Sequence[float]) -> float:
    gaps = [b - a for a, b in itertools.pairwise(times_s)]
    if gaps:
        return statistics.median(gaps)
    return _LEAST_S


def _of_log(body: Mapping[str, Any], folder: Path, spans: Mapping[Key, Span]) -> MappedPower:
    """One log of all runs; `spans` cut it. Its clock may be ahead by `offset_s`."""
    path = folder / body["csv"]
    log = _read_log(path, _layout(body, body["map"]))
    times_s, values = log.times_s, log.values
    offset_s = float(body.get("offset_s", 0.0))
    rows = list(zip(times_s, values, strict=True))
    series = _series(body, _form(body, "sample"), rows, log.resolution_w)
    series, note = with_renewals(series)
    remarks = []
    if note is not None:
        remarks.append(f"{path}: {note}")
    runs = {}
    for key, span in spans.items():
        first = bisect_left(times_s, span.start_s + offset_s)
        inside = values[first : bisect_right(times_s, span.end_s + offset_s)]
        watts = [value for value in inside if value == value]
        window = Window(span.start_s, span.end_s, span.within_s, False)
        runs[key] = RunPower(series, window, watts, len(inside) - len(watts), offset_s)
    remarks += [
        f"{path}: no sample during {spans[key].name}" for key, run in runs.items() if not run.watts
    ]
    if total := sum(run.lost for run in runs.values()):
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
        last = bisect_right(times_s, until_s + offset_s)
        idle = [v for v in values[:last] if v == v]
    idle += _idle_of_csv(body, folder)
    return MappedPower(body, runs, _usual_s(times_s), idle, remarks)


def _form(body: Mapping[str, Any], of_power: Form) -> Form:
    """Raises EeioError for a counter with keys that need samples of power."""
    if quantity_of(parse_map(body["map"])) != "energy_j":
        return of_power
    if wrong := [key for key in ("idle_until", "idle_csv") if key in body]:
        raise EeioError(f"{body['meter']}: {wrong[0]}: a counter has no samples of power")
    if body.get("mean") == "samples":
        raise EeioError(f"{body['meter']}: mean: a counter has no samples of power")
    return "counter"


def _idle_of_csv(body: Mapping[str, Any], folder: Path) -> list[float]:
    """The idle baseline in a log of its own."""
    if "idle_csv" not in body:
        return []
    layout = _layout(body, body.get("idle_map", body["map"]))
    return [v for v in _read_log(folder / body["idle_csv"], layout).values if v == v]


def _of_runs(body: Mapping[str, Any], folder: Path, names: Mapping[Key, str]) -> MappedPower:
    """A log of its own for each run: every sample in it is the run's."""
    runs, periods, remarks = {}, [], []
    for key, name in names.items():
        path = folder / body["csv_of_run"].replace("{run}", name)
        try:
            log = _read_log(path, _layout(body, body["map"]))
        except EeioError as error:
            remarks.append(str(error))
            continue
        periods.append(_usual_s(log.times_s))
        runs[key] = _of_one_run(
            body, _form(body, "mean"), log.times_s, log.values, periods[-1], log.resolution_w
        )
    idle = _idle_of_csv(body, folder)
    period_s = statistics.median(periods) if periods else _LEAST_S
    return MappedPower(body, runs, period_s, idle, remarks)
