"""Where the data of a campaign are from: a machine, and the command that measured them or an
import."""

import shlex

from eeio.files.typed import may_lack
from eeio.options import options_of
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
    words = ["eeio", "run", options.suite or "SUITE"]
    for field, option in options_of(Options):
        value = getattr(options, field.name)
        if option.flags and (value != field.default or not may_lack(field)):
            words += option.written(value)
    # Without --rate the two differ, or are the default of before.
    if options.rate_hz == options.counter_rate_hz:
        words += ["--rate", f"{options.rate_hz:g}"]
    return shlex.join(words)
