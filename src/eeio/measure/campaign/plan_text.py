"""What a plan prints: its experiments, its time, its writes, and what it would touch."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from eeio.errors import RejectedError
from eeio.machine import device as devices
from eeio.machine.drive import drive_of, elsewhere, percentage_used
from eeio.machine.filesystem import BlockDevice, backing_device, block_device
from eeio.measure import hostnames
from eeio.measure.campaign.forecast import (
    Forecast,
    Length,
    expected_lengths,
    forecast,
    most_text,
    too_slow_meters,
)
from eeio.measure.campaign.pilots import may_grow
from eeio.measure.campaign.planned_campaign import Plan
from eeio.measure.campaign.progress import duration_text
from eeio.measure.power import check_meters
from eeio.measure.profiles import installation
from eeio.measure.profiles.suite import Suite
from eeio.paths import install_root
from eeio.record.design import Options, PlannedExperiment
from eeio.units.external_text import shown
from eeio.units.number_text import number
from eeio.units.sizes import format_size
from eeio_power.errors import PowerError
from eeio_power.meters import close_meters
from eeio_power.monitor import open_source


def to_json(plan: Plan, suite: Suite, *, of_here: bool = True) -> dict[str, Any]:
    """The body of `eeio plan --format json`. `of_here` is False for another machine, whose earlier
    runs are not known."""
    experiments = [
        {
            "id": planned.experiment.id,
            "profile": planned.profile,
            "level": planned.experiment.level,
            **dict(_conditions(planned)),
        }
        for planned in plan.experiments
    ]
    return {
        "schema_version": 1,
        **forecast(plan, suite, of_here=of_here).to_json(),
        "experiments": experiments,
    }


def refusals(plan: Plan) -> list[str]:
    """Why `run` would not begin, in the order in which it looks; except privileges, because a plan
    may be requested without those of the campaign."""
    reasons = []
    if plan.why_nothing is not None:
        reasons = [plan.why_nothing]
    try:
        plan.check_room()
    except RejectedError as error:
        reasons.append(str(error))
    try:
        check_meters(plan.options.meters)
    except RejectedError as error:
        reasons.append(str(error))
    return reasons


def lengths(plan: Plan) -> tuple[dict[str, Length], list[str]]:
    """How long each experiment's phases will be, by its id, and how much of that the meters of
    `run` resolve: they are opened for it, and closed."""
    estimates = plan.options.allow_estimates or not plan.protocol.is_measurement
    try:
        source = open_source(plan.options.meters, estimates)
    except PowerError as error:
        return expected_lengths(plan, ()), [f"power: {shown(str(error))}"]
    try:
        expected = expected_lengths(plan, source.meters)
        lines = [f"power by {line}" for line in too_slow_meters(plan, source.meters, expected)]
    finally:
        close_meters(source.meters)
    return expected, lines or [f"power: none; {source.reason}"]


def described(
    plan: Plan,
    suite: Suite,
    names: Sequence[str],
    device: BlockDevice | None = None,
    meters: Sequence[str] = (),
    lengths_of: Mapping[str, Length] | None = None,
    rated_bytes: float | None = None,
) -> list[str]:
    """Lines: the protocol, the forecast, the experiments, and what is left out with its reason.
    `names` are those that MPI would wait for; `lengths_of` is None on another machine."""
    lines = _protocol(plan, suite)
    lines += _forecast(plan, times := forecast(plan, suite, of_here=lengths_of is not None))
    if plan.options.max_written_bytes is not None:
        lines.append(f"ended before it has written {plan.options.max_written_bytes / 1e9:g} GB")
    lines.append(_written(plan, times.bytes_written, device, rated_bytes))
    unknown = sum(
        planned.experiment.operation in ("write", "mixed") and not planned.file_bytes
        for planned in plan.experiments
    )
    if unknown:
        lines.append(
            f"plus the writes of {unknown} experiments without a known amount (footprint= in "
            "presets.conf)"
        )
    lines += names
    if device is not None:
        lines.append(_drive(plan.options, device))
        if (away := elsewhere(device)) is not None:
            lines.append(away)
    lines += meters
    if plan.protocol.min_phase_s is not None:
        lines.append(
            f"each phase must last at least {plan.protocol.min_phase_s:g} s: if the preset sets "
            "the work, a pilot before the first run sizes it; shorter phases are not ranked"
        )
    lines += ["", "experiments (--format json lists each):"]
    lines += [f"  {line}" for line in _groups(plan, lengths_of or {})]
    if plan.not_measured:
        reasons = Counter(
            (planned.experiment.tool, planned.experiment.level, planned.reason)
            for planned in plan.not_measured
        )
        lines += ["", "left out:"]
        lines += [
            f"  {count} of {tool}, {level}: {reason}"
            for (tool, level, reason), count in reasons.items()
        ]
    return lines


def _protocol(plan: Plan, suite: Suite) -> list[str]:
    protocol = plan.protocol
    quick = " (QUICK: not a measurement)"
    if protocol.is_measurement:
        quick = ""
    in_rounds = protocol.adaptive is not None or protocol.steady is not None
    order = "one random order"
    if in_rounds:
        order = "rounds, each in random order"
    lines = [
        f"{suite.name}: {suite.title}",
        f"preset {plan.options.preset}{quick}, seed {plan.options.seed}",
        f"{len(plan.experiments)} experiments x {protocol.repetitions} repetitions = "
        f"{len(plan.runs)} runs in {order}, {protocol.settle_s:g} s settle pause, "
        f"{protocol.idle_s:g} s idle baseline",
    ]
    if protocol.work_bytes is not None:
        lines.append(
            f"each run moves {format_size(protocol.work_bytes)}, however long it takes; "
            "a strided one passes once over a file of that size"
        )
    if protocol.study and protocol.study.half_width is not None:
        lines.append(
            "repeated further until the 95 % interval of the mean is within "
            f"{protocol.study.half_width:.0%} of it, {protocol.study.most_repetitions} times at "
            "most (not in the forecast)"
        )
    if plan.frequency_reason:
        lines.append(f"frequency left as it is: {plan.frequency_reason}")
    return lines


def _forecast(plan: Plan, times: Forecast) -> list[str]:
    least, most = duration_text(times.least_s), duration_text(times.most_s)
    expected = duration_text(times.expected_s)
    if (rule := plan.protocol.adaptive) is not None:
        return [
            f"then rounds of experiments not yet known to {rule.precision:.1%}, at most "
            f"{rule.most_repetitions} repetitions ({rule.most_whole} of runs of full length), "
            f"pauses of {rule.settle_least_s:g} to {rule.settle_most_s:g} s until the machine "
            "has settled",
            f"{least} to {most}, about {expected} on a disk of medium speed; with a fixed number "
            f"of repetitions {duration_text(times.fixed_s)}",
        ]
    if (steady := plan.protocol.steady) is not None:
        return [
            f"further rounds, at most {steady.most_rounds}, until the write bandwidth of the "
            f"last {steady.rounds} stays within {steady.range_share:.0%} of its mean and its "
            f"fitted line within {steady.slope_share:.0%}; earlier rounds are not part of the "
            "measurement",
            f"{least} to {most} on a disk of medium speed",
        ]
    return [f"about {expected} on a disk of medium speed"]


def _groups(plan: Plan, lengths_of: Mapping[str, Length]) -> Iterable[str]:
    """A line for the experiments of a profile and level: how many, and the values of each
    factor."""
    groups: dict[tuple[str, str], list[PlannedExperiment]] = {}
    for planned in plan.experiments:
        groups.setdefault((planned.profile, planned.experiment.level), []).append(planned)
    for (profile, level), found in groups.items():
        values: dict[str, dict[str, None]] = {}
        for planned in found:
            for name, value in _conditions(planned):
                values.setdefault(name, {}).setdefault(value)
        text = " ".join(f"{name}={','.join(of)}" for name, of in sorted(values.items()))
        lasts = []
        if lengths_of:
            lasts = [lengths_of[one.experiment.id] for one in found]
        if level == "device" and all(p.experiment.target == "file" for p in found):
            level = "device (on a file; --device measures the drive itself)"
        yield "; ".join([f"{len(found)} of {profile}, {level}: {text}", *_lengths_text(lasts)])


def _conditions(planned: PlannedExperiment) -> Iterable[tuple[str, str]]:
    """Factors and settings of the machine, level apart."""
    yield from ((name, value) for name, value in planned.factors.items() if name != "level")
    yield from (
        (name, value)
        for name, value in (
            ("volume", planned.volume),
            ("variant", planned.variant),
            ("GHz", f"{planned.frequency_hz / 1e9:g}" if planned.frequency_hz else None),
            ("SMT", planned.smt),
            ("turbo", planned.turbo),
        )
        if value
    )


def _lengths_text(lasts: Sequence[Length]) -> list[str]:
    """How long the phases of these experiments are: the earlier ones as a range."""
    earlier = [length for length in lasts if length.at_least_s == length.at_most_s is not None]
    if len(earlier) < 2:
        return list(dict.fromkeys(length.text for length in lasts))
    ends_s = sorted(length.at_least_s or 0.0 for length in earlier)
    others = dict.fromkeys(length.text for length in lasts if length not in earlier)
    return [f"phases of {ends_s[0]:.2g} to {ends_s[-1]:.2g} s in an earlier campaign", *others]


def _written(
    plan: Plan, bytes_written: int, device: BlockDevice | None, rated_bytes: float | None
) -> str:
    """The campaign's wear of the drive. The rated endurance is from its data sheet and the drive
    itself, not from a table of models."""
    text = f"{most_text(plan, bytes_written, 2)}, test files included"
    size_bytes = 0
    if device is not None:
        with suppress(OSError, ValueError):
            size_bytes = int((device.disk_sysfs / "size").read_text(encoding="ascii")) * 512
    if not bytes_written:
        return text
    if size_bytes:
        times = number(bytes_written / size_bytes)
        text += f": {times} times the size of the drive ({size_bytes / 1e9:.1f} GB)"
    if rated_bytes is not None:
        share = number(100 * bytes_written / rated_bytes)
        text += f", {share} % of the {rated_bytes / 1e12:g} TB that it is rated for"
    elif size_bytes:
        text += "; --rated-writes takes the writes (TBW) that its data sheet allows"
    used = None
    if device is not None:
        used = percentage_used(device.disk_sysfs)
    if used is not None:
        text += f"; the drive reports {used} % of its rated endurance as used"
    return text


def target(options: Options) -> BlockDevice | None:
    """The device behind the target; None if none is found."""
    if options.device is not None:
        return block_device(Path(options.device))
    if options.directory is not None:
        return backing_device(Path(options.directory))[0]
    return None


def _drive(options: Options, device: BlockDevice) -> str:
    """The drive's identity, as in the records."""
    drive = drive_of(device.disk_sysfs, options.hash_serial)
    if options.drive_label is not None:
        return f"drive: {options.drive_label} ({shown(drive.drive_id or device.disk_sysfs.name)})"
    return f"drive: {shown(drive.drive_id or drive.missing['drive_id'])}"


def names_waited_for(plan: Plan) -> list[str]:
    """Names of this machine that MPI would ask a name server for."""
    if not has_ranks(plan):
        return []
    return [
        f"the name {name}: {waiting.reason}; MPI over several hosts waits for it at each start "
        f"(on one host the profiles avoid that): {waiting.remedy}"
        for name, waiting in hostnames.unresolved().items()
    ]


def has_ranks(plan: Plan) -> bool:
    return any(profile.has_ranks for profile in plan.profiles.values())


def touched(plan: Plan) -> list[str]:
    options = plan.options
    lines = []
    if options.directory is not None:
        size = plan.room_bytes("")
        if size:
            lines.append(
                f"{options.directory}: {size / 1e6:.0f} MB of test files"
                f"{', more if a pilot enlarges them' * may_grow(plan)}, removed at the end"
            )
        if options.device is None:
            lines += [
                f"{options.directory}: loop image with {filesystem}, removed at the end"
                for filesystem in plan.made_volumes
            ]
    if options.device is not None:
        lines += _device_lines(Path(options.device), options.erase is not None)
    lines += settings_touched(plan)
    lines += [
        f"{install_root()}: installation of {profile.identifier}"
        for profile in plan.profiles.values()
        if installation.find(profile) is None
    ]
    return lines


def settings_touched(plan: Plan) -> list[str]:
    options = plan.options
    lines = []
    if options.disk_cache != "leave":
        lines.append("the drive's write cache: switched during writes, then restored")
    if plan.protocol.study:
        lines.append("tracefs: a separate instance while a run is traced, removed after it")
    if any(planned.frequency_hz for planned in plan.experiments):
        lines.append(
            f"{options.frequency_root / 'sys/devices/system/cpu'}: SMT and turbo off, "
            "frequencies set, all restored at the end"
        )
    elif any(planned.smt or planned.turbo for planned in plan.experiments):
        lines.append(
            f"{options.frequency_root / 'sys/devices/system/cpu'}: SMT or turbo switched, "
            "restored at the end"
        )
    if options.power_states:
        lines.append(f"the power state of {options.device}: set for each run, then restored")
    elif plan.protocol.drive_states_s is not None and options.device is not None:
        lines.append(
            f"the power state of {options.device}: each is set and measured after the runs, then "
            "restored"
        )
    lines.append("the page cache of the machine: dropped before every run (as root)")
    return lines


def _device_lines(node: Path, erased: bool) -> list[str]:
    if not erased:
        return [f"{node}: read only"]
    listed = devices.signatures_listed(devices.signatures_carried(node), node)
    lost = "; it contains no file system and no table"
    if listed:
        lost = f", {listed} with it"
    if not listed and devices.has_data(node):
        lost = ", data of an unknown kind with it"
    lines = [f"{node}: OVERWRITTEN: all its data are destroyed{lost}"]
    return lines + [f"{node}: also opened by {reader}" for reader in devices.readers(node)]
