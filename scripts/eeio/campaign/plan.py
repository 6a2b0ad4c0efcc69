"""What a campaign will do, decided before anything is touched."""

import math
import os
import random
import stat
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from eeio.campaign.variants import Setting, study_settings
from eeio.errors import RefusedError
from eeio.machine.place import HERE, memory_bytes
from eeio.profiles import profile as profiles
from eeio.profiles.profile import Profile
from eeio.profiles.suite import Entry, Protocol, Suite, experiment_of, size_of
from eeio.system import device as devices
from eeio.system import write_cache
from eeio.system.filesystem import (
    backing_device,
    block_device,
    check_directory,
    check_storage,
    mount_of,
)
from eeio.system.image import MKFS, OVERHEAD_BYTES, in_the_way
from eeio_limits import LimitError
from eeio_limits.quantities import DURATION, shortened
from eeio_results import tools
from eeio_results.errors import EeioError
from eeio_results.record import Experiment

SCRATCH = "eeio-scratch"  # the folder that the profiles keep their test files in
MADE = "made-filesystems.txt"  # in the campaign's folder: UUIDs of those it made on the device
DEFAULT_RUNTIME_S = 5.0
# Operations that write to the device, whatever else they do.
_WRITING = ("write", "mixed", "metadata")
# A tool's start and end, the drop of the caches, the device's own write-back: about this much.
_PER_RUN_OVERHEAD_S = 0.7
# For a forecast only: a device nobody knows yet moves at least about this many bytes per second.
_ASSUMED_BANDWIDTH_BYTES_PER_S = 150e6


@dataclass(frozen=True)
class Options:
    """What the user chose; all of it is stored with the campaign, and `resume` uses it again."""

    suite: str
    preset: str
    directory: str | None
    device: str | None
    erase: str | None
    meters: tuple[str, ...]
    repetitions: int | None
    seed: int
    filesystems: tuple[str, ...]
    disk_cache: str
    allow_estimates: bool
    allow_memory_filesystem: bool
    settle_s: float | None
    idle_s: float | None
    variants: tuple[str, ...] = ()
    frequencies: tuple[str, ...] = ()
    sysfs_root: str = "/"
    lose: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> "Options":
        lists = ("meters", "filesystems", "variants", "frequencies", "lose")
        return cls(**{**body, **{key: tuple(body[key]) for key in lists if key in body}})

    @property
    def frequency_root(self) -> Path:
        return Path(self.sysfs_root)


@dataclass(frozen=True)
class PlannedExperiment:
    """An experiment with what it takes to run it. `place` names the file system it runs on:
    empty for the user's own directory, else `ext4`, `xfs`, `btrfs` made for the campaign.
    `file_bytes` is the size of the test files, all processes together; 0 for none. `variant` and
    `frequency_hz` are those of a study (None: none, or the frequency left as it is)."""

    experiment: Experiment
    profile: str
    factors: Mapping[str, str]
    description: str
    place: str
    file_bytes: int
    variant: str | None = None
    frequency_hz: int | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "experiment_id": self.experiment.id,
            "experiment": self.experiment.to_json(),
            "profile": self.profile,
            "factors": dict(self.factors),
            "description": self.description,
            "place": self.place,
            "file_bytes": self.file_bytes,
            "variant": self.variant,
            "frequency_hz": self.frequency_hz,
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> "PlannedExperiment":
        return cls(
            Experiment.from_json(body["experiment"]),
            body["profile"],
            body["factors"],
            body["description"],
            body["place"],
            body["file_bytes"],
            body.get("variant"),
            body.get("frequency_hz"),
        )


@dataclass(frozen=True)
class PlannedRun:
    """A place in the order. `seed` makes the tool's own random offsets repeatable."""

    order_index: int
    experiment: PlannedExperiment
    repetition: int
    seed: int


@dataclass(frozen=True)
class NotMeasured:
    """An experiment of the suite that this campaign leaves out, and why."""

    experiment: Experiment
    reason: str

    def to_json(self) -> dict[str, Any]:
        return {"experiment": self.experiment.to_json(), "reason": self.reason}


@dataclass(frozen=True)
class Plan:
    """Everything a campaign will run, in its order."""

    options: Options
    suite_title: str
    protocol: Protocol
    profiles: Mapping[str, Profile]
    experiments: tuple[PlannedExperiment, ...]
    not_measured: tuple[NotMeasured, ...]
    runs: tuple[PlannedRun, ...]
    frequency_reason: str | None = None

    @property
    def made_places(self) -> list[str]:
        """The file systems that are made for the campaign."""
        return sorted({planned.place for planned in self.experiments} - {""})

    @property
    def bytes_written(self) -> int:
        """An upper bound: what the runs write, and the prefill of every file once."""
        return self.prefill_bytes + sum(self._written(run.experiment) for run in self.runs)

    @property
    def prefill_bytes(self) -> int:
        return sum(self.files.values())

    @property
    def files(self) -> dict[tuple[str, str], int]:
        """(place, profile) -> bytes of the test files that the profile keeps there."""
        sizes: dict[tuple[str, str], int] = {}
        for planned in self.experiments:
            if planned.experiment.target != "device":
                key = (planned.place, planned.profile)
                sizes[key] = max(sizes.get(key, 0), planned.file_bytes)
        return sizes

    def room_bytes(self, place: str) -> int:
        """Bytes that the test files of a place need."""
        return sum(size for (where, _), size in self.files.items() if where == place)

    def _written(self, planned: PlannedExperiment) -> int:
        preset = self.profiles[planned.profile].preset(self.options.preset)
        passes = float(preset.get("passes_written", "1"))
        operation = planned.experiment.operation
        return int(planned.file_bytes * passes) if operation in _WRITING else 0

    @property
    def expected_s(self) -> float:
        """A forecast: times that the presets set, sizes over an assumed bandwidth, and pauses."""
        total = self.protocol.idle_s + self.prefill_bytes / _ASSUMED_BANDWIDTH_BYTES_PER_S
        for run in self.runs:
            factors = run.experiment.factors
            by_size = run.experiment.file_bytes / _ASSUMED_BANDWIDTH_BYTES_PER_S
            runtime = float(factors.get("runtime_s", by_size or DEFAULT_RUNTIME_S))
            by_time = min(runtime, by_size) if by_size else runtime
            total += by_time + self.protocol.settle_s + _PER_RUN_OVERHEAD_S
            if run.experiment.experiment.processes > 1:
                preset = self.profiles[run.experiment.profile].preset(self.options.preset)
                total += float(preset.get("parallel_pause_s", 0))
        return total

    def timeout_s(self, planned: PlannedExperiment) -> float:
        """When a run is given up: far beyond what a slow disk needs, but not never."""
        slowest_bytes_per_s = 1e6
        runtime_s = float(planned.factors.get("runtime_s", "0"))
        return 120 + 2 * runtime_s + 3 * planned.file_bytes / slowest_bytes_per_s


def make(options: Options, suite: Suite, root: Path = HERE) -> Plan:
    """Decides experiments and order; RefusedError when the options cannot be used. `root` stands
    for `/` of a machine that was laid out from a description."""
    protocol = suite.protocol(options.preset)
    protocol = replace(
        protocol,
        repetitions=options.repetitions or protocol.repetitions,
        settle_s=protocol.settle_s if options.settle_s is None else options.settle_s,
        idle_s=protocol.idle_s if options.idle_s is None else options.idle_s,
    )
    if options.repetitions and protocol.study:
        # A number that the user gives is that number, whatever the spread.
        protocol = replace(protocol, study=replace(protocol.study, half_width=None))
    if root == HERE and options.directory is not None and not Path(options.directory).is_dir():
        raise RefusedError(f"{options.directory}: no such directory; create it or name another")
    cells, frequency_reason = study_settings(
        protocol.study, options.variants, options.frequencies, options.frequency_root
    )
    if cells and options.filesystems:
        raise RefusedError(
            f"suite {suite.name} makes its own variants of ext4: choose among them with "
            "--variant, without --filesystem"
        )
    entries, absent = _with_optional(suite)
    used = {entry.profile: profiles.find(entry.profile) for entry in (*entries, *absent)}
    _check_parsers(used.values())
    check_targets(options, bool(options.filesystems or protocol.study), root=root)
    experiments: list[PlannedExperiment] = []
    not_measured: list[NotMeasured] = []
    for entry in (*entries, *absent):
        profile = used[entry.profile]
        preset = profile.preset(options.preset)
        factors = {**profile.preset_factors(options.preset), **entry.factors}
        file_bytes = _file_bytes(profile.tool, factors, preset, root)
        _check_runtime(profile.tool, factors)
        for cell in cells or _targets(options, factors):
            for disk in _disk_settings(options, factors):
                told = {**factors, **cell.arguments}
                experiment = experiment_of(profile.tool, told, cell.target, disk)
                reason = absent.get(entry) or _why_not(options, protocol, entry, experiment, root)
                if reason is not None:
                    not_measured.append(NotMeasured(experiment, reason))
                    continue
                experiments.append(
                    PlannedExperiment(
                        experiment,
                        entry.profile,
                        factors,
                        " - ".join((entry.description, *cell.words)),
                        cell.place,
                        file_bytes,
                        cell.variant,
                        cell.frequency_hz,
                    )
                )
    ids = [planned.experiment.id for planned in experiments]
    if len(set(ids)) != len(ids):
        twice = next(p for p in experiments if ids.count(p.experiment.id) > 1)
        raise RefusedError(f"suite {suite.name} has one experiment twice: {twice.description}")
    return Plan(
        options=options,
        suite_title=suite.title,
        protocol=protocol,
        profiles={e.profile: used[e.profile] for e in experiments},
        experiments=tuple(experiments),
        not_measured=tuple(not_measured),
        runs=order(experiments, protocol.repetitions, options),
        frequency_reason=frequency_reason,
    )


def _with_optional(suite: Suite) -> tuple[list[Entry], dict[Entry, str]]:
    """The suite's experiments with those whose tool is here, and why the others are not run."""
    entries, absent = list(suite.entries), {}
    for optional in suite.optional:
        if optional.is_found():
            entries += optional.entries
        else:
            absent.update(dict.fromkeys(optional.entries, optional.otherwise))
    return entries, absent


def to_body(plan: Plan, name: str, created_utc: str) -> dict[str, Any]:
    """What campaign.json keeps, enough to go on after a crash in the same order."""
    return {
        "name": name,
        "suite": plan.options.suite,
        "suite_title": plan.suite_title,
        "created_utc": created_utc,
        "options": plan.options.to_json(),
        # What the preset left out stands in `not_measured`, with the reason.
        "protocol": plan.protocol.to_json(),
        "frequency_reason": plan.frequency_reason,
        "disks": disks(plan.options),
        "experiments": [planned.to_json() for planned in plan.experiments],
        "not_measured": [left_out.to_json() for left_out in plan.not_measured],
        "order": order_of(plan),
    }


def disks(options: Options) -> dict[str, str]:
    """Option -> what tells the disk behind it from others."""
    found = {}
    if options.device is not None:
        device = block_device(Path(options.device))
        found["device"] = device.identity if device else "none"
    if options.directory is not None:
        device, reason = backing_device(Path(options.directory))
        found["directory"] = device.identity if device else str(reason)
    return found


def check_disks(options: Options, body: Mapping[str, Any]) -> None:
    """Refuses to go on where another disk has the name, or nothing is mounted since a reboot."""
    now = disks(options)
    for option, before in body.get("disks", {}).items():
        if now.get(option) != before:
            raise RefusedError(
                f"{getattr(options, option)} is not on the disk that the campaign began on: it was "
                f"{before!r}, is {now.get(option)!r}; mount or attach that disk there again"
            )


def order_of(plan: Plan) -> list[list[int]]:
    """[place of the experiment, repetition, seed] of every run, as campaign.json keeps it."""
    places = {planned.experiment.id: number for number, planned in enumerate(plan.experiments)}
    return [[places[run.experiment.experiment.id], run.repetition, run.seed] for run in plan.runs]


def with_round(plan: Plan, experiments: Sequence[PlannedExperiment]) -> Plan:
    """The plan with one more repetition of each of these, in a random order that the seed and the
    runs before it decide."""
    done = Counter(run.experiment.experiment.id for run in plan.runs)
    random_order = random.Random(f"{plan.options.seed}-{len(plan.runs)}")
    drawn = list(experiments)
    random_order.shuffle(drawn)
    if plan.options.device:
        drawn.sort(key=lambda planned: planned.place)
    return replace(
        plan,
        runs=(
            *plan.runs,
            *(
                PlannedRun(
                    len(plan.runs) + number,
                    planned,
                    done[planned.experiment.id] + 1,
                    random_order.randrange(1, 2**31),
                )
                for number, planned in enumerate(drawn)
            ),
        ),
    )


def from_body(body: Mapping[str, Any]) -> Plan:
    """The plan that campaign.json keeps."""
    experiments = tuple(PlannedExperiment.from_json(item) for item in body["experiments"])
    for planned in experiments:
        _check_runtime(planned.experiment.tool, planned.factors)
    return Plan(
        options=Options.from_json(body["options"]),
        suite_title=body["suite_title"],
        protocol=Protocol.from_json(body["protocol"]),
        profiles={name: profiles.find(name) for name in {p.profile for p in experiments}},
        experiments=experiments,
        not_measured=tuple(
            NotMeasured(Experiment.from_json(item["experiment"]), item["reason"])
            for item in body["not_measured"]
        ),
        runs=tuple(
            PlannedRun(index, experiments[place], repetition, seed)
            for index, (place, repetition, seed) in enumerate(body["order"])
        ),
        frequency_reason=body.get("frequency_reason"),
    )


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
    places = sorted({planned.place for planned in experiments} - {""})
    if places and options.device:
        random_order.shuffle(places)
        pairs.sort(key=lambda pair: places.index(pair[0].place))
    return tuple(
        PlannedRun(index, planned, repetition, random_order.randrange(1, 2**31))
        for index, (planned, repetition) in enumerate(pairs)
    )


def check_room(plan: Plan) -> None:
    """Refuses before anything runs when the target is not there or too small."""
    options = plan.options
    if options.directory is None:
        if any(planned.place == "" and planned.experiment.target != "device"
               for planned in plan.experiments):  # fmt: skip
            raise RefusedError("this suite needs a directory: give --directory DIR on the disk")
        return
    directory = Path(options.directory)
    check_scratch(directory)
    needed = max(0, math.ceil(plan.room_bytes("") * 1.05) - _left_bytes(plan))
    if options.device is None:
        for filesystem in plan.made_places:
            if (there := in_the_way(filesystem, directory)) is not None:
                raise RefusedError(
                    f"{there} is there already; is another campaign using it? Delete it if not"
                )
            size = plan.room_bytes(filesystem)
            needed += size + size // 8 + OVERHEAD_BYTES
    check_directory(directory, needed, options.allow_memory_filesystem)


def check_described(plan: Plan, root: Path) -> str:
    """As `check_room` on a machine that is only described, as far as that tells; returns on what
    the directory lies there, in words, or nothing without one."""
    options = plan.options
    if options.directory is None:
        check_room(plan)
        return ""
    directory = Path(options.directory)
    mount = mount_of(directory, root)
    check_storage(directory, mount, options.allow_memory_filesystem)
    device, reason = backing_device(directory, root)
    return f"{directory}: {mount.filesystem} on {device.node if device else f'no device: {reason}'}"


def check_scratch(directory: Path) -> None:
    """Refuses a folder of test files that is a link, no folder, or of a user who could have laid
    links in it: it is written, and what lies in it deleted, perhaps as root."""
    scratch = directory / SCRATCH
    try:
        status = scratch.lstat()
    except OSError:
        return  # made by the profiles, or refused there
    if not stat.S_ISDIR(status.st_mode):
        raise RefusedError(f"{scratch} is no folder (a link?): it is not followed. Take it away")
    # Who owns the directory may change all of it anyway.
    if status.st_uid not in (0, os.geteuid(), directory.stat().st_uid):
        raise RefusedError(f"{scratch} belongs to user {status.st_uid}: take it away")


def _check_runtime(tool: str, factors: Mapping[str, str]) -> None:
    try:
        sound = DURATION.of_text(factors.get("runtime_s", "1")) > 0
    except LimitError:
        sound = False
    if not sound:
        raise RefusedError(
            f"{tool}: runtime_s is {shortened(factors['runtime_s'])}; it is a number of seconds, "
            "above 0 and a year at most"
        )


def _left_bytes(plan: Plan) -> int:
    """What test files of the plan's profiles, left by a start that was stopped, take already."""
    scratch = Path(plan.options.directory or "") / SCRATCH
    return sum(
        path.stat().st_blocks * 512
        for profile in plan.profiles.values()
        for top in scratch.glob(f"{profile.name}*")
        for path in (top, *top.rglob("*"))
        if path.is_file()
    )


def _file_bytes(
    tool: str, factors: Mapping[str, str], preset: Mapping[str, str], root: Path
) -> int:
    """A profile whose buffered measurement needs a file larger than memory sees to that itself
    (`memory_multiple` in its presets.conf), and one that has no file_size tells its `footprint`;
    the forecast has to know."""
    size = size_of(tool, "file_size", factors.get("file_size") or preset.get("footprint", "0"))
    if factors.get("buffer") == "on" and "memory_multiple" in preset:
        size = max(size, int(float(preset["memory_multiple"]) * memory_bytes(root)))
    return size


def permission(options: Options, folder: Path | None = None) -> devices.Permission:
    """What of the device the campaign, which has this folder already or not, may write over."""
    made = devices.read_made(folder / MADE) if folder else frozenset[str]()
    return devices.Permission(Path(options.erase or ""), options.lose, made)


def check_targets(
    options: Options, makes_filesystems: bool, folder: Path | None = None, root: Path = HERE
) -> None:
    """Refuses file systems and a device that cannot be used; `folder` is that of a campaign which
    goes on."""
    if unknown := [name for name in options.filesystems if name not in MKFS]:
        raise RefusedError(f"--filesystem {unknown[0]}: eeio makes {', '.join(MKFS)}")
    if options.erase is not None and options.device is None:
        raise RefusedError("--erase DEV needs --device DEV: name the device twice to write over it")
    if options.lose and options.erase is None:
        raise RefusedError(
            f"--lose {options.lose[0]} needs --erase DEV: it names what that device carries"
        )
    if options.device is None:
        return
    if options.erase is not None:
        devices.check_erasable(Path(options.device), permission(options, folder))
        if folder is None:  # later on it may be gone already
            devices.check_named(Path(options.device), options.lose)
    elif makes_filesystems:
        raise RefusedError(
            f"making file systems writes over {options.device}: name it again with --erase, "
            "or leave --device out for a loop image in --directory"
        )
    else:
        devices.check_readable(Path(options.device), root)


def _check_parsers(found: Iterable[Profile]) -> None:
    """What is wrong with a parser of the user's own is told before the first run, not by it."""
    try:
        for profile in found:
            tools.check(profile.tool)
    except EeioError as error:
        raise RefusedError(str(error)) from error


def _targets(options: Options, factors: Mapping[str, str]) -> list[Setting]:
    """What an entry runs on."""
    if factors.get("level") == "device":
        # With --filesystem the device holds file systems, so the raw rows come from a file.
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


def _why_cache_stays(options: Options, experiment: Experiment, root: Path) -> str | None:
    """Why the drive's write cache cannot be brought into the experiment's state, or None."""
    assert experiment.cache.disk is not None
    on_device = experiment.target == "device" or (options.filesystems and options.device)
    if on_device and options.device:
        device = block_device(Path(options.device), root)
    elif options.filesystems:
        return "a loop image has no write cache of its own: name a device for --disk-cache"
    else:
        directory = Path(options.directory) if options.directory else None
        device = backing_device(directory, root)[0] if directory else None
    if device is None:
        return "no block device lies behind the target, so it has no write cache to switch"
    return write_cache.cannot_switch(device, experiment.cache.disk)


def _why_not(
    options: Options, protocol: Protocol, entry: Entry, experiment: Experiment, root: Path
) -> str | None:
    for left_out in protocol.leave_out:
        if left_out.matches(entry):
            return left_out.reason
    if experiment.cache.disk is not None:
        reason = _why_cache_stays(options, experiment, root)
        if reason is not None:
            return reason
    if experiment.target == "device" and experiment.operation != "read" and not options.erase:
        return (
            f"{options.device} is only read: to measure writes name it a second time with "
            "--erase, which destroys what is on it"
        )
    return None
