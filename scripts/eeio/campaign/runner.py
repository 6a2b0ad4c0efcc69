"""Runs a plan: one run at a time, each verified and on disk before the next begins."""

import errno
import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from eeio import environment
from eeio.campaign import nodes, rounds, safety
from eeio.campaign.invocation import TIMED_OUT, invoke
from eeio.campaign.order import another_round
from eeio.campaign.places import Place, Places, raw_device
from eeio.campaign.plan import Plan
from eeio.campaign.progress import Progress, format_duration
from eeio.campaign.watch import JournalWatch
from eeio.errors import RefusedError
from eeio.power import recorded
from eeio.profiles import profile as profiles
from eeio.signals import signals_raise
from eeio.system import caches, counters, frequency, write_cache
from eeio.system import device as devices
from eeio.system.filesystem import BlockDevice, backing_device
from eeio.system.image import MKFS
from eeio.system.lock import TargetLock
from eeio.system.processor import ProcessorSampler
from eeio.system.undo import UndoJournal
from eeio_limits import LimitError
from eeio_limits.quantities import DURATION
from eeio_power.errors import PowerError
from eeio_power.monitor import PowerMonitor, PowerSource, open_source
from eeio_results import tools, typed
from eeio_results.campaign import PlannedExperiment, PlannedRun
from eeio_results.errors import EeioError, ToolOutputError
from eeio_results.record import CHECKED, UNCHECKED, EnergyReading, Phase, Run, Tool
from eeio_results.store import Store, load
from eeio_results.tools.capture import Capture, PhaseResult, ToolResult

_PREFILL_FLOOR_BYTES_PER_S = 1e6
# Real data has a zero block here and there.
_TOLERATED_ZERO_SHARE = 0.05


@dataclass(frozen=True)
class Outcome:
    """How a campaign ended: runs in all, and how many of them cannot be used as they are."""

    runs: int
    invalid: int


@dataclass(frozen=True)
class _Prepared:
    """The state in which a tool starts."""

    cache_dropped: str | None
    read_reason: str | None
    prepare_s: float
    notes: tuple[str, ...] = ()


def execute(plan: Plan, store: Store) -> Outcome:
    """Runs what is left of `plan` into `store`; the caller holds the target's lock.

    Settings, mounts and processes are put back however this ends. A signal becomes an
    InterruptedCampaignError between two consistent states; an error of one run is recorded with
    it and the campaign goes on.
    """
    done = store.done_indices()  # first: it refuses what is no file of records
    store.drop_partial_line()
    left = [run for run in plan.runs if run.order_index not in done]
    journal = UndoJournal()
    with signals_raise(f"every finished run is stored, `eeio resume {store.folder.name}` goes on"):
        places = Places(plan, store.folder, journal)
        try:
            places.hold()
            _Campaign(plan, store, journal, places).run(left)
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise EeioError(
                    f"{store.folder}: no space left to store results; what was stored is whole. "
                    f"Free some room, then `eeio resume {store.folder.name}`"
                ) from error
            raise
        finally:
            failures = places.close()
            for failure in failures:
                words = f"eeio: could not put back: {failure}; `eeio restore` tries again"
                print(words, file=sys.stderr)
    return _outcome(store)


def _outcome(store: Store) -> Outcome:
    runs = load(store.folder).runs
    return Outcome(len(runs), sum(not run.valid for run in runs))


@contextmanager
def target_locks(plan: Plan) -> Iterator[None]:
    """Holds every disk of the plan, so that no second campaign uses one meanwhile, and the
    frequency of the processors where the plan sets it."""
    options = plan.options
    names: set[str] = set()
    if options.device is not None:
        device = raw_device(options.device)
        names.add(device.disk_sysfs.name if device else options.device.strip("/"))
    if options.directory is not None:
        device, _ = backing_device(Path(options.directory))
        names.add(device.disk_sysfs.name if device else options.directory.strip("/"))
    if any(planned.frequency_hz is not None for planned in plan.experiments):
        names.add(frequency.lock_name(options.frequency_root))
    with ExitStack() as held:
        for name in sorted(names):
            held.enter_context(TargetLock(name))
        yield


class _Campaign:
    """The state of one start of a campaign."""

    def __init__(self, plan: Plan, store: Store, journal: UndoJournal, places: Places) -> None:
        self._plan = plan
        self._store = store
        self._journal = journal
        self._places = places
        self._broken: dict[str, str] = {}
        # Read once when the first round of repetitions is planned, kept from then on.
        self._done: list[Run] | None = None
        self._raw_device = raw_device(plan.options.device) if plan.options.device else None

    def run(self, left: list[PlannedRun]) -> None:
        plan, store = self._plan, self._store
        share = len(left) / len(plan.runs) if plan.runs else 0
        with Progress(
            len(plan.runs), len(plan.runs) - len(left), plan.expected_s * share
        ) as progress:
            self._install(progress)
            self._check_machine()
            source = self._power_source(progress)
            segment = len(list((store.folder / "samples").glob("*.csv.gz"))) + 1
            samples = store.folder / "samples" / f"power-{segment:04}.csv.gz"
            with PowerMonitor(source, samples) as power:
                if left:
                    self._describe_machine()
                    self._idle_baseline(power, source, progress)
                left = left or self._another_round(progress)
                while left:
                    for planned in left:
                        run = _storable(self._one(planned, power))
                        store.append(run)
                        if self._done is not None:
                            self._done.append(run)
                        progress.run_done(_words(planned, run))
                    left = self._another_round(progress)
            self._clean_up()

    def _another_round(self, progress: Progress) -> list[PlannedRun]:
        """One more repetition of every experiment whose mean is not known well enough."""
        if self._plan.protocol.study is None:
            return []
        if self._done is None:
            self._done = list(load(self._store.folder).runs)
        experiments = rounds.unsettled(self._plan, self._done)
        if not experiments:
            return []
        before = len(self._plan.runs)
        self._plan = replace(self._plan, runs=another_round(self._plan, experiments))
        self._store.write_design(self._plan)
        progress.add(len(self._plan.runs) - before)
        progress.say(f"repeating {len(experiments)} experiments whose mean is not known yet")
        return list(self._plan.runs[before:])

    def _install(self, progress: Progress) -> None:
        for profile in self._plan.profiles.values():
            try:
                if not profiles.is_installed(profile):
                    progress.say(f"installing {profile.identifier}")
                    profiles.install(profile)
            except EeioError as error:
                progress.say(f"eeio: {error}")
                self._broken[profile.identifier] = str(error)

    def _power_source(self, progress: Progress) -> PowerSource:
        options = self._plan.options
        estimates = options.allow_estimates or not self._plan.protocol.is_measurement
        source = open_source(options.meters, estimates)
        for meter in source.meters:
            kind = "ESTIMATE, not a measurement" if meter.kind == "modelled" else meter.kind
            progress.say(f"power: {meter.name} ({kind})")
        if source.reason:
            progress.say(f"power: none; {source.reason}")
        return source

    def _check_machine(self) -> None:
        """A campaign that was stopped goes on only where its figures are still repetitions."""
        before = self._store.machine()
        if before is None:
            return
        place = self._places.get("")
        # File systems made for the campaign are made anew, as they were.
        of_target = not self._plan.made_places
        now = environment.capture(
            place.directory if self._plan.options.directory else None,
            self._raw_device or place.device,
            self._tools(),
        )
        differences = environment.differences(before, now, of_target)
        if differences:
            raise RefusedError(
                f"{self._store.folder.name} cannot go on, its runs would be of two machines: "
                f"{'; '.join(differences)}; bring that back, or begin another with `eeio run`"
            )

    def _tools(self) -> list[Tool]:
        found = [profiles.installed_tool(profile) for profile in self._plan.profiles.values()]
        return [tool for tool in found if tool is not None]

    def _describe_machine(self) -> None:
        if self._store.machine() is not None:
            return
        first = self._plan.runs[0].experiment if self._plan.runs else None
        place = self._places.get(first.place if first else "")
        machine = environment.capture(
            place.directory if self._plan.options.directory or place.mkfs else None,
            self._raw_device or place.device,
            self._tools(),
            place.mkfs,
        )
        made = self._plan.made_places
        if made:
            commands = (" ".join(MKFS[filesystem]) for filesystem in made)
            machine = replace(machine, filesystem=", ".join(made), mkfs_options="; ".join(commands))
        self._store.write_machine(machine)

    def _idle_baseline(self, power: PowerMonitor, source: PowerSource, progress: Progress) -> None:
        """What the machine takes when nothing runs, before anything does."""
        if self._store.has_idle():
            return
        if source.reason is not None:
            self._store.write_idle((), source.reason)
            return
        if nodes.several():
            self._store.write_idle((), nodes.NO_IDLE)
            return
        idle_s = self._plan.protocol.idle_s
        progress.say(f"measuring idle power for {format_duration(idle_s)}")
        start_s = time.monotonic()
        time.sleep(idle_s)
        readings = recorded(power.energy(start_s, start_s + idle_s))
        self._store.write_idle(readings, None)

    def _one(self, planned: PlannedRun, power: PowerMonitor) -> Run:
        """One repetition of one experiment, whatever becomes of it."""
        experiment = planned.experiment
        raw = self._store.folder / "raw" / _raw_name(planned)
        # What a killed start left of this run is no part of its record.
        shutil.rmtree(raw, ignore_errors=True)
        raw.mkdir()
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
            return self._measure(planned, begun, raw, power)
        except (EeioError, PowerError) as error:
            return replace(
                begun,
                duration_s=time.monotonic() - begun.started_monotonic_s,
                validity=(str(error),),
            )

    def _measure(self, planned: PlannedRun, begun: Run, raw: Path, power: PowerMonitor) -> Run:
        experiment = planned.experiment
        place = self._places.get(experiment.place)
        on_raw_device = experiment.experiment.target == "device"
        if on_raw_device:
            self._places.check_device()
        elif experiment.place == "":
            safety.check_scratch(place.directory)
        device = self._raw_device if on_raw_device else place.device
        # What is noted here stays to the campaign's end, not to that of the run.
        reached = self._set_frequency(experiment)
        found = len(self._journal.entries)
        try:
            if experiment.experiment.cache.disk is not None:
                if device is None:
                    raise EeioError(f"write cache cannot be switched: {place.device_reason}")
                write_cache.switch(device, experiment.experiment.cache.disk, self._journal)
            prepared = self._prepare(planned, place, raw)
            if on_raw_device:
                self._places.check_device()  # again: the pause may have been long
            profile = self._plan.profiles[experiment.profile]
            on_nodes = nodes.settings(profile, raw / "nodes", self._plan.options.meters, power)
            before = counters.read_counters(device) if device else None
            with JournalWatch(
                experiment, place, raw, self._journal, self._plan.protocol.study
            ) as watch:
                power.mark()
                with ProcessorSampler() as processor:
                    settings = {**watch.settings, **on_nodes}
                    capture = self._invoke(planned, place, raw, "run", settings)
                power.mark()
            # Only after the sync has the device seen all that a buffered run wrote.
            sync_s = _sync()
            after = counters.read_counters(device) if device else None
            if before is not None and after is not None:
                after = counters.unwrapped(before, after)
            run = replace(
                begun,
                started_utc=_iso(capture.started_utc_s),
                started_monotonic_s=capture.started_monotonic_s,
                duration_s=capture.ended_monotonic_s - capture.started_monotonic_s,
                exit_code=capture.exit_code,
                device=device.name if device else None,
                device_reason=None if device else place.device_reason,
                disk_cache_found=write_cache.found(device) if device else None,
                cache_dropped=prepared.cache_dropped,
                prepare_s=prepared.prepare_s,
                sync_s=sync_s,
                processor=processor.series(),
                device_before=before,
                device_after=after,
            )
            if capture.exit_code != 0:
                return replace(run, validity=(_failure(capture),))
            run = replace(run, notes=reached)
            energy = (
                nodes.energy(raw / "nodes", capture, power)
                if on_nodes
                else nodes.energy_here(power)
            )
            return self._read(experiment, run, capture, prepared, place, energy, watch, device)
        finally:
            for entry in reversed(self._journal.entries[found:]):
                self._journal.undo(entry)

    def _prepare(self, planned: PlannedRun, place: Place, raw: Path) -> _Prepared:
        """Files with real data in them, an empty page cache, and a pause to settle."""
        started_s = time.monotonic()
        profile = self._plan.profiles[planned.experiment.profile]
        notes: tuple[str, ...] = ()
        if (profile.folder / "pre.sh").is_file():
            before = raw / "prepare"
            before.mkdir()
            capture = self._invoke(planned, place, before, "pre")
            if capture.exit_code != 0:
                raise EeioError(f"preparing the test files failed: {_failure(capture)}")
            notes = tuple((before / "stdout.txt").read_text(errors="replace").splitlines()[-1:])
            shutil.rmtree(before)
        found: str | None = None
        reason: str | None = None
        if planned.experiment.experiment.level != "context":
            on_raw_device = planned.experiment.experiment.target == "device"
            node = self._raw_device.node if on_raw_device and self._raw_device else None
            found, reason = caches.drop(place.test_files, node)
            if node is not None and planned.experiment.experiment.operation == "read":
                reason = _never_written(node, planned.experiment.file_bytes) or reason
        prepare_s = time.monotonic() - started_s
        time.sleep(self._plan.protocol.settle_s)
        return _Prepared(found, reason, prepare_s, notes)

    def _set_frequency(self, planned: PlannedExperiment) -> tuple[str, ...]:
        """Sets the experiment's frequency, if it has one, and tells what was measured of it.

        EeioError where it was not reached: the run's figures would be told of another frequency.
        """
        if planned.frequency_hz is None:
            return ()
        root = self._plan.options.frequency_root
        frequency.prepare(self._journal, root)
        frequency.set_frequency(planned.frequency_hz, self._journal, root)
        achieved = frequency.verify(planned.frequency_hz, root)
        if achieved.reached is False:
            raise EeioError(achieved.words)
        return (achieved.words,)

    def _invoke(
        self,
        planned: PlannedRun,
        place: Place,
        raw: Path,
        script: str,
        settings: Mapping[str, str] | None = None,
    ) -> Capture:
        """Runs the profile's executable (`run`) or its pre.sh (`pre`) as PTS would."""
        experiment = planned.experiment
        profile = self._plan.profiles[experiment.profile]
        home = profile.install_dir
        words = [f"{key}={value}" for key, value in sorted(experiment.factors.items())]
        timeout_s = self._plan.timeout_s(experiment)
        if script == "pre":
            command = ["sh", str(profile.folder / "pre.sh"), *words]
            timeout_s += experiment.file_bytes / _PREFILL_FLOOR_BYTES_PER_S
        else:
            command = [str(home / profile.name), *words]
        return invoke(
            command,
            directory=raw,
            home=home,
            environment=profiles.script_environment(
                home, {**self._settings(planned, place, str(raw), experiment), **(settings or {})}
            ),
            factors=experiment.factors,
            timeout_s=timeout_s,
            journal=self._journal,
        )

    def _settings(
        self, planned: PlannedRun, place: Place, output: str, experiment: PlannedExperiment
    ) -> Mapping[str, str]:
        """The EEIO_* variables, the same under PTS."""
        options = self._plan.options
        on_raw_device = experiment.experiment.target == "device"
        return {
            "EEIO_PRESET": options.preset,
            "EEIO_DIRECTORY": str(place.directory),
            "EEIO_DEVICE": (options.device or "") if on_raw_device else "",
            # In the words of EEIO_DEVICE, which profiles compare it with; check_erasable has seen
            # that both options mean one device, however they name it.
            "EEIO_ERASE": (options.device or "") if on_raw_device and options.erase else "",
            "EEIO_OUTPUT_DIR": output,
            "EEIO_RUN_SEED": str(planned.seed),
            # Of the measured call alone: prefilling starts ranks too.
            "EEIO_NODE_POWER": "",
        }

    def _read(
        self,
        planned: PlannedExperiment,
        run: Run,
        capture: Capture,
        prepared: _Prepared,
        place: Place,
        energy: nodes.Energy,
        watch: JournalWatch,
        device: BlockDevice | None,
    ) -> Run:
        """Metrics, checks against the device, and energy."""
        try:
            result = tools.parse(planned.experiment.tool, capture)
        except ToolOutputError as error:
            return replace(run, validity=(str(error),))
        reasons = _contradictions(planned, run, result)
        phases = watch.add_to(result.phases, planned.factors.get("flush", "on") == "on")
        notes = [*run.notes, *watch.notes, *result.notes, *prepared.notes]
        if run.device is None and result.phases:
            notes.append(f"{UNCHECKED}: {run.device_reason}")
        elif device is not None and (over := counters.lies_on(device)) is not None:
            notes.append(f"{CHECKED} {over}")
        return replace(
            run,
            phases=tuple(_phase(phase, run, prepared, place, reasons, energy) for phase in phases),
            context=result.context,
            notes=(*notes, *capture.notes),
        )

    def _clean_up(self) -> None:
        """post.sh of each profile, on the user's own directory; the others go with their mount. For
        a device alone too: what a profile remembers of it holds no longer."""
        place = self._places.get("")
        try:
            safety.check_scratch(place.directory)
        except RefusedError as error:
            print(f"eeio: the test files stay: {error}", file=sys.stderr)
            return
        for profile in self._plan.profiles.values():
            script = profile.folder / "post.sh"
            if not script.is_file() or not profile.install_dir.is_dir():
                continue
            last = next(r for r in self._plan.runs if r.experiment.profile == profile.identifier)
            target = self._store.folder / "raw" / "clean-up"
            target.mkdir(exist_ok=True)
            invoke(
                ["sh", str(script)],
                directory=target,
                home=profile.install_dir,
                environment=profiles.script_environment(
                    profile.install_dir,
                    self._settings(last, place, str(target), last.experiment),
                ),
                factors={},
                timeout_s=300,
                journal=self._journal,
            )
            shutil.rmtree(target)
        with suppress(OSError):
            (place.directory / safety.SCRATCH).rmdir()


def _storable(run: Run) -> Run:
    """The run; an invalid one without its figures where one of them cannot be."""
    try:
        typed.check(run)
    except LimitError as error:
        return replace(
            run, phases=(), context=(), processor=None, prepare_s=None, sync_s=None,
            duration_s=run.duration_s if DURATION.holds(run.duration_s) else 0.0,
            device_before=None, device_after=None, validity=(*run.validity, str(error)),
        )  # fmt: skip
    return run


def _contradictions(planned: PlannedExperiment, run: Run, result: ToolResult) -> dict[str, str]:
    before, after = run.device_before, run.device_after
    if before is None or after is None:
        return {}
    return counters.disagreements(
        planned.experiment, result.phases, before, after, planned.file_bytes or None
    )


def _phase(
    phase: PhaseResult,
    run: Run,
    prepared: _Prepared,
    place: Place,
    reasons: Mapping[str, str],
    energy: nodes.Energy,
) -> Phase:
    """A parsed phase with its energy and every reason not to use it."""
    operations = ("read", "write") if phase.operation == "mixed" else (phase.operation,)
    validity = [*phase.invalid, *(reasons[o] for o in operations if o in reasons)]
    cached = run.experiment.cache.buffer == "on" or run.experiment.target == "device"
    if cached and phase.operation == "read" and prepared.read_reason:
        validity.append(prepared.read_reason)
    if place.in_memory and run.device is None:
        validity.append(f"no device was measured: {place.device_reason}")
    readings: tuple[EnergyReading, ...] = ()
    if phase.start_s is not None and phase.end_s is not None:
        began_s = run.started_monotonic_s
        readings = energy(began_s + phase.start_s, began_s + phase.end_s)
    return phase.recorded(readings, tuple(validity))


def _never_written(node: Path, length_bytes: int) -> str | None:
    """Why reads of a device that could not be prefilled say nothing about its medium, or None."""
    share = devices.zero_share(node, length_bytes)
    if share <= _TOLERATED_ZERO_SHARE:
        return None
    return (
        f"{share:.0%} of the first {length_bytes} bytes of {node} read as zeros: never written or "
        "trimmed, so reading them need not touch the medium; --erase lets eeio fill the device"
    )


def _sync() -> float:
    """Writes everything back, so that no run pays for the one before it; seconds it took."""
    started_s = time.monotonic()
    os.sync()
    return time.monotonic() - started_s


def _failure(capture: Capture) -> str:
    """The exit code and the tool's last words."""
    for name in ("stderr.txt", "stdout.txt"):
        lines = (capture.directory / name).read_text(errors="replace").strip().splitlines()
        if lines:
            words = lines[-1][:300]
            break
    else:
        words = "no output"
    if capture.exit_code == TIMED_OUT:
        return f"given up after {capture.ended_monotonic_s - capture.started_monotonic_s:.0f} s"
    return f"exit code {capture.exit_code}: {words}"


def _raw_name(planned: PlannedRun) -> str:
    experiment = planned.experiment.experiment
    return f"{planned.order_index:05}-{experiment.tool}-{experiment.id}-r{planned.repetition}"


def _words(planned: PlannedRun, run: Run) -> str:
    """A run in one line."""
    words = f"{run.experiment.tool} {planned.experiment.description}"
    if planned.experiment.place:
        words += f" on {planned.experiment.place}"
    results = ", ".join(
        f"{phase.operation} {phase.bandwidth_bytes_per_s / 1e6:.1f} MB/s"
        for phase in run.phases
        if phase.bandwidth_bytes_per_s is not None
    )
    reasons = [*run.validity, *(reason for phase in run.phases for reason in phase.validity)]
    invalid = f" INVALID: {reasons[0]}" if reasons else ""
    return f"{words} #{run.repetition}: {results or 'done'}{invalid}"


def _now() -> str:
    return _iso(time.time())


def _iso(utc_s: float) -> str:
    return datetime.fromtimestamp(utc_s, UTC).isoformat(timespec="milliseconds")
