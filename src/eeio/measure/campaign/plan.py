"""The plan of a campaign, made from the options before any change to the machine."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from pathlib import Path

from eeio import studies
from eeio.errors import EeioError, LimitError, RejectedError
from eeio.machine.as_data.root import HERE
from eeio.machine.filesystem import block_device, zone_bytes
from eeio.measure.campaign import exclusions, protocols, sweep
from eeio.measure.campaign.file_sizes import file_bytes_of, in_whole_zones
from eeio.measure.campaign.planned_campaign import WRITING, Plan
from eeio.measure.campaign.run_order import in_rounds, order
from eeio.measure.campaign.safety import check_targets
from eeio.measure.campaign.variants import (
    PowerState,
    Processors,
    Setting,
    power_state_settings,
    processor_settings,
    study_settings,
)
from eeio.measure.profiles import profile as profiles
from eeio.measure.profiles.profile import Profile
from eeio.measure.profiles.suite import LeftOut, Suite, SuiteEntry, experiment_of, size_of
from eeio.record import tools
from eeio.record.design import Design, NotMeasured, Options, PlannedExperiment, Protocol
from eeio.units.quantities import DURATION, shortened

_MIB = 1 << 20
# Limit for campaign.json and the memory of a board; at ten seconds per run it is two months.
_MOST_RUNS = 500_000


def make(options: Options, suite: Suite, root: Path = HERE) -> Plan:
    """Decides experiments and order; RejectedError if the options cannot be used. `root` replaces
    `/` for a machine built from a description."""
    protocol = protocols.chosen(suite, options)
    _check_estimates(options, protocol)
    if root == HERE and options.directory is not None and not Path(options.directory).is_dir():
        raise RejectedError(f"{options.directory}: no such directory; create it or name another")
    settings = _settings(options, suite, protocol, root)
    entries = _entries(options, suite, protocol, root)
    device = None
    if options.device:
        device = block_device(Path(options.device), root)
    # A file system hides the zones of a host-managed drive.
    zone = None
    if not options.filesystems:
        zone = zone_bytes(device)
    experiments, not_measured = _experiments(options, protocol, settings, entries, zone, root)
    _check_precondition(options, experiments, root)
    _check_number(suite, experiments, protocol.repetitions)
    plan = Plan(
        name="",  # `run` gives it a name and a time
        created_utc="",
        suite=options.suite,
        suite_title=suite.title,
        options=options,
        protocol=protocol,
        profiles={e.profile: entries.profiles[e.profile] for e in experiments},
        experiments=tuple(experiments),
        not_measured=tuple(not_measured),
        runs=(),
        frequency_reason=settings.frequency_reason,
        zone_bytes=zone,
    )
    _check_budget(plan)
    # These protocols decide after each round whether there is another one.
    if protocol.adaptive is not None or protocol.steady is not None:
        return replace(plan, runs=in_rounds(experiments, protocol.repetitions, plan))
    return replace(plan, runs=order(experiments, protocol.repetitions, options))


def of_design(design: Design) -> Plan:
    """The plan of a stored campaign; RejectedError where it cannot be run here."""
    for planned in design.experiments:
        _check_runtime(planned.experiment.tool, planned.factors)
    names = {planned.profile for planned in design.experiments}
    stored = {item.name: getattr(design, item.name) for item in fields(Design)}
    return Plan(**stored, profiles={name: profiles.find(name) for name in names})


@dataclass(frozen=True)
class _Settings:
    """The settings of the machine under which each experiment runs: those of a study, or none, and
    of the processors. `frequency_reason` tells why no frequency is set."""

    of_study: Sequence[Setting]
    of_processors: Sequence[Processors]
    of_drive: Sequence[PowerState]
    frequency_reason: str | None

    def for_experiment(
        self, options: Options, factors: Mapping[str, str]
    ) -> Iterable[tuple[Setting, Processors, PowerState, str | None]]:
        """Each combination, with the state of the drive's write cache."""
        return product(
            self.of_study or _target_settings(options, factors),
            self.of_processors,
            self.of_drive,
            _disk_settings(options, factors),
        )


def _settings(options: Options, suite: Suite, protocol: Protocol, root: Path) -> _Settings:
    """RejectedError for options that a study decides itself."""
    of_study, frequency_reason = study_settings(
        protocol.study, options.variants, options.frequencies, options.frequency_root
    )
    of_processors = [Processors()]
    if protocol.study is None:
        of_processors = processor_settings(
            options.frequencies, options.smt, options.turbo, options.frequency_root
        )
    elif options.smt or options.turbo:
        raise RejectedError(
            f"suite {suite.name} is a study that fixes frequencies with SMT and turbo off: "
            "leave out --smt and --turbo"
        )
    if of_study and options.filesystems:
        raise RejectedError(
            f"suite {suite.name} creates variants of ext4: select them with --variant, without "
            "--filesystem"
        )
    of_drive = power_state_settings(options.power_states, options.device, root)
    return _Settings(of_study, of_processors, of_drive, frequency_reason)


def _target_settings(options: Options, factors: Mapping[str, str]) -> list[Setting]:
    """Where an entry runs: on the device itself, or on each file system. Without a file system to
    make, or for `context`, which measures no I/O, there is one place."""
    first_filesystem = ""
    if options.filesystems:
        first_filesystem = options.filesystems[0]
    if factors.get("level") == "device":
        # With --filesystem the device contains file systems, so the raw rows come from a file.
        if options.device and not options.filesystems:
            return [Setting("device", "")]
        return [Setting("file", first_filesystem)]
    if factors.get("level", "context") == "context" or not options.filesystems:
        return [Setting("file", first_filesystem)]
    return [Setting(f"file on {filesystem}", filesystem) for filesystem in options.filesystems]


def _disk_settings(options: Options, factors: Mapping[str, str]) -> list[str | None]:
    """States of the drive's write cache an entry runs in; reads do not depend on it."""
    if options.disk_cache == "leave" or factors.get("operation") not in WRITING:
        return [None]
    if options.disk_cache == "both":
        return ["on", "off"]
    return [options.disk_cache]


@dataclass(frozen=True)
class _Entries:
    """The entries of a suite after the sweeps. `original_of` maps each to its entry before them.
    `profiles` are by identifier. `rejected` has reasons of entries, `without_tool` reasons of
    originals."""

    original_of: Mapping[SuiteEntry, SuiteEntry]
    profiles: Mapping[str, Profile]
    factors_of: Callable[[SuiteEntry], dict[str, str]]
    sizes_preset: str
    left_out: Sequence[LeftOut]
    without_tool: Mapping[SuiteEntry, str]
    rejected: Mapping[SuiteEntry, str]

    def why_not(self, entry: SuiteEntry) -> str | None:
        """Why an entry is not run, whatever the settings are."""
        return self.rejected.get(entry) or self.without_tool.get(self.original_of[entry])


def _entries(options: Options, suite: Suite, protocol: Protocol, root: Path) -> _Entries:
    """Finds the profiles of a suite's entries, replaces values by those of --sweep, and rejects
    arguments that the profiles or the target do not accept."""
    entries, without_tool = _with_optional(suite)
    every = (*entries, *without_tool)
    used = {entry.profile: profiles.find(entry.profile) for entry in every}
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
        every,
        [sweep.parse(text) for text in options.sweeps],
        lambda entry: used[entry.profile],
        factors_of,
    )
    rejected = sweep.rejected(
        swept, lambda entry: used[entry.profile].why_not(sizes, factors_of(entry))
    )
    left_out = [group for group in suite.left_out(options.preset) if not swept.requests(group)]
    return _Entries(swept.made, used, factors_of, sizes, left_out, without_tool, rejected)


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


def _experiments(
    options: Options,
    protocol: Protocol,
    settings: _Settings,
    entries: _Entries,
    zone: int | None,
    root: Path,
) -> tuple[list[PlannedExperiment], list[NotMeasured]]:
    """Each entry under each setting, and what is not run with its reason. `zone` is the size in
    bytes of a zone of the drive."""
    experiments: list[PlannedExperiment] = []
    not_measured: list[NotMeasured] = []
    for entry in entries.original_of:
        profile = entries.profiles[entry.profile]
        factors = entries.factors_of(entry)
        if options.precondition_percent is not None and "precondition" in factors:
            factors["precondition"] = str(options.precondition_percent)
        is_sized = "file_size" in entry.factors
        active_bytes = _active_bytes(options, protocol, factors, is_sized, root)
        if active_bytes is not None:
            factors["file_size"] = str(active_bytes)
        file_bytes = file_bytes_of(profile, factors, entries.sizes_preset, root)
        if zone and factors.get("level") == "device":
            file_bytes = in_whole_zones(file_bytes, factors, zone)
        _check_runtime(profile.tool, factors)
        for setting, processors, power_state, disk in settings.for_experiment(options, factors):
            # The tool gets the factors; the record's identity has the settings of the machine, too.
            arguments = {
                **factors,
                **setting.arguments,
                **processors.arguments,
                **power_state.arguments,
            }
            experiment = experiment_of(profile.tool, arguments, setting.target, disk)
            reason = entries.why_not(entry)
            reason = reason or exclusions.why_not(
                options, entries.left_out, entry, experiment, root
            )
            if reason is None and zone:
                reason = exclusions.why_not_on_zones(options, experiment)
            if reason is not None:
                not_measured.append(NotMeasured(experiment, reason))
                continue
            labels = (
                entry.description,
                *setting.labels,
                *processors.labels,
                *power_state.labels,
            )
            experiments.append(
                PlannedExperiment(
                    experiment=experiment,
                    profile=entry.profile,
                    factors=factors,
                    description=" - ".join(labels),
                    volume=setting.volume,
                    file_bytes=file_bytes,
                    variant=setting.variant,
                    frequency_hz=setting.frequency_hz or processors.frequency_hz,
                    sized=None if active_bytes is None else "file_size",
                    smt=processors.smt,
                    turbo=processors.turbo,
                )
            )
    return experiments, not_measured


def _active_bytes(
    options: Options,
    protocol: Protocol,
    factors: Mapping[str, str],
    is_sized: bool,
    root: Path,
) -> int | None:
    """How much of a raw device is written and measured, in full MiB: its share by the protocol, or
    all of a device that is smaller than the preset's file. None for files, and for what has its
    size (`is_sized`)."""
    if factors.get("level") != "device" or options.device is None or options.filesystems:
        return None
    device = block_device(Path(options.device), root)
    if device is None or protocol.work_bytes is not None:
        return None  # without a device: rejected by its check
    share = protocol.device_share
    if protocol.steady is not None:
        share = protocol.steady.active_share
    if share is not None:
        return int(device.size_bytes * share) // _MIB * _MIB
    if (
        is_sized
        or size_of("device", "file_size", factors.get("file_size", "0")) <= device.size_bytes
    ):
        return None
    return device.size_bytes // _MIB * _MIB


def _check_estimates(options: Options, protocol: Protocol) -> None:
    """RejectedError if an estimate of a drive would stand among the measurements unasked."""
    if options.allow_estimates or not protocol.is_measurement:
        return
    for spec in options.meters:
        name = spec.partition(",")[0].partition(":")[0]
        if name == "drive_estimate":
            raise RejectedError(
                f"--meter {shortened(spec)}: an estimate, no measurement. Add --allow-estimates to "
                "show it marked ESTIMATE; it is never ranked"
            )


def _check_runtime(tool: str, factors: Mapping[str, str]) -> None:
    try:
        DURATION.of_text(factors.get("runtime_s", "1"))
    except LimitError as error:
        raise RejectedError(
            f"{tool}: runtime_s is {shortened(factors['runtime_s'])}; it is a number of seconds, "
            "0 for none and a year at most"
        ) from error


def _check_precondition(
    options: Options, experiments: Sequence[PlannedExperiment], root: Path
) -> None:
    """RejectedError if a device is smaller than the part to overwrite, or no part is."""
    written = [planned for planned in experiments if "precondition" in planned.factors]
    device = None
    if options.device:
        device = block_device(Path(options.device), root)
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


def _check_number(suite: Suite, experiments: Sequence[PlannedExperiment], repetitions: int) -> None:
    """RejectedError for an experiment that is there twice, and for too many runs."""
    ids = [planned.experiment.id for planned in experiments]
    if len(set(ids)) != len(ids):
        twice = next(p for p in experiments if ids.count(p.experiment.id) > 1)
        raise RejectedError(f"suite {suite.name} repeats an experiment: {twice.description}")
    if len(experiments) * repetitions > _MOST_RUNS:
        raise RejectedError(
            f"{len(experiments)} experiments x {repetitions} repetitions are more than "
            f"{_MOST_RUNS} runs: give fewer values to --sweep, or a campaign for some of them each"
        )


def _check_budget(plan: Plan) -> None:
    """Rejects a campaign if its test files exceed its write limit."""
    most = plan.options.max_written_bytes
    if most is not None and plan.prefill_bytes > most:
        raise RejectedError(
            f"before the first run {plan.prefill_bytes / 1e9:.3g} GB are written, more than the "
            f"{most / 1e9:.3g} GB of --max-written: allow more, or write less (--work, "
            "--precondition)"
        )
