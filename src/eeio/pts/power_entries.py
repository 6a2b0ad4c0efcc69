"""The entries of a PTS result file that power adds: idle baseline, power, energy and MB/J.

PTS's module inserts them during a run (`session`), and `eeio export pts` writes them (`write`).
This module imports only the standard library, as the process that PTS's module starts.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eeio.analysis.observation import Key
from eeio.record.energy_reading import MARKS, EnergyReading
from eeio.units.number_text import pts_number

_PROPORTIONS = {"W": "LIB", "J": "LIB", "MB/J": "HIB"}


@dataclass(frozen=True)
class PowerEntry:
    """One graph of PTS. `base` is the hash of the result that it is derived from, None for the idle
    baseline; `arguments` None are those of the base."""

    base: str | None
    title: str
    description: str
    scale: str
    values: Sequence[float]
    own: Mapping[str, Any]
    """Data of eeio next to the values (entry.schema.json)."""
    arguments: str | None = None
    times: str | None = None
    """How long the trials took, s, as PTS writes it."""

    @property
    def proportion(self) -> str:
        """PTS's name for whether more is better."""
        return _PROPORTIONS[self.scale]

    @property
    def texts(self) -> list[str]:
        return [pts_number(value) for value in self.values]

    @property
    def mean(self) -> str:
        return pts_number(statistics.fmean(self.values))

    @property
    def json(self) -> dict[str, Any]:
        """The JSON of the entry in the result file."""
        times = {} if self.times is None else {"test-run-times": self.times}
        return {**times, "eeio": dict(self.own)}

    def to_json(self) -> dict[str, Any]:
        """As PTS's module reads it."""
        return {
            "base": self.base,
            "title": self.title,
            "description": self.description,
            "arguments": self.arguments,
            "scale": self.scale,
            "proportion": self.proportion,
            "values": self.texts,
            "value": self.mean,
            "json": self.json,
        }


@dataclass(frozen=True)
class Base:
    """The result that entries are derived from."""

    hash: str
    title: str
    description: str
    arguments: str | None = None


def idle(reading: EnergyReading, baseline: Mapping[str, Any]) -> PowerEntry:
    """Of a valid reading of the idle baseline."""
    return PowerEntry(
        None,
        _title("eeio: idle baseline", reading.kind),
        _label("Idle Power", reading.key),
        "W",
        (reading.power_w or 0.0,),
        {"idle": baseline},
        arguments="idle",
    )


def power_and_energy(
    base: Base,
    source: Key,
    readings: Sequence[EnergyReading],
    of_energy: Mapping[str, Any],
    times: str | None = None,
) -> list[PowerEntry]:
    """Of valid readings by one source; `of_energy` is added to the data next to the energy."""
    figures = (
        ("Power", "W", [reading.power_w or 0.0 for reading in readings], _own("power_w", source)),
        (
            "Energy",
            "J",
            [reading.energy_j or 0.0 for reading in readings],
            {**_own("energy_j", source), **of_energy},
        ),
    )
    return [
        PowerEntry(
            base.hash,
            _title(base.title, source[2]),
            f"{base.description} - {_label(quantity, source)}{_mark(readings)}",
            scale,
            values,
            own,
            base.arguments,
            times,
        )
        for quantity, scale, values, own in figures
    ]


def efficiency(
    base: Base,
    source: Key,
    mb_per_j: Sequence[float],
    readings: Sequence[EnergyReading],
    times: str | None = None,
) -> PowerEntry:
    """MB/J; the description says so if a reading excludes the power of the drives."""
    without = any(reading.leaves_drives_out for reading in readings)
    label = _label("Mean Energy Efficiency", source) + (", without drives" if without else "")
    label += _mark(readings)
    return PowerEntry(
        base.hash,
        _title(base.title, source[2]),
        f"{base.description} - {label}",
        "MB/J",
        mb_per_j,
        _own("efficiency_mb_per_j", source),
        base.arguments,
        times,
    )


def _mark(readings: Sequence[EnergyReading]) -> str:
    """Of energies that eeio compares with no other. PTS joins results of equal descriptions."""
    if any(reading.doubtful for reading in readings):
        return ", doubtful"
    return ""


def _own(quantity: str, source: Key) -> dict[str, Any]:
    domain, meter, kind = source
    return {"quantity": quantity, "meter": meter, "domain": domain, "kind": kind}


def _title(title: str, kind: str) -> str:
    if kind in MARKS:
        return f"{title} ({MARKS[kind]})"
    return title


def _label(quantity: str, source: Key) -> str:
    domain, meter, kind = source
    mark = ""
    if kind in MARKS:
        mark = f"{MARKS[kind]}: "
    return f"{mark}{quantity} ({meter} {domain})"
