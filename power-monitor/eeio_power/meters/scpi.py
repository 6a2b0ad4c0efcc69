"""Laboratory power meters of Yokogawa, ZES Zimmer and Hioki, by VISA (pyvisa with pyvisa-py).

`scpi:RESOURCE[,element=1]` with a VISA resource such as `TCPIP0::192.0.2.8::5025::SOCKET`. `*IDN?`
selects the model:

- Yokogawa WT300E and WT300 series: `:NUMeric[:NORMal]:VALue?` of the items P and WH (IM
  WT310E-17EN). 0.1 % of reading and 0.05 % of range, 45 Hz to 66 Hz (IM WT310E-02EN, 7.3.2).
- ZES LMG95, LMG450 and LMG600: `p?` or `p1?` in the short language (as lmgtools of Frankfurt's
  university use them). 0.07 % of reading and 0.04 % of the peak range (LMG450, manual, 12.1.1); the
  peak range is five times the nominal one there.
- Hioki PW3335 to PW3337: `:MEASure? P,WP`. 0.1 % and 0.05 % of range (specifications of PW3336).

The power range is the product of the ranges of voltage and current when the meter is opened. NAN,
INF, and the numbers 9.9E+37, 9.91E+37 and 9999.9E+99 stand for over range and no data: they are
missing values. The integrated energy is recorded, not added: its resolution depends on the value.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eeio_power.delay import Delay
from eeio_power.errors import PowerError
from eeio_power.meters import (
    Channel,
    Detected,
    Verified,
    domain_option,
    first_reading,
    library,
    number_option,
)
from eeio_power.reading import DOMAINS, UNKNOWN, WALL, Kind

OPTIONS = {
    "resource": "VISA resource, such as TCPIP0::192.0.2.8::5025::SOCKET",
    "element": "input of a meter with several (default 1)",
    "domain": f"power domain: {', '.join(DOMAINS)} (default system)",
    "accuracy": "uncertainty as a share, instead of the maker's",
    "period_s": "the meter's update interval, s (default: the model's usual one)",
    "timeout_s": "longest wait for an answer, s (default 2)",
    "backend": "backend of pyvisa (default @py)",
}
ARGUMENT = "resource"

KIND: Kind = "measured"
VERIFIED_ON: Verified = "simulator"
_TIMEOUT_S = 2.0
_J_PER_WH = 3600.0
_NO_DATA = 9e36


@dataclass(frozen=True)
class Model:
    """How a family of meters is read. `{}` is the element."""

    idn: re.Pattern[str]
    query: str
    """Power in W, and the integrated energy in Wh if the meter has it."""
    ranges: tuple[str, str]
    """Queries of the ranges, V and A."""
    period_s: float
    accuracy: float
    of_range: float
    """Further uncertainty as a share of the power range."""
    settings: tuple[str, ...] = ()
    """Of the output of values only."""
    has_energy: bool = True


MODELS = (
    Model(
        re.compile(r"YOKOGAWA,WT3[13]\d", re.I),
        ":NUM:NORM:VAL?",
        (":VOLT:RANG?", ":CURR:RANG?"),
        0.25,
        0.001,
        0.0005,
        (":NUM:FORM ASC", ":NUM:NORM:NUM 2", ":NUM:NORM:ITEM1 P,{}", ":NUM:NORM:ITEM2 WH,{}"),
    ),
    Model(
        re.compile(r"ZES.*,\s*LMG6", re.I),
        "p{}?",
        ("urng{}?", "irng{}?"),
        0.5,
        0.0007,
        0.002,
        ("*zlang short",),
        False,
    ),
    Model(
        re.compile(r"ZES.*,\s*LMG", re.I),
        "p?",
        ("urng?", "irng?"),
        0.5,
        0.0007,
        0.002,
        ("syst:lang short",),
        False,
    ),
    Model(
        re.compile(r"HIOKI,\s*PW333[5-7]", re.I),
        ":MEAS? P{},WP{}",
        (":VOLT{}:RANG?", ":CURR{}:RANG?"),
        0.2,
        0.001,
        0.0005,
        (":HEAD OFF",),
    ),
)


@dataclass(frozen=True)
class ScpiMeter:
    """One input of one instrument."""

    spec: str
    name: str
    instrument: Any
    model: Model
    query: str
    channels: Sequence[Channel]
    native_period_s: float
    kind: Kind = KIND

    def read(self) -> Sequence[float | None]:
        """W, and J of the integration. Raises PowerError without a power."""
        try:
            answer = self.instrument.query(self.query)
        except Exception as error:  # pyvisa-py raises bare ones
            raise PowerError(f"{self.instrument.resource_name}: {error}") from error
        power_w, *energies_wh = map(_number, re.split("[,;]", answer))
        if power_w is None:
            raise PowerError(
                f"{self.instrument.resource_name}: {answer.strip()[:60]!r}: no data or over range; "
                "check ranges and wiring"
            )
        if not self.model.has_energy:
            return [power_w]
        energy_wh = None
        if energies_wh:
            energy_wh = energies_wh[0]
        energy_j = None
        if energy_wh is not None:
            energy_j = energy_wh * _J_PER_WH
        return [power_w, energy_j]

    def close(self) -> None:
        """Release the instrument."""
        with suppress(Exception):
            self.instrument.close()


def _number(text: str) -> float | None:
    """A number, perhaps behind a header; None if it stands for no data or over range."""
    try:
        value = float(text.split()[-1])
    except (ValueError, IndexError):
        return None
    if abs(value) < _NO_DATA:  # false for NaN, too
        return value
    return None


def open_meter(spec: str, options: Mapping[str, str], root: Path) -> ScpiMeter:
    """Identify the instrument and take a first reading. Raises PowerError if there is none."""
    element = options.get("element", "1")
    domain = domain_option(spec, options)
    if "resource" not in options or re.fullmatch(r"\d|SIGMA", element) is None:
        raise PowerError(
            f"meter '{spec}': give the resource, such as scpi:TCPIP0::192.0.2.8::5025::SOCKET, "
            "and element=1 to 9 or SIGMA"
        )
    timeout_s = number_option(spec, options, "timeout_s", above_zero=True) or _TIMEOUT_S
    accuracy = number_option(spec, options, "accuracy")
    period_s = number_option(spec, options, "period_s", above_zero=True)
    instrument = _opened(spec, options, timeout_s)
    try:
        model = _model(instrument)
        # PW3335 has one input, and its items have no number.
        if options.get("element") is None and "HIOKI" in model.idn.pattern:
            element = ""
        volts, amperes = _ranges(instrument, model, element)
    except Exception as error:
        instrument.close()
        raise PowerError(f"meter '{spec}': {error}") from error
    name = options.get("name", "scpi")
    limit_w = model.of_range * volts * amperes
    contents = UNKNOWN
    if domain == "system":
        contents = WALL
    if accuracy is None:
        accuracy = model.accuracy
    power = Channel(
        name=f"{name}:{domain}",
        domain=domain,
        quantity="power_w",
        accuracy_relative=accuracy,
        # The limit is either way: the quantum is double that.
        resolution=2.0 * limit_w,
        max_power_w=limit_w / model.of_range * 3.0,
        contents=contents,
        remark=f"ranges {volts:g} V and {amperes:g} A",
        delay=_delay(period_s or model.period_s),
    )
    energy = Channel(
        name=f"{name}:integration",
        domain=domain,
        quantity="energy_j",
        accuracy_relative=power.accuracy_relative,
        in_domain_total=False,
        contents=power.contents,
    )
    meter = ScpiMeter(
        spec=spec,
        name=name,
        instrument=instrument,
        model=model,
        query=model.query.format(element, element),
        channels=(power, energy) if model.has_energy else (power,),
        native_period_s=period_s or model.period_s,
    )
    return first_reading(meter)


def _opened(spec: str, options: Mapping[str, str], timeout_s: float) -> Any:
    """The instrument's connection. Raises PowerError."""
    visa = library(spec, "pyvisa", "scpi")
    try:
        return visa.ResourceManager(options.get("backend", "@py")).open_resource(
            options["resource"],
            read_termination="\n",
            write_termination="\n",
            timeout=timeout_s * 1000,
            open_timeout=round(timeout_s * 1000),
        )
    except Exception as error:  # pyvisa-py raises bare ones
        raise PowerError(
            f"meter '{spec}': {error}; check the resource, and the network or driver"
        ) from error


def _ranges(instrument: Any, model: Model, element: str) -> tuple[float, float]:
    """The ranges of voltage and current, V and A, of an instrument with its settings made."""
    for setting in model.settings:
        instrument.write(setting.format(element))
    volts, amperes = (_number(instrument.query(query.format(element))) for query in model.ranges)
    if not volts or not amperes or not volts * amperes > 0.0:
        raise PowerError("it states no ranges; set fixed ranges for voltage and current")
    return volts, amperes


def _delay(period_s: float) -> Delay:
    """An analyser gives the mean of its last update interval, up to one interval later."""
    return Delay(period_s / 2.0, period_s, period_s / 2.0, 0.0, "update interval of the analyser")


def _model(instrument: Any) -> Model:
    idn = instrument.query("*IDN?").strip()
    for model in MODELS:
        if model.idn.search(idn):
            return model
    raise PowerError(
        f"{instrument.resource_name} is {idn[:80]!r}, none of: Yokogawa WT300 and WT300E, ZES LMG, "
        "Hioki PW3335 to PW3337"
    )


def find(root: Path) -> Detected:
    """What an instrument is connected to is unknown."""
    return Detected(
        "scpi",
        KIND,
        ("system",),
        False,
        "eeio does not search for instruments",
        "name it: --meter scpi:RESOURCE; `pyvisa-shell` lists them",
    )
