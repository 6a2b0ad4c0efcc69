"""The samples of a run, and the file they are kept in.

The file is one gzip stream. Its first line is a JSON header; every other line is one value:

    {"schema_version": 2, "monotonic_s": ..., "utc": ..., "meters": [...]}
    monotonic_s,channel_index,value

`channel_index` counts through the channels of all meters in the header's order. The value stands
in the unit of the channel's quantity (W or J) and is empty where a read failed. The values of one
read share their time. A file that was cut off is good up to its last whole line.
"""

import json
import math
import zlib
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from eeio_limits import LimitError, inputs
from eeio_limits import quantities as q
from eeio_power.energy import meter_energy
from eeio_power.errors import PowerError
from eeio_power.meters import Channel, LoggedMeter, Meter
from eeio_power.plausibility import judged
from eeio_power.reading import CONTENTS, DOMAINS, KINDS, Contents, EnergyReading, Kind

SCHEMA_VERSION = 2
READABLE_VERSIONS = (1, 2)
"""Version 2 says more of a channel; all of version 1 is in it."""

MISSING = math.nan
"""Stands for a failed read in the arrays; never leaves them as a number."""

# zlib's own words for "a gzip header stands before the data".
GZIP_WBITS = 31

# Damage costs the rest of the chunk it stands in.
CHUNK_BYTES = 256


@dataclass(frozen=True)
class MeterInfo:
    """A meter as the samples need to know it: what it is and how often it was read."""

    name: str
    spec: str
    kind: Kind
    native_period_s: float
    period_s: float
    """The period it is sampled at, s: at least the native one."""
    channels: tuple[Channel, ...]


@dataclass(frozen=True)
class MeterSamples:
    """All samples of one meter: a column of values a channel, over one column of times."""

    info: MeterInfo
    times_s: Sequence[float]
    """Monotonic seconds, strictly rising."""
    values: tuple[Sequence[float], ...]
    """One column a channel, in the unit of its quantity; NaN where a read failed."""

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
        )

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
        return [
            (self.times_s[i], None if math.isnan(column[i]) else column[i])
            for i in range(low, high)
        ]


@dataclass(frozen=True)
class Samples:
    """What a sampler saw, in memory or read back from its file."""

    meters: tuple[MeterSamples, ...]
    truncated: bool = False
    """The file ends before the sampler closed it: it was killed, or the disk was full."""

    def energy(self, start_s: float, end_s: float) -> list[EnergyReading]:
        """The energy of a window on the monotonic clock, one reading a meter and power domain.

        Where meters contradict each other, all of them are doubtful: `eeio_power.plausibility`.
        """
        return judged(
            [reading for meter in self.meters for reading in meter.energy(start_s, end_s)]
        )


def meter_info(meter: Meter, rate_hz: float) -> MeterInfo:
    """The meter's description, sampled at `rate_hz` or as fast as it goes."""
    # Nobody slows down a log or a meter that pushes: what is missing, is missing from its own beat.
    own_pace = isinstance(meter, LoggedMeter) or bool(getattr(meter, "paces_itself", False))
    return MeterInfo(
        name=meter.name,
        spec=meter.spec,
        kind=meter.kind,
        native_period_s=meter.native_period_s,
        period_s=meter.native_period_s if own_pace else max(1.0 / rate_hz, meter.native_period_s),
        channels=tuple(meter.channels),
    )


def header_line(infos: Sequence[MeterInfo], monotonic_s: float, utc: str) -> str:
    """The first line of a samples file; the two times say when the sampler started."""
    meters = [asdict(info) for info in infos]
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


def load(path: Path) -> Samples:
    """Read a samples file back, up to the cut if it was cut off.

    Raises PowerError if the file cannot be read, is no samples file, or holds a damaged line.
    """
    try:
        with inputs.open_file(path) as file:
            unpacked = _Unpacked(file)
            lines = unpacked.lines()
            header = next(lines, None)
            if header is None:
                raise PowerError(
                    f"{path}: no header line, so no samples: the sampler was killed within its "
                    "first second, or this is not a samples file; run the experiment again"
                )
            infos = _parse_header(path, header)
            return Samples(_parse_lines(path, infos, lines), truncated=not unpacked.whole)
    except OSError as error:
        raise PowerError(f"{path}: cannot read the samples: {error.strerror}") from error
    except LimitError as error:
        raise PowerError(f"{path}: {error}") from error


class _Unpacked:
    """The whole lines of a gzip stream, without more of it in memory than needed."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.whole = False
        """Whether the stream had its end; known after the last line."""

    def lines(self) -> Iterator[str]:
        """Lines without their ends. What stands after the last end was cut in the middle, and may
        look like a number. Raises LimitError."""
        stream = zlib.decompressobj(wbits=GZIP_WBITS)
        rest, unpacked, number = b"", 0, 0
        while not stream.eof and (packed := self._file.read(CHUNK_BYTES)):
            try:
                data = stream.decompress(packed)
            except zlib.error as error:
                # After a power cut a file may end in zeros: what stands before them is good.
                if not unpacked:
                    raise LimitError(
                        f"not a gzip samples file ({error}); name the file a sampler wrote"
                    ) from error
                return
            unpacked += len(data)
            if unpacked > inputs.SAMPLES_BYTES:
                raise LimitError(f"unpacked more than {inputs.size(inputs.SAMPLES_BYTES)}")
            *whole, rest = (rest + data).split(b"\n")
            for line in whole:
                number += 1
                _check_length(line, number)
                yield line.decode("utf-8", errors="replace")
            _check_length(rest, number + 1)
        self.whole = stream.eof


def _check_length(line: bytes, number: int) -> None:
    if len(line) > (inputs.HEADER_BYTES if number == 1 else inputs.SAMPLE_BYTES):
        raise LimitError(f"line {number} is too long for a sample")


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
        return [_info(meter) for meter in header["meters"]]
    except (KeyError, TypeError, AttributeError, LimitError) as error:
        raise PowerError(f"{path}: the header's meters are damaged: {error!r:.200}") from error


def _info(body: Mapping[str, Any]) -> MeterInfo:
    info = MeterInfo(**{**body, "channels": tuple(_channel(c) for c in body["channels"])})
    if not isinstance(info.name, str) or not isinstance(info.spec, str) or info.kind not in KINDS:
        raise LimitError("a meter without name, spec or kind")
    q.PERIOD.checked(info.native_period_s, "native_period_s")
    q.PERIOD.checked(info.period_s, "period_s")
    return info


def _channel(body: Mapping[str, Any]) -> Channel:
    contents = body.get("contents") or {}
    told = Contents(tuple(contents.get("includes", ())), tuple(contents.get("leaves_out", ())))
    channel = Channel(**{**body, "contents": told})
    if not isinstance(channel.name, str) or channel.domain not in DOMAINS:
        raise LimitError("a channel without name or domain")
    if channel.quantity not in _SAMPLES or not isinstance(channel.in_domain_total, bool):
        raise LimitError("a channel without quantity")
    if channel.counts is not None and not isinstance(channel.counts, str):
        raise LimitError("a channel that counts nothing")
    if not {*told.includes, *told.leaves_out} <= set(CONTENTS):
        raise LimitError("a channel that holds what no machine has")
    if channel.remark is not None and not isinstance(channel.remark, str):
        raise LimitError("a remark without words")
    q.FRACTION.checked(channel.accuracy_relative, "accuracy_relative")
    q.ENERGY.checked(channel.resolution, "resolution")
    for value, quantity in ((channel.range_j, q.ENERGY), (channel.max_power_w, q.POWER)):
        if value is not None and quantity.checked(value, "range or highest power") == 0:
            raise LimitError("a range or highest power of 0")
    return channel


_SAMPLES = {"power_w": q.POWER_SAMPLE, "energy_j": q.COUNTER_SAMPLE}


def _parse_lines(
    path: Path, infos: Sequence[MeterInfo], lines: Iterable[str]
) -> tuple[MeterSamples, ...]:
    owners: dict[str, tuple[int, int, float, float]] = {}
    for m, info in enumerate(infos):
        for c, channel in enumerate(info.channels):
            quantity = _SAMPLES[channel.quantity]
            owners[str(len(owners))] = (m, c, quantity.least, quantity.most)
    times = [array("d") for _ in infos]
    columns = [tuple(array("d") for _ in info.channels) for info in infos]
    last_s = [-math.inf for _ in infos]
    earliest_s, latest_s = q.TIMESTAMP.least, q.TIMESTAMP.most
    for number, line in enumerate(lines, start=2):
        try:
            time_text, index_text, value_text = line.split(",")
            time_s, (m, c, least, most) = float(time_text), owners[index_text]
            value = float(value_text) if value_text else MISSING
        except (ValueError, KeyError) as error:
            raise PowerError(f"{path}: line {number} is not a sample: {line!r:.100}") from error
        if not (earliest_s <= time_s <= latest_s and (not value_text or least <= value <= most)):
            raise PowerError(f"{path}: line {number}: no such time or value can be: {line!r:.100}")
        if last_s[m] != time_s:
            if time_s < last_s[m]:
                raise PowerError(f"{path}: line {number}: the time runs backwards: {line!r:.100}")
            last_s[m] = time_s
            times[m].append(time_s)
            for column in columns[m]:
                column.append(MISSING)
        columns[m][c][-1] = value
    return tuple(MeterSamples(info, times[m], columns[m]) for m, info in enumerate(infos))
