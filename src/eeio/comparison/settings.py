"""Settings of imported results: two campaigns may have the same experiments with other options.

An import makes factors of the options in which its runs differ. Others are stored with the
experiment, and compared here.
"""

from collections.abc import Iterator, Mapping, Sequence

from eeio.comparison.changes import Changes
from eeio.record.store import Campaign

_MOST_NAMES = 12
_NOT_SET = "not set"

Settings = Mapping[str, str]


def differing(sides: Mapping[str, Sequence[Campaign]], changes: Sequence[Changes]) -> list[str]:
    """A remark for each two sides (a campaign, or sessions of one machine, by its name) that have
    the same experiments with other settings, with these."""
    of_sides = {name: _settings(campaigns) for name, campaigns in sides.items()}
    remarks: list[str] = []
    for each in changes:
        before, after = of_sides[each.before], of_sides[each.after]
        pairs = []
        for change in each.experiments:
            ids = change.before.experiment_id, change.after.experiment_id
            pairs.append((before.get(ids[0]), after.get(ids[1])))
        remarks += _remarks(each, pairs)
    return remarks


def _settings(campaigns: Sequence[Campaign]) -> dict[str, Settings | None]:
    """By the ids of experiments."""
    by_id: dict[str, Settings | None] = {}
    for campaign in campaigns:
        for planned in campaign.design.experiments:
            by_id.setdefault(planned.experiment.id, planned.settings)
    return by_id


def _remarks(
    changes: Changes, pairs: Sequence[tuple[Settings | None, Settings | None]]
) -> Iterator[str]:
    names: dict[str, None] = {}
    for first, second in pairs:
        if first is not None and second is not None:
            names |= dict.fromkeys(_differences(first, second))
    if names:
        shown = "; ".join(list(names)[:_MOST_NAMES])
        more = ""
        if len(names) > _MOST_NAMES:
            more = f"; and {len(names) - _MOST_NAMES} more"
        yield (
            f"settings differ between {changes.before} and {changes.after}, and a change may be "
            f"theirs: {shown}{more}"
        )
    for number, name in enumerate((changes.before, changes.after)):
        if any(pair[number] is None and pair[1 - number] for pair in pairs):
            yield f"{name} does not state its settings, so that they are not compared"


def _differences(first: Settings, second: Settings) -> Iterator[str]:
    for name in sorted({*first, *second}):
        values = first.get(name, _NOT_SET), second.get(name, _NOT_SET)
        if values[0] != values[1]:
            yield f"{name}: {values[0]}, {values[1]}"
