"""The plan of a campaign, made before any change to the machine.

The random order of a campaign's runs.

How large the test files of an experiment are, and how many, before there are any.
"""

import math
import random
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from pathlib import Path
from typing import Any

from eeio import studies
from eeio.errors import EeioError, LimitError, RejectedError
from eeio.files import inputs
from eeio.machine import caches
from eeio.machine.as_data.root import HERE, memory_bytes
from eeio.machine.below import check_directory, check_not_in_memory, check_storage
from eeio.machine.drive import elsewhere
from eeio.machine.filesystem import (
    backing_device,
    backing_devices,
    block_device,
    mount_of,
    zone_bytes,
)
from eeio.machine.image import OVERHEAD_BYTES, in_the_way
from eeio.measure.campaign import sweep
from eeio.measure.campaign.safety import SCRATCH, check_folder, check_targets, used_bytes
from eeio.measure.campaign.variants import Processors, Setting, processor_settings, study_settings
from eeio.measure.profiles import profile as profiles
from eeio.measure.profiles.profile import Profile
from eeio.measure.profiles.suite import LeftOut, Suite, SuiteEntry, experiment_of, size_of
from eeio.record import tools
from eeio.record.design import (
    AdaptiveProtocol,
    Design,
    NotMeasured,
    Options,
    PlannedExperiment,
    PlannedRun,
    Protocol,
    StudyProtocol,
)
from eeio.record.run import Experiment
from eeio.units.quantities import DURATION, shortened


def order(
    experiments: list[PlannedExperiment], repetitions: int, options: Options
) -> tuple[PlannedRun, ...]:
    """All repetitions of all experiments in one random order that the seed repeats.

    File systems made on one device cannot be there at once: they become blocks, in random order,
    each random inside.
    """
    random_order = random.Random(options.seed)
    pairs = [(e, repetition) for e in experiments for repetition in range(1, repetitions + 1)]
    random_order.shuffle(pairs)
    volumes = sorted({planned.volume for planned in experiments} - {""})
    if volumes and options.device:
        random_order.shuffle(volumes)
        pairs.sort(key=lambda pair: volumes.index(pair[0].volume))
    return tuple(
        PlannedRun(index, planned, repetition, random_order.randrange(1, 2**31))
        for index, (planned, repetition) in enumerate(pairs)
    )


def in_rounds(
    experiments: Sequence[PlannedExperiment], repetitions: int, design: Design
) -> tuple[PlannedRun, ...]:
    """Each repetition of all experiments before the next. Each round has a new random order,
    continued by `another_round`."""
    made = replace(design, runs=())
    for _ in range(repetitions):
        made = replace(made, runs=another_round(made, experiments))
    return made.runs


def another_round(
    design: Design, experiments: Sequence[PlannedExperiment]
) -> tuple[PlannedRun, ...]:
    """The design's runs with one more repetition of each of these, in a random order that the seed
    and the runs before it decide."""
    done = Counter(run.experiment.experiment.id for run in design.runs)
    random_order = random.Random(f"{design.options.seed}-{len(design.runs)}")
    drawn = list(experiments)
    random_order.shuffle(drawn)
    if design.options.device:
        drawn.sort(key=lambda planned: planned.volume)
    return (
        *design.runs,
        *(
            PlannedRun(
                len(design.runs) + number,
                planned,
                done[planned.experiment.id] + 1,
                random_order.randrange(1, 2**31),
            )
            for number, planned in enumerate(drawn)
        ),
    )


_CLASSES = "SWABCDEF"
"""Of the NAS Parallel Benchmarks, each larger than the one before."""


def files_of_a_process(factors: Mapping[str, str]) -> int:
    """Of a profile that makes many: `files` in each of `rounds`; 0 of others."""
    texts = (factors.get(name, "0") for name in ("files", "rounds"))
    files, rounds = (inputs.whole_number(text) or 0 for text in texts)
    return files * rounds


def file_bytes_of(profile: Profile, factors: Mapping[str, str], sizes: str, root: Path) -> int:
    """The forecast uses these: a profile whose buffered measurement needs a file larger than memory
    sets `memory_multiple` in its presets.conf; one without file_size sets `footprint`."""
    preset = _of_that_class(profile, factors, sizes)
    text = factors.get("file_size") or preset.get("footprint", "0")
    size = size_of(profile.tool, "file_size", text)
    if "footprint_each" in preset:
        each = size_of(profile.tool, "footprint_each", preset["footprint_each"])
        processes = inputs.whole_number(factors.get("processes", "1")) or 1
        rounds = inputs.whole_number(factors.get("rounds", "0")) or 0
        # A folder of each process in each round, too.
        size = max(size, each * processes * (files_of_a_process(factors) + rounds))
    if factors.get("buffer") == "on" and "memory_multiple" in preset:
        size = max(size, int(float(preset["memory_multiple"]) * memory_bytes(root)))
    return size


def _of_that_class(profile: Profile, factors: Mapping[str, str], sizes: str) -> Mapping[str, str]:
    """The preset. If the work is a class other than the preset's: the preset with that class, the
    next larger, or the largest. Its bytes are an upper bound."""
    preset = profile.preset(sizes)
    requested = factors.get("class", "")
    if "footprint" not in preset or requested == preset.get("class", ""):
        return preset
    every = sorted(
        (one for one in profile.presets.values() if "footprint" in one),
        key=lambda one: size_of(profile.tool, "class", one["footprint"]),
    )
    least = _CLASSES.find(requested)
    larger = (one for one in every if _CLASSES.find(one.get("class", "")) >= least >= 0)
    return next(larger, every[-1])


DEFAULT_RUNTIME_S = 5.0
# Operations that write to the device, whatever else they do.
_WRITING = ("write", "mixed", "metadata")
# A tool's start and end, the drop of the caches, the device's write-back: about this much.
_PER_RUN_OVERHEAD_S = 0.7
# For a forecast only: an unmeasured device moves at least about this many bytes per second.
_ASSUMED_BANDWIDTH_BYTES_PER_S = 150e6
_MIB = 1 << 20
# Limit for campaign.json and the memory of a board; at ten seconds per run it is two months.
_MOST_RUNS = 500_000


@dataclass(frozen=True, kw_only=True)
class Plan(Design):
    """A campaign's design with the profiles that run it: everything it will run, in its order."""

    profiles: Mapping[str, Profile]
    zone_bytes: int | None = None
    """Size of a zone, if the device is written in zones."""
    as_named: Options | None = None
    """The options with links to devices, which campaign.json keeps: /dev/disk/by-id leads to the
    same drive after the next boot, and /dev/sda perhaps to another one."""

    def to_json(self) -> dict[str, Any]:
        stored = self if self.as_named is None else replace(self, options=self.as_named)
        return Design.to_json(stored)

    @property
    def made_volumes(self) -> list[str]:
        """The file systems that are made for the campaign."""
        return sorted({planned.volume for planned in self.experiments} - {""})

    @property
    def why_nothing(self) -> str | None:
        """Why it has no experiment; None where it has one."""
        if self.experiments:
            return None
        reasons = dict.fromkeys(left_out.reason for left_out in self.not_measured)
        name = Path(self.suite).name
        return f"no experiment of {name} can be measured: {'; '.join(reasons)}"

    @property
    def bytes_written(self) -> int:
        """An upper bound: the bytes of all runs, and the prefill of every file once."""
        return self.prefill_bytes + sum(self.most_written(run.experiment) for run in self.runs)

    @property
    def prefill_bytes(self) -> int:
        """Bytes written before the first measurement: each test file, or the measured part of a
        device that may be erased, multiplied by its `precondition`."""
        written: dict[tuple[str, str], int] = {}
        for planned in self.experiments:
            on_device = planned.experiment.target == "device"
            if not on_device or self.options.erase:
                key = ("device" if on_device else planned.volume, planned.profile)
                written[key] = max(written.get(key, 0), prefilled_bytes(planned))
        return sum(written.values())

    @property
    def files(self) -> dict[tuple[str, str], int]:
        """(volume, profile) -> bytes of the test files that the profile keeps there."""
        sizes: dict[tuple[str, str], int] = {}
        for planned in self.experiments:
            if planned.experiment.target != "device":
                key = (planned.volume, planned.profile)
                sizes[key] = max(sizes.get(key, 0), planned.file_bytes)
        return sizes

    def room_bytes(self, volume: str) -> int:
        """Bytes that must be free on a volume: of each profile its test files, or the `room` that
        its preset states."""
        return sum(
            max(size, self._stated_room_bytes(profile))
            for (where, profile), size in self.files.items()
            if where == volume
        )

    def _stated_room_bytes(self, identifier: str) -> int:
        profile = self.profiles[identifier]
        text = profile.preset(self.sizes_preset).get("room", "0")
        return size_of(profile.tool, "room", text)

    def most_written(self, planned: PlannedExperiment) -> int:
        """Maximum bytes that one of its runs writes."""
        preset = self.profiles[planned.profile].preset(self.sizes_preset)
        passes = float(preset.get("passes_written", "1"))
        operation = planned.experiment.operation
        if self.zone_bytes is not None and planned.experiment.target == "device":
            passes *= 2  # zones that a write has left are filled again
        return int(planned.file_bytes * passes) if operation in _WRITING else 0

    @property
    def expected_s(self) -> float:
        """A forecast: times that the presets set, sizes over an assumed bandwidth, and pauses."""
        total = self.protocol.idle_s + self.prefill_bytes / _ASSUMED_BANDWIDTH_BYTES_PER_S
        for run in self.runs:
            factors = run.experiment.factors
            by_size = run.experiment.file_bytes / _ASSUMED_BANDWIDTH_BYTES_PER_S
            runtime = float(factors.get("runtime_s", 0)) or by_size or DEFAULT_RUNTIME_S
            by_time = min(runtime, by_size) if by_size else runtime
            by_time = max(by_time, _computing_s(factors))
            preset = self.profiles[run.experiment.profile].preset(self.sizes_preset)
            if "each_s" in preset:
                by_time = float(preset["each_s"]) * files_of_a_process(factors)
            total += by_time + self.protocol.settle_s + _PER_RUN_OVERHEAD_S
            if run.experiment.experiment.processes > 1:
                total += float(preset.get("parallel_pause_s", 0))
        return total

    def timeout_s(self, planned: PlannedExperiment) -> float:
        """Time limit of a run: far more than a slow disk needs."""
        if "timeout_s" in planned.factors:  # set by the user (`eeio bench`)
            return float(planned.factors["timeout_s"])
        slowest_bytes_per_s = 1e6
        runtime_s = float(planned.factors.get("runtime_s", "0"))
        # A disk that needs 0.1 s to create a file and take it away again is slow.
        creating_s = 0.1 * files_of_a_process(planned.factors)
        waiting_s = _computing_s(planned.factors)
        moving_s = 3 * planned.file_bytes / slowest_bytes_per_s
        return 120 + 2 * (runtime_s + waiting_s) + moving_s + creating_s

    def check_room(self, root: Path = Path("/")) -> None:
        """Rejects a missing or too small target before the first run."""
        options = self.options
        if options.directory is None:
            if any(planned.volume == "" and planned.experiment.target != "device"
                   for planned in self.experiments):  # fmt: skip
                raise RejectedError(
                    "this suite needs a directory: give --directory DIR on the disk"
                )
            return
        directory = Path(options.directory)
        check_folder(directory)
        needed = max(0, math.ceil(self.room_bytes("") * 1.05) - self._left_bytes())
        if options.device is None:
            for filesystem in self.made_volumes:
                if (there := in_the_way(filesystem, directory)) is not None:
                    raise RejectedError(
                        f"{there} exists; another campaign may be using it. If not, delete it"
                    )
                size = self.room_bytes(filesystem)
                needed += size + size // 8 + OVERHEAD_BYTES
        check_directory(directory, needed, options.allow_memory_filesystem)

    def room_to_grow(self, planned: PlannedExperiment) -> int:
        """The largest size that the experiment's test files may be given, in bytes.

        For a directory: its present files and four fifths of the free space, shared with the files
        of the other profiles, which may grow too. For a raw device: its size.
        """
        options = self.options
        if planned.experiment.target == "device":
            device = block_device(Path(options.device)) if options.device else None
            return device.size_bytes if device else 0
        if options.directory is None:
            return 0
        free = shutil.disk_usage(options.directory).free + self._left_bytes()
        return int(0.8 * free / max(1, len(self.files)))

    def check_described(self, root: Path) -> str:
        """As `check_room` for a captured machine, as far as its description allows. Returns the
        directory's file system as text, or an empty string without one."""
        options = self.options
        if options.directory is None:
            self.check_room(root)
            return ""
        directory = Path(options.directory)
        mount = mount_of(directory, root)
        check_storage(directory, mount, options.allow_memory_filesystem)
        device, reason = backing_device(directory, root)
        devices = backing_devices(directory, root)
        check_not_in_memory(devices, str(directory), options.allow_memory_filesystem)
        on = str(device.node) if device else f"no device: {reason}"
        if device is not None and (away := elsewhere(device)) is not None:
            on += f"; {away}"
        return f"{directory}: {mount.filesystem} on {on}"

    def _left_bytes(self) -> int:
        """Size of existing test files of its profiles, from an interrupted start."""
        scratch = Path(self.options.directory or "") / SCRATCH
        return used_bytes(
            path
            for profile in self.profiles.values()
            for top in scratch.glob(f"{profile.name}*")
            for path in (top, *top.rglob("*"))
        )


def _computing_s(factors: Mapping[str, str]) -> float:
    """Time of a program that computes between checkpoints at intervals. 0 for values that are not
    numbers, which the profile rejects."""
    values = (factors.get("interval_s", "0"), factors.get("checkpoints", "0"))
    if not all(re.fullmatch("[0-9]{1,8}", value) for value in values):
        return 0.0
    return float(values[0]) * float(values[1])


def prefilled_bytes(planned: PlannedExperiment) -> int:
    """Bytes written to its test file, or the device, before it is measured."""
    return planned.file_bytes * int(planned.factors.get("precondition", "100")) // 100


def make(options: Options, suite: Suite, root: Path = HERE) -> Plan:
    """Decides experiments and order; RejectedError if the options cannot be used. `root` replaces
    `/` for a machine built from a description."""
    protocol = _adaptive(suite.protocol(options.preset), options)
    if protocol.steady is not None and options.repetitions is not None:
        raise RejectedError(
            f"suite {suite.name} runs until the drive is in its steady state, for at least "
            f"{protocol.repetitions} rounds: leave out --repetitions"
        )
    if protocol.adaptive is not None:
        instead_of = suite.protocol(protocol.sizes_of or options.preset).repetitions
        rule = replace(protocol.adaptive, fixed_repetitions=instead_of)
        protocol = replace(protocol, adaptive=rule)
    protocol = replace(
        protocol,
        repetitions=options.repetitions or protocol.repetitions,
        settle_s=protocol.settle_s if options.settle_s is None else options.settle_s,
        idle_s=protocol.idle_s if options.idle_s is None else options.idle_s,
        work_bytes=options.work_bytes or protocol.work_bytes,
        min_phase_s=protocol.min_phase_s if options.min_phase_s is None else options.min_phase_s,
    )
    if options.windows_of is not None:
        protocol = replace(protocol, study=_with_windows(protocol.study, options, suite))
    if options.repetitions and protocol.study:
        # A number that the user gives is that number, whatever the spread.
        protocol = replace(protocol, study=replace(protocol.study, half_width=None))
    if root == HERE and options.directory is not None and not Path(options.directory).is_dir():
        raise RejectedError(f"{options.directory}: no such directory; create it or name another")
    cells, frequency_reason = study_settings(
        protocol.study, options.variants, options.frequencies, options.frequency_root
    )
    if protocol.study is None:
        every = processor_settings(
            options.frequencies, options.smt, options.turbo, options.frequency_root
        )
    elif options.smt or options.turbo:
        raise RejectedError(
            f"suite {suite.name} is a study that fixes frequencies with SMT and turbo off: "
            "leave out --smt and --turbo"
        )
    else:
        every = [Processors()]
    if cells and options.filesystems:
        raise RejectedError(
            f"suite {suite.name} creates variants of ext4: select them with --variant, without "
            "--filesystem"
        )
    entries, absent = _with_optional(suite)
    used = {entry.profile: profiles.find(entry.profile) for entry in (*entries, *absent)}
    _check_own_modules(used.values())
    check_targets(options, bool(options.filesystems or protocol.study), root=root)
    sizes = protocol.sizes_of or options.preset

    def factors_of(entry: SuiteEntry) -> dict[str, str]:
        profile = used[entry.profile]
        factors = profile.factors_of(sizes, entry.factors, protocol.work_bytes)
        if "operation" in factors and "level" not in factors:
            raise RejectedError(
                f"suite {suite.name}: {profile.identifier} {entry.description!r}: the level is "
                "missing. Add level=filesystem, or device, library or application, to its arguments"
            )
        return factors

    swept = sweep.swept(
        (*entries, *absent),
        [sweep.parse(text) for text in options.sweeps],
        lambda entry: used[entry.profile],
        factors_of,
    )
    left_out = [g for g in suite.left_out(options.preset) if not swept.requests(g)]
    device = block_device(Path(options.device), root) if options.device else None
    zone = None if options.filesystems else zone_bytes(device)
    rejected = sweep.rejected(
        swept, lambda entry: used[entry.profile].why_not(sizes, factors_of(entry))
    )
    experiments: list[PlannedExperiment] = []
    not_measured: list[NotMeasured] = []
    for entry, of_suite in swept.made.items():
        profile = used[entry.profile]
        factors = factors_of(entry)
        if options.precondition_percent is not None and "precondition" in factors:
            factors["precondition"] = str(options.precondition_percent)
        active_bytes = _active_bytes(options, protocol, factors, root)
        if active_bytes is not None:
            factors["file_size"] = str(active_bytes)
        file_bytes = file_bytes_of(profile, factors, sizes, root)
        if zone and factors.get("level") == "device":
            # The profile takes whole zones for each process.
            processes = inputs.whole_number(factors.get("processes", "1")) or 1
            share_bytes = file_bytes // processes // 4096 * 4096
            file_bytes = math.ceil(share_bytes / zone) * zone * processes
        _check_runtime(profile.tool, factors)
        for cell, processors in product(cells or _targets(options, factors), every):
            for disk in _disk_settings(options, factors):
                arguments = {**factors, **cell.arguments, **processors.arguments}
                experiment = experiment_of(profile.tool, arguments, cell.target, disk)
                reason = rejected.get(entry) or absent.get(of_suite)
                reason = reason or _why_not(options, left_out, entry, experiment, root)
                reason = reason or (_why_not_on_zones(options, experiment) if zone else None)
                if reason is not None:
                    not_measured.append(NotMeasured(experiment, reason))
                    continue
                experiments.append(
                    PlannedExperiment(
                        experiment,
                        entry.profile,
                        factors,
                        " - ".join((entry.description, *cell.labels, *processors.labels)),
                        cell.volume,
                        file_bytes,
                        cell.variant,
                        cell.frequency_hz or processors.frequency_hz,
                        sized=None if active_bytes is None else "file_size",
                        smt=processors.smt,
                        turbo=processors.turbo,
                    )
                )
    _check_precondition(options, experiments, root)
    ids = [planned.experiment.id for planned in experiments]
    if len(set(ids)) != len(ids):
        twice = next(p for p in experiments if ids.count(p.experiment.id) > 1)
        raise RejectedError(f"suite {suite.name} repeats an experiment: {twice.description}")
    if len(experiments) * protocol.repetitions > _MOST_RUNS:
        raise RejectedError(
            f"{len(experiments)} experiments x {protocol.repetitions} repetitions are more than "
            f"{_MOST_RUNS} runs: give fewer values to --sweep, or a campaign for some of them each"
        )
    plan = Plan(
        name="",
        created_utc="",
        suite=options.suite,
        suite_title=suite.title,
        options=options,
        protocol=protocol,
        profiles={e.profile: used[e.profile] for e in experiments},
        experiments=tuple(experiments),
        not_measured=tuple(not_measured),
        runs=(),
        frequency_reason=frequency_reason,
        zone_bytes=zone,
    )
    check_budget(plan)
    if protocol.adaptive is not None or protocol.steady is not None:
        return replace(plan, runs=in_rounds(experiments, protocol.repetitions, plan))
    return replace(plan, runs=order(experiments, protocol.repetitions, options))


def _active_bytes(
    options: Options, protocol: Protocol, factors: Mapping[str, str], root: Path
) -> int | None:
    """How much of a raw device a steady-state protocol writes and measures, in full MiB; None for
    files, and if the preset sets file_size."""
    steady = protocol.steady
    if steady is None or steady.active_share is None or factors.get("level") != "device":
        return None
    if options.device is None or options.filesystems or protocol.work_bytes is not None:
        return None
    device = block_device(Path(options.device), root)
    if device is None:
        return None  # rejected by the device check
    return int(device.size_bytes * steady.active_share) // _MIB * _MIB


def _check_precondition(
    options: Options, experiments: Sequence[PlannedExperiment], root: Path
) -> None:
    """RejectedError if a device is smaller than the part to overwrite, or no part is."""
    written = [planned for planned in experiments if "precondition" in planned.factors]
    device = block_device(Path(options.device), root) if options.device else None
    most = max((p.file_bytes for p in written if p.experiment.target == "device"), default=0)
    if device is not None and most > device.size_bytes:
        raise RejectedError(
            f"{options.device}: {device.size_bytes / 1e9:.3g} GB, less than the {most / 1e9:.3g} "
            "GB that are written over and measured: give less (--sweep file_size=64m)"
        )
    if options.precondition_percent is None:
        return
    if not written:
        raise RejectedError(
            "--precondition requires a suite that overwrites the drive before measuring, such "
            "as eeio-drive"
        )


def check_budget(plan: Plan) -> None:
    """Rejects a campaign if its test files exceed its write limit."""
    most = plan.options.max_written_bytes
    if most is not None and plan.prefill_bytes > most:
        raise RejectedError(
            f"before the first run {plan.prefill_bytes / 1e9:.3g} GB are written, more than the "
            f"{most / 1e9:.3g} GB of --max-written: allow more, or write less (--work, "
            "--precondition)"
        )


def _with_windows(study: StudyProtocol | None, options: Options, suite: Suite) -> StudyProtocol:
    """The study with the hold of delayjc that another preset has."""
    assert options.windows_of is not None
    other = suite.protocol(options.windows_of).study
    if study is None or other is None:
        raise RejectedError("--windows-of belongs to suites with `study:` in their protocol.yaml")
    return replace(
        study,
        window_us=other.window_us,
        max_resets=other.max_resets,
        flush_first=other.flush_first,
    )


_LEAST_ADAPTIVE, _FEWEST_ADAPTIVE = 4, 3


def _adaptive(protocol: Protocol, options: Options) -> Protocol:
    """The protocol with the rule that the options ask for; RejectedError where that is none."""
    chosen = {
        name: value
        for name in ("precision", "indifference", "floor", "pilot")
        if (value := getattr(options, name)) is not None
    }
    if protocol.adaptive is None and not options.adaptive:
        if chosen:
            raise RejectedError(
                f"--{min(chosen)} is of adaptive campaigns: give --adaptive, or --preset adaptive"
            )
        return protocol
    if protocol.study is not None or protocol.steady is not None:
        raise RejectedError(
            f"suite {options.suite} has another repetition rule: leave out --adaptive"
        )
    if protocol.adaptive is None:
        most = max(AdaptiveProtocol().most_repetitions, protocol.repetitions)
        least = min(_LEAST_ADAPTIVE, max(_FEWEST_ADAPTIVE, protocol.repetitions))
        usual = AdaptiveProtocol()
        # No pause is longer than the preset's.
        pause_s = protocol.settle_s if options.settle_s is None else options.settle_s
        rule = replace(
            usual,
            most_repetitions=most,
            settle_least_s=min(usual.settle_least_s, pause_s),
            settle_most_s=pause_s,
        )
        protocol = replace(protocol, adaptive=rule, repetitions=least)
    assert protocol.adaptive is not None
    rule = replace(protocol.adaptive, **chosen)
    repetitions = options.repetitions or protocol.repetitions
    if repetitions < _FEWEST_ADAPTIVE:
        raise RejectedError(
            f"{repetitions} repetitions at least: a spread by luck of so few would end an adaptive "
            f"campaign; give {_FEWEST_ADAPTIVE} or more"
        )
    if (why := rule.impossible()) is not None:
        raise RejectedError(why)
    return replace(protocol, adaptive=rule)


def of_design(design: Design) -> Plan:
    """The plan of a stored campaign; RejectedError where it cannot be run here."""
    for planned in design.experiments:
        _check_runtime(planned.experiment.tool, planned.factors)
    names = {planned.profile for planned in design.experiments}
    stored = {item.name: getattr(design, item.name) for item in fields(Design)}
    return Plan(**stored, profiles={name: profiles.find(name) for name in names})


def _with_optional(suite: Suite) -> tuple[list[SuiteEntry], dict[SuiteEntry, str]]:
    """The suite's experiments with an installed tool, and why the others are skipped."""
    entries, absent = list(suite.entries), {}
    for optional in suite.optional:
        if optional.is_found():
            entries += optional.entries
        else:
            absent.update(dict.fromkeys(optional.entries, optional.otherwise))
    return entries, absent


def _check_own_modules(found: Iterable[Profile]) -> None:
    """Reports errors in a user's parser or study before the first run, not in that run or in the
    final report."""
    try:
        studies.every()
        for profile in found:
            tools.check(profile.tool)
    except EeioError as error:
        raise RejectedError(str(error)) from error


def _targets(options: Options, factors: Mapping[str, str]) -> list[Setting]:
    """The target of an entry."""
    if factors.get("level") == "device":
        # With --filesystem the device contains file systems, so the raw rows come from a file.
        if options.device and not options.filesystems:
            return [Setting("device", "")]
        return [Setting("file", options.filesystems[0] if options.filesystems else "")]
    if factors.get("level", "context") == "context" or not options.filesystems:
        return [Setting("file", options.filesystems[0] if options.filesystems else "")]
    return [Setting(f"file on {filesystem}", filesystem) for filesystem in options.filesystems]


def _disk_settings(options: Options, factors: Mapping[str, str]) -> list[str | None]:
    """States of the drive's write cache an entry runs in; reads do not depend on it."""
    if options.disk_cache == "leave" or factors.get("operation") not in _WRITING:
        return [None]
    return ["on", "off"] if options.disk_cache == "both" else [options.disk_cache]


def _why_not(
    options: Options,
    left_out: Sequence[LeftOut],
    entry: SuiteEntry,
    experiment: Experiment,
    root: Path,
) -> str | None:
    for group in left_out:
        if group.matches(entry):
            return group.reason
    if experiment.cache.disk is not None:
        reason = _why_cache_stays(options, experiment, root)
        if reason is not None:
            return reason
    if experiment.target == "device" and experiment.operation != "read" and not options.erase:
        return (
            f"{options.device} is only read: to measure writes, repeat it with --erase, which "
            "destroys its data"
        )
    return None


def _why_not_on_zones(options: Options, experiment: Experiment) -> str | None:
    """Why a drive that is written in zones cannot take an experiment, or None."""
    operation, spatiality = experiment.operation, experiment.spatiality
    if experiment.target != "device":
        return None
    drive = f"{options.device} is a zoned drive (host-managed)"
    if operation in ("write", "mixed") and spatiality != "sequential":
        return f"{drive}: it accepts only sequential writes in each zone"
    if operation == "mixed":
        return f"{drive}: the writes would reset the zones that are read"
    if spatiality == "strided":
        return f"{drive}: a stride would meet the gaps at the ends of its zones"
    return None


def _why_cache_stays(options: Options, experiment: Experiment, root: Path) -> str | None:
    """Why the drive's write cache cannot be brought into the experiment's state, or None."""
    assert experiment.cache.disk is not None
    on_device = experiment.target == "device" or (options.filesystems and options.device)
    if on_device and options.device:
        device = block_device(Path(options.device), root)
    elif options.filesystems:
        return "a loop image has no write cache: name a device for --disk-cache"
    else:
        directory = Path(options.directory) if options.directory else None
        device = backing_device(directory, root)[0] if directory else None
    if device is None:
        return "the target has no block device, so there is no write cache to switch"
    return caches.cannot_switch_write_cache(device, experiment.cache.disk)


def _check_runtime(tool: str, factors: Mapping[str, str]) -> None:
    try:
        DURATION.of_text(factors.get("runtime_s", "1"))
    except LimitError as error:
        raise RejectedError(
            f"{tool}: runtime_s is {shortened(factors['runtime_s'])}; it is a number of seconds, "
            "0 for none and a year at most"
        ) from error
