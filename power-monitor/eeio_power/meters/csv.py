"""A log that another program or a person wrote: oscilloscope, BenchVue, a meter read by hand.

    csv:scope.csv,map=time:Timestamp+power_w:Power (W),tz=Europe/Madrid,offset_s=0.8

`map` assigns columns, as `KEY:COLUMN` joined by `+`; COLUMN is its name in the header line, or `#3`
for the third one. Keys:

- the time: `time` (date and time, or Unix seconds), or `date` and `time` in two columns, or
  `seconds` since `start=`;
- the logged quantity: `power_w` (also `power_mw`, `power_kw`; several of them are added), or
  `voltage_v` and `current_a` (also `_mv`, `_ma`), or a counter: `energy_wh` (also `energy_j`,
  `energy_kwh`).

Times without a zone need `tz=` (a name such as Europe/Madrid, `utc`, or +01:00). `offset_s` is how
far the log's clock is ahead of this machine's: `eeio meter calibrate` finds it.

The log's encoding, delimiter and decimal sign are detected, or set by `encoding=`, `delimiter=` and
`decimal=`. Instruments' marks for no value (9.91E+37, OL, ---, an empty cell) are missing readings.
A log with a clock that runs backwards is rejected, and so is one if this machine's clock was set
after the meter was opened: then their times cannot be matched.
"""

import math
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, tzinfo
from itertools import pairwise
from pathlib import Path

from eeio_power.csv_log import (
    DELIMITERS,
    Layout,
    Log,
    NoReadingError,
    parse_log,
    parse_map,
    quantity_of,
    read_bytes,
    zone_of,
)
from eeio_power.errors import PowerError
from eeio_power.meters import (
    Channel,
    Detected,
    Verified,
    number_option,
    offset_option,
    parse_spec,
)
from eeio_power.reading import CONTENTS, DOMAINS, Content, Contents, Kind
from eeio_power.resolution import remark_on_step

OPTIONS = {
    "file": "the log",
    "map": "meaning of the columns: time:NAME+power_w:NAME (see docs/reference/meters.md)",
    "tz": "time zone of times without one: Europe/Madrid, utc, +01:00",
    "format": "how times are written, in strptime's letters (default: ISO 8601)",
    "start": "time of second 0 (ISO 8601 with its zone), for 'seconds'",
    "offset_s": "seconds that the log's clock is ahead of this machine's (may be negative)",
    "delimiter": "comma, semicolon, tab, space or bar",
    "decimal": "point or comma",
    "encoding": "such as utf-8 or cp1252",
    "domain": f"{', '.join(DOMAINS)} (default system)",
    "includes": f"included parts, joined by +: {', '.join(CONTENTS)}",
    "leaves_out": "excluded parts, with the same names",
    "accuracy": "uncertainty as a share of the value (default 0.05)",
    "resolution": "step of the values, W (default: as logged) or J (a counter's must be given)",
    "max_w": "highest power that can be true, W",
    "period_s": "time between readings, s (default: taken from the log when it is opened, else 1)",
}
ARGUMENT = "file"
KIND: Kind = "measured"
VERIFIED_ON: Verified = "simulator"
NATIVE_PERIOD_S = 1.0
ACCURACY = 0.05
# Clocks are compared to this; a step is larger.
CLOCK_SLACK_S = 0.05


class CsvMeter:
    """A log, read when a window is requested."""

    kind: Kind = KIND

    def __init__(
        self,
        spec: str,
        name: str,
        file: Path,
        layout: Layout,
        channel: Channel,
        period_s: float,
        offset_s: float,
        clock_offset_s: Callable[[], float],
    ) -> None:
        self.spec = spec
        self.name = name
        self.native_period_s = period_s
        self.channels: Sequence[Channel] = (channel,)
        self._file = file
        self._layout = layout
        self._offset_s = offset_s
        self._clock_offset_s = clock_offset_s
        self._opened_offset_s = clock_offset_s()
        self._observed: tuple[int, int] | None = None
        self._log = Log([], [], 0)
        _, options = parse_spec(spec)
        self._has_resolution = "resolution" in options

    def logged(self) -> tuple[Sequence[float], tuple[Sequence[float], ...]]:
        """All readings, on this machine's monotonic clock. Raises PowerError."""
        step_s = self._opened_offset_s - self._clock_offset_s()
        if abs(step_s) > CLOCK_SLACK_S:
            raise PowerError(
                f"{self._file}: this machine's clock was set by {step_s:+.3f} s while measuring: "
                "the log cannot be aligned"
            )
        times_s, values = self.readings()
        shift_s = self._opened_offset_s - self._offset_s
        return [t + shift_s for t in times_s], (values,)

    def readings(self) -> tuple[Sequence[float], Sequence[float]]:
        """All readings: Unix s by the clock of the log, and W or J. Raises PowerError."""
        try:
            status = self._file.stat()
            if self._observed != (status.st_mtime_ns, status.st_size):
                self._log = parse_log(read_bytes(self._file), self._layout)
                self._observed = (status.st_mtime_ns, status.st_size)
        except OSError as error:
            raise PowerError(f"{self._file}: {error.strerror}") from error
        except PowerError as error:
            raise PowerError(f"{self._file}: {error}") from error
        return self._log.times_s, self._log.values

    @property
    def resolution_w(self) -> float:
        """The resolution of the values that were read last, W; 0 if the user states one."""
        if self._has_resolution:
            return 0.0
        return self._log.resolution_w

    def read(self) -> Sequence[float | None]:
        """The newest value of the log, for a look at it. Raises PowerError without one."""
        _, (values,) = self.logged()
        return [None if math.isnan(values[-1]) else values[-1]]

    def close(self) -> None:
        """No file stays open."""


def open_meter(
    spec: str,
    options: Mapping[str, str],
    root: Path,
    clock_offset_s: Callable[[], float] = lambda: time.monotonic() - time.time(),
) -> CsvMeter:
    """Open a log; it need not be there yet. Raises PowerError for options that do not fit it."""
    try:
        return _open(spec, options, clock_offset_s)
    except PowerError as error:
        prefix = f"meter '{spec}': "
        raise PowerError(prefix + str(error).removeprefix(prefix)) from error


def find(root: Path) -> Detected:
    """A log has to be named."""
    return Detected(
        "csv",
        KIND,
        ("system",),
        False,
        "logs are not searched for",
        "name it: --meter csv:FILE,map=time:NAME+power_w:NAME",
    )


def _contents(options: Mapping[str, str]) -> Contents:
    """The parts in the logged power, according to the user. Raises PowerError."""
    lists: dict[str, tuple[Content, ...]] = {}
    for key in ("includes", "leaves_out"):
        parts = []
        if key in options:
            parts = options[key].split("+")
        if unknown := [part for part in parts if part not in CONTENTS]:
            raise PowerError(f"{key}={'+'.join(unknown)}: it is some of {', '.join(CONTENTS)}")
        lists[key] = tuple(content for content in CONTENTS if content in parts)
    if both := set(lists["includes"]) & set(lists["leaves_out"]):
        raise PowerError(f"{', '.join(sorted(both))} cannot be both included and left out")
    return Contents(lists["includes"], lists["leaves_out"])


def _open(spec: str, options: Mapping[str, str], clock_offset_s: Callable[[], float]) -> CsvMeter:
    if "file" not in options or "map" not in options:
        raise PowerError("name the log and its columns: csv:FILE,map=time:NAME+power_w:NAME")
    file, layout = Path(options["file"]), _layout(options)
    domain = next((d for d in DOMAINS if d == options.get("domain", "system")), None)
    if domain is None:
        raise PowerError(f"domain={options['domain']}: it is one of {', '.join(DOMAINS)}")
    accuracy = number_option(spec, options, "accuracy")
    quantity = quantity_of(layout.columns)
    if quantity == "energy_j" and "resolution" not in options:
        # Often more than all other uncertainties: 0.01 kWh are six minutes of 100 W.
        raise PowerError(
            "give the counter's step, J, as resolution=, such as 36000 for a display of 0.01 kWh"
        )
    if accuracy is None:
        accuracy = ACCURACY
    log = _begun(file, layout)
    resolution = number_option(spec, options, "resolution") or 0.0
    remark = None
    if quantity == "power_w" and not resolution:
        resolution = log.resolution_w
        if log.values:
            remark = remark_on_step(log.values)
    channel = Channel(
        name=f"csv:{file.name}",
        domain=domain,
        quantity=quantity,
        accuracy_relative=accuracy,
        resolution=resolution,
        max_power_w=number_option(spec, options, "max_w", above_zero=True),
        contents=_contents(options),
        remark=remark,
    )
    period_s = number_option(spec, options, "period_s", above_zero=True) or _period_s(log)
    offset_s = offset_option(options) or 0.0
    name = options.get("name", "csv")
    return CsvMeter(spec, name, file, layout, channel, period_s, offset_s, clock_offset_s)


def _layout(options: Mapping[str, str]) -> Layout:
    columns = parse_map(options["map"])
    if any(key == "seconds" for key, _ in columns) and "start" not in options:
        raise PowerError("seconds: give the time of second 0, as start=2026-01-31T12:00:00+01:00")
    start, zone = _start_and_zone(options)
    delimiter = _one_of(options, "delimiter", DELIMITERS, f"one of {', '.join(DELIMITERS)}")
    decimal = _one_of(options, "decimal", ("point", "comma"), "point or comma")
    separator = None
    if delimiter is not None:
        separator = DELIMITERS[delimiter]
    return Layout(
        columns=columns,
        zone=zone,
        time_format=options.get("format"),
        start=start,
        delimiter=separator,
        decimal_comma=None if decimal is None else decimal == "comma",
        encoding=options.get("encoding"),
    )


def _start_and_zone(options: Mapping[str, str]) -> tuple[float | None, tzinfo | None]:
    """The time of second 0, and the time zone of the log. Raises PowerError."""
    start = options.get("start")
    try:
        moment = None
        if start is not None:
            moment = datetime.fromisoformat(start)
    except ValueError as error:
        raise PowerError(f"start={start}: {error}") from error
    zone = None
    if "tz" in options:
        zone = zone_of(options["tz"])
    if moment is None:
        return None, zone
    if moment.tzinfo is None:
        if zone is None:
            raise PowerError(f"start={start} has no time zone: give tz=")
        moment = moment.replace(tzinfo=zone)
    return moment.timestamp(), zone


def _one_of(options: Mapping[str, str], key: str, values: Iterable[str], text: str) -> str | None:
    """The option, which is one of these values. Raises PowerError."""
    value = options.get(key)
    if value is not None and value not in values:
        raise PowerError(f"{key}={value}: it is {text}")
    return value


def _begun(file: Path, layout: Layout) -> Log:
    """What the log contains already; nothing if it does not exist. Raises PowerError."""
    empty = Log([], [], 0)
    if not file.exists():
        return empty
    try:
        data = read_bytes(file)
        if data.strip():
            return parse_log(data, layout)
    except NoReadingError:
        return empty
    except OSError as error:
        raise PowerError(f"{file}: {error.strerror}") from error
    except PowerError as error:
        raise PowerError(f"{file}: {error}") from error
    return empty


def _period_s(log: Log) -> float:
    """The usual time between readings, if that can be seen."""
    if len(log.times_s) < 3:
        return NATIVE_PERIOD_S
    return statistics.median(b - a for a, b in pairwise(log.times_s))
