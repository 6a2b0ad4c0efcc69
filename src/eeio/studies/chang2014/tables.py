"""The study's part of a report: a table and a plot for each kind of workload."""

from collections.abc import Sequence
from functools import partial

from eeio.analysis.observation import NOT_REPORTED
from eeio.record.run import MARKS, mark
from eeio.report.campaign.columns import NONE, plain
from eeio.report.table_and_plot import Plot, Table
from eeio.studies.chang2014.cells import (
    CHILDREN,
    CREATES,
    EQUATION_9,
    PARENT,
    VariantCell,
    workload_label,
)
from eeio.units.number_text import number
from eeio.units.sizes import MB

_NOTES = {
    "write": (
        "Children: the sum of each thread's own bandwidth, the paper's figure; it leaves out what "
        "a delay costs after the writes. Parent: all bytes by the time that passed. Read both.\n"
        "X, Y, Z: threads not, fully, partly held up by a commit; inside: held up, and let go "
        "before the commit had ended. Queued: until the commit that woke a call began, over the "
        "calls that one woke. Model: equation (8) on the trace / children, median."
    ),
    "create": (
        "(9), (10): the paper's rates, which are those of one process; RSD, x EXT4 and speedup are "
        "of (9). Files/s: all files by the time that passed. Read both. Model: equation (9) on the "
        "trace / the program's own, median."
    ),
}


def tables(cells: Sequence[VariantCell]) -> list[Table]:
    """Throughput, file creation; both include the variants' effect on durability."""
    made = []
    for phase, title in (("write", "Journal: throughput"), ("create", "Journal: file creation")):
        chosen = [cell for cell in cells if cell.phase == phase]
        if chosen:
            made.append(_table(title, phase, chosen))
    return made


def plots(cells: Sequence[VariantCell], stamped: str) -> list[Plot]:
    """Those that there are measured cells for; `stamped` marks them as no measurement."""
    made = []
    for phase, name, caption, title in (
        ("write", "journal-throughput.svg", "Throughput", "IOzone throughput and the journal"),
        ("create", "journal-creation.svg", "File creation", "File creation and the journal"),
    ):
        chosen = [cell for cell in cells if cell.phase == phase and cell.n]
        if chosen:
            caption = f"{caption}, by variant of ext4 and frequency"
            made.append(Plot(name, caption, partial(_draw, chosen, title, phase, stamped)))
    return made


def _draw(cells: Sequence[VariantCell], title: str, phase: str, stamped: str) -> str:
    from eeio.studies.chang2014 import figures

    return figures.draw(cells, title, phase, stamped)


def _table(title: str, phase: str, cells: Sequence[VariantCell]) -> Table:
    several = len({cell.campaign for cell in cells}) > 1
    figures = (
        (("Children MB/s", CHILDREN, MB), ("Parent MB/s", PARENT, MB))
        if phase == "write"
        else (
            ("(9) 1/s", EQUATION_9, 1.0),
            ("(10) 1/s", "rate_eq10_per_s", 1.0),
            ("Files/s", CREATES, 1.0),
        )
    )
    per_joule = "J/file"
    if phase == "write":
        per_joule = "MB/J"
    header = (
        *(("Campaign",) if several else ()),
        "Workload",
        "Variant",
        "GHz",
        "n",
        *(name for name, _, _ in figures),
        "RSD",
        "x EXT4",
        "Speedup",
        "Commits",
        "X/Y/Z/inside",
        "Model",
        "Queued (ms)",
        "Durable (ms)",
        "Durable x EXT4",
        per_joule,
    )
    rows = []
    for cell in cells:
        spread = cell.spread(cell.figure)
        rows.append(
            (
                *((cell.campaign,) if several else ()),
                workload_label(cell),
                cell.variant,
                NONE if cell.frequency_hz is None else f"{cell.frequency_hz / 1e9:g}",
                _count(cell),
                *(plain(cell.mean(name), unit) for _, name, unit in figures),
                NONE if spread is None or spread.rsd is None else f"{spread.rsd:.0%}",
                plain(cell.ratio_to_ext4),
                plain(cell.speedup),
                _commits(cell),
                _classes(cell),
                plain(cell.model_ratio),
                plain(cell.mean("commit_wait_mean_s"), 1e-3),
                plain(cell.mean("until_durable_mean_s"), 1e-3),
                plain(cell.until_durable_ratio_to_ext4),
                _energy(cell),
            )
        )
    reasons = dict.fromkeys(reason for cell in cells for reason in _why(cell))
    first = 3 + several
    return Table(
        title=title,
        header=header,
        rows=tuple(rows),
        numeric=frozenset(range(first - 1, len(header))),
        note="\n".join((_NOTES[phase], *reasons)),
    )


def _count(cell: VariantCell) -> str:
    text = str(cell.n)
    if cell.invalid_runs:
        text += f" ({cell.invalid_runs} invalid)"
    if cell.converged is not False:
        return text
    return f"{text}, not converged"


def _commits(cell: VariantCell) -> str:
    commits, fast = cell.mean("commits"), cell.mean("fast_commits")
    if commits is None:
        return NONE
    return number(commits) + (f" + {number(fast)} fast" if fast else "")


def _classes(cell: VariantCell) -> str:
    means = []
    for kind in ("not_blocked", "fully_blocked", "partly_blocked", "ended_inside"):
        means.append(cell.mean(f"threads_{kind}"))
    if means[0] is not None:
        return "/".join(map(plain, means))
    return NONE


def _energy(cell: VariantCell) -> str:
    for energy in sorted(cell.energy, key=lambda energy: energy.kind in MARKS):
        value = energy.joules_per_file
        if cell.phase != "create":
            value = None
            if energy.bytes_per_j is not None:
                value = energy.bytes_per_j / MB
        if value is not None:
            return f"{mark(energy.kind)}{number(value)}"
    return NONE


def _why(cell: VariantCell) -> list[str]:
    found = []
    for name, reason in cell.reasons.items():
        if reason != NOT_REPORTED.reason and (name != "n" or cell.invalid_runs or cell.n == 0):
            found.append(f"{name.replace('_', ' ')}: {reason}")
    if _energy(cell) == NONE:
        reasons = [e.reason for e in cell.energy if e.reason]
        found.append(f"energy: {_general(reasons[0])}" if reasons else "energy: no meter was read")
    return found


def _general(reason: str) -> str:
    """Windows differ by milliseconds; one line covers all."""
    return reason.partition(" of 0.")[0]
