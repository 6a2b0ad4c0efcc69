"""The samples of a run, and their file.

The file is one gzip stream. Its first line is a JSON header; every other line is one value:

    {"schema_version": 3, "monotonic_s": ..., "utc": ..., "meters": [...]}
    monotonic_s,channel_index,value

`channel_index` counts through the channels of all meters in the header's order. The value has the
unit of the channel's quantity (W or J) and is empty if a read failed. The values of one read share
their time. A truncated file is valid up to its last complete line.

Power over time in a meter's samples, per domain, and its median.
"""

import json
import math
import statistics
import zlib
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import compress, pairwise
from operator import lt
from pathlib import Path
from typing import IO, Any

from eeio.errors import LimitError
from eeio.files import inputs
from eeio.record.energy_reading import MARKS
from eeio.units import quantities as q
from eeio_power import calibration, delay
from eeio_power.calibration import Calibration
from eeio_power.energy import meter_energy, wait_s
from eeio_power.errors import PowerError
from eeio_power.false_readings import (
    MOST_BEFORE_S,
    ConstantRun,
    constant_runs,
    contains,
    doubted,
    judged,
    load_doubt,
    means_w,
    rise_doubt,
)
from eeio_power.meters import AveragedMeter, Channel, LoggedMeter, Meter
from eeio_power.reading import CONTENTS, DOMAINS, KINDS, Contents, EnergyReading, Kind
from eeio_power.window_readings import possible_w

SCHEMA_VERSION = 3
READABLE_VERSIONS = (1, 2, 3)
"""Version 2 describes channels in more detail, version 3 also their delays; each contains all of
the one before."""

MISSING = math.nan
"""Marks a failed read in the arrays; never returned as a number."""

# zlib's value for "a gzip header precedes the data".
GZIP_WBITS = 31

# Damage costs the rest of its chunk; intact data is unpacked many chunks at once.
CHUNK_BYTES = 256
_CHUNKS = 64


@dataclass(frozen=True)
class MeterInfo:
    """The description of a meter in the samples: its kind and how often it was read."""

    name: str
    spec: str
    kind: Kind
    native_period_s: float
    period_s: float
    """The period it is sampled at, s: at least the native one."""
    channels: tuple[Channel, ...]
    calibrations: tuple[Calibration, ...] = ()
    """Those of this meter when it was read."""

    @property
    def late_s(self) -> float:
        """How long after a window its readings are needed, s."""
        return max(
            (wait_s(c, self.period_s, self.native_period_s) for c in self.channels), default=0.0
        )

    @property
    def has_unknown_delay(self) -> bool:
        """Whether nobody states how late its readings are. They are taken for punctual then."""
        return self.kind not in MARKS and any(c.delay is None for c in self.channels)

    @property
    def as_read(self) -> "MeterInfo":
        """Without its delay: for values that are shown as they come."""
        return replace(self, channels=tuple(replace(c, delay=None) for c in self.channels))


@dataclass(frozen=True)
class MeterSamples:
    """All samples of one meter: a column of values a channel, over one column of times."""

    info: MeterInfo
    times_s: Sequence[float]
    """Monotonic seconds, strictly rising."""
    values: tuple[Sequence[float], ...]
    """One column a channel, in the unit of its quantity; NaN where a read failed."""
    earlier: tuple[Sequence[float], ...] | None = None
    """Of a part of the samples: some readings of each channel from before it."""

    def energy(self, start_s: float, end_s: float) -> list[EnergyReading]:
        """The energy of the window, one reading a power domain of this meter."""
        info = self.info
        return meter_energy(
            meter=info.name,
            kind=info.kind,
            channels=info.channels,
            native_period_s=info.native_period_s,
            period_s=info.period_s,
            times_s=self.times_s,
            values=self.values,
            start_s=start_s,
            end_s=end_s,
            earlier=self.earlier,
            calibrations=info.calibrations,
        )

    def constant_runs(self, start_s: float, end_s: float) -> list[ConstantRun]:
        """Power readings that did not change in the window; none of a model."""
        info = self.info
        if info.kind == "modelled":
            return []
        return constant_runs(
            info.name,
            info.channels,
            info.native_period_s,
            self.times_s,
            self.values,
            start_s,
            end_s,
        )

    def rise_doubts(self, run: ConstantRun) -> list[str]:
        """Why another meter's constant power is impossible: this meter reads a part of it, or the
        same, and that changed."""
        info, doubts = self.info, []
        for domain in dict.fromkeys(c.domain for c in info.channels if c.in_domain_total):
            if info.kind not in MARKS and contains(run, info.name, domain):
                powers_w = means_w(info.channels, domain, self.times_s, self.values, run)
                doubts += rise_doubt(run, f"{domain} ({info.name})", powers_w)
        return doubts

    def series(
        self, channel: str, start_s: float = -math.inf, end_s: float = math.inf
    ) -> list[tuple[float, float | None]]:
        """(monotonic s, value) of one channel inside the window; None where a read failed.

        Raises PowerError for a channel that the meter does not have.
        """
        names = [c.name for c in self.info.channels]
        if channel not in names:
            raise PowerError(
                f"{self.info.name} has no channel '{channel}'; it has: {', '.join(names)}"
            )
        column = self.values[names.index(channel)]
        low, high = bisect_left(self.times_s, start_s), bisect_right(self.times_s, end_s)
        series = []
        for i in range(low, high):
            series.append((self.times_s[i], None if math.isnan(column[i]) else column[i]))
        return series


Loads = Callable[[ConstantRun], tuple[float, float] | None]
"""The lowest and the highest load of the processors while a reading did not change, 0 to 1; None
where that is not known, or is not the load of the machine that the meter reads."""


@dataclass(frozen=True)
class Samples:
    """The samples of a sampler, in memory or read back from its file."""

    meters: tuple[MeterSamples, ...]
    truncated: bool = False
    """The file ends before the sampler closed it: it was killed, or the disk was full."""

    def energy(
        self,
        start_s: float,
        end_s: float,
        loads: Loads = lambda run: None,
        since: Callable[[float], "Samples"] | None = None,
    ) -> list[EnergyReading]:
        """The energy of a window on the monotonic clock, one reading a meter and power domain.

        Where meters contradict each other, or the load, they are doubtful:
        `eeio_power.false_readings`.
        `since` gives samples that reach back to a time, if these do not.
        """
        readings = judged(
            [reading for meter in self.meters for reading in meter.energy(start_s, end_s)]
        )
        doubts: dict[tuple[str, str], list[str]] = {}
        for run in (run for meter in self.meters for run in meter.constant_runs(start_s, end_s)):
            reasons = doubts.setdefault((run.meter, run.domain), [])
            if run.too_steady:
                reasons.append(run.reason("more steadily than any machine draws: it is frozen"))
            if run.is_comparable:
                reasons += load_doubt(run, loads(run))
                around = self
                if since is not None:
                    around = since(max(run.begin_s, start_s - MOST_BEFORE_S))
                for meter in around.meters:
                    reasons += meter.rise_doubts(run)
        return [
            doubted(reading, doubts.get((reading.meter, reading.domain), ()))
            if reading.valid
            else reading
            for reading in readings
        ]


def meter_info(meter: Meter, rate_hz: float) -> MeterInfo:
    """The meter's description, sampled at `rate_hz` or as fast as possible."""
    # A log or a meter that pushes has its native rate: missing samples are counted against that.
    own_pace = isinstance(meter, LoggedMeter) or bool(getattr(meter, "paces_itself", False))
    native_s, channels = meter.native_period_s, calibration.delayed_channels(meter)
    period_s = native_s
    if not own_pace:
        period_s = max(1.0 / rate_hz, native_s)
    if isinstance(meter, AveragedMeter):
        native_s = meter.averages_s(period_s)
        channels = tuple(_averaged_over(channel, native_s) for channel in channels)
    return MeterInfo(
        name=meter.name,
        spec=meter.spec,
        kind=meter.kind,
        native_period_s=native_s,
        period_s=period_s,
        channels=channels,
    )


def _averaged_over(channel: Channel, averages_s: float) -> Channel:
    """The channel with the delay of means over at least that time."""
    known = channel.delay
    if known is None:
        return channel
    return replace(channel, delay=replace(known, averages_s=max(averages_s, known.averages_s)))


def header_line(infos: Sequence[MeterInfo], monotonic_s: float, utc: str) -> str:
    """The first line of a samples file; the two times say when the sampler started."""
    meters = list(map(asdict, infos))
    for meter in meters:
        if not meter["calibrations"]:
            del meter["calibrations"]
    header = {
        "schema_version": SCHEMA_VERSION,
        "monotonic_s": monotonic_s,
        "utc": utc,
        "meters": meters,
    }
    return json.dumps(header) + "\n"


def sample_lines(time_s: float, first_index: int, values: Sequence[float]) -> str:
    """One read as lines; numbers are written so that they read back exactly."""
    time = repr(time_s)
    return "".join(
        f"{time},{index},{value!r}\n" if value == value else f"{time},{index},\n"
        for index, value in enumerate(values, start=first_index)
    )


def begun(path: Path) -> tuple[float, str] | None:
    """(monotonic s, ISO time in UTC) when the sampler began; None if the file does not say."""
    try:
        with inputs.open_file(path) as file:
            header = next(_Unpacked(file).blocks(), None)
        body = json.loads(header or b"{}")
        return float(body["monotonic_s"]), str(body["utc"])
    except (OSError, LimitError, ValueError, KeyError, TypeError):
        return None


def described(path: Path) -> list[MeterInfo]:
    """The meters of a samples file, from its header. Raises PowerError."""
    try:
        with inputs.open_file(path) as file:
            header = next(_Unpacked(file).blocks(), b"")
        return list(_parse_header(path, header.decode("utf-8", errors="replace")))
    except OSError as error:
        raise PowerError(f"{path}: cannot read the samples: {error.strerror}") from error
    except LimitError as error:
        raise PowerError(f"{path}: {error}") from error


def of_unknown_delay(infos: Iterable[MeterInfo]) -> tuple[str, ...]:
    """The names of the meters whose delay is unknown."""
    return tuple(dict.fromkeys(info.name for info in infos if info.has_unknown_delay))


def load(path: Path) -> Samples:
    """Read a samples file back, up to the cut if it was cut off.

    Raises PowerError if the file cannot be read, is no samples file, or contains a damaged line.
    """
    try:
        with inputs.open_file(path) as file:
            unpacked = _Unpacked(file)
            blocks = unpacked.blocks()
            header = next(blocks, None)
            if header is None:
                raise PowerError(
                    f"{path}: no header line, so no samples: the sampler was killed within its "
                    "first second, or this is not a samples file; run the experiment again"
                )
            infos = _parse_header(path, header.decode("utf-8", errors="replace"))
            return Samples(_parse(path, infos, blocks), truncated=not unpacked.complete)
    except OSError as error:
        raise PowerError(f"{path}: cannot read the samples: {error.strerror}") from error
    except LimitError as error:
        raise PowerError(f"{path}: {error}") from error


class _Unpacked:
    """The complete lines of a gzip stream, with little of it in memory."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.complete = False
        """Whether the stream had its end; known after the last line."""

    def blocks(self) -> Iterator[bytes]:
        """Complete lines with their ends, many at a time; the first separately. Text after the last
        line end is truncated, and may look like a number. Raises LimitError."""
        rest, unpacked, number = b"", 0, 0
        for data in self._data():
            unpacked += len(data)
            if unpacked > inputs.SAMPLES_BYTES:
                raise LimitError(f"unpacked more than {inputs.size(inputs.SAMPLES_BYTES)}")
            lines, end, rest = (rest + data).rpartition(b"\n")
            block = lines + end
            if block and not number:
                number = 1
                header, end, block = block.partition(b"\n")
                if len(header) > inputs.HEADER_BYTES:
                    raise LimitError("line 1 is too long for a header")
                yield header + end
            if block:
                number += block.count(b"\n")
                yield block
            if len(rest) > (inputs.SAMPLE_BYTES if number else inputs.HEADER_BYTES):
                what = "header"
                if number:
                    what = "sample"
                raise LimitError(f"line {number + 1} is too long for a {what}")

    def _data(self) -> Iterator[bytes]:
        """Unpacked data, up to the end or to the damaged chunk."""
        stream = zlib.decompressobj(wbits=GZIP_WBITS)
        begun = False
        while not stream.eof and (packed := self._file.read(CHUNK_BYTES * _CHUNKS)):
            before = stream.copy()
            try:
                data = stream.decompress(packed)
            except zlib.error:
                # After a power cut a file may end in zeros: the data before them is valid.
                yield from _up_to_damage(before, packed, begun)
                return
            begun = begun or bool(data)
            yield data
        self.complete = stream.eof


def _up_to_damage(stream: Any, packed: bytes, begun: bool) -> Iterator[bytes]:
    """Chunk by chunk. `begun`: data was unpacked before. Raises LimitError if no data can be."""
    for first in range(0, len(packed), CHUNK_BYTES):
        try:
            data = stream.decompress(packed[first : first + CHUNK_BYTES])
        except zlib.error as error:
            if not begun:
                raise LimitError(
                    f"not a gzip samples file ({error}); name the file a sampler wrote"
                ) from error
            return
        begun = begun or bool(data)
        yield data


def _parse_header(path: Path, line: str) -> list[MeterInfo]:
    try:
        header: dict[str, Any] = inputs.parse_json(line, inputs.HEADER_BYTES)
        version = header["schema_version"]
    except (ValueError, KeyError, TypeError) as error:
        raise PowerError(f"{path}: the first line is not a samples header: {error!r}") from error
    if version not in READABLE_VERSIONS:
        raise PowerError(
            f"{path}: written with schema_version {version}, this eeio reads {SCHEMA_VERSION}; "
            "use the eeio that wrote it or a newer one"
        )
    try:
        return list(map(_info, header["meters"]))
    except (KeyError, TypeError, ValueError, AttributeError, LimitError) as error:
        raise PowerError(f"{path}: the header's meters are damaged: {error!r:.200}") from error


def _info(body: Mapping[str, Any]) -> MeterInfo:
    info = MeterInfo(
        **{
            **body,
            "channels": tuple(map(_channel, body["channels"])),
            "calibrations": tuple(map(calibration.read, body.get("calibrations", ()))),
        }
    )
    if not isinstance(info.name, str) or not isinstance(info.spec, str) or info.kind not in KINDS:
        raise LimitError("a meter without name, spec or kind")
    q.PERIOD.checked(info.native_period_s, "native_period_s")
    q.PERIOD.checked(info.period_s, "period_s")
    return info


def _channel(body: Mapping[str, Any]) -> Channel:
    contents = body.get("contents") or {}
    known = Contents(tuple(contents.get("includes", ())), tuple(contents.get("leaves_out", ())))
    its_delay = None
    if body.get("delay") is not None:
        its_delay = delay.read(body["delay"])
    channel = Channel(**{**body, "contents": known, "delay": its_delay})
    _check_texts(channel)
    q.FRACTION.checked(channel.accuracy_relative, "accuracy_relative")
    q.ENERGY.checked(channel.resolution, "resolution")
    for value, quantity in ((channel.range_j, q.ENERGY), (channel.max_power_w, q.POWER)):
        if value is not None and quantity.checked(value, "range or highest power") == 0:
            raise LimitError("a range or highest power of 0")
    return channel


def _check_texts(channel: Channel) -> None:
    """Raises LimitError for a field that is no text, or not one of its values."""
    if not isinstance(channel.name, str) or channel.domain not in DOMAINS:
        raise LimitError("a channel without name or domain")
    if channel.quantity not in _SAMPLES or not isinstance(channel.in_domain_total, bool):
        raise LimitError("a channel without quantity")
    if not isinstance(channel.counts, str | None):
        raise LimitError("a channel with invalid counts")
    if not {*channel.contents.includes, *channel.contents.leaves_out} <= set(CONTENTS):
        raise LimitError("a channel with unknown contents")
    for text in (channel.remark, channel.doubt, channel.rule):
        if not isinstance(text, str | None):
            raise LimitError("a remark without text")


_SAMPLES = {"power_w": q.POWER_SAMPLE, "energy_j": q.COUNTER_SAMPLE}


_NUMBERS = b"0123456789+-.e"
_Read = tuple[int, list[float], list[list[float]]]
"""A meter, the times of its reads, and a column of values a channel."""


def _parse(
    path: Path, infos: Sequence[MeterInfo], blocks: Iterable[bytes]
) -> tuple[MeterSamples, ...]:
    columns = _Columns(path, infos)
    rest = b""
    for block in blocks:
        lines = rest + block
        # The last read may go on in the next block.
        end = _complete_reads(lines)
        rest = lines[end:]
        columns.add(lines[:end])
    columns.add(rest)
    return tuple(
        MeterSamples(info, times, values)
        for info, times, values in zip(infos, columns.times, columns.values, strict=True)
    )


def _complete_reads(lines: bytes) -> int:
    """Where the lines of the last time begin; the end where there is but one time."""
    begin = lines.rfind(b"\n", 0, -1) + 1
    time = lines[begin:].partition(b",")[0] + b","
    while begin:
        before = lines.rfind(b"\n", 0, begin - 1) + 1
        if not lines.startswith(time, before):
            return begin
        begin = before
    return len(lines)


class _Columns:
    """The columns of all meters, which grow line by line. Most lines are complete reads of plain
    numbers: those are added many at once, in a third of the time."""

    def __init__(self, path: Path, infos: Sequence[MeterInfo]) -> None:
        self._path = path
        self._number = 2
        """That of the next line in the file."""
        self._owners: dict[str, tuple[int, int, float, float]] = {}
        for m, info in enumerate(infos):
            for c, channel in enumerate(info.channels):
                quantity = _SAMPLES[channel.quantity]
                self._owners[str(len(self._owners))] = (m, c, quantity.least, quantity.most)
        self._names = [[n for n, o in self._owners.items() if o[0] == m] for m in range(len(infos))]
        self.times = [array("d") for _ in infos]
        self.values = [tuple(array("d") for _ in info.channels) for info in infos]
        self._last_s = [-math.inf for _ in infos]

    def add(self, lines: bytes) -> None:
        """Raises PowerError for a line that is damaged or that no meter wrote, LimitError for one
        that is too long."""
        count = lines.count(b"\n")
        reads = self._reads(lines, count)
        if reads is None:
            for line in lines[:-1].split(b"\n") if lines else ():
                self._add(line)
            return
        for m, times, columns in reads:
            self.times[m].extend(times)
            self._last_s[m] = times[-1]
            for column, found in zip(self.values[m], columns, strict=True):
                column.extend(found)
        self._number += count

    def _reads(self, lines: bytes, count: int) -> list[_Read] | None:
        """The values of lines that are complete reads of plain numbers; None if one is not, and
        then lines are parsed one by one."""
        if lines.translate(None, _NUMBERS) != b",,\n" * count:
            return None
        fields = lines.replace(b"\n", b",").decode("ascii").split(",")
        times, indexes, values = fields[0:-1:3], fields[1::3], fields[2::3]
        if len(self._names) == 1:
            reads = [self._reads_of(0, times, indexes, values)]
        else:
            if not self._owners.keys() >= set(indexes):
                return None
            reads = []
            for m, names in enumerate(self._names):
                mine = [index in names for index in indexes]
                if any(mine):
                    parts = (list(compress(part, mine)) for part in (times, indexes, values))
                    reads.append(self._reads_of(m, *parts))
        known = [read for read in reads if read is not None]
        if len(known) == len(reads):
            return known
        return None

    def _reads_of(
        self, m: int, time_texts: list[str], indexes: list[str], value_texts: list[str]
    ) -> _Read | None:
        names = self._names[m]
        if not names or not indexes or indexes != names * (len(indexes) // len(names)):
            return None
        firsts = time_texts[:: len(names)]
        if any(time_texts[n :: len(names)] != firsts for n in range(1, len(names))):
            return None
        try:
            times = [*map(float, firsts)]
            values = [*map(float, value_texts)]
        except ValueError:
            return None
        rising = all(map(lt, [self._last_s[m], *times[:-1]], times))
        if not rising or not q.TIMESTAMP.least <= times[0] <= times[-1] <= q.TIMESTAMP.most:
            return None
        columns = [values[n :: len(names)] for n in range(len(names))]
        for name, column in zip(names, columns, strict=True):
            _, _, least, most = self._owners[name]
            if not least <= min(column) <= max(column) <= most:
                return None
        return m, times, columns

    def _add(self, packed: bytes) -> None:
        if len(packed) > inputs.SAMPLE_BYTES:
            raise LimitError(f"line {self._number} is too long for a sample")
        line = packed.decode("utf-8", errors="replace")
        place = f"{self._path}: line {self._number}"
        try:
            time_text, index_text, value_text = line.split(",")
            time_s, (m, c, least, most) = float(time_text), self._owners[index_text]
            value = MISSING
            if value_text:
                value = float(value_text)
        except (ValueError, KeyError) as error:
            raise PowerError(f"{place} is not a sample: {line!r:.100}") from error
        known = q.TIMESTAMP.least <= time_s <= q.TIMESTAMP.most
        if not known or (value_text and not least <= value <= most):
            raise PowerError(f"{place}: time or value out of range: {line!r:.100}")
        if self._last_s[m] != time_s:
            if time_s < self._last_s[m]:
                raise PowerError(f"{place}: the time runs backwards: {line!r:.100}")
            self._last_s[m] = time_s
            self.times[m].append(time_s)
            for column in self.values[m]:
                column.append(MISSING)
        self.values[m][c][-1] = value
        self._number += 1


_LEAST_BEAT = 0.5
"""Readings of a counter closer than this share of its period are joined: the extra ones at the
edges of a window would show as spikes."""


@dataclass(frozen=True)
class DomainPower:
    """`watts[i]` is the power at `times_s[i]`, or of a counter the mean since `times_s[i - 1]`;
    NaN where it was not read. Monotonic seconds, rising."""

    domain: str
    times_s: Sequence[float]
    watts: Sequence[float]

    def between(self, start_s: float, end_s: float) -> "DomainPower":
        """The readings of a window."""
        low, high = bisect_left(self.times_s, start_s), bisect_right(self.times_s, end_s)
        return DomainPower(self.domain, self.times_s[low:high], self.watts[low:high])

    def median_w(self, start_s: float, end_s: float) -> float | None:
        """Of readings after `start_s` and up to `end_s`; None if there are none."""
        first, last = bisect_right(self.times_s, start_s), bisect_right(self.times_s, end_s)
        known = [watts for watts in self.watts[first:last] if not math.isnan(watts)]
        if known:
            return statistics.median(known)
        return None


def power_over_time(meter: MeterSamples) -> list[DomainPower]:
    """One a domain of the meter; none of a meter that was read once."""
    domains: dict[str, list[int]] = {}
    for index, channel in enumerate(meter.info.channels):
        if channel.in_domain_total:
            domains.setdefault(channel.domain, []).append(index)
    return [
        _of_domain(meter, domain, places)
        for domain, places in domains.items()
        if len(meter.times_s) > 1
    ]


def _of_domain(meter: MeterSamples, domain: str, places: Sequence[int]) -> DomainPower:
    """The sum of a domain's channels; NaN where one of them was not read."""
    counted = any(meter.info.channels[place].quantity == "energy_j" for place in places)
    least_s = 0.0
    if counted:
        least_s = _LEAST_BEAT * meter.info.period_s
    kept = _beats(meter.times_s, least_s)
    columns = [_watts(meter, place, kept) for place in places]
    watts = columns[0] if len(columns) == 1 else list(map(math.fsum, zip(*columns, strict=True)))
    return DomainPower(domain, _at(meter.times_s, kept), watts)


def _beats(times_s: Sequence[float], least_s: float) -> Sequence[int]:
    """The places of readings at least that far apart."""
    if not least_s:
        return range(len(times_s))
    kept = [0]
    for index in range(1, len(times_s)):
        if times_s[index] - times_s[kept[-1]] >= least_s:
            kept.append(index)
    return kept


def _at(column: Sequence[float], kept: Sequence[int]) -> Sequence[float]:
    if len(kept) == len(column):
        return column
    return [column[n] for n in kept]


def _watts(meter: MeterSamples, place: int, kept: Sequence[int]) -> Sequence[float]:
    """Mean power up to each reading; NaN for the first of a counter."""
    channel, column, times_s = meter.info.channels[place], meter.values[place], meter.times_s
    if channel.quantity == "power_w":
        least_w, most_w = possible_w(channel)
        return [w if least_w <= w <= most_w else math.nan for w in _at(column, kept)]
    watts = [math.nan]
    for before, after in pairwise(kept):
        joules = column[after] - column[before]
        if joules < 0:  # the counter restarted, or was set back: unrecoverable
            joules = joules + channel.range_j if channel.range_j is not None else math.nan
        watts.append(joules / (times_s[after] - times_s[before]))
    return watts
