"""The rows and energies of an import as tables."""

from eeio.exchange.importing.results import Taken
from eeio.record.run import mark
from eeio.report.campaign.columns import NONE
from eeio.report.table_and_plot import Table
from eeio.units.number_text import number
from eeio.units.sizes import MB


def table(taken: Taken) -> Table | None:
    """One line per row of the files; None if there is none."""
    rows = tuple(
        (
            str(file.path),
            f"{file.tool} {report.version or ''}".strip(),
            str(position),
            phase.group,
            phase.operation or NONE,
            phase.access_pattern or NONE,
            _cell(phase.request_bytes),
            {True: "yes", False: "no", None: NONE}[phase.direct],
            _cell(phase.iodepth),
            _cell(phase.jobs),
            _cell(phase.bandwidth_bytes_per_s, MB),
            _cell(phase.iops),
            taken.before.get(file.sha256, ""),
        )
        for file in taken.files
        for position, report in enumerate(file.reports)
        for phase in report.phases
    )
    if not rows:
        return None
    header = (
        "File",
        "Tool",
        "Report",
        "Group",
        "Operation",
        "Pattern",
        "Request (B)",
        "Direct",
        "Depth",
        "Jobs",
        "MB/s",
        "IOPS",
        "Already in",
    )
    note = f"one row per direction of a group of a report; {NONE}: not reported"
    return Table("Results", header, rows, frozenset({2, 6, 8, 9, 10, 11}), note)


_ENERGY = "± J: uncertainty; doubtful readings are not ranked"


def energy_table(taken: Taken) -> Table | None:
    """One line per reading of power; None if there is none."""
    rows = tuple(
        (
            str(file.path),
            str(position),
            phase.group,
            phase.operation or NONE,
            f"{mark(reading.kind)}{reading.domain}",
            reading.meter,
            _cell(reading.power_w),
            _cell(reading.energy_j),
            _cell(reading.uncertainty_j),
            number(100 * reading.coverage),
            ("doubtful: " if reading.doubtful else "") + "; ".join(reading.reasons),
        )
        for file in taken.files
        for position, report in enumerate(file.reports)
        for phase in (*report.mixed, *report.phases)
        for reading in phase.energy
    )
    header = (
        "File",
        "Report",
        "Group",
        "Operation",
        "Domain",
        "Meter",
        "W",
        "J",
        "± J",
        "Coverage (%)",
        "Reasons",
    )
    if rows:
        return Table("Energy", header, rows, frozenset({1, 6, 7, 8, 9}), _ENERGY)
    return None


def _cell(value: float | None, unit: float = 1.0) -> str:
    if value is None:
        return NONE
    if isinstance(value, int) and unit == 1.0:
        return str(value)
    return number(value / unit)
