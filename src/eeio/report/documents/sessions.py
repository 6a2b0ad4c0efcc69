"""The output of `eeio compare --sessions`: changes from session to session, and beyond them."""

from dataclasses import asdict
from typing import Any

from eeio.comparison.cells import IOPS, TIME
from eeio.comparison.detection import deviation_factor
from eeio.comparison.sessions import SessionEffect, Sessions
from eeio.record.run import SCHEMA_VERSION
from eeio.report.document import Document, flat
from eeio.report.documents import changes
from eeio.report.documents.changes import header_and_unit
from eeio.report.table_and_plot import Table
from eeio.units.sizes import percent


def tables(found: Sessions) -> list[Table]:
    """A table per group of two sessions or more, then the differences between groups."""
    made = []
    for names, effects in zip(found.groups, found.effects, strict=True):
        if len(names) > 1:
            made.append(_effects_table(names, effects))
    return made + [table for change in found.changes for table in changes.tables(change)]


def document(found: Sessions, warnings: tuple[str, ...] = ()) -> Document:
    """The answer of `eeio compare --sessions`; `warnings` are those of the campaigns."""
    return Document(
        title=f"eeio compare: {'; '.join(', '.join(names) for names in found.groups)}",
        parts=tuple(tables(found)),
        answer=tuple(map(changes.answer, found.changes)),
        data=lambda: {**_to_json(found), "warnings": list(warnings)},
        records=lambda: _records(found),
        warnings=warnings,
    )


def _to_json(found: Sessions) -> dict[str, Any]:
    """`groups` and `effects` side by side, `changes` as `eeio compare` has them."""
    return {
        "schema_version": SCHEMA_VERSION,
        "groups": list(map(list, found.groups)),
        "effects": [list(map(asdict, of_group)) for of_group in found.effects],
        "changes": list(map(changes.to_json, found.changes)),
    }


def _records(found: Sessions) -> list[dict[str, Any]]:
    effects = []
    for names, of_group in zip(found.groups, found.effects, strict=True):
        for effect in of_group:
            effects.append({"group": " + ".join(names), **flat(effect)})
    return [
        *(
            {"before": change.before, "after": change.after, **record}
            for change in found.changes
            for record in changes.records(change)
        ),
        *effects,
    ]


# Metrics of the gate that the comparison of two campaigns has in no table.
_NAMES = {IOPS: "IOPS", TIME: "Time (s)"}


def _effects_table(names: tuple[str, ...], effects: tuple[SessionEffect, ...]) -> Table:
    return Table(
        title=f"From session to session: {', '.join(names)}",
        header=("Figure", "Experiments", "Between (%)", "Within (%)", *names),
        rows=tuple(
            (
                _NAMES.get(effect.metric) or header_and_unit(effect.metric)[0],
                str(effect.experiments),
                percent(effect.between),
                percent(effect.within),
                *(f"{100 * effect.shift[name]:+.1f} %" for name in names),
            )
            for effect in effects
        ),
        numeric=frozenset(range(1, 4 + len(names))),
        note="standard deviations of the logarithm: of an experiment's mean between sessions, "
        "beyond the effect of its repetitions, and of repetitions within one; then the part "
        f"common to all experiments of a session. With {len(names)} sessions of one "
        f"experiment the first may be {deviation_factor(len(names)):.2g} times as large (95 "
        "%)",
    )
