"""PowerSensor3: a board with four pairs of a current and a voltage sensor, 20 kHz.

`powersensor3:/dev/ttyACM0[,pairs=NVMe+12V]` reads the pairs in use (or those named) on a USB serial
line. The protocol is that of the firmware and host library of nlesc-recruit/PowerSensor3, release
1.6.1 (commit c5017f98); the page DOCS/protocol.md of 2021 describes an older firmware.

Commands are one byte. eeio sends T (stop), V (version), R (read the configuration) with one byte
after each of its eight records, and S (start). It never sends W, Z or Y, which write the
configuration or reset the board: the calibration stays as `psconfig` stored it.

- A sample set is nine packets of two bytes: `1iiihhhh 0mllllll`, with the sensor i, the marker m
  and the value hhhhllllll. The first packet is a time stamp (i = 7, m = 1; µs modulo 1024), then
  the sensors 0 to 7. `FF 3F` as sensor 7 is level 1023; at the place of a time stamp it is a stop.
- value = (3.3 V x level / 1023 - vref) / sensitivity; the power of a pair is current x voltage.
- Power is computed for each sample set and averaged over the sampling period. A level of 1023, or
  of 0 of a current sensor that reads both directions, is out of range: the reading is missing.

The bytes go through `cat` into a pipe with room for seconds: a terminal has room for 11 ms only. A
board whose program was killed sends on until the next program stops it.

Each set must match the order of packets, so that lost bytes are found and the next time stamp
begins a set. A step between time stamps other than the usual one is a gap. Stamps repeat each
1.024 ms, so longer gaps are found by the clock of this machine: sets that arrive later than all of
the last seconds by a millisecond or more, for a second, follow a gap (`ArrivalClock`). A
reading with a gap in it is missing.

No accuracy is published: 2 % and one level of the current sensor are assumed.
"""

import errno
import fcntl
import math
import os
import re
import select
import statistics
import struct
import subprocess
import sys
import termios
import threading
import time
from array import array
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from operator import mul
from pathlib import Path

from eeio_power.delay import Delay
from eeio_power.errors import PowerError
from eeio_power.meters import (
    Batch,
    Channel,
    Detected,
    Reads,
    Verified,
    domain_option,
    first_reading,
    number_option,
)
from eeio_power.meters._stream import StreamThread
from eeio_power.reading import DOMAINS, UNKNOWN, Kind, only
from eeio_power.sysfs import read_text

OPTIONS = {
    "port": "the serial line, such as /dev/ttyACM0",
    "pairs": "names or numbers of sensor pairs, NAME+NAME (default: all in use)",
    "domain": f"power domain: {', '.join(DOMAINS)} (default device)",
    "accuracy": "uncertainty as a share (default 0.02)",
}
ARGUMENT = "port"

KIND: Kind = "measured"
VERIFIED_ON: Verified = "simulator"
READS = Reads(nodes=("dev/ttyACM*",))
DELAY = Delay(0.001, 0.0, 0.001, 0.0, "sets of 50 µs, read each few milliseconds")
"""Its mean is the sampling period: `averages_s` of the meter."""

PAIRS, SENSORS, SET_BYTES, RECORD_BYTES = 4, 8, 18, 41
REFERENCE_V, MOST_LEVEL, STAMPS = 3.3, 1023, 1024
ACCURACY = 0.02
_LEAST_V, _USUAL_V = 1.0, 12.0
"""A pair below the first when it is opened has no supply yet: the second is used for the step."""
STOP_S = 0.1
ANSWER_S = 1.0
"""Of the version and of each record; the board resets itself after 2 s without the next byte."""
FIRST_S = 0.05
"""The mean of a reading without a sampler."""
SILENT_S = 0.5
"""A stream without a byte for so long has stopped, and is started again."""
REOPEN_S = 1.0
_PAUSE_S = 0.05
"""Between two reads of the stream."""
_LEAST_BYTES = 255
"""So many wake `cat`: 1,400 times a second, and not with each packet of USB."""
_PIPE_BYTES = 1 << 20
_F_SETPIPE_SZ = 1031
_LONGEST_READ = 1 << 20
_FULL_READ = 1 << 16
_RECORD = struct.Struct("<16s16sffB")
_SET = re.compile(
    rb"(?:[\xf0-\xff][\x40-\x7f][\x80-\x8f][\x00-\x7f]"
    + b"".join(b"[%c-%c][\\x00-\\x3f]" % (0x80 | s << 4, 0x8F | s << 4) for s in range(1, SENSORS))
    + rb")+",
    re.DOTALL,
)
# The fixed bits of both bytes of a packet are cleared: hhhh in the first, llllll in the second.
_VALUE_BITS = bytes(b & 0x0F if b & 0x80 else b & 0x3F for b in range(256))
_LEVELS = tuple((word >> 8) << 6 | word & 0x3F for word in range(0x0F40))
_VERSION = re.compile(rb"(F4\d\d-[\w.]{1,20})((?:-[\w.]{1,20})*)\r?\n")


@dataclass(frozen=True)
class Sensor:
    """A record of the configuration."""

    type: str
    name: str
    vref_v: float
    sensitivity: float
    """V/A of a current sensor, V/V of a voltage sensor; negative: inverted."""
    in_use: bool

    def value(self, level: float) -> float:
        """A or V of an ADC level."""
        return (REFERENCE_V * level / MOST_LEVEL - self.vref_v) / self.sensitivity

    @property
    def step(self) -> float:
        """A or V of one level."""
        return abs(REFERENCE_V / MOST_LEVEL / self.sensitivity)

    def table(self) -> tuple[float, ...]:
        """A or V of the value bits of a packet; NaN of a level at the end of the range."""
        values = list(map(self.value, range(MOST_LEVEL + 1)))
        values[MOST_LEVEL] = math.nan
        if self.vref_v > 0.0:  # it reads both directions
            values[0] = math.nan
        return tuple(values[level] for level in _LEVELS)


@dataclass(frozen=True)
class Pair:
    """A current and a voltage sensor that are in use."""

    number: int
    current: Sensor
    voltage: Sensor

    @property
    def name(self) -> str:
        """As `psconfig` stored it, else its number."""
        return self.current.name or f"pair{self.number}"

    @property
    def most_w(self) -> float:
        """Both sensors at the end of their range, W."""
        amperes, volts = (
            max(abs(sensor.value(0)), abs(sensor.value(MOST_LEVEL)))
            for sensor in (self.current, self.voltage)
        )
        return amperes * volts


def parse_record(record: bytes, number: int) -> Sensor:
    """The 41 bytes of a sensor. Raises PowerError if the board was never configured."""
    kind, name, vref_v, sensitivity, in_use = _RECORD.unpack(record)
    if b"\0" not in kind or b"\0" not in name or not math.isfinite(vref_v + sensitivity):
        raise PowerError(
            f"sensor {number} is not configured; set up the board with psconfig of PowerSensor3"
        )
    return Sensor(_text(kind), _text(name), vref_v, sensitivity, bool(in_use))


def _text(padded: bytes) -> str:
    return padded.partition(b"\0")[0].decode("ascii", "replace").strip()


def pairs_in_use(sensors: Sequence[Sensor]) -> list[Pair]:
    """Raises PowerError for a pair in use with a sensitivity of 0, and if no pair is in use."""
    pairs = []
    for number, (current, voltage) in enumerate(zip(sensors[0::2], sensors[1::2], strict=True)):
        if current.in_use and voltage.in_use:
            pairs.append(Pair(number, current, voltage))
    for pair in pairs:
        # Less than 1 µV/A is no sensor: the lowest is 16 mV/A.
        if min(abs(pair.current.sensitivity), abs(pair.voltage.sensitivity)) < 1e-6:
            raise PowerError(
                f"pair {pair.number} ({pair.name}) has a sensitivity of 0; set it with psconfig of "
                "PowerSensor3"
            )
    if not pairs:
        raise PowerError("no pair is in use; set up the board with psconfig of PowerSensor3")
    return pairs


def _value_bits(sets: bytes) -> "array[int]":
    """Of each packet of sample sets: hhhh in the upper byte, llllll in the lower."""
    words = array("H", sets.translate(_VALUE_BITS))
    if sys.byteorder == "little":
        words.byteswap()
    return words


class ArrivalClock:
    """Times of the board's clock on the monotonic clock, by the arrivals that were fastest.

    Where time is missing from the board's clock, all later sets seem to arrive later by it.
    """

    LATE_S = 1.0
    """So long all arrivals are late after a gap; a busy machine reads some of them in time."""
    LEAST_ARRIVALS = 5
    LEAST_GAP_S = 0.9e-3
    HISTORY = 10
    """Seconds: the clocks drift by 50 µs a second at most."""

    def __init__(self) -> None:
        self._least_s: deque[float] = deque(maxlen=self.HISTORY)
        self._second_s = -math.inf
        self._late_s: list[tuple[float, float]] = []
        """Time and delay of the last arrivals, all of which were late."""
        self.gap_until_s = -math.inf
        """The first arrival behind the last gap."""

    @property
    def offset_s(self) -> float:
        """Monotonic time minus the board's."""
        return min(self._least_s)

    @property
    def is_late(self) -> bool:
        """Whether the last arrival was late: after a gap, or for another reason."""
        return bool(self._late_s)

    def arrived(self, now_s: float, board_s: float) -> float:
        """Note an arrival; the time that is missing from the board's clock, s, else 0."""
        delay_s = now_s - board_s
        if now_s - self._second_s >= 1.0:
            self._second_s = now_s
            self._least_s.append(delay_s)
        self._least_s[-1] = min(delay_s, self._least_s[-1])
        if delay_s - self.offset_s < self.LEAST_GAP_S:
            self._late_s = []
            return 0.0
        self._late_s.append((now_s, delay_s))
        since_s = self._late_s[0][0]
        if now_s - since_s < self.LATE_S or len(self._late_s) < self.LEAST_ARRIVALS:
            return 0.0
        # The first ones may be from before the gap, and late for another reason.
        later = [delay for time_s, delay in self._late_s if time_s - since_s >= self.LATE_S / 2]
        repeats = max(1, round((min(later) - self.offset_s) / (STAMPS * 1e-6)))
        missing_s = repeats * STAMPS * 1e-6
        least_s = self.offset_s + missing_s - self.LEAST_GAP_S
        self.gap_until_s = next(time_s for time_s, delay in self._late_s if delay >= least_s)
        self._late_s = []
        return missing_s


@dataclass(frozen=True)
class Reading:
    """Means of the pairs up to a time; NaN where one is missing."""

    time_s: float
    watts: tuple[float, ...]
    problem: str | None = None


class Averager:
    """Means of power over a fixed number of sample sets, out of the bytes of the stream."""

    def __init__(self, pairs: Sequence[Pair], set_s: float, period_s: float) -> None:
        self.readings: list[Reading] = []
        self.gaps = 0
        self._pairs = pairs
        self._tables = [
            (2 * p.number + 1, p.current.table().__getitem__, p.voltage.table().__getitem__)
            for p in pairs
        ]
        self._least_us, self._most_us = 0.5e6 * set_s, 1.5e6 * set_s
        self._count = max(1, int(period_s / set_s + 1e-6))
        self._last_s = -math.inf
        self.restart(None)

    def restart(self, problem: str | None) -> None:
        """A new stream, whose clock is not that of the one before. With a problem, the time in
        between is a missing reading."""
        self._rest = b""
        self._broken = False
        self._stamp: int | None = None
        self._board_us = 0
        self._clock = ArrivalClock()
        self._sums = [0.0] * len(self._pairs)
        self._taken = 0
        self._problem = problem
        """Of the time before the stream."""

    def feed(self, data: bytes, now_s: float) -> None:
        """Bytes of the stream that were received up to `now_s`."""
        data = self._rest + data
        before_us, end = self._board_us, 0
        pieces: list[tuple[bytes, bool]] = []
        for match in _SET.finditer(data):
            pieces.append((match[0], self._broken or match.start() != end))
            self._broken, end = False, match.end()
        self._rest = data[end:]
        if len(self._rest) >= SET_BYTES:
            # It does not begin with a set: the last bytes may begin one.
            self._rest, self._broken = self._rest[1 - SET_BYTES :], True
        decoded = [(*self._decoded(block), broken) for block, broken in pieces]
        if not decoded:
            return
        arrived_us = before_us + sum(sum(steps) for steps, _, _ in decoded)
        missing_s = self._clock.arrived(now_s, arrived_us / 1e6)
        if self._problem is not None:
            self._gap(self._problem)
            self._problem = None
        if missing_s:
            self._gap(f"{1e3 * missing_s:.0f} ms of the stream are missing", round(missing_s * 1e6))
        for steps, watts, broken in decoded:
            self._add(steps, watts, broken)

    def _decoded(self, block: bytes) -> tuple[list[int], list[list[float]]]:
        """The times since the set before, µs, and the power of each pair, of adjoining sets."""
        words = _value_bits(block)
        stamps = [_LEVELS[word] for word in words[:: SENSORS + 1]]
        first = self._stamp
        if first is None:
            first = stamps[0]
        steps = [(after - before) % STAMPS for before, after in pairwise((first, *stamps))]
        self._stamp = stamps[-1]
        watts = []
        for at, amperes, volts in self._tables:
            watts.append(
                list(
                    map(
                        mul,
                        map(amperes, words[at :: SENSORS + 1]),
                        map(volts, words[at + 1 :: SENSORS + 1]),
                    )
                )
            )
        return steps, watts

    def _add(self, steps: list[int], watts: list[list[float]], broken: bool) -> None:
        begin = 0
        is_first = self._board_us == 0
        if broken or not self._least_us < min(steps) <= max(steps) < self._most_us:
            for k, step in enumerate(steps):
                if self._least_us < step < self._most_us and not (broken and k == 0):
                    continue
                self._take(steps[begin:k], [column[begin:k] for column in watts])
                begin = k
                if not (is_first and k == 0):
                    self._gap("bytes of the stream are missing", step)
                    # Its power is that of a set; its time is in the gap.
                    steps[k] = 0
        self._take(steps[begin:], [column[begin:] for column in watts])

    def _take(self, steps: Sequence[int], watts: Sequence[Sequence[float]]) -> None:
        """Adds sets without a gap to the means."""
        ends_us = list(accumulate(steps, initial=self._board_us))
        begin = 0
        while begin < len(steps):
            end = min(len(steps), begin + self._count - self._taken)
            for k, column in enumerate(watts):
                self._sums[k] += sum(column[begin:end])
            self._taken += end - begin
            begin = end
            if self._taken == self._count:
                self._board_us = ends_us[end]
                self._emit([round(total / self._count, 6) for total in self._sums])
        self._board_us = ends_us[-1]

    def _gap(self, problem: str, step_us: int = 0) -> None:
        """Drops the sets before a gap: their mean would be of less time than that of others."""
        self.gaps += 1
        self._board_us += step_us
        self._emit([math.nan] * len(self._pairs), problem)

    def _emit(self, watts: Sequence[float], problem: str | None = None) -> None:
        if any(map(math.isnan, watts)) and problem is None:
            ends = [p.name for p, w in zip(self._pairs, watts, strict=True) if math.isnan(w)]
            problem = f"a sensor of {', '.join(ends)} is at the end of its range"
        # An arrival that is faster than all before moves the times back a little.
        self._last_s = max(self._board_us / 1e6 + self._clock.offset_s, self._last_s + 2e-6)
        self.readings.append(Reading(self._last_s, tuple(watts), problem))
        self._sums = [0.0] * len(self._pairs)
        self._taken = 0


class Board:
    """The serial line of a board, locked as its library locks it. Raises OSError if the line is
    gone, PowerError if another program has it or another device answers."""

    def __init__(self, path: str) -> None:
        self._pump: subprocess.Popen[bytes] | None = None
        self._fd = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise PowerError(
                    f"it is locked by {_owner(self._fd)}; end it, for a board is read by one "
                    "program at a time"
                ) from None
            self._make_raw()
            self._silence()
            self.version = self._version()
            self.sensors = self._configuration()
        except BaseException:
            os.close(self._fd)
            raise

    def _make_raw(self) -> None:
        try:
            chars = termios.tcgetattr(self._fd)[6]
            chars[termios.VMIN], chars[termios.VTIME] = 1, 0
            control = termios.CS8 | termios.CREAD | termios.CLOCAL
            speed = termios.B115200  # without effect on USB
            settings = [0, 0, control, 0, speed, speed, chars]
            termios.tcsetattr(self._fd, termios.TCSANOW, settings)
        except termios.error as error:
            raise OSError(error.args[0], "not a serial line") from error
        os.set_blocking(self._fd, True)

    def _set_least(self, count: int) -> None:
        """A blocking read waits for so many bytes."""
        try:
            settings = termios.tcgetattr(self._fd)
            settings[6][termios.VMIN] = count
            termios.tcsetattr(self._fd, termios.TCSANOW, settings)
        except termios.error as error:
            raise OSError(error.args[0], "the board was unplugged") from error

    def read(self) -> bytes:
        """The bytes that were received up to now; b"" if there are none."""
        source = self._fd
        if self._pump is not None:
            source = _output(self._pump)
        received = b""
        while len(received) < _LONGEST_READ and select.select([source], [], [], 0)[0]:
            data = os.read(source, _FULL_READ)
            if not data:
                raise OSError(errno.EIO, "the board was unplugged")
            received += data
            if len(data) < _FULL_READ:
                break
        return received

    def wait(self, limit_s: float) -> None:
        """Until a byte is received."""
        source = self._fd
        if self._pump is not None:
            source = _output(self._pump)
        select.select([source], [], [], limit_s)

    def send(self, command: bytes) -> None:
        """One of the commands T, V, R, s and S."""
        if not select.select([], [self._fd], [], ANSWER_S)[1]:
            raise OSError(errno.EIO, "the board accepts no data")
        os.write(self._fd, command)

    def _silence(self) -> None:
        """End a stream, also that of a program that was killed."""
        self.stop()
        if self._dropped():
            raise PowerError("it sends data without an end; is it a PowerSensor3?")

    def start(self) -> None:
        """Begin the stream. A terminal buffers 4 kB, which are 11 ms: `cat` empties it into a pipe
        with room for seconds, however busy this process is."""
        self._set_least(_LEAST_BYTES)
        self._pump = subprocess.Popen(
            ["cat"],
            stdin=self._fd,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,
        )
        with suppress(OSError):  # more than an ordinary user may have: then the kernel's size
            fcntl.fcntl(_output(self._pump), _F_SETPIPE_SZ, _PIPE_BYTES)
        self.send(b"S")

    def stop(self) -> None:
        """End the stream, and drop its bytes."""
        self.send(b"T")
        self._end_pump()
        self._set_least(1)
        self._dropped()

    def _end_pump(self) -> None:
        pump, self._pump = self._pump, None
        if pump is not None:
            pump.kill()
            pump.wait()
            if pump.stdout is not None:
                pump.stdout.close()

    def _dropped(self) -> int:
        """The number of bytes that are received while the board stops."""
        time.sleep(STOP_S)
        count = 0
        while count <= _LONGEST_READ and (data := self.read()):
            count += len(data)
        termios.tcflush(self._fd, termios.TCIFLUSH)
        return count

    def close(self) -> None:
        """End the stream, and unlock the line."""
        with suppress(OSError):
            self.send(b"T")
        self._end_pump()
        with suppress(OSError):
            os.close(self._fd)

    def _version(self) -> str:
        self.send(b"V")
        answer = self._received(lambda data: b"\n" in data or len(data) > 100)
        match = _VERSION.search(answer)
        if match is None:
            raise PowerError(
                f"no PowerSensor3 answers ({answer[:40]!r}); check that it is this "
                "line and its firmware 1.0 or later"
            )
        if b"DEMO" in match[2]:
            raise PowerError(
                "its firmware is a demo build, which sends invented values; install "
                "the usual firmware"
            )
        return match[1].decode("ascii")

    def _configuration(self) -> tuple[Sensor, ...]:
        self.send(b"R")
        sensors = []
        for number in range(SENSORS):
            record = self._received(lambda data: len(data) >= RECORD_BYTES)
            self.send(b"s")
            if len(record) != RECORD_BYTES:
                raise PowerError(
                    f"{len(record)} bytes instead of {RECORD_BYTES} of the "
                    f"configuration of sensor {number}; unplug the board, and plug it in again"
                )
            sensors.append(record)
        if (end := self._received(bool)) != b"D":
            raise PowerError(f"its configuration ends with {end[:20]!r}, not with D")
        return tuple(parse_record(record, number) for number, record in enumerate(sensors))

    def _received(self, is_complete: Callable[[bytes], bool]) -> bytes:
        answer, deadline_s = b"", time.monotonic() + ANSWER_S
        while not is_complete(answer) and (left_s := deadline_s - time.monotonic()) > 0.0:
            self.wait(left_s)
            answer += self.read()
        return answer


def _owner(descriptor: int) -> str:
    """The program that has locked a file, by /proc/locks."""
    inode = os.fstat(descriptor).st_ino
    with suppress(OSError, ValueError):
        for line in read_text(Path("/proc/locks")).splitlines():
            fields = line.split()
            if len(fields) >= 6 and fields[1] == "FLOCK" and fields[5].endswith(f":{inode}"):
                process = int(fields[4])
                name = read_text(Path("/proc") / str(process) / "comm")
                return f"{name[:40]} (process {process})"
    return "another program, such as psrun or another eeio"


def _output(process: "subprocess.Popen[bytes]") -> int:
    assert process.stdout is not None
    return process.stdout.fileno()


class StreamBatches(StreamThread):
    """A thread that reads the stream and averages it over a period, until it is fetched."""

    def __init__(self, meter: "PowerSensor3Meter", period_s: float) -> None:
        super().__init__()
        self._meter = meter
        self._period_s = period_s
        self._averager = Averager(meter.pairs, meter.set_s, period_s)
        self._changed = threading.Lock()
        self._error: str | None = None

    def start(self) -> None:
        """Begin the stream."""
        self.begin(self._meter.name, self._run)

    def fetch(self) -> Batch:
        """The means since the last call. Raises PowerError if there are none and the board does not
        answer."""
        self.ended = self._finishes
        with self._changed:
            readings, self._averager.readings = self._averager.readings, []
            error = self._error
        if not readings and error is not None:
            raise PowerError(error)
        times_s = [reading.time_s for reading in readings]
        columns = list(zip(*(reading.watts for reading in readings), strict=True))
        problems = {}
        for k, r in enumerate(readings):
            if r.problem is not None:
                problems[k] = r.problem
        empty: list[Sequence[float]] = [[] for _ in self._meter.pairs]
        return Batch(times_s, times_s, tuple(columns or empty), problems)

    def wait(self, limit_s: float) -> None:
        """Until the next mean."""
        time.sleep(min(limit_s, max(self._period_s, _PAUSE_S)))

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                board = self._meter.board()
                board.start()
                self._stream(board)
                board.stop()
            except (OSError, PowerError) as error:
                self._meter.close()
                reason = f"{self._meter.port}: {_reason(error)}"
                with self._changed:
                    self._error = reason
                    self._averager.restart(reason)
                self._stop.wait(REOPEN_S)

    def _stream(self, board: Board) -> None:
        """Reads until the end. Raises OSError, PowerError where the stream ends before."""
        last_s = time.monotonic()
        while not self._stop.wait(_PAUSE_S):
            data, now_s = board.read(), time.monotonic()
            if data:
                last_s = now_s
                with self._changed:
                    self._averager.feed(data, now_s)
                    self._error = None
            elif now_s - last_s > SILENT_S:
                raise PowerError("the stream has stopped; it is started again")


def _reason(error: Exception) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)


@dataclass
class PowerSensor3Meter:
    """The pairs of one board."""

    spec: str
    name: str
    port: str
    pairs: tuple[Pair, ...]
    set_s: float
    """Between two sample sets, as measured when it was opened."""
    channels: Sequence[Channel] = ()
    kind: Kind = KIND
    _board: Board | None = field(default=None, repr=False)

    @property
    def native_period_s(self) -> float:
        return self.set_s

    def averages_s(self, period_s: float) -> float:
        """The time that a reading is the mean of, if a sampler reads it with a period."""
        return max(1, int(period_s / self.set_s + 1e-6)) * self.set_s

    def read(self) -> Sequence[float | None]:
        """Mean W of each pair over the next 50 ms. Raises PowerError or OSError without them."""
        try:
            board = self.board()
            averager = Averager(self.pairs, self.set_s, FIRST_S)
            _capture(board, lambda data, now_s: self._first(averager, data, now_s))
        except (OSError, PowerError):
            self.close()
            raise
        (reading, *_) = averager.readings
        if reading.problem is not None:
            raise PowerError(f"{self.port}: {reading.problem}")
        return reading.watts

    @staticmethod
    def _first(averager: Averager, data: bytes, now_s: float) -> bool:
        averager.feed(data, now_s)
        return bool(averager.readings)

    def batches(self, period_s: float) -> StreamBatches:
        """The stream as means of that period."""
        return StreamBatches(self, period_s)

    def board(self) -> Board:
        """The open line; opened again after a failure. Raises OSError, PowerError, also if the
        calibration is another one than before."""
        if self._board is None:
            board = Board(self.port)
            try:
                if not set(self.pairs) <= set(pairs_in_use(board.sensors)):
                    raise PowerError("its calibration has changed; start eeio again")
            except PowerError:
                board.close()
                raise
            self._board = board
        return self._board

    def close(self) -> None:
        """End the stream."""
        if self._board is not None:
            self._board.close()
            self._board = None


def _capture(board: Board, is_enough: Callable[[bytes, float], bool]) -> None:
    """Streams until `is_enough` of the received bytes. Raises PowerError if they do not come."""
    board.start()
    deadline_s = time.monotonic() + ANSWER_S
    while (left_s := deadline_s - time.monotonic()) > 0.0:
        board.wait(left_s)
        if (data := board.read()) and is_enough(data, time.monotonic()):
            board.stop()
            return
    raise PowerError(f"no sample sets in {ANSWER_S:g} s; unplug the board, and plug it in again")


def measured_set_s(block: bytes) -> float:
    """The time between two of the sample sets of a stream, s, by their time stamps: 50 µs with an
    STM32F411, 57.1 µs with an F401, 29.3 µs with an F407. Raises PowerError."""
    longest = max(_SET.findall(block), key=len, default=b"")
    stamps = [_LEVELS[word] for word in _value_bits(longest)[:: SENSORS + 1]]
    steps = [(after - before) % STAMPS for before, after in pairwise(stamps)]
    usual_us = 0.0
    if steps:
        usual_us = statistics.median(steps)
    near = [step for step in steps if 0.5 * usual_us < step < 1.5 * usual_us]
    if not near or len(near) < 0.9 * len(steps):
        raise PowerError("its time stamps do not rise evenly; is it a PowerSensor3?")
    return round(statistics.fmean(near) * 1e-6, 7)


def mean_volts(block: bytes, pair: Pair) -> float:
    """The mean voltage of a pair in a stream, V; NaN if it is out of range."""
    words = _value_bits(b"".join(_SET.findall(block)))
    column = words[2 * pair.number + 2 :: SENSORS + 1]
    return statistics.fmean(map(pair.voltage.table().__getitem__, column))


def open_meter(spec: str, options: Mapping[str, str], root: Path) -> PowerSensor3Meter:
    """Read the calibration and the first sample sets. Raises PowerError if no board answers."""
    port = options.get("port")
    if port is None:
        raise PowerError(f"meter '{spec}': which line? Such as powersensor3:/dev/ttyACM0")
    domain = domain_option(spec, {"domain": "device", **options})
    accuracy = number_option(spec, options, "accuracy")
    name = options.get("name", "powersensor3")
    try:
        board = Board(port)
    except OSError as error:
        raise PowerError(
            f"meter '{spec}': {port}: {_reason(error)}; plug in the board, or join the line's "
            "group (dialout)"
        ) from error
    except PowerError as error:
        raise PowerError(f"meter '{spec}': {port}: {error}") from error
    try:
        pairs = _chosen(pairs_in_use(board.sensors), options.get("pairs"))
        block = bytearray()
        sets = round(FIRST_S / 50e-6)

        def is_enough(data: bytes, now_s: float) -> bool:
            block.extend(data)
            return len(block) >= sets * SET_BYTES

        _capture(board, is_enough)
        set_s = measured_set_s(bytes(block))
        volts = [mean_volts(bytes(block), pair) for pair in pairs]
    except (OSError, PowerError) as error:
        board.close()
        raise PowerError(f"meter '{spec}': {port}: {_reason(error)}") from error
    channels = [
        Channel(
            name=f"{name}:{pair.name}",
            domain=domain,
            quantity="power_w",
            accuracy_relative=ACCURACY if accuracy is None else accuracy,
            # One level of the current either way: the quantum is double that.
            resolution=2.0 * pair.current.step * (abs(v) if abs(v) >= _LEAST_V else _USUAL_V),
            max_power_w=pair.most_w,
            contents=only("drives") if domain == "device" else UNKNOWN,
            remark=f"pair {pair.number} ({pair.current.type}) of {board.version}, {abs(v):.2f} V",
        )
        for pair, v in zip(pairs, volts, strict=True)
    ]
    meter = PowerSensor3Meter(spec, name, port, tuple(pairs), set_s, channels, _board=board)
    return first_reading(meter)


def _chosen(pairs: Sequence[Pair], named: str | None) -> list[Pair]:
    """The pairs of `pairs=`, by name or number. Raises PowerError for others, and if names of
    channels would be equal."""
    chosen = list(pairs)
    if named is not None:
        chosen = []
        for text in named.split("+"):
            named_so = [p for p in pairs if p.name == text.strip()]
            named_so = named_so or [p for p in pairs if str(p.number) == text.strip()]
            if len(named_so) != 1 or named_so[0] in chosen:
                known = ", ".join(f"{p.name} (number {p.number})" for p in pairs)
                raise PowerError(f"pairs={named:.80}: '{text}' is not one of its pairs: {known}")
            chosen += named_so
    names = [pair.name for pair in chosen]
    if len(set(names)) < len(names):
        raise PowerError(
            f"several pairs have the name {max(names, key=names.count)}; give them different names "
            "with psconfig, or select one by its number with pairs="
        )
    return chosen


def find(root: Path) -> Detected:
    """Serial lines a board may be on. No data is written to them: another device may be there."""
    lines = sorted(f"/{line.relative_to(root)}" for line in (root / "dev").glob("ttyACM*"))
    if not lines:
        return Detected(
            "powersensor3",
            KIND,
            ("device",),
            False,
            "no USB serial line (/dev/ttyACM*)",
            "plug in the board (USB 0483:5740); its driver is cdc_acm",
        )
    return Detected(
        "powersensor3",
        KIND,
        ("device",),
        False,
        f"USB serial lines found ({', '.join(lines)}); the connected devices are unknown",
        f"if it is the board, name it: --meter powersensor3:{lines[0]}",
    )
