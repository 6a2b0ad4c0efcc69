"""One run: the state it starts in, the tool's process, its record.

The pause before a run: until the machine has settled, not for a fixed time.
"""

import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from eeio.errors import EeioError, ToolOutputError
from eeio.machine import caches, counters, frequency, other_io
from eeio.machine import device as devices
from eeio.machine.below import CacheBelow, caches_below, why_in_memory
from eeio.machine.counters import read_counters
from eeio.machine.direct_io import why_file_not_direct
from eeio.machine.drive import elsewhere
from eeio.machine.durability import why_flushes_end_early
from eeio.machine.filesystem import (
    BlockDevice,
    further_devices,
    is_served_by_a_program,
    mount_of,
    zone_bytes,
)
from eeio.machine.undo import UndoJournal, run_command
from eeio.measure.campaign import safety
from eeio.measure.campaign.invocation import TIMED_OUT, invoke
from eeio.measure.campaign.journal_tracing import JournalWatch
from eeio.measure.campaign.load_maximum import FULL_SPEED, SCRIPT, SETTING, TITLE, Maxima, Maximum
from eeio.measure.campaign.machine_limits import MachineLimits
from eeio.measure.campaign.planned_campaign import Plan, prefilled_bytes
from eeio.measure.campaign.probes import (
    DriveCounters,
    DriveView,
    Flush,
    Meters,
    OtherIo,
    Probe,
    ProcessorSampler,
    Suspension,
    observe,
)
from eeio.measure.campaign.server_power import Energy, NodePower, ServerPower
from eeio.measure.campaign.volumes import Volume, Volumes, raw_device
from eeio.measure.profiles import profile as profiles
from eeio.measure.profiles.installation import Installation
from eeio.record import tools
from eeio.record.design import AdaptiveProtocol, PlannedExperiment, PlannedRun
from eeio.record.reasons import WROTE_NOTHING
from eeio.record.run import (
    CHECKED,
    MEMORY_CACHE,
    STORAGE_CACHE,
    UNCHECKED,
    Durable,
    EnergyReading,
    Experiment,
    Phase,
    Run,
)
from eeio.record.tools.capture import Capture, PhaseResult, ToolResult
from eeio_power.energy import energy_in_parts
from eeio_power.monitor import PowerMonitor

# Power is the mean of this long; a drive without traffic for STILL_S is idle.
_MEAN_S = 2.0
STILL_S = 1.0
_STEP_S = 0.1
# Background traffic of a drive with a mounted file system.
_STILL_BYTES = 256 * 1024


@dataclass(frozen=True)
class Settled:
    """How long it took, s, and as text why it ended."""

    after_s: float
    reason: str


def settle(
    rule: AdaptiveProtocol,
    power: PowerMonitor,
    idle_w: Mapping[tuple[str, str], float],
    devices: Sequence[BlockDevice],
    fixed_s: float,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Settled:
    """Waits `settle_least_s` at least, until power is back at idle and the drives are idle;
    `settle_most_s` at most. `idle_w` are the baselines by meter and domain. Without such a power it
    uses a fixed pause (`fixed_s`, at most `settle_most_s`) and the drive's counters."""
    began_s = clock()
    still_since_s, moved = began_s, _moved(devices)
    while True:
        sleep(_STEP_S)
        now_s = clock()
        past_s = now_s - began_s
        now_moved = _moved(devices)
        if now_moved - moved > _STILL_BYTES:
            still_since_s, moved = now_s, now_moved
        is_still = not devices or now_s - still_since_s >= STILL_S
        share = _share_of_idle(power, idle_w, now_s)
        if share is None:
            if past_s >= min(fixed_s, rule.settle_most_s) and is_still:
                return Settled(past_s, "a fixed pause: no meter shows when it is idle")
        elif past_s >= rule.settle_least_s and is_still and abs(share - 1) <= rule.settle_power:
            return Settled(past_s, "power is back at idle and the drive does no I/O")
        if past_s >= rule.settle_most_s:
            what = "the drive moves still" if not is_still else f"power is {share or 0:.2f} of idle"
            return Settled(past_s, f"not settled after the most there is: {what}")


def _share_of_idle(
    power: PowerMonitor, idle_w: Mapping[tuple[str, str], float], now_s: float
) -> float | None:
    """Of the first meter and domain with values of the last seconds and an idle baseline."""
    if not idle_w:
        return None
    for reading in power.energy(now_s - _MEAN_S, now_s, wait=False):
        idle = idle_w.get((reading.meter, reading.domain))
        if reading.power_w is not None and idle is not None and idle > 0.0:
            return reading.power_w / idle
    return None


def _moved(devices: Sequence[BlockDevice]) -> int:
    counted = map(read_counters, devices)
    return sum(each.read_bytes + each.written_bytes for each in counted)


_PREFILL_FLOOR_BYTES_PER_S = 1e6
# Real data has a zero block here and there.
_TOLERATED_ZERO_SHARE = 0.05
# A server with much memory needs a while to write it back.
_DROP_S = 300.0
# Operations with bytes that must reach the device before they count.
_WRITES = ("write", "mixed")


@dataclass(frozen=True)
class _Prepared:
    """The state in which a tool starts."""

    cache_dropped: str | None
    read_reason: str | None
    prepare_s: float
    notes: tuple[str, ...] = ()
    settled: Settled | None = None
    below_reason: str | None = None
    """Why reads may have come from a cache below the drive, which even direct I/O passes."""
    caches: tuple[CacheBelow, ...] = ()
    """All caches below the drive."""
    never_durable: str | None = None
    """Why no flush shows that data are on the drive."""


@dataclass(frozen=True)
class _Observed:
    """A tool that has ended, and the source of its phases."""

    planned: PlannedExperiment
    capture: Capture
    prepared: _Prepared
    volume: Volume
    device: BlockDevice | None
    probes: Sequence[Probe]
    energy: Energy
    flushed: caches.Sync


class Measurement:
    """Runs a plan, one invocation at a time. Its changes are in the undo journal."""

    def __init__(
        self,
        plan: Plan,
        journal: UndoJournal,
        volumes: Volumes,
        installed: Mapping[str, Installation],
    ) -> None:
        self._plan = plan
        self._installed = installed
        self._journal = journal
        self._volumes = volumes
        self.raw_device = raw_device(plan.options.device) if plan.options.device else None
        self._raw_memory = why_in_memory(self.raw_device) if self.raw_device else None
        self._idle_w: dict[tuple[str, str], float] = {}
        self._maxima = Maxima(volumes.folder)

    def knows_idle(self, readings: Sequence[EnergyReading]) -> None:
        """The idle baseline, by which an adaptive campaign sees that the machine has settled."""
        self._idle_w = {
            (reading.meter, reading.domain): reading.power_w
            for reading in readings
            if reading.power_w is not None and reading.kind != "modelled"
        }

    def device_of(self, planned: PlannedExperiment) -> BlockDevice | None:
        """The drive that its bytes go to; None where none is known. Raises EeioError where its
        volume cannot be made."""
        if planned.experiment.target == "device":
            return self.raw_device
        return self._volumes.get(planned.volume).device

    def measure(self, planned: PlannedRun, begun: Run, raw: Path, power: PowerMonitor) -> Run:
        """The run that `begun` began, its output in the folder `raw`. Raises EeioError and
        PowerError where it cannot be prepared."""
        experiment = planned.experiment
        volume = self._volumes.get(experiment.volume)
        on_raw_device = experiment.experiment.target == "device"
        if on_raw_device:
            self._volumes.check_device()
        elif experiment.volume == "":
            safety.check_folder(volume.directory)
        # A command has no target: `eeio bench --device` names the drive to watch and to flush.
        is_watched = experiment.experiment.is_command and self.raw_device is not None
        device = self.raw_device if on_raw_device or is_watched else volume.device
        raw_devices = () if self.raw_device is None else (self.raw_device,)
        devices = raw_devices if on_raw_device or is_watched else volume.devices
        # Entries here stay until the campaign's end, not only until that of the run.
        reached = self._set_processors(experiment)
        found = len(self._journal.entries)
        try:
            if experiment.experiment.cache.disk is not None:
                if device is None:
                    raise EeioError(f"write cache cannot be switched: {volume.device_reason}")
                caches.switch_write_cache(device, experiment.experiment.cache.disk, self._journal)
            prepared = self._prepare(planned, begun, volume, raw, devices, power)
            if on_raw_device:
                self._volumes.check_device()  # again: the pause may have been long
            options, profile = self._plan.options, self._plan.profiles[experiment.profile]
            servers = ServerPower(
                options.server_power if power.meters else (), raw / "servers", self._journal
            )
            nodes = NodePower(profile, raw / "nodes", options.meters, power, servers)
            raw_device = self.raw_device if on_raw_device or is_watched else None
            node = None if raw_device is None else raw_device.node
            only_here = "only this machine's part was flushed, of several"
            # Stopped in reverse. Those listed before the flush include its writes; the journal's
            # trace ends before it, or it would count as a flush of the tool.
            target = _target(on_raw_device, volume, device)
            of_drive = DriveCounters(
                device, experiment, target, self._journal, self._no_drive(volume, is_watched)
            )
            flush = Flush(
                power, None if on_raw_device else _flushed_folder(volume, raw_device), node,
                only_here if nodes.several else None, of_drive.flushed,
            )  # fmt: skip
            probes = (
                servers,
                nodes,
                DriveView(device, self._journal, self._why_unseen(experiment, device, volume)),
                of_drive,
                OtherIo(devices, experiment, target),
                flush,
                JournalWatch(
                    experiment, volume, raw, self._journal, self._plan.protocol.study,
                    requested=options.trace_journal,
                ),
                MachineLimits(devices),
                Suspension(),
                Meters(power, raw),
                ProcessorSampler(),
            )  # fmt: skip
            scratch = volume.directory / safety.SCRATCH
            prepared_in = safety.folder_identity(scratch)
            capture = observe(
                probes, lambda settings: self._invoke(planned, volume, raw, "run", settings)
            )
            self._conclude(planned, volume, raw)
            was_replaced = prepared_in not in (None, safety.folder_identity(scratch))
            run = replace(
                begun,
                started_utc=iso(capture.started_utc_s),
                started_monotonic_s=capture.started_monotonic_s,
                duration_s=capture.ended_monotonic_s - capture.started_monotonic_s,
                exit_code=capture.exit_code,
                device=device.name if device else None,
                device_reason=None if device else volume.device_reason,
                disk_cache_found=caches.write_cache_found(device) if device else None,
                cache_dropped=prepared.cache_dropped,
                prepare_s=prepared.prepare_s,
                settled_after_s=prepared.settled.after_s if prepared.settled else None,
                settled_reason=prepared.settled.reason if prepared.settled else None,
            )
            if capture.exit_code != 0:
                run = replace(run, validity=(_failure(capture),))
            else:
                run = self._read(
                    replace(run, notes=reached),
                    _Observed(
                        experiment, capture, prepared, volume, device, probes,
                        nodes.energy(capture), flush.done,
                    ),
                )  # fmt: skip
            for probe in probes:
                run = probe.add_to(run)
            if was_replaced:
                why = f"{scratch} was renamed or replaced during the run"
                run = replace(run, validity=(*run.validity, why))
            return run
        finally:
            for entry in reversed(self._journal.entries[found:]):
                self._journal.undo(entry)

    def _prepare(
        self,
        planned: PlannedRun,
        begun: Run,
        volume: Volume,
        raw: Path,
        devices: Sequence[BlockDevice],
        power: PowerMonitor,
    ) -> _Prepared:
        """Files with real data in them, an empty page cache, and a pause to settle."""
        started_s = time.monotonic()
        profile = self._plan.profiles[planned.experiment.profile]
        notes: tuple[str, ...] = ()
        if self._installed[profile.identifier].script("pre.sh") is not None:
            before = raw / "prepare"
            before.mkdir()
            capture = self._invoke(planned, volume, before, "pre")
            if capture.exit_code != 0:
                raise EeioError(f"preparing the test files failed: {_failure(capture)}")
            notes = tuple((before / "stdout.txt").read_text(errors="replace").splitlines()[-1:])
            shutil.rmtree(before)
        if self._offers_load(planned.experiment):
            notes += self._maximum(planned, begun, volume, raw, devices).notes
        found: str | None = None
        reason: str | None = None
        below: str | None = None
        is_raw = planned.experiment.experiment.target == "device"
        directory = volume.served or volume.directory
        every = [*devices, *(() if is_raw else further_devices(directory))]
        below_devices = [cache for each in every for cache in caches_below(each)]
        of_directory = _caches_of_directory(planned.experiment.experiment, volume)
        known = tuple(dict.fromkeys([*of_directory, *below_devices]))
        # For a command the user decides whether its caches are cold (`eeio bench`).
        is_warm = planned.experiment.factors.get("cache") == "warm"
        if is_warm and planned.experiment.experiment.is_command:
            # Data that --prepare or another program changed are not the command's to flush.
            os.sync()
        if planned.experiment.experiment.level != "context" and not is_warm:
            on_raw_device = planned.experiment.experiment.target == "device"
            node = self.raw_device.node if on_raw_device and self.raw_device else None
            found, reason = caches.drop(volume.test_files, node)
            if not caches.drops_all():
                through = _of_caches(known).get(MEMORY_CACHE)
                below = through and f"reads may have been served {through} (run as root)"
            if (command := self._plan.options.drop_caches_by) is not None:
                run_command(["sh", "-c", command], _DROP_S)
                found += f"; and by `{command}`"
            reads = planned.experiment.experiment.operation == "read"
            if node is not None and reads:
                zone = zone_bytes(self.raw_device)
                reason = _never_written(node, planned.experiment.file_bytes, zone) or reason
        never = why_flushes_end_early(None if is_raw else mount_of(directory), every)
        prepare_s = time.monotonic() - started_s
        protocol = self._plan.protocol
        if protocol.adaptive is None:
            time.sleep(protocol.settle_s)
            return _Prepared(found, reason, prepare_s, notes, None, below, known, never)
        settled = settle(protocol.adaptive, power, self._idle_w, devices, protocol.settle_s)
        return _Prepared(found, reason, prepare_s, notes, settled, below, known, never)

    def _conclude(self, planned: PlannedRun, volume: Volume, raw: Path) -> None:
        """The command that is to follow this run of a command, once its bytes are on the device."""
        if "conclude" not in planned.experiment.factors:
            return
        folder = raw / "conclude"
        folder.mkdir()
        capture = self._invoke(planned, volume, folder, "conclude")
        if capture.exit_code != 0:
            raise EeioError(f"--conclude failed: {_failure(capture)}")
        shutil.rmtree(folder)

    def _offers_load(self, planned: PlannedExperiment) -> bool:
        """Whether it is a share of what the same experiment reaches at full speed."""
        script = self._installed[planned.profile].script(SCRIPT)
        return script is not None and "load" in planned.factors

    def _maximum(
        self,
        planned: PlannedRun,
        begun: Run,
        volume: Volume,
        raw: Path,
        devices: Sequence[BlockDevice],
    ) -> Maximum:
        """The campaign's, or a new one, which is judged as a run is. Raises EeioError if it cannot
        be used: then the next run measures it again."""
        experiment = planned.experiment
        if (known := self._maxima.of(experiment)) is not None:
            return known
        on_raw_device = experiment.experiment.target == "device"
        device = self.raw_device if on_raw_device else volume.device
        target = _target(on_raw_device, volume, device)
        probes = (
            DriveCounters(device, experiment, target, self._journal),
            OtherIo(devices, experiment, target),
            MachineLimits(devices),
            Suspension(),
        )
        folder = raw / "full-speed"
        folder.mkdir()
        capture = observe(
            probes,
            lambda settings: self._invoke(
                planned, volume, folder, "run", {**settings, **FULL_SPEED}
            ),
        )
        if capture.exit_code != 0:
            raise EeioError(f"{TITLE}, failed: {_failure(capture)}")
        result = tools.parse(experiment.experiment.tool, capture)
        for probe in reversed(probes):
            result = probe.add_to_result(result, begun)
        reasons = dict.fromkeys(reason for phase in result.phases for reason in phase.invalid)
        if reasons:
            raise EeioError(f"{TITLE}: {'; '.join(reasons)}")
        run = replace(
            begun,
            started_monotonic_s=capture.started_monotonic_s,
            duration_s=capture.ended_monotonic_s - capture.started_monotonic_s,
            phases=tuple(phase.recorded((), ()) for phase in result.phases),
        )
        for probe in probes:
            run = probe.add_to(run)
        fastest = max((phase.bandwidth_bytes_per_s or 0.0 for phase in run.phases), default=0.0)
        if fastest < 1.0:
            raise EeioError(f"{TITLE}, moved no bytes")
        maximum = Maximum(int(fastest), tuple(run.remarks.values()))
        self._maxima.add(experiment, maximum)
        shutil.rmtree(folder)
        return maximum

    def _why_unseen(
        self, planned: PlannedExperiment, device: BlockDevice | None, volume: Volume
    ) -> str | None:
        """Why the order of the drive's requests is not looked at; None where it is."""
        if not self._plan.options.see_order:
            return "the drive's request order was not requested (--see-order)"
        if planned.experiment.level == "context":
            return "no measurement of the drive"
        if device is None:
            return volume.device_reason
        if self._plan.protocol.study is not None or self._plan.options.trace_journal:
            return "only the journal is traced in this run"
        return None

    def _set_processors(self, planned: PlannedExperiment) -> tuple[str, ...]:
        """Sets the experiment's frequency, if it has one, and returns its measured value; else SMT
        and turbo, if it has them.

        EeioError if it was not reached: the run's figures would be for another frequency.
        """
        root = self._plan.options.frequency_root
        if planned.frequency_hz is None:
            if planned.smt is not None or planned.turbo is not None:
                frequency.switch_smt_and_turbo(planned.smt, planned.turbo, self._journal, root)
            return ()
        frequency.prepare(self._journal, root)
        frequency.set_frequency(planned.frequency_hz, self._journal, root)
        achieved = frequency.verify(planned.frequency_hz, root)
        if achieved.reached is False:
            raise EeioError(achieved.text)
        return (achieved.text,)

    def _invoke(
        self,
        planned: PlannedRun,
        volume: Volume,
        raw: Path,
        script: str,
        settings: Mapping[str, str] | None = None,
    ) -> Capture:
        """Runs the profile's executable (`run`) or its pre.sh (`pre`) as PTS would; or a command's
        --conclude (`conclude`)."""
        experiment = planned.experiment
        installed = self._installed[experiment.profile]
        home = installed.home
        arguments = [f"{key}={value}" for key, value in sorted(experiment.factors.items())]
        timeout_s = self._plan.timeout_s(experiment)
        if script == "pre":
            command = ["sh", str(installed.script("pre.sh")), *arguments]
            timeout_s += prefilled_bytes(experiment) / _PREFILL_FLOOR_BYTES_PER_S
        elif script == "conclude":
            factors = experiment.factors
            command = ["sh", "-c", 'cd "$1" && exec sh -c "$2"', "sh"]
            command += [factors["directory"], factors["conclude"]]
        else:
            command = [str(installed.executable), *arguments]
        return invoke(
            command,
            directory=raw,
            home=home,
            environment=profiles.script_environment(
                home, {**self.settings(planned, volume, str(raw), experiment), **(settings or {})}
            ),
            factors=experiment.factors,
            timeout_s=timeout_s,
            journal=self._journal,
            # Servers of profiles run as other users, and pass through these folders.
            umask=-1 if experiment.experiment.is_command else 0o022,
        )

    def settings(
        self, planned: PlannedRun, volume: Volume, output: str, experiment: PlannedExperiment
    ) -> Mapping[str, str]:
        """The EEIO_* variables, the same under PTS."""
        options = self._plan.options
        on_raw_device = experiment.experiment.target == "device"
        maximum = self._maxima.of(experiment) if self._offers_load(experiment) else None
        return {
            "EEIO_PRESET": self._plan.sizes_preset,
            "EEIO_DIRECTORY": str(volume.directory),
            "EEIO_DEVICE": (options.device or "") if on_raw_device else "",
            # With the name in EEIO_DEVICE, which profiles compare it with; check_erasable has
            # verified that both options mean the same device. No name is a link.
            "EEIO_ERASE": (options.device or "") if on_raw_device and options.erase else "",
            "EEIO_OUTPUT_DIR": output,
            "EEIO_PYTHON": sys.executable,
            "EEIO_RUN_SEED": str(planned.seed),
            # Only of the measured call: prefilling starts ranks too.
            "EEIO_NODE_POWER": "",
            SETTING: "" if maximum is None else str(maximum.bytes_per_s),
        }

    def _read(self, run: Run, observed: _Observed) -> Run:
        """Metrics, checks against the device, and energy."""
        device = observed.device
        try:
            result = tools.parse(run.experiment.tool, observed.capture)
        except ToolOutputError as error:
            return replace(run, validity=(str(error),))
        for probe in reversed(observed.probes):
            result = probe.add_to_result(result, run)
        notes = [*run.notes, *result.notes, *observed.prepared.notes]
        if run.device is None and result.phases:
            notes.append(f"{UNCHECKED}: {run.device_reason}")
        elif device is not None and (over := counters.lies_on(device)) is not None:
            notes.append(f"{CHECKED} {over}")
        if device is not None and (away := elsewhere(device)) is not None:
            notes.append(away)
        memory = self._why_in_memory(run, observed.volume)
        return replace(
            run,
            phases=tuple(_phase(phase, run, observed, result, memory) for phase in result.phases),
            context=result.context,
            notes=(*notes, *observed.capture.notes),
            remarks=_of_caches(observed.prepared.caches),
        )

    def _no_drive(self, volume: Volume, is_watched: bool) -> str | None:
        """Why no drive's counters show a command's bytes: there is no drive, its data are in
        memory, or it is not known. `is_watched`: the user named a device."""
        if is_watched:
            return self._raw_memory
        return volume.memory or (volume.device_reason if volume.device is None else None)

    def _why_in_memory(self, run: Run, volume: Volume) -> str | None:
        """Why no storage device was measured; None where one was. A user's command has figures
        without one, but no bytes (`_no_drive`)."""
        if run.experiment.is_command:
            return None
        return self._raw_memory if run.experiment.target == "device" else volume.memory


def _flushed_folder(volume: Volume, watched: BlockDevice | None) -> Path | None:
    """The folder with the file system to flush: the volume's, unless it is not on the device that
    the user named."""
    if watched is None or other_io.share_a_disk(volume.devices, [watched]):
        return volume.directory
    return None


_HOW_TO_BYPASS = "; for a loop device, `losetup --direct-io=on DEVICE` bypasses it"


def _target(on_raw_device: bool, volume: Volume, device: BlockDevice | None) -> other_io.Target:
    """Where the bytes of a run go."""
    mount = None if on_raw_device else mount_of(volume.served or volume.directory)
    if device is None:
        return other_io.Target(mount)
    return other_io.Target(
        mount, other_io.readahead_bytes(device, mount), other_io.may_have_programs(device)
    )


def _caches_of_directory(experiment: Experiment, volume: Volume) -> list[CacheBelow]:
    """Those of a FUSE file system's program; the page cache, if direct I/O is requested on a file
    system that has none."""
    if experiment.target == "device":
        return []
    directory = (volume.served or volume.directory).resolve()
    mount = mount_of(directory)
    if is_served_by_a_program(mount):
        program = f"the program that serves {mount.mount_point} ({mount.filesystem})"
        return [CacheBelow(f"the caches of {program}", True)]
    if experiment.cache.buffer != "off":
        return []
    why = why_file_not_direct(directory, mount)
    return [] if why is None else [CacheBelow(f"the page cache: {why}", False)]


def _of_caches(found: Sequence[CacheBelow]) -> dict[str, str]:
    """The remarks on caches below the device."""
    kinds = ((MEMORY_CACHE, True), (STORAGE_CACHE, False))
    texts = {
        kind: ", ".join(cache.text for cache in found if cache.in_memory is in_memory)
        for kind, in_memory in kinds
    }
    return {kind: f"through {text}" for kind, text in texts.items() if text}


def _phase(
    phase: PhaseResult, run: Run, observed: _Observed, result: ToolResult, memory: str | None
) -> Phase:
    """A parsed phase with its energy and every reason not to use it."""
    prepared, energy_of = observed.prepared, observed.energy
    validity = [*phase.invalid]
    # Direct I/O of a client does not go past its server's cache.
    cached = (
        run.experiment.cache.buffer == "on"
        or run.experiment.target == "device"
        or observed.volume.served is not None
    )
    # Where reads may be of a phase's own writes, the drive's counters do not prove the cache empty.
    is_unproven = counters.read_back_bytes(run.experiment, [phase]) > 0
    if cached and (phase.operation == "read" or is_unproven) and prepared.read_reason:
        validity.append(prepared.read_reason)
    if memory is not None:
        validity.append(f"no storage device was measured: {memory}")
    if phase.operation in ("read", "mixed") and prepared.below_reason is not None:
        validity.append(prepared.below_reason)
    through = _of_caches(prepared.caches).get(MEMORY_CACHE)
    if run.experiment.level == "device" and through is not None:
        validity.append(f"no device was measured: {through}{_HOW_TO_BYPASS}")
    readings: tuple[EnergyReading, ...] = ()
    began_s = run.started_monotonic_s
    if phase.stretches:
        readings = energy_in_parts(
            energy_of, [(began_s + one.start_s, began_s + one.end_s) for one in phase.stretches]
        )
    elif phase.start_s is not None and phase.end_s is not None:
        readings = energy_of(began_s + phase.start_s, began_s + phase.end_s)
    durable, reason = _until_durable(
        phase, result.phases, observed.flushed, began_s, prepared.never_durable,
        is_command=run.experiment.is_command,
    )  # fmt: skip
    if durable is not None and phase.start_s is not None:
        same = durable.end_s == phase.end_s
        energy = readings if same else energy_of(began_s + phase.start_s, began_s + durable.end_s)
        durable = replace(durable, energy=energy)
    if phase.edges_unsure_s:
        readings = _with_edges(readings, phase.edges_unsure_s)
        if durable is not None:
            durable = replace(durable, energy=_with_edges(durable.energy, phase.edges_unsure_s))
    recorded = phase.recorded(readings, tuple(validity))
    return replace(recorded, until_durable=durable, durable_reason=reason)


def _with_edges(readings: tuple[EnergyReading, ...], unsure_s: float) -> tuple[EnergyReading, ...]:
    """Readings with the energy of the time by which the window's edges may be off, added to their
    uncertainty."""
    return tuple(
        reading
        if reading.power_w is None or reading.uncertainty_j is None
        else replace(reading, uncertainty_j=reading.uncertainty_j + abs(reading.power_w) * unsure_s)
        for reading in readings
    )


def _until_durable(
    phase: PhaseResult, all_phases: Sequence[PhaseResult], synced: caches.Sync, began_s: float,
    never: str | None = None, *, is_command: bool = False,
) -> tuple[Durable | None, str | None]:  # fmt: skip
    """When the phase's bytes were on the device, or why that is unknown: by the tool's flush if it
    reported one, else by the flush right after it, which is the last write's. `never`: why no
    flush shows it."""
    if phase.operation in _WRITES and never is not None:
        is_nothing = phase.durable_reason == WROTE_NOTHING
        return None, WROTE_NOTHING if is_nothing else never
    known = phase.until_durable or phase.durable_reason
    # A phase in several stretches includes its flush: the time from its start includes other work.
    if phase.operation not in _WRITES or known or (phase.stretches and phase.includes_flush):
        return phase.until_durable, phase.durable_reason
    if phase.stretches:
        return None, "its I/O has several intervals, so the time of durability is unknown"
    # A command may change a file system without bytes in its account: its parser and its probe
    # decide whether it wrote. The bytes that it read may be another drive's.
    written = phase.metrics.get("bytes_written", phase.bytes_moved)
    if written is None and not is_command:
        return None, "the number of written bytes is unknown"
    if phase.start_s is None or phase.end_s is None or not (written or is_command):
        return None, f"when it wrote is not known: {phase.window_source}"
    if any((other.end_s or 0.0) > phase.end_s for other in all_phases):
        return None, "other I/O of the same run followed before its bytes were flushed"
    if synced.error is not None:
        return None, f"not flushed: {synced.error}"
    end_s = synced.end_s - began_s
    lasted_s = end_s - phase.start_s
    rate = None if phase.bytes_moved is None else phase.bytes_moved / lasted_s
    return Durable(end_s, rate, synced.source), None


def _never_written(node: Path, length_bytes: int, zone: int | None) -> str | None:
    """Why reads of a device that could not be prefilled do not measure its medium, or None. `zone`:
    the size of its zones, bytes."""
    zones: list[devices.Zone] = []
    if zone is not None:
        sectors = -(-length_bytes // 512)
        command = ["blkzone", "report", "-o", "0", "-l", str(sectors), str(node)]
        with suppress(EeioError):  # without it, gaps at the ends of zones count as zeros
            zones = devices.zones_of(run_command(command))
    share = devices.zero_share(node, length_bytes, zone or 0, zones)
    if share <= _TOLERATED_ZERO_SHARE:
        return None
    return (
        f"{share:.0%} of the first {length_bytes} bytes of {node} read as zeros: never written or "
        "trimmed, so reading them need not touch the medium; --erase lets eeio fill the device"
    )


def _failure(capture: Capture) -> str:
    """The exit code and the tool's last message."""
    for name in ("stderr.txt", "stdout.txt"):
        lines = (capture.directory / name).read_text(errors="replace").strip().splitlines()
        if lines:
            message = lines[-1][:300]
            break
    else:
        message = "no output"
    if capture.exit_code == TIMED_OUT:
        return f"given up after {capture.ended_monotonic_s - capture.started_monotonic_s:.0f} s"
    # As a shell reports that a signal ended its command, or Popen that it ended the wrapper itself.
    number = capture.exit_code - 128 if capture.exit_code > 128 else -capture.exit_code
    if capture.exit_code != 0 and number in {known.value for known in signal.Signals}:
        name = signal.Signals(number).name
        return f"killed ({name}) before it was done, and before a flush at its end: {message}"
    return f"exit code {capture.exit_code}: {message}"


def iso(utc_s: float) -> str:
    """A time in the format of the records."""
    return datetime.fromtimestamp(utc_s, UTC).isoformat(timespec="milliseconds")
