"""The power reading of a server's management controller (BMC), by IPMI.

`ipmi` (this machine: /dev/ipmi0, /dev/ipmi/0 or /dev/ipmidev/0) or
`ipmi:lanplus,host=BMC,user=NAME` (over the network; the password comes from the file
`password_file=`, or from the environment variable IPMI_PASSWORD, never from the spec, which is
stored with the results).

One ipmitool process runs as long as the meter and gets one line per reading through a pipe: a
process per reading would cost 40 ms. It runs as `ipmitool ... exec FILE`. That is its `shell`
without line editing, which reads byte by byte, echoes its input in as many pieces, and loops at
full speed when its input ends. The reading is DCMI's Get Power Reading (DCMI 1.5, 6.6.1: `raw 0x2c
2 0xdc 1 0 0`; current power, u16 little endian, W). If a BMC has no DCMI, or its DCMI measurement
is off or reports 32767 W or more, a sensor in watts is read instead: `sensor=`, or the system's by
its name and the values of the others (`eeio_power.system_sensor`); the supplies' inputs are added
if all of them answer. In a chassis with several machines DCMI may report the power of all: names
and values of the sensors and SMBIOS's chassis type show it. A sensor without a reading now (`ns`)
counts as present. `mode=nm` queries the Intel Node Manager instead (Get Node Manager Statistics,
global power: platform, CPU subsystem, memory). Each line is followed by an invalid one with a
token. ipmitool rejects it with the token and sends no request, so an answer is never taken for that
of an earlier request. If the token does not come in time, the process is replaced. Under a sampler,
a helper sends the requests and stores the answers (`eeio_power.helper_process`).

Only these reading commands are sent. BMCs are rarely faster than once a second, some average over
ten seconds or more (see `period_s=`); DCMI reports integer watts.

A BMC's answers as printed by ipmitool: power readings, and which sensors are the system's.

One ipmitool process on pipes, with one line per request, for the lifetime of its meter.
"""

import os
import re
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from eeio.units.quantities import POWER_SAMPLE
from eeio_power.delay import BMC
from eeio_power.errors import PowerError
from eeio_power.helper_process import IPMI_NAME, QuestionReader, find_reader, why_not_run
from eeio_power.meters import (
    Channel,
    Detected,
    Measured,
    Reads,
    Verified,
    contents_of,
    number_option,
)
from eeio_power.reading import MACHINE, Contents, Domain, Kind, all_but, only
from eeio_power.sysfs import SHARED, chassis_of
from eeio_power.system_sensor.controller import against, around_dcmi, complete_system
from eeio_power.system_sensor.rules import NAMED
from eeio_power.system_sensor.sensor import Choice
from eeio_power.system_sensor.sensor_names import NO_POWER_W, domain_of, likely, listed, possible_w

_NM_INTEL = bytes.fromhex("570100")
_NM_ENABLED, _NM_VALID = 0x10, 0x40
_HEX_LINE = re.compile(r"(?:\s*[0-9a-f]{2})+\s*")
# A supply by its number: PS1 Input Power, PSU2_PIN, Power Supply 1, PW2 Consumption.
_SUPPLY = re.compile(r"(ps|psu|power[ _]?supply|pw|pwr[ _]?supply)[ _#-]*[0-9]+.*", re.I)
_POWER_WORD = re.compile(r"p(o)?w(e)?r|watt|\bp(in|out)\b|consum", re.I)


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
    text = " ".join(filter(_HEX_LINE.fullmatch, lines))
    try:
        data = bytes.fromhex(text)
    except ValueError:  # white space that Python's patterns know, and fromhex does not
        data = b""
    if len(data) < 18 or data[0] != 0xDC:
        output = " ".join(lines).strip() or "nothing"
        raise PowerError(f"the BMC's power reading makes no sense: {output[:120]!r}")
    watts = [int.from_bytes(data[k : k + 2], "little") for k in (1, 3, 5, 7)]
    period_ms = int.from_bytes(data[13:17], "little")
    return DcmiReading(watts[0], watts[1], watts[2], watts[3], period_ms, bool(data[17] & 0x40))


@dataclass(frozen=True)
class NodeManagerReading:
    """Get Node Manager Statistics, mode 1."""

    current_w: int
    period_s: int
    active: bool


def parse_node_manager(lines: Sequence[str]) -> NodeManagerReading:
    """The bytes that `raw` printed: Intel's number; current, minimum, maximum and average power,
    u16 little endian, W; time stamp; statistics period, s; state. Raises PowerError otherwise."""
    text = " ".join(filter(_HEX_LINE.fullmatch, lines))
    try:
        data = bytes.fromhex(text)
    except ValueError:
        data = b""
    if len(data) < 20 or data[:3] != _NM_INTEL:
        output = " ".join(lines).strip() or "nothing"
        raise PowerError(f"the Node Manager's statistics make no sense: {output[:120]!r}")
    period_s = int.from_bytes(data[15:19], "little")
    active = data[19] & (_NM_ENABLED | _NM_VALID) == _NM_ENABLED | _NM_VALID
    return NodeManagerReading(int.from_bytes(data[3:5], "little"), period_s, active)


def watt_sensors(lines: Sequence[str]) -> dict[str, float | None]:
    """Sensors in watts of `ipmitool -c sdr ...` (`name,88,Watts,ok`), with their values.

    None for one without a reading (`PS2 Input Power,,,ns`): ipmitool prints no unit then, so the
    name decides whether it is one. None, too, for a name of several sensors: the source of a
    reading is ambiguous.
    """
    sensors: dict[str, float | None] = {}
    for line in lines:
        fields = line.split(",")
        if len(fields) < 4:
            continue
        name, value, unit, state = (field.strip() for field in fields[:4])
        value_w: float | None = None
        if unit == "Watts" and value:
            try:
                value_w = possible_w(POWER_SAMPLE.of_text(value, name))
            except ValueError:
                continue
        elif value or state != "ns" or not (unit == "Watts" or _may_be_watts(name)):
            continue
        sensors[name] = None if name in sensors else value_w
    return sensors


def _may_be_watts(name: str) -> bool:
    return bool(_POWER_WORD.search(name)) or bool(_SUPPLY.fullmatch(name))


# A first answer over the network takes a handshake and, for sensors, the complete SDR repository.
FIRST_ANSWER_S = 20.0
# Its network function is not a number: ipmitool reports that and sends no request.
TOKEN_LINE = "raw {} 0"


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

    def query(self, line: str, timeout_s: float) -> list[str]:
        """The tool's output for one line. Raises PowerError if it does not answer in time."""
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
            raise PowerError(f"ipmitool ended: {self._last_output()}") from error
        except PowerError:
            self.close()
            raise

    def descriptors(self) -> tuple[int, int, float | None]:
        """Its input and output for a helper, and how long it may take to log in, s, if it must.

        Raises OSError if it cannot be started.
        """
        first_s = None
        if self._process is None:
            first_s = FIRST_ANSWER_S
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
                # No terminal: a password prompt is impossible, and Ctrl-C is for the measured
                # command.
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
                reason = f"the BMC did not answer in {timeout_s:g} s"
                output = " ".join(lines).strip()[:120]
                if output:
                    reason += f": {output}"
                raise PowerError(reason)
            data = os.read(process.stdout.fileno(), 65536)
            if not data:
                raise OSError(32, "ipmitool closed its output")
            self._buffer += data
            if len(self._buffer) > 1 << 20:
                raise PowerError("output of the BMC or ipmitool exceeds the limit")

    def _last_output(self) -> str:
        lines = [*self._heard, self._buffer.decode("utf-8", errors="replace")]
        return " ".join(lines).strip()[:200] or "no reason given"


OPTIONS = {
    "interface": "open (this machine, the default), lanplus or lan",
    "host": "the BMC's address (lanplus, lan)",
    "port": "its UDP port (default 623)",
    "user": "user name (lanplus, lan)",
    "password_file": "file with the password in its first line; default: $IPMI_PASSWORD",
    "cipher": "cipher suite of lanplus (default 3; naming it skips a slow negotiation)",
    "mode": "dcmi, sdr or nm (Intel Node Manager; default: dcmi, else sdr)",
    "sensor": "name of the sensor in watts, for sdr",
    "reader": "helper program that runs ipmitool, or no: run it directly",
    "period_s": "how often the BMC takes a new reading, s (default 1)",
}
ARGUMENT = "interface"
DELAY = BMC
KIND: Kind = "measured"
VERIFIED_ON: Verified = "simulator"
MEASURES: Measured = "this machine"
READS = Reads(nodes=("dev/ipmi0", "dev/ipmi/0", "dev/ipmidev/0"), programs=("ipmitool", "stdbuf"))
NATIVE_PERIOD_S = 1.0
# Sensors in power supplies are in class 5 % or better; DCMI has no requirement.
ACCURACY = 0.05
RESOLUTION_W = 1.0
MAX_POWER_W = NO_POWER_W - 1.0
DEVICES = (Path("dev/ipmi0"), Path("dev/ipmi/0"), Path("dev/ipmidev/0"))
"""Devices that ipmitool's `open` interface tries, in that order."""
ANSWER_S = 2.0
# A BMC of this machine that is well answers within milliseconds: `auto` waits no longer for others.
FIND_ANSWER_S = 2.0
DCMI_POWER_READING = "raw 0x2c 2 0xdc 1 0 0"
# Intel Intelligent Power Node Manager 3.0, External Interface Specification: Get Node Manager
# Statistics (net function 0x2e, command 0xc8), mode 1 (global power), by domain. `-b 0 -t 0x2c` of
# ipmitool addresses the Management Engine, which answers it.
NM_ADDRESS = ("-b", "0", "-t", "0x2c")
NM_STATISTICS = "raw 0x2e 0xc8 0x57 0x01 0x00 0x01 {domain} 0x00"
NM_DOMAINS: Mapping[int, tuple[str, Domain]] = {
    0: ("platform", "system"),
    1: ("cpu", "package"),
    2: ("memory", "dram"),
}
_COMPLETION = re.compile(r"rsp=(0x[0-9a-f]{2})")


@dataclass(frozen=True)
class _Source:
    """A request to a BMC, and the meaning of its answer."""

    question: str
    label: str
    domain: Domain
    contents: Contents
    judge: Callable[[Sequence[str]], float]
    remark: str | None = None
    doubt: str | None = None
    rule: str | None = None


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
        chassis: str | None = None,
    ) -> None:
        self.spec = spec
        self._chassis = chassis
        self.name = name
        self.native_period_s = period_s
        self._shell = shell
        self._reader = reader
        self._timeout_s = first_answer_s
        try:
            self._sources = self._chosen(mode, sensor)
            self.read()
        except PowerError:
            shell.close()
            raise
        self._timeout_s = ANSWER_S
        self.channels: Sequence[Channel] = [
            Channel(
                name=f"ipmi:{source.label}",
                domain=source.domain,
                quantity="power_w",
                accuracy_relative=ACCURACY,
                resolution=RESOLUTION_W,
                max_power_w=MAX_POWER_W,
                contents=source.contents,
                remark=source.remark,
                doubt=source.doubt,
                rule=source.rule,
            )
            for source in self._sources
        ]

    def read(self) -> Sequence[float | None]:
        """W. Raises PowerError if the BMC does not answer, reports an error, or sends garbage."""
        return [source.judge(self._query(source.question)) for source in self._sources]

    def batches(self, period_s: float) -> QuestionReader | None:
        """The helper's process, not yet started; None where there is no helper, or several
        questions make a reading."""
        if self._reader is None or len(self._sources) > 1:
            return None
        (source,) = self._sources
        return QuestionReader(
            self._reader, self._shell, source.question, source.judge, period_s, self._timeout_s
        )

    def close(self) -> None:
        """End ipmitool."""
        self._shell.close()

    def _query(self, line: str) -> list[str]:
        return self._shell.query(line, self._timeout_s)

    def _chosen(self, mode: str | None, sensor: str | None) -> tuple[_Source, ...]:
        if mode == "nm":
            return self._node_manager()
        if sensor is not None:
            return (replace(self._named(sensor), rule=f"{NAMED}: {sensor}"),)
        remark = None
        if mode != "sdr":
            lines = self._query(DCMI_POWER_READING)
            # A completion code is an error; anything else is a reading, or garbage to report.
            rejected = any(map(_COMPLETION.search, lines))
            reading = None
            if not rejected:
                reading = parse_dcmi(lines)
            is_possible = reading is None or possible_w(reading.current_w) is not None
            if mode == "dcmi":
                return (replace(_DCMI, rule=f"{NAMED}: DCMI"),)
            if reading is not None and reading.active and is_possible:
                return (self._dcmi(float(reading.current_w)),)
            if reading is not None:
                remark = _SWITCHED_OFF
                if not is_possible:
                    remark = _no_power("DCMI", reading.current_w)
        return (self._by_sensors(remark),)

    def _by_sensors(self, remark: str | None) -> _Source:
        """The sensors that measure the system; the remark is why DCMI is not read. Raises
        PowerError if that is unclear."""
        sensors = watt_sensors(self._query("sdr elist full"))
        if not sensors:
            if remark:
                raise PowerError(f"{remark}, and no sensor reports watts")
            raise PowerError("the BMC has neither DCMI power readings nor a sensor in watts")
        chosen = complete_system(sensors)
        if not chosen.sensors:
            cause = ""
            if remark:
                cause = f"{remark}; "
            raise PowerError(
                f"{cause}of the sensors in watts ({listed(sensors)}) {chosen.reason}; "
                f"if one measures the system, name it: ipmi,sensor={likely(sensors)}"
            )
        source = replace(_sensors(chosen.sensors, remark, chosen), rule=chosen.text(list(sensors)))
        what = f"the power of {', '.join(chosen.sensors)}"
        remedy = f"; if it does not, name it: ipmi,sensor={source.label}"
        return self._of_chassis(source, what, remedy)

    def _of_chassis(self, source: _Source, what: str, remedy: str) -> _Source:
        """The source as the machine's SMBIOS has its chassis."""
        if self._chassis is None or source.contents != MACHINE:
            return source
        if self._chassis == "blade":
            return replace(source, contents=all_but("fans", "supply"))
        return replace(source, doubt=source.doubt or SHARED.format(what=what) + remedy)

    def _named(self, sensor: str) -> _Source:
        """The sensor that the user named, with a note if others contradict it."""
        source = _sensors((sensor,), None, None)
        if source.domain != "system":
            return source
        with suppress(PowerError):  # a BMC need not list its sensors in time
            note = against(sensor, watt_sensors(self._query("sdr elist full")))
            return replace(source, remark=note)
        return source

    def _dcmi(self, dcmi_w: float) -> _Source:
        """DCMI, or the sensor of this node if DCMI reports the power of its chassis."""
        sensors: dict[str, float | None] = {}
        with suppress(PowerError):  # a BMC need not have sensors, nor list them in time
            sensors = watt_sensors(self._query("sdr elist full"))
        dcmi = around_dcmi(dcmi_w, sensors)
        if dcmi.sensors:
            reason = f"DCMI reports {dcmi_w:g} W, the power of the chassis"
            source = _sensors(dcmi.sensors, reason, dcmi)
            return replace(source, rule=dcmi.text([*sensors, "DCMI"]))
        source = replace(_DCMI, contents=dcmi.contents, rule=dcmi.text(list(sensors)))
        if dcmi.doubt is not None:
            return replace(source, doubt=dcmi.doubt + _IF_NODE)
        return self._of_chassis(source, "DCMI's power", _IF_NODE)

    def _node_manager(self) -> tuple[_Source, ...]:
        sources = []
        for number, (label, domain) in NM_DOMAINS.items():
            contents = MACHINE
            if number != 0:
                contents = only("memory")
                if number == 1:
                    contents = only("processor")
            question = NM_STATISTICS.format(domain=f"0x{number:02x}")
            judge = _judged_node_manager
            if number == 0:
                judge = _judged_platform
            source = _Source(question, f"nm-{label}", domain, contents, judge)
            # A machine need not have every domain; the platform it must.
            if number == 0:
                sources.append(source)
                continue
            with suppress(PowerError):
                source.judge(self._query(question))
                sources.append(source)
        return tuple(sources)


_IF_NODE = "; if it is this machine's, name it: ipmi,mode=dcmi"
_SWITCHED_OFF = "the BMC's DCMI power measurement is switched off"


def _judged_dcmi(lines: Sequence[str]) -> float:
    reading = parse_dcmi(lines)
    if not reading.active:
        raise PowerError("the BMC's power measurement is switched off (DCMI state)")
    return _of_running("DCMI", float(reading.current_w))


def _judged_node_manager(lines: Sequence[str]) -> float:
    reading = parse_node_manager(lines)
    if not reading.active:
        raise PowerError("the Node Manager's power measurement is off, or not valid now")
    if possible_w(reading.current_w) is None:
        raise PowerError(_no_power("Node Manager", reading.current_w))
    return float(reading.current_w)


def _judged_platform(lines: Sequence[str]) -> float:
    return _of_running("Node Manager", _judged_node_manager(lines))


def _of_running(name: str, power_w: float) -> float:
    """A BMC that reports 0 W for a running machine does not measure. Raises PowerError."""
    if power_w == 0.0:
        raise PowerError(f"the BMC reports 0 W ({name}): it does not measure this machine's power")
    if possible_w(power_w) is None:
        raise PowerError(_no_power(name, power_w))
    return power_w


def _no_power(name: str, power_w: float) -> str:
    return f"the BMC reports {power_w:g} W ({name}), its largest number: no measurement"


_DCMI = _Source(DCMI_POWER_READING, "dcmi", "system", MACHINE, _judged_dcmi)


def _sensors(names: tuple[str, ...], why: str | None, chosen: Choice | None) -> _Source:
    """The sum of sensors, each of which must answer."""

    def judge(lines: Sequence[str]) -> float:
        sensors = watt_sensors(lines)
        total_w = 0.0
        for name in names:
            value_w = sensors.get(name)
            if value_w is None:
                raise PowerError(f"the BMC reports no power for sensor {name}")
            total_w += value_w
        if domain != "system":
            return total_w
        return _of_running(", ".join(names), total_w)

    domain, contents = domain_of(names[0]) if chosen is None else ("system", chosen.contents)
    summed = None
    if len(names) > 1:
        summed = f"the sum of the power supplies {', '.join(names)}"
    instead = None
    if why:
        instead = f"{why}: {', '.join(names)} is read instead"
    note = None
    if chosen is not None:
        note = chosen.note
    remark = "; ".join(filter(None, (instead, summed, note))) or None
    question = "sdr get " + " ".join(f'"{name}"' for name in names)
    doubt = None
    if chosen is not None:
        doubt = chosen.doubt
    return _Source(question, "+".join(names), domain, contents, judge, remark, doubt)


def open_meter(
    spec: str, options: Mapping[str, str], root: Path, first_answer_s: float = FIRST_ANSWER_S
) -> IpmiMeter:
    """Start ipmitool and take a first reading. Raises PowerError that names the missing part."""
    tool = shutil.which("ipmitool")
    if tool is None:
        raise PowerError(f"meter '{spec}': ipmitool is missing; apt-get install ipmitool")
    if shutil.which("stdbuf") is None:
        raise PowerError(f"meter '{spec}': stdbuf is missing; apt-get install coreutils")
    wanted = options.get("reader")
    if wanted not in (None, "no") and (reason := why_not_run(Path(wanted or ""))) is not None:
        raise PowerError(f"meter '{spec}': {reason}; repair it, or leave out reader=")
    mode = options.get("mode")
    if mode not in (None, "dcmi", "sdr", "nm"):
        raise PowerError(f"meter '{spec}': mode={mode}: it is dcmi, sdr or nm")
    sensor = options.get("sensor")
    if sensor is not None and not re.fullmatch(r"[\w .()/+#%-]+", sensor):
        raise PowerError(f"meter '{spec}': sensor={sensor!r} is not a sensor name")
    period_s = number_option(spec, options, "period_s", above_zero=True) or NATIVE_PERIOD_S
    command, environment = _command(spec, tool, options, root)
    shell = ToolShell(command, environment)
    try:
        chassis = None
        if "host" not in options:
            chassis = chassis_of(root)
        return IpmiMeter(
            spec,
            options.get("name", "ipmi"),
            shell,
            mode=mode,
            sensor=sensor,
            period_s=period_s,
            first_answer_s=first_answer_s,
            reader=_reader(wanted, root),
            chassis=chassis,
        )
    except PowerError as error:
        raise PowerError(f"meter '{spec}': {error}") from error


def find(root: Path) -> Detected:
    """A BMC of this machine that gives a power reading; others must be named."""
    if _device(root) is None:
        return Detected(
            "ipmi",
            KIND,
            ("system",),
            False,
            f"no {root / DEVICES[0]}",
            "modprobe ipmi_si ipmi_devintf; or name a BMC on the network: "
            "--meter ipmi:lanplus,host=ADDRESS,user=NAME",
        )
    try:
        meter = open_meter("ipmi", {}, root, FIND_ANSWER_S)
    except PowerError as error:
        remedy = "see docs/reference/meters.md, ipmi"
        if "did not answer" in str(error):
            remedy = f"if it is only slow, name it: --meter ipmi; {remedy}"
        return Detected("ipmi", KIND, ("system",), False, str(error), remedy)
    meter.close()
    remark = next((channel.remark for channel in meter.channels if channel.remark), None)
    contents = contents_of(meter.channels)
    channel = meter.channels[0]
    return Detected(
        "ipmi",
        KIND,
        ("system",),
        True,
        remark,
        contents=contents,
        rule=channel.rule,
        doubt=channel.doubt,
    )


def _device(root: Path) -> Path | None:
    for device in DEVICES:
        if (root / device).exists():
            return root / device
    return None


def _reader(wanted: str | None, root: Path) -> Path | None:
    if wanted == "no":
        return None
    if wanted is not None:
        return Path(wanted)
    reader = find_reader(root, IPMI_NAME)
    if reader is not None and why_not_run(reader) is None:
        return reader
    return None


def _command(
    spec: str, tool: str, options: Mapping[str, str], root: Path
) -> tuple[list[str], dict[str, str]]:
    """ipmitool's command line and environment. Raises PowerError for options that do not fit."""
    interface = options.get("interface", "lanplus" if "host" in options else "open")
    environment = {}
    for key in ("PATH", "HOME"):
        if key in os.environ:
            environment[key] = os.environ[key]
    environment |= {"LC_ALL": "C"}
    manager = NM_ADDRESS if options.get("mode") == "nm" else ()
    if interface == "open":
        if "host" in options:
            raise PowerError(f"meter '{spec}': a host needs ipmi:lanplus")
        if _device(root) is None:
            raise PowerError(
                f"meter '{spec}': no {root / DEVICES[0]}; modprobe ipmi_si ipmi_devintf"
            )
        return [tool, "-I", "open", "-c", *manager], environment
    if interface not in ("lanplus", "lan"):
        raise PowerError(f"meter '{spec}': interface {interface}: it is open, lanplus or lan")
    host = options.get("host", "")
    if not re.fullmatch(r"[\w.:%-]+", host) or host.startswith("-"):
        raise PowerError(f"meter '{spec}': host={host}: give the BMC's address")
    # -N, -R: a dead BMC must fail within seconds.
    command = [tool, "-I", interface, "-H", host, "-p", options.get("port", "623"), "-c", *manager]
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
