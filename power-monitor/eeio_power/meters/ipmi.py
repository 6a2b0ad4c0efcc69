"""The power reading of a server's management controller (BMC), by IPMI.

`ipmi` (this machine, /dev/ipmi0) or `ipmi:lanplus,host=BMC,user=NAME` (over the network; the
password comes from the file `password_file=`, or from the environment variable IPMI_PASSWORD, never
from the spec, which is stored with the results).

One ipmitool lives as long as the meter and gets a line a reading through a pipe: a process for each
reading would cost 40 ms. It runs as `ipmitool ... exec FILE`, its `shell` without the line
editing, which reads byte by byte, repeats what it was told in as many pieces, and goes on at full
speed for ever when its input ends. The reading is DCMI's Get Power Reading (DCMI 1.5, 6.6.1:
`raw 0x2c 2 0xdc 1 0 0`; current power, u16 little endian, W). A BMC without DCMI is asked for a
sensor in watts instead (`sensor=`, or the only one, or the one that by its name is the whole
system's). After each line comes one that ipmitool refuses, naming the token in it and sending
nothing, so that an answer is never taken for that of an earlier question; if the token does not
come in time, the process is replaced. Under a sampler, a helper asks and keeps the answers
(`eeio_power.reader`).

Only these reading commands are sent. BMCs are rarely faster than once a second, some average over
ten seconds or more (`period_s=` says so); DCMI counts whole watts.
"""

import os
import re
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from eeio_limits.quantities import POWER_SAMPLE
from eeio_power.errors import PowerError
from eeio_power.meters import Channel, Finding, number_option
from eeio_power.reader import IPMI_NAME, QuestionReader, can_run, find_reader
from eeio_power.reading import Kind

OPTIONS = {
    "interface": "open (this machine, the default), lanplus or lan",
    "host": "the BMC's address (lanplus, lan)",
    "port": "its UDP port (default 623)",
    "user": "user name (lanplus, lan)",
    "password_file": "file whose first line is the password; default: $IPMI_PASSWORD",
    "cipher": "cipher suite of lanplus (default 3; naming it skips a slow negotiation)",
    "mode": "dcmi or sdr (default: dcmi, else sdr)",
    "sensor": "name of the sensor in watts, for sdr",
    "reader": "the program that asks ipmitool for us, or no: by ourselves",
    "period_s": "how often the BMC takes a new reading, s (default 1)",
}
ARGUMENT = "interface"

KIND: Kind = "measured"
NATIVE_PERIOD_S = 1.0
# Sensors in power supplies are in class 5 % or better; DCMI demands nothing.
ACCURACY = 0.05
RESOLUTION_W = 1.0
MAX_POWER_W = 32767.0
# A first answer over the network takes a handshake and, for sensors, the whole SDR repository.
FIRST_ANSWER_S = 20.0
ANSWER_S = 2.0
# A BMC of this machine that is well answers within milliseconds: `auto` waits no longer for others.
FIND_ANSWER_S = 2.0

# Its network function is no number: ipmitool says so and asks nobody.
TOKEN_LINE = "raw {} 0"
DCMI_POWER_READING = "raw 0x2c 2 0xdc 1 0 0"
DCMI_ACTIVE = 0x40

_HEX_LINE = re.compile(r"(?:\s*[0-9a-f]{2})+\s*")
_COMPLETION = re.compile(r"rsp=(0x[0-9a-f]{2})")
_WHOLE_SYSTEM = re.compile(
    r"pwr consumption|sys\w*[ _]?(input[ _]?)?p(o)?w(e)?r|total[ _]?p(o)?w(e)?r|power meter", re.I
)


@dataclass(frozen=True)
class DcmiReading:
    """DCMI 1.5, table 6-16."""

    current_w: int
    minimum_w: int
    maximum_w: int
    average_w: int
    period_ms: int
    active: bool


def parse_dcmi(lines: Sequence[str]) -> DcmiReading:
    """The bytes that `raw` printed. Raises PowerError for anything else."""
    text = " ".join(line for line in lines if _HEX_LINE.fullmatch(line))
    try:
        data = bytes.fromhex(text)
    except ValueError:  # white space that Python's patterns know, and fromhex does not
        data = b""
    if len(data) < 18 or data[0] != 0xDC:
        said = " ".join(lines).strip() or "nothing"
        raise PowerError(f"the BMC's power reading makes no sense: {said[:120]!r}")
    words = [int.from_bytes(data[k : k + 2], "little") for k in (1, 3, 5, 7)]
    period_ms = int.from_bytes(data[13:17], "little")
    return DcmiReading(words[0], words[1], words[2], words[3], period_ms, bool(data[17] & 0x40))


def watt_sensors(lines: Sequence[str]) -> dict[str, float]:
    """Sensors in watts of `ipmitool -c sdr ...` (`name,88,Watts,ok`), with their values."""
    sensors = {}
    for line in lines:
        words = line.split(",")
        if len(words) >= 4 and words[2].strip() == "Watts":
            with suppress(ValueError):
                sensors[words[0].strip()] = POWER_SAMPLE.of_text(words[1], words[0])
    return sensors


def whole_system(sensors: Sequence[str]) -> str | None:
    """The sensor that stands for the whole system; None if that is not clear."""
    if len(sensors) == 1:
        return sensors[0]
    likely = [name for name in sensors if _WHOLE_SYSTEM.search(name)]
    return likely[0] if len(likely) == 1 else None


class ToolShell:
    """`ipmitool ... exec` on pipes."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        # Into a pipe it would answer 4096 bytes at a time. /dev/stdin is not there before udev is.
        self._command = ["stdbuf", "-oL", *command, "exec", "/proc/self/fd/0"]
        self._environment = dict(environment)
        self._process: subprocess.Popen[bytes] | None = None
        self._buffer = b""
        self._heard: list[str] = []
        self._questions = 0

    def ask(self, line: str, timeout_s: float) -> list[str]:
        """What the tool prints for one line. Raises PowerError if it does not answer in time."""
        process = self._started()
        self._questions += 1
        token = f"eeio-{self._questions}"
        assert process.stdin is not None
        try:
            process.stdin.write(f"{line}\n{TOKEN_LINE.format(token)}\n".encode())
            process.stdin.flush()
            return self._until(token, time.monotonic() + timeout_s, timeout_s)
        except OSError as error:
            self.close()
            raise PowerError(f"ipmitool ended: {self._last_words()}") from error
        except PowerError:
            self.close()
            raise

    def descriptors(self) -> tuple[int, int, float | None]:
        """Its input and output for a helper, and how long it may take to log in, s, if it must.

        Raises OSError if it cannot be started.
        """
        first_s = FIRST_ANSWER_S if self._process is None else None
        process = self._started()
        assert process.stdin is not None and process.stdout is not None
        return process.stdin.fileno(), process.stdout.fileno(), first_s

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is None:
            return
        for stream in (process.stdin, process.stdout):
            with suppress(OSError):
                if stream is not None:
                    stream.close()
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            process.wait(1.0)

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._buffer = b""
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=self._environment,
                # No terminal: nothing may ask for a password, and Ctrl-C is for the command that
                # is measured.
                start_new_session=True,
            )
        return self._process

    def _until(self, token: str, deadline_s: float, timeout_s: float) -> list[str]:
        lines: list[str] = []
        self._heard = lines
        process = self._started()
        assert process.stdout is not None
        while True:
            while b"\n" in self._buffer:
                raw, _, self._buffer = self._buffer.partition(b"\n")
                line = raw.decode("utf-8", errors="replace").rstrip()
                if f'"{token}"' in line:
                    return lines
                lines.append(line)
            left_s = deadline_s - time.monotonic()
            if left_s <= 0.0 or not select.select([process.stdout], [], [], left_s)[0]:
                said = " ".join(lines).strip()[:120]
                raise PowerError(
                    f"the BMC did not answer in {timeout_s:g} s" + (f": {said}" if said else "")
                )
            data = os.read(process.stdout.fileno(), 65536)
            if not data:
                raise OSError(32, "ipmitool closed its output")
            self._buffer += data
            if len(self._buffer) > 1 << 20:
                raise PowerError("the BMC or ipmitool talks without end")

    def _last_words(self) -> str:
        words = [*self._heard, self._buffer.decode("utf-8", errors="replace")]
        return " ".join(words).strip()[:200] or "no reason given"


class IpmiMeter:
    """One BMC."""

    kind: Kind = KIND

    def __init__(
        self,
        spec: str,
        name: str,
        shell: ToolShell,
        *,
        mode: str | None = None,
        sensor: str | None = None,
        period_s: float = NATIVE_PERIOD_S,
        first_answer_s: float = FIRST_ANSWER_S,
        reader: Path | None = None,
    ) -> None:
        self.spec = spec
        self.name = name
        self.native_period_s = period_s
        self._shell = shell
        self._reader = reader
        self._timeout_s = first_answer_s
        try:
            self.sensor = None if sensor is None and self._has_dcmi(mode) else self._choose(sensor)
            self.read()
        except PowerError:
            shell.close()
            raise
        self._timeout_s = ANSWER_S
        label = "dcmi" if self.sensor is None else self.sensor
        self.channels: Sequence[Channel] = (
            Channel(
                name=f"ipmi:{label}",
                domain="system",
                quantity="power_w",
                accuracy_relative=ACCURACY,
                resolution=RESOLUTION_W,
                max_power_w=MAX_POWER_W,
            ),
        )

    def read(self) -> Sequence[float | None]:
        """W. Raises PowerError if the BMC is silent, says no, or talks nonsense."""
        return [self._judged(self._ask(self._question))]

    def batches(self, period_s: float) -> QuestionReader | None:
        """The helper's process, not yet started; None where there is no helper."""
        if self._reader is None:
            return None
        return QuestionReader(
            self._reader, self._shell, self._question, self._judged, period_s, self._timeout_s
        )

    @property
    def _question(self) -> str:
        return DCMI_POWER_READING if self.sensor is None else f'sdr get "{self.sensor}"'

    def _judged(self, lines: Sequence[str]) -> float:
        """W. Raises PowerError."""
        if self.sensor is None:
            reading = parse_dcmi(lines)
            if not reading.active:
                raise PowerError("the BMC's power measurement is switched off (DCMI state)")
            return float(reading.current_w)
        sensors = watt_sensors(lines)
        if self.sensor not in sensors:
            raise PowerError(f"the BMC gives no watts for sensor {self.sensor}")
        return sensors[self.sensor]

    def close(self) -> None:
        """End ipmitool."""
        self._shell.close()

    def _ask(self, line: str) -> list[str]:
        return self._shell.ask(line, self._timeout_s)

    def _has_dcmi(self, mode: str | None) -> bool:
        if mode is not None:
            return mode == "dcmi"
        lines = self._ask(DCMI_POWER_READING)
        # A completion code is a no; anything else is for the first reading to judge.
        return not any(_COMPLETION.search(line) for line in lines)

    def _choose(self, sensor: str | None) -> str:
        if sensor is not None:
            return sensor
        sensors = list(watt_sensors(self._ask("sdr elist full")))
        if not sensors:
            raise PowerError("the BMC has neither DCMI power readings nor a sensor in watts")
        chosen = whole_system(sensors)
        if chosen is None:
            raise PowerError(
                "several sensors in watts, and none is clearly the system's: "
                f"{', '.join(sensors)}; name it with sensor="
            )
        return chosen


def open_meter(
    spec: str, options: Mapping[str, str], root: Path, first_answer_s: float = FIRST_ANSWER_S
) -> IpmiMeter:
    """Start ipmitool and take a first reading. Raises PowerError with what is missing."""
    tool = shutil.which("ipmitool")
    if tool is None:
        raise PowerError(f"meter '{spec}': ipmitool is not there; apt-get install ipmitool")
    if shutil.which("stdbuf") is None:
        raise PowerError(f"meter '{spec}': stdbuf is not there; apt-get install coreutils")
    wanted = options.get("reader")
    if wanted not in (None, "no") and not can_run(Path(wanted or "")):
        raise PowerError(f"meter '{spec}': {wanted} cannot be run; leave reader= out, or mend it")
    mode = options.get("mode")
    if mode not in (None, "dcmi", "sdr"):
        raise PowerError(f"meter '{spec}': mode={mode}: it is dcmi or sdr")
    sensor = options.get("sensor")
    if sensor is not None and not re.fullmatch(r"[\w .()/+#%-]+", sensor):
        raise PowerError(f"meter '{spec}': sensor={sensor!r} is no sensor's name")
    period_s = number_option(spec, options, "period_s", above_zero=True) or NATIVE_PERIOD_S
    command, environment = _command(spec, tool, options, root)
    shell = ToolShell(command, environment)
    try:
        return IpmiMeter(
            spec, options.get("name", "ipmi"), shell, mode=mode, sensor=sensor, period_s=period_s,
            first_answer_s=first_answer_s, reader=_reader(wanted, root),
        )  # fmt: skip
    except PowerError as error:
        raise PowerError(f"meter '{spec}': {error}") from error


def find(root: Path) -> Finding:
    """A BMC of this machine that gives a power reading; others must be named."""
    device = root / "dev/ipmi0"
    if not device.exists():
        return Finding(
            "ipmi", KIND, ("system",), False, f"no {device}",
            "modprobe ipmi_si ipmi_devintf; or name a BMC on the network: "
            "--meter ipmi:lanplus,host=ADDRESS,user=NAME",
        )  # fmt: skip
    try:
        open_meter("ipmi", {}, root, FIND_ANSWER_S).close()
    except PowerError as error:
        remedy = "if it is only slow, name it: --meter ipmi; else see docs/meters.md, ipmi"
        return Finding("ipmi", KIND, ("system",), False, str(error), remedy)
    return Finding("ipmi", KIND, ("system",), True)


def _reader(wanted: str | None, root: Path) -> Path | None:
    if wanted == "no":
        return None
    if wanted is not None:
        return Path(wanted)
    found = find_reader(root, IPMI_NAME)
    return found if found is not None and can_run(found) else None


def _command(
    spec: str, tool: str, options: Mapping[str, str], root: Path
) -> tuple[list[str], dict[str, str]]:
    """ipmitool's command line and environment. Raises PowerError for options that do not fit."""
    interface = options.get("interface", "lanplus" if "host" in options else "open")
    environment = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
    environment |= {"LC_ALL": "C"}
    if interface == "open":
        if "host" in options:
            raise PowerError(f"meter '{spec}': a host needs ipmi:lanplus")
        device = root / "dev/ipmi0"
        if not device.exists():
            raise PowerError(f"meter '{spec}': no {device}; modprobe ipmi_si ipmi_devintf")
        return [tool, "-I", "open", "-c"], environment
    if interface not in ("lanplus", "lan"):
        raise PowerError(f"meter '{spec}': interface {interface}: it is open, lanplus or lan")
    host = options.get("host", "")
    if not re.fullmatch(r"[\w.:%-]+", host) or host.startswith("-"):
        raise PowerError(f"meter '{spec}': host={host}: give the BMC's address")
    # -N, -R: a dead BMC must fail within seconds.
    command = [tool, "-I", interface, "-H", host, "-p", options.get("port", "623"), "-c"]
    command += ["-N", "1", "-R", "1"]
    if interface == "lanplus":
        command += ["-C", options.get("cipher", "3")]
    if "user" in options:
        command += [f"-U{options['user']}"]
    if "password_file" in options:
        command += ["-f", options["password_file"]]
    elif "IPMI_PASSWORD" in os.environ:
        command += ["-E"]
        environment["IPMI_PASSWORD"] = os.environ["IPMI_PASSWORD"]
    else:
        raise PowerError(
            f"meter '{spec}': no password; give password_file=FILE or set IPMI_PASSWORD"
        )
    return command, environment
