"""The machines of tests/data/machines: what they are, what is expected of them, and how they live.

Each is a folder: `machine.yaml` describes the machine (src/eeio/machine/as_data/description.py);
`expected.yaml` is the table of what must be found on it:

    meters:                 # what `auto` or a spec of a meter gives; any other meter is not there
      rapl: {package: [rapl:package-0], dram: [rapl:package-0/dram]}   # adds up, by domain
      ipmi: "the system's total is not clear"                         # refused: words of the reason
    watts: {rapl: {package: 31}, hwmon: {system: "words"}}   # what a short record says, W
    moves: {sys/.../energy_uj: 31, "perf:energy-pkg@0": 88}   # counters that count on, W
    without: {hwmon: {module: [drives, fans, supply]}}   # what a domain is known to leave out
    disks: {sda: {state: idle_b, read_bytes: 512, lies_on: "sda, which ..."}}   # what drives say
    says: ["words of the remarks of these readings"]
    rules: {ipmi: "named as the complete machine"}   # the rule that chose its sensors
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from eeio.machine.as_data import description as descriptions
from eeio.machine.as_data.description import Description
from tests.simulators.files import write_in_place

FOLDER = Path(__file__).parents[1] / "data/machines"
PERF = "perf:"
_EVENTS = "sys/bus/event_source/devices/power/events/energy-"
_CRAY = re.compile(r"(\d+) J (\d+) us")
COUNTER_TEXT = re.compile(r"\d{1,30}( J \d{1,30} us)?\s*")
"""What a file of a counter contains."""


@dataclass(frozen=True)
class Expected:
    """The table of one machine."""

    meters: Mapping[str, Mapping[str, list[str]] | str]
    watts: Mapping[str, Mapping[str, float | str]]
    moves: Mapping[str, float]
    without: Mapping[str, Mapping[str, list[str]]]
    disks: Mapping[str, Mapping[str, str | int]]
    says: tuple[str, ...]
    rules: Mapping[str, str]

    @classmethod
    def load(cls, path: Path) -> "Expected":
        body: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
        unknown = set(body) - {"meters", "watts", "moves", "without", "disks", "says", "rules"}
        assert not unknown, f"{path}: {unknown}"
        return cls(
            body.get("meters", {}), body.get("watts", {}), body.get("moves", {}),
            body.get("without", {}), body.get("disks", {}), tuple(body.get("says", ())),
            body.get("rules", {}),
        )  # fmt: skip


@dataclass(frozen=True)
class KnownMachine:
    """A machine with its table."""

    name: str
    description: Description
    expected: Expected


def names() -> list[str]:
    """All machines, by folder."""
    return sorted(path.parent.name for path in FOLDER.glob("*/machine.yaml"))


def load(name: str) -> KnownMachine:
    """One of them, read once."""
    return _load(FOLDER / name, name)


@cache
def _load(folder: Path, name: str) -> KnownMachine:
    return KnownMachine(
        name, descriptions.load(folder / "machine.yaml"), Expected.load(folder / "expected.yaml")
    )


class Life:
    """Counters that count on, as `moves` says: those of files, and those of perf events, as which
    it stands for the `os` of eeio_power.meters.perf. Time passes when `at` says so."""

    def __init__(self, root: Path, machine: KnownMachine) -> None:
        files = machine.description.tree
        self._root, self._tree = root, files
        moves = machine.expected.moves
        self._now_s = 0.0
        self._files = [
            (root / path, files[path], power_w)
            for path, power_w in moves.items()
            if not path.startswith(PERF)
        ]
        self._perf_w = {k.removeprefix(PERF): w for k, w in moves.items() if k.startswith(PERF)}
        self._events = {
            int(text.removeprefix("event="), 16): (
                f"energy-{path.removeprefix(_EVENTS)}",
                float(files[f"{path}.scale"]),
            )
            for path, text in files.items()
            if path.startswith(_EVENTS) and "." not in path.removeprefix(_EVENTS)
        }
        self._open: list[tuple[str, float]] = []

    def at(self, time_s: float) -> None:
        """The machine as it is so long after it was described."""
        self._now_s = time_s
        for path, first, power_w in self._files:
            write_in_place(path, _later(first, time_s, power_w))

    def move(self, path: str, power_w: float) -> None:
        """One file as it is after a second of that power."""
        first = self._tree[path]
        write_in_place(self._root / path, _later(first, 1.0, power_w))

    def opener(self, event_type: int, config: int, cpu: int) -> int:
        """A descriptor that `read` knows."""
        name, scale_j = self._events[config]
        self._open.append((f"{name}@{cpu}", scale_j))
        return len(self._open) - 1

    def read(self, fd: int, size: int) -> bytes:
        name, scale_j = self._open[fd]
        energy_j = self._perf_w.get(name, 0.0) * self._now_s
        return round(energy_j / scale_j).to_bytes(size, "little")

    def close(self, fd: int) -> None:
        """No file stays open."""


def _later(first: str, passed_s: float, power_w: float) -> str:
    """The counter's text after that time: uJ, or J with a time stamp as Cray writes it."""
    cray = _CRAY.match(first)
    if cray is None:
        return str(int(first) + round(passed_s * power_w * 1e6))
    energy_j, time_us = int(cray[1]), int(cray[2])
    return f"{energy_j + int(passed_s * power_w)} J {time_us + int(passed_s * 1e6)} us"
