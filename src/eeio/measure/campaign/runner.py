"""Runs a plan: one run at a time, each verified and on disk before the next begins."""

import errno
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from eeio.errors import (
    EeioError,
    InterruptedCampaignError,
    LimitError,
    RejectedError,
    ToolOutputError,
)
from eeio.files import typed
from eeio.machine import frequency, image
from eeio.machine.drive import temperature_outside_limits_c, wear
from eeio.machine.filesystem import BlockDevice, backing_devices
from eeio.machine.lock import FolderLock, drive_lock, machine_lock
from eeio.machine.undo import UndoJournal
from eeio.measure import environment
from eeio.measure.campaign import rounds, safety, server_power, shared_process
from eeio.measure.campaign.annotations import annotated
from eeio.measure.campaign.forecast import cannot_resolve
from eeio.measure.campaign.invocation import invoke
from eeio.measure.campaign.measurement import Measurement, iso
from eeio.measure.campaign.pilots import Pilots
from eeio.measure.campaign.planned_campaign import Plan
from eeio.measure.campaign.progress import Progress, cost_of_run, format_duration, run_text
from eeio.measure.campaign.rounds import WriteBudget
from eeio.measure.campaign.run_order import another_round
from eeio.measure.campaign.sharing import Sharing, missing, why_shared, without_energy
from eeio.measure.campaign.volumes import Volumes, raw_device
from eeio.measure.drives import states
from eeio.measure.power import idle_medians, recorded
from eeio.measure.profiles import installation
from eeio.measure.profiles import profile as profiles
from eeio.measure.profiles.installation import Installation, Program
from eeio.measure.restoring import tell
from eeio.measure.signals import signals_raise
from eeio.record import drive_states
from eeio.record.design import AdaptiveProtocol, PlannedExperiment, PlannedRun, SteadyProtocol, Wear
from eeio.record.run import MARKS, Run, Tool
from eeio.record.steady_state import goes_on, state
from eeio.record.store import Campaign, Store, load
from eeio.units.quantities import DURATION
from eeio_power import idleness
from eeio_power.calibration import delayed_channels
from eeio_power.errors import PowerError
from eeio_power.monitor import PowerMonitor, PowerSource, open_source

_PILOT = "pilot"
"""The folder of a pilot's output, which is not stored."""


@dataclass(frozen=True)
class Outcome:
    """How a campaign ended."""

    campaign: Campaign

    @property
    def runs(self) -> int:
        """In all."""
        return len(self._every)

    @property
    def invalid(self) -> int:
        """Runs that cannot be used as they are."""
        return sum(not run.valid for run in self._every)

    @property
    def _every(self) -> tuple[Run, ...]:
        return (*self.campaign.set_aside, *self.campaign.runs)


def execute(plan: Plan, store: Store, expected_s: float | None = None) -> Outcome:
    """Runs the rest of `plan` into `store`; the caller has `campaign_locks` and `store_lock`.
    `expected_s` is the time of all runs, if it is known better than by the plan.

    Settings, mounts and processes are restored after any end. A signal becomes an
    InterruptedCampaignError between two consistent states; an error of one run is recorded with it
    and the campaign continues.
    """
    done = store.done_indices()  # first: it rejects a file without records
    store.drop_partial_line()
    left = [run for run in plan.runs if run.order_index not in done]
    journal = UndoJournal()
    with (
        annotated(store.folder.name, plan.options.suite, len(left)),
        _naming_left_files(plan),
        signals_raise(f"every finished run is stored, `eeio resume {store.folder.name}` continues"),
    ):
        volumes = Volumes(plan, store.folder, journal)
        try:
            volumes.hold()
            with ExitStack() as stack:
                sharing = None
                if plan.options.share_machine:
                    sharing = Sharing()
                if sharing is not None:
                    stack.enter_context(sharing)
                _Campaign(plan, store, journal, volumes, sharing, stack).run(left, expected_s)
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise EeioError(
                    f"{store.folder}: no space left to store results; the stored runs are "
                    f"complete. Free space, then `eeio resume {store.folder.name}`"
                ) from error
            raise
        finally:
            tell(volumes.close())
    return Outcome(load(store.folder))


@contextmanager
def _naming_left_files(plan: Plan) -> Iterator[None]:
    """`eeio resume` uses them again, so an interrupted campaign leaves them."""
    try:
        yield
    except InterruptedCampaignError as error:
        if (left := safety.left_files(plan.options.directory)) is None:
            raise
        raise InterruptedCampaignError(error.signum, f"{error}; {left}") from error


@contextmanager
def campaign_locks(plan: Plan) -> Iterator[None]:
    """Locks the machine, every disk of the plan, and the processors if the plan sets their
    frequency, SMT or turbo, so that no second campaign uses one meanwhile. RejectedError if one
    does."""
    options = plan.options
    names: set[str] = set()
    folder: Path | None = None
    if options.device is not None:
        device = raw_device(options.device)
        names.add(device.disk_sysfs.name if device else options.device.strip("/"))
    if options.directory is not None:
        devices = backing_devices(Path(options.directory))
        names |= {device.disk_sysfs.name for device in devices}
        if not devices:
            # Other machines may write into it, too.
            names.add(options.directory.strip("/"))
            folder = Path(options.directory)
    if any((p.frequency_hz, p.smt, p.turbo) != (None, None, None) for p in plan.experiments):
        names.add(frequency.lock_name(options.frequency_root))
    with ExitStack() as stack:
        stack.enter_context(machine_lock(shared=options.share_machine))
        for name in sorted(names):
            stack.enter_context(drive_lock(name))
        if folder is not None and plan.files:
            stack.enter_context(FolderLock(folder, str(folder)))
        yield


def store_lock(folder: Path) -> FolderLock:
    """Of a campaign's folder, for the one process that writes it."""
    return FolderLock(folder, f"campaign {folder.name}")


class _Campaign:
    """The state of one start of a campaign."""

    def __init__(
        self,
        plan: Plan,
        store: Store,
        journal: UndoJournal,
        volumes: Volumes,
        sharing: Sharing | None,
        stack: ExitStack,
    ) -> None:
        self._sharing = sharing
        self._stack = stack
        self._programs: dict[str, Program] = {}
        self._installed: dict[str, Installation] = {}
        self._begun = plan
        self._plan = plan
        self._store = store
        self._journal = journal
        self._volumes = volumes
        self._broken: dict[str, str] = {}
        # Read once when the first round of repetitions is planned, then reused.
        self._done: list[Run] | None = None
        self._power_was_judged = False
        self._measurement = self._measuring(plan)

    def _measuring(self, plan: Plan) -> Measurement:
        # The mapping is filled by _install.
        return Measurement(plan, self._journal, self._volumes, self._installed)

    def run(self, left: list[PlannedRun], expected_s: float | None) -> None:
        plan, store = self._plan, self._store
        if expected_s is None:
            expected_s = plan.expected_s
        share = 0.0
        if plan.runs:
            share = len(left) / len(plan.runs)
        with Progress(len(plan.runs), len(plan.runs) - len(left), expected_s * share) as progress:
            self._install(progress)
            self._check_machine()
            source = self._power_source(progress)
            segment = _next_segment(store.folder / "samples")
            samples = store.folder / "samples" / f"power-{segment:04}.csv.gz"
            options = plan.options
            with PowerMonitor(source, samples, options.rate_hz, options.counter_rate_hz) as power:
                if left:
                    self._describe_machine()
                    self._note_wear(self._plan.wear[:1])
                    left = self._pilots(Pilots.work, power, left, progress)
                    self._idle_baseline(power, source, progress)
                    self._remember_idle()
                    left = self._pilots(Pilots.lengths, power, left, progress)
                self._remember_idle()
                left = left or self._another_round(progress)
                has_budget = options.max_written_bytes is not None
                stored_runs: Sequence[Run] = ()
                if has_budget:
                    stored_runs = self._stored()
                budget = WriteBudget(self._plan, stored_runs, segment)
                while left:
                    for group in shared_process.groups(left):
                        if (reason := budget.why_not(group[0].experiment)) is not None:
                            self._end(reason, progress)
                            break
                        self._check_programs(group[0])
                        self._check_temperature()
                        runs = list(map(_storable, self._group(group, power)))
                        self._check_programs(group[0])
                        store.append_all(runs)
                        for run in runs:
                            budget.add(run)
                        power.forget(time.monotonic())
                        if self._done is not None:
                            self._done.extend(runs)
                        text, cost = run_text(group[-1], runs[-1]), cost_of_run(runs[-1])
                        progress.runs_done(len(runs), text, cost)
                        self._note_missing_power(runs[-1], source, progress)
                    left = self._another_round(progress)
                self._measure_drive_states(power, progress)
            self._clean_up()
            self._note_wear(self._plan.wear[:1], again=True)

    def _measure_drive_states(self, power: PowerMonitor, progress: Progress) -> None:
        """After the runs: the settings of a drive that was in a low state are as they were."""
        seconds = self._plan.protocol.drive_states_s
        device = self._measurement.raw_device
        if seconds is None or device is None or (self._store.folder / drive_states.FILE).exists():
            return
        progress.say(f"measuring the power states of {device.node}")
        drive = states.Measured(device.node, seconds, self._plan.protocol.settle_s, power)
        readings, reason = [], None
        try:
            readings = states.of_drive(drive, device, self._journal)
        except EeioError as error:
            reason = str(error)
            progress.say(f"no power states: {reason}")
        measured = drive_states.DriveStates(
            drive_states.SCHEMA_VERSION, str(device.node), tuple(readings), reason
        )
        self._store.write(drive_states.FILE, asdict(measured))

    def _note_wear(self, before: tuple[Wear, ...], again: bool = False) -> None:
        """The drive's health data: once before the first run, and `again` at each end."""
        device = self._drive()
        if device is None or (before and not again):
            return
        worn = wear(device.disk_sysfs)
        if worn is not None:
            self._plan = replace(self._plan, wear=(*before, worn))
            self._store.write_design(self._plan)

    def _drive(self) -> BlockDevice | None:
        return self._measurement.raw_device or self._volumes.get("").device

    def _drives(self) -> tuple[BlockDevice, ...]:
        """All devices of the target."""
        raw_device = self._measurement.raw_device
        if raw_device is not None:
            return (raw_device,)
        return self._volumes.get("").devices

    def _stored(self) -> list[Run]:
        """All runs so far."""
        campaign = load(self._store.folder)
        return sorted((*campaign.set_aside, *campaign.runs), key=lambda run: run.order_index)

    def _end(self, why: str, progress: Progress) -> None:
        """No further run, though the protocol would add more: the stored runs are the campaign.
        Runs are stored in their order, so that those done are the first of the plan."""
        done = len(self._store.done_indices())
        progress.add(done - len(self._plan.runs))
        self._plan = replace(self._plan, runs=self._plan.runs[:done], ended=why)
        self._store.write_design(self._plan)
        progress.say(why)

    def _trial(self, power: PowerMonitor, planned: PlannedExperiment, settles: bool) -> Run:
        """One run of a pilot; its output is not stored."""
        measurement = self._measurement
        if not settles:
            at_once = replace(self._plan.protocol, settle_s=0.0, adaptive=None)
            plan = replace(self._plan, protocol=at_once)
            measurement = self._measuring(plan)
        return self._one(PlannedRun(0, planned, 0, 1), power, measurement, _PILOT)

    def _pilots(
        self,
        find: Callable[[Pilots], Plan],
        power: PowerMonitor,
        left: list[PlannedRun],
        progress: Progress,
    ) -> list[PlannedRun]:
        """The runs with the pilots' results. Only before the first run: all repetitions do the
        same, and a resumed campaign continues unchanged."""
        plan = self._plan
        if len(left) < len(plan.runs):
            return left
        machine = self._store.machine()
        assert machine is not None  # it was described before
        began_s = time.monotonic()
        changed = find(
            Pilots(
                plan,
                self._store.folder.name,
                machine,
                power,
                progress.say,
                trial=lambda planned, settles: self._trial(power, planned, settles),
                device=lambda planned: self._measurement.device_of(planned),
            )
        )
        shutil.rmtree(self._store.folder / "raw" / _PILOT, ignore_errors=True)
        if changed is plan:
            return left
        changed = replace(changed, pilots_s=(plan.pilots_s or 0.0) + time.monotonic() - began_s)
        self._plan = changed
        self._measurement = self._measuring(changed)
        self._store.write_design(changed)
        progress.add(len(changed.runs) - len(plan.runs))
        return list(changed.runs)

    def _another_round(self, progress: Progress) -> list[PlannedRun]:
        """One more repetition of every experiment with an imprecise mean."""
        if self._plan.ended is not None:
            return []
        if self._plan.protocol.steady is not None:
            return self._steady_round(self._plan.protocol.steady, progress)
        if self._plan.protocol.adaptive is not None:
            return self._adaptive_round(self._plan.protocol.adaptive, progress)
        if self._plan.protocol.study is None:
            return []
        if self._done is None:
            self._done = list(load(self._store.folder).runs)
        experiments = rounds.without_known_mean(self._plan, self._done)
        if not experiments:
            return []
        before = len(self._plan.runs)
        self._plan = replace(self._plan, runs=another_round(self._plan, experiments))
        self._store.write_design(self._plan)
        progress.add(len(self._plan.runs) - before)
        progress.say(f"repeating {len(experiments)} experiments with an imprecise mean")
        return list(self._plan.runs[before:])

    def _adaptive_round(self, rule: AdaptiveProtocol, progress: Progress) -> list[PlannedRun]:
        """The repetitions that the stored runs require; stopped experiments, with reasons, are
        stored before the round begins."""
        decided = rounds.next_round(load(self._store.folder), rule)
        before = len(self._plan.runs)
        for planned in self._plan.experiments:
            id = planned.experiment.id
            if id in decided.stopped and id not in self._plan.stopped:
                progress.say(f"{planned.description}: {decided.stopped[id]}")
        self._plan = replace(self._plan, anchors=decided.anchors, stopped=decided.stopped)
        if decided.experiments:
            self._plan = replace(self._plan, runs=another_round(self._plan, decided.experiments))
        self._store.write_design(self._plan)
        progress.add(len(self._plan.runs) - before)
        return list(self._plan.runs[before:])

    def _steady_round(self, rule: SteadyProtocol, progress: Progress) -> list[PlannedRun]:
        """All experiments again, until the drive is in its steady state."""
        reached = state(self._plan, rule, self._stored())
        if not goes_on(reached, rule):
            result = "no steady state"
            if reached.is_steady:
                result = "the drive is in its steady state"
            progress.say(f"{result} after {reached.rounds} rounds")
            return []
        before = len(self._plan.runs)
        self._plan = replace(self._plan, runs=another_round(self._plan, self._plan.experiments))
        self._store.write_design(self._plan)
        progress.add(len(self._plan.runs) - before)
        progress.say(
            f"no steady state yet: {len(reached.restless)} of {len(reached.tracked)} experiments "
            f"still change, round {reached.rounds + 1} of at most {rule.most_rounds}"
        )
        return list(self._plan.runs[before:])

    def _install(self, progress: Progress) -> None:
        for profile in self._plan.profiles.values():
            try:
                installed = installation.find(profile)
                if installed is None:
                    progress.say(f"installing {profile.identifier}")
                    installed = installation.install(profile)
            except EeioError as error:
                progress.say(f"eeio: {error}")
                self._broken[profile.identifier] = str(error)
                continue
            # Another drive may have the name since.
            (installed.home / safety.DEVICE_STATE).unlink(missing_ok=True)
            program = Program(installed)
            self._stack.callback(program.close)
            self._programs[profile.identifier] = program
            self._installed[profile.identifier] = installed

    def _check_programs(self, planned: PlannedRun) -> None:
        """Before and after each run. Runs of another program would be no repetitions."""
        program = self._programs.get(planned.experiment.profile)
        reason = None
        if program is not None:
            reason = program.why_changed()
        if reason is not None:
            name = self._store.folder.name
            raise EeioError(
                f"{planned.experiment.profile}: {reason} while the campaign ran, which stops. "
                f"This run is not stored. Restore the program, then `eeio resume {name}`"
            )

    def _check_temperature(self) -> None:
        """A drive that protects itself is slower, and may be damaged."""
        device = self._drive()
        if device is None:
            return
        temperature_c = temperature_outside_limits_c(device.disk_sysfs)
        if temperature_c is not None:
            raise EeioError(
                f"{device.node}: the drive warns that its temperature, {temperature_c} °C, is "
                "outside of its limits. The campaign stops, and its runs are stored. Cool the "
                f"drive, then `eeio resume {self._store.folder.name}`"
            )

    def _note_missing_power(self, run: Run, source: PowerSource, progress: Progress) -> None:
        """Once, after the first run: a campaign whose meters give nothing is not worth its time."""
        if self._power_was_judged or not source.meters or not run.phases:
            return
        self._power_was_judged = True
        readings = [reading for phase in run.phases for reading in phase.energy]
        if any(reading.power_w is not None for reading in readings):
            return
        reasons = [reason for reading in readings for reason in reading.reasons]
        why = "the tool does not report when its I/O was"
        if reasons:
            why = reasons[0]
        progress.say(f"eeio: this run has no power: {why}")

    def _power_source(self, progress: Progress) -> PowerSource:
        options = self._plan.options
        estimates = options.allow_estimates or not self._plan.protocol.is_measurement
        source = open_source(options.meters, estimates)
        for meter in source.meters:
            kind: str = meter.kind
            if meter.kind in MARKS:
                kind = f"{MARKS[meter.kind]}, not measured"
            unknown = any(channel.delay is None for channel in delayed_channels(meter))
            delay = ""
            if unknown and meter.kind not in MARKS:
                delay = ", delay unknown"
            progress.say(f"power: {meter.name} ({kind}{delay})")
        if source.reason:
            progress.say(f"power: none; {source.reason}")
        for line in cannot_resolve(self._plan, source.meters):
            progress.say(f"power: {line}")
        return source

    def _check_machine(self) -> None:
        """An interrupted campaign continues only if its new runs are still repetitions."""
        before = self._store.machine()
        if before is None:
            return
        volume = self._volumes.get("")
        # File systems made for the campaign are made anew, as they were.
        of_target = not self._plan.made_volumes
        now = environment.capture(
            volume.directory if self._plan.options.directory else None,
            self._drive(),
            self._tools(),
            programs=self._hashes(),
        )
        differences = environment.differences(before, now, of_target)
        differences += [self._broken[name] for name in before.programs if name in self._broken]
        if differences:
            raise RejectedError(
                f"{self._store.folder.name} cannot continue, as its runs would be of two "
                f"machines: {'; '.join(differences)}; restore it, or start another campaign "
                "with `eeio run`"
            )

    def _tools(self) -> list[Tool]:
        tools = [installed.tool for installed in self._installed.values()]
        return [tool for tool in tools if tool is not None]

    def _hashes(self) -> dict[str, str]:
        return {name: installed.sha256 for name, installed in self._installed.items()}

    def _describe_machine(self) -> None:
        if self._store.machine() is not None:
            return
        first = None
        if self._plan.runs:
            first = self._plan.runs[0].experiment
        volume_name = ""
        if first:
            volume_name = first.volume
        volume = self._volumes.get(volume_name)
        machine = environment.capture(
            volume.directory if self._plan.options.directory or volume.mkfs else None,
            self._measurement.raw_device or volume.device,
            self._tools(),
            volume.mkfs,
            self._plan.options.drive_label,
            self._plan.options.hash_serial,
            self._hashes(),
        )
        made = self._plan.made_volumes
        if made:
            commands = map(image.how, made)
            machine = replace(machine, filesystem=", ".join(made), mkfs_options="; ".join(commands))
        self._store.write_machine(machine)

    def _idle_baseline(self, power: PowerMonitor, source: PowerSource, progress: Progress) -> None:
        """The idle power of the machine, before the first run."""
        if self._store.has_idle():
            return
        if source.reason is not None:
            self._store.write_idle((), source.reason)
            return
        if server_power.several():
            self._store.write_idle((), server_power.NO_IDLE)
            return
        if self._plan.options.server_power:
            self._store.write_idle((), server_power.NO_IDLE_OF_SERVERS)
            return
        idle_s = self._plan.protocol.idle_s
        progress.say(f"measuring idle power for {format_duration(idle_s)}")
        if self._sharing is not None:
            self._sharing.begin()
        # What an installation or a pilot has written is written back now, not meanwhile.
        os.sync()
        drives = {device.disk_sysfs.name for device in self._drives()}
        baseline = idleness.wait(idle_s, drives, progress.say)
        start_s, end_s = baseline.start_s, baseline.end_s
        readings = recorded(baseline.readings(power.energy(start_s, end_s)))
        if (reason := self._shared(start_s, end_s)) is not None:
            self._store.write_idle(missing(readings, reason), None)
            return
        if baseline.why_not_idle is not None:
            progress.say(f"no idle baseline: {baseline.why_not_idle}")
        medians_w = power.medians_w(start_s, end_s)
        self._store.write_idle(readings, None, idle_medians(readings, medians_w))

    def _remember_idle(self) -> None:
        """By which an adaptive campaign sees that the machine has settled."""
        if self._plan.protocol.adaptive is not None and self._store.has_idle():
            self._measurement.set_idle_baseline(load(self._store.folder).idle)

    def _group(self, group: Sequence[PlannedRun], power: PowerMonitor) -> list[Run]:
        """The runs of a group, which share a process if there are several."""
        if len(group) == 1:
            return [self._one(group[0], power)]
        run = self._one(shared_process.joined(group), power)
        try:
            return shared_process.separated(run, group, self._store.folder / run.raw)
        except (ToolOutputError, LimitError) as error:
            unusable = replace(run, phases=(), validity=(*run.validity, str(error)))
            return shared_process.separated(unusable, group, self._store.folder / run.raw)

    def _one(
        self,
        planned: PlannedRun,
        power: PowerMonitor,
        measurement: Measurement | None = None,
        name: str | None = None,
    ) -> Run:
        """One repetition of one experiment, whatever becomes of it; `name` is its folder's."""
        experiment = planned.experiment
        raw = self._store.folder / "raw" / (name or _raw_name(planned))
        # Remains of this run from a killed start are not part of its record.
        shutil.rmtree(raw, ignore_errors=True)
        raw.mkdir()
        # First: the end of a campaign that is noted here is before the run's start.
        if self._sharing is not None:
            self._sharing.begin()
        begun = Run(
            experiment=experiment.experiment,
            repetition=planned.repetition,
            order_index=planned.order_index,
            preset=self._plan.options.preset,
            started_utc=_now(),
            started_monotonic_s=time.monotonic(),
            duration_s=0.0,
            exit_code=-1,
            phases=(),
            raw=f"raw/{raw.name}",
        )
        if experiment.profile in self._broken:
            return replace(begun, validity=(self._broken[experiment.profile],))
        try:
            run = (measurement or self._measurement).measure(planned, begun, raw, power)
            reason = self._shared(begun.started_monotonic_s, time.monotonic())
            if reason is None:
                return run
            return without_energy(run, reason)
        # A LimitError means a value out of a record's range: an error of this run, not of the
        # campaign.
        except (EeioError, PowerError, LimitError) as error:
            return replace(
                begun,
                duration_s=time.monotonic() - begun.started_monotonic_s,
                validity=(str(error),),
            )

    def _shared(self, start_s: float, end_s: float) -> str | None:
        """Why energies of that time are not only this campaign's, if so."""
        others: Sequence[str] = ()
        if self._sharing is not None:
            others = self._sharing.overlapping(start_s, end_s)
        if not others:
            return None
        return why_shared(others)

    def _clean_up(self) -> None:
        """post.sh of each profile, on the user's directory; the others end with their mount. For a
        device only too: a profile's stored state of it is no longer valid."""
        volume = self._volumes.get("")
        try:
            safety.check_folder(volume.directory)
        except RejectedError as error:
            print(f"eeio: the test files stay: {error}", file=sys.stderr)
            return
        for identifier, installed in self._installed.items():
            if (script := installed.script("post.sh")) is None:
                continue
            # Of the plan at the start: a pilot that left a profile out left its files as well.
            last = next(r for r in self._begun.runs if r.experiment.profile == identifier)
            target = self._store.folder / "raw" / "clean-up"
            target.mkdir(exist_ok=True)
            invoke(
                ["sh", str(script)],
                directory=target,
                home=installed.home,
                environment=profiles.script_environment(
                    installed.home,
                    self._measurement.settings(last, volume, str(target), last.experiment),
                ),
                factors={},
                timeout_s=300,
                journal=self._journal,
            )
            shutil.rmtree(target)
        with suppress(OSError):
            (volume.directory / safety.SCRATCH).rmdir()


def _next_segment(folder: Path) -> int:
    """One more than the highest number: files between may be missing."""
    name = re.compile(r"power-([0-9]{4,9})\.(csv\.gz|json)")
    numbers = (name.fullmatch(path.name) for path in folder.iterdir())
    return max((int(match[1]) for match in numbers if match), default=0) + 1


def _storable(run: Run) -> Run:
    """The run; an invalid one without its figures where one of them cannot be."""
    try:
        typed.check(run)
    except LimitError as error:
        duration_s = 0.0
        if DURATION.contains(run.duration_s):
            duration_s = run.duration_s
        return replace(
            run,
            phases=(),
            context=(),
            processor=None,
            prepare_s=None,
            sync_s=None,
            duration_s=duration_s,
            device_before=None,
            device_after=None,
            validity=(*run.validity, str(error)),
        )
    return run


def _raw_name(planned: PlannedRun) -> str:
    experiment = planned.experiment.experiment
    return f"{planned.order_index:05}-{experiment.tool}-{experiment.id}-r{planned.repetition}"


def _now() -> str:
    return iso(time.time())
