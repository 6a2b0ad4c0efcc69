"""The table of Pareto-optimal experiments in two figures at once."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from eeio.comparison.pareto import Choice
from eeio.report.campaign.columns import plain
from eeio.report.table_and_plot import Table
from eeio.units.sizes import MB


def pareto_table(choices: Sequence[Choice]) -> Table | None:
    """Those on a front, where there was a choice; None where no group has two."""
    rows = []
    notes = []
    groups = dict.fromkeys((choice.operation, choice.buffer) for choice in choices)
    for operation, buffer in groups:
        group = [
            choice for choice in choices if (choice.operation, choice.buffer) == (operation, buffer)
        ]
        placed = [one for one in group if one.on_bandwidth_front is not None]
        if len(placed) < 2:
            continue
        name = f"{operation}, buffer {buffer}"
        for one in placed:
            if one.on_bandwidth_front or one.on_p99_front:
                rows.append(
                    (
                        name,
                        one.label,
                        plain(one.efficiency_bytes_per_j, MB),
                        plain(one.bandwidth_bytes_per_s, MB),
                        plain(one.latency_p99_s, 1e-3),
                        plain(one.energy_j_per_gb),
                        plain(one.energy_delay_j_s_per_gb2),
                        _fronts(one),
                    )
                )
        others = len(group) - len(placed)
        left = ""
        if others:
            left = f"; {others} more may not be ranked"
        notes.append(f"{name}: of {len(placed)} experiments{left}")
    if not rows:
        return None
    return Table(
        title="Pareto-optimal experiments: no other has more MB/J and also more MB/s, or a lower "
        "p99",
        header=("Group", "Experiment", "MB/J", "MB/s", "p99 (ms)", "J/GB", "J s/GB2", "Against"),
        rows=tuple(rows),
        numeric=frozenset(range(2, 7)),
        note="\n".join(
            (*notes, "medians; J s/GB2: energy-delay product of a GB, J/GB x s/GB, least is best")
        ),
    )


def to_json(choices: Sequence[Choice]) -> list[dict[str, Any]]:
    """Of `eeio compare` and `eeio report`: every experiment, also those on no front."""
    return list(map(asdict, choices))


def _fronts(one: Choice) -> str:
    against = (("MB/s", one.on_bandwidth_front), ("p99", one.on_p99_front))
    return ", ".join(name for name, on in against if on)
