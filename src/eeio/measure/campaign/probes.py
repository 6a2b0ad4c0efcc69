"""Observations during a run: one interface, and the probes of this machine.

The use and frequency of the processors while a tool runs, once a second.

The frequency governor answers to how long requests take, and
that decides the power of a system more than its drive does.

The drive's requests during a run, from the kernel's block layer, cut into phases.

A separate tracefs instance, with a buffer that keeps the first events and drops the rest, is read
after the run: nothing else runs with the tool (docs/decisions/0021-what-the-drive-saw.md).
"""

import contextlib
import itertools
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from eeio.errors import EeioError
from eeio.machine import caches, counters, image, other_io
from eeio.machine.filesystem import IN_MEMORY, BlockDevice
from eeio.machine.undo import UndoJournal
from eeio.measure.campaign import command_bytes
from eeio.measure.journal.trace import TracefsInstance
from eeio.record.design import PlannedExperiment
from eeio.record.run import OTHER_IO, READ_BACK, DeviceCounters, Phase, ProcessorSeries, Run
from eeio.record.tools import about
from eeio.record.tools.capture import Capture, PhaseResult, ToolResult
from eeio.traces.block import Issued, parse
from eeio.traces.order import LEAST_REQUESTS, describe
from eeio_power.monitor import PowerMonitor
from eeio_power.suspension import LEAST_S as LEAST_SUSPENSION_S
from eeio_power.suspension import STOPPED, Stops, suspended_s
from eeio_power.suspension import text as suspended_text

Environment = Mapping[str, str]


class Probe:
    """Observes one run: started before its tool and stopped after it (`observe`), then it adds its
    results to the record. By default each step has no effect."""

    @property
    def settings(self) -> Environment:
        """Variables for the tool's environment, once the probe was started."""
        return {}

    def start(self) -> None:
        """Raises EeioError where the run cannot be without it."""

    def stop(self, ended_s: float | None) -> None:
        """Releases the resources of `start`, also if that failed half-way. `ended_s` is when the
        tool ended (CLOCK_MONOTONIC); None if it did not: then there is no result."""

    def add_to_result(self, result: ToolResult, run: Run) -> ToolResult:
        """The tool's results, with the observations of its phases."""
        return result

    def add_to(self, run: Run) -> Run:
        """The record, with phases if the tool succeeded."""
        return run

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop(None)


def observe(probes: Sequence[Probe], tool: Callable[[Environment], Capture]) -> Capture:
    """Calls `tool` with the probes' settings, while they are started: in their order, and stopped
    in reverse, whatever happens."""
    ended_s: float | None = None
    with contextlib.ExitStack() as stack:

        def stop(probe: Probe) -> None:
            probe.stop(ended_s)

        for probe in probes:
            stack.callback(stop, probe)
            probe.start()
        capture = tool({key: value for p in probes for key, value in p.settings.items()})
        ended_s = capture.ended_monotonic_s
    return capture


class Meters(Probe):
    """The meters of this machine: read at the tool's start, and closely while it writes into the
    folder."""

    def __init__(self, power: PowerMonitor, folder: Path) -> None:
        self._power = power
        self._closely = power.closely(folder)
        self._stack = contextlib.ExitStack()

    def start(self) -> None:
        self._power.mark()
        self._stack.enter_context(self._closely)

    def stop(self, ended_s: float | None) -> None:
        self._stack.close()


# Between a tool's end and the flush after it.
_LATEST_FLUSH_S = 0.25


class Flush(Probe):
    """No observation, but required by the others: the flush of the tool's files right after its
    end, with the meters read at both its edges, and then of all file systems, so that no run pays
    for the one before it. `only_here` is why this flush is not enough to make the bytes durable;
    `flushed` is called between the two."""

    def __init__(
        self,
        power: PowerMonitor,
        directory: Path | None,
        node: Path | None,
        only_here: str | None = None,
        flushed: Callable[[], None] = lambda: None,
    ) -> None:
        self._power = power
        self._flushed = flushed
        self._directory = directory
        self._node = node
        self._only_here = only_here
        self._sync_s = 0.0
        self.done = caches.Sync(0.0, 0.0, "", "the tool did not end")
        """The first of the two."""

    def stop(self, ended_s: float | None) -> None:
        if ended_s is None:
            return
        # During the flush: a slow meter must not delay it.
        edge = threading.Thread(target=self._power.mark)
        edge.start()
        done = caches.flush(self._directory, self._node)
        self._flushed()
        edge.join()
        self._power.mark()
        late_s = done.start_s - ended_s
        if late_s > _LATEST_FLUSH_S:
            # Without its time: it would count as writing, but no data was written meanwhile.
            done = replace(done, error=f"the flush began {late_s:.2f} s after the tool had ended")
        if self._only_here is not None:
            done = replace(done, error=self._only_here)
        self.done = done
        os.sync()
        self._sync_s = time.monotonic() - done.start_s

    def add_to_result(self, result: ToolResult, run: Run) -> ToolResult:
        if self.done.lost is None:
            return result
        reason = f"written data were lost: {self.done.lost}"
        phases = (replace(p, invalid=(*p.invalid, reason)) for p in result.phases)
        return replace(result, phases=tuple(phases))

    def add_to(self, run: Run) -> Run:
        return replace(run, sync_s=self._sync_s)


class DriveCounters(Probe):
    """The block layer's counters of the drive before and after, and whether the tool's claims
    agree. For a command they decide its bytes (`command_bytes`), and the bytes at this drive are
    counted in a separate control group, if the kernel supports it. `no_drive` is why no drive's
    counters show a command's bytes."""

    def __init__(
        self,
        device: BlockDevice | None,
        planned: PlannedExperiment,
        target: other_io.Target,
        journal: UndoJournal,
        no_drive: str | None = None,
    ) -> None:
        self._device = device
        self._target = target
        self._planned = planned
        self._journal = journal
        self._no_drive = no_drive
        self._group: counters.IoGroup | None = None
        self._own: DeviceCounters | None = None
        self._at_flush: DeviceCounters | None = None
        self._own_at_flush: DeviceCounters | None = None
        self._before: DeviceCounters | None = None
        self._after: DeviceCounters | None = None
        self._elsewhere_bytes: int | None = None
        self._remarks: dict[str, str] = {}
        self._read, self._resolution_bytes = _counters_of(planned)

    @property
    def settings(self) -> Environment:
        if self._group is None:
            return {}
        return {"EEIO_IO_GROUP": str(self._group.folder), "EEIO_OWN_GROUP": str(self._group.home)}

    @property
    def _is_command(self) -> bool:
        return self._planned.experiment.is_command

    def start(self) -> None:
        if self._is_command:
            self._group = counters.new_io_group(self._journal)
        if self._device is None:
            return
        if self._is_command and not counters.may_write_uncounted():
            self._elsewhere_bytes = -counters.written_elsewhere(self._device)
        self._before = self._read(self._device)

    def flushed(self) -> None:
        """Counts for a command when the directory's file system was flushed, before all others
        are."""
        if self._is_command and self._device is not None and self._before is not None:
            self._at_flush = counters.unwrapped(self._before, self._read(self._device))
            if self._group is not None:
                self._own_at_flush = self._group.moved(self._device)

    def stop(self, ended_s: float | None) -> None:
        try:
            if ended_s is not None and self._device is not None and self._before is not None:
                if self._group is not None:
                    self._own = self._group.moved(self._device)
                found = self._read(self._device)
                self._after = counters.unwrapped(self._before, found)
                if self._elsewhere_bytes is not None:
                    self._elsewhere_bytes += counters.written_elsewhere(self._device)
        finally:
            if self._group is not None:
                self._group.release()

    def add_to_result(self, result: ToolResult, run: Run) -> ToolResult:
        if self._is_command:
            result = replace(result, phases=tuple(map(self._of_command, result.phases)))
        if self._device is None or self._before is None or self._after is None:
            return result
        phases, both = result.phases, (self._before, self._after)
        reasons = counters.disagreements(
            self._planned.experiment,
            phases,
            *both,
            self._planned.file_bytes or None,
            counters.cause_of_missing(self._device, self._target.mount),
            _stored_share(self._planned),
            self._resolution_bytes,
        )
        if (read_back := counters.read_back(self._planned.experiment, phases, *both)) is not None:
            self._remarks[READ_BACK] = read_back
        return replace(result, phases=tuple(_contradicted(phase, reasons) for phase in phases))

    def _of_command(self, phase: PhaseResult) -> PhaseResult:
        if self._no_drive is not None:
            mount = self._target.mount
            phase, remarks = command_bytes.without_drive(
                phase,
                self._no_drive,
                is_accounted=mount is None or mount.filesystem not in IN_MEMORY,
            )
        elif self._before is None or self._after is None or self._at_flush is None:
            return phase
        else:
            counted = command_bytes.Counted(
                _moved(self._before, self._at_flush),
                _moved(self._before, self._after),
                self._elsewhere_bytes,
                self._own,
                self._own_at_flush,
            )
            is_cold = self._planned.factors.get("cache") == "cold"
            phase, remarks = command_bytes.at_drive(phase, counted, self._target, is_cold)
        self._remarks |= remarks
        return phase

    def add_to(self, run: Run) -> Run:
        return replace(
            run,
            remarks={**run.remarks, **self._remarks},
            device_before=self._before,
            device_after=self._after,
        )


def _moved(before: DeviceCounters, after: DeviceCounters) -> DeviceCounters:
    return DeviceCounters(
        after.read_bytes - before.read_bytes, after.written_bytes - before.written_bytes
    )


def _counters_of(planned: PlannedExperiment) -> tuple[Callable[[BlockDevice], DeviceCounters], int]:
    """What counts the bytes of an experiment, and its resolution in bytes."""
    if planned.factors.get("engine") == counters.PASSTHROUGH:
        return counters.read_by_drive, counters.DATA_UNIT_BYTES
    return counters.read_counters, 0


class OtherIo(Probe):
    """I/O of other programs on the drive. All of its partitions count."""

    def __init__(
        self,
        devices: Sequence[BlockDevice],
        planned: PlannedExperiment,
        target: other_io.Target,
    ) -> None:
        self._devices = devices
        self._drive = None
        if len(devices) == 1:
            self._drive = counters.drive_below(devices[0])
        self._planned = planned
        self._target = target
        self._before: DeviceCounters | None = None
        self._after: DeviceCounters | None = None
        self._noted: other_io.OtherIo | None = None
        self._read, self._resolution_bytes = _counters_of(planned)

    def start(self) -> None:
        if self._drive is not None:
            self._before = self._read(self._drive)

    def stop(self, ended_s: float | None) -> None:
        if ended_s is not None and self._drive is not None and self._before is not None:
            self._after = counters.unwrapped(self._before, self._read(self._drive))

    def add_to_result(self, result: ToolResult, run: Run) -> ToolResult:
        if self._before is None or self._after is None:
            return result
        others = other_io.other_io(
            self._planned.experiment,
            result.phases,
            self._before,
            self._after,
            self._planned.file_bytes or None,
            self._target,
            self._resolution_bytes,
        )
        if others is None or not others.is_much:
            self._noted = others
            return result
        phases = (replace(p, invalid=(*p.invalid, others.text)) for p in result.phases)
        return replace(result, phases=tuple(phases))

    def add_to(self, run: Run) -> Run:
        text = None
        if self._noted is not None:
            text = self._noted.text
        is_judged = about(self._planned.experiment.tool).reports_all_bytes
        if len(self._devices) > 1 and is_judged:
            # How often they store each byte is not known.
            text = f"{other_io.NOT_JUDGED}: the file system is on {len(self._devices)} devices"
        if text is None:
            return run
        return replace(run, remarks={**run.remarks, OTHER_IO: text})


class Suspension(Probe):
    """Rejects runs during which the machine was suspended, or eeio stopped."""

    def __init__(self, suspended: Callable[[], float] = suspended_s) -> None:
        self._suspended = suspended
        self._stops = Stops()
        self._before_s = 0.0
        self._reasons: tuple[str, ...] = ()

    def start(self) -> None:
        self._stops.__enter__()
        self._before_s = self._suspended()

    def stop(self, ended_s: float | None) -> None:
        seconds = self._suspended() - self._before_s
        self._stops.__exit__()
        if seconds > LEAST_SUSPENSION_S:
            self._reasons += (suspended_text(seconds),)
        if self._stops.count:
            self._reasons += (STOPPED,)

    def add_to_result(self, result: ToolResult, run: Run) -> ToolResult:
        phases = (replace(p, invalid=(*p.invalid, *self._reasons)) for p in result.phases)
        return replace(result, phases=tuple(phases))


def _stored_share(planned: PlannedExperiment) -> float:
    """The least share of the bytes that must reach the drive. The factor `compressible` is the part
    of each block that is zero (per cent)."""
    if planned.volume not in image.COMPRESSING:
        return 1.0
    return 1.0 - int(planned.factors.get("compressible", "0")) / 100.0


def _contradicted(phase: PhaseResult, reasons: Mapping[str, str]) -> PhaseResult:
    """The phase, with the reason why the drive's counters contradict it."""
    operations: tuple[str, ...] = ("read", "write")
    if phase.operation != "mixed":
        operations = (phase.operation,)
    contradictions = tuple(reasons[o] for o in operations if o in reasons)
    return replace(phase, invalid=(*phase.invalid, *contradictions))


class Sampling(Probe):
    """Samples in a thread, once a period and once at the end, so that short runs have a sample."""

    def __init__(self, period_s: float) -> None:
        self._period_s = period_s
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name=type(self).__name__, daemon=True)
        self._start_s = 0.0

    def start(self) -> None:
        self._start_s = time.monotonic()
        self._begin()
        self._thread.start()

    def stop(self, ended_s: float | None) -> None:
        self._end.set()
        if self._thread.is_alive():
            self._thread.join()

    def _begin(self) -> None:
        """Values read before the first period."""

    def _sample(self) -> None:
        raise NotImplementedError

    def _run(self) -> None:
        due_s = self._start_s
        ended = False
        while not ended:
            due_s += self._period_s
            ended = self._end.wait(max(0.0, due_s - time.monotonic()))
            self._sample()


PERIOD_S = 1.0
SOURCE = "/proc/stat and scaling_cur_freq, every 1 s"

# /proc/stat, line `cpu`: user nice system idle iowait irq softirq steal.
_BUSY = (0, 1, 2, 5, 6)
_COUNTED = 8


class ProcessorSampler(Sampling):
    """The processors' use and frequency; `root` is another tree than `/`, for tests."""

    def __init__(self, root: Path = Path("/"), period_s: float = PERIOD_S) -> None:
        super().__init__(period_s)
        self._stat = root / "proc/stat"
        self._clocks = sorted(
            (root / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_cur_freq")
        )
        self._times_s: list[float] = []
        self._use: list[float | None] = []
        self._frequency_hz: list[float | None] = []
        self._before: tuple[int, int] | None = None

    def _begin(self) -> None:
        self._before = self._jiffies()

    def add_to(self, run: Run) -> Run:
        return replace(run, processor=self.series())

    def series(self) -> ProcessorSeries:
        """All samples; a quantity that this machine does not report is missing, with the reason."""
        missing = {}
        if not any(value is not None for value in self._use):
            missing["use"] = f"{self._stat} contains no times"
        if not any(value is not None for value in self._frequency_hz):
            missing["frequency_hz"] = "this machine shows no frequency (no cpufreq)"
        return ProcessorSeries(
            source=SOURCE,
            times_s=tuple(self._times_s),
            use=tuple(self._use),
            frequency_hz=tuple(self._frequency_hz),
            missing=missing,
        )

    def _sample(self) -> None:
        now = self._jiffies()
        self._times_s.append(time.monotonic() - self._start_s)
        self._use.append(self._share(now))
        self._frequency_hz.append(self._mean_frequency_hz())
        self._before = now

    def _share(self, now: tuple[int, int] | None) -> float | None:
        if now is None or self._before is None:
            return None
        busy, total = now[0] - self._before[0], now[1] - self._before[1]
        if total > 0:
            return busy / total
        return None

    def _jiffies(self) -> tuple[int, int] | None:
        """(busy, all) since boot, of all processors."""
        try:
            with self._stat.open(encoding="ascii") as file:
                fields = file.readline().split()
            times = [int(field) for field in fields[1 : 1 + _COUNTED]]
        except (OSError, ValueError):
            return None
        if len(times) < _COUNTED or fields[0] != "cpu":
            return None
        return sum(times[place] for place in _BUSY), sum(times)

    def _mean_frequency_hz(self) -> float | None:
        frequencies = []
        for path in self._clocks:
            try:
                frequencies.append(int(path.read_text(encoding="ascii")) * 1e3)
            except (OSError, ValueError):
                continue  # a processor that went offline
        if not frequencies:
            return None
        return sum(frequencies) / len(frequencies)


MOST_REQUESTS = 65536
"""The same number as in eeio-dataserver."""
_EVENT_BYTES = 80  # in the kernel's buffer, with the share of its pages' heads
_LEAST_KIB = 256  # of one processor: only few of many give requests to one drive
_SLACK_S = 0.001  # stamps of the tool and of the kernel


@dataclass(frozen=True)
class DriveRequests:
    """The requests of a run; `until_s` is when there was no room for more. `reason`: why none."""

    requests: tuple[Issued, ...] = ()
    until_s: float | None = None
    reason: str | None = None

    def add_to(self, phase: Phase, began_s: float, processes: int) -> Phase:
        """The phase with the request order at the drive, or why it is unknown. The program's
        information on its requests stays; `began_s` is the run's start on the monotonic clock,
        `processes` is the number of active processes."""
        if phase.spatiality_seen is not None or phase.operation == "metadata":
            return phase
        if self.reason is not None:
            return replace(phase, spatiality_seen_reason=self.reason)
        if phase.start_s is None or phase.end_s is None:
            reason = f"its time is unknown: {phase.window_source}"
            return replace(phase, spatiality_seen_reason=reason)
        end_s = phase.end_s
        if phase.until_durable:
            end_s = phase.until_durable.end_s
        first_s, last_s = began_s + phase.start_s - _SLACK_S, began_s + end_s + _SLACK_S
        if self.until_s is not None and self.until_s <= first_s:
            reason = f"the {len(self.requests)} recorded requests are all before it"
            return replace(phase, spatiality_seen_reason=reason)
        found = [
            issued.request
            for issued in self.requests
            if first_s <= issued.at_s <= last_s
            and (phase.operation == "mixed" or issued.reads == (phase.operation == "read"))
        ]
        order = describe(found, phase.request_size_bytes, processes)
        if order is None:
            reason = (
                f"{len(found)} requests reached the drive, fewer than {LEAST_REQUESTS} complete "
                "ones"
            )
            return replace(phase, spatiality_seen_reason=reason)
        return replace(phase, spatiality_seen=order, spatiality_seen_by="drive")


class DriveView(Probe, TracefsInstance):
    """Records the first requests to a device, unless there is a `reason` why they cannot be
    observed. Without an observable device there is a reason, too."""

    def __init__(
        self, device: BlockDevice | None, journal: UndoJournal, reason: str | None = None
    ) -> None:
        needs = "a kernel with CONFIG_BLK_DEV_IO_TRACE is"
        TracefsInstance.__init__(self, journal, "drive", "the drive's requests", needs)
        self._device = device
        self.observed = DriveRequests(reason=reason)

    def start(self) -> None:
        if self._device is None or self.observed.reason is not None:
            return
        try:
            self._make()
        except EeioError as error:
            self.observed = DriveRequests(reason=str(error))

    def stop(self, ended_s: float | None) -> None:
        if self._entry is None:
            return
        try:
            if ended_s is not None:
                self.observed = self._read()
        except OSError as error:
            self.observed = DriveRequests(
                reason=f"the drive's requests could not be read: {error.strerror}"
            )
        finally:
            self._remove()

    def add_to(self, run: Run) -> Run:
        begun_s, processes = run.started_monotonic_s, run.experiment.processes
        phases = (self.observed.add_to(phase, begun_s, processes) for phase in run.phases)
        return replace(run, phases=tuple(phases))

    def _read(self) -> DriveRequests:
        self._write("tracing_on", "0")
        dropped = {
            cpu: int(counts.get("dropped events", "0")) for cpu, counts in self._counts().items()
        }
        with (self._folder / "trace").open(encoding="ascii", errors="replace") as lines:
            found, until_s = parse(itertools.islice(lines, 2 * MOST_REQUESTS), dropped)
        return DriveRequests(tuple(found[:MOST_REQUESTS]), until_s)

    def _set_up(self) -> None:
        assert self._device is not None
        processors = os.cpu_count() or 1
        room_kib = max(_LEAST_KIB, MOST_REQUESTS * _EVENT_BYTES // 1024 // processors)
        for name, value in (
            ("tracing_on", "0"),
            ("trace_clock", "mono"),
            ("options/overwrite", "0"),
            ("buffer_size_kb", str(room_kib)),
        ):
            self._write(name, value)
        # Device mapper, md and NVMe's multipath take bios of file systems, not requests.
        takes_requests = (self._device.disk_sysfs / "mq").is_dir()
        event_name = "block_bio_queue"
        if takes_requests:
            event_name = "block_rq_issue"
        event = f"block/{event_name}"
        self._write(f"events/{event}/filter", _block_filter(self._device))
        self._write(f"events/{event}/enable", "1")
        self._write("tracing_on", "1")


def _block_filter(device: BlockDevice) -> str:
    """The requests on the partition, out of those of the disk, which carry the disk's number."""
    disk = device.disk_sysfs
    numbers = {(disk / "dev").read_text(encoding="ascii").strip()}
    numbers.add(f"{device.major}:{device.minor}")
    requests = " || ".join(
        f"dev == {int(major) << 20 | int(minor)}"
        for major, _, minor in (number.partition(":") for number in sorted(numbers))
    )
    start = 0
    with contextlib.suppress(OSError, ValueError):
        start = int((device.sysfs / "start").read_text(encoding="ascii"))
    end = start + device.size_bytes // 512
    return f"({requests}) && sector >= {start} && sector < {end}"
