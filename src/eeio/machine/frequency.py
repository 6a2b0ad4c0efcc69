"""Processor settings: frequency, turbo and SMT.

The processors' frequency: list, set for all of them, verify, and restore.

Order, and why. Turning SMT off removes processors and their cpufreq policies: it comes first.
Turning turbo off lowers the limits of a policy: they are noted before that, and restored after
turbo (the journal is undone newest first). From then on a policy's limits and governor may be set
any number of times: its entries restore the original from every state, and the lower limit never
exceeds the upper one on the way.

`root` is another tree than `/`, for tests. Frequencies are in Hz; sysfs has kHz.

SMT and turbo, switched separately between runs, and restored at the end of a campaign.

Only without a set frequency, which turns both off (system/frequency.py). Order, and why. All
possible changes are noted before the first write, SMT last. The journal is undone newest first, so
the processors are back when their switches and limits are restored. SMT is switched before turbo,
so that turbo's switches of all processors in use are there.

`root` is another tree than `/`, for tests.
"""

import ctypes
import errno
import os
import platform
import re
import shlex
import struct
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Literal

from eeio.errors import EeioError, RejectedError
from eeio.files.inputs import CPUS
from eeio.files.trust import why_untrusted
from eeio.machine.undo import UndoEntry, UndoJournal

TOLERANCE = 0.02

_CPU = Path("sys/devices/system/cpu")
_STEP_KHZ = 100_000
_SPIN_S = 0.03

_UNITS_HZ = {"ghz": 10**9, "mhz": 10**6, "khz": 10**3, "hz": 1, "": 1}

_MIN, _MAX, _GOVERNOR, _SETSPEED = (
    "scaling_min_freq",
    "scaling_max_freq",
    "scaling_governor",
    "scaling_setspeed",
)


@dataclass(frozen=True)
class Processors:
    """cpufreq's values; `turbo` is None without a switch, `smt` is the kernel's value (on, off,
    forceoff, notsupported, notimplemented), None without one."""

    driver: str
    governors: tuple[str, ...]
    steps_hz: tuple[int, ...]
    turbo: Literal["on", "off"] | None
    smt: str | None
    policies: int


@dataclass(frozen=True)
class Achieved:
    """A frequency under load. `achieved_hz` is None if it could not be measured; `reason` is the
    cause, or that it is more than 2 % off; None means reached."""

    wanted_hz: int
    achieved_hz: float | None
    reason: str | None

    @property
    def reached(self) -> bool | None:
        """None: not verified."""
        if self.achieved_hz is None:
            return None
        return self.reason is None

    @property
    def text(self) -> str:
        """For a run's notes."""
        wanted = f"frequency {_ghz(self.wanted_hz)}"
        if self.achieved_hz is None:
            return f"{wanted}: unverified: {self.reason}"
        sentence = f"{wanted}: {_ghz(self.achieved_hz)} under load"
        if self.reason is None:
            return sentence
        return f"{sentence}, {self.reason}"


def describe(root: Path = Path("/")) -> Processors:
    """EeioError when this machine shows no cpufreq."""
    policies = _policies(root)
    return Processors(
        driver=", ".join(_values_of(policies, "scaling_driver")),
        governors=_values_of(policies, _GOVERNOR),
        steps_hz=steps_hz(root),
        turbo=turbo_state(root),
        smt=smt_state(root),
        policies=len(policies),
    )


def steps_hz(root: Path = Path("/")) -> tuple[int, ...]:
    """Frequencies that every processor can be set to, ascending.

    Those that the driver lists. If it lists none: steps of 100 MHz from the lowest to the base
    frequency, or to the highest without a base frequency. EeioError if this machine has no cpufreq,
    or its processors have none in common.
    """
    policies = _policies(root)
    listed = []
    for policy in policies:
        if found := _listed_khz(policy):
            listed.append(set(found))
    if len(listed) == len(policies):
        common = set.intersection(*listed)
    else:
        spans = list(map(_span_khz, policies))
        lowest, highest = max(low for low, _ in spans), min(high for _, high in spans)
        common = {*range(lowest, highest, _STEP_KHZ), highest} if lowest <= highest else set()
        # Clusters of which only some list their steps have those in common.
        if listed:
            common = set.intersection(*listed)
        common = {khz for khz in common if lowest <= khz <= highest}
    if not common:
        raise EeioError(f"{policies[0].parent}: the processors have no frequency in common")
    return tuple(khz * 1000 for khz in sorted(common))


def parse_hz(text: str) -> int:
    """`1.6GHz`, `1600MHz` or `1600000000` in Hz; RejectedError for anything else."""
    match = re.fullmatch(r"([0-9]{1,12}(?:\.[0-9]{1,9})?) ?(|[GMk]?Hz)", text, re.IGNORECASE)
    hz = Decimal(match[1]) * _UNITS_HZ[match[2].lower()] if match else Decimal(0)
    if hz <= 0 or hz != int(hz):
        raise RejectedError(
            f"{text}: no frequency; 1.6GHz, 1600MHz, 1600000000, lowest or highest is wanted"
        )
    return int(hz)


def lock_name(root: Path = Path("/")) -> str:
    """Name of the lock (system/lock.py) for setting frequencies: a second program would take the
    first one's settings for the original, and restore those."""
    return "processor-frequency" + ("" if root == Path("/") else f" {root.resolve()}")


def prepare(journal: UndoJournal, root: Path = Path("/")) -> None:
    """Turns SMT and turbo off, each noted before and read back after.

    EeioError when there is no cpufreq, a file may not be written (no file was changed then), or
    reads back differently.
    """
    control = smt_control(root)
    smt_on = smt_state(root) == "on"
    switches = turbo_switches(root)
    of_policies = _settings(root)  # without cpufreq no file is changed
    controls = [control] if smt_on else []
    check_writable([*controls, *(path for path, _ in switches), *of_policies], root)
    if smt_on:
        note([control], journal)
        write(control, "off")
        # Processors that went away took policies with them.
        switches = turbo_switches(root)
    note_policies(root, journal)
    if turbo_state(root) == "on":
        note([path for path, _ in switches], journal)
        for path, off in switches:
            write(path, off)


def check_reachable(hz: int, root: Path = Path("/")) -> None:
    """RejectedError when a policy does not go there."""
    for policy in _policies(root):
        khz, left = divmod(hz, 1000)
        low, high = _khz(policy / "cpuinfo_min_freq"), _khz(policy / "cpuinfo_max_freq")
        if left or not low <= khz <= high:
            raise RejectedError(
                f"{_ghz(hz)} cannot be reached: the range of {policy.name} is "
                f"{_ghz(low * 1000)} to {_ghz(high * 1000)}" + (", in integer kHz" if left else "")
            )
        listed = _listed_khz(policy)
        if listed and khz not in listed:
            raise RejectedError(
                f"{_ghz(hz)} cannot be reached: {policy.name} has "
                + ", ".join(_ghz(step * 1000) for step in sorted(listed))
            )


def set_frequency(hz: int, journal: UndoJournal, root: Path = Path("/")) -> None:
    """Sets all processors to one frequency; may be called again and again with one journal.

    By the governor `userspace` where it is offered, else by both limits. RejectedError, before
    anything is written, when a policy does not go there; EeioError when a file may not be written
    or reads back differently.
    """
    check_reachable(hz, root)
    policies = _policies(root)
    check_writable(_settings(root), root)
    note_policies(root, journal)
    for policy in policies:
        khz, low, high = hz // 1000, _khz(policy / _MIN), _khz(policy / _MAX)
        if _has_userspace(policy):
            # The governor stays within the limits: they are widened where they are in its way.
            writes = ordered_limits((low, high), (min(low, khz), max(high, khz)))
        else:
            writes = ordered_limits((low, high), (khz, khz))
        for name, value in writes:
            write(policy / name, str(value))
        if _has_userspace(policy):
            if _text(policy / _GOVERNOR) != "userspace":
                write(policy / _GOVERNOR, "userspace")
            write(policy / _SETSPEED, str(khz))


def ordered_limits(before: tuple[int, int], after: tuple[int, int]) -> tuple[tuple[str, int], ...]:
    """The writes, as (file name, value), that bring a policy's (lower, upper) limits from `before`
    to `after` such that lower <= upper after each. Correct values are not written."""
    lower = () if before[0] == after[0] else ((_MIN, after[0]),)
    upper = () if before[1] == after[1] else ((_MAX, after[1]),)
    if after[1] >= before[0]:
        return upper + lower
    return lower + upper


def verify(
    hz: int,
    root: Path = Path("/"),
    measure: Callable[[int], float] | None = None,
) -> Achieved:
    """Whether the processors run at `hz` under load: tests one per policy, returns the farthest
    off.

    `measure` gives the Hz of a processor by its number, or raises EeioError with the reason why it
    cannot (default: `cycles_hz`, only on this machine's real tree).
    """
    if measure is None:
        if root != Path("/"):
            return Achieved(hz, None, f"{root} is not this machine's tree")
        measure = cycles_hz
    try:
        measured = [measure(_first_cpu(policy)) for policy in _policies(root)]
    except EeioError as error:
        return Achieved(hz, None, str(error))
    worst = max(measured, key=lambda value: abs(value - hz))
    off = worst / hz - 1
    reason = None
    if abs(off) > TOLERANCE:
        reason = f"not reached: {off:+.1%}"
    return Achieved(hz, worst, reason)


# ---- values from sysfs ----


def _policies(root: Path) -> list[Path]:
    """Those in use: of a processor that is offline the folder stays, and every read fails."""
    folder = root / _CPU / "cpufreq"
    policies = []
    for policy in sorted(folder.glob("policy[0-9]*"), key=lambda p: int(p.name[len("policy") :])):
        try:
            _khz(policy / _MIN)
        except OSError as error:
            if error.errno not in (errno.EBUSY, errno.ENOENT, errno.ENODEV):
                raise
        else:
            policies.append(policy)
    if not policies:
        raise EeioError(
            f"this machine shows no cpufreq (no policy in {folder}), so no frequency can be set; "
            "in a virtual machine only its host can"
        )
    return policies


def _text(path: Path) -> str:
    return path.read_text(encoding="ascii").strip()


def _khz(path: Path) -> int:
    text = _text(path)
    if not text.isdecimal():
        raise EeioError(f"{path}: {text!r} is not a frequency in kHz")
    return int(text)


def _listed_khz(policy: Path) -> list[int]:
    path = policy / "scaling_available_frequencies"
    if path.exists():
        return list(map(int, _text(path).split()))
    return []


def _span_khz(policy: Path) -> tuple[int, int]:
    base = policy / "base_frequency"
    highest = base
    if not base.exists():
        highest = policy / "cpuinfo_max_freq"
    return _khz(policy / "cpuinfo_min_freq"), _khz(highest)


def _values_of(policies: Iterable[Path], name: str) -> tuple[str, ...]:
    """The distinct values of all policies, in their order."""
    return tuple(dict.fromkeys(_text(policy / name) for policy in policies))


def _has_userspace(policy: Path) -> bool:
    offered = policy / "scaling_available_governors"
    return offered.exists() and "userspace" in _text(offered).split()


def _settings(root: Path) -> list[Path]:
    """The files of the policies that are set, or restored."""
    files: list[Path] = []
    for policy in _policies(root):
        names = (_MIN, _MAX, _GOVERNOR, _SETSPEED) if _has_userspace(policy) else (_MIN, _MAX)
        files += [policy / name for name in names]
    return files


def _first_cpu(policy: Path) -> int:
    cpus = policy / "affected_cpus"
    if cpus.exists():
        return int(_text(cpus).split()[0])
    return int(policy.name[len("policy") :])


def smt_control(root: Path) -> Path:
    """The file that switches SMT, where there is one."""
    return root / _CPU / "smt/control"


def smt_state(root: Path) -> str | None:
    """The kernel's word (`Processors.smt`)."""
    control = smt_control(root)
    if control.exists():
        return _text(control)
    return None


def turbo_switches(root: Path) -> list[tuple[Path, str]]:
    """Each switch with the value that turns turbo off. The common switch sets those of the
    policies: it is turned off after them and, with the journal undone newest first, back on before
    them."""
    folder = root / _CPU
    own = [(policy / "boost", "0") for policy in _policies(root)]
    common = [(folder / "cpufreq/boost", "0"), (folder / "intel_pstate/no_turbo", "1")]
    switches = []
    for path, off in (*own, *common):
        if path.exists():
            switches.append((path, off))
    return switches


def turbo_state(root: Path) -> Literal["on", "off"] | None:
    """Off if the common switch is off: the policies' switches do not matter then."""
    switches = turbo_switches(root)
    if not switches:
        return None
    common = []
    for path, off in switches:
        if path.parent.parent == root / _CPU:
            common.append((path, off))
    if all(_text(path) == off for path, off in common or switches):
        return "off"
    return "on"


# ---- writing ----


def check_writable(paths: Iterable[Path], root: Path) -> None:
    """EeioError for the first that is not, or that another user could lead to another file."""
    for path in paths:
        if (reason := why_untrusted(path)) is not None:
            tree = shlex.quote(str(root))
            raise EeioError(
                f"{path}: not written as root: {reason}. Repair: `mkdir -m 700 ~/eeio-sysfs && "
                f"cp -rL {tree}/. ~/eeio-sysfs`, and give that as --sysfs-root"
            )
        if not os.access(path, os.W_OK):
            raise EeioError(
                f"{path}: cannot be written; run as root, and not in a container with a "
                "read-only /sys"
            )


def _entry(path: Path) -> UndoEntry:
    return UndoEntry("setting", str(path), path.read_text(encoding="ascii"))


def note(paths: Iterable[Path], journal: UndoJournal) -> None:
    """Their settings, to be restored."""
    journal.add_all(list(map(_entry, paths)))


def note_policies(root: Path, journal: UndoJournal) -> None:
    """Notes the settings of policies, once per journal.

    Undone newest first: the lower limit becomes the minimum, so that the upper one may take any
    value; then both are restored, then the governor and its requested speed.
    """
    noted = {entry.subject for entry in journal.entries}
    entries = []
    for policy in _policies(root):
        if str(policy / _MIN) in noted:
            continue
        if _has_userspace(policy):
            # Another governor takes no speed: then it has none to be put back.
            if _text(policy / _GOVERNOR) == "userspace":
                entries.append(_entry(policy / _SETSPEED))
            entries.append(_entry(policy / _GOVERNOR))
        entries += [_entry(policy / _MIN), _entry(policy / _MAX)]
        lowest = (policy / "cpuinfo_min_freq").read_text(encoding="ascii")
        entries.append(UndoEntry("setting", str(policy / _MIN), lowest))
    journal.add_all(entries)


def write(path: Path, wanted: str) -> None:
    """EeioError where it is not taken, or reads back differently."""
    try:
        path.write_text(wanted, encoding="ascii")
    except OSError as error:
        raise EeioError(f"{path}: {wanted} was not taken: {error.strerror}") from error
    text = _text(path)
    if text != wanted:
        raise EeioError(f"{path}: set to {wanted}, but it reads back {text}")


def _ghz(hz: float) -> str:
    return f"{hz / 1e9:.6g} GHz"


# ---- measuring: perf_event_open(2) ----

_SYSCALLS = {
    "x86_64": 298,
    "aarch64": 241,
    "riscv64": 241,
    "armv7l": 364,
    "ppc64le": 319,
    "s390x": 331,
}
_FORMAT_ENABLED_AND_RUNNING = 1 | 2
_EXCLUDE_KERNEL, _EXCLUDE_HYPERVISOR = 1 << 5, 1 << 6
_CLOSE_ON_EXEC = 8


class _PerfEventAttr(ctypes.Structure):
    """struct perf_event_attr as it first was, 64 bytes."""

    _fields_ = (
        ("type", ctypes.c_uint32),
        ("size", ctypes.c_uint32),
        ("config", ctypes.c_uint64),
        ("sample_period", ctypes.c_uint64),
        ("sample_type", ctypes.c_uint64),
        ("read_format", ctypes.c_uint64),
        ("flags", ctypes.c_uint64),
        ("wakeup_events", ctypes.c_uint32),
        ("bp_type", ctypes.c_uint32),
        ("config1", ctypes.c_uint64),
    )


_PMUS = Path("sys/bus/event_source/devices")
_HARDWARE_CYCLES = (0, 0)
"""PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES: of whichever unit there is."""


def cycle_event(cpu: int, root: Path = Path("/")) -> tuple[int, int]:
    """Type and config of the event that counts this processor's cycles.

    If processors differ (Intel's hybrids, big.LITTLE), each kind has a separate unit, which lists
    its processors in `cpus` (cpu_core, cpu_atom, armv8_cortex_a72). The generic hardware event may
    belong to another kind, and then does not count here.
    """
    for unit in sorted((root / _PMUS).glob("*/cpus")):
        for name in ("cpu-cycles", "cpu_cycles"):
            with suppress(OSError, ValueError):
                event = re.fullmatch(
                    r"event=(0x[0-9a-f]{1,4})", _text(unit.parent / "events" / name)
                )
                if event is not None and cpu in _cpus(_text(unit)):
                    return int(_text(unit.parent / "type")), int(event[1], 16)
    return _HARDWARE_CYCLES


def _cpus(text: str) -> set[int]:
    """`0-3,8`. Raises ValueError."""
    cpus: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        begin, end = int(first), int(last or first)
        if not 0 <= begin <= end < CPUS:
            raise ValueError(f"{text!r} is not a list of processors")
        cpus.update(range(begin, end + 1))
    return cpus


def cycles_hz(cpu: int, spin_s: float = _SPIN_S) -> float:
    """Cycles a second of processor time while this thread spins on `cpu`.

    The counter's time is the time that it was active, so neither other processes nor a multiplexed
    counter bias it. EeioError when there is no counter, or it may not be used.
    """
    with _pinned(cpu):
        descriptor = _open_cycles(*cycle_event(cpu))
        try:
            end_s = time.monotonic() + spin_s
            while time.monotonic() < end_s:
                pass
            numbers = os.read(descriptor, 24)
        finally:
            os.close(descriptor)
    cycles, _, running_ns = struct.unpack("=3Q", numbers)
    if running_ns == 0 or cycles == 0:
        raise EeioError(f"the cycle counter of processor {cpu} did not count")
    return float(cycles / running_ns * 1e9)


@contextmanager
def _pinned(cpu: int) -> Iterator[None]:
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {cpu})
    except OSError as error:
        raise EeioError(f"processor {cpu} cannot be used: {error.strerror}") from error
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _open_cycles(type_: int, config: int) -> int:
    """A running counter of this thread's cycles; without the kernel's where it must be."""
    number = _SYSCALLS.get(platform.machine())
    if number is None:
        raise EeioError(f"no cycle counter is known for {platform.machine()}")
    libc = ctypes.CDLL(None, use_errno=True)
    for flags in (_EXCLUDE_HYPERVISOR, _EXCLUDE_HYPERVISOR | _EXCLUDE_KERNEL):
        attributes = _PerfEventAttr(
            type=type_,
            size=ctypes.sizeof(_PerfEventAttr),
            config=config,
            read_format=_FORMAT_ENABLED_AND_RUNNING,
            flags=flags,
        )
        descriptor = int(libc.syscall(number, ctypes.byref(attributes), 0, -1, -1, _CLOSE_ON_EXEC))
        if descriptor >= 0:
            return descriptor
        error = ctypes.get_errno()
        if error not in (errno.EACCES, errno.EPERM):
            break
    if error in (errno.EACCES, errno.EPERM):
        raise EeioError(
            "the cycle counter may not be used (perf_event_open; run as root, or lower "
            "/proc/sys/kernel/perf_event_paranoid)"
        )
    raise EeioError(f"this machine has no cycle counter (perf_event_open: {os.strerror(error)})")


State = Literal["on", "off"]


def check_smt_and_turbo(
    smt: tuple[str, ...], turbo: tuple[str, ...], root: Path = Path("/")
) -> None:
    """RejectedError if the requested states cannot be set on this machine."""
    for name, states in (("--smt", smt), ("--turbo", turbo)):
        if wrong := [state for state in states if state not in ("on", "off")]:
            raise RejectedError(f"{name} {wrong[0]}: on, off, or on,off")
    if smt:
        found = smt_state(root)
        if found not in ("on", "off"):
            raise RejectedError(
                f"--smt: this machine has none to switch (the kernel's word: {found or 'none'})"
            )
    if turbo:
        try:
            switches, state = turbo_switches(root), turbo_state(root)
        except EeioError as error:
            raise RejectedError(f"--turbo: {error}") from error
        if state is None:
            raise RejectedError("--turbo: this machine shows no switch for it")
        if "on" in smt and found == "off" and not _common(switches):
            raise RejectedError(
                "--smt on with --turbo: the state of the added processors' turbo switches is "
                "unknown: turn SMT on first"
            )


def switch_smt_and_turbo(
    smt: str | None, turbo: str | None, journal: UndoJournal, root: Path = Path("/")
) -> None:
    """Brings both into these states; None: unchanged. May be called repeatedly with one journal.

    EeioError when a file may not be written, or reads back differently.
    """
    control = smt_control(root)
    noted = {entry.subject for entry in journal.entries}
    changes_smt = smt is not None and smt != smt_state(root)
    if turbo is not None:
        switches = [path for path, _ in turbo_switches(root)]
        controls = [control] if changes_smt else []
        check_writable([*controls, *switches, *_settings(root)], root)
        note_policies(root, journal)
        note([path for path in switches if str(path) not in noted], journal)
    if changes_smt:
        assert smt is not None
        check_writable([control], root)
        if str(control) not in noted:
            note([control], journal)
        write(control, smt)
    if turbo is not None:
        _switch_turbo(turbo, root)


def _switch_turbo(turbo: str, root: Path) -> None:
    switches = turbo_switches(root)
    if turbo != "off":
        # The common switch first; without it those of the policies have no effect.
        switches.reverse()
    for path, off in switches:
        wanted = off
        if turbo != "off":
            wanted = str(1 - int(off))
        if path.read_text(encoding="ascii").strip() != wanted:
            write(path, wanted)


def _common(switches: list[tuple[Path, str]]) -> bool:
    return any("policy" not in path.parent.name for path, _ in switches)
