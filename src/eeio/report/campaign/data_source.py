"""Where the data of a campaign are from: a machine, and the command that measured them or an
import."""

import shlex

from eeio.record.design import Options
from eeio.record.imported_design import IMPORTED
from eeio.record.run import only_known
from eeio.record.store import Campaign


def is_imported(campaign: Campaign) -> bool:
    return campaign.design.suite == IMPORTED


def described(campaign: Campaign) -> str:
    """The machine, the suite and the begin of a campaign, without what is unknown."""
    machine, design = campaign.machine, campaign.design
    names = machine.hostname, machine.cpu_model or machine.architecture, machine.drive_name
    where = ", ".join(only_known(*names)) or "machine unknown"
    is_raw = "raw device" in machine.missing.get("filesystem", "")
    if filesystem := machine.filesystem or ("no file system" if is_raw else None):
        where += f" ({filesystem})"
    if is_imported(campaign):
        return f"{where} · {design.suite_title}"
    begun = design.created_utc[:16].replace("T", " ")
    return (
        f"{where} · {design.suite_title}, preset {campaign.preset}, "
        f"{design.protocol.repetitions} repetitions · begun {begun} UTC"
    )


def source_of(campaign: Campaign) -> str:
    """The command that measures the campaign again; for an imported one a sentence."""
    if is_imported(campaign):
        return f"{campaign.name}: imported, {campaign.design.suite_title}"
    return measured_by(campaign.design.options)


def measured_by(options: Options) -> str:
    """The command that measured a campaign."""
    arguments = ["eeio", "run", options.suite or "SUITE", "--preset", options.preset]
    for name, value in _single_options(options):
        if isinstance(value, float):
            arguments += [name, f"{value:g}"]
        elif value is not None:
            arguments += [name, str(value)]
    for name, values in (
        ("--sweep", options.sweeps),
        ("--lose", options.lose),
        ("--meter", options.meters),
        ("--server-power", options.server_power),
    ):
        for text in values:
            arguments += [name, text]
    for name, wanted in (
        ("--allow-estimates", options.allow_estimates),
        ("--allow-memory-filesystem", options.allow_memory_filesystem),
        ("--hash-serial", options.hash_serial),
        ("--see-order", options.see_order),
        ("--trace-journal", options.trace_journal),
        ("--adaptive", options.adaptive),
        ("--share-machine", options.share_machine),
    ):
        if wanted:
            arguments.append(name)
    return shlex.join(arguments)


def _single_options(options: Options) -> tuple[tuple[str, object], ...]:
    """Those with one value; None if it was not given."""
    return (
        ("--directory", options.directory),
        ("--device", options.device),
        ("--erase", options.erase),
        ("--repetitions", options.repetitions),
        ("--work", options.work_bytes),
        ("--precision", options.precision),
        ("--indifference", options.indifference),
        ("--floor", options.floor),
        ("--pilot", options.pilot),
        # Without the option the two differ, or are the default of before.
        ("--rate", options.rate_hz if options.rate_hz == options.counter_rate_hz else None),
        ("--settle", options.settle_s),
        ("--idle", options.idle_s),
        ("--min-phase", options.min_phase_s),
        ("--drive-label", options.drive_label),
        ("--filesystem", ",".join(options.filesystems) or None),
        ("--variant", ",".join(options.variants) or None),
        ("--frequency", ",".join(options.frequencies) or None),
        ("--windows-of", options.windows_of),
        ("--max-written", _gigabytes(options.max_written_bytes)),
        ("--precondition", options.precondition_percent),
        ("--drop-caches-by", options.drop_caches_by),
        ("--smt", ",".join(options.smt) or None),
        ("--turbo", ",".join(options.turbo) or None),
        ("--sysfs-root", _other_than("/", options.sysfs_root)),
        ("--disk-cache", _other_than("leave", options.disk_cache)),
        ("--seed", options.seed),
    )


def _other_than(default: str, value: str) -> str | None:
    if value == default:
        return None
    return value


def _gigabytes(size_bytes: int | None) -> str | None:
    if size_bytes is None:
        return None
    return f"{size_bytes / 1e9:.12g}G"
