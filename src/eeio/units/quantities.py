"""Valid numbers: finite, in their range, in their unit.

    BANDWIDTH.checked(value, "fio's bandwidth")

A boolean is not a number. No real value reaches a limit: a value outside means that a tool, a meter
or a file is wrong. Ranges include their ends.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from eeio.errors import LimitError

# More of a wrong value than this makes no message clearer.
_SHOWN = 40


@dataclass(frozen=True)
class Quantity:
    """A kind of number: its name, unit and range. `whole` numbers are integers."""

    name: str
    unit: str
    least: float
    most: float
    whole: bool = False

    def contains(self, value: object) -> bool:
        """Whether the value is a number of this kind; NaN, infinities and truth values are not."""
        return (
            isinstance(value, int | float)
            and not isinstance(value, bool)
            and self.least <= value <= self.most
            and (not self.whole or value == int(value))
        )

    def checked(self, value: object, what: str = "") -> float:
        """The value as a float. Raises LimitError that names `what`."""
        if not self.contains(value):
            raise LimitError(self.rejection(value, what))
        assert isinstance(value, int | float)
        return float(value)

    def whole_number(self, value: object, what: str = "") -> int:
        """The value as an int: also 4.0, never 4.5. Raises LimitError."""
        if not self.contains(value) or not isinstance(value, int | float) or value != int(value):
            raise LimitError(self.rejection(value, what))
        return int(value)

    def of_text(self, text: str, what: str = "") -> float:
        """The number that is written in `text`. Raises LimitError."""
        try:
            if len(text) > MOST_DIGITS:
                raise ValueError
            value = float(text)
        except ValueError:
            raise LimitError(f"{what or self.name}: {shortened(text)} is not a number") from None
        return self.checked(value, what)

    def rejection(self, value: object, what: str = "") -> str:
        """Why the value is none of this kind."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            return f"{what or self.name}: {shortened(value)} is not a number"
        unit = ""
        if self.unit:
            unit = f" {self.unit}"
        kind = "a number"
        if self.whole:
            kind = "an integer"
        return (
            f"{what or self.name}: {shortened(value)} is not {kind} from "
            f"{self.least:.12g} to {self.most:.12g}{unit}"
        )


def percent(part: float) -> str:
    """A share in percent, two digits below 10 %: `0.05`, `1.2`, `34`, `533`."""
    if part < 0.1:
        return f"{100 * part:.2g}"
    return f"{100 * part:.0f}"


def shortened(value: object) -> str:
    """The value in a message: of a long one its beginning and how long it is."""
    if isinstance(value, int) and abs(value) >= 10**_SHOWN:
        # Python refuses to write the digits of very large ones.
        return f"a number of about {int(value.bit_length() * math.log10(2)) + 1} digits"
    if isinstance(value, str | int | float | None):
        text = repr(value)
    else:
        # The repr of a deep structure has no bound.
        text = f"a {type(value).__name__}"
    if len(text) <= _SHOWN:
        return text
    return f"{text[:_SHOWN]}... ({len(text)} characters)"


MOST_DIGITS = 64
"""Characters of a number in a text: a float of 17 digits with sign and exponent has 24."""

_EXBI = 2.0**63

BANDWIDTH = Quantity("bandwidth", "bytes/s", 0, 1e15)
POWER = Quantity("power", "W", 0, 1e9)
POWER_SAMPLE = Quantity("power sample", "W", -1e9, 1e9)
"""One reading as a meter gave it; `eeio_power.window_readings` defines which are used."""
MEAN_POWER = Quantity("mean power", "W", -100, 1e9)
"""Of a window: the noise of an idle sensor may bring it a little below zero."""
ENERGY = Quantity("energy", "J", 0, 1e15)
WINDOW_ENERGY = Quantity("energy of a window", "J", -1e10, ENERGY.most)
"""Of a window in which the mean power may be below zero."""
COUNTER_SAMPLE = Quantity("energy counter", "J", -1e18, 1e18)
DURATION = Quantity("duration", "s", 0, 366 * 86400)
"""Of a run, a phase, a window: a year and a day."""
PERIOD = Quantity("period", "s", 1e-6, 86400)
"""Between two readings of a meter."""
OFFSET = Quantity("offset", "s", -DURATION.most, DURATION.most)
"""Between two clocks, or from the start of a run."""
TIMESTAMP = Quantity("time", "s", -1e9, 1e10)
"""On CLOCK_MONOTONIC, or since 1970: the year 2286."""
PAUSE = Quantity("pause", "s", 0, 7 * 86400)
"""Between runs, and of the idle baseline: a week."""
REPETITIONS = Quantity("repetitions", "", 1, 10_000, whole=True)
REPETITION = Quantity("repetition", "", 1, _EXBI, whole=True)
"""Number of a repetition: imported ones may have different numbers."""
COUNT = Quantity("count", "", 0, _EXBI, whole=True)
SIZE = Quantity("size", "bytes", 0, _EXBI, whole=True)
REQUEST_SIZE = Quantity("request size", "bytes", 1, 2.0**44, whole=True)
SHARE = Quantity("share", "", 0, 1)
FRACTION = Quantity("fraction", "", 0, 1e6)
"""Of one processor: more than 1 where several are busy."""
RATE = Quantity("rate", "1/s", 0, 1e15)
FREQUENCY = Quantity("frequency", "Hz", 0, 1e12)
EXIT_CODE = Quantity("exit code", "", -(2**31), 2**32, whole=True)
NUMBER = Quantity("number", "", 0, 2**32, whole=True)
"""That the kernel gives to something."""
FIGURE = Quantity("figure", "", -1e18, 1e18)
"""Any other figure that a tool or a machine reports."""
PRICE = Quantity("price", "", 0, 1e12)
YEARS = Quantity("years", "", 0, 1000)
PUE = Quantity("PUE", "", 1, 100)
"""A site's energy over its machines': never below 1."""
CARBON_INTENSITY = Quantity("carbon intensity", "g/kWh", 0, 1e6)
CARBON = Quantity("carbon", "kg", 0, 1e12)
"""CO2e of making a machine."""
LEAST_COVERAGE = 0.5
"""Of a window: with less of it seen by a meter its mean power is not compared with others."""
MOST_UNCERTAIN = 0.1
"""With an uncertainty above this share of the energy a figure is not ranked."""
MOST_UNKNOWN = 0.5
"""An energy with a larger uncertainty, as a share of it, is not shown."""
FACTOR = Quantity("factor", "", -1e12, 1e12)
"""The factor or offset that an import applies to a column."""

# By the end of a name, the longest first: names contain units.
_BY_SUFFIX: Mapping[str, Quantity] = MappingProxyType(
    {
        "_bytes_per_s": BANDWIDTH,
        "_per_s": RATE,
        "iops": RATE,
        "_bytes": SIZE,
        "bytes_read": SIZE,
        "bytes_written": SIZE,
        "_fraction": FRACTION,
        "_hz": FREQUENCY,
        "_w": POWER,
        "_j": ENERGY,
        "_s": DURATION,
    }
)
_BY_UNIT: Mapping[str, Quantity] = MappingProxyType(
    {"B/s": BANDWIDTH, "B": SIZE, "s": DURATION, "1/s": RATE, "W": POWER, "J": ENERGY}
)


@lru_cache(maxsize=256)
def of_name(name: str) -> Quantity:
    """The kind of number of a metric, by the unit in its name; FIGURE if there is none."""
    return next((q for suffix, q in _BY_SUFFIX.items() if name.endswith(suffix)), FIGURE)


def of_unit(unit: str) -> Quantity:
    """The kind of number of a context value."""
    return _BY_UNIT.get(unit, FIGURE)
