"""The inputs of a cost: the user's prices, carbon and times, from options or YAML.

None of these numbers is built in. A grid's carbon intensity is a number, or a CSV file of hours:

    hour_utc,g_per_kwh
    2025-01-01T00:00Z,312.5
    2025-01-01T01:00Z,304
"""

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from eeio.errors import EeioError, LimitError
from eeio.files import documents, inputs
from eeio.units import quantities as q

_HEADER = ["hour_utc", "g_per_kwh"]
_HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class Grid:
    """Carbon intensity in g CO2e a kWh: a number, or the mean of a file's `hours`."""

    g_per_kwh: float
    hours: int | None = None
    least_g_per_kwh: float | None = None
    most_g_per_kwh: float | None = None


@dataclass(frozen=True)
class CostInputs:
    """The user's inputs; None is not given, and is never replaced by a guess.

    Prices are in `currency`, whichever it is; `purchase` and `embodied_kg` (CO2e) are of the
    complete machine with its drives, and are spread over `years`. `duty` is the share of the time
    in which it moves bytes, `capacity_bytes` its storage capacity. `pue` multiplies all energy.
    `idle_w` is the power in W of the idle machine, for campaigns that did not measure it.
    """

    price_per_kwh: float | None = None
    grid: Grid | None = None
    pue: float | None = None
    duty: float | None = None
    purchase: float | None = None
    embodied_kg: float | None = None
    years: float | None = None
    capacity_bytes: float | None = None
    idle_w: float | None = None
    currency: str = ""

    def over(self, other: "CostInputs") -> "CostInputs":
        """These inputs, and the other's where these have none."""
        mine = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(other, **{name: value for name, value in mine.items() if value})


KINDS: Mapping[str, q.Quantity] = {
    "price_per_kwh": q.PRICE,
    "grid_g_per_kwh": q.CARBON_INTENSITY,
    "pue": q.PUE,
    "duty": q.SHARE,
    "purchase": q.PRICE,
    "embodied_kg": q.CARBON,
    "years": q.YEARS,
    "capacity_bytes": q.SIZE,
    "idle_w": q.POWER,
}
"""Each numeric key of the YAML file, and its valid values."""


def positive(name: str, text_or_number: object) -> float:
    """A number of that key, above 0. Raises LimitError for 0: zero costs must be left out."""
    quantity = KINDS[name]
    if isinstance(text_or_number, str):
        value = quantity.of_text(text_or_number.strip(), name)
    else:
        value = quantity.checked(text_or_number, name)
    if value == 0:
        raise LimitError(f"{name}: 0; leave it out where it is not known or does not count")
    return value


def load_inputs(path: Path) -> CostInputs:
    """The inputs of a YAML file. `grid_g_per_kwh` may name a CSV file, in the same folder.

    Raises EeioError, with the file, for anything that is not known.
    """
    try:
        body = documents.read_yaml(path)
    except (OSError, LimitError) as error:
        raise EeioError(f"{path}: cannot be read as inputs of a cost: {error}") from error
    if not isinstance(body, dict) or not body:
        raise EeioError(f"{path}: expected keys ({', '.join((*KINDS, 'currency'))})")
    values: dict[str, Any] = {}
    for key, value in body.items():
        if key == "currency":
            if not isinstance(value, str):
                raise EeioError(f"{path}: currency must be a word")
            values[key] = value
        elif key not in KINDS:
            known = ", ".join((*KINDS, "currency"))
            raise EeioError(f"{path}: unknown key {q.shortened(key)}; known are {known}")
        elif key == "grid_g_per_kwh" and isinstance(value, str):
            values["grid"] = read_grid(path.parent / value)
        else:
            try:
                number = positive(key, value)
            except LimitError as error:
                raise EeioError(f"{path}: {error}") from error
            if key == "grid_g_per_kwh":
                values["grid"] = Grid(number)
            else:
                values[key] = number
    return CostInputs(**values)


def grid_of(text: str) -> Grid:
    """A number, else a CSV file's path. Raises LimitError for a number out of range, EeioError for
    a file that cannot be used."""
    try:
        float(text)
    except ValueError:
        return read_grid(Path(text))
    return Grid(positive("grid_g_per_kwh", text))


def read_grid(path: Path) -> Grid:
    """The mean of a file of hours, each after the other without a gap.

    The work is taken to be spread evenly over these hours. Raises EeioError with the file and line:
    the mean of a year with gaps is the mean of another time.
    """
    try:
        text = inputs.read_text(path, inputs.TABLE_BYTES)
    except (OSError, LimitError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        message = f"{path}: cannot be read as hours of carbon intensity: {reason}"
        raise EeioError(message) from error
    lines = text.splitlines()
    if not lines or [cell.strip() for cell in lines[0].split(",")] != _HEADER:
        raise EeioError(f"{path}, line 1: expected the header {','.join(_HEADER)}")
    last: datetime | None = None
    values = []
    for number, line in enumerate(lines[1:], start=2):
        try:
            hour, value = _hour_of(line)
            if last is not None and hour != last + _HOUR:
                raise LimitError(
                    f"{hour:%Y-%m-%dT%H:%MZ} follows {last:%Y-%m-%dT%H:%MZ}; each line is one hour "
                    "later than the one before: fill the gap"
                )
        except LimitError as error:
            raise EeioError(f"{path}, line {number}: {error}") from error
        last = hour
        values.append(value)
    if not values:
        raise EeioError(f"{path}: no hours below the header")
    mean = math.fsum(values) / len(values)
    if mean == 0:
        raise EeioError(f"{path}: every hour is 0 g/kWh")
    return Grid(mean, len(values), min(values), max(values))


def _hour_of(line: str) -> tuple[datetime, float]:
    """Raises LimitError."""
    if len(line) > inputs.CELL_CHARACTERS:
        raise LimitError(f"longer than {inputs.CELL_CHARACTERS} characters")
    cells = next(csv.reader([line]), [])
    if len(cells) != len(_HEADER):
        raise LimitError(f"{len(cells)} cells in place of an hour and its g/kWh")
    written, value = (cell.strip() for cell in cells)
    try:
        hour = datetime.fromisoformat(written)
    except ValueError:
        raise LimitError(f"{q.shortened(written)} is not an hour like 2025-01-01T00:00Z") from None
    if hour.tzinfo is None:
        raise LimitError(f"{q.shortened(written)}: of which zone? end it in Z or +00:00")
    if not value:
        raise LimitError("no value: fill the gap")
    return hour.astimezone(UTC), q.CARBON_INTENSITY.of_text(value)
