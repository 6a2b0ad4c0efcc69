"""CPU use and frequency that was sampled during imported runs."""

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from datetime import datetime
from operator import itemgetter
from pathlib import Path
from typing import Any

from eeio.errors import EeioError, LimitError
from eeio.exchange.importing.mapping import Key, Labels
from eeio.exchange.importing.tables import ImportedTable, read_table
from eeio.exchange.importing.testlog import Span
from eeio.files import inputs
from eeio.record.run import ProcessorSeries
from eeio.units import quantities as q
from eeio_power.csv_log import zone_of

_MOST_BUSY = 1.05
Found = dict[Key, ProcessorSeries]


def read_processor(
    body: Mapping[str, Any],
    folder: Path,
    labels: Labels,
    columns: Mapping[str, str],
    spans: Mapping[Key, Span],
) -> tuple[Found, list[str]]:
    """The series of each run, and remarks. Raises EeioError."""
    if "table" in body:
        return _of_table(body, folder, labels, body.get("columns", columns))
    if "csv" in body:
        return _of_log(body, folder, spans)
    return _of_blocks(body, folder, spans)


def _series(
    source: str, times_s: Sequence[float], body: Mapping[str, Any], rows: Sequence[Sequence[float]]
) -> ProcessorSeries:
    """`rows` are the values of each sample: use in percent, then frequencies in MHz."""
    has_use = "use_percent" in body
    use, frequency = [], []
    for row in rows:
        clocks = [value for value in row[int(has_use) :] if not math.isnan(value)]
        busy = row[0] / 100 if has_use else math.nan
        clock_hz = sum(clocks) / len(clocks) * 1e6 if clocks else math.nan
        # Impossible values are missing; tops print 100.3 % at times.
        use.append(min(busy, 1.0) if 0 <= busy <= _MOST_BUSY else None)
        frequency.append(clock_hz if q.FREQUENCY.contains(clock_hz) else None)
    missing = {} if has_use else {"use": f"{source} contains no CPU use"}
    if not any(value is not None for value in frequency):
        missing["frequency_hz"] = f"{source} contains no frequency"
    return ProcessorSeries(source, tuple(times_s), tuple(use), tuple(frequency), missing)


def _value_columns(body: Mapping[str, Any]) -> list[str]:
    return [
        *([body["use_percent"]] if "use_percent" in body else []),
        *body.get("frequency_mhz", []),
    ]


def _of_table(
    body: Mapping[str, Any], folder: Path, labels: Labels, columns: Mapping[str, str]
) -> tuple[Found, list[str]]:
    table = read_table(folder / body["table"])
    places = {group: table.place(column) for group, column in columns.items()}
    rows: dict[Key, list[list[float]]] = {}
    remarks = []
    for line, cells in table.rows:
        try:
            key = labels.key({group: cells[place] for group, place in places.items()})
        except ValueError as error:
            remarks.append(f"{table.path}:{line}: {error}")
            continue
        rows.setdefault(key, []).append(_row(table, cells, _value_columns(body)))
    period_s = body.get("period_s", 1.0)
    return {
        key: _series(body["table"], [period_s * n for n in range(len(found))], body, found)
        for key, found in rows.items()
    }, remarks


def _row(table: ImportedTable, cells: Sequence[str], columns: Sequence[str]) -> list[float]:
    return [table.number(cells[table.place(column)]) for column in columns]


def _of_log(
    body: Mapping[str, Any], folder: Path, spans: Mapping[Key, Span]
) -> tuple[Found, list[str]]:
    table = read_table(folder / body["csv"])
    zone = None
    if "tz" in body:
        zone = zone_of(body["tz"])
    place = table.place(body["time"])
    samples = []
    for line, cells in table.rows:
        try:
            moment = datetime.strptime(cells[place], body["format"])
            if moment.tzinfo is None:
                moment = moment.replace(tzinfo=zone)
            at_s = q.TIMESTAMP.checked(moment.timestamp(), "a time")
        except (ValueError, OverflowError, re.error) as error:
            raise EeioError(f"{table.path}:{line}: {str(error)[:200]}") from error
        samples.append((at_s, _row(table, cells, _value_columns(body))))
    return _cut(samples, spans, table.path, body)


def _of_blocks(
    body: Mapping[str, Any], folder: Path, spans: Mapping[Key, Span]
) -> tuple[Found, list[str]]:
    """Samples at a steady period between a start and an end time (Unix s), many runs long."""
    path = folder / body["blocks"]
    samples = []
    for start_s, end_s, rows in parse_blocks(path, body["values_per_sample"]):
        period_s = (end_s - start_s) / len(rows)
        samples += [(start_s + period_s * n, row) for n, row in enumerate(rows)]
    return _cut(samples, spans, path, body)


def _cut(
    samples: Sequence[tuple[float, Sequence[float]]],
    spans: Mapping[Key, Span],
    path: Path,
    body: Mapping[str, Any],
) -> tuple[Found, list[str]]:
    """The samples in each run's span."""
    found: Found = {}
    remarks = []
    ordered = sorted(samples, key=itemgetter(0))
    times_s = [t for t, _ in ordered]
    for key, span in spans.items():
        first, last = bisect_left(times_s, span.start_s), bisect_right(times_s, span.end_s)
        inside = ordered[first:last]
        if not inside:
            remarks.append(f"{path}: no sample during {span.name}")
            continue
        since_s = [t - span.start_s for t, _ in inside]
        found[key] = _series(path.name, since_s, body, [row for _, row in inside])
    return found, remarks


def parse_blocks(path: Path, width: int) -> list[tuple[int, int, list[list[float]]]]:
    """(start, end, samples of `width` values) of each block. Raises EeioError for a torn one."""
    try:
        text = inputs.read_text(path, inputs.TABLE_BYTES)
        if long := re.search(r"\d{16}", text):
            raise LimitError(f"{long[0]}... is not a time and no value")
        numbers = [int(word) for word in re.findall(r"\d+", text)]
    except OSError as error:
        raise EeioError(f"{path}: {error.strerror}") from error
    except LimitError as error:
        raise EeioError(f"{path}: {error}") from error
    # No processor runs at 10^9 MHz, and no clock of these years shows less.
    stamps = [place for place, number in enumerate(numbers) if number >= 10**9]
    if not stamps or len(stamps) % 2 or stamps[0] != 0 or stamps[-1] != len(numbers) - 1:
        raise EeioError(f"{path}: not blocks of start time, values, end time")
    blocks = []
    for first, last in zip(stamps[::2], stamps[1::2], strict=True):
        values = numbers[first + 1 : last]
        if numbers[last] <= numbers[first] or not q.TIMESTAMP.contains(numbers[last]):
            raise EeioError(f"{path}: no block from {numbers[first]} to {numbers[last]} s")
        if not values or len(values) % width:
            raise EeioError(
                f"{path}: {len(values)} values after {numbers[first]} are not samples of {width}"
            )
        rows = [[float(v) for v in values[n : n + width]] for n in range(0, len(values), width)]
        blocks.append((numbers[first], numbers[last], rows))
    return blocks
