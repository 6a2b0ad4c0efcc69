"""One run: the state it starts in, the tool's process, its record."""

import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from eeio.errors import EeioError, ToolOutputError
from eeio.machine import caches, counters, frequency, nvme_power, other_io
from eeio.machine.below import why_in_memory
from eeio.machine.drive import elsewhere
from eeio.machine.durability import why_flushes_end_early
from eeio.machine.filesystem import (
    BlockDevice,
    mount_of,
)
from eeio.machine.undo import UndoJournal
from eeio.measure.campaign import safety
from eeio.measure.campaign.invocation import TIMED_OUT, invoke
from eeio.measure.campaign.journal_tracing import JournalWatch
from eeio.measure.campaign.load_maximum import FULL_SPEED, SCRIPT, SETTING, TITLE, Maxima, Maximum
from eeio.measure.campaign.machine_limits import MachineLimits
from eeio.measure.campaign.planned_campaign import Plan, prefilled_bytes
from eeio.measure.campaign.preparation import (
    Dropped,
    Prepared,
    all_caches_below,
    drop_caches,
    remarks_of_caches,
)
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
from eeio.measure.campaign.recorded_phase import Observed, recorded_phase
from eeio.measure.campaign.server_power import NodePower, ServerPower
from eeio.measure.campaign.settling import Settled, settle
from eeio.measure.campaign.variants import POWER_STATE
from eeio.measure.campaign.volumes import Volume, Volumes, raw_device
from eeio.measure.profiles import profile as profiles
from eeio.measure.profiles.installation import Installation
from eeio.record import tools
from eeio.record.design import PlannedExperiment, PlannedRun
from eeio.record.run import (
    CHECKED,
    UNCHECKED,
    EnergyReading,
    Run,
)
from eeio.record.tools.capture import Capture
from eeio_power.monitor import PowerMonitor

_PREFILL_FLOOR_BYTES_PER_S = 1e6


@dataclass(frozen=True)
class _Drives:
    """Where the bytes of a run go. `opened` is the device that the tool opens itself, or that the
    user named for a command (`is_watched`)."""

    on_raw_device: bool
    is_watched: bool
    opened: BlockDevice | None
    device: BlockDevice | None
    devices: Sequence[BlockDevice]
    target: other_io.Target


class Measurement:
    """Runs the runs of a plan, one at a time. Its changes are in the undo journal."""

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
        self.raw_device: BlockDevice | None = None
        if plan.options.device:
            self.raw_device = raw_device(plan.options.device)
        self._raw_memory: str | None = None
        if self.raw_device:
            self._raw_memory = why_in_memory(self.raw_device)
        self._idle_w: dict[tuple[str, str], float] = {}
        self._maxima = Maxima(volumes.folder)

    def set_idle_baseline(self, readings: Sequence[EnergyReading]) -> None:
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
        if experiment.experiment.target == "device":
            self._volumes.check_device()
        elif experiment.volume == "":
            safety.check_folder(volume.directory)
        drives = self._drives(experiment, volume)
        # These settings stay until the campaign's end, the others only until that of the run.
        frequency_notes = self._set_processors(experiment)
        with self._changes_undone():
            self._switch_write_cache(experiment, volume, drives)
            self._set_power_state(experiment, drives)
            prepared = self._prepare(planned, begun, volume, raw, drives.devices, power)
            if drives.on_raw_device:
                self._volumes.check_device()  # again: the pause may have been long
            servers = ServerPower(
                self._plan.options.server_power if power.meters else (),
                raw / "servers",
                self._journal,
            )
            profile = self._plan.profiles[experiment.profile]
            nodes = NodePower(profile, raw / "nodes", self._plan.options.meters, power, servers)
            flush, probes = self._probes(experiment, volume, drives, servers, nodes, raw, power)
            scratch = volume.directory / safety.SCRATCH
            scratch_before = safety.folder_identity(scratch)
            capture = observe(
                probes, lambda settings: self._invoke(planned, volume, raw, "run", settings)
            )
            left_state = self._why_not_in_power_state(experiment, drives)
            self._conclude(planned, volume, raw)
            scratch_after = safety.folder_identity(scratch)
            was_replaced = scratch_before is not None and scratch_before != scratch_after
            run = _ended(begun, capture, prepared, drives.device, volume)
            if capture.exit_code != 0:
                run = replace(run, validity=(_failure(capture),))
            else:
                energy = nodes.energy(capture)
                observed = Observed(
                    experiment, capture, prepared, volume, drives.device, probes, energy, flush.done
                )
                run = self._read(replace(run, notes=frequency_notes), observed)
            for probe in probes:
                run = probe.add_to(run)
            if left_state is not None:
                run = replace(run, validity=(*run.validity, left_state))
            if was_replaced:
                reason = f"{scratch} was renamed or replaced during the run"
                run = replace(run, validity=(*run.validity, reason))
            return run

    def _drives(self, planned: PlannedExperiment, volume: Volume) -> _Drives:
        on_raw_device = planned.experiment.target == "device"
        # A command has no target: `eeio bench --device` names the drive to watch and to flush.
        is_watched = planned.experiment.is_command and self.raw_device is not None
        raw, device, drives = None, volume.device, volume.devices
        if on_raw_device or is_watched:
            raw = device = self.raw_device
            drives = ()
            if raw is not None:
                drives = (raw,)
        target = _target(on_raw_device, volume, device)
        return _Drives(on_raw_device, is_watched, raw, device, drives, target)

    @contextmanager
    def _changes_undone(self) -> Iterator[None]:
        """Undoes at its end what is noted in the journal meanwhile."""
        before = len(self._journal.entries)
        try:
            yield
        finally:
            for entry in reversed(self._journal.entries[before:]):
                self._journal.undo(entry)

    def _switch_write_cache(
        self, planned: PlannedExperiment, volume: Volume, drives: _Drives
    ) -> None:
        state = planned.experiment.cache.disk
        if state is None:
            return
        if drives.device is None:
            raise EeioError(f"write cache cannot be switched: {volume.device_reason}")
        caches.switch_write_cache(drives.device, state, self._journal)

    def _set_power_state(self, planned: PlannedExperiment, drives: _Drives) -> None:
        """Of an NVMe drive; it changes states by itself no longer, until the run has ended."""
        text = dict(planned.experiment.arguments).get(POWER_STATE)
        if text is None or drives.device is None:
            return
        controller = nvme_power.controller_of(drives.device.disk_sysfs)
        if controller is None:
            raise EeioError(f"{drives.device.node} is not an NVMe drive: no power state is set")
        nvme_power.hold_state(controller, int(text), self._journal)

    def _why_not_in_power_state(self, planned: PlannedExperiment, drives: _Drives) -> str | None:
        """Why the tool did not run in the drive's power state, or None."""
        text = dict(planned.experiment.arguments).get(POWER_STATE)
        if text is None or drives.device is None:
            return None
        controller = nvme_power.controller_of(drives.device.disk_sysfs)
        at_end = None
        if controller is not None:
            at_end = controller.state()
        if at_end == int(text):
            return None
        return f"the drive was in power state {at_end} at the end, not in {text}"

    def _probes(
        self,
        planned: PlannedExperiment,
        volume: Volume,
        drives: _Drives,
        servers: ServerPower,
        nodes: NodePower,
        raw: Path,
        power: PowerMonitor,
    ) -> tuple[Flush, Sequence[Probe]]:
        """The flush after the tool, and all probes: they are stopped in reverse. Those before the
        flush include its writes; the journal's trace ends before it, or it would count as a flush
        of the tool."""
        device = drives.device
        of_drive = DriveCounters(
            device, planned, drives.target, self._journal, self._no_drive(volume, drives.is_watched)
        )
        only_here = "only this machine's part was flushed, of several"
        flush = Flush(
            power,
            None if drives.on_raw_device else _flushed_folder(volume, drives.opened),
            None if drives.opened is None else drives.opened.node,
            only_here if nodes.several else None,
            of_drive.flushed,
        )
        journal_watch = JournalWatch(
            planned,
            volume,
            raw,
            self._journal,
            self._plan.protocol.study,
            requested=self._plan.options.trace_journal,
        )
        return flush, (
            servers,
            nodes,
            DriveView(device, self._journal, self._why_unseen(planned, device, volume)),
            of_drive,
            OtherIo(drives.devices, planned, drives.target),
            flush,
            journal_watch,
            MachineLimits(drives.devices),
            Suspension(),
            Meters(power, raw),
            ProcessorSampler(),
        )

    def _prepare(
        self,
        planned: PlannedRun,
        begun: Run,
        volume: Volume,
        raw: Path,
        devices: Sequence[BlockDevice],
        power: PowerMonitor,
    ) -> Prepared:
        """Files with real data in them, an empty page cache, and a pause to settle. A load that is
        a share of the full speed has a run at full speed first."""
        started_s = time.monotonic()
        experiment = planned.experiment
        notes = self._make_files(planned, volume, raw)
        if self._offers_load(experiment):
            notes += self._maximum(planned, begun, volume, raw, devices).notes
        below, every = all_caches_below(experiment.experiment, volume, devices)
        dropped = Dropped()
        # For a command the user decides whether its caches are cold (`eeio bench`).
        is_warm = experiment.factors.get("cache") == "warm"
        if is_warm and experiment.experiment.is_command:
            # Data that --prepare or another program changed are not the command's to flush.
            os.sync()
        is_raw = experiment.experiment.target == "device"
        if experiment.experiment.level != "context" and not is_warm:
            raw_device = None
            if is_raw:
                raw_device = self.raw_device
            dropped = drop_caches(
                experiment, volume, raw_device, below, self._plan.options.drop_caches_by
            )
        mount = None
        if not is_raw:
            mount = mount_of(volume.served or volume.directory)
        never = why_flushes_end_early(mount, every)
        prepare_s = time.monotonic() - started_s
        settled = self._settle(devices, power)
        return Prepared(dropped, prepare_s, notes, settled, below, never)

    def _make_files(self, planned: PlannedRun, volume: Volume, raw: Path) -> tuple[str, ...]:
        """Runs the profile's pre.sh, and returns its last line."""
        if self._installed[planned.experiment.profile].script("pre.sh") is None:
            return ()
        folder = raw / "prepare"
        folder.mkdir()
        capture = self._invoke(planned, volume, folder, "pre")
        if capture.exit_code != 0:
            raise EeioError(f"preparing the test files failed: {_failure(capture)}")
        notes = tuple((folder / "stdout.txt").read_text(errors="replace").splitlines()[-1:])
        shutil.rmtree(folder)
        return notes

    def _settle(self, devices: Sequence[BlockDevice], power: PowerMonitor) -> Settled | None:
        """The pause before the tool; None for a fixed one."""
        protocol = self._plan.protocol
        if protocol.adaptive is None:
            time.sleep(protocol.settle_s)
            return None
        return settle(protocol.adaptive, power, self._idle_w, devices, protocol.settle_s)

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
        device = volume.device
        if on_raw_device:
            device = self.raw_device
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

        EeioError if it was not frequency_notes: the run's figures would be for another frequency.
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
        # Servers of profiles run as other users, and pass through these folders.
        umask = 0o022
        if experiment.experiment.is_command:
            umask = -1
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
            umask=umask,
        )

    def settings(
        self, planned: PlannedRun, volume: Volume, output: str, experiment: PlannedExperiment
    ) -> Mapping[str, str]:
        """The EEIO_* variables, the same under PTS."""
        options = self._plan.options
        on_raw_device = experiment.experiment.target == "device"
        maximum = None
        if self._offers_load(experiment):
            maximum = self._maxima.of(experiment)
        maximum_text = ""
        if maximum is not None:
            maximum_text = str(maximum.bytes_per_s)
        device, erased = "", ""
        if on_raw_device:
            device = options.device or ""
        if options.erase:
            erased = device
        return {
            "EEIO_PRESET": self._plan.sizes_preset,
            "EEIO_DIRECTORY": str(volume.directory),
            "EEIO_DEVICE": device,
            # With the name in EEIO_DEVICE, which profiles compare it with; check_erasable has
            # verified that both options mean the same device. No name is a link.
            "EEIO_ERASE": erased,
            "EEIO_OUTPUT_DIR": output,
            "EEIO_PYTHON": sys.executable,
            "EEIO_RUN_SEED": str(planned.seed),
            # Only of the measured call: prefilling starts ranks too.
            "EEIO_NODE_POWER": "",
            SETTING: maximum_text,
        }

    def _read(self, run: Run, observed: Observed) -> Run:
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
            phases=tuple(
                recorded_phase(phase, run, observed, result, memory) for phase in result.phases
            ),
            context=result.context,
            notes=(*notes, *observed.capture.notes),
            remarks=remarks_of_caches(observed.prepared.caches),
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
        if run.experiment.target == "device":
            return self._raw_memory
        return volume.memory


def _flushed_folder(volume: Volume, watched: BlockDevice | None) -> Path | None:
    """The folder with the file system to flush: the volume's, unless it is not on the device that
    the user named."""
    if watched is None or other_io.share_a_disk(volume.devices, [watched]):
        return volume.directory
    return None


def _target(on_raw_device: bool, volume: Volume, device: BlockDevice | None) -> other_io.Target:
    """Where the bytes of a run go."""
    mount = None
    if not on_raw_device:
        mount = mount_of(volume.served or volume.directory)
    if device is None:
        return other_io.Target(mount)
    return other_io.Target(
        mount, other_io.readahead_bytes(device, mount), other_io.may_have_programs(device)
    )


def _ended(
    begun: Run, capture: Capture, prepared: Prepared, device: BlockDevice | None, volume: Volume
) -> Run:
    """The run with its times, its exit code, and the state in which it started."""
    settled = prepared.settled
    device_name, device_reason, disk_cache = None, volume.device_reason, None
    if device:
        device_name, device_reason, disk_cache = device.name, None, caches.write_cache_found(device)
    settled_after_s, settled_reason = None, None
    if settled:
        settled_after_s, settled_reason = settled.after_s, settled.reason
    return replace(
        begun,
        started_utc=iso(capture.started_utc_s),
        started_monotonic_s=capture.started_monotonic_s,
        duration_s=capture.ended_monotonic_s - capture.started_monotonic_s,
        exit_code=capture.exit_code,
        device=device_name,
        device_reason=device_reason,
        disk_cache_found=disk_cache,
        cache_dropped=prepared.dropped.cache_dropped,
        prepare_s=prepared.prepare_s,
        settled_after_s=settled_after_s,
        settled_reason=settled_reason,
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
    number = -capture.exit_code
    if capture.exit_code > 128:
        number = capture.exit_code - 128
    if capture.exit_code != 0 and number in {known.value for known in signal.Signals}:
        name = signal.Signals(number).name
        return f"killed ({name}) before it was done, and before a flush at its end: {message}"
    return f"exit code {capture.exit_code}: {message}"


def iso(utc_s: float) -> str:
    """A time in the format of the records."""
    return datetime.fromtimestamp(utc_s, UTC).isoformat(timespec="milliseconds")
