"""Figures from a program's output, by the user's regular expressions: figures.json next to it.

    {"schema_version": 1, "operation": "read", "spatiality": "mixed",
     "factors": {"size": "16m"},
     "figure": {"pattern": "([0-9.]+) MB/s", "unit": "MB/s"},
     "bytes": {"pattern": "^([0-9]+) bytes"}}

`figure` and `bytes` may be null; `bytes` may be `{"size": "16m"}` or `{"size": "{size}"}`, the
value of a factor. A pattern has one group, is tried on each line of stdout and stderr (a carriage
return ends one, too) and must match exactly once: with two figures it is not known which is meant.

Requires only the standard library. `eeio profile new` puts a copy into the profile, which reports
the figures to PTS with it. The parser `figures` starts it in a separate process, because the run
time of a pattern is not known.

    figures.py FOLDER --json key=value ...     what is read
    figures.py FOLDER SECONDS key=value ...    the lines that PTS looks for; it took so long
"""

from __future__ import annotations  # of an older Python under PTS

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

DEFINITION = "figures.json"
STREAMS = ("stdout.txt", "stderr.txt")
EDGE = re.compile(r"# eeio: (begins|ends)(?: (\d{1,12}\.\d\d))?\n")
"""Lines that the profile's script prints on stderr right before and after the command, with the
seconds of /proc/uptime, which are cut to 10 ms. Patterns do not see them."""
STREAM_BYTES = 16 << 20  # the stored part of one
LINE_CHARACTERS = 64 << 10
PATTERN_CHARACTERS = 500
MOST = 1e15

# Bytes of a word behind a number; single letters are binary, as in all that eeio takes.
SIZES = {
    "": 1,
    "B": 1,
    "bytes": 1,
    "kB": 10**3,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 1 << 10,
    "MiB": 1 << 20,
    "GiB": 1 << 30,
    "TiB": 1 << 40,
    "k": 1 << 10,
    "m": 1 << 20,
    "g": 1 << 30,
    "t": 1 << 40,
}
BANDWIDTHS = {f"{name}/s": size for name, size in SIZES.items() if name.endswith("B")}
TIMES = {"s": 1.0, "ms": 1e-3, "us": 1e-6}
RATES = ("IOPS", "operations/s", "transactions/s", "files/s")
UNITS = (*BANDWIDTHS, *RATES, *TIMES)

_NUMBER = re.compile(r"([0-9]{1,20}(?:\.[0-9]{0,20})?(?:[eE][+-]?[0-9]{1,2})?) ?([A-Za-z/]{0,14})")


class FiguresError(Exception):
    """The output does not contain the requested figures; a message of one line."""


def found(
    definition: Mapping[str, Any], text: str, factors: Mapping[str, str]
) -> dict[str, float | int | None]:
    """`{"figure", "bytes"}` of a text: in its unit, and integer bytes; None if not requested."""
    figure, moved = definition["figure"], definition["bytes"]
    reported: dict[str, float | int | None] = {"figure": None, "bytes": None}
    if figure is not None:
        value, word = number(once(figure["pattern"], text, "--figure"), "--figure")
        unit = figure["unit"]
        for units in (BANDWIDTHS, TIMES):
            if word in units and unit in units:
                value, word = value * units[word] / units[unit], ""
        if word and word != unit:
            raise FiguresError(f"--figure: {word} behind the number, where {unit} is its unit")
        reported["figure"] = value
    if moved is not None:
        word = once(moved["pattern"], text, "--bytes") if "pattern" in moved else moved["size"]
        if word.startswith("{"):
            name = word[1:-1]
            word = factors.get(name, definition["factors"].get(name, ""))
        value, unit = number(word, "--bytes")
        if unit not in SIZES:
            raise FiguresError(
                f"--bytes: {unit!r} is not a unit of bytes: one of {', '.join(SIZES)}"
            )
        reported["bytes"] = round(value * SIZES[unit])
    return reported


def once(pattern: str, text: str, what: str) -> str:
    """The text of the pattern's group in the one line that it matches."""
    tried = re.compile(pattern)
    values: list[str] = []
    for line in re.split(r"[\r\n]+", text):
        if len(line) > LINE_CHARACTERS:
            raise FiguresError(
                f"{what}: a line of {len(line)} characters: {LINE_CHARACTERS} at most"
            )
        for match in tried.finditer(line):
            values.append(match[1])
    if len(values) != 1 or not values[0]:
        raise FiguresError(
            f"{what} {pattern!r} matches {len(values)} times in the output instead of once"
        )
    return values[0]


def number(text: str, what: str) -> tuple[float, str]:
    """A number and the word behind it."""
    match = _NUMBER.fullmatch(text.strip())
    if match is None or float(match[1]) > MOST:
        raise FiguresError(f"{what}: {text[:40]!r} is not a number such as 12, 0.5, 1e6 or 16 MiB")
    return float(match[1]), match[2]


def printed(folder: str) -> str:
    """Both streams."""
    texts = []
    for name in STREAMS:
        with (Path(folder) / name).open("rb") as file:
            data = file.read(STREAM_BYTES + 1)
        if len(data) > STREAM_BYTES:
            raise FiguresError(f"{name}: longer than {STREAM_BYTES} bytes: have it print less")
        texts.append(EDGE.sub("\n", data.decode(errors="replace")))
    return "\n".join(texts)


def lines(
    definition: Mapping[str, Any], reported: Mapping[str, Any], duration_s: float
) -> Iterator[str]:
    """As PTS finds them: one line of one figure."""
    unit = None
    if definition["figure"]:
        unit = definition["figure"]["unit"]
    bandwidth = f"EEIO {definition['operation']} bandwidth"
    if unit in BANDWIDTHS:
        yield f"{bandwidth}: {reported['figure'] * BANDWIDTHS[unit] / 1e6:.6f} MB/s"
    elif reported["bytes"] is not None and duration_s > 0:
        yield f"{bandwidth}: {reported['bytes'] / duration_s / 1e6:.6f} MB/s"
    if unit is not None and unit not in BANDWIDTHS:
        yield f"EEIO run figure: {reported['figure']:.6f} {unit}"
    if unit is None and reported["bytes"] is None:
        yield f"EEIO run time: {duration_s:.2f} s"


def main(arguments: Sequence[str]) -> None:
    folder, form, *rest = arguments
    try:
        definition = json.loads((Path(folder) / DEFINITION).read_text(encoding="utf-8"))
        factors = dict(word.partition("=")[::2] for word in rest)
        reported = found(definition, printed(folder), factors)
    except (
        FiguresError,
        OSError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        re.error,
    ) as why:
        sys.exit(str(why) if isinstance(why, FiguresError) else f"{folder}: {why!r}")
    if form == "--json":
        print(json.dumps(reported))
    else:
        print("\n".join(lines(definition, reported, float(form))))


if __name__ == "__main__":
    main(sys.argv[1:])
