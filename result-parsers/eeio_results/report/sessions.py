"""What `eeio compare --sessions` says: how much changes from session to session, and beyond it."""

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from eeio_results.comparison.cells import IOPS, TIME
from eeio_results.comparison.sessions import SessionEffect, Sessions
from eeio_results.record import SCHEMA_VERSION
from eeio_results.report import changes, latex, markdown, text
from eeio_results.report.changes import SHOWN
from eeio_results.report.parts import Table
from eeio_results.statistics.power_analysis import deviation_factor
from eeio_results.units import percent


def tables(found: Sessions) -> list[Table]:
    """A table a group of two sessions or more, then what differs between groups."""
    made = [
        _effects_table(names, effects)
        for names, effects in zip(found.groups, found.effects, strict=True)
        if len(names) > 1
    ]
    return made + [table for one in found.changes for table in changes.tables(one)]


def to_text(found: Sessions) -> str:
    """For a terminal."""
    said = [changes.answer(one) for one in found.changes]
    return "\n\n".join([*said, *(text.render_table(table) for table in tables(found))]) + "\n"


def to_markdown(found: Sessions) -> str:
    said = [changes.answer(one) for one in found.changes]
    return "\n\n".join([*said, *(markdown.render_table(one) for one in tables(found))]) + "\n"


def to_latex(found: Sessions) -> str:
    return "\n\n".join(latex.render_table(table) for table in tables(found)) + "\n"


def to_json(found: Sessions) -> str:
    """`groups` and `effects` side by side, `changes` as `eeio compare` has them."""
    body: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "groups": [list(names) for names in found.groups],
        "effects": [[asdict(effect) for effect in of_group] for of_group in found.effects],
        "changes": [changes.to_json(one) for one in found.changes],
    }
    return json.dumps(body, indent=1) + "\n"


# Metrics of the gate that the comparison of two campaigns has in no table.
_NAMES = {IOPS: "IOPS", TIME: "Time (s)"}
FORMATS: dict[str, Callable[[Sessions], str]] = {
    "table": to_text, "markdown": to_markdown, "latex": to_latex, "json": to_json,
}  # fmt: skip


def _effects_table(names: tuple[str, ...], effects: tuple[SessionEffect, ...]) -> Table:
    return Table(
        title=f"From session to session: {', '.join(names)}",
        header=("Figure", "Experiments", "Between (%)", "Within (%)", *names),
        rows=tuple(
            (
                _NAMES.get(effect.metric) or SHOWN[effect.metric][0],
                str(effect.experiments),
                percent(effect.between),
                percent(effect.within),
                *(f"{100 * effect.shift[name]:+.1f} %" for name in names),
            )
            for effect in effects
        ),
        numeric=frozenset(range(1, 4 + len(names))),
        note="standard deviations of the logarithm: of an experiment's mean from session to "
        "session, beyond what its repetitions make of it, and of repetitions within one; then what "
        f"all experiments of a session have in common. By {len(names)} sessions of one experiment "
        f"the first may be {deviation_factor(len(names)):.2g} times as large (95 %)",
    )
