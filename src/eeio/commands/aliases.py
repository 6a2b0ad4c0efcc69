"""Other names of commands: former ones, which continue to work with a note, and short ones."""

import argparse
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

_SHORT = {
    "fleet": ("study", "fleet"),
    "history": ("study", "history"),
    "query": ("export", "query"),
    "setup": ("doctor", "setup"),
    "table": ("export", "table"),
    "validate": ("export", "validate"),
}
_EXPORTS = ("pts", "bundle", "parquet", "query", "validate", "table")
_FIGURES = {"-o": "--plots", "--output": "--plots", "--format": "--plot-format"}
"""Options that `figures` had and `report` calls by another name."""


def translated(arguments: Sequence[str]) -> tuple[list[str], str | None]:
    """The same command by today's names, and a note for the user if they differ."""
    found = list(arguments)
    if found and found[0] in _SHORT:
        return [*_SHORT[found[0]], *found[1:]], None
    if found[:1] == ["check"]:
        return _gate_of(found[1:]), None
    if found[:1] == ["export"] and (form := _format_of(found)) is not None:
        start, length, name = form
        return ["export", name, *found[1:start], *found[start + length :]], None
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


def _gate_of(arguments: Sequence[str]) -> list[str]:
    """`check NAME --against BASE --limit 5%` as `compare BASE NAME --fail-if worse:5%`."""
    parser = argparse.ArgumentParser(prog="eeio check", allow_abbrev=False)
    parser.add_argument("name", metavar="NAME", help="campaign after the change")
    parser.add_argument("--against", metavar="BASELINE", required=True, help="campaign before it")
    parser.add_argument("--limit", metavar="SHARE[:METRIC]", default="5%", help="default: 5%%")
    parser.epilog = "Other options are those of `eeio compare`, for example --junit FILE."
    requested, further = parser.parse_known_args(arguments)
    return [
        "compare",
        requested.against,
        requested.name,
        "--fail-if",
        f"worse:{requested.limit}",
        *further,
    ]


def _format_of(arguments: Sequence[str]) -> tuple[int, int, str] | None:
    """The place and length of `--format NAME` in `export NAME --format parquet`."""
    if arguments[1:2] and arguments[1] in _EXPORTS:
        return None
    for place, argument in enumerate(arguments):
        if argument == "--format" and arguments[place + 1 : place + 2]:
            return place, 2, arguments[place + 1]
        if argument.startswith("--format="):
            return place, 1, argument.partition("=")[2]
    return None


def _option_of_report(word: str) -> str:
    name, equals, value = word.partition("=")
    return _FIGURES.get(name, name) + equals + value
