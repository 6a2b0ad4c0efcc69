"""The protocol for the module under PTS, requested once before a run: repetitions and pauses.

`python -m eeio.pts.protocol PRESET FOLDER...` prints the protocol of the suites in these
folders, which is in their protocol.yaml; for a profile outside of a suite (an empty FOLDER, or none
at all) and for a suite of others that has no such file it is eeio-suite's:

    {"repetitions": 6, "settle_s": 5.0, "idle_s": 60.0, "work_bytes": null, "reasons": {},
     "left_out": ["eeio-bonnie-1.0.0 buffer=on level=filesystem ..."]}

`left_out` are the tests of these suites that the preset does not run: the profile and its arguments
in alphabetical order. `work_bytes` is what each run moves, null where the presets of the profiles
say it. Of suites that differ in a value it is null, and `reasons` say how they differ.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eeio.errors import EXIT_DONE, EXIT_REJECTED, EeioError, RejectedError
from eeio.measure.profiles import suite as suites
from eeio.measure.profiles.suite import Suite

DEFAULT_SUITE = "eeio-suite"
_VALUES = ("repetitions", "settle_s", "idle_s", "work_bytes")


def protocol_of(preset: str, folders: Sequence[str]) -> dict[str, Any]:
    """The object that is printed. Raises RejectedError where a suite has no such preset."""
    protocols = {suite.name: suite.protocol(preset) for suite in map(_suite, folders or ("",))}
    if any(protocol.adaptive is not None for protocol in protocols.values()):
        raise RejectedError("PTS repeats no single test further: use `eeio run --preset adaptive`")
    body: dict[str, Any] = {}
    reasons = {}
    for value in _VALUES:
        wanted = {name: getattr(protocol, value) for name, protocol in protocols.items()}
        agreed = len(set(wanted.values())) == 1
        body[value] = next(iter(wanted.values())) if agreed else None
        if not agreed:
            texts = (f"{name} has {_text(number)}" for name, number in wanted.items())
            reasons[value] = f"the suites differ: {', '.join(texts)}"
    return {**body, "reasons": reasons, "left_out": _left_out(preset, folders)}


def _left_out(preset: str, folders: Sequence[str]) -> list[str]:
    """Of suites with a protocol of their own: a profile that is named by itself runs in full."""
    return [
        " ".join((entry.profile, *sorted(f"{key}={value}" for key, value in entry.factors.items())))
        for folder in folders
        if folder and (Path(folder) / suites.PROTOCOL).is_file()
        for suite in (_suite(folder),)
        for entry in suite.entries
        if any(group.matches(entry) for group in suite.left_out(preset))
    ]


def _text(number: float | None) -> str:
    if number is None:
        return "no value"
    return f"{number:.10g}"


def _suite(folder: str) -> Suite:
    if folder and (Path(folder) / suites.PROTOCOL).is_file():
        return suites.load(Path(folder).resolve())
    return suites.find(DEFAULT_SUITE)


def main(arguments: Sequence[str]) -> int:
    """Prints the protocol as one line of JSON."""
    try:
        if not arguments:
            raise RejectedError("usage: python -m eeio.pts.protocol PRESET FOLDER...")
        print(json.dumps(protocol_of(arguments[0], arguments[1:])))
    except (EeioError, OSError) as error:
        print(error, file=sys.stderr)
        return EXIT_REJECTED
    return EXIT_DONE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
