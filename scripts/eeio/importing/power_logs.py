"""Power logs of other programs, recognized by their content, in one form (`Series`).

A log is rejected if its power domain or the meaning of its values is unknown. Times without a zone
are read as UTC, and the log says so (`clock`).
"""

import csv
import hashlib
import json
import math
import re
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, cast

from eeio_limits import LimitError, inputs
from eeio_limits.quantities import COUNTER_SAMPLE, PERIOD, POWER_SAMPLE, TIMESTAMP
from eeio_parsers.found import local_date, number
from eeio_power import samples as samples_file
from eeio_power.delay import BMC, NVIDIA, Delay, stated, unknown_up_to
from eeio_power.errors import PowerError
from eeio_power.meters import Channel, about, number_option, parse_spec
from eeio_power.meters.nut import DELAY as NUT
from eeio_power.reading import DOMAINS, UNKNOWN, WALL, Contents, Domain, Kind
from eeio_power.samples import MeterInfo, MeterSamples, power_over_time
from eeio_power.watt_names import complete_system

Form = Literal["sample", "mean", "counter"]
"""`sample`: the power at a time, W. `mean`: of the time since the value before, W. `counter`: the
energy since its start, J."""
Clock = Literal["utc", "local", "start"]
"""`local`: times have no zone. `start`: seconds since a start that the log does not report."""
Rows = Iterable[tuple[float, float]]

_ACCURACY = {"dram": 0.2}
"""Share of the value, as for eeio's own meters; 0.05 for all other domains."""
_DELAYS = {"accelerator": NVIDIA}
"""Delay of the samples of each domain: that of a BMC for all others, because programs log those."""
_PUNCTUAL: Delay | None = None
"""Of RAPL's counters that are read at the time of the record: a value is the mean since the one
before, or the energy until then."""
_ANALYSER = unknown_up_to(1.0, 0.0, "a value each second: up to 1 s late")
_COUNTER = unknown_up_to(5.0, 0.0, "assumed of a logged counter: up to 5 s late")
_SAMPLE_S = 1e-3
"""How long a sample applies for sure."""
_LEAST_READINGS = 3


@dataclass(frozen=True)
class Series:
    """The readings of one power domain: times (Unix s, rising), values in W, or J of a counter."""

    meter: str
    domain: str
    kind: Kind
    form: Form
    times_s: Sequence[float]
    values: Sequence[float]
    accuracy: float = 0.05
    contents: Contents = UNKNOWN
    delay: Delay | None = None
    recorded: MeterSamples | None = None
    """The meter as eeio recorded it, with all its channels and calibrations: the energy is computed
    from these. Its times are Unix s, too."""

    @cached_property
    def period_s(self) -> float:
        """The usual time between two readings, s."""
        steps = [after - before for before, after in pairwise(self.times_s)]
        return min(max(statistics.median(steps), PERIOD.least), PERIOD.most)

    @cached_property
    def _made(self) -> dict[tuple[float, bool], MeterSamples]:
        return {}

    def samples(self, ahead_s: float, *, by_load: bool = False) -> MeterSamples:
        """As samples of an eeio meter, on a clock that this one is ahead of by `ahead_s`.
        `by_load`: the steps of load show this, so that it contains the delay of the readings."""
        if (ahead_s, by_load) not in self._made:
            self._made[ahead_s, by_load] = self._samples(ahead_s, by_load)
        return self._made[ahead_s, by_load]

    def _samples(self, ahead_s: float, by_load: bool) -> MeterSamples:
        if self.recorded is not None:
            times_s = [time_s - ahead_s for time_s in self.recorded.times_s]
            return replace(self.recorded, times_s=times_s)
        period_s = self.period_s
        # The time that a value is the mean of, if that is known.
        mean_s = max(_SAMPLE_S, self.delay.averages_s if self.delay else 0.0)
        # eeio applies a value to the time before it; a sample stands for half a period either way.
        shift_s = (max(0.0, period_s - mean_s) / 2 if self.form == "sample" else 0.0) - ahead_s
        delay = self.delay.aligned(period_s) if self.delay and by_load else self.delay
        steps = [b - a for a, b in pairwise(sorted({v for v in self.values if v == v}))]
        channel = Channel(
            name=self.meter,
            domain=cast(Domain, self.domain),
            quantity="energy_j" if self.form == "counter" else "power_w",
            accuracy_relative=self.accuracy,
            resolution=min(steps, default=0.0),
            contents=self.contents,
            delay=delay,
        )
        native_s = min(mean_s, period_s) if self.form == "sample" else period_s
        info = MeterInfo(self.meter, self.meter, self.kind, native_s, period_s, (channel,))
        return MeterSamples(info, [t + shift_s for t in self.times_s], (self.values,))

    def renamed(self, meter: str) -> "Series":
        """The same readings of a meter of that name."""
        if self.recorded is None:
            return replace(self, meter=meter)
        info = replace(self.recorded.info, name=meter)
        return replace(self, meter=meter, recorded=replace(self.recorded, info=info))

    def to_json(self) -> dict[str, Any]:
        return {
            "meter": self.meter, "domain": self.domain, "kind": self.kind, "form": self.form,
            "readings": len(self.times_s), "period_s": self.period_s,
            "first_s": self.times_s[0], "last_s": self.times_s[-1],
        }  # fmt: skip


@dataclass(frozen=True)
class PowerLog:
    """A file with series of power, or why it was rejected.

    `same_machine`: its program reads the clock of the machine that it measures. Its times may be
    off by `unsure_s` together.
    """

    path: Path
    sha256: str = ""
    tool: str | None = None
    clock: Clock = "utc"
    same_machine: bool = False
    unsure_s: float = 0.0
    series: tuple[Series, ...] = ()
    notes: tuple[str, ...] = ()
    rejected: str | None = None


@dataclass
class _Found:
    """What a reader found."""

    series: list[Series] = field(default_factory=list)
    clock: Clock = "utc"
    same_machine: bool = True
    unsure_s: float = 0.0
    notes: list[str] = field(default_factory=list)


_WITH_OPTIONS = re.compile(r"(.+?)((?:,(?:lag_s|averages_s)=[^,]{1,20}){1,2})", re.DOTALL)


def _split(named: Path) -> tuple[Path, dict[str, str]]:
    """The file, and the options behind its name."""
    match = _WITH_OPTIONS.fullmatch(str(named))
    if match is None or named.exists():
        return named, {}
    pairs = (text.partition("=") for text in match[2].strip(",").split(","))
    return Path(match[1]), {key: value for key, _, value in pairs}


def _with_delay(series: Series, options: Mapping[str, str]) -> Series:
    """Raises PowerError for an option that is no time."""
    lag_s = number_option(series.meter, options, "lag_s")
    averages_s = number_option(series.meter, options, "averages_s")
    if series.recorded is None:
        return replace(series, delay=stated(series.delay, lag_s, averages_s, series.period_s))
    info = series.recorded.info
    channels = tuple(
        replace(channel, delay=stated(channel.delay, lag_s, averages_s, info.native_period_s))
        for channel in info.channels
    )
    recorded = replace(series.recorded, info=replace(info, channels=channels))
    return replace(series, recorded=recorded)


def read(named: Path) -> PowerLog:
    """The series of a log, or the reason for its rejection. Its name may be followed by the delay
    of the readings: `power.log,lag_s=2,averages_s=10`."""
    path, options = _split(named)
    log = PowerLog(path)
    try:
        data = inputs.read_bytes(path, inputs.TABLE_BYTES)
        log = replace(log, sha256=hashlib.sha256(data).hexdigest())
        if data[:2] == b"\x1f\x8b":
            tool, found = "eeio", _eeio_samples(path)
        else:
            text = inputs.decode(data, "replace")
            tool, reader = _reader_of(text)
            log = replace(log, tool=tool)
            found = reader(text)
        if options:
            found.series = [_with_delay(series, options) for series in found.series]
        for series in found.series:
            _check(series)
        if not found.series:
            raise PowerError("no power in it")
    except OSError as error:
        return replace(log, rejected=error.strerror or str(error))
    except (PowerError, LimitError, csv.Error) as error:
        return replace(log, rejected=str(error))
    except RecursionError:
        return replace(log, rejected="objects and lists are nested too deeply")
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, ArithmeticError) as error:
        return replace(log, rejected=f"damaged or cut off: {error!r:.120}")
    return replace(
        log, tool=tool, clock=found.clock, same_machine=found.same_machine,
        unsure_s=found.unsure_s, series=tuple(found.series), notes=tuple(found.notes),
    )  # fmt: skip


def _check(series: Series) -> None:
    """Raises PowerError for a series that eeio cannot integrate."""
    if series.domain not in DOMAINS:
        raise PowerError(
            f"{series.meter}: power of the domain {series.domain}, which is not among "
            f"{', '.join(DOMAINS)}"
        )
    if len(series.times_s) < (2 if series.form == "counter" else _LEAST_READINGS):
        raise PowerError(f"{series.meter}: {len(series.times_s)} readings are too few")
    TIMESTAMP.checked(series.times_s[0], "the first time")
    TIMESTAMP.checked(series.times_s[-1], "the last time")


def _series(
    meter: str, domain: str, kind: Kind, form: Form, rows: Rows, delay: Delay | None,
    accuracy: float | None = None, contents: Contents = UNKNOWN,
) -> Series:  # fmt: skip
    """Of rows in the order of their times; NaN is a missing value. Of values with one time, such as
    a clock of whole seconds gives, the mean counts, and of a counter the last one. `delay` is that
    of the readings which the program logs, adds up or averages.

    Raises PowerError if the clock runs backwards.
    """
    possible = COUNTER_SAMPLE if form == "counter" else POWER_SAMPLE
    of_time: dict[float, list[float]] = {}
    last_s = -math.inf
    for time_s, value in rows:
        if time_s < last_s:
            raise PowerError(
                f"{meter}: the clock runs backwards by {last_s - time_s:.3f} s: cut the log there"
            )
        last_s = time_s
        of_time.setdefault(time_s, []).append(value if possible.contains(value) else math.nan)
    values = []
    for of in of_time.values():
        known = [value for value in of if value == value]
        values.append(
            math.nan if not known else known[-1] if form == "counter" else statistics.fmean(known)
        )
    if accuracy is None:
        accuracy = default_accuracy(domain)
    series = Series(meter, domain, kind, form, list(of_time), values, accuracy, contents)
    if delay is None or len(of_time) < 2:
        return series
    return replace(series, delay=_of_form(delay, form, series.period_s))


def _of_form(delay: Delay, form: Form, period_s: float) -> Delay:
    """The delay of values that a program computes each `period_s` from readings with a delay."""
    if form == "mean":
        return replace(delay, averages_s=delay.averages_s + period_s)
    if form == "counter":
        # A counter has the energy of a mean when that mean ends, at the latest.
        return replace(
            delay,
            lag_s=delay.lag_s + delay.averages_s,
            lag_within_s=delay.lag_within_s + delay.averages_within_s,
            averages_s=0.0,
            averages_within_s=0.0,
        )
    return delay


def default_accuracy(domain: str) -> float:
    """The accuracy of a log that states none, as a share."""
    return _ACCURACY.get(domain, 0.05)


def described(
    meter: str, domain: str, kind: Kind, form: Form, rows: Rows, accuracy: float | None,
    lag_s: float | None, averages_s: float | None,
) -> Series:  # fmt: skip
    """Of a log that only its user knows: an unknown program wrote it, so its readings may be as
    late as those of a BMC, unless the user states their delay. Raises PowerError."""
    known = _COUNTER if form == "counter" else _DELAYS.get(domain, BMC)
    series = _series(meter, domain, kind, form, rows, None, accuracy)
    if len(series.times_s) < 2:
        raise PowerError(f"{meter}: one reading is too few")
    if lag_s is not None or averages_s is not None:
        known = stated(known, lag_s, averages_s, series.period_s)
    return replace(series, delay=known)


# ---- times ----


def _time(text: str) -> tuple[float, Clock]:
    """Unix s of a time, and whether it has a zone. Raises PowerError."""
    text = text.strip().rstrip(",;:|")
    if re.fullmatch(r"\d{1,19}(?:\.\d{1,12})?", text):
        seconds = float(text)  # s, ms, us, ns since 1970; or since a start
        while seconds > 1e11:
            seconds /= 1000
        return seconds, "utc" if seconds > 1e8 else "start"
    written = local_date(text) or re.sub(r"([+-]\d\d)(\d\d)$", r"\1:\2", text.replace("/", "-"))
    if found := re.fullmatch(r"(\d\d)-(\d\d)-(\d{4})([ T].*)", written):
        written = f"{found[3]}-{found[1]}-{found[2]}{found[4]}"
    try:
        moment = datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", written))
    except ValueError:
        raise PowerError(f"{text[:40]!r} is not a time") from None
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC).timestamp(), "local"
    return moment.timestamp(), "utc"


_STAMP = re.compile(
    r"\[?(\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?: ?(?:Z|[+-]\d\d:?\d\d)\b)?"
    r"|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6} [A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d"
    r"(?: [AP]M)?(?: [A-Z]{3,4})? \d{4}|1\d{9}(?:\.\d{1,9})?|1\d{12}|1\d{18})\b"
)


# ---- text of single programs ----

_WATTSUP = re.compile(r"#d,-,\d{1,3},(-?\d{1,9}|_),")


def _wattsup(text: str) -> _Found:
    """Records of a Watts Up with a time in front of each, or the table of its logger."""
    found = _Found(same_machine=False)
    rows = []
    for line in text.splitlines():
        if record := _WATTSUP.search(line):
            stamp = _STAMP.search(line[: record.start()])
            if stamp is None:
                raise PowerError("records without a time: log them with one in front of each")
            time_s, found.clock = _time(stamp[1])
            rows.append((time_s, math.nan if record[1] == "_" else int(record[1]) / 10))
    found.series.append(
        _series("wattsup", "system", "measured", "mean", rows, _ANALYSER, 0.015, WALL)
    )
    return found


def _ptd(text: str) -> _Found:
    """PTDaemon's log of SPECpower: `Time,11-24-2026 12:00:00.123,Watts,120.3,...`."""
    found = _Found(same_machine=False)
    rows = []
    for line in text.splitlines():
        cells = line.split(",")
        if cells[0] == "Time" and len(cells) > 3 and cells[2] == "Watts":
            time_s, found.clock = _time(cells[1])
            rows.append((time_s, _watts(cells[3])))
    # The analyzer's mean since the reading before.
    found.series.append(
        _series("ptdaemon", "system", "measured", "mean", rows, _ANALYSER, 0.01, WALL)
    )
    return found


def _watts(text: str) -> float:
    """NaN for a cell that is no number, or -1, which analyzers write for none."""
    value = number(text.strip().removesuffix("W").strip())
    return math.nan if value is None else value


_DCMI = re.compile(r"Instantaneous power reading\s{0,40}:\s{0,40}(\d{1,6}) Watts")
_SENSOR = re.compile(r"^([^|,\n]{1,60}?)\s{0,40}[|,][^\n]{0,80}?\b(\d{1,6}(?:\.\d{1,6})?)\s{0,40}"
                     r"[|,]?\s{0,40}Watts\b")  # fmt: skip


def _ipmi(text: str) -> _Found:
    """A loop of `ipmitool dcmi power reading` or `ipmitool sdr`, with a time before each answer."""
    found = _Found(same_machine=False)
    rounds: list[tuple[float, dict[str, float | None]]] = []
    for line in text.splitlines():
        stamp = None if "timestamp" in line else _STAMP.match(line)
        rest = line
        if stamp is not None:
            time_s, found.clock = _time(stamp[1])
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
    found.series.append(_of_sensors("ipmi", rounds))
    return found


def _of_sensors(meter: str, rounds: Sequence[tuple[float, Mapping[str, float | None]]]) -> Series:
    """The power of the system from sensors with names. Raises PowerError if none is its."""
    names = dict.fromkeys(name for _, sensors in rounds for name in sensors)
    last = {n: next((s[n] for _, s in reversed(rounds) if n in s), None) for n in names}
    chosen = complete_system(last)
    if not chosen.sensors:
        raise PowerError(
            f"{meter}: the sensor of the system is unknown ({chosen.reason}) among "
            f"{', '.join(names)[:200]}: log only that sensor"
        )
    rows = (
        (t, math.nan if None in parts else sum(p for p in parts if p is not None))
        for t, sensors in rounds
        for parts in [[sensors.get(name) for name in chosen.sensors]]
    )
    return _series(meter, "system", "measured", "sample", rows, BMC, contents=chosen.contents)


def _turbostat(text: str) -> _Found:
    """The lines of all processors together: means since the line before."""
    found = _Found()
    rows: dict[str, list[tuple[float, float]]] = {"package": [], "dram": []}
    header: list[str] = []
    for line in text.splitlines():
        cells = line.split()
        if "PkgWatt" in cells:
            header = cells
            if "Time_Of_Day_Seconds" not in header:
                raise PowerError("no column Time_Of_Day_Seconds: --enable Time_Of_Day_Seconds")
        elif header and len(cells) == len(header):
            values = dict(zip(header, cells, strict=True))
            if any(values.get(name, "-") != "-" for name in ("Package", "Die", "Node", "CPU")):
                continue
            if values.get("Core", "-") == "-":
                time_s, _ = _time(values["Time_Of_Day_Seconds"])
                rows["package"].append((time_s, _watts(values["PkgWatt"])))
                if "RAMWatt" in values:
                    rows["dram"].append((time_s, _watts(values["RAMWatt"])))
    found.series = [
        _series("turbostat", domain, "measured", "mean", of, _PUNCTUAL)
        for domain, of in rows.items()
        if any(value > 0 for _, value in of)
    ]
    return found


_PERF = re.compile(
    r"^\s{0,40}(\d{1,12}\.\d{1,9}),(?:[SDN]\d[\w-]{0,20},\d{1,4},)?"
    r"(<[\w ]{1,40}>|[\d.]{1,30}),Joules,power/energy-(\w{1,20})/", re.M,
)  # fmt: skip


def _perf(text: str) -> _Found:
    """`perf stat -I -x,`: the energy of each interval; `# started on` is local time."""
    found = _Found(clock="start")
    start_s = 0.0
    if started := re.search(r"^# started on (.{1,60})$", text, re.M):
        # Cut to whole seconds.
        start_s, found.clock = _time(started[1])
        start_s, found.unsure_s = start_s + 0.5, 0.5
    joules: dict[str, dict[float, float]] = {}
    for time, reported, event in _PERF.findall(text):
        of = joules.setdefault(event, {})
        value = number(reported)
        of[float(time)] = of.get(float(time), 0.0) + (math.nan if value is None else value)
    for event, of in joules.items():
        domain = {"pkg": "package", "ram": "dram"}.get(event)
        if domain is None:
            found.notes.append(f"energy-{event} is a part of another domain: not used")
            continue
        ends = list(of)
        steps = zip([0.0, *ends], ends, strict=False)
        rows = [(start_s + end, of[end] / (end - begin)) for begin, end in steps if end > begin]
        found.series.append(_series("perf", domain, "measured", "mean", rows, _PUNCTUAL))
    return found


# ---- tables ----


def _table(text: str, delimiter: str = ",") -> Iterator[dict[str, str]]:
    reader = csv.DictReader(text.splitlines(), delimiter=delimiter, skipinitialspace=True)
    for row in reader:
        yield {str(k).strip(): str(v or "").strip() for k, v in row.items()}


def _nvidia(text: str) -> _Found:
    """`nvidia-smi --query-gpu=timestamp,index,power.draw`: local times, a row for each GPU."""
    found = _Found()
    rounds: list[dict[str, float]] = []
    times: list[float] = []
    for row in _table(text):
        draw = next((k for k in row if k.startswith("power.draw")), None)
        if draw is None or "timestamp" not in row:
            raise PowerError("give nvidia-smi --query-gpu=timestamp,index,power.draw")
        unit = re.search(r"\[(\w{1,4})\]$", draw)
        if (unit[1] if unit else row[draw].rpartition(" ")[2]) != "W":
            raise PowerError(f"{draw}: neither the column nor its cells have the unit W")
        gpu = next((row[k] for k in ("index", "uuid", "pci.bus_id") if k in row), None)
        time_s, found.clock = _time(row["timestamp"])
        if gpu is None and times and time_s - times[-1] < 0.02:
            raise PowerError("several GPUs: name them by --query-gpu=timestamp,index,power.draw")
        if not rounds or (gpu or "") in rounds[-1]:
            rounds.append({})
            times.append(time_s)
        rounds[-1][gpu or ""] = _watts(row[draw])
        times[-1] = time_s
    count = max(map(len, rounds), default=0)
    rows = [
        (time_s, sum(of.values()) if len(of) == count else math.nan)
        for time_s, of in zip(times, rounds, strict=True)
    ]
    found.series.append(
        _series("nvidia-smi", "accelerator", "device-reported", "sample", rows, NVIDIA)
    )
    return found


def _codecarbon(text: str) -> _Found:
    """Rows with the energy, kWh, since the start of a run, at their local times."""
    found = _Found(clock="local")
    runs: dict[str, list[dict[str, str]]] = {}
    for row in _table(text):
        runs.setdefault(row["run_id"], []).append(row)
    for rows in runs.values():
        for column, domain in (
            ("cpu_energy", "package"), ("ram_energy", "dram"), ("gpu_energy", "accelerator"),
        ):  # fmt: skip
            counter: list[tuple[float, float]] = []
            for row in rows:
                time_s, found.clock = _time(row["timestamp"])
                if not row[column].strip():
                    continue  # The next row has the energy of this interval too.
                before_s, before_j = (
                    counter[-1] if counter else (time_s - float(row["duration"]), 0.0)
                )
                now_j = float(row[column]) * 3.6e6
                # The mean power of the interval, with a reading in the middle of it, so that a
                # phase that fills most of the interval has its energy.
                middle = ((before_s + time_s) / 2, (before_j + now_j) / 2)
                counter += [] if counter else [(before_s, before_j)]
                counter += [middle, (time_s, now_j)]
            if counter and counter[-1][1] > 0:
                # Each row ends with a read of the counters, at the time of the row.
                found.series.append(
                    _series("codecarbon", domain, "modelled", "counter", counter, _PUNCTUAL)
                )
    return found


def _powerapi_csv(text: str) -> _Found:
    return _powerapi(list(_table(text)))


def _powerapi(rows: Sequence[Mapping[str, Any]]) -> _Found:
    """Power reports: RAPL's own where there are some, else the sum of all programs (`global`)."""
    found = _Found()
    targets = {str(row["target"]) for row in rows}
    target = next((one for one in ("rapl", "global") if one in targets), None)
    if target is None:
        raise PowerError("neither of the targets rapl and global: they are power of programs")
    if len({str(row.get("sensor")) for row in rows}) > 1:
        raise PowerError("several machines (`sensor`): export one at a time")
    of_domain: dict[str, dict[float, float]] = {}
    for row in (row for row in rows if row["target"] == target):
        metadata = row.get("metadata") or row
        scope = metadata.get("scope")
        domain = {"cpu": "package", "dram": "dram"}.get(str(scope))
        if domain is None:
            raise PowerError("the power domain is unknown: it is in the column or key `scope`")
        time_s, found.clock = _time(str(row["timestamp"]))
        of = of_domain.setdefault(domain, {})
        of[time_s] = of.get(time_s, 0.0) + float(row["power"])  # of all sockets
    kind: Kind = "measured" if target == "rapl" else "modelled"
    for domain, of in of_domain.items():
        rows_of_domain = sorted(of.items())
        found.series.append(_series("powerapi", domain, kind, "mean", rows_of_domain, _PUNCTUAL))
    return found


_COLLECTL = re.compile(r"^#Date Time ", re.M)


def _collectl(text: str) -> _Found:
    """`collectl -P`: local times, and power of the environmental data."""
    found = _Found(clock="local")
    lines = text[_COLLECTL.search(text).start() :].splitlines()  # type: ignore[union-attr]
    header = lines[0].lstrip("#").split()
    places = {
        name.partition("]")[2]: k for k, name in enumerate(header)
        if re.search(r"pow|watt|pwr", name, re.I)
    }  # fmt: skip
    if not places:
        raise PowerError("no column of power: collectl records it with -sE --envopts p")
    rounds = []
    for cells in (line.split() for line in lines[1:] if not line.startswith("#")):
        if len(cells) < len(header):
            continue
        date = cells[0] if "-" in cells[0] else f"{cells[0][:4]}-{cells[0][4:6]}-{cells[0][6:]}"
        time_s, found.clock = _time(f"{date} {cells[1]}")
        rounds.append((time_s, {name: number(cells[k]) for name, k in places.items()}))
    found.series.append(_of_sensors("collectl", rounds))
    return found


_LINE = re.compile(
    r"^(?P<name>(?:\\.|[^\\, \n])+)(?P<tags>(?:,(?:\\.|[^\\ \n])+)?) "
    r"(?P<fields>(?:\\.|\"[^\"\n]*\"|[^\\ \n\"])+) (?P<time>1\d{18})$", re.M,
)  # fmt: skip
_TELEGRAF = {
    ("powerstat_package", "current_power_consumption_watts"): "package",
    ("powerstat_package", "current_dram_power_consumption_watts"): "dram",
    ("nvidia_smi", "power_draw"): "accelerator",
    ("redfish_power_powercontrol", "power_consumed_watts"): "system",
}


def _telegraf(text: str) -> _Found:
    """InfluxDB's line protocol, as telegraf's plugins of power write it."""
    found = _Found(same_machine=False)
    sensors: dict[float, dict[str, float | None]] = {}
    of_domain: dict[str, dict[float, dict[str, float]]] = {}
    machines = set[str]()
    for line in _LINE.finditer(text):
        tags = dict(_pairs(line["tags"][1:]))
        time_s, name = _time(line["time"])[0], line["name"]
        fields = {key: number(value.rstrip("iu")) for key, value in _pairs(line["fields"])}
        watts = tags.get("unit", "").lower() == "watts"
        if name == "ipmi_sensor" and watts and fields.get("value") is not None:
            # One answer of the controller: its sensors have the same second.
            sensors.setdefault(float(int(time_s)), {})[tags.get("name", "")] = fields["value"]
            machines.add(_machine(tags))
        for (measurement, key), domain in _TELEGRAF.items():
            value = fields.get(key)
            if name == measurement and value is not None:
                parts = [v for k, v in sorted(tags.items()) if k not in _MACHINE_TAGS]
                part = tags.get("name", "") if domain == "system" else " ".join(parts)
                of_domain.setdefault(domain, {}).setdefault(time_s, {})[part] = value
                machines.add(_machine(tags))
    if len(machines) > 1:
        named = ", ".join(sorted(machines))
        raise PowerError(f"several machines ({named[:100]}): export one at a time")
    if not sensors and not of_domain:
        raise PowerError(
            "no measurement of known power (ipmi_sensor with unit=watts, powerstat_package, "
            "nvidia_smi, redfish_power_powercontrol): its domain is in the measurement's name"
        )
    if sensors:
        found.series.append(_of_sensors("telegraf ipmi", sorted(sensors.items())))
    for domain, times in of_domain.items():
        if domain == "system":
            times = _of_complete_system(times)
        count = max(map(len, times.values()))
        rows = [(t, sum(of.values()) if len(of) == count else math.nan)
                for t, of in sorted(times.items())]  # fmt: skip
        is_rapl = domain in ("package", "dram")
        form: Form = "mean" if is_rapl else "sample"
        delay = _PUNCTUAL if is_rapl else _DELAYS.get(domain, BMC)
        kind: Kind = "device-reported" if domain == "accelerator" else "measured"
        found.series.append(_series("telegraf", domain, kind, form, rows, delay))
    return found


_MACHINE_TAGS = ("address", "host", "server", "source")
"""Tags that name a machine or its controller: an agent may poll several."""


def _machine(tags: Mapping[str, str]) -> str:
    return " ".join(tags[name] for name in _MACHINE_TAGS if name in tags)


def _of_complete_system(
    times: Mapping[float, Mapping[str, float]],
) -> dict[float, dict[str, float]]:
    """Of entries by their names, those of the complete machine: some controllers list processors
    and memory, too. Raises PowerError if that is not clear."""
    most = max(times.values(), key=len)
    complete = set(most)
    if len(most) > 1:
        complete = set(complete_system(most).sensors)
    if not complete:
        raise PowerError(f"which of {', '.join(most)} is the complete machine? Export one of them")
    return {
        time_s: {name: watts for name, watts in of.items() if name in complete}
        for time_s, of in times.items()
    }


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for word in re.findall(r"(?:\\.|\"[^\"]*\"|[^\\,\"])+", text):
        key, _, value = word.partition("=")
        yield key, value.replace("\\ ", " ").replace("\\,", ",").strip('"')


# ---- JSON ----


def _values(text: str) -> Iterator[Any]:
    """JSON values one after the other, or the parts of one list."""
    decoder, place = json.JSONDecoder(), 0
    while found := re.compile(r"[\s,\[\]]*(?=\{)").match(text, place):
        body, place = decoder.raw_decode(text, found.end())
        yield body


def _scaphandre(text: str) -> _Found:
    """`scaphandre json`: microwatts, means since the record before. The host's value is a sum of
    RAPL domains, so only sockets and memory are used."""
    found = _Found()
    rows: dict[str, list[tuple[float, float]]] = {"package": [], "dram": []}
    for body in _values(text):
        time_s, _ = _time(str(body["host"]["timestamp"]))
        sockets = body.get("sockets") or []
        if sockets:
            rows["package"].append((time_s, sum(float(s["consumption"]) for s in sockets) / 1e6))
        memory = [
            float(domain["consumption"]) for socket in sockets
            for domain in socket.get("domains") or [] if domain.get("name") == "dram"
        ]  # fmt: skip
        if memory:
            rows["dram"].append((time_s, sum(memory) / 1e6))
    found.series = [
        _series("scaphandre", d, "measured", "mean", r, _PUNCTUAL) for d, r in rows.items() if r
    ]
    return found


def _powerapi_json(text: str) -> _Found:
    return _powerapi(list(_values(text)))


_METRICS: Mapping[str, tuple[str, Form, float, str]] = {
    "kepler_node_package_joules_total": ("package", "counter", 1.0, "kepler"),
    "kepler_node_dram_joules_total": ("dram", "counter", 1.0, "kepler"),
    "kepler_node_platform_joules_total": ("system", "counter", 1.0, "kepler"),
    "kepler_node_gpu_joules_total": ("accelerator", "counter", 1.0, "kepler"),
    "kepler_node_cpu_joules_total": ("zone", "counter", 1.0, "kepler"),
    "node_rapl_package_joules_total": ("package", "counter", 1.0, "node_exporter"),
    "node_rapl_dram_joules_total": ("dram", "counter", 1.0, "node_exporter"),
    "scaph_socket_power_microwatts": ("package", "mean", 1e-6, "scaphandre"),
    "ipmi_dcmi_power_consumption_watts": ("system", "sample", 1.0, "ipmi_exporter"),
    "eeio_energy_joules_total": ("domain", "counter", 1.0, "eeio"),
    "eeio_power_watts": ("domain", "mean", 1.0, "eeio"),
}
"""Metric -> domain (or the label that has it), form, unit in W or J, exporter."""
_PART_LABELS = frozenset((
    "__name__", "index", "path", "zone", "domain", "socket_id", "package", "mode", "gpu",
    "gpu_uuid", "uuid", "minor_number", "gpu_name", "channel", "meter", "kind",
))  # fmt: skip
"""Labels in which the parts of a power differ: packages, sockets, GPUs, the modes of Kepler."""
_SOURCES: tuple[tuple[str, str, Delay | None], ...] = (
    ("node_exporter", r".*", _PUNCTUAL),
    ("scaphandre", r".*", _PUNCTUAL),
    ("eeio", r"rapl|perf", _PUNCTUAL),
    ("eeio", r"nvml", NVIDIA),
    ("eeio", r"nut", NUT),
    ("kepler", r"rapl.*|nvml",
     unknown_up_to(5.0, 0.0, "Kepler: adds to its counters each 3 to 5 s")),
    ("kepler", r"redfish",
     unknown_up_to(65.0, 5.0, "Kepler: reads the BMC each 60 s; a BMC: up to 5 s late")),
    ("kepler", r".*",
     unknown_up_to(10.0, 5.0, "Kepler: reads the sensor each 3 to 5 s; a BMC: up to 5 s late")),
    (r".*", r".*", BMC),
)  # fmt: skip
"""Exporter, its source or meter, and the delay of that: the first that fits."""


def _delay_of(exporter: str, source: str) -> Delay | None:
    return next(
        delay
        for of_exporter, of_source, delay in _SOURCES
        if re.fullmatch(of_exporter, exporter) and re.fullmatch(of_source, source, re.DOTALL)
    )


def _prometheus(text: str) -> _Found:
    """The answer of `/api/v1/query_range`, with one or more known metrics of one machine."""
    found = _Found(same_machine=False)
    results = json.loads(text)["data"]["result"]
    machines = {
        tuple(r["metric"].get(k) for k in ("instance", "node", "nodename", "exported_instance"))
        for r in results
    }
    if len(machines) > 1:
        raise PowerError("several machines: name the instance in the query")
    of: dict[tuple[str, str, str, Form, float, Delay | None], list[dict[float, float]]] = {}
    wholes: dict[tuple[str, str], dict[str, str]] = {}
    for result in results:
        labels = result["metric"]
        name = labels.get("__name__")
        if name not in _METRICS:
            raise PowerError(
                f"the power domain of {name or 'a query without the name of a metric'} is unknown; "
                f"query one of {', '.join(_METRICS)}"
            )
        domain, form, unit, exporter = _METRICS[name]
        if domain in ("zone", "domain"):
            domain = labels.get(domain, "unknown")
        if domain in ("core", "uncore", "psys"):
            found.notes.append(f"{name}: {domain} is a part of another domain: not used")
            continue
        if exporter == "eeio":
            kind = labels.get("kind", "modelled")
            exporter = labels.get("meter", "eeio")
            delay = _delay_of("eeio", exporter)
        else:
            source = labels.get("source", "rapl" if "zone" in labels else "")
            known = exporter != "kepler" or re.search(r"rapl|acpi|hwmon|nvml|redfish", source)
            kind = "measured" if known else "modelled"
            delay = _delay_of(exporter, source)
        whole = {label: text for label, text in labels.items() if label not in _PART_LABELS}
        first = wholes.setdefault((name, domain), whole)
        if different := sorted(k for k in first.keys() | whole.keys()
                               if first.get(k) != whole.get(k)):  # fmt: skip
            raise PowerError(
                f"{name} has several series, which differ in {', '.join(different)}: they are no "
                "parts of one power; name one in the query"
            )
        key = (exporter, domain, kind, form, unit, delay)
        of.setdefault(key, []).append({float(t): float(v) for t, v in result["values"]})
    for (exporter, domain, kind, form, unit, delay), parts in of.items():
        # A sum of packages, sockets and modes needs all of them.
        times = sorted(set().union(*parts))
        rows = [(t, sum(p.get(t, math.nan) for p in parts) * unit) for t in times]
        if form != "counter":
            delay = _of_scrapes(delay, form, rows)
        found.series.append(_series(exporter, domain, cast(Kind, kind), form, rows, delay))
    return found


_LONGEST_SCRAPE_S = 60.0
"""The interval of Prometheus if nobody sets another one."""


def _of_scrapes(delay: Delay | None, form: Form, rows: Sequence[tuple[float, float]]) -> Delay:
    """That of a gauge in a range query, which repeats the last scrape at each step: up to the
    interval of the scrapes later, and a mean is one since the scrape before. The interval is the
    time for which most values stay the same, a step at least."""
    known = delay or Delay(source="punctual")
    changes = [time_s for (_, before), (time_s, value) in pairwise(rows) if value != before]
    stays_s = sorted(after - before for before, after in pairwise(changes))
    step_s = min((after - before for (before, _), (after, _) in pairwise(rows)), default=0.0)
    shortest_s = stays_s[len(stays_s) // 10] if stays_s else _LONGEST_SCRAPE_S
    interval_s = max(step_s, min(shortest_s, _LONGEST_SCRAPE_S))
    most_lag_s = known.lag_s + known.lag_within_s + interval_s
    most_mean_s = known.averages_s + known.averages_within_s
    if form == "mean":  # of a step, the series has it already
        most_mean_s += interval_s - step_s
    source = f"{known.source}; Prometheus: a scrape each {interval_s:g} s"
    return unknown_up_to(most_lag_s, most_mean_s, source)


def _eeio_samples(path: Path) -> _Found:
    """eeio's samples file, whose header has the UTC of its monotonic clock."""
    if (begun := samples_file.begun(path)) is None:
        raise PowerError("no time of its start in the header")
    monotonic_s, utc = begun
    ahead_s = _time(utc)[0] - monotonic_s
    found = _Found()
    for meter in samples_file.load(path).meters:
        recorded = _in_unix_time(meter, ahead_s)
        domains = {c.domain: c for c in recorded.info.channels if c.in_domain_total}
        powers = {power.domain: power for power in power_over_time(recorded)}
        for domain, channel in domains.items():
            power = powers.get(domain)
            rows = zip(power.times_s, power.watts, strict=True) if power else ()
            series = _series(recorded.info.name, domain, recorded.info.kind, "mean", rows, None)
            found.series.append(replace(series, delay=channel.delay, recorded=recorded))
    return found


def _in_unix_time(meter: MeterSamples, ahead_s: float) -> MeterSamples:
    """The samples with Unix times. Channels of an older file have the delay of their meter."""
    info = meter.info
    delay = about(parse_spec(info.spec)[0]).delay or BMC
    channels = tuple(replace(c, delay=c.delay or delay) for c in info.channels)
    times_s = [time_s + ahead_s for time_s in meter.times_s]
    return replace(meter, info=replace(info, channels=channels), times_s=times_s)


_READERS: tuple[tuple[str, str, Callable[[str], _Found]], ...] = (
    ("prometheus", r'\A\s*\{[^\0]{0,200}"resultType"\s*:\s*"matrix"', _prometheus),
    ("scaphandre", r'\A[\s\[]*\{\s*"host"\s*:\s*\{[^{]{0,2000}"consumption"', _scaphandre),
    ("powerapi", r'\A[\s\[]*\{[^\0]{0,2000}"target"[^\0]{0,2000}"power"', _powerapi_json),
    ("powerapi", r"\A(?=[^\n]{0,500}\btarget\b)(?=[^\n]{0,500}\bpower\b)timestamp,", _powerapi_csv),
    ("codecarbon", r"\Atimestamp,project_name,run_id,", _codecarbon),
    ("nvidia-smi", r"\A[^\n]{0,999}\bpower\.draw", _nvidia),
    ("ptdaemon", r"^Time,[\d-]{10} [\d:.]{8,15},Watts,", _ptd),
    ("wattsup", _WATTSUP.pattern, _wattsup),
    ("turbostat", r"^(?:\S{1,40}\s{1,20}){0,99}PkgWatt\b", _turbostat),
    ("perf", _PERF.pattern, _perf),
    ("collectl", _COLLECTL.pattern, _collectl),
    ("telegraf", _LINE.pattern, _telegraf),
    ("ipmitool", r"Instantaneous power reading|\d[|,\s]{1,40}Watts\b", _ipmi),
)
_HEAD = 65536
_RESULTS_ONLY = re.compile(r"SPECpower_ssj2008|ssj_ops", re.I)
_PERF_TOTALS = re.compile(r"\bJoules\b.{0,9}power/energy-")


def _reader_of(text: str) -> tuple[str, Callable[[str], _Found]]:
    """Raises PowerError for a file that is no known power log."""
    head = text[:_HEAD]
    for tool, pattern, reader in _READERS:
        if re.search(pattern, head, re.M):
            return tool, reader
    if _RESULTS_ONLY.search(head):
        raise PowerError("means of SPECpower's load levels without times: give PTDaemon's log")
    if _PERF_TOTALS.search(head):
        raise PowerError("perf's totals without times: run `perf stat -I 1000 -x,`")
    raise PowerError("no known power log (docs/how-to/import-results.md); a table needs a map")
