"""How a campaign was measured, as a paragraph for a paper: only from its design and its records.

Information missing in a record is omitted; values that differ from run to run appear with counts.
"""

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence

from eeio.analysis.rows import Row
from eeio.record.design import AdaptiveProtocol
from eeio.record.imported_design import IMPORTED
from eeio.record.publication import warnings_of
from eeio.record.run import EnergyReading, Machine, Run, Tool
from eeio.record.store import Campaign
from eeio.record.windows import energy_of, writes
from eeio.report.campaign.characterized import Report
from eeio.report.campaign.data_source import is_imported
from eeio.report.campaign.rounds import drift_taken_out
from eeio.report.campaign.verification import verification_notes
from eeio.units.number_text import number
from eeio.units.sizes import format_size, percent, prefixed


def paragraphs(report: Report) -> list[str]:
    """One a campaign, then the one on statistics that all of them share."""
    texts = [" ".join(_of_campaign(report, campaign)) for campaign in report.campaigns]
    return [*texts, " ".join(_statistics(report.rows))]


def _of_campaign(report: Report, campaign: Campaign) -> list[str]:
    if is_imported(campaign):
        return _of_imported(report, campaign)
    design = campaign.design
    protocol, options = design.protocol, design.options
    warnings = warnings_of(campaign)
    version = ""
    if design.eeio_version:
        version = f" {design.eeio_version}"
    suite = design.suite_title or design.suite
    warnings.append(
        f"Campaign {campaign.name}: the suite {suite} with the preset {options.preset} of "
        f"eeio{version}, on {_machine(campaign.machine)}."
    )
    experiments = [p for p in design.experiments if p.experiment.level != "context"]
    rule = protocol.adaptive
    order = "rounds, each in a separate random order"
    if rule is None:
        order = "one random order"
    warnings.append(
        f"{_counted(len(experiments), 'experiment')} of the I/O stack, "
        f"{_repetitions(campaign.runs, protocol.repetitions, rule is None)}, in {order} (seed "
        f"{options.seed})."
    )
    warnings += _pauses(campaign)
    if protocol.work_bytes is not None:
        warnings.append(f"Each run moved {format_size(protocol.work_bytes)}.")
    if protocol.min_phase_s is not None:
        warnings.append(
            f"A pilot sized the work so that each phase lasts {protocol.min_phase_s:g} s or more."
        )
    warnings += _caches(campaign)
    warnings += _power(report, campaign)
    warnings += _validity(campaign)
    if options.sysfs_root != "/":
        warnings.append(f"Frequencies were set in {options.sysfs_root}, not in this machine.")
    for remark in design.remarks:
        warnings.append(f"{remark.rstrip('.')}.")
    return warnings


def _of_imported(report: Report, campaign: Campaign) -> list[str]:
    """Only what the files report: neither the order nor the settings of the machine."""
    design = campaign.design
    version = ""
    if design.eeio_version:
        version = f" {design.eeio_version}"
    sentences = [
        *warnings_of(campaign),
        f"Campaign {campaign.name}: {design.suite_title}, imported by eeio{version}.",
        f"Machine: {_machine(campaign.machine)}.",
        f"{_counted(len(design.experiments), 'experiment')}, "
        f"{_repetitions(campaign.runs, design.protocol.repetitions, is_fixed=False)}.",
        # PTS's results have it.
        *(["The order of the runs is unknown."] if campaign.preset == IMPORTED else []),
        *_power(report, campaign),
        *_validity(campaign),
    ]
    if rejected := sum(": rejected: " in remark for remark in design.remarks):
        sentences.append(f"{_counted(rejected, 'file')} could not be read.")
    return sentences


def _pauses(campaign: Campaign) -> list[str]:
    protocol = campaign.design.protocol
    rule, settle_s = protocol.adaptive, protocol.settle_s
    if rule is None:
        rested = f"Before each run the machine rested for {settle_s:g} s."
        if settle_s:
            return [rested]
        return []
    has_idle = any(reading.kind != "modelled" for reading in campaign.idle)
    rounds = _rounds(protocol.repetitions, rule, None if has_idle else settle_s)
    drift = drift_taken_out(campaign)
    if drift:
        return [rounds, drift]
    return [rounds]


def _size(device_bytes: int | None) -> str:
    if not device_bytes:
        return ""
    factor, unit = prefixed(device_bytes, "B")
    return f", {number(device_bytes / factor)} {unit}"


def _tool(tool: Tool) -> str:
    named = tool.version.startswith(tool.name)
    if named:
        return tool.version
    return f"{tool.name} {tool.version}"


def _machine(machine: Machine) -> str:
    parts = [
        machine.cpu_model and f"{machine.logical_cpus or '?'} x {machine.cpu_model}",
        machine.memory_bytes and f"{number(machine.memory_bytes / 2**30)} GiB of memory",
        machine.kernel not in ("", "unknown") and f"kernel {machine.kernel}",
        machine.distribution,
        machine.virtualization
        and machine.virtualization != "none"
        and f"virtualized ({machine.virtualization})",
    ]
    drive = machine.device_model or machine.device
    if drive:
        parts.append(f"drive {drive.strip()}{_size(machine.device_size_bytes)}")
    if machine.filesystem:
        options = ""
        if machine.mount_options:
            options = f" ({machine.mount_options})"
        parts.append(f"file system {machine.filesystem}{options}")
    parts += map(_tool, machine.tools)
    known = "; ".join(part for part in parts if part)
    if known:
        return f"{machine.hostname} ({known})"
    return machine.hostname


def _repetitions(runs: Sequence[Run], planned: int, is_fixed: bool = True) -> str:
    counts = Counter(run.experiment.id for run in runs if run.experiment.level != "context")
    if not counts:
        return f"of which none was run ({planned} repetitions were planned)"
    least, most = min(counts.values()), max(counts.values())
    if least == most:
        text = "each run once"
        if least > 1:
            text = f"each repeated {least} times"
    else:
        text = f"repeated {least} to {most} times"
    if least == planned == most or (least >= planned and not is_fixed):
        return text
    return f"{text} ({planned} were planned{'' if is_fixed else ', at least'})"


def _rounds(least: int, rule: AdaptiveProtocol, pause_s: float | None) -> str:
    """By which rule an adaptive campaign went on; `pause_s` is that of one without idle power."""
    settled = (
        f"power was within {100 * rule.settle_power:g} % of idle and the drive did no I/O"
        if pause_s is None
        else f"the drive did no I/O, after {pause_s:g} s, as no meter showed when it was idle"
    )
    return (
        f"All were to run {least} times, then those with bandwidth, power or efficiency not "
        f"known to {100 * rule.precision:g} % (half the width of the 95 % interval of the mean "
        f"logarithm). The maximum was {rule.most_repetitions} runs, or {rule.most_whole} for "
        "runs without a time limit. Before each run the machine settled for "
        f"{rule.settle_least_s:g} to {rule.settle_most_s:g} s, until {settled}."
    )


def _page_cache(runs: Sequence[Run]) -> list[str]:
    if not runs:
        return []
    dropped = Counter(run.cache_dropped for run in runs)
    if set(dropped) == {None}:
        return ["Whether the page cache was dropped before runs is not recorded."]
    parts = []
    for label, count in dropped.items():
        if label is not None:
            parts.append(label if len(dropped) == 1 else f"{label} ({count} of {len(runs)} runs)")
    return [f"Page cache before each run: {'; '.join(parts)}."]


def _caches(campaign: Campaign) -> list[str]:
    runs = [run for run in campaign.runs if run.experiment.level != "context"]
    sentences = _page_cache(runs)
    setting = campaign.design.options.disk_cache
    cache = campaign.machine.device_write_cache
    state = ""
    if cache:
        state = f" ({cache})"
    sentences.append(
        f"The drive's write cache was left as it was found{state}."
        if setting == "leave"
        else f"The drive's write cache was set during writes: {setting}."
    )
    flushes = Counter(
        run.experiment.flush or "unknown"
        for run in runs
        if any(writes(phase.operation) for phase in run.phases)
    )
    if flushes:
        kinds = ", ".join(f"{kind} ({count} runs)" for kind, count in sorted(flushes.items()))
        sentences.append(f"Requested flush of writes: {kinds}.")
    return sentences


def _power(report: Report, campaign: Campaign) -> list[str]:
    readings: dict[tuple[str, str, str], list[EnergyReading]] = {}
    for run in campaign.runs:
        for phase in run.phases:
            for reading in energy_of(phase):
                key = reading.meter, reading.domain, reading.kind
                readings.setdefault(key, []).append(reading)
    if not readings:
        reason = ""
        if campaign.idle_reason:
            reason = f" ({campaign.idle_reason})"
        if is_imported(campaign):
            return ["The files contain no power."]
        return [f"Power was not measured{reason}."]
    sentences = [_meter(*key, of_meter) for key, of_meter in readings.items()]
    notes = verification_notes(
        (key[0] for key in readings), campaign.design.options.meters, report.verification
    )
    return [
        *sentences,
        *(f"Meters {note}." for note in notes),
        *(f"{note}." for note in report.remarks_on_delays(campaign)),
        *_idle(campaign),
    ]


def _idle(campaign: Campaign) -> list[str]:
    if not campaign.idle:
        reason = campaign.idle_reason
        if reason:
            return [f"Idle power was not measured: {reason}."]
        return []
    powers = []
    for reading in campaign.idle:
        if reading.power_w is not None:
            meter = f"{reading.meter}{_kind(reading.kind)}"
            powers.append(f"{reading.domain} {number(reading.power_w)} W ({meter})")
    length_s = campaign.design.protocol.idle_s
    lasted = ""
    if length_s:
        lasted = f" of {length_s:g} s"
    if powers:
        return [f"Idle baseline{lasted} before the runs: {', '.join(powers)}."]
    return []


def _meter(meter: str, domain: str, kind: str, readings: Sequence[EnergyReading]) -> str:
    valid = [r for r in readings if r.valid]
    text = f"Power of the domain {domain} by {meter}{_kind(kind)}"
    text += f": {len(valid)} of {len(readings)} windows valid"
    limits = [share for r in valid if (share := r.uncertainty_relative)]
    if limits:
        text += (
            f"; uncertainty of the energy {percent(statistics.median(limits))} % in the median, "
            f"{percent(max(limits))} % at most"
        )
    elif valid:
        text += "; the meter states no uncertainty"
    if any(r.leaves_drives_out for r in valid):
        text += "; it excludes the drives"
    if doubtful := sum(r.doubtful for r in valid):
        text += f"; {doubtful} of these windows doubtful"
    return f"{text}."


def _kind(kind: str) -> str:
    return {
        "modelled": ", ESTIMATE by a model, not measured",
        "demo": ", DEMO: fictitious, not measured",
    }.get(kind, "")


def _validity(campaign: Campaign) -> list[str]:
    done, planned = campaign.stored_runs, campaign.planned_runs
    invalid = [run for run in campaign.runs if not run.valid]
    runs = _counted(done, "run") if is_imported(campaign) else f"{done} of {planned} runs"
    text = f"{runs} were done, {len(invalid)} of them invalid and left out"
    reasons = _reasons(invalid)
    return [f"{text}{f' ({reasons})' if reasons else ''}."]


def _reasons(runs: Iterable[Run]) -> str:
    counts = Counter(
        reason
        for run in runs
        for reason in dict.fromkeys([*run.validity, *(r for p in run.phases for r in p.validity)])
    )
    return "; ".join(f"{count} x {reason}" for reason, count in counts.most_common(3))


def _statistics(rows: Sequence[Row]) -> list[str]:
    sentences = [
        "Figures are medians over the valid repetitions with their quartiles (linear "
        "interpolation). J/GB is energy over bytes of the same window, of each repetition, then "
        "the median; MB/J is 1000 over it. MB is 10^6 bytes, GB 10^9.",
    ]
    durable = {row.durable for row in rows if row.durable is not None}
    if True in durable:
        sentences.append("Windows of writes end when their bytes are on the device.")
    if False in durable:
        sentences.append("Windows of writes marked not durable end when the tool returned.")
    return sentences


def _counted(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"
