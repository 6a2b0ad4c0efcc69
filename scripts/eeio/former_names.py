"""Commands that have another name now. The former names continue to work."""

from collections.abc import Sequence

_NOW = {
    ("extend",): ("resume", "--extend"),
    ("power", "record"): ("record", "power"),
    ("power",): ("meter",),
    ("trace",): ("record", "trace"),
    ("journal",): ("record", "journal"),
    ("frequency",): ("record", "frequency"),
    ("figures",): ("report",),
    ("guideline",): ("cost",),
    ("replicate",): ("study", "replicate"),
    ("reference",): ("study", "reference"),
    ("export", "--pts"): ("export", "pts"),
    ("bundle",): ("export", "bundle"),
    ("states",): ("drive", "states"),
    ("restore",): ("doctor", "restore"),
    ("install",): ("profile", "install"),
    ("new-profile",): ("profile", "new"),
}
"""Longer names before their beginnings."""

_FIGURES = {"-o": "--plots", "--output": "--plots", "--format": "--plot-format"}
"""Options that `figures` had and `report` calls by another name."""


def translated(words: Sequence[str]) -> tuple[list[str], str | None]:
    """The same command by today's names, and a note for the user if they differ."""
    found = list(words)
    if found[:1] == ["export"] and "--pts" in found:
        found.remove("--pts")
        found.insert(1, "--pts")
    for former, now in _NOW.items():
        if tuple(found[: len(former)]) == former:
            rest = found[len(former) :]
            if former == ("figures",):
                rest = [_option_of_report(word) for word in rest]
            note = f"`eeio {' '.join(former)}` is now `eeio {' '.join(now)}`"
            return [*now, *rest], note
    return found, None


def _option_of_report(word: str) -> str:
    name, equals, value = word.partition("=")
    return _FIGURES.get(name, name) + equals + value
