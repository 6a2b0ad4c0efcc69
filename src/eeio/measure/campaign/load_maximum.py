"""The bandwidth at full speed of which an offered load is a share: measured once in a campaign.

The file is in the campaign's folder, so that no other campaign uses it and `resume` does. Each
setting of the machine (file system, frequency ...) has a maximum of its own.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from eeio.errors import EeioError, LimitError
from eeio.files import inputs
from eeio.record.design import PlannedExperiment
from eeio.record.store import Store
from eeio.units import quantities as q

FILE = "load.json"
SCHEMA_VERSION = 1
SCRIPT = "load.sh"
"""Of profiles that offer loads."""
SETTING = "EEIO_LOAD_MAXIMUM"
"""Bytes/s for the profile's scripts; empty while it is not known."""
FULL_SPEED = {"EEIO_LOAD_CALIBRATES": "yes"}
"""With it the profile ignores `load`."""
TITLE = "the run at full speed, which defines the load"
_OF_THE_STEP = ("load", "arrivals")
"""Factors that do not change the maximum."""


@dataclass(frozen=True)
class Maximum:
    """`remarks`: what was noted of the run at full speed, such as a limit that it reached."""

    bytes_per_s: int
    remarks: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """For each run with a share of it."""
        return tuple(f"{TITLE}: {remark}" for remark in self.remarks)


class Maxima:
    """Those of one campaign."""

    def __init__(self, folder: Path) -> None:
        self._store = Store(folder)
        self._path = folder / FILE

    def of(self, planned: PlannedExperiment) -> Maximum | None:
        """None if it was not measured yet. Raises EeioError for a damaged file."""
        setting = _setting(planned)
        return next((known for of, known in self._all() if of == setting), None)

    def add(self, planned: PlannedExperiment, maximum: Maximum) -> None:
        """Stores one that was measured. Raises EeioError for a damaged file."""
        maxima = [*self._all(), (_setting(planned), maximum)]
        self._store.write(
            FILE,
            {
                "schema_version": SCHEMA_VERSION,
                "maxima": [{"of": of, **asdict(known)} for of, known in maxima],
            },
        )

    def _all(self) -> list[tuple[Mapping[str, Any], Maximum]]:
        try:
            return [
                (
                    each["of"],
                    Maximum(
                        q.SIZE.whole_number(each["bytes_per_s"], "bytes_per_s"),
                        tuple(map(str, each["remarks"])),
                    ),
                )
                for each in inputs.read_json(self._path)["maxima"]
            ]
        except FileNotFoundError:
            return []
        except (LimitError, OSError, KeyError, TypeError) as error:
            raise EeioError(
                f"{self._path}: {error}; without the measured maximum no load can be offered. "
                "Start another campaign"
            ) from error


def _setting(planned: PlannedExperiment) -> dict[str, Any]:
    """All that its maximum depends on."""
    factors = {name: value for name, value in planned.factors.items() if name not in _OF_THE_STEP}
    return {
        "profile": planned.profile,
        "factors": factors,
        "volume": planned.volume,
        "write_cache": planned.experiment.cache.disk,
        "frequency_hz": planned.frequency_hz,
        "smt": planned.smt,
        "turbo": planned.turbo,
    }
